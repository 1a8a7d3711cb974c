"""``gstack route eval``: how well a set of labelled prompts is routed (spec, routing R8). Cold.

A case is one JSON line ``{"id", "prompt", "expected"}``; ``expected`` is a skill's name or null.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gstack.api import Candidate
from gstack.errors import StateError
from gstack.hook import HookContext
from gstack.lowlevel import read_file
from gstack.routing.decision import Outcome, RoutedSet, bare_name, decide
from gstack.routing.hook import judge, routed_set, threshold_of

#: The thresholds of the sweep, beside the one in force.
SWEEP = tuple(round(step / 100, 2) for step in range(30, 101, 5))
#: F-beta's beta: a false route costs more than a missed one.
BETA = 0.5
#: Largest file of cases, in bytes.
CASES_LIMIT = 64 << 20


class Case:
    """One labelled prompt: ``expected`` is a skill's bare name or None."""

    __slots__ = ("expected", "id", "prompt")

    def __init__(self, id: str, prompt: str, expected: str | None) -> None:
        self.id = id
        self.prompt = prompt
        self.expected = expected


def read_cases(path: str) -> list[Case]:
    """The cases of a JSON-lines file. Raises StateError with file, line and what is wrong."""
    try:
        text = read_file(path, CASES_LIMIT).decode("utf-8-sig")
    except OSError as error:
        raise StateError(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StateError(f"{path} isn't UTF-8 text (byte {error.start})") from error
    cases: dict[str, Case] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            case = _case(line, f"{path} line {number}", str(number))
            if case.id in cases:
                raise StateError(f"{path} line {number}: the id {case.id!r} was used before")
            cases[case.id] = case
    if not cases:
        raise StateError(f"{path} holds no cases", hint='one a line: {"id": "a1", "prompt": "...", "expected": "qa"}')
    return list(cases.values())


def _case(line: str, where: str, number: str) -> Case:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StateError(f"{where}: no JSON ({error})") from error
    if not isinstance(data, dict) or not isinstance(data.get("prompt"), str):
        raise StateError(f'{where}: it needs a text "prompt"')
    expected = data.get("expected", "")
    if expected is not None and (not isinstance(expected, str) or not expected.strip()):
        raise StateError(f'{where}: "expected" must be a skill\'s name or null')
    return Case(str(data.get("id", number)), data["prompt"], bare_name(expected.strip()) if expected else None)


class Figures:
    """Counts of one view on the cases: ``right`` routes, ``wrong`` routes, ``missed`` ones, and ``others``, the cases
    that nothing (or not this skill) was expected for; ``false`` are the wrong routes among those."""

    __slots__ = ("false", "missed", "others", "right", "wrong")

    def __init__(self) -> None:
        self.right = self.wrong = self.missed = self.others = self.false = 0

    @property
    def precision(self) -> float | None:
        """Right routes among all routes; None without routes."""
        return _share(self.right, self.right + self.wrong)

    @property
    def recall(self) -> float | None:
        """Right routes among the cases that expect one; None without such cases."""
        return _share(self.right, self.right + self.missed)

    @property
    def false_route_rate(self) -> float | None:
        """Wrong routes among the cases that expect none (to this skill)."""
        return _share(self.false, self.others)

    @property
    def f_half(self) -> float:
        """F0.5 of precision and recall; 0 where one of them is."""
        precision, recall = self.precision or 0.0, self.recall or 0.0
        if not precision or not recall:
            return 0.0
        return (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)

    def as_dict(self) -> dict[str, Any]:
        """Counts and rates with stable keys."""
        return {
            "right": self.right,
            "wrong": self.wrong,
            "missed": self.missed,
            "precision": _rounded(self.precision),
            "recall": _rounded(self.recall),
            "false_route_rate": _rounded(self.false_route_rate),
            "f0.5": _rounded(self.f_half),
        }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


class Evaluation:
    """The result: ``total`` and, by skill, ``skills``; ``wrong`` cases as (case, routed to, reason); the ``sweep`` as
    (threshold, figures) and its ``best`` threshold."""

    def __init__(
        self,
        threshold: float,
        cases: Sequence[Case],
        judged: Sequence[tuple[Case, str | None, str | None]],
        sweep: Sequence[tuple[float, Figures]],
    ) -> None:
        self.threshold = threshold
        self.cases = len(cases)
        self.total = figures(judged)
        seen = {case.expected for case in cases} | {route for _, route, _ in judged}
        self.skills = {skill: figures(judged, skill) for skill in sorted(name for name in seen if name)}
        self.wrong = [row for row in judged if row[1] != row[0].expected]
        self.sweep = list(sweep)
        self.best = best_threshold(self.sweep, threshold)

    def as_dict(self) -> dict[str, Any]:
        """Everything with stable keys, for ``--json``."""
        return {
            "cases": self.cases,
            "threshold": self.threshold,
            "total": self.total.as_dict(),
            "skills": {name: found.as_dict() for name, found in self.skills.items()},
            "wrong": [
                {"id": case.id, "expected": case.expected, "routed": route, "reason": reason}
                for case, route, reason in self.wrong
            ],
            "sweep": [{"threshold": at, **found.as_dict()} for at, found in self.sweep],
            "best_threshold": self.best,
        }


def figures(judged: Iterable[tuple[Case, str | None, str | None]], skill: str | None = None) -> Figures:
    """The figures of all cases, or of one skill's part in them."""
    found = Figures()
    for case, route, _ in judged:
        expected = case.expected if skill in (None, case.expected) else None
        routed = route if skill in (None, route) else None
        if expected is None:
            found.others += 1
            found.false += routed is not None
        if routed is not None and routed == expected:
            found.right += 1
        else:
            found.wrong += routed is not None
            found.missed += expected is not None
    return found


def best_threshold(sweep: Sequence[tuple[float, Figures]], current: float) -> float:
    """The threshold with the highest F0.5; of equals the one in force, else the highest (which routes least)."""
    top = max(found.f_half for _, found in sweep)
    best = [at for at, found in sweep if found.f_half >= top - 1e-9]
    return current if current in best else max(best)


def evaluate(
    ctx: HookContext,
    cases: Sequence[Case],
    *,
    threshold: float | None = None,
    routed: Sequence[str] | None = None,
) -> Evaluation:
    """Route every case with what is installed here. ``threshold`` and ``routed`` stand in for the configured ones;
    session and policy have no say."""
    at = threshold_of(ctx) if threshold is None else threshold
    routable = routed_set(ctx, None if routed is None else list(routed))
    scored = [(case, *judge(ctx, case.prompt, threshold=at, routed=routable)) for case in cases]
    judged = [(case, _bare(outcome), outcome.reason) for case, _, outcome in scored]
    steps = sorted({*SWEEP, at})
    sweep = [(step, figures(_at(scored, step, routable))) for step in steps]
    return Evaluation(at, cases, judged, sweep)


def _at(
    scored: Iterable[tuple[Case, list[Candidate], Outcome]], step: float, routable: RoutedSet
) -> list[tuple[Case, str | None, str | None]]:
    """The routes at another threshold."""
    # a prompt without candidates was never scored, or fits nothing: no threshold changes that
    return [
        (case, _bare(decide(case.prompt, found, step, routable)) if found else None, None) for case, found, _ in scored
    ]


def _bare(outcome: Outcome) -> str | None:
    return bare_name(outcome.route.skill) if outcome.route else None


def write_html(result: Evaluation, path: str) -> None:
    """The result as one page that needs no network, the sweep as a plot. Raises StateError."""
    from gstack.report_page import render, write_page

    page = render("gstack.routing", "eval.html.j2", result=result, plot=_plot(result), tables=_tables(result))
    write_page(path, page)


def _plot(result: Evaluation) -> Any:
    """The sweep in the coordinates of the plot: one line a measure, the marks, the thresholds that stand out."""
    from gstack.report_page.charts import Line, Lines

    low, high = result.sweep[0][0], result.sweep[-1][0]

    def at(threshold: float) -> float:
        return (threshold - low) / (high - low)

    def line(name: str, measure: Callable[[Figures], float | None]) -> Line:
        points = [(at(step), measure(found)) for step, found in result.sweep]
        return Line(name, [(x, y) for x, y in points if y is not None])

    lines = [
        line("precision", lambda found: found.precision),
        line("recall", lambda found: found.recall),
        line("F0.5", lambda found: found.f_half),
    ]
    marks = [(f"{step:.2f}", at(step)) for step in SWEEP[::2] if low <= step <= high]
    return Lines(lines, marks, [("in force", at(result.threshold)), ("best", at(result.best))])


def _tables(result: Evaluation) -> dict[str, Any]:
    from gstack.report_page.tables import Cell, Table

    def figures_row(name: Any, one: Figures) -> tuple[Any, ...]:
        rates = (one.precision, one.recall, one.false_route_rate)
        return name, one.right, one.wrong, one.missed, *(_cell(value) for value in rates)

    def _cell(value: float | None) -> Any:
        return Cell("\u2013", -1.0) if value is None else Cell(f"{value:.2f}", value)

    head = ["#right", "#wrong", "#missed", "#precision", "#recall"]
    skills = [figures_row(f"/{name}", one) for name, one in result.skills.items()]
    sweep = []
    for at, one in result.sweep:
        name = Cell(f"{at:.2f}", at, tone="good" if at == result.best else "")
        sweep.append((*figures_row(name, one)[:6], _cell(one.f_half)))
    wrong = [(case.id, case.expected or "none", route or "none", reason or "") for case, route, reason in result.wrong]
    return {
        "skills": Table("skills", ["skill", *head, "#false routes"], [*skills, figures_row("all", result.total)]),
        "sweep": Table("sweep", ["#threshold", *head, "#F0.5"], sweep),
        "wrong": Table("wrong", ["~id", "expected", "routed to", "reason"], wrong),
    }

"""``gstack route``: the dry run ``--explain``, and the sub-commands beside it (spec, routing R5, R8, R9)."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gstack.cli import route_history
from gstack.cli.common import console, emit, emit_json, here, plain, run_env, table, warn
from gstack.config import KEYS, SWITCHES, names, setting
from gstack.errors import GstackError, RouteUsage
from gstack.hook import HookContext
from gstack.routing import evaluate as evaluation
from gstack.routing.decision import SCORER_ERROR
from gstack.routing.explain import explain, routing_setup
from gstack.routing.why_not import text_of, why_not

USAGE = (
    "usage: gstack route --explain [--all] [--threshold N] [--json] PROMPT "
    "| eval | why-not | overlap | suggest | report | --help"
)

#: Set in the context when the command line has the form of flags, without the name of a sub-command.
_FLAG_FORM = "gstack.route.flag_form"


class RouteGroup(TyperGroup):
    """A group whose first argument decides: the name of a sub-command, or else the flags of ``explain``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """``route --explain PROMPT`` becomes ``route explain --explain PROMPT``."""
        if not args and not ctx.resilient_parsing:
            raise RouteUsage(USAGE)
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            ctx.meta[_FLAG_FORM] = True
            args = ["explain", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=RouteGroup,
    rich_markup_mode="rich",
    help=(
        "Which skill a prompt would be routed to, and how good the routing is.\n\n"
        'Example: gstack route --explain "this test fails, fix it"\n\n'
        "The first argument decides: one of the commands below, or else the flags of explain "
        "(see gstack route explain --help)."
    ),
)

route_history.register(app)

_JSON = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
_THRESHOLD = Annotated[
    float | None, typer.Option("--threshold", metavar="N", help="Another cut-off, above 0 and at most 1.")
]


def _complete_switch(incomplete: str) -> list[str]:
    return [name for name in SWITCHES if name.startswith(incomplete)]


@app.command("explain")
def explain_command(
    context: typer.Context,
    prompt: Annotated[str | None, typer.Argument(help="The prompt; - reads it from standard input.")] = None,
    flag: Annotated[bool, typer.Option("--explain", help="Show what the hook would do.")] = False,
    below: Annotated[bool, typer.Option("--all", help="Also list what scored below the threshold.")] = False,
    threshold: _THRESHOLD = None,
    as_json: _JSON = False,
    default: Annotated[
        str | None,
        typer.Option(
            "--default",
            metavar="SWITCH",
            help="Print the built-in default of a switch instead.",
            autocompletion=_complete_switch,
        ),
    ] = None,
) -> None:
    """What the hook would do with a prompt, with the switch on or off. Injects nothing, logs nothing.

    The same as gstack route --explain. Example: gstack route --explain --all "fix this bug"
    """
    if default is not None:
        emit(_default_of(default))
        return
    if prompt is None or (context.meta.get(_FLAG_FORM) and not flag):
        raise RouteUsage(USAGE)
    _check_threshold(threshold)
    ctx = _setup()
    report = explain(ctx, _prompt(prompt), threshold=threshold)
    if report.outcome.reason == SCORER_ERROR:
        warn(_no_scorer(ctx))
    if as_json:
        emit_json(report.as_dict(below=below))
        return
    for line in report.lines(below=below):
        emit(line)


@app.command("eval")
def eval_command(
    cases: Annotated[str, typer.Argument(help='JSON lines: {"id", "prompt", "expected": skill or null}.')],
    threshold: _THRESHOLD = None,
    routed: Annotated[
        str | None, typer.Option("--routed", metavar="NAMES", help="Another routed set: names with commas, or all.")
    ] = None,
    as_json: _JSON = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Also write a page with the sweep as a plot.")
    ] = None,
) -> None:
    """How well labelled prompts are routed: precision, recall, false routes, and a sweep over thresholds.

    Example: gstack route eval cases.jsonl --routed all --html eval.html
    """
    from gstack.report_page import check_page

    _check_threshold(threshold)
    listed = names(routed) if routed is not None else None
    if listed is not None and not listed:
        raise RouteUsage("--routed needs names of skills, or all")
    if html is not None:
        check_page(html)
    rows = evaluation.read_cases(cases)
    ctx = _setup()
    result = evaluation.evaluate(ctx, rows, threshold=threshold, routed=listed)
    if any(reason == SCORER_ERROR for _, _, reason in result.wrong):
        raise GstackError(_no_scorer(ctx))
    if html is not None:
        evaluation.write_html(result, html)
    if as_json:
        emit_json(result.as_dict())
    else:
        _print_evaluation(result)
        if html is not None:
            emit(f"\nwritten: {html}")


@app.command("why-not")
def why_not_command(
    skill: Annotated[str, typer.Argument(help="The skill's name, with or without the slash.")],
    prompt: Annotated[str, typer.Argument(help="The prompt; - reads it from standard input.")],
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Also ask what that session already saw.")
    ] = None,
    as_json: _JSON = False,
) -> None:
    """Why a skill isn't routed to, one line for each thing that has a say.

    Example: gstack route why-not qa "find bugs"
    """
    lines = why_not(_setup(), skill, _prompt(prompt), session=session)
    if as_json:
        emit_json([{"topic": topic, "text": text} for topic, text in lines])
        return
    for line in text_of(lines):
        emit(line)


def _setup() -> HookContext:
    """The routing of this folder; parts of ``route_equivalents`` that say nothing are named on standard error."""
    ctx = routing_setup(run_env(), here())
    scorer: Any = ctx.plan.get("gstack.trigger_scorers", setting("route_scorer", ctx.env, ctx.config))
    configure = getattr(scorer, "configure", None)
    if configure is not None:
        for problem in ctx.call(scorer, configure, {"equivalents": ctx.config.get("route_equivalents")}) or ():
            warn(f"{ctx.config.path}: {problem}")
    return ctx


def _no_scorer(ctx: HookContext) -> str:
    name = setting("route_scorer", ctx.env, ctx.config)
    return f"the scorer {name!r} gave no result: see gstack plugins list and gstack config get route_scorer"


def _prompt(said: str) -> str:
    """The prompt itself; ``-`` is standard input without its last line end."""
    if said != "-":
        return said
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    return text.removesuffix("\n").removesuffix("\r")


def _default_of(name: str) -> str:
    if name not in SWITCHES:
        raise RouteUsage(f"there is no switch {name!r}: it is one of {', '.join(SWITCHES)}")
    return KEYS[name][1]


def _check_threshold(value: float | None) -> None:
    if value is not None and not 0 < value <= 1:
        raise RouteUsage(f"--threshold {value:g} isn't above 0 and at most 1")


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _print_evaluation(result: evaluation.Evaluation) -> None:
    out = console()
    rows = [*((f"/{name}", found) for name, found in result.skills.items()), ("all", result.total)]
    shown = table("skill", "right", "wrong", "missed", "precision", "recall", "false routes")
    for name, one in rows:
        counts = [str(one.right), str(one.wrong), str(one.missed)]
        shown.add_row(name, *counts, _rate(one.precision), _rate(one.recall), _rate(one.false_route_rate))
    out.print(f"{result.cases} prompts at threshold {result.threshold:.2f}\n")
    out.print(shown)
    out.print()
    sweep = table("threshold", "right", "wrong", "missed", "precision", "recall", "F0.5")
    for at, one in result.sweep:
        counts = [str(one.right), str(one.wrong), str(one.missed)]
        mark = " best" if at == result.best else ""
        sweep.add_row(f"{at:.2f}{mark}", *counts, _rate(one.precision), _rate(one.recall), f"{one.f_half:.2f}")
    out.print(sweep)
    if result.wrong:
        out.print("\ngone wrong:")
        for case, route, reason in result.wrong:
            why = f" ({reason})" if reason else ""
            out.print(plain(f"  {case.id}: expected {case.expected or 'none'}, got {route or 'none'}{why}"))

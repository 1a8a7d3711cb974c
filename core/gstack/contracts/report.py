"""Which runs missed what: ``gstack contract report`` (contracts C8).

Cold. Reads the session records; a run that was still held or deferred when it was recorded is judged again by its
transcript, where that file is still there.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gstack.contracts.check import WAIVED
from gstack.contracts.judge import Bench, Declared, SkillBook, judge_run, read_transcript, session_folder
from gstack.contracts.records import read_record, read_record_file, record_files, record_path
from gstack.contracts.runs import pending_agents, runs, with_final_text
from gstack.errors import ContractState, ContractUsage, GstackError
from gstack.report_page import moment, render
from gstack.report_page.charts import Bars, bars_over_time
from gstack.report_page.tables import Cell, Table, share_cell
from gstack.sessions import safe_id

#: The result of a run that was held and, as its transcript shows, fixed afterwards.
FIXED = "fixed_after_block"


class Row:
    """One run: as recorded, and what it reads now.

    ``outcome`` is the recorded word, ``result`` what it reads after the transcript was looked at again
    (``fixed_after_block`` among others), ``miss`` whether it counts as one, ``items`` each item's state, ``note`` why
    a run could not be judged again; times are seconds since the epoch.
    """

    __slots__ = (
        "blocked_at",
        "host",
        "items",
        "load_id",
        "note",
        "observed",
        "outcome",
        "result",
        "session",
        "skill",
        "updated_at",
    )

    def __init__(self, record: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        self.session: str = record["session"]
        self.host: str = str(record.get("host", ""))
        self.skill: str = run["skill"]
        self.load_id: str = run["load_id"]
        self.outcome: str = run["outcome"]
        self.result: str = run["outcome"]
        self.items: dict[str, str] = dict(run["items"])
        self.blocked_at: float | None = run.get("blocked_at")
        self.updated_at: float = run.get("updated_at") or self.blocked_at or 0
        self.observed = bool(run.get("observe"))
        self.note = ""

    @property
    def miss(self) -> bool:
        """Whether the outputs were missing when it ended, or a waiver stood in for one."""
        waived = WAIVED in self.items.values() and self.result not in ("met", "deferred")
        return self.result in ("blocked", "miss", "met_waived") or waived

    @property
    def missed_items(self) -> list[str]:
        """The items that the miss is about."""
        return [item for item, state in self.items.items() if state in ("missing", WAIVED)] if self.miss else []

    def as_dict(self) -> dict[str, Any]:
        """The facts with stable keys."""
        return {
            "session": self.session,
            "host": self.host,
            "skill": self.skill,
            "load_id": self.load_id,
            "outcome": self.outcome,
            "result": self.result,
            "miss": self.miss,
            "items": self.items,
            "missed_items": self.missed_items,
            "observed": self.observed,
            "blocked_at": self.blocked_at,
            "updated_at": self.updated_at,
            "note": self.note,
        }


class Report:
    """Every recorded run, oldest first, and the records that can't be used (path and problem)."""

    def __init__(self, rows: list[Row], errors: list[tuple[str, str]]) -> None:
        self.rows = sorted(rows, key=lambda row: (row.updated_at, row.session, row.load_id))
        self.errors = errors

    @property
    def missed(self) -> list[Row]:
        """The runs that count as a miss."""
        return [row for row in self.rows if row.miss]

    def by_skill(self) -> list[tuple[str, int, int]]:
        """Skill, misses, runs; most misses first."""
        total = Counter(row.skill for row in self.rows)
        missed = Counter(row.skill for row in self.missed)
        return sorted(((name, missed[name], total[name]) for name in total), key=lambda row: (-row[1], row[0]))

    def by_item(self) -> list[tuple[str, str, int, int]]:
        """Skill, item, misses, runs that had the item; most misses first."""
        total: Counter[tuple[str, str]] = Counter()
        missed: Counter[tuple[str, str]] = Counter()
        for row in self.rows:
            total.update((row.skill, item) for item in row.items)
            missed.update((row.skill, item) for item in row.missed_items)
        return sorted(((*key, missed[key], total[key]) for key in total), key=lambda row: (-row[2], row[0], row[1]))

    def as_dict(self) -> dict[str, Any]:
        """The facts with stable keys."""
        return {
            "runs": len(self.rows),
            "missed": len(self.missed),
            "by_skill": [{"skill": n, "misses": m, "runs": t} for n, m, t in self.by_skill()],
            "by_item": [{"skill": s, "item": i, "misses": m, "runs": t} for s, i, m, t in self.by_item()],
            "rows": [row.as_dict() for row in self.rows],
            "errors": [{"path": path, "problem": problem} for path, problem in self.errors],
        }


def collect(root: str, *, session: str | None = None, judge: "Judge | None" = None) -> Report:
    """Read the records of all sessions, or of one; with ``judge``, open runs are judged again.

    A record that can't be used costs only itself. Raises ContractUsage for a session id that can't be one, and
    RecordError when the folder can't be listed.
    """
    rows: list[Row] = []
    errors: list[tuple[str, str]] = []
    for path, name in _record_files(root, session):
        try:
            record = read_record(root, name) if safe_id(name) else read_record_file(path)
        except ContractState as error:
            errors.append((path, error.message.removeprefix(f"{path}: ")))
            continue
        for run in record["runs"] if record else ():
            row = Row(record or {}, run)
            if judge is not None and row.outcome in ("blocked", "deferred"):
                judge.again(row, run, (record or {}).get("transcript"))
            rows.append(row)
    return Report(rows, errors)


def _record_files(root: str, session: str | None) -> list[tuple[str, str]]:
    if session is not None:
        name = safe_id(session)
        if name is None:
            raise ContractUsage(f"--session {session!r} is no session id")
        return [(record_path(root, name), name)]
    return record_files(root)


class Judge:
    """Judges open runs again by their transcripts, with the contracts that are installed now.

    ``declared`` gives a skill's contract; it may raise NoContract.
    """

    def __init__(self, bench: Bench, skills: SkillBook) -> None:
        self.bench = bench
        self.skills = skills
        self._places: dict[str, str] | None = None

    def again(self, row: Row, run: Mapping[str, Any], transcript: str | None) -> None:
        """Set ``result`` and ``items`` of ``row`` to what its transcript shows, or ``note`` to why it can't."""
        path = self._find(transcript, row.session)
        if path is None:
            row.note = "its transcript is gone"
            return
        try:
            declared = self.skills.declared(row.skill)
            if run["contract"].get("digest") not in (None, declared.contract.digest):
                row.note = "the contract has changed since"
                return
            self._judge(row, path, declared)
        except GstackError as error:
            row.note = error.message

    def _find(self, recorded: str | None, session: str) -> str | None:
        if recorded and os.path.isfile(recorded):
            return recorded
        if self._places is None:
            self._places = {}
            for path in self.bench.transcripts():
                self._places.setdefault(os.path.basename(path), path)
        return next((path for name, path in self._places.items() if session in name), None)

    def _judge(self, row: Row, path: str, declared: Declared) -> None:
        events, host = read_transcript(path, self.bench.hosts, bool)
        found = [run for run in runs(events, declared.skill, declared.names) if run.load_id == row.load_id]
        if not found:
            row.note = "its transcript doesn't hold this load any more"
            return
        run = with_final_text(found[-1], None, cwd=session_folder(path, host))
        outcome = judge_run(run, declared, self.bench)
        if outcome.unclear:
            row.note = f"{outcome.unclear[0].id} can't be judged: {outcome.unclear[0].why}"
            return
        row.items = outcome.states()
        if outcome.met:
            word = FIXED if row.outcome == "blocked" else "met"
            row.result = "met_waived" if outcome.ids(WAIVED) else word
        elif row.outcome == "deferred" and not pending_agents(run):
            row.result = "miss"


# ---------------------------------------------------------------------------------------------------- html


def render_html(report: Report, *, now: float) -> str:
    """The report as one self-contained page; ``now`` (seconds since the epoch) is when it was made."""
    missed = len(report.missed)
    tables = {
        "items": Table(
            "items",
            ["skill", "item", "#misses", "#runs", "share"],
            [(s, i, m, t, share_cell(m, t, tone="bad")) for s, i, m, t in report.by_item()],
        ),
        "runs": Table(
            "runs",
            ["when (UTC)", "skill", "result", "missing or waived", "~session"],
            [_table_row(row) for row in reversed(report.rows)],
            cards=True,
        ),
        "errors": Table("errors", ["~record", "problem"], report.errors),
    }
    fixed = sum(row.result in (FIXED, "met_after_block") for row in report.rows)
    chart = misses_over_time(report.rows)
    return render(
        "gstack.contracts",
        "report.html.j2",
        report=report,
        missed=missed,
        fixed=fixed,
        tables=tables,
        chart=chart,
        now=now,
    )


def _table_row(row: Row) -> tuple[Any, ...]:
    result = row.result.replace("_", " ") + (" (observed)" if row.observed else "")
    tone = "bad" if row.miss else ""
    when = Cell(moment(row.updated_at), row.updated_at)
    return when, row.skill, Cell(result, tone=tone, note=row.note), ", ".join(row.missed_items), row.session


def misses_over_time(rows: Sequence[Row]) -> Bars:
    """The chart's data: misses by skill and item and by day, or week where there are too many days."""
    days: dict[int, Counter[str]] = {}
    total: Counter[int] = Counter()
    for row in rows:
        if row.updated_at:
            day_number = int(row.updated_at // 86400)
            total[day_number] += 1
            days.setdefault(day_number, Counter()).update(f"{row.skill} · {item}" for item in row.missed_items)
    return bars_over_time(days, also=total, what="runs")

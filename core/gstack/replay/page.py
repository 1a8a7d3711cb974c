"""The page of ``gstack replay --html``."""

from collections import Counter
from typing import Any

from gstack.replay.report import Report
from gstack.replay.rows import FOLLOWED, OTHER
from gstack.replay.words import DID, KINDS, OUTCOMES, outcomes_text
from gstack.report_page import charts, moment, render
from gstack.report_page.tables import Cell, Table, share_cell

_TONES = {"allow": "good", "warn": "warn", "block": "bad"}


def replay_page(report: Report, *, now: float) -> str:
    """The report as one self-contained page; ``now`` (seconds since the epoch) is when it was made."""
    return render(
        "gstack.replay",
        "replay.html.j2",
        report=report,
        facts=report.facts,
        now=now,
        followed=report.did_total(FOLLOWED),
        charts={
            "routes": charts.bars_over_time(report.days["routes"].at),
            "runs": _runs_over_time(report),
            "uses": charts.bars_over_time(report.days["uses"].at, order=[("block", "bad"), ("warn", "warn")]),
        },
        tables=_tables(report),
    )


def _runs_over_time(report: Report) -> charts.Bars:
    return charts.bars_over_time(report.days["runs"].at, order=[("held", "bad"), ("not held", "s0")])


def _tables(report: Report) -> dict[str, Table]:
    return {
        "skills": Table(
            "routed-skills",
            ["skill", "#prompts", "#loaded it", "#another", "#none", "share"],
            [
                (f"/{s}", total, loaded, other, none, share_cell(loaded, total, tone="good"))
                for s, total, loaded, other, none in report.by_route()
            ],
        ),
        "reasons": Table(
            "reasons",
            ["not routed because", "#prompts"],
            [row for row in report.reasons.most_common() if row[0] != "routed"],
        ),
        "routes": Table(
            "routes",
            ["when (UTC)", "skill", "#score", "trigger", "the model", "~session"],
            [_route(row) for row in report.routes.rows],
            cards=True,
            more=report.routes.left_out,
        ),
        "contracts": Table(
            "contracts",
            ["skill", "#runs", "#held", "share", "outcomes"],
            [
                (s, total, held, share_cell(held, total, tone="bad"), outcomes_text(outcomes))
                for s, total, held, outcomes in report.by_contract()
            ],
            cards=True,
        ),
        "items": Table("items", ["skill", "item", "#runs held for it"], report.by_item()),
        "runs": Table(
            "runs",
            ["when (UTC)", "skill", "held for", "outcome", "~session"],
            [(_when(row.ts), row.skill, ", ".join(row.held), _outcome(row), row.session) for row in report.runs.rows],
            cards=True,
            more=report.runs.left_out,
        ),
        "kinds": Table("kinds", ["kind", "#uses", "#warned", "#blocked"], _kinds(report)),
        "policies": Table(
            "policies",
            ["policy", "answer", "kind", "~name", "#uses"],
            [
                (policy, Cell(action, tone=_TONES[action]), KINDS[kind], name, count)
                for policy, action, kind, name, count in report.by_policy()
            ],
            cards=True,
        ),
        "changes": Table(
            "changes",
            ["~name", "kind", "now", "then", "policy", "#uses", "why"],
            [
                (n, KINDS[k], Cell(b, tone=_TONES[b]), Cell(a, tone=_TONES[a]), p, c, r)
                for n, k, b, a, p, c, r in report.by_change()
            ],
            cards=True,
        ),
        "faults": Table("faults", ["~file", "problem"], report.files.faults),
    }


def _route(row: Any) -> tuple[Any, ...]:
    word, tone = DID[row.did]
    did = Cell(word, tone=tone, note=row.loaded if row.did == OTHER else "")
    return (
        _when(row.ts),
        f"/{row.skill}",
        Cell(f"{row.score:.2f}", row.score),
        Cell(row.trigger, note=row.text),
        did,
        row.session,
    )


def _outcome(row: Any) -> Cell:
    word, tone = OUTCOMES[row.outcome]
    return Cell(word, tone=tone, note=row.why)


def _kinds(report: Report) -> list[tuple[Any, ...]]:
    total: Counter[str] = Counter()
    for (kind, _), count in report.kinds.items():
        total[kind] += count
    return [
        (KINDS[kind], count, report.kinds[(kind, "warn")], report.kinds[(kind, "block")])
        for kind, count in total.most_common()
    ]


def _when(ts: float | None) -> Cell:
    return Cell("no time", 0) if ts is None else Cell(moment(ts), ts)

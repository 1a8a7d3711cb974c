"""The page of ``gstack gate simulate --html``. Cold."""

from typing import Any

from gstack.gate.simulate import Simulation
from gstack.report_page import render
from gstack.report_page.tables import Cell, Table

_TONES = {"allow": "good", "warn": "warn", "block": "bad"}


def simulate_page(found: Simulation, payload: Any, *, since: float, now: float) -> str:
    """What would change, as one self-contained page; times are seconds since the epoch."""
    changes = Table(
        "changes",
        ["~name", "kind", "now", "then", "rule", "#uses", "why"],
        [
            (one.name, one.kind, _answer(one.before), _answer(one.after), one.rule, one.uses, one.reason)
            for one in found.changes
        ],
        cards=True,
    )
    answers = Table(
        "answers",
        ["answer", "#now", "#then"],
        [(_answer(word), found.before.get(word, 0), found.after.get(word, 0)) for word in _words(found)],
    )
    changed = sum(one.uses for one in found.changes)
    return render(
        "gstack.gate",
        "simulate.html.j2",
        found=found,
        changed=changed,
        changes=changes,
        answers=answers,
        org=payload.get("org", ""),
        version=payload.get("version", ""),
        since=since,
        now=now,
    )


def _words(found: Simulation) -> list[str]:
    """The answers that occur, the strictest first; what a newer gate may say comes last."""
    known = [word for word in ("block", "warn", "allow", "none") if word in found.before or word in found.after]
    return known + sorted({*found.before, *found.after} - set(known))


def _answer(word: str) -> Cell:
    return Cell(word, tone=_TONES.get(word, "dim"))

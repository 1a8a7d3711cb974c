"""``gstack gate simulate``: the uses in ``hooks/skill-gate.log``, decided by another bundle. Cold."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gstack.api import ACTIONS, GateContext, Invocation
from gstack.errors import StateError
from gstack.gate.decision import combine, decide_from
from gstack.gate.names import FITS
from gstack.gate.policies import BadTime, when
from gstack.gate.rules import Rulebook
from gstack.logs import log_path


@dataclass(frozen=True)
class Use:
    """One logged use: when (seconds since the epoch), what, and what was decided before staleness (``none``:
    nothing)."""

    at: float
    name: str
    aliases: tuple[str, ...]
    kind: str
    decision: str
    rule: str
    observed: bool


@dataclass(frozen=True)
class Change:
    """Uses of one name that would be decided otherwise, and how many there were."""

    name: str
    kind: str
    before: str
    after: str
    rule: str
    reason: str
    uses: int


@dataclass(frozen=True)
class Simulation:
    """The result: how many ``uses`` were replayed, the decisions ``before`` and ``after``, and the ``changes``."""

    uses: int
    before: dict[str, int]
    after: dict[str, int]
    changes: list[Change]

    def as_dict(self) -> dict[str, Any]:
        """Stable keys, for ``--json``."""
        return {
            "uses": self.uses,
            "before": self.before,
            "after": self.after,
            "changes": [dict(one.__dict__) for one in self.changes],
        }


def logged_uses(root: str, since: float) -> Iterator[Use]:
    """The uses logged from ``since`` (seconds since the epoch) on, oldest first. Raises StateError for a log that
    can't be read."""
    path = log_path(root, "skill-gate")
    for file in (path + ".1", path):
        if not os.path.lexists(file):
            continue
        try:
            with open(file, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    use = parse_line(line)
                    if use is not None and use.at >= since:
                        yield use
        except OSError as error:
            raise StateError(f"{file} can't be read: {error.strerror or error}") from None


def parse_line(line: str) -> Use | None:
    """The use that a line of the log tells of; None for errors, overrides and broken lines."""
    words = line.split()
    if len(words) < 3 or not words[2].startswith("decision="):
        return None
    fields = dict(word.split("=", 1) for word in words[2:] if "=" in word)
    try:
        at = when(words[0])
    except BadTime:
        return None
    if at is None or not fields.get("invoked") or fields.get("kind") not in FITS:
        return None
    return Use(
        at,
        fields["invoked"].replace("%20", " "),
        tuple(one.replace("%20", " ") for one in fields.get("as", "").split(",") if one),
        fields["kind"],
        fields.get("base") or fields["decision"],
        fields.get("rule", ""),
        fields.get("mode") == "observe",
    )


def simulate(root: str, payload: Mapping[str, Any], since: float, *, machine: str, user: str) -> Simulation:
    """Decide the logged uses by ``payload``, each at its own time. Staleness plays no part on either side."""
    book = Rulebook(payload)
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    changed: Counter[tuple[str, str, str, str, str, str]] = Counter()
    total = 0
    for use in logged_uses(root, since):
        context = GateContext(root, use.at, machine=machine, user=user)
        said = decide_from(book, Invocation(use.name, use.kind, aliases=use.aliases), context)
        decision = combine([said]) if said is not None else None
        if decision is None:
            continue
        total += 1
        before[use.decision] += 1
        after[decision.action] += 1
        if decision.action != use.decision:
            changed[(decision.skill_name, use.kind, use.decision, decision.action, decision.rule, decision.reason)] += 1
    changes = [Change(*key, count) for key, count in changed.items()]
    order = {action: place for place, action in enumerate(ACTIONS)}
    changes.sort(key=lambda one: (-order[one.after], -one.uses, one.name))
    return Simulation(total, dict(before), dict(after), changes)

"""Adding up what a replay found. Bounded: counts by skill, item, policy and day, and the latest rows of each table."""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gstack.replay.rows import (
    FAILED,
    FOLLOWED,
    NONE,
    OTHER,
    ROUTED,
    FileResult,
    RouteRow,
    RunRow,
    UseRow,
)

#: How many rows of each table are kept, the latest ones.
ROWS = 2000
#: How many names a count tells apart; further ones are counted together.
NAMES = 5000
_OTHERS = "(others)"
_DAY = 86400

#: What the bundles can say of a use.
ACTIONS = ("allow", "warn", "block")


class Latest:
    """The latest rows of a table, and how many there were."""

    def __init__(self, limit: int = ROWS) -> None:
        self.limit = limit
        self.total = 0
        self._heap: list[tuple[float, int, Any]] = []

    def add(self, row: Any) -> None:
        """Add a row with a ``ts``."""
        self.total += 1
        # of rows without a time the first ones stay
        entry = (row.ts if row.ts is not None else -1.0, -self.total, row)
        if len(self._heap) < self.limit:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    @property
    def rows(self) -> list[Any]:
        """The rows, latest first, in whatever order they came."""
        rows = [(-ts, row.session, row.key, row) for ts, _, row in self._heap]
        return [row for *_, row in sorted(rows, key=lambda entry: entry[:3])]

    @property
    def left_out(self) -> int:
        """How many rows aren't kept."""
        return self.total - len(self._heap)


class Days:
    """Counts by day and name, for a chart. ``at[day][name]``; days are counted from the epoch, in UTC."""

    def __init__(self) -> None:
        self.at: dict[int, Counter[str]] = {}

    def add(self, ts: float | None, name: str) -> None:
        """Count one thing; without a time it isn't on the chart."""
        if ts is not None:
            self.at.setdefault(int(ts // _DAY), Counter())[name] += 1


class Files:
    """What became of the files: how many of each ``state``, and the ``faults`` (path and what is wrong), capped."""

    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.size = 0
        self.faults: list[tuple[str, str]] = []
        self.first: float | None = None
        self.last: float | None = None

    def add(self, result: FileResult) -> None:
        """Count one file."""
        self.states[result.state] += 1
        if result.state == "ok":
            self.size += result.size
        elif result.state == FAILED and len(self.faults) < ROWS:
            self.faults.append((result.path, result.why.removeprefix(f"{result.path}: ")))
        times = [row.ts for rows in (result.prompts, result.uses, result.runs) for row in rows if row.ts is not None]
        if times:
            self.first = min(times if self.first is None else [self.first, *times])
            self.last = max(times if self.last is None else [self.last, *times])

    @property
    def total(self) -> int:
        """All files that were looked at."""
        return sum(self.states.values())


class Report:
    """What a replay found. ``facts`` is what it was made with: ``host``, ``since``, ``project``, ``skills``,
    ``bundle``, ``other`` (the bundles as ``{"org", "version"}`` or None) and ``notes`` (lines for the person)."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)
        self.files = Files()
        self._seen: set[int] = set()
        self.twice = 0
        self.reasons: Counter[str] = Counter()
        self.did: Counter[tuple[str, str]] = Counter()
        self.routes = Latest()
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.items: Counter[tuple[str, str]] = Counter()
        self.held: Counter[str] = Counter()
        self.runs = Latest()
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.policies: Counter[tuple[str, str, str, str]] = Counter()
        self.changes: Counter[tuple[str, str, str, str, str, str]] = Counter()
        self.uses = Latest()
        self.days = {"routes": Days(), "runs": Days(), "uses": Days()}

    def add(self, result: FileResult) -> None:
        """Add what one file gave. What another file gave already (a fork copies its history) counts once."""
        self.files.add(result)
        prompts = self._new(result.prompts)
        self.reasons.update(prompt.reason for prompt in prompts)
        fresh = {prompt.key for prompt in prompts}
        for route in result.routes:
            if route.key in fresh:
                self._route(route)
        for run in self._new(result.runs):
            self._run(run)
        for use in self._new(result.uses):
            self._use(use)

    def _new(self, rows: Sequence[Any]) -> list[Any]:
        fresh = []
        for row in rows:
            if row.key in self._seen:
                self.twice += 1
            else:
                self._seen.add(row.key)
                fresh.append(row)
        return fresh

    def _route(self, row: RouteRow) -> None:
        self.did[(row.skill, row.did)] += 1
        self.days["routes"].add(row.ts, "/" + row.skill)
        self.routes.add(row)

    def _run(self, row: RunRow) -> None:
        self.outcomes[(row.skill, row.outcome)] += 1
        if row.held:
            self.held[row.skill] += 1
            self.items.update((row.skill, item) for item in row.held)
        self.days["runs"].add(row.ts, "held" if row.held else "not held")
        self.runs.add(row)

    def _use(self, row: UseRow) -> None:
        self.kinds[(row.kind, row.action)] += 1
        if row.action in ("warn", "block"):
            self.policies[_capped(self.policies, (row.action, row.policy, row.kind, row.name), 2)] += 1
            self.days["uses"].add(row.ts, row.action)
        before, after = row.action or "allow", row.then_action or "allow"
        changes = self.facts.get("other") is not None and before != after
        if changes:
            change = (before, after, row.then_policy or row.policy, row.kind, row.name, row.then_reason)
            self.changes[_capped(self.changes, change, 3)] += 1
        if changes or row.action in ("warn", "block"):
            self.uses.add(row)

    # --------------------------------------------------------------------------------------------- totals

    @property
    def prompts(self) -> int:
        """All prompts that the hook would have seen."""
        return sum(self.reasons.values())

    @property
    def typed(self) -> int:
        """Those that a person typed."""
        return self.prompts - self.reasons["not-typed"]

    @property
    def routed(self) -> int:
        """Those that would have been routed."""
        return self.reasons[ROUTED]

    def did_total(self, did: str) -> int:
        """After how many routed prompts the model did this (:data:`gstack.replay.rows.FOLLOWED` and so on)."""
        return sum(count for (_, one), count in self.did.items() if one == did)

    @property
    def run_total(self) -> int:
        """All runs of skills with a contract."""
        return sum(self.outcomes.values())

    @property
    def held_total(self) -> int:
        """Those whose stop would have been held."""
        return sum(self.held.values())

    def use_total(self, action: str | None = None) -> int:
        """All uses, or those with this action (``""``: nobody has an opinion)."""
        return sum(count for (_, one), count in self.kinds.items() if action in (None, one))

    @property
    def changed(self) -> int:
        """How many uses the other bundle decides otherwise."""
        return sum(self.changes.values())

    # ---------------------------------------------------------------------------------------------- views

    def by_route(self) -> list[tuple[str, int, int, int, int]]:
        """Skill, routed, loaded it, loaded another, loaded none; most routed first."""
        skills = {skill for skill, _ in self.did}
        rows = []
        for skill in skills:
            followed, other, none = (self.did[(skill, did)] for did in (FOLLOWED, OTHER, NONE))
            rows.append((skill, followed + other + none, followed, other, none))
        return sorted(rows, key=lambda row: (-row[1], row[0]))

    def by_contract(self) -> list[tuple[str, int, int, dict[str, int]]]:
        """Skill, runs, held, and the runs of each outcome; most held first."""
        skills = {skill for skill, _ in self.outcomes}
        rows = []
        for skill in skills:
            outcomes = {word: count for (name, word), count in sorted(self.outcomes.items()) if name == skill}
            rows.append((skill, sum(outcomes.values()), self.held[skill], outcomes))
        return sorted(rows, key=lambda row: (-row[2], -row[1], row[0]))

    def by_item(self) -> list[tuple[str, str, int]]:
        """Skill, item, and how many runs would have been held for it; most first."""
        rows = [(skill, item, count) for (skill, item), count in self.items.items()]
        return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))

    def by_policy(self) -> list[tuple[str, str, str, str, int]]:
        """Policy, action, kind, name and uses; blocks first, then most uses."""
        rows = [(policy, action, kind, name, count) for (action, policy, kind, name), count in self.policies.items()]
        return sorted(rows, key=lambda row: (row[1] != "block", -row[4], row[0], row[3]))

    def by_change(self) -> list[tuple[str, str, str, str, str, int, str]]:
        """Name, kind, before, after, policy, uses and reason of each change; the stricter first."""
        rows = [
            (name, kind, before, after, policy, count, reason)
            for (before, after, policy, kind, name, reason), count in self.changes.items()
        ]
        return sorted(rows, key=lambda row: (-ACTIONS.index(row[3]), -row[5], row[0]))

    # ----------------------------------------------------------------------------------------------- json

    def as_dict(self) -> dict[str, Any]:
        """Everything with stable keys (docs/how-to/replay.md)."""
        return {
            **self.facts,
            "files": {
                "total": self.files.total,
                "replayed": self.files.states["ok"],
                "left_out": {k: v for k, v in sorted(self.files.states.items()) if k != "ok"},
                "bytes": self.files.size,
                "first": self.files.first,
                "last": self.files.last,
                "faults": [{"path": path, "problem": what} for path, what in self.files.faults],
                "copies": self.twice,
            },
            "prompts": {
                "total": self.prompts,
                "typed": self.typed,
                "routed": self.routed,
                "reasons": dict(sorted(self.reasons.items())),
            },
            "routes": {
                "total": self.routed,
                "followed": self.did_total(FOLLOWED),
                "other": self.did_total(OTHER),
                "none": self.did_total(NONE),
                "by_skill": [
                    {"skill": s, "routed": r, "followed": f, "other": o, "none": n} for s, r, f, o, n in self.by_route()
                ],
                "rows": [_route_dict(row) for row in self.routes.rows],
                "rows_left_out": self.routes.left_out,
            },
            "runs": {
                "total": self.run_total,
                "held": self.held_total,
                "by_skill": [
                    {"skill": skill, "runs": total, "held": held, "outcomes": outcomes}
                    for skill, total, held, outcomes in self.by_contract()
                ],
                "by_item": [{"skill": s, "item": i, "held": n} for s, i, n in self.by_item()],
                "rows": [_run_dict(row) for row in self.runs.rows],
                "rows_left_out": self.runs.left_out,
            },
            "uses": {
                "total": self.use_total(),
                "warned": self.use_total("warn"),
                "blocked": self.use_total("block"),
                "by_kind": [
                    {"kind": kind, "action": action or None, "uses": count}
                    for (kind, action), count in sorted(self.kinds.items())
                ],
                "by_policy": [
                    {"policy": p, "action": a, "kind": k, "name": n, "uses": c} for p, a, k, n, c in self.by_policy()
                ],
                "changed": self.changed,
                "changes": [
                    {"name": n, "kind": k, "before": b, "after": a, "policy": p, "uses": c, "reason": r}
                    for n, k, b, a, p, c, r in self.by_change()
                ],
            },
        }


def _capped(counts: "Counter[Any]", key: tuple[str, ...], keep: int) -> Any:
    """``key``, or where there are too many already, one whose part from ``keep`` on says "others"."""
    if key in counts or len(counts) < NAMES:
        return key
    return (*key[:keep], *[_OTHERS for _ in key[keep:]])


def _route_dict(row: RouteRow) -> dict[str, Any]:
    data = {**row._asdict(), "loaded": row.loaded or None}
    data.pop("key")
    data["prompt"] = data.pop("text") or None
    return data


def _run_dict(row: RunRow) -> dict[str, Any]:
    data = {**row._asdict(), "held": list(row.held), "items": list(row.items), "why": row.why or None}
    data.pop("key")
    return data

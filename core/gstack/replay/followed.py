"""``gstack route report``: what became of the hints that the routing hook gave (routing R9).

The hook's log says when which session was hinted to what; the session's transcript says what the model loaded then. A
line and a prompt belong together when they are of the same session and nearly the same time.
"""

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from gstack.errors import StateError
from gstack.logs import log_path
from gstack.replay.engine import Job
from gstack.replay.history import History, HistoryWork, Progress, asked
from gstack.replay.report import Days, Latest
from gstack.replay.rows import FOLLOWED, NONE, OTHER
from gstack.replay.scene import Scene
from gstack.routing.hook import LOG, threshold_of

#: How far a prompt's time may lie from its log line's, in seconds: a prompt that was queued is written when it is read.
_NEAR = 300.0
#: What became of a hint when nobody can tell: the transcript is gone, or holds no such prompt.
UNKNOWN = "unknown"
#: What can become of a hint.
FATES = (FOLLOWED, OTHER, NONE, UNKNOWN)


class Line(NamedTuple):
    """A line of the log: when, whose, and what it says: ``kind`` is ``routed``, ``observed``, ``no-route``, ``shadow``
    or ``error``; ``skill``, ``score``, ``scorer`` and ``reason`` where it has them."""

    at: float
    session: str
    kind: str
    skill: str = ""
    score: float = 0.0
    scorer: str = ""
    reason: str = ""


def parse_line(text: str) -> Line | None:
    """A line of ``hooks/skill-route.log``; None for one that is broken or of a newer gstack."""
    words = text.split()
    if len(words) < 3:
        return None
    fields = dict(word.split("=", 1) for word in words[3:] if "=" in word)
    try:
        at = datetime.fromisoformat(words[0].replace("Z", "+00:00")).timestamp()
        score = float(fields.get("score", 0.0))
    except ValueError:
        return None
    skill, reason = fields.get("skill", ""), fields.get("reason", "")
    kind = words[2]
    if kind == "no-route" and reason == "observe":
        kind, reason = "observed", ""
    if kind not in ("routed", "observed", "no-route", "shadow", "error"):
        return None
    return Line(at, words[1], kind, "" if skill == "-" else skill, score, fields.get("scorer", ""), reason)


def log_lines(root: str, since: float | None) -> Iterator[Line]:
    """The lines of the log from ``since`` (seconds since the epoch) on, oldest first. Raises StateError."""
    path = log_path(root, LOG)
    for file in (path + ".1", path):
        try:
            with open(file, encoding="utf-8", errors="replace") as lines:
                for text in lines:
                    line = parse_line(text)
                    if line is not None and (since is None or line.at >= since):
                        yield line
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StateError(f"{file} can't be read: {error.strerror or error}") from None


class Hint(NamedTuple):
    """A hint, and its ``fate``; ``loaded`` is the first skill that the model loaded. ``key`` only tells hints apart."""

    ts: float
    session: str
    key: int
    skill: str
    score: float
    observed: bool
    fate: str
    loaded: str


class Shadow:
    """How one shadow scorer would have done.

    How many ``prompts`` it saw, how many it would have routed (``routes``), on how many it chose the ``same`` as what
    was decided, ``only`` it routed, and ``loaded`` by the model was what it chose; ``errors`` are its failures.
    """

    def __init__(self) -> None:
        self.prompts = self.routes = self.same = self.only = self.loaded = self.errors = 0

    def as_dict(self) -> dict[str, int]:
        """The counts."""
        return dict(self.__dict__)


class Followed:
    """The result. ``lines`` is how many decisions the log has; fates are counted by skill, for hints that were given
    and for those that were only observed."""

    def __init__(self, since: float | None) -> None:
        self.since = since
        self.decisions = 0
        self.errors = 0
        self.reasons: Counter[str] = Counter()
        self.given: Counter[tuple[str, str]] = Counter()
        self.observed: Counter[tuple[str, str]] = Counter()
        self.shadows: dict[str, Shadow] = {}
        self.rows = Latest()
        self.days = Days()

    def by_skill(self, counts: Counter[tuple[str, str]]) -> list[tuple[str, int, dict[str, int]]]:
        """Skill, hints, and how many of each fate; most hints first."""
        rows = []
        for skill in {skill for skill, _ in counts}:
            fates = {fate: counts[(skill, fate)] for fate in FATES}
            rows.append((skill, sum(fates.values()), fates))
        return sorted(rows, key=lambda row: (-row[1], row[0]))

    def total(self, counts: Counter[tuple[str, str]], fate: str | None = None) -> int:
        """All hints, or those of one fate."""
        return sum(count for (_, one), count in counts.items() if fate in (None, one))

    def as_dict(self) -> dict[str, Any]:
        """Stable keys, for ``--json``."""
        return {
            "since": self.since,
            "decisions": self.decisions,
            "errors": self.errors,
            "reasons": dict(sorted(self.reasons.items())),
            "hints": self._counts(self.given),
            "observed": self._counts(self.observed),
            "shadows": {name: found.as_dict() for name, found in sorted(self.shadows.items())},
            "rows": [
                {
                    "ts": row.ts,
                    "session": row.session,
                    "skill": row.skill,
                    "score": row.score,
                    "observed": row.observed,
                    "then": row.fate,
                    "loaded": row.loaded or None,
                }
                for row in self.rows.rows
            ],
            "rows_left_out": self.rows.left_out,
        }

    def _counts(self, counts: Counter[tuple[str, str]]) -> dict[str, Any]:
        return {
            "total": self.total(counts),
            **{fate: self.total(counts, fate) for fate in FATES},
            "by_skill": [{"skill": skill, "total": total, **fates} for skill, total, fates in self.by_skill(counts)],
        }


class _Work(HistoryWork):
    """When a person asked for something in one session, and what the model loaded then."""

    def of(self, scene: Scene, job: Job) -> list[tuple[float, tuple[str, ...]]]:
        """Time and loads of each prompt that has a time, in order."""
        return sorted((one.ts, one.loaded) for one in asked(scene, job) if one.ts is not None)


Prompts = list[tuple[float, tuple[str, ...]]]


def what_became(history: History, *, progress: Progress | None = None) -> Followed:
    """Read the log, look up each session that was hinted, and add up. Raises StateError for an unreadable log."""
    setup = history.setup
    lines = list(log_lines(setup.root, setup.since))
    wanted = {
        line.session for line in lines if line.kind in ("routed", "observed") or (line.kind == "shadow" and line.skill)
    }
    jobs = [job for job in history.jobs() if _session_of(job.path) in wanted]
    sessions: dict[str, Prompts] = {}
    for job, prompts in zip(jobs, history.through(_Work(setup), progress=progress, jobs=jobs), strict=True):
        sessions.setdefault(_session_of(job.path), prompts)
    return _added_up(lines, sessions, setup.since, threshold_of(history.scene.context(history.place)))


def _session_of(path: str) -> str:
    return os.path.basename(path).removesuffix(".jsonl")


def _added_up(lines: Sequence[Line], sessions: dict[str, Prompts], since: float | None, threshold: float) -> Followed:
    result = Followed(since)
    waiting: dict[str, list[Line]] = {}
    for line in lines:
        if line.kind == "error":
            result.errors += 1
        elif line.kind == "shadow":
            # a hook writes its shadows' lines before its own
            waiting.setdefault(line.session, []).append(line)
        else:
            result.decisions += 1
            loaded = _loaded(sessions.get(line.session), line.at)
            if line.kind == "no-route":
                result.reasons[line.reason] += 1
            else:
                _hint(result, line, loaded)
            for shadow in waiting.pop(line.session, ()):
                _shadow(result, shadow, line, loaded, threshold)
    return result


def _loaded(prompts: Prompts | None, at: float) -> tuple[str, ...] | None:
    """What the model loaded after the prompt that was asked nearest to ``at``; None when there is none near."""
    if not prompts:
        return None
    place = bisect_left(prompts, (at, ()))
    near = min(prompts[max(0, place - 1) : place + 1], key=lambda one: abs(one[0] - at), default=None)
    return near[1] if near is not None and abs(near[0] - at) <= _NEAR else None


def _hint(result: Followed, line: Line, loaded: tuple[str, ...] | None) -> None:
    if loaded is None:
        fate, first = UNKNOWN, ""
    elif line.skill in loaded:
        fate, first = FOLLOWED, line.skill
    else:
        fate, first = (OTHER, loaded[0]) if loaded else (NONE, "")
    observed = line.kind == "observed"
    (result.observed if observed else result.given)[(line.skill, fate)] += 1
    result.days.add(line.at, fate)
    result.rows.add(Hint(line.at, line.session, result.rows.total, line.skill, line.score, observed, fate, first))


def _shadow(result: Followed, shadow: Line, line: Line, loaded: tuple[str, ...] | None, threshold: float) -> None:
    found = result.shadows.setdefault(shadow.scorer, Shadow())
    found.prompts += 1
    if shadow.reason:
        found.errors += 1
        return
    picked = shadow.skill if shadow.score >= threshold else ""
    decided = line.skill if line.kind in ("routed", "observed") else ""
    found.routes += bool(picked)
    found.same += picked == decided
    found.only += bool(picked) and not decided
    found.loaded += bool(picked) and loaded is not None and picked in loaded

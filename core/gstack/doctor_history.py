"""When each hook last ran, and whether the host has run sessions since in which it should have. Cold.

A hook leaves a line in its log (and the stop hook a record) when it decides something; the host's transcripts show
what it should have decided about: a typed prompt for routing, a loaded skill or a started agent for the gate, a stop
after the load of a skill with a contract for contracts. Only what is younger than the registration counts.
"""

import os
import time
from calendar import timegm
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gstack.api import COMMAND_TYPED, TOOL_PROPOSED, TURN_ENDING, Event, Finding
from gstack.contracts.records import record_files
from gstack.doctor import Checkup
from gstack.errors import GstackError
from gstack.failures import PluginFailed
from gstack.hook import FEATURES
from gstack.inventory import load_skills
from gstack.isolation import isolated
from gstack.launcher import launcher_path
from gstack.logs import log_path
from gstack.trust import trusted_overlay

#: How many transcripts are looked at, newest first, and the largest of them in bytes.
NEWEST, LARGEST = 30, 8 << 20
#: What may lie between the host's time and the hook's, in seconds.
SLACK = 60.0
#: How old what a transcript shows must be, so that the hook's answer can be there, in seconds.
SETTLED = 30.0


@dataclass
class History:
    """One hook: its ``feature`` and the host's ``event``, when it last left a trace (seconds since the epoch, None:
    never), and the transcripts since then in which it should have, newest first."""

    feature: str
    switch: str
    event: str
    kind: str
    last_ran: float | None = None
    missed: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The facts with stable keys, for ``--json``; the time is UTC."""
        return {
            "feature": self.feature,
            "switch": self.switch,
            "event": self.event,
            "last_ran": _utc(self.last_ran) if self.last_ran else None,
            "sessions_without": self.missed,
        }

    def finding(self, gaps: str) -> Finding:
        """The line for people; ``gaps`` is what the host's adapter knows to keep hooks from running."""
        name = f"last ran {self.event}"
        if self.missed:
            since = f"it hasn't run since {_utc(self.last_ran)}" if self.last_ran else "it never ran"
            detail = (
                f"{self.feature}: {since}, but {len(self.missed)} session(s) needed it; the newest is {self.missed[0]}"
            )
            return Finding("warn", name, detail, gaps)
        return Finding("info", name, _utc(self.last_ran) if self.last_ran else "no trace of it yet")


def histories(checkup: Checkup, cwd: str) -> list[History]:
    """The history of each of the host's hooks; of those whose feature is on or observed also what was missed."""
    found = []
    for event, kind in checkup.host.events.items():
        if kind in FEATURES:
            feature, _, log_name, _ = FEATURES[kind]
            one = History(feature, checkup.switches[feature].value, event, kind)
            one.last_ran = last_line(log_path(checkup.root, log_name), kind)
            if kind == TURN_ENDING:
                one.last_ran = max(filter(None, (one.last_ran, _last_record(checkup.root))), default=None)
            found.append(one)
    watched = [one for one in found if one.switch != "off"]
    if watched:
        _look_for_missed(checkup, cwd, watched)
    return found


def last_line(path: str, kind: str) -> float | None:
    """The time of the last line in a hook's log that a session wrote for this kind of event (seconds since the
    epoch)."""
    for name in (path, path + ".1"):
        try:
            with open(name, encoding="utf-8", errors="replace") as file:
                lines = file.readlines()
        except OSError:
            continue
        for line in reversed(lines):
            stamp, _, rest = line.partition(" ")
            when = _seconds(stamp)
            # the command line logs without a session
            if when is not None and not rest.startswith("- ") and _is_of(rest, kind):
                return when
    return None


def _is_of(text: str, kind: str) -> bool:
    """Whether a line can be from an event of this kind: the gate's log is shared by typed commands and tool calls."""
    if kind not in (COMMAND_TYPED, TOOL_PROPOSED) or " kind=" not in text:
        return True
    return (" kind=command" in text) == (kind == COMMAND_TYPED)


def _seconds(stamp: str) -> float | None:
    try:
        return float(timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return None


def _utc(when: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(when))


def _last_record(root: str) -> float | None:
    return max((_modified(path) for path, _ in record_files(root)), default=None)


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _look_for_missed(checkup: Checkup, cwd: str, watched: Sequence[History]) -> None:
    """Add to each history the sessions that should have left a trace and didn't."""
    registered = max(
        _modified(launcher_path(checkup.root)),
        _modified(checkup.host.settings_path(checkup.env, checkup.project)),
    )
    since = [max(one.last_ran or 0.0, registered) + SLACK for one in watched]
    overlay, _ = trusted_overlay(checkup.root, cwd)
    skills = load_skills(checkup.host, checkup.env, cwd, state_root=checkup.root, trusted_overlay=overlay).skills
    declaring = {name for skill in skills if skill.contract for name in (skill.name, skill.label) if name}
    before = time.time() - SETTLED
    for path in _transcripts(checkup, min(since)):
        events = _events(checkup.host, path)
        for one, start in zip(watched, since, strict=True):
            last = _last_need(one.kind, events, declaring, before)
            if last is not None and last > start:
                one.missed.append(path)


def _transcripts(checkup: Checkup, since: float) -> Iterator[str]:
    """The newest transcripts that were written after ``since`` and aren't too large."""
    for number, path in enumerate(checkup.host.transcripts(checkup.env)):
        if number >= NEWEST or _modified(path) <= since:
            return
        if os.path.getsize(path) <= LARGEST:
            yield path


def _events(host: Any, path: str) -> list[Event]:
    try:
        found = isolated(host.id, lambda: host.read_transcript(path, max_bytes=LARGEST), limit=20.0)
    except (PluginFailed, GstackError):
        return []
    return [event for event in found if event.agent is None]


def _last_need(kind: str, events: Sequence[Event], declaring: Collection[str], before: float) -> float | None:
    """When a session last did what a hook must have seen (before ``before``); None when it never did."""
    if kind == TURN_ENDING:
        times = _stops(events, declaring)
    elif kind == COMMAND_TYPED:
        times = [event.ts for event in events if event.type == "load" and event.how == "typed"]
    elif kind == TOOL_PROPOSED:
        times = [event.ts for event in events if _is_use(event)]
    else:
        times = [event.ts for event in events if event.type == "prompt" and event.origin == "user"]
    return max([when for when in times if when is not None and when < before], default=None)


def _is_use(event: Event) -> bool:
    """Whether the agent itself used what the gate judges: a skill, or an agent of a named type."""
    if event.type == "load":
        return event.how == "tool"
    return event.type == "agent_started" and event.call is not None and bool(event.call.agent_type)


def _stops(events: Sequence[Event], declaring: Collection[str]) -> list[float | None]:
    """When turns ended by themselves after the load of a skill with a contract."""
    times: list[float | None] = []
    loaded, said = False, None
    for event in events:
        if event.type == "load":
            loaded = loaded or event.name in declaring
        elif event.type == "text":
            said = event.ts if loaded else None
        elif event.type in ("call", "interrupted"):
            said = None
        elif event.type in ("prompt", "turn_end"):
            times.append(said)
            said = None
    return [*times, said]

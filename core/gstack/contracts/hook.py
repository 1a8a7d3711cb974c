"""The stop hook's entry: is there a run to judge at all? (contracts C4)

Hot: imported on every stop, so builtins only. Most sessions never load a skill with a contract: they are answered
here, and only a run that was found brings in the rest (:mod:`gstack.contracts.decision`).
"""

from time import monotonic, sleep

from gstack.api import ALLOW, TURN_ENDING
from gstack.errors import ContractState, UnknownShape
from gstack.lowlevel import sys_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gstack.api import Answer, Event
    from gstack.hook import HookContext
    from gstack.snapshot import SkillIndex

#: How long a verdict waits for a transcript that lags, in seconds, and how often it looks (contracts C4).
SETTLE = 0.5
SETTLE_STEP = 0.04
#: What is left of the deadline for the rest, in seconds.
SPARE = 0.3


def answer(
    ctx: "HookContext",
    *,
    clock: "Callable[[], float]" = monotonic,
    pause: "Callable[[float], object]" = sleep,
) -> "Answer":
    """Hold the stop, or let it pass. A subagent's end is none of a contract's business."""
    event = ctx.event
    if event.kind != TURN_ENDING or event.scope != "main" or not event.session_id or not event.transcript_path:
        return ALLOW
    index = ctx.skills()
    if not index.contracts or not _has_content(event.transcript_path):
        return ALLOW
    patience = Patience(ctx, clock, pause)
    try:
        events = _first_events(ctx, index, patience)
        if not events:
            return ALLOW
        from gstack.contracts.decision import decide

        return decide(ctx, events, patience)
    except UnknownShape as error:
        from gstack.contracts.trouble import fail_open

        return fail_open(ctx, event.transcript_path, error.message, canary=True)
    except (ContractState, OSError) as error:
        path = getattr(error, "path", None) or event.transcript_path
        if path == event.transcript_path and not _has_content(path):
            return ALLOW  # it disappeared while it was read
        from gstack.contracts.trouble import fail_open

        return fail_open(ctx, path, getattr(error, "message", None) or str(error))


class Patience:
    """Waits for a transcript that lags to change, until half a second has gone by (measured: 0.17 s at most)."""

    __slots__ = ("clock", "path", "pause", "seen", "until")

    def __init__(self, ctx: "HookContext", clock: "Callable[[], float]", pause: "Callable[[float], object]") -> None:
        self.path = ctx.event.transcript_path or ""
        self.clock = clock
        self.pause = pause
        self.seen = _look(self.path)
        self.until = clock() + min(SETTLE, ctx.left() - SPARE)

    def changed(self) -> bool:
        """Wait for the next change; False when time is up."""
        while self.clock() < self.until:
            self.pause(SETTLE_STEP)
            now = _look(self.path)
            if now != self.seen:
                self.seen = now
                return True
        return False


def _look(path: str) -> "tuple[int, int]":
    try:
        found = sys_os.stat(path)
    except OSError:
        return -1, 0
    return found.st_size, found.st_mtime_ns


def _first_events(ctx: "HookContext", index: "SkillIndex", patience: Patience) -> "list[Event]":
    """The events; a file that holds no message yet gets the time in which one may arrive (a typed skill that runs in
    an agent of its own writes its first message after the stop)."""
    while True:
        try:
            return read_events(ctx, index)
        except UnknownShape:
            if not patience.changed():
                raise


def read_events(ctx: "HookContext", index: "SkillIndex") -> "list[Event]":
    """The events from the last load of a skill with a contract on; empty when none was loaded."""
    from gstack.transcript import LIMIT

    spoken = [*index.contracts, *[label for label, name in index.labels.items() if name in index.contracts]]
    path = ctx.event.transcript_path or ""
    events: list[Event] = ctx.host.read_run(path, skills=spoken, max_bytes=LIMIT)
    return events


def _has_content(path: str) -> bool:
    try:
        return sys_os.stat(path).st_size > 0
    except (OSError, ValueError):
        return False

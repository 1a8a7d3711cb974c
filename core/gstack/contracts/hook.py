"""The stop hook's entry: is there a run to judge at all? (contracts C4)

Hot: imported on every stop, so builtins only. Most sessions never load a skill with a contract: they are answered
here, and only a run that was found brings in the rest (:mod:`gstack.contracts.decision`). Of that run mostly the load
alone is asked for, since the turn is no final one or the run is settled.
"""

from time import monotonic, sleep

from gstack.api import ALLOW, TURN_ENDING
from gstack.lowlevel import is_file, sys_os
from gstack.sessions import safe_id
from gstack.transcript import LIMIT, TAIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gstack.api import Answer, Event
    from gstack.hook import HookContext
    from gstack.snapshot import SkillIndex

#: How long a verdict waits for a transcript that lags, in seconds, and how often it looks (contracts C4).
SETTLE = 0.5
SETTLE_STEP = 0.04
#: What is left of the deadline for the rest, in seconds.
SPARE = 0.3

#: A text without any of these asks nothing.
_ASKING = ("?", "\uff1f", "\u061f", "NEEDS_CONTEXT")


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
    seen = look(event.transcript_path)
    if not index.contracts or seen[0] <= 0:
        return ALLOW
    patience = _patience(ctx, clock, pause, seen)
    try:
        session = _load_may_tell(ctx)
        if session:
            load: Event | None = _when_shaped(lambda: ctx.host.last_load(**what_to_read(ctx, index)), patience)
            if load is None:
                return ALLOW
            from gstack.contracts.early import decide_by_load

            early = decide_by_load(ctx, session, load)
            if early is not None:
                return early
        if _end_may_tell(ctx, seen[0]):
            end: list[Event] | None = _when_shaped(lambda: ctx.host.read_end(**what_to_read(ctx, index)), patience)
            if end is not None and not end:
                return ALLOW
            if end:
                from gstack.contracts.by_end import decide_by_end

                by_end = decide_by_end(ctx, end)
                if by_end is not None:
                    return by_end
        events: list[Event] = _when_shaped(lambda: read_events(ctx, index), patience)
        if not events:
            return ALLOW
        from gstack.contracts.decision import decide

        return decide(ctx, events, patience)
    except Exception as error:
        from gstack.contracts.trouble import answer_to

        return answer_to(ctx, error)


def _load_may_tell(ctx: "HookContext") -> "str | None":
    """The session's id, if the run's load may tell that nothing is to be judged: the payload's text ends the turn on a
    question, or a run of this session is settled. A run that is judged all the same is searched for twice."""
    text, session = ctx.event.last_assistant_text, safe_id(ctx.event.session_id)
    if text is None or session is None or not hasattr(ctx.host, "last_load"):
        return None
    if any(mark in text for mark in _ASKING):
        from gstack.contracts.session_kind import final_turn

        if final_turn(ctx, text) is False:
            return session
    if not is_file(f"{ctx.root}/skill-contracts/{session}.json"):
        return None
    from gstack.contracts.records import may_be_settled

    return session if may_be_settled(ctx.root, session) else None


def _end_may_tell(ctx: "HookContext", size: int) -> bool:
    """Whether the transcript is long, and the payload has what else only the whole run tells: the final text and which
    agents run."""
    event = ctx.event
    if size <= TAIL or event.last_assistant_text is None or event.pending_agents is None:
        return False
    return safe_id(event.session_id) is not None and hasattr(ctx.host, "read_end")


def _patience(
    ctx: "HookContext",
    clock: "Callable[[], float]",
    pause: "Callable[[float], object]",
    seen: "tuple[int, int]",
) -> "Callable[[], bool]":
    """A function that waits for a transcript that lags to change; it gives False when half a second has gone by
    (measured: 0.17 s at most)."""
    path = ctx.event.transcript_path or ""
    until = clock() + min(SETTLE, ctx.left() - SPARE)

    def changed() -> bool:
        nonlocal seen
        while clock() < until:
            pause(SETTLE_STEP)
            now = look(path)
            if now != seen:
                seen = now
                return True
        return False

    return changed


def look(path: str) -> "tuple[int, int]":
    """The size of a transcript, and when it was changed; a size of -1 when it isn't there."""
    try:
        found = sys_os.stat(path)
    except (OSError, ValueError):
        return -1, 0
    return found.st_size, found.st_mtime_ns


def _when_shaped(read: "Callable[[], Any]", patience: "Callable[[], bool]") -> "Any":
    """What ``read`` gives; a file that holds no message yet gets the time in which one may arrive (a typed skill that
    runs in an agent of its own writes its first message after the stop)."""
    while True:
        try:
            return read()
        except Exception as error:
            from gstack.errors import UnknownShape

            if not isinstance(error, UnknownShape) or not patience():
                raise


def read_events(ctx: "HookContext", index: "SkillIndex") -> "list[Event]":
    """The events from the last load of a skill with a contract on; empty when none was loaded."""
    events: list[Event] = ctx.host.read_run(**what_to_read(ctx, index))
    return events


def what_to_read(ctx: "HookContext", index: "SkillIndex") -> "dict[str, Any]":
    """What the host is to read: which file, and which skills' loads."""
    spoken = [*index.contracts, *[label for label, name in index.labels.items() if name in index.contracts]]
    return {"path": ctx.event.transcript_path, "skills": spoken, "max_bytes": LIMIT}

"""The stops that a run's load decides: the turn is no final one by the payload, or the run is settled (contracts C4).

Hot: most stops of a session that loaded a skill with a contract end here, so builtins only, and little of them.
"""

from gstack.api import ALLOW
from gstack.contracts.records import DONE, find_run, read_record
from gstack.contracts.session_kind import final_turn
from gstack.logs import log
from gstack.sessions import read_session, update_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from gstack.api import Answer, Event
    from gstack.contracts.records import SessionRecord
    from gstack.hook import HookContext


def decide_by_load(ctx: "HookContext", session: str, load: "Event") -> "Answer | None":
    """The answer where the load that a run begins with is enough to tell that nothing is to be judged; None: read the
    run (:func:`gstack.contracts.decision.decide`, which answers the same).

    Raises RecordError for a session record that can't be used.
    """
    index, skill = ctx.skills(), load.name or ""
    if skill not in index.contracts:
        from gstack.contracts.runs import Names

        skill = Names(index.names, index.labels).resolve(skill) or ""
        if skill not in index.contracts:
            return None
    record = read_record(ctx.root, session)
    reason = why_not_judged(final_turn(ctx, ctx.event.last_assistant_text or ""), record, load.uid)
    if not reason:
        return None
    remember_load(ctx, session, skill, read_session(ctx.root, session).loaded)
    note(ctx, session, skill, load.uid, "allow " + reason)
    return ALLOW


def why_not_judged(final: "bool | None", record: "SessionRecord | None", load_id: str) -> str:
    """Why a run isn't judged, as the log says it, whatever happened in it; ``""`` when that counts."""
    if final is False:
        return "reason=not-final"
    known = find_run(record, load_id)
    if known is not None and known["outcome"] in DONE:
        return f"reason=recorded outcome={known['outcome']}"
    return ""


def remember_load(ctx: "HookContext", session: str, skill: str, known: "Collection[str]") -> None:
    """Tell the session's record which skill was loaded, after the answer; ``known`` are those that it has."""
    if skill not in known:
        ctx.later(lambda: update_session(ctx.root, session, loaded=[skill]))


def note(ctx: "HookContext", session: str, skill: str, load_id: str, text: str) -> None:
    """One line in the log."""
    mark = "observe " if ctx.switch.value == "observe" else ""
    word, _, rest = text.partition(" ")
    log(ctx.root, "skill-contract", session, f"{mark}{word} skill={skill} load={load_id} {rest}".rstrip())

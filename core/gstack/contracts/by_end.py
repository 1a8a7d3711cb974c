"""Judging a long run by its last part, where that tells (contracts C4, performance G6).

Hot: the stop hook decides with it where a transcript is long and the load stands far back, so builtins only. The answer
is that of :func:`gstack.contracts.decision.decide` on the whole run; a property test compares the two.
"""

from gstack.api import MET, MISSING, TOOL_KINDS, EndVerdict, Verdict
from gstack.contracts.check import ItemResult, Judged, Outcome, with_waivers
from gstack.contracts.decision import Stop
from gstack.contracts.early import remember_load
from gstack.contracts.hook import what_to_read
from gstack.contracts.runs import BLOCK_WORD, early_exit, settled
from gstack.plan import plugin_failed
from gstack.sessions import safe_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gstack.api import Answer, Event, Item, Run
    from gstack.hook import HookContext

#: After so many later loads between the first and the run's end, reading is cheaper than searching on.
_LOADS = 3
#: How many texts or kinds of tool a verdict may depend on.
_MOST = 50
#: What every waiver's command has in it (contracts C6).
_WAIVE = "waive"


class _Told:
    """A run judged by its end, and what must not stand before that for the verdict to hold."""

    def __init__(self, judged: Judged, said: "Sequence[str]", called: "Sequence[str]") -> None:
        self.judged = judged
        self.said = said
        self.called = called


def decide_by_end(ctx: "HookContext", events: "Sequence[Event]") -> "Answer | None":
    """The answer where the run's end, ``events`` as :meth:`gstack.protocols.ReadsEnds.read_end` gives them, tells it;
    None: read the run.

    Raises what the host adapter raises, and RecordError for a session record that can't be used.
    """
    session = safe_id(ctx.event.session_id) or ""
    stop = Stop(ctx, session)
    what = what_to_read(ctx, stop.index)
    for _ in range(_LOADS):
        run = stop.run_of(events)
        told = _judge(stop, run) if run is not None and run.load_id == events[0].uid else None
        if run is None or told is None:
            return None
        found = ctx.host.rest_lacks(
            **what, events=events, said=told.said, called=told.called, anywhere=[f"{BLOCK_WORD} "]
        )
        if found is True:
            remember_load(ctx, session, run.skill, stop.memory.loaded)
            return stop.without_verdict(run) or stop.act(told.judged)
        if not found:
            return None
        events = [found, *events[1:]]
    return None


def _judge(stop: Stop, run: "Run") -> "_Told | None":
    """The verdict that the run's last part gives; None when it takes the whole."""
    if not settled(run):
        return None  # what was said last stands before it, or is still to come
    try:
        contract, kinds = stop.contract_of(run)
    except Exception as error:
        from gstack.errors import NoContract

        if not isinstance(error, NoContract):
            raise
        return None
    early = early_exit(run)
    if early:
        results = tuple([ItemResult(item.id, item.kind, MET, early) for item in contract.items])
        return _Told(Judged(run, contract, kinds, Outcome(results, early)), [], [])
    told = []
    for item in contract.items:
        end = _end(stop, item, run, kinds[item.kind])
        if end is None:
            return None
        told.append(end)
    outcome = with_waivers(
        [
            ItemResult(item.id, item.kind, end.verdict.status, " ".join(end.verdict.why.split()))
            for item, end in zip(contract.items, told, strict=True)
        ],
        run,
        aliases=stop.names.aliases([run.skill]),
    )
    said = [text for end in told for text in end.unless_said]
    called = [kind for end in told for kind in end.unless_called]
    return _Told(Judged(run, contract, kinds, outcome), [*said, _WAIVE] if outcome.missing else said, called)


def _end(stop: Stop, item: "Item", run: "Run", kind: "Any") -> "EndVerdict | None":
    """What a kind says of an item by the run's end; None when it doesn't, or says nothing sound."""
    if not hasattr(kind, "check_end"):
        return None
    try:
        end = stop.ctx.call(kind, kind.check_end, item, run)
        return end if _is_sound(end) else None
    except (plugin_failed(), AttributeError):
        return None  # what it says of the whole run may be another matter


def _is_sound(end: object) -> bool:
    """Whether it holds nothing but what it should, so that no code of the kind's runs when it is looked at."""
    if type(end) is not EndVerdict or type(end.verdict) is not Verdict:
        return False
    for texts in (end.unless_said, end.unless_called):
        if type(texts) is not tuple or len(texts) > _MOST or not all(type(text) is str for text in texts):
            return False
    if not set(end.unless_called) <= set(TOOL_KINDS):
        return False
    status, why = end.verdict.status, end.verdict.why
    return type(status) is str and status in (MET, MISSING) and type(why) is str

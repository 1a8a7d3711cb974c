"""What a stop means for the run that it ends: allow, defer, hold once, record (contracts C4, in its order).

Hot: the stop hook decides with it, so builtins only. The record is written before a stop is held; whatever goes wrong,
the stop is allowed.
"""

from gstack.api import ALLOW, Answer
from gstack.contracts.early import note, remember_load, why_not_judged
from gstack.contracts.hook import read_events
from gstack.contracts.records import DONE, change_run, find_run, read_record, records_dir
from gstack.contracts.runs import (
    Names,
    asks,
    interrupted,
    last_run,
    our_block,
    pending_agents,
    settled,
    with_final_text,
)
from gstack.contracts.session_kind import final_turn
from gstack.sessions import read_session, safe_id, update_session
from gstack.transcript import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gstack.api import Event, Run
    from gstack.contracts.check import Judged, Outcome
    from gstack.contracts.records import RunRecord
    from gstack.contracts.schema import Contract
    from gstack.hook import HookContext

#: From when on agents that were seen running count as stalled, in seconds.
STALLED_AFTER = 600.0
#: Two hooks that one stop started see the same block within this time, in seconds (the hook's own deadline, and slack).
SAME_STOP = 10.0
#: With less time left than this, a stop is not held any more, in seconds: the answer might come too late.
TOO_LATE = 0.15


def decide(ctx: "HookContext", events: "Sequence[Event]", patience: "Callable[[], bool]") -> Answer:
    """Judge the run that ``events`` begin with; ``patience`` waits for the transcript to change (False: time is up).

    Raises what the host adapter raises when the transcript is read again, and RecordError for a record that can't be
    used: the caller fails open.
    """
    session = safe_id(ctx.event.session_id)
    if session is None:
        return _trouble(ctx, records_dir(ctx.root), "the session's id can't be a file name")
    stop = Stop(ctx, session)
    run = stop.run_of(events) or stop.earlier_run()
    if run is None:
        return ALLOW
    remember_load(ctx, session, run.skill, stop.memory.loaded)
    while True:
        early = stop.without_verdict(run)
        if early is not None:
            return early
        from gstack.contracts.check import Judged, evaluate

        try:
            contract, kinds = stop.contract_of(run)
        except Exception as error:
            from gstack.errors import NoContract

            if not isinstance(error, NoContract):
                raise
            return _trouble(ctx, stop.contract_path(run), error.message)
        outcome = evaluate(contract, run, kinds, ctx.call, aliases=stop.names.aliases([run.skill]))
        if outcome.met or outcome.unclear or (ctx.event.last_assistant_text is not None and settled(run)):
            break
        if not patience():
            break
        run = stop.run_of(read_events(ctx, stop.index)) or run
    return stop.act(Judged(run, contract, kinds, outcome))


class Stop:
    """One stop of one session."""

    def __init__(self, ctx: "HookContext", session: str) -> None:
        self.ctx = ctx
        self.event = ctx.event
        self.session = session
        self.index = ctx.skills()
        self.memory = read_session(ctx.root, session)
        self.observe = ctx.switch.value == "observe"
        self.record = read_record(ctx.root, session)

    # ------------------------------------------------------------------------------------- what is judged

    @property
    def names(self) -> Names:
        """Which skill a load means."""
        return Names(self.index.names, self.index.labels)

    def run_of(self, events: "Sequence[Event]") -> "Run | None":
        """The run to judge, with the payload's final text and folder."""
        run = last_run(events, self.index.contracts, self.names)
        return with_final_text(run, self.event.last_assistant_text, cwd=self.event.cwd) if run else None

    def earlier_run(self) -> "Run | None":
        """The run to judge where the load that the host found is of another skill that goes by the same bare name (a
        plugin's and a personal one)."""
        events = self.ctx.host.read_transcript(self.event.transcript_path or "", max_bytes=LIMIT)
        return self.run_of(events)

    def contract_path(self, run: "Run") -> str:
        """The file that declares the run's contract."""
        from gstack.contracts.schema import PROJECT_OVERLAY, declared_in

        path, sources = self.index.names.get(run.skill, run.skill), self.index.sources.get(run.skill, {})
        overlay = None
        if sources.get("contract") == PROJECT_OVERLAY:
            from gstack.trust import trusted_overlay

            overlay, _ = trusted_overlay(self.ctx.root, self.event.cwd)
        return declared_in(path, sources, self.ctx.root, overlay)

    def contract_of(self, run: "Run") -> "tuple[Contract, dict[str, Any]]":
        """The run's contract, and the kinds that it names. Raises NoContract for an invalid one."""
        from gstack.contracts.schema import kind_names, parse_contract, reading_note

        raw = self.index.contracts[run.skill]
        wanted = {name: self.ctx.plan.get("gstack.contract_kinds", name) for name in kind_names(raw)}
        kinds = {name: kind for name, kind in wanted.items() if kind is not None}
        note = reading_note(self.index.sources.get(run.skill, {}))
        return parse_contract(raw, kinds, source=self.contract_path(run), note=note), kinds

    # ----------------------------------------------------------------------------- stops without a verdict

    def without_verdict(self, run: "Run") -> "Answer | None":
        """The answer where nothing is to be judged now (C4: final turn, steps 1 and 2); None: judge."""
        final = final_turn(self.ctx, run.final_text)
        early = why_not_judged(final, self.record, run.load_id)
        if early:
            return self.allow(run, "allow " + early)
        if final is None and asks(run):
            return self.allow(run, "allow reason=not-final")
        if interrupted(run):
            return self.allow(run, "allow reason=interrupted")
        agents = self.running_agents(run, self.known(run))
        if agents:
            return self.defer(run, agents)
        return None

    def known(self, run: "Run") -> "RunRecord | None":
        """The run as recorded; what was only observed doesn't bind a switch that is on now."""
        found = find_run(self.record, run.load_id)
        if found is not None and found.get("observe") and not self.observe and found["outcome"] not in DONE:
            return None
        return found

    def running_agents(self, run: "Run", known: "RunRecord | None") -> "dict[str, float]":
        """The agents that still run, each with when it was first seen; empty when none does or all are stalled."""
        listed = self.event.pending_agents
        ids = listed if listed is not None else pending_agents(run)
        seen = known.get("seen_agents", {}) if known else {}
        now = self.ctx.now
        first = {ident: min(seen.get(ident, now), now) for ident in ids}
        return first if any(now - since < STALLED_AFTER for since in first.values()) else {}

    def defer(self, run: "Run", agents: "dict[str, float]") -> Answer:
        """Let the stop pass: what is missing may still come from the agents."""

        def change(old: "RunRecord | None") -> "RunRecord | None":
            if old is not None and old["outcome"] in DONE:
                return None
            new = self.entry(run, old, old["outcome"] if old else "deferred")
            new["seen_agents"] = agents
            return new

        self.write(run, change)
        return self.allow(run, f"deferred agents={len(agents)}")

    # ------------------------------------------------------------------------------------------- a verdict

    def act(self, judged: "Judged") -> Answer:
        """Record the verdict, and hold the stop when it is negative for the first time (C4: steps 3 and 4)."""
        run, outcome = judged.run, judged.outcome
        if outcome.unclear:
            odd = outcome.unclear[0]
            path = self.contract_path(run)
            return _trouble(self.ctx, path, f'contract item "{odd.id}" ({odd.kind}) can\'t be judged: {odd.why}')
        known = self.known(run)
        feedback = our_block(run)
        blocked = bool(feedback or (known and "blocked_at" in known) or run.load_id in self.memory.blocked)
        if self.event.stop_active and not blocked:
            # another hook continued this turn: what it leads to isn't known yet
            return self.allow(run, f"allow reason=stop-active missing={_list(outcome.missing)}")
        if outcome.met:
            return self.settle(judged, self.outcome_of(outcome, blocked))
        if not blocked:
            return self.observed(judged) if self.observe else self.hold(judged)
        if not feedback and not self.event.stop_active and self.same_stop(run, known):
            return self.allow(run, "allow reason=held-already")
        return self.settle(judged, "miss")

    @staticmethod
    def outcome_of(outcome: "Outcome", blocked: bool) -> str:
        """The word for a run that is met; a waiver shows, since it counts as a miss."""
        from gstack.contracts.check import WAIVED

        if outcome.ids(WAIVED):
            return "met_waived"
        return "met_after_block" if blocked else "met"

    def same_stop(self, run: "Run", known: "RunRecord | None") -> bool:
        """Whether the block on record is this very stop's: the host may have started two hooks for it."""
        if known is None or "blocked_at" not in known:
            return True  # only the session's memory has it: the record was deleted in between
        blocked_at = float(known["blocked_at"])
        if any((event.ts or 0) > blocked_at for event in run.events):
            return False  # the session has gone on since
        return abs(self.ctx.now - blocked_at) < SAME_STOP

    def settle(self, judged: "Judged", word: str) -> Answer:
        """Record an outcome that holds nothing."""
        feedback = our_block(judged.run)

        def change(old: "RunRecord | None") -> "RunRecord | None":
            if old is not None and old["outcome"] in DONE:
                return None
            new = self.entry(judged.run, old, word, judged)
            if word in ("miss", "met_after_block") and not self.observe:
                new.setdefault("blocked_at", round((feedback.ts if feedback else None) or self.ctx.now, 3))
            return new

        self.write(judged.run, change)
        return self.allow(judged.run, word + _missing(judged.outcome))

    def observed(self, judged: "Judged") -> Answer:
        """Observe: say in the log what would have been held; the run stopped unmet."""
        self.settle(judged, "miss")
        return Answer(block_stop=self.text(judged))

    def hold(self, judged: "Judged") -> Answer:
        """Hold the stop, once whatever races: the record is written first, under the lock."""
        run = judged.run
        text = self.text(judged)
        if self.ctx.left() < TOO_LATE:
            return self.allow(run, "allow reason=too-late" + _missing(judged.outcome))
        claimed = False

        def change(old: "RunRecord | None") -> "RunRecord | None":
            nonlocal claimed
            taken = old is not None and ("blocked_at" in old or old["outcome"] in DONE)
            if taken or run.load_id in read_session(self.ctx.root, self.session).blocked:
                return None
            claimed = True
            new = self.entry(run, old, "blocked", judged)
            new["blocked_at"] = round(self.ctx.now, 3)
            return new

        # the session's own record remembers as well, in case somebody deletes this one
        self.write(run, change, then=lambda: update_session(self.ctx.root, self.session, blocked=[run.load_id]))
        if not claimed:
            return self.allow(run, "allow reason=held-already")
        self.note(run, "blocked" + _missing(judged.outcome))
        return Answer(block_stop=text)

    # ------------------------------------------------------------------------------------ writing it down

    def text(self, judged: "Judged") -> str:
        """The line that holds the stop."""
        from gstack.contracts.block_text import block_text, waive_command

        command = waive_command(self.ctx.launcher_dir)
        missing = judged.outcome.missing
        return block_text(judged.run.skill, judged.contract, missing, judged.kinds, self.ctx.call, command)

    def entry(self, run: "Run", old: "RunRecord | None", word: str, judged: "Judged | None" = None) -> "RunRecord":
        """The run as it is to be recorded, keeping what is known of it."""
        new = dict(old or {})
        new.update({"skill": run.skill, "load_id": run.load_id, "outcome": word, "updated_at": int(self.ctx.now)})
        if judged is not None:
            new["contract"] = {"version": judged.contract.version, "digest": judged.contract.digest}
            new["items"] = judged.outcome.states()
        new.setdefault("contract", {})
        new.setdefault("items", {})
        new.pop("observe", None)
        if self.observe and "blocked_at" not in new:
            new["observe"] = True
        return new

    def write(
        self,
        run: "Run",
        change: "Callable[[RunRecord | None], RunRecord | None]",
        then: "Callable[[], object] | None" = None,
    ) -> None:
        """Change the run's record. Raises RecordError."""
        change_run(
            self.ctx.root,
            self.session,
            self.event.host,
            run.load_id,
            change,
            transcript=self.event.transcript_path,
            then=then,
        )

    def allow(self, run: "Run", text: str) -> Answer:
        """Let the stop pass, with one line in the log."""
        self.note(run, text)
        return ALLOW

    def note(self, run: "Run", text: str) -> None:
        """One line in the log."""
        note(self.ctx, self.session, run.skill, run.load_id, text)


def _missing(outcome: "Outcome") -> str:
    return f" missing={_list(outcome.missing)}" if outcome.missing else ""


def _list(ids: "Sequence[str]") -> str:
    return ",".join(ids) or "none"


def _trouble(ctx: "HookContext", path: str, problem: str) -> Answer:
    from gstack.contracts.trouble import fail_open

    return fail_open(ctx, path, problem)

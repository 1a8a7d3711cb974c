"""One transcript, replayed: what routing, contracts and the gate would have done with it."""

from collections.abc import Iterator, Sequence
from typing import Any

from gstack.api import COMMAND_TYPED, PROMPT_SUBMITTED, TOOL_PROPOSED, Event, HookEvent
from gstack.errors import GstackError, UnknownShape
from gstack.gate.hook import invoked
from gstack.gate.names import normal
from gstack.replay.engine import Job
from gstack.replay.files import in_project
from gstack.replay.rows import (
    ELSEWHERE,
    FAILED,
    OLD,
    ROUTED,
    STRANGE,
    FileResult,
    PromptRow,
    RouteRow,
    UseRow,
    key_of,
)
from gstack.replay.scene import Context, Place, Scene, Setup
from gstack.replay.stops import Stops
from gstack.replay.turns import stops, what_followed
from gstack.routing.hook import judge
from gstack.session_facts import SessionFacts, facts_of
from gstack.transcript import LIMIT

#: How much of a prompt is shown, in characters.
SHOWN = 160

#: The kinds of use by the kind of tool; a typed command is one more.
_USES = {"skill": "skill", "agent": "subagent", "read": "read"}


class Replay:
    """The work that the engine does on each file (see :mod:`gstack.replay.engine`)."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._scene: Scene | None = None

    def open(self) -> None:
        """Get ready, once a process."""
        self._scene = Scene(self.setup)

    def do(self, job: Job) -> FileResult:
        """Replay one transcript. What is wrong with it is part of the result."""
        assert self._scene is not None
        read = read_session(self._scene, job)
        if isinstance(read, FileResult):
            return read
        facts, events = read
        return _Session(self._scene, job, facts, events).result()

    def failed(self, job: Job, why: str) -> FileResult:
        """The result for a file that could not be replayed."""
        return FileResult(job.path, job.size, FAILED, why)


def read_session(scene: Scene, job: Job) -> tuple[SessionFacts, list[Event]] | FileResult:
    """The facts and events of a transcript, or the result that says why it doesn't count."""
    setup = scene.setup
    if setup.since is not None and job.mtime_ns < setup.since * 1e9:
        return FileResult(job.path, job.size, OLD)
    facts = facts_of(scene.host, job.path)
    if setup.project is not None and not in_project(facts.cwd, setup.project):
        return FileResult(job.path, job.size, ELSEWHERE)
    try:
        return facts, scene.host.read_transcript(job.path, max_bytes=LIMIT)
    except UnknownShape as error:
        return FileResult(job.path, job.size, STRANGE, error.message)
    except GstackError as error:
        return FileResult(job.path, job.size, FAILED, error.message)


class _Session:
    """One session: walks its events in order, once for each feature."""

    def __init__(self, scene: Scene, job: Job, facts: SessionFacts, events: Sequence[Event]) -> None:
        self.scene = scene
        self.setup = scene.setup
        self.job = job
        self.facts = facts
        self.events = events
        self.main = [event for event in events if event.agent is None]
        self.name = facts.session_id or job.path.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
        self.place: Place = scene.place(facts.cwd)

    def result(self) -> FileResult:
        """All rows of the time that counts."""
        prompts, routes = self.routing()
        return FileResult(
            self.job.path,
            self.job.size,
            session=self.name,
            prompts=tuple(prompts),
            routes=tuple(routes),
            runs=self.contracts(),
            uses=tuple(self.uses()),
        )

    def counts(self, ts: float | None) -> bool:
        """Whether something at ``ts`` lies in the time asked for; without a time the file's own says so."""
        return self.setup.since is None or ts is None or ts >= self.setup.since

    # -------------------------------------------------------------------------------------------- routing

    def routing(self) -> tuple[list[PromptRow], list[RouteRow]]:
        """Every prompt, with what this session had loaded and been hinted to by then."""
        context = self.scene.context(self.place)
        loaded: set[str] = set()
        hinted: set[str] = set()
        prompts: list[PromptRow] = []
        routes: list[RouteRow] = []
        for at, event in enumerate(self.main):
            if event.type == "load":
                loaded.add(self.place.names.resolve(event.name or "") or "")
            if event.type != "prompt":
                continue
            reason, found = self.judged(context, event, loaded, hinted)
            key = key_of("prompt", event.uid or self.at(event), event.ts, event.text[:200])
            if found is not None:
                hinted.add(found.skill)
            if not self.counts(event.ts):
                continue
            prompts.append(PromptRow(key, event.ts, reason))
            if found is not None:
                did, first = what_followed(self.main, at, found.skill, self.place.names.resolve)
                text = " ".join(event.text[: 4 * SHOWN].split())[:SHOWN] if self.setup.show_prompts else ""
                score = round(found.score, 2)
                routes.append(RouteRow(key, event.ts, self.name, found.skill, score, found.trigger, did, first, text))
        return prompts, routes

    def judged(self, context: Context, event: Event, loaded: set[str], hinted: set[str]) -> tuple[str, Any]:
        """The reason and the candidate of one prompt (None: it isn't routed)."""
        if event.origin != "user":
            return "not-typed", None
        context.event = HookEvent(self.scene.host.id, PROMPT_SUBMITTED, "", prompt=event.text, cwd=self.facts.cwd)
        _, outcome = judge(
            context,
            event.text,
            blocked=lambda skill: self.scene.gate.would_block(self.place, skill, event.ts),
            loaded=loaded,
            hinted=hinted,
        )
        return (ROUTED, outcome.route) if outcome.route is not None else (outcome.reason or "", None)

    # ------------------------------------------------------------------------------------------ contracts

    def contracts(self) -> Any:
        """Every run of a skill with a contract."""
        if not any(event.type == "load" for event in self.main):
            return ()
        judged = Stops(self.scene, self.place, session=self.name, interactive=self.facts.interactive)
        try:
            ends = stops(self.main)
            end = next(ends, None)
            for at, event in enumerate(self.main):
                while end is not None and end[0] <= at:
                    judged.stop(self.main, end[0], active=end[1])
                    end = next(ends, None)
                if event.type == "load":
                    judged.load(event, at)
            while end is not None:
                judged.stop(self.main, end[0], active=end[1])
                end = next(ends, None)
            return tuple(row for row in judged.rows() if self.counts(row.ts))
        finally:
            judged.close()

    # ----------------------------------------------------------------------------------------------- gate

    def uses(self) -> Iterator[UseRow]:
        """Every use that the gate's hooks would have seen, subagents' own among them."""
        context = self.scene.context(self.place)
        denied = {event.ref for event in self.events if event.type == "result" and event.denied}
        for event in self.events:
            kind = self.use_kind(event)
            if not kind or not self.counts(event.ts) or (denied and self.invalid(event, denied)):
                continue
            context.event = self.proposal(event)
            invocation = invoked(context)
            if invocation is None:
                continue
            said = self.scene.gate.judge(invocation, event.ts)
            ident = (event.call.id if event.call is not None else event.uid) or self.at(event)
            decision = said.now or said.then
            name = decision.skill_name if decision is not None else normal(invocation.name)
            yield UseRow(
                key_of("use", ident, event.ts, name),
                event.ts,
                self.name,
                kind,
                name,
                *_said(said.now),
                *_said(said.then),
            )

    @staticmethod
    def use_kind(event: Event) -> str:
        """What kind of use an event may be; ``""`` for none."""
        if event.type == "load" and event.how == "typed" and event.agent is None:
            return "typed"
        return _USES.get(event.call.kind, "") if event.type == "call" and event.call is not None else ""

    def invalid(self, event: Event, denied: set[str | None]) -> bool:
        """Whether the host refused a call because it makes no sense, before it asked any hook (measured): one of a
        skill that it doesn't know, or of an agent without a task."""
        call = event.call
        if call is None or not call.id or call.id not in denied:
            return False
        if call.kind == "skill":
            return self.place.names.resolve(call.skill or "") is None
        return call.kind == "agent" and not call.prompt

    def proposal(self, event: Event) -> HookEvent:
        """The hook event that the host would have sent."""
        host, cwd = self.scene.host.id, self.facts.cwd
        scope = "main" if event.agent is None else "subagent"
        if event.type == "load":
            return HookEvent(host, COMMAND_TYPED, "", scope=scope, cwd=cwd, session_id=self.name, command=event.name)
        return HookEvent(host, TOOL_PROPOSED, "", scope=scope, cwd=cwd, session_id=self.name, tool=event.call)

    def at(self, event: Event) -> str:
        """What identifies an event that has no id."""
        return f"{self.job.path}:{event.ordinal}"


def _said(decision: Any) -> tuple[str, str, str]:
    if decision is None:
        return "", "", ""
    return decision.action, decision.policy_name or decision.rule, decision.reason

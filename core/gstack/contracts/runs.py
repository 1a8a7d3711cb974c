"""From a session's events to loads and runs, and what a run's end looks like (contracts C3, C4).

Hot: the stop hook judges with it, so builtins only. Only main-thread events count: what a subagent did neither helps
nor harms.
"""

from gstack.api import Run
from gstack.contracts.status import last_status, nothing_to_review
from gstack.transcript import same_skill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gstack.api import Event

#: What every block of ours starts with; the skill's name follows.
BLOCK_WORD = "SKILL_CONTRACT_UNMET"


class Names:
    """Which installed skill a session's load means.

    ``names`` are the invocable names, ``labels`` a frontmatter name to the invocable one where they differ. A load may
    say the name with a leading slash, with or without its plugin's prefix, or by its label (contracts C3).
    """

    __slots__ = ("_known", "labels", "names")

    def __init__(self, names: "Collection[str]", labels: "Mapping[str, str] | None" = None) -> None:
        self.names = names
        self.labels = labels or {}
        self._known: dict[str, str | None] = {}

    def resolve(self, said: str) -> "str | None":
        """The invocable name that ``said`` means; None when no skill is meant."""
        if said not in self._known:
            self._known[said] = self._find(said.lstrip("/"))
        return self._known[said]

    def _find(self, said: str) -> "str | None":
        if said in self.names:
            return said
        if said in self.labels:
            return self.labels[said]
        for name in self.names:
            if same_skill(name, said):
                return name
        for label, name in self.labels.items():
            if same_skill(label, said):
                return name
        return None

    def aliases(self, skills: "Collection[str]") -> "list[str]":
        """The labels by which ``skills`` go as well."""
        return [label for label, name in self.labels.items() if name in skills]


def runs(events: "Sequence[Event]", skill: str, names: Names) -> "list[Run]":
    """The runs of ``skill``, first to last: each goes from a load to that skill's next load, or to the end."""
    main = [event for event in events if event.agent is None]
    starts = [
        place for place, event in enumerate(main) if event.type == "load" and names.resolve(event.name or "") == skill
    ]
    ends = [*starts[1:], len(main)]
    return [_run(skill, main[start:end]) for start, end in zip(starts, ends, strict=False)]


def last_run(events: "Sequence[Event]", skills: "Collection[str]", names: Names) -> "Run | None":
    """The run of whichever of ``skills`` was loaded last; None when none was (contracts C4)."""
    main = [event for event in events if event.agent is None]
    for place in range(len(main) - 1, -1, -1):
        if main[place].type == "load":
            skill = names.resolve(main[place].name or "")
            if skill in skills:
                return _run(skill, main[place:])
    return None


def _run(skill: "str | None", events: "Sequence[Event]") -> Run:
    load = events[0]
    return Run(skill or "", load.uid, events[1:], final_text=final_text(events), loaded_at=load.ts)


def final_text(events: "Sequence[Event]") -> str:
    """The assistant's last message among ``events``; ``""`` when it said nothing."""
    for event in reversed(events):
        if event.type == "text":
            return event.text
    return ""


def with_final_text(run: Run, text: "str | None", *, cwd: "str | None" = None) -> Run:
    """``run`` with the final text and the session's folder that the host's payload has; None: the payload has none."""
    final = run.final_text if text is None else text
    return Run(run.skill, run.load_id, run.events, final_text=final, cwd=cwd or run.cwd, loaded_at=run.loaded_at)


def interrupted(run: Run) -> bool:
    """Whether the person broke off the last turn."""
    for event in reversed(run.events):
        if event.type == "interrupted":
            return True
        if event.type in ("text", "call", "prompt", "continuation"):
            return False
    return False


def settled(run: Run) -> bool:
    """Whether the transcript already ends with the run's final text, so that nothing before it is still to come."""
    for event in reversed(run.events):
        if event.type == "text":
            said = event.text.strip()
            return bool(said) and run.final_text.strip().endswith(said)
        if event.type in ("call", "result", "prompt", "continuation", "interrupted"):
            return False
    return False


def asks(run: Run) -> bool:
    """Whether the turn's last act is a question put with the host's own tool."""
    acts = [event for event in run.events if event.type in ("text", "call")]
    if not acts or acts[-1].call is None or acts[-1].call.kind != "ask":
        return False
    # a final text that the file doesn't have yet came after the call
    said = final_text(acts).strip()
    return not run.final_text.strip() or run.final_text.strip() == said


def our_block(run: Run) -> "Event | None":
    """Our own feedback in the transcript: this run was blocked before, whatever the record says (contracts C4)."""
    mark = f"{BLOCK_WORD} {run.skill} "
    for event in run.events:
        if event.type == "continuation" and any(line.lstrip().startswith(mark) for line in event.text.splitlines()):
            return event
    return None


def pending_agents(run: Run) -> "tuple[str, ...]":
    """The agents of the main thread that still run: no result yet, or started and never reported as ended."""
    running: dict[str, None] = {}
    for event in run.events:
        call = event.call
        if event.type == "call" and call is not None and call.kind == "agent" and call.id:
            running[call.id] = None
        elif event.type == "result" and event.ref:
            running.pop(event.ref, None)
        elif event.type == "agent_started" and event.ref:
            if call is not None and call.id:
                running.pop(call.id, None)
            running[event.ref] = None
        elif event.type == "agent_finished" and event.ref:
            running.pop(event.ref, None)
            if call is not None and call.id:
                running.pop(call.id, None)
        elif event.type == "interrupted":
            # breaking off ends a call that the main thread waited for; agents in the background go on
            for ident in [ident for ident in running if _is_call(run, ident)]:
                del running[ident]
    return tuple(running)


def _is_call(run: Run, ident: str) -> bool:
    return any(event.type == "call" and event.call is not None and event.call.id == ident for event in run.events)


def early_exit(run: Run) -> str:
    """Why the run counts as met because the skill ended it early; ``""`` when it did not (contracts C3).

    A status line in a printed report (``Status: BLOCKED`` in the block below a heading, boxed, bulleted or in a table)
    is one like any other.
    """
    if nothing_to_review(run.final_text):
        return "the skill found nothing to review"
    if last_status(run.final_text) == "BLOCKED":
        return "the skill ended with STATUS: BLOCKED"
    return ""

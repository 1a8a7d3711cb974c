"""What the contract tests share: a context as the hook has it, events, small kinds."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gstack.api import CANNOT_TELL, MET, MISSING, TURN_ENDING, Event, Field, HookEvent, Item, Run, ToolCall, Verdict
from gstack.config import Switch
from gstack.failures import PluginFailed
from gstack.isolation import isolated
from gstack.snapshot import SkillIndex
from gstack.snapshot_build import index_data
from gstack.testing.transcript import SESSION, Transcript

__all__ = ["SESSION", "Transcript"]


WORKED_CONTRACT: dict[str, Any] = {
    "version": 1,
    "items": [
        {
            "id": "debug-report",
            "kind": "report_labels",
            "heading": "DEBUG REPORT",
            "labels": ["Symptom", "Root cause", "Fix", "Evidence"],
        },
        {"id": "repro-after-fix", "kind": "check_after_last_edit"},
    ],
}

REPORT = (
    "DEBUG REPORT\nSymptom: login fails\nRoot cause: a null check was missing\nFix: check for null\n"
    "Evidence: bun test passes\n\nSTATUS: DONE"
)


# -------------------------------------------------------------------------------------------------- kinds


class Says:
    """Met when the final text holds ``word``."""

    name = "test.says"
    fields: Sequence[Field] = (Field("word", required=True), Field("loud", "flag"), Field("match", "regex"))

    def check(self, item: Item, run: Run) -> Verdict:
        found = item.fields["word"] in run.final_text
        return Verdict(MET) if found else Verdict(MISSING, f"the word {item.fields['word']} isn't there")

    def fix(self, item: Item) -> str:
        return f"say {item.fields['word']}."

    def summary(self, item: Item) -> str:
        return f"the word {item.fields['word']}"


class HasFile(Says):
    """Met when the session's folder holds the file ``word``."""

    name = "test.file"
    fields = (Field("word", required=True),)

    def check(self, item: Item, run: Run) -> Verdict:
        if run.cwd is None:
            return Verdict(CANNOT_TELL, "the session's folder isn't known")
        found = (Path(run.cwd) / item.fields["word"]).is_file()
        return Verdict(MET) if found else Verdict(MISSING, f"there is no {item.fields['word']}")


class Fails(Says):
    """Does whatever ``how`` is when it is asked."""

    name = "test.fails"
    fields = ()

    def __init__(self, how: Callable[[], Any]) -> None:
        self.how = how

    def check(self, item: Item, run: Run) -> Verdict:
        return self.how()  # type: ignore[no-any-return]

    def fix(self, item: Item) -> str:
        return str(self.how())


class CannotTell(Says):
    name = "test.cannot"
    fields = ()

    def check(self, item: Item, run: Run) -> Verdict:
        return Verdict(CANNOT_TELL, "no way to know")


def call_isolated(owner: Any, function: Callable[..., Any], *args: Any) -> Any:
    """As the hook calls an outside plug-in."""
    return isolated(owner.name, function, *args, limit=0.3)


def call_plain(owner: Any, function: Callable[..., Any], *args: Any) -> Any:
    """As the hook calls a built-in."""
    try:
        return function(*args)
    except Exception as error:
        raise PluginFailed(owner.name, f"raised {type(error).__name__}") from error


def built_in_kinds() -> dict[str, Any]:
    """The four kinds that gstack brings, by their public entry points' modules."""
    from gstack_plugins import agent_dispatch, check_after_last_edit, report_labels, selected_specialists

    modules = (report_labels, check_after_last_edit, selected_specialists, agent_dispatch)
    return {kind.name: kind for module in modules for kind in module.gstack_contract_kinds()}


# ------------------------------------------------------------------------------------------------- events


def load(name: str = "investigate", uid: str = "load-1", **more: Any) -> Event:
    return Event("load", uid=uid, name=name, how="tool", **more)


def said(text: str, **more: Any) -> Event:
    return Event("text", text=text, **more)


def called(kind: str, ident: str, **more: Any) -> Event:
    agent = more.pop("agent", None)
    return Event("call", agent=agent, call=ToolCall(kind, kind.title(), id=ident, **more))


def result(ident: str, **more: Any) -> Event:
    return Event("result", ref=ident, **more)


# ------------------------------------------------------------------------------------------------- context


class FakePlan:
    """The kinds that a test wants, found as the hook finds them."""

    def __init__(self, kinds: Mapping[str, Any]) -> None:
        self.kinds = kinds
        self.asked: list[str] = []

    def get(self, group: str, name: str) -> Any:
        assert group == "gstack.contract_kinds"
        self.asked.append(name)
        return self.kinds.get(name)


class FakeHost:
    """Gives the events that the test wants: one list, or one a reading."""

    id = "claude-code"

    def __init__(self, *readings: Sequence[Event] | Exception, says: str | None = "interactive") -> None:
        self.readings = list(readings)
        self.says = says
        self.reads = self.loads = 0
        self.whole: Sequence[Event] = ()

    def session_kind(self, env: Mapping[str, str]) -> str | None:
        return self.says

    def read_transcript(self, path: str, *, max_bytes: int) -> list[Event]:
        return list(self.whole)

    def _last_load(self, path: str, *, skills: Sequence[str], max_bytes: int) -> Event | None:
        """What the tests make ``last_load`` of hosts that have one."""
        found = self.readings[min(self.reads, len(self.readings) - 1)]
        self.loads += 1
        if isinstance(found, Exception):
            if self.reads + 1 < len(self.readings):
                self.reads += 1
            raise found
        return found[0] if found else None

    def read_run(self, path: str, *, skills: Sequence[str], max_bytes: int) -> list[Event]:
        found = self.readings[min(self.reads, len(self.readings) - 1)]
        self.reads += 1
        if isinstance(found, Exception):
            raise found
        return list(found)


def index_of(contracts: Mapping[str, Any], *, labels: Mapping[str, str] | None = None) -> SkillIndex:
    """A skill index that holds these contracts."""
    return SkillIndex(
        index_data(
            roots=[],
            names={name: f"/home/u/.claude/skills/{name}/SKILL.md" for name in contracts},
            labels=dict(labels or {}),
            contracts=dict(contracts),
            routing={},
            scorers={},
            first_steps={},
            sources={},
            skipped=[],
            shadowed=[],
        )
    )


def context(
    root: Path,
    host: Any,
    *,
    contracts: Mapping[str, Any] | None = None,
    kinds: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    switch: str = "on",
    env: Mapping[str, str] | None = None,
    now: float = 1_800_000_000.0,
    left: float = 5.0,
    **event: Any,
) -> Any:
    """What the hook process hands to the feature, for a stop of :data:`SESSION`; ``event`` overrides its fields."""
    contracts = {"investigate": WORKED_CONTRACT} if contracts is None else contracts
    transcript = root / "transcript.jsonl"
    if "transcript_path" not in event and not transcript.exists():
        root.mkdir(parents=True, exist_ok=True)
        transcript.write_text("{}\n", encoding="utf-8")
    fields = {"session_id": SESSION, "transcript_path": str(transcript), "stop_active": False, **event}
    kind = fields.pop("kind", TURN_ENDING)
    plan = FakePlan(built_in_kinds() if kinds is None else kinds)
    deadline = time.monotonic() + left
    made = SimpleNamespace(
        event=HookEvent("claude-code", kind, "Stop", **fields),
        env=dict(env or {}),
        root=str(root / "state"),
        host=host,
        plan=plan,
        switch=Switch(switch, "env"),
        launcher_dir=str(root / "state" / "bin"),
        now=now,
        reads=0,
        after=[],
        left=lambda: deadline - time.monotonic(),
        call=call_isolated,
    )
    index = index_of(contracts, labels=labels)
    made.skills = lambda: index
    made.later = made.after.append
    return made

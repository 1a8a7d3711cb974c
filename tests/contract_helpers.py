"""What the contract tests share: a builder of Claude Code transcripts, a context as the hook has it, small kinds.

The builder writes records of the shapes that Claude Code 2.1.332 was seen to write (stop_block_then_fixed, typed_skill,
agent_background and others): one record a content block, results as user records, hook feedback as a meta record.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gstack.api import CANNOT_TELL, MET, MISSING, TURN_ENDING, Event, Field, HookEvent, Item, Run, ToolCall, Verdict
from gstack.config import Switch
from gstack.isolation import isolated
from gstack.plan import PluginFailed
from gstack.snapshot import SkillIndex

SESSION = "8901bdc4-3070-4b80-9cb4-e27d3b9556b7"

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


# --------------------------------------------------------------------------------------------- transcripts


class Transcript:
    """Writes a session as Claude Code would; every method returns the transcript, so that they chain."""

    def __init__(self, path: Path, *, session: str = SESSION, version: str = "2.1.332") -> None:
        self.path = path
        self.session = session
        self.version = version
        self.records: list[dict[str, Any]] = []
        self._count = 0

    def _next(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}-{self._count:04d}"

    def add(self, record: Mapping[str, Any], *, uuid: str | None = None) -> "Transcript":
        """Any record, with the envelope that all have."""
        self.records.append(
            {
                "parentUuid": self.records[-1].get("uuid") if self.records else None,
                "isSidechain": False,
                "uuid": uuid or self._next("00000000-0000-4000-8000-00000000"),
                "timestamp": f"2026-11-30T12:{self._count // 60 % 60:02d}:{self._count % 60:02d}.000Z",
                "cwd": "/home/u/work",
                "sessionId": self.session,
                "version": self.version,
                "userType": "external",
                "entrypoint": "cli",
                **record,
            }
        )
        return self

    def user(self, content: Any, **more: Any) -> "Transcript":
        return self.add({"type": "user", "message": {"role": "user", "content": content}, **more})

    def assistant(self, block: Mapping[str, Any], *, stop: str = "tool_use", **more: Any) -> "Transcript":
        message = {
            "id": self._next("msg"),
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": [dict(block)],
            "stop_reason": stop,
        }
        return self.add({"type": "assistant", "message": message, "madeBy": "model", **more})

    def prompt(self, text: str) -> "Transcript":
        return self.user(text, promptSource="typed", turnOrigin="human", origin={"kind": "human"})

    def says(self, text: str) -> "Transcript":
        return self.assistant({"type": "text", "text": text}, stop="end_turn")

    def tool(
        self, name: str, arguments: Mapping[str, Any], answer: str = "", *, error: bool = False, **more: Any
    ) -> "Transcript":
        """A call with its result; ``more`` are keys of the result's record."""
        ident = self.call(name, arguments)
        return self.result(ident, answer, error=error, **more)

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        ident = self._next("toolu")
        self.assistant({"type": "tool_use", "id": ident, "name": name, "input": dict(arguments)})
        return ident

    def result(self, ident: str, answer: str = "", *, error: bool = False, **more: Any) -> "Transcript":
        block = {"type": "tool_result", "tool_use_id": ident, "content": answer, "is_error": error}
        return self.user([block], **more)

    def skill(self, name: str = "investigate", args: str = "") -> "Transcript":
        """The Skill tool loads a skill."""
        ident = self.call("Skill", {"skill": name, "args": args})
        self.result(ident, f"Launching skill: {name}", toolUseResult={"success": True, "commandName": name})
        body = f"Base directory for this skill: /home/u/.claude/skills/{name}\n\n# {name}\n"
        return self.user([{"type": "text", "text": body}], isMeta=True, turnCompanion=True, sourceToolUseID=ident)

    def typed(self, name: str = "investigate", args: str = "") -> "Transcript":
        """A person types ``/name``."""
        lines = [f"<command-message>{name}</command-message>", f"<command-name>/{name}</command-name>"]
        if args:
            lines.append(f"<command-args>{args}</command-args>")
        self.user("\n".join(lines), turnOrigin="human", origin={"kind": "human"})
        body = f"Base directory for this skill: /home/u/.claude/skills/{name}\n\n# {name}\n"
        return self.user([{"type": "text", "text": body}], isMeta=True, turnCompanion=True)

    def edit(self, path: str = "/home/u/work/src/auth.ts") -> "Transcript":
        shown = {"filePath": path, "oldString": "a", "newString": "b"}
        arguments = {"file_path": path, "old_string": "a", "new_string": "b"}
        return self.tool("Edit", arguments, f"The file {path} has been updated.", toolUseResult=shown)

    def bash(self, command: str, output: str = "ok", *, error: bool = False) -> "Transcript":
        shown: Any = f"Error: {output}" if error else {"stdout": output, "stderr": "", "interrupted": False}
        return self.tool("Bash", {"command": command}, output, error=error, toolUseResult=shown)

    def feedback(self, reason: str) -> "Transcript":
        """What the host writes after a stop hook blocked."""
        text = f"Stop hook feedback:\n{reason}"
        self.user(text, isMeta=True, rowSource="hook", hookText=True)
        return self.add(
            {
                "type": "attachment",
                "attachment": {
                    "type": "hook_blocking_error",
                    "hookName": "Stop",
                    "hookEvent": "Stop",
                    "toolUseID": self._next("hook"),
                    "blockingError": {"blockingError": reason, "command": "/home/u/.gstack/bin/gstack-hook"},
                },
            }
        )

    def interrupt(self) -> "Transcript":
        return self.user([{"type": "text", "text": "[Request interrupted by user]"}])

    def background_agent(self, agent: str, description: str = "Review", prompt: str = "Review it") -> "Transcript":
        """An agent that was launched and goes on in the background."""
        arguments = {"description": description, "prompt": prompt, "subagent_type": "general-purpose"}
        return self.tool(
            "Agent",
            arguments,
            "Async agent launched successfully.",
            toolUseResult={
                "isAsync": True,
                "status": "async_launched",
                "agentId": agent,
                "description": description,
                "prompt": prompt,
            },
        )

    def agent_done(self, agent: str, status: str = "completed") -> "Transcript":
        text = (
            f"<task-notification>\n<task-id>{agent}</task-id>\n<status>{status}</status>\n"
            f'<summary>Agent "x" {status}</summary>\n<result>done</result>\n</task-notification>'
        )
        return self.user(text, origin={"kind": "task-notification"}, turnOrigin="task_notification")

    def write(self) -> str:
        """Write the file; its path."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(record) + "\n" for record in self.records)
        self.path.write_text(text, encoding="utf-8")
        return str(self.path)


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
        self.reads = 0
        self.whole: Sequence[Event] = ()

    def session_kind(self, env: Mapping[str, str]) -> str | None:
        return self.says

    def read_transcript(self, path: str, *, max_bytes: int) -> list[Event]:
        return list(self.whole)

    def read_run(self, path: str, *, skills: Sequence[str], max_bytes: int) -> list[Event]:
        found = self.readings[min(self.reads, len(self.readings) - 1)]
        self.reads += 1
        if isinstance(found, Exception):
            raise found
        return list(found)


def index_of(contracts: Mapping[str, Any], *, labels: Mapping[str, str] | None = None) -> SkillIndex:
    """A skill index that holds these contracts."""
    return SkillIndex(
        {
            "roots": [],
            "count": len(contracts),
            "names": {name: f"/home/u/.claude/skills/{name}/SKILL.md" for name in contracts},
            "labels": dict(labels or {}),
            "contracts": dict(contracts),
            "routing": {},
            "scorers": {},
            "rest": {"first_steps": {}, "sources": {}, "skipped": [], "shadowed": []},
        }
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

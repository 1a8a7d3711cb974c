"""Records of Claude Code's transcripts for tests of its reader, in the layout of 2.1.332."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gstack.api import Event
from gstack.transcript import LIMIT
from gstack_hosts.claude_code.transcript import read_run, read_transcript

FOOT = {"userType": "external", "entrypoint": "cli", "cwd": "/home/u/work", "sessionId": "s", "version": "2.1.332"}


class Records:
    """A session as a list of records; each method adds one and returns it."""

    def __init__(self, **foot: Any) -> None:
        self.all: list[dict[str, Any]] = []
        self.foot = {**FOOT, **foot}
        self.count = 0

    def uuid(self) -> str:
        self.count += 1
        return f"{self.count:08x}-0000-4000-8000-000000000000"

    def time(self) -> str:
        return f"2026-11-30T{self.count // 3600:02d}:{self.count // 60 % 60:02d}:{self.count % 60:02d}.250Z"

    def add(self, record: dict[str, Any]) -> dict[str, Any]:
        self.all.append(record)
        return record

    def conversation(self, head: dict[str, Any], more: dict[str, Any], *, side: bool = False) -> dict[str, Any]:
        """A record with the envelope of a conversation: ``head`` before its id and time, ``more`` behind them."""
        parent = next((r["uuid"] for r in reversed(self.all) if "uuid" in r), None)
        return self.add(
            {
                "parentUuid": parent,
                "isSidechain": side,
                **head,
                "uuid": self.uuid(),
                "timestamp": self.time(),
                **more,
                **self.foot,
            }
        )

    def user(self, content: Any, *, side: bool = False, **more: Any) -> dict[str, Any]:
        head = {"promptId": "p", "type": "user", "message": {"role": "user", "content": content}}
        return self.conversation(head, more, side=side)

    def prompt(self, text: str) -> dict[str, Any]:
        return self.user(text, promptSource="typed", turnOrigin="human", origin={"kind": "human"})

    def typed(self, name: str, args: str = "") -> dict[str, Any]:
        text = f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>"
        record = self.user(text + (f"\n<command-args>{args}</command-args>" if args else ""), turnOrigin="human")
        self.user([{"type": "text", "text": f"Base directory for this skill: /s/{name}\n\nBODY"}], isMeta=True)
        return record

    def assistant(self, *blocks: dict[str, Any], ident: str = "", side: bool = False, **more: Any) -> dict[str, Any]:
        message = {
            "id": ident or f"msg_{self.count:04d}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": list(blocks),
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 0}},
        }
        return self.conversation({"message": message, "apiBlockIndex": 0, "type": "assistant"}, more, side=side)

    def says(self, text: str, **more: Any) -> dict[str, Any]:
        return self.assistant({"type": "text", "text": text}, **more)

    def call(self, name: str, given: Any, ident: str = "", **more: Any) -> str:
        ident = ident or f"toolu_{self.count:04d}"
        self.assistant({"type": "tool_use", "id": ident, "name": name, "input": given}, **more)
        return ident

    def result(
        self, ident: str, content: Any = "ok", value: Any = None, *, error: bool = False, **more: Any
    ) -> dict[str, Any]:
        block = {"tool_use_id": ident, "type": "tool_result", "content": content}
        if error:
            block = {"type": "tool_result", "content": content, "is_error": True, "tool_use_id": ident}
        more = {"sourceToolAssistantUUID": self.all[-1].get("uuid") if self.all else None, **more}
        if value is not None:
            more = {"toolUseResult": value, **more}
        return self.user([block], **more)

    def tool(self, name: str, given: Any, content: Any = "ok", value: Any = None, **more: Any) -> str:
        ident = self.call(name, given)
        self.result(ident, content, value, **more)
        return ident

    def bash(self, command: str, output: str = "ok", **more: Any) -> str:
        value = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
        return self.tool("Bash", {"command": command}, output, value, **more)

    def skill(self, name: str = "investigate") -> str:
        value = {"success": True, "commandName": name}
        ident = self.tool("Skill", {"skill": name, "args": "x"}, f"Launching skill: {name}", value)
        self.user([{"type": "text", "text": f"Base directory for this skill: /s/{name}"}], isMeta=True)
        return ident

    def attachment(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self.conversation({"attachment": {"type": kind, **fields}, "type": "attachment"}, {})

    def system(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self.conversation({"type": "system", "subtype": kind, **fields}, {})

    # --------------------------------------------------------------------------------------------- as a file

    def data(self, *, spaced: bool = False, ascii_only: bool = False) -> bytes:
        separators = None if spaced else (",", ":")
        text = "".join([json.dumps(r, ensure_ascii=ascii_only, separators=separators) + "\n" for r in self.all])
        return text.encode("utf-8", "surrogatepass")

    def events(self, folder: Path) -> list[Event]:
        """What the reader makes of it."""
        return events_of(self.data(), folder)


def events_of(data: bytes, folder: Path) -> list[Event]:
    return read_transcript(file_of(data, folder), max_bytes=LIMIT)


def run_of(data: bytes, folder: Path, skills: Iterable[str], **how: int) -> list[Event]:
    return read_run(file_of(data, folder), skills=list(skills), max_bytes=LIMIT, **how)


def file_of(data: bytes, folder: Path) -> str:
    path = folder / "session.jsonl"
    path.write_bytes(data)
    return str(path)


def notification(agent: str, status: str = "completed", tool: str = "", result: str = "done") -> str:
    """The envelope that reports the end of background work."""
    named = f"<tool-use-id>{tool}</tool-use-id>\n" if tool else ""
    return (
        f"<task-notification>\n<task-id>{agent}</task-id>\n{named}<output-file>/tmp/x.output</output-file>\n"
        f'<status>{status}</status>\n<summary>Agent "x" finished</summary>\n<result>{result}</result>\n'
        "</task-notification>"
    )


def told(events: Iterable[Event]) -> list[str]:
    """Events as one short line each, for comparing."""
    return [_told(event) for event in events]


def _told(event: Event) -> str:
    parts = [event.type if event.agent is None else f"({event.agent}) {event.type}"]
    if event.origin != "user":
        parts.append(f"from {event.origin}")
    if event.name:
        parts.append(f"{event.name} {event.how}")
    elif event.how:
        parts.append(event.how)
    if event.call is not None and event.type != "agent_finished":
        parts.append(f"{event.call.kind} {event.call.id}")
    if event.ref:
        parts.append(event.ref)
    if event.type == "result":
        parts.append("denied" if event.denied else {True: "ok", False: "failed", None: "open"}[event.ok])
    if event.text:
        parts.append(repr(event.text if len(event.text) < 40 else event.text[:37] + "..."))
    return " ".join(parts)

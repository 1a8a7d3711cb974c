"""A session as Claude Code would write it down, built step by step; it reads like the session it stands for::

    t = Transcript(tmp_path / "session.jsonl")
    t.prompt("the login fails").load("investigate").edit("src/auth.py").shell("pytest", ok=True).say("Fixed.")
    reply = run_hook("Stop", t.stop())

Records have the shapes that Claude Code 2.1.332 was seen to write: one record a content block, results as records of
the user, a hook's feedback as a meta record. Cold.
"""

import json
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

#: The session's id, where none is given.
SESSION = "8901bdc4-3070-4b80-9cb4-e27d3b9556b7"
_HOME = "/home/u"


class Transcript:
    """The builder; every step returns it, so that steps chain. Nothing is written before :meth:`write` or
    :meth:`stop`.

    ``start`` is when the first record was written (seconds since the epoch), and each further one a second later;
    None: records carry the time at which they were added.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        session: str = SESSION,
        start: float | None = None,
        cwd: str = f"{_HOME}/work",
        version: str = "2.1.332",
    ) -> None:
        self.path = Path(path)
        self.session = session
        self.cwd = cwd
        self.version = version
        self.records: list[dict[str, Any]] = []
        self._start = start
        self._last = 0.0
        self._count = 0

    def __fspath__(self) -> str:
        return str(self.path)

    # ------------------------------------------------------------------------------------ what people do

    def prompt(self, text: str) -> "Transcript":
        """A person types a prompt."""
        return self.user(text, promptSource="typed", turnOrigin="human", origin={"kind": "human"})

    def typed(self, skill: str, args: str = "") -> "Transcript":
        """A person types ``/skill args``, which loads the skill."""
        lines = [f"<command-message>{skill}</command-message>", f"<command-name>/{skill}</command-name>"]
        if args:
            lines.append(f"<command-args>{args}</command-args>")
        self.user("\n".join(lines), turnOrigin="human", origin={"kind": "human"})
        return self.user([_text(_body(skill))], isMeta=True, turnCompanion=True)

    def interrupt(self) -> "Transcript":
        """A person breaks the turn off."""
        return self.user([_text("[Request interrupted by user]")])

    # ------------------------------------------------------------------------------------ what the agent does

    def say(self, text: str) -> "Transcript":
        """The agent says something and ends its turn."""
        return self.assistant(_text(text), stop="end_turn")

    def load(self, skill: str, args: str = "") -> "Transcript":
        """The agent loads a skill with the host's skill tool."""
        ident = self.call("Skill", {"skill": skill, "args": args})
        self.result(ident, f"Launching skill: {skill}", toolUseResult={"success": True, "commandName": skill})
        return self.user([_text(_body(skill))], isMeta=True, turnCompanion=True, sourceToolUseID=ident)

    def edit(self, path: str | None = None) -> "Transcript":
        """The agent edits a file (None: some file in the session's folder)."""
        path = f"{self.cwd}/src/auth.ts" if path is None else path
        shown = {"filePath": path, "oldString": "a", "newString": "b"}
        arguments = {"file_path": path, "old_string": "a", "new_string": "b"}
        return self.tool("Edit", arguments, f"The file {path} has been updated.", toolUseResult=shown)

    def read(self, path: str, text: str = "") -> "Transcript":
        """The agent reads a file that holds ``text``."""
        shown = {"type": "text", "file": {"filePath": path, "content": text}}
        return self.tool("Read", {"file_path": path}, text, toolUseResult=shown)

    def shell(self, command: str, output: str = "ok", *, ok: bool = True) -> "Transcript":
        """The agent runs a shell command, which prints ``output`` and succeeds or fails."""
        shown: Any = {"stdout": output, "stderr": "", "interrupted": False} if ok else f"Error: Exit code 1\n{output}"
        answer = output if ok else f"Exit code 1\n{output}"
        return self.tool("Bash", {"command": command}, answer, error=not ok, toolUseResult=shown)

    def agent(self, description: str, prompt: str = "Do it.", *, agent: str = "a1b2c3") -> "Transcript":
        """The agent sends a subagent and waits until it is done."""
        shown = {"status": "completed", "agentId": agent, "description": description, "prompt": prompt}
        return self.tool("Agent", _launch(description, prompt), "done", toolUseResult=shown)

    def background_agent(self, agent: str, description: str = "Review", prompt: str = "Review it.") -> "Transcript":
        """The agent sends a subagent that goes on in the background."""
        shown = {"isAsync": True, "status": "async_launched", "agentId": agent}
        shown |= {"description": description, "prompt": prompt}
        answer = "Async agent launched successfully."
        return self.tool("Agent", _launch(description, prompt), answer, toolUseResult=shown)

    def agent_done(self, agent: str, status: str = "completed") -> "Transcript":
        """The host tells the agent that a subagent in the background has ended."""
        text = (
            f"<task-notification>\n<task-id>{agent}</task-id>\n<status>{status}</status>\n"
            f'<summary>Agent "x" {status}</summary>\n<result>done</result>\n</task-notification>'
        )
        return self.user(text, origin={"kind": "task-notification"}, turnOrigin="task_notification")

    # ------------------------------------------------------------------------------------ what the host does

    def feedback(self, reason: str) -> "Transcript":
        """The host tells the agent why a hook held its stop."""
        self.user(f"Stop hook feedback:\n{reason}", isMeta=True, rowSource="hook", hookText=True)
        blocked = {"blockingError": reason, "command": f"{_HOME}/.gstack/bin/gstack-hook"}
        return self.add(
            {
                "type": "attachment",
                "attachment": {
                    "type": "hook_blocking_error",
                    "hookName": "Stop",
                    "hookEvent": "Stop",
                    "toolUseID": self._next("hook"),
                    "blockingError": blocked,
                },
            }
        )

    # ------------------------------------------------------------------------------------ any tool, any record

    def tool(
        self, name: str, arguments: Mapping[str, Any], answer: str = "", *, error: bool = False, **more: Any
    ) -> "Transcript":
        """A call of any tool with its result; ``more`` are keys of the result's record."""
        return self.result(self.call(name, arguments), answer, error=error, **more)

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """A call alone; gives its id, for :meth:`result`."""
        ident = self._next("toolu")
        self.assistant({"type": "tool_use", "id": ident, "name": name, "input": dict(arguments)})
        return ident

    def result(self, ident: str, answer: str = "", *, error: bool = False, **more: Any) -> "Transcript":
        """The result of a call; ``more`` are keys of its record."""
        block = {"type": "tool_result", "tool_use_id": ident, "content": answer, "is_error": error}
        return self.user([block], **more)

    def user(self, content: Any, **more: Any) -> "Transcript":
        """A record of the user with this content."""
        return self.add({"type": "user", "message": {"role": "user", "content": content}, **more})

    def assistant(self, block: Mapping[str, Any], *, stop: str = "tool_use", **more: Any) -> "Transcript":
        """A record of the model with this content block."""
        message = {
            "id": self._next("msg"),
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": [dict(block)],
            "stop_reason": stop,
        }
        return self.add({"type": "assistant", "message": message, "madeBy": "model", **more})

    def add(self, record: Mapping[str, Any], *, uuid: str | None = None) -> "Transcript":
        """Any record, with the envelope that all have."""
        uuid = uuid or self._next("00000000-0000-4000-8000-00000000")
        self.records.append(
            {
                "parentUuid": self.records[-1].get("uuid") if self.records else None,
                "isSidechain": False,
                "uuid": uuid,
                "timestamp": self._stamp(),
                "cwd": self.cwd,
                "sessionId": self.session,
                "version": self.version,
                "userType": "external",
                "entrypoint": "cli",
                **record,
            }
        )
        return self

    def _next(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}-{self._count:04d}"

    def _stamp(self) -> str:
        # no two records share a time
        now = time.time() if self._start is None else self._start + len(self.records)
        self._last = max(now, self._last + 0.001)
        moment = datetime.fromtimestamp(self._last, timezone.utc)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    # ------------------------------------------------------------------------------------ handing it over

    def write(self) -> str:
        """Write the file as it is now; its path."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(record) + "\n" for record in self.records)
        self.path.write_text(text, encoding="utf-8", newline="\n")
        return str(self.path)

    @property
    def last_text(self) -> str:
        """What the agent said last; ``""`` when it said nothing."""
        for record in reversed(self.records):
            if record["type"] == "assistant" and record["message"]["content"][0].get("type") == "text":
                return str(record["message"]["content"][0]["text"])
        return ""

    def stop(self, *, active: bool = False, **more: Any) -> dict[str, Any]:
        """Write the file; the payload of the stop that comes now. ``active``: a hook held the stop before."""
        return {
            "session_id": self.session,
            "transcript_path": self.write(),
            "cwd": self.cwd,
            "permission_mode": "default",
            "hook_event_name": "Stop",
            "stop_hook_active": active,
            "last_assistant_message": self.last_text,
            "background_tasks": [],
            "session_crons": [],
            **more,
        }


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _body(skill: str) -> str:
    return f"Base directory for this skill: {_HOME}/.claude/skills/{skill}\n\n# {skill}\n"


def _launch(description: str, prompt: str) -> dict[str, str]:
    return {"description": description, "prompt": prompt, "subagent_type": "general-purpose"}

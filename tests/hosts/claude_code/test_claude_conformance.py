"""The kit that outside host adapters inherit, on the built-in one: sessions that the builder writes, and real ones."""

from pathlib import Path
from typing import Any

import pytest

from gstack import api
from gstack.api import Answer
from gstack.testing import Capture, HostAdapterConformance, Sample, Transcript
from gstack.testing.host_files import TranscriptChecks
from gstack_hosts import claude_code

LIVE = "reference/claude-code-live/2.1.332"
BASE = {
    "session_id": "93a4e942-e379-4d31-b191-6b28cb19f9aa",
    "transcript_path": "/home/u/.claude/projects/-home-u-work/93a4e942.jsonl",
    "cwd": "/home/u/work",
    "prompt_id": "493e1e2e",
    "permission_mode": "default",
}
ENV = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": "/home/u/work", "CLAUDE_CODE_ENTRYPOINT": "cli"}
SETTINGS = [
    None,
    b"",
    b"{}",
    b'{\n  "model": "opus",\n  "hooks": {}\n}\n',
    b'{\r\n\t"hooks": {\r\n\t\t"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]\r\n\t}\r\n}\r\n',
    b'\xef\xbb\xbf{"env": {"A": "\\u00e9"}, "hooks": {"PreToolUse": []}}',
]


def payload(event: str, **more: Any) -> dict[str, Any]:
    return {**BASE, "hook_event_name": event, **more}


def built(folder: Path) -> Sample:
    session = Transcript(folder / "built.jsonl")
    session.prompt("the login fails").load("investigate").edit("src/auth.py").shell("pytest -q", ok=False)
    session.agent("Review the fix").say("Fixed.").feedback("SKILL_CONTRACT_UNMET investigate: missing").interrupt()
    return Sample(
        session.write(),
        [
            {"type": "prompt", "text": "the login fails", "origin": "user"},
            {"type": "call", "call.kind": "skill"},
            {"type": "load", "name": "investigate", "how": "tool"},
            {"type": "result", "ok": True},
            {"type": "call", "call.kind": "edit", "call.paths": ("src/auth.py",)},
            {"type": "result", "ok": True},
            {"type": "call", "call.kind": "shell", "call.command": "pytest -q"},
            {"type": "result", "ok": False, "denied": False},
            {"type": "call", "call.kind": "agent", "call.description": "Review the fix"},
            {"type": "result", "ok": True},
            {"type": "agent_started", "ref": "a1b2c3"},
            {"type": "agent_finished", "ref": "a1b2c3"},
            {"type": "text", "text": "Fixed."},
            {"type": "continuation", "text": "SKILL_CONTRACT_UNMET investigate: missing"},
            {"type": "interrupted"},
        ],
    )


class TestClaudeCode(HostAdapterConformance):
    plugin = claude_code
    builtin = True

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.tmp = tmp_path

    def captures(self) -> list[Capture]:
        skill = payload("PreToolUse", tool_name="Skill", tool_input={"skill": "/qa"}, tool_use_id="t1")
        typed = payload("UserPromptExpansion", expansion_type="command", command_name="/qa", command_args="x")
        stop = payload("Stop", stop_hook_active=False, last_assistant_message="Done.", background_tasks=[])
        return [
            Capture(
                payload("UserPromptSubmit", prompt="fix it"),
                {"kind": api.PROMPT_SUBMITTED, "prompt": "fix it"},
                env=ENV,
            ),
            Capture(skill, {"kind": api.TOOL_PROPOSED, "tool": {"kind": "skill", "skill": "qa", "id": "t1"}}, env=ENV),
            Capture(typed, {"kind": api.COMMAND_TYPED, "command": "qa", "command_args": "x"}, env=ENV),
            Capture(
                stop, {"kind": api.TURN_ENDING, "stop_active": False, "pending_agents": (), "scope": "main"}, env=ENV
            ),
            Capture(
                payload("SubagentStop", agent_id="a1"), {"kind": api.SUBAGENT_ENDING, "scope": "subagent"}, env=ENV
            ),
            Capture(payload("Notification", message="hi"), None, env=ENV),
        ]

    def samples(self) -> list[Sample]:
        return [built(self.tmp)]

    def rendered(self) -> list[tuple[Answer, str, Any]]:
        nested = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
        hint = {"hookEventName": "UserPromptSubmit", "additionalContext": "a hint"}
        return [
            (Answer(inject="a hint"), "UserPromptSubmit", {"hookSpecificOutput": hint}),
            (Answer(deny="no"), "PreToolUse", {"hookSpecificOutput": nested}),
            (Answer(deny="no"), "UserPromptExpansion", {"decision": "block", "reason": "no"}),
            (Answer(block_stop="no"), "Stop", {"decision": "block", "reason": "no"}),
            (Answer(notice="seen"), "Stop", {"systemMessage": "seen"}),
            (Answer(), "Stop", None),
        ]

    def settings_files(self) -> list[bytes | None]:
        return list(SETTINGS)

    def broken_settings(self) -> list[bytes]:
        return [b'{"hooks": {', b"// comment\n{}", b'{"hooks": []}', b"\xff\xfe{}"]


class TestLiveSessions(TranscriptChecks):
    """The same checks of transcripts on real ones, of the scenarios that hold the most sorts of records."""

    plugin = claude_code
    builtin = True

    @pytest.fixture(autouse=True)
    def folder(self, shared: Path) -> None:
        self.live = shared / LIVE

    def samples(self) -> list[Sample]:
        found = []
        for scenario in ("skill_call", "stop_block_then_fixed"):
            (path,) = (self.live / scenario / "projects").glob("*/*.jsonl")
            events = claude_code.ClaudeCode().read_transcript(str(path), max_bytes=1 << 25)
            assert [event.name for event in events if event.type == "load"] == ["investigate"]
            found.append(Sample(path, [{"type": event.type} for event in events]))
        return found

"""What Claude Code sends and writes, made up for ``gstack doctor --live``: payloads, environment, a transcript.

The keys are those that Claude Code 2.1.332 was seen to send (tests/live compares them with the real ones). Also here:
which commands its settings register.
"""

import json
from collections.abc import Mapping
from typing import Any

from gstack.protocols import RegisteredCommand
from gstack_hosts.claude_code.hook_entries import find
from gstack_hosts.claude_code.settings_check import layers

#: What is known to keep hooks from running where everything looks right.
GAPS = (
    "Claude Code starts no hook with --bare or --safe-mode, nor in a folder that isn't trusted yet; its VS Code "
    "extension was seen not to start prompt, stop and tool hooks in several versions, mostly on Windows: try `claude` "
    "in a terminal"
)

#: How long a hook may take where its entry sets no limit, in seconds.
_DEFAULT_TIMEOUT = 600.0


def sample_env(cwd: str) -> dict[str, str]:
    """The variables that an interactive session in ``cwd`` gives to its hooks."""
    return {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_SESSION_ATTENDED": "1",
        "CLAUDE_PROJECT_DIR": cwd,
    }


def sample_payloads(
    cwd: str,
    *,
    session_id: str,
    prompt: str = "",
    command: str = "",
    skill: str = "",
    subagent: str = "",
    read: str = "",
    transcript_path: str = "",
    final_text: str = "",
    stop_active: bool = False,
) -> dict[str, dict[str, Any]]:
    """One payload of each use: ``prompt``, ``command``, ``skill``, ``subagent``, ``read`` and ``stop``."""
    common = {
        "session_id": session_id,
        "transcript_path": transcript_path,
        "cwd": cwd,
        "prompt_id": "00000000-0000-4000-8000-000000000000",
        "permission_mode": "default",
    }
    typed = {"expansion_type": "slash_command", "command_source": "userSettings", "command_args": ""}
    agent = {"description": "A probe", "prompt": "A probe of gstack doctor", "subagent_type": subagent}
    stop = {"stop_hook_active": stop_active, "background_tasks": [], "session_crons": []}
    return {
        "prompt": {**common, "hook_event_name": "UserPromptSubmit", "prompt": prompt},
        "command": {
            **common,
            "hook_event_name": "UserPromptExpansion",
            **typed,
            "command_name": command,
            "prompt": f"/{command}",
        },
        "skill": {**common, **_tool("Skill", {"skill": skill})},
        "subagent": {**common, **_tool("Agent", agent)},
        "read": {**common, **_tool("Read", {"file_path": read})},
        "stop": {
            **common,
            "effort": {"level": "medium"},
            "hook_event_name": "Stop",
            **stop,
            "last_assistant_message": final_text,
        },
    }


def _tool(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {
        "effort": {"level": "medium"},
        "hook_event_name": "PreToolUse",
        "tool_name": name,
        "tool_input": given,
        "tool_use_id": "toolu_gstack_doctor",
    }


def sample_transcript(cwd: str, *, session_id: str, skill: str, final_text: str) -> bytes:
    """A short session: ``skill`` is loaded, a file is edited, and the agent says ``final_text`` and wants to stop."""
    records: list[dict[str, Any]] = [_record("user", "do it", cwd, session_id, 0)]
    for name, given, result in (
        ("Skill", {"skill": skill}, {"success": True, "commandName": skill}),
        ("Edit", {"file_path": f"{cwd}/probe.txt", "old_string": "a", "new_string": "b"}, {"filePath": "probe.txt"}),
    ):
        key = f"toolu_probe_{name}"
        use = {"type": "tool_use", "id": key, "name": name, "input": given}
        block = {"type": "tool_result", "tool_use_id": key, "content": "done"}
        records.append(_record("assistant", [use], cwd, session_id, len(records)))
        records.append({**_record("user", [block], cwd, session_id, len(records)), "toolUseResult": result})
    last = [{"type": "text", "text": final_text}]
    records.append(_record("assistant", last, cwd, session_id, len(records)))
    return b"".join([json.dumps(record).encode("ascii") + b"\n" for record in records])


def _record(kind: str, content: Any, cwd: str, session_id: str, place: int) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": f"{session_id}-{place}",
        "sessionId": session_id,
        "cwd": cwd,
        "isSidechain": False,
        "userType": "external",
        "message": {"role": kind, "id": f"msg_{place}", "content": content},
    }


def registered_commands(env: Mapping[str, str], cwd: str) -> list[RegisteredCommand]:
    """The commands of gstack's that a session in ``cwd`` would run, from every settings file that applies there."""
    commands = []
    for path, root in layers(cwd, env):
        for have in find(root):
            timeout = have.item.get("timeout")
            seconds = timeout.plain() if timeout is not None else None
            limit = float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else _DEFAULT_TIMEOUT
            if have.counts:
                commands.append(RegisteredCommand(have.event, (have.command, *have.args), limit, path))
    return commands

"""Claude Code's hook payloads and answers.

Hot: imported by the hook on every event, so builtins only. Facts are those measured on Claude Code 2.1.332: which keys
an event carries, which texts nobody typed, which answers have an effect.
"""

from gstack.api import (
    COMMAND_TYPED,
    PROMPT_SUBMITTED,
    SUBAGENT_ENDING,
    TOOL_PROPOSED,
    TURN_ENDING,
    HookEvent,
)
from gstack.lowlevel import dump_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gstack.api import Answer

_KINDS = {
    "UserPromptSubmit": PROMPT_SUBMITTED,
    "UserPromptExpansion": COMMAND_TYPED,
    "PreToolUse": TOOL_PROPOSED,
    "Stop": TURN_ENDING,
    "SubagentStop": SUBAGENT_ENDING,
}

#: ``source`` of a prompt that nobody typed.
_NOT_TYPED_SOURCES = frozenset(["system", "loop_wakeup", "schedule_wakeup", "poll_event"])

#: Background work whose outputs may still arrive (contracts C4); shells and monitors don't count.
_AWAITED = frozenset(["subagent", "workflow", "teammate", "cloud session", "cloud_session", "remote_agent"])

#: Variables of other hosts whose hooks may run a command that was registered for Claude Code.
_OTHER_HOSTS = ("COPILOT_CLI", "GEMINI_SESSION_ID", "CURSOR_VERSION", "QWEN_CODE", "QWEN_PROJECT_DIR")


def claims(env: "Mapping[str, str]", payload: "Mapping[str, Any]") -> str:
    """Whether a payload is Claude Code's: ``mine``, ``unsure`` or ``foreign`` (hosts-protocols 13.1)."""
    if any(env.get(name) for name in _OTHER_HOSTS) or "cursor_version" in payload:
        return "foreign"
    if "hookEventName" in payload or ("turn_id" in payload and "model" in payload):
        return "foreign"
    name = payload.get("hook_event_name")
    if not isinstance(name, str):
        return "unsure" if "session_id" in payload or "tool_name" in payload else "foreign"
    if name not in _KINDS:
        return "unsure" if name[:1].isupper() else "foreign"
    return "mine" if env.get("CLAUDECODE") or env.get("CLAUDE_PROJECT_DIR") else _by_shape(payload)


def _by_shape(payload: "Mapping[str, Any]") -> str:
    """Without Claude Code's variables: its payloads carry no time stamp, several look-alikes do."""
    if "timestamp" in payload:
        return "foreign"
    return "mine" if isinstance(payload.get("transcript_path"), str) else "unsure"


def decode(payload: "Mapping[str, Any]", env: "Mapping[str, str]") -> "HookEvent | None":
    """The payload in neutral words; None for an event that gstack has no use for, or one that lacks what it needs."""
    name = payload.get("hook_event_name")
    if name is None and "tool_name" in payload:
        name = "PreToolUse"  # the shape that people pipe in by hand
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(name, str):
        return None
    agent = _text(payload.get("agent_id"))
    event = HookEvent(
        "claude-code",
        kind,
        name,
        scope="subagent" if agent else "main",
        session_id=_text(payload.get("session_id")),
        turn_id=_text(payload.get("prompt_id")),
        agent_id=agent,
        cwd=_text(payload.get("cwd")),
        workspace=env.get("CLAUDE_PROJECT_DIR") or None,
        interactive=_interactive(env),
        transcript_path=_text(payload.get("transcript_path")),
        raw=payload,
    )
    fill = _FILL.get(kind)
    return event if fill is None or fill(event, payload) else None


def _text(value: object) -> "str | None":
    return value if isinstance(value, str) and value else None


def _interactive(env: "Mapping[str, str]") -> "bool | None":
    kind = session_kind(env)
    return None if kind is None else kind == "interactive"


def session_kind(env: "Mapping[str, str]") -> "str | None":
    """``interactive`` or ``headless`` where Claude Code's own variables say so (contracts C4)."""
    attended = env.get("CLAUDE_CODE_SESSION_ATTENDED")
    if attended in ("0", "1"):
        return "interactive" if attended == "1" else "headless"
    return {"cli": "interactive", "sdk-cli": "headless"}.get(env.get("CLAUDE_CODE_ENTRYPOINT", ""))


def _fill_prompt(event: HookEvent, payload: "Mapping[str, Any]") -> bool:
    prompt = payload.get("prompt")
    if not isinstance(prompt, str):
        return False
    event.prompt = prompt
    event.origin = "host" if payload.get("source") in _NOT_TYPED_SOURCES else origin_of_prompt(prompt)
    return True


def origin_of_prompt(text: str) -> str:
    """Who wrote a prompt: ``user``, ``continuation`` for a stop hook's feedback, or one of the client's own
    envelopes."""
    from gstack_hosts.claude_code.envelopes import feedback, is_interruption, origin_of

    if feedback(text) is not None or is_interruption(text):
        return "continuation"
    return origin_of(text, {})


def _fill_command(event: HookEvent, payload: "Mapping[str, Any]") -> bool:
    name = payload.get("command_name")
    if not isinstance(name, str) or not name.strip():
        return False
    event.command = name.strip().lstrip("/")
    event.command_args = _text(payload.get("command_args"))
    event.command_kind = "mcp" if payload.get("expansion_type") == "mcp_prompt" else "skill"
    event.prompt = _text(payload.get("prompt"))
    return True


def _fill_tool(event: HookEvent, payload: "Mapping[str, Any]") -> bool:
    name, given = payload.get("tool_name"), payload.get("tool_input")
    if not isinstance(name, str) or not isinstance(given, dict):
        return False
    from gstack_hosts.claude_code.tools import tool_call

    event.tool = tool_call(name, given, _text(payload.get("tool_use_id")))
    return True


def _fill_stop(event: HookEvent, payload: "Mapping[str, Any]") -> bool:
    active = payload.get("stop_hook_active")
    event.stop_active = active if isinstance(active, bool) else None
    last = payload.get("last_assistant_message")
    event.last_assistant_text = last if isinstance(last, str) else None
    tasks = payload.get("background_tasks")
    if isinstance(tasks, list):
        event.pending_agents = tuple(
            str(task.get("id") or "?")
            for task in tasks
            if isinstance(task, dict) and task.get("type") in _AWAITED and task.get("id") != event.agent_id
        )
    return True


_FILL = {
    PROMPT_SUBMITTED: _fill_prompt,
    COMMAND_TYPED: _fill_command,
    TOOL_PROPOSED: _fill_tool,
    TURN_ENDING: _fill_stop,
    SUBAGENT_ENDING: _fill_stop,
}


def render(answer: "Answer", event: HookEvent) -> bytes:
    """One JSON document in the form that has an effect on this event, or nothing.

    Context and denials are nested with ``hookEventName``, or they are dropped silently; a typed command and
    a stop are held by the flat form; ``systemMessage`` is seen by the person alone.
    """
    out: dict[str, Any] = {}
    name = event.native_name
    if answer.deny and event.kind == TOOL_PROPOSED:
        out["hookSpecificOutput"] = {
            "hookEventName": name,
            "permissionDecision": "deny",
            "permissionDecisionReason": answer.deny,
        }
    elif answer.deny or answer.block_stop:
        out["decision"] = "block"
        out["reason"] = answer.deny or answer.block_stop
    elif answer.inject and event.kind in (PROMPT_SUBMITTED, COMMAND_TYPED, TOOL_PROPOSED):
        out["hookSpecificOutput"] = {"hookEventName": name, "additionalContext": answer.inject}
    if answer.notice:
        out["systemMessage"] = answer.notice
    return dump_json(out).encode("ascii") + b"\n" if out else b""

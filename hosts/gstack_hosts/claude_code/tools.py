"""Claude Code's tools in neutral words: the calls, and what their results say.

Hot: imported by the hook on tool calls and stops, so builtins only. One table for payloads and transcripts; names are
those of 2025 and 2026 (``Task`` became ``Agent``; ``MultiEdit``, ``LS`` and ``NotebookRead`` are gone, but old
transcripts have them).
"""

from gstack.values.tools import ToolCall, skill_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: Native name -> kind (:data:`gstack.api.TOOL_KINDS`). ``mcp__`` names are ``mcp``, all others ``other``.
KINDS = {
    "Bash": "shell",
    "PowerShell": "shell",
    "Edit": "edit",
    "Write": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Read": "read",
    "NotebookRead": "read",
    "Grep": "search",
    "Glob": "search",
    "LS": "search",
    "Skill": "skill",
    "Agent": "agent",
    "Task": "agent",
    "TaskOutput": "agent_wait",
    "AgentOutputTool": "agent_wait",
    "WebFetch": "web",
    "WebSearch": "web",
    "AskUserQuestion": "ask",
}

_PATHS = ("file_path", "notebook_path", "path")


def tool_call(name: str, input: "Mapping[str, Any]", id: "str | None" = None) -> ToolCall:
    """The call of tool ``name`` with the host's argument object, which is kept as ``input``.

    A skill's name loses the slash that models put before it; arguments of another type than the tool's are left out.
    """
    kind = KINDS.get(name) or ("mcp" if name.startswith("mcp__") else "other")
    call = ToolCall(kind, name, id=id, input=input)
    fill = _FILL.get(kind)
    if fill is not None:
        fill(call, input)
    return call


def _text(value: object) -> "str | None":
    return value if isinstance(value, str) else None


def _shell(call: ToolCall, given: "Mapping[str, Any]") -> None:
    call.command = _text(given.get("command"))
    call.description = _text(given.get("description"))
    call.background = given.get("run_in_background") is True


def _file(call: ToolCall, given: "Mapping[str, Any]") -> None:
    for key in _PATHS:
        path = given.get(key)
        if isinstance(path, str) and path:
            call.paths = (path,)
            return


def _skill(call: ToolCall, given: "Mapping[str, Any]") -> None:
    said = given.get("skill") or given.get("command")  # 2025: {"command": "name"}
    if isinstance(said, str):
        call.skill = skill_name(said) or None


def _agent(call: ToolCall, given: "Mapping[str, Any]") -> None:
    call.agent_type = _text(given.get("subagent_type"))
    call.agent_name = _text(given.get("name"))
    call.description = _text(given.get("description"))
    call.prompt = _text(given.get("prompt"))
    call.background = given.get("run_in_background") is True


_FILL = {"shell": _shell, "edit": _file, "read": _file, "skill": _skill, "agent": _agent}


def load_of(call: ToolCall) -> "tuple[str | None, str | None]":
    """The skill that a call loads when it succeeds, and its file where the call names one; (None, None): no skill.

    Reading ``skills/<name>/SKILL.md`` is a load; a ``SKILL.md`` elsewhere is the source in somebody's checkout
    (contracts C3).
    """
    if call.kind == "skill":
        return call.skill, None
    if call.kind != "read" or not call.paths:
        return None, None
    path = call.paths[0]
    parts = path.replace("\\", "/").split("/")
    if len(parts) > 2 and parts[-1] == "SKILL.md" and parts[-3] == "skills" and parts[-2] not in ("", ".", ".."):
        return parts[-2], path
    return None, None


# ---------------------------------------------------------------------------------------------- results

# facts: results of 2025 to Claude Code 2.1.332

#: What the result of a call that never ran starts with, where the record itself doesn't say so (before 2.1.2xx).
_REFUSED = (
    "<tool_use_error>",
    "The user doesn't want to ",
    "The user declined to answer",
    "Permission to use ",
    "Permission prompt was aborted",
    "Permission for this action has been denied",
    "Tool permission request failed",
    "Claude requested permissions to ",
    "This command requires approval",
    "Skill execution blocked by permission rules",
    "Agent type '",
)
#: Failures of a shell that did start, beside ``Exit code N``.
_RAN = ("Exit code ", "Command timed out", "[Tool result missing due to internal error]")


def content_text(content: object) -> str:
    """The text of a result's or prompt's content: a text, or the text blocks of a list, one a line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join([text for text in texts if isinstance(text, str)])


def refused(text: str, record: "Mapping[str, Any]", shell: bool) -> bool:
    """Whether a failed call never ran: denied, rejected, blocked by a hook, or not a valid call."""
    from gstack_hosts.claude_code.envelopes import INTERRUPTED  # here, since the gate needs none of it

    if isinstance(record.get("toolDenialKind"), str) or text.startswith((*_REFUSED, INTERRUPTED)):
        return True
    decision = record.get("permissionDecision")
    if isinstance(decision, dict) and decision.get("decision") == "reject":
        return True
    head = text[:200]
    if (head.startswith("PreToolUse:") and " hook error:" in head) or " operation blocked by hook" in head:
        return True
    # Before hooks were named in the result, it held their reason alone. A shell's own failures tell the exit code,
    # since version 2.
    version = record.get("version")
    modern = isinstance(version, str) and version[:1].isdigit() and version[:2] not in ("0.", "1.")
    return shell and modern and not text.startswith(_RAN)


def in_background(text: str) -> bool:
    """Whether a shell's command goes on in the background, so that how it ends isn't known."""
    head = text[:200]
    return head.startswith("Command ") and (
        "running in background with ID" in head or " moved to the background" in head or " backgrounded by user" in head
    )


def agents_of(call: "ToolCall | None", value: object, content: object) -> "tuple[str | None, tuple[str, str] | None]":
    """The agent that a result which is no failure starts, and the one that it ends with its status; None for none.

    ``value`` is the record's ``toolUseResult``, ``content`` the result's own. Teammates that were spawned aren't
    told: they never report an end, and the stop hook's payload lists them.
    """
    if not isinstance(value, dict):
        launched = call is not None and call.kind == "agent" and content_text(content)
        if launched and launched.startswith("Async agent launched"):
            ident = launched.partition("agentId:")[2].split(None, 1)
            return (ident[0] if ident else None), None
        return None, None
    status = value.get("status")
    ref = value.get("agentId") or value.get("taskId")
    resumed = value.get("resumedAgentId")
    if isinstance(ref, str) and status in ("async_launched", "remote_launched"):
        return ref, None
    if isinstance(ref, str) and status == "completed":
        return ref, (ref, "completed")
    if isinstance(resumed, str):
        return resumed, None
    return None, _ended_task(call, value)


def _ended_task(call: "ToolCall | None", value: "Mapping[str, Any]") -> "tuple[str, str] | None":
    """The task whose end a call asked for, or waited for."""
    if call is None:
        return None
    if call.kind == "agent_wait":
        from gstack_hosts.claude_code.envelopes import ENDED

        task = value.get("task")
        ref, status = (task.get("task_id"), task.get("status")) if isinstance(task, dict) else (None, None)
        if isinstance(ref, str) and isinstance(status, str) and status in ENDED:
            return ref, status
    elif call.native_name in ("TaskStop", "KillShell") and isinstance(value.get("task_id"), str):
        return value["task_id"], "killed"
    return None

"""Claude Code's tools in neutral words: one table for payloads and transcripts.

Hot: imported by the hook on tool calls and stops, so builtins only. Names are those of 2025 and 2026 (``Task`` became
``Agent``; ``MultiEdit``, ``LS`` and ``NotebookRead`` are gone, but old transcripts have them).
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

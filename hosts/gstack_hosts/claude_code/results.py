"""What the result of a tool call says: its text, whether the call ever ran, which agents it starts or ends.

Hot: the transcript reader needs it, so builtins only. Facts: results of 2025 to Claude Code 2.1.332.
"""

from gstack_hosts.claude_code.envelopes import ENDED, INTERRUPTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gstack.api import ToolCall

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
    INTERRUPTED,
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
    if isinstance(record.get("toolDenialKind"), str) or text.startswith(_REFUSED):
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
        task = value.get("task")
        ref, status = (task.get("task_id"), task.get("status")) if isinstance(task, dict) else (None, None)
        if isinstance(ref, str) and isinstance(status, str) and status in ENDED:
            return ref, status
    elif call.native_name in ("TaskStop", "KillShell") and isinstance(value.get("task_id"), str):
        return value["task_id"], "killed"
    return None

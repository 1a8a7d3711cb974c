"""What holds for a whole session of Claude Code: its folder, whether a person sat at it, its subagents' files. Cold."""

import os
from typing import Any

from gstack.lowlevel import load_json, read_file

#: How much of a transcript's beginning is looked at, in bytes; more where a first message is that long.
_HEADS = (1 << 16, 1 << 21)
#: Whether a person sits there, by ``entrypoint``: what the hook reads from its environment (contracts C4).
_ATTENDED = {"cli": True, "sdk-cli": False}


def about(path: str) -> "dict[str, Any]":
    """``cwd``, ``interactive`` and ``session_id`` of a transcript, from its first message. Never raises."""
    for limit in _HEADS:
        try:
            head = read_file(path, limit)
        except (OSError, ValueError):
            return {}
        found = _first_message(head)
        if found or len(head) < limit:
            return found
    return {}


def _first_message(head: bytes) -> "dict[str, Any]":
    at = head.find(b'"cwd"')
    while at >= 0:
        # a message has all of them; a pasted text that holds the word is escaped, a tool's argument isn't on this level
        end = head.find(b"\n", at)
        try:
            record = load_json(head[head.rfind(b"\n", 0, at) + 1 : end if end >= 0 else len(head)])
        except ValueError:
            record = None
        if isinstance(record, dict) and isinstance(record.get("cwd"), str) and record["cwd"]:
            return _facts(record)
        at = head.find(b'"cwd"', end) if end >= 0 else -1
    return {}


def _facts(record: "dict[str, Any]") -> "dict[str, Any]":
    found = {"cwd": record["cwd"]}
    session, entry = record.get("sessionId"), record.get("entrypoint")
    if isinstance(session, str) and session:
        found["session_id"] = session
    if isinstance(entry, str) and entry in _ATTENDED:
        found["interactive"] = _ATTENDED[entry]
    return found


def subagent_transcripts(path: str) -> "list[str]":
    """The files of a session's subagents, which lie in a folder beside it (since 2026). Never raises."""
    folder = os.path.join(path.removesuffix(".jsonl"), "subagents")
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".jsonl"))
    except OSError:
        return []

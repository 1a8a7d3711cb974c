"""What holds for a whole session of Claude Code: its folder, whether a person sat at it, its subagents' files. Cold."""

import os
from typing import Any

from gstack.lowlevel import load_json, read_file

#: How much of a transcript's beginning is looked at, in bytes, and the longest line in it that is decoded.
_HEAD = 1 << 18
#: Whether a person sits there, by ``entrypoint``: what the hook reads from its environment (contracts C4).
_ATTENDED = {"cli": True, "sdk-cli": False}


def about(path: str) -> "dict[str, Any]":
    """``cwd``, ``interactive`` and ``session_id`` of a transcript, from the first records that say so. Never raises."""
    found: dict[str, Any] = {}
    try:
        head = read_file(path, _HEAD)
    except (OSError, ValueError):
        return found
    for line in head.split(b"\n"):
        if b'"cwd"' not in line and b'"sessionId"' not in line:
            continue
        try:
            record = load_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            _take(found, record)
        if "cwd" in found and "interactive" in found:
            break
    return found


def _take(found: "dict[str, Any]", record: "dict[str, Any]") -> None:
    for key, name in (("cwd", "cwd"), ("session_id", "sessionId")):
        value = record.get(name)
        if isinstance(value, str) and value:
            found.setdefault(key, value)
    entry = record.get("entrypoint")
    if isinstance(entry, str) and entry:
        found.setdefault("interactive", _ATTENDED.get(entry))


def subagent_transcripts(path: str) -> "list[str]":
    """The files of a session's subagents, which lie in a folder beside it (since 2026). Never raises."""
    folder = os.path.join(path.removesuffix(".jsonl"), "subagents")
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".jsonl"))
    except OSError:
        return []

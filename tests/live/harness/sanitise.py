"""Turn a transcript of a harness run into test data: no path of a machine, none of the host's own prompt texts.

Records stay, and so does every field that a reader could trip over; what is cut says so (``<cut N characters>``).
"""

import json
import re
from pathlib import Path
from typing import Any

#: Attachments that carry the host's prompts or describe the machine: only their type stays.
DESCRIPTIONS = frozenset(
    [
        "agent_listing_delta",
        "date",
        "deferred_tools_delta",
        "environment",
        "model",
        "prompt_snapshot",
        "remote_session_change",
        "session_context",
        "skill_listing",
    ]
)
#: Texts longer than this are cut, in characters, unless they are about what the tests look at.
LONGEST = 300
OURS = re.compile(r"gstack|SKILL_CONTRACT|REPORT|<task-notification>|Base directory for this skill")


def sanitise(transcript: Path, root: Path) -> str:
    """The transcript as JSON lines, for a harness run below ``root``."""
    text = transcript.read_text("utf-8")
    places = {root / "home": "/home/u", root / "work": "/home/u/work", root / "tmp": "/tmp/u", root: "/home/u/box"}
    for path, neutral in places.items():
        text = text.replace(str(path), neutral)
        text = text.replace(_slug(str(path)), _slug(neutral))
    records = [_record(json.loads(line)) for line in text.splitlines()]
    return "".join([json.dumps(record, ensure_ascii=False) + "\n" for record in records])


def _slug(path: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", path)


def _record(record: dict[str, Any]) -> Any:
    attachment = record.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") in DESCRIPTIONS:
        record = {**record, "attachment": {"type": attachment["type"]}, "rendered": [{"content": "<cut>"}]}
    if str(record.get("type", "")).startswith("api-request"):
        return _short(record, 70, 2)
    return _short(record, LONGEST, None)


def _short(value: Any, longest: int, items: int | None) -> Any:
    """``value`` with long texts cut, and lists cut to ``items``."""
    if isinstance(value, str):
        kept = len(value) <= longest or (longest == LONGEST and OURS.search(value))
        return value if kept else f"{value[:40]}<cut {len(value) - 40} characters>"
    if isinstance(value, list):
        return [_short(one, longest, items) for one in value[:items]]
    if isinstance(value, dict):
        return {key: _short(one, longest, items) for key, one in value.items()}
    return value

"""The agent's transcripts: one JSON object a line, of four sorts::

    {"who": "person", "at": 1764500000.1, "text": "fix it"}
    {"who": "agent", "at": …, "text": "I look."}
    {"who": "agent", "at": …, "do": "shell", "id": "c1", "with": {"command": "make test"}}
    {"who": "tool", "at": …, "id": "c1", "ok": true, "text": "12 passed"}
    {"who": "hook", "at": …, "text": "what a hook said when it held a stop"}

The stop hook reads with it, so it imports little: ``gstack.lowlevel`` has JSON and files without ``json`` and ``os``.
"""

from gstack.api import Event, ToolCall
from gstack.errors import ContractState, UnknownShape
from gstack.lowlevel import load_json, read_file
from gstack.transcript import since_load

#: The agent's tools in gstack's words; the others are ``other``.
TOOLS = {
    "shell": "shell",
    "write": "edit",
    "open": "read",
    "find": "search",
    "skill": "skill",
    "send": "agent",
}


def tool_call(record):
    """The call that a payload or a line of a transcript holds; None when it holds none."""
    name, given = record.get("do"), record.get("with")
    if not isinstance(name, str) or not isinstance(given, dict):
        return None
    kind = TOOLS.get(name, "other")
    call = ToolCall(kind, name, id=_text(record.get("id")), input=given)
    if kind == "shell":
        call.command = _text(given.get("command"))
    elif kind in ("edit", "read"):
        path = _text(given.get("path"))
        call.paths = (path,) if path else ()
    elif kind == "skill":
        call.skill = _text(given.get("name"))
    elif kind == "agent":
        call.description = _text(given.get("title"))
        call.prompt = _text(given.get("task"))
    return call


def read_transcript(path, *, max_bytes):
    """All events. Raises UnknownShape when no line is one of the agent's, ContractState for an unreadable file."""
    try:
        data = read_file(path, max_bytes + 1)
    except OSError as error:
        raise ContractState(f"{path}: it can't be read ({error.strerror})") from error
    if len(data) > max_bytes:
        raise ContractState(f"{path}: it has more than {max_bytes} bytes")
    reader = _Reader()
    for place, line in enumerate(data.split(b"\n")):
        reader.take(line, place)
    if not reader.known:
        raise UnknownShape(f"{path}: no record of a JSONL agent's transcript is in it")
    return reader.events


def read_run(path, *, skills, max_bytes):
    """The end of that, from the last load of one of ``skills`` on."""
    return since_load(read_transcript(path, max_bytes=max_bytes), skills)


class _Reader:
    """Makes events of lines. What it doesn't know, or what was cut off, is passed over."""

    def __init__(self):
        self.events = []
        self.known = False
        self._skills = {}

    def take(self, line, place):
        try:
            record = load_json(line)
        except ValueError:
            return
        take = _TAKE.get(record.get("who")) if isinstance(record, dict) and isinstance(record.get("who"), str) else None
        if take is not None:
            self.known = True
            take(self, record, place)

    def _add(self, kind, record, place, **more):
        at = record.get("at")
        ts = float(at) if isinstance(at, (int, float)) else None
        self.events.append(Event(kind, uid=f"@{place}", ordinal=place, ts=ts, **more))

    def person(self, record, place):
        self._add("prompt", record, place, text=_text(record.get("text")) or "")

    def agent(self, record, place):
        call = tool_call(record)
        if call is not None:
            self._add("call", record, place, call=call)
            if call.skill and call.id:
                self._skills[call.id] = call.skill
        elif _text(record.get("text")):
            self._add("text", record, place, text=record["text"])

    def tool(self, record, place):
        ref, ok = _text(record.get("id")), record.get("ok")
        ok = ok if isinstance(ok, bool) else None
        skill = self._skills.pop(ref, None)
        if skill is not None and ok:
            self._add("load", record, place, name=skill, how="tool")
        text = _text(record.get("text")) or ""
        self._add("result", record, place, ref=ref, ok=ok, denied=record.get("refused") is True, text=text)

    def hook(self, record, place):
        self._add("continuation", record, place, text=_text(record.get("text")) or "")


_TAKE = {"person": _Reader.person, "agent": _Reader.agent, "tool": _Reader.tool, "hook": _Reader.hook}


def _text(value):
    return value if isinstance(value, str) and value else None

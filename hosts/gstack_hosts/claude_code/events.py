"""From the records of a Claude Code transcript to events (:class:`gstack.api.Event`).

Hot: the stop hook reads with it, so builtins only. Facts: transcripts of 2025 to Claude Code 2.1.332. What isn't
understood is skipped, never an error. What an event says depends only on its own record and on records between the last
load and it, so that a reader that starts at a load gets the same events as one that starts at the beginning.
"""

from gstack.transcript import epoch
from gstack.values.events import Event
from gstack.values.tools import ToolCall
from gstack_hosts.claude_code.envelopes import INTERRUPTED, attachment, person, progress, queue, system
from gstack_hosts.claude_code.tools import agents_of, content_text, in_background, load_of, refused, tool_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Record = Mapping[str, Any]


class Decoder:
    """Takes records in file order and makes events of them.

    ``shaped`` is set once a user or assistant record of the known shape was seen. The rest is for a reader that didn't
    start at the beginning, since a record may be the copy of an earlier one. Of the records that gave events, ``first``
    is the time of the first (None: no such record); ``suspects`` are the ids of those that are older than it and of
    calls that weren't seen but whose results were (``orphans`` tells of these); ``unsure`` says that a record can't be
    judged so. ``few``: it is given no more than a line or two, for which loading the C half of ``json`` isn't worth it.
    """

    def __init__(self, *, few: bool = False) -> None:
        self.few = few
        #: How frequent records begin (:func:`gstack_hosts.claude_code.records.feed`).
        self.heads: tuple[bytes, bytes, bytes, bytes] = (b"", b"", b"", b"")
        self.events: list[Event] = []
        self.shaped = False
        self.orphans = False
        self.unsure = False
        self.suspects: list[str] = []
        self.first: float | None = None
        self._records: set[str] = set()
        self._calls: dict[str, ToolCall] = {}
        self._results: set[str] = set()
        #: The main thread's loads whose call has no result yet, by call id.
        self.loading: dict[str, Event] = {}
        #: The text event of each message of the model, since the last call that may load a skill.
        self.texts: dict[str, Event] = {}
        # of the record at hand
        self._uid = ""
        self.place = 0
        self._ts: float | None = None
        self.agent: str | None = None

    def add(self, record: "Record", place: int) -> None:
        """Take the whole record that starts at byte ``place``."""
        kind, uid = record.get("type"), record.get("uuid")
        take = _TAKE.get(kind) if isinstance(kind, str) else None
        if take is None or not self._begin(uid if isinstance(uid, str) else "", record.get("timestamp"), place):
            return
        self.agent = _agent_of(record)
        before = len(self.events)
        take(self, record)
        self._end(before)
        if self._uid and kind in _ALWAYS:
            self._records.add(self._uid)

    # The next three are for main-thread records of which only what is given was decoded. They do what ``add`` does for
    # them, at a third of its cost.

    def take_message(self, uid: str, stamp: str, place: int, ident: str, blocks: "Sequence[Any]") -> None:
        """Take a message of the model."""
        if uid in self._records:
            return
        for block in blocks:
            if not isinstance(block, dict):
                return
        self.shaped = True
        self._records.add(uid)
        self._uid, self.place, self._ts, self.agent = uid, place, epoch(stamp), None
        before = len(self.events)
        for block in blocks:
            kind = block.get("type")
            if kind == "tool_use":
                self._call(block)
            elif kind == "text":
                self._says(ident, block.get("text"))
        self._end(before)

    def needs_text(self, ref: str) -> str:
        """The kind of the call, if the text of a result that didn't fail tells something; else ``""``."""
        call = self._calls.get(ref)
        return call.kind if call is not None and call.kind in ("shell", "agent") else ""

    def take_result(self, uid: str, stamp: str, place: int, ref: str, content: object, value: object) -> None:
        """Take a result of a tool that didn't fail, alone in its record; no ``content``: its text isn't needed. Of a
        shell it may be a function that gives it.
        """
        self.shaped = True
        if uid in self._records:
            return
        self._records.add(uid)
        if ref in self._results:
            return
        self._results.add(ref)
        call = self._calls.get(ref)
        ok: bool | None = True
        text: str | Callable[[], str] = ""
        if call is None:
            self._orphan(ref)
        elif call.kind == "shell":
            text = content if callable(content) else content_text(content)
            if isinstance(text, str) and in_background(text):
                ok = None
        ts = epoch(stamp)
        before = len(self.events)
        self.events.append(Event("result", uid=uid, ordinal=place, ts=ts, ref=ref, ok=ok, text=text))
        self._uid, self.place, self._ts, self.agent = uid, place, ts, None
        if value is not None or ref in self.loading or (call is not None and call.kind == "agent"):
            self._outcome(call, ref, False, value, content)
        self._end(before)

    def take_results(self, uid: str, stamp: str, place: int, blocks: "Sequence[Record]", value: object) -> None:
        """Take main-thread results of tools that didn't fail, of which nothing but these was decoded."""
        if self._begin(uid, stamp, place):
            before = len(self.events)
            self.shaped = True
            self._records.add(uid)
            for block in blocks:
                self._result(_NO_RECORD, block, value if len(blocks) == 1 else None)
            self._end(before)

    def _begin(self, uid: str, stamp: object, place: int) -> bool:
        if uid in self._records:
            return False
        self._uid = uid
        self.place = place
        self._ts = epoch(stamp)
        self.agent = None
        return True

    def _end(self, before: int) -> None:
        if len(self.events) > before:
            self._remember()

    def _remember(self) -> None:
        """Note the time of a record that told something; it isn't to be told again."""
        if self._uid:
            self._records.add(self._uid)
        ts = self._ts
        if self.first is None:
            self.first = ts
            self.unsure = ts is None
        elif ts is None or ts < self.first:
            self.unsure = self.unsure or ts is None or not self._uid
            self.suspects.append(self._uid)

    def finished(self) -> "list[Event]":
        """All events; a call that may have loaded a skill but has no result (yet) is no load."""
        if not self.loading:
            return self.events
        open_loads = {id(event) for event in self.loading.values()}
        return [event for event in self.events if id(event) not in open_loads]

    def event(self, type: str, **more: "Any") -> Event:
        """An event of the record at hand, which is added."""
        event = Event(type, uid=self._uid, ordinal=self.place, ts=self._ts, agent=self.agent, **more)
        self.events.append(event)
        return event

    def last_type(self) -> str:
        """The type of the last event; ``""`` when there is none."""
        return self.events[-1].type if self.events else ""

    # --------------------------------------------------------------------------------- assistant records

    def _assistant(self, record: "Record") -> None:
        message = record.get("message")
        content = self._content(message)
        if content is None or not isinstance(message, dict):
            return
        if message.get("model") == "<synthetic>" or record.get("isApiErrorMessage") is True:
            return  # written by the client, not by the model
        ident = str(message.get("id") or self._uid or self.place)
        if isinstance(content, str):
            self._says(ident, content)
        else:
            self._blocks(ident, content)

    def _blocks(self, ident: str, content: "Sequence[Record]") -> None:
        for block in content:
            kind = block.get("type")
            if kind == "text":
                self._says(ident, block.get("text"))
            elif kind == "tool_use":
                self._call(block)

    def _content(self, message: object) -> "str | list[dict[str, Any]] | None":
        """The content of a message: a text or a list of blocks; None for anything else."""
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            self.shaped = True
            return content
        if not isinstance(content, list):
            return None
        for block in content:
            if not isinstance(block, dict):
                return None
        self.shaped = True
        return content

    def _says(self, message: str, text: object) -> None:
        if not isinstance(text, str) or not text.strip():
            return
        known = self.texts.get(message)
        if known is not None and known.agent == self.agent:
            known.text += "\n" + text
            self._remember()
            return
        self.texts[message] = self.event("text", text=text)

    def _call(self, block: "Record") -> None:
        ident, name, given = block.get("id"), block.get("name"), block.get("input")
        if not isinstance(ident, str) or not ident:
            ident = None
        elif ident in self._calls:
            return
        call = tool_call(name if isinstance(name, str) else "", given if isinstance(given, dict) else {}, ident)
        if call.kind == "edit":
            call.input = {"file_path": call.paths[0]} if call.paths else {}  # not the texts, which may be long
        event = Event("call", uid=self._uid, ordinal=self.place, ts=self._ts, agent=self.agent, call=call)
        self.events.append(event)
        if ident is None:
            return
        self._calls[ident] = call
        if self.agent is None and call.kind in ("skill", "read"):
            self._may_load(call, ident)

    def _may_load(self, call: ToolCall, ident: str) -> None:
        name, path = load_of(call)
        if name:
            self.texts.clear()
            how = "tool" if call.kind == "skill" else "read"
            event = self.event("load", name=name, how=how, path=path)
            event.uid = ident
            self.loading[ident] = event

    # -------------------------------------------------------------------------------------- user records

    def _user(self, record: "Record") -> None:
        content = self._content(record.get("message"))
        if content is None:
            return
        if isinstance(content, str):
            person(self, record, content, whole=True)
            return
        results = [block for block in content if block.get("type") == "tool_result"]
        for block in results:
            self._result(record, block, record.get("toolUseResult") if len(results) == 1 else None)
        texts = [
            block["text"] for block in content if block.get("type") == "text" and isinstance(block.get("text"), str)
        ]
        others = len(content) - len(results) - len(texts)
        if texts or (others and not results):
            # a typed command is a record of its own; with a picture its text is a block
            person(self, record, "\n".join(texts), whole=len(texts) == 1 and others > 0 and not results)

    def _result(self, record: "Record", block: "Record", value: object) -> None:
        ref = block.get("tool_use_id")
        ref = ref if isinstance(ref, str) and ref else None
        if ref is not None:
            if ref in self._results:
                return
            self._results.add(ref)
        call = self._calls.get(ref or "")
        if call is None:
            self._orphan(ref)
        shell = call is not None and call.kind == "shell"
        failed = block.get("is_error") is True
        text = content_text(block.get("content")) if shell or failed else ""
        denied = failed and refused(text, record, shell)
        ok: bool | None = not failed
        if shell and not failed and in_background(text):
            ok = None
        event = Event(
            "result",
            uid=self._uid,
            ordinal=self.place,
            ts=self._ts,
            agent=self.agent,
            ref=ref,
            ok=ok,
            denied=denied,
            text=text if shell else "",
        )
        self.events.append(event)
        if self.agent is None:
            self._outcome(call, ref, failed, value, block.get("content"))
            if failed and (text.startswith(INTERRUPTED) or record.get("toolDenialKind") == "interrupted"):
                self.event("interrupted")

    def _orphan(self, ref: "str | None") -> None:
        self.orphans = True
        self.unsure = self.unsure or ref is None
        self.suspects.append(ref or "")

    def _outcome(
        self, call: "ToolCall | None", ref: "str | None", failed: bool, value: object, content: object
    ) -> None:
        """What a result means beside itself: a skill is loaded or not, an agent starts or ends."""
        if ref in self.loading:
            self._loaded(str(ref), failed or (isinstance(value, dict) and value.get("success") is False))
        if failed:
            return
        started, ended = agents_of(call, value, content)
        if started:
            self.event("agent_started", ref=started, call=call)
        if ended:
            self.ended(ended[0], call.id if call and started else None, ended[1])

    def _loaded(self, ref: str, failed: bool) -> None:
        event = self.loading.pop(ref)
        if failed:
            place = len(self.events) - 1
            while self.events[place] is not event:
                place -= 1
            del self.events[place]

    def ended(self, ref: str, tool_use: "str | None", status: str) -> None:
        """An agent came to its end; ``tool_use`` is the call that launched it, where that is told."""
        call = ToolCall("agent", id=tool_use) if tool_use else None
        self.event("agent_finished", ref=ref, how=status, ok=status == "completed", call=call)


#: Stands for a record that has nothing beside its results.
_NO_RECORD: "Record" = {}

#: Records that are known again by their id even if they told nothing; of others not all are looked at.
_ALWAYS = ("assistant", "user", "system")

_TAKE = {
    "assistant": Decoder._assistant,
    "user": Decoder._user,
    "attachment": attachment,
    "system": system,
    "queue-operation": queue,
    "progress": progress,
}


def _agent_of(record: "Record") -> "str | None":
    """The subagent whose record it is; None on the main thread."""
    side, agent = record.get("isSidechain"), record.get("agentId")
    named = agent if isinstance(agent, str) and agent else None
    if side is True:
        return named or "sidechain"
    return named if side is None else None

"""From the records of a Claude Code transcript to events (:class:`gstack.api.Event`).

Hot: the stop hook reads with it, so builtins only. Facts: transcripts of 2025 to Claude Code 2.1.332. What isn't
understood is skipped, never an error. What an event says depends only on its own record and on records between the last
load and it, so that a reader that starts at a load gets the same events as one that starts at the beginning.
"""

from gstack.api import Event, ToolCall
from gstack.transcript import epoch
from gstack_hosts.claude_code.envelopes import (
    AGENT,
    ENDED,
    INTERRUPTED,
    NOTIFICATION,
    feedback,
    is_interruption,
    notifications,
    origin_of,
    typed_command,
)
from gstack_hosts.claude_code.tools import tool_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Record = Mapping[str, Any]

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


class Decoder:
    """Takes records in file order and makes events of them.

    ``shaped`` is set once a user or assistant record of the known shape was seen; ``orphans`` when a result came whose
    call was not seen. Of the records that gave events, ``first`` is the time of the first and ``lowest`` the lowest of
    all later ones (None: no such record), ``untimed`` says whether one had no time. A reader that didn't start at
    the beginning tells by them whether a record may be the copy of an earlier one.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.shaped = False
        self.orphans = False
        self.untimed = False
        self.first: float | None = None
        self.lowest: float | None = None
        self._records: set[str] = set()
        self._calls: dict[str, ToolCall] = {}
        self._results: set[str] = set()
        #: The main thread's loads whose call has no result yet, by call id.
        self.loading: dict[str, Event] = {}
        #: The text event of each message of the model, since the last call that may load a skill.
        self._texts: dict[str, Event] = {}
        # of the record at hand
        self._uid = ""
        self._place = 0
        self._ts: float | None = None
        self._agent: str | None = None

    def add(self, record: "Record", place: int) -> None:
        """Take the whole record that starts at byte ``place``."""
        take = _TAKE.get(record.get("type", ""))  # type: ignore[arg-type]
        uid = record.get("uuid")
        if take is None or not self._begin(uid if isinstance(uid, str) else "", record.get("timestamp"), place):
            return
        self._agent = _agent_of(record)
        before = len(self.events)
        take(self, record)
        self._end(before)

    def take_message(self, uid: str, stamp: str, place: int, ident: str, blocks: "Sequence[Any]") -> None:
        """Take a main-thread message of the model, of which nothing but these was decoded."""
        if self._begin(uid, stamp, place):
            before = len(self.events)
            if all([isinstance(block, dict) for block in blocks]):
                self.shaped = True
                self._blocks(ident or uid, blocks)
            self._end(before)

    def needs_text(self, ref: str) -> bool:
        """Whether the text of a result that didn't fail tells something."""
        call = self._calls.get(ref)
        return call is not None and call.kind in ("shell", "agent")

    def take_result(self, uid: str, stamp: str, place: int, ref: str, content: object, value: object) -> None:
        """Take a main-thread result of a tool that didn't fail, alone in its record, of which nothing but this was
        decoded; ``content`` is None where it isn't needed."""
        if self._begin(uid, stamp, place):
            before = len(self.events)
            self.shaped = True
            self._result(_NO_RECORD, {"tool_use_id": ref, "content": content}, value)
            self._end(before)

    def take_results(self, uid: str, stamp: str, place: int, blocks: "Sequence[Record]", value: object) -> None:
        """Take main-thread results of tools that didn't fail, of which nothing but these was decoded."""
        if self._begin(uid, stamp, place):
            before = len(self.events)
            self.shaped = True
            for block in blocks:
                self._result(_NO_RECORD, block, value if len(blocks) == 1 else None)
            self._end(before)

    def _begin(self, uid: str, stamp: object, place: int) -> bool:
        if uid in self._records:
            return False
        self._uid = uid
        self._place = place
        self._ts = epoch(stamp)
        self._agent = None
        return True

    def _end(self, before: int) -> None:
        """Remember the record, if it told something: others may share an id, and their times don't matter."""
        if len(self.events) == before:
            return
        if self._uid:
            self._records.add(self._uid)
        ts = self._ts
        if ts is None:
            self.untimed = True
        elif self.first is None:
            self.first = ts
        elif self.lowest is None or ts < self.lowest:
            self.lowest = ts

    @property
    def doubtful(self) -> bool:
        """Whether a record may be the copy of one that stands before the first that was taken."""
        if self.orphans or self.untimed or self.first is None:
            return True
        return self.lowest is not None and self.lowest < self.first

    def finished(self) -> "list[Event]":
        """All events; a call that may have loaded a skill but has no result (yet) is no load."""
        if not self.loading:
            return self.events
        open_loads = {id(event) for event in self.loading.values()}
        return [event for event in self.events if id(event) not in open_loads]

    def _event(self, type: str, **more: "Any") -> Event:  # noqa: A002 - the field's word
        event = Event(type, uid=self._uid, ordinal=self._place, ts=self._ts, agent=self._agent, **more)
        self.events.append(event)
        return event

    def _last(self) -> str:
        return self.events[-1].type if self.events else ""

    # --------------------------------------------------------------------------------- assistant records

    def _assistant(self, record: "Record") -> None:
        message = record.get("message")
        content = self._content(message)
        if content is None or not isinstance(message, dict):
            return
        if message.get("model") == "<synthetic>" or record.get("isApiErrorMessage") is True:
            return  # written by the client, not by the model
        ident = str(message.get("id") or self._uid or self._place)
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
        if isinstance(content, list) and all([isinstance(block, dict) for block in content]):
            self.shaped = True
            return content
        return None

    def _says(self, message: str, text: object) -> None:
        if not isinstance(text, str) or not text.strip():
            return
        known = self._texts.get(message)
        if known is not None and known.agent == self._agent:
            known.text += "\n" + text
            self._records.add(self._uid)
            return
        self._texts[message] = self._event("text", text=text)

    def _call(self, block: "Record") -> None:
        ident, name, given = block.get("id"), block.get("name"), block.get("input")
        if not isinstance(ident, str) or not ident:
            ident = None
        elif ident in self._calls:
            return
        call = tool_call(name if isinstance(name, str) else "", given if isinstance(given, dict) else {}, ident)
        if call.kind == "edit":
            call.input = {"file_path": call.paths[0]} if call.paths else {}  # not the texts, which may be long
        event = Event("call", uid=self._uid, ordinal=self._place, ts=self._ts, agent=self._agent, call=call)
        self.events.append(event)
        if ident is None:
            return
        self._calls[ident] = call
        if self._agent is None and call.kind in ("skill", "read"):
            self._may_load(call, ident)

    def _may_load(self, call: ToolCall, ident: str) -> None:
        name, path = load_of(call)
        if name:
            self._texts.clear()
            how = "tool" if call.kind == "skill" else "read"
            event = self._event("load", name=name, how=how, path=path)
            event.uid = ident
            self.loading[ident] = event

    # -------------------------------------------------------------------------------------- user records

    def _user(self, record: "Record") -> None:
        content = self._content(record.get("message"))
        if content is None:
            return
        if isinstance(content, str):
            self._person(record, content, whole=True)
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
            self._person(record, "\n".join(texts), whole=len(texts) == 1 and others > 0 and not results)

    def _result(self, record: "Record", block: "Record", value: object) -> None:
        ref = block.get("tool_use_id")
        ref = ref if isinstance(ref, str) and ref else None
        if ref is not None:
            if ref in self._results:
                return
            self._results.add(ref)
        call = self._calls.get(ref or "")
        if call is None:
            self.orphans = True
        shell = call is not None and call.kind == "shell"
        failed = block.get("is_error") is True
        text = content_text(block.get("content")) if shell or failed else ""
        denied = failed and _refused(text, record, shell)
        ok: bool | None = not failed
        if shell and not failed and _in_background(text):
            ok = None
        event = Event(
            "result",
            uid=self._uid,
            ordinal=self._place,
            ts=self._ts,
            agent=self._agent,
            ref=ref,
            ok=ok,
            denied=denied,
            text=text if shell else "",
        )
        self.events.append(event)
        if self._agent is not None:
            return
        if ref in self.loading:
            self._loaded(str(ref), failed or (isinstance(value, dict) and value.get("success") is False))
        if failed:
            if text.startswith(INTERRUPTED) or record.get("toolDenialKind") == "interrupted":
                self._event("interrupted")
        elif isinstance(value, dict):
            self._agents(call, value)
        elif call is not None and call.kind == "agent":
            self._agent_without_value(call, content_text(block.get("content")))

    def _loaded(self, ref: str, failed: bool) -> None:
        event = self.loading.pop(ref)
        if failed:
            place = len(self.events) - 1
            while self.events[place] is not event:
                place -= 1
            del self.events[place]

    def _agents(self, call: "ToolCall | None", value: "Record") -> None:
        """Which agents a result starts or ends."""
        status = value.get("status")
        ref = value.get("agentId") or value.get("taskId")
        resumed = value.get("resumedAgentId")
        if isinstance(ref, str) and status in ("async_launched", "remote_launched"):
            self._event("agent_started", ref=ref, call=call)
        elif isinstance(ref, str) and status == "completed":
            self._event("agent_started", ref=ref, call=call)
            self._ended(ref, call.id if call else None, "completed")
        elif isinstance(resumed, str):
            self._event("agent_started", ref=resumed, call=call)
        elif call is not None and call.kind == "agent_wait":
            task = value.get("task")
            if isinstance(task, dict) and task.get("status") in ENDED and isinstance(task.get("task_id"), str):
                self._ended(task["task_id"], None, task["status"])
        elif (
            call is not None and call.native_name in ("TaskStop", "KillShell") and isinstance(value.get("task_id"), str)
        ):
            self._ended(value["task_id"], None, "killed")

    def _agent_without_value(self, call: ToolCall, text: str) -> None:
        if text.startswith("Async agent launched"):
            ident = text.partition("agentId:")[2].split(None, 1)
            if ident:
                self._event("agent_started", ref=ident[0], call=call)

    def _ended(self, ref: str, tool_use: "str | None", status: str) -> None:
        call = ToolCall("agent", id=tool_use) if tool_use else None
        self._event("agent_finished", ref=ref, how=status, ok=status == "completed", call=call)

    # -------------------------------------------------------------------------- what people and hosts say

    def _person(self, record: "Record", text: str, *, whole: bool) -> None:
        if self._agent is not None:
            self._event("prompt", text=text, origin=AGENT)
        elif record.get("isCompactSummary") is True:
            if self._last() != "compacted":
                self._event("compacted")
        elif record.get("isMeta") is True:
            reasons = feedback(text)
            if reasons is not None:
                self._event("continuation", text=reasons)
        elif record.get("isVisibleInTranscriptOnly") is not True:
            # what a person types has a source; the envelope that the host makes of a typed command has none
            whole = whole and record.get("promptSource") not in ("typed", "sdk")
            command = typed_command(text) if whole else None
            if command is None:
                self._prompt(text, record)
            else:
                self._typed(*command)

    def _typed(self, name: str, args: str) -> None:
        self._texts.clear()
        self._event("prompt", text=f"/{name} {args}".rstrip())
        load = self._event("load", name=name, how="typed")
        load.uid = load.uid or f"@{self._place}"

    def _prompt(self, text: str, record: "Record") -> None:
        if is_interruption(text):
            self._event("interrupted")
            return
        notified = record.get("commandMode") == "task-notification"
        origin = NOTIFICATION if notified else origin_of(text, record)
        if origin == NOTIFICATION:
            self._notified(text)
        self._event("prompt", text=text, origin=origin)

    def _notified(self, text: str) -> None:
        for ref, tool_use, status in notifications(text):
            if status in ENDED:
                self._ended(ref, tool_use, status)

    # ------------------------------------------------------------------------------------- other records

    def _attachment(self, record: "Record") -> None:
        found = record.get("attachment")
        if not isinstance(found, dict) or self._agent is not None:
            return
        kind = found.get("type")
        if kind == "queued_command":
            prompt = found.get("prompt")
            self._prompt(prompt if isinstance(prompt, str) else content_text(prompt), found)
        elif kind == "hook_additional_context" and found.get("hookEvent") == "Stop":
            said = found.get("content")
            lines = said if isinstance(said, list) else [said]
            self._event("continuation", text="\n".join([line for line in lines if isinstance(line, str)]))
        elif kind == "task_status":
            ref, status = found.get("taskId"), found.get("status")
            if isinstance(ref, str) and isinstance(status, str) and status in ENDED:
                self._ended(ref, None, status)

    def _queue(self, record: "Record") -> None:
        # a queued prompt is told when it is delivered; the end of an agent counts from here on
        content = record.get("content")
        if record.get("operation") == "enqueue" and isinstance(content, str) and "<task-notification" in content:
            self._notified(content)

    def _system(self, record: "Record") -> None:
        if self._agent is not None:
            return
        kind = record.get("subtype")
        if kind == "compact_boundary":
            self._event("compacted")
        elif kind in ("turn_duration", "stop_hook_summary") and self._last() not in ("turn_end", "continuation"):
            # a hook's feedback goes before the summary of the hooks, and the turn goes on
            self._event("turn_end")

    def _progress(self, record: "Record") -> None:
        """Until 2.1.8x: a subagent's record, wrapped."""
        data = record.get("data")
        inner = data.get("message") if isinstance(data, dict) else None
        if isinstance(data, dict) and data.get("type") == "agent_progress" and isinstance(inner, dict):
            if inner.get("type") in ("user", "assistant"):
                self.add({**inner, "isSidechain": True, "agentId": data.get("agentId")}, self._place)


#: Stands for a record that has nothing beside its results.
_NO_RECORD: "Record" = {}

_TAKE = {
    "assistant": Decoder._assistant,
    "user": Decoder._user,
    "attachment": Decoder._attachment,
    "system": Decoder._system,
    "queue-operation": Decoder._queue,
    "progress": Decoder._progress,
}


def load_of(call: ToolCall) -> "tuple[str | None, str | None]":
    """The skill that a call loads when it succeeds, and the file where the call names it; (None, None) when it loads none.

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


def content_text(content: object) -> str:
    """The text of a result's or prompt's content: a text, or the text blocks of a list, one a line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join([text for text in texts if isinstance(text, str)])


def _agent_of(record: "Record") -> "str | None":
    """The subagent whose record it is; None on the main thread."""
    side, agent = record.get("isSidechain"), record.get("agentId")
    named = agent if isinstance(agent, str) and agent else None
    if side is True:
        return named or "sidechain"
    return named if side is None else None


def _refused(text: str, record: "Record", shell: bool) -> bool:
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


def _in_background(text: str) -> bool:
    """Whether a shell's command goes on in the background, so that how it ends isn't known."""
    head = text[:200]
    return head.startswith("Command ") and (
        "running in background with ID" in head or " moved to the background" in head or " backgrounded by user" in head
    )

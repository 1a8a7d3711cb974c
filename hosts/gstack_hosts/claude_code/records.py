"""From the bytes of a Claude Code transcript to records, decoding no more of them than events need.

Hot: the stop hook reads up to 32 MiB with it, so builtins only, and long functions on purpose. A record of 2.1.332 has
some thirty keys, and most of its bytes stand twice, in the message and in ``toolUseResult``. The two frequent kinds, a
message of the model and the result of a tool that didn't fail, are therefore not decoded as a whole: the few values
that matter are found by searching. That is safe because a quote inside a JSON text is escaped, so that a key in bare
quotes, such as ``"uuid":"``, can't stand inside one; and what stands before the message must hold no brace, so that it
is the record's own. Whatever looks different in any way is decoded whole.
"""

from gstack.lowlevel import scan_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gstack_hosts.claude_code.events import Decoder

#: Records that never give an event, by the type that stands at their very start.
_DULL = frozenset(
    [
        b"last-prompt", b"mode", b"permission-mode", b"atis-latch", b"api-request", b"api-request-shape",
        b"api-request-blob", b"tools-used", b"cost-state", b"ai-title", b"custom-title", b"agent-name",
        b"agent-setting", b"agent-color", b"file-history-snapshot", b"file-history-delta", b"pr-link",
        b"bridge-session", b"frame-link", b"worktree-state", b"relocated", b"continued-in", b"fork-context-ref",
        b"content-replacement", b"summary", b"tag",
    ]
)  # fmt: skip
#: Attachments that may give one.
_TELLING = (b"queued_command", b"hook_additional_context", b"task_status")
#: Tools whose input holds whole texts of which events keep nothing.
_WRITERS = ("Edit", "Write", "MultiEdit")

#: How far into a line its message, attachment or progress is looked for, and how far behind that its content.
_HEAD = 1500


class _Style:
    """The needles for one way of writing JSON: without spaces (Claude Code) or with one after colons and commas."""

    def __init__(self, colon: str, comma: str) -> None:
        def key(name: str, value: str = "") -> str:
            return f'"{name}"{colon}{value}'

        def needle(*parts: str) -> bytes:
            return "".join(parts).encode()

        kind = key("type", '"tool_result"')
        uuid = key("uuid", '"')
        self.type = needle("{", key("type", '"'))
        self.attachment = needle(key("attachment", "{"), key("type", '"'))
        self.progress = needle(key("type", '"progress"'))
        self.main = needle(key("isSidechain", "false"))
        self.message = needle(key("message", "{"))
        self.content = needle(key("content", "["))
        self.id = needle(key("id", '"'))
        self.user = needle(key("type", '"user"'))
        self.assistant = needle(key("type", '"assistant"'))
        self.uuid = needle(uuid)
        self.stamp = needle(key("timestamp", '"'))
        self.after_uuid = needle('"', comma, key("timestamp", '"'))
        # a message of the model: what follows its content, what stands before its uuid, a call at its start
        self.stop = needle("]", comma, key("stop_reason"))
        self.tail = needle(key("type", '"assistant"'), comma, uuid)
        self.call = needle("[{", key("type", '"tool_use"'), comma, key("id", '"'))
        self.name = needle('"', comma, key("name", '"'))
        self.path = needle(key("file_path", '"'))
        self.block = needle("}", comma, "{", key("type", '"'))
        # a result: its id in either order, what follows, what ends its message
        self.ref = needle("[{", key("tool_use_id", '"'))
        self.after_ref = needle('"', comma, kind, comma, key("content"))
        self.result = needle("[{", kind, comma, key("tool_use_id", '"'))
        self.after_result = needle('"', comma, key("content"))
        self.fine = needle(comma, key("is_error", "false"))
        self.bad = needle(key("is_error", "true"))
        self.text = needle(key("type", '"text"'))
        self.closed = needle("}]}", comma, uuid)
        self.shut = needle("}", comma, uuid)
        self.value = needle('"', comma, key("toolUseResult"))
        self.any_value = needle(key("toolUseResult"))
        #: What a result's value starts with that holds nothing an event needs.
        self.dull = tuple(
            needle("{", start)
            for start in (
                key("stdout"),
                key("type", '"text"'),
                key("type", '"create"'),
                key("type", '"update"'),
                key("type", '"image"'),
                key("type", '"file_unchanged"'),
                key("filePath"),
                key("filenames"),
                key("mode"),
                key("oldTodos"),
                key("bytes"),
                key("query"),
            )
        )


_COMPACT = _Style(":", ",")
_SPACED: "list[_Style]" = []  # made when it is needed


def feed(decoder: "Decoder", place: int, data: bytes) -> None:
    """Give ``decoder`` the records of the whole lines ``data``, which start at byte ``place`` of the file.

    A line that is broken, empty or no object is passed over, and one that holds two objects (a lost newline) is two
    records. A last line without its newline may still be being written: it counts when it is complete. Never raises.
    """
    find, startswith = data.find, data.startswith
    style = _COMPACT
    if find(b'": ', 0, 60) > 0:
        if not _SPACED:
            _SPACED.append(_Style(": ", ", "))
        style = _SPACED[0]
    opening, message, main, refs = style.type, style.message, style.main, (style.ref, style.result)
    holes = b"\0" in data  # a crash leaves them
    start, size = 0, len(data)
    while start < size:
        end = find(b"\n", start)
        if end < 0:
            end = size
        elif not holes and startswith(b'{"', start) and data[end - 1] == 0x7D:
            head = start + _HEAD if start + _HEAD < end else end
            if startswith(opening, start):
                at = start + len(opening)
                done = data[at : find(b'"', at, head)] in _DULL and find(b'}{"', at, end) < 0
            else:
                at = find(message, start, head)
                if at < 0:
                    done = _is_dull(data, style, start, end)
                elif find(b"{", start + 1, at) >= 0 or (find(main, start, at) < 0 and _aside(data, start, end)):
                    done = False
                else:
                    content = find(style.content, at, min(at + _HEAD, end))
                    try:
                        if content < 0 or find(b"{", at + len(message), content) >= 0:
                            done = False
                        elif startswith(refs, content + len(style.content) - 1):
                            done = _result(decoder, data, style, (start, at, content, end), place)
                        else:
                            done = _message(decoder, data, style, (start, at, content, end), place)
                    except (ValueError, RecursionError):
                        done = False
            if done:
                start = end + 1
                continue
        for record in records_of(data[start:end]):
            decoder.add(record, place + start)
        start = end + 1


def records_of(line: bytes) -> "list[dict[str, Any]]":
    """The records on a line, whole. Usually one; two when a newline was lost, none when it is broken. Never raises."""
    text = line.replace(b"\0", b"").decode("utf-8", "replace")
    found = []
    place = 1 if text.startswith("\ufeff") else 0
    while True:
        start = text.find("{", place)
        if start < 0 or text[place:start].strip():
            return found  # nothing more, or no object
        try:
            value, place = scan_json(text, start)
        except (ValueError, RecursionError):
            # A line that broke off and goes on with the next record. Records that others hold start otherwise.
            place = text.find('{"parentUuid"', start + 1)
            if place < 0:
                return found
            continue
        if isinstance(value, dict):
            found.append(value)


def _aside(data: bytes, start: int, end: int) -> bool:
    """Whether a line may be a subagent's."""
    return data.find(b'"isSidechain"', start, end) >= 0 or data.find(b'"agentId"', start, end) >= 0


def _is_dull(data: bytes, style: _Style, start: int, end: int) -> bool:
    """Whether a line without a message holds one record that gives no event."""
    head = min(start + _HEAD, end)
    at = data.find(style.attachment, start, head)
    if at > 0 and data.find(b"{", start + 1, at) < 0:
        at += len(style.attachment)
        return data[at : data.find(b'"', at, end)] not in _TELLING and data.find(b'}{"', at, end) < 0
    at = data.find(style.progress, start, head)
    if at > 0 and data.find(b"{", start + 1, at) < 0:
        return data.find(b'"agent_progress"', at, end) < 0 and data.find(b'}{"', at, end) < 0
    return False


def _message(decoder: "Decoder", data: bytes, style: _Style, places: "tuple[int, int, int, int]", place: int) -> bool:
    """A message of the model: decode its content, find the rest. Raises ValueError for one that isn't as expected."""
    start, at, content, end = places
    find = data.find
    body = content + len(style.content) - 1
    stop = find(style.stop, body, end) + 1
    blocks: Any = None
    if not stop:
        blocks, stop = _scan(data, body, end)
    elif stop - body > 800 and data.startswith(style.call, body):
        blocks = _writer(data, style, body, stop)
    if blocks is None:
        text = data[body:stop].decode("utf-8", "replace")
        blocks, length = scan_json(text)
        if length != len(text):
            return False
    tail = find(style.tail, stop, end)
    if tail > 0:
        tail += len(style.tail)
        uuid, stamp, tail = _pair(data, style, tail, end)
    elif find(style.assistant, start, at) > 0:
        uuid, stamp = _own(data, style.uuid, start, at), _own(data, style.stamp, start, at)
        tail = stop
    else:
        return False
    if not uuid or not stamp or find(b'"isApiErrorMessage"', stop, end) >= 0 or find(b"}{", tail, end) >= 0:
        return False
    ident = _own(data, style.id, at, content)
    synthetic = find(b'"<synthetic>"', at, content) >= 0
    decoder.take_message(uuid, stamp, place + start, ident or uuid, () if synthetic else blocks)
    return True


def _writer(data: bytes, style: _Style, body: int, stop: int) -> "list[dict[str, Any]] | None":
    """The one call in a message's content, when its tool is one that writes texts; None for any other content."""
    at = body + len(style.call)
    quote = data.find(b'"', at, stop)
    if not data.startswith(style.name, quote):
        return None
    name = quote + len(style.name)
    after = data.find(b'"', name, stop)
    tool = data[name:after].decode("ascii", "replace")
    if tool not in _WRITERS or data.find(style.block, after, stop) >= 0:
        return None
    path = _own(data, style.path, after, stop)
    ident = data[at:quote].decode("ascii")
    if not path or "\\" in ident:
        return None
    return [{"type": "tool_use", "id": ident, "name": tool, "input": {"file_path": path}}]


def _result(decoder: "Decoder", data: bytes, style: _Style, places: "tuple[int, int, int, int]", place: int) -> bool:
    """Results of tools that didn't fail: find their id, and decode their text and their value where events need them.

    Raises ValueError for one that isn't as expected.
    """
    start, at, content, end = places
    find, startswith = data.find, data.startswith
    if find(style.user, start, at) < 0:
        return False
    body = content + len(style.content) - 1
    if startswith(style.ref, body):
        ref, after = body + len(style.ref), style.after_ref
    else:
        ref, after = body + len(style.result), style.after_result
    quote = find(b'"', ref, ref + 200)
    text = quote + len(after)
    closed = find(style.closed, text, end)
    if closed < 0 or not startswith(after, quote):
        return _results(decoder, data, style, places, place)
    stop = closed - len(style.fine) if startswith(style.fine, closed - len(style.fine)) else closed
    ident = data[ref:quote].decode("ascii")
    said = None
    if data[text] != 0x22 or data[stop - 1] != 0x22 or data[stop - 2] == 0x5C or decoder.needs_text(ident):
        raw = data[text:stop].decode("utf-8", "replace")
        said, length = scan_json(raw)
        if length != len(raw):
            return _results(decoder, data, style, places, place)
    elif (
        find(b'"tool_use_id"', text, stop) >= 0 or find(style.text, text, stop) >= 0 or find(style.bad, text, stop) >= 0
    ):
        return _results(decoder, data, style, places, place)
    uuid, stamp, stop = _pair(data, style, closed + len(style.closed), end)
    if not uuid or not stamp or "\\" in ident:
        return False
    value = None
    if startswith(style.value, stop):
        stop += len(style.value)
        if not startswith(style.dull, stop):
            value, stop = _scan(data, stop, end)
            if find(b"}{", stop, end) >= 0:
                return False
        elif find(b'}{"parentUuid"', stop, end) >= 0:
            return False
    elif find(style.any_value, stop, end) >= 0 or find(b"}{", stop, end) >= 0:
        return False
    decoder.take_result(uuid, stamp, place + start, ident, said, value)
    return True


def _results(decoder: "Decoder", data: bytes, style: _Style, places: "tuple[int, int, int, int]", place: int) -> bool:
    """Results in another order of keys, or several in one record. Raises ValueError for what isn't as expected."""
    start, at, content, end = places
    blocks, stop = _scan(data, content + len(style.content) - 1, end)
    for block in blocks:
        if not isinstance(block, dict) or block.get("type") != "tool_result" or block.get("is_error") is True:
            return False
    uuid: str | None
    if data.startswith(style.shut, stop):
        uuid, stamp, _ = _pair(data, style, stop + len(style.shut), end)
    else:
        uuid, stamp = _own(data, style.uuid, start, at), _own(data, style.stamp, start, at)
    if not uuid or not stamp or data.find(b"}{", stop, end) >= 0:
        return False
    value = None
    at = data.find(style.any_value, stop, end)
    if at > 0:
        at += len(style.any_value)
        if not data.startswith(style.dull, at):
            value = _scan(data, at, end)[0]
    decoder.take_results(uuid, stamp, place + start, blocks, value)
    return True


def _scan(data: bytes, at: int, end: int) -> "tuple[Any, int]":
    """The JSON value at ``at``, and where it ends. Raises ValueError."""
    text = data[at:end].decode("utf-8", "replace")
    value, stop = scan_json(text)
    if not text.isascii():
        if "\ufffd" in text:
            raise ValueError("bytes that aren't UTF-8 move the places")
        stop = len(text[:stop].encode("utf-8"))
    return value, at + stop


def _own(data: bytes, needle: bytes, start: int, end: int) -> str:
    """The plain text after ``needle``; ``""`` when the needle isn't there. Raises ValueError when the text isn't plain."""
    at = data.find(needle, start, end)
    if at < 0:
        return ""
    at += len(needle)
    value = data[at : data.find(b'"', at)].decode("ascii")
    if "\\" in value:
        raise ValueError("an escape")
    return value


def _pair(data: bytes, style: _Style, at: int, end: int) -> "tuple[str, str, int]":
    """The uuid that starts at ``at``, the time stamp that follows it, and where that ends; empty when they don't stand so."""
    stop = data.find(b'"', at, end)
    if not data.startswith(style.after_uuid, stop):
        return "", "", at
    uuid = data[at:stop].decode("ascii")
    at = stop + len(style.after_uuid)
    stop = data.find(b'"', at, end)
    return ("" if "\\" in uuid else uuid), data[at:stop].decode("ascii"), stop

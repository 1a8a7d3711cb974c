"""From the bytes of a Claude Code transcript to records, decoding no more of them than events need.

Hot: the stop hook reads up to 32 MiB with it, so builtins only, and long functions on purpose. A record of 2.1.332 has
some thirty keys, and most of its bytes stand twice, in the message and in ``toolUseResult``. The two frequent kinds, a
message of the model and the result of a tool that didn't fail, are therefore not decoded as a whole: the few values
that matter are found by searching. That is safe because a quote inside a JSON text is escaped, so that a key in bare
quotes, such as ``"uuid":"``, can't stand inside one; and what stands before the message must hold no brace, so that it
is the record's own. Whatever looks different in any way is decoded whole.
"""

from gstack.lowlevel import scan_json
from gstack_hosts.claude_code.needles import Style, style_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
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
#: How these records begin as Claude Code writes them.
_DULL_STARTS = tuple([b'{"type":"' + kind + b'"' for kind in _DULL])
#: Attachments and progress records that may give one.
_TELLING = (b"queued_command", b"hook_additional_context", b"task_status", b"agent_progress")
#: Tools whose input holds whole texts of which events keep nothing.
_WRITERS = ("Edit", "Write", "MultiEdit")

#: How the text of a shell's result begins that may say that the command goes on in the background.
_BACKGROUND = b'"Command '
#: What a record of the conversation begins with.
_RECORD = b'{"parentUuid"'

#: How far into a line its message, attachment or progress is looked for, and how far behind that its content.
_HEAD = 1500


def feed(decoder: "Decoder", place: int, data: bytes, start: int, size: int) -> None:
    """Give ``decoder`` the records of the lines ``data[start:size]``; ``data`` starts at byte ``place`` of the file.

    A line that is broken, empty or no object is passed over, and one that holds two objects (a lost newline) is two
    records. A last line without its newline may still be being written: it counts when it is complete. Never raises.

    But for ids, the frequent records of a session begin with the same bytes again and again: these are
    ``decoder.heads``. A message of the model from the end of its parent's id to its own id, and from there to its
    content; a result from the end of its parent's id to the id of the call that is answered; a record that gives no
    event up to the end of its type. Empty stands for "none yet"; each is set when such a record was looked at in full.
    All this saves time and changes nothing: a line means the same whatever stood before it.
    """
    find = data.find
    style = style_of(data, start)
    parent, to_id = style.parent, len(style.parent)
    holes = find(b"\0", start, size) >= 0  # a crash leaves them; lines without are read as ever
    looked = size if holes else start  # up to here no run of dull lines is looked for
    message, content, result, dull = decoder.heads
    to_message, to_content, to_result, to_dull = len(message), len(content), len(result), len(dull)
    while start < size:
        if start >= looked and data[start : start + 8] == b'{"type":':
            start, looked = _past_dull(data, start, size)
        end = find(b"\n", start, size)
        if end < 0:
            end = size
        elif data[end - 1] == 0x7D and not (holes and find(b"\0", start, end) >= 0):
            at = start + to_id + 36  # as long as a uuid is
            try:
                if data[start : start + 8] == b'{"type":':
                    kind = find(b'"', start + 8, end) + 1
                    done = data[kind : find(b'"', kind, end)] in _DULL and not _goes_on(data, kind, end)
                elif data[start : start + to_id] != parent or find(b'"', start + to_id, end) != at:
                    done = _checked(decoder, data, style_of(data, start), (start, 0, end), place)
                elif to_result and data[at : at + to_result] == result:
                    done = _result(decoder, data, style, start, at + to_result, end, place)
                elif to_dull and data[at : at + to_dull] == dull:
                    done = not _goes_on(data, at, end)
                else:
                    quote = 0
                    if to_message and data[at : at + to_message] == message:
                        ident = at + to_message
                        quote = find(b'"', ident, end)
                    if quote and data[quote : quote + to_content] == content:
                        ids = data[ident:quote].decode(), "", ""
                        done = _message(decoder, data, style, start, quote + to_content - 1, end, ids, place)
                    else:
                        done = _checked(decoder, data, style, (start, at, end), place)
                        message, content, result, dull = decoder.heads
                        to_message, to_content = len(message), len(content)
                        to_result, to_dull = len(result), len(dull)
            except (ValueError, RecursionError):
                done = False
            if done:
                start = end + 1
                continue
        for record in records_of(data[start:end], few=decoder.few):
            decoder.add(record, place + start)
        start = end + 1


def _past_dull(data: bytes, start: int, size: int) -> "tuple[int, int]":
    """Where the lines go on behind a run of lines without events, and up to where they were looked at.

    A run reaches to the next record of the conversation. The first is ``start`` when something else is in it.
    """
    stop = data.find(_RECORD, start, size)
    if stop < 0:
        stop = size
    lines = data[start:stop]
    if lines[-2:] != b"}\n" or b'}{"' in lines:
        return start, stop
    for line in lines.split(b"\n"):
        if line and not (line.startswith(_DULL_STARTS) and line.endswith(b"}")):
            return start, stop
    return stop, stop


def records_of(line: bytes, *, few: bool = False) -> "list[dict[str, Any]]":
    """The records on a line, whole. Usually one; two when a newline was lost, none when it is broken. Never raises.

    ``few``: as for :class:`gstack_hosts.claude_code.events.Decoder`.
    """
    text = line.replace(b"\0", b"").decode("utf-8", "replace")
    found: list[dict[str, Any]] = []
    place = 1 if text.startswith("\ufeff") else 0
    while True:
        start = text.find("{", place)
        if start < 0 or text[place:start].strip():
            return found  # nothing more, or no object
        try:
            value, place = scan_json(text, start, alone=few)
        except (ValueError, RecursionError):
            place = _next_record(text, start + 1)
            if place < 0:
                return found
            continue
        if isinstance(value, dict):
            found.append(value)


def _next_record(text: str, start: int) -> int:
    """Where, on a line that broke off, the next record begins; -1 for nowhere.

    A record that another one holds is no such: it is the value of a key or stands in a list.
    """
    while True:
        start = text.find(_RECORD.decode(), start)
        if start < 0 or text[:start].rstrip()[-1:] not in (":", ",", "["):
            return start
        start += 1


def _checked(decoder: "Decoder", data: bytes, style: Style, places: "tuple[int, int, int]", place: int) -> bool:
    """Give ``decoder`` the record of a line that begins otherwise than those before it, and remember how it begins.

    ``places`` are where the line starts, where its parent's id ends (0: it has no uuid there) and where the line ends.
    False when it must be decoded whole; ValueError means the same.
    """
    start, known, end = places
    find = data.find
    head = min(start + _HEAD, end)
    at = find(style.message, start, head)
    if at < 0:
        stop = _dull_until(data, style, start, end)
        if known and stop:
            decoder.heads = (*decoder.heads[:3], data[known:stop])
        return stop > 0
    if not _is_plain_head(data, style, start, at, end):
        return False
    content = find(style.content, at, min(at + _HEAD, end))
    if content < 0 or find(b"{", at + len(style.message), content) >= 0:
        return False
    body = content + len(style.content) - 1
    uuid, stamp = _own(data, style.uuid, start, at), _own(data, style.stamp, start, at)
    if data.startswith((style.ref, style.result), body):
        if find(style.user, start, at) < 0:
            return False
        if uuid or not data.startswith(style.ref, body):
            return _results(decoder, data, (start, body, end), style, (uuid, stamp), place)
        ref = body + len(style.ref)
        if not _result(decoder, data, style, start, ref, end, place):
            return _results(decoder, data, (start, body, end), style, (uuid, stamp), place)
        if known:
            message, text, _, dull = decoder.heads
            decoder.heads = (message, text, data[known:ref], dull)
        return True
    ident = find(style.id, at, content)
    typed = find(style.assistant, start, at) > 0
    if typed and not uuid and data[end - 2 : end] == b'"}':  # in 2025 it could be the last key
        uuid = _own(data, style.uuid, end - len(style.uuid) - 38, end)
    if ident < 0 or bool(uuid) != typed or (typed and not stamp):
        return False
    ident += len(style.id)
    quote = find(b'"', ident, content)
    ids = data[ident:quote].decode(), uuid, stamp
    made = find(b'"<synthetic>"', max(start, body - 400), body) >= 0  # by the client, not by the model
    if not _message(decoder, data, style, start, body, end, ids, place, made=made):
        return False
    if known and not uuid and not made:
        decoder.heads = (data[known:ident], data[quote : body + 1], *decoder.heads[2:])
    return True


def _is_plain_head(data: bytes, style: Style, start: int, at: int, end: int) -> bool:
    """Whether what stands before a record's message is flat, and the record of the main thread and no API error."""
    find = data.find
    if find(b"{", start + 1, at) >= 0 or find(b'"isApiErrorMessage"', start, at) >= 0:
        return False
    if find(style.main, start, at) > 0:
        return True
    return find(b'"isSidechain"', start, end) < 0 and find(b'"agentId"', start, end) < 0


def _dull_until(data: bytes, style: Style, start: int, end: int) -> int:
    """Where the type of a record ends that gives no event and is alone on its line; 0 for any other line.

    Only for lines without a message.
    """
    head = min(start + _HEAD, end)
    for needle in (style.attachment, style.progress):
        at = data.find(needle, start, head)
        if at > 0 and data.find(b"{", start + 1, at) < 0:
            at += len(needle)
            stop = data.find(b'"', at, end) + 1
            return 0 if data[at : stop - 1] in _TELLING or _goes_on(data, at, end) else stop
    return 0


def _message(
    decoder: "Decoder",
    data: bytes,
    style: Style,
    start: int,
    body: int,
    end: int,
    ids: "tuple[str, str, str]",
    place: int,
    *,
    made: bool = False,
) -> bool:
    """A message of the model, whose content begins at ``body``: decode that, find the rest.

    ``ids`` are the message's id, and its record's uuid and time where they stand before it. ``made``: what it says was
    written by the client.
    """
    ident, uuid, stamp = ids
    stop = data.find(style.stop, body, end) + 1
    blocks: Any = None
    if not stop:
        blocks, stop = _scan(data, body, end, decoder.few)
    elif stop - body > 800 and data.startswith(style.call, body):
        blocks = _writer(data, style, body, stop)
    if blocks is None:
        text = data[body:stop].decode()
        blocks, length = scan_json(text, alone=decoder.few)
        if length != len(text):
            return False
    rest = data[stop:end]
    if not uuid:
        tail = rest.find(style.tail)
        if tail < 0:
            return False
        uuid, stamp, _ = _pair(data, style, stop + tail + len(style.tail), end)
    if not uuid or b'"isApiErrorMessage"' in rest or b'}{"' in rest or _RECORD in rest or "\\" in ident:
        return False
    decoder.take_message(uuid, stamp, place + start, ident, () if made else blocks)
    return True


def _writer(data: bytes, style: Style, body: int, stop: int) -> "list[dict[str, Any]] | None":
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


def _result(decoder: "Decoder", data: bytes, style: Style, start: int, ref: int, end: int, place: int) -> bool:
    """The result of a tool that didn't fail, for the call whose id begins at ``ref``.

    Its text and its value are decoded only where events need them.
    """
    find = data.find
    after_ref, to_text, fine, to_fine, shut, to_uuid, key, behind, to_value = style.of_result
    quote = find(b'"', ref, end)
    text = quote + to_text
    if data[quote:text] != after_ref:
        return False
    closed = find(shut, text, end)
    if closed < 0:
        return False
    stop = closed - to_fine if data[closed - to_fine : closed] == fine else closed
    ident = data[ref:quote].decode()
    said: object = None
    raw = b""
    kind = decoder.needs_text(ident)
    if data[text] != 0x22 or kind == "agent" or (kind and data.startswith(_BACKGROUND, text)):
        told = data[text:stop].decode("utf-8", "replace")
        said, length = scan_json(told, alone=decoder.few)
        if length != len(told):
            return False
    elif data[stop - 1] != 0x22 or data[stop - 2] == 0x5C or stop - 1 == text:
        return False
    elif find(key, max(text + 1, stop - 400), stop) >= 0:
        return False  # another key stands behind the text
    else:
        raw = data[text:stop]
        said = _later(raw) if kind else None
    uuid, stamp, after = _pair(data, style, closed + to_uuid, end)
    if not uuid or "\\" in ident:
        return False
    value = None
    if data[after : after + to_value] == behind:
        after += to_value
        if not data.startswith(style.dull, after):
            value, after = _scan(data, after, end, decoder.few)
        elif raw and data.startswith(style.output + raw + style.errors, after):
            after += len(style.output) + len(raw)
            raw = b""  # what a shell printed stands twice, so it is one text
        if find(_RECORD, after, end) >= 0:
            return False
    elif find(style.any_value, after, end) >= 0 or _goes_on(data, after, end):
        return False
    if b'"type"' in raw:
        return False  # another block stands behind the text: they have types
    decoder.take_result(uuid, stamp, place + start, ident, said, value)
    return True


def _later(raw: bytes) -> "Callable[[], str]":
    """A function that decodes a JSON text."""

    def text() -> str:
        try:
            return str(scan_json(raw.decode("utf-8", "replace"))[0])
        except ValueError:  # a broken escape: the line isn't looked at a second time
            return ""

    return text


def _goes_on(data: bytes, start: int, end: int) -> bool:
    """Whether another record begins between ``start`` and ``end``, after a lost newline or a record that broke off."""
    return data.find(b'}{"', start, end) >= 0 or data.find(_RECORD, start, end) >= 0


def _results(
    decoder: "Decoder",
    data: bytes,
    places: "tuple[int, int, int]",
    style: Style,
    ids: "tuple[str, str]",
    place: int,
) -> bool:
    """Results in another order of keys, or several in one record, whose list begins at ``body``."""
    start, body, end = places
    uuid, stamp = ids
    blocks, stop = _scan(data, body, end, decoder.few)
    for block in blocks:
        if not isinstance(block, dict) or block.get("type") != "tool_result" or block.get("is_error") is True:
            return False
    if not uuid and data.startswith(style.shut, stop):
        uuid, stamp, _ = _pair(data, style, stop + len(style.shut), end)
    if not uuid or not stamp or _goes_on(data, stop, end):
        return False
    value = None
    at = data.find(style.any_value, stop, end)
    if at > 0:
        at += len(style.any_value)
        if not data.startswith(style.dull, at):
            value = _scan(data, at, end, decoder.few)[0]
    decoder.take_results(uuid, stamp, place + start, blocks, value)
    return True


def _scan(data: bytes, at: int, end: int, few: bool) -> "tuple[Any, int]":
    """The JSON value at ``at``, and where it ends. Raises ValueError."""
    text = data[at:end].decode("utf-8", "replace")
    value, stop = scan_json(text, alone=few)
    if not text.isascii():
        if "\ufffd" in text:
            raise ValueError("bytes that aren't UTF-8 move the places")
        stop = len(text[:stop].encode("utf-8"))
    return value, at + stop


def _own(data: bytes, needle: bytes, start: int, end: int) -> str:
    """The plain text after ``needle``; ``""`` without the needle. Raises ValueError when the text isn't plain."""
    at = data.find(needle, start, end)
    if at < 0:
        return ""
    at += len(needle)
    value = data[at : data.find(b'"', at)].decode("ascii")
    if "\\" in value:
        raise ValueError("an escape")
    return value


def _pair(data: bytes, style: Style, at: int, end: int) -> "tuple[str, str, int]":
    """The uuid that starts at ``at``, the time stamp after it, and where that ends; empty where they don't stand so."""
    after_uuid, to_stamp, to_last = style.of_pair
    last = at + to_last  # as long as a uuid and a time are; anything else is looked for
    both = data[at:last].decode()
    if both[36:to_stamp] == after_uuid and data[last : last + 1] == b'"':
        uuid, stamp = both[:36], both[to_stamp:]
    else:
        stop = data.find(b'"', at, end)
        after = stop + len(after_uuid)
        if not data.startswith(style.after_uuid, stop):
            return "", "", at
        last = data.find(b'"', after, end)
        uuid, stamp = data[at:stop].decode(), data[after:last].decode()
    if '"' in uuid or '"' in stamp or "\\" in both or "\\" in stamp:
        return "", "", at
    return uuid, stamp, last

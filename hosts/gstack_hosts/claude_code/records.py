"""From the bytes of a Claude Code transcript to records, decoding no more of them than events need.

Hot: the stop hook reads up to 32 MiB with it, so builtins only, and long functions on purpose. A record of 2.1.332 has
some thirty keys, and most of its bytes stand twice, in the message and in ``toolUseResult``. The two frequent kinds, a
message of the model and the result of a tool that didn't fail, are therefore not decoded as a whole: the few values
that matter are found by searching. That is safe because a quote inside a JSON text is escaped, so that a key in bare
quotes, such as ``"uuid":"``, can't stand inside one; and what stands before the message must hold no brace, so that it
is the record's own. Whatever looks different in any way is decoded whole.
"""

from gstack.lowlevel import scan_json
from gstack_hosts.claude_code.frequent import RECORD, goes_on, own, take_message, take_result, take_results
from gstack_hosts.claude_code.needles import Style, style_of

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
#: Attachments and progress records that may give one.
_TELLING = (b"queued_command", b"hook_additional_context", b"task_status", b"agent_progress")

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
    message, content, result, dull = decoder.heads
    to_message, to_content, to_result, to_dull = len(message), len(content), len(result), len(dull)
    while start < size:
        end = find(b"\n", start, size)
        if end < 0:
            end = size
        elif data[end - 1] == 0x7D and not (holes and find(b"\0", start, end) >= 0):
            at = start + to_id + 36  # as long as a uuid is
            try:
                if data[start : start + 8] == b'{"type":':
                    kind = find(b'"', start + 8, end) + 1
                    done = data[kind : find(b'"', kind, end)] in _DULL and not goes_on(data, kind, end)
                elif data[start : start + to_id] != parent or find(b'"', start + to_id, end) != at:
                    done = _checked(decoder, data, style_of(data, start), (start, 0, end), place)
                elif to_result and data[at : at + to_result] == result:
                    done = take_result(decoder, data, style, start, at + to_result, end, place)
                elif to_dull and data[at : at + to_dull] == dull:
                    done = not goes_on(data, at, end)
                else:
                    quote = 0
                    if to_message and data[at : at + to_message] == message:
                        ident = at + to_message
                        quote = find(b'"', ident, end)
                    if quote and data[quote : quote + to_content] == content:
                        ids = data[ident:quote].decode(), "", ""
                        done = take_message(decoder, data, style, start, quote + to_content - 1, end, ids, place)
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
        start = text.find(RECORD.decode(), start)
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
    uuid, stamp = own(data, style.uuid, start, at), own(data, style.stamp, start, at)
    if data.startswith((style.ref, style.result), body):
        if find(style.user, start, at) < 0:
            return False
        if uuid or not data.startswith(style.ref, body):
            return take_results(decoder, data, (start, body, end), style, (uuid, stamp), place)
        ref = body + len(style.ref)
        if not take_result(decoder, data, style, start, ref, end, place):
            return take_results(decoder, data, (start, body, end), style, (uuid, stamp), place)
        if known:
            message, text, _, dull = decoder.heads
            decoder.heads = (message, text, data[known:ref], dull)
        return True
    ident = find(style.id, at, content)
    typed = find(style.assistant, start, at) > 0
    if typed and not uuid and data[end - 2 : end] == b'"}':  # in 2025 it could be the last key
        uuid = own(data, style.uuid, end - len(style.uuid) - 38, end)
    if ident < 0 or bool(uuid) != typed or (typed and not stamp):
        return False
    ident += len(style.id)
    quote = find(b'"', ident, content)
    ids = data[ident:quote].decode(), uuid, stamp
    made = find(b'"<synthetic>"', max(start, body - 400), body) >= 0  # by the client, not by the model
    if not take_message(decoder, data, style, start, body, end, ids, place, made=made):
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
            return 0 if data[at : stop - 1] in _TELLING or goes_on(data, at, end) else stop
    return 0

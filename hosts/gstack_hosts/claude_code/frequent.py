"""The two frequent kinds of record, a message of the model and a result that is no failure, found in their bytes.

Hot: builtins only. No more of them is decoded than their events need at once. Results are most of a transcript's bytes,
and what they say stands twice in them, in the message and in ``toolUseResult``.
:mod:`gstack_hosts.claude_code.records` says why searching is safe.
"""

from gstack.lowlevel import scan_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gstack_hosts.claude_code.events import Decoder
    from gstack_hosts.claude_code.needles import Style

#: What a record of the conversation begins with.
RECORD = b'{"parentUuid"'
#: What the client writes of an error.
_API_ERROR = b'"isApiErrorMessage"'
#: Tools whose input holds whole texts of which events keep nothing.
_WRITERS = ("Edit", "Write", "MultiEdit")
#: How the text of a shell's result begins that may say that the command goes on in the background.
_BACKGROUND = b'"Command '


# ------------------------------------------------------------------------------------------------- messages


def take_message(
    decoder: "Decoder",
    data: bytes,
    style: "Style",
    start: int,
    body: int,
    end: int,
    ids: "tuple[str, str, str]",
    place: int,
    *,
    made: bool = False,
) -> bool:
    """Give ``decoder`` a message of the model, whose content begins at ``body``; False: decode the line whole.

    ``ids`` are the message's id, and its record's uuid and time where they stand before it. ``made``: what it says was
    written by the client. Raises ValueError, which means the same as False.
    """
    ident, uuid, stamp = ids
    find = data.find
    stop = find(style.stop, body, end) + 1
    blocks: Any = None
    if not stop:
        blocks, stop = _scan(data, body, end, decoder.few)
    if uuid:
        if not _is_plain(data, stop, end):
            return False
    else:
        tail = find(style.tail, stop, end)
        if tail < 0:
            return False
        uuid, stamp, _ = _pair(data, style, tail + len(style.tail), end)
        if not uuid or not _is_plain(data, stop, end):
            return False
    if "\\" in ident:
        return False
    if made:
        blocks = ()
    elif blocks is None:
        blocks = _blocks(data, style, body, stop, decoder.few)
    decoder.take_message(uuid, stamp, place + start, ident, blocks)
    return True


def _blocks(data: bytes, style: "Style", body: int, stop: int, few: bool) -> "Sequence[Any]":
    """The blocks of a message's content; of a long call not the texts that it writes."""
    if stop - body > 800 and data.startswith(style.call, body):
        blocks = _writer(data, style, body, stop)
        if blocks is not None:
            return blocks
    found: Sequence[Any] = _exactly(data[body:stop], few)
    return found


def _writer(data: bytes, style: "Style", body: int, stop: int) -> "list[dict[str, Any]] | None":
    """The one call in a message's content, when its tool is one that writes texts; None for any other content."""
    at = body + len(style.call)
    quote = data.find(b'"', at, stop)
    if not data.startswith(style.name, quote):
        return None
    name = quote + len(style.name)
    after = data.find(b'"', name, stop)
    tool = data[name:after].decode("ascii", "replace")
    if tool not in _WRITERS or data.find(style.block, after, stop) >= 0 or data.find(RECORD, after, stop) >= 0:
        return None
    path = own(data, style.path, after, stop)
    ident = data[at:quote].decode("ascii")
    if not path or "\\" in ident:
        return None
    return [{"type": "tool_use", "id": ident, "name": tool, "input": {"file_path": path}}]


# -------------------------------------------------------------------------------------------------- results


def take_result(decoder: "Decoder", data: bytes, style: "Style", start: int, ref: int, end: int, place: int) -> bool:
    """Give ``decoder`` a result that is alone in its record, for the call whose id begins at ``ref``.

    Its text and its value are decoded only where events need them. False: decode the line whole; a ValueError that is
    raised means the same.
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
    alone = False
    kind = decoder.needs_text(ident)
    if data[text] != 0x22 or kind == "agent" or (kind and data.startswith(_BACKGROUND, text)):
        said = _exactly(data[text:stop], decoder.few)
        alone = True
    elif data[stop - 1] != 0x22 or data[stop - 2] == 0x5C or stop - 1 == text:
        return False
    elif find(key, max(text + 1, stop - 400), stop) >= 0:
        return False  # another key stands behind the text
    elif kind:
        if find(RECORD, text, stop) >= 0:
            return False  # the record broke off in the text, and the next one may answer the same call
        said = _later(data[text:stop])
    uuid, stamp, after = _pair(data, style, closed + to_uuid, end)
    if not uuid or "\\" in ident:
        return False
    value = None
    if data[after : after + to_value] == behind:
        after += to_value
        if not data.startswith(style.dull, after):
            value, after = _scan(data, after, end, decoder.few)
        foot = foot_of(data, style, start, after, end)
        alone = alone or foot > 0
        after = foot or after
    elif find(style.any_value, after, end) >= 0:
        return False
    if goes_on(data, after, end) or (not alone and find(style.another, text, stop) >= 0):
        return False  # another record, or another block behind the text
    decoder.take_result(uuid, stamp, place + start, ident, said, value)
    return True


def foot_of(data: bytes, style: "Style", start: int, after: int, end: int) -> int:
    """Where a record, whose value begins at ``after``, names the record of its call; 0 where it doesn't.

    That is its parent, so no other record stands before that place: of a record that broke off and the next, or of
    two, the parents differ. And it is one result, since it has a value (facts: 2.0 to 2.1.332).
    """
    at = data.rfind(style.source, after, end)
    if at < 0:
        return 0
    at += len(style.source)
    parent = start + len(style.parent)
    return at if data[at : at + 37] == data[parent : parent + 37] else 0


def take_results(
    decoder: "Decoder",
    data: bytes,
    places: "tuple[int, int, int]",
    style: "Style",
    ids: "tuple[str, str]",
    place: int,
) -> bool:
    """Give ``decoder`` results in another order of keys, or several in one record, whose list begins at ``body``.

    ``places`` are where the line starts, where that list begins and where the line ends. The answer is that of
    :func:`take_result`.
    """
    start, body, end = places
    uuid, stamp = ids
    blocks, stop = _scan(data, body, end, decoder.few)
    for block in blocks:
        if not isinstance(block, dict) or block.get("type") != "tool_result" or block.get("is_error") is True:
            return False
    if not uuid and data.startswith(style.shut, stop):
        uuid, stamp, _ = _pair(data, style, stop + len(style.shut), end)
    if not uuid or not stamp or goes_on(data, stop, end):
        return False
    value = None
    at = data.find(style.any_value, stop, end)
    if at > 0:
        at += len(style.any_value)
        if not data.startswith(style.dull, at):
            value = _scan(data, at, end, decoder.few)[0]
    decoder.take_results(uuid, stamp, place + start, blocks, value)
    return True


# ------------------------------------------------------------------------------------------- single values


def _scan(data: bytes, at: int, end: int, few: bool) -> "tuple[Any, int]":
    """The JSON value at ``at``, and where it ends. Raises ValueError.

    ``few``: as for :class:`gstack_hosts.claude_code.events.Decoder`.
    """
    text = data[at:end].decode("utf-8", "replace")
    value, stop = scan_json(text, alone=few)
    if not text.isascii():
        if "\ufffd" in text:
            raise ValueError("bytes that aren't UTF-8 move the places")
        stop = len(text[:stop].encode("utf-8"))
    return value, at + stop


def _exactly(raw: bytes, few: bool) -> "Any":
    """The JSON value that ``raw`` is. Raises ValueError when it is none, or more than one."""
    text = raw.decode()
    value, length = scan_json(text, alone=few)
    if length != len(text):
        raise ValueError("more than a value")
    return value


def _later(raw: bytes) -> "Callable[[], str]":
    """A function that decodes a JSON text."""

    def text() -> str:
        try:
            return str(scan_json(raw.decode("utf-8", "replace"))[0])
        except ValueError:  # a broken escape: the line isn't looked at a second time
            return ""

    return text


def own(data: bytes, needle: bytes, start: int, end: int) -> str:
    """The plain text after ``needle``; ``""`` without the needle. Raises ValueError when the text isn't plain."""
    at = data.find(needle, start, end)
    if at < 0:
        return ""
    at += len(needle)
    value = data[at : data.find(b'"', at)].decode("ascii")
    if "\\" in value:
        raise ValueError("an escape")
    return value


def _pair(data: bytes, style: "Style", at: int, end: int) -> "tuple[str, str, int]":
    """The uuid that starts at ``at``, the time stamp after it, and where that ends; empty where they don't stand so."""
    after_uuid, to_stamp, to_last = style.of_pair
    last = at + to_last  # as long as a uuid and a time are; anything else is looked for
    both = data[at : last + 1].decode()
    if (
        both[36:to_stamp] == after_uuid
        and both[-1:] == '"'
        and both.count('"') == 5
        and "\\" not in both
        and "{" not in both
    ):
        return both[:36], both[to_stamp:-1], last
    stop = data.find(b'"', at, end)
    after = stop + len(after_uuid)
    if not data.startswith(style.after_uuid, stop):
        return "", "", at
    last = data.find(b'"', after, end)
    uuid, stamp = data[at:stop].decode(), data[after:last].decode()
    odd = "\\" in uuid + stamp or "{" in uuid + stamp  # escaped, or broken off before another record
    return ("", "", at) if odd else (uuid, stamp, last)


def goes_on(data: bytes, start: int, end: int) -> bool:
    """Whether another record begins between ``start`` and ``end``, after a lost newline or a record that broke off."""
    return data.find(b'}{"', start, end) >= 0 or data.find(RECORD, start, end) >= 0


def _is_plain(data: bytes, start: int, end: int) -> bool:
    """Whether no other record and no API error stands between ``start`` and ``end``."""
    return not goes_on(data, start, end) and data.find(_API_ERROR, start, end) < 0

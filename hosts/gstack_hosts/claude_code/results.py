"""The result of a tool that didn't fail, of which no more is decoded than events need.

Hot: builtins only. Results are most of a transcript's bytes, and what they say stands twice in them, in the message and
in ``toolUseResult``.
"""

from gstack_hosts.claude_code.peeks import RECORD, exactly, goes_on, later, pair, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gstack_hosts.claude_code.events import Decoder
    from gstack_hosts.claude_code.needles import Style

#: How the text of a shell's result begins that may say that the command goes on in the background.
_BACKGROUND = b'"Command '


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
        said = exactly(data[text:stop], decoder.few)
        alone = True
    elif data[stop - 1] != 0x22 or data[stop - 2] == 0x5C or stop - 1 == text:
        return False
    elif find(key, max(text + 1, stop - 400), stop) >= 0:
        return False  # another key stands behind the text
    elif kind:
        if find(RECORD, text, stop) >= 0:
            return False  # the record broke off in the text, and the next one may answer the same call
        said = later(data[text:stop])
    uuid, stamp, after = pair(data, style, closed + to_uuid, end)
    if not uuid or "\\" in ident:
        return False
    value = None
    if data[after : after + to_value] == behind:
        after += to_value
        if not data.startswith(style.dull, after):
            value, after = scan(data, after, end, decoder.few)
        foot = _foot(data, style, start, after, end)
        alone = alone or foot > 0
        after = foot or after
    elif find(style.any_value, after, end) >= 0:
        return False
    if goes_on(data, after, end) or (not alone and find(style.another, text, stop) >= 0):
        return False  # another record, or another block behind the text
    decoder.take_result(uuid, stamp, place + start, ident, said, value)
    return True


def _foot(data: bytes, style: "Style", start: int, after: int, end: int) -> int:
    """Where a record, whose value begins at ``after``, names the record of its call; 0 where it doesn't.

    That is its parent, so no other record stands before that place: of a record that broke off and the next, or of
    two, the parents differ. And it is one result, since it has a value (facts: 2.0 to 2.1.332).
    """
    at = data.rfind(style.source, after, end) + len(style.source)
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
    blocks, stop = scan(data, body, end, decoder.few)
    for block in blocks:
        if not isinstance(block, dict) or block.get("type") != "tool_result" or block.get("is_error") is True:
            return False
    if not uuid and data.startswith(style.shut, stop):
        uuid, stamp, _ = pair(data, style, stop + len(style.shut), end)
    if not uuid or not stamp or goes_on(data, stop, end):
        return False
    value = None
    at = data.find(style.any_value, stop, end)
    if at > 0:
        at += len(style.any_value)
        if not data.startswith(style.dull, at):
            value = scan(data, at, end, decoder.few)[0]
    decoder.take_results(uuid, stamp, place + start, blocks, value)
    return True

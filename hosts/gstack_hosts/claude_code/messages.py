"""A message of the model: its content is decoded, the rest of its record is found.

Hot: builtins only. :mod:`gstack_hosts.claude_code.records` says why searching is safe.
"""

from gstack_hosts.claude_code.peeks import exactly, is_plain, own, pair, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gstack_hosts.claude_code.events import Decoder
    from gstack_hosts.claude_code.needles import Style

#: Tools whose input holds whole texts of which events keep nothing.
_WRITERS = ("Edit", "Write", "MultiEdit")


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
        blocks, stop = scan(data, body, end, decoder.few)
    if uuid:
        if not is_plain(data, stop, end):
            return False
    else:
        tail = find(style.tail, stop, end)
        if tail < 0:
            return False
        uuid, stamp, _ = pair(data, style, tail + len(style.tail), end)
        if not uuid or not is_plain(data, stop, end):
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
    found: Sequence[Any] = exactly(data[body:stop], few)
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
    if tool not in _WRITERS or data.find(style.block, after, stop) >= 0:
        return None
    path = own(data, style.path, after, stop)
    ident = data[at:quote].decode("ascii")
    if not path or "\\" in ident:
        return None
    return [{"type": "tool_use", "id": ident, "name": tool, "input": {"file_path": path}}]

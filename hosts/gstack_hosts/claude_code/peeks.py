"""Single values of a record, found by searching its bytes.

Hot: builtins only. :mod:`gstack_hosts.claude_code.records` says why that is safe.
"""

from gstack.lowlevel import scan_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gstack_hosts.claude_code.needles import Style

#: What a record of the conversation begins with.
RECORD = b'{"parentUuid"'
#: What the client writes of an error.
_API_ERROR = b'"isApiErrorMessage"'


def scan(data: bytes, at: int, end: int, few: bool) -> "tuple[Any, int]":
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


def exactly(raw: bytes, few: bool) -> "Any":
    """The JSON value that ``raw`` is. Raises ValueError when it is none, or more than one."""
    text = raw.decode()
    value, length = scan_json(text, alone=few)
    if length != len(text):
        raise ValueError("more than a value")
    return value


def later(raw: bytes) -> "Callable[[], str]":
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


def pair(data: bytes, style: "Style", at: int, end: int) -> "tuple[str, str, int]":
    """The uuid that starts at ``at``, the time stamp after it, and where that ends; empty where they don't stand so."""
    after_uuid, to_stamp, to_last = style.of_pair
    last = at + to_last  # as long as a uuid and a time are; anything else is looked for
    both = data[at : last + 1].decode()
    if both[36:to_stamp] == after_uuid and both[-1:] == '"' and both.count('"') == 5 and "\\" not in both:
        return both[:36], both[to_stamp:-1], last
    stop = data.find(b'"', at, end)
    after = stop + len(after_uuid)
    if not data.startswith(style.after_uuid, stop):
        return "", "", at
    last = data.find(b'"', after, end)
    uuid, stamp = data[at:stop].decode(), data[after:last].decode()
    return ("", "", at) if "\\" in uuid + stamp else (uuid, stamp, last)


def goes_on(data: bytes, start: int, end: int) -> bool:
    """Whether another record begins between ``start`` and ``end``, after a lost newline or a record that broke off."""
    return data.find(b'}{"', start, end) >= 0 or data.find(RECORD, start, end) >= 0


def is_plain(data: bytes, start: int, end: int) -> bool:
    """Whether no other record and no API error stands between ``start`` and ``end``."""
    return not goes_on(data, start, end) and data.find(_API_ERROR, start, end) < 0

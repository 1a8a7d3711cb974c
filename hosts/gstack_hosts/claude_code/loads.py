"""Which lines of a transcript may load a skill, told from their bytes. Only such lines are decoded.

Hot: the stop hook searches with it, so builtins only.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# What a line must hold to load a skill: the Skill tool's name (a word in bare quotes can't stand inside a JSON text) or
# the file that is read, in a message of the model; or the envelope of a typed command.

MESSAGE = b'"assistant"'
_ENVELOPE = b"command-message"
#: What an escape of a printable ASCII character starts with.
_ESCAPE = b"\\u00"


def holds_call(data: bytes, start: int, end: int) -> bool:
    """Whether the model's message between ``start`` and ``end`` could load a skill."""
    find = data.find
    return find(b'"Skill"', start, end) >= 0 or find(b"SKILL.md", start, end) >= 0 or escape_in(data, start, end)


def candidates(data: bytes, first: int, last: int) -> "list[tuple[int, int]]":
    """The lines of ``data[first:last]`` that could hold a load, in order, as (start, end).

    The most telling mark comes first, so that most bytes are looked at no more than twice.
    """
    found: dict[int, int] = {}
    at = data.find(MESSAGE, first, last)
    while at >= 0:
        start, end = line_at(data, at, first, last)
        if holds_call(data, start, end):
            found[start] = end
        at = data.find(MESSAGE, end, last)
    at = data.find(_ENVELOPE, first, last)
    while at >= 0:
        start, end = line_at(data, at, first, last)
        found[start] = end
        at = data.find(_ENVELOPE, end, last)
    return sorted(found.items())


def candidates_back(data: bytes, first: int, last: int) -> "Iterator[tuple[int, int]]":
    """The same from the last to the first, for a search that ends at one of the last."""
    message, envelope = data.rfind(MESSAGE, first, last), data.rfind(_ENVELOPE, first, last)
    while message >= 0 or envelope >= 0:
        start, end = line_at(data, max(message, envelope), first, last)
        if envelope >= start or holds_call(data, start, end):
            yield start, end
        if message >= start:
            message = data.rfind(MESSAGE, first, start)
        if envelope >= start:
            envelope = data.rfind(_ENVELOPE, first, start)


def line_at(data: bytes, at: int, first: int, last: int) -> "tuple[int, int]":
    """Where the line at ``at`` starts and ends, newline included, within ``data[first:last]``."""
    return max(data.rfind(b"\n", first, at) + 1, first), _end_of_line(data, at, last)


def _end_of_line(data: bytes, at: int, last: int) -> int:
    return data.find(b"\n", at, last) + 1 or last


def escape_in(data: bytes, start: int, end: int) -> bool:
    """Whether an escape of a printable ASCII character stands between ``start`` and ``end``.

    Claude Code writes none; in a line that another program wrote, a mark could hide in one. Inside text that was
    escaped twice they don't count.
    """
    at = data.find(_ESCAPE, start, end)
    while at >= 0:
        if b"2" <= data[at + 4 : at + 5] <= b"7":
            before = at
            while before > start and data[before - 1] == 0x5C:
                before -= 1
            if (at - before) % 2 == 0:
                return True
        at = data.find(_ESCAPE, at + 4, end)
    return False


def is_plain(ident: str) -> bool:
    """Whether an id is written in one way only, with nothing that could be escaped."""
    return ident.isascii() and ident.replace("-", "").replace("_", "").replace("@", "").isalnum()


def mentions(data: bytes, first: int, last: int, refs: "Collection[str]") -> "Iterator[tuple[int, int]]":
    """The lines of ``data[first:last]`` that may hold one of the ids ``refs``, in order, as (start, end)."""
    if not all(map(is_plain, refs)):
        yield first, last
        return
    needles = [ref.encode() for ref in refs]
    while first < last:
        places = [place for place in [data.find(needle, first, last) for needle in needles] if place >= 0]
        if not places:
            return
        start, first = line_at(data, min(places), first, last)
        yield start, first

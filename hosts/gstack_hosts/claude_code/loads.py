"""Which lines of a transcript may load a skill, told from their bytes. Only such lines are decoded.

Hot: the stop hook searches with it, so builtins only.
"""

from gstack_hosts.claude_code.frequent import foot_of, goes_on
from gstack_hosts.claude_code.needles import style_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# What a line must hold to load a skill: the Skill tool's name (a word in bare quotes can't stand inside a JSON text) or
# the file that is read, in a message of the model; or the envelope of a typed command.

MESSAGE = b'"assistant"'
_ENVELOPE = b"command-message"
#: What an escape of a printable ASCII character starts with.
_ESCAPE = b"\\u00"
#: From how many bytes on a line is worth the look whether it is a result; how far from its start that is said, and how
#: far from its end whose.
_LONG = 3000
_HEAD = 500
_FOOT = 1500


def names_load(data: bytes, start: int, end: int) -> bool:
    """Whether the message between ``start`` and ``end`` names what loads a skill, unless it does in escapes."""
    return data.find(b'"Skill"', start, end) >= 0 or data.find(b"SKILL.md", start, end) >= 0


def holds_call(data: bytes, start: int, end: int) -> bool:
    """Whether the model's message between ``start`` and ``end`` could load a skill."""
    return names_load(data, start, end) or escape_in(data, start, end)


def messages(data: bytes, first: int, last: int) -> "Iterator[tuple[int, int]]":
    """The lines of ``data[first:last]`` that may hold a message of the model, in order, as (start, end)."""
    at = data.find(MESSAGE, first, last)
    while at >= 0:
        start, end = line_at(data, at, first, last)
        yield start, end
        at = data.find(MESSAGE, end, last)


def envelopes(data: bytes, first: int, last: int) -> "list[tuple[int, int]]":
    """The lines of ``data[first:last]`` that may hold the envelope of a typed command, in order, as (start, end)."""
    found = []
    at = data.find(_ENVELOPE, first, last)
    while at >= 0:
        found.append(line_at(data, at, first, last))
        at = data.find(_ENVELOPE, found[-1][1], last)
    return found


def candidates(data: bytes, first: int, last: int, *, back: bool = False) -> "Iterator[tuple[int, int]]":
    """The lines of ``data[first:last]`` that could hold a load, in order, as (start, end); ``back``: the last first."""
    stretches = between_results(data, first, last)
    for start, end in reversed(stretches) if back else stretches:
        found = set(envelopes(data, start, end))
        found.update([line for line in messages(data, start, end) if holds_call(data, *line)])
        yield from sorted(found, reverse=back)


def between_results(data: bytes, first: int, last: int) -> "list[tuple[int, int]]":
    """The lines of ``data[first:last]`` without those that are the long result of a tool and nothing else, as stretches
    of lines (start, end). Results are most of a transcript's bytes, and load nothing."""
    found = []
    since = at = first
    while at < last:
        end = data.find(b"\n", at, last) + 1 or last
        if end - at > _LONG and _is_result(data, at, end):
            if since < at:
                found.append((since, at))
            since = end
        at = end
    if since < last:
        found.append((since, last))
    return found


def _is_result(data: bytes, start: int, end: int) -> bool:
    """Whether a line is one record of a tool's result, as Claude Code writes it: it says so at its start, and at its
    end it names its parent as the record of the call, which no other record on the line would."""
    style = style_of(data, start)
    parent = start + len(style.parent)
    if not data.startswith(style.parent, start) or data.find(b'"tool_result"', parent, parent + _HEAD) < 0:
        return False
    foot = foot_of(data, style, start, end - _FOOT, end)
    return foot > 0 and not goes_on(data, foot, end)


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

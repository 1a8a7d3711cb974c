"""The last part of a long run, and what is left out before it (:class:`gstack.protocols.ReadsEnds`).

Hot: the stop hook judges long runs with it, so builtins only. Two passes in bytes instead of decoding thousands of
records: where the run begins, and whether what is left out holds another load or anything that a verdict depends on.
"""

from gstack.lowlevel import CHUNK
from gstack.transcript import TAIL, epoch
from gstack_hosts.claude_code.loads import MESSAGE, between_results, envelopes, escape_in, messages, names_load
from gstack_hosts.claude_code.records import records_of
from gstack_hosts.claude_code.tools import KINDS
from gstack_hosts.claude_code.transcript import Search, decoded, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gstack.api import Event
    from gstack_hosts.claude_code.transcript import Chunk

#: How much of a run's end is decoded, in bytes.
PART = 1 << 20
#: With more lines that may hold a load, or so many calls whose result was searched for in vain, reading is cheaper.
_LINES = 200
_OPEN = 3


def read_end(
    path: str, *, skills: "Collection[str]", max_bytes: int, block: int = CHUNK, tail: int = TAIL, part: int = PART
) -> "list[Event] | None":
    """The first load of one of ``skills``, and the events of the last ``part`` bytes; empty without a load.

    None where the run must be read, as where a load stands in the last ``tail`` bytes. The errors are those of
    :func:`gstack_hosts.claude_code.transcript.read_run`.
    """
    return reading(path, max_bytes, block, lambda source: _end(Search(source, skills), tail, part))


def rest_lacks(
    path: str,
    *,
    skills: "Collection[str]",
    max_bytes: int,
    events: "Sequence[Event]",
    said: "Sequence[str]",
    called: "Sequence[str]",
    anywhere: "Sequence[str]",
    block: int = CHUNK,
) -> "Event | bool":
    """What :meth:`gstack.protocols.ReadsEnds.rest_lacks` says. Raises ContractState."""
    load, first = events[0], events[1]
    texts, marks, tools = _needles(said), _needles([*anywhere, first.uid]), _tools(called)
    if texts is None or marks is None or tools is None:
        return False
    return reading(
        path, max_bytes, block, lambda source: _lacks(Search(source, skills), load, first.ordinal, texts + tools, marks)
    )


def _end(search: Search, tail: int, part: int) -> "list[Event] | None":
    if search.find_back(tail) is not None or search.searched_from == 0:
        return None
    load = None
    for number, (place, line, copied) in enumerate(search.find_on()):
        if number == _OPEN:
            return None
        load = search.confirmed_from_there((place, line, 0, len(line)), copied)
        if load is not None:
            break
    if load is None:
        return search.nothing()
    events = _last_part(search.after, part)
    return None if events is None or events[0].ordinal <= load.ordinal else [load, *events]


def _last_part(back: "Sequence[Chunk]", part: int) -> "list[Event] | None":
    """The events of the end of the chunks ``back``, last chunk first, from a new message of the model on; None when
    something among them belongs to what stands before: a result, or a record that may be a copy."""
    chunks: list[Chunk] = []
    size = 0
    for chunk in back:
        chunks.insert(0, chunk)
        size += chunk[3] - chunk[2]
        if size >= part:
            break
    before: tuple[object, float] | None = None  # the last message of the model
    answered = False
    for number, (place, data, first, last) in enumerate(chunks):
        for start, end in _lines(data, first, last):
            if data.find(MESSAGE, start, end) < 0:
                answered = answered or data.find(b'"user"', start, end) >= 0
                continue
            message = _message(data[start:end])
            if message is None:
                continue
            if answered and before is not None and message[0] != before[0] and message[1] > before[1]:
                decoder = decoded([(place, data, start, last), *chunks[number + 1 :]])
                apart = not (decoder.orphans or decoder.suspects or decoder.unsure)
                return decoder.finished() or None if apart else None
            before, answered = message, False
    return None


def _message(line: bytes) -> "tuple[object, float] | None":
    """The id and time of the message of the main thread that is alone on a line; None for any other line."""
    records = records_of(line, few=True)
    if len(records) != 1 or records[0].get("isSidechain") is True or records[0].get("agentId") is not None:
        return None
    message, time = records[0].get("message"), epoch(records[0].get("timestamp"))
    ident = message.get("id") if isinstance(message, dict) else None
    return None if ident is None or time is None else (ident, time)


def _lines(data: bytes, first: int, last: int) -> "Iterator[tuple[int, int]]":
    while first < last:
        end = data.find(b"\n", first, last) + 1 or last
        yield first, end
        first = end


def _lacks(
    search: Search, load: "Event", until: int, needles: "Sequence[bytes]", marks: "Sequence[bytes]"
) -> "Event | bool":
    """Whether no message of the model from ``load`` to the byte ``until`` holds one of ``needles``, and nothing else
    than long results one of ``marks``; a later load, where one stands there."""
    read = load.ordinal
    search.known.add(load.uid)
    looked = unanswered = 0
    for place, data, first, last in search.source.chunks(read, until):
        read = place + last
        lines = _without(data, first, last, needles, marks)
        if lines is None or looked + len(lines) > _LINES:
            return False
        looked += len(lines)
        for start, end in lines:
            copied = search.copied_on((place, data, start, end))
            if copied is None:
                continue
            later = search.confirmed_from_there((place, data, start, end), copied)
            if later is not None:
                # one that is no newer may be the copy of one that stands before this
                return later if later.ts is not None and load.ts is not None and later.ts > load.ts else False
            unanswered += 1
            if unanswered == _OPEN:
                return False
    return read == until  # else the file has shrunk


def _without(
    data: bytes, first: int, last: int, needles: "Sequence[bytes]", marks: "Sequence[bytes]"
) -> "list[tuple[int, int]] | None":
    """The lines of ``data[first:last]`` that may hold a load, in order; None where one of the needles or marks stands,
    or something that may hide one."""
    lines: set[tuple[int, int]] = set()
    for start, end in between_results(data, first, last):
        if any(data.find(mark, start, end) >= 0 for mark in (*marks, b"\0")) or escape_in(data, start, end):
            return None
        for line in messages(data, start, end):
            for needle in needles:
                if data.find(needle, *line) >= 0:
                    return None
            if names_load(data, *line):
                lines.add(line)
        lines.update(envelopes(data, start, end))
    return sorted(lines)


def _needles(texts: "Sequence[str]") -> "list[bytes] | None":
    """The texts as they stand in JSON; None where one may be written in several ways."""
    plain = [text for text in texts if text and text.isascii() and text.isprintable() and not set('"\\/') & set(text)]
    return [text.encode() for text in plain] if len(plain) == len(texts) else None


def _tools(kinds: "Sequence[str]") -> "list[bytes] | None":
    """How the names of the tools of these kinds stand in JSON; None for a kind whose tools may have any name."""
    if not set(kinds) <= set(KINDS.values()):
        return None
    return [b'"' + name.encode() + b'"' for name, kind in KINDS.items() if kind in kinds]

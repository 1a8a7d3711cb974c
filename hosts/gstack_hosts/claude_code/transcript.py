"""Reading Claude Code's transcripts: whole, and from the last load of a skill on.

Hot: the stop hook calls :func:`read_run`, so builtins only. It looks for loads from the end backwards, in bytes, and
decodes from the load on; a session that loaded no such skill is decided by searching alone (performance, rule 9).
"""

import gc

from gstack.lowlevel import CHUNK, join
from gstack.transcript import TAIL, Source, epoch, is_load_of, lines_of, since_load
from gstack_hosts.claude_code.events import Decoder
from gstack_hosts.claude_code.loads import MESSAGE, between_results, candidates, is_plain, mentions
from gstack_hosts.claude_code.records import feed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import TypeVar

    from gstack.api import Event
    from gstack.errors import UnknownShape

    Line = tuple[int, bytes]
    #: Whole lines, as :meth:`gstack.transcript.Source.chunks` gives them.
    Chunk = tuple[int, bytes, int, int]
    T = TypeVar("T")

#: How many lines before a load are decoded as well when results of calls that stand there follow it.
_CONTEXT = 60
#: The key of a record's time.
_STAMP = b'"timestamp"'
#: How many bytes that weren't decoded are searched for ids at most; with more, they are decoded.
_SEARCH = 64 << 20


def read_transcript(path: str, *, max_bytes: int) -> "list[Event]":
    """The whole transcript, main thread and subagents, in file order.

    Raises UnknownShape when not one user or assistant record of a known shape is in it (an empty file has none),
    ContractState when it can't be read or has more than ``max_bytes``.
    """
    return reading(path, max_bytes, CHUNK, whole)


def read_run(
    path: str, *, skills: "Collection[str]", max_bytes: int, block: int = CHUNK, tail: int = TAIL
) -> "list[Event]":
    """The events from the main thread's last load of one of ``skills`` (that load first) to the end.

    They are the end of what :func:`read_transcript` gives, and the errors are the same; empty when there is no such
    load. A skill may be named with or without a slash or its plugin's prefix. ``block`` and ``tail`` say how much is
    read at once, and how far back from the end the search goes before it begins at the start, in bytes.

    A record that was copied from before the load is told by its time, which is older; only a whole stretch of history
    that was copied, its load included, and that begins farther back than was read, is taken for the original.
    """
    return reading(path, max_bytes, block, lambda source: Search(source, skills).run(tail))


def last_load(
    path: str, *, skills: "Collection[str]", max_bytes: int, block: int = CHUNK, tail: int = TAIL
) -> "Event | None":
    """The load that :func:`read_run` begins with, or None; the same errors.

    It costs a search and no more, however far back the load stands: for the many stops at which the load alone tells
    that there is nothing to judge.
    """
    return reading(path, max_bytes, block, lambda source: Search(source, skills).load(tail))


def transcripts(env: "Mapping[str, str]") -> "list[str]":
    """The sessions' transcripts on this machine, newest first; subagents' files are not among them."""
    import os

    from gstack_hosts.claude_code.paths import config_dir

    found = []
    root = join(config_dir(env), "projects")
    for folder in _entries(root):
        for name in _entries(join(root, folder)):
            # until 2025 a subagent's file lay beside its session's
            if name.endswith(".jsonl") and not name.startswith("agent-"):
                path = join(root, folder, name)
                try:
                    found.append((os.stat(path).st_mtime_ns, path))
                except OSError:
                    continue
    return [path for _, path in sorted(found, reverse=True)]


def _entries(folder: str) -> "list[str]":
    import os

    try:
        return os.listdir(folder)
    except OSError:
        return []


def reading(path: str, max_bytes: int, block: int, read: "Callable[[Source], T]") -> "T":
    """What ``read`` makes of a transcript; the garbage collector would walk its many objects, which hold no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        with Source(path, max_bytes, block=block) as source:
            return read(source)
    finally:
        if was_on:
            gc.enable()


def decoded(chunks: "Iterable[Chunk]", *, few: bool = False) -> Decoder:
    """What is in ``chunks``; ``few``: as for :class:`gstack_hosts.claude_code.events.Decoder`."""
    decoder = Decoder(few=few)
    for place, data, first, last in chunks:
        feed(decoder, place, data, first, last)
    return decoder


def whole(source: Source) -> "list[Event]":
    """All events of a transcript. Raises UnknownShape."""
    decoder = decoded(source.chunks(0, source.size))
    if not decoder.shaped:
        raise _unknown(source.path)
    return decoder.finished()


def _unknown(path: str) -> "UnknownShape":
    from gstack.errors import UnknownShape

    return UnknownShape(f"{path}: no user or assistant record of a Claude Code transcript is in it")


# ------------------------------------------------------------------------------------ searching for the load


class Search:
    """Looks for the last load of one of ``skills``: first in what is near the end, then from the start on.

    A record after the load may be the copy of one before it; what is None then can only be told by more reading.
    """

    def __init__(self, source: Source, skills: "Collection[str]") -> None:
        self.source = source
        self.skills = skills
        #: The ids of the loads that were looked at from the start on.
        self.known: set[str] = set()
        #: No line from here on loads one of the skills.
        self.searched_from = source.size
        #: What was read after the load's line began, last chunk first; the chunk that stands before the load.
        self.after: list[Chunk] = []
        self.before: Chunk = (0, b"", 0, 0)
        #: The chunks that come before that.
        self.back: Iterator[Chunk] = iter(())

    def run(self, tail: int) -> "list[Event]":
        """The run, searched ``tail`` bytes back before it is searched from the start."""
        run = self.run_in_tail() if self.find_back(tail) else []
        if run == [] and self.searched_from > 0:
            run = self.run_from_start()
        if run is None:
            return since_load(whole(self.source), self.skills)
        return run or self.nothing()

    def load(self, tail: int) -> "Event | None":
        """The load alone."""
        load = self.find_back(tail)
        if load is not None and not self.is_original(load):
            load = None
            self.searched_from = self.source.size  # all lines are still to be searched
        if load is None and self.searched_from > 0:
            load = self.load_from_start()
        if load is None:
            self.nothing()
        return load

    def nothing(self) -> "list[Event]":
        """No events, if this is a transcript at all. Raises UnknownShape."""
        for place, line in self.source.lines_back(self.source.size):
            if decoded([(place, line, 0, len(line))], few=True).shaped:
                return []
        raise _unknown(self.source.path)

    # ------------------------------------------------------------------------------------- from the end

    def find_back(self, limit: int) -> "Event | None":
        """The last load in the last ``limit`` bytes; what was read stands in ``after`` and ``before``."""
        if not self.skills:
            self.searched_from = 0
            return None
        self.back = self.source.chunks_back(limit)
        for place, data, first, last in self.back:
            for start, end in candidates(data, first, last, back=True):
                later = [(place, data, end, last), *reversed(self.after)]
                load = self.confirmed((place, data, start, end), later)
                if load is not None:
                    self.after.append((place, data, start, last))
                    self.before = (place, data, first, start)
                    self.searched_from = place + start
                    return load
            self.after.append((place, data, first, last))
            self.searched_from = place + first
        return None

    def lines_before(self) -> "Iterator[Line]":
        """The lines before the load that was found from the end, the nearest first."""
        yield from lines_of(*self.before)
        for chunk in self.back:
            yield from lines_of(*chunk)

    def is_original(self, load: "Event") -> bool:
        """Whether the load that was found from the end is no copy of one that stands before it."""
        newest = None
        chunk: Chunk | None = self.before
        start = load.ordinal
        while chunk is not None and newest is None:
            place, data, first, last = chunk
            start = place + first
            # without long results: of what stands between a load and its copy, their calls tell as much
            for stretch in between_results(data, first, last):
                for stamp in _times_in(data, *stretch):
                    if newest is None or stamp > newest:
                        newest = stamp
            chunk = next(self.back, None) if newest is None else None
        if newest is None and start == 0:
            return True
        if newest is not None and load.ts is not None and newest < load.ts:
            return True
        return not self.stands_before(load.ordinal, [load.uid])

    def newest(self, looked: "list[Line]", before: "Iterator[Line]") -> "float | None":
        """The latest time of the messages before the load, as far as they need no more reading, but of one at least;
        None when there is none. All lines that are looked at are added to ``looked``."""
        edge = self.before[0] + self.before[2]
        newest = None
        for entry in before:
            looked.append(entry)
            stamp = _time_of(entry[1])
            if stamp is not None and (newest is None or stamp > newest):
                newest = stamp
            if newest is not None and entry[0] <= edge:
                break
        return newest

    def run_in_tail(self) -> "list[Event] | None":
        """The run from the load on that was found from the end."""
        after = self.after[::-1]
        start = after[0][0] + after[0][2]
        decoder = decoded(after)
        looked: list[Line] = []
        before = self.lines_before()
        newest = self.newest(looked, before)
        if decoder.orphans:  # as a rule the results of calls that stand in the load's own message
            looked.extend([entry for _, entry in zip(range(_CONTEXT), before, strict=False)])
            while looked and b'"tool_result"' in looked[-1][1]:
                looked.pop()  # its call stands farther back
        elif newest is None or decoder.first is None or newest >= decoder.first:
            # the load stands behind a record that is no older, so it may itself be a copy
            decoder.suspects.append(decoder.events[0].uid)
        if looked and (decoder.orphans or looked[-1][0] == 0):
            start = looked[-1][0]
            decoder = decoded([*[(place, line, 0, len(line)) for place, line in reversed(looked)], *after])
        return self.run_of(decoder, start)

    # ----------------------------------------------------------------------------------- from the start

    def run_from_start(self) -> "list[Event] | None":
        """The run from the first line on that may hold a load, up to where the search from the end stopped."""
        for place, _, _ in self.find_on():
            decoder = decoded(self.source.chunks(place, self.source.size))
            return self.run_of(decoder, place)
        return []

    def load_from_start(self) -> "Event | None":
        """The last load before ``searched_from`` whose call succeeded."""
        for place, line, copied in reversed(list(self.find_on())):
            load = self.confirmed_from_there((place, line, 0, len(line)), copied)
            if load is not None:
                return load
        return None

    def find_on(self) -> "Iterator[tuple[int, bytes, set[str]]]":
        """The lines before ``searched_from`` that hold a load, if the call in it succeeds; with the ids of those on it
        that are copies."""
        for place, data, first, last in self.source.chunks(0, self.searched_from):
            for start, end in candidates(data, first, last):
                copied = self.copied_on((place, data, start, end))
                if copied is not None:
                    yield place + start, data[start:end], copied

    def copied_on(self, line: "Chunk") -> "set[str] | None":
        """The ids of the loads on a line that are ``known``; None when it holds no load of the skills that isn't. All
        of them are known then."""
        events = decoded([line], few=True).events
        ids = {event.uid for event in events if event.type == "load"}
        copied = ids & self.known
        self.known |= ids
        return None if copied == ids or not any(is_load_of(event, self.skills) for event in events) else copied

    def confirmed_from_there(self, line: "Chunk", copied: "Collection[str]") -> "Event | None":
        """As :meth:`confirmed`, searching all that follows the line."""
        place, _, _, end = line
        return self.confirmed(line, self.source.chunks(place + end, self.source.size), copied)

    # --------------------------------------------------------------------------------------------- both

    def confirmed(self, line: "Chunk", later: "Iterable[Chunk]", copied: "Collection[str]" = ()) -> "Event | None":
        """The last load on a line, but for the ``copied``, whose call has a result in ``later`` that is no failure."""
        decoder = decoded([line], few=True)
        here = line[0] + line[2]
        if not any(is_load_of(event, self.skills) for event in decoder.events):
            return None
        for place, data, first, last in later:
            if not decoder.loading:
                break
            for start, end in mentions(data, first, last, decoder.loading):
                feed(decoder, place, data, start, end)
                if not decoder.loading:
                    break
        loads = [event for event in decoder.finished() if event.ordinal == here and is_load_of(event, self.skills)]
        return next((load for load in reversed(loads) if load.uid not in copied), None)

    def run_of(self, decoder: Decoder, start: int) -> "list[Event] | None":
        """The run among a decoder's events, unless something from before ``start`` may have been copied into it."""
        events = decoder.finished()
        run = since_load(events, self.skills)
        if start == 0 or not run:
            return run
        since = run[0].ts
        if since is None or decoder.unsure:
            return None
        line = [event for event in events[: -len(run)] if event.ordinal == run[0].ordinal]
        older = [event.uid for event in line + run if event.ts is not None and event.ts < since]
        return None if self.stands_before(start, [*decoder.suspects, *older]) else run

    def stands_before(self, start: int, ids: "list[str]") -> bool:
        """Whether one of ``ids`` may stand before ``start``."""
        ids = list(dict.fromkeys(ids))
        if not ids:
            return False
        if len(ids) * start > _SEARCH or not all(map(is_plain, ids)):
            return True
        needles = [ident.encode() for ident in ids]
        for _, data, first, last in self.source.chunks(0, start):
            for needle in needles:
                if data.find(needle, first, last) >= 0:
                    return True
        return False


def _times_in(data: bytes, start: int, end: int) -> "Iterator[float]":
    """The times that are written between ``start`` and ``end``."""
    at = data.find(_STAMP, start, end)
    while at >= 0:
        first = data.find(b'"', at + len(_STAMP), end) + 1
        last = data.find(b'"', first, end)
        stamp = epoch(data[first:last].decode("latin-1")) if 0 < first < last else None
        if stamp is not None:
            yield stamp
        at = data.find(_STAMP, max(at + len(_STAMP), last), end)


def _time_of(line: bytes) -> "float | None":
    """When a message was written, as far as a look tells: the first time stamp on its line. None for any other line."""
    at = line.find(_STAMP)
    if at < 0 or (b'"user"' not in line and MESSAGE not in line):
        return None
    start = line.find(b'"', at + len(_STAMP)) + 1
    return epoch(line[start : line.find(b'"', start)].decode("latin-1"))

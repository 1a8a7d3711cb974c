"""Reading Claude Code's transcripts: whole, and from the last load of a skill on.

Hot: the stop hook calls :func:`read_run`, so builtins only. It looks for loads from the end backwards, in bytes, and
decodes from the load on; a session that loaded no such skill is decided by searching alone (performance, rule 9).
"""

import gc

from gstack.errors import UnknownShape
from gstack.lowlevel import CHUNK, join
from gstack.transcript import TAIL, Source, epoch, is_load_of, since_load
from gstack_hosts.claude_code.events import Decoder
from gstack_hosts.claude_code.paths import config_dir
from gstack_hosts.claude_code.records import Heads, feed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from gstack.api import Event

    Line = tuple[int, bytes]

#: What an escape of a printable ASCII character starts with.
_ESCAPE = b"\\u00"
#: How many lines before a load are decoded as well when results of calls that stand there follow it.
_CONTEXT = 60
#: How many bytes that weren't decoded are searched for ids at most; with more, they are decoded.
_SEARCH = 64 << 20


def read_transcript(path: str, *, max_bytes: int) -> "list[Event]":
    """The whole transcript, main thread and subagents, in file order.

    Raises UnknownShape when not one user or assistant record of a known shape is in it (an empty file has none),
    ContractState when it can't be read or has more than ``max_bytes``.
    """
    with Source(path, max_bytes) as source, _NoCollector():
        return _whole(source)


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
    with Source(path, max_bytes, block=block) as source, _NoCollector():
        search = _Search(source, skills)
        run = search.backwards(tail)
        if run == [] and search.searched_from > 0:
            run = search.forwards()
        if run is None:
            return since_load(_whole(source), skills)
        if not search.shaped:
            raise _unknown(path)
        return run


def last_load(
    path: str, *, skills: "Collection[str]", max_bytes: int, block: int = CHUNK, tail: int = TAIL
) -> "Event | None":
    """The load that :func:`read_run` begins with, or None; the same errors.

    It costs a search and no more, however far back the load stands: for the many stops at which the load alone tells
    that there is nothing to judge.
    """
    with Source(path, max_bytes, block=block) as source, _NoCollector():
        search = _Search(source, skills)
        load = search.load_backwards(tail)
        if load is None and search.searched_from > 0:
            load = search.load_forwards()
        if not search.shaped:
            raise _unknown(path)
        return load


def transcripts(env: "Mapping[str, str]") -> "list[str]":
    """The sessions' transcripts on this machine, newest first; subagents' files are not among them."""
    import os

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


class _NoCollector:
    """Keeps the garbage collector from walking the many objects of a long transcript, which hold no cycles."""

    def __enter__(self) -> None:
        self.was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *exc: object) -> None:
        if self.was_on:
            gc.enable()


def _decoded(lines: "Iterable[Line]") -> Decoder:
    decoder, heads = Decoder(), Heads()
    for place, line in lines:
        feed(decoder, heads, place, line, 0, len(line))
    return decoder


def _decoded_from(source: Source, start: int) -> Decoder:
    decoder, heads = Decoder(), Heads()
    for place, data, first, last in source.chunks(start, source.size):
        feed(decoder, heads, place, data, first, last)
    return decoder


def _whole(source: Source) -> "list[Event]":
    decoder = _decoded_from(source, 0)
    if not decoder.shaped:
        raise _unknown(source.path)
    return decoder.finished()


def _unknown(path: str) -> UnknownShape:
    return UnknownShape(f"{path}: no user or assistant record of a Claude Code transcript is in it")


# ------------------------------------------------------------------------------------ searching for the load


class _Search:
    """Looks for the last load of one of ``skills``.

    Both searches give the run; ``[]`` when they found none where they looked; None when only the whole transcript can
    tell, because a record after the load may be the copy of one before it.
    """

    def __init__(self, source: Source, skills: "Collection[str]") -> None:
        self.source = source
        self.skills = skills
        #: Whether a record of the known shape was seen.
        self.shaped = False
        #: No line from here on loads one of the skills.
        self.searched_from = source.size

    def backwards(self, limit: int) -> "list[Event] | None":
        """Search the last ``limit`` bytes, last line first."""
        lines: list[Line] = []
        back = self.source.lines_back(limit)
        return self._run_in_tail(lines, back) if self._find_back(lines, back) else []

    def _find_back(self, lines: "list[Line]", back: "Iterator[Line]") -> bool:
        """Take lines from ``back`` up to the first that holds a load; all that were taken are added to ``lines``."""
        for place, line in back:
            lines.append((place, line))
            self._look_at_shape(line)
            self.searched_from = place
            if not self.skills:
                if self.shaped:
                    self.searched_from = 0
                    break
            elif _may_load(line) and self._loads(line) and self._confirmed(place, line, reversed(lines[:-1]), ()):
                return True
        return False

    def forwards(self) -> "list[Event] | None":
        """Search from the start up to where the search from the end stopped."""
        for place, _ in self._find_on():
            return self._run_from(place)
        return []

    def _find_on(self) -> "Iterator[Line]":
        """The lines before ``searched_from`` that hold a load, if the call in it succeeds."""
        for place, data, first, last in self.source.chunks(0, self.searched_from):
            at = first
            while not self.shaped and at < last:
                end = _end_of_line(data, at, last)
                self._look_at_shape(data[at:end])
                at = end
            for start, end in _candidates(data, first, last) if self.skills else ():
                if self._loads(data[start:end]):
                    yield place + start, data[start:end]

    def load_backwards(self, limit: int) -> "Event | None":
        """The load, if it is in the last ``limit`` bytes; None when it isn't, or may be the copy of another."""
        lines: list[Line] = []
        back = self.source.lines_back(limit)
        if not self._find_back(lines, back):
            return None
        place, line = lines[-1]
        load = self._confirmed(place, line, reversed(lines[:-1]), ())
        newest = self._newest(lines, back)
        if load is None or (newest is None and lines[-1][0] == 0):
            return load
        if newest is not None and load.ts is not None and newest < load.ts:
            return load
        if self._stands_before(place, [load.uid]):
            self.searched_from = self.source.size  # all lines are still to be searched
            return None
        return load

    def load_forwards(self) -> "Event | None":
        """The last load before ``searched_from`` whose call succeeded."""
        found: list[tuple[int, bytes, set[str]]] = []
        known: set[str] = set()
        for place, line in self._find_on():
            uids = {event.uid for event in _decoded([(place, line)]).events if event.type == "load"}
            if uids - known:  # else it is a copy
                found.append((place, line, uids & known))
            known |= uids
        for place, line, copied in reversed(found):
            after = self.source.chunks(place + len(line), self.source.size)
            later = ((at + first, data[first:last]) for at, data, first, last in after)
            load = self._confirmed(place, line, later, copied)
            if load is not None:
                return load
        return None

    def _look_at_shape(self, line: bytes) -> None:
        if not self.shaped:
            self.shaped = _decoded([(0, line)]).shaped

    def _loads(self, line: bytes) -> bool:
        """Whether a line loads one of the skills, if the call that it holds succeeds."""
        return any(is_load_of(event, self.skills) for event in _decoded([(0, line)]).events)

    def _confirmed(self, place: int, line: bytes, later: "Iterable[Line]", copied: "Collection[str]") -> "Event | None":
        """The last load on a line, but for the ``copied``, whose call has a result in ``later`` that is no failure."""
        decoder = _decoded([(place, line)])
        for at, data in later:
            if not decoder.loading:
                break
            if any(_mentions(data, ref) for ref in decoder.loading):
                feed(decoder, Heads(), at, data, 0, len(data))
        loads = [event for event in decoder.finished() if event.ordinal == place and is_load_of(event, self.skills)]
        return next((load for load in reversed(loads) if load.uid not in copied), None)

    def _newest(self, lines: "list[Line]", back: "Iterator[Line]") -> "float | None":
        """The latest time of the messages before the last of ``lines`` (in reverse order), as far as they need no more
        reading, but of one at least; None when there is none. All lines that are looked at are added to ``lines``."""
        size, block = self.source.size, self.source.block
        edge = size - (size - lines[-1][0] + block - 1) // block * block
        newest = None
        for entry in back:
            lines.append(entry)
            stamp = _time_of(entry[1])
            if stamp is not None and (newest is None or stamp > newest):
                newest = stamp
            if newest is not None and entry[0] <= edge:
                break
        return newest

    def _run_in_tail(self, lines: "list[Line]", back: "Iterator[Line]") -> "list[Event] | None":
        """The run from the load on the last of ``lines`` (in reverse order) on; ``back`` gives the lines before it."""
        decoder, start = _decoded(reversed(lines)), lines[-1][0]
        more = list(lines)
        newest = self._newest(more, back)
        if decoder.orphans:  # as a rule the results of calls that stand in the load's own message
            more.extend([entry for _, entry in zip(range(_CONTEXT), back, strict=False)])
        elif newest is None or decoder.first is None or newest >= decoder.first:
            # the load stands behind a record that is no older, so it may itself be a copy
            decoder.suspects.append(decoder.events[0].uid)
        if decoder.orphans or more[-1][0] == 0:
            decoder, start = _decoded(reversed(more)), more[-1][0]
        return self._run_of(decoder, start)

    def _run_from(self, start: int) -> "list[Event] | None":
        """The run when no line before ``start`` holds a load."""
        decoder = _decoded_from(self.source, start)
        self.shaped = self.shaped or decoder.shaped
        return self._run_of(decoder, start)

    def _run_of(self, decoder: Decoder, start: int) -> "list[Event] | None":
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
        return None if self._stands_before(start, [*decoder.suspects, *older]) else run

    def _stands_before(self, start: int, ids: "list[str]") -> bool:
        """Whether one of ``ids`` may stand before ``start``."""
        ids = list(dict.fromkeys(ids))
        if not ids:
            return False
        if len(ids) * start > _SEARCH or not all(map(_is_plain, ids)):
            return True
        needles = [ident.encode() for ident in ids]
        for _, data, first, last in self.source.chunks(0, start):
            for needle in needles:
                if data.find(needle, first, last) >= 0:
                    return True
        return False


def _time_of(line: bytes) -> "float | None":
    """When a message was written, as far as a look tells: the first time stamp on its line. None for any other line."""
    at = line.find(b'"timestamp"')
    if at < 0 or (b'"user"' not in line and b'"assistant"' not in line):
        return None
    start = line.find(b'"', at + 11) + 1
    return epoch(line[start : line.find(b'"', start)].decode("latin-1"))


def _is_plain(ident: str) -> bool:
    """Whether an id is written in one way only, with nothing that could be escaped."""
    return ident.isascii() and ident.replace("-", "").replace("_", "").replace("@", "").isalnum()


def _mentions(line: bytes, ref: str) -> bool:
    """Whether ``line`` may hold the id ``ref``."""
    return not _is_plain(ref) or ref.encode() in line


# What a line must hold to load a skill: the Skill tool's name (a word in bare quotes can't stand inside a JSON text) or
# the file that is read, in a message of the model; or the envelope of a typed command.


def _may_load(line: bytes) -> bool:
    """Whether ``line`` could hold a load: only then it is decoded."""
    if b'"assistant"' in line and (b'"Skill"' in line or b"SKILL.md" in line or _escape_in(line, 0, len(line))):
        return True
    return b"command-message" in line


def _candidates(data: bytes, first: int, last: int) -> "list[tuple[int, int]]":
    """The lines of ``data[first:last]`` that could hold a load, in order, as (start, end).

    As :func:`_may_load`, with the most telling mark first, so that most bytes are looked at no more than twice.
    """
    found: dict[int, int] = {}
    at = data.find(b'"assistant"', first, last)
    while at >= 0:
        start, end = max(data.rfind(b"\n", first, at) + 1, first), _end_of_line(data, at, last)
        if (
            data.find(b'"Skill"', start, end) >= 0
            or data.find(b"SKILL.md", start, end) >= 0
            or _escape_in(data, start, end)
        ):
            found[start] = end
        at = data.find(b'"assistant"', end, last)
    at = data.find(b"command-message", first, last)
    while at >= 0:
        start, end = max(data.rfind(b"\n", first, at) + 1, first), _end_of_line(data, at, last)
        found[start] = end
        at = data.find(b"command-message", end, last)
    return sorted(found.items())


def _end_of_line(data: bytes, at: int, last: int) -> int:
    return data.find(b"\n", at, last) + 1 or last


def _escape_in(data: bytes, start: int, end: int) -> bool:
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

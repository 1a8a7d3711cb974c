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
from gstack_hosts.claude_code.records import feed, records_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from gstack.api import Event

    Line = tuple[int, bytes]

#: What an escape of a printable ASCII character starts with.
_ESCAPE = b"\\u00"
#: How many lines before a load are decoded as well when results of calls that stand there follow it.
_CONTEXT = 60


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
    decoder = Decoder()
    for place, line in lines:
        feed(decoder, place, line)
    return decoder


def _whole(source: Source) -> "list[Event]":
    decoder = _decoded(source.chunks(0, source.size))
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
        for place, line in back:
            lines.append((place, line))
            self._look_at_shape(line)
            self.searched_from = place
            if not self.skills:
                if self.shaped:
                    self.searched_from = 0
                    return []
            elif _may_load(line) and self._loads(line) and self._succeeded(lines):
                return self._run_in_tail(lines, back)
        return []

    def forwards(self) -> "list[Event] | None":
        """Search from the start up to where the search from the end stopped."""
        for place, data in self.source.chunks(0, self.searched_from):
            at = 0
            while not self.shaped and at < len(data):
                end = _end_of_line(data, at)
                self._look_at_shape(data[at:end])
                at = end
            for start, end in _candidates(data) if self.skills else ():
                line = data[start:end]
                if _may_load(line) and self._loads(line):
                    return self._run_from(place + start)
        return []

    def _look_at_shape(self, line: bytes) -> None:
        if not self.shaped:
            self.shaped = _decoded([(0, line)]).shaped

    def _loads(self, line: bytes) -> bool:
        """Whether a line loads one of the skills, if the call that it holds succeeds."""
        return any([is_load_of(event, self.skills) for event in _decoded([(0, line)]).events])

    def _succeeded(self, lines: "list[Line]") -> bool:
        """Whether the load on the last of ``lines`` (in reverse order) has a result that is no failure."""
        decoder = _decoded(lines[-1:])
        for place, line in reversed(lines[:-1]):
            if not decoder.loading:
                break
            if any([_mentions(line, ref) for ref in decoder.loading]):
                feed(decoder, place, line)
        return any([is_load_of(event, self.skills) for event in decoder.finished()])

    def _run_in_tail(self, lines: "list[Line]", back: "Iterator[Line]") -> "list[Event] | None":
        """The run from the load on the last of ``lines`` (in reverse order) on; ``back`` gives the lines before it."""
        decoder = _decoded(reversed(lines))
        more = list(lines)
        stamp = None
        for entry in back:
            more.append(entry)
            stamp = _time_of(entry[1])
            if stamp is not None:
                break
        start = more[-1][0]
        if start > 0 and (stamp is None or decoder.first is None or stamp > decoder.first):
            return None  # the load stands behind a younger record, so it may itself be a copy
        if decoder.orphans:  # as a rule the results of calls that stand in the load's own message
            for entry in back:
                more.append(entry)
                if len(more) - len(lines) > _CONTEXT:
                    break
            start = more[-1][0]
            decoder = _decoded(reversed(more))
        elif start == 0 and decoder.doubtful:
            decoder = _decoded(reversed(more))
        return self._run_of(decoder, start)

    def _run_from(self, start: int) -> "list[Event] | None":
        """The run when no line before ``start`` holds a load."""
        decoder = _decoded(self.source.chunks(start, self.source.size))
        self.shaped = self.shaped or decoder.shaped
        return self._run_of(decoder, start)

    def _run_of(self, decoder: Decoder, start: int) -> "list[Event] | None":
        return None if start > 0 and decoder.doubtful else since_load(decoder.finished(), self.skills)


def _time_of(line: bytes) -> "float | None":
    """When a message was written; None for a line without one."""
    for record in records_of(line):
        if record.get("type") in ("user", "assistant"):
            return epoch(record.get("timestamp"))
    return None


def _mentions(line: bytes, ref: str) -> bool:
    """Whether ``line`` may hold the id ``ref``; always, where it could be written in more than one way."""
    return not ref.replace("-", "_").isidentifier() or not ref.isascii() or ref.encode() in line


# What a line must hold to load a skill: the Skill tool's name (a word in bare quotes can't stand inside a JSON text) or
# the file that is read, in a message of the model; or the envelope of a typed command.


def _may_load(line: bytes) -> bool:
    """Whether ``line`` could hold a load: only then it is decoded."""
    if (b'"Skill"' in line or b"SKILL.md" in line) and b'"assistant"' in line:
        return True
    return b"command-name" in line or _escape_in(line) >= 0


def _candidates(data: bytes) -> "list[tuple[int, int]]":
    """The lines of ``data`` that could hold a load, first to last, as (start, end). A few may not: ask _may_load."""
    found: dict[int, int] = {}
    for mark in (b'"Skill"', b"SKILL.md", b"command-name"):
        at = data.find(mark)
        while at >= 0:
            end = found[data.rfind(b"\n", 0, at) + 1] = _end_of_line(data, at)
            at = data.find(mark, end)
    at = _escape_in(data)
    while at >= 0:
        end = found[data.rfind(b"\n", 0, at) + 1] = _end_of_line(data, at)
        at = _escape_in(data, end)
    return sorted(found.items())


def _end_of_line(data: bytes, at: int) -> int:
    return data.find(b"\n", at) + 1 or len(data)


def _escape_in(data: bytes, start: int = 0) -> int:
    """Where the next escape of a printable ASCII character is; -1 when there is none.

    Claude Code writes none; in a line that another program wrote, a mark could hide in one. Inside text that was escaped
    twice they don't count.
    """
    at = data.find(_ESCAPE, start)
    while at >= 0:
        if b"2" <= data[at + 4 : at + 5] <= b"7":
            before = at
            while before > 0 and data[before - 1] == 0x5C:
                before -= 1
            if (at - before) % 2 == 0:
                return at
        at = data.find(_ESCAPE, at + 4)
    return -1

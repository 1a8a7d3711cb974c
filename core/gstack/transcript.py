"""What every host's transcript reader shares: names, times, and reading a file of lines from either end.

Hot: the stop hook reads with it, so builtins only. A transcript is a file of lines that its host may be writing at this
moment: it is read up to the size that it had when it was opened, and may shrink meanwhile.
"""

from gstack.lowlevel import CHUNK, sys_os
from gstack.values.tools import skill_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gstack.api import Event
    from gstack.errors import ContractState

#: Largest transcript that is read, in bytes (contracts C8).
LIMIT = 32 << 20
#: How far back from its end a transcript is searched before it is read from its start, in bytes.
TAIL = 4 << 20


# ------------------------------------------------------------------------------------------------ names


def same_skill(one: str, other: str) -> bool:
    """Whether two names mean the same skill: equal, or equal but for a plugin's prefix that one of them lacks."""
    one, other = skill_name(one), skill_name(other)
    if one == other:
        return bool(one)
    prefix, _, last = one.rpartition(":")
    other_prefix, _, other_last = other.rpartition(":")
    return bool(last) and last == other_last and not (prefix and other_prefix)


def is_load_of(event: "Event", skills: "Collection[str]") -> bool:
    """Whether ``event`` is the main thread's load of one of ``skills``."""
    if event.type != "load" or event.agent is not None:
        return False
    return any(same_skill(event.name or "", skill) for skill in skills)


def since_load(events: "Sequence[Event]", skills: "Collection[str]") -> "list[Event]":
    """``events`` from the last load of one of ``skills`` on; empty when there is none."""
    for place in range(len(events) - 1, -1, -1):
        if events[place].type == "load" and is_load_of(events[place], skills):
            return list(events[place:])
    return []


# ------------------------------------------------------------------------------------------------ times

#: Epoch seconds of the minutes that came up, by their text.
_MINUTES: "dict[str, float]" = {}


def epoch(stamp: object) -> "float | None":
    """Seconds since the epoch of a time stamp; None for what is none.

    It may be ISO 8601 (``Z``, an offset, or none, which is read as UTC) or a number of seconds or milliseconds.
    """
    if isinstance(stamp, str):
        try:
            minute = _MINUTES.get(stamp[:17])
            if minute is None:
                minute = _MINUTES[stamp[:17]] = _minute(stamp)
            return minute + (float(stamp[17:23]) if stamp[23:] == "Z" else _rest(stamp[17:]))
        except ValueError:
            return None
    if isinstance(stamp, bool) or not isinstance(stamp, (int, float)) or not 0 < stamp < 1e15:
        return None
    return stamp / 1000 if stamp > 1e11 else float(stamp)


def _minute(stamp: str) -> float:
    days = _days(int(stamp[:4]), int(stamp[5:7]), int(stamp[8:10]))
    return days * 86400.0 + int(stamp[11:13]) * 3600 + int(stamp[14:16]) * 60


def _rest(text: str) -> float:
    """Seconds and zone of a time stamp, as seconds to add to its minute."""
    if text[-1:] in ("Z", "z"):
        return float(text[:-1] or 0)
    for sign, factor in (("+", -1), ("-", 1)):
        seconds, found, zone = text.partition(sign)
        if found:
            return float(seconds or 0) + factor * (int(zone[:2]) * 3600 + int(zone[-2:]) * 60)
    return float(text or 0)


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a day of the Gregorian calendar."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        raise ValueError("no such day")
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


# ----------------------------------------------------------------------------------------------- reading


class Source:
    """An open transcript. Use it in a ``with`` block; each line comes with the place where it starts, in bytes.

    Raises ContractState for a file that can't be opened, is no regular file or has more than ``max_bytes``; its message
    names the path and the cause, its ``path`` is the path.
    """

    def __init__(self, path: str, max_bytes: int, *, block: int = CHUNK) -> None:
        self.path = path
        self.block = block
        self.size = 0
        flags = sys_os.O_RDONLY | getattr(sys_os, "O_CLOEXEC", 0) | getattr(sys_os, "O_BINARY", 0)
        # opening a named pipe would wait for a writer
        flags |= getattr(sys_os, "O_NONBLOCK", 0)
        try:
            self._fd = sys_os.open(path, flags)
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        try:
            found = sys_os.fstat(self._fd)
            if found.st_mode & 0o170000 != 0o100000:
                raise self._problem("it is no regular file")
            if found.st_size > max_bytes:
                raise self._problem(f"it is larger than {_mib(max_bytes)} ({_mib(found.st_size)})")
            self.size = found.st_size
        except BaseException:
            sys_os.close(self._fd)
            raise

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *exc: object) -> None:
        sys_os.close(self._fd)

    def _problem(self, cause: str) -> "ContractState":
        from gstack.errors import ContractState

        error = ContractState(f"{self.path}: {cause}")
        error.path = self.path  # type: ignore[attr-defined]
        return error

    def _unreadable(self, error: Exception) -> "ContractState":
        if isinstance(error, FileNotFoundError):
            return self._problem("there is no such file")
        return self._problem(f"it can't be read ({getattr(error, 'strerror', None) or error})")

    def _read(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to ``end``; fewer when the file has shrunk."""
        parts = []
        try:
            sys_os.lseek(self._fd, start, 0)
            while start < end:
                part = sys_os.read(self._fd, end - start)
                if not part:
                    break
                parts.append(part)
                start += len(part)
        except OSError as error:
            raise self._unreadable(error) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def chunks(self, start: int, end: int) -> "Iterator[tuple[int, bytes, int, int]]":
        """The lines from ``start`` (where a line begins) to ``end``, as (place, data, first, last).

        The whole lines ``data[first:last]`` come next; ``place`` is where ``data`` starts in the file. Only the last
        line of all may lack its newline.
        """
        rest: list[bytes] = []  # the parts of the line that the last block broke off
        while start < end:
            place = start
            data = self._read(start, min(start + self.block, end))
            if not data:
                break
            start += len(data)
            last = data.rfind(b"\n") + 1
            if last:
                first = 0
                if rest:
                    first = data.find(b"\n") + 1
                    line = b"".join([*rest, data[:first]])
                    yield place + first - len(line), line, 0, len(line)
                    rest = []
                if first < last:
                    yield place, data, first, last
            if last < len(data):
                rest.append(data[last:])
        if rest:
            line = b"".join(rest)
            yield start - len(line), line, 0, len(line)

    def chunks_back(self, limit: int = TAIL) -> "Iterator[tuple[int, bytes, int, int]]":
        """The lines from the end on, in chunks as :meth:`chunks` gives them, the last chunk first, as far as ``limit``
        bytes back.

        Ends early, between two lines, when the limit is reached; a line that crosses it is not given.
        """
        start = self.size
        ahead: list[bytes] = []  # the parts of the line that began before the block
        while start > 0 and self.size - start < limit:
            stop, start = start, max(0, start - self.block)
            data = self._read(start, stop)
            end = len(data)
            if end < stop - start:  # the file has shrunk: what follows there now is another line
                ahead = []
            if ahead:
                cut = data.rfind(b"\n") + 1
                if not cut and start > 0:
                    ahead.insert(0, data)
                    continue
                line = b"".join([data[cut:], *ahead])
                yield start + cut, line, 0, len(line)
                ahead, end = [], cut
            first = data.find(b"\n", 0, end) + 1 if start > 0 else 0
            if start > 0 and end:
                ahead = [data[: first or end]]
            if first < end and (first or start == 0):
                yield start, data, first, end

    def lines_back(self, limit: int = TAIL) -> "Iterator[tuple[int, bytes]]":
        """The lines from the last to the first, each with its newline, as far as :meth:`chunks_back` goes."""
        for place, data, first, last in self.chunks_back(limit):
            yield from lines_of(place, data, first, last)


def lines_of(place: int, data: bytes, first: int, last: int) -> "Iterator[tuple[int, bytes]]":
    """The lines of a chunk (:meth:`Source.chunks`), from the last to the first, each with the place where it starts."""
    while first < last:
        cut = max(data.rfind(b"\n", first, last - 1) + 1, first)
        yield place + cut, data[cut:last]
        last = cut


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f}".removesuffix(".0") + " MiB"

"""The checkpoint of a replay: what is done already, so that one that was broken off goes on where it was.

One file in the state folder, ``replay/<digest of the arguments>.jsonl``: a header, then one line a file that was
replayed, with the stamp (size and mtime) that it had. It is only ever appended to, so a crash costs the last line. What
changed since is replayed again. The file goes when the replay is done. It holds no word that a person typed.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from gstack import __version__
from gstack.lowlevel import join, sha256
from gstack.replay.engine import Job
from gstack.replay.rows import FileResult
from gstack.state import Lock, ensure_dir

#: Format of the file.
VERSION = 1
#: What is older than this isn't gone on with, in seconds.
KEPT = 7 * 86400.0


def digest_of(arguments: Mapping[str, Any]) -> str:
    """The digest of everything that a replay's result depends on, beside the transcripts."""
    text = json.dumps([VERSION, __version__, arguments], sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "surrogatepass"))


class Journal:
    """The checkpoint of one replay. Use it in ``with``; without :meth:`finish` it stays for the next time.

    ``since`` is the cut-off that the replay began with, which a resumed one keeps. ``problem`` says why there is no
    checkpoint, where the state folder can't be written or another process replays the same.
    """

    def __init__(self, root: str, arguments: Mapping[str, Any], *, since: float | None) -> None:
        self.since = since
        self.problem = ""
        self.path = join(root, "replay", digest_of(arguments)[:24] + ".jsonl")
        self._root = root
        self._made_root = not os.path.isdir(root)
        self._cut_off = False
        self._lock: Lock | None = None
        self._file: BinaryIO | None = None
        self._done: dict[str, tuple[int, int, int]] = {}

    def __enter__(self) -> "Journal":
        try:
            lock = Lock(self.path + ".lock", wait=False).__enter__()
            if not lock.held:
                lock.__exit__()
                self.problem = "another process does the same replay"
                return self
            self._lock = lock
            self._open()
        except OSError as error:
            self.problem = f"{self.path} can't be written ({error.strerror})"
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._lock is not None:
            self._lock.__exit__()
            self._lock = None

    def _open(self) -> None:
        ensure_dir(os.path.dirname(self.path))
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        self._file = os.fdopen(fd, "r+b")
        if not self._load(self._file):
            self._file.seek(0)
            self._file.truncate()
            self._cut_off = False
            self._done.clear()
            self._write({"version": VERSION, "since": self.since, "made": time.time(), "made_root": self._made_root})

    def _load(self, file: BinaryIO) -> bool:
        """Take over what is done; False when there is nothing to go on with."""
        header = _record(file.readline())
        if not isinstance(header, dict) or header.get("version") != VERSION:
            return False
        if time.time() - float(header.get("made") or 0) > KEPT:
            return False
        self.since = header.get("since")
        self._made_root = bool(header.get("made_root"))
        place = file.tell()
        line = b"\n"
        for line in file:
            try:
                path, (size, mtime_ns), _ = _record(line)
                self._done[str(path)] = (int(size), int(mtime_ns), place)
            except (TypeError, ValueError):
                pass  # a crash cut it off, or somebody was at the file
            place += len(line)
        self._cut_off = not line.endswith(b"\n")
        return True

    def _write(self, value: Any) -> None:
        if self._file is None:
            return
        self._file.seek(0, os.SEEK_END)
        start = b"\n" if self._cut_off else b""
        self._cut_off = False
        self._file.write(start + json.dumps(value).encode("ascii") + b"\n")
        self._file.flush()

    @property
    def resumed(self) -> int:
        """How many files were done before."""
        return len(self._done)

    def result(self, job: Job) -> FileResult | None:
        """The result of a file that was done before and hasn't changed since; None for any other."""
        done = self._done.get(job.path)
        if done is None or self._file is None or done[:2] != (job.size, job.mtime_ns):
            return None
        self._file.seek(done[2])
        entry = _record(self._file.readline())
        try:
            return FileResult.from_plain(entry[2])
        except (TypeError, ValueError, IndexError):
            return None

    def add(self, job: Job, result: FileResult) -> None:
        """Remember a file's result. A full disk ends the checkpoint, not the replay."""
        try:
            self._write([job.path, [job.size, job.mtime_ns], result])
        except OSError as error:
            self.problem = f"{self.path} can't be written ({error.strerror})"
            self._file = None

    def finish(self) -> None:
        """Delete the checkpoint, and the folders that were made for it."""
        held = self._lock is not None
        self.__exit__()
        if not held:
            return
        for path in (self.path, self.path + ".lock"):
            try:
                os.unlink(path)
            except OSError:
                continue
        for folder in [os.path.dirname(self.path), *([self._root] if self._made_root else [])]:
            try:
                os.rmdir(folder)
            except OSError:
                return  # another replay has something there


def _record(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def with_journal(jobs: list[Job], journal: Journal) -> tuple[list[Job], Iterator[FileResult]]:
    """The files that are still to be replayed, and the results of those that are done."""
    left: list[Job] = []
    done: list[Job] = []
    for job in jobs:
        (left if journal.result(job) is None else done).append(job)
    return left, (found for job in done if (found := journal.result(job)) is not None)

"""Changing a host's JSON settings file that a person and other programs write as well.

A host's module gives :func:`plan` a function from text to text (made with :mod:`gstack.jsontext`); this one does
what concerns the file. Writing is one rename, because a running host reads the file within seconds and drops every
hook of one that it can't parse. Under a lock the file is read again, and what somebody wrote since the plan is
kept: the function is run anew on what is there now (design: "Settings files of hosts").
"""

import contextlib
import difflib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gstack.api import Registration
from gstack.errors import SettingsError
from gstack.jsontext import JsonError, parse
from gstack.lowlevel import read_fd
from gstack.state import Lock, ensure_dir, remove, write_atomic

#: How many backups of one file are kept.
BACKUPS = 10
#: Largest settings file, in bytes.
LIMIT = 16 << 20
#: How long to wait for another writer, in seconds.
PATIENCE = 10.0

_LOCK = ".gstack-lock"
_BACKUP = ".gstack-backup-"


@dataclass(frozen=True)
class Edited:
    """What an edit makes of a file: its ``text`` (None: the file goes), and what to tell people.

    ``added`` is registered anew; ``changed`` and ``removed`` have a line for each entry mended or taken out.
    """

    text: str | None
    added: tuple[Registration, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


#: From the text of the file (None: no file) to what it must become. Raises JsonError or SettingsError.
Edit = Callable[["str | None"], Edited]


@dataclass(frozen=True)
class Change:
    """A planned change, see :class:`gstack.protocols.SettingsChange`; ``target`` is where links lead to."""

    path: str
    target: str
    before: bytes | None
    after: bytes | None
    added: tuple[Registration, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    edit: Edit = field(repr=False, compare=False)


def read(path: str) -> tuple[str, bytes | None]:
    """Where ``path`` leads to, and the bytes there (None: nothing is there). Raises SettingsError."""
    target = os.path.realpath(path)
    try:
        # Not blocking: a pipe in place of the file must end in an error, not in waiting for a writer.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return target, None
    except OSError as problem:
        if os.path.isdir(path):  # Windows calls this "permission denied"
            raise SettingsError(f"{path} is a folder; it was left as it was") from None
        raise _failed(path, "can't be read", problem) from None
    try:
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_size <= LIMIT:
            return target, read_fd(fd)
    except OSError as problem:
        raise _failed(path, "can't be read", problem) from None
    finally:
        os.close(fd)
    what = "a folder" if stat.S_ISDIR(found.st_mode) else f"no regular file of at most {LIMIT >> 20} MiB"
    raise SettingsError(f"{path} is {what}; it was left as it was")


def decode(path: str, data: bytes) -> str:
    """The text of ``data``, which must be UTF-8 (a byte-order mark stays in it). Raises SettingsError."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise SettingsError(
            f"{path} isn't UTF-8 (byte {problem.start}); it was left as it was", hint="save it as UTF-8"
        ) from None


def plan(path: str, edit: Edit) -> Change:
    """What ``edit`` would make of the file. Raises SettingsError when it can't be read, parsed or changed."""
    target, before = read(path)
    try:
        edited = edit(None if before is None else decode(path, before))
        if edited.text is not None:
            parse(edited.text)
    except JsonError as problem:
        raise SettingsError(
            f"{path} isn't strict JSON: {problem}; it was left as it was",
            hint="mend the file, then try again",
        ) from None
    try:
        after = None if edited.text is None else edited.text.encode("utf-8")
    except UnicodeEncodeError:
        raise SettingsError(f"{path} was left as it was: the launcher's path can't be written as UTF-8") from None
    return Change(path, target, before, after, edited.added, edited.changed, edited.removed, edit)


def apply(change: Change) -> Change:
    """Write ``change`` and give what was written, which differs when somebody wrote since it was planned.

    Writes nothing when nothing changes. Keeps the mode, the owner and a symbolic link, and a backup beside the
    file. Raises SettingsError, and then the file is as it was.
    """
    if change.after == change.before:
        return change
    folder = os.path.dirname(change.target)
    if os.path.islink(change.path) and not os.path.isdir(folder):
        raise SettingsError(f"{change.path} is a link into {folder}, which doesn't exist; nothing was changed")
    try:
        ensure_dir(folder)
        with _locked(change.target) as held:
            if not held:
                raise SettingsError(
                    f"{change.path} is being changed by another gstack process; it was left as it was",
                    hint="try again when that one is done",
                )
            if read(change.path) != (change.target, change.before):
                change = plan(change.path, change.edit)
            if change.after != change.before:
                _write(change)
    except OSError as problem:
        raise _failed(change.path, "can't be written", problem) from None
    return change


@contextlib.contextmanager
def _locked(target: str) -> Iterator[bool]:
    """Hold the lock of a file; gives whether it was got. Another process may take the lock's file away at its end
    (:func:`tidy`): a lock on a file that is gone keeps nobody out, so then it is taken anew."""
    until = time.monotonic() + PATIENCE
    while True:
        with Lock(target + _LOCK, timeout=max(0.0, until - time.monotonic())) as lock:
            if not lock.held or _in_place(lock):
                yield lock.held
                return


def _in_place(lock: Lock) -> bool:
    try:
        return os.path.samestat(os.fstat(lock._fd), os.stat(lock.path))
    except OSError:
        return False


def tidy(change: Change) -> list[str]:
    """Take away what the changes of a file left beside it, once nothing of ours is in it any more.

    These are the lock and each backup that holds nothing which the file doesn't hold, but for entries that the edit of
    ``change`` takes out. The others may be what a person wants back: they stay, and are given, newest first. Never
    raises.
    """
    found = backups(change.path)
    try:
        if not found and not os.path.lexists(change.target + _LOCK):
            return []
        with _locked(change.target) as held:
            if not held:
                return found
            now = _bare(change.path, change.edit)
            kept = [path for path in found if now is False or _bare(path, change.edit) != now or not remove(path)]
            remove(change.target + _LOCK)
            return kept
    except OSError:
        return found


def _bare(path: str, edit: Edit) -> str | bool | None:
    """The text of a file after ``edit``; None: no file, False: nothing that can be edited."""
    try:
        _, data = read(path)
        return edit(None if data is None else decode(path, data)).text
    except (SettingsError, JsonError):
        return False


def _write(change: Change) -> None:
    """Backup, a last look, one rename. Raises OSError or SettingsError; the file is then as it was."""
    found = None if change.before is None else os.stat(change.target)
    if found and not (found.st_mode & 0o222 and os.access(change.target, os.W_OK)):
        raise SettingsError(f"{change.path} is read-only; it was left as it was", hint="make it writable")
    backup = None if change.before is None else _back_up(change.path, change.before)
    try:
        if read(change.path) != (change.target, change.before):
            raise SettingsError(
                f"{change.path} is being written by another program; it was left as that one wrote it",
                hint="try again",
            )
        if change.after is None:
            os.unlink(change.target)
        else:
            write_atomic(change.target, change.after, mode=stat.S_IMODE(found.st_mode) if found else 0o600)
    except (OSError, SettingsError):
        if backup:
            remove(backup)
        raise
    _keep(found, change.target, backup)
    for old in backups(change.path)[BACKUPS:]:
        remove(old)


def _keep(found: os.stat_result | None, target: str, backup: str | None) -> None:
    """Put back the mode, which the umask may have narrowed, and the owner, where root writes for somebody."""
    if found is None:
        return
    with contextlib.suppress(OSError):  # the file is written; the rest is a courtesy
        os.chmod(target, stat.S_IMODE(found.st_mode))
        for path in filter(None, (target, backup, target + _LOCK)):
            if hasattr(os, "chown") and os.stat(path).st_uid != found.st_uid:
                os.chown(path, found.st_uid, found.st_gid)


def _back_up(path: str, data: bytes) -> str:
    """A copy beside ``path`` under a name of its own, private: it may hold secrets."""
    now = time.time_ns()
    name = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 10**9))
    backup = f"{path}{_BACKUP}{name}.{now % 10**9:09d}"
    write_atomic(backup, data)
    return backup


def backups(path: str) -> list[str]:
    """The backups of ``path`` that lie beside it, newest first."""
    folder, name = os.path.split(path)
    ours = re.compile(re.escape(name + _BACKUP) + r"\d{8}T\d{6}\.\d{9}")
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return [os.path.join(folder, found) for found in sorted(filter(ours.fullmatch, names), reverse=True)]


def diff(change: Change) -> str:
    """``change`` as a unified diff, ``""`` when nothing changes: what ``--dry-run`` prints."""
    before, after = _lines(change.before), _lines(change.after)
    old = "/dev/null" if change.before is None else change.path
    new = "/dev/null" if change.after is None else change.path
    return "".join(difflib.unified_diff(before, after, old, new))


def _lines(data: bytes | None) -> list[str]:
    """The lines of a file, each with its end as diff(1) shows it."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", (data or b"").decode("utf-8", "replace"))
    return [line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines]


def _failed(path: str, what: str, problem: OSError) -> SettingsError:
    reason = problem.strerror or str(problem)
    return SettingsError(f"{path} {what}: {reason}; it was left as it was", hint="check the file and its folder")

"""The digest of a skill's folder: what ``digest`` in the catalogue is, and whether an installed copy has it (gate G4).

``sha256:<hex>`` over one line ``<relative path>\\0<sha256 of the file>\\n`` for each file, sorted by path (UTF-8,
slashes). Light enough for the hook, which asks for it only when the catalogue has a digest; it keeps what it
computed in ``gate/digests``, bound to the stamps of all the files.
"""

from time import time_ns

from gstack.lowlevel import join, parent, read_file, sha256, sys_os
from gstack.snapshot import RACY_NS, read_blob, write_blob
from gstack.state import Lock

#: What lies in a skill's folder without belonging to the skill: caches, version control, litter of file managers.
IGNORED = frozenset(["__pycache__", ".git", ".DS_Store", "Thumbs.db", "desktop.ini"])

#: Most files that a skill may have for its digest to be looked at by the hook.
MOST_FILES = 2000

#: Most folders whose digest is kept.
MOST_KEPT = 500


def skill_files(folder: str) -> "list[str]":
    """The files of a skill, as sorted paths relative to ``folder``. Links to folders aren't followed. Raises
    OSError."""
    found: list[str] = []
    left = [""]
    while left:
        prefix = left.pop()
        with sys_os.scandir(join(folder, prefix) if prefix else folder) as entries:
            for entry in entries:
                if entry.name in IGNORED:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    left.append(prefix + entry.name + "/")
                elif entry.is_file():
                    found.append(prefix + entry.name)
    return sorted(found, key=_bytes)


def skill_digest(folder: str) -> str:
    """The digest of the skill in ``folder``. Raises OSError when a file can't be read."""
    return digest_of([(path, sha256(read_file(join(folder, path)))) for path in skill_files(folder)])


def digest_of(files: "list[tuple[str, str]]") -> str:
    """The digest of (relative path, sha256 in hexadecimal) pairs, in whatever order."""
    lines = [_bytes(path) + b"\0" + digest.encode("ascii") + b"\n" for path, digest in files]
    return "sha256:" + sha256(b"".join(sorted(lines)))


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def installed_digest(root: str, skill_md: str) -> "str | None":
    """The digest of the installed skill whose ``SKILL.md`` this is, from the kept ones where its files didn't change.

    None when it can't be told: a file that can't be read, or too many of them.
    """
    folder = parent(skill_md)
    try:
        files = skill_files(folder)
        if len(files) > MOST_FILES:
            return None
        stamps = [_stamp(folder, path) for path in files]
        kept = _kept(root)
        if folder in kept and kept[folder][0] == stamps:
            return str(kept[folder][1])
        digest = skill_digest(folder)
        if [_stamp(folder, path) for path in skill_files(folder)] == stamps:
            _keep(root, folder, stamps, digest)
        return digest
    except OSError:
        return None


def _stamp(folder: str, path: str) -> "tuple[str, int, int, int, int]":
    status = sys_os.stat(join(folder, path))
    return (path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _kept(root: str) -> "dict[str, tuple[list[tuple[str, int, int, int, int]], str]]":
    found = read_blob(join(root, "gate", "digests"))
    return found if isinstance(found, dict) else {}


def _keep(root: str, folder: str, stamps: "list[tuple[str, int, int, int, int]]", digest: str) -> None:
    """Remember a digest, unless a file changed so shortly ago that it may change again unseen. Never raises."""
    newest = max([max(stamp[3:]) for stamp in stamps], default=0)
    if newest + RACY_NS > time_ns():
        return
    try:
        with Lock(join(root, "gate", "digests.lock"), wait=False) as lock:
            kept = _kept(root)
            if lock.held:
                if len(kept) >= MOST_KEPT:
                    kept = {}
                kept[folder] = (stamps, digest)
                write_blob(join(root, "gate", "digests"), kept)
    except (OSError, ValueError):
        return

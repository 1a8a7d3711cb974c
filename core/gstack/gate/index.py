"""The compiled policy bundle: what the hook reads instead of the bundle itself.

Hot: imported by the hook, so builtins only. ``gate/bundle.index`` is a hashed file: a header with what holds for
the whole bundle, a directory of buckets, and one small record for each name, read with ``pread``; so one decision
costs the same from 22 KB to 12 MB of bundle. Rules are stored as data and judged at use
(:mod:`gstack.gate.decision`), since time, machine and user decide about some. :mod:`gstack.gate.compile` writes it,
once the signature was verified.

The file counts only for exactly the bundle and trusted key that it was made from (their device, inode, size, mtime and
ctime), only when neither changed so shortly before that a change could hide, and only when nobody else could have
written any of them. Otherwise the bundle is verified and read on the spot, which gives the same answers, and the index
is written anew after the answer.
"""

from marshal import loads

from gstack.gate.names import glob_match, namespace
from gstack.lowlevel import POSIX, join, sys_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gstack.errors import BundleError
    from gstack.gate.compile import Fresh
    from gstack.gate.names import Candidate

MAGIC = b"gstack-gate-index 1\n"

#: What the file ends with: a tail that a crash left as zeros is seen at once.
END = b"\ngstack-gate-index ends here\n"

#: What reading a damaged index raises.
DAMAGED = (ValueError, EOFError, TypeError, KeyError, IndexError)

#: How much of the file is read first; headers rarely are longer.
_FIRST = 4096

#: How many names' candidates one process keeps.
_KEPT = 4096


def bundle_path(root: str) -> str:
    """The installed bundle: the envelope's bytes as they were received."""
    return join(root, "gate", "bundle.json")


def trust_path(root: str) -> str:
    """The pinned key and the organisation it was pinned for."""
    return join(root, "gate", "trust.json")


def index_path(root: str) -> str:
    """The compiled index."""
    return join(root, "gate", "bundle.index")


def identity(status: "Any") -> "tuple[int, int, int, int, int]":
    """What a file is recognised by: device, inode, size, mtime and ctime in ns."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def bucket_of(key: bytes, buckets: int) -> int:
    """The bucket of a key. ``buckets`` is odd, so that every byte counts; needs no import, unlike a real hash."""
    return int.from_bytes(key, "big") % buckets


class Index:
    """An open index. ``header`` holds what is true of the whole bundle; the five lookups are those of
    :class:`gstack.gate.names.Source`."""

    #: What is wrong with who may write the state folder; an index is only used where nothing is.
    notice = ""

    def __init__(self, fd: int = -1, data: bytes = b"") -> None:
        self._fd = fd
        self._data = data
        self._kept: dict[str, Any] = {}
        self._globs_everywhere: Any = None
        first = self._read(0, _FIRST)
        start = len(MAGIC) + 8
        if not first.startswith(MAGIC):
            raise ValueError("not an index of this version")
        length = int.from_bytes(first[start - 8 : start], "little")
        if length > len(first) - start:
            first = self._read(0, start + length)
        self.header: dict[str, Any] = loads(first[start : start + length])  # noqa: S302 - only from our own file
        self._buckets: int = self.header["buckets"]
        self._base = start + length

    @property
    def size(self) -> int:
        """How many bytes the whole index must have."""
        return self._base + int(self.header["body"])

    @property
    def whole(self) -> bool:
        """Whether the file's end is there."""
        return self._read(self.size - len(END), len(END)) == END

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            sys_os.close(self._fd)
            self._fd = -1

    def _read(self, offset: int, length: int) -> bytes:
        if self._fd < 0:
            return self._data[offset : offset + length]
        if POSIX:
            return sys_os.pread(self._fd, length, offset)
        sys_os.lseek(self._fd, offset, 0)
        return sys_os.read(self._fd, length)

    def _record(self, key: str) -> "Any":
        """The record of a key, None when there is none. A record is small plain data."""
        try:
            return self._kept[key]
        except KeyError:
            pass
        name = key.encode("utf-8", "surrogatepass")
        place = self._read(self._base + 8 * bucket_of(name, self._buckets), 8)
        length = int.from_bytes(place[4:], "little")
        record = None
        if length:
            bucket = self._at((int.from_bytes(place[:4], "little"), length))
            record = bucket.get(name)
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        self._kept[key] = record
        return record

    def _at(self, reference: "tuple[int, int]") -> "Any":
        return loads(self._read(self._base + reference[0], reference[1]))  # noqa: S302 - only from our own file

    def _rules(self, references: "Any") -> "tuple[Any, ...]":
        return tuple([self._at(one) for one in references])

    def _candidates(self, key: str) -> "list[Candidate]":
        record = self._record(key)
        if not record:
            return []
        if isinstance(record, tuple):
            found = []
            for reference in record:
                name, version, kind, digest, rules, drift, order = self._at(reference)
                found.append((name, version, kind, digest, self._rules(rules), self._rules(drift), order))
            self._kept[key] = record = found
        return list(record)

    def entries(self, name: str) -> "list[Candidate]":
        """The entries of this full name (more than one when names differ by case only)."""
        return self._candidates("n" + name)

    def bare(self, last: str) -> "list[Candidate]":
        """The entries whose last segment this is."""
        return self._candidates("b" + last)

    def plugin(self, prefix: str, last: str) -> "list[Candidate]":
        """The entries of this plugin with this last segment."""
        return self._candidates("p" + prefix + ":" + last)

    def managed(self, name: str) -> bool:
        """Whether this namespace is a managed one."""
        record = self._record("s" + name)
        return bool(record and record[0])

    def unknown(self, name: str) -> "Candidate":
        """What holds for a name without an entry: policies that reach it, and the default."""
        kept = self._kept.get("u" + name)
        if kept is not None:
            return kept  # type: ignore[no-any-return]
        from gstack.gate.decision import strength

        space = namespace(name)
        forms = (name, name.replace(":", "/")) if ":" in name else (name,)
        is_managed, by_space, globs = self._record("s" + space) or (False, (), ())
        rules = list(self._rules(by_space))
        for form in forms:
            rules += self._rules(self._record("x" + form) or ())
        rules += self._globs(globs, forms) + self._globs(self._everywhere(), forms)
        rules += self.header["managed_rules"] if is_managed else ()
        rules.append(self.header["managed_default" if is_managed else "unmanaged_default"])
        unique = {rule[:4]: rule for rule in rules}
        found = (name, None, None, None, tuple(sorted(unique.values(), key=strength)), (), 0)
        self._kept["u" + name] = found
        return found

    def _everywhere(self) -> "Any":
        """The globs that can match in any namespace, strongest first."""
        if self._globs_everywhere is None:
            reference = self.header["globs"]
            self._globs_everywhere = self._at(reference) if reference[1] else ()
        return self._globs_everywhere

    def _globs(self, globs: "Any", forms: "tuple[str, ...]") -> "list[Any]":
        found = []
        for pattern, reference in globs:
            if any(glob_match(pattern, form) for form in forms):
                found.append(self._at(reference))
        return found


# ------------------------------------------------------------------------------------------------ loading

_open: "tuple[str, Any, Index | Fresh] | None" = None


def load(root: str) -> "Index | Fresh":
    """The index of the installed bundle, or the bundle itself, freshly verified, where the stored one doesn't fit.

    Raises BundleMissing without a bundle, BundleError for one that can't be read or verified.
    """
    global _open
    try:
        key = _key(root)
    except Exception:
        _forget()
        raise
    if _open is not None and _open[0] == root and _open[1] == key and not _open[2].notice:
        return _open[2]
    _forget()
    danger = unsafe(root)
    index = (None if danger else _stored(root, key)) or _fresh(root, danger)
    _open = (root, key, index)
    return index


def _key(root: str) -> "tuple[Any, ...]":
    """What bundle and pinned key are recognised by; a missing key by nothing. Raises BundleMissing, BundleError."""
    found: list[Any] = []
    for path in (bundle_path(root), trust_path(root)):
        try:
            status = sys_os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            if not found:
                from gstack.errors import BundleMissing

                raise BundleMissing from None
            found.append(())
            continue
        except OSError as error:
            raise _unusable(f"{path} can't be read: {error.strerror}") from None
        if status.st_mode & 0o170000 != 0o100000:  # reading a pipe would hold the hook up
            raise _unusable(f"{path} is not a regular file")
        found.append(identity(status))
    return tuple(found)


def _unusable(message: str) -> "BundleError":
    from gstack.errors import BundleError

    return BundleError(message)


def reload(root: str) -> "Fresh":
    """The bundle itself, freshly verified, in place of an index that turned out to be damaged. Raises BundleError."""
    global _open
    key = _open[1] if _open is not None and _open[0] == root else None
    _forget()
    fresh = verified(root)
    _open = (root, key, fresh)
    return fresh


def verified(root: str) -> "Fresh":
    """The bundle itself, freshly verified, with every rule, whatever the index is like. Raises BundleError."""
    return _fresh(root, unsafe(root))


def _fresh(root: str, danger: str) -> "Fresh":
    from gstack.gate.compile import Fresh

    return Fresh(root, danger)


def stored(root: str) -> bool:
    """Whether the stored index fits what is installed now, so that the hook needn't verify anything."""
    from gstack.errors import BundleError

    try:
        found = _stored(root, _key(root))
    except BundleError:
        return False
    if found is not None:
        found.close()
    return found is not None


def opened(root: str) -> "Index | Fresh | None":
    """What this process has open for ``root``; None when it read none."""
    return _open[2] if _open is not None and _open[0] == root else None


def store_missing(root: str) -> None:
    """Write the index that this process found missing or stale: called once the answer is out."""
    found = opened(root)
    if found is not None and not isinstance(found, Index):
        found.store()


def _forget() -> None:
    global _open
    if _open is not None:
        _open[2].close()
        _open = None


def _stored(root: str, key: "tuple[Any, ...]") -> "Index | None":
    """The stored index, None when it is missing, broken, somebody else's, or made from something else."""
    flags = sys_os.O_RDONLY | getattr(sys_os, "O_CLOEXEC", 0) | getattr(sys_os, "O_NOFOLLOW", 0)
    flags |= getattr(sys_os, "O_NONBLOCK", 0)
    try:
        fd = sys_os.open(index_path(root), flags | getattr(sys_os, "O_BINARY", 0))
    except OSError:
        return None
    index = None
    try:
        status = sys_os.fstat(fd)
        if not _foreign(status):
            index = Index(fd)
            header = index.header
            if (header["bundle"], header["trust"]) == key and index.size == status.st_size and index.whole:
                newest = max(key[0][3:] + key[1][3:])
                if newest + header["window"] <= header["confirmed"]:
                    return index
    except (OSError, *DAMAGED):
        pass
    sys_os.close(fd)
    return None


def _foreign(status: "Any") -> bool:
    """Whether somebody else owns a file or folder, or may write it."""
    if not POSIX:
        return False
    return status.st_uid not in (sys_os.geteuid(), 0) or bool(status.st_mode & 0o022)


def unsafe(root: str) -> str:
    """What is wrong with who may write the gate's files, in one sentence; empty when nothing is."""
    for path in (root, join(root, "gate"), bundle_path(root), trust_path(root)):
        try:
            status = sys_os.stat(path)
        except OSError:
            continue
        if _foreign(status):
            return f"{path} belongs to or can be written by another user, so the policy in it can't be trusted"
    return ""

"""Starts the hook from one file of compiled code instead of some twenty modules.

Hot: the first module that runs. Finding, reading and unmarshalling each module by itself costs a quarter of a Python
start (docs/performance.md), so a hook that took the fast road stores the code of what it had loaded, and the next one
for the same event takes it from there. The stored code is bound to each source file's stamp (mtime, ctime, size,
inode) and to this Python; on any difference the ordinary import does the work, so the file can always be deleted.

Most functions of those modules are not called in one run, and making them is what most of the time went into: those
that no earlier run has called wait in a second file (:func:`_waiting`).
"""

import gc
import sys
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import posix
    from collections.abc import Callable, Sequence
    from typing import Any

    Stamp = tuple[int, int, int, int]
    #: Where something lies in the second file, and how long it is, in bytes.
    Place = tuple[int, int]
    #: A module: name, source file, its stamp, whether it is a package, its code or where that waits.
    Entry = tuple[str, str, Stamp, bool, Any]
    #: The second file; what every such hook needs, in the order in which it can be run; what only some need; the names
    #: of all modules that were loaded; where, at its end, the names of the functions that were called lie.
    Stored = tuple[str, list[Entry], list[Entry], list[str], Place]
else:
    try:
        import posix
    except ImportError:  # Windows: no goal there
        posix = None

#: How the name of a file of stored code starts: format and Python. The launcher knows it too.
TAG = f"code2-{sys.implementation.cache_tag}"
_NAME = "gstack.boot"


#: More functions than these that had to be fetched make a run store its code anew.
FETCHED = 8

#: The modules that the stored code has or knows of, and those that only some hooks need.
_known: "set[str]" = set()
_entries: "dict[str, Entry]" = {}
_stored: "list[Stored]" = []
#: The descriptor of the second file: it stays open, so that a newer one may take its place meanwhile.
_waiting_file = -1
_waiting_path = ""
#: The functions that this run has fetched, as ``module:name``.
_fetched: "list[str]" = []


def _fetch(start: int, size: int) -> "Any":
    """What waits there. Raises ValueError, EOFError or TypeError for a damaged file, which then goes: the next hook
    makes it anew."""
    try:
        return loads(posix.pread(_waiting_file, size, start))
    except (ValueError, EOFError, TypeError):
        try:
            posix.unlink(_waiting_path)
        except OSError:
            pass
        raise


def _waiting(space: "dict[str, Any]") -> "Callable[[str, int, int], Callable[..., Any]]":
    """What stored code calls, in the module whose globals are ``space``, in place of defining a function."""

    def waiting(name: str, start: int, size: int) -> "Callable[..., Any]":
        real: Any = None

        def stand_in(*args: "Any", **named: "Any") -> "Any":
            nonlocal real
            if real is None:
                made: dict[str, Any] = {}
                exec(_fetch(start, size), space, made)  # noqa: S102 - a stored function is code
                (real,) = made.values()
                _fetched.append(space["__name__"] + ":" + name)
                if space.get(name) is stand_in:
                    space[name] = real
            return real(*args, **named)

        return stand_in

    return waiting


def _need(name: str) -> None:
    """What stored code calls before it imports a module that only some hooks need: it needs no search then.

    Where the stored one isn't fresh, the import that follows does the work.
    """
    entry = None if name in sys.modules else _entries.get(name)
    if entry is None or stamp_of(entry[1]) != entry[2]:
        return
    above = name.rpartition(".")[0]
    _need(above)
    if not above or above in sys.modules:
        _place(name, entry[1], entry[3])
        try:
            exec(_fetch(*entry[4]), sys.modules[name].__dict__)  # noqa: S102 - a stored module is code
        except BaseException:
            sys.modules.pop(name, None)
            raise


def start_stored(stored: "Stored") -> None:
    """What stored code does last, in the launcher's globals. Raises ValueError or OSError when it isn't
    fresh or not whole."""
    gc.disable()
    _adopt(stored)
    _stored.append(stored)
    space = globals()
    sys.path += space["paths"]
    start(sys.argv[1:], space["root"], space["paths"])


def start(arguments: "Sequence[str]", root: str, paths: "Sequence[str]") -> None:
    """Run the hook (:func:`gstack.hook.main`). Ends the process."""
    gc.disable()
    from gstack.hook import main

    name = "-".join(arguments[:2])
    plain = posix is not None and name.replace("-", "").replace(".", "").isalnum()
    main(arguments, root, paths, f"{root}/snapshot/{TAG}-{name}" if plain else None)


def _adopt(stored: "Stored") -> None:
    """Put the stored modules in their places; none is left there when a source has changed or one fails."""
    global _waiting_file, _waiting_path
    _waiting_path, always, lazy, names, last = stored
    for _, source, stamp, _, _ in always:
        if stamp_of(source) != stamp:
            raise ValueError(source)
    _waiting_file = posix.open(_waiting_path, posix.O_RDONLY | posix.O_CLOEXEC)
    if posix.lseek(_waiting_file, 0, 2) != sum(last):
        raise ValueError(_waiting_path)
    try:
        for name, source, _, is_package, _ in sorted(always):  # so that a package comes before what lies in it
            _place(name, source, is_package)
        for name, _, _, _, code in always:
            if name != _NAME:  # the launcher ran this one
                exec(code, sys.modules[name].__dict__)  # noqa: S102 - a stored module is code
    except BaseException:
        for entry in always:
            sys.modules.pop(entry[0], None)
        raise
    _entries.update({entry[0]: entry for entry in lazy})
    _known.update([entry[0] for entry in always], _entries, names)


def _place(name: str, source: str, is_package: bool) -> None:
    """An empty module where an import looks for it."""
    module = sys.modules[name] = type(sys)(name)
    space = module.__dict__
    space["__file__"] = source
    above, _, last = name.rpartition(".")
    space["__package__"] = name if is_package else above
    if is_package:
        space["__path__"] = [source.rpartition("/")[0]]
    if above:
        setattr(sys.modules[above], last, module)
    if name == _NAME:  # the launcher ran this one, under its own name and file
        space.update({key: value for key, value in globals().items() if key[:2] != "__"})
    else:
        space["_waiting_"] = _waiting(space)
        space["_need_"] = _need


def stamp_of(path: str) -> "Stamp":
    """What identifies the state of a source file. Raises OSError."""
    status = posix.stat(path)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def to_store() -> "tuple[set[str], list[Entry], set[str]] | None":
    """What this and earlier runs needed, if it should be stored anew: the functions that they called, the modules that
    are stored already and the names of all that were loaded. Else None.

    It should be when this run has loaded a module of gstack's that the stored code doesn't know of, or had to fetch
    more than a few functions.
    """
    if len(_fetched) <= FETCHED and not any(name.startswith("gstack") and name not in _known for name in sys.modules):
        return None
    if not _stored:
        return set(_fetched), [], set()
    _, always, lazy, _, place = _stored[0]
    return {*_fetched, *_fetch(*place)}, [*always, *lazy], _known

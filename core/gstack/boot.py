"""Starts the hook from one file of compiled code instead of some twenty modules.

Hot: the first module that runs. Finding, reading and unmarshalling each module by itself costs a quarter of a Python
start (docs/performance.md), so a hook that took the fast road stores the code of what it had loaded, and the next one
for the same event takes it from there. The stored code is bound to each source file's stamp (mtime, ctime, size,
inode) and to this Python; on any difference the ordinary import does the work, so the file can always be deleted.
"""

import sys
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import posix
    from collections.abc import Sequence
    from types import CodeType, ModuleType
    from typing import Any

    Stamp = tuple[int, int, int, int]
    # (name, source file, its stamp, whether it is a package, its code or its code marshalled)
    Entry = tuple[str, str, Stamp, bool, Any]
    # this module's code; what every such hook needs, in the order in which it can be run; what only some need; the
    # names of all modules that were loaded
    Stored = tuple[CodeType, list[Entry], list[Entry], list[str]]
else:
    try:
        import posix
    except ImportError:  # Windows: no goal there
        posix = None

#: How the name of a file of stored code starts: format and Python. The launcher knows it too.
TAG = f"code1-{sys.implementation.cache_tag}"
_NAME = "gstack.boot"


_known: "set[str]" = set()


class _Lazy:
    """Finder and loader of the stored modules that only some hooks need."""

    entries: "dict[str, Entry]" = {}  # noqa: RUF012 - filled once, by start

    @classmethod
    def find_spec(cls, name: str, *_: object) -> "Any":
        entry = cls.entries.get(name)
        if entry is None:
            return None
        from _frozen_importlib import ModuleSpec

        loader: Any = cls
        spec = ModuleSpec(name, loader, origin=entry[1], is_package=entry[3])
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(entry[1].rpartition("/")[0])
        return spec

    @staticmethod
    def create_module(_: object) -> None:
        return None

    @classmethod
    def exec_module(cls, module: "ModuleType") -> None:
        entry = cls.entries[module.__name__]
        module.__file__ = entry[1]
        exec(loads(entry[4]), module.__dict__)  # noqa: S102 - a stored module is code


def start(arguments: "Sequence[str]", root: str, paths: "Sequence[str]", stored: "Stored | None") -> None:
    """Run the hook (:func:`gstack.hook.main`), from stored code where it is fresh. Ends the process.

    ``stored`` is what the launcher read from the file of this host and event; None when there is none to trust.
    """
    name = "-".join(arguments[:2])
    if stored:
        _adopt(stored)
    from gstack.hook import main

    plain = posix is not None and name.replace("-", "").replace(".", "").isalnum()
    main(arguments, root, paths, f"{root}/snapshot/{TAG}-{name}" if plain else None)


def _adopt(stored: "Stored") -> None:
    """Put the stored modules in their places; none is left there when a source has changed or one fails."""
    _, always, lazy, cold = stored
    try:
        for entry in (*always, *lazy):
            if stamp_of(entry[1]) != entry[2]:
                return
        for entry in sorted(always):  # by name, so that a package comes before what lies in it
            _place(*entry[:2], entry[3])
        for entry in always:
            if entry[0] != _NAME:  # the launcher ran this one
                exec(entry[4], sys.modules[entry[0]].__dict__)  # noqa: S102 - a stored module is code
    except Exception:
        for entry in always:
            sys.modules.pop(entry[0], None)
        return
    _known.update([entry[0] for entry in (*always, *lazy)], cold)
    _Lazy.entries = {entry[0]: entry for entry in lazy}
    sys.meta_path.insert(0, _Lazy)


def _place(name: str, source: str, is_package: bool) -> None:
    """An empty module where an import looks for it."""
    module = sys.modules[name] = type(sys)(name)
    module.__file__ = source
    if is_package:
        module.__path__ = [source.rpartition("/")[0]]
    above, _, last = name.rpartition(".")
    module.__package__ = name if is_package else above
    if above:
        setattr(sys.modules[above], last, module)
    if name == _NAME:  # the launcher ran this one, under its own name and file
        module.__dict__.update({key: value for key, value in globals().items() if key[:2] != "__"})


def stamp_of(path: str) -> "Stamp":
    """What identifies the state of a source file. Raises OSError."""
    status = posix.stat(path)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def unknown() -> bool:
    """Whether this process has loaded a module of gstack's that the stored code doesn't know of."""
    return any(name.startswith("gstack") and name not in _known for name in sys.modules)

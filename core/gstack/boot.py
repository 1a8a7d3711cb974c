"""Starts the hook from one file of compiled code instead of some twenty modules.

Hot, and the first module that the launcher imports. Finding, reading and unmarshalling each module by itself
costs a fifth of a Python start (docs/performance.md), so a hook that ran on the fast road stores the code of what it
had loaded, and the next one for the same event takes it from there. The stored code is bound to each source file's
stamp (mtime, ctime, size, inode) and to this Python; on any difference the ordinary import does the work, so this
file can always be deleted.
"""

import sys
from marshal import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import posix
    from collections.abc import Sequence
    from types import CodeType, ModuleType
    from typing import Any

    # (module, (source file, stamp, is a package, code))
    Stored = dict[str, tuple[str, tuple[int, int, int, int], bool, CodeType]]
else:
    try:
        import posix
    except ImportError:  # Windows: no goal there
        posix = None

_HEADER = f"gstack code 1 {sys.implementation.cache_tag} {sys.hexversion:x}\n".encode()


class _Stored:
    """Finder and loader of the stored modules."""

    modules: "Stored" = {}  # noqa: RUF012 - filled once, by start

    @classmethod
    def find_spec(cls, name: str, *_: object) -> "Any":
        found = cls.modules.get(name)
        if found is None:
            return None
        loader: Any = cls
        spec = type(__spec__)(name, loader, origin=found[0], is_package=found[2])
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(found[0].rpartition("/")[0])
        return spec

    @staticmethod
    def create_module(_: object) -> None:
        return None

    @classmethod
    def exec_module(cls, module: "ModuleType") -> None:
        found = cls.modules[module.__name__]
        module.__file__ = found[0]
        exec(found[3], module.__dict__)  # noqa: S102 - a stored module is code


def start(arguments: "Sequence[str]", root: str, paths: "Sequence[str]") -> None:
    """Run the hook (:func:`gstack.hook.main`), from stored code where it is fresh. Ends the process."""
    name = "-".join(arguments[:2])
    path = f"{root}/snapshot/code-{name}" if posix and name.replace("-", "").replace(".", "").isalnum() else ""
    stored = _read(path) if path else None
    if stored:
        _Stored.modules = stored
        sys.meta_path.insert(0, _Stored)
    from gstack.hook import main

    main(arguments, root, paths, path)


def _read(path: str) -> "Stored | None":
    """The stored modules; None unless the file is ours alone, of this Python, and every source is as it was."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            status = posix.fstat(fd)
            if status.st_uid != posix.geteuid() or status.st_mode & 0o022:
                return None
            data = posix.read(fd, status.st_size + 1)
        finally:
            posix.close(fd)
        if len(data) != status.st_size or not data.startswith(_HEADER):
            return None
        stored: Stored = loads(memoryview(data)[len(_HEADER) :])
        return stored if all(stamp_of(found[0]) == found[1] for found in stored.values()) else None
    except (OSError, ValueError, EOFError, TypeError, AttributeError, IndexError):
        return None


def stamp_of(path: str) -> "tuple[int, int, int, int]":
    """What identifies the state of a source file. Raises OSError."""
    status = posix.stat(path)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def store(path: str) -> None:
    """Store the code of the hot modules that this process has loaded, unless they were all taken from there.

    Raises OSError, SyntaxError.
    """
    wanted = {}
    for name, module in list(sys.modules.items()):
        source = getattr(module, "__file__", None) or ""
        if name.startswith("gstack") and source.endswith(".py") and (name in _Stored.modules or _is_hot(name, module)):
            wanted[name] = (source, hasattr(module, "__path__"))
    if wanted.keys() <= _Stored.modules.keys():
        return
    from gstack.lowlevel import read_file
    from gstack.state import write_atomic

    stored: Stored = {}
    for name, (source, is_package) in wanted.items():
        mark = stamp_of(source)
        # without docstrings: nobody reads them in a hook, and reading them in costs
        code = compile(read_file(source), source, "exec", dont_inherit=True, optimize=2)
        stored[name] = (source, mark, is_package, code)
    write_atomic(path, _HEADER + dumps(stored))


def _is_hot(name: str, module: "ModuleType") -> bool:
    """Packages, and modules that say so; this one and the package around it are there before anything is read."""
    return name not in ("gstack", __name__) and (hasattr(module, "__path__") or "Hot" in (module.__doc__ or ""))

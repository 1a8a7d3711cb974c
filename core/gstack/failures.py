"""What a plug-in's call that gave no result ends with, and the memory of what went wrong.

Hot only where something fails: a hook in which nothing does needs none of it. Builtins only.
"""

from time import time

from gstack.lowlevel import dump_json, join
from gstack.plan import read_trouble, trouble_path
from gstack.state import Lock, write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class PluginFailed(Exception):
    """A plug-in's call gave no result: ``name`` is the plug-in, ``what`` happened in a few words."""

    def __init__(self, name: str, what: str, *, overran: bool = False) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name
        self.what = what
        self.overran = overran


class Unsound(Exception):
    """A plug-in's answer isn't what its sort has to give; ``what`` says how."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def failure_of(name: str, error: Exception) -> PluginFailed:
    """What the plug-in ``name`` did when ``error`` came out of a call of it, caused by that error; an error that says
    so already is given back."""
    if isinstance(error, PluginFailed) and error.name == name:
        return error
    failed = PluginFailed(name, what_went_wrong(error))
    failed.__cause__ = error
    return failed


def what_went_wrong(error: BaseException) -> str:
    """A few words on what a plug-in's call ended with."""
    if isinstance(error, Unsound):
        return error.what
    return f"raised {type(error).__name__}: {one_line(error)}".rstrip(": ")


def one_line(error: BaseException) -> str:
    """An error's text on one line of at most 160 characters; it may be a plug-in's, so even asking for it can fail."""
    try:
        return " ".join(str(error).split())[:160]
    except Exception:
        return "(no text)"


def change_trouble(root: str, change: "Callable[[dict[str, Any]], None]") -> None:
    """Change the file of what is switched off and what went wrong under its lock. Raises OSError."""
    with Lock(join(root, "plugins.lock"), timeout=0.3):
        data = read_trouble(root)
        change(data)
        write_atomic(trouble_path(root), dump_json(data).encode("ascii") + b"\n")


def note_trouble(root: str, failed: PluginFailed) -> None:
    """Remember for ``gstack plugins list`` what a plug-in did. Never raises."""

    def change(data: "dict[str, Any]") -> None:
        entry = data["trouble"].setdefault(failed.name, {})
        entry["what"] = failed.what
        entry["when"] = int(time())
        entry["overruns"] = int(entry.get("overruns") or 0) + (1 if failed.overran else 0)

    try:
        change_trouble(root, change)
    except (OSError, ValueError, TypeError):
        return

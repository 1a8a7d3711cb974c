"""One failure domain for each call of an outside plug-in, and the memory of what went wrong.

Hot where an outside plug-in takes part in a hook; the built-ins don't need it. Builtins only.
"""

import sys
from time import monotonic, time

from gstack.lowlevel import dump_json, join
from gstack.plan import ALARM, Deadline, PluginFailed, one_line, read_trouble, trouble_path
from gstack.state import Lock, write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: What one call of an outside plug-in may take, in seconds.
CALL_LIMIT = 0.3


class Overrun(BaseException):
    """One call took longer than it may; a BaseException, so that a plug-in's ``except Exception`` doesn't eat it."""


class _Sink:
    """Stands in for standard output while a plug-in runs, and remembers that something was printed."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self) -> None:
        self.used = False

    def write(self, text: str) -> int:
        self.used = self.used or bool(text)
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def isolated(name: str, function: "Callable[..., Any]", *args: "Any", limit: float = CALL_LIMIT) -> "Any":
    """Call a plug-in's function within ``limit`` seconds. Raises PluginFailed whatever it does wrong."""
    kept, sink = sys.stdout, _Sink()
    outer = ALARM.call
    sys.stdout = sink
    ALARM.call = monotonic() + limit
    ALARM.arm()
    try:
        result = function(*args)
    except Deadline:
        raise
    except Overrun:
        raise PluginFailed(name, f"took longer than {limit:g} s", overran=True) from None
    except SystemExit:
        raise PluginFailed(name, "called sys.exit") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginFailed(name, f"raised {type(error).__name__}: {one_line(error)}") from error
    finally:
        ALARM.call = outer
        ALARM.arm()
        sys.stdout = kept
    if sink.used:
        raise PluginFailed(name, "printed to standard output")
    return result


def change_trouble(root: str, change: "Callable[[dict[str, Any]], None]") -> None:
    """Change that file under its lock. Raises OSError."""
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

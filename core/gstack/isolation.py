"""One failure domain for each call of an outside plug-in, and the memory of what went wrong.

Hot where an outside plug-in takes part in a hook; the built-ins don't need it. Builtins only.
"""

import sys
from time import monotonic, time

from gstack.errors import GstackError
from gstack.lowlevel import dump_json, join, sys_os
from gstack.plan import ALARM, Deadline, PluginFailed, read_trouble, trouble_path, what_went_wrong
from gstack.state import Lock, write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gstack.plan import Plan

#: What one call of an outside plug-in may take, in seconds.
CALL_LIMIT = 0.3
#: Methods of a host adapter that read files, and may take longer: the hook's own deadline is near.
SLOW_METHODS = {"read_run": 4.0, "read_transcript": 4.0, "skill_places": 1.0, "skills_in": 1.0}


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


class _Descriptor:
    """Keeps what a plug-in writes to descriptor 1, past ``sys.stdout``, out of the answer: it goes to ``instead``.

    In the hook, whose answer goes to a descriptor of its own, that changes nothing.
    """

    def __init__(self, instead: int) -> None:
        self._kept = -1
        _flush()
        try:
            self._kept = sys_os.dup(1)
        except OSError:  # there is no standard output
            return
        try:
            sys_os.dup2(instead, 1)
        except OSError:
            sys_os.close(1)

    def restore(self) -> None:
        """Put standard output back."""
        if self._kept >= 0:
            _flush()
            sys_os.dup2(self._kept, 1)
            sys_os.close(self._kept)


def _flush() -> None:
    """Bring what is buffered to where descriptor 1 leads now."""
    for stream in (sys.stdout, sys.__stdout__):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):  # whoever writes next gets the same error, and reports it
            continue


class _Interrupts:
    """Watches for Ctrl-C during a call, to tell it from a KeyboardInterrupt that the plug-in raises by itself.

    What was to happen on Ctrl-C still happens. Outside the main thread, where nothing arrives, it watches nothing.
    """

    def __init__(self) -> None:
        self.arrived = False
        self._before: Any = None

    def begin(self) -> None:
        """Watch from now on."""
        import _signal

        before = _signal.getsignal(_signal.SIGINT)
        if not callable(before):
            return
        try:
            _signal.signal(_signal.SIGINT, self._arrive)
        except ValueError:  # not the main thread
            return
        self._before = before

    def end(self) -> None:
        """Put back what was there."""
        if self._before is not None:
            import _signal

            _signal.signal(_signal.SIGINT, self._before)

    def _arrive(self, number: int, frame: "Any") -> None:
        self.arrived = True
        self._before(number, frame)


def isolated(name: str, function: "Callable[..., Any]", *args: "Any", limit: float = CALL_LIMIT, raw: int = 2) -> "Any":
    """Call a plug-in's function within ``limit`` seconds.

    What it writes to descriptor 1 itself goes to the descriptor ``raw``, standard error unless said otherwise.

    Raises PluginFailed whatever it does wrong, KeyboardInterrupt after Ctrl-C.
    """
    kept, sink = sys.stdout, _Sink()
    outer, real_exit = ALARM.call, sys_os._exit
    descriptor = _Descriptor(raw)
    sys.stdout = sink
    _set_exit(_no_exit)
    interrupts = _Interrupts()
    interrupts.begin()
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
    except BaseException as error:
        if interrupts.arrived and isinstance(error, KeyboardInterrupt):
            raise
        raise PluginFailed(name, what_went_wrong(error)) from error
    finally:
        ALARM.call = outer
        ALARM.arm()
        interrupts.end()
        descriptor.restore()
        sys.stdout = kept
        _set_exit(real_exit)
    if sink.used:
        raise PluginFailed(name, "printed to standard output")
    return result


def _set_exit(function: "Any") -> None:
    for module in (sys_os, sys.modules.get("os")):  # a plug-in may have imported the second meanwhile
        if module is not None:
            vars(module)["_exit"] = function


def _no_exit(code: int) -> None:
    """Stands in for ``os._exit`` while a plug-in runs: its exit code would be the hook's, and 2 means "block"."""
    raise SystemExit(code)


class GuardedHost:
    """An outside host adapter whose every method call is a failure domain of its own.

    A call that fails raises PluginFailed and is remembered; what hosts may say with an error (GstackError, OSError)
    passes through.
    """

    def __init__(self, host: "Any", name: str, plan: "Plan") -> None:
        self._host = host
        self._name = name
        self._plan = plan

    def __getattr__(self, name: str) -> "Any":
        value = getattr(self._host, name)
        return self._guarded(name, value) if callable(value) else value

    def _guarded(self, name: str, function: "Callable[..., Any]") -> "Callable[..., Any]":
        def call(*args: "Any", **named: "Any") -> "Any":
            limit = SLOW_METHODS.get(name, CALL_LIMIT)
            try:
                return isolated(self._name, lambda: function(*args, **named), limit=limit)
            except PluginFailed as failed:
                if isinstance(failed.__cause__, (GstackError, OSError)):
                    raise failed.__cause__ from None
                raise self._plan.note(failed) from failed.__cause__

        return call


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

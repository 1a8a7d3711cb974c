"""One failure domain for each call of an outside plug-in.

Hot where an outside plug-in takes part in a hook; the built-ins don't need it. Builtins only.
"""

import _signal
import sys
from time import monotonic

from gstack.lowlevel import sys_os
from gstack.plan import ALARM, CALL, Deadline, load_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gstack.plan import Row

#: What one call of an outside plug-in may take, in seconds.
CALL_LIMIT = 0.3


def isolated(name: str, function: "Callable[..., Any]", *args: "Any", limit: float = CALL_LIMIT, raw: int = 2) -> "Any":
    """Call a plug-in's function within ``limit`` seconds.

    What it writes to descriptor 1 itself goes to the descriptor ``raw``, standard error unless said otherwise.

    Raises PluginFailed whatever it does wrong, KeyboardInterrupt after Ctrl-C.
    """
    kept, outer, real_exit = sys.stdout, ALARM.call, sys_os._exit
    printed: list[str] = []
    interrupts: list[int] = []
    what: str | None = None
    cause: BaseException | None = None
    overran = False
    output = _divert(raw)
    sys.stdout = _sink(printed)
    _set_exit(_no_exit)
    on_interrupt = _watch(interrupts)
    ALARM.call = monotonic() + limit
    ALARM.arm()
    try:
        try:
            result = function(*args)
        except (Deadline, SystemExit):
            raise
        except BaseException as error:
            if interrupts and isinstance(error, KeyboardInterrupt):
                raise
            from gstack.failures import what_went_wrong

            # within the domain: the error's text is the plug-in's as well
            what, cause = what_went_wrong(error), error
    except Deadline as error:
        if error.args != (CALL,):
            raise
        what, overran = f"took longer than {limit:g} s", True
    except SystemExit:
        what = "called sys.exit"
    finally:
        ALARM.call = outer
        ALARM.arm()
        if on_interrupt is not None:
            _signal.signal(_signal.SIGINT, on_interrupt)
        _restore(output)
        sys.stdout = kept
        _set_exit(real_exit)
    if printed and what is None:
        what = "printed to standard output"
    if what is not None:
        from gstack.failures import PluginFailed

        raise PluginFailed(name, what, overran=overran) from cause
    return result


def load_outside(row: "Row") -> "list[Any]":
    """The objects of an outside plug-in. Raises PluginFailed."""
    folder = row["folder"]
    if folder and folder not in sys.path:
        sys.path.append(folder)
    found: list[Any] = isolated(row["id"], _objects, row)
    return found


def _objects(row: "Row") -> "list[Any]":
    module, file = row["module"], row["file"]
    top = module.partition(".")[0]
    if file and top not in sys.modules:
        _import_from(file, top)
    return list(load_object(module, row["attr"], row["group"]))


def _import_from(file: str, name: str) -> None:
    """Import the module that lies there, without a look into every folder before that one. Raises whatever it
    raises."""
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import spec_from_file_location

    spec: Any = spec_from_file_location(name, file)
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise


def _sink(printed: "list[str]") -> "Any":
    """What stands in for standard output while a plug-in runs; ``printed`` isn't empty once something was printed."""

    def write(text: str) -> int:
        printed.extend(text[:1])
        return len(text)

    # the type of sys.implementation is there already, making a class costs more; bool() does nothing and is false
    namespace: Any = type(sys.implementation)
    return namespace(write=write, flush=bool, isatty=bool, encoding="utf-8", errors="replace")


def _divert(instead: int) -> int:
    """Keep what a plug-in writes to descriptor 1, past ``sys.stdout``, out of the answer: it goes to ``instead``.

    In the hook, whose answer goes to a descriptor of its own, that changes nothing. The descriptor that leads to
    standard output meanwhile; -1 when there is none.
    """
    _flush()
    try:
        output = sys_os.dup(1)
    except OSError:
        return -1
    try:
        sys_os.dup2(instead, 1)
    except OSError:
        sys_os.close(1)
    return output


def _restore(output: int) -> None:
    """Put standard output back."""
    if output >= 0:
        _flush()
        sys_os.dup2(output, 1)
        sys_os.close(output)


def _flush() -> None:
    """Bring what is buffered to where descriptor 1 leads now."""
    out, real = sys.stdout, sys.__stdout__
    for stream in (out,) if out is real else (out, real):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):  # whoever writes next gets the same error, and reports it
            continue


def _watch(arrived: "list[int]") -> "Any":
    """Watch for Ctrl-C during a call, to tell it from a KeyboardInterrupt that the plug-in raises by itself.

    What was to happen on Ctrl-C still happens; that is given back, to be put in place again. None: outside the main
    thread, where nothing arrives, and where it is ignored, nothing is watched.
    """
    before: Any = _signal.getsignal(_signal.SIGINT)
    if not callable(before):
        return None

    def arrive(number: int, frame: "Any") -> None:
        arrived.append(number)
        before(number, frame)

    try:
        _signal.signal(_signal.SIGINT, arrive)
    except ValueError:  # not the main thread
        return None
    return before


def _set_exit(function: "Any") -> None:
    sys_os.__dict__["_exit"] = function
    os = sys.modules.get("os")  # a plug-in may have imported it meanwhile
    if os is not None:
        os.__dict__["_exit"] = function


def _no_exit(code: int) -> None:
    """Stands in for ``os._exit`` while a plug-in runs: its exit code would be the hook's, and 2 means "block"."""
    raise SystemExit(code)

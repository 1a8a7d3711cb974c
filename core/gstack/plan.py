"""The plug-ins that a process may use, and one failure domain for each.

Hot: imported by the hook, so builtins only. :mod:`gstack.plugins` finds the plug-ins and writes the plan with pluggy;
here
they are only imported and asked, each in isolation: one that raises, prints, exits or runs over its time costs only
itself (design: "The four extension points").
"""

import sys
from time import monotonic

from gstack.lowlevel import POSIX, join, load_json, read_file, sys_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    #: One usable plug-in: ``id``, ``group``, ``module``, ``attr``, ``dist``, ``version``, ``builtin``, ``names`` of its
    #: objects, and the ``folder`` that it is imported from.
    Row = Mapping[str, Any]

#: After so many overruns a plug-in is set aside until ``gstack plugins enable``.
STRIKES = 3
#: The distribution that the built-ins come from.
OWN_DISTRIBUTION = "gstack-skills"


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


class Deadline(BaseException):
    """The hook's own time is up."""


#: Kept here, since plug-ins are shown another one while they run.
_EXIT = sys_os._exit


class Alarm:
    """The process's one interval timer: a deadline for all, and one for the call that is going on.

    POSIX only: there the signal reaches even a running regular expression. Elsewhere, and outside the main thread,
    nothing interrupts a call; the deadline is then only looked at between steps.
    """

    def __init__(self) -> None:
        self.deadline: float | None = None
        self.call: float | None = None
        self._ready = False

    def arm(self) -> None:
        """Set the timer for the nearest of the two ends (none: switch it off)."""
        if not POSIX:
            return
        import _signal

        ends = [end for end in (self.deadline, self.call) if end is not None]
        try:
            if not self._ready and ends:
                _signal.signal(_signal.SIGALRM, self._ring)
                self._ready = True
            if self._ready:
                left = max(min(ends) - monotonic(), 0.0005) if ends else 0.0
                # repeated, since a plug-in may swallow the first
                _signal.setitimer(_signal.ITIMER_REAL, left, 0.05 if ends else 0.0)
        except ValueError:  # not the main thread
            return

    def _ring(self, _signal_number: int, _frame: object) -> None:
        now = monotonic()
        if self.deadline is not None and now >= self.deadline:
            if now >= self.deadline + 0.5:
                _EXIT(0)  # whatever runs here swallows what it is told
            raise Deadline
        if self.call is not None and now >= self.call:
            from gstack.isolation import Overrun

            raise Overrun


ALARM = Alarm()


class Plan:
    """The usable plug-ins, in order; objects are made when they are asked for, once a process."""

    def __init__(self, root: str, rows: "Sequence[Row]", disabled: "frozenset[str]" = frozenset()) -> None:
        self.root = root
        self.rows = [row for row in rows if row["id"] not in disabled]
        self.failures: list[PluginFailed] = []
        self._objects: dict[tuple[str, str], list[object]] = {}
        self._owner: dict[int, Row] = {}

    def objects(self, group: str) -> "list[tuple[str, Any]]":
        """Every object of a group with its plug-in's id. A plug-in that fails is left out and noted in ``failures``."""
        return [(row["id"], found) for row in self.rows if row["group"] == group for found in self._load(row)]

    def get(self, group: str, name: str) -> "Any | None":
        """The object of a group that goes by ``name``, importing only the plug-in that has it; None when there is
        none."""
        for row in self.rows:
            if row["group"] == group and name in row["names"]:
                for found in self._load(row):
                    if _name_of(found) == name:
                        return found
        return None

    def call(self, owner: object, function: "Callable[..., Any]", *args: "Any") -> "Any":
        """Call a method of the plug-in object ``owner``: an outside one in isolation, a built-in straight.

        Raises PluginFailed; an overrun is remembered and counts as a strike.
        """
        row = self._owner.get(id(owner))
        if row is None or row["builtin"]:
            try:
                return function(*args)
            except Exception as error:
                name = row["id"] if row else type(owner).__name__
                raise self.note(PluginFailed(name, what_went_wrong(error))) from error
        from gstack.isolation import isolated

        try:
            return isolated(row["id"], function, *args)
        except PluginFailed as failed:
            raise self.note(failed) from failed.__cause__

    def host(self, name: str) -> "Any | None":
        """The host adapter of that id, an outside one guarded; None when there is none."""
        found = self.get("gstack.host_adapters", name)
        row = self._owner.get(id(found))
        if row is None or row["builtin"]:
            return found
        from gstack.isolation import GuardedHost

        return GuardedHost(found, row["id"], self)

    def _load(self, row: "Row") -> "list[object]":
        key = (row["group"], row["id"])
        if key not in self._objects:
            try:
                if row["builtin"]:
                    found = list(load_object(row["module"], row["attr"], row["group"]))
                else:
                    from gstack.isolation import isolated

                    _reach(row["folder"])
                    found = list(isolated(row["id"], load_object, row["module"], row["attr"], row["group"]))
            except PluginFailed as failed:
                self.note(failed)
                found = []
            except Exception as error:
                self.note(PluginFailed(row["id"], what_went_wrong(error)))
                found = []
            self._objects[key] = found
            for one in found:
                self._owner[id(one)] = row
        return self._objects[key]

    def note(self, failed: PluginFailed) -> PluginFailed:
        """Remember what a plug-in did wrong; gives it back, to be raised."""
        from gstack.isolation import note_trouble

        self.failures.append(failed)
        note_trouble(self.root, failed)
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


def load_object(module: str, attr: str, group: str) -> "Any":
    """Import a plug-in and call its hook for ``group``. Raises whatever it raises."""
    __import__(module)
    plugin: Any = sys.modules[module]
    for part in attr.split(".") if attr else ():
        plugin = getattr(plugin, part)
    return getattr(plugin, group.replace(".", "_"))()


def _reach(folder: str) -> None:
    if folder and folder not in sys.path:
        sys.path.append(folder)


def _name_of(found: object) -> str:
    return str(getattr(found, "name", None) or getattr(found, "id", ""))


# ------------------------------------------------------------------------------- switched off and set aside


def trouble_path(root: str) -> str:
    """Where it stands which plug-ins are switched off, and what went wrong with which."""
    return join(root, "plugins.json")


def read_trouble(root: str) -> "dict[str, Any]":
    """``{"disabled": [ids], "trouble": {id: {"what", "when", "overruns"}}}``; empty when there is none. Never
    raises."""
    try:
        data = load_json(read_file(trouble_path(root), 1 << 20))
    except (OSError, ValueError):
        return {"disabled": [], "trouble": {}}
    data = data if isinstance(data, dict) else {}
    disabled, trouble = data.get("disabled"), data.get("trouble")
    return {
        "disabled": [name for name in disabled if isinstance(name, str)] if isinstance(disabled, list) else [],
        "trouble": {k: v for k, v in trouble.items() if isinstance(v, dict)} if isinstance(trouble, dict) else {},
    }


def disabled_plugins(root: str, env: "Mapping[str, str]") -> "frozenset[str]":
    """The plug-ins that are switched off: by ``plugins disable``, by ``GSTACK_DISABLED_PLUGINS``, or set aside."""
    data = read_trouble(root)
    aside = [n for n, entry in data["trouble"].items() if _count(entry.get("overruns")) >= STRIKES]
    asked = env.get("GSTACK_DISABLED_PLUGINS", "").replace(",", " ").split()
    return frozenset([*data["disabled"], *aside, *asked])


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0

"""The plug-ins that a process may use, and one failure domain for each.

Hot: imported by the hook, so builtins only. :mod:`gstack.plugins` finds the plug-ins and writes the plan with pluggy;
here they are only imported and asked, each in isolation: one that raises, prints, exits or runs over its time costs
only itself (design: "The four extension points").
"""

import sys
from time import monotonic

from gstack.lowlevel import POSIX, join, load_json, read_file, sys_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gstack.failures import PluginFailed

    #: One usable plug-in: ``id``, ``group``, ``module``, ``attr``, ``dist``, ``version``, ``builtin``, ``names`` of its
    #: objects, the ``folder`` that it is imported from, and the ``file`` of its module or of the package around it
    #: ("" where an import has to look for that).
    Row = Mapping[str, Any]

#: After so many overruns a plug-in is set aside until ``gstack plugins enable``.
STRIKES = 3
#: The distribution that the built-ins come from.
OWN_DISTRIBUTION = "gstack-skills"


#: Kept here, since plug-ins are shown another one while they run.
_EXIT = sys_os._exit


class Deadline(BaseException):
    """Time is up: the hook's own, or, where :data:`CALL` is its argument, that of the call that is going on.

    A BaseException, so that a plug-in's ``except Exception`` doesn't eat it.
    """


#: The argument of a Deadline that is one call's.
CALL = "call"


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

        end = self.deadline
        if self.call is not None and (end is None or self.call < end):
            end = self.call
        try:
            if end is None:
                if self._ready:
                    _signal.setitimer(_signal.ITIMER_REAL, 0.0)
                return
            if not self._ready:
                _signal.signal(_signal.SIGALRM, self._ring)
                self._ready = True
            # repeated, since a plug-in may swallow the first
            _signal.setitimer(_signal.ITIMER_REAL, max(end - monotonic(), 0.0005), 0.05)
        except ValueError:  # not the main thread
            return

    def _ring(self, _signal_number: int, _frame: object) -> None:
        now = monotonic()
        if self.deadline is not None and now >= self.deadline:
            if now >= self.deadline + 0.5:
                _EXIT(0)  # whatever runs here swallows what it is told
            raise Deadline
        if self.call is not None and now >= self.call:
            raise Deadline(CALL)


ALARM = Alarm()


class Plan:
    """The usable plug-ins, in order; objects are made when they are asked for, once a process.

    ``rows`` are all of them; or ``read`` gives those of one group when it is asked for, without the ``disabled`` ones.
    """

    def __init__(
        self,
        root: str,
        rows: "Sequence[Row]" = (),
        disabled: "frozenset[str]" = frozenset(),
        *,
        read: "Callable[[str], Sequence[Row]] | None" = None,
    ) -> None:
        self.root = root
        self.failures: list[PluginFailed] = []
        self._read = read or (
            lambda group: [row for row in rows if row["group"] == group and row["id"] not in disabled]
        )
        self._rows: dict[str, Sequence[Row]] = {}
        self._objects: dict[tuple[str, str], list[object]] = {}
        self._owner: dict[int, Row] = {}

    def rows(self, group: str) -> "Sequence[Row]":
        """The usable plug-ins of a group."""
        if group not in self._rows:
            self._rows[group] = self._read(group)
        return self._rows[group]

    def objects(self, group: str) -> "list[tuple[str, Any]]":
        """Every object of a group with its plug-in's id. A plug-in that fails is left out and noted in ``failures``."""
        return [(row["id"], found) for row in self.rows(group) for found in self._load(row)]

    def get(self, group: str, name: str) -> "Any | None":
        """The object of a group that goes by ``name``, importing only the plug-in that has it; None when there is
        none."""
        for row in self.rows(group):
            if name in row["names"]:
                for found in self._load(row):
                    if _name_of(found) == name:
                        return found
        return None

    def call(self, owner: object, function: "Callable[..., Any]", *args: "Any") -> "Any":
        """Call a method of the plug-in object ``owner``: an outside one in isolation, a built-in straight.

        Raises PluginFailed; an overrun is remembered and counts as a strike.
        """
        row = self._owner.get(id(owner))
        try:
            if row is None or row["builtin"]:
                return function(*args)
            from gstack.isolation import isolated

            return isolated(row["id"], function, *args)
        except Exception as error:
            from gstack.failures import failure_of

            failed = failure_of(row["id"] if row else type(owner).__name__, error)
            raise self.note(failed) from failed.__cause__

    def host(self, name: str) -> "Any | None":
        """The host adapter of that id, an outside one guarded; None when there is none."""
        found = self.get("gstack.host_adapters", name)
        row = self._owner.get(id(found))
        if row is None or row["builtin"]:
            return found
        from gstack.guarded_host import GuardedHost

        return GuardedHost(found, row["id"], self)

    def _load(self, row: "Row") -> "list[object]":
        key = (row["group"], row["id"])
        if key not in self._objects:
            try:
                if row["builtin"]:
                    found = list(load_object(row["module"], row["attr"], row["group"]))
                else:
                    from gstack.isolation import load_outside

                    found = load_outside(row)
            except Exception as error:
                from gstack.failures import failure_of

                self.note(failure_of(row["id"], error))
                found = []
            self._objects[key] = found
            for one in found:
                self._owner[id(one)] = row
        return self._objects[key]

    def note(self, failed: "PluginFailed") -> "PluginFailed":
        """Remember what a plug-in did wrong; gives it back, to be raised."""
        from gstack.failures import note_trouble

        self.failures.append(failed)
        note_trouble(self.root, failed)
        return failed


def plugin_failed() -> "type[PluginFailed]":
    """What :meth:`Plan.call` raises, for an ``except``: there it is made only once something was raised.

    A class costs every hook that makes it as much as looking at ten files.
    """
    from gstack.failures import PluginFailed

    return PluginFailed


def load_object(module: str, attr: str, group: str) -> "Any":
    """Import a plug-in and call its hook for ``group``. Raises whatever it raises."""
    __import__(module)
    plugin: Any = sys.modules[module]
    for part in attr.split(".") if attr else ():
        plugin = getattr(plugin, part)
    return getattr(plugin, group.replace(".", "_"))()


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

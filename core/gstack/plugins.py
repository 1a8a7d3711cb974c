"""The plug-in manager: find, check with pluggy, load, isolate and list plug-ins.

Cold: used by the command line and by the hook's slow road. The hook itself uses the plan that
:func:`plan_rows` gives (see :mod:`gstack.plan`).
"""

import os
import sys
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import pluggy

from gstack import hookspecs
from gstack.entrypoints import Found, current_paths, find, import_folders, locate
from gstack.failures import PluginFailed
from gstack.isolation import isolated
from gstack.lowlevel import dump_json, join, load_json, read_file
from gstack.plan import STRIKES, disabled_plugins, load_object, read_trouble
from gstack.state import write_atomic

#: What importing and asking a plug-in may take when it is looked at, in seconds.
LOOK_LIMIT = 5.0
#: How many sources of a plug-in that failed are watched for its repair.
_MOST_SOURCES = 200


class Status:
    """One plug-in as ``gstack plugins list`` shows it.

    ``state`` is ``ok``, ``disabled``, ``set aside``, ``incompatible``, ``conflict``, ``refused`` or ``failed``;
    ``why`` says
    more; ``names`` are those of its objects; ``in_hook`` is False when only an import hook can find it; ``folder`` is
    the one it is imported from; ``trouble`` is the last thing that it did wrong in a hook.
    """

    __slots__ = ("folder", "found", "in_hook", "names", "overran", "state", "trouble", "unlooked", "why")

    def __init__(self, found: Found, state: str = "ok", why: str = "") -> None:
        self.found = found
        self.state = state
        self.why = why
        self.names: list[str] = []
        self.folder = ""
        self.in_hook = True
        self.overran = False
        self.unlooked = False
        self.trouble = ""

    def as_dict(self) -> dict[str, Any]:
        """The facts with stable keys, for ``--json``."""
        return {
            "id": self.found.id,
            "group": self.found.group,
            "distribution": self.found.dist,
            "version": self.found.version,
            "module": self.found.module,
            "state": self.state,
            "why": self.why,
            "names": self.names,
            "in_hook": self.in_hook,
            "trouble": self.trouble,
        }


def survey(
    root: str,
    env: Mapping[str, str],
    *,
    paths: Sequence[str] | None = None,
    group: str | None = None,
    limit: float = LOOK_LIMIT,
    budget: float | None = None,
) -> list[Status]:
    """Every installed plug-in (of ``group``), imported and asked, each in its own failure domain and ``limit``
    (seconds).

    One that is switched off is listed but not imported. ``budget`` is what all outside ones together may take, in
    seconds; those that come after are ``unlooked``.
    """
    paths = current_paths() if paths is None else paths
    folders = import_folders(paths)
    statuses = [Status(found) for found in find(paths) if group in (None, found.group)]
    _mark_disabled(statuses, root, env)
    _refuse_names(statuses)
    owners: dict[tuple[str, str], Status] = {}
    until = None if budget is None else monotonic() + budget
    for status in sorted(statuses, key=lambda one: not one.found.builtin):
        status.folder = locate(status.found.module, folders) or ""
        status.in_hook = bool(status.folder)
        if status.state == "ok" and until is not None and not status.found.builtin and monotonic() > until:
            status.state, status.why, status.unlooked = "failed", "there was no time left to look at it", True
        if status.state == "ok":
            _look(status, limit)
        if status.state == "ok":
            _claim_names(status, owners)
        if not status.in_hook and status.state == "ok":
            status.why = (
                "not loadable in the hook: only an import hook finds it; install it without -e, or with a plain path"
            )
    return statuses


def plan_rows(statuses: Sequence[Status]) -> list[dict[str, Any]]:
    """The rows of :class:`gstack.plan.Plan` for the plug-ins that work in the hook."""
    return [
        {
            "id": status.found.id,
            "group": status.found.group,
            "module": status.found.module,
            "attr": status.found.attr,
            "dist": status.found.dist,
            "version": status.found.version,
            "builtin": status.found.builtin,
            "names": list(status.names),
            "folder": status.folder,
            "file": _file_of(status),
        }
        for status in statuses
        if status.state == "ok" and status.in_hook
    ]


def _file_of(status: Status) -> str:
    """The file of a plug-in's module, or of the package around it, where it was imported from the folder that the hook
    would import it from; else ``""``."""
    name = status.found.module.partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    base = os.path.join(status.folder, name)
    return file if status.folder and file in (base + ".py", os.path.join(base, "__init__.py")) else ""


def _mark_disabled(statuses: list[Status], root: str, env: Mapping[str, str]) -> None:
    data = read_trouble(root)
    off = disabled_plugins(root, env)
    for status in statuses:
        entry = data["trouble"].get(status.found.id, {})
        status.trouble = str(entry.get("what") or "")
        if status.found.id in off:
            aside = int(entry.get("overruns") or 0) >= STRIKES and status.found.id not in data["disabled"]
            status.state = "set aside" if aside else "disabled"
            status.why = f"overran its time {STRIKES} times" if aside else "switched off"


def _refuse_names(statuses: list[Status]) -> None:
    """Unprefixed names belong to the built-ins; an id has one owner in its group."""
    owners: dict[tuple[str, str], Status] = {}
    for status in statuses:
        found = status.found
        key = (found.group, found.id)
        first = owners.setdefault(key, status)
        if first is not status:
            status.state = "conflict"
            status.why = f"{found.dist} and {first.found.dist} both call it {found.id}; {first.found.dist} has it"
        elif not found.builtin and "." not in found.id:
            status.state = "refused"
            status.why = "an outside plug-in's name needs a vendor prefix: vendor." + found.id


def _look(status: Status, limit: float) -> None:
    """Import the plug-in, let pluggy check it, ask it for its objects."""
    try:
        objects = isolated(status.found.id, _inspect, status, limit=LOOK_LIMIT if status.found.builtin else limit)
    except PluginFailed as failed:
        status.state = "failed"
        status.why = failed.what
        status.overran = failed.overran
        return
    if status.state == "ok":
        try:
            status.names = isolated(status.found.id, _names_of, objects, status.found.group)
        except PluginFailed as failed:
            status.state = "failed"
            status.why = failed.what


def _inspect(status: Status) -> list[Any]:
    found = status.found
    if status.folder and status.folder not in sys.path:
        sys.path.append(status.folder)
    __import__(found.module)
    plugin: Any = sys.modules[found.module]
    for part in found.attr.split(".") if found.attr else ():
        plugin = getattr(plugin, part)
    wanted = getattr(plugin, "GSTACK_API", hookspecs.GSTACK_API)
    if wanted != hookspecs.GSTACK_API:
        status.state = "incompatible"
        status.why = f"it was written for GSTACK_API {wanted}, this gstack has {hookspecs.GSTACK_API}"
        return []
    problem = pluggy_problem(plugin, found.group)
    if problem:
        status.state = "failed"
        status.why = problem
        return []
    return list(load_object(found.module, found.attr, found.group))


def pluggy_problem(plugin: object, group: str) -> str:
    """What pluggy finds wrong with a plug-in for ``group``, in one line; ``""`` when nothing."""
    manager = pluggy.PluginManager("gstack")
    manager.add_hookspecs(hookspecs)
    try:
        name = manager.register(plugin)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        return " ".join(str(error).split())
    hook = hookspecs.GROUPS[group]
    ours = [impl for impl in getattr(manager.hook, hook).get_hookimpls() if impl.plugin_name == name]
    if not ours:
        return f"it has no function {hook} marked with gstack.api.hookimpl"
    if any(impl.hookwrapper or impl.wrapper for impl in ours):
        return f"{hook} is a wrapper; wrappers are refused"
    return ""


def _names_of(objects: Sequence[Any], group: str) -> list[str]:
    word = "id" if group == "gstack.host_adapters" else "name"
    names = []
    for one in objects:
        name = getattr(one, word)
        if not isinstance(name, str) or not name:
            raise TypeError(f"an object's {word} is no text")
        names.append(name)
    return names


def _claim_names(status: Status, owners: dict[tuple[str, str], Status]) -> None:
    for name in status.names:
        first = owners.setdefault((status.found.group, name), status)
        if first is not status:
            status.state = "conflict"
            status.why = f"{status.found.dist} and {first.found.dist} both have {name}; {first.found.dist} keeps it"
        elif not status.found.builtin and "." not in name:
            status.state = "refused"
            status.why = f"the name {name} needs a vendor prefix: vendor.{name}"


def remember_owners(root: str, statuses: Sequence[Status]) -> None:
    """Keep which distribution brought which name, for the day when that is missing. Never raises."""
    known = _owners(root)
    now = {name: status.found.dist for status in statuses for name in (status.found.id, *status.names)}
    if not now.items() <= known.items():
        try:
            write_atomic(_owners_path(root), dump_json(known | now).encode("ascii") + b"\n")
        except OSError:
            return


def known_owner(root: str, name: str) -> str:
    """The distribution that ``name`` came with when it was last seen here; ``""`` when it never was."""
    return _owners(root).get(name, "")


def _owners_path(root: str) -> str:
    return join(root, "snapshot", "owners.json")


def _owners(root: str) -> dict[str, str]:
    try:
        data = load_json(read_file(_owners_path(root), 1 << 20))
    except (OSError, ValueError):
        return {}
    found = data.items() if isinstance(data, dict) else ()
    return {name: dist for name, dist in found if isinstance(dist, str)}


def shared_files(paths: Sequence[str], statuses: Sequence[Status]) -> list[str]:
    """The files and folders whose change makes a plan stale whatever is asked for.

    A distribution that comes, goes or is installed anew changes the folder that it lies in. An ``.egg-info`` lies in a
    source folder and is rewritten in place, so that any sort of plug-in may turn up in it.
    """
    files = [path for path in dict.fromkeys(paths) if path]
    for status in statuses:
        if status.found.builtin or status.found.metadata.endswith(".egg-info"):
            files.append(_entry_points(status))
    return list(dict.fromkeys(files))


def own_files(paths: Sequence[str], statuses: Sequence[Status]) -> list[str]:
    """The files and folders, beside the shared ones, whose change makes the plan of these plug-ins stale.

    Those of one that failed are among them, missing ones too, so that its repair is seen.
    """
    files = []
    folders = import_folders(paths)
    for status in statuses:
        if status.found.builtin:
            continue
        files.append(_entry_points(status))
        files += _module_files(status, paths, folders)
        if status.state == "failed":
            files += _package_files(status)
    shared = shared_files(paths, statuses)
    return [path for path in dict.fromkeys(files) if path not in shared]


def _entry_points(status: Status) -> str:
    return os.path.join(status.found.metadata, "entry_points.txt")


def _module_files(status: Status, paths: Sequence[str], folders: Sequence[str]) -> list[str]:
    """Where a plug-in's module was imported from, or could be."""
    origin = getattr(sys.modules.get(status.found.module), "__file__", None)
    files = [origin] if origin else []
    if status.state == "ok" and origin == _file_of(status) and status.folder in paths:
        return files  # another one beside it would change the folder
    parts = status.found.module.split(".")
    for folder in [status.folder] if status.folder else folders:
        for count in range(1, len(parts) + 1):
            base = os.path.join(folder, *parts[:count])
            files.append(os.path.join(base, "__init__.py"))
        files.append(base + ".py")
    return files


def _package_files(status: Status) -> list[str]:
    """The sources of a plug-in's package, with their folders: the fault may lie in any of them."""
    files: list[str] = []
    top = os.path.join(status.folder, status.found.module.split(".")[0]) if status.folder else ""
    for place, inner, names in os.walk(top) if top else ():
        inner[:] = sorted(name for name in inner if name != "__pycache__")
        files += [place, *(os.path.join(place, name) for name in sorted(names) if name.endswith(".py"))]
        if len(files) > _MOST_SOURCES:
            break
    return files[:_MOST_SOURCES]

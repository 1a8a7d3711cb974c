"""What the hook needs, compiled ahead: the plan of plug-ins and the index of skills.

Hot: imported by the hook, so builtins only. Each file is ``marshal`` data (reading it needs no import) behind a header
that names the Python and the gstack it was written by, is bound to the stamps of everything it was made from, and is
only trusted when nobody else could have written it. A stale or missing one is rebuilt on the slow road
(:mod:`gstack.snapshot_build`) in the same process; both roads give the same answer.
"""

import sys
from marshal import dumps, loads
from time import time_ns

from gstack import __version__
from gstack.lowlevel import POSIX, join, short_hash, sys_os
from gstack.plan import Plan, disabled_plugins
from gstack.state import write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from gstack.config import Config
    from gstack.plan import Row

    Stamp = tuple[int, int, int, int]

#: Format of the files; a change makes older ones stale.
FORMAT = 6
#: A file changed so shortly before a snapshot was made may change again unseen (as in git): it isn't trusted.
RACY_NS = 2_000_000_000

#: Stands for the stamp of what isn't there.
_ABSENT = (0, 0, -1, 0)

_HEADER = f"gstack {FORMAT} {__version__} {sys.implementation.cache_tag}\n".encode()


def stamp(path: str) -> "Stamp | None":
    """What identifies the state of a file or folder: mtime and ctime in ns, size in bytes, inode. None: not there."""
    try:
        found = sys_os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def stamped(
    paths: "Iterable[str]", skills: "Mapping[str, Sequence[str]]", known: "Mapping[str, Stamp | None]", made: int
) -> "dict[str, Any]":
    """The part of a snapshot that binds it to files and folders, in few objects: what is read in costs as well.

    ``skills`` maps a folder to the names in it whose own stamp and that of their ``SKILL.md`` count; ``known`` are
    stamps taken before the files were read; ``made`` is the time in ns before anything was looked at. A snapshot of
    something that changed shortly before is never trusted.
    """
    single = "\0".join(dict.fromkeys(paths))
    grouped = [(folder, "\0".join(names)) for folder, names in skills.items() if names]
    mark = newest = 0
    for path in _each(single, grouped):
        found = known[path] if path in known else stamp(path)
        mark = hash((mark, *(found or _ABSENT)))
        # ctime can't be set by hand, so a date in the future is no worry; on Windows it is the creation time
        newest = max(newest, found[1 if POSIX else 0] if found else 0)
    return {"paths": single, "grouped": grouped, "mark": mark, "racy": newest > made - RACY_NS}


def _each(single: str, grouped: "Sequence[tuple[str, str]]") -> "Iterator[str]":
    yield from single.split("\0")
    for folder, names in grouped:
        for name in names.split("\0"):
            path = f"{folder}/{name}"
            yield path
            yield path + "/SKILL.md"


def fresh(blob: "Mapping[str, Any]") -> bool:
    """Whether everything that a snapshot is bound to (see :func:`stamped`) still is as it was."""
    if blob["racy"]:
        return False
    stat, mark = sys_os.stat, 0
    for folder, names in (("", blob["paths"]), *blob["grouped"]):
        # by the folder's descriptor: the way to the folder is then walked once, not twice for each skill
        fd = _opened(folder) if folder else None
        start = folder + "/" if folder and fd is None else ""
        for name in names.split("\0"):
            path = start + name
            for one in (path, path + "/SKILL.md") if folder else (path,):
                try:
                    found = stat(one, dir_fd=fd)
                except (OSError, ValueError):
                    mark = hash((mark, *_ABSENT))
                else:
                    # the hash of numbers is the same in every process
                    mark = hash((mark, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino))
        if fd is not None:
            sys_os.close(fd)
    same: bool = mark == blob["mark"]
    return same


def _opened(folder: str) -> "int | None":
    if not POSIX:
        return None
    try:
        return sys_os.open(folder, sys_os.O_RDONLY | sys_os.O_DIRECTORY)
    except OSError:
        return None


def read_blob(path: str) -> "Any | None":
    """The data of a snapshot file; None when it is missing, cut off, of another Python or gstack, or writable by
    others."""
    try:
        fd = sys_os.open(path, sys_os.O_RDONLY | getattr(sys_os, "O_CLOEXEC", 0) | getattr(sys_os, "O_BINARY", 0))
    except OSError:
        return None
    try:
        status = sys_os.fstat(fd)
        if POSIX and (status.st_uid != sys_os.geteuid() or status.st_mode & 0o022):
            return None
        data = sys_os.read(fd, status.st_size + 1)
    except OSError:
        return None
    finally:
        sys_os.close(fd)
    start = len(_HEADER) + 8
    if not data.startswith(_HEADER) or int.from_bytes(data[len(_HEADER) : start], "little") != len(data) - start:
        return None
    try:
        return loads(memoryview(data)[start:])
    except (ValueError, EOFError, TypeError):
        return None


def write_blob(path: str, value: "Any") -> None:
    """Write a snapshot file atomically. Raises OSError, or ValueError for what isn't plain data."""
    data = dumps(value)
    # not synced: a snapshot that a crash cut off is made anew
    write_atomic(path, _HEADER + len(data).to_bytes(8, "little") + data, sync=False)


# -------------------------------------------------------------------------------------------------- plan


def plan_path(root: str) -> str:
    """Where the plan of plug-ins lies."""
    return join(root, "snapshot", "plan")


def load_plan(root: str, paths: "Sequence[str]", env: "Mapping[str, str]") -> Plan:
    """The plan of the plug-ins that this Python has (``paths``: the folders that setup found distributions in).

    Each group is bound to the files of its own plug-ins and looked at when it is asked for, so that a plug-in costs
    nothing where it has no part. One that is stale makes the whole plan stale.
    """
    blob: Any = read_blob(plan_path(root))
    disabled = disabled_plugins(root, env)
    made = not blob or blob["folders"] != list(paths) or blob["disabled"] != sorted(disabled) or not fresh(blob)
    if made:
        from gstack.snapshot_build import build_plan

        blob = build_plan(root, paths, disabled)

    def rows(group: str) -> "list[Row]":
        nonlocal blob, made
        found, bound = loads(blob["groups"][group])
        if not made and bound and not fresh(bound):
            from gstack.snapshot_build import build_plan

            blob, made = build_plan(root, paths, disabled), True
            found, _ = loads(blob["groups"][group])
        plugins: list[Row] = found
        return plugins

    return Plan(root, read=rows)


# ------------------------------------------------------------------------------------------------- skills


class SkillIndex:
    """The skills that a session in one folder sees, compiled.

    ``count`` is how many there are; ``labels`` maps a frontmatter name to the invocable one where they differ;
    ``contracts`` a skill to its contract as declared; ``routing`` a skill to ``on`` or ``off`` where set; ``scorers`` a
    scorer's name to its prepared index.
    """

    __slots__ = ("_names", "_rest", "contracts", "count", "labels", "roots", "routing", "scorers")

    def __init__(self, data: "Mapping[str, Any]") -> None:
        self.roots: list[str] = data["roots"]
        self.count: int = data["count"]
        self.labels: dict[str, str] = data["labels"]
        self.contracts: dict[str, dict[str, Any]] = data["contracts"]
        self.routing: dict[str, str] = data["routing"]
        self.scorers: dict[str, Any] = data["scorers"]
        self._names: Any = data["names"]
        self._rest: Any = data["rest"]

    @property
    def names(self) -> "dict[str, str]":
        """Each invocable name with its ``SKILL.md``."""
        if isinstance(self._names, bytes):
            self._names = loads(self._names)
        found: dict[str, str] = self._names
        return found

    def _later(self, key: str) -> "Any":
        """What few hooks need is marshalled apart, so that the others needn't read it in."""
        if isinstance(self._rest, bytes):
            self._rest = loads(self._rest)
        return self._rest[key]

    @property
    def first_steps(self) -> "dict[str, str]":
        """The first step of each skill that has one."""
        found: dict[str, str] = self._later("first_steps")
        return found

    @property
    def sources(self) -> "dict[str, dict[str, str]]":
        """Where each skill's triggers, routing and contract came from, and what is wrong with them."""
        found: dict[str, dict[str, str]] = self._later("sources")
        return found

    @property
    def skipped(self) -> "list[tuple[str, str]]":
        """The files that are no skill, with the reason."""
        found: list[tuple[str, str]] = self._later("skipped")
        return found

    @property
    def shadowed(self) -> "list[tuple[str, str]]":
        """The files that another one hides, with the other's path."""
        found: list[tuple[str, str]] = self._later("shadowed")
        return found


def index_path(root: str, host: str, variables: str, cwd: "str | None") -> str:
    """Where the index lies for one host, the values of its ``skill_variables`` and one working folder."""
    return join(root, "snapshot", "skills-" + short_hash(f"{host}\0{variables}\0{cwd or ''}"))


def load_index(
    root: str, host: "Any", env: "Mapping[str, str]", cwd: "str | None", config: "Config", plan: Plan
) -> SkillIndex:
    """The skill index for ``cwd``, from its snapshot or, when that is stale, made anew."""
    path = index_path(root, host.id, "\0".join([env.get(name, "") for name in host.skill_variables]), cwd)
    blob = read_blob(path)
    settings = scorer_settings(config, plan)
    if not blob or blob["settings"] != settings or not fresh(blob):
        from gstack.snapshot_build import build_index

        blob = build_index(path, root, host, env, cwd, config, plan, settings, old=blob)
    return SkillIndex(blob["index"])


def scorer_settings(config: "Config", plan: Plan) -> "list[Any]":
    """What the prepared indexes depend on beside the skills: the scorers, their versions, the equivalents."""
    from gstack.config import names

    wanted = [config.get("route_scorer"), *names(config.get("route_shadow_scorers"))]
    rows = [
        [row["id"], row["version"], *row["names"]]
        for row in plan.rows("gstack.trigger_scorers")
        if any(name in row["names"] for name in wanted)
    ]
    return [wanted, rows, config.get("route_equivalents")]


def now_ns() -> int:
    """The time in ns; a function of its own so that tests can step the clock."""
    return time_ns()

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
from gstack.lowlevel import POSIX, join, open_folder, sys_os
from gstack.plan import Plan, disabled_plugins
from gstack.state import write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gstack.config import Config
    from gstack.plan import Row

    Stamp = tuple[int, int, int, int]

#: Format of the files; a change makes older ones stale.
FORMAT = 7
#: A file changed so shortly before a snapshot was made may change again unseen (as in git): it isn't trusted.
RACY_NS = 2_000_000_000

#: The largest prime below 2 ** 64.
_PRIME = 2**64 - 59

#: Stands for the stamp of what isn't there.
_ABSENT = (0, 0, -1, 0)

#: A pipe in a file's place is no reason to wait.
_READ = (
    sys_os.O_RDONLY
    | getattr(sys_os, "O_CLOEXEC", 0)
    | getattr(sys_os, "O_BINARY", 0)
    | getattr(sys_os, "O_NONBLOCK", 0)
)

_HEADER = f"gstack {FORMAT} {__version__} {sys.implementation.cache_tag}\n".encode()


def stamp(path: str) -> "Stamp | None":
    """What identifies the state of a file or folder: mtime and ctime in ns, size in bytes, inode. None: not there."""
    try:
        found = sys_os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def stamped(
    paths: "Iterable[str]",
    entries: "Mapping[str, tuple[Sequence[str], Sequence[str]]]",
    known: "Mapping[str, Stamp | None]",
    made: int,
) -> "dict[str, Any]":
    """The part of a snapshot that binds it to files and folders, in few objects: what is read in costs as well.

    ``entries`` maps a folder to the paths below it whose stamps count, and to those that must not appear; ``known`` are
    stamps taken before the files were read; ``made`` is the time in ns before anything was looked at. A snapshot of
    something that changed shortly before is never trusted.
    """
    single = [path for path in dict.fromkeys(paths) if "\0" not in path] or [""]  # nothing has such a path
    mark = newest = 0
    for path in (*single, *[f"{folder}/{name}" for folder, (there, _) in entries.items() for name in there]):
        found = known[path] if path in known else stamp(path)
        mark = hash((mark, *(found or _ABSENT)))
        # ctime can't be set by hand, so a date in the future is no worry; on Windows it is the creation time
        newest = max(newest, found[1 if POSIX else 0] if found else 0)
    return {
        "paths": _packed(single),
        "grouped": [
            (_packed([folder]), _packed(there), _packed(absent)) for folder, (there, absent) in entries.items()
        ],
        "mark": mark,
        "racy": newest > made - RACY_NS,
    }


def _packed(paths: "Sequence[str]") -> bytes:
    """Paths in one object, as the system takes them (``os.fsencode``): each look would encode its path again."""
    text = "\0".join(paths)
    try:
        return text.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
    except UnicodeEncodeError:  # a path that no file can have
        return text.encode("utf-8", "surrogatepass")


def fresh(blob: "Mapping[str, Any]") -> bool:
    """Whether everything that a snapshot is bound to (see :func:`stamped`) still is as it was."""
    if blob["racy"]:
        return False
    stat, access, mark, appeared = sys_os.stat, sys_os.access, 0, False
    for folder, there, absent in ((b"", blob["paths"], b""), *blob["grouped"]):
        # by the folder's descriptor: the way to the folder is then walked once, not for each skill
        fd = open_folder(folder) if folder else None
        wanted, unwanted = there.split(b"\0"), absent.split(b"\0") if absent else []
        if folder and fd is None:
            wanted, unwanted = [[folder + b"/" + name for name in group] for group in (wanted, unwanted)]
        for name in wanted:
            try:
                found = stat(name, dir_fd=fd)
            except (OSError, ValueError):
                mark = hash((mark, *_ABSENT))
            else:
                # the hash of numbers is the same in every process
                mark = hash((mark, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino))
        for name in unwanted:
            # says no more than whether it is there, for half of what a stamp costs
            if access(name, 0, dir_fd=fd):
                appeared = True
        if fd is not None:
            sys_os.close(fd)
    same: bool = mark == blob["mark"] and not appeared
    return same


def read_blob(path: str) -> "Any | None":
    """The data of a snapshot file; None when it is missing, cut off, of another Python or gstack, or writable by
    others."""
    try:
        fd = sys_os.open(path, _READ)
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

    ``count`` is how many there are; ``listed`` their invocable names, a line each, with a line break at both ends;
    ``names`` maps each name to its ``SKILL.md``; ``labels`` a frontmatter name to the invocable one where they differ;
    ``contracts`` a skill to its contract as declared; ``routing`` a skill to ``on`` or ``off`` where set;
    ``first_steps`` a skill to its first step where it has one; ``sources`` to where its triggers, routing and contract
    came from and what is wrong with them; ``skipped`` are the files that are no skill, with the reason; ``shadowed``
    those that another one hides, with the other's path; ``scorers`` maps a scorer's name to its prepared index.
    """

    if TYPE_CHECKING:
        names: dict[str, str]
        labels: dict[str, str]
        contracts: dict[str, dict[str, Any]]
        routing: dict[str, str]
        first_steps: dict[str, str]
        sources: dict[str, dict[str, str]]
        skipped: list[tuple[str, str]]
        shadowed: list[tuple[str, str]]

    def __init__(self, data: "Mapping[str, Any]") -> None:
        self.roots: list[str] = data["roots"]
        self.count: int = data["count"]
        self.listed: str = data["listed"]
        self.scorers: dict[str, Any] = data["scorers"]
        self._paths: str = data["paths"]
        self._parts: dict[str, bytes] = data["parts"]

    def path_of(self, name: str) -> str:
        """The ``SKILL.md`` of the skill that is invoked as ``name``. Raises ValueError when there is none."""
        number = self.listed.count("\n", 0, self.listed.index(f"\n{name}\n"))
        return self._paths.split("\0", number + 1)[number]

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """What few hooks need is read in when it is asked for."""
            if name == "names":
                found = dict(zip(self.listed.split("\n")[1:-1], self._paths.split("\0"), strict=False))
            elif name[:1] != "_" and name in self._parts:
                found = loads(self._parts[name])
            else:
                raise AttributeError(name)
            setattr(self, name, found)
            return found


def index_path(root: str, host: str, variables: str, cwd: "str | None") -> str:
    """Where the index lies for one host, the values of its ``skill_variables`` and one working folder.

    By a remainder: cheap, and the same in every process. That two share a file is unlikely and does no harm, since the
    index says what it is for.
    """
    key = f"{host}\0{variables}\0{cwd or ''}".encode("utf-8", "surrogatepass")
    return join(root, "snapshot", f"skills-{int.from_bytes(key, 'little') % _PRIME:016x}")


def load_index(
    root: str, host: "Any", env: "Mapping[str, str]", cwd: "str | None", config: "Config", plan: Plan
) -> SkillIndex:
    """The skill index for ``cwd``, from its snapshot or, when that is stale, made anew."""
    variables = "\0".join([env.get(name, "") for name in host.skill_variables])
    path = index_path(root, host.id, variables, cwd)
    blob = read_blob(path)
    settings = [host.id, variables, cwd, *scorer_settings(config, plan)]
    if not blob or blob["settings"] != settings or not _lead_there(blob["links"]) or not fresh(blob):
        from gstack.snapshot_build import build_index

        blob = build_index(path, root, host, env, cwd, config, plan, settings, old=blob)
    return SkillIndex(blob["index"])


def _lead_there(links: "Sequence[tuple[str, tuple[int, int] | None]]") -> bool:
    """Whether paths that go through a link lead to the folders that they led to."""
    return all(node(path) == found for path, found in links)


def node(path: str) -> "tuple[int, int] | None":
    """Which file or folder a path leads to: its device and inode. None: to none."""
    try:
        found = sys_os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino)


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

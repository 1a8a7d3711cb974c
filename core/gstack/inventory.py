"""The skills that a session in one folder sees: roots, precedence, duplicates, overlays (routing R1, switches S3).

Cold, but imported by the hook's slow road, so imports are few. What was parsed before is taken over from ``known`` as
long as the files' stamps are the same, so that one changed skill costs one parse.
"""

import os
import stat

from gstack.api import Skill, SkillRoot
from gstack.lowlevel import POSIX, join, sys_os
from gstack.skills import (
    OVERLAY,
    PROJECT_OVERLAY,
    SkillSkipped,
    apply_overlay,
    os_reason,
    place,
    read_overlay,
    read_row,
    skill_from_plain,
    skill_to_plain,
)
from gstack.snapshot import RACY_NS, now_ns, stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gstack.protocols import HostAdapter
    from gstack.skills import Row
    from gstack.snapshot import Stamp

    #: The stamps of ``SKILL.md`` and of ``gstack.yaml`` beside it (None: there is none).
    Mark = tuple[Stamp, Stamp | None]
    #: By path: what was read, or why it is no skill.
    Known = Mapping[str, tuple[Mark, Row | str]]

#: Stands for the stamp of a file that is to be read again: none has it.
_UNSURE = (0, 0, -1, 0)
#: Where the routing of a skill came from that the person has kept from the model in the host's own settings.
HOST_SETTINGS = "host settings"


class Inventory:
    """What :func:`load_skills` found.

    ``skills`` in order of precedence; ``roots`` the folders that exist; ``depends_on`` other files and folders that
    the answer depends on, absent ones too; ``skipped`` is ``(path, reason)`` and ``shadowed`` ``(path, by path)``;
    ``stamps`` the stamp of each file that was read, as it was before; ``known`` what was parsed, as plain data, to
    hand to the next call.
    """

    __slots__ = ("depends_on", "known", "roots", "shadowed", "skills", "skipped", "stamps")

    def __init__(self) -> None:
        self.skills: list[Skill] = []
        self.roots: list[SkillRoot] = []
        self.depends_on: list[str] = []
        self.skipped: list[tuple[str, str]] = []
        self.shadowed: list[tuple[str, str]] = []
        self.stamps: dict[str, Stamp | None] = {}
        self.known: dict[str, tuple[Mark, Row | str]] = {}


def load_skills(
    host: "HostAdapter",
    env: "Mapping[str, str]",
    cwd: str | None,
    *,
    state_root: str,
    trusted_overlay: str | None = None,
    known: "Known | None" = None,
) -> Inventory:
    """Every skill that ``host`` offers in ``cwd``.

    ``state_root`` holds the person's ``skills.yaml``; ``trusted_overlay`` is the path of a trusted project's. ``known``
    is an earlier ``Inventory.known``. Duplicates are removed by real path, then by name. Never raises for a bad skill
    or folder: it is in ``skipped``.
    """
    places, depends = host.skill_places(env, cwd)
    inventory = Inventory()
    inventory.depends_on = list(depends)
    gatherer = _Gatherer(inventory, known or {})
    taken: set[str] = set()
    for root in places:
        real = os.path.realpath(root.path) if _is_folder(root.path, inventory) else None
        if real is None or real in taken:
            inventory.depends_on.append(root.path)
            continue
        taken.add(real)
        inventory.roots.append(root)
        try:
            found = host.skills_in(root)
        except OSError as error:
            inventory.skipped.append((root.path, os_reason(error, root.path)))
            continue
        for name, path in found:
            gatherer.add(root, name, path)
    _apply_overlays(inventory, join(state_root, "skills.yaml"), trusted_overlay)
    _keep_from_model(inventory, gatherer.unroutable)
    return inventory


def _is_folder(path: str, inventory: Inventory) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        inventory.skipped.append((path, os_reason(error, path)))
        return False
    if not stat.S_ISDIR(mode):
        inventory.skipped.append((path, "is no folder"))
        return False
    return True


def _regular(path: str) -> os.stat_result:
    """The status of a regular file (links followed). Raises SkillSkipped."""
    try:
        status = sys_os.stat(path)
    except (OSError, ValueError) as error:
        raise SkillSkipped(os_reason(error, path)) from None
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise SkillSkipped("is a folder" if kind == stat.S_IFDIR else "is no regular file")
    return status


class _Gatherer:
    """Takes the skills in order of precedence and keeps the first of each file and of each name."""

    def __init__(self, inventory: Inventory, known: "Known") -> None:
        self.inventory = inventory
        self.known = known
        self.names: dict[str, str] = {}
        self.files: dict[tuple[int, int], list[str]] = {}
        self.unroutable: set[str] = set()
        self.racy = now_ns() - RACY_NS

    def add(self, root: SkillRoot, name: str, path: str) -> None:
        """One skill as the host lists it."""
        try:
            if name in root.hidden:
                raise SkillSkipped("is switched off in the host's own settings")
            twin = self._take(root, name, path)
        except SkillSkipped as error:
            self.inventory.skipped.append((path, error.reason))
            return
        if twin is not None and twin != path:
            self.inventory.shadowed.append((path, twin))

    def _take(self, root: SkillRoot, name: str, path: str) -> str | None:
        """Take the skill, or give the path of the one that hides it. Raises SkillSkipped."""
        status = _regular(path)
        twin = self._twin(path, status)
        # a packaged folder that is itself the skill is called by its frontmatter, whatever the folder's name
        own_name = bool(root.prefix) and path == join(root.path, "SKILL.md")
        if twin is None and not own_name:
            twin = self.names.get(name)
        if twin is not None:
            return twin
        parsed = self._parse(path, (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
        if own_name and parsed[0]:
            name = f"{root.prefix}:{parsed[0]}"
        if not name.isprintable():
            raise SkillSkipped("its name holds a control character")
        if name in self.names:
            return self.names[name]
        self.names[name] = path
        if name in root.unroutable:
            self.unroutable.add(name)
        self.inventory.skills.append(place(parsed, path, name, root.scope))
        return None

    def _twin(self, path: str, status: os.stat_result) -> str | None:
        """The path under which this very file was taken before (two hard links are two files)."""
        file = (status.st_dev, status.st_ino)
        if file not in self.files:
            self.files[file] = [path]
            return None
        others = self.files[file]
        real = os.path.realpath(path)
        for other in others:
            if os.path.realpath(other) == real:
                return other
        others.append(path)
        return None

    def _parse(self, path: str, mine: "Stamp") -> "Row":
        """What the files say, from ``known`` when they are as they were. Raises SkillSkipped."""
        beside = path.rpartition("/")[0] + "/gstack.yaml"
        mark = (mine, stamp(beside) if sys_os.access(beside, 0) else None)
        self.inventory.stamps[path] = mine
        if mark[1] is not None:
            self.inventory.stamps[beside] = mark[1]
        known, old = self.known.get(path, (None, ""))
        if known == mark:
            value = old
        else:
            same = known is not None and known[1] == mark[1]
            try:
                value = read_row(path, old if same and not isinstance(old, str) else None)
            except SkillSkipped as error:
                value = error.reason
        # a file that changed just now may change once more without another stamp, so it is read again next time
        field = 1 if POSIX else 0
        if mark[1] is None or mark[1][field] <= self.racy:
            self.inventory.known[path] = (mark if mine[field] <= self.racy else (_UNSURE, mark[1]), value)
        if isinstance(value, str):
            raise SkillSkipped(value)
        return value


def _apply_overlays(inventory: Inventory, personal: str, project: str | None) -> None:
    """The overlays over the skills: the person's wins over the project's, key by key."""
    names = {skill.name for skill in inventory.skills}
    for path, source in ((project, PROJECT_OVERLAY), (personal, OVERLAY)):
        if path is None:
            continue
        inventory.depends_on.append(path)
        problems: list[str] = []
        try:
            overlay = read_overlay(path, problems)
        except SkillSkipped as error:
            overlay, problems = {}, [error.reason]
        inventory.skipped.extend((path, problem) for problem in problems)
        for place_, skill in enumerate(inventory.skills if overlay else ()):
            entry = overlay.get(skill.name)
            if entry is None and skill.label and skill.label not in names:
                entry = overlay.get(skill.label)
            if entry:
                inventory.skills[place_] = apply_overlay(skill, entry, source)


def _keep_from_model(inventory: Inventory, unroutable: set[str]) -> None:
    """What the host's settings keep from the model can't be routed to, whatever the skill or an overlay says."""
    for place_, skill in enumerate(inventory.skills if unroutable else ()):
        if skill.name in unroutable:
            values: dict[str, Any] = skill_to_plain(skill)
            values["sources"]["routing"] = HOST_SETTINGS
            inventory.skills[place_] = skill_from_plain(dict(values, routing_off=True, routing_on=False))

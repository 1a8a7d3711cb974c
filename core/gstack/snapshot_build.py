"""The slow road: makes the plan of plug-ins and the index of skills anew and stores them.

Cold, but run inside the hook's process when a snapshot is stale, so imports are chosen with care: a changed skill
costs PyYAML, not pluggy. Both roads decide with the same code on the same data; a property test holds that.
"""

import os
from marshal import dumps

from gstack.config import Config, names
from gstack.failures import PluginFailed, note_trouble
from gstack.lowlevel import is_file, join, open_folder
from gstack.plan import Plan
from gstack.snapshot import node, now_ns, plan_path, read_blob, stamp, stamped, write_blob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

#: How many skill indexes are kept: one for each folder that sessions run in.
KEEP = 64
#: What looking at all outside plug-ins may take within a hook, in seconds.
LOOK_BUDGET = 0.9


def build_plan(
    root: str, paths: "Sequence[str]", disabled: "Collection[str]", *, limit: float | None = None
) -> "dict[str, Any]":
    """The plan for these import folders, written to its snapshot when the state folder lets it: what all groups depend
    on, and for each group its rows with what they depend on (None: nothing more), marshalled.

    ``limit`` is what looking at one outside plug-in may take, in seconds (None: what a hook has time for). A plan that
    lacks a plug-in only because it was slow this once, or a built-in (gstack is just being installed over), isn't
    stored.
    """
    from gstack.entrypoints import GROUPS
    from gstack.isolation import CALL_LIMIT
    from gstack.plugins import own_files, plan_rows, remember_owners, shared_files, survey

    def of_group(group: str) -> bytes:
        own = [status for status in statuses if status.found.group == group]
        files = own_files(paths, own)
        return dumps((plan_rows(own), stamped(files, {}, {}, made) if files else None))

    made = now_ns()
    env = {"GSTACK_DISABLED_PLUGINS": ",".join(disabled)}
    if limit is None:
        statuses = survey(root, env, paths=paths, limit=CALL_LIMIT, budget=LOOK_BUDGET)
    else:
        statuses = survey(root, env, paths=paths, limit=limit)
    for status in statuses:
        if status.state == "failed" and not status.unlooked:
            note_trouble(root, PluginFailed(status.found.id, status.why, overran=status.overran))
    blob = {
        "folders": list(paths),
        "disabled": sorted(disabled),
        "groups": {group: of_group(group) for group in GROUPS},
        **stamped(shared_files(paths, statuses), {}, {}, made),
    }
    if not any(map(_unsure, statuses)):
        _store(plan_path(root), blob)
    remember_owners(root, statuses)
    return blob


def _unsure(status: "Any") -> bool:
    """Whether the plan may lack this one only this once."""
    return bool(status.overran or status.unlooked or (status.found.builtin and status.state == "failed"))


def build_index(
    path: str,
    root: str,
    host: "Any",
    env: "Mapping[str, str]",
    cwd: str | None,
    config: Config,
    plan: Plan,
    settings: "Sequence[Any]",
    *,
    old: "dict[str, Any] | None",
) -> "dict[str, Any]":
    """The skill index for one folder, written to its snapshot when the state folder lets it.

    What was parsed before and hasn't changed is taken from the older snapshot.
    """
    from gstack.inventory import load_skills

    made = now_ns()
    source = path + ".parsed"
    known = (read_blob(source) if old is not None else None) or None
    overlay, overlay_files = _trusted_overlay(root, cwd)
    inventory = load_skills(
        host, env, cwd, state_root=root, trusted_overlay=overlay, known=known if isinstance(known, dict) else None
    )
    depends = [*inventory.depends_on, *overlay_files, join(root, "skills.yaml")]
    earlier = old["index"]["scorers"] if old and old["settings"] == list(settings) else {}
    blob = {
        "settings": list(settings),
        "links": _links([cwd, *(env.get(name) for name in host.skill_variables)]),
        "index": _index(inventory, config, plan, earlier),
        **stamped(*_bound_to(inventory, depends, getattr(host, "skill_markers", None)), inventory.stamps, made),
    }
    _store(path, blob)
    _store(source, inventory.known)
    _prune(os.path.dirname(path))
    return blob


def _links(paths: "Sequence[str | None]") -> "list[tuple[str, tuple[int, int] | None]]":
    """The paths that go through a link, with where they lead: what lies there is bound by its real path."""
    absolute = [path for path in dict.fromkeys(paths) if path and os.path.isabs(path)]
    return [(path, node(path)) for path in absolute if _goes_through_a_link(path)]


def _goes_through_a_link(path: str) -> bool:
    try:
        return os.path.realpath(path) != os.path.abspath(path)
    except ValueError:  # no path at all
        return False


def _trusted_overlay(root: str, cwd: str | None) -> "tuple[str | None, list[str]]":
    """As :func:`gstack.trust.trusted_overlay`, which is only imported where a folder was ever trusted."""
    trusted = join(root, "trust.json")
    if not is_file(trusted):
        return None, [trusted]
    from gstack.trust import trusted_overlay

    return trusted_overlay(root, cwd)


def _index(inventory: "Any", config: Config, plan: Plan, earlier: "Mapping[str, Any]") -> "dict[str, Any]":
    skills = inventory.skills
    return index_data(
        roots=[root.path for root in inventory.roots],
        names={skill.name: skill.path for skill in skills},
        scorers=prepare_scorers(skills, config, plan, earlier),
        labels={skill.label: skill.name for skill in reversed(skills) if skill.label},
        contracts={skill.name: skill.contract for skill in skills if skill.contract is not None},
        routing={
            skill.name: "on" if skill.routing_on else "off" for skill in skills if skill.routing_on or skill.routing_off
        },
        first_steps={skill.name: skill.first_step for skill in skills if skill.first_step},
        sources={skill.name: dict(skill.sources) for skill in skills if skill.sources},
        skipped=list(inventory.skipped),
        shadowed=list(inventory.shadowed),
    )


def index_data(
    *, roots: list[str], names: "Mapping[str, str]", scorers: "dict[str, Any]", **parts: "Any"
) -> "dict[str, Any]":
    """The facts of a :class:`gstack.snapshot.SkillIndex`, as it is stored.

    Names hold no line break and paths no NUL, so that both can be one text each; the other parts are marshalled apart:
    reading them in would cost every hook more the more skills there are.
    """
    return {
        "roots": roots,
        "count": len(names),
        "listed": "\n" + "".join([name + "\n" for name in names]),
        "paths": "\0".join(names.values()),
        "scorers": scorers,
        "parts": {key: dumps(value) for key, value in parts.items()},
    }


def prepare_scorers(
    skills: "Sequence[Any]", config: Config, plan: Plan, earlier: "Mapping[str, Any] | None" = None
) -> "dict[str, Any]":
    """The prepared index of the scorer that decides and of its shadows; one that fails is left out.

    ``earlier`` are indexes that the same scorers prepared under the same settings.
    """
    out = {}
    for name in dict.fromkeys([config.get("route_scorer"), *names(config.get("route_shadow_scorers"))]):
        scorer = plan.get("gstack.trigger_scorers", name)
        if scorer is None:
            continue
        try:
            configure = getattr(scorer, "configure", None)
            if configure is not None:
                plan.call(scorer, configure, {"equivalents": config.get("route_equivalents")})
            again = getattr(scorer, "prepare_again", None)
            if again is not None and earlier and name in earlier:
                out[name] = plan.call(scorer, again, skills, earlier[name])
            else:
                out[name] = plan.call(scorer, scorer.prepare, skills)
        except PluginFailed:
            continue
    return out


def _bound_to(
    inventory: "Any", depends: "Sequence[str]", markers: "Sequence[str] | None"
) -> tuple[list[str], dict[str, tuple[list[str], list[str]]]]:
    """Every file and folder that could bring, change or take a skill: single paths, and below each root the paths
    whose stamps count and those that must not appear (see :func:`gstack.snapshot.stamped`).

    A skill's folder needs no stamp of its own when its host has said which files in it count (``markers``, outside
    plugins): none of them must appear beside ``SKILL.md``. Another entry's stamp shows what appears in it.
    """
    entries: dict[str, tuple[list[str], list[str]]] = {}
    grouped = set()
    for root in inventory.roots:
        base = root.path.rstrip("/") or "/"
        there, absent = _below(base, inventory, None if markers is None else markers if root.scope != "plugin" else ())
        if there:
            entries[base] = (there, absent)
            grouped.update([f"{base}/{one}" for one in there])
    roots = [root.path for root in inventory.roots]
    return [*depends, *roots, *(path for path in inventory.stamps if path not in grouped)], entries


def _below(base: str, inventory: "Any", markers: "Sequence[str] | None") -> tuple[list[str], list[str]]:
    """The paths below a root whose stamps count, and those that must not appear."""
    there: list[str] = []
    absent: list[str] = []
    fd = open_folder(base)

    def exists(one: str) -> bool:
        return os.access(one if fd is not None else f"{base}/{one}", os.F_OK, dir_fd=fd)

    for name in _names(base):
        file, beside = f"{name}/SKILL.md", f"{name}/gstack.yaml"
        for one in [f"{name}/{marker}" for marker in markers or ()]:
            (there if exists(one) else absent).append(one)
        parsed = f"{base}/{file}" in inventory.stamps
        if not parsed and not exists(file):
            there.append(name)
            absent.append(file)
            continue
        there.append(file)
        # of a file that was read it counts what was seen then
        seen = f"{base}/{beside}" in inventory.stamps if parsed else exists(beside)
        (there if seen else absent).append(beside)
        if markers is None:
            there.append(name)
    if fd is not None:
        os.close(fd)
    return there, absent


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _store(path: str, value: "Any") -> None:
    try:
        write_blob(path, value)
    except (OSError, ValueError):
        return  # read-only or full: the next hook takes the slow road again


def _prune(folder: str) -> None:
    found = [join(folder, name) for name in os.listdir(folder)] if os.path.isdir(folder) else []
    indexes = [
        path
        for path in found
        if os.path.basename(path).startswith("skills-") and not path.endswith((".parsed", ".tmp"))
    ]
    if len(indexes) <= KEEP:
        return
    indexes.sort(key=lambda path: stamp(path) or (0, 0, 0, 0))
    for path in indexes[: len(indexes) - KEEP]:
        for gone in (path, path + ".parsed"):
            try:
                os.unlink(gone)
            except OSError:
                continue

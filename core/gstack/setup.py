"""``gstack setup`` and ``gstack uninstall``: what is registered with a host, and what is taken away again. Cold.

Order: read and check everything, write the launcher and run it, store the flags, then change the host's settings file
in one atomic write. Whatever can't be read or parsed ends it before anything was changed (switches S1, S2).
"""

import os
import tempfile
from collections.abc import Mapping
from typing import Any

from gstack.config import KEYS, SWITCHES, Config, Switch, switch, switch_word
from gstack.config_edit import readable, set_key
from gstack.errors import CheckFailed, StateError, UsageError
from gstack.failures import PluginFailed
from gstack.launcher import import_paths, launcher_path, try_launcher, write_launchers
from gstack.lowlevel import dump_json, join, load_json, read_file
from gstack.plan import disabled_plugins, load_object
from gstack.state import write_atomic

_SAYS = {
    "skill_routing": "skill routing: names the skill that fits a prompt",
    "skill_contracts": "skill contracts: hold a stop once when a skill's outputs are missing",
    "gate": "gate: checks each use of a skill, subagent or typed command against the policy",
}


class Flags:
    """What was asked on the command line: a value for each switch (None: not asked), and the rest."""

    def __init__(
        self,
        switches: Mapping[str, str | None],
        *,
        no_team: bool = False,
        project: str | None = None,
        dry_run: bool = False,
        host: str = "claude-code",
    ) -> None:
        self.switches = switches
        self.no_team = no_team
        self.project = project
        self.dry_run = dry_run
        self.host = host


class Outcome:
    """What setup did: ``lines`` for people, ``warnings`` for standard error, ``path`` and ``diff`` of the settings
    file, the switches."""

    def __init__(self) -> None:
        self.path = ""
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.diff = ""
        self.changed = False
        self.switches: dict[str, Switch] = {}


def find_host(root: str, env: Mapping[str, str], name: str) -> Any:
    """The adapter of a host. Raises UsageError when none is installed under that name.

    Looks at the plug-ins themselves: the hook's plan of them would be stored, and ``--dry-run`` writes nothing.
    """
    from gstack.isolation import isolated
    from gstack.plugins import LOOK_LIMIT, survey

    usable = [one for one in survey(root, env, group="gstack.host_adapters") if one.state == "ok" and one.in_hook]
    for status in usable:
        if name in status.names:
            where = (status.found.module, status.found.attr, status.found.group)
            try:
                objects = isolated(status.found.id, lambda where=where: list(load_object(*where)), limit=LOOK_LIMIT)
            except PluginFailed as failed:
                raise UsageError(f"the host adapter {name!r} doesn't work: {failed.what}") from None
            return next(one for one in objects if one.id == name)
    known = ", ".join(sorted(one for status in usable for one in status.names))
    raise UsageError(f"no host adapter is called {name!r}", hint="installed: " + (known or "none"))


def resolve(flags: Flags, env: Mapping[str, str], config: Config, outcome: Outcome) -> dict[str, Switch]:
    """Each switch for this run: flag, environment, configuration, default. A value that is none warns (switches S1)."""
    found = {}
    for name in SWITCHES:
        asked = flags.switches.get(name)
        variable = KEYS[name][2]
        if asked is not None:
            word = switch_word(asked)
            if word is None:
                outcome.warnings.append(
                    f"--{name.replace('_', '-')}={asked}: not on, off or observe; the default ({KEYS[name][1]}) is "
                    "used for this run and nothing is saved"
                )
            found[name] = Switch(word, "flag") if word else Switch(KEYS[name][1], "default")
            continue
        said = env.get(variable, "")
        if said.strip() and switch_word(said) is None:
            outcome.warnings.append(f"{variable} is not on, off or observe; the default is used")
        found[name] = switch(name, env, config)
        if config.has(name) and switch_word(config.get(name)) is None and not said.strip():
            outcome.warnings.append(f"{config.path}: {name} is not on, off or observe; the default is used")
    return found


def run_setup(root: str, env: Mapping[str, str], flags: Flags) -> Outcome:
    """Register what is on, take away what is off. Raises UsageError, StateError, SettingsError, CheckFailed."""
    outcome = Outcome()
    config = readable(root)
    host = find_host(root, env, flags.host)
    outcome.switches = resolve(flags, env, config, outcome)
    features = [
        name for name in SWITCHES if outcome.switches[name].value != "off" and not (flags.no_team and name != "gate")
    ]
    launcher = launcher_path(root)
    change = host.plan_settings(host.registrations(features), launcher, env, flags.project)
    outcome.path, outcome.diff = change.path, _diff(change)
    outcome.changed = change.before != change.after
    _warn_about_places(root, flags, outcome)
    if flags.dry_run:
        return outcome
    _save_flags(root, flags)
    if features:
        _prepare(root, env, launcher)
    if features:
        registered_files(root, add=change.path)
    if outcome.changed:
        host.apply_settings(change)
    _describe(change, features, outcome)
    return outcome


def _diff(change: Any) -> str:
    from gstack.jsonfile import diff

    return diff(change)


def _save_flags(root: str, flags: Flags) -> None:
    for name, asked in flags.switches.items():
        if asked is not None and switch_word(asked) is not None:
            set_key(root, name, asked)


def _prepare(root: str, env: Mapping[str, str], launcher: str) -> None:
    """Write the launcher, compile what it needs, and run it before anything names it."""
    from gstack.bootstore import remove_all
    from gstack.plugins import LOOK_LIMIT
    from gstack.snapshot_build import build_plan

    try:
        write_launchers(root)
        remove_all(root)
    except OSError as error:
        raise StateError(f"{launcher} can't be written: {error.strerror}") from error
    compile_hot()
    build_plan(root, import_paths(), disabled_plugins(root, env), limit=LOOK_LIMIT)
    problem = try_launcher(launcher)
    if problem:
        raise CheckFailed(problem, hint="nothing was registered")


def compile_hot() -> None:
    """Byte-compile gstack's own packages where their folder lets us: without it every hook would compile them."""
    import compileall
    import importlib.util
    import sys

    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        for package in ("gstack", "gstack_plugins", "gstack_hosts"):
            spec = importlib.util.find_spec(package)
            for folder in (spec.submodule_search_locations or []) if spec else []:
                compileall.compile_dir(folder, quiet=2, maxlevels=4)
    finally:
        sys.dont_write_bytecode = kept


def _describe(change: Any, features: list[str], outcome: Outcome) -> None:
    added = {registration.feature for registration in change.added}
    for name in features:
        if name in added:
            mode = " (observe: decides and logs, never acts)" if outcome.switches[name].value == "observe" else ""
            outcome.lines.append(f"registered {_SAYS[name]}{mode}")
    outcome.lines += [f"corrected {line}" for line in getattr(change, "changed", ())]
    outcome.lines += [f"removed {line}" for line in change.removed]
    if outcome.changed:
        outcome.lines.append(f"wrote {change.path}")


def _warn_about_places(root: str, flags: Flags, outcome: Outcome) -> None:
    """What is registered should outlive this session (gstack-facts F1): say so when it may not."""
    import sys

    temporary = os.path.realpath(tempfile.gettempdir()) + os.sep
    for what, path in (("this Python", sys.prefix), ("the state folder", root)):
        if os.path.realpath(path).startswith(temporary):
            outcome.warnings.append(
                f"{what} lies in a temporary folder ({path}); the hooks go silent when it is deleted"
            )
    if flags.project:
        outcome.warnings.append(
            "project settings are read only by sessions that start in that very folder; "
            "the user file is the dependable place"
        )


def run_uninstall(
    root: str, env: Mapping[str, str], *, host: str, project: str | None, dry_run: bool, force: bool
) -> Outcome:
    """Take every registration away, then the launchers and snapshots; configuration, logs and records stay.

    Registrations go first, and the launchers stay while another settings file names them, so that nothing is left that
    names a missing file (gstack-facts F8).
    """
    from gstack.gate.lock import leave_gate

    outcome = Outcome()
    adapter = find_host(root, env, host)
    change = adapter.plan_settings([], launcher_path(root), env, project)
    outcome.path, outcome.diff = change.path, _diff(change)
    outcome.changed = change.before != change.after
    if dry_run:
        return outcome
    if os.path.isdir(root) and not os.access(root, os.W_OK):
        raise StateError(f"{root} can't be written", hint="nothing was changed")
    leave_gate(root, "off", env, force=force, how="uninstall")
    if outcome.changed:
        adapter.apply_settings(change)
    outcome.lines += [f"removed {line}" for line in change.removed] or [f"no hook of gstack is in {change.path}"]
    outcome.lines += _tidy(change)
    others = [path for path in registered_files(root, drop=change.path) if _names(path, root)]
    if others:
        outcome.lines += [f"{path} still runs the hooks, so their launcher stays" for path in others]
    else:
        _remove_generated(root)
    if os.path.isdir(root) and os.listdir(root):
        outcome.lines.append(f"kept the configuration, logs and records in {root}")
    return outcome


def _tidy(change: Any) -> list[str]:
    """Take away what our changes left beside the settings file, where it is :mod:`gstack.jsonfile` that made them."""
    from gstack.jsonfile import Change, tidy

    kept = tidy(change) if isinstance(change, Change) else []
    if not kept:
        return []
    what = "an earlier version" if len(kept) == 1 else f"{len(kept)} earlier versions"
    return [f"kept {what} of {change.path}, which you or others have changed since: {kept[0]}"]


def registered_files(root: str, *, add: str | None = None, drop: str | None = None) -> list[str]:
    """The settings files that setup has registered hooks in, with ``add`` and without ``drop``. Raises StateError."""
    path = join(root, "registered.json")
    try:
        data = load_json(read_file(path, 1 << 20))
        known = [one for one in data["files"] if isinstance(one, str)]
    except (OSError, ValueError, TypeError, KeyError):
        known = []
    wanted = list(dict.fromkeys([*known, *([os.path.abspath(add)] if add else [])]))
    if drop:
        wanted = [one for one in wanted if one != os.path.abspath(drop)]
    if wanted != known:
        try:
            write_atomic(path, dump_json({"files": wanted}).encode("ascii") + b"\n")
        except OSError as error:
            raise StateError(f"{path} can't be written: {error.strerror}") from error
    return wanted


def _names(path: str, root: str) -> bool:
    """Whether a settings file still names our launcher."""
    try:
        data = read_file(path)
    except OSError:
        return False
    launcher = launcher_path(root)
    return launcher.encode() in data or dump_json(launcher)[1:-1].encode() in data


def _remove_generated(root: str) -> None:
    import shutil

    for name in ("bin", "snapshot"):
        shutil.rmtree(os.path.join(root, name), ignore_errors=True)

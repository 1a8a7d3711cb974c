"""``gstack setup``, ``gstack uninstall``, ``gstack trust``."""

import os
from typing import Annotated, Any

import typer

from gstack.cli.common import emit, emit_json, here, root_of, run_env, warn
from gstack.config import SWITCHES
from gstack.errors import UsageError
from gstack.setup import Flags, Outcome, find_host, run_setup, run_uninstall

_DRY = Annotated[bool, typer.Option("--dry-run", help="Print what would change in the settings file; write nothing.")]
_QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")]
_PROJECT = Annotated[
    bool, typer.Option("--project", help="Use the project's settings file (here) instead of the user's.")
]
_HOST = Annotated[str, typer.Option("--host", metavar="HOST", help="The host to register with.")]
_VALUE = "on, off or observe; alone it means on. Saved to the configuration."


def register(app: typer.Typer) -> None:
    """Add the commands of this module to the root app."""
    app.command()(setup)
    app.command()(uninstall)
    app.command()(trust)


def setup(
    skill_routing: Annotated[
        str | None, typer.Option("--skill-routing", metavar="VALUE", help="Routing: " + _VALUE)
    ] = None,
    no_skill_routing: Annotated[bool, typer.Option("--no-skill-routing", help="Routing off, saved.")] = False,
    skill_contracts: Annotated[
        str | None, typer.Option("--skill-contracts", metavar="VALUE", help="Contracts: " + _VALUE)
    ] = None,
    no_skill_contracts: Annotated[bool, typer.Option("--no-skill-contracts", help="Contracts off, saved.")] = False,
    gate: Annotated[str | None, typer.Option("--gate", metavar="VALUE", help="Gate: " + _VALUE)] = None,
    no_gate: Annotated[bool, typer.Option("--no-gate", help="Gate off, saved.")] = False,
    no_team: Annotated[
        bool, typer.Option("--no-team", help="Take the routing and contract hooks away, whatever the switches say.")
    ] = False,
    project: _PROJECT = False,
    host: _HOST = "claude-code",
    dry_run: _DRY = False,
    quiet: _QUIET = False,
    force: Annotated[bool, typer.Option("--force", help="Switch a locked gate off all the same.")] = False,
) -> None:
    """Register gstack's hooks with the host: those whose switch is on or observe; the others are removed.

    Example: gstack setup --skill-routing --skill-contracts=observe
    """
    env, root = run_env(), root_of()
    switches = {
        "skill_routing": _asked("skill-routing", skill_routing, no_skill_routing),
        "skill_contracts": _asked("skill-contracts", skill_contracts, no_skill_contracts),
        "gate": _asked("gate", gate, no_gate),
    }
    if switches["gate"] is not None and not dry_run:
        from gstack.config import switch_word
        from gstack.gate.lock import leave_gate

        leave_gate(root, switch_word(switches["gate"]) or "on", env, force=force, how="setup")
    flags = Flags(switches, no_team=no_team, project=_here(project), dry_run=dry_run, host=host)
    outcome = run_setup(root, env, flags)
    outcome.warnings += _muted(outcome, find_host(root, env, host), env, flags.project)
    _print(outcome, dry_run, quiet)
    if quiet or dry_run:
        return
    for name in SWITCHES:
        found = outcome.switches[name]
        emit(f"{name}: {found.value} ({found.source})")
    if not outcome.changed:
        emit(f"nothing to change in {outcome.path}")


def _muted(outcome: Outcome, host: Any, env: dict[str, str], project: str | None) -> list[str]:
    """What keeps every hook from running although it is registered, where the host's adapter can tell."""
    ask = getattr(host, "hooks_off", None)
    if ask is None or all(found.value == "off" for found in outcome.switches.values()):
        return []
    from gstack.failures import PluginFailed
    from gstack.isolation import isolated

    try:
        findings = isolated(host.id, lambda: list(ask(env, project)), limit=10.0)
    except PluginFailed as failed:
        return [f"{host.id}: it can't be told whether its hooks run: {failed.what}"]
    return [f"{finding.detail} ({finding.fix})" for finding in findings]


def _asked(name: str, value: str | None, negated: bool) -> str | None:
    if negated and value is not None:
        raise typer.BadParameter(f"--{name} and --no-{name} can't both be given")
    return "off" if negated else value


def _here(project: bool) -> str | None:
    return here() if project else None


def _print(outcome: Outcome, dry_run: bool, quiet: bool) -> None:
    for line in outcome.warnings:
        warn("warning: " + line)
    if dry_run:
        emit(outcome.diff.rstrip("\n") if outcome.changed else f"nothing to change in {outcome.path}")
    elif not quiet:
        for line in outcome.lines:
            emit(line)


def uninstall(
    project: _PROJECT = False,
    host: _HOST = "claude-code",
    dry_run: _DRY = False,
    quiet: _QUIET = False,
    force: Annotated[bool, typer.Option("--force", help="Leave although the organisation locks the gate.")] = False,
) -> None:
    """Take every hook of gstack out of the host's settings; configuration, logs and records stay.

    Example: gstack uninstall --dry-run
    """
    env, root = run_env(), root_of()
    outcome = run_uninstall(root, env, host=host, project=_here(project), dry_run=dry_run, force=force)
    _print(outcome, dry_run, quiet)


def trust(
    folder: Annotated[str, typer.Argument(help="A folder in the project.")] = ".",
    remove: Annotated[bool, typer.Option("--remove", help="Take trust back.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Print the trusted folders.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --list: print JSON.")] = False,
) -> None:
    """Let a project's .gstack/ count: it may narrow routing and contracts, and set triggers and contracts.

    Trust is bound to what those files hold now; say it again after a change. Example: gstack trust .
    """
    from gstack.trust import still_trusted, untrust
    from gstack.trust import trust as trust_folder

    root = root_of()
    if not folder:
        raise UsageError("trust needs a folder", hint="gstack trust . is the one you are in")
    if not show and not os.path.isabs(folder):
        folder = os.path.join(here(), folder)
    if show:
        _list_trusted(still_trusted(root), as_json)
    elif remove:
        gone = untrust(root, folder)
        emit(f"no longer trusted: {gone}" if gone else f"{os.path.realpath(folder)} wasn't trusted")
    else:
        emit(f"trusted as it is now: {trust_folder(root, folder)}")


def _list_trusted(folders: dict[str, bool], as_json: bool) -> None:
    if as_json:
        emit_json({"folders": [{"folder": folder, "unchanged": same} for folder, same in folders.items()]})
        return
    for folder, same in folders.items():
        emit(folder if same else f"{folder} (changed since, so it doesn't count: say gstack trust there again)")
    if not folders:
        emit("no folder is trusted")

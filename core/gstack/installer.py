"""``gstack plugins install`` and ``uninstall``: pip in this environment, or the exact command where that isn't the way.

Cold. What pipx or uv made is theirs to change: what pip puts there goes with their next upgrade.
"""

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence

from gstack.entrypoints import Found, current_paths, find
from gstack.errors import CheckFailed, StateError, UsageError
from gstack.launcher import import_paths, launcher_path, write_launchers
from gstack.plan import OWN_DISTRIBUTION, disabled_plugins
from gstack.plugins import LOOK_LIMIT, Status, survey
from gstack.snapshot_build import build_plan

#: What an installer may take, in seconds.
_TIMEOUT = 600.0


def install(requirements: Sequence[str], *, editable: bool) -> list[Found]:
    """Install distributions with pip; the entry points that came with them.

    Raises CheckFailed when pip can't, or isn't the way here; the message then has the command that is.
    """
    before = {_key(found) for found in _found()}
    wanted = [word for one in requirements for word in (("-e", one) if editable else (one,))]
    _run(["install", *wanted], _other_way("install", requirements, editable=editable))
    return [found for found in _found() if _key(found) not in before]


def uninstall(name: str) -> str:
    """Uninstall the distribution of a plug-in, by the id of that or by its own name; the distribution's name.

    Raises UsageError for what has no plug-in, CheckFailed as :func:`install` does.
    """
    found = _found()
    dists = sorted({one.dist for one in found if name in (one.id, one.dist)})
    if not dists:
        known = sorted({one.dist for one in found if not one.builtin})
        raise UsageError(f"no installed plug-in is, or comes from, {name!r}", hint="installed: " + _list(known))
    if dists == [OWN_DISTRIBUTION]:
        raise UsageError(
            f"{name} comes with gstack itself",
            hint=f"gstack plugins disable {name}; gstack uninstall takes the hooks away",
        )
    _run(["uninstall", "--yes", dists[0]], _other_way("uninstall", [dists[0]], editable=False))
    return dists[0]


def refresh(root: str, env: Mapping[str, str]) -> None:
    """Make the launcher and the plan of plug-ins anew, where setup made them before. Raises StateError."""
    importlib.invalidate_caches()
    if not os.path.exists(launcher_path(root)):
        return
    try:
        write_launchers(root)
        build_plan(root, import_paths(), disabled_plugins(root, env), limit=LOOK_LIMIT)
    except OSError as error:
        raise StateError(f"{root}: {error.strerror}") from error


def states_of(root: str, env: Mapping[str, str], found: Sequence[Found]) -> list[Status]:
    """How these plug-ins fare, now that they are installed."""
    keys = {_key(one) for one in found}
    return [status for status in survey(root, env) if _key(status.found) in keys]


def _found() -> list[Found]:
    importlib.invalidate_caches()
    return find(current_paths())


def _key(found: Found) -> tuple[str, str, str, str]:
    return found.group, found.id, found.dist, found.version


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _run(arguments: Sequence[str], instead: str) -> None:
    if instead:
        raise CheckFailed("this environment isn't pip's to change; nothing was done", hint="run: " + instead)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments, "--quiet"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CheckFailed(f"pip didn't end well: {type(error).__name__}") from error
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if line.upper().startswith("ERROR")] or lines or ["no message"]
        raise CheckFailed(
            f"pip ended with {done.returncode}: {errors[-1].strip()}", hint="run: " + shlex.join(command[:-1])
        )


def _other_way(verb: str, names: Sequence[str], *, editable: bool) -> str:
    """The command to run instead of pip; ``""`` where pip is the way."""
    prefix = sys.prefix
    if os.path.exists(os.path.join(prefix, "pipx_metadata.json")):
        word = "inject" if verb == "install" else "uninject"
        return shlex.join(["pipx", word, *(["--editable"] if editable else []), OWN_DISTRIBUTION, *names])
    receipt = os.path.join(prefix, "uv-receipt.toml")
    if os.path.exists(receipt):
        return _uv_tool(receipt, verb, names, editable=editable)
    if importlib.util.find_spec("pip") is None:
        words = ["-e", *names] if editable else [*names]
        if shutil.which("uv"):
            return shlex.join(["uv", "pip", verb, "--python", sys.executable, *words])
        return shlex.join([sys.executable, "-m", "ensurepip"]) + ", then try again"
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    if sys.prefix == sys.base_prefix and os.path.exists(marker):
        return f"pipx install {OWN_DISTRIBUTION}, then " + shlex.join(["pipx", "inject", OWN_DISTRIBUTION, *names])
    return ""


def _uv_tool(receipt: str, verb: str, names: Sequence[str], *, editable: bool) -> str:
    """uv replaces what a tool was installed with, so the command names everything that is to be there."""
    with open(receipt, encoding="utf-8", errors="replace") as file:
        text = file.read()
    there = [one for one in re.findall(r'\{\s*name = "([^"]+)"', text) if one != OWN_DISTRIBUTION]
    kept = [one for one in there if one not in names]
    command = ["uv", "tool", "install", OWN_DISTRIBUTION, *(word for one in kept for word in ("--with", one))]
    if verb == "install":
        command += [word for one in names for word in ("--with-editable" if editable else "--with", one)]
    return shlex.join(command)

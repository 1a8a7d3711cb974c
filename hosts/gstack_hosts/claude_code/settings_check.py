"""What ``gstack doctor`` says of Claude Code: is it here, is its settings file whole, will it run gstack's hooks?

Claude Code is silent about most of this: one wrong-typed key, or one malformed PreToolUse entry of anybody's, switches
every hook of a file off, and ``claude -p`` says nothing. The shapes are in :mod:`gstack_hosts.claude_code.schema`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gstack.api import Finding, Registration
from gstack.config import SWITCHES
from gstack.errors import SettingsError
from gstack.jsonfile import decode, read
from gstack.jsontext import JsonError, Node, parse
from gstack_hosts.claude_code import schema
from gstack_hosts.claude_code.hook_entries import Found, differs, find, line, pair
from gstack_hosts.claude_code.paths import config_dir, settings_path

#: How long ``claude --version`` may take, in seconds.
VERSION_LIMIT = 5
#: The first version that runs hooks in exec form.
EXEC_FORM = (2, 1, 139)

_AGAIN = "run gstack setup"
_MENTION = re.compile(r"(?:^|[/\\\"'\s])gstack-hook(?:\.exe)?(?:$|[\"'\s])", re.IGNORECASE)


def diagnose(
    wanted: Sequence[Registration], launcher: str, env: Mapping[str, str], project: str | None = None
) -> list[Finding]:
    """Is Claude Code here, does its file parse, are the entries present and right, will it run them?

    Reads files and runs ``claude --version``; changes nothing and never raises for what it finds.
    """
    path = settings_path(env, project)
    start = os.path.abspath(project) if project else _here()
    findings = [*_host(env, bool(wanted)), _config(env)]
    root, parsed, readable = _load(path, wanted)
    findings += parsed
    if root is not None:
        findings += _content(path, root)
    switches = _switches(start, env)
    # nobody knows what stands in a file that can't be read
    findings += switches if readable else [one for one in switches if one.status != "ok"]
    findings += _entries(root, wanted, launcher) if readable else []
    findings += _elsewhere(path, root, start, wanted, launcher, env)
    if wanted:
        findings.append(_launcher(launcher, path))
    if project:
        findings += project_findings(project, launcher)
    return findings


def hooks_off(env: Mapping[str, str], project: str | None = None) -> list[Finding]:
    """The settings that keep every hook of ours from running, whatever is registered; empty when none does."""
    start = os.path.abspath(project) if project else _here()
    return [one for one in _switches(start, env) if one.status != "ok"]


def project_findings(project: str, launcher: str) -> list[Finding]:
    """What a person must know who registers in a project's settings instead of their own."""
    where = f"{settings_path({}, project)}"
    return [
        Finding(
            "warn",
            "project settings",
            f"Claude Code reads {where} only when it is started in {project} itself, not in a folder below it",
            "register for all projects: gstack setup without --project",
        ),
        Finding(
            "warn",
            "project settings",
            f"this file is shared with everybody who has the repository, but {launcher} is on this machine alone",
            "let each person run gstack setup",
        ),
    ]


# ------------------------------------------------------------------------------------------------ the host


def _host(env: Mapping[str, str], needed: bool) -> list[Finding]:
    """The ``claude`` command and its version."""
    claude = shutil.which("claude", path=env.get("PATH", os.defpath))
    if claude is None:
        return [Finding("warn", "claude", "not found on PATH", "install Claude Code, or add its folder to PATH")]
    try:
        done = subprocess.run(
            [claude, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_LIMIT,
            env=dict(env),
        )
    except subprocess.TimeoutExpired:
        detail = f"{claude} --version gave no answer within {VERSION_LIMIT} seconds"
        return [Finding("warn", "claude", detail, "run it by hand")]
    except OSError as problem:
        return [Finding("warn", "claude", f"{claude} can't be run: {problem.strerror}", "reinstall Claude Code")]
    numbers = re.search(rb"(\d+)\.(\d+)\.(\d+)", done.stdout)
    if done.returncode or not numbers:
        return [Finding("warn", "claude", f"{claude} --version gave no version", "run it by hand")]
    version = tuple(int(number) for number in numbers.groups())
    shown = ".".join(map(str, version))
    if version < EXEC_FORM and needed:
        least = ".".join(map(str, EXEC_FORM))
        return [Finding("fail", "claude", f"{shown} is older than {least} and can't run these hooks", "claude update")]
    return [Finding("ok", "claude", f"{shown} ({claude})")]


def _config(env: Mapping[str, str]) -> Finding:
    folder = config_dir(env)
    source = "CLAUDE_CONFIG_DIR" if env.get("CLAUDE_CONFIG_DIR") else "default"
    if env.get("CLAUDE_CONFIG_DIR") and not os.path.isabs(folder):
        fix = "make CLAUDE_CONFIG_DIR an absolute path"
        return Finding("warn", "configuration folder", f"{folder} depends on where you start", fix)
    if not os.path.isdir(folder):
        detail = f"{folder} ({source}) doesn't exist"
        return Finding("warn", "configuration folder", detail, "start Claude Code once")
    return Finding("ok", "configuration folder", f"{folder} ({source})")


# ------------------------------------------------------------------------------------------------ the file


def _root(path: str) -> Node | None:
    """The parsed file; None when there is nothing. Raises SettingsError or JsonError."""
    data = read(path)[1]
    return None if data is None else parse(decode(path, data))


def _load(path: str, wanted: Sequence[Registration]) -> tuple[Node | None, list[Finding], bool]:
    """The settings file, what there is to say about reading it, and whether it is known what stands in it."""
    try:
        root = _root(path)
    except JsonError as problem:
        detail = f"{path}: {problem}. Claude Code ignores the whole file"
        return None, [Finding("fail", "settings file", detail, "mend the file")], False
    except SettingsError as problem:
        return None, [Finding("fail", "settings file", problem.message, "mend the file")], False
    if root is None:
        status, fix = ("fail", _AGAIN) if wanted else ("ok", "")
        return None, [Finding(status, "settings file", f"{path} has no settings yet", fix)], True
    return root, [Finding("ok", "settings file", f"{path} parses")], True


def _content(path: str, root: Node) -> list[Finding]:
    """Everything in the file that makes Claude Code drop hooks, whoever wrote it."""
    fatal, local = schema.problems(root)
    findings = [
        Finding("fail", "settings content", f"{what}: Claude Code ignores every hook of {path}", "mend it")
        for what in fatal
    ]
    findings += [
        Finding("warn", "settings content", f"{what}: Claude Code ignores this entry", "mend it") for what in local
    ]
    return findings or [Finding("ok", "settings content", "every known key has the right type")]


def managed_files(platform: str = sys.platform) -> list[str]:
    """The settings files of an organisation on this kind of machine, strongest first."""
    folder = {
        "darwin": "/Library/Application Support/ClaudeCode",
        "win32": r"C:\Program Files\ClaudeCode",
    }.get(platform, "/etc/claude-code")
    more = os.path.join(folder, "managed-settings.d")
    try:
        names = sorted((name for name in os.listdir(more) if name.endswith(".json")), reverse=True)
    except OSError:
        names = []
    return [*(os.path.join(more, name) for name in names), os.path.join(folder, "managed-settings.json")]


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder was deleted
        return os.path.expanduser("~")


def layers(start: str, env: Mapping[str, str]) -> Iterator[tuple[str, Node]]:
    """The settings that apply to a session started in ``start``, strongest first; what can't be read is left out."""
    repository = start
    while not os.path.exists(os.path.join(repository, ".git")):
        above = os.path.dirname(repository)
        if above == repository:
            repository = start
            break
        repository = above
    seen = set()
    for path in (
        *managed_files(),
        os.path.join(repository, ".claude", "settings.local.json"),
        settings_path(env, start),
        settings_path(env),
    ):
        try:
            root = _root(path)
        except (SettingsError, JsonError):
            continue
        real = os.path.realpath(path)
        if root is not None and root.kind == "object" and real not in seen:
            seen.add(real)
            yield path, root


def _switches(start: str, env: Mapping[str, str]) -> list[Finding]:
    """Settings that switch hooks off altogether."""
    findings, decided = [], False
    managed = set(managed_files())
    for where, root in layers(start, env):
        off, only = root.get("disableAllHooks"), root.get("allowManagedHooksOnly")
        if where in managed and only is not None and only.value is True:
            detail = f"allowManagedHooksOnly in {where}: only your organisation's hooks run"
            findings.append(Finding("fail", "hooks allowed", detail, "ask who manages this machine"))
        if off is not None and isinstance(off.value, bool) and not decided:
            decided = True
            if off.value:
                detail = f"disableAllHooks in {where}: no hook runs"
                findings.append(Finding("fail", "hooks allowed", detail, "take disableAllHooks out"))
    return findings or [Finding("ok", "hooks allowed", "no setting switches hooks off")]


# --------------------------------------------------------------------------------------------- the entries


def _entries(root: Node | None, wanted: Sequence[Registration], launcher: str) -> list[Finding]:
    """Whether each wanted entry is there once and as it must be, and no other of ours is."""
    found = [] if root is None else find(root)
    pairs = pair(wanted, found)
    findings = []
    for place, want in enumerate(wanted):
        name = f"hook {want.event}" + (f" ({want.matcher})" if want.matcher else "")
        if place not in pairs:
            findings.append(Finding("fail", name, "not registered", _AGAIN))
            continue
        wrong = differs(want, pairs[place], launcher)
        detail = f"registered, but {', '.join(wrong)} isn't as it should be" if wrong else "registered"
        findings.append(Finding("fail" if wrong else "ok", name, detail, _AGAIN if wrong else ""))
    known = {(want.event, want.args) for want in wanted}
    for have in found:
        if have in pairs.values():
            continue
        feature = None if (have.event, have.args) in known else _feature_of(have, launcher)
        if feature:
            detail = f"registered, and does nothing while {feature} is off (gstack setup takes it out)"
            findings.append(Finding("info", f"hook {have.event}", detail))
            continue
        what = "registered twice" if (have.event, have.args) in known else "left over"
        status = "fail" if what == "registered twice" else "warn"
        findings.append(Finding(status, f"hook {have.event}", f"{what}: {have}", _AGAIN))
    return findings


def _feature_of(have: Found, launcher: str) -> str | None:
    """The feature that an entry is for, exactly as it would be registered now."""
    from gstack_hosts.claude_code.settings import registrations

    every = registrations(SWITCHES)
    fits = (want for want in every if want.event == have.event and not differs(want, have, launcher))
    return next((want.feature for want in fits), None)


def _elsewhere(
    path: str,
    own: Node | None,
    start: str,
    wanted: Sequence[Registration],
    launcher: str,
    env: Mapping[str, str],
) -> list[Finding]:
    """gstack's hooks in another settings file or a plugin, and commands that run the launcher in another form."""
    events = {want.event for want in wanted}
    findings = [] if own is None else list(_unknown(path, own))
    for where, root in layers(start, env):
        if os.path.realpath(where) == os.path.realpath(path):
            continue
        findings += [_double(where, have, launcher) for have in find(root) if have.event in events]
        findings += _unknown(where, root)
    for plugin, event, command in _plugin_hooks(env):
        if event in events and _MENTION.search(command):
            detail = f"the plugin {plugin} registers it as well, so it runs twice"
            fix = f"claude plugin disable {plugin}, or gstack uninstall"
            findings.append(Finding("warn", f"hook {event}", detail, fix))
    return findings


def _double(where: str, have: Found, launcher: str) -> Finding:
    """An entry of ours in another file; the host runs the same command only once."""
    same = have.command == launcher
    effect = "which runs once all the same" if same else f"so it runs twice ({have.command})"
    fix = f"take it out of {where}: gstack uninstall --project" if not same else ""
    return Finding("info" if same else "warn", f"hook {have.event}", f"also in {where}, {effect}", fix)


def _unknown(where: str, root: Node) -> Iterator[Finding]:
    """Hooks that run gstack's launcher in a form that setup doesn't know and so won't change."""
    ours = {id(have.item) for have in find(root)}
    for event, item in _hooks(root):
        command = item.text_of("command") or ""
        if id(item) not in ours and _MENTION.search(command):
            shown = line(event, command, ())
            yield Finding("warn", f"hook {event}", f"{where} runs gstack in a form of its own: {shown}", "remove it")


def _hooks(root: Node) -> Iterator[tuple[str, Node]]:
    """Every well-formed hook of a settings or plugin file, with its event."""
    hooks = root.get("hooks")
    for event in hooks.children if hooks is not None and hooks.kind == "object" else ():
        for entry in event.node.children:
            items = entry.node.get("hooks")
            for item in items.children if items is not None and items.kind == "array" else ():
                yield event.key or "", item.node


def _plugin_hooks(env: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Plugin, event and command of each hook that an installed and enabled plugin brings."""
    folder = config_dir(env)
    installed = _json(os.path.join(folder, "plugins", "installed_plugins.json")).get("plugins")
    enabled = _json(settings_path(env)).get("enabledPlugins")
    for name, entries in installed.items() if isinstance(installed, dict) else ():
        if isinstance(enabled, dict) and enabled.get(name) is False:
            continue
        for entry in entries if isinstance(entries, list) else [entries]:
            place = entry.get("installPath") if isinstance(entry, dict) else None
            if not isinstance(place, str):
                continue
            try:
                root = _root(os.path.join(place, "hooks", "hooks.json"))
            except (SettingsError, JsonError):
                continue
            for event, item in _hooks(root) if root is not None else ():
                yield name, event, item.text_of("command") or ""


def _json(path: str) -> dict[str, Any]:
    """A JSON object, empty when there is none that can be read."""
    try:
        value = json.loads((read(path)[1] or b"{}").decode("utf-8-sig"))
    except (SettingsError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# -------------------------------------------------------------------------------------------- the launcher


def _launcher(launcher: str, path: str) -> Finding:
    """Whether the registered command can be run, and will still be there tomorrow (fault F1)."""
    if not os.path.isfile(launcher):
        return Finding("fail", "launcher", f"{launcher} doesn't exist", _AGAIN)
    if not os.access(launcher, os.X_OK):
        return Finding("fail", "launcher", f"{launcher} isn't executable", _AGAIN)
    temporary = os.path.realpath(tempfile.gettempdir()) + os.sep
    if os.path.realpath(launcher).startswith(temporary) and not os.path.realpath(path).startswith(temporary):
        detail = f"{launcher} lies in a temporary folder, but {path} outlives it"
        return Finding("warn", "launcher", detail, "set GSTACK_STATE_ROOT to a lasting folder, " + _AGAIN)
    return Finding("ok", "launcher", launcher)

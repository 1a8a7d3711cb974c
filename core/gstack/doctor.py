"""``gstack doctor``: is everything in place, and would it work? Cold.

Changes nothing: what it runs gets a state folder of its own.
"""

import difflib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from gstack.api import Finding, Skill
from gstack.config import KEYS, SWITCHES, Switch, problem_with, read_config, setting, switch
from gstack.errors import GstackError
from gstack.launcher import launcher_path, launcher_text, try_launcher
from gstack.lowlevel import POSIX, join, load_json, read_file
from gstack.plugins import Status, survey


class Checkup:
    """What the checks share: environment, state folder, host, switches."""

    def __init__(
        self, root: str, env: Mapping[str, str], host: Any, project: str | None = None, cwd: str | None = None
    ) -> None:
        self.root = root
        self.env = dict(env)
        self.host = host
        self.project = project
        self.cwd = project or cwd or os.getcwd()
        self.config = read_config(root)
        self.switches: dict[str, Switch] = {name: switch(name, env, self.config) for name in SWITCHES}

    @property
    def features(self) -> list[str]:
        """The features that are on or observed."""
        return [name for name in SWITCHES if self.switches[name].value != "off"]


def diagnose(checkup: Checkup) -> list[Finding]:
    """Every finding, in the order in which people should read them. A check that breaks is itself a finding."""
    findings: list[Finding] = []
    for check in (state, configuration, host, launcher, skills, plugins, contracts, gate):
        try:
            findings += check(checkup)
        except Exception as error:
            findings.append(broken(check.__name__, error))
    # the host's adapter may have said the same
    return [one for place, one in enumerate(findings) if one not in findings[:place]]


def broken(check: str, error: Exception) -> Finding:
    """A check that could not be made, whoever's fault that is."""
    known = isinstance(error, (GstackError, OSError))
    detail = str(error) if known else f"unexpected {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return Finding("fail", check, detail, "" if known else "report it, with the output of gstack doctor --json")


def state(checkup: Checkup) -> list[Finding]:
    """The state folder: there, writable, private."""
    root = checkup.root
    if os.path.exists(root) and not os.path.isdir(root):
        return [Finding("fail", "state", f"{root} is not a folder", "move it away, or set GSTACK_STATE_ROOT")]
    # commands that look at plug-ins leave a snapshot there
    if not os.path.isdir(root) or os.listdir(root) in ([], ["snapshot"]):
        status = "fail" if checkup.features else "info"
        return [Finding(status, "state", f"nothing is set up in {root} yet", "run gstack setup")]
    if not os.access(root, os.W_OK):
        return [Finding("fail", "state", f"{root} can't be written", f"chmod u+w {root}")]
    if POSIX and os.stat(root).st_mode & 0o022:
        return [Finding("warn", "state", f"{root} can be written by others", f"chmod 700 {root}")]
    return [Finding("ok", "state", root)]


def configuration(checkup: Checkup) -> list[Finding]:
    """The configuration file, and each switch with where its value comes from."""
    config = checkup.config
    findings = []
    if config.status == "unreadable":
        fix = f"mend or delete {config.path}"
        findings.append(Finding("fail", "configuration", f"{config.path}: {config.problem}", fix))
    for key, value in config.values.items():
        findings += _value(config.path, key, value)
    for name, found in checkup.switches.items():
        findings.append(Finding("info", name, f"{found.value} ({found.source})"))
    return findings


def _value(path: str, key: str, value: str) -> list[Finding]:
    """What is wrong with one line of the configuration: setup and the hooks pass over it silently."""
    if key not in KEYS:
        known = ", ".join(difflib.get_close_matches(key, KEYS, n=1, cutoff=0.6)) or "see gstack config list"
        detail = f"{path}: there is no key {key!r}, so its line says nothing"
        return [Finding("warn", "configuration", detail, f"take it out, or rename it: {known}")]
    problem = problem_with(key, value)
    if not value.strip() or problem is None:
        return []
    if key in SWITCHES:
        detail = f"{key}: {value!r} is not on, off or observe; the default ({KEYS[key][1]}) is used"
        return [Finding("warn", "configuration", detail, f"gstack config set {key} on|off|observe")]
    detail = f"{key}: {value!r}: {problem}; the default ({KEYS[key][1]}) is used"
    return [Finding("warn", "configuration", detail, f"gstack config set {key} VALUE, or gstack config unset {key}")]


def host(checkup: Checkup) -> list[Finding]:
    """What the host's adapter says: binary, settings file, entries."""
    adapter = checkup.host
    wanted = adapter.registrations(checkup.features)
    return list(adapter.diagnose(wanted, launcher_path(checkup.root), checkup.env, checkup.project))


def launcher(checkup: Checkup) -> list[Finding]:
    """The launcher: what setup would write now, runs, and how long it takes."""
    path = launcher_path(checkup.root)
    if not os.path.exists(path):
        status = "fail" if checkup.features else "info"
        return [Finding(status, "launcher", f"{path} doesn't exist", "run gstack setup")]
    findings = []
    if POSIX and read_file(path) != os.fsencode(launcher_text(checkup.root)):
        detail = f"{path} was written for another Python or place than {sys.executable}"
        findings.append(Finding("warn", "launcher", detail, "run gstack setup with the gstack that you use"))
    from gstack.bootstore import damaged
    from gstack.doctor_live import Stage

    for broken in damaged(checkup.root):
        findings.append(Finding("fail", "stored code", f"{broken} is damaged", "run gstack setup"))
    with Stage(checkup, checkup.cwd) as stage:
        problem = try_launcher(path, host=checkup.host.id, env=stage.env)
        if problem:
            return [*findings, Finding("fail", "launcher", problem, "run gstack setup")]
        took = _hook_time(path, checkup.host.id, stage.env)
    return [*findings, Finding("ok", "launcher", f"{path} runs"), took]


def _hook_time(path: str, host_id: str, env: Mapping[str, str], runs: int = 7) -> Finding:
    """The launcher against a bare interpreter, in turn."""
    hook, bare = [], []
    for _ in range(runs):
        hook.append(_seconds([path, host_id, "Stop"], env))
        bare.append(_seconds([sys.executable, "-I", "-S", "-c", "pass"], env))
    took, floor = statistics.median(hook), statistics.median(bare)
    detail = f"{took * 1000:.0f} ms for an empty event; a bare Python takes {floor * 1000:.0f} ms"
    return Finding("ok" if took < 3 * floor or took < 0.1 else "warn", "hook time", detail)


def _seconds(command: Sequence[str], env: Mapping[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, input=b"{}\n", capture_output=True, timeout=20, check=False, env=dict(env))
    return time.perf_counter() - started


def skills(checkup: Checkup) -> list[Finding]:
    """The skills that are seen from here: counted, skipped, shadowed, with contracts that don't hold."""
    from gstack.inventory import load_skills
    from gstack.trust import trusted_overlay

    cwd = checkup.cwd
    overlay, _ = trusted_overlay(checkup.root, cwd)
    found = load_skills(checkup.host, checkup.env, cwd, state_root=checkup.root, trusted_overlay=overlay)
    where = ", ".join(root.path for root in found.roots)
    findings = [
        Finding("ok" if found.skills else "info", "skills", f"{len(found.skills)} in {where}" if where else "none here")
    ]
    findings += [Finding("warn", "skill skipped", f"{path}: {why}") for path, why in found.skipped]
    findings += [Finding("info", "skill shadowed", f"{path} by {other}") for path, other in found.shadowed]
    findings += [finding for skill in found.skills for finding in _sources_of(skill)]
    return findings + _contracts_of(checkup, found.skills, overlay)


def _sources_of(skill: Skill) -> list[Finding]:
    """Where a skill's triggers, routing and contract come from, where that isn't plain (contracts C1, switches S3)."""
    findings = []
    for key, value in sorted(skill.sources.items()):
        what, _, of = key.partition(":")
        if what == "others":
            detail = f"{skill.path}: {of} is also set in {value}, which doesn't count"
            findings.append(Finding("info", "skill", detail))
        elif what == "problem":
            findings.append(Finding("warn", "skill", f"{skill.path}: {of}: {value}", "mend it; the rest counts"))
        elif value != "SKILL.md":
            findings.append(Finding("info", "skill", f"/{skill.name}: {what} from {value}"))
    return findings


def _contracts_of(checkup: Checkup, found: Sequence[Any], overlay: str | None) -> list[Finding]:
    from gstack.contracts.judge import Bench
    from gstack.contracts.schema import declared_in, parse_contract, reading_note

    kinds = Bench(checkup.root, checkup.env).kinds
    findings, good = [], 0
    for skill in found:
        if skill.contract is None:
            continue
        source = declared_in(skill.path, skill.sources, checkup.root, overlay)
        try:
            parse_contract(skill.contract, kinds, source=source, note=reading_note(skill.sources))
            good += 1
        except GstackError as error:
            inside = os.path.dirname(source) == os.path.dirname(skill.path)
            fix = f"gstack contract lint {skill.path}" if inside else f"mend {source}"
            findings.append(Finding("warn", "contract", error.message, fix))
    return [
        Finding(
            "info",
            "contracts",
            f"{good} {'skill declares' if good == 1 else 'skills declare'} one" if good else "no skill declares one",
        ),
        *findings,
    ]


def plugins(checkup: Checkup) -> list[Finding]:
    """Every plug-in that isn't simply fine, and a count of those that are."""
    statuses = survey(checkup.root, checkup.env)
    findings = [_plugin(status) for status in statuses if status.state != "ok" or not status.in_hook or status.trouble]
    fine = sum(1 for status in statuses if status.state == "ok")
    return [Finding("ok", "plug-ins", f"{fine} of {len(statuses)} work"), *findings, *_undecided(checkup, statuses)]


def _undecided(checkup: Checkup, statuses: Sequence[Status]) -> list[Finding]:
    """The features that are on and have no plug-in that decides."""
    working = [status for status in statuses if status.state == "ok" and status.in_hook]
    scorer = setting("route_scorer", checkup.env, checkup.config)
    scorers = [name for one in working if one.found.group == "gstack.trigger_scorers" for name in one.names]
    findings = []
    if "skill_routing" in checkup.features and scorer not in scorers:
        fix = f"gstack config set route_scorer {scorers[0]}" if scorers else "install gstack-skills again"
        findings.append(Finding("fail", "routing", f"no scorer called {scorer} works here: nothing is routed", fix))
    if "gate" in checkup.features and not any(one.found.group == "gstack.gate_resolvers" for one in working):
        detail = "no gate resolver works here: nothing is checked"
        findings.append(Finding("fail", "gate", detail, "gstack plugins list says why"))
    return findings


def _plugin(status: Status) -> Finding:
    name = f"plug-in {status.found.id}"
    detail = f"{status.found.dist} {status.found.version}: {status.state}"
    detail += f", {status.why}" if status.why else ""
    detail += f"; last trouble in a hook: {status.trouble}" if status.trouble else ""
    return Finding(
        "info" if status.state == "disabled" else "warn", name, detail, f"gstack plugins enable {status.found.id}"
    )


def contracts(checkup: Checkup) -> list[Finding]:
    """What the stop hook could not read, and runs that wait for agents for ever."""
    from gstack.contracts.records import stuck_runs

    findings = []
    try:
        data = load_json(read_file(join(checkup.root, "hooks", "skill-contract.canary.json"), 1 << 16))
        count = int(data.get("count", 0)) if isinstance(data, dict) else 0
    except (OSError, ValueError):
        count = 0
    if count:
        detail = f"{count} transcript(s) of a shape that no adapter understands"
        findings.append(Finding("warn", "contract canary", detail, "update gstack: the host's format may have changed"))
    for session, skill, hours in stuck_runs(checkup.root, time.time()):
        detail = f"{skill} in session {session} has waited for its agents for {hours:.0f} h"
        findings.append(Finding("info", "contract deferred", detail, "gstack contract report re-checks it"))
    return findings


def gate(checkup: Checkup) -> list[Finding]:
    """The gate's bundle: there, verified, fresh."""
    if checkup.switches["gate"].value == "off":
        return []
    from gstack.gate.status import read_status

    found = read_status(checkup.root, time.time())
    if not found.connected and found.bundle is None and found.broken is None:
        return [Finding("warn", "gate", "no organisation's policy on this machine", "gstack login")]
    if found.bundle is None:
        detail = found.broken.message if found.broken is not None else "never synced"
        return [Finding("fail", "gate bundle", detail, "gstack sync")]
    age = found.freshness.age / 3600 if found.freshness else 0.0
    bundle = Finding("ok", "gate bundle", f"{found.org}, version {found.bundle.version}, {age:.1f} h old")
    return [bundle, *(Finding("warn", "gate", problem) for problem in found.problems)]

"""``gstack doctor --live``: is each path really enforced on this machine? Cold.

Runs every command that the host's settings register, as the host would (exec form, its payloads and variables, its
time limit), and holds what it says against what the features say in this process. Nothing of that is left behind: the
hooks get a throw-away state folder (:class:`Stage`) that links to the configuration, the overlay and the policy bundle,
but not to the credentials. So records, logs and session memory go with it, no audit event can be sent, no refresh
starts, and no hook needs to know that it is being tried. That the real folder can be written is tried apart.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from gstack.api import ALLOW, Answer, Finding, HookEvent
from gstack.doctor import Checkup, broken
from gstack.doctor_aims import Aims, Scene
from gstack.doctor_history import History, histories
from gstack.hook import FEATURES
from gstack.logs import log_path
from gstack.lowlevel import POSIX
from gstack.protocols import RegisteredCommand
from gstack.snapshot import index_path, plan_path
from gstack.state import remove, write_atomic

#: How the ids of the sessions begin that are made up here.
SESSION = "gstack-doctor-"
#: Longest that one command may take here whatever its entry says, in seconds: far beyond the hook's own deadlines.
LIMIT = 20.0

#: What the hooks read of the state folder. The index of the bundle must be no link (gate.index): it is copied.
_LINKED = ("bin", "config.yaml", "skills.yaml", "trust.json", "plugins.json", "gate/bundle.json", "gate/trust.json",
           "gate/sync.json", "gate/overrides.json")  # fmt: skip
#: What the hooks write in, and what comes of it when they can't.
_WRITTEN = {
    "skill-contracts": "no stop can be held",
    "sessions": "skills are hinted again and again",
    "hooks": "no decision is logged",
    "snapshot": "every hook takes the slow road",
}
#: The form of answer that has an effect on each use.
_FORMS = {
    "prompt": "inject",
    "command": "deny",
    "skill": "deny",
    "subagent": "deny",
    "read": "deny",
    "stop": "block_stop",
}
_MARK = "\x00mark"


class Stage:
    """A throw-away state folder for the hooks, and the host's environment. Use it in ``with``."""

    def __init__(self, checkup: Checkup, cwd: str) -> None:
        self.root = tempfile.mkdtemp(prefix="gstack-doctor-")
        self._real = checkup.root
        said = checkup.host.sample_env(cwd) if hasattr(checkup.host, "sample_env") else {}
        self.env = {**checkup.env, **said, "GSTACK_STATE_ROOT": self.root}
        os.makedirs(os.path.join(self.root, "gate"), mode=0o700)
        os.makedirs(os.path.join(self.root, "snapshot"), mode=0o700)
        for name in _LINKED:
            self._link(name)
        variables = "\0".join([checkup.env.get(name, "") for name in checkup.host.skill_variables])
        for path in (plan_path(self._real), index_path(self._real, checkup.host.id, variables, cwd)):
            self._copy(os.path.relpath(path, self._real))
        self._copy("gate/bundle.index")

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def _link(self, name: str) -> None:
        source, target = os.path.join(self._real, name), os.path.join(self.root, name)
        if not os.path.exists(source):
            return
        try:
            os.symlink(os.path.abspath(source), target)
        except OSError:  # Windows lets few people make links
            if os.path.isfile(source):
                self._copy(name)

    def _copy(self, name: str) -> None:
        with suppress(OSError):
            shutil.copy2(os.path.join(self._real, name), os.path.join(self.root, name))


@dataclass
class Trial:
    """One command that was run for one use: what was due and what it said.

    ``status`` is as in a :class:`gstack.api.Finding`; ``expected`` and ``answered`` are the texts (None: nothing);
    ``milliseconds`` is None where it could not be run.
    """

    use: str
    event: str
    command: tuple[str, ...]
    file: str
    status: str = "ok"
    detail: str = ""
    expected: str | None = None
    answered: str | None = None
    milliseconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The facts with stable keys, for ``--json``."""
        took = None if self.milliseconds is None else round(self.milliseconds, 1)
        return {**self.__dict__, "command": list(self.command), "milliseconds": took}

    def finding(self) -> Finding:
        """The line for people."""
        took = "" if self.milliseconds is None else f" ({self.milliseconds:.0f} ms)"
        fix = "gstack setup, then gstack doctor --live again" if self.status == "fail" else ""
        return Finding(self.status, f"live {self.use}", self.detail + took, fix)


@dataclass
class Report:
    """What ``--live`` found."""

    trials: list[Trial] = field(default_factory=list)
    history: list[History] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The facts with stable keys, for ``--json``."""
        return {
            "trials": [trial.as_dict() for trial in self.trials],
            "hooks": [one.as_dict() for one in self.history],
        }


def try_live(checkup: Checkup) -> Report:
    """Try every registered command, and look when each hook last ran. Changes nothing."""
    report = Report()
    host = checkup.host
    if not hasattr(host, "sample_payloads"):
        detail = f"the adapter of {host.title} offers no payloads to try its hooks with"
        report.findings.append(Finding("info", "live", detail))
        return report
    cwd = checkup.cwd
    try:
        with Stage(checkup, cwd) as stage:
            scene = Scene(host, stage.root, stage.env, cwd)
            report.trials = _Tests(scene, host.registered_commands(checkup.env, cwd)).all()
    except Exception as error:
        report.findings.append(broken("live", error))
    report.findings += [trial.finding() for trial in report.trials]
    report.findings += _writable(checkup)
    try:
        report.history = histories(checkup, cwd)
        report.findings += [one.finding(host.gaps) for one in report.history]
    except Exception as error:
        report.findings.append(broken("last ran", error))
    return report


def _writable(checkup: Checkup) -> list[Finding]:
    """Whether the hooks could write where they must, since they were tried in another folder."""
    findings = []
    for name, effect in _WRITTEN.items():
        folder = os.path.join(checkup.root, name)
        if not os.path.isdir(checkup.root):
            continue
        path = os.path.join(folder, f"{SESSION}{os.getpid()}.probe")
        made = not os.path.isdir(folder)
        try:
            write_atomic(path, b"")
            shut = [one.path for one in os.scandir(folder) if one.is_file() and not os.access(one.path, os.W_OK)]
        except OSError as error:
            shut = [f"{folder}: {error.strerror}"]
        finally:
            remove(path)
            if made:
                with suppress(OSError):
                    os.rmdir(folder)
        if shut:
            detail = f"{shut[0]} can't be written, so {effect}"
            findings.append(
                Finding("fail", f"writing {name}", detail, f"give {checkup.root} back to yourself: chown -R")
            )
    return findings or [Finding("ok", "writing", f"the hooks can write in {checkup.root}")]


class _Tests:
    """Runs the commands for each use."""

    def __init__(self, scene: Scene, commands: list[RegisteredCommand]) -> None:
        self.scene = scene
        self.commands = commands
        self.session = SESSION + uuid.uuid4().hex[:12]
        self.aims = Aims(scene)

    def all(self) -> list[Trial]:
        """The trials of every use, in the order in which a session meets them."""
        return [trial for use in _FORMS for trial in self.of(use)]

    def of(self, use: str) -> list[Trial]:
        """The trials of one use, each in a session of its own."""
        case = self._case(use, self.session)
        if case is None:
            return []
        native, kind = case[1].native_name, case[1].kind
        value = self.scene.switch(FEATURES[kind][0]).value
        commands = {one.command: one for one in self.commands if one.event == native}
        if not commands and value != "off":
            detail = f"{FEATURES[kind][0]} is {value}, but nothing is registered for {native}"
            return [Trial(use, native, (), "", "fail", detail)]
        cases = [self._case(use, f"{self.session}-{use}-{place}") or case for place in range(len(commands))]
        return [self._try(use, *case, one) for case, one in zip(cases, commands.values(), strict=True)]

    def _case(self, use: str, session: str, *, again: bool = False) -> tuple[Mapping[str, Any], HookEvent] | None:
        """A payload and the event that it is; None where the host has none for this use."""
        payload = self.aims.payload(use, session, stop_active=again)
        event: HookEvent | None = self.scene.host.decode(payload, self.scene.env) if payload else None
        return (payload, event) if payload and event is not None and event.kind in FEATURES else None

    def _try(self, use: str, payload: Mapping[str, Any], event: HookEvent, one: RegisteredCommand) -> Trial:
        """Run one registered command for one use, and judge what it says."""
        feature, _, log_name, _ = FEATURES[event.kind]
        value, session = self.scene.switch(feature).value, event.session_id or ""
        trial = Trial(use, event.native_name, one.command, one.file)
        due = self.aims.expected(use, event) if value == "on" else ALLOW
        trial.expected = _text(due, use)
        said = self._run(trial, payload, one.seconds)
        if said is None:
            return trial
        answered = answer_of(self.scene.host, event, said, use) if said else ALLOW
        trial.answered = _text(answered, use)
        last = self._last_line(log_name, session)
        if (said and answered.empty) or not _same(answered, due, use):
            trial.status, trial.detail = "fail", _difference(trial) + (f"; its log says: {last}" if last else "")
            if self.scene.host.claims(self.scene.env, payload) == "foreign":
                trial.detail += "; a variable in this environment makes it look like another host's"
        elif value == "off":
            trial.status, trial.detail = "info", f"silent, since {feature} is off"
        elif value == "observe":
            trial.detail = "observed: silent, " + (f"and logged {last!r}" if last else "with nothing to log")
        elif not self.aims.aim(use):
            trial.status, trial.detail = "info", f"runs; {self.aims.why_not(use)}"
        else:
            trial.detail = self.aims.aim(use)
            if use == "stop":
                self._again(trial, session, one.seconds)
        return trial

    def _run(self, trial: Trial, payload: Mapping[str, Any], seconds: float) -> dict[str, Any] | None:
        """Run a command as the host would: its answer, ``{}`` for none; None when it failed, as ``trial`` then
        says."""
        trial.status = "fail"
        limit = min(seconds, LIMIT)
        started = time.perf_counter()
        try:
            code, out = _run(trial.command, json.dumps(payload).encode("ascii") + b"\n", self.scene, limit)
        except subprocess.TimeoutExpired:
            trial.detail = f"{trial.command[0]} gave no answer within {limit:g} s"
            return None
        except OSError as error:
            trial.detail = f"{trial.command[0]} can't be run: {error.strerror}; the host goes on without it"
            return None
        trial.milliseconds = (time.perf_counter() - started) * 1000
        if code:
            trial.detail = f"ended with exit code {code}" + (", which hosts read as a block" if code == 2 else "")
            return None
        try:
            said = json.loads(out) if out.strip() else {}
        except ValueError:
            said = None
        if not isinstance(said, dict):
            trial.detail = "printed something that isn't one JSON object, so the host drops it"
            return None
        trial.status = "ok"
        return said

    def _last_line(self, log_name: str, session: str) -> str:
        """What the hook logged last in a session, without time and session."""
        try:
            with open(log_path(self.scene.root, log_name), encoding="utf-8", errors="replace") as file:
                lines = [line.split(" ", 2) for line in file]
        except OSError:
            return ""
        mine = [parts[2].strip() for parts in lines if len(parts) == 3 and parts[1] == session]
        return mine[-1] if mine else ""

    def _again(self, trial: Trial, session: str, seconds: float) -> None:
        """A stop is held once: the next one of the same turn must pass."""
        case = self._case("stop", session, again=True)
        took = trial.milliseconds
        said = self._run(trial, case[0], seconds) if case else {}
        trial.milliseconds = took
        if said:
            trial.status, trial.detail = "fail", "holds the same stop a second time"
        elif said is not None:
            trial.detail += ", and let go the second time"


def _run(command: tuple[str, ...], data: bytes, scene: Scene, limit: float) -> tuple[int, bytes]:
    """Exit code and standard output of a command, which gets a session of its own as from a host.

    Raises TimeoutExpired (it and its children are ended then) and OSError.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=scene.env, cwd=scene.cwd, start_new_session=POSIX
    ) as process:
        try:
            out, _ = process.communicate(data, timeout=limit)
        except subprocess.TimeoutExpired:
            if POSIX:
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            raise
        return process.returncode, out


def answer_of(host: Any, event: HookEvent, said: Mapping[str, Any], use: str) -> Answer:
    """A host's answer read back into neutral words: where the adapter would have put a text, that text is taken."""
    found = {}
    for form in (_FORMS[use], "notice"):
        rendered = host.render(Answer(**{form: _MARK}), event)
        text = _at_mark(json.loads(rendered), said) if rendered else None
        if text is not None:
            found[form] = text
    return Answer(**found)


def _at_mark(template: Any, said: Any) -> str | None:
    """What ``said`` has where ``template`` has the mark; None where the rest doesn't fit."""
    if template == _MARK:
        return said if isinstance(said, str) else None
    if not isinstance(template, dict) or not isinstance(said, dict):
        return None
    text = None
    for key, value in template.items():
        if _MARK in str(value) or isinstance(value, dict):
            text = _at_mark(value, said.get(key)) or text
        elif said.get(key) != value:
            return None
    return text


def _same(answered: Answer, due: Answer, use: str) -> bool:
    """Whether two answers say the same. Of a held stop the end is left out, which names a path in the state folder."""
    if use != "stop":
        return answered == due
    one, other = [(answer.block_stop or "").partition(" If an item truly")[0] for answer in (answered, due)]
    return one == other and answered.notice == due.notice


def _difference(trial: Trial) -> str:
    """What is wrong with an answer, in a few words."""
    if trial.answered is None:
        return f"said nothing; due was: {_short(trial.expected)}" if trial.expected else "said what no host reads"
    due = _short(trial.expected) if trial.expected else "nothing"
    return f"said: {_short(trial.answered)}; due was: {due}"


def _text(answer: Answer, use: str) -> str | None:
    return getattr(answer, _FORMS[use]) or answer.notice


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:119] + "…"

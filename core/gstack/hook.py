"""The hook process: payload in, host, feature, answer out. Never raises, never exits non-zero.

Hot: this starts anew on every prompt, tool call and stop, so it and all that it imports use builtins only
(design: "The hook process"; tests/meta/test_import_budget.py holds the list). Standard output is claimed
first, so that nothing but the answer can reach the host; on any failure the answer is nothing and one line goes to a
log.
"""

import sys
from time import monotonic, time

from gstack.api import ALLOW, COMMAND_TYPED, PROMPT_SUBMITTED, TOOL_PROPOSED, TURN_ENDING
from gstack.config import read_config, switch
from gstack.logs import log
from gstack.lowlevel import environ, is_file, join, scan_json, sys_os, write_all
from gstack.plan import ALARM, Deadline
from gstack.sessions import update_session
from gstack.snapshot import load_index, load_plan
from gstack.state import state_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gstack.api import Answer, HookEvent
    from gstack.config import Config, Switch
    from gstack.plan import Plan
    from gstack.snapshot import SkillIndex

#: Which feature answers which kind of event: (switch, module, log, seconds from process start).
FEATURES = {
    PROMPT_SUBMITTED: ("skill_routing", "gstack.routing.hook", "skill-route", 2.0),
    TURN_ENDING: ("skill_contracts", "gstack.contracts.hook", "skill-contract", 5.0),
    TOOL_PROPOSED: ("gate", "gstack.gate.hook", "skill-gate", 2.0),
    COMMAND_TYPED: ("gate", "gstack.gate.hook", "skill-gate", 2.0),
}

#: Largest payload that is read, in bytes.
PAYLOAD_LIMIT = 64 << 20
#: How much is read at once, in bytes: what a pipe holds.
_PIPE = 1 << 16


class HookContext:
    """What a feature is given: the event and everything it may ask for."""

    def __init__(
        self,
        event: "HookEvent",
        env: "dict[str, str]",
        root: str,
        config: "Config",
        host: "Any",
        plan: "Plan",
        switch: "Switch",
        project: "Config | None",
        started: float,
        deadline: float,
    ) -> None:
        self.event = event
        self.env = env
        self.root = root
        self.config = config
        self.host = host
        self.plan = plan
        self.switch = switch
        self.project = project
        self.launcher_dir = join(root, "bin")
        self.started = started
        self.deadline = deadline
        self.now = time()
        self.after: list[Callable[[], object]] = []
        self._skills: SkillIndex | None = None

    def skills(self) -> "SkillIndex":
        """The compiled index of the skills that this session sees (may take the slow road)."""
        if self._skills is None:
            self._skills = load_index(self.root, self.host, self.env, self.event.cwd, self.config, self.plan)
        return self._skills

    def later(self, function: "Callable[[], object]") -> None:
        """Run ``function`` once the answer is written and standard output closed."""
        self.after.append(function)

    def left(self) -> float:
        """Seconds until this event's deadline."""
        return self.deadline - monotonic()

    def call(self, owner: object, function: "Callable[..., Any]", *args: "Any") -> "Any":
        """Call a plug-in object's method in its own failure domain. Raises gstack.plan.PluginFailed."""
        return self.plan.call(owner, function, *args)


def main(
    arguments: "Sequence[str]",
    recorded_root: "str | None",
    paths: "Sequence[str]",
    code_path: "str | None" = None,
    env: "dict[str, str] | None" = None,
) -> None:
    """Run one hook and end the process with exit code 0.

    ``arguments`` are the host's id and the event's name as registered; ``recorded_root`` and ``paths`` (import folders)
    are what setup wrote into the launcher; ``code_path`` is where the loaded code is to be stored (None: nowhere);
    ``env`` stands in for the process's own environment.
    """
    run = _Run(recorded_root, paths, monotonic(), env)
    out = -1
    try:
        out = _claim_output()
        answer = run.answer(arguments)
        if answer and out >= 0:
            write_all(out, answer)
    except BaseException as error:
        run.failed(error)
    try:
        if out >= 0:
            sys_os.close(out)
        run.finish()
        if code_path and run.context is not None:
            run.keep_code(code_path)
    except BaseException as error:
        run.failed(error)
    sys_os._exit(0)


def _claim_output() -> int:
    """Take standard output for the answer alone; whatever else prints goes to standard error."""
    try:
        out = sys_os.dup(1)
    except OSError:
        return -1
    try:
        sys_os.dup2(2, 1)
    except OSError:
        sys_os.close(1)
    return out


class _Run:
    """One hook run, with what it knows so far, so that a failure can be logged where it belongs."""

    def __init__(
        self,
        recorded_root: "str | None",
        paths: "Sequence[str]",
        started: float,
        env: "dict[str, str] | None" = None,
    ) -> None:
        self.recorded_root = recorded_root
        self.paths = paths
        self.started = started
        self.env = env
        self.root: str | None = None
        self.event: HookEvent | None = None
        self.context: HookContext | None = None

    def answer(self, arguments: "Sequence[str]") -> bytes:
        """The bytes for standard output."""
        ALARM.deadline = self.started + 5.0
        ALARM.arm()
        env = environ() if self.env is None else self.env
        self.root = root = state_root(env, self.recorded_root)
        payload = read_payload(0)
        if not isinstance(payload, dict):
            log(root, "hook", None, "error what=payload")
            return b""
        plan = load_plan(root, self.paths, env)
        host = plan.host(arguments[0] if arguments else "")
        if host is None or host.claims(env, payload) == "foreign":
            return b""
        event: HookEvent | None = host.decode(payload, env)
        if event is None or event.kind not in FEATURES:
            return b""
        self.event = event
        return self._feature(event, env, root, host, plan)

    def _feature(self, event: "HookEvent", env: "dict[str, str]", root: str, host: "Any", plan: "Plan") -> bytes:
        feature, module, log_name, seconds = FEATURES[event.kind]
        config = read_config(root)
        project = project_config(root, event.cwd)
        found = switch(feature, env, config, project)
        if found.value == "off":
            if feature == "skill_routing":
                reason = "config-unreadable" if found.source == "config unreadable" else "off"
                log(root, log_name, event.session_id, "no-route reason=" + reason)
            return b""
        deadline = self.started + seconds
        ALARM.deadline = deadline
        ALARM.arm()
        self.context = context = HookContext(
            event, env, root, config, host, plan, found, project, self.started, deadline
        )
        __import__(module)
        answer: Answer = sys.modules[module].answer(context)
        if found.value == "observe":
            answer = ALLOW
        return b"" if answer.empty else host.render(answer, event)

    def finish(self) -> None:
        """What comes after the answer, each step in its own failure domain."""
        if self.context is None:
            return
        # a fresh, short span: the host has its answer, but waits for the process
        ALARM.deadline = monotonic() + 1.0
        ALARM.arm()
        for step in self.context.after:
            try:
                step()
            except Exception as error:
                self.failed(error)

    def keep_code(self, path: str) -> None:
        """Store the code that this run loaded for the next one, if it took the fast road (see :mod:`gstack.boot`)."""
        boot = sys.modules.get("gstack.boot")
        # one that runs with another state folder than the launcher's, as `gstack doctor` lets it, leaves no trace there
        if boot is None or self.root != self.recorded_root or "gstack.snapshot_build" in sys.modules:
            return
        needed = boot.to_store()
        if needed is None:
            return
        from gstack.bootstore import store

        # enough for a slow machine: a hook that can't store its code tries again the next time
        ALARM.deadline = monotonic() + 5.0
        ALARM.arm()
        try:
            store(path, *needed)
        except (OSError, SyntaxError, ValueError, Deadline):
            # out of time on a busy machine, a read-only state folder, or gstack is just being replaced: the answer was
            # given, and the next hook imports as usual
            return

    def failed(self, error: BaseException) -> None:
        """One log line for a failure, if it can be written. Never raises."""
        try:
            if self.root is None:
                return
            kind = self.event.kind if self.event else PROMPT_SUBMITTED
            feature, _, log_name, _ = FEATURES.get(kind, FEATURES[PROMPT_SUBMITTED])
            session = self.event.session_id if self.event else None
            count = update_session(self.root, session, error=feature).errors.get(feature, 1)
            what = "deadline" if isinstance(error, Deadline) else type(error).__name__
            log(self.root, log_name if self.event else "hook", session, f"error failures={count} what={what}")
        except BaseException:
            return


def project_config(root: str, cwd: "str | None") -> "Config | None":
    """The configuration of the trusted project that ``cwd`` lies in; None when no folder was ever trusted."""
    if not cwd or not is_file(join(root, "trust.json")):
        return None
    from gstack.trust import trusted_config

    return trusted_config(root, cwd)


def read_payload(fd: int) -> "Any":
    """The first whole JSON document on ``fd``; None when there is none.

    Doesn't wait for the end of input: hosts were seen that never close the pipe (claude-code-protocol, section 6 E).
    """
    data = bytearray()
    tried = 0
    while len(data) <= PAYLOAD_LIMIT:
        part = sys_os.read(fd, _PIPE)
        data += part
        if not part:
            break
        # a document ends in a brace; after a failed try a larger one only when it has grown by half
        if part.rstrip()[-1:] == b"}" and len(data) >= tried + tried // 2:
            value = _document(data)
            if value is not None:
                return value
            tried = len(data)
    return _document(data)


def _document(data: "bytes | bytearray") -> "Any":
    text = data.decode("utf-8", "replace")
    try:
        return scan_json(text.removeprefix("\ufeff"), alone=True)[0]
    except (ValueError, RecursionError):
        return None


def run_from_cli(arguments: "Sequence[str]", env: "Mapping[str, str]") -> None:
    """What the registered launcher does, for ``gstack hook HOST [EVENT]``: ends the process with exit code 0."""
    from gstack.launcher import import_paths

    main(arguments, state_root(env), import_paths(), env=dict(env))


def console() -> None:
    """The console script ``gstack-hook``, which is what is registered on Windows."""
    try:
        run_from_cli(sys.argv[1:], environ())
    except BaseException:
        sys_os._exit(0)

"""The hook imports what the budget allows and nothing else: counters, because noise doesn't move them.

Starts the real process on a real payload and looks at its ``sys.modules`` at the very end.
"""

import json
import sys
from pathlib import Path

import pytest

from gstack.launcher import launcher_path
from gstack.lowlevel import POSIX
from gstack.sandbox import Sandbox

pytestmark = pytest.mark.skipif(not POSIX, reason="the budget is POSIX's; on Windows os and msvcrt join it")

#: What a bare `python -I -S` has loaded, and the built-in or C modules that the hook may add.
INTERPRETER = {
    "__main__",
    "_abc",
    "_codecs",
    "_frozen_importlib",
    "_frozen_importlib_external",
    "_imp",
    "_io",
    "_signal",
    "_thread",
    "_warnings",
    "_weakref",
    "abc",
    "builtins",
    "codecs",
    "encodings",
    "encodings.aliases",
    "encodings.utf_8",
    "io",
    "marshal",
    "posix",
    "sys",
    "time",
    "zipimport",
    "encodings.ascii",
    "encodings.latin_1",
    "_datetime",
    "winreg",
}
ALLOWED_C = {"_json", "fcntl", "_sha2", "_sha256"}
ALWAYS = {
    "gstack",
    "gstack.api",
    "gstack.boot",
    "gstack.config",
    "gstack.hook",
    "gstack.logs",
    "gstack.lowlevel",
    "gstack.plan",
    "gstack.sessions",
    "gstack.snapshot",
    "gstack.state",
    "gstack_hosts",
    "gstack_hosts.claude_code",
    "gstack_hosts.claude_code.envelopes",
    "gstack_hosts.claude_code.payloads",
}
ROUTE = ALWAYS | {
    "gstack.routing",
    "gstack.routing.hook",
    "gstack.routing.decision",
    "gstack.routing.guards",
    "gstack.routing.hint",
    "gstack.routing.words",
    "gstack_plugins",
    "gstack_plugins.lexical_scorer",
    "gstack_plugins.lexical_scorer.equivalents",
    "gstack_hosts.claude_code.skills",
    "gstack_hosts.claude_code.paths",
}


def modules_after(box: Sandbox, event: str, payload: dict[str, object]) -> set[str]:
    """The modules of the hook process when it ends, told by a launcher that is told to tell."""
    text = Path(launcher_path(box.root)).read_text()
    spy = Path(box.root) / "bin" / "spy"
    out = Path(box.folder) / "modules.json"
    # `_exit` is the hook's last act; the spy writes the list there
    hooked = (
        "    import gstack.lowlevel as low\n"
        "    real = low.sys_os._exit\n"
        "    def _exit(code):\n"
        f"        names = sorted(sys.modules); fd = low.sys_os.open({str(out)!r}, 577, 384)\n"
        "        low.write_all(fd, low.dump_json(names).encode()); real(code)\n"
        "    low.sys_os._exit = _exit\n"
    )
    spy.write_text(text.replace("    stored = None\n", hooked + "    stored = None\n"))
    spy.chmod(0o700)
    launcher = Path(launcher_path(box.root))
    kept = launcher.read_bytes()
    launcher.write_bytes(spy.read_bytes())
    try:
        for _ in range(2):  # the first run may take the slow road
            assert box.run(event, payload).code == 0
    finally:
        launcher.write_bytes(kept)
    return set(json.loads(out.read_text()))


def check(found: set[str], allowed: set[str]) -> None:
    extra = found - INTERPRETER - ALLOWED_C - allowed
    assert not extra, f"the hook may not import {sorted(extra)}"


SKILL = "---\nname: investigate\ndescription: d\ntriggers:\n  - fix this bug\n---\n# Investigate\n"


@pytest.fixture
def old_box(tmp_path: Path) -> Sandbox:
    """A sandbox whose files are old enough for a snapshot to be trusted at once."""
    import os
    import time

    box = Sandbox(str(tmp_path / "box"))
    box.add_skill("investigate", SKILL)
    box.configure(skill_routing="on", skill_contracts="on", gate="on")
    del os
    time.sleep(2.1)  # ctime can't be set back: wait until it isn't racy any more
    return box


def test_routing_stays_within_its_budget(old_box: Sandbox) -> None:
    payload = {"session_id": "a", "cwd": old_box.work, "hook_event_name": "UserPromptSubmit", "prompt": "fix this bug"}
    found = modules_after(old_box, "UserPromptSubmit", payload)
    assert "gstack_plugins.lexical_scorer" in found
    check(found, ROUTE)


def test_a_switched_off_feature_costs_the_frame_only(old_box: Sandbox) -> None:
    old_box.configure()
    payload = {"session_id": "a", "cwd": old_box.work, "hook_event_name": "UserPromptSubmit", "prompt": "fix this bug"}
    check(modules_after(old_box, "UserPromptSubmit", payload), ALWAYS)


def test_this_python_is_the_one_that_is_measured(old_box: Sandbox) -> None:
    assert Path(launcher_path(old_box.root)).read_text().startswith(f"#!{sys.executable} -IS\n")

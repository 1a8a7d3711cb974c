"""The hook imports what the budget allows and nothing else: counters, because noise doesn't move them.

Starts the real process on a real payload and looks at its ``sys.modules`` at the very end.
"""

import json
import sys
import time
from pathlib import Path

import pytest
from claude_records import Records

from gstack.launcher import launcher_path
from gstack.lowlevel import POSIX
from gstack.sandbox import Sandbox
from gstack.testing import FakeSite

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
ALLOWED_C = {"_json", "fcntl", "gc", "pwd", "_sha2", "_sha256"}
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
    "gstack.shortjson",
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
    "gstack.values",
    "gstack.values.skills",
    "gstack_hosts.claude_code.plugins",
    "gstack_hosts.claude_code.skills",
    "gstack_hosts.claude_code.paths",
}


TOOLS = {"gstack.values", "gstack.values.tools", "gstack_hosts.claude_code.tools"}
STOP = TOOLS | {
    "gstack.contracts",
    "gstack.contracts.hook",
    "gstack.transcript",
    "gstack.values.events",
    *(f"gstack_hosts.claude_code.{name}" for name in ["events", "frequent", "loads", "needles", "records"]),
    "gstack_hosts.claude_code.transcript",
}
BY_LOAD = {f"gstack.contracts.{name}" for name in ["early", "records", "session_kind", "status"]}
VERDICT = BY_LOAD | {
    "gstack.values.contracts",
    *(f"gstack.contracts.{name}" for name in ["block_text", "check", "decision", "matching", "runs", "schema"]),
    "gstack.contracts.waivers",
    *(f"gstack.shell{name}" for name in ("", "_reader", "_words")),
    "gstack_plugins",
    "gstack_plugins.report_labels",
    "gstack_plugins.report_labels.report",
    *(f"gstack_plugins.check_after_last_edit{n}" for n in ("", ".commands", ".names", ".table", ".wrappers")),
}
GATE = TOOLS | {
    "gstack.gate",
    *(
        f"gstack.gate.{name}"
        for name in ["decision", "freshness", "hook", "index", "names", "texts", "audit", "refresh", "spool"]
    ),
    "gstack.values.gate",
    "gstack_plugins",
    "gstack_plugins.policy_bundle",
}


def modules_after(box: Sandbox, event: str, payload: dict[str, object]) -> set[str]:
    """The modules of the hook process when it ends: `_exit` is its last act, and here it writes the list first."""
    out = Path(box.folder) / "modules"
    first = "    import marshal, sys\n"
    spy = first + (
        "    import posix\n    real = posix._exit\n"
        "    def _exit(code):\n"
        f"        fd = posix.open({str(out)!r}, 577, 384)\n"
        "        posix.write(fd, ' '.join(sys.modules).encode())\n        real(code)\n"
        "    posix._exit = _exit\n"
    )
    launcher = Path(launcher_path(box.root))
    kept = launcher.read_text()
    assert first in kept
    launcher.write_text(kept.replace(first, spy))
    try:
        for number in range(12):  # the first may take the slow road, others store the code of what they met
            assert box.run(event, payload | {"session_id": f"s{number}"}).code == 0
            found = set(out.read_text().split())
            if number > 2 and "gstack.bootstore" not in found:
                break
    finally:
        launcher.write_text(kept)
    return found


def check(found: set[str], allowed: set[str]) -> None:
    extra = found - INTERPRETER - ALLOWED_C - allowed
    assert not extra, f"the hook may not import {sorted(extra)}"


CONTRACT = """---
name: investigate
description: d
contract:
  version: 1
  items:
    - {id: report, kind: report_labels, heading: DEBUG REPORT, labels: [Fix]}
    - {id: repro, kind: check_after_last_edit}
---
body
"""
OUTSIDE = """
from gstack.api import hookimpl
class One:
    name = "{name}"
    fields = ()
    def prepare(self, skills): return 1
    def score(self, prompt, index): return []
@hookimpl
def gstack_{group}(): return [One()]
"""
SKILL = "---\nname: investigate\ndescription: d\ntriggers:\n  - fix this bug\n---\n# Investigate\n"


@pytest.fixture
def old_box(tmp_path: Path) -> Sandbox:
    """A sandbox whose files are old enough for a snapshot to be trusted at once."""
    box = Sandbox(str(tmp_path / "box"))
    box.add_skill("investigate", SKILL)
    box.configure(skill_routing="on", skill_contracts="on", gate="on")
    time.sleep(2.1)  # ctime can't be set back: wait until it isn't racy any more
    return box


def test_routing_stays_within_its_budget(old_box: Sandbox) -> None:
    old_box.configure(skill_routing="on")
    payload = {"session_id": "a", "cwd": old_box.work, "hook_event_name": "UserPromptSubmit", "prompt": "fix this bug"}
    found = modules_after(old_box, "UserPromptSubmit", payload)
    assert "gstack_plugins.lexical_scorer" in found
    check(found, ROUTE)


def test_an_outside_plug_in_that_scores_adds_its_isolation(old_box: Sandbox, tmp_path: Path) -> None:
    old_box.configure(skill_routing="on", route_shadow_scorers="acme.scorer")
    site = FakeSite(str(tmp_path / "site"), old_box)
    for name, group in (("acme.scorer", "trigger_scorers"), ("acme.kind", "contract_kinds")):
        module = name.replace(".", "_")
        site(module, {f"gstack.{group}": {name: module}}, {module + ".py": OUTSIDE.format(name=name, group=group)})
    payload = {"session_id": "a", "cwd": old_box.work, "hook_event_name": "UserPromptSubmit", "prompt": "fix this bug"}
    assert old_box.run("UserPromptSubmit", payload).code == 0
    time.sleep(2.1)  # the first import wrote bytecode into the folder
    found = modules_after(old_box, "UserPromptSubmit", payload)
    assert "acme_scorer" in found
    check(found, ROUTE | {"acme_scorer", "gstack.isolation"})


def transcript(box: Sandbox, *records: dict[str, object]) -> str:
    path = Path(box.folder) / "t.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def stop(box: Sandbox, path: str) -> dict[str, object]:
    return {
        "session_id": "a", "cwd": box.work, "hook_event_name": "Stop", "transcript_path": path,
        "stop_hook_active": False, "last_assistant_message": "Done.", "background_tasks": [],
    }  # fmt: skip


def test_a_stop_stays_within_its_budget(old_box: Sandbox) -> None:
    old_box.add_skill("investigate", CONTRACT)
    time.sleep(2.1)
    text = {
        "type": "assistant",
        "uuid": "1",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    }
    path = transcript(old_box, text)
    check(modules_after(old_box, "Stop", stop(old_box, path)), ALWAYS | STOP)
    load = {"type": "tool_use", "id": "t", "name": "Skill", "input": {"skill": "investigate"}}
    path = transcript(
        old_box,
        {"type": "assistant", "uuid": "2", "message": {"role": "assistant", "content": [load]}},
        {
            "type": "user",
            "uuid": "3",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "Launching"}],
            },
            "toolUseResult": {"success": True, "commandName": "investigate"},
        },
        text,
    )
    found = modules_after(old_box, "Stop", stop(old_box, path))
    assert "gstack_plugins.report_labels" in found
    check(found, ALWAYS | STOP | VERDICT)
    asking = stop(old_box, path) | {"last_assistant_message": "Shall I?"}
    check(modules_after(old_box, "Stop", asking), ALWAYS | STOP | BY_LOAD)


def test_a_run_that_is_judged_by_its_end_adds_little(old_box: Sandbox) -> None:
    old_box.add_skill("investigate", CONTRACT)
    time.sleep(2.1)
    session = Records()
    session.skill("investigate")
    for number in range(50):
        session.bash(f"ls {number}", "word " * 10_000)
    session.says("Done.")
    path = transcript(old_box, *session.all)
    found = modules_after(old_box, "Stop", stop(old_box, path))
    assert "gstack.contracts.by_end" in found
    check(found, ALWAYS | STOP | VERDICT | {"gstack.contracts.by_end", "gstack_hosts.claude_code.run_end"})


def test_the_gate_stays_within_its_budget(old_box: Sandbox) -> None:
    payload = {
        "session_id": "a", "cwd": old_box.work, "hook_event_name": "PreToolUse", "tool_name": "Skill",
        "tool_input": {"skill": "investigate"}, "tool_use_id": "t",
    }  # fmt: skip
    # there is no bundle, which is an error
    check(modules_after(old_box, "PreToolUse", payload), ALWAYS | GATE | {"gstack.errors"})


def test_a_switched_off_feature_costs_the_frame_only(old_box: Sandbox) -> None:
    old_box.configure()
    payload = {"session_id": "a", "cwd": old_box.work, "hook_event_name": "UserPromptSubmit", "prompt": "fix this bug"}
    found = modules_after(old_box, "UserPromptSubmit", payload)
    check(found, ALWAYS)
    assert "_json" not in found, "a short payload is read without it"


def test_this_python_is_the_one_that_is_measured(old_box: Sandbox) -> None:
    assert Path(launcher_path(old_box.root)).read_text().startswith(f"#!{sys.executable} -ISXutf8\n")

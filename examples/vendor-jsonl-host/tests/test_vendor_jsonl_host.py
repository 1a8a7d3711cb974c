"""The kit that every host adapter should pass, with what only we know of the agent, and the real hook process."""

import json
import time
from pathlib import Path

import pytest
import vendor_jsonl_host

from gstack import api
from gstack.api import Answer
from gstack.testing import Capture, HostAdapterConformance, Sample

HOST = "vendor.jsonl"
BASE = {"agent": "jsonl-agent", "run": "r1", "dir": "/home/u/work", "log": "/home/u/.jsonl-agent/runs/r1.jsonl"}
SKILL = """\
---
name: investigate
description: Finds the root cause of a bug.
triggers:
  - fix this bug
contract:
  version: 1
  items:
    - id: report
      kind: report_labels
      heading: DEBUG REPORT
      labels: [Root cause, Fix]
---
# Investigate
"""


def write_run(path, *records):
    """A transcript with these records, a second apart."""
    path.parent.mkdir(parents=True, exist_ok=True)
    now = time.time() - 600
    path.write_text("".join(json.dumps({"at": now + n, **record}) + "\n" for n, record in enumerate(records)))
    return path


def agent(tool, ident, **given):
    """A call with its result."""
    call = {"who": "agent", "do": tool, "id": ident, "with": given}
    return call, {"who": "tool", "id": ident, "ok": True, "text": "ok"}


class TestVendorJsonl(HostAdapterConformance):
    plugin = vendor_jsonl_host

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.folder = tmp_path

    def captures(self):
        shell = {**BASE, "on": "use", "do": "shell", "id": "c1", "with": {"command": "make test"}}
        finish = {**BASE, "on": "finish", "again": False, "said": "Done."}
        return [
            Capture({**BASE, "on": "ask", "text": "fix it"}, {"kind": api.PROMPT_SUBMITTED, "prompt": "fix it"}),
            Capture({**BASE, "on": "ask", "text": "go on", "by": "hook"}, {"origin": "host"}),
            Capture(shell, {"kind": api.TOOL_PROPOSED, "tool": {"kind": "shell", "command": "make test", "id": "c1"}}),
            Capture(finish, {"kind": api.TURN_ENDING, "stop_active": False, "last_assistant_text": "Done."}),
            Capture({**BASE, "on": "ask"}, None),
            Capture({**BASE, "on": "wake"}, None),
        ]

    def samples(self):
        path = write_run(
            self.folder / "r1.jsonl",
            {"who": "person", "text": "fix this bug"},
            *agent("skill", "c1", name="investigate"),
            *agent("write", "c2", path="src/a.py"),
            {"who": "agent", "text": "Fixed."},
            {"who": "hook", "text": "something is missing"},
            {"who": "somebody new"},
        )
        return [
            Sample(
                path,
                [
                    {"type": "prompt", "text": "fix this bug"},
                    {"type": "call", "call.kind": "skill"},
                    {"type": "load", "name": "investigate", "how": "tool"},
                    {"type": "result", "ok": True},
                    {"type": "call", "call.kind": "edit", "call.paths": ("src/a.py",)},
                    {"type": "result", "ok": True},
                    {"type": "text", "text": "Fixed."},
                    {"type": "continuation", "text": "something is missing"},
                ],
            )
        ]

    def rendered(self):
        return [
            (Answer(inject="a hint"), "ask", {"context": "a hint"}),
            (Answer(deny="no"), "use", {"refuse": "no"}),
            (Answer(block_stop="no"), "finish", {"again": "no"}),
            (Answer(block_stop="no", notice="seen"), "finish", {"again": "no", "tell": "seen"}),
            (Answer(), "finish", None),
        ]

    def settings_files(self):
        mine = b'{"on": "finish", "run": ["say", "done"]}'
        return [None, b"", b"[]\n", b"[" + mine + b"]", b"[\n  " + mine + b",\n  7\n]\n"]

    def broken_settings(self):
        return [b'[{"on": ', b'{"hooks": []}', b"\xff\xfe[]"]


@pytest.fixture
def box(gstack_sandbox, fake_install):
    fake_install.project(Path(__file__).parents[1])
    gstack_sandbox.configure(skill_routing="on", skill_contracts="on")
    gstack_sandbox.add_skill("investigate", SKILL, folder=".jsonl-agent/skills")
    return gstack_sandbox


def test_the_agent_gets_its_hint(box):
    payload = {**BASE, "dir": box.work, "on": "ask", "text": "please fix this bug"}
    answer = box.run("ask", payload, host=HOST).answer
    assert "/investigate. Use the skill tool with investigate" in answer["context"]
    assert box.run("ask", {**payload, "text": "write a haiku"}, host=HOST).answer is None


def test_a_stop_is_held_once(box):
    path = Path(box.home, ".jsonl-agent", "runs", "r1.jsonl")
    records = [{"who": "person", "text": "fix this bug"}, *agent("skill", "c1", name="investigate")]
    write_run(path, *records, {"who": "agent", "text": "Fixed."})
    payload = {**BASE, "dir": box.work, "log": str(path), "on": "finish", "said": "Fixed.", "again": False}
    held = box.run("finish", payload, host=HOST).answer
    assert held["again"].startswith("SKILL_CONTRACT_UNMET investigate")

    report = "DEBUG REPORT\nRoot cause: a null check\nFix: added it"
    write_run(path, *records, {"who": "hook", "text": held["again"]}, {"who": "agent", "text": report})
    assert box.run("finish", {**payload, "said": report, "again": True}, host=HOST).answer is None
    assert "met_after_block skill=investigate" in box.log("skill-contract")[-1]


def test_setup_registers_and_uninstall_takes_away(box):
    done = box.cli("setup", "--host", HOST, "--skill-routing", "--skill-contracts")
    assert done.code == 0, done.err
    hooks = json.loads(Path(box.home, ".jsonl-agent", "hooks.json").read_text())
    assert [(hook["on"], hook["run"][1:]) for hook in hooks] == [("ask", [HOST, "ask"]), ("finish", [HOST, "finish"])]
    assert box.cli("uninstall", "--host", HOST).code == 0
    assert not Path(box.home, ".jsonl-agent", "hooks.json").exists()

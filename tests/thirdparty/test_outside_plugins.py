"""Both example distributions, installed with pip on top of the wheel, through the real hook and command line."""

import importlib.util
import json
import time
from pathlib import Path
from typing import Any

import pytest

from gstack.sandbox import Sandbox
from gstack.testing import Transcript

pytestmark = pytest.mark.skipif(
    not (importlib.util.find_spec("vendor_file_exists") and importlib.util.find_spec("vendor_jsonl_host")),
    reason="the two examples aren't installed here: tox -e thirdparty",
)
HOST = "vendor.jsonl"
SKILL = """---
name: investigate
description: Finds the root cause of a bug.
triggers:
  - fix this bug
contract:
  version: 1
  items:
    - id: report
      kind: vendor.file_exists
      path: out/report.md
---
# Investigate
"""


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    made = Sandbox(str(tmp_path / "box"))
    made.configure(skill_routing="on", skill_contracts="on")
    made.add_skill("investigate", SKILL)
    made.add_skill("investigate", SKILL, folder=".jsonl-agent/skills")
    return made


def report(box: Sandbox) -> Path:
    path = Path(box.work, "out", "report.md")
    path.parent.mkdir(exist_ok=True)
    path.write_text("# Report")
    return path


def test_both_are_found_in_the_environment(box: Sandbox) -> None:
    rows = {row["id"]: row for row in json.loads(box.cli("plugins", "list", "--json").out)}
    for name, dist in (("vendor.file_exists", "vendor-file-exists"), (HOST, "vendor-jsonl-host")):
        row = rows[name]
        assert (row["state"], row["in_hook"], row["distribution"], row["names"]) == ("ok", True, dist, [name])


def test_the_kind_holds_a_stop_once_and_is_then_met(box: Sandbox, tmp_path: Path) -> None:
    session = Transcript(tmp_path / "s.jsonl", cwd=box.work).prompt("fix this bug").load("investigate").say("Done.")
    held = box.run("Stop", session.stop())
    assert (held.answer or {})["decision"] == "block"
    assert "missing report. Fix: report: write out/report.md" in (held.answer or {})["reason"]
    session.feedback((held.answer or {})["reason"]).edit(str(report(box))).say("Written.")
    assert box.run("Stop", session.stop(active=True)).answer is None
    assert "met_after_block skill=investigate" in box.log("skill-contract")[-1]
    checked = box.cli("contract", "check", "--transcript", str(session.path), "--skill", "investigate")
    assert checked.code == 0, checked.err


def test_a_file_that_was_there_before_doesnt_count(box: Sandbox, tmp_path: Path) -> None:
    report(box)
    session = Transcript(tmp_path / "s.jsonl", cwd=box.work, start=time.time() + 60).load("investigate").say("Done.")
    answer = box.run("Stop", session.stop()).answer or {}
    assert answer["reason"].startswith("SKILL_CONTRACT_UNMET investigate")


def ask(box: Sandbox, on: str, **more: Any) -> dict[str, Any] | None:
    payload = {"agent": "jsonl-agent", "on": on, "run": "r1", "dir": box.work, **more}
    reply = box.run(on, payload, host=HOST)
    assert reply.code == 0
    return reply.answer


def test_the_host_gets_its_hint_and_its_stop_held_by_the_other_plug_in(box: Sandbox) -> None:
    answer = ask(box, "ask", text="please fix this bug") or {}
    assert "/investigate. Use the skill tool with investigate" in answer["context"]
    assert ask(box, "ask", text="please fix this bug") is None  # once a session

    path = Path(box.home, ".jsonl-agent", "runs", "r1.jsonl")
    path.parent.mkdir(parents=True)
    now = time.time() - 5
    records: list[dict[str, Any]] = [
        {"who": "person", "text": "fix this bug"},
        {"who": "agent", "do": "skill", "id": "c1", "with": {"name": "investigate"}},
        {"who": "tool", "id": "c1", "ok": True},
        {"who": "agent", "text": "Done."},
    ]

    def write() -> None:
        path.write_text(
            "".join(json.dumps({"at": now + place / 100, **one}) + "\n" for place, one in enumerate(records))
        )

    write()
    held = ask(box, "finish", log=str(path), said="Done.", again=False) or {}
    assert held["again"].startswith("SKILL_CONTRACT_UNMET investigate (contract v1): missing report.")
    report(box)
    records += [{"who": "hook", "text": held["again"]}, {"who": "agent", "text": "Written."}]
    write()
    assert ask(box, "finish", log=str(path), said="Written.", again=True) is None


def test_setup_and_uninstall_change_the_agents_own_file(box: Sandbox) -> None:
    path = Path(box.home, ".jsonl-agent", "hooks.json")
    path.parent.mkdir(exist_ok=True)
    before = '[\n  {"on": "finish", "run": ["say", "done"]}\n]\n'
    path.write_text(before)
    done = box.cli("setup", "--host", HOST, "--skill-routing", "--skill-contracts")
    assert done.code == 0, done.err
    hooks = json.loads(path.read_text())
    assert [hook["on"] for hook in hooks] == ["finish", "ask", "finish"]
    assert hooks[1]["run"][1:] == [HOST, "ask"]
    doctor = box.cli("doctor", "--host", HOST)
    assert "JSONL agent's hooks" in doctor.out.decode()
    assert box.cli("uninstall", "--host", HOST).code == 0
    assert path.read_text() == before


def test_claude_code_is_none_of_that_hosts_business(box: Sandbox) -> None:
    prompt = {"session_id": "c", "hook_event_name": "UserPromptSubmit", "prompt": "please fix this bug"}
    assert box.run("UserPromptSubmit", prompt, host=HOST).answer is None
    answer = box.run("UserPromptSubmit", prompt).answer or {}
    assert "Skill tool" in answer["hookSpecificOutput"]["additionalContext"]


def test_both_pass_the_check_on_what_is_installed(box: Sandbox) -> None:
    for name in ("vendor.file_exists", HOST):
        reply = box.cli("plugins", "check", name, timeout=120)
        assert reply.code == 0, reply.out + reply.err
        assert f"{name}: ok" in reply.out.decode()

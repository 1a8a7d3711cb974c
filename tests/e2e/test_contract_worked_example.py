"""Contracts through the real hook process: the worked example word for word, races, bad input, runaway expressions."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from contract_helpers import REPORT, SESSION, Transcript

from gstack.launcher import contract_command_path
from gstack.lowlevel import POSIX
from gstack.sandbox import Reply, Sandbox

SKILL = """---
name: investigate
description: Finds the root cause of a bug.
contract:
  version: 1
  items:
    - id: debug-report
      kind: report_labels
      heading: DEBUG REPORT
      labels: [Symptom, Root cause, Fix, Evidence]
    - id: repro-after-fix
      kind: check_after_last_edit
---
# Investigate
"""
FIXED = "Fixed: the null check was missing."
BLOCK = (
    "SKILL_CONTRACT_UNMET investigate (contract v1): missing debug-report, repro-after-fix. Fix: debug-report: "
    "print the DEBUG REPORT with real values for Symptom, Root cause, Fix, Evidence; repro-after-fix: run the test "
    "or repro again after your last edit and show its result. If an item truly does not apply, run '{command}' "
    'waive <item> --reason "<why>" (this session only; counted as a miss for follow). This blocks once.'
)


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    made = Sandbox(str(tmp_path / "box"))
    made.configure(skill_contracts="on")
    made.add_skill("investigate", SKILL)
    return made


def transcript(box: Sandbox) -> Transcript:
    folder = Path(box.home, ".claude", "projects", "-home-u-work")
    return Transcript(folder / f"{SESSION}.jsonl")


def payload(path: Path | str, last: str, *, active: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "session_id": SESSION,
        "transcript_path": str(path),
        "cwd": "/home/u/work",
        "permission_mode": "default",
        "hook_event_name": "Stop",
        "stop_hook_active": active,
        "last_assistant_message": last,
        "background_tasks": [],
        "session_crons": [],
        **more,
    }


def stop(box: Sandbox, made: Transcript, last: str, **more: Any) -> Reply:
    made.write()
    event = more.pop("event", "Stop")
    reply = box.run(event, payload(made.path, last, **{"hook_event_name": event, **more}))
    assert reply.code == 0
    return reply


def reason(reply: Reply) -> str:
    answer = reply.answer or {}
    assert set(answer) <= {"decision", "reason"}
    return str(answer.get("reason", ""))


def record(box: Sandbox) -> dict[str, Any]:
    path = Path(box.root, "skill-contracts", f"{SESSION}.json")
    return json.loads(path.read_text()) if path.exists() else {"runs": []}  # type: ignore[no-any-return]


def outcomes(box: Sandbox) -> list[str]:
    return [run["outcome"] for run in record(box)["runs"]]


def gstack(box: Sandbox, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gstack", *arguments]
    return subprocess.run(command, env=box.env, cwd=box.work, capture_output=True, text=True, timeout=60, check=False)


# ---------------------------------------------------------------------------------------- the worked example


@pytest.mark.parametrize("how", ["skill", "typed", "far back"])
def test_worked_example_block_fix_and_met_after_block(box: Sandbox, how: str) -> None:
    made = transcript(box).prompt("login fails")
    made = made.typed("investigate") if how == "typed" else made.load("investigate")
    for number in range(60 if how == "far back" else 0):  # six megabytes: judged by the end
        made.shell(f"cat {number}", "word " * 10_000)
    made.edit("/home/u/work/src/auth.ts").say(FIXED)

    held = stop(box, made, FIXED)
    assert held.answer == {"decision": "block", "reason": BLOCK.format(command=contract_command_path(box.root))}
    assert held.err == b""
    assert outcomes(box) == ["blocked"]

    made.feedback(reason(held)).shell("bun test", "12 pass").say(REPORT)
    through = stop(box, made, REPORT, active=True)
    assert (through.out, through.err) == (b"", b"")
    run = record(box)["runs"][0]
    assert (run["outcome"], run["items"]) == ("met_after_block", {"debug-report": "met", "repro-after-fix": "met"})
    assert [line.split(" ", 1)[1].split(" ")[0] for line in box.log("skill-contract")] == [
        "blocked",
        "met_after_block",
    ]

    # a later, unrelated turn of the session is never held by it
    made.prompt("thanks, and rename x").edit().say("Renamed.")
    assert stop(box, made, "Renamed.").out == b""
    assert outcomes(box) == ["met_after_block"]


def test_stopped_again_unmet_is_a_miss_and_the_report_says_so(box: Sandbox) -> None:
    made = transcript(box).prompt("login fails").load("investigate").edit().say(FIXED)
    held = stop(box, made, FIXED)
    made.feedback(reason(held)).say("I'd rather not.")
    assert stop(box, made, "I'd rather not.", active=True).out == b""
    assert outcomes(box) == ["miss"]
    done = gstack(box, "contract", "report", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["by_item"][0] == {
        "skill": "investigate", "item": "debug-report", "misses": 1, "runs": 1,
    }  # fmt: skip


@pytest.mark.skipif(not POSIX, reason="the launcher is a POSIX script")
def test_the_named_command_waives(box: Sandbox) -> None:
    """The command line of the block text, run as a model would, is found as a waiver."""
    made = transcript(box).prompt("x").load("investigate").edit().say(FIXED)
    held = stop(box, made, FIXED)
    command = f"'{contract_command_path(box.root)}' waive repro-after-fix --reason \"only docs changed\""
    assert command.split(" --reason")[0].replace("repro-after-fix", "<item>") in reason(held)
    ran = subprocess.run(["sh", "-c", command], env=box.env, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.startswith("waived repro-after-fix: only docs changed")
    made.feedback(reason(held)).shell(command, ran.stdout).say(REPORT)
    assert stop(box, made, REPORT, active=True).out == b""
    assert outcomes(box) == ["met_waived"]
    assert record(box)["runs"][0]["items"] == {"debug-report": "met", "repro-after-fix": "waived"}


def test_hook_and_check_agree(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").edit().say(FIXED)
    held = stop(box, made, FIXED)
    done = gstack(box, "contract", "check", "--transcript", str(made.path), "--skill", "investigate")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == reason(held)
    made.shell("bun test").say(REPORT).write()
    done = gstack(box, "contract", "check", "--transcript", str(made.path), "--skill", "investigate")
    assert done.returncode == 0
    assert json.loads(gstack(box, "contract", "report", "--json").stdout)["rows"][0]["result"] == "fixed_after_block"


# ------------------------------------------------------------------------------------------------ other stops


def test_a_subagents_stop_is_none_of_its_business(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").edit().say(FIXED)
    reply = stop(box, made, FIXED, event="SubagentStop", agent_id="a1", agent_type="general-purpose")
    assert reply.out == b""
    assert outcomes(box) == []


def test_a_question_is_not_held_unless_nobody_is_there(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").say("Which one?")
    assert stop(box, made, "Which one?").out == b""
    box.extra["CLAUDE_CODE_SESSION_ATTENDED"] = "0"
    assert reason(stop(box, made, "Which one?"))


def test_running_agents_defer_and_shells_do_not(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").background_agent("a1").say("Sent.")
    task = {"id": "a1", "type": "subagent", "status": "running", "description": "x"}
    assert stop(box, made, "Sent.", background_tasks=[task]).out == b""
    assert outcomes(box) == ["deferred"]
    shell = {"id": "b1", "type": "shell", "status": "running", "description": "x", "command": "sleep 9"}
    made.agent_done("a1").say("Back.")
    assert reason(stop(box, made, "Back.", background_tasks=[shell]))


def test_observe_says_nothing(box: Sandbox) -> None:
    box.configure(skill_contracts="observe")
    made = transcript(box).prompt("x").load("investigate").edit().say(FIXED)
    assert stop(box, made, FIXED).out == b""
    assert box.log("skill-contract")[-1].split(" ")[1:3] == ["observe", "miss"]
    assert gstack(box, "contract", "report").stdout.count("(observed)") == 1


def test_a_session_without_such_a_skill_leaves_nothing(box: Sandbox) -> None:
    made = transcript(box).prompt("x").edit().say(FIXED)
    assert stop(box, made, FIXED).out == b""
    assert not Path(box.root, "skill-contracts").exists()
    assert box.log("skill-contract") == []


# ------------------------------------------------------------------------------------------------------ races


def at_once(box: Sandbox, made: Transcript, count: int, last: str) -> list[Reply]:
    made.write()
    replies: list[Reply] = []
    threads = [
        threading.Thread(target=lambda: replies.append(box.run("Stop", payload(made.path, last)))) for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def test_hooks_at_the_same_time_hold_once(box: Sandbox) -> None:
    """The plug-in and the settings file may both register the hook; the host starts both at once."""
    made = transcript(box).prompt("x").load("investigate").edit().say(FIXED)
    assert [bool(reply.out) for reply in at_once(box, made, 4, FIXED)].count(True) == 1
    assert outcomes(box) == ["blocked"]


def test_a_record_that_is_deleted_in_between_does_not_hold_again(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").edit().say(FIXED)
    assert reason(stop(box, made, FIXED))
    Path(box.root, "skill-contracts", f"{SESSION}.json").unlink()
    assert [reply.out for reply in at_once(box, made, 2, FIXED)] == [b"", b""]


def test_sessions_do_not_disturb_each_other(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").edit().say(FIXED)
    made.write()
    for session in ("s-1", "s-2"):
        assert box.run("Stop", payload(made.path, FIXED, session_id=session)).out
    assert sorted(path.name for path in Path(box.root, "skill-contracts").glob("*.json")) == ["s-1.json", "s-2.json"]


# -------------------------------------------------------------------------------------------------- bad input


def trouble(reply: Reply, cause: str, *, said: bool) -> None:
    """Fails open with the line on standard error and, once a session, as a message to the person."""
    lines = reply.err.decode().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("gstack-skill-contract: SKILL_CONTRACT_STATE_ERROR ")
    assert cause in lines[0]
    assert lines[0].endswith("; stop allowed, miss not recorded (see docs/reference/exit-codes.md#state-error)")
    assert reply.answer == ({"systemMessage": lines[0]} if said else None)


def test_33_mib(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").edit().say(FIXED)
    made.write()
    with made.path.open("ab") as file:
        file.truncate(33 << 20)
    for said in (True, False):
        trouble(box.run("Stop", payload(made.path, FIXED)), "32 MiB", said=said)


def test_a_transcript_of_unknown_shape(box: Sandbox) -> None:
    path = Path(box.work, "t.jsonl")
    path.write_text('{"hello": "world"}\n')
    for said in (True, False):
        trouble(box.run("Stop", payload(path, FIXED)), "", said=said)
    canary = json.loads(Path(box.root, "hooks", "skill-contract.canary.json").read_text())
    assert canary["count"] == 2


@pytest.mark.parametrize("path", ["", "/nowhere/at/all.jsonl"])
def test_no_transcript(box: Sandbox, path: str) -> None:
    reply = box.run("Stop", payload(path, FIXED))
    assert (reply.out, reply.err) == (b"", b"")
    assert not Path(box.root, "hooks", "skill-contract.canary.json").exists()


def test_an_invalid_contract(box: Sandbox) -> None:
    path = box.add_skill("investigate", SKILL.replace("report_labels", "vendor.gone"))
    made = transcript(box).prompt("x").load("investigate").say(FIXED)
    for said in (True, False):
        trouble(stop(box, made, FIXED), f'{path}: contract item "debug-report": unknown kind', said=said)


def test_a_session_id_with_separators(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").say(FIXED)
    trouble(stop(box, made, FIXED, session_id="../../x"), "can't be a file name", said=True)
    assert not Path(box.root, "skill-contracts").exists()


def test_a_truncated_record_is_left_alone(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").say(FIXED)
    assert reason(stop(box, made, FIXED))
    path = Path(box.root, "skill-contracts", f"{SESSION}.json")
    data = path.read_bytes()[:-20]
    path.write_bytes(data)
    trouble(stop(box, made, FIXED), f"{path}: the record is corrupt", said=True)
    assert path.read_bytes() == data


@pytest.mark.skipif(not POSIX or os.geteuid() == 0, reason="root writes everywhere")
def test_a_state_root_that_cannot_be_written(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").say(FIXED)
    Path(box.root, "skill-contracts").mkdir(mode=0o500)
    trouble(stop(box, made, FIXED), "can't be written", said=True)


def test_a_records_folder_that_is_a_file(box: Sandbox) -> None:
    made = transcript(box).prompt("x").load("investigate").say(FIXED)
    Path(box.root, "skill-contracts").write_text("")
    for said in (True, False):
        trouble(stop(box, made, FIXED), "skill-contracts", said=said)


def test_a_runaway_expression_ends_at_the_deadline(box: Sandbox) -> None:
    box.add_skill(
        "investigate",
        "---\nname: investigate\ncontract:\n  version: 1\n  items:\n    - id: sent\n      kind: agent_dispatch\n"
        "      match: '(a+)+$'\n---\n",
    )
    made = transcript(box).prompt("x").load("investigate")
    made.tool("Agent", {"description": "d", "prompt": "a" * 64 + "a," * 40 + "!"}, "done", toolUseResult={})
    made.say(FIXED)
    started = time.monotonic()
    reply = stop(box, made, FIXED)
    assert time.monotonic() - started < 6.5
    assert reply.out == b"" or set(reply.answer or {}) == {"systemMessage"}
    assert outcomes(box) == []
    assert "error" in box.log("skill-contract")[-1]


# --------------------------------------------------------------------------------------------- half a file


def test_truncating_the_transcript_changes_nothing_but_the_tail(box: Sandbox) -> None:
    """At any byte: silence, or a hold that names what the rest doesn't show; never trouble once a record is whole."""
    made = transcript(box).prompt("x").load("investigate").edit().shell("bun test").say(REPORT)
    whole = Path(made.write()).read_bytes()
    cuts = [*range(len(whole) - 40, len(whole), 7), *range(len(whole) // 3, len(whole), len(whole) // 5)]
    for number, cut in enumerate(cuts):
        made.path.write_bytes(whole[:cut])
        reply = box.run("Stop", payload(made.path, REPORT, session_id=f"cut-{number}"))
        assert (reply.code, reply.err) == (0, b"")
        assert not reply.out or set(reply.answer or {}) == {"decision", "reason"}

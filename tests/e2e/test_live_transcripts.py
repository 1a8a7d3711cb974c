"""Transcripts that the real Claude Code wrote in the live tests: read, judged, and their stops played again.

``GSTACK_LIVE_RECORD=tests/data/live pytest tests/live -m live`` writes them anew.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from live_support import AUDIT, DEPLOY, INVESTIGATE, REPORT

from gstack.cli import main
from gstack.sandbox import Sandbox
from gstack_hosts.claude_code import ClaudeCode

DATA = Path(__file__).parents[1] / "data" / "live"
BLOCKED = ("met_after_block_skill", "met_after_block_typed", "met_after_block_terminal", "miss")

#: A contract for a skill that has none, so that `check` can say whether it was loaded.
DEPLOY_CONTRACT = "contract:\n  version: 1\n  items: [{id: x, kind: check_after_last_edit}]\n---\n# Deploy"
SKILLS = {"investigate": INVESTIGATE, "audit": AUDIT, "deploy": DEPLOY.replace("---\n# Deploy", DEPLOY_CONTRACT)}

MET = {"debug-report": "met", "repro-after-fix": "met"}
CASES: list[tuple[str, str, int, dict[str, str]]] = [
    ("met_after_block_skill", "investigate", 0, MET),
    ("met_after_block_typed", "investigate", 0, MET),
    ("met_after_block_terminal", "investigate", 0, MET),
    ("miss", "investigate", 1, dict.fromkeys(MET, "missing")),
    ("background_agent", "audit", 0, {"reviewer": "met", "audit-report": "met"}),
    ("loaded_by_an_agent", "investigate", 6, {}),
    ("hinted", "investigate", 6, {}),
    ("denied_skill", "deploy", 6, {}),
    ("denied_read", "deploy", 6, {}),
]


def test_every_transcript_is_looked_at() -> None:
    assert {path.stem for path in DATA.glob("*.jsonl")} == {case[0] for case in CASES}


@pytest.mark.parametrize(("name", "skill", "code", "items"), CASES, ids=[case[0] for case in CASES])
def test_the_verdicts_are_those_of_the_live_run(
    name: str, skill: str, code: int, items: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / skill / "SKILL.md"
    file.parent.mkdir()
    file.write_text(SKILLS[skill])
    arguments = ["--transcript", str(DATA / f"{name}.jsonl"), "--skill", skill, "--skill-file", str(file), "--json"]
    assert main(["contract", "check", *arguments]) == code
    out = capsys.readouterr()
    if items:
        assert {item["id"]: item["status"] for item in json.loads(out.out)["items"]} == items
    else:
        assert "SKILL_CONTRACT_NOT_LOADED" in out.err


@pytest.mark.parametrize("name", [case[0] for case in CASES])
def test_the_run_is_the_end_of_the_whole(name: str) -> None:
    path, host = str(DATA / f"{name}.jsonl"), ClaudeCode()
    whole = host.read_transcript(path, max_bytes=1 << 20)
    assert whole
    run = host.read_run(path, skills=list(SKILLS), max_bytes=1 << 20)
    assert run == whole[len(whole) - len(run) :]
    assert bool(run) == (name in (*BLOCKED, "background_agent"))


def stop(path: Path, text: str, *, active: bool) -> dict[str, Any]:
    return {
        "session_id": "replayed",
        "hook_event_name": "Stop",
        "transcript_path": str(path),
        "stop_hook_active": active,
        "last_assistant_message": text,
        "background_tasks": [],
    }


@pytest.mark.parametrize("name", BLOCKED)
def test_the_stop_that_was_held_is_held_again_and_only_that_one(name: str, tmp_path: Path) -> None:
    box = Sandbox(str(tmp_path / "box"))
    box.configure(skill_contracts="on")
    box.add_skill("investigate", INVESTIGATE)
    records = (DATA / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(records) if b'"content": "Stop hook feedback' in line)
    path = tmp_path / "replayed.jsonl"
    path.write_bytes(b"".join(records[:place]))
    held = box.run("Stop", stop(path, "Fixed it.", active=False)).answer
    assert held is not None
    recorded = json.loads(records[place])["message"]["content"]
    assert recorded.startswith("Stop hook feedback:\n" + held["reason"].partition("run '")[0])
    path.write_bytes(b"".join(records))
    last = "It is fixed. STATUS: DONE" if name == "miss" else REPORT
    assert box.run("Stop", stop(path, last, active=True)).answer is None
    record = json.loads(Path(box.root, "skill-contracts", "replayed.json").read_text())
    assert [run["outcome"] for run in record["runs"]] == ["miss" if name == "miss" else "met_after_block"]

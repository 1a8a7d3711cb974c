"""``gstack replay``: options, bad input, the three forms of the report, and Ctrl-C on the real command."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from contract_helpers import REPORT
from gate_support import install
from replay_support import box, policy, transcript, typical, write_json

from gstack.cli import main

Run = Any


@pytest.fixture
def env(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    env = box(tmp_path)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return env


@pytest.fixture
def run(env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*args: str) -> tuple[int, str, str]:
        code = main(["replay", *args])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_text_tells_what_would_have_happened(run: Run, tmp_path: Path) -> None:
    typical(tmp_path)
    code, out, err = run()
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0].startswith("1 transcripts replayed (0.0 MiB, 2026-11-30 to 2026-11-30)")
    assert "PROMPTS 2 typed, 1 would have been routed" in lines
    assert "/investigate 1 1 0 0" in lines
    assert "what the model did by itself: 1 loaded it, 0 loaded another, 0 loaded none" in lines
    assert "not routed: below-threshold 1" in lines
    assert "RUNS 1 of a skill with a contract, 1 would have been held" in lines
    assert "investigate 1 1 1 unmet at a stop, met later" in lines
    assert "investigate repro-after-fix 1" in lines
    assert "USES 1 of skills, subagents and typed commands" in lines
    assert "0 would have been warned, 0 would have been blocked" in lines
    assert "no policy bundle is in force here" in lines


def test_nothing_to_replay(run: Run, tmp_path: Path) -> None:
    code, out, _ = run()
    assert code == 0
    assert out.splitlines()[0] == "there are no transcripts here: --path takes a file or folder"
    (tmp_path / "empty").mkdir()
    data = json.loads(run("--path", str(tmp_path / "empty"), "--json")[1])
    assert data["files"]["total"] == 0


#: The keys that scripts may rely on (docs/how-to/replay.md).
KEYS = {
    "files": {"total", "replayed", "left_out", "bytes", "first", "last", "faults", "copies"},
    "prompts": {"total", "typed", "routed", "reasons"},
    "routes": {"total", "followed", "other", "none", "by_skill", "rows", "rows_left_out"},
    "runs": {"total", "held", "by_skill", "by_item", "rows", "rows_left_out"},
    "uses": {"total", "warned", "blocked", "by_kind", "by_policy", "changed", "changes"},
}


def test_json_has_the_documented_keys(run: Run, tmp_path: Path) -> None:
    typical(tmp_path)
    data = json.loads(run("--json")[1])
    about = {"version", "host", "path", "since", "project", "skills", "contracts", "bundle", "other", "notes"}
    assert set(data) == {*KEYS, *about}
    for name, keys in KEYS.items():
        assert set(data[name]) == keys
    (route,) = data["routes"]["rows"]
    assert route == {
        "ts": route["ts"], "session": "s1", "skill": "investigate", "score": 1.0, "trigger": "fix this bug",
        "did": "followed", "loaded": "investigate", "prompt": None,
    }  # fmt: skip
    (found,) = data["runs"]["rows"]
    assert found["held"] == ["debug-report", "repro-after-fix"]
    assert (found["outcome"], found["items"], found["why"]) == ("met_after_block", [], None)
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "replay.md").read_text("utf-8")
    for name in (*KEYS, *about, *(key for keys in KEYS.values() for key in keys)):
        assert f"`{name}`" in text, f"docs/how-to/replay.md doesn't tell of {name}"


def test_prompts_show_only_when_asked_for(run: Run, tmp_path: Path) -> None:
    transcript(tmp_path).prompt("fix this bug in SECRETPLACE\nplease").say("ok").write()
    for args in ((), ("--json",)):
        assert "SECRETPLACE" not in run(*args)[1]
    assert '/investigate 1.00: "fix this bug in SECRETPLACE please"' in run("--show-prompts")[1]
    assert json.loads(run("--show-prompts", "--json")[1])["routes"]["rows"][0]["prompt"].startswith("fix this bug in S")


def test_project_and_since_narrow(run: Run, tmp_path: Path) -> None:
    typical(tmp_path, "s1")
    other = transcript(tmp_path, "s2", "-elsewhere")
    other.prompt("fix this bug").say("ok")
    for record in other.records:
        record["cwd"] = "/home/u/elsewhere"
        record["timestamp"] = "2025-01-01T12:00:00.000Z"
    other.write()
    for args, replayed, typed in (
        ((), 2, 3),
        (("--project", "work"), 1, 2),
        (("--project", "/home/u"), 2, 3),
        (("--project", "/home/u/elsewhere/"), 1, 1),
        (("--project", "/home/u/else"), 0, 0),
        (("--since", "2026-11-01"), 2, 2),
        (("--since", "2026-11-01", "--project", "elsewhere"), 1, 0),
    ):
        data = json.loads(run("--json", *args)[1])
        assert (data["files"]["replayed"], data["prompts"]["typed"]) == (replayed, typed), args
    os.utime(other.path, (1, 1))
    data = json.loads(run("--json", "--since", "3000d")[1])
    assert data["files"]["left_out"] == {"too old": 1}


def test_a_path_is_one_file_or_a_folder_all_the_way_down(run: Run, tmp_path: Path) -> None:
    one = typical(tmp_path)
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "x.jsonl").write_bytes(Path(one).read_bytes())
    (deep / "notes.txt").write_text("none")
    (deep / "odd.jsonl").write_text('{"type": "other"}\n')
    (deep / "gone.jsonl").symlink_to("nowhere")
    assert json.loads(run("--path", one, "--json")[1])["files"]["replayed"] == 1
    data = json.loads(run("--path", str(tmp_path / "a"), "--json")[1])
    assert data["files"]["replayed"] == 1
    assert data["files"]["left_out"] == {"no transcript": 1}


def test_subagents_files_count_with_their_session(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    """What a subagent uses is asked of the gate; its prompts are nobody's."""
    path = Path(typical(tmp_path))
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    inner = transcript(tmp_path, "inner").prompt("fix this bug").tool("Skill", {"skill": "verify"}, "ok")
    for record in inner.records:
        record.update(isSidechain=True, agentId="a1")
    inner.path = folder / "agent-a1.jsonl"
    inner.write()
    data = json.loads(run("--json")[1])
    assert data["files"]["replayed"] == 2
    assert data["prompts"]["typed"] == 2
    assert data["uses"]["total"] == 2
    assert json.loads(run("--json", "--path", str(path))[1])["files"]["replayed"] == 2


def test_uses_by_policy_and_what_another_bundle_would_change(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    typical(tmp_path)
    agent = {"description": "look", "prompt": "look around", "subagent_type": "Explore"}
    transcript(tmp_path, "s2").prompt("look").tool("Agent", agent, "seen").typed("ship").say("ok").write()
    install(Path(env["GSTACK_STATE_ROOT"]), policy())
    before = sorted(str(path) for path in Path(env["GSTACK_STATE_ROOT"]).rglob("*"))
    code, out, _ = run()
    assert code == 0
    assert sorted(str(path) for path in Path(env["GSTACK_STATE_ROOT"]).rglob("*")) == before
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "USES 3 of skills, subagents and typed commands" in lines
    assert "2 would have been warned, 1 would have been blocked" in lines
    assert "Investigate retired block skill acme/investigate 1" in lines
    assert "No explorers warn subagent explore 1" in lines
    # a skill that the gate would block isn't routed to
    assert "PROMPTS 3 typed, 0 would have been routed" not in lines
    assert any("blocked-by-policy 1" in line for line in lines)
    other = write_json(tmp_path / "other.json", policy(version=4, policies=policy()["policies"][1:]))
    data = json.loads(run("--json", "--gate-bundle", str(other))[1])
    assert data["bundle"] == {"org": "acme", "version": 3}
    assert data["other"] == {"org": "acme", "version": 4}
    assert data["uses"]["changes"] == [
        {"name": "acme/investigate", "kind": "skill", "before": "block", "after": "allow", "policy": "approved",
         "uses": 1, "reason": ""}
    ]  # fmt: skip
    assert "with the other bundle (acme 4): 1 would be decided otherwise" in run("--gate-bundle", str(other))[1]


def test_a_bundle_in_force_that_cant_be_used_is_said(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    typical(tmp_path)
    root = Path(env["GSTACK_STATE_ROOT"])
    install(root, policy())
    (root / "gate" / "bundle.json").write_text("{}")
    code, out, _ = run()
    assert code == 0
    assert "note: the policy bundle in force can't be used: " in out


def test_an_invalid_contract_is_said_and_judges_nothing(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    typical(tmp_path)
    skill = tmp_path / "home/.claude/skills/investigate/SKILL.md"
    skill.write_text(skill.read_text().replace("report_labels", "no_such_kind"))
    data = json.loads(run("--json")[1])
    assert data["runs"]["by_skill"] == [{"skill": "investigate", "runs": 1, "held": 0, "outcomes": {"invalid": 1}}]
    assert "no_such_kind" in data["notes"][0]
    assert "no_such_kind" in data["runs"]["rows"][0]["why"]


def test_an_expression_that_runs_away_costs_only_its_run(
    run: Run, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gstack.replay.scene.ITEM_LIMIT", 0.2)
    skill = tmp_path / "home/.claude/skills/investigate/SKILL.md"
    skill.write_text(
        "---\ncontract:\n  version: 1\n  items:\n    - {id: x, kind: check_after_last_edit, match: '(a+)+$'}\n---\n"
    )
    transcript(tmp_path).load("investigate").edit().shell("a" * 40 + "!").say("Done.").write()
    (row,) = json.loads(run("--json")[1])["runs"]["rows"]
    assert row["outcome"] == "cannot_tell"
    assert "took longer" in row["why"]


BAD = {
    "no such path": (["--path", "no/such/place"], 3, "no/such/place: there is no such file or folder"),
    "empty path": (["--path", ""], 2, "--path needs the name"),
    "odd time": (["--since", "soon"], 2, "'soon' is no time such as 12h, 30d, 4w or 2026-11-01"),
    "zero time": (["--since", "0d"], 2, "'0d' is no time"),
    "no such bundle": (["--gate-bundle", "none.json"], 3, "none.json can't be read"),
    "no bundle at all": (["--gate-bundle", "{here}/bad.json"], 3, "bad.json"),
    "no such host": (["--host", "netscape"], 1, "no working host adapter is called 'netscape'"),
    "a page into nowhere": (["--html", "{here}/none/x.html"], 3, "its folder doesn't exist"),
    "a page onto a folder": (["--html", "{here}"], 3, "it is a folder"),
    "unknown option": (["--fast"], 2, "--fast"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(name: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("[1]")
    args, expected, words = BAD[name]
    code, out, err = run(*[arg.replace("{here}", str(tmp_path)) for arg in args])
    assert code == expected
    assert out == ""
    assert words in err
    assert len(err.splitlines()) == 1


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_file_that_cant_be_read_costs_only_itself(run: Run, tmp_path: Path) -> None:
    Path(typical(tmp_path, "s1")).chmod(0)
    typical(tmp_path, "s2")
    code, out, _ = run()
    assert code == 0
    assert "left out: 1 failed" in out


def test_a_file_that_is_too_large_costs_only_itself(run: Run, tmp_path: Path) -> None:
    path = Path(typical(tmp_path, "s1"))
    typical(tmp_path, "s2")
    with path.open("ab") as file:
        file.truncate(33 << 20)
    code, out, _ = run()
    assert code == 0
    assert "1 transcripts replayed" in out
    assert "left out: 1 failed" in out
    assert "32 MiB" in out


def test_the_page_is_written(run: Run, tmp_path: Path) -> None:
    typical(tmp_path)
    page = tmp_path / "replay.html"
    code, out, _ = run("--html", str(page))
    assert code == 0
    assert out.endswith(f"written: {page}\n")
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "fix this bug" in text


def test_ctrl_c_then_the_same_command_again(env: dict[str, str], tmp_path: Path) -> None:
    """The real command with worker processes: it ends with 130 and one line, leaves no process, and goes on."""
    for place in range(40):
        made = transcript(tmp_path, f"s{place:02d}").prompt("fix this bug").load("investigate")
        for _ in range(16):
            made.shell("pytest", "x" * 40_000)
        made.say(REPORT).write()
    command = [sys.executable, "-c", "import sys; from gstack.cli import main; sys.exit(main())", "replay", "--json"]
    started = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}, start_new_session=True
    )
    journal = None
    while journal is None and process.poll() is None and time.monotonic() < started + 60:
        journal = next((p for p in Path(env["GSTACK_STATE_ROOT"]).glob("replay/*.jsonl") if count(p) > 4), None)
        time.sleep(0.01)
    if process.poll() is not None:
        pytest.skip("this machine replays faster than a test can press Ctrl-C")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the replay ended before Ctrl-C reached it")
    assert process.returncode == 130
    assert out == b""
    assert err.decode().splitlines() == ["interrupted: the same command goes on where it was"]
    assert journal is not None
    assert 4 < count(journal) <= 41
    done = subprocess.run(command, capture_output=True, env={**os.environ}, check=True)
    assert b"going on with a replay that was broken off" in done.stderr
    data = json.loads(done.stdout)
    assert (data["files"]["replayed"], data["routes"]["followed"], data["runs"]["total"]) == (40, 40, 40)
    assert not Path(env["GSTACK_STATE_ROOT"]).exists()


def count(path: Path) -> int:
    return path.read_bytes().count(b"\n")

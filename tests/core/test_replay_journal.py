"""The checkpoint: broken off anywhere, a replay goes on where it was and says the same in the end."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from replay_support import box, run, transcript, typical

from gstack.replay import run as runs
from gstack.replay.engine import Job
from gstack.replay.journal import Journal, digest_of
from gstack.replay.rows import FileResult, PromptRow, RouteRow, RunRow, UseRow
from gstack.replay.run import Options, replay

RESULT = FileResult(
    "/x/a.jsonl",
    7,
    session="s\udc80",
    prompts=(PromptRow(1 << 63, 1.5, "routed"),),
    routes=(RouteRow(1 << 63, None, "s", "qa", 0.67, "qa test this", "other", "verify", ""),),
    runs=(RunRow(2, 3.0, "s", "qa", "l", "blocked", ("a", "b"), ("a", "b"), ""),),
    uses=(UseRow(3, 4.0, "s", "skill", "acme/qa", "warn", "P", "why", "", "", ""),),
)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    env = box(tmp_path)
    for place in range(6):
        typical(tmp_path, f"s{place}")
    return env


def broken_off(env: dict[str, str], after: int, **more: Any) -> None:
    """Replay and break off after so many files."""
    left = after

    def progress(done: int, total: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(env, Options(processes=1, **more), progress=progress)


def journals(env: dict[str, str]) -> list[Path]:
    return sorted(Path(env["GSTACK_STATE_ROOT"]).glob("replay/*.jsonl"))


def done_now(env: dict[str, str], monkeypatch: pytest.MonkeyPatch, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """The report of a replay that goes on, and the files that it replayed."""
    seen: list[str] = []
    plain = runs.stream

    def stream(jobs: list[Job], *args: Any, **kwargs: Any) -> Any:
        seen.extend(os.path.basename(job.path) for job in jobs)
        return plain(jobs, *args, **kwargs)

    monkeypatch.setattr(runs, "stream", stream)
    return run(env, **more).as_dict(), sorted(seen)


@pytest.mark.parametrize("after", [1, 3, 5])
def test_it_goes_on_where_it_was(after: int, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(env).as_dict()
    broken_off(env, after)
    (journal,) = journals(env)
    assert len(journal.read_text().splitlines()) == 1 + after
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    found, replayed = done_now(env, monkeypatch)
    assert found == expected
    assert len(replayed) == 6 - after
    # nothing stays behind, not even the folders that were made for it
    assert not Path(env["GSTACK_STATE_ROOT"]).exists()


def test_the_state_folder_is_otherwise_as_it_was(env: dict[str, str]) -> None:
    root = Path(env["GSTACK_STATE_ROOT"])
    root.mkdir()
    (root / "config.yaml").write_text("skill_routing: off\n")
    run(env)
    assert sorted(path.name for path in root.rglob("*")) == ["config.yaml"]


def test_what_changed_since_is_replayed_again(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_off(env, 4)
    (journal,) = journals(env)
    done = [json.loads(line)[0] for line in journal.read_text().splitlines()[1:]]
    grown = Path(done[1])
    transcript(tmp_path, grown.stem).prompt("fix this bug").say("ok").write()
    found, replayed = done_now(env, monkeypatch)
    assert grown.name in replayed
    assert len(replayed) == 3
    assert found == run(env).as_dict()


@pytest.mark.parametrize("damage", ["cut", "garbage", "header", "empty", "version", "old"])
def test_a_damaged_checkpoint_costs_work_only(
    damage: str, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(env).as_dict()
    broken_off(env, 4)
    (journal,) = journals(env)
    lines = journal.read_bytes().splitlines(keepends=True)
    header = json.loads(lines[0])
    lines = {
        "cut": [*lines[:4], lines[4][:-30]],
        "garbage": [lines[0], b"\xff\x00{[\n", b"[1, 2]\n", b'["/x", [1], []]\n', b'["/x", "ab", []]\n', *lines[3:]],
        "header": [b"{}\n", *lines[1:]],
        "empty": [],
        "version": [json.dumps({**header, "version": 99}).encode() + b"\n", *lines[1:]],
        "old": [json.dumps({**header, "made": 1}).encode() + b"\n", *lines[1:]],
    }[damage]
    journal.write_bytes(b"".join(lines))
    found, replayed = done_now(env, monkeypatch)
    assert found == expected
    assert len(replayed) == {"cut": 3, "garbage": 4}.get(damage, 6)
    assert journals(env) == []


def test_a_result_that_makes_no_sense_is_replayed_again(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(env).as_dict()
    broken_off(env, 2)
    (journal,) = journals(env)
    header, first, second = journal.read_text().splitlines()
    entry = json.loads(first)
    entry[2] = entry[2][:3]
    journal.write_text("\n".join([header, json.dumps(entry), second]) + "\n")
    found, replayed = done_now(env, monkeypatch)
    assert found == expected
    assert len(replayed) == 5


def test_other_arguments_are_another_replay(env: dict[str, str], tmp_path: Path) -> None:
    broken_off(env, 2)
    broken_off(env, 2, project="work")
    (tmp_path / "home/.claude/skills/more").mkdir()
    (tmp_path / "home/.claude/skills/more/SKILL.md").write_text("---\nname: more\ntriggers: [do more]\n---\n")
    broken_off(env, 2)
    assert len(journals(env)) == 3
    run(env)
    assert len(journals(env)) == 2


def test_a_relative_time_stays_what_it_was(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The second half is cut off where the first was, though time has gone on."""
    broken_off(env, 2, since=1000.0, said="30d")
    found, replayed = done_now(env, monkeypatch, since=4e9, said="30d")
    assert len(replayed) == 4
    assert found["files"]["left_out"] == {}


def test_shown_prompts_are_never_written_down(env: dict[str, str]) -> None:
    broken_off(env, 1, show_prompts=True)
    assert not Path(env["GSTACK_STATE_ROOT"]).exists()
    assert run(env, show_prompts=True).routes.rows[0].text == "fix this bug"


def test_the_checkpoint_holds_no_prompt(env: dict[str, str], tmp_path: Path) -> None:
    for place in range(6):
        transcript(tmp_path, f"s{place}").prompt("fix this bug of TOPSECRET").say("TOPSECRET it is").write()
    broken_off(env, 4)
    (journal,) = journals(env)
    assert "TOPSECRET" not in journal.read_text()
    assert "investigate" in journal.read_text()


def test_two_replays_at_once_share_no_checkpoint(env: dict[str, str], tmp_path: Path) -> None:
    root = env["GSTACK_STATE_ROOT"]
    with Journal(root, {"a": 1}, since=None) as first, Journal(root, {"a": 1}, since=None) as second:
        assert first.problem == ""
        assert second.problem == "another process does the same replay"
        second.add(Job("/x/a.jsonl", 7, 1), RESULT)
        second.finish()
        first.add(Job("/x/a.jsonl", 7, 1), RESULT)
        assert len(Path(first.path).read_text().splitlines()) == 2
        first.finish()
    assert not os.path.exists(root)


def test_a_state_folder_that_cant_be_written_costs_the_checkpoint_only(
    env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(env["GSTACK_STATE_ROOT"]).write_text("a file")
    said: list[str] = []
    report = replay(env, Options(processes=1), tell=said.append)
    assert report.files.states["ok"] == 6
    assert len(said) == 1
    assert said[0].startswith("no checkpoint was kept: ")


def test_a_full_disk_costs_the_checkpoint_only(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal(env["GSTACK_STATE_ROOT"], {}, since=None) as journal:

        def full(_: bytes) -> None:
            raise OSError(28, "No space left on device")

        assert journal._file is not None
        monkeypatch.setattr(journal, "_write", full)
        journal.add(Job("/x", 1, 1), RESULT)
        assert "No space left" in journal.problem
        monkeypatch.undo()
        journal.add(Job("/x", 1, 1), RESULT)
        journal.finish()
    assert not Path(env["GSTACK_STATE_ROOT"]).exists()


def test_rows_survive_the_way_through_json(tmp_path: Path) -> None:
    job = Job("/x/a.jsonl", 7, 1)
    with Journal(str(tmp_path), {}, since=5.0) as journal:
        journal.add(job, RESULT)
    with Journal(str(tmp_path), {}, since=None) as journal:
        assert journal.since == 5.0
        assert journal.resumed == 1
        assert journal.result(job) == RESULT
        assert journal.result(Job("/x/a.jsonl", 8, 1)) is None
        assert journal.result(Job("/x/b.jsonl", 7, 1)) is None


def test_the_digest_depends_on_every_argument() -> None:
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": 2})

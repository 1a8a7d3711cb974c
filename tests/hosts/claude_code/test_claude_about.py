"""What a transcript says of its whole session, and where a session's subagents are written down."""

import json
from pathlib import Path
from typing import Any

import pytest

from gstack.session_facts import SessionFacts, facts_of
from gstack.testing.transcript import Transcript
from gstack_hosts.claude_code import ClaudeCode
from gstack_hosts.claude_code.about import about, subagent_transcripts

NOTHING: dict[str, Any] = {}


def lines(path: Path, *records: Any) -> str:
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records))
    return str(path)


def message(**more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"content": "hi"}, "cwd": "/w", "sessionId": "s", "entrypoint": "cli", **more}


def test_of_a_session(tmp_path: Path) -> None:
    path = Transcript(tmp_path / "t.jsonl", session="abc", cwd="/home/u/app").prompt("hi").write()
    assert about(path) == {"cwd": "/home/u/app", "session_id": "abc", "interactive": True}
    assert facts_of(ClaudeCode(), path) == SessionFacts("/home/u/app", True, "abc")


@pytest.mark.parametrize(
    ("entry", "interactive"), [("cli", True), ("sdk-cli", False), ("sdk-ts", None), ("claude-vscode", None), (7, None)]
)
def test_who_sits_there_is_what_the_hook_would_think(entry: Any, interactive: bool | None, tmp_path: Path) -> None:
    assert about(lines(tmp_path / "t", message(entrypoint=entry))).get("interactive") is interactive


def test_the_first_message_counts_not_what_it_quotes(tmp_path: Path) -> None:
    quoted = message(message={"content": '{"cwd": "/quoted"}', "input": {"cwd": "/inner"}})
    assert about(lines(tmp_path / "a", {"type": "mode"}, quoted, message(cwd="/later")))["cwd"] == "/w"
    # a record that only holds the word deeper down says nothing
    inner = {"type": "assistant", "message": {"content": [{"input": {"cwd": "/inner"}}]}}
    assert about(lines(tmp_path / "b", inner, message()))["cwd"] == "/w"
    assert about(lines(tmp_path / "c", inner)) == NOTHING


def test_a_first_message_may_be_long_or_broken(tmp_path: Path) -> None:
    long = {"type": "user", "message": {"content": "x" * 200_000}, "cwd": "/long"}
    assert about(lines(tmp_path / "a", long)) == {"cwd": "/long"}
    assert about(lines(tmp_path / "b", '{"cwd": "/half', message()))["cwd"] == "/w"
    assert about(lines(tmp_path / "c", message(cwd=None), message(cwd=""), message(cwd="/w2")))["cwd"] == "/w2"


def test_where_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert about(str(tmp_path / "none")) == NOTHING
    assert about(str(tmp_path)) == NOTHING
    assert about(lines(tmp_path / "empty")) == NOTHING
    assert about(lines(tmp_path / "odd", "[1]", "no", '"cwd"')) == NOTHING
    assert about("a\0b") == NOTHING


def test_every_transcript_here_can_be_asked(shared: Path) -> None:
    folders = [about(str(path)).get("cwd") for path in (shared / "reference" / "claude-code-live").rglob("*.jsonl")]
    assert folders.count("/home/u/work") > 80


def test_subagents_lie_in_a_folder_beside_their_session(tmp_path: Path) -> None:
    path = Transcript(tmp_path / "t.jsonl").prompt("hi").write()
    assert subagent_transcripts(path) == []
    folder = tmp_path / "t" / "subagents"
    folder.mkdir(parents=True)
    for name in ("agent-b.jsonl", "agent-a.jsonl", "agent-a.meta.json"):
        (folder / name).write_text("")
    assert subagent_transcripts(path) == [str(folder / "agent-a.jsonl"), str(folder / "agent-b.jsonl")]


def test_a_host_that_knows_no_more_says_nothing(tmp_path: Path) -> None:
    assert facts_of(object(), str(tmp_path)) == SessionFacts()

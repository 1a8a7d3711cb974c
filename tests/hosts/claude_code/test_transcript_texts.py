"""Parsers of the client's own texts, and the tool table that payloads and transcripts share."""

from typing import Any

import pytest
from claude_records import notification
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import TOOL_KINDS, ToolCall
from gstack_hosts.claude_code.envelopes import feedback, notifications, origin_of, typed_command
from gstack_hosts.claude_code.tools import KINDS, load_of, tool_call


def test_a_notification() -> None:
    assert notifications(notification("a1", "completed", "toolu_1")) == [("a1", "toolu_1", "completed")]
    assert notifications(notification("a1", "killed")) == [("a1", None, "killed")]


def test_a_notification_with_attributes_and_text_around() -> None:
    text = '  <task-notification kind="x"><task-id>a1</task-id><status>failed</status></task-notification>\nlook'
    assert notifications(text) == [("a1", None, "failed")]


def test_what_a_report_quotes_is_not_read() -> None:
    report = "<task-id>b1</task-id><status>killed</status>"
    assert notifications(notification("a1", "completed", result=report)) == [("a1", None, "completed")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "see <task-notification><task-id>a1</task-id><status>completed</status></task-notification>",
        "<task-notifications><task-id>a1</task-id><status>completed</status></task-notifications>",
        "<task-notification></task-notification>",
        "<task-notification><task-id></task-id><status>completed</status></task-notification>",
    ],
)
def test_what_is_no_notification(text: str) -> None:
    assert notifications(text) == []


PIECES = st.sampled_from(
    ["<task-notification>", "</task-notification>", "<task-id>", "</task-id>", "<status>", "</status>", "<result>",
     "<command-message>", "</command-message>", "<command-name>", "</command-name>", "<command-args>",
     "</command-args>", "/a", "a1", "completed", "\n", " ", "é", "<", "Stop hook feedback:"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join))
def test_no_text_breaks_the_parsers(text: str) -> None:
    for task, tool, status in notifications(text):
        assert task
        assert status
        assert tool != ""
    command = typed_command(text)
    assert command is None or command[0].split() == [command[0]]
    assert origin_of(text, {}) in ("user", "notification", "agent", "channel", "host")
    feedback(text)


def test_feedback_of_several_hooks() -> None:
    assert feedback("Stop hook feedback:\n- [a.sh]: one\n- [b.sh]: two") == "- [a.sh]: one\n- [b.sh]: two"
    assert feedback("stop hook feedback:\nx") is None


# ------------------------------------------------------------------------------------------------------ tools


def test_the_table_knows_only_kinds_of_the_core() -> None:
    assert set(KINDS.values()) < set(TOOL_KINDS)


@pytest.mark.parametrize(
    ("name", "given_", "wanted"),
    [
        ("Bash", {"command": "ls", "description": "List"}, {"kind": "shell", "command": "ls", "description": "List"}),
        ("Bash", {"command": "x", "run_in_background": True}, {"kind": "shell", "command": "x", "background": True}),
        ("PowerShell", {"command": "dir"}, {"kind": "shell", "command": "dir"}),
        ("Edit", {"file_path": "/a", "old_string": "x"}, {"kind": "edit", "paths": ("/a",)}),
        ("Write", {"file_path": "/a"}, {"kind": "edit", "paths": ("/a",)}),
        ("MultiEdit", {"file_path": "/a", "edits": []}, {"kind": "edit", "paths": ("/a",)}),
        ("NotebookEdit", {"notebook_path": "/n"}, {"kind": "edit", "paths": ("/n",)}),
        ("Read", {"file_path": "/a", "limit": 3}, {"kind": "read", "paths": ("/a",)}),
        ("Grep", {"pattern": "x"}, {"kind": "search"}),
        ("Glob", {"pattern": "x"}, {"kind": "search"}),
        ("Skill", {"skill": " /acme:deploy "}, {"kind": "skill", "skill": "acme:deploy"}),
        (
            "Agent",
            {"subagent_type": "Explore", "name": "n", "description": "d", "prompt": "p", "run_in_background": True},
            {"kind": "agent", "agent_type": "Explore", "agent_name": "n", "description": "d", "prompt": "p",
             "background": True},
        ),
        ("Task", {"prompt": "p"}, {"kind": "agent", "prompt": "p"}),
        ("TaskOutput", {"task_id": "a"}, {"kind": "agent_wait"}),
        ("WebFetch", {"url": "x"}, {"kind": "web"}),
        ("WebSearch", {"query": "x"}, {"kind": "web"}),
        ("mcp__github__create_issue", {"title": "x"}, {"kind": "mcp"}),
        ("AskUserQuestion", {"questions": []}, {"kind": "ask"}),
        ("TodoWrite", {"todos": []}, {"kind": "other"}),
        ("bash", {"command": "ls"}, {"kind": "other"}),
        ("", {}, {"kind": "other"}),
    ],
)  # fmt: skip
def test_a_call_in_neutral_words(name: str, given_: dict[str, Any], wanted: dict[str, Any]) -> None:
    kind = wanted.pop("kind")
    assert tool_call(name, given_, "t1") == ToolCall(kind, name, id="t1", input=given_, **wanted)


@given(
    st.sampled_from([*KINDS, "mcp__x__y", "Other"]),
    st.dictionaries(
        st.sampled_from(["command", "file_path", "skill", "prompt", "name", "subagent_type", "run_in_background"]),
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=2), max_size=2),
        max_size=5,
    ),
)
def test_arguments_of_another_type_are_left_out(name: str, given_: dict[str, Any]) -> None:
    call = tool_call(name, given_)
    for text in (call.command, call.skill, call.prompt, call.agent_name, call.agent_type, call.description):
        assert text is None or isinstance(text, str)
    assert all(isinstance(path, str) for path in call.paths)
    assert isinstance(call.background, bool)
    assert load_of(call)[0] is None or call.kind in ("skill", "read")

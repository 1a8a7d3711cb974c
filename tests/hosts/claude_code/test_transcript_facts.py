"""What Claude Code's records mean, one fact a test (protocol sections 4.3 and 5; live report, section 3)."""

from pathlib import Path
from typing import Any

import pytest
from claude_records import Records, events_of, notification, told

from gstack.api import Event

SKILL_MD = "/home/u/.claude/skills/investigate/SKILL.md"


@pytest.fixture
def session() -> Records:
    made = Records()
    made.prompt("start")
    return made


def only(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.type == kind]


def loads(session: Records, folder: Path) -> list[tuple[str | None, str | None]]:
    return [(event.name, event.how) for event in only(session.events(folder), "load")]


def one_result(session: Records, folder: Path) -> Event:
    (found,) = only(session.events(folder), "result")
    return found


# ------------------------------------------------------------------------------------------- what models say


def test_the_blocks_of_one_message_over_several_records_are_one_text(session: Records, tmp_path: Path) -> None:
    session.says("DEBUG REPORT", ident="m1")
    session.call("Bash", {"command": "ls"}, ident="t1", more=1)
    session.all[-1]["message"]["id"] = "m1"
    session.says("Fix: x", ident="m1")
    session.says("another", ident="m2")
    assert [event.text for event in only(session.events(tmp_path), "text")] == ["DEBUG REPORT\nFix: x", "another"]


def test_several_blocks_in_one_record(session: Records, tmp_path: Path) -> None:
    """As written in 2025."""
    session.assistant(
        {"type": "thinking", "thinking": "hidden"},
        {"type": "text", "text": "one"},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
        {"type": "text", "text": "two"},
        {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "/a"}},
    )
    session.user([
        {"type": "tool_result", "tool_use_id": "t2", "content": "file"},
        {"type": "tool_result", "tool_use_id": "t1", "content": "names"},
    ])  # fmt: skip
    assert told(session.events(tmp_path))[1:] == [
        "text 'one\\ntwo'",
        "call shell t1",
        "call read t2",
        "result t2 ok",
        "result t1 ok 'names'",
    ]


def test_content_that_is_a_text(session: Records, tmp_path: Path) -> None:
    record = session.says("x")
    record["message"]["content"] = "said at once"
    assert told(session.events(tmp_path))[1:] == ["text 'said at once'"]


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_text_without_words_is_none(session: Records, tmp_path: Path, text: str) -> None:
    session.says(text)
    assert only(session.events(tmp_path), "text") == []


def test_what_the_client_writes_in_the_models_place_is_not_its_answer(session: Records, tmp_path: Path) -> None:
    session.says("No response requested.")["message"]["model"] = "<synthetic>"
    session.says("API Error: 500", isApiErrorMessage=True)
    session.all.append({"isApiErrorMessage": True, **session.says("API Error: 529")})
    del session.all[-2]
    assert only(session.events(tmp_path), "text") == []


def test_logged_requests_are_no_records_of_the_session(session: Records, tmp_path: Path) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "STATUS: DONE"}]}
    session.add({"type": "api-request-blob", "hash": "x", "message": message})
    session.add({"sessionId": "s", "type": "api-request-blob", "message": {**message, "role": "assistant"}})
    session.add({"type": "api-request", "id": "x"})
    assert told(session.events(tmp_path)) == ["prompt 'start'"]


def test_calls_carry_their_input_but_not_the_texts_that_edits_write(session: Records, tmp_path: Path) -> None:
    session.call("Bash", {"command": "ls", "description": "List"})
    session.call("Write", {"file_path": "/a", "content": "x" * 5000})
    session.call("Edit", {"file_path": "/b", "old_string": "x", "new_string": "y"})
    session.call("NotebookEdit", {"notebook_path": "/n", "new_source": "z"})
    calls = [event.call for event in only(session.events(tmp_path), "call")]
    assert [call.input for call in calls if call] == [
        {"command": "ls", "description": "List"},
        {"file_path": "/a"},
        {"file_path": "/b"},
        {"file_path": "/n"},
    ]
    assert [call.paths for call in calls if call] == [(), ("/a",), ("/b",), ("/n",)]


# ------------------------------------------------------------------------------------------------- subagents


def test_a_subagents_records_carry_its_id(session: Records, tmp_path: Path) -> None:
    session.user("Task for you", side=True, agentId="a1")
    session.call("Skill", {"skill": "investigate"}, ident="t1", side=True, agentId="a1")
    session.result("t1", "Launching skill: investigate", {"success": True}, side=True, agentId="a1")
    session.call("Agent", {"prompt": "x"}, ident="t2", side=True)
    session.result("t2", "x", {"status": "async_launched", "agentId": "a2"}, side=True)
    assert told(session.events(tmp_path))[1:] == [
        "(a1) prompt from agent 'Task for you'",
        "(a1) call skill t1",
        "(a1) result t1 ok",
        "(sidechain) call agent t2",
        "(sidechain) result t2 ok",
    ]


def test_an_agents_id_tells_where_the_flag_is_missing(session: Records, tmp_path: Path) -> None:
    record = session.says("from below", agentId="a1")
    del record["isSidechain"]
    record = session.says("from the main thread", agentId="a1")
    assert told(session.events(tmp_path))[1:] == ["(a1) text 'from below'", "text 'from the main thread'"]


@pytest.mark.parametrize("last", [False, True])
def test_progress_records_that_hold_a_subagents_calls(session: Records, tmp_path: Path, last: bool) -> None:
    """Until 2.1.8x."""
    inner = Records()
    inner.count = 500
    inner.call("Edit", {"file_path": "/a"}, ident="t1")
    data = {"message": inner.all[0], "type": "agent_progress", "agentId": "a9"}
    data = dict(reversed(data.items())) if last else data
    session.conversation({"type": "progress", "data": data, "toolUseID": "x"}, {})
    session.conversation({"type": "progress", "data": {"type": "hook_progress", "hookEvent": "Stop"}}, {})
    session.conversation({"type": "progress", "data": {"type": "agent_progress", "prompt": "p", "agentId": "a9"}}, {})
    assert told(session.events(tmp_path))[1:] == ["(a9) call edit t1"]


# ------------------------------------------------------------------------------------------------ what people say


ENVELOPES = [
    ("<task-notification>\n<status>x</status>", "notification"),
    ('Background agent "x" was stopped by the user.', "notification"),
    ('3 background agents were stopped by the user: "x"', "notification"),
    ("<agent-message from='x'>go</agent-message>", "agent"),
    ('<teammate-message teammate_id="x">go</teammate-message>', "agent"),
    ("<cross-session-message>x", "agent"),
    ("<\\cross-session-message>x", "agent"),
    ("Another Claude session sent a message:\nhello", "agent"),
    ("A peer session sent a message while you were working:\nhello", "agent"),
    ("The coordinator sent a message while you were working:\nhello", "agent"),
    ('<channel source="slack">hi</channel>', "channel"),
    ("<slack-tag-message>hi", "channel"),
    ("<fetched-web-content>x", "host"),
    ("<local-command-stdout>done</local-command-stdout>", "host"),
    ("<local-command-stderr>bad</local-command-stderr>", "host"),
    ("<bash-input>git pull</bash-input>", "host"),
    ("<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>", "host"),
    ("<command-name>/clear</command-name>\n            <command-message>clear</command-message>", "host"),
    ("<system-reminder>note</system-reminder>", "host"),
    ("This session is being continued from a previous conversation that ran out of context. x", "host"),
]


@pytest.mark.parametrize(("text", "origin"), ENVELOPES)
def test_the_clients_own_texts_are_nobodys_prompt(session: Records, tmp_path: Path, text: str, origin: str) -> None:
    session.user(text)
    found = session.events(tmp_path)[-1]
    assert (found.type, found.origin, found.text) == ("prompt", origin, text)


@pytest.mark.parametrize(
    "text",
    [
        "Another Claude session sent a message to me, where from?",
        "What does <task-notification> mean?",
        "<system-reminder>note</system-reminder>\nBut what I want is this",
        "Background agent pools, please",
        "<script>alert(1)</script>",
        "/etc/hosts what is in it?",
        "fix it",
    ],
)
def test_people_use_the_same_words(session: Records, tmp_path: Path, text: str) -> None:
    session.user(text)
    assert session.events(tmp_path)[-1].origin == "user"


@pytest.mark.parametrize(("text", "_"), ENVELOPES[:4])
def test_a_pasted_envelope_is_a_persons_text(session: Records, tmp_path: Path, text: str, _: str) -> None:
    session.prompt(text)
    assert session.events(tmp_path)[-1].origin == "user"


@pytest.mark.parametrize(
    ("kind", "origin"),
    [("human", "user"), ("peer", "agent"), ("coordinator", "agent"), ("channel", "channel"),
     ("task-notification", "notification"), ("auto-continuation", "host"), ("from-the-future", "host")],
)  # fmt: skip
def test_a_record_that_names_its_origin(session: Records, tmp_path: Path, kind: str, origin: str) -> None:
    session.user("go on", origin={"kind": kind})
    assert session.events(tmp_path)[-1].origin == origin


def test_what_the_system_prompts_is_no_persons(session: Records, tmp_path: Path) -> None:
    session.user("wake up", promptSource="system")
    assert session.events(tmp_path)[-1].origin == "host"


def test_harness_texts_and_summaries_are_no_events(session: Records, tmp_path: Path) -> None:
    session.user("Caveat: The messages below were generated by the user", isMeta=True)
    session.user([{"type": "text", "text": "[Image: source: /x.png]"}], isMeta=True)
    session.user("only shown", isVisibleInTranscriptOnly=True)
    assert told(session.events(tmp_path)) == ["prompt 'start'"]


def test_a_prompt_in_blocks_and_with_pictures(session: Records, tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    session.user([{"type": "text", "text": "look"}, {"type": "text", "text": "here"}, picture])
    session.user([picture])
    assert told(session.events(tmp_path))[1:] == ["prompt 'look\\nhere'", "prompt"]


@pytest.mark.parametrize("kind", ["user", "tool use"])
def test_interruptions(session: Records, tmp_path: Path, kind: str) -> None:
    text = "[Request interrupted by user]" if kind == "user" else "[Request interrupted by user for tool use]"
    session.user([{"type": "text", "text": text}])
    session.user(text)
    session.attachment("queued_command", prompt=text, commandMode="prompt")
    session.user(text + " why does it say that?")
    assert [event.type for event in session.events(tmp_path)[1:]] == ["interrupted"] * 3 + ["prompt"]


def test_a_queued_prompt_counts_when_it_is_delivered(session: Records, tmp_path: Path) -> None:
    session.add({"type": "queue-operation", "operation": "enqueue", "timestamp": session.time(), "content": "also"})
    session.add({"type": "queue-operation", "operation": "remove", "timestamp": session.time(), "content": "also"})
    session.attachment("queued_command", prompt="also", commandMode="prompt", origin={"kind": "human"})
    session.attachment("queued_command", prompt=[{"type": "text", "text": "and"}], commandMode="prompt")
    session.attachment("queued_command", prompt="psst", commandMode="prompt", origin={"kind": "peer"})
    assert told(session.events(tmp_path))[1:] == ["prompt 'also'", "prompt 'and'", "prompt from agent 'psst'"]


# ----------------------------------------------------------------------------------------------------- typed


def test_a_typed_skill_is_a_load(session: Records, tmp_path: Path) -> None:
    record = session.typed("investigate", "add() is\nwrong </command-args> <x>")
    found = session.events(tmp_path)[1:]
    assert told(found)[1] == "load investigate typed"
    assert found[0].text == "/investigate add() is\nwrong </command-args> <x>"
    assert found[1].uid == record["uuid"]


def test_typed_forms(session: Records, tmp_path: Path) -> None:
    session.typed("acme:deploy")
    session.user(
        "<command-message>orchestrator is running…</command-message>\n<command-name>/orchestrator</command-name>"
    )
    picture = {"type": "image", "source": {}}
    text = "<command-message>a</command-message>\n<command-name>/a</command-name>"
    session.user([{"type": "text", "text": text}, picture])
    assert loads(session, tmp_path) == [("acme:deploy", "typed"), ("orchestrator", "typed"), ("a", "typed")]


def test_stacked_skills_are_a_load_each(session: Records, tmp_path: Path) -> None:
    session.typed("a", "do both")["stackedOriginalInput"] = "/a /b do both"
    session.typed("b", "do both")["stackedExpansion"] = True
    assert loads(session, tmp_path) == [("a", "typed"), ("b", "typed")]


ENVELOPE = "<command-message>investigate</command-message>\n<command-name>/investigate</command-name>"


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("<command-name>/clear</command-name>\n<command-message>clear</command-message>", {}),
        (f"{ENVELOPE}\n<command-args>x</command-args>\nlook at this", {}),
        (f"Look: {ENVELOPE}", {}),
        (f"{ENVELOPE}\nand do it", {}),
        (ENVELOPE, {"isMeta": True}),
        (ENVELOPE, {"isCompactSummary": True}),
        (ENVELOPE, {"promptSource": "typed"}),
        (ENVELOPE, {"promptSource": "sdk"}),
        ("<command-message>a</command-message>\n<command-name>a</command-name>\n<skill-format>true</skill-format>", {}),
        ("<command-message>a</command-message>\n<command-name>/a b</command-name>", {}),
        ("<command-message>a</command-message>\n<command-name>/</command-name>", {}),
        ("<command-message>a</command-message>", {}),
        ("<command-message>a", {}),
        ("/forked x", {}),
        ([{"type": "text", "text": ENVELOPE}], {}),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_typed_skill(session: Records, tmp_path: Path, text: Any, more: dict[str, Any]) -> None:
    """Built-in commands, pasted and quoted text; a typed forked skill, whose work is a subagent's, has no envelope."""
    session.user(text, **more)
    assert loads(session, tmp_path) == []


def test_a_subagents_envelope_is_no_load(session: Records, tmp_path: Path) -> None:
    session.user(ENVELOPE, side=True)
    assert loads(session, tmp_path) == []


# ------------------------------------------------------------------------------------------ the Skill tool, reading


def test_a_skill_call_that_succeeds_is_a_load_at_the_call(session: Records, tmp_path: Path) -> None:
    ident = session.call("Skill", {"skill": "/investigate "})
    session.bash("ls")
    session.result(ident, "Launching skill: investigate", "Launching skill: investigate")
    found = session.events(tmp_path)
    assert [event.type for event in found[1:]] == ["call", "load", "call", "result", "result"]
    assert (found[2].name, found[2].how, found[2].uid) == ("investigate", "tool", ident)
    assert found[1].call is not None
    assert found[1].call.input == {"skill": "/investigate "}


def test_the_input_of_2025_named_a_command(session: Records, tmp_path: Path) -> None:
    session.tool("Skill", {"command": "pdf"})
    assert loads(session, tmp_path) == [("pdf", "tool")]


@pytest.mark.parametrize(
    ("content", "value", "more"),
    [
        ("<tool_use_error>Unknown skill: x</tool_use_error>", "Error: Unknown skill: x", {"error": True}),
        ("PreToolUse:Skill hook error: policy", "Error: x", {"error": True, "toolDenialKind": "permission-rule"}),
        ("Skill execution blocked by permission rules", "Error: x", {"error": True}),
        ("Launching skill: x", {"success": False}, {}),
    ],
)
def test_a_skill_call_that_fails_is_no_load(
    session: Records, tmp_path: Path, content: str, value: Any, more: dict[str, Any]
) -> None:
    session.tool("Skill", {"skill": "investigate"}, content, value, **more)
    assert loads(session, tmp_path) == []


def test_a_skill_call_without_a_result_is_no_load_yet(session: Records, tmp_path: Path) -> None:
    ident = session.call("Skill", {"skill": "investigate"})
    assert [event.type for event in session.events(tmp_path)[1:]] == ["call"]
    session.says("going on")
    assert loads(session, tmp_path) == []
    session.result(ident)
    assert [event.type for event in session.events(tmp_path)[1:]] == ["call", "load", "text", "result"]


@pytest.mark.parametrize(
    "given", [{}, {"skill": ""}, {"skill": " / "}, {"skill": 3}, {"__unparsedToolInput": "{"}, None, []]
)
def test_a_skill_call_without_a_name_is_no_load(session: Records, tmp_path: Path, given: Any) -> None:
    session.tool("Skill", given)
    assert loads(session, tmp_path) == []


def test_reinvocations_are_new_loads(session: Records, tmp_path: Path) -> None:
    first, second = session.skill(), session.skill()
    session.user("Skill /investigate is already loaded above; instructions unchanged. Arguments: x", isMeta=True)
    assert [event.uid for event in only(session.events(tmp_path), "load")] == [first, second]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (SKILL_MD, "investigate"),
        ("/w/.claude/skills/investigate/SKILL.md", "investigate"),
        ("C:\\Users\\u\\.claude\\skills\\investigate\\SKILL.md", "investigate"),
        ("skills/investigate/SKILL.md", "investigate"),
        ("/src/pack/investigate/SKILL.md", None),
        ("/src/pack/skills/group/investigate/SKILL.md", None),
        ("/home/u/.claude/skills/SKILL.md", None),
        ("/home/u/.claude/skills/../SKILL.md", None),
        ("/home/u/.claude/skills/investigate/reference.md", None),
        ("/home/u/.claude/skills/investigate/skill.md", None),
        ("SKILL.md", None),
    ],
)
def test_reading_a_skills_file_is_a_load(session: Records, tmp_path: Path, path: str, name: str | None) -> None:
    session.tool("Read", {"file_path": path}, "1\tname: x", {"type": "text", "file": {"filePath": path}})
    assert loads(session, tmp_path) == ([(name, "read")] if name else [])
    assert [event.path for event in only(session.events(tmp_path), "load")] == ([path] if name else [])


def test_what_shows_a_skills_file_otherwise_is_no_load(session: Records, tmp_path: Path) -> None:
    session.tool("Read", {"file_path": SKILL_MD}, "<tool_use_error>File does not exist.</tool_use_error>", error=True)
    session.bash(f"cat {SKILL_MD}", "name: investigate")
    session.tool("Edit", {"file_path": SKILL_MD, "old_string": "a", "new_string": "b"})
    session.tool("Grep", {"pattern": "x", "path": SKILL_MD})
    session.attachment("file", filename=SKILL_MD)
    assert loads(session, tmp_path) == []


def test_a_compaction_reattaches_but_loads_nothing(session: Records, tmp_path: Path) -> None:
    session.system("compact_boundary", compactMetadata={"trigger": "auto"})
    session.user(
        f"This session is being continued from a previous conversation. {ENVELOPE}\nSTATUS: DONE", isCompactSummary=True
    )
    session.attachment("invoked_skills", skills=[{"name": "investigate", "path": "x", "content": "body"}])
    session.attachment("skill_listing", content="- investigate", names=["investigate"])
    assert told(session.events(tmp_path))[1:] == ["compacted"]


def test_a_summary_without_a_boundary(session: Records, tmp_path: Path) -> None:
    session.user("This session is being continued from a previous conversation", isCompactSummary=True)
    assert told(session.events(tmp_path))[1:] == ["compacted"]


# --------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize(
    ("content", "more"),
    [
        ("PreToolUse:Bash hook error: policy: no", {}),
        ("Bash operation blocked by hook:\n- [x]: no", {}),
        ("Permission to use Bash with command rm has been denied.", {}),
        ("Claude requested permissions to use Bash, but you haven't granted it yet.", {}),
        ("This command requires approval", {}),
        ("Permission prompt was aborted.", {}),
        ("The user doesn't want to proceed with this tool use. The tool use was rejected", {}),
        ("The user doesn't want to take this action right now. STOP", {}),
        ("<tool_use_error>Blocked: sleep 25 followed by: echo</tool_use_error>", {}),
        ("touch in '/x' needs approval.", {"toolDenialKind": "user-rejected"}),
        ("whatever", {"permissionDecision": {"decision": "reject", "source": "hook"}}),
        ("Pre-commit validation failed:\nformat", {}),  # a hook's reason alone, in 2.1.39
    ],
)
def test_a_call_that_never_ran(session: Records, tmp_path: Path, content: str, more: dict[str, Any]) -> None:
    session.tool("Bash", {"command": "x"}, content, f"Error: {content}", error=True, **more)
    found = one_result(session, tmp_path)
    assert (found.ok, found.denied) == (False, True)


@pytest.mark.parametrize(
    ("content", "version"),
    [
        ("Exit code 1\nassert failed", "2.1.332"),
        ("Exit code 127\ncommand not found", "2.1.38"),
        ("Command timed out after 2m 0.0s", "2.1.38"),
        ("[Tool result missing due to internal error]", "2.1.200"),
        ("error: failed to push some refs", "1.0.120"),
        ("npm ERR! Missing script: test", None),
    ],
)
def test_a_shell_command_that_failed_did_run(tmp_path: Path, content: str, version: str | None) -> None:
    session = Records(version=version)
    session.tool("Bash", {"command": "x"}, content, f"Error: {content}", error=True)
    found = one_result(session, tmp_path)
    assert (found.ok, found.denied, found.text) == (False, False, content)


def test_other_tools_that_failed_did_run(session: Records, tmp_path: Path) -> None:
    session.tool("Read", {"file_path": "/x"}, "EISDIR: illegal operation on a directory", error=True)
    session.tool("Agent", {"prompt": "x"}, "Agent terminated early due to an API error", error=True)
    assert [(e.ok, e.denied, e.text) for e in only(session.events(tmp_path), "result")] == [(False, False, "")] * 2


@pytest.mark.parametrize(
    "content",
    [
        "Command running in background with ID: b5hqlpqca. Output is being written to: /x",
        "Command exceeded its timeout and was moved to the background with ID: b1",
        "Command was manually backgrounded by user with ID: b1",
    ],
)
def test_a_command_in_the_background_is_launched_and_open(session: Records, tmp_path: Path, content: str) -> None:
    session.tool("Bash", {"command": "x", "run_in_background": True}, content, {"backgroundTaskId": "b1"}, is_error=0)
    found = one_result(session, tmp_path)
    assert (found.ok, found.denied) == (None, False)


def test_results_say_what_a_shell_printed_and_nothing_else(session: Records, tmp_path: Path) -> None:
    session.bash("cat list", "Dispatching 1 specialists: x")
    session.tool(
        "Bash", {"command": "x"}, [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    )
    session.tool("Read", {"file_path": "/x"}, "Dispatching 2 specialists: x, y")
    session.tool("WebFetch", {"url": "x"}, "Dispatching 3 specialists: x, y, z")
    session.tool("mcp__x__y", {}, [{"type": "text", "text": "Dispatching 4 specialists"}])
    assert [event.text for event in only(session.events(tmp_path), "result")] == [
        "Dispatching 1 specialists: x",
        "a\nb",
        "",
        "",
        "",
    ]


@pytest.mark.parametrize("more", [{"toolDenialKind": "interrupted"}, {}])
def test_a_call_that_a_person_broke_off(session: Records, tmp_path: Path, more: dict[str, Any]) -> None:
    session.tool("Bash", {"command": "x"}, "[Request interrupted by user for tool use]", error=True, **more)
    assert told(session.events(tmp_path))[-1] == "interrupted"
    assert one_result(session, tmp_path).denied


def test_results_pair_by_id_whatever_their_order(session: Records, tmp_path: Path) -> None:
    one, two = session.call("Bash", {"command": "1"}), session.call("Bash", {"command": "2"})
    session.result(two, "second")
    session.result(one, "first")
    assert [(e.ref, e.text) for e in only(session.events(tmp_path), "result")] == [(two, "second"), (one, "first")]


# ------------------------------------------------------------------------------------------------------ agents


def agents(session: Records, folder: Path) -> list[str]:
    return [line for line in told(session.events(folder)) if line.startswith("agent_")]


def test_an_agent_in_the_foreground_starts_and_ends_with_its_result(session: Records, tmp_path: Path) -> None:
    ident = session.tool("Agent", {"prompt": "x"}, "report", {"status": "completed", "agentId": "a1", "content": []})
    assert agents(session, tmp_path) == [f"agent_started agent {ident} a1", "agent_finished completed a1"]
    finished = session.events(tmp_path)[-1]
    assert finished.ok is True
    assert finished.call is not None
    assert finished.call.id == ident


@pytest.mark.parametrize(
    ("value", "ref"),
    [
        ({"status": "async_launched", "agentId": "a1", "isAsync": True}, "a1"),
        ({"status": "async_launched", "taskId": "w1", "taskType": "local_workflow"}, "w1"),
        ({"status": "remote_launched", "taskId": "r1", "sessionUrl": "x"}, "r1"),
    ],
)
def test_a_launched_agent_runs_until_it_is_reported(
    session: Records, tmp_path: Path, value: dict[str, Any], ref: str
) -> None:
    ident = session.tool("Agent", {"prompt": "x"}, "launched", value)
    assert agents(session, tmp_path) == [f"agent_started agent {ident} {ref}"]


def test_a_launch_that_only_its_text_tells(session: Records, tmp_path: Path) -> None:
    text = "Async agent launched successfully.\nagentId: agent-bg-456 (internal ID - do not mention to user)"
    ident = session.tool("Task", {"prompt": "x"}, [{"type": "text", "text": text}])
    session.tool("Task", {"prompt": "x"}, "## Analysis\nAsync agent launched. agentId: no")
    assert agents(session, tmp_path) == [f"agent_started agent {ident} agent-bg-456"]


def test_a_spawned_teammate_is_the_payloads_business(session: Records, tmp_path: Path) -> None:
    session.tool("Agent", {"prompt": "x"}, "Spawned", {"status": "teammate_spawned", "agent_id": "r@t", "name": "r"})
    assert agents(session, tmp_path) == []


@pytest.mark.parametrize("status", ["completed", "failed", "killed", "stopped"])
def test_an_end_is_told_in_all_its_forms(session: Records, tmp_path: Path, status: str) -> None:
    text = notification("a1", status, "toolu_1")
    session.add({"type": "queue-operation", "operation": "enqueue", "timestamp": session.time(), "content": text})
    session.user(text, origin={"kind": "task-notification"}, promptSource="system")
    session.user(text)
    session.attachment("queued_command", prompt=text, commandMode="task-notification")
    session.attachment("task_status", taskId="a1", taskType="local_agent", status=status)
    found = only(session.events(tmp_path), "agent_finished")
    assert [(e.ref, e.how, e.ok) for e in found] == [("a1", status, status == "completed")] * 5
    assert [e.call.id if e.call else None for e in found] == ["toolu_1"] * 4 + [None]
    assert [e.origin for e in only(session.events(tmp_path), "prompt")[1:]] == ["notification"] * 3


def test_a_notice_that_is_no_end(session: Records, tmp_path: Path) -> None:
    session.user(notification("a1", "running"))
    session.attachment("task_status", taskId="a1", status="running")
    session.user("<task-notification>\n<task-id>a1</task-id>\n<summary>soon</summary>\n</task-notification>")
    assert agents(session, tmp_path) == []


def test_several_ends_in_one_text_and_quoted_ones(session: Records, tmp_path: Path) -> None:
    quoted = notification("a3").replace("<task-notification>\n", "<task-notification> in a report: ")
    session.user(notification("a1") + "\n" + notification("a2", result=quoted.split("</task")[0]) + "\nNext?")
    assert agents(session, tmp_path) == ["agent_finished completed a1", "agent_finished completed a2"]


def test_a_resumed_agent_starts_again(session: Records, tmp_path: Path) -> None:
    first = session.tool("Agent", {"prompt": "x"}, "r", {"status": "completed", "agentId": "a1"})
    again = session.tool("SendMessage", {"to": "worker"}, "{}", {"success": True, "resumedAgentId": "a1"})
    session.user(notification("a1", tool=again))
    assert agents(session, tmp_path) == [
        f"agent_started agent {first} a1",
        "agent_finished completed a1",
        f"agent_started other {again} a1",
        "agent_finished completed a1",
    ]


def test_waiting_for_an_agent_and_stopping_it_ends_it(session: Records, tmp_path: Path) -> None:
    task = {"task_id": "a1", "task_type": "local_agent", "status": "completed"}
    session.tool("TaskOutput", {"task_id": "a1"}, "x", {"retrieval_status": "success", "task": task})
    running = {"retrieval_status": "timeout", "task": {**task, "status": "running"}}
    session.tool("TaskOutput", {"task_id": "a1"}, "x", running)
    session.tool("TaskStop", {"task_id": "a2"}, "{}", {"message": "Successfully stopped", "task_id": "a2"})
    assert agents(session, tmp_path) == ["agent_finished completed a1", "agent_finished killed a2"]


def test_a_refused_launch_starts_nothing(session: Records, tmp_path: Path) -> None:
    session.tool("Agent", {"subagent_type": "x"}, "Agent type 'x' not found. Available agents: y", error=True)
    assert agents(session, tmp_path) == []
    assert one_result(session, tmp_path).denied


# ------------------------------------------------------------------------------------------------ ends of turns


def test_hook_feedback_continues_the_turn(session: Records, tmp_path: Path) -> None:
    session.user("Stop hook feedback:\nSKILL_CONTRACT_UNMET investigate (v1)", isMeta=True, hookText=True)
    session.system("stop_hook_summary", hookErrors=["x"])
    session.attachment("hook_additional_context", hookEvent="Stop", content=["one", "two"])
    session.attachment("hook_additional_context", hookEvent="UserPromptSubmit", content=["a hint"])
    session.says("done")
    session.system("stop_hook_summary", hookErrors=[])
    session.system("turn_duration", durationMs=1)
    assert told(session.events(tmp_path))[1:] == [
        "continuation 'SKILL_CONTRACT_UNMET investigate (v1)'",
        "continuation 'one\\ntwo'",
        "text 'done'",
        "turn_end",
    ]


def test_typed_feedback_is_a_prompt(session: Records, tmp_path: Path) -> None:
    session.user("Stop hook feedback:\nSKILL_CONTRACT_UNMET investigate")
    assert session.events(tmp_path)[-1].type == "prompt"


# ---------------------------------------------------------------------------------------------------- copies


def test_records_calls_and_results_count_once(session: Records, tmp_path: Path) -> None:
    ident = session.bash("ls", "first")
    once = told(session.events(tmp_path))
    session.all += session.all[-2:]  # resumed: the same records
    session.call("Bash", {"command": "ls"}, ident=ident)  # the same call and result in new records
    session.result(ident, "second")
    assert told(session.events(tmp_path)) == once


def test_a_fork_keeps_the_ids(session: Records, tmp_path: Path) -> None:
    session.skill()
    session.says("one")
    before = session.events(tmp_path)
    fork = [{**record, "sessionId": "f"} for record in session.all]
    session.all = [{"type": "mode", "mode": "normal"}, *fork]
    session.prompt("more")
    after = session.events(tmp_path)
    assert [event.uid for event in after[: len(before)]] == [event.uid for event in before]


def test_records_without_an_id_are_no_copies(session: Records, tmp_path: Path) -> None:
    for _ in range(2):
        del session.user("again")["uuid"]
    assert len(session.events(tmp_path)) == 3


def test_a_typed_load_without_an_id_has_its_place_for_one(session: Records, tmp_path: Path) -> None:
    del session.typed("a")["uuid"]
    del session.typed("a")["uuid"]
    one, two = only(session.events(tmp_path), "load")
    assert one.uid != two.uid
    assert one.uid == f"@{one.ordinal}"


def test_events_know_their_time_and_place(session: Records, tmp_path: Path) -> None:
    record = session.says("é → later")
    data = session.data()
    found = events_of(data, tmp_path)[-1]
    assert data[found.ordinal :].startswith(b'{"parentUuid"')
    assert found.uid == record["uuid"]
    assert found.ts is not None
    assert found.ts % 60 == pytest.approx(2.25)

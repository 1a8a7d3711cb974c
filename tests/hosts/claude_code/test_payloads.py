"""Claude Code's payloads and answers, against what the real one sent and did."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack import api
from gstack.api import Answer, HookEvent
from gstack_hosts.claude_code import ClaudeCode
from gstack_hosts.claude_code.payloads import decode, session_kind

HOST = ClaudeCode()
KINDS = HOST.events


def captured(shared: Path) -> list[tuple[str, dict[str, str], dict[str, Any]]]:
    out = []
    for path in sorted((shared / "reference/claude-code-live/2.1.332").glob("*/hook_events.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            env = dict.fromkeys(record["env_names"], "x") | record.get("env_shown", {})
            out.append((path.parent.name, env, record["payload"]))
    return out


def test_every_captured_payload_is_claimed_and_decoded(shared: Path) -> None:
    records = captured(shared)
    assert len(records) > 800
    for scenario, env, payload in records:
        name = payload["hook_event_name"]
        assert HOST.claims(env, payload) == ("mine" if name in KINDS else "unsure"), scenario
        event = HOST.decode(payload, env)
        assert (event is None) == (name not in KINDS)
        if event is None:
            continue
        assert (event.kind, event.native_name, event.session_id) == (KINDS[name], name, payload["session_id"])
        assert event.scope == ("subagent" if payload.get("agent_id") else "main")
        assert event.interactive is (env["CLAUDE_CODE_SESSION_ATTENDED"] == "1")
        assert event.raw == payload
        if event.kind == api.TOOL_PROPOSED:
            assert event.tool is not None
            assert event.tool.native_name == payload["tool_name"]


def test_no_payload_of_another_host_is_claimed(shared: Path) -> None:
    seen = 0
    for host in ("codex", "copilot", "gemini", "qwen", "opencode"):
        for path in (shared / "reference/host-fixtures" / host).glob("*/*/hook_events.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                if isinstance(record["stdin"], dict):
                    env = dict.fromkeys(record.get("env_names") or [], "x")
                    assert HOST.claims(env, record["stdin"]) != "mine", path
                    assert HOST.claims({}, record["stdin"]) != "mine", path
                    seen += 1
    assert seen > 100


def test_public_payloads_decode_without_an_error(shared: Path) -> None:
    for path in sorted((shared / "corpus/payloads").glob("*.json")):
        payload = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(payload, dict):
            HOST.claims({}, payload)
            HOST.decode(payload, {})


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = """session_id transcript_path cwd hook_event_name prompt source tool_name tool_input tool_use_id agent_id
command_name expansion_type command_args stop_hook_active last_assistant_message background_tasks prompt_id"""
keys = st.sampled_from(KEYS.split())


@given(st.sampled_from([*KINDS, "Notification", ""]), st.dictionaries(keys, anything, max_size=8))
def test_odd_payloads_never_raise(name: str, payload: dict[str, Any]) -> None:
    whole = payload | {"hook_event_name": name}
    HOST.claims({}, whole)
    event = decode(whole, {})
    if event is not None and event.kind == api.PROMPT_SUBMITTED:
        assert isinstance(event.prompt, str)


@pytest.mark.parametrize(
    ("text", "nobody"),
    [
        ("<task-notification>\n<task-id>a</task-id>", True),
        ("<task-notification id='1'>", True),
        ("Another Claude session sent a message:\nhello", True),
        ("Another Claude session sent a message, where is it from?", False),
        ('Background agent "x" was stopped by the user.', True),
        ('2 background agents were stopped by the user: "a", "b"', True),
        ("why was my background agent stopped by the user?", False),
        ("fix this: <task-notification> is shown twice", False),
        ("Stop hook feedback:\nSKILL_CONTRACT_UNMET x", True),
        ("fix this bug", False),
        ("", False),
    ],
)
def test_texts_that_nobody_typed(text: str, nobody: bool) -> None:
    event = decode({"hook_event_name": "UserPromptSubmit", "prompt": text}, {})
    assert event is not None
    assert (event.origin != "user") is nobody


@pytest.mark.parametrize("source", ["system", "loop_wakeup", "schedule_wakeup", "poll_event"])
def test_sources_that_are_no_person(source: str) -> None:
    event = decode({"hook_event_name": "UserPromptSubmit", "prompt": "fix this bug", "source": source}, {})
    assert event is not None
    assert event.origin == "host"


def test_running_agents_are_the_hosts_own_list_without_shells() -> None:
    tasks = [
        {"id": "a", "type": "subagent"},
        {"id": "b", "type": "shell"},
        {"id": "c", "type": "monitor"},
        {"id": "d", "type": "workflow"},
        "odd",
    ]
    event = decode({"hook_event_name": "Stop", "background_tasks": tasks}, {})
    assert event is not None
    assert event.pending_agents == ("a", "d")
    for absent in ({}, {"background_tasks": None}):
        event = decode({"hook_event_name": "Stop", **absent}, {})
        assert event is not None
        assert event.pending_agents is None


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        ({}, None),
        ({"CLAUDE_CODE_SESSION_ATTENDED": "0"}, "headless"),
        ({"CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, "interactive"),
        ({"CLAUDE_CODE_SESSION_ATTENDED": "", "CLAUDE_CODE_ENTRYPOINT": "cli"}, "interactive"),
        ({"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, "headless"),
        ({"CLAUDE_CODE_ENTRYPOINT": "claude-vscode"}, None),
    ],
)
def test_session_kind(env: dict[str, str], kind: str | None) -> None:
    assert session_kind(env) == kind


def rendered(answer: Answer, kind: str, name: str) -> Any:
    data = HOST.render(answer, HookEvent("claude-code", kind, name))
    assert data.isascii()
    return json.loads(data) if data else None


def test_answers_take_the_forms_that_had_an_effect(shared: Path) -> None:
    """The form of each neutral answer is looked up among the 226 answers that were tried on the real thing."""
    effects = json.loads((shared / "reference/claude-code-live/answer_effects.json").read_text(encoding="utf-8"))
    inject = rendered(Answer(inject="MARK-NESTED"), api.PROMPT_SUBMITTED, "UserPromptSubmit")
    assert inject == effects["ups_nested"]["answer"]["out"]
    assert effects["ups_nested"]["model_sees"]["MARK-NESTED"]
    deny = rendered(Answer(deny="why"), api.TOOL_PROPOSED, "PreToolUse")
    assert deny["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "why",
    }
    assert rendered(Answer(deny="why"), api.COMMAND_TYPED, "UserPromptExpansion") == {
        "decision": "block",
        "reason": "why",
    }
    assert rendered(Answer(block_stop="why"), api.TURN_ENDING, "Stop") == {"decision": "block", "reason": "why"}
    assert rendered(Answer(notice="n"), api.TOOL_PROPOSED, "PreToolUse") == {"systemMessage": "n"}
    assert rendered(Answer(deny="d", notice="n"), api.TOOL_PROPOSED, "PreToolUse")["systemMessage"] == "n"
    assert rendered(Answer(), api.TURN_ENDING, "Stop") is None


@given(st.text())
def test_an_answer_is_one_ascii_json_document(text: str) -> None:
    for answer in (Answer(inject=text), Answer(deny=text), Answer(notice=text)):
        rendered(answer, api.TOOL_PROPOSED, "PreToolUse")


def test_allow_is_never_said() -> None:
    """`permissionDecision: allow` would skip the person's own prompt."""
    assert b"allow" not in HOST.render(Answer(notice="x"), HookEvent("claude-code", api.TOOL_PROPOSED, "PreToolUse"))

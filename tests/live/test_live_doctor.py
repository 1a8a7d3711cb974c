"""``gstack doctor --live`` beside the real thing: its payloads are Claude Code's, and it sees when hooks ran."""

import json
from pathlib import Path

import pytest
from live_support import Live, call, say

from gstack_hosts.claude_code import ClaudeCode

pytestmark = pytest.mark.live


def test_doctor_live_agrees_and_sees_when_hooks_ran(live: Live, acme: Path) -> None:
    live.join(acme, "--skill-routing", "--skill-contracts")
    live.play("this test fails, fix it", [call("Skill", skill="investigate"), say("Done."), say("Really.")])
    report = json.loads(live.gstack("doctor", "--live", "--json"))["live"]
    assert [one["status"] for one in report["trials"]] == ["ok"] * 6, report["trials"]
    ran = {one["event"]: bool(one["last_ran"]) for one in report["hooks"]}
    assert ran == {"UserPromptSubmit": True, "UserPromptExpansion": False, "PreToolUse": True, "Stop": True}
    assert all(one["sessions_without"] == [] for one in report["hooks"])
    # what doctor tried left no trace: the session's own lines are all there is
    assert live.log("skill-route") == ["routed skill=investigate score=1.00"]
    assert len(live.log("skill-gate")) == 1


def test_the_sample_payloads_have_the_keys_of_the_real_ones(live: Live) -> None:
    file = str(live.config / "skills" / "investigate" / "SKILL.md")
    agent = {"description": "Look", "prompt": "TASK-ONE look", "run_in_background": False}
    steps = [
        call("Skill", skill="investigate"),
        call("Read", file_path=file),
        call("Agent", subagent_type="general-purpose", **agent),
        say("Done."),
        say("Shipped."),
    ]
    routes = [{"name": "agent", "match": {"first_user": "TASK-ONE"}, "steps": [say("I looked.")]}]
    played = live.play(runs=[{"prompt": "look"}, {"prompt": "/ship it"}], steps=steps, routes=routes, record=True)
    real = {}
    for one in played.summary["recorded"]:
        payload = one["payload"]
        tool = payload.get("tool_name", "")
        real.setdefault((payload["hook_event_name"], tool), (payload, one["env_names"]))
    samples = ClaudeCode().sample_payloads(str(live.work), session_id="s")
    assert set(samples) == {"prompt", "command", "skill", "subagent", "read", "stop"}
    for use, sample in samples.items():
        payload, env_names = real[(sample["hook_event_name"], sample.get("tool_name", ""))]
        assert set(sample) == set(payload), use
        assert set(sample.get("tool_input", {})) <= set(payload.get("tool_input", {})), use
        assert set(ClaudeCode().sample_env(str(live.work))) <= set(env_names), use

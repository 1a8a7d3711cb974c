"""The policy gate in the real Claude Code, with a bundle that was published, fetched and verified as in real life."""

from pathlib import Path

import pytest
from live_support import Live, call, say

pytestmark = pytest.mark.live

DENIED = "gstack blocked this skill — "
FROZEN = "policy: Deploys are frozen. The servers are being moved. Use acme/handover instead."


def test_a_banned_skill_is_denied(live: Live, acme: Path) -> None:
    live.join(acme)
    played = live.play("put it live", [call("Skill", skill="deploy"), say("I can't.")])
    live.keep(played, "denied_skill")
    ((failed, text),) = played.results()
    assert failed
    assert DENIED + FROZEN in text
    assert "DEPLOY-BODY" not in played.seen()
    assert live.log("skill-gate")[0].startswith("decision=block name=acme/deploy")


def test_reading_a_banned_skills_file_is_denied_and_other_files_are_not(live: Live, acme: Path) -> None:
    live.join(acme)
    file = str(live.config / "skills" / "deploy" / "SKILL.md")
    notes = str(live.write(live.work / "notes.md", "a note\n"))
    played = live.play(
        "read them", [call("Read", file_path=file), call("Read", file_path=notes), say("I could read one.")]
    )
    live.keep(played, "denied_read")
    assert DENIED in played.results(1)[0][1]
    failed, text = played.results(2)[0]
    assert not failed
    assert "a note" in text
    # the second read started no process: the host's own filter kept it away
    assert len(played.hooks("PreToolUse")) == 1


def test_a_banned_subagent_is_denied_and_another_is_not(live: Live, acme: Path) -> None:
    live.join(acme)
    banned = call("Agent", description="Audit", prompt="audit it", subagent_type="auditor")
    look = {"description": "Look", "prompt": "TASK-ONE look", "run_in_background": False}
    free = call("Agent", subagent_type="general-purpose", **look)
    played = live.play(
        "audit it",
        [banned, free, say("Done.")],
        routes=[{"name": "agent", "match": {"first_user": "TASK-ONE"}, "steps": [say("All is well.")]}],
    )
    failed, text = played.results(1)[0]
    assert failed
    assert DENIED in text
    failed, text = played.results(2)[0]
    assert not failed
    assert "All is well." in text


def test_a_typed_banned_skill_never_reaches_the_model(live: Live, acme: Path) -> None:
    live.join(acme)
    played = live.play("/deploy now", [say("I deploy.")])
    assert played.steps == 0
    (answer,) = played.answers("UserPromptExpansion")
    assert answer["decision"] == "block"
    assert answer["reason"].startswith(DENIED + FROZEN)
    assert any(FROZEN in notice for notice in played.runs[0]["notices"])


def test_a_banned_command_warns_the_person_and_runs(live: Live, acme: Path) -> None:
    live.join(acme)
    played = live.play("/ship it", [say("Shipped.")])
    assert played.answers("UserPromptExpansion") == [
        {"systemMessage": "gstack: warning for acme/ship — Skill version is banned by the organisation."}
    ]
    assert "SHIP-BODY" in played.seen(0)
    assert "acme/ship" not in played.seen(0)
    assert any("acme/ship" in notice for notice in played.runs[0]["notices"])


def test_what_the_policy_does_not_name_runs_without_a_word(live: Live, acme: Path) -> None:
    live.join(acme)
    played = live.play("look at add()", [call("Skill", skill="investigate"), say("I look.")])
    assert not played.results()[0][0]
    assert played.answers("PreToolUse") == []


def test_observe_logs_what_it_would_deny(live: Live, acme: Path) -> None:
    live.join(acme)
    live.gstack("config", "set", "gate", "observe")
    played = live.play("put it live", [call("Skill", skill="deploy"), say("Done.")])
    assert not played.results()[0][0]
    assert "DEPLOY-BODY" in played.seen()
    assert "mode=observe" in live.log("skill-gate")[0]

"""Contracts in the real Claude Code: a stop without the outputs is held once; what became of the run is recorded."""

import pytest
from live_support import REPORT, Live, Played, call, fix_the_bug, run_the_test, say

pytestmark = pytest.mark.live

UNMET = "SKILL_CONTRACT_UNMET investigate (contract v1): missing debug-report, repro-after-fix."


def held(played: Played, event: str = "Stop") -> list[str]:
    """The reasons with which stops were held."""
    return [answer["reason"] for answer in played.answers(event) if answer.get("decision") == "block"]


@pytest.mark.parametrize("how", ["skill tool", "typed"])
def test_a_stop_is_held_once_and_the_fixed_run_is_met(live: Live, how: str) -> None:
    live.setup("--skill-contracts")
    load = [call("Skill", skill="investigate", args="add")] if how == "skill tool" else []
    prompt = "look at add()" if how == "skill tool" else "/investigate add() is wrong"
    first = [*load, *fix_the_bug(), say("Fixed it.")]
    played = live.play(prompt, [*first, run_the_test(), say(REPORT)])
    live.keep(played, f"met_after_block_{how.split()[0]}")
    (reason,) = held(played)
    assert reason.startswith(UNMET)
    assert len(played.hooks("Stop")) == 2
    assert reason in played.seen(len(first))
    assert UNMET not in played.seen(len(first) - 1)
    assert live.outcomes() == ["met_after_block"]
    assert played.runs[0]["result"]["result"] == REPORT
    found = live.check(played.transcript(), "investigate")
    assert {item["status"] for item in found["items"]} == {"met"}


def test_a_miss_is_not_held_twice(live: Live) -> None:
    live.setup("--skill-contracts")
    load = call("Skill", skill="investigate", args="add")
    played = live.play("look at add()", [load, *fix_the_bug(), say("Fixed it."), say("It is fixed. STATUS: DONE")])
    live.keep(played, "miss")
    assert len(held(played)) == 1
    assert len(played.hooks("Stop")) == 2
    assert played.steps == 5
    assert live.outcomes() == ["miss"]
    assert "investigate" in live.gstack("contract", "report")
    found = live.check(played.transcript(), "investigate", code=1)
    assert {item["status"] for item in found["items"]} == {"missing"}


@pytest.mark.parametrize("how", ["observe", "off"])
def test_observe_and_off_never_hold(live: Live, how: str) -> None:
    live.setup("--skill-contracts=observe" if how == "observe" else "--skill-contracts")
    if how == "off":
        live.gstack("config", "set", "skill_contracts", "off")
    played = live.play("look at add()", [call("Skill", skill="investigate"), *fix_the_bug(), say("Fixed it.")])
    assert held(played) == []
    assert played.steps == 4
    assert "SKILL_CONTRACT" not in played.seen()
    assert live.outcomes() == (["miss"] if how == "observe" else [])


def test_the_stop_waits_for_a_background_agent(live: Live) -> None:
    live.setup("--skill-contracts")
    agent = {"description": "Check it", "prompt": "TASK-ONE look for security problems", "run_in_background": True}
    launch = call("Agent", subagent_type="general-purpose", **agent)
    work = [call("Bash", command="sleep 1.5; echo looked", description="Look"), say("Nothing is wrong.")]
    played = live.play(
        "audit it",
        [call("Skill", skill="audit"), launch, say("I wait for it."), say("AUDIT REPORT\nFinding: none")],
        routes=[{"name": "agent", "match": {"first_user": "TASK-ONE"}, "steps": work}],
    )
    live.keep(played, "background_agent")
    assert held(played) == []
    lines = live.log("skill-contract")
    assert lines[0].startswith("deferred skill=audit")
    assert lines[-1].startswith("met skill=audit")
    assert live.outcomes() == ["met"]


def test_a_skill_that_an_agent_loads_holds_nobody(live: Live) -> None:
    live.setup("--skill-contracts")
    launch = call("Agent", description="Do it", prompt="TASK-ONE look", subagent_type="general-purpose")
    played = live.play(
        "let an agent look",
        [launch, say("It looked.")],
        routes=[
            {
                "name": "agent",
                "match": {"first_user": "TASK-ONE"},
                "steps": [call("Skill", skill="investigate"), say("I looked.")],
            }
        ],
    )
    live.keep(played, "loaded_by_an_agent")
    assert held(played) == []
    assert held(played, "SubagentStop") == []
    assert live.outcomes() == []

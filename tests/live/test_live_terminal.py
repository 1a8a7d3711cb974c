"""An interactive session on a pseudo terminal: the hint reaches the model, and the stop is held once."""

import pytest
from live_support import REPORT, Live, call, fix_the_bug, run_the_test, say

pytestmark = pytest.mark.live


def test_hint_and_hold_in_a_terminal(live: Live) -> None:
    live.setup("--skill-routing", "--skill-contracts")
    first = [call("Skill", skill="investigate"), *fix_the_bug(), say("Fixed it.")]
    steps = [*first, run_the_test(), say(REPORT)]
    keys = [
        {"expect": r"\? for shortcuts|Try \"|❯"},
        {"send": "this test fails, fix it\r"},
        {"wait_for": len(steps)},
        {"expect": "STATUS: DONE"},
        {"send": "/exit\r"},
    ]
    played = live.play(runs=[{"mode": "tui", "args": ["--permission-mode", "manual"], "keys": keys}], steps=steps)
    live.keep(played, "met_after_block_terminal")
    assert played.runs[0]["missed"] == []
    assert "gstack skill routing" in played.seen(0)
    assert "SKILL_CONTRACT_UNMET" not in played.seen(len(first) - 1)
    assert "SKILL_CONTRACT_UNMET investigate (contract v1)" in played.seen(len(first))
    assert played.steps == len(steps)
    assert live.outcomes() == ["met_after_block"]
    assert live.log("skill-route")[0] == "routed skill=investigate score=1.00"
    live.check(played.transcript(), "investigate")

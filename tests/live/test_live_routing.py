"""A prompt gets its hint in the real Claude Code, and the model sees it; off and observe are silent."""

import pytest
from live_support import Live, say

pytestmark = pytest.mark.live

HINT = "gstack skill routing (UserPromptSubmit hook; off switch: gstack config set skill_routing off)"


def test_a_prompt_gets_its_hint_and_the_model_sees_it(live: Live) -> None:
    assert "registered skill routing" in live.setup("--skill-routing")
    played = live.play("this test fails, fix it", [say("I see.")])
    live.keep(played, "hinted")
    (answer,) = played.answers("UserPromptSubmit")
    hint = answer["hookSpecificOutput"]["additionalContext"]
    assert HINT in hint
    assert "/investigate" in hint
    assert hint in played.seen(0)
    assert live.log("skill-route") == ["routed skill=investigate score=1.00"]


def test_what_nothing_fits_gets_no_hint(live: Live) -> None:
    live.setup("--skill-routing")
    played = live.play("write a haiku about autumn", [say("Leaves.")])
    assert len(played.hooks("UserPromptSubmit")) == 1
    assert played.answers("UserPromptSubmit") == []
    assert "gstack skill routing" not in played.seen(0)
    assert live.log("skill-route") == ["no-route reason=below-threshold"]


def test_the_second_prompt_of_a_session_is_not_hinted_again(live: Live) -> None:
    live.setup("--skill-routing")
    prompt = "this test fails, fix it"
    again = {"prompt": prompt, "args": ["--resume", "@{SESSION}"]}
    played = live.play(runs=[{"prompt": prompt}, again], steps=[say("One."), say("Two.")])
    assert len(played.answers("UserPromptSubmit")) == 1
    assert played.answers("UserPromptSubmit", run=1) == []
    assert live.log("skill-route")[-1] == "no-route reason=already-hinted"


@pytest.mark.parametrize("how", ["observe", "off in the configuration", "never registered"])
def test_nothing_is_seen(live: Live, how: str) -> None:
    if how == "never registered":
        live.setup("--no-skill-routing")
    elif how == "observe":
        live.setup("--skill-routing=observe")
    else:
        live.setup("--skill-routing")
        live.gstack("config", "set", "skill_routing", "off")
    played = live.play("this test fails, fix it", [say("I see.")])
    assert played.answers("UserPromptSubmit") == []
    assert len(played.hooks("UserPromptSubmit")) == (how != "never registered")
    assert "gstack skill routing" not in played.seen(0)
    expected = {"observe": ["no-route reason=observe skill=investigate score=1.00"], "never registered": []}
    assert live.log("skill-route") == expected.get(how, ["no-route reason=off"])

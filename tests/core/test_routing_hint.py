import pytest
from hypothesis import given
from hypothesis import strategies as st
from routing_support import StubHost, StubPlan

from gstack.routing.hint import HINT_LIMIT, compose, contract_detail, detail_of, one_line

HOST = StubHost()
CONTRACT = {
    "version": 1,
    "items": [
        {"id": "debug", "kind": "report_labels"},
        {"id": "repro", "kind": "report_labels", "summary": "a repro that ran"},
    ],
}


def hint(skill: str = "investigate", path: str = "/s/SKILL.md", detail: str | None = None) -> str:
    return compose(skill, path, HOST, "UserPromptSubmit", detail=None if detail is None else lambda: detail)


def test_the_hint_says_source_skill_way_disclosure_and_switch() -> None:
    assert hint() == (
        "gstack skill routing (UserPromptSubmit hook; off switch: gstack config set skill_routing off): "
        "this request fits /investigate. Run /investigate with the Skill tool before you start. "
        "In one sentence, tell the user that gstack routed this request."
    )


def test_a_name_that_a_builtin_took_is_read_by_its_path() -> None:
    text = hint("review", "/home/you/.claude/skills/review/SKILL.md")
    assert "read /home/you/.claude/skills/review/SKILL.md" in text
    assert "Run /review" not in text


def test_variants() -> None:
    plan = StubPlan({})

    def made(variant: str, **more: object) -> str:
        facts = {"first_step": "Reproduce it.", "contract": CONTRACT, "path": "/s/SKILL.md", **more}
        detail = detail_of(variant, plan=plan, **facts)  # type: ignore[arg-type]
        return compose("investigate", "/s/SKILL.md", HOST, "UserPromptSubmit", detail=detail)

    assert made("name") == hint()
    assert "Its first step: Reproduce it." in made("step")
    assert made("step", first_step="") == hint()
    assert "must have produced: the debug report, a repro that ran." in made("contract")
    assert made("contract", contract=None) == hint()
    # an invalid contract is never half applied
    assert made("contract", contract={"version": 1, "items": [*CONTRACT["items"], {"id": "x"}]}) == hint()  # type: ignore[misc]


def test_a_kind_that_fails_leaves_the_hint_without_it() -> None:
    class Broken(StubPlan):
        def call(self, owner: object, function: object, *args: object) -> object:
            from gstack.failures import PluginFailed

            raise PluginFailed("x", "raised")

    assert contract_detail(CONTRACT, Broken({}), "/s/SKILL.md") == ""  # type: ignore[arg-type]


@given(st.text(max_size=900), st.text(min_size=1, max_size=300), st.sampled_from(["investigate", "review"]))
def test_always_one_line_of_at_most_600_without_angle_brackets(detail: str, name: str, taken: str) -> None:
    for text in (hint(name, detail=detail), hint(taken, "/p/" + detail, detail)):
        assert len(text) <= HINT_LIMIT
        assert text.isprintable()
        assert "<" not in text
        assert ">" not in text
        assert text.startswith("gstack skill routing (UserPromptSubmit hook; ")
        assert text.endswith("tell the user that gstack routed this request.")


def test_a_long_step_is_cut_not_the_rest() -> None:
    text = hint(detail="Its first step: " + "word " * 300)
    assert len(text) <= HINT_LIMIT
    assert "… In one sentence" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\n b\tc", "a b c"), ("<id> -> x", "[id] → x"), ("a\x1b[31mb", "a[31mb"), ("a => b", "a → b")],
)
def test_one_line(text: str, expected: str) -> None:
    assert one_line(text) == expected

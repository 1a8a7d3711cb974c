from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from routing_support import Context, context

from gstack.api import Candidate
from gstack.routing.hook import answer
from gstack.sessions import read_session, update_session
from gstack_plugins.lexical_scorer import Lexical


class Scorer:
    """A scorer that gives what it was told to give."""

    def __init__(self, result: Any, name: str = "lexical") -> None:
        self.name = name
        self.result = result

    def prepare(self, skills: Any) -> list[str]:
        return []

    def score(self, prompt: str, index: Any) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def logged(ctx: Context) -> tuple[str | None, list[str]]:
    """The hint and the log after one prompt."""
    hint = answer(ctx).inject
    return hint, ctx.finish()


def test_a_fitting_prompt_is_hinted_logged_and_remembered(tmp_path: Path) -> None:
    ctx = context(tmp_path, "the login test fails, fix it")
    hint, lines = logged(ctx)
    assert hint is not None
    assert "this request fits /investigate. Run /investigate with the Skill tool" in hint
    assert lines == ["s1 routed skill=investigate score=1.00"]
    assert read_session(str(tmp_path), "s1").hinted == {"investigate"}


def test_nothing_is_written_before_the_answer(tmp_path: Path) -> None:
    answer(context(tmp_path, "the login test fails, fix it"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("prompt", "event", "reason"),
    [
        ("", {}, "empty"),
        (None, {}, "empty"),
        ("/qa fix this bug", {}, "slash"),
        ("fix this bug " * 800, {}, "too-long"),
        ("fix this bug", {"origin": "continuation"}, "not-typed"),
        ("fix this bug", {"origin": "agent"}, "not-typed"),
        ("fix this bug", {"origin": "tool_result"}, "not-typed"),
        ("fix this bug", {"origin": "unknown"}, "not-typed"),
        ("fix this bug", {"scope": "subagent"}, "subagent"),
        ("fix this bug", {"agent_id": "a1"}, "subagent"),
        ("write a poem", {}, "below-threshold"),
        ("patch the iphone app", {}, "not-routable"),
        ("fix " + "word " * 9 + "bug", {}, "scattered"),
        ("don't fix this bug", {}, "negated"),
    ],
)
def test_reasons(tmp_path: Path, prompt: str | None, event: dict[str, Any], reason: str) -> None:
    assert logged(context(tmp_path, prompt, **event)) == (None, [f"s1 no-route reason={reason}"])


@pytest.mark.parametrize(
    ("prompt", "loaded"),
    [
        ("/qa", {"qa"}),
        ("/qa the checkout", {"qa"}),
        ("/quality the checkout", {"qa"}),
        (" /qa", set()),
        ("/", set()),
        ("/ qa", set()),
        ("/etc/hosts is odd", set()),
    ],
)
def test_a_typed_skill_counts_as_loaded(tmp_path: Path, prompt: str, loaded: set[str]) -> None:
    """ "quality" is the frontmatter's name of /qa; with a space before the slash the host takes it for text."""
    lines = logged(context(tmp_path, prompt, index={"labels": {"quality": "qa"}}))[1]
    assert lines == ["s1 no-route reason=slash"]
    assert read_session(str(tmp_path), "s1").loaded == loaded


def test_no_skills(tmp_path: Path) -> None:
    assert logged(context(tmp_path, "fix this bug", triggers={})) == (None, ["s1 no-route reason=no-skills"])


def test_a_skill_is_hinted_once_a_session(tmp_path: Path) -> None:
    assert logged(context(tmp_path, "fix this bug"))[0]
    assert logged(context(tmp_path, "fix this bug"))[1][-1] == "s1 no-route reason=already-hinted"
    assert logged(context(tmp_path, "fix this bug", session_id="s2"))[0]


def test_a_loaded_skill_is_not_hinted(tmp_path: Path) -> None:
    update_session(str(tmp_path), "s1", loaded=["investigate"])
    assert logged(context(tmp_path, "fix this bug"))[1] == ["s1 no-route reason=already-loaded"]


def test_a_session_without_an_id_still_routes(tmp_path: Path) -> None:
    hint, lines = logged(context(tmp_path, "fix this bug", session_id=None))
    assert hint
    assert lines == ["- routed skill=investigate score=1.00"]


def test_observe_decides_and_logs_but_neither_hints_nor_remembers(tmp_path: Path) -> None:
    assert logged(context(tmp_path, "fix this bug", switch="observe")) == (
        None,
        ["s1 no-route reason=observe skill=investigate score=1.00"],
    )
    assert not read_session(str(tmp_path), "s1").hinted
    lines = logged(context(tmp_path, "write a poem", switch="observe"))[1]
    assert lines[-1] == "s1 no-route reason=below-threshold mode=observe"


@pytest.mark.parametrize(
    "result",
    [
        ValueError("x"),
        None,
        3,
        ["qa"],
        [Candidate("not-installed", 1.0)],
        [Candidate("qa", 2.0)],
        [Candidate("qa", float("nan"))],
        [Candidate("qa", "1")],  # type: ignore[arg-type]
        [Candidate("qa", 1.0, evidence=(0, 99))],
        [Candidate("qa", 1.0, evidence=(-1,))],
        [Candidate("qa", 1.0, evidence=("a",))],  # type: ignore[arg-type]
    ],
)
def test_a_scorer_that_fails_or_talks_nonsense_costs_only_the_hint(tmp_path: Path, result: Any) -> None:
    ctx = context(tmp_path, "fix this bug", scorers={"lexical": Scorer(result)})
    assert logged(ctx) == (None, ["s1 no-route reason=scorer-error"])


def test_a_scorer_that_is_not_there(tmp_path: Path) -> None:
    ctx = context(tmp_path, "fix this bug", config={"route_scorer": "vendor.gone"})
    assert logged(ctx) == (None, ["s1 no-route reason=scorer-error"])


def test_shadow_scorers_are_only_logged(tmp_path: Path) -> None:
    scorers = {
        "lexical": Lexical(),
        "vendor.a": Scorer([Candidate("qa", 0.8)], "vendor.a"),
        "vendor.b": Scorer([], "vendor.b"),
        "vendor.c": Scorer(ValueError(), "vendor.c"),
    }
    config = {"route_shadow_scorers": "vendor.a, vendor.b, vendor.c"}
    hint, lines = logged(context(tmp_path, "fix this bug", scorers=scorers, config=config))
    assert hint is not None
    assert "/investigate" in hint
    assert sorted(lines) == [
        "s1 routed skill=investigate score=1.00",
        "s1 shadow scorer=vendor.a skill=qa score=0.80",
        "s1 shadow scorer=vendor.b skill=- score=0.00",
        "s1 shadow scorer=vendor.c reason=scorer-error",
    ]


def test_routed_skills_and_threshold_are_configured(tmp_path: Path) -> None:
    config = {"routed_skills": "ios-fix, review"}
    assert "/ios-fix" in (answer(context(tmp_path, "patch the iphone app", config=config)).inject or "")
    assert answer(context(tmp_path, "why is this broken", config=config)).inject is None
    assert answer(context(tmp_path, "find bugs", config={"route_threshold": "0.7"})).inject is None
    assert answer(context(tmp_path, "find bugs")).inject
    assert answer(context(tmp_path, "find bugs", config={"route_threshold": "nonsense"})).inject


def test_a_project_narrows_the_routed_set(tmp_path: Path) -> None:
    project = {"routed_skills": "qa, ios-fix"}
    assert logged(context(tmp_path, "fix this bug", project=project))[1] == ["s1 no-route reason=not-routable"]
    assert answer(context(tmp_path, "find bugs", project=project)).inject
    assert answer(context(tmp_path, "patch the iphone app", project=project)).inject is None


def test_a_skill_keeps_itself_out_and_the_overlay_brings_one_in(tmp_path: Path) -> None:
    index = {"routing": {"investigate": "off", "ios-fix": "on"}}
    assert answer(context(tmp_path, "why is this broken", index=index)).inject is None
    assert "/ios-fix" in (answer(context(tmp_path, "patch the iphone app", index=index)).inject or "")


def test_the_hint_variant_comes_from_the_environment(tmp_path: Path) -> None:
    index = {"first_steps": {"investigate": "Reproduce it"}}
    for value, said in (("step", True), ("name", False), ("", False), ("nonsense", False)):
        env = {"GSTACK_SKILL_ROUTE_HINT": value}
        hint = answer(context(tmp_path, "fix this bug", index=index, env=env)).inject
        assert hint is not None
        assert ("Reproduce it" in hint) is said


@pytest.mark.parametrize(("gate", "asked"), [("on", True), ("observe", False), ("off", False)])
def test_the_gate_has_a_say_when_it_is_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: str, asked: bool
) -> None:
    import sys
    import types

    module = types.ModuleType("gstack.gate.hook")
    module.would_block = lambda ctx, skill: skill == "investigate"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gstack.gate.hook", module)
    lines = logged(context(tmp_path, "fix this bug", config={"gate": gate}))[1]
    assert lines == ["s1 no-route reason=blocked-by-policy" if asked else "s1 routed skill=investigate score=1.00"]


def test_the_log_holds_no_word_of_prompt_or_trigger(tmp_path: Path) -> None:
    for number, prompt in enumerate(["fix this hemlock bug", "hemlock", "don't fix this hemlock bug", "/hemlock"]):
        logged(context(tmp_path, prompt, session_id=f"s{number}"))
    text = (tmp_path / "hooks" / "skill-route.log").read_text()
    assert "hemlock" not in text
    assert "bug" not in text


@given(st.text(max_size=200))
def test_any_prompt_gets_an_answer(tmp_path_factory: pytest.TempPathFactory, prompt: str) -> None:
    ctx = context(tmp_path_factory.getbasetemp() / "any", prompt)
    found = answer(ctx)
    assert found.deny is found.block_stop is found.notice is None

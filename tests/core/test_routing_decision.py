import pytest
from hypothesis import given
from hypothesis import strategies as st
from routing_support import DATA, TRIGGERS, corpus_triggers, read_jsonl, skills_of

from gstack.api import Candidate
from gstack.routing.decision import PROMPT_LIMIT, Outcome, RoutedSet, bare_name, decide, unroutable
from gstack_plugins.lexical_scorer import Lexical

DEFAULT = ["investigate", "review", "qa", "verify"]
ROUTED = RoutedSet(DEFAULT)


def candidate(skill: str, score: float = 1.0, **more: object) -> Candidate:
    return Candidate(skill, score, "a trigger", matched_words=2, **more)  # type: ignore[arg-type]


def route(prompt: str, triggers: dict[str, tuple[str, ...]] | None = None, routed: RoutedSet = ROUTED) -> Outcome:
    scorer = Lexical()
    index = scorer.prepare(skills_of(triggers or TRIGGERS))
    reason = unroutable(prompt)
    return Outcome(None, reason) if reason else decide(prompt, scorer.score(prompt, index), 0.66, routed)


def name_of(outcome: Outcome) -> str | None:
    return outcome.route.skill if outcome.route else None


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        (None, "empty"),
        ("", "empty"),
        (" \n\t", "empty"),
        ("/qa", "slash"),
        ("  \n/fix this bug", "slash"),
        ("x" * PROMPT_LIMIT, None),
        ("x" * (PROMPT_LIMIT + 1), "too-long"),
        ("é" * PROMPT_LIMIT, None),
        ("\U0001f600" * PROMPT_LIMIT, None),
        ("fix /this", None),
    ],
)
def test_prompts_that_are_never_routed(prompt: str | None, reason: str | None) -> None:
    assert unroutable(prompt) == reason


def test_the_best_of_the_routed_set_routes() -> None:
    outcome = decide("a b", [candidate("ios-fix"), candidate("qa", 0.7), candidate("review", 0.67)], 0.66, ROUTED)
    assert name_of(outcome) == "qa"
    assert outcome.reason is None


def test_the_threshold_itself_is_enough() -> None:
    assert name_of(decide("a", [candidate("qa", 0.66)], 0.66, ROUTED)) == "qa"
    assert decide("a", [candidate("qa", 0.6599)], 0.66, ROUTED).reason == "below-threshold"
    assert decide("a", [], 0.66, ROUTED).reason == "below-threshold"


def test_a_long_whole_phrase_is_never_scattered() -> None:
    phrase = "walk me through how the whole billing pipeline works before we change anything"
    assert name_of(route(f"please {phrase}, thanks", {"qa": (phrase,)})) == "qa"


def test_only_other_skills_reach_it() -> None:
    assert decide("a", [candidate("ios-fix")], 0.66, ROUTED).reason == "not-routable"


def test_guards_apply_to_each_and_the_next_best_routes() -> None:
    found = [candidate("qa", evidence=(0, 20)), candidate("review", 0.9)]
    outcome = decide("a " * 30, found, 0.66, ROUTED)
    assert name_of(outcome) == "review"
    assert [(one.skill, reason) for one, reason in outcome.refused] == [("qa", "scattered")]


def test_the_reason_is_that_of_the_best_one() -> None:
    found = [candidate("qa"), candidate("review", 0.9, evidence=(0, 20))]
    assert decide("a " * 30, found, 0.66, ROUTED, loaded={"qa"}).reason == "already-loaded"
    assert decide("a " * 30, found, 0.66, ROUTED, hinted={"qa"}).reason == "already-hinted"
    assert decide("a " * 30, found, 0.66, ROUTED, loaded={"qa"}, hinted={"qa"}).reason == "already-loaded"


def test_the_gate_is_asked_last_and_only_about_who_would_route() -> None:
    asked = []

    def blocked(skill: str) -> bool:
        asked.append(skill)
        return skill == "qa"

    found = [candidate("ios-fix"), candidate("investigate"), candidate("qa", 0.9), candidate("review", 0.8)]
    outcome = decide("a", found, 0.66, ROUTED, loaded={"investigate"}, blocked=blocked)
    assert name_of(outcome) == "review"
    assert asked == ["qa", "review"]
    assert decide("a", found[2:3], 0.66, ROUTED, blocked=blocked).reason == "blocked-by-policy"


def test_an_equivalent_does_not_make_up_for_a_missing_word() -> None:
    """The known fault: find + (failed = bug) of "find bugs on site"."""
    outcome = route("find the cause of the failed job")
    assert name_of(outcome) is None
    assert outcome.reason == "below-threshold"
    assert name_of(route("find the bugs, they are all over the place")) == "qa"
    assert name_of(route("the job failed, fix it")) == "investigate"


def test_an_equivalent_counts_where_the_own_words_are_enough() -> None:
    found = Candidate("qa", 5 / 6, "six words", matched_words=5, equivalents=1)
    assert name_of(decide("a", [found], 0.66, ROUTED)) == "qa"
    assert decide("a", [found], 0.7, ROUTED).reason == "below-threshold"


@pytest.mark.parametrize(
    ("skill", "names", "routing", "within", "inside"),
    [
        ("qa", DEFAULT, {}, None, True),
        ("gstack-qa", DEFAULT, {}, None, True),
        ("qa", ["gstack-qa"], {}, None, True),
        ("qa", ["/qa"], {}, None, True),
        ("other:qa", DEFAULT, {}, None, False),
        ("other:qa", ["other:qa"], {}, None, True),
        ("ship", DEFAULT, {}, None, False),
        ("ship", ["all"], {}, None, True),
        ("qa", DEFAULT, {"qa": "off"}, None, False),
        ("qa", ["all"], {"qa": "off"}, None, False),
        ("ship", DEFAULT, {"ship": "on"}, None, True),
        ("qa", DEFAULT, {}, ["review"], False),
        ("qa", DEFAULT, {}, ["qa", "ship"], True),
        ("ship", DEFAULT, {}, ["qa", "ship"], False),
        ("ship", DEFAULT, {"ship": "on"}, ["qa"], False),
        ("ship", DEFAULT, {}, ["all"], False),
        ("qa", [], {}, None, False),
        ("qa", DEFAULT, {}, [], False),
    ],
)
def test_the_routed_set(
    skill: str, names: list[str], routing: dict[str, str], within: list[str] | None, inside: bool
) -> None:
    assert (skill in RoutedSet(names, routing, within)) is inside


def test_bare_name() -> None:
    assert [bare_name(one) for one in ("qa", "/qa", "gstack-qa", "my-gstack-qa")] == ["qa", "qa", "qa", "my-gstack-qa"]


@pytest.mark.parametrize("case", read_jsonl(DATA / "routing_cases.jsonl"), ids=lambda case: case["id"])
def test_every_labelled_case_routes_as_it_should(case: dict[str, str]) -> None:
    assert name_of(route(case["prompt"])) == case["expected"]


def test_the_labelled_cases_with_all_of_gstacks_triggers(shared) -> None:
    triggers = corpus_triggers(shared)
    wrong = [
        case["id"]
        for case in read_jsonl(shared / "cases" / "routing.jsonl")
        if name_of(route(case["prompt"], triggers)) != case["expected"]
    ]
    assert wrong == []


def test_the_sample_with_all_of_gstacks_triggers(shared) -> None:
    scorer = Lexical()
    index = scorer.prepare(skills_of(corpus_triggers(shared)))
    found = [one.skill for one in scorer.score("this test fails, fix it", index) if one.score >= 0.66]
    assert found == ["investigate", "ios-fix"]


#: What this version gets wrong of tests/data/routing_more.jsonl, which was labelled before the rules were tuned.
KNOWN_MISSES = {
    "m007",  # "regression" is no equivalent of bug unless the configuration says so
    "m008",  # no trigger has a word of it
    "m012",  # "pull request" isn't "pr" to a scorer of words
    "m013",
    "m017",
}
KNOWN_FALSE_ROUTES = {
    "m031",  # quoted text is read like any other
    "m032",
    "m034",  # "debug" alone is enough for "debug this" (R2)
    "m035",
    "m039",  # the phrase "code review" as a topic
}


def test_prompts_that_were_labelled_before_tuning() -> None:
    """Holds the score on them, good and bad: a change that helps or harms must be seen here."""
    rows = [(case, name_of(route(case["prompt"]))) for case in read_jsonl(DATA / "routing_more.jsonl")]
    assert {case["id"] for case, got in rows if case["expected"] and got is None} == KNOWN_MISSES
    assert {case["id"] for case, got in rows if not case["expected"] and got} == KNOWN_FALSE_ROUTES
    assert [case["id"] for case, got in rows if case["expected"] and got not in (None, case["expected"])] == []


def test_few_tasks_of_terminal_bench_route(shared) -> None:
    triggers = corpus_triggers(shared)
    prompts = read_jsonl(shared / "corpus" / "prompts" / "prompts.jsonl")
    tasks = [row for row in prompts if row["kind"] == "terminal-bench"]
    routed = [row["id"] for row in tasks if name_of(route(row["prompt"], triggers))]
    assert len(tasks) == 52
    assert len(routed) <= 2, routed


def test_prompts_for_other_packs_skills_hardly_route(shared) -> None:
    triggers = corpus_triggers(shared)
    lines = (DATA / "trigger-eval-asks.txt").read_text("utf-8").splitlines()
    asks = {line for line in lines if line and not line.startswith("#")}
    prompts = read_jsonl(shared / "corpus" / "prompts" / "prompts.jsonl")
    others = [row for row in prompts if row["kind"] == "trigger-eval" and row["id"] not in asks]
    routed = [row["id"] for row in others if name_of(route(row["prompt"], triggers))]
    assert len(others) == 600
    assert len(routed) <= 0.01 * len(others), routed


@given(st.text(max_size=300))
def test_deciding_any_text_never_raises_and_never_changes(prompt: str) -> None:
    outcome = route(prompt)
    assert (outcome.route is None) == (outcome.reason is not None)
    again = route(prompt)
    assert (again.route, again.reason) == (outcome.route, outcome.reason)

import pytest
from hypothesis import given
from hypothesis import strategies as st
from routing_support import TRIGGERS, skills_of

from gstack.routing.guards import (
    EDGE,
    EDGE_LONE,
    LONG_PROMPT,
    TOGETHER,
    choose_places,
    negated,
    scattered,
    well_placed,
)
from gstack.routing.words import tokens
from gstack_plugins.lexical_scorer import Lexical

SCORER = Lexical()
INDEX = SCORER.prepare(skills_of(TRIGGERS))


def says_no(prompt: str) -> bool:
    """Whether the best candidate's evidence is negated."""
    found = SCORER.score(prompt, INDEX)[0]
    assert found.score >= 0.66, "the prompt must reach the threshold, or the guard isn't asked"
    return negated(prompt, tokens(prompt), found.evidence)


@pytest.mark.parametrize(
    "prompt",
    [
        "don't debug it, only print the log",
        "DON’T review this pr",
        "dont fix this bug",
        "do not investigate this error",
        "please do not debug this",
        "you should not fix this bug",
        "I'm not asking you to fix this bug",
        "I don't want you to review this PR, only to squash the commits",
        "no need to review the PR",
        "no bug fix please",
        "no more bug fixes today",
        "no QA test please",
        "without debugging anything, name the owner",
        "instead of a code review, write docs",
        "rather than review the pr, close it",
        "stop debugging",
        "please skip the qa test",
        "avoid fixing this bug",
        "forget the code review",
        "never debug in production",
        "not a code review",
        "you needn't debug this",
        "don't bother to fix the failing test",
        "don't verify that it works",
        "a code review is not needed",
        "code review isn't required here",
        "no code review needed, just format the file",
        "we fixed that bug yesterday, write the notes",
        "the bug was already fixed in 2.3",
        "I already reviewed this PR, merge it",
        "Looks good. Do not review this pr again - ship it",
    ],
)
def test_negated(prompt: str) -> None:
    assert says_no(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "this doesn't work, debug it",
        "I don't understand why this is broken",
        "I don't know why this is broken",
        "tests are not passing, fix the error",
        "it is not working fix this bug",
        "no idea what's wrong: investigate this error",
        "the error won't go away, fix it",
        "fix this bug, don't change the API",
        "fix this bug without touching the API",
        "can't reproduce locally - why is this broken only on CI?",
        "never seen this error before, investigate",
        "don't forget to review this pr",
        "I'm not sure why the test fails, please fix",
        "why don't you review this pr",
        "the tests don't pass. fix the error",
        "there is no log output, investigate this error",
        "not only review this pr but also approve it",
        "without changing the tests, fix the error",
        "do not push anything. review this pr",
        "I can't fix this bug, help",
        "users don't see the error. investigate",
        "login fails with no error message, fix it",
        "no problem, review this pr",
        "the build stopped working, fix the error",
        "the server stops on an error, investigate",
        "check my diff, no need to run the tests",
        "don't refactor. just fix the bug",
        "don't touch the tests but fix this bug",
        "the nightly job already failed twice, fix it",
        "we crashed production, fix the error",
    ],
)
def test_not_negated(prompt: str) -> None:
    assert not says_no(prompt)


def test_a_negation_that_the_trigger_holds_is_evidence_not_refusal() -> None:
    found = SCORER.score("test but don't fix", INDEX)[0]
    assert found.skill == "qa-only"
    assert not negated("test but don't fix", tokens("test but don't fix"), found.evidence)


def test_a_refusal_reaches_only_its_clause_and_four_words() -> None:
    assert says_no("do not ever again try to debug this") is False
    assert says_no("do not try to debug this") is True
    assert says_no("do not; debug this") is False


@given(st.text(max_size=200), st.data())
def test_negated_never_raises(prompt: str, data: st.DataObject) -> None:
    words = tokens(prompt)
    places = st.integers(0, max(0, len(words) - 1))
    evidence = sorted(data.draw(st.sets(places, max_size=4))) if words else []
    assert negated(prompt, words, evidence) in (True, False)


@given(
    st.lists(st.sampled_from(["don't", "not", "debug", "stop", "no", ",", ".", "it", "instead of", "\n"]), max_size=14)
)
def test_words_and_clauses_of_any_mix_are_judged(parts: list[str]) -> None:
    prompt = " ".join([*parts, "debug this"])
    words = tokens(prompt)
    assert negated(prompt, words, (len(words) - 2, len(words) - 1)) in (True, False)


@pytest.mark.parametrize(
    ("first", "last", "total", "good"),
    [
        (0, TOGETHER - 1, LONG_PROMPT, True),
        (0, TOGETHER, LONG_PROMPT, False),
        (50, 52, 100, False),
        (EDGE - 3, EDGE - 1, 200, True),
        (EDGE - 2, EDGE, 200, False),
        (200 - EDGE, 200 - EDGE + 2, 200, True),
        (200 - EDGE - 1, 200 - EDGE + 1, 200, False),
        (EDGE_LONE - 1, EDGE_LONE - 1, 200, True),
        (EDGE_LONE, EDGE_LONE, 200, False),
        (30, 30, LONG_PROMPT, True),
        (30, 30, LONG_PROMPT + 1, False),
    ],
)
def test_where_evidence_must_stand(first: int, last: int, total: int, good: bool) -> None:
    assert well_placed(first, last, total) is good
    assert scattered((first, last), total) is not good


def test_many_words_without_a_gap_stand_together() -> None:
    assert well_placed(0, TOGETHER + 3, 50, TOGETHER + 4)
    assert not well_placed(0, TOGETHER + 4, 50, TOGETHER + 4)


def test_no_evidence_is_never_scattered() -> None:
    assert not scattered((), 5000)


groups = st.lists(st.sets(st.integers(0, 150), min_size=1, max_size=4), min_size=1, max_size=4)


@given(groups)
def test_the_chosen_places_are_the_best_of_all(drawn: list[set[int]]) -> None:
    """Against trying every combination."""
    from itertools import product

    # a token is one word only
    seen: set[int] = set()
    lists = []
    for group in drawn:
        lists.append(sorted(group - seen) or [151 + len(lists)])
        seen |= group
    chosen = choose_places(lists, 160)
    assert len(chosen) == len(lists)
    assert all(any(at in group for at in chosen) for group in lists)

    def key(places: tuple[int, ...]) -> tuple[bool, int]:
        return (not well_placed(min(places), max(places), 160), max(places) - min(places))

    assert key(chosen) == min(key(places) for places in product(*lists))

import marshal
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from routing_support import TRIGGERS, skills_of

from gstack.api import Candidate, Skill
from gstack.routing.words import tokens
from gstack_plugins.lexical_scorer import Lexical, gstack_trigger_scorers

WORDS = [
    *("fix", "bug", "fail", "error", "this", "the", "ios", "why", "site", "test", "find", "review", "pr"),
    *("gstack", "diagram", "ship", "it", "where", "was", "i"),
]
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
sets_of_skills = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e"]), st.lists(phrases, max_size=4).map(tuple), max_size=5
).map(skills_of)


def score(prompt: str, **triggers: tuple[str, ...]) -> list[Candidate]:
    scorer = Lexical()
    return scorer.score(prompt, scorer.prepare(skills_of(triggers)))


def best(prompt: str, *triggers: str) -> float:
    found = score(prompt, x=triggers)
    return found[0].score if found else 0.0


def test_the_sample_of_the_specification() -> None:
    scorer = Lexical()
    found = [
        one for one in scorer.score("this test fails, fix it", scorer.prepare(skills_of(TRIGGERS))) if one.score >= 0.66
    ]
    assert [(one.skill, round(one.score, 2), one.trigger, one.matched_words) for one in found] == [
        ("investigate", 1.0, "fix this bug", 2),
        ("ios-fix", 0.67, "fix this ios bug", 2),
    ]


@pytest.mark.parametrize(
    ("prompt", "trigger", "expected"),
    [
        ("Please FIX this bug now", "fix this bug", 1.0),
        ("the prefix of this bugle", "fix this bug", 0.0),
        ("failing", "fails badly", 0.5),
        ("pre landing review", "pre-landing review", 1.0),
        ("landing review", "pre-landing review", 2 / 3),
        ("the worker is failing, fix that", "fix this bug", 1.0),
        ("fix that", "fix this bug", 0.5),
        # one content word: five letters, as written, or the whole phrase
        ("debugging the worker", "debug this", 1.0),
        ("we ship on friday", "ship it", 0.0),
        ("ship it", "ship it", 1.0),
        ("uses of it", "using", 0.0),
        ("a diagram", "diagram this", 1.0),
        # question words are content words, but none counts alone
        ("where is it", "where was i", 0.0),
        ("and where was i?", "where was i", 1.0),
        ("why does it crash", "why is this broken", 1.0),
        ("which", "which of these", 0.0),
        # no content word
        ("what is it about", "this is it", 0.0),
        ("this is it", "this is it", 1.0),
        # equivalents serve triggers of several content words only
        ("it crashes", "errors", 0.0),
        ("it crashes", "errors here", 0.0),
        ("an error, then a crash", "fix bugs and errors", 2 / 3),
        # apostrophes
        ("don’t fix it, test it", "test but don't fix", 0.75),
        ("test, then fix", "test but dont fix", 0.5),
        ("", "fix this bug", 0.0),
        ("fix this bug", "", 0.0),
        ("fix this bug", "?!", 0.0),
    ],
)
def test_score(prompt: str, trigger: str, expected: float) -> None:
    assert best(prompt, trigger) == pytest.approx(expected)


def test_one_content_word_counts_letters_as_written() -> None:
    """ "fixes" has five letters although its stem has three."""
    assert best("it was fixed", "fixes it") == 1.0
    assert best("it was fixed", "fix it") == 0.0


def test_a_whole_phrase_goes_before_the_same_share() -> None:
    found = score("review this pr", a=("pr review",), b=("review this pr",))
    assert [(one.skill, one.phrase) for one in found] == [("b", True), ("a", False)]


def test_ties_more_words_then_longer_then_byte_order() -> None:
    found = score(
        "alpha beta gamma delta", a=("delta alpha",), b=("gamma beta alpha",), c=("gammas alpha",), B=("gamma alpha",)
    )
    assert [one.skill for one in found] == ["b", "c", "B", "a"]


def test_a_skill_scores_by_its_best_trigger() -> None:
    (found,) = score("fix this bug", x=("fix the engine", "fix this bug", "bug report tool"))
    assert (found.score, found.trigger, found.matched_words) == (1.0, "fix this bug", 2)


def test_evidence_says_where_the_words_stand() -> None:
    (found,) = score("so the login test fails on CI only, fix it", x=("fix this bug",))
    assert found.evidence == (4, 8)
    assert found.equivalents == 1
    (found,) = score("please fix this bug", x=("fix this bug",))
    assert found.evidence == (1, 2, 3)
    assert found.equivalents == 0


def test_evidence_is_the_place_that_stands_together() -> None:
    text = "fix " + "word " * 30 + "please fix that bug"
    (found,) = score(text, x=("bug fix",))
    words = tokens(text)
    assert [words[at] for at in found.evidence] == ["fix", "bug"]
    assert found.evidence[0] == 32


def test_a_token_that_stands_for_two_words_is_evidence_once() -> None:
    (found,) = score("please fix the crash", x=("fix bugs and errors",))
    assert found.score == 1.0
    assert found.evidence == (1, 3)


def test_equivalents_can_be_extended() -> None:
    scorer = Lexical()
    skills = skills_of({"x": ("fix this bug", "deploy the service")})
    assert scorer.configure({"equivalents": "bug = glitch, regression; deploy=rollout"}) == []
    index = scorer.prepare(skills)
    assert scorer.score("fix the regressions", index)[0].score == 1.0
    assert scorer.score("roll the service rollout", index)[0].score == 1.0
    assert scorer.score("fix the crash", index)[0].score == 1.0
    scorer.configure({})
    assert scorer.score("fix the regressions", scorer.prepare(skills))[0].score == 0.5


@pytest.mark.parametrize("bad", ["bug", "pull request=pr", "a=", "=b", "a=b,,c"])
def test_a_part_of_the_equivalents_that_says_nothing_is_named_and_costs_only_itself(bad: str) -> None:
    scorer = Lexical()
    problems = scorer.configure({"equivalents": f"{bad}; fix=mend"})
    assert len(problems) == 1
    assert bad.strip() in problems[0]
    assert scorer.score("mend this bug", scorer.prepare(skills_of({"x": ("fix this bug",)})))[0].score == 1.0


def test_missing_words_are_given_as_written() -> None:
    scorer = Lexical()
    index = scorer.prepare(skills_of(TRIGGERS))
    assert scorer.missing_words("find the cause of the failed job", "find bugs on site", index) == ["site"]
    assert scorer.missing_words("hello", "find bugs on site", index) == ["find", "bugs", "site"]


prompts = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=12)), max_size=30).map(" ".join)


@given(prompts, sets_of_skills)
def test_score_is_sound_for_any_text(prompt: str, skills: list[Skill]) -> None:
    scorer = Lexical()
    found = scorer.score(prompt, scorer.prepare(skills))
    total = len(tokens(prompt))
    for one in found:
        assert 0 < one.score <= 1
        assert list(one.evidence) == sorted(set(one.evidence))
        assert one.evidence
        assert 0 <= one.evidence[0] <= one.evidence[-1] < total
    assert len({one.skill for one in found}) == len(found)


@given(st.lists(st.sampled_from([*WORDS, "x", "y"]), max_size=12).map(" ".join), sets_of_skills, st.randoms())
def test_the_order_of_the_skills_means_nothing(prompt: str, skills: list[Skill], rng: random.Random) -> None:
    scorer = Lexical()
    first = scorer.score(prompt, scorer.prepare(skills))
    shuffled = [
        Skill(one.name, one.path, triggers=tuple(rng.sample(one.triggers, len(one.triggers)))) for one in skills
    ]
    rng.shuffle(shuffled)
    assert Lexical().score(prompt, Lexical().prepare(shuffled)) == first


@given(st.lists(st.sampled_from([*WORDS, "x", "y"]), max_size=12).map(" ".join), sets_of_skills, sets_of_skills)
def test_other_skills_never_change_a_score(prompt: str, skills: list[Skill], more: list[Skill]) -> None:
    scorer = Lexical()
    alone = scorer.score(prompt, scorer.prepare(skills))
    added = [Skill("z" + one.name, one.path, triggers=one.triggers) for one in more]
    together = scorer.score(prompt, scorer.prepare([*skills, *added]))
    assert [one for one in together if not one.skill.startswith("z")] == alone


@given(sets_of_skills, sets_of_skills, st.sampled_from(["", "bug=glitch"]))
def test_an_earlier_index_changes_nothing(skills: list[Skill], more: list[Skill], extra: str) -> None:
    earlier = Lexical().prepare(skills)
    scorer = Lexical()
    scorer.configure({"equivalents": extra})
    for now in (skills, [*skills, *more], more, list(reversed(skills))):
        assert scorer.prepare_again(now, earlier) == scorer.prepare(now)


def test_an_index_is_kept_where_no_trigger_changed() -> None:
    scorer = Lexical()
    earlier = scorer.prepare([Skill("a", "/a", triggers=("fix this", "mend that")), Skill("b", "/b")])
    assert (
        scorer.prepare_again([Skill("b", "/b"), Skill("a", "/x", triggers=("mend that", "fix this"))], earlier)
        is earlier
    )


@given(phrases, st.text(max_size=40), st.text(max_size=40))
def test_the_whole_phrase_scores_one(phrase: str, before: str, after: str) -> None:
    (found,) = score(f"{before} {phrase} {after}", x=(phrase,))
    assert found.score == 1.0
    assert found.phrase


@given(st.lists(st.sampled_from([*WORDS, "x"]), max_size=12).map(" ".join), phrases)
def test_the_index_scores_like_a_plain_reading_of_the_rules(prompt: str, trigger: str) -> None:
    """The inverted index against the sentences of the specification, for one trigger."""
    from gstack.routing.words import COMMON, QUESTIONS, stem
    from gstack_plugins.lexical_scorer.equivalents import groups

    words, parts = tokens(prompt), tokens(trigger)
    rows, _ = groups()
    content = {stem(one): one for one in reversed(parts) if one not in COMMON}
    heard = {stem(one) for one in words if one not in COMMON}
    if any(words[at : at + len(parts)] == parts for at in range(len(words))):
        expected = 1.0
    elif not content:
        expected = 0.0
    elif len(content) == 1:
        ((one, word),) = content.items()
        expected = float(len(word) >= 5 and word not in QUESTIONS and one in heard)
    else:
        same = [{one}.union(*(row for row in rows if one in row)) for one in content]
        expected = sum(bool(row & heard) for row in same) / len(content)
    assert best(prompt, trigger) == pytest.approx(expected)


@given(sets_of_skills, st.text(max_size=60))
def test_the_index_survives_marshal(skills: list[Skill], prompt: str) -> None:
    scorer = Lexical()
    index = scorer.prepare(skills)
    again = marshal.loads(marshal.dumps(index))
    assert again == index
    assert scorer.score(prompt, again) == scorer.score(prompt, index)


def test_the_plugin_gives_one_scorer() -> None:
    assert [scorer.name for scorer in gstack_trigger_scorers()] == ["lexical"]


def test_scores_do_not_depend_on_the_hash_seed() -> None:
    """Sets of texts iterate in another order in every process; answers must not."""
    import os
    import subprocess
    import sys

    code = (
        "from gstack_plugins.lexical_scorer import Lexical\n"
        "from gstack.api import Skill\n"
        "s=[Skill('a','p',triggers=('fix bugs','fix errors','crash fix','this is','is it')),"
        "Skill('b','p',triggers=('fix defects',))]\n"
        "l=Lexical();i=l.prepare(s)\n"
        "print(i, l.score('this is a failure, fix it, is it broken', i))"
    )
    seen = set()
    for seed in ("1", "2", "3"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        seen.add(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout)
    assert len(seen) == 1

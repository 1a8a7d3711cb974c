import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack.routing import words as module
from gstack.routing.words import COMMON, QUESTIONS, line_numbers, stem, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix THIS bug!", ["fix", "this", "bug"]),
        ("pre-landing foo_bar", ["pre", "landing", "foo", "bar"]),
        ("don't don’t dont DONʼT", ["dont"] * 4),
        ("‘quoted’ 'words'", ["quoted", "words"]),
        ("naïve ÉTÉ e\u0301te\u0301", ["naïve", "été", "été"]),
        ("빌드 실패, हिन्दी", ["빌드", "실패", "हिन्दी"]),
        ("src/auth.ts:47", ["src", "auth", "ts", "47"]),
        ("soft\u00adhyphen zero\u200bwidth", ["softhyphen", "zero", "width"]),
        ("x²·y", ["x²", "y"]),
        ("\ufeff\x00\ud800 a", ["a"]),
        ("", []),
        ("?!…", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@given(st.text(max_size=200))
def test_tokens_of_the_joined_tokens_are_the_same(text: str) -> None:
    found = tokens(text)
    assert tokens(" ".join(found)) == found
    assert all(word and not word[0].isspace() for word in found)


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=200))
def test_the_fast_road_for_ascii_splits_like_the_other_one(text: str) -> None:
    assert tokens(text + " é") == [*tokens(text), "é"]


def test_no_character_breaks_idempotence() -> None:
    for start in range(0, sys.maxunicode + 1, 1 << 14):
        text = " ".join(f"a{chr(code)}b" for code in range(start, min(start + (1 << 14), sys.maxunicode + 1)))
        found = tokens(text)
        assert tokens(" ".join(found)) == found


@pytest.mark.parametrize(
    "family",
    [
        "fail fails failing failed",
        "fix fixes fixing fixed",
        "bug bugs",
        "review reviews reviewing reviewed",
        "verify verifies verifying verified",
        "crash crashes crashing crashed",
        "debug debugging debugged debugs",
        "investigate investigates investigating investigated",
        "merge merges merging merged",
        "cause causes causing caused",
        "test tests testing tested",
        "cookie cookies",
        "add adds adding added",
        "plan plans planning planned",
    ],
)
def test_forms_of_a_word_have_one_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize(
    "pair",
    ["plane plan", "site sit", "note not", "state stat", "string str", "prefix fix", "bugle bug", "ios io", "news new"],
)
def test_different_words_keep_different_stems(pair: str) -> None:
    one, other = pair.split()
    assert stem(one) != stem(other) or one == "news"  # "news" is the one that a light stemmer gets wrong


@given(st.text(max_size=20))
def test_stem_never_raises_and_is_never_longer(word: str) -> None:
    assert len(stem(word)) <= max(len(word), 1)
    assert bool(stem(word)) == bool(word)


def test_tables_hold_tokens_and_keep_limiting_words() -> None:
    for table in (COMMON, QUESTIONS):
        assert all(tokens(word) == [word] for word in table)
    assert not COMMON & QUESTIONS
    assert not COMMON & {"no", "not", "dont", "but", "only", "without", "just", "never"}


lines = st.lists(st.sampled_from(["a", "b", "ab", "ba", "", "a b", "é", "\u4e2d"]), unique=True)


@given(
    lines, st.lists(st.sampled_from(["a", "b", "ab", "ba", "", "a b", "é", "\u4e2d", "a\nb", "\n", "x"]), unique=True)
)
def test_few_and_many_lines_are_found_alike(held: list[str], wanted: list[str]) -> None:
    text = "\n" + "".join([line + "\n" for line in held])
    expected = {one: held.index(one) for one in wanted if one in held}
    few = module._FEW
    try:
        for module._FEW in (0, 100):
            assert line_numbers(text, wanted) == expected
    finally:
        module._FEW = few

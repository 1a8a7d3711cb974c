"""Declared contracts: what is accepted, and the one message for what is not (contracts C1)."""

import copy
from typing import Any

import pytest
from contract_helpers import WORKED_CONTRACT, Says, built_in_kinds
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import Field
from gstack.contracts.schema import MAX_ITEMS, find_problems, parse_contract
from gstack.errors import NoContract

KINDS: dict[str, Any] = {"test.says": Says()}


def one(**fields: Any) -> dict[str, Any]:
    """A contract of one item that is right but for ``fields``."""
    return {"version": 1, "items": [{"id": "word", "kind": "test.says", "word": "done", **fields}]}


def message(raw: Any, source: str = "/skills/x/SKILL.md", **more: Any) -> str:
    with pytest.raises(NoContract) as caught:
        parse_contract(raw, KINDS, source=source, **more)
    return caught.value.message


def test_worked_example_is_valid() -> None:
    contract = parse_contract(WORKED_CONTRACT, built_in_kinds(), source="SKILL.md")
    assert [item.id for item in contract.items] == ["debug-report", "repro-after-fix"]
    assert contract.version == 1
    assert contract.items[0].fields["labels"] == ["Symptom", "Root cause", "Fix", "Evidence"]


def test_own_fix_and_summary_are_kept() -> None:
    item = parse_contract(one(fix="do it", summary="the thing"), KINDS, source="x").items[0]
    assert (item.fix, item.summary) == ("do it", "the thing")
    assert "fix" not in item.fields


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (None, "must be a mapping with version and items, not nothing"),
        ([], "must be a mapping"),
        ("version 1", "must be a mapping"),
        ({}, "version is missing"),
        ({"items": []}, "version is missing"),
        ({"version": 2, "items": []}, 'version "2" is not supported'),
        ({"version": "1", "items": []}, "is not supported"),
        ({"version": True, "items": []}, "is not supported"),
        ({"version": 1}, "items must be a list of 1 to 20"),
        ({"version": 1, "items": []}, "items must be a list of 1 to 20"),
        ({"version": 1, "items": {"id": "a"}}, "items must be a list of 1 to 20"),
        ({"version": 1, "items": ["report"]}, "contract item 1: it must be a mapping"),
        ({"version": 1, "items": [{"id": "a", "kind": "test.says", "word": "x"}], "extra": 1}, 'unknown field "extra"'),
        (one(id=""), "contract item 1: id must be lower-case letters"),
        (one(id="Debug Report"), 'contract item "Debug Report": id must be lower-case letters'),
        (one(id="a/b"), 'contract item "a/b": id must be'),
        (one(id=7), "contract item 1: id must be"),
        (one(kind=None), 'contract item "word": kind is missing'),
        (one(kind="nope"), 'contract item "word": unknown kind "nope"'),
        (one(colour="red"), 'contract item "word" (test.says): unknown field "colour"'),
        (one(word=None), "word must be a text, not nothing"),
        (one(word=""), "word must be a text, not an empty text"),
        (one(word=True), "word must be a text, not true"),
        (one(word=3), "word must be a text, not the number 3 (quote it"),
        (one(word=["a"]), "word must be a text, not a list"),
        (one(word={"a": 1}), "word must be a text, not a mapping"),
        (one(loud="maybe"), 'loud must be true or false, not the text "maybe"'),
        (one(loud=1), "loud must be true or false"),
        (one(match="("), "match is no regular expression"),
        (one(match=5), "match must be a regular expression, not the number 5"),
        (one(fix=["a"]), "fix must be a text"),
        (one(summary=" "), "summary must be a text"),
    ],
)
def test_one_message_names_file_item_and_problem(raw: Any, says: str) -> None:
    text = message(raw)
    assert text.startswith("/skills/x/SKILL.md: contract")
    assert says in text
    assert "\n" not in text


def test_missing_field_is_named() -> None:
    raw = one()
    del raw["items"][0]["word"]
    assert 'contract item "word" (test.says): word is missing' in message(raw)


def test_ids_are_unique() -> None:
    raw = one()
    raw["items"].append(dict(raw["items"][0]))
    assert "another item has this id" in message(raw)


def test_twenty_items_are_allowed_and_twenty_one_are_not() -> None:
    items = [{"id": f"i{n}", "kind": "test.says", "word": "x"} for n in range(MAX_ITEMS + 1)]
    assert len(parse_contract({"version": 1, "items": items[:MAX_ITEMS]}, KINDS, source="x").items) == MAX_ITEMS
    assert "21 items, but at most 20" in message({"version": 1, "items": items})


def test_one_bad_item_makes_the_whole_contract_invalid() -> None:
    raw = copy.deepcopy(WORKED_CONTRACT)
    raw["items"][1]["kind"] = "vendor.missing"
    with pytest.raises(NoContract, match=r"unknown kind \"vendor.missing\""):
        parse_contract(raw, built_in_kinds(), source="x")


def test_hint_says_which_distribution_has_an_unknown_kind() -> None:
    text = message(one(kind="vendor.x"), kind_hint=lambda name: f"{name} is in gstack-vendor")
    assert 'unknown kind "vendor.x": vendor.x is in gstack-vendor' in text


def test_further_problems_are_counted() -> None:
    assert "(and 1 more: see gstack contract lint)" in message(one(loud="maybe", colour="red"))


@pytest.mark.parametrize(
    ("word", "value"), [("yes", True), ("True", True), ("off", False), ("no", False), (True, True)]
)
def test_yaml_words_are_flags(word: Any, value: bool) -> None:
    assert parse_contract(one(loud=word), KINDS, source="x").items[0].fields["loud"] is value


def test_labels_that_yaml_would_turn_into_booleans_stay_words() -> None:
    raw = copy.deepcopy(WORKED_CONTRACT)
    raw["items"][0]["labels"] = ["Yes", "No"]
    assert parse_contract(raw, built_in_kinds(), source="x").items[0].fields["labels"] == ["Yes", "No"]
    raw["items"][0]["labels"] = [True, False]
    with pytest.raises(NoContract, match="labels must be a list of texts, but holds true"):
        parse_contract(raw, built_in_kinds(), source="x")


def test_agent_dispatch_rejects_a_marker() -> None:
    raw = {"version": 1, "items": [{"id": "a", "kind": "agent_dispatch", "match": "x", "marker": "y"}]}
    with pytest.raises(NoContract, match='unknown field "marker"'):
        parse_contract(raw, built_in_kinds(), source="x")


def test_defaults_fill_what_is_not_said() -> None:
    kind = Says()
    kind.fields = (Field("word", default="hello"), Field("times", "number"))
    raw = {"version": 1, "items": [{"id": "a", "kind": "test.says"}]}
    assert parse_contract(raw, {"test.says": kind}, source="x").items[0].fields == {"word": "hello"}
    assert (
        "times must be a number"
        in find_problems(
            {"version": 1, "items": [{"id": "a", "kind": "test.says", "times": True}]}, {"test.says": kind}
        )[0].text
    )


@pytest.mark.parametrize("fields", [None, 3, [3], property(lambda _: exit())])
def test_a_kind_that_declares_its_fields_wrongly_costs_the_contract_only(fields: Any) -> None:
    kind = type("Odd", (Says,), {"name": "test.odd", "fields": fields})()
    raw = {"version": 1, "items": [{"id": "a", "kind": "test.odd"}]}
    with pytest.raises(NoContract, match="the kind can't say which fields it takes"):
        parse_contract(raw, {"test.odd": kind}, source="x")


def test_digest_depends_on_what_is_declared_and_not_on_key_order() -> None:
    first = parse_contract(one(), KINDS, source="x").digest
    raw = {"items": [dict(reversed(list(one()["items"][0].items())))], "version": 1}
    assert parse_contract(raw, KINDS, source="y").digest == first
    assert parse_contract(one(word="other"), KINDS, source="x").digest != first


def test_problems_say_where_they_stand() -> None:
    assert [problem.place for problem in find_problems(one(loud="maybe", colour="red"), KINDS)] == [
        ("items", 0, "colour"),
        ("items", 0, "loud"),
    ]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
ENTRY = st.dictionaries(
    st.sampled_from(["id", "kind", "word", "loud", "match", "fix", "x"]), PLAIN | st.just("test.says"), max_size=6
)


@given(PLAIN | st.fixed_dictionaries({"version": st.just(1), "items": st.lists(ENTRY, max_size=3)}))
def test_any_data_gives_a_contract_or_one_message(raw: Any) -> None:
    problems = find_problems(raw, KINDS)
    if not problems:
        assert parse_contract(raw, KINDS, source="x").items
        return
    text = message(raw, source="x")
    assert text.startswith("x: contract")
    assert "\n" not in text

"""How an invoked name is mapped back to the catalogue (gate G2)."""

import fnmatch

import pytest
from gate_support import invoked_names, kinds, payload, payloads
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import Invocation
from gstack.gate.names import candidates, glob_match, last_segment, meanings, namespace, normal
from gstack.gate.rules import Rulebook

BOOK = Rulebook(
    payload(
        namespaces=["acme"],
        manifest_index={
            "acme/deploy": {"version": "1", "status": "approved"},
            "beta/deploy": {"version": "2", "status": "banned"},
            "beta/tool": {"version": "3", "plugin": "tools"},
            "acme/plan": {"version": "4", "status": "banned"},
            "acme/auditor": {"version": "5", "kind": "subagent"},
            "acme/ship": {"version": "6", "kind": "command"},
            "acme/sub/deep": {"version": "7"},
        },
    )
)


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("acme/Deploy", "acme/deploy"),
        ("/Deploy", "deploy"),
        ("//deploy", "deploy"),
        ("  /deploy prod now", "deploy"),
        ("/ deploy", "deploy"),
        ("deploy\tprod", "deploy"),
        ("acme/deploy/", "acme/deploy"),
        ("", ""),
        (" ", ""),
        ("/", ""),
    ],
)
def test_case_slash_and_what_follows_a_space_are_ignored(raw: str, plain: str) -> None:
    assert normal(raw) == plain


@pytest.mark.parametrize(
    ("name", "kind", "meant"),
    [
        ("acme/deploy", "skill", ["acme/deploy"]),
        ("deploy", "skill", ["acme/deploy", "beta/deploy"]),
        ("acme:deploy", "skill", ["acme/deploy"]),
        ("tools:tool", "skill", ["beta/tool"]),
        ("other:tool", "skill", ["other:tool"]),
        ("sub/dir:deploy", "skill", ["acme/deploy", "beta/deploy"]),
        ("acme:sub:deep", "skill", ["acme/sub/deep"]),
        ("acme:sub:deploy", "skill", ["acme/deploy"]),
        ("acme:nothing", "skill", ["acme/nothing"]),
        ("plan", "subagent", ["plan"]),
        ("plan", "skill", ["acme/plan"]),
        ("auditor", "subagent", ["acme/auditor"]),
        ("auditor", "skill", ["auditor"]),
        ("acme:auditor", "subagent", ["acme/auditor"]),
        ("ship", "command", ["acme/ship"]),
        ("ship", "skill", ["acme/ship"]),
        ("ship", "subagent", ["ship"]),
        ("auditor", "any", ["acme/auditor"]),
        ("general-purpose", "subagent", ["general-purpose"]),
        ("skillsvault:hello", "skill", ["skillsvault/hello"]),
        (":x", "skill", ["x"]),
        ("x:", "skill", ["x:"]),
        (":", "skill", [":"]),
    ],
)
def test_a_name_means_these_entries(name: str, kind: str, meant: list[str]) -> None:
    assert [one[0] for one in candidates(BOOK, name, kind)] == meant


def test_other_names_of_the_installed_thing_count_as_well() -> None:
    found = meanings(BOOK, Invocation("label-differs", "skill", aliases=("plan",)))
    assert [one[0] for one in found] == ["acme/plan"]


def test_a_name_in_a_managed_namespace_counts_beside_an_alias_that_is_registered() -> None:
    found = meanings(BOOK, Invocation("acme:unregistered", "skill", aliases=("deploy",)))
    assert [one[0] for one in found] == ["acme/unregistered", "acme/deploy", "beta/deploy"]


def test_of_names_that_mean_nothing_the_invoked_one_is_kept() -> None:
    found = meanings(BOOK, Invocation("one", "skill", aliases=("two", "three")))
    assert [one[0] for one in found] == ["one"]


def test_no_name_means_nothing() -> None:
    assert meanings(BOOK, Invocation(" / ", "skill")) == []


def test_names_that_differ_by_case_only_are_both_meant() -> None:
    book = Rulebook(payload(manifest_index={"Acme/Plan": {"status": "banned"}, "acme/plan": {"status": "approved"}}))
    assert [one[0] for one in candidates(book, "acme/plan", "skill")] == ["Acme/Plan", "acme/plan"]


@given(name=st.one_of(invoked_names, st.text(max_size=30)), kind=kinds, data=payloads)
def test_any_text_means_something_or_is_no_name(name: str, kind: str, data: dict[str, object]) -> None:
    found = meanings(Rulebook(data), Invocation(name, kind))
    assert bool(found) == bool(normal(name))
    assert all(one[4] or one[2] is not None for one in found), "a name without an entry has a default at least"


@given(st.text(alphabet="ab/:-_.", max_size=12))
def test_the_parts_of_a_name_come_from_it(name: str) -> None:
    assert name.startswith(namespace(name))
    assert name.endswith(last_segment(name))
    assert not set("/:") & set(last_segment(name))


@given(pattern=st.text(alphabet="ab/*?[]!-", max_size=8), text=st.text(alphabet="ab/-[]!", max_size=8))
def test_globs_match_as_fnmatch_does(pattern: str, text: str) -> None:
    if "--" in pattern or "[!]" in pattern or "/-" in pattern or "-/" in pattern or "!-" in pattern:
        return  # odd ranges, on which fnmatch's versions differ
    assert glob_match(pattern, text) == fnmatch.fnmatchcase(text, pattern)


def test_a_glob_of_many_stars_takes_no_time() -> None:
    assert not glob_match("*a" * 30 + "b", "a" * 3000)

"""A dispatch whose description or prompt matches."""

import pytest
from contract_helpers import called, result, said

from gstack.api import MET, MISSING, Event, Item, Run, Verdict
from gstack.contracts.schema import find_problems
from gstack_plugins.agent_dispatch import AgentDispatch, gstack_contract_kinds


def check(match: str, *events: Event) -> Verdict:
    return AgentDispatch().check(Item("x", "agent_dispatch", {"match": match}), Run("s", "l", events))


DISPATCH = called("agent", "a1", description="Red Team the diff", prompt="Look for\nholes.", agent_name="reviewer")


@pytest.mark.parametrize("match", ["red team", "RED.TEAM", "^look", "holes\\.$", "(?s)look.*holes"])
def test_the_description_or_the_prompt_matches_in_any_case(match: str) -> None:
    assert check(match, DISPATCH, result("a1", ok=True)) == Verdict(MET)


@pytest.mark.parametrize("match", ["blue team", "^holes", "reviewer", "red-team", "diff.*look"])
def test_nothing_matches(match: str) -> None:
    """The agent's name is no evidence, and description and prompt are searched one by one."""
    assert check(match, DISPATCH) == Verdict(MISSING, f"none of the 1 dispatched agents matches {match}")


def test_there_is_no_dispatch() -> None:
    assert check("red team", said("I'll dispatch a red team.")) == Verdict(MISSING, "no agent was dispatched")


def test_only_launches_that_were_not_refused_count() -> None:
    assert check("red team", DISPATCH).status == MET, "still running"
    assert check("red team", DISPATCH, result("a1", ok=False)).status == MISSING
    assert check("red team", DISPATCH, result("a1", denied=True)).status == MISSING
    shell = called("shell", "c1", command="red team", description="red team", prompt="red team")
    assert check("red team", shell, result("c1", ok=True)).status == MISSING


def test_a_marker_is_refused() -> None:
    (kind,) = gstack_contract_kinds()
    item = {"id": "x", "kind": kind.name, "match": "a", "marker": "b"}
    (problem,) = find_problems({"version": 1, "items": [item]}, {kind.name: kind})
    assert 'unknown field "marker"' in problem.text
    (problem,) = find_problems({"version": 1, "items": [{"id": "x", "kind": kind.name}]}, {kind.name: kind})
    assert "match is missing" in problem.text
    (problem,) = find_problems(
        {"version": 1, "items": [{"id": "x", "kind": kind.name, "match": "("}]}, {kind.name: kind}
    )
    assert "no regular expression" in problem.text


def test_texts() -> None:
    (kind,) = gstack_contract_kinds()
    item = Item("x", kind.name, {"match": "red team"})
    assert kind.fix(item) == "dispatch the agent that this step asks for (description or prompt matching red team)"
    assert kind.summary(item) == "an agent dispatch that matches red team"

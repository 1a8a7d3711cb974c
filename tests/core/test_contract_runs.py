"""From events to loads and runs, and how a run's end reads (contracts C3, C4)."""

from typing import Any

import pytest
from contract_helpers import called, load, result, said
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import Event, Run, ToolCall
from gstack.contracts.runs import (
    Names,
    asks,
    early_exit,
    interrupted,
    last_run,
    our_block,
    pending_agents,
    runs,
    settled,
    with_final_text,
)
from gstack.contracts.session_kind import session_kind
from gstack.contracts.status import needs_context

NAMES = Names(["investigate", "acme:deploy", "review"], {"Deep Dive": "investigate"})


def run_of(*events: Event, final: str | None = None) -> Run:
    return with_final_text(runs([load(), *events], "investigate", NAMES)[-1], final)


# ------------------------------------------------------------------------------------------ names and loads


@pytest.mark.parametrize(
    ("spoken", "name"),
    [
        ("investigate", "investigate"),
        ("/investigate", "investigate"),
        ("gstack:investigate", "investigate"),
        ("Deep Dive", "investigate"),
        ("/Deep Dive", "investigate"),
        ("acme:deploy", "acme:deploy"),
        ("deploy", "acme:deploy"),
        ("other:deploy", None),
        ("Investigate", None),
        ("nothing", None),
        ("", None),
    ],
)
def test_names_that_a_load_may_carry(spoken: str, name: str | None) -> None:
    assert NAMES.resolve(spoken) == name


def test_an_exact_name_wins_over_a_prefix() -> None:
    names = Names(["acme:review", "review"])
    assert names.resolve("review") == "review"
    assert names.resolve("acme:review") == "acme:review"


def test_a_run_goes_to_the_next_load_of_the_same_skill() -> None:
    events = [
        load(uid="a"),
        said("one"),
        load("review", uid="b"),
        said("two"),
        load("/investigate", uid="c"),
        said("three"),
    ]
    found = runs(events, "investigate", NAMES)
    assert [(run.load_id, run.final_text, len(run.events)) for run in found] == [("a", "two", 3), ("c", "three", 1)]


def test_last_run_is_that_of_a_skill_with_a_contract() -> None:
    """A skill without a contract that is loaded later doesn't hide it."""
    events = [load(uid="a"), load("review", uid="b"), said("bye")]
    run = last_run(events, ["investigate"], NAMES)
    assert run is not None
    assert (run.skill, run.load_id) == ("investigate", "a")
    assert last_run(events, ["acme:deploy"], NAMES) is None
    assert last_run([], ["investigate"], NAMES) is None


def test_subagents_load_nothing_and_do_nothing() -> None:
    events = [
        load(uid="a"),
        load(uid="b", agent="sub"),
        said("from the sub-agent", agent="sub"),
        called("edit", "e1", agent="sub"),
    ]
    run = runs(events, "investigate", NAMES)[-1]
    assert (run.load_id, run.events, run.final_text) == ("a", (), "")


# ------------------------------------------------------------------------------------------------ early exit


@pytest.mark.parametrize(
    "final",
    [
        "STATUS: BLOCKED",
        "I tried.\n\n**Status:** BLOCKED",
        "Status: BLOCKED\nneeds the production log",
        "DEBUG REPORT\nSymptom: it hangs\nRoot cause: unknown\nStatus: BLOCKED\nEvidence: none",
        "DEBUG REPORT\n- Symptom: it hangs\n- **Status**: BLOCKED",
        "┌ DEBUG REPORT ┐\n│ Symptom: x │\n│ Status: BLOCKED │\n└──────────────┘",
        "| DEBUG REPORT | |\n|---|---|\n| Symptom | x |\n| Status | BLOCKED |",
        "STATUS: DONE\nbut then\nSTATUS: BLOCKED",
        "Nothing to review.",
        "The branch equals main.\n\n> **Nothing to review**: no diff",
        "- Nothing to review here",
    ],
)
def test_early_exit(final: str) -> None:
    assert early_exit(run_of(said(final)))


@pytest.mark.parametrize(
    "final",
    [
        "",
        "STATUS: DONE",
        "STATUS: BLOCKED\nno, it works now\nSTATUS: DONE",
        "Fix Status: verified\nFix status: BLOCKED by review",
        "status: blocked",
        "STATUS: BLOCKED_BY_CI",
        "STATUS: DONE | BLOCKED",
        "There is nothing to review in this branch.",
        'He said "there was Nothing to review"',
    ],
)
def test_no_early_exit(final: str) -> None:
    assert early_exit(run_of(said(final))) == ""


def test_only_the_final_message_ends_early() -> None:
    assert early_exit(run_of(said("STATUS: BLOCKED"), said("Fixed after all."))) == ""
    assert early_exit(run_of(said("Working on it"), final="STATUS: BLOCKED"))


# ---------------------------------------------------------------------------------------------- a run's end


def test_interrupted() -> None:
    broken_off = Event("interrupted")
    assert interrupted(run_of(called("shell", "c1"), result("c1", denied=True), broken_off))
    assert interrupted(run_of(said("half"), broken_off, Event("turn_end")))
    assert not interrupted(run_of(broken_off, Event("prompt", text="go on"), said("done")))
    assert not interrupted(run_of(broken_off, Event("prompt", text="go on", origin="agent")))
    assert not interrupted(run_of())


def test_settled_needs_the_final_text_at_the_end() -> None:
    assert settled(run_of(said("done"), final="done"))
    assert settled(run_of(said("done"), Event("turn_end"), final="first block\ndone\n"))
    assert not settled(run_of(said("done"), final="something else"))
    assert not settled(run_of(said("Done."), Event("prompt", text="again"), final="Done."))
    assert not settled(run_of(called("shell", "c1"), final="done"))
    assert not settled(run_of(final="done"))
    assert not settled(run_of(said(""), final=""))


def test_a_question_by_the_hosts_own_tool() -> None:
    assert asks(run_of(said("Two ways."), called("ask", "q1")))
    assert asks(run_of(said("Two ways."), called("ask", "q1"), final="Two ways."))
    assert not asks(run_of(called("ask", "q1"), result("q1", ok=True), said("Then I did it.")))
    assert not asks(run_of(said("Two ways."), called("ask", "q1"), result("q1"), final="All done."))
    assert not asks(run_of(said("hello")))
    assert not asks(run_of())


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("NEEDS_CONTEXT", True),
        ("I looked.\n\nNEEDS_CONTEXT: which database is it.", True),
        ("`NEEDS_CONTEXT`", True),
        ("NEEDS_CONTEXT first.\n\nThen I found it. Done.", False),
        ("NEEDS_CONTEXTS", False),
        ("X_NEEDS_CONTEXT_Y", False),
        ("my NEEDS_CONTEXTS", False),
        ("needs context", False),
        ("", False),
    ],
)
def test_needs_context_at_the_end(text: str, asked: bool) -> None:
    assert needs_context(text) is asked


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("Stop hook feedback:\nSKILL_CONTRACT_UNMET investigate (contract v1): missing x. Fix", True),
        ("SKILL_CONTRACT_UNMET investigate (contract v1): missing x", True),
        ("SKILL_CONTRACT_UNMET review (contract v1): missing x", False),
        ("SKILL_CONTRACT_UNMET investigate-more (contract v1): missing x", False),
        ("Stop hook feedback:\nlint failed, not SKILL_CONTRACT_UNMET investigate (contract v1)", False),
    ],
)
def test_our_own_block_in_the_transcript(text: str, ours: bool) -> None:
    assert (our_block(run_of(Event("continuation", text=text), said("x"))) is not None) is ours
    assert our_block(run_of(said(text))) is None


# --------------------------------------------------------------------------------------------------- agents


def started(agent: str, call: str, **more: Any) -> list[Event]:
    launch = called("agent", call, background=True, **more)
    return [launch, result(call, ok=True), Event("agent_started", ref=agent, call=launch.call)]


def test_agents_that_still_run() -> None:
    assert pending_agents(run_of(*started("a1", "c1"))) == ("a1",)
    assert pending_agents(run_of(*started("a1", "c1"), *started("a2", "c2"), Event("agent_finished", ref="a1"))) == (
        "a2",
    )
    assert pending_agents(run_of(called("agent", "c1"))) == ("c1",)


def test_agents_that_ended_or_never_ran() -> None:
    assert pending_agents(run_of(called("agent", "c1"), result("c1", ok=True))) == ()
    assert pending_agents(run_of(called("agent", "c1"), result("c1", denied=True))) == ()
    assert pending_agents(run_of(*started("a1", "c1"), Event("agent_finished", ref="a1"))) == ()
    assert pending_agents(run_of(called("agent", "c1"), Event("interrupted"))) == ()
    assert pending_agents(run_of(called("shell", "c1"))) == ()


def test_an_interrupt_leaves_background_agents_running_and_a_resumed_one_runs_again() -> None:
    assert pending_agents(run_of(*started("a1", "c1"), Event("interrupted"))) == ("a1",)
    again = Event("agent_started", ref="a1")
    assert pending_agents(run_of(*started("a1", "c1"), Event("agent_finished", ref="a1"), again)) == ("a1",)


# ----------------------------------------------------------------------------------------- whatever happens

TYPES = ["prompt", "text", "call", "result", "load", "agent_started", "agent_finished", "continuation", "interrupted"]
CALLS = st.builds(ToolCall, st.sampled_from(["shell", "agent", "ask", "edit"]), id=st.sampled_from(["c1", "c2", "c3"]))
EVENTS = st.lists(
    st.builds(
        Event,
        st.sampled_from(TYPES),
        uid=st.uuids().map(str),
        agent=st.sampled_from([None, None, None, "sub"]),
        text=st.sampled_from(["", "done", "STATUS: BLOCKED", "SKILL_CONTRACT_UNMET investigate (contract v1): x"]),
        call=st.none() | CALLS,
        ref=st.sampled_from([None, "c1", "c2", "a1"]),
        name=st.sampled_from([None, "investigate", "/review", "gstack:investigate", "other"]),
    ),
    max_size=25,
)


@given(EVENTS)
def test_runs_divide_what_follows_the_first_load(events: list[Event]) -> None:
    found = runs(events, "investigate", NAMES)
    main = [event for event in events if event.agent is None]
    loads = [event.type == "load" and NAMES.resolve(event.name or "") == "investigate" for event in main]
    assert sum(1 + len(run.events) for run in found) == (len(main) - loads.index(True) if any(loads) else 0)
    last = last_run(events, ["investigate"], NAMES)
    assert last == (found[-1] if found else None)
    # the part that begins with the load tells the same as the whole
    if last is not None:
        place = next(place for place, event in enumerate(events) if event.uid == last.load_id)
        assert last_run(events[place:], ["investigate"], NAMES) == last


@given(EVENTS)
def test_any_events_have_an_end_that_can_be_told(events: list[Event]) -> None:
    for run in runs(events, "investigate", NAMES):
        assert isinstance(early_exit(run), str)
        assert {type(tell(run)) for tell in (interrupted, settled, asks)} == {bool}
        agents = pending_agents(run)
        assert len(set(agents)) == len(agents)
        assert (our_block(run) is None) or "UNMET" in our_block(run).text  # type: ignore[union-attr]


# --------------------------------------------------------------------------------------------- session kind


@pytest.mark.parametrize(
    ("env", "host", "kind"),
    [
        ({}, None, "interactive"),
        ({}, "headless", "headless"),
        ({}, "interactive", "interactive"),
        ({"GSTACK_SESSION_KIND": "spawned", "GSTACK_HEADLESS": "1"}, "headless", "spawned"),
        ({"GSTACK_SESSION_KIND": "unattended", "OPENCLAW_SESSION": "x"}, "interactive", "unattended"),
        ({"GSTACK_SESSION_KIND": "whatever"}, "headless", "headless"),
        ({"GSTACK_SESSION_KIND": "", "OPENCLAW_SESSION": "x", "GSTACK_HEADLESS": "1"}, None, "spawned"),
        ({"GSTACK_HEADLESS": "1", "CONDUCTOR_PORT": "1"}, "interactive", "headless"),
        ({"CONDUCTOR_WORKSPACE_PATH": "/w"}, "headless", "interactive"),
        ({"CONDUCTOR_PORT": "55", "CI": "1"}, None, "interactive"),
        ({"CI": "true"}, "interactive", "interactive"),
        ({"CI": "true"}, None, "headless"),
        ({"GITHUB_ACTIONS": "true"}, None, "headless"),
        ({"CI": "", "GITHUB_ACTIONS": "", "GSTACK_HEADLESS": ""}, None, "interactive"),
    ],
)
def test_session_kind(env: dict[str, str], host: str | None, kind: str) -> None:
    assert session_kind(env, host) == kind

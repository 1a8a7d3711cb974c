"""The stop hook's decision, in the order of contracts C4, with a host and kinds of the tests' own."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from contract_helpers import (
    SESSION,
    CannotTell,
    Fails,
    FakeHost,
    Says,
    call_plain,
    called,
    context,
    load,
    result,
    said,
)

from gstack.api import SUBAGENT_ENDING, Answer, Event, Verdict
from gstack.contracts import decision, hook, trouble
from gstack.contracts.records import record_path
from gstack.errors import ContractState, UnknownShape
from gstack.sessions import read_session
from gstack.trust import trust as trust_folder

CONTRACT = {"version": 1, "items": [{"id": "word", "kind": "test.says", "word": "magic"}]}
FEEDBACK = Event("continuation", text="Stop hook feedback:\nSKILL_CONTRACT_UNMET investigate (contract v1): x", ts=99.0)
NOW = 1_800_000_000.0


@pytest.fixture(autouse=True, params=["run", "load"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every decision is the same for a host that can give the load alone and for one that can't."""
    if request.param == "load":
        monkeypatch.setattr(FakeHost, "last_load", FakeHost._last_load, raising=False)
    way: str = request.param
    return way


class Clock:
    """Time that only passes while somebody waits."""

    def __init__(self) -> None:
        self.time = 0.0
        self.on_pause: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.time

    def pause(self, seconds: float) -> None:
        self.time += seconds
        self.on_pause()


def ctx_of(tmp_path: Path, *events: Event, host: FakeHost | None = None, **more: Any) -> Any:
    more.setdefault("contracts", {"investigate": CONTRACT})
    more.setdefault("kinds", {"test.says": Says()})
    return context(tmp_path, host or FakeHost([load(), *events]), **more)


def stop(ctx: Any, clock: Clock | None = None) -> Answer:
    clock = clock or Clock()
    answer = hook.answer(ctx, clock=clock, pause=clock.pause)
    for step in ctx.after:
        step()
    return answer


def record(tmp_path: Path) -> dict[str, Any]:
    path = Path(record_path(str(tmp_path / "state"), SESSION))
    return json.loads(path.read_text()) if path.exists() else {"runs": []}  # type: ignore[no-any-return]


def outcomes(tmp_path: Path) -> list[str]:
    return [run["outcome"] for run in record(tmp_path)["runs"]]


def log_lines(tmp_path: Path) -> list[str]:
    path = tmp_path / "state" / "hooks" / "skill-contract.log"
    return [line.split(" ", 2)[2] for line in path.read_text().splitlines()] if path.exists() else []


# ------------------------------------------------------------------------------------- nothing to be judged


def test_a_session_without_contracts_reads_no_transcript(tmp_path: Path) -> None:
    host = FakeHost([load()])
    assert stop(context(tmp_path, host, contracts={}, kinds={})).empty
    assert host.reads == 0


def test_a_session_that_loaded_none_writes_nothing(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, host=FakeHost([]))).empty
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    "event",
    [
        {"kind": SUBAGENT_ENDING, "scope": "subagent"},
        {"scope": "subagent"},
        {"session_id": None},
        {"session_id": ""},
        {"transcript_path": None},
        {"transcript_path": ""},
        {"transcript_path": "/nowhere/at/all.jsonl"},
        {"transcript_path": "bad\0path"},
    ],
)
def test_stops_that_are_none_of_a_contracts_business(tmp_path: Path, event: dict[str, Any]) -> None:
    host = FakeHost([load(), said("hm")])
    assert stop(ctx_of(tmp_path, host=host, **event)).empty
    assert host.reads == 0
    assert not (tmp_path / "state").exists()


def test_an_empty_transcript_is_no_canary(tmp_path: Path) -> None:
    (tmp_path / "transcript.jsonl").write_text("")
    assert stop(ctx_of(tmp_path, said("hm"))).empty
    assert not (tmp_path / "state").exists()


# ------------------------------------------------------------------------------------------- the final turn


@pytest.mark.parametrize(
    ("final", "kind", "held"),
    [
        ("Fixed it.", "interactive", True),
        ("Shall I go on?", "interactive", False),
        ("Shall I go on?", "headless", True),
        ("Shall I go on?", None, False),
        ("NEEDS_CONTEXT", "interactive", False),
        ("STATUS: NEEDS_CONTEXT\nWhich database?", "interactive", False),
        ("STATUS: NEEDS_CONTEXT", "interactive", False),
        ("STATUS: DONE\nAnything else?", "interactive", True),
        ("**Status:** DONE_WITH_CONCERNS\n\nIs that fine?", "interactive", True),
        ("Is it the cache?\n\nNo, the index.", "interactive", True),
        ("", "interactive", True),
    ],
)
def test_final_turn(tmp_path: Path, final: str, kind: str | None, held: bool) -> None:
    host = FakeHost([load(), said(final)], says=kind)
    assert bool(stop(ctx_of(tmp_path, host=host)).block_stop) is held
    if not held:
        assert outcomes(tmp_path) == []


@pytest.mark.parametrize(
    ("env", "interactive", "held"),
    [
        ({"GSTACK_SESSION_KIND": "unattended"}, True, True),
        ({"GSTACK_SESSION_KIND": "spawned"}, False, False),
        ({"GSTACK_HEADLESS": "1"}, True, True),
        ({}, False, True),
        ({}, True, False),
        ({}, None, False),
    ],
)
def test_session_kinds_in_which_every_turn_is_final(
    tmp_path: Path, env: dict[str, str], interactive: bool | None, held: bool
) -> None:
    host = FakeHost([load(), said("Go on?")], says=None)
    assert bool(stop(ctx_of(tmp_path, host=host, env=env, interactive=interactive)).block_stop) is held


def test_a_question_with_the_hosts_tool_is_not_final(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, said("Two ways."), called("ask", "q1"))).empty
    assert log_lines(tmp_path) == ["allow skill=investigate load=load-1 reason=not-final"]


def test_the_payloads_final_text_counts_before_the_files(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, said("working"), last_assistant_text="Shall I?")).empty
    assert stop(ctx_of(tmp_path, said("working"), last_assistant_text="the magic word")).empty
    assert outcomes(tmp_path) == ["met"]


def test_where_the_load_tells_the_run_is_not_read(tmp_path: Path, both_ways: str) -> None:
    alone = both_ways == "load"
    met = FakeHost([load(), said("magic")])
    assert stop(ctx_of(tmp_path, host=met, last_assistant_text="magic")).empty
    assert (met.loads, met.reads) == (0, 1)
    for final, why in (
        ("Shall I?", "not-final"),
        ("STATUS: DONE", "recorded outcome=met"),
        ("Fixed.", "recorded outcome=met"),
    ):
        host = FakeHost([load(), said("magic"), said(final)])
        assert stop(ctx_of(tmp_path, host=host, last_assistant_text=final)).empty
        assert (host.loads, host.reads) == ((1, 0) if alone else (0, 1))
        assert log_lines(tmp_path)[-1] == f"allow skill=investigate load=load-1 reason={why}"
    for events in ([load(uid="load-2"), said("no")], []):
        host = FakeHost(events)
        assert bool(stop(ctx_of(tmp_path, host=host, last_assistant_text="no")).block_stop) is bool(events)
        assert host.reads == (0 if alone and not events else 1)


def test_a_settled_run_that_ends_on_the_hosts_own_question_stays_settled(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("magic"), last_assistant_text="magic"))
    asking = [said("magic"), said("Two ways."), called("ask", "q1")]
    assert stop(ctx_of(tmp_path, *asking, last_assistant_text="Two ways.")).empty
    assert log_lines(tmp_path)[-1] == "allow skill=investigate load=load-1 reason=recorded outcome=met"


def test_the_load_alone_is_remembered_as_well(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, said("hm"), last_assistant_text="Shall I?")).empty
    assert read_session(str(tmp_path / "state"), SESSION).loaded == {"investigate"}


# ---------------------------------------------------------------------------------- met, held, missed, fixed


def test_met_is_recorded_and_stays(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, said("magic"))).empty
    run = record(tmp_path)["runs"][0]
    assert (run["outcome"], run["items"], run["skill"]) == ("met", {"word": "met"}, "investigate")
    assert run["contract"]["version"] == 1
    assert "blocked_at" not in run
    # a later, unrelated turn of the session is never held by it
    assert stop(ctx_of(tmp_path, said("magic"), said("something else"))).empty
    assert outcomes(tmp_path) == ["met"]
    assert log_lines(tmp_path)[-1] == "allow skill=investigate load=load-1 reason=recorded outcome=met"


def test_unmet_is_recorded_first_and_held_once(tmp_path: Path) -> None:
    answer = stop(ctx_of(tmp_path, said("hm")))
    assert answer.block_stop is not None
    assert answer.block_stop.startswith(
        "SKILL_CONTRACT_UNMET investigate (contract v1): missing word. Fix: word: say magic. If an item"
    )
    run = record(tmp_path)["runs"][0]
    assert (run["outcome"], run["blocked_at"], run["items"]) == ("blocked", int(NOW), {"word": "missing"})
    assert stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("still not"), stop_active=True)).empty
    assert outcomes(tmp_path) == ["miss"]
    assert stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("never"), now=NOW + 5000)).empty
    assert outcomes(tmp_path) == ["miss"]


def test_fixed_after_the_block(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, said("hm"))).block_stop
    assert stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("magic"), stop_active=True)).empty
    assert outcomes(tmp_path) == ["met_after_block"]
    assert record(tmp_path)["runs"][0]["blocked_at"] == int(NOW)


def test_a_miss_that_is_met_later_becomes_met_after_block(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm")))
    stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("no"), stop_active=True))
    assert outcomes(tmp_path) == ["miss"]
    assert stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("no"), said("magic"))).empty
    assert outcomes(tmp_path) == ["met_after_block"]


def test_a_waiver_shows_in_the_outcome(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm")))
    waiver = called("shell", "w1", command="gstack-skill-contract waive word --reason 'docs only'")
    done = [FEEDBACK, waiver, result("w1", ok=True, text="waived word: docs only"), said("Done.")]
    assert stop(ctx_of(tmp_path, said("hm"), *done, stop_active=True)).empty
    run = record(tmp_path)["runs"][0]
    assert (run["outcome"], run["items"]) == ("met_waived", {"word": "waived"})


def test_early_exit_is_met(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, said("I need the logs.\nSTATUS: BLOCKED"))).empty
    assert outcomes(tmp_path) == ["met"]


def test_a_second_load_is_a_run_of_its_own(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("magic")))
    events = [load(), said("magic"), load(uid="load-2"), said("hm")]
    assert stop(ctx_of(tmp_path, host=FakeHost(events))).block_stop
    assert [(run["load_id"], run["outcome"]) for run in record(tmp_path)["runs"]] == [
        ("load-1", "met"),
        ("load-2", "blocked"),
    ]


def test_the_most_recently_loaded_skill_with_a_contract_is_checked(tmp_path: Path) -> None:
    other = {"version": 1, "items": [{"id": "other", "kind": "test.says", "word": "open sesame"}]}
    contracts = {"investigate": CONTRACT, "review": other}
    events = [load(), said("x"), load("review", uid="load-2"), said("x"), load("plain", uid="load-3"), said("bye")]
    answer = stop(ctx_of(tmp_path, host=FakeHost(events), contracts=contracts))
    assert "SKILL_CONTRACT_UNMET review " in (answer.block_stop or "")


def test_a_skill_loaded_by_its_label_is_checked(tmp_path: Path) -> None:
    host = FakeHost([load("Deep Dive"), said("hm")])
    answer = stop(ctx_of(tmp_path, host=host, labels={"Deep Dive": "investigate"}))
    assert "SKILL_CONTRACT_UNMET investigate " in (answer.block_stop or "")


def test_another_skill_of_the_same_bare_name_hides_no_run(tmp_path: Path) -> None:
    host = FakeHost([load("review", uid="load-2"), said("hm")])
    host.whole = [load("acme:review"), said("x"), load("review", uid="load-2"), said("hm")]
    ctx = ctx_of(tmp_path, host=host, contracts={"acme:review": CONTRACT})
    ctx.skills().names["review"] = "/home/u/.claude/skills/review/SKILL.md"
    assert "SKILL_CONTRACT_UNMET acme:review " in (stop(ctx).block_stop or "")
    host.whole = host.readings[0]
    assert stop(ctx).empty


def test_nor_does_it_where_the_turn_is_no_final_one(tmp_path: Path) -> None:
    host = FakeHost([load("review", uid="load-2"), said("hm")])
    host.whole = [load("acme:review"), said("x"), load("review", uid="load-2"), said("hm")]
    ctx = ctx_of(tmp_path, host=host, contracts={"acme:review": CONTRACT}, last_assistant_text="Go on?")
    ctx.skills().names["review"] = "/home/u/.claude/skills/review/SKILL.md"
    assert stop(ctx).empty
    assert log_lines(tmp_path) == ["allow skill=acme:review load=load-1 reason=not-final"]


def test_what_was_loaded_stands_in_the_sessions_record(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm")))
    session = read_session(str(tmp_path / "state"), SESSION)
    assert session.loaded == {"investigate"}
    assert session.blocked == {"load-1"}


def test_an_interrupted_turn_has_no_verdict(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, said("half"), Event("interrupted"))).empty
    assert outcomes(tmp_path) == []


# ----------------------------------------------------------------------------------------- stop_hook_active


def test_a_turn_that_another_hook_continued_is_never_held_nor_recorded(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, said("hm"), stop_active=True)).empty
    assert stop(ctx_of(tmp_path, said("magic"), stop_active=True)).empty
    assert outcomes(tmp_path) == []


def test_a_fork_with_our_feedback_is_not_held_again(tmp_path: Path) -> None:
    """The record belongs to the session that was forked; the transcript was copied."""
    assert stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("no"))).empty
    run = record(tmp_path)["runs"][0]
    assert (run["outcome"], run["blocked_at"]) == ("miss", 99)


def test_feedback_before_the_load_is_another_runs(tmp_path: Path) -> None:
    host = FakeHost([load(uid="load-0"), FEEDBACK, load(), said("hm")])
    assert stop(ctx_of(tmp_path, host=host)).block_stop


# -------------------------------------------------------------------------------------------------- agents


def test_running_agents_defer(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, said("hm"), pending_agents=("a1", "a2"))).empty
    run = record(tmp_path)["runs"][0]
    assert (run["outcome"], run["seen_agents"]) == ("deferred", {"a1": NOW, "a2": NOW})
    assert log_lines(tmp_path) == ["deferred skill=investigate load=load-1 agents=2"]


def test_the_payloads_list_is_believed_before_the_transcript(tmp_path: Path) -> None:
    running = [called("agent", "c1", background=True), result("c1", ok=True), Event("agent_started", ref="a1")]
    assert stop(ctx_of(tmp_path, *running, said("hm"), pending_agents=())).block_stop


def test_without_a_list_the_transcript_tells(tmp_path: Path) -> None:
    running = [called("agent", "c1", background=True), result("c1", ok=True), Event("agent_started", ref="a1")]
    assert stop(ctx_of(tmp_path, *running, said("hm"))).empty
    assert outcomes(tmp_path) == ["deferred"]
    assert stop(ctx_of(tmp_path, *running, Event("agent_finished", ref="a1"), said("hm"))).block_stop
    assert outcomes(tmp_path) == ["blocked"]


@pytest.mark.parametrize(("later", "held"), [(599.0, False), (600.0, True), (7200.0, True)])
def test_the_same_agents_are_stalled_after_ten_minutes(tmp_path: Path, later: float, held: bool) -> None:
    stop(ctx_of(tmp_path, said("hm"), pending_agents=("a1",)))
    answer = stop(ctx_of(tmp_path, said("hm"), pending_agents=("a1",), now=NOW + later))
    assert bool(answer.block_stop) is held


def test_a_new_agent_is_waited_for_and_a_clock_that_stepped_back_does_no_harm(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm"), pending_agents=("a1",)))
    assert stop(ctx_of(tmp_path, said("hm"), pending_agents=("a1", "a2"), now=NOW + 700)).empty
    assert stop(ctx_of(tmp_path, said("hm"), pending_agents=("a2",), now=NOW - 9000)).empty
    assert record(tmp_path)["runs"][0]["seen_agents"] == {"a2": NOW - 9000}
    assert stop(ctx_of(tmp_path, said("hm"), pending_agents=("a2",), now=NOW - 8400)).block_stop


def test_agents_after_a_block_leave_the_outcome_as_it_is(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm")))
    assert stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("sent"), pending_agents=("a1",), stop_active=True)).empty
    assert outcomes(tmp_path) == ["blocked"]
    assert stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("magic"), pending_agents=())).empty
    assert outcomes(tmp_path) == ["met_after_block"]


# --------------------------------------------------------------------------------------- a lagging transcript


def lagging(tmp_path: Path, clock: Clock, *readings: list[Event], after: int = 2) -> FakeHost:
    """A host whose file changes after so many pauses."""
    path = tmp_path / "transcript.jsonl"
    count = 0

    def grow() -> None:
        nonlocal count
        count += 1
        if count == after:
            with path.open("a") as file:
                file.write("{}\n")

    clock.on_pause = grow
    return FakeHost(*readings)


def test_a_negative_verdict_reads_a_lagging_transcript_again(tmp_path: Path) -> None:
    clock = Clock()
    late = [load(), said("working"), called("shell", "c1"), result("c1", ok=True), said("the magic word")]
    host = lagging(tmp_path, clock, [load(), said("working")], late)
    assert stop(ctx_of(tmp_path, host=host), clock).empty
    assert outcomes(tmp_path) == ["met"]
    assert host.reads == 2
    assert clock.time < 0.2


def test_it_waits_for_half_a_second_at_most(tmp_path: Path) -> None:
    clock, host = Clock(), FakeHost([load(), said("working")])
    assert stop(ctx_of(tmp_path, host=host, last_assistant_text="hm"), clock).block_stop
    assert 0.45 < clock.time <= 0.6
    assert host.reads == 1


def test_a_file_that_holds_the_final_text_is_not_waited_for(tmp_path: Path) -> None:
    clock = Clock()
    assert stop(ctx_of(tmp_path, said("hm"), last_assistant_text="hm"), clock).block_stop
    assert clock.time == 0


def test_a_positive_verdict_never_waits(tmp_path: Path) -> None:
    clock = Clock()
    assert stop(ctx_of(tmp_path, said("working"), last_assistant_text="magic"), clock).empty
    assert clock.time == 0


def test_a_load_that_arrives_late_is_judged_instead(tmp_path: Path) -> None:
    clock = Clock()
    host = lagging(tmp_path, clock, [load(), said("x")], [load(uid="load-2"), said("magic")])
    assert stop(ctx_of(tmp_path, host=host), clock).empty
    assert [run["load_id"] for run in record(tmp_path)["runs"]] == ["load-2"]


def test_a_transcript_that_disappears_while_it_is_read(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "transcript.jsonl"
    gone = ContractState(f"{path}: there is no such file")
    clock.on_pause = lambda: path.unlink(missing_ok=True)
    host = FakeHost([load(), said("working")], gone)
    assert stop(ctx_of(tmp_path, host=host, last_assistant_text="hm"), clock).empty
    assert host.reads == 2
    assert outcomes(tmp_path) == []
    assert log_lines(tmp_path) == []


def test_a_transcript_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    clock = Clock()
    host = lagging(tmp_path, clock, [load(), said("working")], [])
    assert stop(ctx_of(tmp_path, host=host, last_assistant_text="hm"), clock).block_stop
    assert host.reads == 2


def test_without_time_left_nothing_is_held(tmp_path: Path) -> None:
    assert stop(ctx_of(tmp_path, said("hm"), last_assistant_text="hm", left=0.1)).empty
    assert outcomes(tmp_path) == []


# ---------------------------------------------------------------------------------------- one block a run


def test_two_hooks_of_one_stop_hold_it_once(tmp_path: Path) -> None:
    """The plug-in and the settings file both register the hook."""
    answers = [stop(ctx_of(tmp_path, said("hm"), now=NOW + second)) for second in (0, 1)]
    assert [bool(answer.block_stop) for answer in answers] == [True, False]
    assert outcomes(tmp_path) == ["blocked"]
    assert log_lines(tmp_path)[-1] == "allow skill=investigate load=load-1 reason=held-already"


def test_a_hook_that_lost_the_race_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process writes its block between this one's reading and its own writing."""
    text = decision.Stop.text

    def slow(self: Any, judged: Any) -> str:
        monkeypatch.setattr(decision.Stop, "text", text)
        assert stop(ctx_of(tmp_path, said("hm"))).block_stop
        return text(self, judged)

    monkeypatch.setattr(decision.Stop, "text", slow)
    assert stop(ctx_of(tmp_path, said("hm"))).empty
    assert outcomes(tmp_path) == ["blocked"]


@pytest.mark.parametrize("between", [True, False])
def test_a_deleted_record_does_not_hold_again(tmp_path: Path, between: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    text = decision.Stop.text
    path = Path(record_path(str(tmp_path / "state"), SESSION))

    def slow(self: Any, judged: Any) -> str:
        monkeypatch.setattr(decision.Stop, "text", text)
        assert stop(ctx_of(tmp_path, said("hm"))).block_stop
        path.unlink()
        return text(self, judged)

    if between:
        monkeypatch.setattr(decision.Stop, "text", slow)
    else:
        assert stop(ctx_of(tmp_path, said("hm"))).block_stop
        path.unlink()
    assert stop(ctx_of(tmp_path, said("hm"))).empty
    # what comes of it is recorded all the same
    assert stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("magic"), stop_active=True)).empty
    assert outcomes(tmp_path) == ["met_after_block"]


def test_a_stop_soon_after_that_has_more_to_show_is_another_one(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm", ts=NOW - 1)))
    assert stop(ctx_of(tmp_path, said("hm", ts=NOW - 1), now=NOW + 2)).empty
    assert outcomes(tmp_path) == ["blocked"]
    assert stop(ctx_of(tmp_path, said("hm", ts=NOW - 1), said("no", ts=NOW + 1), now=NOW + 2)).empty
    assert outcomes(tmp_path) == ["miss"]


def test_a_block_that_the_host_never_showed_becomes_a_miss(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm")))
    assert stop(ctx_of(tmp_path, said("hm"), Event("prompt", text="go on"), said("no"), now=NOW + 60)).empty
    assert outcomes(tmp_path) == ["miss"]


# ------------------------------------------------------------------------------------------------- trouble


def trouble_of(answer: Answer, capfd: pytest.CaptureFixture[str]) -> str:
    """The line on standard error; the notice says the same."""
    assert answer.block_stop is None
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert answer.notice in (None, lines[0])
    return lines[0]


def exact(path: str, cause: str) -> str:
    return (
        f"gstack-skill-contract: SKILL_CONTRACT_STATE_ERROR {path}: {cause}; stop allowed, miss not recorded "
        "(see docs/reference/exit-codes.md#state-error)"
    )


def test_an_unreadable_transcript_fails_open_and_says_so_once_a_session(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "transcript.jsonl")
    error = ContractState(f"{path}: it is larger than 32 MiB (33 MiB)")
    first = stop(ctx_of(tmp_path, host=FakeHost(error)))
    assert first.notice == exact(path, "it is larger than 32 MiB (33 MiB)")
    assert trouble_of(first, capfd) == first.notice
    second = stop(ctx_of(tmp_path, host=FakeHost(error)))
    assert second.notice is None
    assert trouble_of(second, capfd) == first.notice
    assert log_lines(tmp_path)[-1] == f"error failures=2 what=state-error path={path}"
    assert not os.path.exists(trouble.canary_path(str(tmp_path / "state")))


def test_a_file_without_a_message_yet_gets_time(tmp_path: Path) -> None:
    """A typed skill that runs in an agent of its own writes its first message just after the stop."""
    clock = Clock()
    host = lagging(tmp_path, clock, [])
    host.readings = [UnknownShape("no user or assistant record"), []]
    assert stop(ctx_of(tmp_path, host=host), clock).empty
    assert host.reads == 2
    assert not os.path.exists(trouble.canary_path(str(tmp_path / "state")))


def test_a_load_in_a_file_without_a_message_yet_gets_time_too(tmp_path: Path) -> None:
    clock = Clock()
    host = lagging(tmp_path, clock, [])
    host.readings = [UnknownShape("no user or assistant record"), [load(), said("Which?")]]
    assert stop(ctx_of(tmp_path, host=host, last_assistant_text="Which?"), clock).empty
    assert log_lines(tmp_path) == ["allow skill=investigate load=load-1 reason=not-final"]
    assert clock.time > 0


def test_an_unknown_shape_raises_the_canarys_count(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "transcript.jsonl")
    host = FakeHost(UnknownShape(f"{path}: no user or assistant record"))
    for count in (1, 2):
        answer = stop(ctx_of(tmp_path, host=host))
        assert trouble_of(answer, capfd) == exact(path, "no user or assistant record")
        found = trouble.read_canary(str(tmp_path / "state"))
        assert (found["count"], found["host"], found["last_at"]) == (count, "claude-code", int(NOW))


def test_an_invalid_contract_names_its_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bad = {"version": 1, "items": [{"id": "word", "kind": "vendor.gone"}]}
    answer = stop(ctx_of(tmp_path, said("hm"), contracts={"investigate": bad}))
    line = trouble_of(answer, capfd)
    assert line.startswith(
        "gstack-skill-contract: SKILL_CONTRACT_STATE_ERROR /home/u/.claude/skills/investigate/SKILL.md: "
        'contract item "word": unknown kind "vendor.gone"'
    )
    assert outcomes(tmp_path) == []


def test_an_invalid_contract_of_a_trusted_project_names_its_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    overlay = project / ".gstack" / "skills.yaml"
    overlay.parent.mkdir(parents=True)
    overlay.write_text("investigate:\n  contract: {version: 2, items: []}\n")
    trust_folder(str(tmp_path / "state"), str(project))
    ctx = ctx_of(tmp_path, said("hm"), contracts={"investigate": {"version": 2}}, cwd=str(project))
    ctx.skills().sources["investigate"] = {"contract": ".gstack/skills.yaml"}
    assert f"SKILL_CONTRACT_STATE_ERROR {overlay.resolve()}: " in trouble_of(stop(ctx), capfd)


@pytest.mark.parametrize("raw", [None, [], "x", {"items": 3}, {"version": 2}, {"version": 1, "items": [None, 3]}])
def test_any_invalid_contract_allows(tmp_path: Path, raw: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert "SKILL.md: contract" in trouble_of(stop(ctx_of(tmp_path, said("hm"), contracts={"investigate": raw})), capfd)


@pytest.mark.parametrize(
    "data", [b'{"version": 1, "sess', b'{"version": 7, "runs": []}', b'{"other": true}', b"\x00\x01"]
)
def test_a_record_that_cannot_be_used_is_left_alone(
    tmp_path: Path, data: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    path = Path(record_path(str(tmp_path / "state"), SESSION))
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    for final in ("hm", "magic", "Which?"):
        line = trouble_of(stop(ctx_of(tmp_path, said(final), last_assistant_text=final)), capfd)
        assert line.startswith(f"gstack-skill-contract: SKILL_CONTRACT_STATE_ERROR {path}: ")
    assert path.read_bytes() == data


def test_a_record_that_cannot_be_written_holds_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    answer = stop(ctx_of(tmp_path, said("hm")))
    assert "it can't be" in trouble_of(answer, capfd)
    assert answer.notice
    # the state folder can't remember that it was said; the transcript does
    with (tmp_path / "transcript.jsonl").open("a") as file:
        file.write(json.dumps({"type": "attachment", "content": answer.notice}) + "\n")
    again = stop(ctx_of(tmp_path, said("hm")))
    assert again.empty
    assert trouble_of(again, capfd) == answer.notice


@pytest.mark.parametrize("session", ["../../etc/passwd", "a/b", "a\\b", "..", "x" * 129, "a\nb"])
def test_a_session_id_that_cannot_be_a_file_name(
    tmp_path: Path, session: str, capfd: pytest.CaptureFixture[str]
) -> None:
    line = trouble_of(stop(ctx_of(tmp_path, said("hm"), session_id=session)), capfd)
    assert "the session's id can't be a file name" in line
    assert not (tmp_path / "state" / "skill-contracts").exists()
    assert not (tmp_path / "etc").exists()


def boom() -> Verdict:
    raise RuntimeError("no way")


@pytest.mark.parametrize(("kind", "why"), [(CannotTell(), "no way to know"), (Fails(boom), "raised RuntimeError")])
def test_a_kind_that_cannot_tell_allows(tmp_path: Path, kind: Any, why: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Also where another item is missing for certain."""
    raw = {"version": 1, "items": [{"id": "odd", "kind": kind.name}, *CONTRACT["items"]]}
    kinds = {kind.name: kind, "test.says": Says()}
    ctx = ctx_of(tmp_path, said("hm"), contracts={"investigate": raw}, kinds=kinds)
    ctx.call = call_plain
    line = trouble_of(stop(ctx), capfd)
    assert f'SKILL.md: contract item "odd" ({kind.name}) can\'t be judged: {why}' in line
    assert outcomes(tmp_path) == []


def test_a_kind_that_cannot_tell_any_more_loses_no_outcome(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stop(ctx_of(tmp_path, said("hm")))
    broken = Fails(boom)
    broken.name = "test.says"
    broken.fields = Says.fields
    stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("magic"), kinds={"test.says": broken}, stop_active=True))
    assert outcomes(tmp_path) == ["blocked"]


def test_a_path_with_odd_characters_stays_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    line = trouble.error_line("/a\nb\x1b[31m\udcff", "/a\nb\x1b[31m\udcff: broken\nthing")
    assert line.isprintable()
    assert line.count("broken thing") == 1


# ------------------------------------------------------------------------------------------------- observe


def test_observe_logs_and_records_without_a_block(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm"), switch="observe"))
    run = record(tmp_path)["runs"][0]
    assert (run["outcome"], run["observe"]) == ("miss", True)
    assert "blocked_at" not in run
    assert log_lines(tmp_path) == ["observe miss skill=investigate load=load-1 missing=word"]
    assert read_session(str(tmp_path / "state"), SESSION).blocked == set()


def test_observe_met_later_is_met(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm"), switch="observe"))
    stop(ctx_of(tmp_path, said("magic"), switch="observe"))
    assert outcomes(tmp_path) == ["met"]


def test_what_was_only_observed_does_not_use_up_the_block(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm"), switch="observe"))
    assert stop(ctx_of(tmp_path, said("hm"), now=NOW + 60)).block_stop
    run = record(tmp_path)["runs"][0]
    assert (run["outcome"], "observe" in run) == ("blocked", False)


def test_a_run_that_was_held_stays_held_when_the_switch_goes_to_observe(tmp_path: Path) -> None:
    stop(ctx_of(tmp_path, said("hm")))
    stop(ctx_of(tmp_path, said("hm"), FEEDBACK, said("no"), switch="observe", now=NOW + 60))
    run = record(tmp_path)["runs"][0]
    assert (run["outcome"], "observe" in run, run["blocked_at"]) == ("miss", False, int(NOW))


# ---------------------------------------------------------------------------------------------------- log


def test_the_log_holds_no_text_of_the_session(tmp_path: Path) -> None:
    secret = "the secret prompt text"
    stop(ctx_of(tmp_path, Event("prompt", text=secret), said(secret)))
    stop(ctx_of(tmp_path, Event("prompt", text=secret), said(secret), FEEDBACK, said("magic"), stop_active=True))
    lines = log_lines(tmp_path)
    assert lines == [
        "blocked skill=investigate load=load-1 missing=word",
        "met_after_block skill=investigate load=load-1",
    ]
    for path in (tmp_path / "state").rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes()

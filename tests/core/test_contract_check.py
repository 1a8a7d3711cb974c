"""Judging a run: verdicts, isolation of kinds, waivers, early exit (contracts C2, C3, C6)."""

import sys
import time
from typing import Any

import pytest
from contract_helpers import CannotTell, Fails, Says, call_isolated, call_plain, called, load, result, said

from gstack.api import CANNOT_TELL, MET, MISSING, Event, Item, Run, Verdict
from gstack.contracts.check import WAIVED, Outcome, evaluate
from gstack.contracts.runs import Names, runs
from gstack.contracts.schema import Contract


def judge(kind: Any, *events: Event, call: Any = call_isolated, items: int = 1, **more: Any) -> Outcome:
    run = runs([load(), *events], "investigate", Names(["investigate"]))[-1]
    made = tuple(Item(f"item-{n}", kind.name, {"word": "done"}) for n in range(items))
    return evaluate(Contract(made, 1, "digest"), run, {kind.name: kind}, call, **more)


def waive(item: str, ident: str = "w1", **more: Any) -> list[Event]:
    command = f"gstack-skill-contract waive {item} --reason 'docs only'"
    answer = {"ok": True, "text": f"waived {item}: docs only", **more}
    return [called("shell", ident, command=command), result(ident, **answer)]


def test_met_and_missing() -> None:
    good = judge(Says(), said("all done"))
    assert good.met
    assert good.states() == {"item-0": MET}
    bad = judge(Says(), said("hm"), items=2)
    assert not bad.met
    assert bad.missing == ["item-0", "item-1"]
    assert bad.results[0].why == "the word done isn't there"


def boom() -> Verdict:
    raise RuntimeError("no\nway")


def leave() -> Verdict:
    sys.exit(2)


def shout() -> Verdict:
    print("hello")
    return Verdict(MET)


def hang() -> Verdict:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        pass
    return Verdict(MET)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (boom, "raised RuntimeError: no way"),
        (leave, "called sys.exit"),
        (shout, "printed to standard output"),
        (hang, "took longer than 0.3 s"),
        (lambda: None, "the kind gave no verdict"),
        (lambda: "met", "the kind gave no verdict"),
        (lambda: Verdict("maybe"), "the kind gave no known verdict"),
    ],
)
def test_a_kind_that_goes_wrong_cannot_tell(how: Any, why: str) -> None:
    """It is never counted as missing."""
    outcome = judge(Fails(how), said("x"))
    assert outcome.missing == []
    assert not outcome.met
    assert [(one.status, one.why) for one in outcome.unclear] == [(CANNOT_TELL, why)]


def test_a_built_in_that_raises_cannot_tell() -> None:
    assert judge(Fails(boom), said("x"), call=call_plain).unclear[0].why == "raised RuntimeError"


def test_one_kind_that_fails_leaves_the_others_alone() -> None:
    run = Run("investigate", "load-1", [said("done")], final_text="done")
    kinds = {"test.says": Says(), "test.fails": Fails(boom)}
    items = (Item("a", "test.fails"), Item("b", "test.says", {"word": "done"}), Item("c", "test.says", {"word": "no"}))
    outcome = evaluate(Contract(items, 1, ""), run, kinds, call_isolated)
    assert outcome.states() == {"a": CANNOT_TELL, "b": MET, "c": MISSING}


def test_a_kind_may_say_itself_that_it_cannot_tell() -> None:
    assert judge(CannotTell(), said("x")).unclear[0].why == "no way to know"


def test_a_waived_item_is_waived_and_a_met_one_stays_met() -> None:
    outcome = judge(Says(), *waive("item-0"), said("hm"), items=2)
    assert outcome.states() == {"item-0": WAIVED, "item-1": MISSING}
    assert outcome.results[0].why == "docs only"
    assert judge(Says(), *waive("item-0"), said("done")).states() == {"item-0": MET}
    assert judge(Says(), *waive("item-0"), said("hm")).met


def test_what_cannot_be_told_can_be_waived() -> None:
    assert judge(CannotTell(), *waive("item-0"), said("x")).states() == {"item-0": WAIVED}


def test_a_waiver_of_another_item_or_skill_does_not_count() -> None:
    assert judge(Says(), *waive("item-9"), said("hm")).missing == ["item-0"]
    command = "gstack contract waive item-0 --reason x --skill review"
    events = [called("shell", "w1", command=command), result("w1", ok=True)]
    assert judge(Says(), *events, said("hm")).missing == ["item-0"]
    named = [called("shell", "w1", command=command.replace("review", "'Deep Dive'")), result("w1", ok=True)]
    assert judge(Says(), *named, said("hm"), aliases=["Deep Dive"]).met


def test_a_waiver_that_failed_does_not_count() -> None:
    assert judge(Says(), *waive("item-0", ok=False), said("hm")).missing == ["item-0"]
    assert judge(Says(), *waive("item-0", denied=True), said("hm")).missing == ["item-0"]


def test_early_exit_meets_everything_without_asking_a_kind() -> None:
    outcome = judge(Fails(boom), said("STATUS: BLOCKED"), items=2)
    assert outcome.met
    assert outcome.early
    assert outcome.states() == {"item-0": MET, "item-1": MET}

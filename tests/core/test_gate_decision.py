"""Resolvers' answers become one: strongest, override, stale floor, command cap (gate G1, G5, G8)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gate_support import NOW, install, payload
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import ACTIONS, Decision, GateContext, Invocation
from gstack.errors import BundleError
from gstack.gate.answers import LONGEST as LONGEST_TEXT
from gstack.gate.decision import combine, decide, gate_context
from gstack.gate.freshness import judge
from gstack.gate.overrides import LONGEST, add_override, override_text, overrides_path, read_overrides
from gstack.plan import Plan, read_trouble

STALE = judge(NOW, NOW - 30 * 3600, None, connected=False)
HALTED = judge(NOW, NOW - 30 * 3600, None, connected=False, action="block")
FRESH = judge(NOW, NOW - 60, None, connected=False)


class Says:
    """A resolver that says one thing."""

    def __init__(self, name: str, said: object) -> None:
        self.name = name
        self.said = said

    def decide(self, invocation: Invocation, context: GateContext) -> Any:
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said


def direct(owner: object, function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def ask(*said: object, name: str = "acme/x", kind: str = "skill", root: str = "/nowhere") -> Any:
    resolvers = [(f"vendor.{number}", Says(f"r{number}", one)) for number, one in enumerate(said)]
    return decide(resolvers, Invocation(name, kind), GateContext(root, NOW), direct)


def test_the_most_restrictive_resolver_wins() -> None:
    outcome = ask(Decision("allow"), Decision("block", "no"), Decision("warn"))
    assert (outcome.decision.action, outcome.decision.resolver) == ("block", "vendor.1")


def test_of_equals_the_first_resolver_is_named() -> None:
    assert ask(None, Decision("warn", "one"), Decision("warn", "two")).decision.reason == "one"


def test_nobody_has_an_opinion() -> None:
    outcome = ask(None, None)
    assert (outcome.decision, outcome.base) == (None, "")


@pytest.mark.parametrize("bad", [RuntimeError("x"), "block", 7, Decision("explode")])
def test_a_resolver_that_fails_is_reported_and_cannot_swallow_a_block(bad: object) -> None:
    outcome = ask(bad, Decision("block", "no"))
    assert outcome.decision.action == "block"
    assert [name for name, _ in outcome.failures] == ["vendor.0"]


def test_a_bundle_that_cannot_be_used_is_no_fault_of_the_resolver() -> None:
    outcome = ask(BundleError("broken"), Decision("warn"))
    assert outcome.failures == []
    assert str(outcome.bundle_error) == "broken"
    assert outcome.decision.action == "warn"


def test_reserved_names_are_allowed_whatever_resolvers_say() -> None:
    assert ask(Decision("block"), name="skillsvault/x").decision.action == "allow"
    alias = decide(
        [("v", Says("r", Decision("block")))],
        Invocation("skillsvault/x", aliases=("evil",)),
        GateContext("/", NOW),
        direct,
    )
    assert alias.decision is not None
    assert alias.decision.action == "block"


# --------------------------------------------------------------------------------- floor, cap, override


def test_a_stale_bundle_makes_an_allow_a_warning_and_leaves_a_block() -> None:
    allowed, blocked = combine([Decision("allow")], STALE), combine([Decision("block", "no")], STALE)
    assert allowed is not None
    assert (allowed.action, allowed.reason, allowed.rule) == (
        "warn",
        "policy bundle is 30 hours old — run gstack sync",
        "stale",
    )
    assert blocked is not None
    assert (blocked.action, blocked.reason) == ("block", "no")


def test_a_stale_bundle_leaves_a_warning_its_own_reason() -> None:
    found = combine([Decision("warn", "Skill is deprecated.")], STALE)
    assert found is not None
    assert found.reason == "Skill is deprecated."


def test_stale_halt_blocks_skills_and_is_capped_for_commands() -> None:
    skill, command = combine([Decision("allow")], HALTED), combine([Decision("allow", entry_kind="command")], HALTED)
    assert skill is not None
    assert command is not None
    assert (skill.action, command.action) == ("block", "warn")


def test_a_commands_block_does_not_hide_a_skills() -> None:
    found = combine([Decision("block", "command", entry_kind="command"), Decision("block", "skill")])
    assert found is not None
    assert (found.action, found.reason) == ("block", "skill")


def test_reserved_names_are_never_stale() -> None:
    found = combine([Decision("allow", rule="reserved")], HALTED)
    assert found is not None
    assert found.action == "allow"


@given(
    actions=st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.sampled_from(("skill", "command"))), min_size=1, max_size=4
    ),
    fresh=st.sampled_from((None, FRESH, STALE, HALTED)),
)
def test_the_answer_is_the_strongest_of_what_each_comes_to(actions: list[tuple[str, str]], fresh: Any) -> None:
    found = combine([Decision(action, entry_kind=kind) for action, kind in actions], fresh)
    floor = ACTIONS.index(fresh.action) if fresh is not None and fresh.stale else 0
    caps = {"skill": 2, "command": 1}
    assert found is not None
    assert ACTIONS.index(found.action) == max(min(max(ACTIONS.index(a), floor), caps[k]) for a, k in actions)


def test_an_override_turns_an_overridable_block_into_a_warning_only(tmp_path: Path) -> None:
    root = str(tmp_path)
    add_override(root, "acme/Deploy", NOW + 3600, "hotfix", "alice", NOW)

    def text(decision: Decision) -> "str | None":
        return override_text(root, decision, NOW)

    blocked = Decision("block", "no", skill_name="acme/deploy", overridable=True, policy_name="Freeze", governed=True)
    found = combine([blocked], None, text)
    assert found is not None
    assert (found.action, found.rule, found.policy_name) == ("warn", "override", "Freeze")
    assert found.reason.startswith("Blocked by policy Freeze, allowed on this machine until ")
    assert found.reason.endswith(": hotfix")
    firm = Decision("block", "no", skill_name="acme/deploy")
    other = Decision("block", "no", skill_name="acme/other", overridable=True)
    for one in (firm, other):
        assert combine([one], None, text) == one


def test_an_override_ends_and_a_broken_or_impossible_one_never_holds(tmp_path: Path) -> None:
    root = str(tmp_path)
    add_override(root, "acme/a", NOW + 60, "x", "alice", NOW)
    add_override(root, "acme/b", NOW + 600, "x", "alice", NOW)
    assert [one["name"] for one in read_overrides(root, NOW + 61)] == ["acme/b"]
    assert len(read_overrides(root, NOW - LONGEST)) == 0, "the clock went back"
    for text in ("", "{", "[1, {}, null]", '[{"name": "x"}]', '[{"name": "x", "until": "later"}]'):
        Path(overrides_path(root)).write_text(text)
        assert read_overrides(root, NOW) == []


def test_overriding_needs_a_policy_that_lets_it(tmp_path: Path) -> None:
    """End to end in the core: the bundle's flag, the file, the decision."""
    from gstack_plugins.policy_bundle import PolicyBundle

    row = {"policy_id": "p", "name": "Freeze", "matcher_type": "namespace", "match_value": "acme", "action": "halt"}
    for overridable, action in ((True, "warn"), (False, "block")):
        root = tmp_path / str(overridable)
        install(root, payload(policies=[{**row, "overridable": overridable}]))
        add_override(str(root), "acme/hubspot-crm-entry", NOW + 60, "x", "alice", NOW)
        context = GateContext(str(root), NOW)
        outcome = decide([("policy_bundle", PolicyBundle())], Invocation("hubspot-crm-entry"), context, direct)
        assert outcome.decision is not None
        assert (outcome.decision.action, outcome.base) == (action, "block")


def test_facts_about_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gate_context("/root", {"USER": "alice"}, NOW)
    assert found.user == "alice"
    assert found.machine
    assert gate_context("/root", {}, NOW).user, "without variables the account's own name"


def test_what_a_resolver_leaves_out_is_filled_in_and_its_object_stays_as_it_was() -> None:
    said = Decision("block", "no")
    found = ask(said, name="/Acme/X now").decision
    assert (found.skill_name, found.rule, found.resolver) == ("acme/x", "resolver:vendor.0", "vendor.0")
    assert found.rules == (("block", "resolver:vendor.0", "no"),)
    assert said == Decision("block", "no")


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("block", "gave str, not a Decision"),
        (Decision("explode"), "gave a Decision whose action is 'explode'; it is one of allow, warn, block"),
        (Decision("block", 7), "gave a Decision whose reason is int, not a text"),  # type: ignore[arg-type]
        (Decision("warn", policy_name=["x"]), "gave a Decision whose policy_name is list, not a text"),  # type: ignore[arg-type]
        (Decision("warn", rules=[("explode", "a", "b")]), "gave a Decision whose action is 'explode'"),
        (Decision("warn", rules=["ab"]), "gave a Decision with a rule that isn't"),  # type: ignore[list-item]
    ],
)
def test_an_unsound_answer_is_left_out_and_noted_as_its_plug_ins_trouble(bad: Any, what: str, tmp_path: Path) -> None:
    rows = [{"id": "vendor.0", "group": "g", "builtin": False}]
    plan, resolver = Plan(str(tmp_path), rows), Says("r0", bad)
    plan._owner[id(resolver)] = rows[0]
    resolvers = [("vendor.0", resolver), ("vendor.1", Says("r1", Decision("warn", "careful")))]
    outcome = decide(resolvers, Invocation("x"), GateContext("/nowhere", NOW), plan.call)
    assert outcome.decision is not None
    assert outcome.decision.resolver == "vendor.1"
    assert outcome.failures[0][1].startswith(what)
    assert read_trouble(str(tmp_path))["trouble"]["vendor.0"]["what"].startswith(what)


def test_an_outside_resolvers_texts_become_one_printable_line_each() -> None:
    text = "one\ntwo\x1b[31m \u202e" + "x" * 600
    said = Decision("block", text, policy_name=text, replacement=text, rules=[("block", text, text)])
    found = ask(said).decision
    for one in (found.reason, found.policy_name, found.replacement, *found.rules[0][1:]):
        assert one.startswith("one two?[31m ?xxx")
        assert one.isprintable()
        assert len(one) <= LONGEST_TEXT
    assert said.reason == text


def test_explain_lists_the_rules_of_every_resolver() -> None:
    first = Decision("warn", "w", rules=[("warn", "a", "w"), ("allow", "b", "")])
    resolvers = [("v.0", Says("r0", first)), ("v.1", Says("r1", Decision("block", "no")))]
    context = GateContext("/nowhere", NOW, explain=True)
    outcome = decide(resolvers, Invocation("x"), context, direct)
    assert outcome.decision is not None
    assert [rule for _, rule, _ in outcome.decision.rules] == ["resolver:v.1", "a", "b"]

"""One decision, whoever asks: compiled index, whole payload, published client."""

from pathlib import Path
from typing import Any

import skillsvault
from gate_support import NOW, install, invoked_names, kinds, payloads, plain_payloads
from hypothesis import given, settings
from hypothesis import strategies as st

from gstack.api import Decision, GateContext, Invocation
from gstack.gate.compile import Fresh, assemble, compile_body
from gstack.gate.decision import combine, decide_from
from gstack.gate.index import Index, load
from gstack.gate.names import normal
from gstack.gate.rules import Rulebook


def compiled(payload: dict[str, Any]) -> Index:
    body, header = compile_body(Rulebook(payload))
    return Index(data=assemble(header, body))


@settings(max_examples=150)
@given(
    payload=payloads,
    name=invoked_names,
    alias=st.one_of(st.none(), invoked_names),
    kind=kinds,
    machine=st.sampled_from(("laptop-7", "other")),
    user=st.sampled_from(("alice", "dora")),
    now=st.sampled_from((NOW, NOW - 100, NOW + 100)),
)
def test_the_index_and_the_payload_give_the_same_decision(
    payload: dict[str, Any], name: str, alias: str | None, kind: str, machine: str, user: str, now: float
) -> None:
    invocation = Invocation(name, kind, aliases=(alias,) if alias else ())
    context = GateContext("/nowhere", now, machine=machine, user=user)
    whole = decide_from(Rulebook(payload), invocation, context)
    hot = decide_from(compiled(payload), invocation, context)
    if whole is None or hot is None:
        assert whole is hot is None
        return
    # the index leaves out rules that can never be named
    assert set(hot.rules) <= set(whole.rules)
    assert hot.rules[0] == whole.rules[0]
    hot.rules = whole.rules = ()
    assert hot == whole


@settings(max_examples=150)
@given(payload=payloads, name=invoked_names, kind=kinds, drifted=st.booleans())
def test_drift_is_judged_alike_on_both_roads(payload: dict[str, Any], name: str, kind: str, drifted: bool) -> None:
    from gstack.gate.decision import fold
    from gstack.gate.names import meanings

    context = GateContext("/nowhere", NOW, machine="laptop-7", user="dora")
    answers = []
    for source in (Rulebook(payload), compiled(payload)):
        found = meanings(source, Invocation(name, kind))
        if found:
            decision = fold(found, kind, context, drifted=drifted)
            answers.append((decision.action, decision.rule, decision.reason, decision.overridable))
    assert len(answers) != 1
    assert len(set(answers)) <= 1


@settings(max_examples=150)
@given(payload=plain_payloads, name=invoked_names)
def test_we_agree_with_the_published_client_where_it_knows_the_rule(payload: dict[str, Any], name: str) -> None:
    asked = normal(name)
    by_last = [one for one in payload["manifest_index"] if one.rsplit("/", 1)[-1] == asked]
    if not asked or ":" in asked or by_last:
        return  # forms of a name that the client doesn't map
    theirs = skillsvault.evaluate(payload, asked)
    decision = decide_from(Rulebook(payload), Invocation(asked), GateContext("/nowhere", NOW))
    assert decision is not None
    ours = combine([decision])
    assert ours is not None
    assert ours.action == {"allow": "allow", "warn": "warn", "halt": "block"}[theirs.decision]
    if ours.action != "allow":
        assert (ours.reason, ours.policy_id, ours.policy_name) == (theirs.reason, theirs.policy_id, theirs.policy_name)


@settings(max_examples=10)
@given(payload=payloads, asked=st.lists(st.tuples(invoked_names, kinds), min_size=1, max_size=8))
def test_the_installed_index_answers_like_a_fresh_verification(
    tmp_path_factory: Any, payload: dict[str, Any], asked: list[tuple[str, str]]
) -> None:
    root: Path = tmp_path_factory.mktemp("root")
    install(root, payload)
    index = load(str(root))
    assert isinstance(index, Index), "the stored index was not used"
    (root / "gate" / "bundle.index").unlink()
    context = GateContext(str(root), NOW)
    hot = [_plain(decide_from(index, Invocation(name, kind), context)) for name, kind in asked]
    (root / "gate" / "trust.json").touch()
    slow = load(str(root))
    assert isinstance(slow, Fresh)
    assert hot == [_plain(decide_from(slow, Invocation(name, kind), context)) for name, kind in asked]


def _plain(decision: Decision | None) -> Decision | None:
    """Without the rules that can't be named, which the index leaves out."""
    if decision is not None:
        decision.rules = ()
    return decision

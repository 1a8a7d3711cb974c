"""``gstack gate test``: a table of expected decisions, for the CI of whoever writes policy. Cold.

A file is YAML: ``cases``, a list of ``{skill, expect}`` with, optionally, ``kind``, ``policy`` (id or name),
``reason`` (a part of it), ``machine``, ``user`` and ``at`` (a time); and ``bundle``, a file beside it that holds
the policy.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gstack.api import ACTIONS, Decision, GateContext, Invocation
from gstack.errors import StateError
from gstack.gate.decision import combine, decide_from
from gstack.gate.names import FITS
from gstack.gate.policies import BadTime, when
from gstack.gate.policyfile import read_yaml
from gstack.gate.rules import Rulebook

_FIELDS = ("skill", "expect", "kind", "policy", "reason", "machine", "user", "at")


@dataclass(frozen=True)
class Case:
    """One expected decision. ``at`` is in seconds since the epoch, None for now."""

    skill: str
    expect: str
    kind: str = "any"
    policy: str = ""
    reason: str = ""
    machine: str = ""
    user: str = ""
    at: float | None = None


@dataclass(frozen=True)
class Result:
    """A case, what was decided, and what is wrong with that; empty when nothing is."""

    case: Case
    decision: Decision | None
    problem: str = ""


def read_cases(path: str) -> tuple[list[Case], str | None]:
    """The cases of a file, and the policy file that it names. Raises StateError."""
    found, twice = read_yaml(path)
    if twice:
        raise StateError(f"{path}: {twice[0]}")
    bundle = None
    if isinstance(found, dict):
        bundle = found.get("bundle")
        if bundle is not None and not isinstance(bundle, str):
            raise StateError(f"{path}: bundle is no path")
        found = found.get("cases")
    if not isinstance(found, list) or not found:
        raise StateError(f"{path} holds no cases: it needs a list of them, each with skill and expect")
    cases = [_case(path, number, row) for number, row in enumerate(found, 1)]
    return cases, os.path.join(os.path.dirname(path), bundle) if bundle else None


def _case(path: str, number: int, row: object) -> Case:
    def refuse(what: str) -> StateError:
        return StateError(f"{path}: case {number}: {what}")

    if not isinstance(row, Mapping):
        raise refuse("it is no mapping with skill and expect")
    unknown = [str(key) for key in row if key not in _FIELDS]
    if unknown:
        raise refuse(f"unknown field {unknown[0]!r}; known are {', '.join(_FIELDS)}")
    try:
        at = when(row.get("at"))
    except BadTime:
        raise refuse(f"at: {row['at']!r} is no time") from None
    texts = {key: row.get(key) for key in _FIELDS if key != "at" and row.get(key) is not None}
    if not all(isinstance(value, str) for value in texts.values()) or not texts.get("skill"):
        raise refuse("skill and the other fields must be texts")
    expect = "block" if texts.get("expect") == "halt" else str(texts.get("expect"))
    if expect not in ACTIONS:
        raise refuse(f"expect must be one of {', '.join(ACTIONS)}")
    if texts.get("kind", "any") not in FITS:
        raise refuse(f"kind must be one of {', '.join(FITS)}")
    words = {key: str(value) for key, value in texts.items()}
    return Case(at=at, **{**words, "expect": expect})


def run_cases(payload: Mapping[str, Any], cases: Sequence[Case]) -> list[Result]:
    """Decide each case by the gate's own code, without any machine's state."""
    book = Rulebook(payload)
    now = time.time()
    return [_run(book, case, now) for case in cases]


def _run(book: Rulebook, case: Case, now: float) -> Result:
    moment = now if case.at is None else case.at
    context = GateContext("", moment, machine=case.machine, user=case.user)
    said = decide_from(book, Invocation(case.skill, case.kind), context)
    decision = combine([said]) if said is not None else None
    if decision is None:
        return Result(case, None, "no recognisable name")
    if decision.action != case.expect:
        return Result(case, decision, f"expected {case.expect}, got {decision.action} by {decision.rule}")
    if case.policy and case.policy not in (decision.policy_id, decision.policy_name):
        return Result(case, decision, f"expected policy {case.policy}, got {decision.policy_name or decision.rule}")
    if case.reason and case.reason not in decision.reason:
        return Result(case, decision, f"the reason lacks {case.reason!r}: {decision.reason!r}")
    return Result(case, decision)

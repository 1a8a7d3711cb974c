"""The conformance kit for gate resolvers. Cold."""

import copy
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from gstack.api import ACTIONS, Decision, GateContext, Invocation
from gstack.errors import BundleError
from gstack.testing.kit import Conformance, expect, offline, one_line

_NAMES = ("qa", "acme/deploy", "tools:plan", "/qa", "", "  ", "Ünïcode", "a" * 3000, "..", "*", "x\x00y")


class GateResolverConformance(Conformance):
    """Inherit from it in a test class::

    class TestFreeze(GateResolverConformance):
        plugin = acme_freeze

        def cases(self):
            return [(Invocation("deploy", "skill"), "block"), (Invocation("qa", "skill"), None)]
    """

    group = "gstack.gate_resolvers"

    def state_root(self) -> str | None:
        """A state folder that holds what the resolver reads; None: an empty one."""
        return None

    def cases(self) -> list[tuple[Invocation, str | None]]:
        """Invocations, each with the action that must be given (None: no opinion)."""
        return []

    # ---------------------------------------------------------------------------------------------- checks

    def test_every_invocation_gets_a_decision_or_none(self) -> None:
        """A Decision with a known action and one line of reason, or None for no opinion."""
        with self._contexts() as contexts:
            for resolver in self.subjects():
                for invocation in _invocations():
                    for context in contexts:
                        self._sound(resolver, self._decide(resolver, invocation, context))

    def test_deciding_is_deterministic_offline_and_changes_nothing(self) -> None:
        """The same question gets the same answer, with the network cut off."""
        with self._contexts() as contexts, offline():
            for resolver in self.subjects():
                for invocation in _invocations():
                    kept = copy.deepcopy(invocation)
                    first = self._decide(resolver, invocation, contexts[0])
                    expect(invocation == kept, f"{resolver.name}: decide changed the invocation")
                    again = self._decide(resolver, invocation, contexts[0])
                    expect(first == again, f"{resolver.name}: two answers about {invocation.name[:40]!r}")

    def test_cases(self) -> None:
        """The plug-in's own cases."""
        with self._contexts() as contexts:
            for resolver in self.subjects():
                for invocation, wanted in self.cases():
                    decision = self._decide(resolver, invocation, contexts[0])
                    action = decision.action if decision is not None else None
                    expect(action == wanted, f"{resolver.name}: {invocation.name!r} gave {action}, not {wanted}")

    def _decide(self, resolver: Any, invocation: Invocation, context: GateContext) -> Any:
        def decide() -> Any:
            try:
                return resolver.decide(invocation, context)
            except BundleError:  # "there is no usable bundle" is an answer that the core knows
                return None

        return self.ask(decide)

    def _sound(self, resolver: Any, decision: Any) -> None:
        if decision is None:
            return
        name = resolver.name
        expect(isinstance(decision, Decision), f"{name}: decide gave {type(decision).__name__}, not a Decision")
        expect(decision.action in ACTIONS, f"{name}: the action {decision.action!r} is none of {', '.join(ACTIONS)}")
        if decision.action != "allow":
            one_line(decision.reason, f"{name}: the reason", limit=2000)

    def _contexts(self) -> "_Contexts":
        return _Contexts(self.state_root())


class _Contexts:
    """What the resolver is told beside the invocation, for as long as the state folder is there."""

    def __init__(self, root: str | None) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="gstack-") if root is None else None
        self.root = root if root is not None else str(self._own.name if self._own else "")

    def __enter__(self) -> list[GateContext]:
        now = time.time()
        return [
            GateContext(self.root, now),
            GateContext(self.root, now, machine="laptop", user="ada", explain=True),
        ]

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.cleanup()


def _invocations() -> Iterator[Invocation]:
    for name in _NAMES:
        for kind in ("skill", "subagent", "command", "any"):
            yield Invocation(name, kind, host="claude-code")
    yield Invocation("qa", "skill", aliases=("acme/qa", "quality"), path="/nowhere/SKILL.md", session_id="s")

"""The gate resolver ``policy_bundle``: what the organisation's signed bundle says of a use (gate G1, G2, G4).

Hot: asked on every use of a skill, so builtins only. It reads the compiled index of the bundle; ``--explain`` reads the
whole, freshly verified bundle instead, by the same code that compiled the index.
"""

from gstack.api import hookimpl
from gstack.gate.decision import decide_from
from gstack.gate.index import DAMAGED, load, reload, verified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gstack.api import Decision, GateContext, Invocation
    from gstack.gate.names import Source


class PolicyBundle:
    """Decides from the installed bundle."""

    name = "policy_bundle"

    def decide(self, invocation: "Invocation", context: "GateContext") -> "Decision | None":
        """What the bundle says; None for a name that is none. Raises BundleError when there is no usable bundle."""
        source: Source = load(context.state_root)
        if context.explain:
            source = verified(context.state_root)
        try:
            decision = decide_from(source, invocation, context)
        except DAMAGED:
            # a damaged index must not open the gate; the bundle itself is verified and asked instead
            decision = decide_from(reload(context.state_root), invocation, context)
        if decision is not None:
            decision.resolver = self.name
        return decision


@hookimpl
def gstack_gate_resolvers() -> "list[PolicyBundle]":
    """The one resolver of this plug-in."""
    return [PolicyBundle()]

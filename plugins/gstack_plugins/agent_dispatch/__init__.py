"""The contract kind ``agent_dispatch``: an agent was launched whose description or prompt matches (contracts C2).

Hot: the stop hook judges with it, so builtins only.
"""

from gstack.api import MET, MISSING, Field, Verdict, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gstack.api import EndVerdict, Item, Run


class AgentDispatch:
    """A dispatch of the main thread, not refused, whose description or prompt the expression matches in any case."""

    name = "agent_dispatch"
    fields = (Field("match", "regex", required=True, help="searched in a dispatch's description and prompt, any case"),)

    def check(self, item: "Item", run: "Run") -> Verdict:
        """Met when the expression matches a dispatch's description or its prompt."""
        dispatches = run.dispatches()
        if not dispatches:
            return Verdict(MISSING, "no agent was dispatched")
        from gstack.contracts.matching import first_match

        texts = [text for call in dispatches for text in (call.description, call.prompt) if text]
        if first_match(item.fields["match"], texts, ignore_case=True) is not None:
            return Verdict(MET)
        return Verdict(MISSING, f"none of the {len(dispatches)} dispatched agents matches {item.fields['match']}")

    def check_end(self, item: "Item", run: "Run") -> "EndVerdict":
        """A dispatch that matches is in the run's end, or there may be earlier ones."""
        from gstack.api import EndVerdict

        verdict = self.check(item, run)
        return EndVerdict(verdict, unless_called=() if verdict.status == MET else ("agent",))

    def fix(self, item: "Item") -> str:
        """What to do about it."""
        return f"dispatch the agent that this step asks for (description or prompt matching {item.fields['match']})"

    def summary(self, item: "Item") -> str:
        """The item as a noun phrase."""
        return f"an agent dispatch that matches {item.fields['match']}"


@hookimpl
def gstack_contract_kinds() -> "list[AgentDispatch]":
    """This plug-in's kind."""
    return [AgentDispatch()]

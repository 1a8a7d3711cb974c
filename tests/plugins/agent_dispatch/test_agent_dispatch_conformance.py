"""The kit that outside kinds inherit, on the built-in one."""

from typing import ClassVar

from gstack.api import Event, Run, ToolCall
from gstack.testing import Case, ContractKindConformance
from gstack_plugins import agent_dispatch


class TestAgentDispatch(ContractKindConformance):
    plugin = agent_dispatch
    builtin = True
    examples: ClassVar = {"match": "review"}

    def cases(self) -> list[Case]:
        sent = Event("call", call=ToolCall("agent", "Agent", id="1", description="Review the diff"))
        refused = Event("result", ref="1", ok=False, denied=True)
        return [
            Case({}, Run("x", "1", [sent]), "met"),
            Case({}, Run("x", "1", [sent, refused]), "missing"),
            Case({"match": "security"}, Run("x", "1", [sent]), "missing"),
        ]

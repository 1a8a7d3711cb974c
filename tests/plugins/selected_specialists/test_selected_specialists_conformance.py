"""The kit that outside kinds inherit, on the built-in one."""

from gstack.api import Event, Run, ToolCall
from gstack.testing import Case, ContractKindConformance
from gstack_plugins import selected_specialists


class TestSelectedSpecialists(ContractKindConformance):
    plugin = selected_specialists
    builtin = True

    def cases(self) -> list[Case]:
        said = Event("text", text="Dispatching 1 specialists: Testing")
        sent = Event("call", call=ToolCall("agent", "Agent", id="1", description="Testing"))
        return [
            Case({}, Run("x", "1", [said, sent]), "met"),
            Case({}, Run("x", "1", [said]), "missing"),
            Case({}, Run("x", "1", [Event("text", text="specialists skipped")]), "met"),
        ]

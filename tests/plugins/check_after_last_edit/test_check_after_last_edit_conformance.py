"""The kit that outside kinds inherit, on the built-in one."""

from gstack.api import Event, Run, ToolCall
from gstack.testing import Case, ContractKindConformance
from gstack_plugins import check_after_last_edit


def called(kind: str, ident: str, **more: object) -> list[Event]:
    call = ToolCall(kind, kind, id=ident, **more)  # type: ignore[arg-type]
    return [Event("call", call=call), Event("result", ref=ident, ok=True)]


class TestCheckAfterLastEdit(ContractKindConformance):
    plugin = check_after_last_edit
    builtin = True

    def cases(self) -> list[Case]:
        edit, test = called("edit", "1", paths=("a.py",)), called("shell", "2", command="pytest -q")
        return [
            Case({}, Run("x", "1", [*edit, *test]), "met"),
            Case({}, Run("x", "1", [*test, *edit]), "missing"),
            Case({"match": "make verify"}, Run("x", "1", [*edit, *test]), "missing"),
        ]

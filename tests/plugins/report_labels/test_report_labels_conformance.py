"""The kit that outside kinds inherit, on the built-in one."""

from typing import ClassVar

from gstack.api import Event, Run
from gstack.testing import Case, ContractKindConformance
from gstack_plugins import report_labels

FIELDS = {"heading": "REPORT", "labels": ["Fix"]}


class TestReportLabels(ContractKindConformance):
    plugin = report_labels
    builtin = True
    examples: ClassVar = FIELDS

    def cases(self) -> list[Case]:
        said = [Event("text", text="REPORT\nFix: a null check")]
        return [
            Case(FIELDS, Run("x", "1", said), "met"),
            Case(FIELDS, Run("x", "1", said, final_text="REPORT\nFix: TBD"), "missing"),
            Case(FIELDS, Run("x", "1"), "missing"),
        ]

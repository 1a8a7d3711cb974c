"""The kit that outside scorers inherit, on the built-in one."""

from gstack.testing import TriggerScorerConformance
from gstack_plugins import lexical_scorer


class TestLexicalScorer(TriggerScorerConformance):
    plugin = lexical_scorer
    builtin = True

    def cases(self) -> list[tuple[str, str | None]]:
        return [
            ("please find the root cause of this", "investigate"),
            ("find bugs on the site", "qa"),
            ("write a haiku about autumn", None),
        ]

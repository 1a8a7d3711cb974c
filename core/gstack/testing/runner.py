"""Running the conformance kits on what is installed, without pytest: ``gstack plugins check``. Cold."""

import importlib
from collections.abc import Iterator
from typing import Any

from gstack.plugins import Status
from gstack.testing.hosts import HostAdapterConformance
from gstack.testing.kinds import ContractKindConformance
from gstack.testing.kit import Conformance
from gstack.testing.resolvers import GateResolverConformance
from gstack.testing.scorers import TriggerScorerConformance

#: The kit of each group.
KITS: dict[str, type[Conformance]] = {
    kit.group: kit
    for kit in (ContractKindConformance, TriggerScorerConformance, GateResolverConformance, HostAdapterConformance)
}


class CheckResult:
    """What one check of a kit found: ``name`` in words, ``problem`` (``""``: it passed)."""

    def __init__(self, name: str, problem: str = "") -> None:
        self.name = name
        self.problem = problem

    def as_dict(self) -> dict[str, Any]:
        """The facts with stable keys, for ``--json``."""
        return {"check": self.name, "ok": not self.problem, "problem": self.problem}


def run_kit(kit: Conformance) -> Iterator[CheckResult]:
    """Run every check of a kit; one that fails costs only itself."""
    for name in sorted(dir(kit)):
        if name.startswith("test_"):
            words = name.removeprefix("test_").replace("_", " ")
            try:
                getattr(kit, name)()
            except Exception as error:
                said = " ".join(str(error).split()) or "no text"
                kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
                yield CheckResult(words, f"{kind}{said}"[:600])
            else:
                yield CheckResult(words)


def check_plugin(status: Status) -> Iterator[CheckResult]:
    """Run the kit of its sort on an installed plug-in that ``survey`` found to load."""
    found = status.found
    plugin: Any = importlib.import_module(found.module)
    for part in found.attr.split(".") if found.attr else ():
        plugin = getattr(plugin, part)
    kit = KITS[found.group]()
    kit.plugin = plugin
    kit.builtin = found.builtin
    return run_kit(kit)

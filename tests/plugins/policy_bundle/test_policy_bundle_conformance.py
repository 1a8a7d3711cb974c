"""The kit that outside resolvers inherit, on the built-in one, without a bundle and with one."""

from pathlib import Path

import gate_support
import pytest

from gstack.api import Invocation
from gstack.testing import GateResolverConformance
from gstack_plugins import policy_bundle


class TestWithoutABundle(GateResolverConformance):
    plugin = policy_bundle
    builtin = True


class TestWithABundle(GateResolverConformance):
    plugin = policy_bundle
    builtin = True

    @pytest.fixture(autouse=True)
    def installed(self, tmp_path: Path) -> None:
        self.root = tmp_path / "state"
        gate_support.install(self.root, gate_support.payload())

    def state_root(self) -> str:
        return str(self.root)

    def cases(self) -> list[tuple[Invocation, str | None]]:
        return [
            (Invocation("acme/wipe-disk", "skill"), "block"),
            (Invocation("acme/teamleader-crm-entry", "skill"), "block"),
            (Invocation("acme/hubspot-crm-entry", "skill"), "allow"),
            (Invocation("", "skill"), None),
        ]

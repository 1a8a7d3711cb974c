"""What plug-in authors import in their tests: the real hook process, fake installations, sessions, conformance kits.

* :mod:`gstack.testing.fixtures`: pytest fixtures, opted into with ``pytest_plugins``;
* :class:`Transcript`: a session, built step by step;
* one conformance kit a sort of plug-in: inherit from it in a test class and name the plug-in's module.

Documented in ``docs/plugins/testing.md``. Cold; the kits need no pytest (``gstack plugins check`` runs them).
"""

from gstack.sandbox import Reply, Sandbox
from gstack.testing.host_files import Sample
from gstack.testing.hosts import Capture, HostAdapterConformance
from gstack.testing.kinds import Case, ContractKindConformance
from gstack.testing.resolvers import GateResolverConformance
from gstack.testing.scorers import TriggerScorerConformance
from gstack.testing.site import FakeSite
from gstack.testing.transcript import Transcript

__all__ = [
    "Capture",
    "Case",
    "ContractKindConformance",
    "FakeSite",
    "GateResolverConformance",
    "HostAdapterConformance",
    "Reply",
    "Sample",
    "Sandbox",
    "Transcript",
    "TriggerScorerConformance",
]

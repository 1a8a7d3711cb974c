"""Judging one run by a contract (contracts C2, C3, C6): the same code for the stop hook and for the commands.

Hot: the stop hook judges with it, so builtins only.
"""

from gstack.api import CANNOT_TELL, MET, MISSING, Value
from gstack.contracts.runs import early_exit
from gstack.plan import plugin_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from gstack.api import Item, Run
    from gstack.contracts.schema import Contract
    from gstack.protocols import ContractKind

    #: How a plug-in object's method is called: in its own failure domain. Raises PluginFailed.
    Call = Callable[..., Any]

#: The state of an item that the model waived; the others are those of :class:`gstack.api.Verdict`.
WAIVED = "waived"


class ItemResult(Value):
    """What became of one item: ``status`` is ``met``, ``missing``, ``waived`` or ``cannot_tell``; ``why`` says more."""

    __slots__ = ("id", "kind", "status", "why")

    def __init__(self, id: str, kind: str, status: str, why: str = "") -> None:
        self.id = id
        self.kind = kind
        self.status = status
        self.why = why


class Outcome(Value):
    """All items of one run, in the contract's order; ``early`` says why the run counts as met, where it ended early."""

    __slots__ = ("early", "results")

    def __init__(self, results: "tuple[ItemResult, ...]", early: str = "") -> None:
        self.results = results
        self.early = early

    def ids(self, status: str) -> "list[str]":
        """The items of one status."""
        return [result.id for result in self.results if result.status == status]

    @property
    def missing(self) -> "list[str]":
        """The items that are missing."""
        return self.ids(MISSING)

    @property
    def unclear(self) -> "list[ItemResult]":
        """The items whose kind couldn't tell."""
        return [result for result in self.results if result.status == CANNOT_TELL]

    @property
    def met(self) -> bool:
        """Every item is met or waived."""
        return not self.missing and not self.unclear

    def states(self) -> "dict[str, str]":
        """The status of each item, as the record keeps it."""
        return {result.id: result.status for result in self.results}


def evaluate(
    contract: "Contract",
    run: "Run",
    kinds: "Mapping[str, ContractKind]",
    call: "Call",
    *,
    aliases: "Collection[str]" = (),
    others: "Mapping[str, Collection[str]] | None" = None,
) -> Outcome:
    """Judge every item of ``contract`` on ``run``; ``call(owner, function, *arguments)`` isolates each kind.

    ``aliases`` and ``others`` (the item ids of other skills' contracts) tell whose item a waiver names
    (:func:`gstack.contracts.waivers.find_waivers`).
    """
    early = early_exit(run)
    if early:
        return Outcome(tuple([ItemResult(item.id, item.kind, MET, early) for item in contract.items]), early)
    results = [_judge(item, run, kinds[item.kind], call) for item in contract.items]
    return with_waivers(results, run, aliases=aliases, others=others)


def with_waivers(
    results: "list[ItemResult]",
    run: "Run",
    *,
    aliases: "Collection[str]" = (),
    others: "Mapping[str, Collection[str]] | None" = None,
) -> Outcome:
    """The outcome of a contract's items: those that aren't met may be waived in ``run``; the names are those of
    :func:`evaluate`."""
    if any(result.status != MET for result in results):
        from gstack.contracts.waivers import find_waivers

        waived = find_waivers(run, run.skill, [result.id for result in results], names=aliases, others=others)
        results = [_waive(result, waived) for result in results]
    return Outcome(tuple(results))


def _judge(item: "Item", run: "Run", kind: "ContractKind", call: "Call") -> ItemResult:
    try:
        verdict = call(kind, kind.check, item, run)
        status, why = verdict.status, " ".join(str(verdict.why).split())
    except plugin_failed() as failed:
        return ItemResult(item.id, item.kind, CANNOT_TELL, failed.what)
    except AttributeError:
        return ItemResult(item.id, item.kind, CANNOT_TELL, "the kind gave no verdict")
    if status not in (MET, MISSING, CANNOT_TELL):
        return ItemResult(item.id, item.kind, CANNOT_TELL, "the kind gave no known verdict")
    return ItemResult(item.id, item.kind, status, why)


def _waive(result: ItemResult, waived: "Mapping[str, str]") -> ItemResult:
    if result.status == MET or result.id not in waived:
        return result
    return ItemResult(result.id, result.kind, WAIVED, waived[result.id])


class Judged(Value):
    """A run with the contract that it was judged by and what came of it."""

    __slots__ = ("contract", "kinds", "outcome", "run")

    def __init__(self, run: "Run", contract: "Contract", kinds: "dict[str, Any]", outcome: Outcome) -> None:
        self.run = run
        self.contract = contract
        self.kinds = kinds
        self.outcome = outcome

"""The compiled index: what it holds, what it costs to ask, when it counts (gate G4, performance G5)."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from gate_support import install, payload

from gstack.api import GateContext, Invocation
from gstack.gate import compile as compiler
from gstack.gate import index as module
from gstack.gate.compile import assemble, compile_body, needed
from gstack.gate.decision import decide_from
from gstack.gate.index import MAGIC, Index, bucket_of, index_path, load, stored
from gstack.gate.rules import Rulebook


def large(entries: int, policies: int) -> dict[str, Any]:
    spaces = [f"org{number}" for number in range(10)]
    rows = [
        {
            "policy_id": f"p{number}",
            "name": f"Policy {number}",
            "matcher_type": "declared_metadata" if number % 2 else "namespace",
            "match_value": f"targets: t{number % 300}" if number % 2 else f"space{number}",
            "action": ("warn", "halt", "allow")[number % 3],
            "reason": "Because of a reason that takes a sentence.",
        }
        for number in range(policies)
    ]
    index = {
        f"{spaces[number % 10]}/skill-{number // 10}": {"version": "1", "targets": [f"t{number % 700}"]}
        for number in range(entries)
    }
    return payload(namespaces=spaces, policies=rows, manifest_index=index)


class Counting(Index):
    """An index that counts what it reads."""

    def __init__(self, data: bytes) -> None:
        self.reads = 0
        self.bytes = 0
        super().__init__(data=data)

    def _read(self, offset: int, length: int) -> bytes:
        data = super()._read(offset, length)
        self.reads += 1
        self.bytes += len(data)
        return data


def counting(data: dict[str, Any]) -> Counting:
    body, header = compile_body(Rulebook(data))
    return Counting(assemble(header, body))


@pytest.mark.parametrize("name", ["org3/skill-7", "org3:skill-7", "org3/none", "free", "free:x", "free/y"])
def test_a_decision_reads_as_little_from_a_large_bundle_as_from_a_small_one(name: str) -> None:
    cost = []
    for entries, policies in ((100, 10), (8000, 2000)):
        index = counting(large(entries, policies))
        decide_from(index, Invocation(name), GateContext("", 0.0))
        cost.append((index.reads, index.bytes))
    assert cost[1][0] <= cost[0][0] + 1
    assert cost[1][1] <= cost[0][1] + 600, "bytes read"
    assert cost[1][0] <= 12


def test_nothing_is_read_twice() -> None:
    index = counting(large(100, 10))
    for _ in range(3):
        decide_from(index, Invocation("org3/skill-7"), GateContext("", 0.0))
    before = index.reads
    decide_from(index, Invocation("org3/skill-7"), GateContext("", 0.0))
    assert index.reads == before


def test_what_one_process_keeps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 8)
    index = counting(large(200, 10))
    for number in range(100):
        decide_from(index, Invocation(f"org{number % 10}/skill-{number // 10}"), GateContext("", 0.0))
    assert len(index._kept) <= 10


def test_keys_spread_over_the_buckets() -> None:
    keys = [f"nspace{number % 50}/skill-{number}".encode() for number in range(5000)]
    filled = {bucket_of(key, 5001) for key in keys}
    assert len(filled) > 2500


def rule(rank: int, *, overridable: bool = False, expires: float | None = None) -> tuple[Any, ...]:
    return (rank, 0, 0, "r", "", None, None, None, overridable, expires, ())


def test_rules_that_can_never_matter_are_left_out() -> None:
    block, soft, late, warn = rule(2), rule(2, overridable=True), rule(2, expires=1.0), rule(1)
    assert needed([block, soft, warn]) == [block]
    assert needed([late, block, warn]) == [late, block]
    assert needed([late, warn, rule(0)]) == [late, warn]
    assert needed([soft, late, block, warn]) == [soft, late, block], "a firm block behind an overridable one counts"
    assert needed([soft, soft, warn, rule(0)]) == [soft]
    assert needed([warn, soft]) == [warn]
    assert needed([]) == []


def test_a_header_longer_than_the_first_read(tmp_path: Path) -> None:
    rows = [{"name": f"M{n}" * 20, "matcher_type": "mood", "action": "halt", "expires_at": 4e9} for n in range(80)]
    install(tmp_path, payload(policies=rows))
    found = load(str(tmp_path))
    assert isinstance(found, Index)
    assert len(found.header["managed_rules"]) == 80
    assert decide_from(found, Invocation("acme/none"), GateContext("", 0.0)).action == "warn"  # type: ignore[union-attr]


def test_the_file_is_bound_to_the_bundle_and_the_key(tmp_path: Path) -> None:
    root = str(tmp_path)
    install(tmp_path, payload())
    assert stored(root)
    header = load(root).header
    assert header["bundle"] == module.identity(os.stat(module.bundle_path(root)))
    assert header["trust"] == module.identity(os.stat(module.trust_path(root)))
    os.utime(module.trust_path(root))
    assert not stored(root)
    assert stored(str(tmp_path / "elsewhere")) is False


def test_an_index_confirmed_too_soon_after_a_change_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in git: a later change within the same tick of the file system's clock would look the same."""
    root = str(tmp_path)
    install(tmp_path, payload())
    index = Path(index_path(root))
    good = index.read_bytes()
    header, start = load(root).header, len(MAGIC) + 8
    body = good[start + int.from_bytes(good[start - 8 : start], "little") :]
    newest = max(*header["bundle"][3:], *header["trust"][3:])
    for confirmed, counts in ((newest + header["window"], True), (newest + header["window"] - 1, False)):
        index.write_bytes(assemble(header | {"confirmed": confirmed}, body))
        assert stored(root) is counts


def test_coarse_time_stamps_get_a_wide_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr(compiler.time, "sleep", naps.append)
    real = compiler.identity
    second = 1_000_000_000
    now = time.time_ns()
    monkeypatch.setattr(
        compiler, "identity", lambda status: (*real(status)[:3], now // second * second, now // second * second)
    )
    install(tmp_path, payload())
    assert naps
    assert 0.9 < naps[0] <= 2.1


def test_an_index_is_not_stored_when_the_bundle_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path)
    install(tmp_path, payload())
    os.unlink(index_path(root))
    real = compiler.compile_body

    def slow(book: Rulebook) -> Any:
        os.utime(module.bundle_path(root))
        return real(book)

    monkeypatch.setattr(compiler, "compile_body", slow)
    load(root)
    module.store_missing(root)
    assert not os.path.exists(index_path(root))


def test_a_read_only_state_folder_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, payload())
    os.unlink(index_path(str(tmp_path)))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(compiler, "write_atomic", refuse)
    found = load(str(tmp_path))
    module.store_missing(str(tmp_path))
    assert decide_from(found, Invocation("wipe-disk"), GateContext("", 0.0)).action == "block"  # type: ignore[union-attr]


def test_a_hundred_thousand_decisions_a_second() -> None:
    """In process, on names that were asked before (issue 4); a third of it unless GSTACK_BENCH says that the
    machine is quiet."""
    index = counting(large(5000, 1000))
    asked = [Invocation(f"org{number % 10}/skill-{number % 90}", "skill") for number in range(500)]
    context = GateContext("", 0.0, machine="m", user="u")
    best = 0.0
    for _ in range(7):
        started = time.process_time()
        for one in asked * 10:
            decide_from(index, one, context)
        best = max(best, 5000 / (time.process_time() - started))
    wanted = 100_000 if os.environ.get("GSTACK_BENCH") else 33_000
    assert best >= wanted, f"{best:,.0f} decisions a second"

"""Writing the compiled index of a bundle (see :mod:`gstack.gate.index`). Cold: runs at sync, and on the hook's slow
road."""

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from marshal import dumps
from typing import Any

from gstack.gate.bundle import Bundle, verify_installed
from gstack.gate.decision import BLOCK, OVERRIDABLE, RANK, strength
from gstack.gate.index import END, MAGIC, bucket_of, bundle_path, identity, index_path, trust_path
from gstack.gate.names import last_segment, namespace
from gstack.gate.policies import Policy, Rule, is_conditional
from gstack.gate.rules import Rulebook
from gstack.gate.trust import read_trust
from gstack.state import write_atomic

#: A change of a file can hide for as long as the file system's clock stands still, in ns: a kernel tick where
#: stamps are fine, two seconds where they are whole (as on FAT).
_FINE_TICK = 50_000_000
_COARSE_TICK = 2_000_000_000

#: Marshal version that every Python since 2.5 reads the same way.
_MARSHAL = 2


class Fresh(Rulebook):
    """The installed bundle, verified just now: what the hook decides from where no stored index fits.

    The lookups, ``header`` and ``notice`` are those of :class:`gstack.gate.index.Index`, and so are the answers.
    """

    def __init__(self, root: str, danger: str) -> None:
        self._root = root
        self._before = _identities(root)
        bundle = verify_installed(root)
        super().__init__(bundle.payload)
        self.header = _facts(root, bundle, self)
        self.notice = danger

    def close(self) -> None:
        """Nothing is open."""

    def store(self) -> None:
        """Compile and store the index, unless the folder can't be trusted."""
        if not self.notice:
            body, header = compile_body(self)
            _store(self._root, header | self.header, body, self._before, settle=False)


def store_index(root: str, bundle: Bundle, book: Rulebook) -> None:
    """Compile and store the index of the bundle that was just installed, waiting until a later change can't hide.

    An index that can't be written costs time only, since the hook then verifies the bundle itself.
    """
    before = _identities(root)
    body, header = compile_body(book)
    _store(root, header | _facts(root, bundle, book), body, before, settle=True)


def _facts(root: str, bundle: Bundle, book: Rulebook) -> dict[str, Any]:
    """What the header says of the bundle as a whole."""
    payload = bundle.payload
    trust = read_trust(root)
    url = payload.get("requests_url")
    return {
        "org": bundle.org,
        "version": bundle.version,
        "key_id": bundle.key.id,
        "base_url": trust.base_url if trust else "",
        "requests_url": url if isinstance(url, str) else "",
        "gate_lock": payload.get("gate_lock") is True,
        "stale_after": book.stale_after,
        "stale_action": book.stale_action,
    }


def _identities(root: str) -> tuple[Any, ...] | None:
    """What bundle and trusted key are recognised by; None when one is missing."""
    try:
        return identity(os.stat(bundle_path(root))), identity(os.stat(trust_path(root)))
    except OSError:
        return None


def _store(root: str, header: dict[str, Any], body: bytes, before: tuple[Any, ...] | None, *, settle: bool) -> None:
    """Write the index, bound to the files that were read (``before``); not at all when they changed meanwhile."""
    if before is None:
        return
    stamps = [*before[0][3:], *before[1][3:]]
    window = _FINE_TICK if any(stamp % 1_000_000 for stamp in stamps) else _COARSE_TICK
    wait = max(stamps) + window - time.time_ns()
    if settle and 0 < wait <= _COARSE_TICK:
        time.sleep(wait / 1e9 + 0.001)
    confirmed = time.time_ns()
    if _identities(root) != before:
        return
    header = header | {"bundle": before[0], "trust": before[1], "window": window, "confirmed": confirmed}
    try:
        write_atomic(index_path(root), assemble(header, body))
    except OSError:
        return


def assemble(header: dict[str, Any], body: bytes) -> bytes:
    """The whole index file."""
    data = dumps(header, _MARSHAL)
    return MAGIC + len(data).to_bytes(8, "little") + data + body


# --------------------------------------------------------------------------------------------- the body


class _Body:
    """The records of an index: each value is written once, and referred to by (offset, length)."""

    def __init__(self, start: int) -> None:
        self.parts: list[bytes] = []
        self.end = start
        self._rules: dict[Rule, tuple[int, int]] = {}

    def add(self, value: Any) -> tuple[int, int]:
        data = dumps(value, _MARSHAL)
        place = (self.end, len(data))
        self.parts.append(data)
        self.end += len(data)
        return place

    def rule(self, rule: Rule) -> tuple[int, int]:
        if rule not in self._rules:
            self._rules[rule] = self.add(rule)
        return self._rules[rule]

    def rules(self, rules: Sequence[Rule]) -> tuple[tuple[int, int], ...]:
        return tuple(self.rule(rule) for rule in needed(rules))


def needed(rules: Sequence[Rule]) -> list[Rule]:
    """The rules of a name (strongest first) that can ever be named or decide whether a block may be overridden.

    Everything behind the first rule that is in force for everybody and always has no say; only, if that one is an
    overridable block, another block that isn't overridable still matters.
    """
    kept: list[Rule] = []
    overridable = False
    for rule in rules:
        if overridable and (rule[RANK] < BLOCK or rule[OVERRIDABLE]):
            continue
        kept.append(rule)
        if is_conditional(rule):
            continue
        if rule[RANK] < BLOCK or not rule[OVERRIDABLE]:
            break
        overridable = True
    return kept


def compile_body(book: Rulebook) -> tuple[bytes, dict[str, Any]]:
    """The directory and records of an index, and the part of its header that describes them."""
    keys = _keys(book)
    buckets = max(1, sum(len(part) for part in keys)) | 1
    body = _Body(8 * buckets)
    entries = {name: _entry(body, book, name) for name in book.names()}
    filed: dict[int, dict[bytes, Any]] = defaultdict(dict)

    def file(key: str, record: object) -> None:
        data = key.encode("utf-8", "surrogatepass")
        filed[bucket_of(data, buckets)][data] = record

    names, spaces, exact = keys
    for key, found in names.items():
        file(key, tuple(entries[name] for name in found))
    globs_by_space, everywhere = _globs(book)
    for space in spaces:
        reached = sorted((policy.rule for policy in book.in_namespace(space)), key=strength)
        file("s" + space, [space in book.spaces, body.rules(reached), _glob_rows(body, globs_by_space.get(space, ()))])
    for name, policies in exact.items():
        file("x" + name, body.rules(sorted((policy.rule for policy in policies), key=strength)))
    rows = _glob_rows(body, everywhere)
    header = {
        "buckets": buckets,
        "globs": body.add(rows) if rows else (0, 0),
        "managed_rules": needed(sorted(book.managed_rules, key=strength)),
        "managed_default": book.managed_default,
        "unmanaged_default": book.unmanaged_default,
    }
    directory = bytearray(8 * buckets)
    for number, records in filed.items():
        offset, length = body.add(records)
        directory[8 * number : 8 * number + 8] = offset.to_bytes(4, "little") + length.to_bytes(4, "little")
    header["body"] = body.end + len(END)
    return b"".join([bytes(directory), *body.parts, END]), header


def _keys(book: Rulebook) -> tuple[dict[str, list[str]], set[str], dict[str, list[Policy]]]:
    """What records there are: entries by their three sorts of key, namespaces, and exact names that policies are
    about."""
    names: dict[str, list[str]] = defaultdict(list)
    for name in book.names():
        key = name.lower()
        last = last_segment(key)
        names["n" + key].append(name)
        names["b" + last].append(name)
        plugin = book.plugin_of(name)
        if plugin:
            names[f"p{plugin}:{last}"].append(name)
    spaces = book.spaces | set(book.policy_namespaces()) | set(_globs(book)[0])
    return names, spaces, book.exact_names()


def _entry(body: _Body, book: Rulebook, name: str) -> tuple[int, int]:
    label, version, kind, digest, rules, drift, order = book.candidate(name)
    return body.add((label, version, kind, digest, body.rules(rules), body.rules(drift), order))


def _globs(book: Rulebook) -> tuple[dict[str, list[tuple[str, Policy]]], list[tuple[str, Policy]]]:
    """The globs whose first segment is plain text, by that namespace, and all others."""
    by_space: dict[str, list[tuple[str, Policy]]] = defaultdict(list)
    everywhere = []
    for glob, policy in book.globs:
        space = namespace(glob)
        if space != glob and not any(char in space for char in "*?["):
            by_space[space].append((glob, policy))
        else:
            everywhere.append((glob, policy))
    return by_space, everywhere


def _glob_rows(body: _Body, globs: Iterable[tuple[str, Policy]]) -> tuple[tuple[str, tuple[int, int]], ...]:
    ordered = sorted(globs, key=lambda one: strength(one[1].rule))
    return tuple((glob, body.rule(policy.rule)) for glob, policy in ordered)

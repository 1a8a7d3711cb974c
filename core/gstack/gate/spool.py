"""What happens to the audit spool when somebody has time: send it, check its chain, keep places apart (gate
G6).

Cold; appending lies in :mod:`gstack.gate.audit`. One process sends at a time (``gate/audit-flush.lock``);
it reads the front of the spool, posts it without holding the spool's lock, and only then takes those very
bytes away. A process that dies in between sends them again, and the server counts each ``event_id`` once.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from gstack.errors import StateError
from gstack.gate.audit import (
    DECISIONS,
    open_spool,
    parse_line,
    read_state,
    spool_lock,
    spool_path,
    state_path,
    write_state,
)
from gstack.gate.client import Client, FetchError
from gstack.gate.credentials import gate_folder, read_credentials
from gstack.lowlevel import read_fd, short_hash
from gstack.state import Lock, write_atomic

#: Most events and bytes of one request.
BATCH_EVENTS = 200
BATCH_BYTES = 128 << 10

#: Statuses that refuse the events themselves: sending them again would never work and would hold up the rest.
REFUSED = (400, 413, 422)

#: Statuses of a server that has no audit endpoint.
NO_ENDPOINT = (404, 405, 501)

#: The fields that the chain covers; a server may add its own.
FIELDS = (
    "event_id", "decided_at", "skill_name", "version", "harness", "machine_name", "decision", "reason",
    "policy_id", "policy_name", "prev",
)  # fmt: skip

_BEFORE = "the event before {} is missing or was changed"


@dataclass(frozen=True)
class Flushed:
    """What a flush did: events ``sent``, ``refused`` by the server, ``left``, and the ``problem`` why."""

    sent: int = 0
    refused: int = 0
    left: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Queue:
    """The spool as ``status`` shows it; times in seconds since the epoch."""

    length: int = 0
    bytes: int = 0
    dropped: int = 0
    refused: int = 0
    last_sent: float | None = None
    last_error: str | None = None


@dataclass(frozen=True)
class Checked:
    """The result of a check of the chain: how many ``events`` were looked at and one line for each gap."""

    events: int
    gaps: list[str] = field(default_factory=list)
    dropped: int = 0


# --------------------------------------------------------------------------------------------------- send


def flush(
    root: str,
    budget_s: float,
    *,
    now: Callable[[], float] = time.time,
    transport: httpx.BaseTransport | None = None,
) -> Flushed:
    """Send what waits, oldest first, for at most ``budget_s`` seconds (gate G6). Never raises for the
    network or the spool.

    Does nothing when this machine isn't connected, syncs from a folder, or another process is sending.
    """
    until = time.monotonic() + budget_s
    try:
        credentials = read_credentials(root)
        if credentials is None or credentials.is_file:
            return Flushed()
        with Lock(os.path.join(gate_folder(root), "audit-flush.lock"), wait=False) as lock:
            if not lock.held:
                return Flushed(problem="another process is sending")
            with Client(credentials, deadline=budget_s, transport=transport) as client:
                done = _flush_all(root, client, until, now)
            return Flushed(done.sent, done.refused, queue(root).length, done.problem)
    except OSError as error:
        return Flushed(problem=f"{error.filename}: {error.strerror or error}")
    except StateError as error:
        return Flushed(problem=error.message)


def _flush_all(root: str, client: Client, until: float, now: Callable[[], float]) -> Flushed:
    sent = refused = 0
    while batch := _front(root):
        left = until - time.monotonic()
        if left <= 0:
            return Flushed(sent, refused, problem="out of time")
        problem = ""
        if not batch.events:
            _remove(root, batch)
            continue
        try:
            body = b'{"events": [' + b", ".join(batch.events) + b"]}"
            status = client.post("api/audit/ingest", body, within=left)
        except FetchError as error:
            status, problem = 0, error.message
        if 200 <= status < 300:
            sent += len(batch.events)
            _remove(root, batch, last_sent=now(), last_error=None)
        elif status in REFUSED:
            refused += len(batch.events)
            said = f"the server refused events ({status})"
            _remove(root, batch, refused=len(batch.events), last_error=said)
        elif status in NO_ENDPOINT and queue(root).last_sent is None:
            # a place that took events before has an endpoint, whatever a proxy or a bad deployment says today
            _forget(root, now(), f"the server has no audit endpoint ({status})")
            return Flushed(sent, refused)
        else:
            problem = problem or f"the server said {status}"
            _note(root, problem)
            return Flushed(sent, refused, problem=problem)
    return Flushed(sent, refused)


@dataclass(frozen=True)
class _Batch:
    """Lines from the front of the spool: their ``data`` as it lies there and the ``events`` in it."""

    data: bytes
    events: list[bytes]


def _front(root: str) -> _Batch | None:
    """The next events to send, None when nothing waits; what was sent but still lies there goes first."""
    with _held(root):
        data, sent = _read_spool(root), read_state(root).get("sent")
    lines = _lines(data)
    hashes = [_hash(line) for line in lines]
    if sent in hashes:
        gone = lines[: hashes.index(sent) + 1]
        del lines[: len(gone)]
        with _held(root):
            _take_away(root, _joined(gone))
    taken: list[bytes] = []
    events: list[bytes] = []
    size = 0
    for line in lines:
        event = parse_line(line)
        size += len(line) + 1
        special = bool(event) and event.get("decision") not in DECISIONS.values()
        if taken and (len(events) >= BATCH_EVENTS or size > BATCH_BYTES or (special and events)):
            break
        taken.append(line)
        if event:
            events.append(line)
        if special:  # alone, so that a server which doesn't know it refuses nothing else
            break
    if not taken:
        return None
    return _Batch(_joined(taken), events)


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _take_away(root: str, front: bytes) -> None:
    """Take ``front`` from the spool, under its lock. Raises StateError when it doesn't begin so any more."""
    data = _read_spool(root)
    if not data.startswith(front):
        raise StateError(f"{spool_path(root)} was changed while it was sent; it is left as it is")
    write_atomic(spool_path(root), data[len(front) :])


def _remove(root: str, batch: _Batch, *, refused: int = 0, **noted: Any) -> None:
    """Take a batch from the front of the spool. The state is written first: see :func:`_front`."""
    with _held(root):
        state = read_state(root) | noted
        state["refused"] = _number(state, "refused") + refused
        if batch.events:
            state["sent"] = _hash(batch.events[-1])
        write_state(root, state)
        _take_away(root, batch.data)


def _forget(root: str, now: float, problem: str) -> None:
    """Empty the spool: there is nobody to send it to, and nothing is queued for a day. What goes is counted."""
    with _held(root):
        state = read_state(root)
        state["dropped"] = _number(state, "dropped") + len(_lines(_read_spool(root)))
        state |= {"sent": state.get("head", ""), "no_endpoint_since": now, "last_error": problem}
        write_state(root, state)
        if _read_spool(root):
            write_atomic(spool_path(root), b"")


def _note(root: str, problem: str) -> None:
    with _held(root):
        write_state(root, read_state(root) | {"last_error": problem})


@contextmanager
def _held(root: str) -> Iterator[None]:
    """Hold the spool's lock. Raises StateError when it stays busy, and for every OSError inside."""
    try:
        with spool_lock(root, timeout=2.0) as lock:
            if not lock.held:
                raise StateError(f"the audit spool is busy: another process holds {lock.path}")
            yield
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        raise StateError(name + (error.strerror or str(error))) from None


def _read_spool(root: str) -> bytes:
    """The spool's bytes, empty when there is none. Raises OSError for a spool that can't be trusted."""
    if not os.path.lexists(spool_path(root)):
        return b""
    fd = open_spool(root)
    try:
        return read_fd(fd)
    finally:
        os.close(fd)


def _lines(data: bytes) -> list[bytes]:
    """The whole lines; a part that a dying process left at the end is none."""
    return data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]


def _number(state: Mapping[str, Any], key: str) -> int:
    value = state.get(key)
    return value if isinstance(value, int) else 0


# --------------------------------------------------------------------------------------------------- look


def queue(root: str) -> Queue:
    """The length and the counters of the spool. Raises StateError when it can't be read."""
    if not os.path.isdir(gate_folder(root)):
        return Queue()
    with _held(root):
        data, state = _read_spool(root), read_state(root)
    last_sent = state.get("last_sent")
    error = state.get("last_error")
    return Queue(
        length=len(_lines(data)),
        bytes=len(data),
        dropped=_number(state, "dropped"),
        refused=_number(state, "refused"),
        last_sent=last_sent if isinstance(last_sent, (int, float)) else None,
        last_error=error if isinstance(error, str) else None,
    )


def waiting(root: str) -> list[dict[str, Any]]:
    """The events in the spool, oldest first. Raises StateError."""
    if not os.path.isdir(gate_folder(root)):
        return []
    with _held(root):
        data = _read_spool(root)
    return [event for event in map(parse_line, _lines(data)) if event]


def verify(root: str) -> Checked:
    """Check the chain from what was sent last to what was appended last. Raises StateError."""
    if not os.path.isdir(gate_folder(root)):
        return Checked(0)
    with _held(root):
        lines, state = _lines(_read_spool(root)), read_state(root)
    sent, head = state.get("sent") or "", state.get("head")
    gaps = []
    expected = sent
    hashes = [_hash(line) for line in lines]
    for number, (line, found) in enumerate(zip(lines, hashes, strict=True), 1):
        event = parse_line(line)
        # a sender that died between noting and taking away leaves what it sent: that is no gap
        resent = number == 1 and sent in hashes
        if not event:
            gaps.append(f"line {number} holds no event")
            continue
        if event.get("prev") != expected and not resent:
            gaps.append(f"line {number}: {_BEFORE.format(event.get('event_id', '?'))}")
        expected = found
    last = parse_line(lines[-1]).get("prev") if lines else None
    if isinstance(head, str) and head not in (expected, last):
        gaps.append("at the end: events that were appended are missing")
    return Checked(len(lines), gaps, _number(state, "dropped"))


def verify_events(events: Iterable[Mapping[str, Any]]) -> Checked:
    """Check events that a server received, in any order: each machine's must form one chain.

    An event that names a predecessor which isn't there is a gap, unless it is its machine's only such event
    and no event says that it is the first (an export may start later). Two events with the same predecessor
    are one too many.
    """
    gaps = []
    machines: dict[str, dict[str, Mapping[str, Any]]] = {}
    for event in events:
        own = {key: event[key] for key in FIELDS if key in event}
        digest = _hash(json.dumps(own, sort_keys=True).encode())
        machines.setdefault(str(event.get("machine_name", "")), {})[digest] = event
    for machine, chain in sorted(machines.items()):
        seen: dict[object, str] = {}
        starts = [event for event in chain.values() if event.get("prev") not in chain]
        first = next((event for event in starts if event.get("prev") == ""), None)
        for event in starts[1:] if first is None else [event for event in starts if event is not first]:
            gaps.append(f"{machine}: {_BEFORE.format(event.get('event_id', '?'))}")
        for event in chain.values():
            name, prev = str(event.get("event_id", "?")), event.get("prev")
            if prev in seen and prev in chain:
                gaps.append(f"{machine}: {seen[prev]} and {name} both follow the same event")
            seen[prev] = name
    return Checked(sum(len(chain) for chain in machines.values()), gaps)


def read_events(path: str) -> list[dict[str, Any]]:
    """Events of an export: a JSON list, ``{"events": [...]}``, or one event a line. Raises StateError."""
    try:
        text = Path(path).read_text("utf-8")
        try:
            value = json.loads(text)
        except ValueError:
            value = [json.loads(line) for line in text.splitlines() if line.strip()]
    except OSError as error:
        raise StateError(f"{path} can't be read: {error.strerror or error}") from None
    except ValueError:
        raise StateError(f"{path} is neither JSON nor one JSON event a line") from None
    if isinstance(value, dict):
        value = value.get("events", [value])
    if not isinstance(value, list) or not all(isinstance(event, dict) for event in value):
        raise StateError(f"{path} doesn't hold a list of events")
    return value


# ------------------------------------------------------------------------------------------------- places


def belongs_to(root: str, place: str) -> None:
    """Say to which server and organisation the spool belongs from now on (``Credentials.place``).

    What waits for another place is set aside with its chain, and comes back when this machine is connected
    there again: no organisation gets another's events. Raises StateError.
    """
    with _held(root):
        _read_spool(root)  # refuses a link before anything is moved
        state = read_state(root)
        before = state.get("place")
        if before != place:
            if isinstance(before, str):
                _move(spool_path(root), _aside(root, before, ".jsonl"))
                _move(state_path(root), _aside(root, before, ".json"))
            _move(_aside(root, place, ".jsonl"), spool_path(root))
            _move(_aside(root, place, ".json"), state_path(root))
            state = read_state(root)
        write_state(root, state | {"place": place, "no_endpoint_since": None})


def _aside(root: str, place: str, suffix: str) -> str:
    return os.path.join(gate_folder(root), f"audit-for-{short_hash(place)}{suffix}")


def _move(source: str, target: str) -> None:
    if os.path.lexists(source):
        os.replace(source, target)

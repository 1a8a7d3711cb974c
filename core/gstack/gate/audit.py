"""The audit spool: every decision about a governed name is one line of ``gate/audit-spool.jsonl`` (gate G6).

Hot: the hook appends here after its answer was written, so builtins only and no network; sending, verifying
and showing lie in :mod:`gstack.gate.spool`. Every event carries ``prev``, the SHA-256 of the event before
it as ``json.dumps(event, sort_keys=True)``, so that whoever receives them can see that one is missing.

The line is written under ``gate/audit.lock``, with ``gate/audit-state.json`` beside it: ``head`` (hash of
the last event that was appended), ``sent`` (of the last one that left the spool), ``dropped`` (events lost
to the cap or for want of an endpoint), ``refused`` (events that the server called invalid),
``no_endpoint_since``, ``last_sent`` (seconds since the epoch) and ``last_error``.
"""

from time import gmtime, strftime

from gstack.gate.refresh import claim, start
from gstack.lowlevel import dump_json, join, read_fd, read_file, scan_json, sha256, sys_os, write_all
from gstack.state import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gstack.api import Decision

#: Largest spool, in bytes; events past it are dropped and counted (gate G6).
CAP = 1_000_000

#: Least time between two detached senders, in seconds.
SEND_EVERY = 60.0

#: Longest text of one field of an event, in characters, so that a line stays within :data:`TAIL`.
FIELD_LIMIT = 500

#: How much of the spool's end is read to find the last event, in bytes.
TAIL = 1 << 17

#: How long a server without an audit endpoint is believed to have none, in seconds.
NO_ENDPOINT_FOR = 86400.0

#: How long an append waits for the lock, in seconds: held for microseconds, and the host waits for the hook.
LOCK_WAIT = 0.8

#: A decision's action in the words of the audit log.
DECISIONS = {"allow": "allowed", "warn": "warned", "block": "blocked"}

_FLAGS = sys_os.O_CREAT | getattr(sys_os, "O_CLOEXEC", 0) | getattr(sys_os, "O_NOFOLLOW", 0)
_FLAGS |= getattr(sys_os, "O_BINARY", 0)


def spool_path(root: str) -> str:
    """Where the queue lies."""
    return join(root, "gate", "audit-spool.jsonl")


def state_path(root: str) -> str:
    """Where the queue's counters and hashes lie."""
    return join(root, "gate", "audit-state.json")


def spool_lock(root: str, timeout: float = LOCK_WAIT) -> Lock:
    """The lock under which the spool and its state are read and written; never held over the network."""
    return Lock(join(root, "gate", "audit.lock"), timeout=timeout)


# ------------------------------------------------------------------------------------------------- events


def new_id() -> str:
    """A random event id (the form of a UUID 4): the server counts each id once."""
    digits = bytearray(sys_os.urandom(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def utc(now: float) -> str:
    """``now`` (seconds since the epoch) as ``2026-11-30T12:00:00Z``."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(now))


def decision_event(decision: "Decision", *, harness: str, machine: str, now: float) -> "dict[str, Any]":
    """The audit event of a decision, with an id and the time at which it was made (gate G6)."""
    return {
        "event_id": new_id(),
        "decided_at": utc(now),
        "skill_name": decision.skill_name,
        "version": decision.version,
        "harness": harness,
        "machine_name": machine,
        "decision": DECISIONS.get(decision.action, decision.action),
        "reason": decision.reason,
        "policy_id": decision.policy_id,
        "policy_name": decision.policy_name,
    }


def _line(event: "Mapping[str, Any]", prev: str, now: float) -> bytes:
    """One event as it is spooled: with id and time, keys sorted, ASCII, one line, long texts cut."""
    fields: dict[str, Any] = {"event_id": new_id(), "decided_at": utc(now), **event, "prev": prev}
    for key, value in fields.items():
        if isinstance(value, str) and len(value) > FIELD_LIMIT:
            fields[key] = value[: FIELD_LIMIT - 1] + "\u2026"
    return dump_json({key: fields[key] for key in sorted(fields)}).encode("ascii")


# ------------------------------------------------------------------------------------------------- append


def append(root: str, event: "Mapping[str, Any]", *, now: float) -> bool:
    """Put ``event`` into the spool with one locked write; True when it is there. It gets an id and a time
    if it has none.

    False when there is nowhere to send it (not connected, a ``file://`` base, a server without the
    endpoint) and when the spool is full, in which case it is counted. Raises OSError when the spool can't
    be trusted or written: a link, not a regular file, somebody else's, or a lock that stays busy.
    """
    if not takes_events(root):
        return False
    with spool_lock(root) as lock:
        if not lock.held:
            raise OSError("the audit spool is busy: another process holds " + lock.path)
        state = read_state(root)
        since = state.get("no_endpoint_since")
        if isinstance(since, (int, float)) and abs(now - since) < NO_ENDPOINT_FOR:
            return False
        fd = open_spool(root)
        try:
            last, end = _last_line(fd)
            line = _line(event, _prev(last, state.get("head")), now)
            if end + len(line) + 1 > CAP:
                state["dropped"] = _count(state, "dropped") + 1
                write_state(root, state)
                return False
            _write_at(fd, end, line + b"\n")
        finally:
            sys_os.close(fd)
        state["head"] = sha256(line)
        write_state(root, state)
    return True


def base_url(root: str) -> str:
    """The base URL that this machine is connected to, empty when it isn't."""
    try:
        value, _ = scan_json(read_file(join(root, "gate", "credentials.json"), 1 << 16).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return ""
    base = value.get("base_url") if isinstance(value, dict) else None
    return base if isinstance(base, str) else ""


def takes_events(root: str) -> bool:
    """Whether this machine is connected to a place that may take audit events: a folder doesn't."""
    base = base_url(root)
    return bool(base) and not base.startswith("file:")


def _prev(last: bytes, head: object) -> str:
    """The hash that the next event carries: of the last line, unless lines at the end were taken away.

    A process that died between the line and the state leaves ``head`` one line behind: that is no gap.
    """
    if not last:
        return head if isinstance(head, str) else ""
    before = parse_line(last).get("prev")
    found = sha256(last)
    if isinstance(head, str) and head not in ("", found, before):
        return head
    return found


def parse_line(line: bytes) -> "dict[str, Any]":
    """The event of one line of the spool; empty for a line that holds none."""
    try:
        value, end = scan_json(line.decode("ascii"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and not line[end:].strip() else {}


def open_spool(root: str) -> int:
    """A descriptor of the spool, made 0600. Raises OSError for anything but a regular file of our own."""
    path = spool_path(root)
    try:
        # where there is no O_NOFOLLOW (Windows) this look is all there is
        linked = sys_os.lstat(path).st_mode & 0o170000 == 0o120000
    except FileNotFoundError:
        linked = False
    if linked:
        raise OSError("the audit spool is a link, which is refused: " + path)
    fd = sys_os.open(path, sys_os.O_RDWR | _FLAGS, 0o600)
    try:
        status = sys_os.fstat(fd)
        if status.st_mode & 0o170000 != 0o100000 or status.st_nlink > 1:
            raise OSError("the audit spool is not a file of its own, which is refused: " + path)
        if hasattr(sys_os, "geteuid"):
            if status.st_uid != sys_os.geteuid():
                raise OSError("the audit spool belongs to somebody else, which is refused: " + path)
            if status.st_mode & 0o077:
                sys_os.fchmod(fd, 0o600)
    except OSError:
        sys_os.close(fd)
        raise
    return fd


def _last_line(fd: int) -> "tuple[bytes, int]":
    """The last event (``b""``: none) and where the next line goes: over what a dying process left half."""
    size = sys_os.fstat(fd).st_size
    start_at = max(0, size - TAIL)
    sys_os.lseek(fd, start_at, 0)
    data = read_fd(fd)
    cut = data.rfind(b"\n")
    if cut + 1 < len(data) and parse_line(data[cut + 1 :]).get("event_id"):
        # whole but for its line end: write that first
        sys_os.lseek(fd, 0, 2)
        write_all(fd, b"\n")
        return data[cut + 1 :], size + 1
    whole = data[: cut + 1].rstrip(b"\n")
    return whole[whole.rfind(b"\n") + 1 :], start_at + cut + 1


def _write_at(fd: int, end: int, line: bytes) -> None:
    """One write at ``end``, which becomes the end of the file; taken back when the disk is full."""
    sys_os.ftruncate(fd, end)
    sys_os.lseek(fd, end, 0)
    try:
        write_all(fd, line)
    except OSError:
        sys_os.ftruncate(fd, end)
        raise


# -------------------------------------------------------------------------------------------------- state


def read_state(root: str) -> "dict[str, Any]":
    """``gate/audit-state.json``; empty when it is missing or broken. Call it under :func:`spool_lock`."""
    try:
        value, _ = scan_json(read_file(state_path(root), 1 << 16).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_state(root: str, state: "Mapping[str, Any]") -> None:
    """Write the state in place, under :func:`spool_lock`; readers stop where the JSON ends."""
    data = (dump_json(dict(state)) + "\n").encode("ascii")
    fd = sys_os.open(state_path(root), sys_os.O_WRONLY | _FLAGS, 0o600)
    try:
        write_all(fd, data)
        sys_os.ftruncate(fd, len(data))
    finally:
        sys_os.close(fd)


def _count(state: "Mapping[str, Any]", key: str) -> int:
    value = state.get(key)
    return value if isinstance(value, int) else 0


# --------------------------------------------------------------------------------------------------- send


def maybe_send(root: str, now: float) -> bool:
    """Start one detached sender when something waits and none was started for a minute. Never raises."""
    try:
        if not sys_os.stat(spool_path(root)).st_size or not base_url(root):
            return False
        return claim(join(root, "gate", "audit-send.lock"), now, SEND_EVERY) and start(
            root, ("audit", "flush", "--quiet")
        )
    except (OSError, ValueError):
        return False

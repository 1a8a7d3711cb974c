"""Fetching, verifying and installing the organisation's bundle (gate G4, G7). Cold: only people and
detached processes sync.

Nothing is installed that fails a check, and the check is always against the key that was pinned at login. A
key at the server that is neither the pinned one nor its announced successor stops the sync, even when the
bundle itself would still verify: somebody should look. ``gate/sync.json`` says how it went.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from gstack.errors import BundleError, GstackError, StateError
from gstack.gate.bundle import Bundle, install_bundle, open_bundle
from gstack.gate.client import BUNDLE_LIMIT, Client, FetchError, segment
from gstack.gate.credentials import Credentials, gate_folder, need_credentials
from gstack.gate.freshness import sync_state
from gstack.gate.signing import BundleRefused, Key, public_key
from gstack.gate.spool import flush
from gstack.gate.trust import Trust, read_trust
from gstack.state import Lock, write_atomic

#: Longest time that one request of a sync may take, in seconds.
DEADLINE = 60.0

#: How long sending the queue may hold up a command, in seconds.
FLUSH_BUDGET = 5.0


@dataclass(frozen=True)
class SyncResult:
    """A successful sync. ``changed`` is False when this very bundle was installed already; ``problems`` has
    one line for each thing in the bundle that this gstack doesn't know; ``sent`` counts the audit events
    that went out before."""

    org: str
    version: int
    changed: bool
    key_id: str
    problems: tuple[str, ...] = ()
    sent: int = 0


def sync(
    root: str,
    *,
    now: Callable[[], float] = time.time,
    transport: httpx.BaseTransport | None = None,
) -> SyncResult:
    """Fetch, verify and install the bundle; what waits in the audit spool goes first.

    Raises StateError when this machine isn't connected or its state folder can't be trusted, FetchError
    when the server can't be reached, BundleError when what it serves is refused. The last good bundle stays
    in each case.
    """
    credentials = need_credentials(root)
    sent = flush(root, FLUSH_BUDGET, now=now, transport=transport).sent
    with syncing(root):
        try:
            with Client(credentials, deadline=DEADLINE, transport=transport) as client:
                result = fetch_and_install(root, credentials, client, now())
        except GstackError as error:
            note_failure(root, now(), error.message)
            raise
        note_success(root, now())
    return SyncResult(result.org, result.version, result.changed, result.key_id, result.problems, sent)


def fetch_and_install(root: str, credentials: Credentials, client: Client, now: float) -> SyncResult:
    """One fetch against the pinned key. Raises as :func:`sync` does."""
    trust = read_trust(root)
    if trust is None or trust.org != credentials.org:
        raise BundleError(f"no key is trusted for {credentials.org} on this machine: run 'gstack login' again")
    data = fetch_bundle(client, credentials.org)
    verified(data, trust, server_key(client))
    done = install_bundle(root, data, now=now)
    found = done.bundle
    return SyncResult(found.org, found.version, done.changed, found.key.id, done.problems)


def fetch_bundle(client: Client, org: str) -> bytes:
    """The envelope's bytes as served. Raises FetchError."""
    return client.get(f"api/bundle/{segment(org)}", limit=BUNDLE_LIMIT)


def server_key(client: Client) -> Key | None:
    """The key that the server shows, None when it shows none: only a login needs one."""
    try:
        return public_key(client.get("api/bundle/key"))
    except (FetchError, BundleRefused):
        return None


def verified(data: bytes, trust: Trust, shown: Key | None) -> Bundle:
    """The bundle in ``data``, verified by the pinned key or one that it handed over to.

    Raises BundleRefused; with cause ``key`` when the server shows another key than these.
    """
    try:
        bundle = open_bundle(data, trust.key, trust.org)
    except BundleRefused as refused:
        if shown is not None and shown.id != trust.key.id and refused.cause == "signature":
            raise changed_key(trust, shown) from refused
        raise
    if shown is not None and shown.id not in (trust.key.id, bundle.key.id):
        raise changed_key(trust, shown)
    return bundle


def changed_key(trust: Trust, shown: Key) -> BundleRefused:
    """The error for a key that nobody announced (gate G4)."""
    return BundleRefused(
        "key",
        f"the server's key changed: it shows {shown.id}, this machine trusts {trust.key.id} for {trust.org}. Nothing "
        "was installed. If your organisation confirms the new key, run 'gstack login --public-key FILE' with it",
    )


# --------------------------------------------------------------------------------------------- sync.json


@contextmanager
def syncing(root: str, wait: float = 90.0) -> Iterator[None]:
    """Let one process at a time fetch and install, so that none installs what another has already left
    behind.

    Raises StateError when another one takes over ``wait`` seconds.
    """
    try:
        with Lock(os.path.join(gate_folder(root), "sync.lock"), timeout=wait) as lock:
            if not lock.held:
                raise StateError(f"another sync is running ({lock.path} stayed locked); try again later")
            yield
    except OSError as error:
        raise StateError(f"{gate_folder(root)} can't be used: {error.strerror or error}") from None


def sync_path(root: str) -> str:
    """Where it stands how the last sync went."""
    return os.path.join(gate_folder(root), "sync.json")


def note_success(root: str, now: float) -> None:
    """Record a successful sync: an unchanged, verified bundle counts (gate G5). Raises StateError."""
    _note(root, now, now, None, None)


def note_failure(root: str, now: float, message: str) -> None:
    """Record a failed one; since when it has been failing decides about staleness (gate G5). Raises StateError."""
    state = sync_state(root)
    since, last = state.get("failing_since"), state.get("last_success")
    known = isinstance(since, (int, float)) and since <= now
    success = last if isinstance(last, (int, float)) else None
    _note(root, now, success, since if known else now, " ".join(message.split())[:500])


def _note(root: str, now: float, success: float | None, since: float | None, error: str | None) -> None:
    state = {"last_success": success, "last_attempt": now, "failing_since": since, "last_error": error}
    try:
        write_atomic(sync_path(root), (json.dumps(state, indent=2) + "\n").encode())
    except OSError as failed:
        raise StateError(f"{sync_path(root)} can't be written: {failed.strerror or failed}") from None

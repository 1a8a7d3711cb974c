"""Connecting this machine to an organisation, and letting go again (gate G4, G7). Cold.

A login verifies before it saves anything: the key is pinned on first use, or by hand with ``--public-key``.
A machine that already trusts a key for this organisation at this address keeps it, whatever the server
shows; only ``--public-key`` or a rotation statement that the old key signed changes it. ``logout`` without
``--keep-bundle`` forgets the pin as well, so that the next login is a first use again.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx

from gstack.errors import BundleError, GstackError
from gstack.gate.bundle import check_successor, install_bundle, read_installed, verify_installed
from gstack.gate.client import Client, FetchError
from gstack.gate.credentials import (
    Credentials,
    check_folder,
    forget_credentials,
    gate_folder,
    read_credentials,
    write_credentials,
)
from gstack.gate.lock import may_leave, report_left
from gstack.gate.signing import Key, public_key
from gstack.gate.spool import belongs_to, flush, queue
from gstack.gate.sync import (
    DEADLINE,
    FLUSH_BUDGET,
    changed_key,
    fetch_bundle,
    note_failure,
    note_success,
    server_key,
    sync_path,
    syncing,
    verified,
)
from gstack.gate.trust import Trust, forget, pin, read_trust
from gstack.state import remove


@dataclass(frozen=True)
class Connected:
    """A login: the key that is trusted now and ``how`` it came (``first use``, ``by hand``, ``rotation``);
    ``version`` of the bundle, None when the first sync failed for the reason in ``problem``."""

    org: str
    base_url: str
    key_id: str
    how: str
    version: int | None
    problem: str = ""


def login(
    root: str,
    credentials: Credentials,
    *,
    by_hand: Key | None = None,
    force: bool = False,
    env: Mapping[str, str] = os.environ,
    now: Callable[[], float] = time.time,
    transport: httpx.BaseTransport | None = None,
) -> Connected:
    """Connect: fetch the key and the bundle, verify, pin, save, install.

    ``by_hand`` is a key that the person brought along; it replaces a pinned one. Raises FetchError when the
    server can't be reached or doesn't accept the key, BundleError when what it serves is refused; nothing
    is saved then. A bundle that can't be had for another reason is no error: the machine is connected and
    not yet synced; but a working bundle of another place is not given up for that: FetchError.
    Raises CheckFailed where that place locks the gate (``env`` says whether it is on), unless ``force``.
    """
    check_folder(root)
    leaves = _pinned(root, credentials) is None and may_leave(root, "off", env, force=force)
    with Client(credentials, deadline=DEADLINE, transport=transport) as client, syncing(root):
        data, problem = _first_bundle(client, credentials.org)
        if data is None:
            _keep_working(root, credentials, problem)
        trust = _trust_for(root, credentials, client, by_hand, now(), data)
        if leaves:  # told to whom it concerns, before the queue belongs to the next one
            report_left(root, "another place", "login")
            flush(root, FLUSH_BUDGET, now=now, transport=transport)
        _save(root, credentials, trust, replace=by_hand is not None)
        version = None
        if data is None:
            note_failure(root, now(), problem)
        else:
            installation = install_bundle(root, data, now=now())
            version = installation.bundle.version
            note_success(root, now())
    flush(root, FLUSH_BUDGET, now=now, transport=transport)
    pinned = read_trust(root) or trust
    return Connected(credentials.org, credentials.base_url, pinned.key.id, pinned.how, version, problem)


def _first_bundle(client: Client, org: str) -> tuple[bytes | None, str]:
    """The bundle, or why there is none yet. Raises FetchError when the server doesn't accept the key."""
    try:
        return fetch_bundle(client, org), ""
    except FetchError as error:
        if error.status in (401, 403):
            raise
        return None, error.message


def _keep_working(root: str, credentials: Credentials, problem: str) -> None:
    """Raise FetchError where a working bundle of another organisation or address would go for nothing."""
    if _pinned(root, credentials) is not None:
        return
    try:
        here = verify_installed(root)
    except BundleError:
        return
    raise FetchError(
        f"{credentials.org} has no bundle to give ({problem}), so this machine keeps the policy of {here.org}",
        hint="run 'gstack logout' first to give that up",
    )


def _trust_for(
    root: str, credentials: Credentials, client: Client, by_hand: Key | None, now: float, data: bytes | None
) -> Trust:
    """What is to be trusted from now on, checked against the bundle. Writes nothing. Raises as :func:`login`."""
    pinned = _pinned(root, credentials)
    shown = server_key(client) if by_hand or pinned else public_key(client.get("api/bundle/key"))
    if by_hand is not None:
        trust = Trust(credentials.org, credentials.base_url, by_hand, "by hand", now)
    elif pinned is not None:
        trust = pinned
    else:
        assert shown is not None
        trust = Trust(credentials.org, credentials.base_url, shown, "first use", now)
    if data is not None:
        bundle = verified(data, trust, shown)
        check_successor(read_installed(root) if pinned else None, bundle, now, credentials.org)
    elif shown is not None and shown.id != trust.key.id:
        raise changed_key(trust, shown)
    return trust


def _pinned(root: str, credentials: Credentials) -> Trust | None:
    """The key that is pinned for this organisation at this address. A file that can't be read pins nothing."""
    try:
        trust = read_trust(root)
    except BundleError:
        return None
    if trust is None or (trust.org, trust.base_url) != (credentials.org, credentials.base_url):
        return None
    return trust


def _save(root: str, credentials: Credentials, trust: Trust, *, replace: bool) -> None:
    if _pinned(root, credentials) is None:
        # another organisation or address, or a broken pin: nothing of before holds
        forget(root)
        remove(sync_path(root))
    belongs_to(root, credentials.place)
    pin(
        root,
        org=trust.org,
        base_url=trust.base_url,
        key=trust.key,
        how=trust.how,
        now=trust.pinned_at,
        replace=replace,
    )
    write_credentials(root, credentials)


@dataclass(frozen=True)
class LoggedOut:
    """A logout: the organisation that was left (None: this machine wasn't connected), whether a bundle was
    kept, and how many audit events could not be sent."""

    org: str | None
    kept: bool
    unsent: int


def logout(
    root: str,
    *,
    keep_bundle: bool = False,
    force: bool = False,
    env: Mapping[str, str] = os.environ,
    now: Callable[[], float] = time.time,
    transport: httpx.BaseTransport | None = None,
) -> LoggedOut:
    """Send what waits, then forget the credentials, and unless ``keep_bundle`` the bundle and the pinned
    key too.

    Events that couldn't be sent stay for the next login to the same place. Never raises for the network.
    Raises CheckFailed where the bundle that would go locks the gate (``env`` says whether it is on), unless ``force``.
    """
    if not os.path.isdir(gate_folder(root)):
        return LoggedOut(None, False, 0)
    if not keep_bundle and may_leave(root, "off", env, force=force):
        report_left(root, "off", "logout")
    try:
        credentials = read_credentials(root)
    except GstackError:
        credentials = None  # unreadable ones are forgotten as well
    if credentials is not None:
        flush(root, FLUSH_BUDGET, now=now, transport=transport)
    forget_credentials(root)
    if not keep_bundle:
        forget(root)
        remove(sync_path(root))
    return LoggedOut(credentials.org if credentials else None, keep_bundle, queue(root).length)

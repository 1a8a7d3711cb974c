"""The policy bundle: what it must be like, and how one is installed (gate G4). Cold.

Nothing is ever installed that fails a check: the last good bundle stays. Keys and signatures:
:mod:`gstack.gate.signing`; the pinned key: :mod:`gstack.gate.trust`.
"""

import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gstack.errors import BundleError, BundleMissing, StateError
from gstack.gate.index import bundle_path, stored
from gstack.gate.policies import BadTime, when
from gstack.gate.rules import Rulebook
from gstack.gate.signing import LIMIT, BundleRefused, Key, follow, load_text, parse_envelope
from gstack.gate.trust import Trust, read_trust, write_file, write_trust
from gstack.logs import log
from gstack.state import Lock

#: How far ``issued_at`` may lie in the future, in seconds (gate G4).
FUTURE = 86400.0


@dataclass(frozen=True)
class Bundle:
    """A bundle whose signature was verified by ``key``."""

    payload: dict[str, Any] = field(repr=False)
    text: str = field(repr=False)
    org: str
    version: int
    issued_at: float | None
    key: Key

    @property
    def sha256(self) -> str:
        """The SHA-256 of the signed bytes, in hexadecimal."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()


def open_bundle(data: bytes, key: Key, org: str) -> Bundle:
    """The bundle in ``data``, verified against ``key`` and ``org``. Raises BundleRefused."""
    envelope = parse_envelope(data)
    signer = follow(key, envelope, org)
    bundle = read_payload(envelope.payload, signer)
    if bundle.org != org:
        raise BundleRefused(
            "org", f"the bundle is for the organisation {bundle.org!r}, this machine belongs to {org!r}"
        )
    return bundle


def read_payload(text: str, key: Key) -> Bundle:
    """The payload's facts, its shape checked. Raises BundleRefused (cause ``shape``)."""
    payload = load_text(text, "the bundle's payload")
    check_payload(payload)
    return Bundle(payload, text, payload["org"], int(payload["version"]), when(payload.get("issued_at")), key)


def check_payload(payload: Any) -> None:
    """Raise BundleRefused for a payload whose parts have the wrong type: dropping such a part could drop a ban."""

    def refuse(what: str) -> None:
        raise BundleRefused("shape", f"the bundle's payload is malformed: {what}")

    if not isinstance(payload, dict):
        return refuse("it is no object")
    if not isinstance(payload.get("org"), str) or not payload["org"]:
        refuse("org is no text")
    version = payload.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version < 1 << 62:
        refuse("version is no whole number from 0 on")
    try:
        when(payload.get("issued_at"))
    except BadTime:
        refuse("issued_at is no time")
    for name, kind, word in (
        ("namespaces", list, "list"),
        ("policies", list, "list"),
        ("defaults", dict, "object"),
        ("manifest_index", dict, "object"),
    ):
        if payload.get(name) is not None and not isinstance(payload[name], kind):
            refuse(f"{name} is no {word}")
    if not all(isinstance(name, str) for name in payload.get("namespaces") or ()):
        refuse("a namespace is no text")
    for number, policy in enumerate(payload.get("policies") or (), 1):
        if not isinstance(policy, dict):
            refuse(f"policy number {number} is no object")
    for name, entry in (payload.get("manifest_index") or {}).items():
        if not isinstance(entry, dict):
            refuse(f"the catalogue entry {name!r} is no object")
    return None


@dataclass(frozen=True)
class Installed:
    """What was last installed, so that nothing older is accepted even when the bundle's file is gone."""

    org: str
    version: int
    sha256: str


def check_successor(old: Installed | None, new: Bundle, now: float, org: str) -> None:
    """Whether ``new`` may take the place of ``old`` (None: the first one) at ``now``, in seconds since the epoch.

    Raises BundleRefused for another organisation, an ``issued_at`` over 24 hours ahead, a lower version, or the same
    version with other bytes (gate G4).
    """
    if new.org != org:
        raise BundleRefused("org", f"the bundle is for the organisation {new.org!r}, this machine belongs to {org!r}")
    if new.issued_at is not None and new.issued_at > now + FUTURE:
        ahead = (new.issued_at - now) / 3600
        raise BundleRefused(
            "future", f"the bundle says that it was issued {ahead:.0f} hours from now: check this machine's clock"
        )
    if old is None or old.org != new.org:
        return
    if new.version < old.version:
        raise BundleRefused(
            "rollback", f"the bundle is version {new.version}, older than version {old.version}, which is installed"
        )
    if new.version == old.version and new.sha256 != old.sha256:
        raise BundleRefused(
            "conflict", f"the bundle says version {new.version} like the one installed, but its content differs"
        )


# ------------------------------------------------------------------------------------------------- on disk


def installed_path(root: str) -> str:
    """Where it stands what was last installed."""
    return os.path.join(root, "gate", "installed.json")


def read_installed(root: str) -> Installed | None:
    """What was last installed, None when nothing was (or the note is unreadable)."""
    try:
        data = json.loads(Path(installed_path(root)).read_bytes())
        return Installed(str(data["org"]), int(data["version"]), str(data["sha256"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def verify_installed(root: str) -> Bundle:
    """The installed bundle, verified against the pinned key, and no older than what was last installed here.

    Raises BundleMissing without a bundle, BundleError otherwise.
    """
    path = bundle_path(root)
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT + 1)
    except FileNotFoundError:
        raise BundleMissing from None
    except OSError as error:
        raise BundleError(f"{path} can't be read: {error.strerror or error}") from None
    trust = read_trust(root)
    if trust is None:
        raise BundleError(
            "no key is trusted on this machine, so the policy bundle can't be verified: run 'gstack login'"
        )
    try:
        bundle = open_bundle(data, trust.key, trust.org)
    except BundleRefused as refused:
        raise BundleRefused(refused.cause, f"{refused.message} ({path}: 'gstack sync' fetches it anew)") from None
    last = read_installed(root)
    if last is not None and last.org == bundle.org and bundle.version < last.version:
        raise BundleRefused(
            "rollback",
            f"the installed bundle is version {bundle.version}, but version {last.version} was installed here ({path}: "
            "'gstack sync' fetches it anew)",
        )
    return bundle


@dataclass(frozen=True)
class Installation:
    """The result of :func:`install_bundle`. ``changed`` is False when this very bundle was installed already;
    ``problems`` has one line for each thing in it that this gstack doesn't know."""

    bundle: Bundle
    changed: bool
    problems: tuple[str, ...]


def install_bundle(root: str, data: bytes, *, now: float | None = None, wait: float = 30.0) -> Installation:
    """Verify the envelope ``data`` against the pinned key and install it with its compiled index, under a lock.

    ``now`` is in seconds since the epoch (None: the clock), ``wait`` how long to wait for another installation.
    Raises BundleError when it is refused, StateError when it can't be written; the last good bundle stays then.
    """
    now = time.time() if now is None else now
    try:
        with Lock(os.path.join(root, "gate", "bundle.lock"), timeout=wait) as lock:
            if not lock.held:
                raise StateError(f"another process is installing a bundle: {lock.path} stayed locked; try again")
            return _install(root, data, now)
    except OSError as error:
        raise StateError(f"{root}/gate can't be used: {error.strerror or error}") from None


def _install(root: str, data: bytes, now: float) -> Installation:
    from gstack.gate.compile import store_index

    trust = read_trust(root)
    if trust is None:
        raise BundleError("no key is trusted on this machine: run 'gstack login' first")
    bundle = open_bundle(data, trust.key, trust.org)
    last = _last_good(root)
    check_successor(last, bundle, now, trust.org)
    book = Rulebook(bundle.payload)
    new = Installed(bundle.org, bundle.version, bundle.sha256)
    if _bytes(bundle_path(root)) != data:
        write_file(bundle_path(root), data)
    if read_installed(root) != new:
        write_file(installed_path(root), (json.dumps(new.__dict__) + "\n").encode())
    if bundle.key.id != trust.key.id:
        write_trust(root, Trust(trust.org, trust.base_url, bundle.key, "rotation", now))
    if not stored(root):
        store_index(root, bundle, book)
    if last != new:
        for line in book.problems:
            log(root, "skill-gate", None, "bundle " + line)
    return Installation(bundle, last != new, tuple(book.problems))


def _last_good(root: str) -> Installed | None:
    """The newest that was ever installed here: by the note, else by the verified bundle itself."""
    noted = read_installed(root)
    try:
        bundle = verify_installed(root)
    except BundleError:
        return noted
    found = Installed(bundle.org, bundle.version, bundle.sha256)
    return found if noted is None or noted.org != found.org or noted.version < found.version else noted


def _bytes(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None

"""The pinned key: which organisation's bundles this machine believes (gate G4). Cold.

It lies in ``gate/trust.json``, apart from the credentials, since a machine that was logged out with its bundle kept
still verifies it. It changes by hand, or by a rotation statement that the old key signed.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from gstack.errors import BundleError, StateError
from gstack.gate.index import trust_path
from gstack.gate.signing import BundleRefused, Key, public_key
from gstack.lowlevel import join
from gstack.state import remove, write_atomic


@dataclass(frozen=True)
class Trust:
    """The pinned key, and what it was pinned for. ``how`` is ``first use``, ``by hand`` or ``rotation``."""

    org: str
    base_url: str
    key: Key
    how: str
    pinned_at: float


def read_trust(root: str) -> Trust | None:
    """The pinned key of this machine, None when none is. Raises BundleError for a file that can't be used."""
    path = trust_path(root)
    try:
        data = json.loads(Path(path).read_bytes())
        return Trust(
            str(data["org"]),
            str(data["base_url"]),
            public_key(str(data["key"])),
            str(data["how"]),
            float(data["pinned_at"]),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BundleError(f"{path} can't be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, RecursionError, BundleError):
        raise BundleError(f"{path} doesn't hold a pinned key: run 'gstack login' again") from None


def pin(root: str, *, org: str, base_url: str, key: Key, how: str, now: float, replace: bool = False) -> Trust:
    """Pin ``key`` for an organisation at a base URL, and give what is pinned then.

    Another key that is already pinned for that organisation there stays, unless ``replace``: raises BundleRefused
    (cause ``key``). For another organisation or address everything that came from the former one goes. Raises
    StateError.
    """
    old = read_trust(root) if not replace else _trust_or_none(root)
    same = old is not None and (old.org, old.base_url) == (org, base_url)
    if old is not None and same and not replace and old.key.id != key.id:
        raise BundleRefused(
            "key",
            f"the server's key is {key.id}, but this machine trusts key {old.key.id} for {org}: the key changed. Ask "
            "your organisation which is right, then run 'gstack login' with --public-key FILE",
        )
    if old is not None and not same:
        forget(root)
    if old is not None and same and old.key.id == key.id:
        return old
    trust = Trust(org, base_url, key, how, now)
    write_trust(root, trust)
    return trust


def _trust_or_none(root: str) -> Trust | None:
    try:
        return read_trust(root)
    except BundleError:
        return None


def forget(root: str) -> None:
    """Delete bundle, index, pinned key and what depends on them (``logout``, or another organisation)."""
    for name in ("bundle.json", "bundle.index", "trust.json", "installed.json", "overrides.json", "digests"):
        remove(join(root, "gate", name))


def write_trust(root: str, trust: Trust) -> None:
    """Save the pinned key. Raises StateError."""
    data = {
        "org": trust.org,
        "base_url": trust.base_url,
        "key": trust.key.pem,
        "key_id": trust.key.id,
        "how": trust.how,
        "pinned_at": trust.pinned_at,
    }
    write_file(trust_path(root), (json.dumps(data, indent=2) + "\n").encode())


def write_file(path: str, data: bytes) -> None:
    """Replace a file of the gate. Raises StateError."""
    try:
        write_atomic(path, data)
    except OSError as error:
        raise StateError(f"{path} can't be written: {error.strerror or error}") from None

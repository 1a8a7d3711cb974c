"""Keys, envelopes, signatures and the statement by which one key hands over to the next (gate G4). Cold.

An envelope is ``{"payload": "<JSON text>", "signature": "<base64>", "key_id"?, "rotations"?}``, the signature an
Ed25519 one over the payload's UTF-8 bytes. ``rotations`` is a list of rotation statements, oldest first::

    {"statement": "<JSON text>", "signature": "<base64, by the old key>"}

where the text holds ``type`` (:data:`ROTATION`), ``org``, ``old_key_id``, ``new_key`` (PEM), ``new_key_id`` and
``issued_at``.
"""

import base64
import binascii
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from gstack.errors import BundleError

#: Largest envelope that is read, in bytes.
LIMIT = 64 << 20

#: The ``type`` of a rotation statement.
ROTATION = "gstack-key-rotation"

#: Most rotation statements that one envelope may carry.
MOST_ROTATIONS = 32


class BundleRefused(BundleError):
    """A bundle that fails a check. ``cause`` is ``shape``, ``signature``, ``key``, ``rollback``, ``conflict``,
    ``org`` or ``future``."""

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


# ---------------------------------------------------------------------------------------------------- keys


@dataclass(frozen=True)
class Key:
    """A public key: its ``pem`` text and ``id`` (the first 16 hexadecimal digits of the SHA-256 of its DER form)."""

    pem: str
    id: str
    public: Ed25519PublicKey = field(repr=False, compare=False)

    def signed(self, data: bytes, signature: bytes) -> bool:
        """Whether this key made ``signature`` over ``data``."""
        try:
            self.public.verify(signature, data)
        except InvalidSignature:
            return False
        return True


def public_key(pem: str | bytes) -> Key:
    """The key of a PEM text. Raises BundleRefused when it is no Ed25519 public key."""
    data = pem.encode("utf-8", "replace") if isinstance(pem, str) else pem
    try:
        found = load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, Ed25519PublicKey):
        raise BundleRefused("key", "the public key is no Ed25519 key in PEM form")
    return key_of(found)


def key_of(key: Ed25519PrivateKey | Ed25519PublicKey) -> Key:
    """The public key of a pair, whichever half is given."""
    public = key.public_key() if isinstance(key, Ed25519PrivateKey) else key
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return Key(pem.decode("ascii"), hashlib.sha256(der).hexdigest()[:16], public)


def private_key(pem: bytes) -> Ed25519PrivateKey:
    """The key of a PEM text without a password. Raises BundleRefused."""
    try:
        found = load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, Ed25519PrivateKey):
        raise BundleRefused("key", "the private key is no Ed25519 key in PEM form without a password")
    return found


def new_keys() -> tuple[bytes, Key]:
    """A fresh pair: the private key as PEM, and the public key."""
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem, key_of(private)


# ------------------------------------------------------------------------------------------------ envelope


@dataclass(frozen=True)
class Envelope:
    """An envelope as received. ``payload`` is the signed text; ``key_id`` what it says it was signed by."""

    payload: str
    signature: bytes
    key_id: str | None
    rotations: tuple[Mapping[str, Any], ...]


def load_text(text: str | bytes, what: str) -> Any:
    """The JSON document in ``text``. Raises BundleRefused, which calls it ``what``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BundleRefused("shape", f"{what} is no JSON document: {why}") from None


def _signature(value: object, what: str) -> bytes:
    if not isinstance(value, str) or not value.strip():
        raise BundleRefused("signature", f"{what} has no signature")
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BundleRefused("signature", f"the signature of {what} is no base64") from None


def parse_envelope(data: bytes) -> Envelope:
    """The envelope in ``data``; nothing is verified yet. Raises BundleRefused."""
    if len(data) > LIMIT:
        raise BundleRefused("shape", f"the bundle is larger than {LIMIT >> 20} MiB")
    found = load_text(data, "the bundle")
    if not isinstance(found, dict) or not isinstance(found.get("payload"), str):
        raise BundleRefused("shape", "the bundle is no envelope with a payload and a signature")
    rotations = found.get("rotations") or []
    if not isinstance(rotations, list) or not all(isinstance(one, dict) for one in rotations):
        raise BundleRefused("shape", "the bundle's rotations are no list of rotation statements")
    if len(rotations) > MOST_ROTATIONS:
        raise BundleRefused("shape", f"the bundle carries more than {MOST_ROTATIONS} rotation statements")
    key_id = found.get("key_id")
    return Envelope(
        found["payload"],
        _signature(found.get("signature"), "the bundle"),
        key_id if isinstance(key_id, str) else None,
        tuple(rotations),
    )


def sign(text: str, private: Ed25519PrivateKey, rotations: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """The envelope of a payload text, as bytes to be served. Raises BundleRefused when the text isn't UTF-8."""
    envelope: dict[str, Any] = {
        "payload": text,
        "signature": base64.b64encode(private.sign(_utf8(text))).decode("ascii"),
        "key_id": key_of(private).id,
    }
    if rotations:
        envelope["rotations"] = list(rotations)
    return json.dumps(envelope).encode("ascii") + b"\n"


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise BundleRefused("shape", "the payload holds characters that UTF-8 can't carry") from None


# ------------------------------------------------------------------------------------------------ rotation


def rotation(org: str, old: Ed25519PrivateKey, new: Key, now: float) -> dict[str, str]:
    """The statement by which ``old`` hands over to ``new``."""
    text = json.dumps(
        {
            "type": ROTATION,
            "org": org,
            "old_key_id": key_of(old).id,
            "new_key": new.pem,
            "new_key_id": new.id,
            "issued_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
        }
    )
    return {"statement": text, "signature": base64.b64encode(old.sign(text.encode("ascii"))).decode("ascii")}


def follow(key: Key, envelope: Envelope, org: str) -> Key:
    """The key that made the envelope's signature: ``key`` itself, or one that it handed over to, step by step.

    Raises BundleRefused (cause ``signature``) when there is no such key.
    """
    data = _utf8(envelope.payload)
    if key.signed(data, envelope.signature):
        return key
    current = key
    for step in envelope.rotations:
        current = _step(current, step, org) or current
        if current is not key and current.signed(data, envelope.signature):
            return current
    if envelope.key_id and envelope.key_id != key.id:
        raise BundleRefused(
            "signature",
            f"the bundle is signed by key {envelope.key_id}, but this machine trusts key {key.id}; if your "
            "organisation changed its key, ask it for the new one and run 'gstack login' with --public-key",
        )
    raise BundleRefused(
        "signature",
        f"the bundle's signature isn't by key {key.id}, which this machine trusts, or its content was changed",
    )


def _step(current: Key, step: Mapping[str, Any], org: str) -> Key | None:
    """The key that a statement of ``current`` hands over to; None for a statement of another key."""
    text = step.get("statement")
    if not isinstance(text, str):
        return None
    try:
        if not current.signed(_utf8(text), _signature(step.get("signature"), "a rotation statement")):
            return None
        said = load_text(text, "a rotation statement")
        if not isinstance(said, dict) or said.get("type") != ROTATION or said.get("org") != org:
            return None
        pem = said.get("new_key")
        return public_key(pem) if isinstance(pem, str) else None
    except BundleRefused:
        return None

"""Bundles in files, for those who publish or try policy: a signed envelope or a bare payload. Cold."""

import os
from pathlib import Path
from typing import Any

from gstack.errors import BundleError, StateError
from gstack.frontmatter import Unreadable, doubled, load, plain
from gstack.gate.bundle import Bundle, check_payload, read_payload
from gstack.gate.signing import LIMIT, BundleRefused, Key, follow, load_text, parse_envelope, public_key
from gstack.state import write_atomic


def read_bytes(path: str, *, limit: int = LIMIT) -> bytes:
    """The bytes of a file that a person named. Raises StateError."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise StateError(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > limit:
        raise StateError(f"{path} is larger than {limit >> 20} MiB")
    return data


def read_text(path: str) -> str:
    """The text of a file that a person named. Raises StateError."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise StateError(f"{path} is no UTF-8 text (byte {error.start})") from None


def read_yaml(path: str) -> tuple[Any, list[str]]:
    """The plain data of a YAML file that a person wrote, and where in it a key stands twice: one of the two would
    be dropped without a word. Raises StateError for what can't be read or isn't YAML."""
    try:
        found = load(read_text(path))
    except Unreadable as error:
        raise StateError(f"{path} is no YAML: {error.at()}") from None
    twice = [f"line {one.line + 1}: the key {one.key!r} stands twice in one mapping" for one in doubled(found)]
    return plain(found), twice


def read_key(path: str) -> Key:
    """The public key in a file. Raises StateError, BundleError."""
    try:
        return public_key(read_bytes(path, limit=1 << 16))
    except BundleRefused as error:
        raise BundleError(f"{path}: {error.message}") from None


def read_policy(path: str, key: Key | None = None) -> dict[str, Any]:
    """The payload in a file, which holds an envelope or a bare payload; verified when ``key`` is given.

    Raises StateError, or BundleError for what is neither, or isn't signed by ``key``.
    """
    data = read_bytes(path)
    try:
        found = load_text(data, "the file")
        if isinstance(found, dict) and isinstance(found.get("payload"), str):
            if key is not None:
                return read_signed(data, key).payload
            found = load_text(found["payload"], "the payload")
        elif key is not None:
            raise BundleRefused("signature", "it is no envelope, so there is no signature to verify")
        check_payload(found)
    except BundleRefused as error:
        raise BundleError(f"{path}: {error.message}") from None
    return dict(found)


def read_signed(data: bytes, key: Key, org: str | None = None) -> Bundle:
    """The bundle in an envelope, verified by ``key`` or one it handed over to. Raises BundleRefused."""
    envelope = parse_envelope(data)
    said = load_text(envelope.payload, "the payload")
    claimed = org or (said.get("org") if isinstance(said, dict) else None)
    bundle = read_payload(envelope.payload, follow(key, envelope, claimed if isinstance(claimed, str) else ""))
    if org is not None and bundle.org != org:
        raise BundleRefused("org", f"the bundle is for the organisation {bundle.org!r}, not {org!r}")
    return bundle


def write_new(path: str, data: bytes, *, mode: int = 0o644, force: bool = False) -> None:
    """Write a file that a person named, folders made; one that exists is replaced only with ``force``. Raises
    StateError."""
    target = Path(os.path.abspath(path))
    try:
        # a site is for others to read, so its folders are not as private as the state folder's
        target.parent.mkdir(parents=True, exist_ok=True)
        if not force and target.exists():
            raise StateError(f"{path} exists; add --force to replace it")
        write_atomic(str(target), data, mode=mode)
    except OSError as error:
        raise StateError(f"{path} can't be written: {error.strerror or error}") from None

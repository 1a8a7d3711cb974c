"""Publishing policy: a draft becomes a signed bundle and a static site that any file server can serve (gate G7). Cold.

The site holds ``api/bundle/key`` (PEM), ``api/bundle/<org>`` (the envelope), ``api/skills/<org>`` (what may be
installed, each with a ``content_url`` relative to this list) and ``api/content/<org>/<name>.json`` (each skill's
files).
"""

import base64
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gstack.errors import BundleError, CheckFailed, StateError, UsageError
from gstack.gate.authoring import Draft, read_draft
from gstack.gate.client import BUNDLE_LIMIT, LIMIT
from gstack.gate.digest import skill_files
from gstack.gate.lint import lint
from gstack.gate.package import SkillRefused, read_files
from gstack.gate.policyfile import read_bytes, write_new
from gstack.gate.signing import (
    BundleRefused,
    Envelope,
    Key,
    key_of,
    load_text,
    new_keys,
    parse_envelope,
    private_key,
    public_key,
    rotation,
    sign,
)  # fmt: skip


@dataclass(frozen=True)
class Preview:
    """A draft that was looked at: ``counts`` are (policy, number of catalogue entries it matches), ``offered`` the
    skills that machines may install, ``contents`` the files of the site that hold them, by path."""

    draft: Draft
    counts: list[tuple[str, int]]
    offered: list[str]
    contents: dict[str, bytes]


@dataclass(frozen=True)
class Built:
    """A site that was written: ``changed`` is False when the policy is what was published before, ``new_key`` True
    when another key signed that."""

    out: str
    org: str
    version: int
    changed: bool
    key_id: str
    skills: list[str] = field(default_factory=list)
    new_key: bool = False


def preview(policy_path: str, skills_dir: str | None, now: float) -> Preview:
    """Read and lint a policy; writes nothing. Raises StateError, or CheckFailed with every error, one a line."""
    draft = read_draft(policy_path, skills_dir)
    counts = lint(draft, now)
    if draft.errors:
        raise CheckFailed("\n".join([f"{policy_path} can't be published:", *(f"  {one}" for one in draft.errors)]))
    org, index = draft.payload["org"], draft.payload["manifest_index"]
    offered = [name for name in draft.folders if index[name].get("status") != "banned"]
    contents = _contents(draft, org, offered)
    listing = _listing(draft, org, offered)
    draft.warnings += _refused_by_machines(draft, contents, listing)
    return Preview(draft, counts, offered, {**contents, f"api/skills/{org}": listing})


def _refused_by_machines(draft: Draft, contents: Mapping[str, bytes], listing: bytes) -> list[str]:
    """What could be published, but is more than a machine takes, or would be refused there for its form."""

    def size(data: bytes) -> str:
        return f"{len(data) / (1 << 20):.1f} MiB, and machines take at most"

    found = []
    # quotes are escaped once more in the envelope
    bundle = json.dumps(_compact(draft.payload)).encode("ascii")
    if len(bundle) > BUNDLE_LIMIT:
        found.append(f"the bundle has {size(bundle)} {BUNDLE_LIMIT >> 20}: they will refuse it")
    if len(listing) > LIMIT:
        found.append(f"the list of skills has {size(listing)} {LIMIT >> 20}: they won't install any")
    for path, data in contents.items():
        name = path.removesuffix(".json").removeprefix(f"api/content/{draft.payload['org']}/")
        if len(data) > LIMIT:
            found.append(f"{name}: its files have {size(data)} {LIMIT >> 20}: they won't install it")
            continue
        try:
            read_files(data)
        except SkillRefused as error:
            found.append(f"{name}: machines won't install it: {error.message}")
    return found


def _compact(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))


def build(
    looked: Preview,
    key_path: str,
    out: str,
    *,
    now: float,
    version: int | None = None,
    rotations: Sequence[Mapping[str, Any]] = (),
    force: bool = False,
) -> Built:
    """Sign a draft and write the site into the folder ``out``.

    The version is ``version``, else the policy file's, else one more than what lies in ``out``; a policy that
    didn't change keeps its version and date, so that the same input gives the same bytes. Raises CheckFailed where
    machines would refuse the result (a version that doesn't grow, a key that nobody handed over to) unless
    ``force``; StateError, BundleError.
    """
    private = read_private(key_path)
    key = key_of(private)
    draft, org = looked.draft, looked.draft.payload["org"]
    before = _published(out, org)
    payload, changed = _numbered(draft, before, version, now)
    chain = _chain(before, key, org, rotations, force=force)
    if before is not None and changed and not force and payload["version"] <= before[1].get("version", -1):
        raise CheckFailed(
            f"version {payload['version']} is not above version {before[1]['version']}, which lies in {out}: machines "
            "would refuse it"
        )
    files = {
        **looked.contents,
        "api/bundle/key": key.pem.encode("ascii"),
        f"api/bundle/{org}": sign(_compact(payload), private, chain),
    }
    for path, data in files.items():
        write_new(os.path.join(out, *path.split("/")), data, force=True)
    _sweep(out, org, set(files))
    new_key = before is not None and before[0].key_id != key.id
    return Built(out, org, payload["version"], changed, key.id, looked.offered, new_key)


def _published(out: str, org: str) -> tuple[Envelope, dict[str, Any]] | None:
    """The envelope that lies in ``out``, and its payload; None when there is none."""
    path = os.path.join(out, "api", "bundle", org)
    if not os.path.exists(path):
        return None
    try:
        envelope = parse_envelope(read_bytes(path))
        payload = load_text(envelope.payload, "its payload")
    except BundleRefused as error:
        raise BundleError(f"{path} is no bundle: {error.message}; remove it to start anew") from None
    return envelope, payload if isinstance(payload, dict) else {}


def _numbered(
    draft: Draft, before: tuple[Envelope, dict[str, Any]] | None, version: int | None, now: float
) -> tuple[dict[str, Any], bool]:
    """The payload with its version and date, and whether it says anything new."""
    old = before[1] if before is not None else {}
    same = {key: value for key, value in old.items() if key not in ("version", "issued_at")} == draft.payload
    wanted = version if version is not None else draft.version
    if before is not None and same and wanted in (None, old.get("version")):
        return {**draft.payload, "version": old["version"], "issued_at": old.get("issued_at")}, False
    number = wanted if wanted is not None else int(old.get("version", 0)) + 1
    issued = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    return {**draft.payload, "version": number, "issued_at": issued}, True


def _chain(
    before: tuple[Envelope, dict[str, Any]] | None,
    key: Key,
    org: str,
    rotations: Sequence[Mapping[str, Any]],
    *,
    force: bool,
) -> list[Mapping[str, Any]]:
    """The rotation statements to publish: those that were, then the new ones. A break in the chain is refused."""
    if before is None:
        return list(rotations)
    chain = [*before[0].rotations, *(one for one in rotations if one not in before[0].rotations)]
    old_id = before[0].key_id
    handed = {str(load_text(str(one.get("statement")), "a rotation statement").get("new_key_id")) for one in chain}
    if old_id not in (None, key.id) and key.id not in handed and not force:
        raise CheckFailed(
            f"what is published for {org} is signed by key {old_id}, and nothing hands over to key {key.id}: machines "
            "would refuse it. Make a statement with 'gstack bundle rotate' and give it as --rotation FILE (or --force)"
        )
    return chain


def _listing(draft: Draft, org: str, offered: Sequence[str]) -> bytes:
    rows = []
    for name in offered:
        entry = draft.payload["manifest_index"][name]
        rows.append(
            {
                "name": name,
                "version": entry["version"],
                "kind": entry["kind"],
                "status": entry["status"],
                "description": draft.descriptions[name],
                "digest": entry["digest"],
                "content_url": f"../content/{org}/{name}.json",
            }
        )
    return _json({"org": org, "skills": rows})


def _contents(draft: Draft, org: str, offered: Sequence[str]) -> dict[str, bytes]:
    found = {}
    for name in offered:
        folder, entry = draft.folders[name], draft.payload["manifest_index"][name]
        try:
            files = [_file(folder, path) for path in skill_files(folder)]
        except OSError as error:
            raise StateError(f"{error.filename or folder} can't be read: {error.strerror or error}") from None
        content = {"name": name, "version": entry["version"], "digest": entry["digest"], "files": files}
        found[f"api/content/{org}/{name}.json"] = _json(content)
    return found


def _file(folder: str, path: str) -> dict[str, Any]:
    source = Path(folder, path)
    data = source.read_bytes()
    row: dict[str, Any] = {"path": path}
    try:
        row["content"] = data.decode("utf-8")
    except UnicodeDecodeError:
        row |= {"content": base64.b64encode(data).decode("ascii"), "encoding": "base64"}
    if os.name == "posix" and source.stat().st_mode & 0o100:
        row["executable"] = True
    return row


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=True).encode("ascii") + b"\n"


def _sweep(out: str, org: str, kept: set[str]) -> None:
    """Take away the contents of skills that aren't offered any more."""
    for path in sorted(Path(out, "api", "content", org).rglob("*.json")):
        if path.relative_to(out).as_posix() not in kept:
            path.unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------------- keys


def keygen(out: str, *, force: bool = False) -> Key:
    """Write ``private.pem`` (0600) and ``public.pem`` into ``out``. Raises StateError, also where one exists
    already."""
    private, public = new_keys()
    paths = [os.path.join(out, name) for name in ("private.pem", "public.pem")]
    for path in paths:
        if not force and os.path.lexists(path):
            raise StateError(f"{path} exists: a lost key can't be had back; choose another folder, or add --force")
    write_new(paths[0], private, mode=0o600, force=force)
    write_new(paths[1], public.pem.encode("ascii"), force=force)
    return public


def read_private(path: str) -> Ed25519PrivateKey:
    """The private key in a file. Raises StateError, BundleError; neither quotes it."""
    try:
        return private_key(read_bytes(path, limit=1 << 16))
    except BundleRefused as error:
        raise BundleError(f"{path}: {error.message}") from None


def sign_file(
    payload_path: str,
    key_path: str,
    out: str,
    rotations: Sequence[Mapping[str, Any]] = (),
    *,
    inputs: Sequence[str] = (),
    force: bool = False,
) -> Key:
    """Sign the text of a file as it is and write the envelope; ``inputs`` are files that were read besides.

    Raises StateError, BundleError, and UsageError or StateError where ``out`` may not be replaced.
    """
    private = read_private(key_path)
    _check_out(out, (payload_path, key_path, *inputs), "payload", force=force)
    try:
        text = read_bytes(payload_path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise StateError(f"{payload_path} is no UTF-8 text (byte {error.start}), so it can't be signed") from None
    write_new(out, sign(text, private, rotations), force=True)
    return key_of(private)


def rotate(old_key: str, new_key: str, org: str, out: str, *, now: float, force: bool = False) -> tuple[str, str]:
    """Write the statement by which one key hands over to another; gives their ids.

    Raises StateError, BundleError, and UsageError or StateError where ``out`` may not be replaced.
    """
    old = read_private(old_key)
    new = public_key(read_bytes(new_key, limit=1 << 16))
    _check_out(out, (old_key, new_key), "statement", force=force)
    write_new(out, _json(rotation(org, old, new, now)), force=True)
    return key_of(old).id, new.id


def _check_out(out: str, inputs: Sequence[str], member: str, *, force: bool) -> None:
    """Whether ``out`` may be written: never over an input, and over a file of another sort only with ``force``.

    ``member`` is the text by which an earlier output is known. Raises UsageError, StateError.
    """
    if not os.path.lexists(out):
        return
    if any(os.path.exists(out) and os.path.exists(one) and os.path.samefile(out, one) for one in inputs):
        raise UsageError(f"--out {out} is a file that the command reads: name another one")
    if force:
        return
    try:
        found = load_text(read_bytes(out), "the file") if os.path.isfile(out) else None  # a pipe would hold us up
    except (BundleRefused, StateError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get(member), str):
        raise StateError(f"{out} exists and is something else; name another file, or add --force to replace it")


def read_rotation(path: str) -> dict[str, Any]:
    """The rotation statement in a file. Raises StateError, BundleError."""
    try:
        found = load_text(read_bytes(path, limit=1 << 20), "the file")
    except BundleRefused as error:
        raise BundleError(f"{path}: {error.message}") from None
    if not isinstance(found, dict) or not isinstance(found.get("statement"), str):
        raise BundleError(f"{path} is no rotation statement: make one with 'gstack bundle rotate'")
    return found

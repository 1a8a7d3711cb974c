"""What connects this machine to an organisation: base URL, organisation and key, mode 0600 (gate G7).

The key never appears in a log, an error, a ``repr`` or a child's arguments. A machine is connected when
``gate/credentials.json`` exists. Cold: the hook only looks whether the file is there.
"""

import ipaddress
import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from gstack.errors import StateError, UsageError
from gstack.gate.index import trust_path, unsafe
from gstack.state import ensure_dir, remove, write_atomic

#: What an organisation may be called: it becomes a path segment of URLs and, in a static site, a file.
_ORG = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")

#: A key is one header value: visible ASCII without spaces.
_KEY = re.compile(r"[\x21-\x7e]{1,4096}")


@dataclass(frozen=True)
class Credentials:
    """Where this machine syncs from. ``key`` is empty for static hosting that needs none."""

    base_url: str
    org: str
    key: str = field(default="", repr=False)

    @property
    def is_file(self) -> bool:
        """Whether the base is a folder (``file://``), which takes no audit events."""
        return self.base_url.startswith("file:")

    @property
    def place(self) -> str:
        """Base and organisation as one text: what a spool and a pinned key belong to."""
        return f"{self.base_url}/{self.org}"


def gate_folder(root: str) -> str:
    """The gate's part of the state folder."""
    return os.path.join(root, "gate")


def credentials_path(root: str) -> str:
    """Where the credentials lie."""
    return os.path.join(gate_folder(root), "credentials.json")


def check_org(org: str) -> str:
    """``org`` when it can be an organisation's name. Raises UsageError; ``key`` is refused since
    ``api/bundle/key`` is the public key (gate G7)."""
    if not _ORG.fullmatch(org) or ".." in org:
        raise UsageError(
            f"{org!r} can't be an organisation: use letters, digits, '-', '_' and single dots, at most 100"
        )
    if org.lower() == "key":
        raise UsageError("an organisation can't be called 'key': that address holds the public key")
    return org


def check_key(key: str) -> str:
    """``key`` without white space around it. Raises UsageError, which doesn't quote it."""
    key = key.strip()
    if not _KEY.fullmatch(key):
        raise UsageError(
            "the key is empty or holds spaces or other characters that a header can't carry; copy it again"
        )
    return key


def check_base_url(url: str) -> str:
    """``url`` without a trailing slash, when it may be synced from: https, http on loopback, or file (gate
    G7).

    Raises UsageError for anything else: plain HTTP, a name or password inside, a query, a host that is
    missing.
    """
    text = url.strip()
    if not text.isprintable() or " " in text or "\\" in text:
        raise UsageError("the URL holds a space, a backslash or a control character")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"the URL can't be read: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise UsageError("the URL holds a user name or password; give the key by --key -, GSTACK_KEY or the prompt")
    if parts.query or parts.fragment:
        raise UsageError("the URL must end before '?' and '#': it is the address that api/bundle/... lies under")
    if parts.scheme == "file":
        if host not in (None, "", "localhost"):
            raise UsageError(f"a file URL names a folder of this machine: file:///path, not one on {host}")
        if not parts.path.startswith("/"):
            raise UsageError("a file URL names a whole path: file:///path")
        return "file://" + (parts.path.rstrip("/") or "/")
    if parts.scheme not in ("https", "http") or not host:
        raise UsageError(f"{text!r} is no address to sync from: use https://..., or file:///folder")
    if parts.scheme == "http" and not is_loopback(host):
        raise UsageError(f"plain HTTP to {host} would show the key to the network: use https://")
    return text.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine: ``localhost`` or a loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# ------------------------------------------------------------------------------------------------ on disk


def check_folder(root: str) -> None:
    """Make the gate's folder, and refuse one whose files others could have written.

    A folder of ours that is only too open, and holds nothing that was trusted yet, is closed instead (some systems
    make new folders group-writable). Raises StateError.
    """
    folder = gate_folder(root)
    try:
        ensure_dir(folder)
        if not os.path.lexists(trust_path(root)) and not os.path.lexists(credentials_path(root)):
            for path in (root, folder):
                _close(path)
    except OSError as error:
        raise StateError(f"the state folder {folder} can't be used: {error.strerror or error}") from None
    danger = unsafe(root)
    if danger:
        raise StateError(
            f"{danger}: run 'chmod -R go-w {root}', look for files there that aren't yours, "
            "then 'gstack logout' and 'gstack login'"
        )


def _close(path: str) -> None:
    """Take the right to write from others, where the folder is our own."""
    status = os.stat(path)
    if os.name == "posix" and status.st_mode & 0o022 and status.st_uid == os.geteuid():
        os.chmod(path, stat.S_IMODE(status.st_mode) & ~0o022)


def read_credentials(root: str) -> Credentials | None:
    """The credentials of this machine, None when it isn't connected. A file that others can read is made
    0600.

    Raises StateError when the file can't be read, is a link, or holds something else.
    """
    path = credentials_path(root)
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            raise StateError(f"{path} is not a regular file: remove it and run 'gstack login' again")
        if os.name == "posix" and status.st_mode & 0o077:
            os.chmod(path, 0o600)
        data = json.loads(Path(path).read_bytes())
        base, org, key = data["base_url"], data["org"], data["key"]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"{path} can't be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):
        raise StateError(f"{path} doesn't hold credentials: run 'gstack login' again") from None
    if not all(isinstance(value, str) for value in (base, org, key)):
        raise StateError(f"{path} doesn't hold credentials: run 'gstack login' again")
    try:
        return Credentials(check_base_url(base), check_org(org), check_key(key) if key else "")
    except UsageError as error:
        raise StateError(f"{path}: {error.message}; run 'gstack login' again") from None


def need_credentials(root: str) -> Credentials:
    """The credentials of this machine. Raises StateError: not connected, or :func:`check_folder` refuses."""
    found = read_credentials(root)
    if found is None:
        raise StateError("this machine is not connected: run 'gstack login --url URL --org ORG' first")
    check_folder(root)
    return found


def write_credentials(root: str, credentials: Credentials) -> None:
    """Save the credentials, mode 0600. Raises StateError."""
    data = {"base_url": credentials.base_url, "org": credentials.org, "key": credentials.key}
    try:
        write_atomic(credentials_path(root), (json.dumps(data, indent=2) + "\n").encode())
    except OSError as error:
        raise StateError(f"{credentials_path(root)} can't be written: {error.strerror or error}") from None


def forget_credentials(root: str) -> bool:
    """Delete the credentials; False when there were none."""
    return remove(credentials_path(root))

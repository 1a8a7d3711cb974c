"""Trusted projects: which folders' ``.gstack/`` counts, by the digest of what it holds (switches S2, S3).

Light: the hook imports it only once a folder has been trusted, so no ``pathlib`` or ``json``.
"""

import os

from gstack.config import Config, read_config_file
from gstack.errors import StateError, UsageError
from gstack.lowlevel import dump_json, join, load_json, read_file, sha256
from gstack.state import Lock, write_atomic

#: The files of a project's ``.gstack/`` that the digest covers.
FILES = ("config.yaml", "skills.yaml")

_LIMIT = 1 << 20


def trust_path(root: str) -> str:
    """Where the trusted folders stand."""
    return join(root, "trust.json")


def project_folder(cwd: str) -> str | None:
    """The nearest folder from ``cwd`` up to the repository's root that has a ``.gstack`` with one of our files.

    Outside a repository only ``cwd`` itself counts; the state folder of the person is none.
    """
    folder = os.path.realpath(cwd)
    chain = [folder]
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            chain = chain[:1]
            break
        folder = above
        chain.append(folder)
    for one in chain:
        if any(os.path.isfile(os.path.join(one, ".gstack", name)) for name in FILES) and not _is_state(one):
            return one
    return None


def _is_state(folder: str) -> bool:
    """``~/.gstack`` is the person's own state, not a project's."""
    inside = os.path.join(folder, ".gstack")
    return any(os.path.isdir(os.path.join(inside, name)) for name in ("hooks", "snapshot", "sessions"))


def digest(folder: str) -> str:
    """The digest of a project's ``.gstack`` files. Raises OSError."""
    parts = []
    for name in FILES:
        path = os.path.join(folder, ".gstack", name)
        try:
            parts.append(f"{name} {sha256(read_file(path, _LIMIT))}")
        except FileNotFoundError:
            parts.append(f"{name} -")
    return sha256("\n".join(parts).encode())


def read_trusted(root: str) -> dict[str, str]:
    """Folder to digest; empty when there is none or it can't be read (nothing is trusted then)."""
    try:
        data = load_json(read_file(trust_path(root), _LIMIT))
    except (OSError, ValueError):
        return {}
    folders = data.get("folders") if isinstance(data, dict) else None
    return {k: v for k, v in folders.items() if isinstance(v, str)} if isinstance(folders, dict) else {}


def trusted_project(root: str, cwd: str | None) -> str | None:
    """The project folder that ``cwd`` lies in, if it is trusted as it is now."""
    trusted = read_trusted(root) if cwd else {}
    if not trusted or not cwd:
        return None
    folder = project_folder(cwd)
    if folder is None or folder not in trusted:
        return None
    return folder if _digest_or_none(folder) == trusted[folder] else None


def trusted_config(root: str, cwd: str) -> Config | None:
    """The configuration of the trusted project that ``cwd`` lies in."""
    folder = trusted_project(root, cwd)
    return None if folder is None else read_config_file(os.path.join(folder, ".gstack", "config.yaml"))


def trusted_overlay(root: str, cwd: str | None) -> tuple[str | None, list[str]]:
    """The ``skills.yaml`` of the trusted project that ``cwd`` lies in, and the files that this answer depends on."""
    depends = [trust_path(root)]
    if not cwd or not read_trusted(root):
        return None, depends
    folder = project_folder(cwd)
    if folder is None:
        return None, depends
    depends += [os.path.join(folder, ".gstack", name) for name in FILES]
    if trusted_project(root, cwd) is None:
        return None, depends
    path = os.path.join(folder, ".gstack", "skills.yaml")
    return (path if os.path.isfile(path) else None), depends


def trust(root: str, folder: str) -> str:
    """Trust a folder's ``.gstack`` as it is now; the folder that was meant. Raises UsageError, StateError."""
    found = project_folder(folder)
    if found is None:
        here = os.path.realpath(folder)
        raise UsageError(f"{here} has no .gstack/config.yaml or .gstack/skills.yaml to trust")
    try:
        mark = digest(found)
    except OSError as error:
        raise StateError(f"{found}/.gstack can't be read: {error.strerror}") from error
    _change(root, found, mark)
    return found


def still_trusted(root: str) -> dict[str, bool]:
    """Each folder that was trusted, and whether its files are still those that were; changed ones don't count."""
    return {folder: _digest_or_none(folder) == mark for folder, mark in sorted(read_trusted(root).items())}


def _digest_or_none(folder: str) -> str | None:
    try:
        return digest(folder)
    except OSError:
        return None


def untrust(root: str, folder: str) -> str | None:
    """Take trust back; the folder that was meant, None when it wasn't trusted. Raises StateError."""
    found = os.path.realpath(folder)
    known = read_trusted(root)
    match = found if found in known else project_folder(folder)
    if match is None or match not in known:
        return None
    _change(root, match, None)
    return match


def _change(root: str, folder: str, mark: str | None) -> None:
    path = trust_path(root)
    try:
        with Lock(join(root, "trust.lock")):
            folders = read_trusted(root)
            folders.pop(folder, None)
            if mark is not None:
                folders[folder] = mark
            write_atomic(path, dump_json({"version": 1, "folders": folders}).encode() + b"\n")
    except OSError as error:
        raise StateError(f"{path} can't be written: {error.strerror}") from error

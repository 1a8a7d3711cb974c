"""Skills as folders: where they go, putting one in place as a whole, and what was installed by us. Cold."""

import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gstack.errors import UsageError
from gstack.gate.credentials import gate_folder
from gstack.gate.digest import skill_digest
from gstack.gate.package import SkillFile
from gstack.state import write_atomic

#: What the folder of a skill may be called.
BARE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")

#: Begin of the folders that are prepared beside the skills; what a dying process left goes at the next pull.
STAGING = ".gstack-"

#: The record of one installed skill: name, version, digest (texts) and installed_at (seconds since the epoch).
Record = dict[str, Any]


def personal_folder(host: Any, env: Mapping[str, str]) -> str:
    """The folder of the person's own skills in a host. Raises UsageError when the host has none."""
    roots, _ = host.skill_places(env, None)
    for root in roots:
        if root.scope == "personal":
            return os.path.abspath(str(root.path))
    raise UsageError(f"{host.title} has no folder for personal skills, so nothing can be installed there")


def holds(target: str, digest: str) -> bool:
    """Whether ``target`` is a folder (no link) with exactly the content that has this digest."""
    try:
        return stat.S_ISDIR(os.lstat(target).st_mode) and skill_digest(target) == digest
    except OSError:
        return False


def write_folder(target: str, files: Sequence[SkillFile]) -> None:
    """Put a skill in place as a whole: prepared beside it, then renamed. Raises OSError; the old one stays then."""
    staged = tempfile.mkdtemp(prefix=STAGING, dir=os.path.dirname(target))
    old, new = os.path.join(staged, "old"), os.path.join(staged, "new")
    try:
        for one in files:
            _write_file(os.path.join(new, *one.path.split("/")), one)
        there = os.path.lexists(target)
        if there:
            os.rename(target, old)
        try:
            os.rename(new, target)
        except OSError:
            if there:
                os.rename(old, target)
            raise
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _write_file(path: str, one: SkillFile) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o755 if one.executable else 0o644), "wb") as file:
        file.write(one.data)


def remove_folder(target: str) -> None:
    """Take a skill away at once; a link is removed and not followed. Raises OSError when it can't be moved."""
    staged = tempfile.mkdtemp(prefix=STAGING, dir=os.path.dirname(target))
    try:
        os.rename(target, os.path.join(staged, "old"))
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def sweep(folder: str) -> None:
    """Make the skills folder, and delete what an installation that died left there. Raises OSError."""
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name.startswith(STAGING):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


# ---------------------------------------------------------------------------------------------- manifest


def manifest_path(root: str) -> str:
    """Where it stands what was installed: ``{skills folder: {bare name: record}}``."""
    return os.path.join(gate_folder(root), "skills.json")


def read_manifest(root: str) -> dict[str, dict[str, Record]]:
    """What was installed, by skills folder; a skill whose record is broken counts as the person's own."""
    try:
        data = json.loads(Path(manifest_path(root)).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    found: dict[str, dict[str, Record]] = {}
    for folder, skills in data.items() if isinstance(data, dict) else ():
        for bare, record in skills.items() if isinstance(skills, dict) else ():
            texts = [record.get(key) for key in ("name", "digest", "version")] if isinstance(record, dict) else [None]
            if all(isinstance(text, str) for text in texts) and BARE.fullmatch(bare):
                found.setdefault(folder, {})[bare] = record
    return found


def write_manifest(root: str, manifest: Mapping[str, Mapping[str, Record]]) -> None:
    """Save what was installed, where that changed. Raises OSError."""
    known = {folder: skills for folder, skills in manifest.items() if skills}
    if read_manifest(root) != known:
        write_atomic(manifest_path(root), (json.dumps(known, indent=2, sort_keys=True) + "\n").encode())

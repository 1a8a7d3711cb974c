"""What whoever publishes policy writes: one YAML file and a folder of skills, read into a payload (gate G7). Cold.

The YAML holds ``org``, ``namespaces``, ``policies`` and, optionally, ``namespace`` (of skills whose folder names
none), ``defaults``, ``stale_after_s``, ``stale_action``, ``requests_url``, ``gate_lock``, ``version``, and
``catalogue``: entries by name that add to what the skills' own frontmatter says, or stand for skills that aren't in
the folder.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gstack.errors import StateError
from gstack.frontmatter import SkillSkipped, doubled, plain, read_head
from gstack.gate.digest import skill_digest, skill_files
from gstack.gate.policyfile import read_yaml

#: The keys of the YAML file that go into the payload as they are, and all of its keys.
_AS_IS = ("defaults", "stale_after_s", "stale_action", "requests_url", "gate_lock")
KEYS = ("org", "version", "namespace", "namespaces", "policies", "catalogue", *_AS_IS)
POLICY_KEYS = (
    "policy_id", "name", "matcher_type", "match_value", "action", "reason", "replacement", "expires_at", "exceptions",
    "overridable",
)  # fmt: skip
EXCEPTION_KEYS = ("name", "machine", "user", "owner", "reason", "expires_at")
ENTRY_KEYS = ("version", "status", "kind", "targets", "tags", "plugin", "digest")

#: What a catalogue entry may be called, so that it can be a file of a static site and be typed.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*")

_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")


@dataclass
class Draft:
    """A payload in the making (``version`` and ``issued_at`` come last), the ``folders`` of its skills by name,
    what is wrong (``errors``) and what is worth a look (``warnings``)."""

    payload: dict[str, Any]
    folders: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    version: int | None = None
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_draft(policy_path: str, skills_dir: str | None) -> Draft:
    """Read the YAML file and the folder of skills. Raises StateError for what can't be read or isn't YAML."""
    found, twice = read_yaml(policy_path)
    if not isinstance(found, dict):
        raise StateError(f"{policy_path} is no policy: it must be a mapping with org, namespaces and policies")
    draft = Draft({"org": found.get("org")}, errors=[f"{policy_path}, {one}" for one in twice])
    _unknown(found, KEYS, "the policy file", draft)
    version = found.get("version")
    if version is not None and (not isinstance(version, int) or version < 0):
        draft.errors.append(f"version: {version!r} is no whole number")
    else:
        draft.version = version
    spaces = found.get("namespaces")
    draft.payload["namespaces"] = spaces if isinstance(spaces, list) else []
    if not isinstance(spaces, list) or not all(isinstance(name, str) for name in spaces):
        draft.errors.append("namespaces must be a list of names")
    for key in _AS_IS:
        if found.get(key) is not None:
            draft.payload[key] = _flag(found[key]) if key == "gate_lock" else found[key]
    draft.payload["policies"] = _policies(found.get("policies"), draft)
    draft.payload["manifest_index"] = {}
    if skills_dir is not None:
        _read_skills(skills_dir, found, draft)
    _read_catalogue(found.get("catalogue"), draft)
    return draft


def _unknown(found: Mapping[str, Any], known: tuple[str, ...], where: str, draft: Draft) -> None:
    for key in found:
        if key not in known and not key.startswith("x-"):
            draft.errors.append(f"{where}: unknown key {key!r}; known are {', '.join(known)} (and x-...)")


def _flag(value: object) -> object:
    word = value.lower() if isinstance(value, str) else value
    return True if word in _TRUE else False if word in _FALSE else value


def _policies(found: object, draft: Draft) -> list[dict[str, Any]]:
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        draft.errors.append("policies must be a list of mappings")
        return []
    return [_policy(number, dict(one), draft) for number, one in enumerate(found, 1)]


def _policy(number: int, policy: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """One policy in the words of the wire: ``block`` is ``halt``, an id is made from the name where there is none."""
    where = f"policy {policy.get('name') or number}"
    _unknown(policy, POLICY_KEYS, where, draft)
    policy["action"] = "halt" if policy.get("action") == "block" else policy.get("action")
    name = policy.get("name")
    if "policy_id" not in policy and isinstance(name, str) and name.strip():
        policy["policy_id"] = "pol_" + (re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or str(number))
    for key in ("match_value", "policy_id"):
        if isinstance(policy.get(key), (int, float)):
            policy[key] = str(policy[key])
    if "overridable" in policy:
        policy["overridable"] = _flag(policy["overridable"])
    exceptions = policy.get("exceptions")
    for one in exceptions if isinstance(exceptions, list) else ():
        if isinstance(one, dict):
            _unknown(one, EXCEPTION_KEYS, f"{where}, an exception", draft)
    return policy


# -------------------------------------------------------------------------------------------------- skills


def _read_skills(folder: str, found: Mapping[str, Any], draft: Draft) -> None:
    """Take in ``<folder>/<skill>/SKILL.md`` and ``<folder>/<namespace>/<skill>/SKILL.md``, in name order."""
    spaces = draft.payload["namespaces"]
    default = found.get("namespace") or (spaces[0] if spaces else found.get("org"))
    try:
        children = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        for child in children:
            path = os.path.join(folder, child)
            if os.path.isfile(os.path.join(path, "SKILL.md")):
                _read_skill(f"{default}/{child}", path, draft)
                continue
            for inner in sorted(entry.name for entry in os.scandir(path) if entry.is_dir()):
                if os.path.isfile(os.path.join(path, inner, "SKILL.md")):
                    _read_skill(f"{child}/{inner}", os.path.join(path, inner), draft)
    except OSError as error:
        raise StateError(f"{error.filename or folder} can't be read: {error.strerror or error}") from None


def _look_at_files(name: str, folder: str, draft: Draft) -> None:
    """Refuse links that would publish what lies outside of the skill, and name files that are rarely meant to be."""
    top = os.path.realpath(folder)
    for path in skill_files(folder):
        real = os.path.realpath(os.path.join(folder, path))
        if not real.startswith(os.path.join(top, "")):
            draft.errors.append(f"{os.path.join(folder, path)} is a link that leads out of the skill's folder")
        elif any(part.startswith(".") for part in path.split("/")):
            draft.warnings.append(f"{name} would publish the hidden file {path}")


def _read_skill(name: str, folder: str, draft: Draft) -> None:
    try:
        _look_at_files(name, folder, draft)
        values = read_head(Path(folder, "SKILL.md").read_bytes()).values
        digest = skill_digest(folder)
    except OSError as error:
        raise StateError(f"{error.filename or folder} can't be read: {error.strerror or error}") from None
    except SkillSkipped as skipped:
        draft.errors.append(f"{folder}/SKILL.md {skipped.reason}")
        return
    for one in doubled(values):
        draft.warnings.append(
            f"{folder}/SKILL.md: the key {one.key!r} stands twice in one mapping; the last one counts"
        )
    head = {key: plain(value) for key, value in values.items()}
    found = head.get("metadata")
    metadata = found if isinstance(found, dict) else {}
    said = {key: head.get(key, metadata.get(key)) for key in ENTRY_KEYS if key not in ("digest", "status")}
    if said["version"] is None:
        draft.warnings.append(f"{name} has no version in its SKILL.md: 0.0.0 is used")
    entry = {"version": _text(said["version"]) or "0.0.0", "status": "approved", "kind": said["kind"] or "skill"}
    entry["targets"] = _list(said["targets"])
    entry["tags"] = _list(said["tags"])
    if said["plugin"]:
        entry["plugin"] = said["plugin"]
    entry["digest"] = digest
    draft.payload["manifest_index"][name] = entry
    draft.folders[name] = folder
    draft.descriptions[name] = " ".join(_text(head.get("description")).split())


def _text(value: object) -> str:
    return str(value) if isinstance(value, (str, int, float)) else ""


def _list(value: object) -> list[str]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    return [_text(one) for one in value if _text(one)] if isinstance(value, list) else []


def _read_catalogue(found: object, draft: Draft) -> None:
    if found is None:
        return
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        draft.errors.append("catalogue must map names to entries")
        return
    for name, row in found.items():
        _unknown(row, ENTRY_KEYS, f"catalogue entry {name}", draft)
        entry = draft.payload["manifest_index"].setdefault(name, {"status": "approved", "kind": "skill"})
        entry.update({key: _list(value) if key in ("targets", "tags") else value for key, value in row.items()})
        if isinstance(entry.get("version"), (int, float)):
            entry["version"] = str(entry["version"])

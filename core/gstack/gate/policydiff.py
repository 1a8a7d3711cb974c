"""What changes between two bundles, for ``gstack bundle diff``. Cold."""

from collections.abc import Mapping
from typing import Any

#: What a payload says about itself rather than about policy.
_ABOUT = ("version", "issued_at")


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """What was added, removed and changed, with stable keys: ``settings``, ``policies`` and ``skills``."""
    apart = (*_ABOUT, "policies", "manifest_index")
    return {
        "old_version": old.get("version"),
        "new_version": new.get("version"),
        "settings": _mapping(_without(old, apart), _without(new, apart)),
        "policies": _mapping(_policies(old), _policies(new)),
        "skills": _mapping(old.get("manifest_index") or {}, new.get("manifest_index") or {}),
    }


def _without(payload: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key not in keys}


def _policies(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The policies by id; one without an id goes by its place."""
    found = {}
    for number, policy in enumerate(payload.get("policies") or ()):
        found[str(policy.get("policy_id") or f"number {number + 1}")] = policy
    return found


def _mapping(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    changed = {key: _fields(old[key], new[key]) for key in old if key in new and old[key] != new[key]}
    return {
        "added": [key for key in new if key not in old],
        "removed": [key for key in old if key not in new],
        "changed": changed,
    }


def _fields(old: object, new: object) -> dict[str, list[Any]]:
    """The fields that differ, each as [before, after]; a plain value is the field ``value``."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return {"value": [old, new]}
    return {key: [old.get(key), new.get(key)] for key in {**old, **new} if old.get(key) != new.get(key)}


def diff_lines(found: Mapping[str, Any]) -> list[str]:
    """The difference in words, one line each; empty when there is none."""
    lines = []
    for part, word in (("settings", "setting"), ("policies", "policy"), ("skills", "skill")):
        rows = found[part]
        lines += [f"+ {word} {key}" for key in rows["added"]]
        lines += [f"- {word} {key}" for key in rows["removed"]]
        for key, fields in rows["changed"].items():
            for name, (before, after) in fields.items():
                field = "" if name == "value" else f" {name}"
                lines.append(f"~ {word} {key}{field}: {_short(before)} -> {_short(after)}")
    return lines


def _short(value: object) -> str:
    text = "(none)" if value is None else value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"

"""What is wrong with a draft of a policy: mistakes that would make a rule do nothing, or something else (gate:
build). Cold.

Which entries a policy matches is asked of the same :class:`gstack.gate.rules.Rulebook` that the gate decides by.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from gstack.errors import GstackError
from gstack.gate.authoring import NAME, Draft
from gstack.gate.bundle import check_payload
from gstack.gate.credentials import check_org
from gstack.gate.policies import ACTION_RANKS, MATCHERS, BadTime, when
from gstack.gate.rules import Rulebook

#: Matchers that only the catalogue can satisfy: without a fitting entry they never match.
_NEEDS_ENTRY = ("declared_metadata", "tag", "kind", "version", "drifted")

_STATUSES = ("approved", "active", "deprecated", "banned")
_KINDS = ("skill", "subagent", "command")


def lint(draft: Draft, now: float) -> list[tuple[str, int]]:
    """Add to the draft's errors and warnings; give (policy, number of catalogue entries it matches) in bundle order.

    ``now`` is in seconds since the epoch: a rule that has expired can never match again.
    """
    payload = draft.payload
    _org(draft)
    try:
        check_payload({**payload, "version": 0})
    except GstackError as error:
        draft.errors.append(error.message)
        return []
    _names(draft)
    book = Rulebook(payload)
    counts = book.count()
    ids = Counter(one["policy_id"] for one in payload["policies"] if isinstance(one.get("policy_id"), str))
    for number, policy in enumerate(payload["policies"]):
        label = book.policies[number].label
        _policy(label, policy, draft, now)
        if book.policies[number].known:
            _reach(label, policy, counts[number], draft)
        _replacement(label, policy, book, draft)
    for one, times in ids.items():
        if times > 1:
            draft.errors.append(f"the policy id {one!r} is used more than once")
    _defaults(payload, draft)
    said = {one.split(":")[0] for one in draft.errors}
    draft.errors += [one for one in book.problems if one.split(":")[0] not in said and "status" not in one]
    return [(book.policies[number].label, count) for number, count in counts.items()]


def _org(draft: Draft) -> None:
    org = draft.payload.get("org")
    if not isinstance(org, str) or not org:
        draft.errors.append("org is missing")
        return
    try:
        check_org(org)
    except GstackError as error:
        draft.errors.append(error.message)


def _names(draft: Draft) -> None:
    seen: dict[str, str] = {}
    for name, entry in draft.payload["manifest_index"].items():
        if not NAME.fullmatch(name):
            draft.errors.append(
                f"catalogue entry {name!r}: use letters, digits, '.', '_' and '-', with '/' between parts"
            )
        if name.lower() in seen:
            draft.errors.append(f"catalogue entries {seen[name.lower()]} and {name} differ by case only")
        seen[name.lower()] = name
        if entry.get("status") not in _STATUSES:
            draft.errors.append(
                f"catalogue entry {name}: unknown status {entry.get('status')!r}; use {', '.join(_STATUSES)}"
            )
        if entry.get("kind") not in _KINDS:
            draft.errors.append(f"catalogue entry {name}: unknown kind {entry.get('kind')!r}; use {', '.join(_KINDS)}")
        if not isinstance(entry.get("version"), str) or not entry["version"]:
            draft.errors.append(f"catalogue entry {name}: it has no version")


def _policy(label: str, policy: Mapping[str, Any], draft: Draft, now: float) -> None:
    def error(text: str) -> None:
        draft.errors.append(f"policy {label}: {text}")

    matcher = policy.get("matcher_type")
    for key in ("policy_id", "name", *(() if matcher == "drifted" else ("match_value",))):
        if not isinstance(policy.get(key), str) or not policy[key].strip():
            error(f"{key} is missing")
    if matcher not in MATCHERS:
        error(f"unknown matcher type {matcher!r}; use {', '.join(MATCHERS)}")
    action = policy.get("action")
    if not isinstance(action, str) or action not in ACTION_RANKS:
        error(f"unknown action {policy.get('action')!r}; use allow, warn or block")
    if policy.get("overridable", False) not in (True, False):
        error("overridable must be true or false")
    _ends(policy.get("expires_at"), "expires_at", error, now)
    exceptions = policy.get("exceptions")
    if exceptions is not None and not isinstance(exceptions, list):
        error("exceptions must be a list")
    for one in exceptions if isinstance(exceptions, list) else ():
        _exception(one, error, now)


def _ends(value: object, what: str, error: Any, now: float) -> None:
    try:
        end = when(value)
    except BadTime:
        error(f"{what} {value!r} is no time such as 2027-01-31 or 2027-01-31T12:00:00Z")
        return
    if end is not None and end <= now:
        error(f"{what} {value} has passed, so it can never apply")


def _exception(one: object, error: Any, now: float) -> None:
    if not isinstance(one, dict):
        error("an exception is no mapping")
        return
    if not any(one.get(key) for key in ("name", "machine", "user")):
        error("an exception names no name, machine or user")
    for key in ("owner", "reason", "expires_at"):
        if not one.get(key):
            error(f"an exception has no {key}")
    _ends(one.get("expires_at"), "an exception's expires_at", error, now)


def _reach(label: str, policy: Mapping[str, Any], count: int, draft: Draft) -> None:
    """A policy that matches nothing now: an error where it never can, a warning where an unregistered name may come."""
    matcher, value = policy.get("matcher_type"), policy.get("match_value")
    if not isinstance(value, str):
        return
    text = value.strip()
    if matcher == "namespace" and ("/" in text or ":" in text):
        draft.errors.append(
            f"policy {label}: {value!r} is no namespace (the part before the slash), so it never matches"
        )
    elif matcher in ("namespace", "name") and len(text.split()) > 1:
        draft.errors.append(f"policy {label}: a name holds no spaces, so {value!r} never matches")
    elif count:
        return
    elif matcher in _NEEDS_ENTRY:
        draft.errors.append(f"policy {label}: no catalogue entry fits {matcher} {value!r}, so it can never match")
    else:
        draft.warnings.append(f"policy {label} matches no catalogue entry, only names that aren't registered")


def _replacement(label: str, policy: Mapping[str, Any], book: Rulebook, draft: Draft) -> None:
    instead = policy.get("replacement")
    if not instead:
        return
    found = book.entries(instead.lower()) if isinstance(instead, str) else []
    if not found:
        draft.warnings.append(f"policy {label}: the replacement {instead} isn't in the catalogue")
    elif any(rule[0] == 2 for rule in found[0][4]):
        draft.errors.append(f"policy {label}: the replacement {instead} is blocked itself")


def _defaults(payload: Mapping[str, Any], draft: Draft) -> None:
    for key in payload.get("defaults") or {}:
        if key not in ("managed_missing_manifest", "unmanaged"):
            draft.errors.append(f"defaults: unknown key {key!r}; use managed_missing_manifest and unmanaged")
    if payload.get("gate_lock", False) not in (True, False):
        draft.errors.append("gate_lock must be true or false")
    url = payload.get("requests_url")
    if url is not None and not (isinstance(url, str) and url.startswith(("https://", "http://", "mailto:"))):
        draft.errors.append("requests_url must be an address: https://...")

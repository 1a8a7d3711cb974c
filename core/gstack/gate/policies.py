"""One policy of a bundle, read: what it matches, what it says then, until when, and for whom not (gate G1). Cold."""

from collections.abc import Mapping
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from gstack.gate.decision import ALLOW, BLOCK, EXCEPTIONS, EXPIRES, POLICY, REASON, WARN

#: The actions on the wire (and what people read) and their rank.
ACTION_RANKS = {"allow": ALLOW, "warn": WARN, "halt": BLOCK, "block": BLOCK}

#: What a policy can match by; ``drifted`` decides about installed copies that aren't the approved ones.
MATCHERS = ("namespace", "declared_metadata", "name", "tag", "kind", "version", "drifted")

#: Times above this are milliseconds (seconds would be the year 5138).
_MILLISECONDS = 1e11

Rule = tuple[Any, ...]


class BadTime(ValueError):
    """A time that is neither ISO 8601 nor a number of seconds."""


def when(value: object) -> float | None:
    """A time of a bundle as seconds since the epoch, None for none. Without a zone it is UTC. Raises BadTime."""
    if value is None or value == "":
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value)
        if not abs(number) < 1e15:
            raise BadTime(value)
        return number / 1000 if abs(number) > _MILLISECONDS else number
    if not isinstance(value, str):
        raise BadTime(value)
    text = value.strip()
    text = text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text
    dot = text.find(".")
    if dot > 0:  # Python 3.10 reads three or six digits only
        end = dot + 1
        while end < len(text) and text[end].isdigit():
            end += 1
        text = text[:dot] + text[end:]
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        raise BadTime(value) from None


class Policy:
    """One policy as read: ``order`` its place, ``matcher`` and ``value`` what it matches, ``rule`` what it says then.

    ``known`` is False for a matcher that this gstack can't evaluate; ``specifiers`` is set for ``version``.
    """

    __slots__ = ("known", "label", "matcher", "order", "rule", "specifiers", "value")

    def __init__(self, order: int, data: Mapping[str, Any], problems: list[str]) -> None:
        self.order = order
        self.label = text_of(data.get("name")) or text_of(data.get("policy_id")) or f"number {order + 1}"
        self.matcher = text_of(data.get("matcher_type")).lower()
        self.value = text_of(data.get("match_value"))
        self.specifiers: SpecifierSet | None = None
        self.known = self.matcher in MATCHERS
        if not self.known:
            problems.append(f"policy {self.label}: unknown matcher type {self.matcher or '(none)'!r}")
        elif self.matcher == "version":
            self._read_specifiers(problems)
        rank, reason = self._action(data, problems)
        policy_id = text_of(data.get("policy_id")) or None
        self.rule: Rule = (
            rank,
            POLICY,
            order,
            f"policy:{policy_id or order}",
            reason,
            policy_id,
            text_of(data.get("name")) or None,
            text_of(data.get("replacement")) or None,
            data.get("overridable") is True,
            self._time(data.get("expires_at"), "expires_at", problems),
            self._exceptions(data.get("exceptions"), problems),
        )

    def _read_specifiers(self, problems: list[str]) -> None:
        text = self.value.strip()
        try:
            self.specifiers = SpecifierSet("==" + text if text[:1].isdigit() else text)
        except InvalidSpecifier:
            self.known = False
            problems.append(f"policy {self.label}: {text!r} is no version range such as '>=1.2,<2'")

    def _action(self, data: Mapping[str, Any], problems: list[str]) -> tuple[int, str]:
        action = data.get("action", "allow")
        reason = text_of(data.get("reason"))
        rank = ACTION_RANKS.get(action) if isinstance(action, str) else None
        if rank is None:
            problems.append(f"policy {self.label}: unknown action {action!r} warns")
            return WARN, reason or f"Policy {self.label} has an action that this gstack doesn't know."
        return rank, reason

    def _time(self, value: object, what: str, problems: list[str]) -> float | None:
        try:
            return when(value)
        except BadTime:
            problems.append(f"policy {self.label}: {what} {value!r} is no time, so it never ends")
            return None

    def _exceptions(self, value: object, problems: list[str]) -> tuple[tuple[Any, ...], ...]:
        found = []
        for data in value if isinstance(value, list) else ():
            one = self._exception(data, problems) if isinstance(data, dict) else None
            if one is not None:
                found.append(one)
        return tuple(found)

    def _exception(self, data: Mapping[str, Any], problems: list[str]) -> tuple[Any, ...] | None:
        """One exception; None for one that can't hold: it names nothing, or its end can't be read."""
        name = text_of(data.get("name")).strip().lower() or None
        machine = text_of(data.get("machine")).strip().lower() or None
        user = text_of(data.get("user")).strip().lower() or None
        if name is None and machine is None and user is None:
            problems.append(f"policy {self.label}: an exception names no name, machine or user and is ignored")
            return None
        try:
            until = when(data.get("expires_at"))
        except BadTime:
            bad = data.get("expires_at")
            problems.append(f"policy {self.label}: an exception until {bad!r} has no readable end and is ignored")
            return None
        whom = [f"{word} {value}" for word, value in (("skill", name), ("machine", machine), ("user", user)) if value]
        text = f"Exception to policy {self.label} for {', '.join(whom)}"
        text += f" until {day(until)}" if until is not None else ""
        owner, why = text_of(data.get("owner")), text_of(data.get("reason"))
        text += (f" (owner: {owner})" if owner else "") + (f": {why}" if why else "")
        return (name, machine, user, until, text if text.endswith(".") else text + ".")


def day(moment: float) -> str:
    """A time as ``2026-12-01`` (UTC)."""
    try:
        return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return "further than a calendar reaches"


def text_of(value: object) -> str:
    """``value`` when it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def texts_of(value: object) -> list[str]:
    """The texts in ``value`` when it is a list, else none."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def cant_tell(policy: Policy) -> Rule:
    """The warning that a blocking policy becomes which this gstack can't evaluate (gate G1)."""
    rule = policy.rule
    text = f"Policy {policy.label} can't be evaluated by this gstack, so it is not enforced here."
    return (WARN, *rule[1:REASON], text, *rule[REASON + 1 :])


@lru_cache(maxsize=65536)
def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def in_range(version: str, specifiers: SpecifierSet | None) -> bool:
    """Whether an entry's version lies in a range, pre-releases included; one that isn't a version never does."""
    found = _version(version)
    return found is not None and specifiers is not None and specifiers.contains(found, prereleases=True)


def is_conditional(rule: Rule) -> bool:
    """Whether time, machine, user or name decide if a rule is in force."""
    return rule[EXPIRES] is not None or bool(rule[EXCEPTIONS])

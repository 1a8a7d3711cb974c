"""Which rules of a bundle apply to a name: the one reading of a payload (gate G1).

``gstack gate --explain``, ``bundle build --preview``, ``gate test``, ``simulate`` and the index compiler all ask a
:class:`Rulebook`; the hook reads what the compiler wrote down from one. Cold (the hook's slow road imports it).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from gstack.gate.decision import (
    ALLOW,
    BLOCK,
    DEFAULT,
    DRIFT,
    EXCEPTIONS,
    EXPIRES,
    POLICY,
    RANK,
    REASON,
    STATUS,
    WARN,
    strength,
)  # fmt: skip
from gstack.gate.names import entry_kind, glob_match, last_segment, namespace

#: The actions on the wire (and what people read) and their rank.
ACTION_RANKS = {"allow": ALLOW, "warn": WARN, "halt": BLOCK, "block": BLOCK}

#: What a policy can match by; ``drifted`` decides about installed copies that aren't the approved ones.
MATCHERS = ("namespace", "declared_metadata", "name", "tag", "kind", "version", "drifted")

#: Statuses of a catalogue entry that say nothing against it.
QUIET_STATUSES = ("", "approved", "active")

#: What is said of a name in a managed namespace that the catalogue lacks; the published client says the same.
MISSING = "No valid current manifest under a managed namespace."

#: What is said of an installed copy that differs from the approved one.
DRIFTED = "The installed copy differs from the approved version (drifted)."

#: Times above this are milliseconds (seconds would be the year 5138).
_MILLISECONDS = 1e11

#: How many names' rules one rulebook keeps.
_KEPT = 8192

Rule = tuple[Any, ...]
Candidate = tuple[Any, ...]


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
        self.label = _text(data.get("name")) or _text(data.get("policy_id")) or f"number {order + 1}"
        self.matcher = _text(data.get("matcher_type")).lower()
        self.value = _text(data.get("match_value"))
        self.specifiers: SpecifierSet | None = None
        self.known = self.matcher in MATCHERS
        if not self.known:
            problems.append(f"policy {self.label}: unknown matcher type {self.matcher or '(none)'!r}")
        elif self.matcher == "version":
            self._read_specifiers(problems)
        rank, reason = self._action(data, problems)
        policy_id = _text(data.get("policy_id")) or None
        self.rule: Rule = (
            rank,
            POLICY,
            order,
            f"policy:{policy_id or order}",
            reason,
            policy_id,
            _text(data.get("name")) or None,
            _text(data.get("replacement")) or None,
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
        reason = _text(data.get("reason"))
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
        name = _text(data.get("name")).strip().lower() or None
        machine = _text(data.get("machine")).strip().lower() or None
        user = _text(data.get("user")).strip().lower() or None
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
        owner, why = _text(data.get("owner")), _text(data.get("reason"))
        text += (f" (owner: {owner})" if owner else "") + (f": {why}" if why else "")
        return (name, machine, user, until, text if text.endswith(".") else text + ".")


def day(moment: float) -> str:
    """A time as ``2026-12-01`` (UTC)."""
    try:
        return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return "further than a calendar reaches"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


class Rulebook:
    """A payload, ready to be asked for the rules of any name; the lookups are those of
    :class:`gstack.gate.names.Source`.

    ``problems`` has one line for each thing in the payload that this gstack doesn't know, each once.
    """

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.payload = payload
        self.problems: list[str] = []
        self.spaces = {name.lower() for name in _texts(payload.get("namespaces"))}
        self.policies = [Policy(i, data, self.problems) for i, data in enumerate(payload.get("policies") or ())]
        self._file_policies()
        defaults = payload.get("defaults") or {}
        self.managed_default = self._default(defaults, "managed_missing_manifest", "warn", MISSING)
        self.unmanaged_default = self._default(
            defaults, "unmanaged", "allow", "The organisation doesn't manage this name."
        )
        self.stale_after = self._stale_after()
        self.stale_action = self._stale_action()
        self._names: dict[str, list[str]] = defaultdict(list)
        self._bare: dict[str, list[str]] = defaultdict(list)
        self._plugins: dict[str, list[str]] = defaultdict(list)
        self._order: dict[str, int] = {}
        self._kept: dict[tuple[str, bool], Candidate] = {}
        self._file_entries()

    def _file_policies(self) -> None:
        """Sort the policies by what they match, so that a name is only held against those that could fit."""
        self._by: dict[str, dict[str, list[Policy]]] = {
            kind: defaultdict(list) for kind in ("namespace", "declared_metadata", "tag", "kind", "exact")
        }
        self.globs: list[tuple[str, Policy]] = []
        self._versions: list[Policy] = []
        self._drifted: list[tuple[str, Policy]] = []
        self.managed_rules: list[Rule] = []
        for policy in self.policies:
            if not policy.known:
                if policy.rule[RANK] == BLOCK:
                    self.managed_rules.append(_cant_tell(policy))
                continue
            value = policy.value.strip()
            if policy.matcher == "name":
                if any(char in value for char in "*?["):
                    self.globs.append((value.lower(), policy))
                else:
                    self._by["exact"][value.lower()].append(policy)
            elif policy.matcher == "version":
                self._versions.append(policy)
            elif policy.matcher == "drifted":
                self._drifted.append((value.lower() or "*", policy))
            elif policy.matcher == "declared_metadata":
                # the part after the colon, whatever stands before it, as the published client reads it
                self._by["declared_metadata"][value.split(":", 1)[-1].strip()].append(policy)
            else:
                value = value if policy.matcher == "tag" else value.lower()
                self._by[policy.matcher]["subagent" if value == "agent" else value].append(policy)

    def _file_entries(self) -> None:
        index = self.payload.get("manifest_index") or {}
        reported: set[str] = set()
        for order, (name, entry) in enumerate(index.items()):
            key = name.lower()
            self._order[name] = order
            self._names[key].append(name)
            self._bare[last_segment(key)].append(name)
            plugin = self.plugin_of(name)
            if plugin:
                self._plugins[plugin + ":" + last_segment(key)].append(name)
            status = _status(entry)
            if status not in (*QUIET_STATUSES, "deprecated", "banned") and status not in reported:
                reported.add(status)
                self.problems.append(f"catalogue status {status!r} (of {name}, at least) is unknown and warns")

    def _default(self, defaults: Any, key: str, fallback: str, reason: str) -> Rule:
        action = (defaults.get(key) if isinstance(defaults, dict) else None) or fallback
        rank = ACTION_RANKS.get(action) if isinstance(action, str) else None
        if rank is None:
            self.problems.append(f"defaults.{key}: unknown action {action!r} warns")
            rank = WARN
        if rank == ALLOW:
            reason = ""
        return (rank, DEFAULT, 0, "default:" + key, reason, None, None, None, False, None, ())

    def _stale_after(self) -> float:
        value = self.payload.get("stale_after_s")
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e12:
            return float(value)
        if value is not None:
            self.problems.append(f"stale_after_s {value!r} is no number of seconds: 86400 is used")
        return 86400.0

    def _stale_action(self) -> str:
        action = self.payload.get("stale_action") or "warn"
        rank = ACTION_RANKS.get(action) if isinstance(action, str) else None
        if rank is None:
            self.problems.append(f"stale_action {action!r} is unknown and warns")
        return ("allow", "warn", "block")[WARN if rank is None else rank]

    # ---------------------------------------------------------------------------------------- the five lookups

    def entries(self, name: str) -> list[Candidate]:
        """The entries of this full name (more than one when names differ by case only)."""
        return [self.candidate(one) for one in self._names.get(name, ())]

    def bare(self, last: str) -> list[Candidate]:
        """The entries whose last segment this is."""
        return [self.candidate(one) for one in self._bare.get(last, ())]

    def plugin(self, prefix: str, last: str) -> list[Candidate]:
        """The entries of this plugin with this last segment."""
        return [self.candidate(one) for one in self._plugins.get(prefix + ":" + last, ())]

    def managed(self, name: str) -> bool:
        """Whether this namespace is a managed one."""
        return name in self.spaces

    def unknown(self, name: str) -> Candidate:
        """What holds for a name without an entry: policies that reach it, and the default."""
        found = self._kept.get((name, False))
        return found if found is not None else self._keep((name, False), self._unknown(name))

    def _keep(self, key: tuple[str, bool], found: Candidate) -> Candidate:
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        self._kept[key] = found
        return found

    def _unknown(self, name: str) -> Candidate:
        space = namespace(name)
        matched = list(self._by["namespace"].get(space, ()))
        for form in {name, name.replace(":", "/")}:
            matched += self._named(form)
        rules = [policy.rule for policy in _once(matched)]
        rules += self.managed_rules if space in self.spaces else []
        rules.append(self.managed_default if space in self.spaces else self.unmanaged_default)
        return (name, Non    # ---------------------------------------------------------------------------------------------- entries

    def candidate(self, name: str) -> Candidate:
        """A catalogue entry with all rules that are about it, strongest first."""
        found = self._kept.get((name, True))
        return found if found is not None else self._keep((name, True), self._candidate(name))

    def _candidate(self, name: str) -> Candidate:
        entry = self.payload["manifest_index"][name]
        order = self._order[name]
        rules = [policy.rule for policy in self.matching(name, entry)]
        if namespace(name.lower()) in self.spaces:
            rules += self.managed_rules
        rules += _status_rules(entry, order)
        digest = _text(entry.get("digest"))
        return (
            name,
            _text(entry.get("version")) or None,
            entry_kind(entry.get("kind")),
            digest if digest.startswith("sha256:") else None,
            tuple(sorted(rules, key=strength)),
            tuple(self._drift_rules(name)),
            order,
        )

    def matching(self, name: str, entry: Mapping[str, Any]) -> list[Policy]:
        """The policies that match an entry, in bundle order (``drifted`` ones aside: they match an installed copy)."""
        by = self._by
        key = name.lower()
        found = list(by["namespace"].get(namespace(key), ()))
        found += self._named(key)
        for target in _texts(entry.get("targets")):
            found += by["declared_metadata"].get(target, ())
        for tag in _texts(entry.get("tags")):
            found += by["tag"].get(tag, ())
        found += by["kind"].get(entry_kind(entry.get("kind")), ())
        version = _text(entry.get("version"))
        found += [one for one in self._versions if in_range(version, one.specifiers)]
        return _once(found)

    def _named(self, name: str) -> list[Policy]:
        found = list(self._by["exact"].get(name, ()))
        return found + [policy for pattern, policy in self.globs if glob_match(pattern, name)]

    def _drift_rules(self, name: str) -> list[Rule]:
        """What applies when the installed copy isn't the approved one: the policies about it, else a warning."""
        found = [policy.rule for glob, policy in self._drifted if glob_match(glob, name.lower())]
        if not found:
            return [(WARN, DRIFT, 0, "drifted", DRIFTED, None, None, None, False, None, ())]
        return sorted(((*rule[:REASON], rule[REASON] or DRIFTED, *rule[REASON + 1 :]) for rule in found), key=strength)

    def in_namespace(self, space: str) -> list[Policy]:
        """The policies that match everything in a namespace."""
        return self._by["namespace"].get(space, [])

    def policy_namespaces(self) -> Iterator[str]:
        """The namespaces that policies are about."""
        return iter(self._by["namespace"])

    def exact_names(self) -> dict[str, list[Policy]]:
        """The policies that match one name, by that name."""
        return self._by["exact"]

    def plugin_of(self, name: str) -> str:
        """The plugin that an entry comes in, empty for none."""
        return _text(self.payload["manifest_index"][name].get("plugin")).strip().lower()

    def names(self) -> Iterator[str]:
        """Every catalogue entry's name, in bundle order."""
        return iter(self._order)

    def drift_policies(self, name: str) -> list[Policy]:
        """The ``drifted`` policies that are about an entry."""
        return [policy for glob, policy in self._drifted if glob_match(glob, name.lower())]

    def count(self) -> dict[int, int]:
        """How many catalogue entries each policy matches, by the policy's place: what ``--preview`` shows."""
        counts = dict.fromkeys(range(len(self.policies)), 0)
        for name in self.names():
            entry = self.payload["manifest_index"][name]
            for policy in [*self.matching(name, entry), *self.drift_policies(name)]:
                counts[policy.order] += 1
        return counts


def _once(policies: list[Policy]) -> list[Policy]:
    return [found for _, found in sorted({policy.order: policy for policy in policies}.items())]


def _status(entry: Mapping[str, Any]) -> str:
    status = entry.get("status")
    return status.strip().lower() if isinstance(status, str) else "" if status is None else repr(status)


def _status_rules(entry: Mapping[str, Any], order: int) -> list[Rule]:
    status = _status(entry)
    if status in QUIET_STATUSES:
        return []
    rank, reason = WARN, f"Catalogue status {status!r} is not known to this gstack."
    if status == "banned":
        rank, reason = BLOCK, "Skill version is banned by the organisation."
    elif status == "deprecated":
        reason = "Skill is deprecated."
    return [(rank, STATUS, order, "status:" + status, reason, None, None, None, False, None, ())]


def _cant_tell(policy: Policy) -> Rule:
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


def ending_exceptions(payload: Mapping[str, Any], now: float, days: float = 14) -> list[tuple[str, float]]:
    """The exceptions that end within ``days`` days of ``now``, soonest first: (its text, its end)."""
    found = []
    for policy in Rulebook(payload).policies:
        for *_, until, text in policy.rule[EXCEPTIONS]:
            if until is not None and now <= until <= now + days * 86400:
                found.append((text, until))
    return sorted(found, key=lambda one: one[1])


def is_conditional(rule: Rule) -> bool:
    """Whether time, machine, user or name decide if a rule is in force."""
    return rule[EXPIRES] is not None or bool(rule[EXCEPTIONS])

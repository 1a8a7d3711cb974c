"""Which rules of a bundle apply to a name: the one reading of a payload (gate G1).

``gstack gate --explain``, ``bundle build --preview``, ``gate test``, ``simulate`` and the index compiler all ask a
:class:`Rulebook`; the hook reads what the compiler wrote down from one. Cold (the hook's slow road imports it).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from gstack.gate.decision import ALLOW, BLOCK, DEFAULT, DRIFT, EXCEPTIONS, RANK, REASON, STATUS, WARN, strength
from gstack.gate.names import entry_kind, glob_match, last_segment, namespace
from gstack.gate.policies import ACTION_RANKS, Policy, Rule, cant_tell, in_range, text_of, texts_of

#: Statuses of a catalogue entry that say nothing against it.
QUIET_STATUSES = ("", "approved", "active")

#: What is said of a name in a managed namespace that the catalogue lacks; the published client says the same.
MISSING = "No valid current manifest under a managed namespace."

#: What is said of an installed copy that differs from the approved one.
DRIFTED = "The installed copy differs from the approved version (drifted)."

#: How many names' rules one rulebook keeps.
_KEPT = 8192

Candidate = tuple[Any, ...]


class Rulebook:
    """A payload, ready to be asked for the rules of any name; the lookups are those of
    :class:`gstack.gate.names.Source`.

    ``problems`` has one line for each thing in the payload that this gstack doesn't know, each once.
    """

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.payload = payload
        self.problems: list[str] = []
        self.spaces = {name.lower() for name in texts_of(payload.get("namespaces"))}
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
                    self.managed_rules.append(cant_tell(policy))
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
        return (name, None, None, None, tuple(sorted(rules, key=strength)), (), 0)

    # ---------------------------------------------------------------------------------------------- entries

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
        digest = text_of(entry.get("digest"))
        return (
            name,
            text_of(entry.get("version")) or None,
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
        for target in texts_of(entry.get("targets")):
            found += by["declared_metadata"].get(target, ())
        for tag in texts_of(entry.get("tags")):
            found += by["tag"].get(tag, ())
        found += by["kind"].get(entry_kind(entry.get("kind")), ())
        version = text_of(entry.get("version"))
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
        return text_of(self.payload["manifest_index"][name].get("plugin")).strip().lower()

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


def ending_exceptions(payload: Mapping[str, Any], now: float, days: float = 14) -> list[tuple[str, float]]:
    """The exceptions that end within ``days`` days of ``now``, soonest first: (its text, its end)."""
    found = []
    for policy in Rulebook(payload).policies:
        for *_, until, text in policy.rule[EXCEPTIONS]:
            if until is not None and now <= until <= now + days * 86400:
                found.append((text, until))
    return sorted(found, key=lambda one: one[1])

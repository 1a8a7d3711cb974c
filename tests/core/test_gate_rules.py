"""Which rules apply, and what they come to (gate G1)."""

from typing import Any

import pytest
from gate_support import NOW, payload

from gstack.api import Decision, GateContext, Invocation
from gstack.gate.decision import combine, decide_from
from gstack.gate.policies import BadTime, when
from gstack.gate.rules import Rulebook, ending_exceptions


def decide(data: dict[str, Any], name: str, kind: str = "any", now: float = NOW, **facts: str) -> Decision:
    said = decide_from(Rulebook(data), Invocation(name, kind), GateContext("", now, **facts))
    assert said is not None
    found = combine([said])
    assert found is not None
    return found


def policy(matcher: str, value: str, action: str = "halt", **more: Any) -> dict[str, Any]:
    return {"policy_id": "p1", "name": "One", "matcher_type": matcher, "match_value": value, "action": action, **more}


ENTRIES = {
    "acme/deploy": {"version": "1.4.2", "kind": "skill", "targets": ["prod"], "tags": ["ops"], "status": "approved"},
    "acme/ship": {"version": "2.0.0rc1", "kind": "command", "targets": [], "tags": []},
    "acme/auditor": {"version": "latest", "kind": "subagent"},
}


@pytest.mark.parametrize(
    ("matcher", "value", "hit", "miss"),
    [
        ("namespace", "acme", "acme/deploy", "beta/x"),
        ("namespace", "Acme", "acme/deploy", "beta/x"),
        ("namespace", "tools", "tools:thing", "acme/deploy"),
        ("declared_metadata", "targets: prod", "acme/deploy", "acme/auditor"),
        ("declared_metadata", "prod", "acme/deploy", "acme/auditor"),
        ("name", "acme/dep*", "acme/deploy", "acme/auditor"),
        ("name", "ACME/deploy", "acme/deploy", "acme/auditor"),
        ("name", "*evil*", "some-evil-thing", "acme/auditor"),
        ("name", "tools/x", "tools:x", "tools:y"),
        ("name", "tools:*", "tools:x", "toolsx"),
        ("tag", "ops", "acme/deploy", "acme/auditor"),
        ("kind", "subagent", "acme/auditor", "acme/deploy"),
        ("kind", "agent", "acme/auditor", "acme/deploy"),
        ("version", ">=1.4,<2", "acme/deploy", "acme/auditor"),
        ("version", "1.4.2", "acme/deploy", "acme/auditor"),
    ],
)
def test_a_policy_matches_by(matcher: str, value: str, hit: str, miss: str) -> None:
    data = payload(policies=[policy(matcher, value)], manifest_index=ENTRIES)
    assert decide(data, hit).rule == "policy:p1"
    assert decide(data, hit).action == "block"
    assert decide(data, miss).rule != "policy:p1"


def test_a_version_range_reaches_pre_releases() -> None:
    data = payload(policies=[policy("version", "<2.0.1", "warn")], manifest_index=ENTRIES)
    assert decide(data, "acme/ship").rule == "policy:p1"


@pytest.mark.parametrize(
    ("status", "action", "reason"),
    [
        ("approved", "allow", ""),
        ("active", "allow", ""),
        ("deprecated", "warn", "Skill is deprecated."),
        ("banned", "block", "Skill version is banned by the organisation."),
        ("paused", "warn", "Catalogue status 'paused' is not known to this gstack."),
    ],
)
def test_a_catalogue_status_says(status: str, action: str, reason: str) -> None:
    data = payload(policies=[], manifest_index={"acme/x": {"version": "1", "status": status}})
    found = decide(data, "acme/x")
    assert (found.action, found.reason, found.policy_id, found.version) == (action, reason, None, "1")


def test_defaults_of_a_bundle_that_says_nothing() -> None:
    data = payload(policies=[], manifest_index={})
    missing, foreign = decide(data, "acme/unknown"), decide(data, "elsewhere/x")
    assert (missing.action, missing.rule, missing.governed) == ("warn", "default:managed_missing_manifest", True)
    assert (foreign.action, foreign.rule, foreign.governed, foreign.reason) == ("allow", "default:unmanaged", False, "")
    book = Rulebook(data)
    assert (book.stale_after, book.stale_action) == (86400.0, "warn")


def test_defaults_can_be_set() -> None:
    data = payload(defaults={"managed_missing_manifest": "halt", "unmanaged": "warn"}, policies=[], manifest_index={})
    assert decide(data, "acme/unknown").action == "block"
    assert decide(data, "elsewhere/x").action == "warn"


def test_the_most_restrictive_wins_and_of_equals_the_first_by_bundle_order() -> None:
    rows = [
        policy("namespace", "acme", "allow", policy_id="p0"),
        policy("name", "acme/*", "warn", policy_id="p1"),
        policy("tag", "ops", "halt", policy_id="p2"),
        policy("namespace", "acme", "halt", policy_id="p3"),
    ]
    banned = {"acme/deploy": {**ENTRIES["acme/deploy"], "status": "banned"}}
    found = decide(payload(policies=rows, manifest_index=banned), "acme/deploy")
    assert found.rule == "policy:p2"
    assert [rule for _, rule, _ in found.rules] == ["policy:p2", "policy:p3", "status:banned", "policy:p1", "policy:p0"]


def test_a_ban_is_never_downgraded_by_a_broader_rule() -> None:
    data = payload(policies=[policy("namespace", "acme", "allow")], manifest_index={"acme/x": {"status": "banned"}})
    assert decide(data, "acme/x").action == "block"


@pytest.mark.parametrize("name", ["skillsvault/skillsvault", "skillsvault:x", "Skillsvault/X", "skillsvault"])
def test_reserved_names_are_always_allowed(name: str) -> None:
    data = payload(policies=[policy("name", "*")], manifest_index={name.lower(): {"status": "banned"}})
    assert decide(data, name).action == "allow"


def test_a_bare_name_takes_the_most_restrictive_of_all_entries() -> None:
    entries = {"acme/deploy": {"status": "approved"}, "beta/deploy": {"status": "banned", "version": "9"}}
    found = decide(payload(policies=[], manifest_index=entries), "deploy")
    assert (found.action, found.skill_name, found.version) == ("block", "beta/deploy", "9")


# ----------------------------------------------------------------------------------------------- commands


def test_a_command_is_capped_at_warn() -> None:
    data = payload(policies=[policy("kind", "command")], manifest_index=ENTRIES)
    found = decide(data, "acme/ship")
    assert (found.action, found.rule) == ("warn", "policy:p1")


def test_a_typed_name_that_matches_no_entry_counts_as_a_command() -> None:
    data = payload(policies=[policy("name", "*")], manifest_index={})
    assert decide(data, "unregistered", "command").action == "warn"
    assert decide(data, "unregistered", "skill").action == "block"


def test_the_skills_block_wins_over_the_commands_cap() -> None:
    entries = {
        "acme/ship": {"kind": "command", "status": "banned"},
        "beta/ship": {"kind": "skill", "status": "banned"},
    }
    found = decide(payload(policies=[], manifest_index=entries), "ship", "command")
    assert (found.action, found.skill_name) == ("block", "beta/ship")


def test_a_commands_ban_is_a_warning_beside_an_approved_skill() -> None:
    entries = {"acme/ship": {"kind": "command", "status": "banned"}, "beta/ship": {"kind": "skill"}}
    found = decide(payload(policies=[], manifest_index=entries), "ship", "command")
    assert (found.action, found.skill_name, found.entry_kind) == ("warn", "acme/ship", "skill")


def test_banning_a_skill_leaves_the_hosts_own_agent_of_that_name_alone() -> None:
    data = payload(policies=[], manifest_index={"acme/plan": {"status": "banned"}})
    assert decide(data, "Plan", "subagent").action == "allow"
    assert decide(data, "plan", "skill").action == "block"


# ------------------------------------------------------------------------------------- what isn't known


def test_an_unknown_matcher_never_matches_but_warns_in_managed_namespaces_when_it_would_block() -> None:
    data = payload(policies=[policy("mood", "bad")], manifest_index=ENTRIES)
    found = decide(data, "acme/deploy")
    assert (found.action, found.policy_name) == ("warn", "One")
    assert "can't be evaluated" in found.reason
    assert decide(data, "acme/unknown").action == "warn"
    assert decide(data, "elsewhere/x").action == "allow"
    assert (
        decide(payload(policies=[policy("mood", "bad", "warn")], manifest_index=ENTRIES), "acme/deploy").action
        == "allow"
    )


def test_a_version_range_that_is_none_is_treated_as_an_unknown_matcher() -> None:
    data = payload(policies=[policy("version", "^1.2")], manifest_index=ENTRIES)
    assert decide(data, "acme/deploy").action == "warn"
    assert Rulebook(data).problems == ["policy One: '^1.2' is no version range such as '>=1.2,<2'"]


def test_an_unknown_action_warns() -> None:
    data = payload(policies=[policy("namespace", "acme", "explode")], manifest_index=ENTRIES)
    assert decide(data, "acme/deploy").action == "warn"


def test_each_unknown_thing_is_reported_once() -> None:
    entries = {f"acme/x{n}": {"status": "paused"} for n in range(5)}
    data = payload(policies=[policy("mood", "x"), policy("tag", "y", "explode")], manifest_index=entries)
    problems = Rulebook(data).problems
    assert len(problems) == 3
    assert sum("paused" in line for line in problems) == 1


# ------------------------------------------------------------------------------- time, machines, people


def test_a_policy_ends_when_it_expires() -> None:
    data = payload(policies=[policy("namespace", "acme", expires_at=NOW)], manifest_index=ENTRIES)
    assert decide(data, "acme/deploy", now=NOW - 1).action == "block"
    assert decide(data, "acme/deploy", now=NOW).action == "allow"


def test_an_end_that_can_not_be_read_never_comes() -> None:
    data = payload(policies=[policy("namespace", "acme", expires_at="soon")], manifest_index=ENTRIES)
    assert decide(data, "acme/deploy").action == "block"
    assert "is no time" in Rulebook(data).problems[0]


@pytest.mark.parametrize(
    ("exception", "lifted"),
    [
        ({"machine": "laptop-7"}, True),
        ({"machine": "LAPTOP-7"}, True),
        ({"machine": "laptop-8"}, False),
        ({"user": "alice"}, True),
        ({"user": "bob"}, False),
        ({"name": "acme/deploy"}, True),
        ({"name": "acme/*"}, True),
        ({"name": "beta/*"}, False),
        ({"machine": "laptop-7", "user": "bob"}, False),
        ({"machine": "laptop-7", "expires_at": "2020-01-01"}, False),
        ({"machine": "laptop-7", "expires_at": "2040-01-01"}, True),
        ({"machine": "laptop-7", "expires_at": "some day"}, False),
        ({}, False),
        ({"machine": ""}, False),
        ("not an object", False),
    ],
)
def test_an_exception_holds_for_what_it_names(exception: Any, lifted: bool) -> None:
    data = payload(policies=[policy("namespace", "acme", exceptions=[exception])], manifest_index=ENTRIES)
    found = decide(data, "acme/deploy", machine="laptop-7", user="alice")
    assert found.action == ("allow" if lifted else "block")


def test_an_exception_says_so_in_the_reason() -> None:
    exception = {"machine": "laptop-7", "owner": "carol", "reason": "migration", "expires_at": "2040-01-01"}
    entries = {"acme/deploy": {"status": "deprecated"}}
    data = payload(policies=[policy("namespace", "acme", exceptions=[exception])], manifest_index=entries)
    found = decide(data, "acme/deploy", machine="laptop-7")
    assert found.action == "warn"
    assert found.reason == (
        "Skill is deprecated. Exception to policy One for machine laptop-7 until 2040-01-01 (owner: carol): migration."
    )
    other = decide(data, "acme/deploy", machine="laptop-8")
    assert "Exception" not in other.reason


def test_exceptions_that_end_soon_are_listed() -> None:
    days = (("a", 13), ("b", 15), ("c", -1), ("d", 2))
    rows = [{"user": name, "expires_at": NOW + number * 86400} for name, number in days]
    data = payload(policies=[policy("namespace", "acme", exceptions=rows)])
    found = ending_exceptions(data, NOW)
    assert [until for _, until in found] == [NOW + 2 * 86400, NOW + 13 * 86400]
    assert "user d until 2027-01-17" in found[0][0]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2027-01-15T08:00:00Z", 1_800_000_000),
        ("2027-01-15T09:00:00+01:00", 1_800_000_000),
        ("2027-01-15T08:00:00.123456789Z", 1_800_000_000),
        ("2027-01-15T08:00:00", 1_800_000_000),
        ("2027-01-15", 1_799_971_200),
        (1_800_000_000, 1_800_000_000),
        (1_800_000_000_000, 1_800_000_000),
        (None, None),
        ("", None),
    ],
)
def test_times_of_a_bundle(value: object, seconds: float | None) -> None:
    assert when(value) == seconds


@pytest.mark.parametrize("value", ["soon", True, [], float("nan"), float("inf"), "9999999-01-01", 1e30])
def test_what_is_no_time(value: object) -> None:
    with pytest.raises(BadTime):
        when(value)


# ---------------------------------------------------------------------------------------------- overrides


def test_only_a_block_that_every_policy_lets_be_overridden_is_overridable() -> None:
    rows = [policy("namespace", "acme", overridable=True, policy_id="p1"), policy("tag", "ops", policy_id="p2")]
    data = payload(policies=rows, manifest_index=ENTRIES)
    assert not decide(data, "acme/deploy").overridable
    assert decide(data, "acme/auditor").overridable
    assert not decide(payload(policies=[policy("namespace", "acme", overridable="yes")]), "acme/x").overridable

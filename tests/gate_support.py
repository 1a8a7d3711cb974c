"""Payloads, installed bundles and strategies that the gate's tests share."""

import json
import time
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from gstack.gate.bundle import Installation, install_bundle
from gstack.gate.signing import Key, new_keys, private_key, sign
from gstack.gate.trust import Trust, write_trust

ORG = "acme"
BASE = "https://policy.example"
PRIVATE, PUBLIC = new_keys()
OTHER_PRIVATE, OTHER_PUBLIC = new_keys()

#: The bundle that the texts of gate G3 are about.
SAMPLE: dict[str, Any] = {
    "org": ORG,
    "version": 7,
    "issued_at": "2026-11-01T00:00:00Z",
    "namespaces": ["acme"],
    "policies": [
        {
            "policy_id": "pol_teamleader",
            "name": "Teamleader retired",
            "matcher_type": "declared_metadata",
            "match_value": "targets: teamleader",
            "action": "halt",
            "reason": "Use acme/hubspot-crm-entry instead.",
            "replacement": "acme/hubspot-crm-entry",
        }
    ],
    "manifest_index": {
        "acme/hubspot-crm-entry": {"version": "1.3.0", "status": "approved", "targets": ["hubspot"]},
        "acme/teamleader-crm-entry": {"version": "1.0.0", "status": "approved", "targets": ["teamleader"]},
        "acme/onboard-customer": {"version": "0.9.0", "status": "deprecated"},
        "acme/wipe-disk": {"version": "1.0.0", "status": "banned"},
        "acme/plan": {"version": "2.0.0", "status": "banned"},
        "acme/auditor": {"version": "2.0.0", "status": "banned", "kind": "subagent"},
        "acme/ship": {"version": "2.0.0", "status": "banned", "kind": "command"},
    },
}


def payload(**changes: Any) -> dict[str, Any]:
    """The sample payload with some parts replaced."""
    return {**SAMPLE, **changes}


def envelope(data: dict[str, Any], private: bytes = PRIVATE, **more: Any) -> bytes:
    """A signed envelope of a payload."""
    return sign(json.dumps(data), private_key(private), **more)


def trust(root: Path, key: Key = PUBLIC, *, org: str = ORG, base: str = BASE) -> None:
    """Pin a key, as a login does."""
    (root / "gate").mkdir(parents=True, exist_ok=True, mode=0o700)
    root.chmod(0o700)
    write_trust(str(root), Trust(org, base, key, "first use", 0.0))


def install(root: Path, data: dict[str, Any], **more: Any) -> Installation:
    """Pin the test's key, sign and install a payload."""
    trust(root)
    return install_bundle(str(root), envelope(data), now=time.time(), **more)


# ------------------------------------------------------------------------------------------------ strategies

SPACES = ("acme", "beta", "gamma")
WORDS = ("deploy", "plan", "review", "crm-entry", "skillsvault")
TARGETS = ("hubspot", "teamleader", "jira")

full_names = st.builds(
    lambda space, word: f"{space}/{word}", st.sampled_from((*SPACES, "skillsvault")), st.sampled_from(WORDS)
)
invoked_names = st.one_of(
    full_names,
    st.sampled_from(WORDS),
    st.sampled_from(SPACES),
    st.builds(lambda a, b: f"{a}:{b}", st.sampled_from((*SPACES, "tools", "skillsvault")), st.sampled_from(WORDS)),
    st.builds(lambda b: f"sub/dir:{b}", st.sampled_from(WORDS)),
    st.sampled_from(
        ("Acme/Deploy now", "/deploy", "acme:sub:deploy", "ACME/PLAN", "nobody/knows", "x:y:z", "", " ", "/")
    ),
)

_now = 1_800_000_000
ends = st.one_of(
    st.none(),
    st.sampled_from((_now - 50, _now + 50, "2020-01-01", "2040-01-01T00:00:00Z", "2027-01-15T08:00:00.5+01:00")),
)
exceptions = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(("acme/*", "acme/deploy", "*")),
        "machine": st.sampled_from(("laptop-7", "Laptop-8")),
        "user": st.sampled_from(("alice", "bob")),
        "owner": st.just("carol"),
        "reason": st.just("migration"),
        "expires_at": ends,
    },
)

#: What the published client knows: two matchers, three actions.
plain_policies = st.fixed_dictionaries(
    {
        "policy_id": st.integers(0, 99).map(lambda n: f"pol_{n}"),
        "name": st.sampled_from(("One", "Two", "Three")),
        "action": st.sampled_from(("allow", "warn", "halt")),
        "reason": st.sampled_from(("", "Because.", "Use beta/plan instead.")),
    }
).flatmap(
    lambda policy: st.one_of(
        st.sampled_from((*SPACES, "deploy")).map(
            lambda value: {**policy, "matcher_type": "namespace", "match_value": value}
        ),
        st.sampled_from((*TARGETS, *(f"targets: {one}" for one in TARGETS))).map(
            lambda value: {**policy, "matcher_type": "declared_metadata", "match_value": value}
        ),
    )
)
plain_entries = st.fixed_dictionaries(
    {"version": st.sampled_from(("1.0.0", "2.1.0"))},
    optional={
        "status": st.sampled_from(("approved", "active", "deprecated", "banned")),
        "targets": st.lists(st.sampled_from(TARGETS), max_size=2),
    },
)
plain_payloads = st.fixed_dictionaries(
    {
        "org": st.just(ORG),
        "version": st.just(1),
        "namespaces": st.lists(st.sampled_from(SPACES), max_size=2),
        "policies": st.lists(plain_policies, max_size=5),
        "manifest_index": st.dictionaries(full_names, plain_entries, max_size=6),
    },
    optional={
        "defaults": st.sampled_from(({}, {"managed_missing_manifest": "halt"}, {"managed_missing_manifest": "allow"}))
    },
)

_values = {
    "namespace": st.sampled_from((*SPACES, "tools", "Acme")),
    "declared_metadata": st.sampled_from(("targets: jira", "hubspot")),
    "name": st.sampled_from(
        ("acme/*", "*plan", "acme/deploy", "tools:*", "tools/plan", "*", "[ab]*/re?iew", "beta/plan", "*:*", "deploy")
    ),
    "tag": st.sampled_from(("crm", "ops")),
    "kind": st.sampled_from(("skill", "command", "subagent", "agent")),
    "version": st.sampled_from((">=1,<2", "1.0.0", "~=2.0", "not a range", "<3.0rc1")),
    "drifted": st.sampled_from(("*", "acme/*", "")),
    "from-the-future": st.just("x"),
}
policies = st.sampled_from(sorted(_values)).flatmap(
    lambda matcher: st.fixed_dictionaries(
        {
            "matcher_type": st.just(matcher),
            "match_value": _values[matcher],
            "action": st.sampled_from(("allow", "warn", "halt", "halt", "explode")),
        },
        optional={
            "policy_id": st.integers(0, 99).map(lambda n: f"pol_{n}"),
            "name": st.sampled_from(("One", "Two")),
            "reason": st.sampled_from(("Because.", "Use beta/plan instead.")),
            "replacement": st.just("beta/plan"),
            "overridable": st.booleans(),
            "expires_at": ends,
            "exceptions": st.lists(exceptions, max_size=2),
        },
    )
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "version": st.sampled_from(("1.0.0", "2.1.0", "3.0.0rc1", "latest")),
        "status": st.sampled_from(("approved", "deprecated", "banned", "paused", None, 7)),
        "kind": st.sampled_from(("skill", "command", "subagent", "prompt", None)),
        "targets": st.lists(st.sampled_from(TARGETS), max_size=2),
        "tags": st.lists(st.sampled_from(("crm", "ops")), max_size=2),
        "plugin": st.sampled_from(("tools", "acme")),
        "digest": st.just("sha256:" + "0" * 64),
    },
)
payloads = st.fixed_dictionaries(
    {
        "org": st.just(ORG),
        "version": st.just(1),
        "namespaces": st.lists(st.sampled_from((*SPACES, "Gamma")), max_size=2),
        "policies": st.lists(policies, max_size=7),
        "manifest_index": st.dictionaries(
            st.one_of(full_names, st.sampled_from(("deploy", "Acme/Plan"))), entries, max_size=6
        ),
    },
    optional={
        "defaults": st.fixed_dictionaries(
            {},
            optional={
                "managed_missing_manifest": st.sampled_from(("allow", "halt", "odd")),
                "unmanaged": st.sampled_from(("warn", "halt", "allow")),
            },
        ),
        "stale_after_s": st.sampled_from((60, 3600, "soon", -1)),
        "stale_action": st.sampled_from(("halt", "allow", "odd")),
    },
)
kinds = st.sampled_from(("skill", "command", "subagent", "any"))
NOW = float(_now)

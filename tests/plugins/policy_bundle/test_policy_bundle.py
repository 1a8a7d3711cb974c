"""The built-in gate resolver: what it says, explains, and notices about installed copies."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from gate_support import SAMPLE, install, payload

import gstack_plugins.policy_bundle as plugin
from gstack.api import Decision, GateContext, Invocation
from gstack.errors import BundleError, BundleMissing
from gstack.gate.digest import skill_digest


@pytest.mark.parametrize(
    ("invocation", "action"),
    [
        (Invocation("hubspot-crm-entry", "skill"), "allow"),
        (Invocation("/Teamleader-CRM-entry now", "command"), "block"),
        (Invocation("acme:onboard-customer", "skill"), "warn"),
        (Invocation("Plan", "subagent"), "allow"),
        (Invocation("auditor", "subagent"), "block"),
        (Invocation("innocent", "skill", aliases=("wipe-disk",)), "block"),
        (Invocation("acme/nobody-knows", "skill"), "warn"),
    ],
)
def test_what_the_sample_bundle_says(tmp_path: Path, invocation: Invocation, action: str) -> None:
    install(tmp_path, SAMPLE)
    assert decide(tmp_path, invocation).action == action


def test_a_name_that_is_none_gets_no_opinion(tmp_path: Path) -> None:
    install(tmp_path, SAMPLE)
    assert plugin.PolicyBundle().decide(Invocation(" "), GateContext(str(tmp_path), time.time())) is None


def decide(root: Path, invocation: Invocation, **facts: Any) -> Decision:
    found = plugin.PolicyBundle().decide(invocation, GateContext(str(root), time.time(), **facts))
    assert found is not None
    return found


def test_no_bundle_and_a_broken_one_are_errors_that_the_core_knows(tmp_path: Path) -> None:
    with pytest.raises(BundleMissing):
        decide(tmp_path, Invocation("x"))
    install(tmp_path, SAMPLE)
    (tmp_path / "gate" / "bundle.json").write_bytes(b"{")
    with pytest.raises(BundleError, match="no JSON document"):
        decide(tmp_path, Invocation("x"))


def test_explain_gives_every_rule_and_the_same_decision(tmp_path: Path) -> None:
    rows = [
        {"policy_id": f"p{n}", "name": f"P{n}", "matcher_type": "namespace", "match_value": "acme", "action": action}
        for n, action in enumerate(("warn", "halt", "warn", "halt"))
    ]
    install(tmp_path, payload(policies=rows))
    short = decide(tmp_path, Invocation("wipe-disk"))
    full = decide(tmp_path, Invocation("wipe-disk"), explain=True)
    assert [rule for _, rule, _ in full.rules] == ["policy:p1", "policy:p3", "status:banned", "policy:p0", "policy:p2"]
    assert [rule for _, rule, _ in short.rules] == ["policy:p1"]
    assert (short.action, short.rule, short.reason) == (full.action, full.rule, full.reason)


# ------------------------------------------------------------------------------------------------- drift


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """An installed skill in two files, older than the kept digests need."""
    folder = tmp_path / "skills" / "deploy"
    folder.mkdir(parents=True)
    for name in ("SKILL.md", "run.sh"):
        (folder / name).write_text(name)
        os.utime(folder / name, (1, 1))
    return folder / "SKILL.md"


def bundle(root: Path, digest: "str | None", **more: object) -> None:
    entry = {"version": "1", "status": "approved", "digest": digest}
    install(root, payload(policies=[], **more) | {"manifest_index": {"acme/deploy": entry}})


def test_an_installed_copy_that_is_the_approved_one_is_allowed(tmp_path: Path, skill: Path) -> None:
    bundle(tmp_path / "root", skill_digest(str(skill.parent)))
    assert decide(tmp_path / "root", Invocation("deploy", path=str(skill))).action == "allow"


@pytest.mark.parametrize("name", ["SKILL.md", "run.sh", "new.txt"])
def test_an_installed_copy_that_was_changed_is_a_warning(tmp_path: Path, skill: Path, name: str) -> None:
    bundle(tmp_path / "root", skill_digest(str(skill.parent)))
    invocation = Invocation("deploy", path=str(skill))
    assert decide(tmp_path / "root", invocation).action == "allow"
    (skill.parent / name).write_text("changed")
    found = decide(tmp_path / "root", invocation)
    assert (found.action, found.rule) == ("warn", "drifted")
    assert "drifted" in found.reason


def test_a_policy_may_make_drift_a_block_or_nothing(tmp_path: Path, skill: Path) -> None:
    for action, wanted in (("halt", "block"), ("warn", "warn"), ("allow", "allow")):
        root = tmp_path / action
        row = {"policy_id": "d", "name": "No drift", "matcher_type": "drifted", "match_value": "*", "action": action}
        entry = {"version": "1", "digest": "sha256:" + "0" * 64}
        install(root, payload(policies=[row], manifest_index={"acme/deploy": entry}))
        found = decide(root, Invocation("deploy", path=str(skill)))
        assert (found.action, found.rule) == (wanted, "policy:d")


@pytest.mark.parametrize("digest", [None, "", "md5:abc", 7])
def test_without_a_digest_there_is_no_drift(tmp_path: Path, skill: Path, digest: object) -> None:
    bundle(tmp_path / "root", digest)  # type: ignore[arg-type]
    assert decide(tmp_path / "root", Invocation("deploy", path=str(skill))).action == "allow"


def test_a_ban_is_named_before_drift(tmp_path: Path, skill: Path) -> None:
    entry = {"status": "banned", "digest": "sha256:" + "0" * 64}
    install(tmp_path / "root", payload(policies=[], manifest_index={"acme/deploy": entry}))
    assert decide(tmp_path / "root", Invocation("deploy", path=str(skill))).rule == "status:banned"


def test_a_copy_that_cannot_be_read_is_no_drift(tmp_path: Path) -> None:
    bundle(tmp_path / "root", "sha256:" + "0" * 64)
    assert decide(tmp_path / "root", Invocation("deploy", path=str(tmp_path / "gone" / "SKILL.md"))).action == "allow"


def test_of_two_entries_of_that_name_the_copy_may_be_either(tmp_path: Path, skill: Path) -> None:
    entries = {
        "acme/deploy": {"digest": "sha256:" + "0" * 64},
        "beta/deploy": {"digest": skill_digest(str(skill.parent))},
    }
    install(tmp_path / "root", payload(policies=[], manifest_index=entries))
    assert decide(tmp_path / "root", Invocation("deploy", path=str(skill))).action == "allow"

"""``gstack gate``: the worked examples byte for byte, exit codes, streams, commands for authors (gate G3, G7)."""

import io
import json
import sys
import time
from pathlib import Path

import pytest
from gate_support import BASE, PUBLIC, SAMPLE, envelope, install, payload

from gstack.cli import main

NOT_CONFIGURED = (
    "gstack: not configured on this machine — run `gstack login`. "
    "This call was not checked against your organisation's policy.\n"
)


@pytest.fixture
def root(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder without a bundle, standing in an empty folder."""
    found = home / "state"
    found.mkdir(mode=0o700)
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(found))
    monkeypatch.setenv("USER", "alice")
    monkeypatch.chdir(home)
    return found


@pytest.fixture
def synced(root: Path) -> Path:
    install(root, SAMPLE)
    return root


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> "tuple[int, str, str]":
    code = main(list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_worked_examples(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "gate", "--skill", "acme/hubspot-crm-entry") == (0, "✓ ALLOW acme/hubspot-crm-entry@1.3.0\n", "")
    warned = "⚠ WARN acme/onboard-customer — Skill is deprecated.\n"
    assert run(capsys, "gate", "--skill", "acme/onboard-customer") == (0, "", warned)
    blocked = (
        "⛔ BLOCKED acme/teamleader-crm-entry\n"
        "   policy: Teamleader retired\n"
        "   Use acme/hubspot-crm-entry instead.\n"
        f"   need it? ask for an exception: {BASE}/acme/requests/exception"
        "?policy=pol_teamleader&skill=acme%2Fteamleader-crm-entry\n"
    )
    assert run(capsys, "gate", "--skill", "acme/teamleader-crm-entry") == (2, "", blocked)


def test_a_ban_by_status_has_no_policy_line(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, said = run(capsys, "gate", "--skill", "wipe-disk")
    assert said.splitlines()[:2] == ["⛔ BLOCKED acme/wipe-disk", "   Skill version is banned by the organisation."]


def test_on_a_file_base_there_is_no_page_to_ask_on(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gate_support import trust

    from gstack.gate.bundle import install_bundle

    trust(root, base="file:///site")
    install_bundle(str(root), envelope(SAMPLE))
    _, _, said = run(capsys, "gate", "--skill", "wipe-disk")
    assert said.splitlines()[-1] == "   need it? ask your organisation for an exception."


def test_the_replacement_is_named_once(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {**SAMPLE["policies"][0], "reason": "Retired."}
    install(root, payload(policies=[row]))
    _, _, said = run(capsys, "gate", "--skill", "teamleader-crm-entry")
    assert "   Retired.\n   Use acme/hubspot-crm-entry instead.\n" in said


@pytest.mark.parametrize("name", ["Teamleader-CRM-entry", "/teamleader-crm-entry x", "acme:teamleader-crm-entry"])
def test_skill_takes_the_same_forms(synced: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(capsys, "gate", "--skill", name)[0] == 2


def test_skill_matches_any_kind(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "gate", "--skill", "auditor")[0] == 2
    assert run(capsys, "gate", "--skill", "ship")[0] == 0, "a command is capped at warn"


def test_skill_needs_no_host(
    synced: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CI machine may have no adapter of Claude Code: the bundle decides all the same."""
    monkeypatch.setenv("GSTACK_DISABLED_PLUGINS", "claude-code")
    assert run(capsys, "gate", "--skill", "acme:teamleader-crm-entry")[0] == 2
    code, out, err = run(capsys, "gate", "--skill", "hubspot-crm-entry")
    assert (code, out.split()[1]) == (0, "ALLOW")
    assert "no host adapter works here" in err


def test_an_installed_skills_frontmatter_name_means_it(
    synced: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home / ".claude" / "skills" / "wipe-disk"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: innocent\ndescription: x\n---\n")
    assert run(capsys, "gate", "--skill", "innocent")[0] == 2


def test_quiet_hides_an_allow_only(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "gate", "--skill", "acme/hubspot-crm-entry", "--quiet") == (0, "", "")
    assert run(capsys, "gate", "-q", "--skill", "onboard-customer")[2]
    assert run(capsys, "gate", "-q", "--skill", "wipe-disk")[0] == 2


def test_json_has_the_decision_and_every_rule(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "gate", "--skill", "teamleader-crm-entry", "--json")
    found = json.loads(out)
    assert (code, err) == (2, "")
    assert found["decision"] == "block"
    assert (found["skill_name"], found["version"], found["policy_id"]) == (
        "acme/teamleader-crm-entry", "1.0.0", "pol_teamleader",
    )  # fmt: skip
    assert found["rules"] == [
        {"action": "block", "rule": "policy:pol_teamleader", "reason": "Use acme/hubspot-crm-entry instead."}
    ]
    assert found["bundle"] == {"org": "acme", "version": 7, "key_id": PUBLIC.id}
    assert found["exception_url"].endswith("skill=acme%2Fteamleader-crm-entry")
    code, out, _ = run(capsys, "gate", "--skill", "acme/hubspot-crm-entry", "--json", "--quiet")
    assert json.loads(out)["decision"] == "allow", "--quiet is about the allow line"


def test_explain_lists_the_rules_on_the_same_stream(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(capsys, "gate", "--skill", "wipe-disk", "--explain")
    assert out == ""
    assert err.splitlines()[-2:] == ["rules:", "  block  status:banned  Skill version is banned by the organisation."]
    assert run(capsys, "gate", "--skill", "hubspot-crm-entry", "--explain")[1].splitlines()[1:] == [
        "rules:", "  allow  approved",
    ]  # fmt: skip


def test_no_bundle(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "gate", "--skill", "acme/x") == (0, "", NOT_CONFIGURED)
    code, out, err = run(capsys, "gate", "--skill", "acme/x", "--require-bundle")
    assert (code, out) == (3, "")
    assert err.startswith("GSTACK_BUNDLE_ERROR: there is no policy bundle on this machine: run 'gstack sync', or ")
    code, out, _ = run(capsys, "gate", "--skill", "acme/x", "--json")
    assert (code, json.loads(out)["decision"], json.loads(out)["notices"]) == (0, None, [NOT_CONFIGURED.strip()])


def test_a_bundle_that_fails_verification_exits_3(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = synced / "gate" / "bundle.json"
    path.write_bytes(path.read_bytes().replace(b"banned", b"active"))
    code, out, err = run(capsys, "gate", "--skill", "wipe-disk")
    assert (code, out) == (3, "")
    assert err.startswith("GSTACK_BUNDLE_ERROR: the bundle's signature isn't by key ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bogus"],
        ["--skill"],
        ["--skill", ""],
        ["--skill", " / "],
        ["--json"],
        ["--explain"],
        ["--require-bundle"],
        ["bogus"],
        ["--skill", "x", "simulate", "--bundle", "f"],
        ["allow", "x"],
        ["allow", "x", "--reason", "y", "--for", "soon"],
        ["allow", "x", "--reason", "y", "--for", "0h"],
        ["allow", "x", "--reason", "y", "--for", "8d"],
        ["simulate"],
        ["simulate", "--bundle", "f", "--since", "yesterday"],
        ["test"],
    ],
)
def test_wrong_usage_exits_3_because_2_means_block(
    synced: Path, capsys: pytest.CaptureFixture[str], arguments: "list[str]"
) -> None:
    code, _, err = run(capsys, "gate", *arguments)
    assert code == 3
    assert err.startswith("GSTACK_USAGE: ")
    assert err.count("\n") == 1


def test_a_terminal_on_standard_input_gets_the_usage(
    synced: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    code, _, err = run(capsys, "gate")
    assert code == 3
    assert "usage: gstack gate --skill NAME" in err


@pytest.mark.parametrize(
    ("arguments", "variables", "tty", "styled"),
    [
        ([], {}, True, True),
        ([], {}, False, False),
        (["--no-color"], {}, True, False),
        ([], {"NO_COLOR": "1"}, True, False),
        ([], {"TERM": "dumb"}, True, False),
    ],
)
def test_colour_only_on_a_real_terminal_and_nothing_else_changes(
    synced: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: "list[str]",
    variables: "dict[str, str]",
    tty: bool,
    styled: bool,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shown = {}
    for name in ("stdout", "stderr"):
        shown[name] = stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda: tty)
        monkeypatch.setattr(sys, name, stream)
    assert main(["gate", "--skill", "acme/onboard-customer", *arguments]) == 0
    text = shown["stderr"].getvalue()
    assert shown["stdout"].getvalue() == ""
    assert ("\x1b[" in text) is styled
    assert (
        text.replace("\x1b[33m", "").replace("\x1b[0m", "") == "⚠ WARN acme/onboard-customer — Skill is deprecated.\n"
    )


def test_a_resolver_that_fails_is_said_and_changes_no_stream(
    synced: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: object, group: str) -> "list[tuple[str, object]]":
        class Broken:
            name = "broken"

            def decide(self, invocation: object, context: object) -> None:
                raise RuntimeError("x")

        return [("vendor.broken", Broken())] if group == "gstack.gate_resolvers" else []

    monkeypatch.setattr("gstack.plan.Plan.objects", failing)
    code, out, err = run(capsys, "gate", "--skill", "x")
    assert (code, out) == (0, "")
    assert "the gate resolver vendor.broken was left out" in err


# ------------------------------------------------------------------------------------------------- allow


FREEZE = {
    "policy_id": "p-freeze",
    "name": "Freeze",
    "matcher_type": "name",
    "match_value": "acme/hubspot*",
    "action": "halt",
    "reason": "Until January.",
    "overridable": True,
}


def test_allow_lets_through_what_may_be_overridden_and_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(root, payload(policies=[FREEZE]))
    (root / "gate" / "credentials.json").write_text(
        json.dumps({"base_url": "https://127.0.0.1:1", "org": "acme", "key": "k"})
    )
    (root / "gate" / "sync.json").write_text(json.dumps({"last_success": time.time()}))
    assert run(capsys, "gate", "--skill", "hubspot-crm-entry")[0] == 2
    code, out, _ = run(capsys, "gate", "allow", "hubspot-crm-entry", "--for", "2h", "--reason", "hotfix  4711")
    assert code == 0
    assert out.startswith("acme/hubspot-crm-entry is allowed on this machine until ")
    code, _, err = run(capsys, "gate", "--skill", "hubspot-crm-entry")
    assert code == 0
    assert err.startswith("⚠ WARN acme/hubspot-crm-entry — Blocked by policy Freeze, allowed on this machine until ")
    assert err.endswith(": hotfix 4711.\n")
    events = [json.loads(line) for line in (root / "gate" / "audit-spool.jsonl").read_text().splitlines()]
    assert [one["decision"] for one in events] == ["blocked", "allowed", "warned"]
    assert events[1]["reason"] == "overridden on this machine for 120 minutes: hotfix 4711"
    assert events[1]["policy_id"] == "p-freeze"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("{}", "Your organisation is told"),
        ("full", "not be recorded: the server takes no events, or"),
        ("dir", "not be"),
    ],
)
def test_allow_says_whether_it_could_be_recorded(
    root: Path, capsys: pytest.CaptureFixture[str], state: str, words: str
) -> None:
    install(root, payload(policies=[FREEZE]))
    credentials = {"base_url": "https://127.0.0.1:1", "org": "acme", "key": "k"}
    (root / "gate" / "credentials.json").write_text(json.dumps(credentials))
    spool = root / "gate" / "audit-spool.jsonl"
    if state == "dir":
        spool.mkdir()
    elif state == "full":
        spool.write_text('{"event_id": "x"}\n' * 60_000)
    code, _, err = run(capsys, "gate", "allow", "hubspot-crm-entry", "--reason", "hotfix")
    assert code == 0
    assert words in err
    assert ("is told" in err) == (state == "{}")


def test_allow_refuses_what_may_not_be_overridden(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "gate", "allow", "wipe-disk", "--reason", "x")
    assert (code, out) == (1, "")
    assert "can't be overridden here; ask for an exception: https://" in err
    assert not (synced / "gate" / "overrides.json").exists()


def test_allow_has_nothing_to_do_where_nothing_blocks(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "isn't blocked" in run(capsys, "gate", "allow", "hubspot-crm-entry", "--reason", "x")[2]


def test_allow_without_a_bundle(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "gate", "allow", "x", "--reason", "y")[0] == 3


def piped(monkeypatch: pytest.MonkeyPatch, root: Path, text: str, **variables: str) -> "tuple[int, str]":
    """``gstack gate`` as somebody pipes into it: the real process."""
    import os
    import subprocess

    env = {"PATH": os.environ["PATH"], "HOME": str(root.parent), "GSTACK_STATE_ROOT": str(root), **variables}
    done = subprocess.run(
        [sys.executable, "-m", "gstack", "gate"], input=text, capture_output=True, text=True, env=env, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_without_skill_it_is_the_hook(synced: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"tool_name":"Skill","tool_input":{"skill":"acme/teamleader-crm-entry"}}'
    code, out = piped(monkeypatch, synced, text)
    found = json.loads(out)["hookSpecificOutput"]
    assert (code, found["permissionDecision"]) == (0, "deny")
    assert found["permissionDecisionReason"].startswith("gstack blocked this skill — policy: Teamleader retired. Use ")
    assert piped(monkeypatch, synced, text, GSTACK_GATE="off") == (0, "")
    for broken in ("", "{", "[]", "7", '{"tool_name":"Skill"}', '{"tool_name":7,"tool_input":{}}'):
        assert piped(monkeypatch, synced, broken) == (0, "")


def test_require_bundle_is_about_the_bundle_and_not_the_name(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "gate", "--skill", "skillsvault/skillsvault", "--require-bundle")[0] == 3
    install(root, SAMPLE)
    assert run(capsys, "gate", "--skill", "skillsvault/skillsvault", "--require-bundle")[:2] == (
        0, "✓ ALLOW skillsvault/skillsvault — skillsvault system skill.\n",
    )  # fmt: skip


def test_require_bundle_fails_where_the_bundle_is_not_asked(
    synced: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = ("gate", "--skill", "acme/hubspot-crm-entry")
    assert run(capsys, *name, "--require-bundle")[0] == 0
    with monkeypatch.context() as patch:

        def broken(*_: object) -> None:
            raise RuntimeError("x")

        patch.setattr("gstack_plugins.policy_bundle.PolicyBundle.decide", broken)
        code, _, err = run(capsys, *name, "--require-bundle")
        assert (code, err.count("\n")) == (3, 1)
        assert "policy_bundle failed" in err
    assert run(capsys, "plugins", "disable", "policy_bundle")[0] == 0
    code, out, err = run(capsys, *name, "--require-bundle")
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "gstack plugins list" in err
    code, out, _ = run(capsys, *name, "--json")
    assert code == 0
    assert any("gstack plugins list" in text for text in json.loads(out)["notices"])
    assert "gstack plugins list" in run(capsys, *name)[2]


def test_what_a_bundle_holds_that_is_unknown_is_logged_once(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(root, payload(policies=[{"name": "Odd", "matcher_type": "mood", "action": "halt"}]))
    for _ in range(3):
        run(capsys, "gate", "--skill", "hubspot-crm-entry")
    log = (root / "hooks" / "skill-gate.log").read_text()
    assert log.count("unknown matcher type 'mood'") == 1

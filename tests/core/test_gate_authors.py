"""``gate test`` and ``gate simulate``, for whoever writes policy (gate G7)."""

import json
import time
from pathlib import Path

import pytest
from gate_support import SAMPLE, envelope, install, payload

from gstack.cli import main
from gstack.gate.simulate import parse_line
from gstack.logs import log

FREEZE = {
    "policy_id": "p-freeze",
    "name": "Freeze",
    "matcher_type": "name",
    "match_value": "acme/hubspot*",
    "action": "halt",
    "reason": "Until January.",
    "overridable": True,
}


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


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_table_of_cases(synced: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = write(
        home / "cases.yaml",
        "cases:\n"
        "  - {skill: acme/teamleader-crm-entry, expect: block, policy: Teamleader retired, reason: hubspot}\n"
        "  - {skill: plan, kind: subagent, expect: allow}\n"
        "  - {skill: acme/ship, kind: command, expect: warn}\n"
        "  - {skill: acme/onboard-customer, expect: block}\n"
        "  - {skill: acme/wipe-disk, expect: block, policy: Teamleader retired}\n",
    )
    code, out, _ = run(capsys, "gate", "test", cases)
    assert code == 1
    assert out.splitlines() == [
        "✗ acme/onboard-customer: expected block, got warn by status:deprecated",
        "✗ acme/wipe-disk: expected policy Teamleader retired, got status:banned",
        "3 of 5 cases are as expected",
    ]
    code, out, _ = run(capsys, "gate", "test", cases, "--json")
    assert (code, json.loads(out)["failed"]) == (1, 2)


def test_a_key_that_stands_twice_in_a_case(synced: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = write(home / "cases.yaml", "cases:\n  - skill: a/b\n    expect: block\n    expect: allow\n")
    code, out, err = run(capsys, "gate", "test", cases)
    assert (code, out) == (3, "")
    assert err.endswith(f"{cases}: line 4: the key 'expect' stands twice in one mapping\n")


def test_cases_may_name_their_policy_machine_user_and_time(
    root: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = FREEZE | {"expires_at": "2027-01-31", "exceptions": [{"user": "alice", "machine": "m1"}]}
    (home / "bundle.json").write_bytes(envelope(payload(policies=[row])))
    cases = write(
        home / "cases.yaml",
        "bundle: bundle.json\n"
        "cases:\n"
        "  - {skill: hubspot-crm-entry, expect: block, at: 2026-12-01}\n"
        "  - {skill: hubspot-crm-entry, expect: allow, at: 2027-02-01}\n"
        "  - {skill: hubspot-crm-entry, expect: allow, at: 2026-12-01, user: alice, machine: m1}\n"
        "  - {skill: hubspot-crm-entry, expect: block, at: 2026-12-01, user: alice}\n",
    )
    assert run(capsys, "gate", "test", cases)[:2] == (0, "4 of 4 cases are as expected\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no cases"),
        ("cases: []", "holds no cases"),
        ("cases: {", "is no YAML"),
        ("- 7", "case 1: it is no mapping"),
        ("- {expect: block}", "case 1: skill and the other fields must be texts"),
        ("- {skill: x}", "case 1: expect must be one of allow, warn, block"),
        ("- {skill: x, expect: maybe}", "case 1: expect must be one of"),
        ("- {skill: x, expect: allow, kind: thing}", "case 1: kind must be one of"),
        ("- {skill: x, expect: allow, at: soon}", "case 1: at: 'soon' is no time"),
        ("- {skill: x, expected: allow}", "case 1: unknown field 'expected'"),
        ("bundle: 7\ncases: [{skill: x, expect: allow}]", "bundle is no path"),
    ],
)
def test_broken_tables_of_cases(
    synced: Path, home: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    code, _, err = run(capsys, "gate", "test", write(home / "cases.yaml", text))
    assert code == 3
    assert words in err
    assert err.count("\n") == 1


def test_missing_files_of_cases(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "gate", "test", "none.yaml") == (
        3, "", "GSTACK_STATE_ERROR: none.yaml can't be read: No such file or directory\n",
    )  # fmt: skip


def test_simulate_shows_what_another_bundle_would_change(
    synced: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = synced / "hooks" / "skill-gate.log"
    log.parent.mkdir()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    crm = "name=acme/hubspot-crm-entry"
    lines = [
        "2020-01-01T00:00:00Z s1 decision=allow name=acme/old rule=approved invoked=old kind=skill",
        f"{stamp} s1 decision=allow {crm} rule=approved invoked=hubspot-crm-entry kind=skill host=x",
        f"{stamp} s1 decision=warn {crm} rule=stale base=allow invoked=alias as=hubspot-crm-entry kind=skill",
        f"{stamp} s1 decision=block name=acme/wipe-disk rule=status:banned invoked=wipe-disk kind=skill",
        f"{stamp} s1 decision=none invoked=free kind=subagent bundle=missing",
        f"{stamp} s1 error resolver=x what=y",
        "broken line",
        "",
    ]
    log.write_text("\n".join(lines))
    other = payload(
        policies=[{**FREEZE, "expires_at": None}], manifest_index=SAMPLE["manifest_index"] | {"acme/wipe-disk": {}}
    )
    (home / "other.json").write_text(json.dumps(other))
    code, out, _ = run(capsys, "gate", "simulate", "--bundle", "other.json", "--since", "7d", "--json")
    found = json.loads(out)
    assert (code, found["uses"]) == (0, 4)
    assert found["before"] == {"allow": 2, "block": 1, "none": 1}
    assert [(one["name"], one["before"], one["after"], one["uses"]) for one in found["changes"]] == [
        ("acme/hubspot-crm-entry", "allow", "block", 2),
        ("acme/wipe-disk", "block", "allow", 1),
        ("free", "none", "allow", 1),
    ]
    code, out, _ = run(capsys, "gate", "simulate", "--bundle", "other.json")
    assert out.splitlines()[0] == "4 uses, 4 of them would be decided otherwise"
    assert all(len(line) <= 80 for line in out.splitlines())


def test_simulate_reads_what_the_gate_wrote(synced: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("hubspot-crm-entry", "wipe-disk"):
        run(capsys, "gate", "--skill", name)
    (home / "same.json").write_bytes(envelope(SAMPLE))
    out = json.loads(run(capsys, "gate", "simulate", "--bundle", "same.json", "--json")[1])
    assert (out["uses"], out["changes"]) == (2, [])


def test_simulate_without_a_log(root: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "b.json").write_bytes(envelope(SAMPLE))
    assert "no uses were logged" in run(capsys, "gate", "simulate", "--bundle", "b.json")[1]


@pytest.mark.parametrize(
    "line", ["", "x y", "x y decision=allow", "2026-01-01T00:00:00Z - decision=allow invoked=x kind=odd"]
)
def test_lines_that_tell_of_no_use(line: str) -> None:
    assert parse_line(line) is None


def test_simulate_as_a_page(root: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "page-bundle.json"
    bundle.write_text(json.dumps(payload()))
    log(
        str(root), "skill-gate", "s1", "decision=allow name=acme/wipe-disk base=allow invoked=acme/wipe-disk kind=skill"
    )
    page = tmp_path / "changes.html"
    code, out, _ = run(capsys, "gate", "simulate", "--bundle", str(bundle), "--html", str(page))
    assert code == 0
    assert out.endswith(f"written: {page}\n")
    text = page.read_text("utf-8")
    assert "acme/wipe-disk" in text
    assert "1 uses logged on this machine" in text
    assert run(capsys, "gate", "simulate", "--bundle", str(bundle), "--html", str(tmp_path))[0] == 3

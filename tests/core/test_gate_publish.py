"""``gstack bundle``: keys, signing, building, linting, looking (gate G4, G7)."""

import base64
import functools
import http.server
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import skillsvault
from gate_support import NOW, OTHER_PRIVATE, OTHER_PUBLIC, PRIVATE, PUBLIC, envelope, payload

from gstack.api import GateContext, Invocation
from gstack.cli import main
from gstack.errors import BundleError, CheckFailed
from gstack.gate import publish
from gstack.gate.bundle import open_bundle
from gstack.gate.decision import combine, decide_from
from gstack.gate.digest import skill_digest
from gstack.gate.package import content_digest, read_files
from gstack.gate.policydiff import diff, diff_lines
from gstack.gate.policyfile import read_policy
from gstack.gate.publish import build, preview
from gstack.gate.rules import Rulebook

POLICY = """
org: acme
namespaces: [acme, beta]
defaults: {managed_missing_manifest: warn}
policies:
  - name: Teamleader retired
    matcher_type: declared_metadata
    match_value: "targets: teamleader"
    action: block
    reason: Use acme/hubspot instead.
    replacement: acme/hubspot
  - policy_id: p2
    name: Freeze
    matcher_type: name
    match_value: beta/*
    action: warn
    overridable: true
    expires_at: 2099-01-31
    exceptions:
      - {user: alice, owner: carol, reason: migration, expires_at: 2098-12-31}
catalogue:
  acme/teamleader: {version: 1.0, targets: [teamleader]}
  acme/old: {version: 0.9.0, status: banned}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """An author's folder: a policy, two skills and a key pair."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    for where, text in (
        (
            "skills/hubspot/SKILL.md",
            "---\nname: hubspot\nversion: 1.3.0\ntargets: [hubspot]\ntags: crm, ops\n---\nbody\n",
        ),
        ("skills/hubspot/run.sh", "#!/bin/sh\n"),
        ("skills/beta/deploy/SKILL.md", "---\nname: deploy\ndescription: Deploys\nmetadata: {version: 2.0.1}\n---\n"),
        ("skills/notes.txt", "no skill"),
    ):
        path = tmp_path / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "skills/hubspot/run.sh").chmod(0o755)
    (tmp_path / "skills/hubspot/logo.bin").write_bytes(b"\xff\x00")
    (tmp_path / "private.pem").write_bytes(PRIVATE)
    (tmp_path / "other.pem").write_bytes(OTHER_PRIVATE)
    return tmp_path


def made(desk: Path, *, key: str = "private.pem", now: float = NOW, **more: Any) -> Any:
    looked = preview(str(desk / "policy.yaml"), str(desk / "skills"), now)
    return build(looked, str(desk / key), str(desk / "site"), now=now, **more)


def published(desk: Path) -> dict[str, Any]:
    return open_bundle((desk / "site/api/bundle/acme").read_bytes(), PUBLIC, "acme").payload


def test_a_site_has_everything_that_a_machine_asks_for(desk: Path) -> None:
    done = made(desk)
    assert (done.version, done.changed, done.key_id, done.skills) == (
        1,
        True,
        PUBLIC.id,
        ["beta/deploy", "acme/hubspot"],
    )
    files = sorted(path.relative_to(desk / "site").as_posix() for path in (desk / "site").rglob("*") if path.is_file())
    assert files == [
        "api/bundle/acme",
        "api/bundle/key",
        "api/content/acme/acme/hubspot.json",
        "api/content/acme/beta/deploy.json",
        "api/skills/acme",
    ]
    assert (desk / "site/api/bundle/key").read_text() == PUBLIC.pem
    assert (desk / "site/api/bundle/acme").stat().st_mode & 0o777 == 0o644
    found = published(desk)
    entry = found["manifest_index"]["acme/hubspot"]
    assert entry == {
        "version": "1.3.0",
        "status": "approved",
        "kind": "skill",
        "targets": ["hubspot"],
        "tags": ["crm", "ops"],
        "digest": skill_digest(str(desk / "skills/hubspot")),
    }
    assert found["manifest_index"]["beta/deploy"]["version"] == "2.0.1"
    assert found["manifest_index"]["acme/teamleader"]["version"] == "1.0"
    assert found["policies"][0]["action"] == "halt", "people write block, the wire says halt"
    assert found["policies"][0]["policy_id"] == "pol_teamleader_retired"
    assert found["policies"][1]["overridable"] is True
    assert found["issued_at"] == "2027-01-15T08:00:00Z"


def test_the_contents_are_those_of_the_folder(desk: Path) -> None:
    made(desk)
    listing = json.loads((desk / "site/api/skills/acme").read_text())["skills"]
    row = next(one for one in listing if one["name"] == "acme/hubspot")
    files = read_files((desk / "site/api/skills" / row["content_url"]).read_bytes())
    assert content_digest(files) == row["digest"] == skill_digest(str(desk / "skills/hubspot"))
    assert {one.path: one.executable for one in files} == {"SKILL.md": False, "logo.bin": False, "run.sh": True}


def test_the_same_input_gives_the_same_bytes_and_keeps_its_version(desk: Path) -> None:
    made(desk)
    before = (desk / "site/api/bundle/acme").read_bytes()
    again = made(desk, now=NOW + 5000)
    assert (again.changed, again.version) == (False, 1)
    assert (desk / "site/api/bundle/acme").read_bytes() == before


def test_a_change_makes_the_version_grow_and_what_is_banned_is_not_offered(desk: Path) -> None:
    made(desk)
    text = POLICY.replace("catalogue:\n", "catalogue:\n  beta/deploy: {status: banned}\n")
    (desk / "policy.yaml").write_text(text)
    again = made(desk, now=NOW + 5000)
    assert (again.changed, again.version, again.skills) == (True, 2, ["acme/hubspot"])
    assert not (desk / "site/api/content/acme/beta/deploy.json").exists()
    assert published(desk)["manifest_index"]["beta/deploy"]["status"] == "banned"


def test_a_version_that_does_not_grow_is_refused(desk: Path) -> None:
    made(desk, version=40)
    (desk / "policy.yaml").write_text(POLICY + "stale_after_s: 3600\n")
    with pytest.raises(CheckFailed, match="version 40 is not above version 40"):
        made(desk, version=40)
    assert made(desk).version == 41
    assert made(desk, version=3, force=True).version == 3


def test_a_key_that_nobody_handed_over_to_is_refused(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(desk)
    with pytest.raises(CheckFailed, match="nothing hands over to key"):
        made(desk, key="other.pem")
    (desk / "new.pem").write_text(OTHER_PUBLIC.pem)
    rotate = ["bundle", "rotate", "--old-key", str(desk / "private.pem"), "--new-key", str(desk / "new.pem")]
    assert main([*rotate, "--org", "acme", "--out", str(desk / "rotation.json")]) == 0
    assert f"key {PUBLIC.id} hands over to key {OTHER_PUBLIC.id}" in capsys.readouterr().out
    statement = json.loads((desk / "rotation.json").read_text())
    made(desk, key="other.pem", rotations=[statement])
    data = (desk / "site/api/bundle/acme").read_bytes()
    assert open_bundle(data, PUBLIC, "acme").key == OTHER_PUBLIC
    (desk / "policy.yaml").write_text(POLICY + "stale_after_s: 3600\n")
    made(desk, key="other.pem")
    data = (desk / "site/api/bundle/acme").read_bytes()
    assert open_bundle(data, PUBLIC, "acme").key == OTHER_PUBLIC, "later bundles carry the statement on"


@pytest.fixture
def server(desk: Path) -> Any:
    """The site on any file server."""
    made(desk)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(desk / "site")))
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_address[1]}"
    running.shutdown()
    running.server_close()
    thread.join()


def test_the_published_client_syncs_from_the_site_and_decides_the_same(server: str) -> None:
    client = skillsvault.create_client(server, "acme", "a-key", retries=0)
    found = client.sync()
    book = Rulebook(found)
    for name in ("acme/hubspot", "acme/teamleader", "acme/old", "acme/unknown", "free/x", "skillsvault/skillsvault"):
        theirs = client.gate(name)
        said = decide_from(book, Invocation(name), GateContext("", NOW))
        ours = combine([said]) if said is not None else None
        assert ours is not None
        assert ours.action == {"halt": "block"}.get(theirs.decision, theirs.decision), name
    assert [one["name"] for one in client.list_skills()] == ["beta/deploy", "acme/hubspot"]


# --------------------------------------------------------------------------------------------------- lint


def lint_errors(desk: Path, text: str) -> str:
    (desk / "policy.yaml").write_text(text)
    with pytest.raises(CheckFailed) as failed:
        preview(str(desk / "policy.yaml"), str(desk / "skills"), NOW)
    return failed.value.message


HEAD = "org: acme\nnamespaces: [acme]\npolicies:\n"


OPS = "name: A, matcher_type: tag, match_value: ops"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("name: A, matcher_type: mood, match_value: x, action: warn", "unknown matcher type 'mood'"),
        (
            "name: A, matcher_type: tag, match_value: no, action: warn",
            "no catalogue entry fits tag 'no', so it can never",
        ),
        ("name: A, matcher_type: kind, match_value: command, action: warn", "no catalogue entry fits kind 'command'"),
        ("name: A, matcher_type: version, match_value: '>=9', action: warn", "no catalogue entry fits version"),
        ("name: A, matcher_type: version, match_value: '^1', action: warn", "is no version range"),
        ("name: A, matcher_type: declared_metadata, match_value: x, action: warn", "no catalogue entry fits"),
        ("name: A, matcher_type: namespace, match_value: acme/x, action: warn", "is no namespace"),
        ("name: A, matcher_type: name, match_value: 'acme/a b', action: warn", "a name holds no spaces"),
        (f"{OPS}, action: explode", "unknown action 'explode'"),
        (OPS, "unknown action None"),
        ("matcher_type: tag, match_value: ops, action: warn", "policy_id is missing"),
        ("name: A, matcher_type: tag, action: warn", "match_value is missing"),
        (f"{OPS}, action: warn, expires_at: soon", "is no time such as"),
        (f"{OPS}, action: warn, expires_at: 2020-01-01", "has passed"),
        (f"{OPS}, action: warn, overridable: maybe", "overridable must be"),
        (f"{OPS}, action: warn, exceptions: {{}}", "exceptions must be a list"),
        (f"{OPS}, action: warn, exceptions: [{{user: x}}]", "an exception has no owner"),
        (f"{OPS}, action: warn, exceptions: [{{owner: x}}]", "names no name, machine"),
        (f"{OPS}, action: warn, exceptions: [7]", "an exception is no mapping"),
        (f"{OPS}, action: warn, replacement: acme/bad", "is blocked itself"),
        (f"{OPS}, action: warn, reasn: x", "unknown key 'reasn'"),
        (f"{OPS}, action: warn}}\n  - {{{OPS}, action: warn", "used more than once"),
    ],
)
def test_mistakes_in_a_policy_are_errors_for_the_author(desk: Path, policy: str, words: str) -> None:
    tail = "\ncatalogue: {acme/bad: {version: '1', status: banned}}\n"
    assert words in lint_errors(desk, HEAD + f"  - {{{policy}}}" + tail)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("org: key\nnamespaces: []\n", "can't be called 'key'"),
        ("org: a/b\nnamespaces: []\n", "can't be an organisation"),
        ("namespaces: []\n", "org is missing"),
        ("org: acme\n", "namespaces must be a list"),
        ("org: acme\nnamespaces: []\npolices: []\n", "unknown key 'polices'"),
        ("org: acme\nnamespaces: []\npolicies: {}\n", "policies must be a list"),
        ("org: acme\nnamespaces: []\nversion: soon\n", "is no whole number"),
        ("org: acme\nnamespaces: []\ndefaults: {unmanagd: warn}\n", "unknown key 'unmanagd'"),
        ("org: acme\nnamespaces: []\ndefaults: {unmanaged: odd}\n", "unknown action 'odd'"),
        ("org: acme\nnamespaces: []\nstale_action: odd\n", "stale_action 'odd'"),
        ("org: acme\nnamespaces: []\nstale_after_s: soon\n", "stale_after_s 'soon'"),
        ("org: acme\nnamespaces: []\nrequests_url: here\n", "requests_url must be"),
        ("org: acme\nnamespaces: []\ngate_lock: maybe\n", "gate_lock must be"),
        ("org: acme\nnamespaces: []\ncatalogue: {'a b': {version: '1'}}\n", "use letters, digits"),
        ("org: acme\nnamespaces: []\ncatalogue: {a/../b: {version: '1'}}\n", "use letters, digits"),
        ("org: acme\nnamespaces: []\ncatalogue: {a/b: {version: '1', status: odd}}\n", "unknown status 'odd'"),
        ("org: acme\nnamespaces: []\ncatalogue: {a/b: {version: '1', kind: odd}}\n", "unknown kind 'odd'"),
        ("org: acme\nnamespaces: []\ncatalogue: {a/b: {status: banned}}\n", "it has no version"),
        ("org: acme\nnamespaces: []\ncatalogue: {a/b: {version: '1'}, A/B: {version: '1'}}\n", "differ by case only"),
        ("org: acme\nnamespaces: []\ncatalogue: []\n", "catalogue must map names"),
    ],
)
def test_mistakes_around_the_policies(desk: Path, text: str, words: str) -> None:
    assert words in lint_errors(desk, text)


def test_a_key_that_stands_twice_is_named_with_its_line(desk: Path) -> None:
    said = lint_errors(desk, POLICY + "  acme/new: {version: 1.0,\n    version: 1.1}\norg: acme\n")
    file = desk / "policy.yaml"
    assert [line.strip() for line in said.splitlines()[1:3]] == [
        f"{file}, line 26: the key 'org' stands twice in one mapping",
        f"{file}, line 25: the key 'version' stands twice in one mapping",
    ]


def test_a_key_that_stands_twice_in_a_skill_is_worth_a_look(desk: Path) -> None:
    file = desk / "skills/hubspot/SKILL.md"
    file.write_text("---\nname: hubspot\nversion: 1.3.0\nversion: 1.4.0\n---\nbody\n")
    looked = preview(str(desk / "policy.yaml"), str(desk / "skills"), NOW)
    assert looked.draft.warnings == [
        f"{file}: the key 'version' stands twice in one mapping; the last one counts"
    ]  # fmt: skip


def test_what_is_more_than_a_machine_takes_is_worth_a_look(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "LIMIT", 700)
    monkeypatch.setattr(publish, "BUNDLE_LIMIT", 1000)
    (desk / "skills/hubspot/more.txt").write_text("x" * 700)
    (desk / "skills/beta/deploy/aux.txt").write_text("a device's name on some systems")
    said = preview(str(desk / "policy.yaml"), str(desk / "skills"), NOW).draft.warnings
    assert said == [
        "the bundle has 0.0 MiB, and machines take at most 0: they will refuse it",
        "beta/deploy: machines won't install it: the path 'aux.txt' means something else on some system: refused",
        "acme/hubspot: its files have 0.0 MiB, and machines take at most 0: they won't install it",
    ]
    monkeypatch.setattr(publish, "LIMIT", 10)
    assert "they won't install any" in "\n".join(
        preview(str(desk / "policy.yaml"), str(desk / "skills"), NOW).draft.warnings
    )


def test_every_mistake_is_named_at_once(desk: Path) -> None:
    said = lint_errors(desk, HEAD + "  - {name: A, matcher_type: mood, match_value: x, action: odd}\n")
    assert len(said.splitlines()) == 3


def test_a_policy_for_unregistered_names_is_only_worth_a_look(desk: Path) -> None:
    (desk / "policy.yaml").write_text(
        HEAD + "  - {name: A, matcher_type: namespace, match_value: tools, action: block}\n"
    )
    looked = preview(str(desk / "policy.yaml"), None, NOW)
    assert looked.counts == [("A", 0)]
    assert looked.draft.warnings == ["policy A matches no catalogue entry, only names that aren't registered"]


def test_the_payload_of_a_draft_decides_as_previewed(desk: Path) -> None:
    looked = preview(str(desk / "policy.yaml"), str(desk / "skills"), NOW)
    assert looked.counts == [("Teamleader retired", 1), ("Freeze", 1)]
    for label, count in looked.counts:
        hit = 0
        for name in looked.draft.payload["manifest_index"]:
            said = decide_from(Rulebook(looked.draft.payload), Invocation(name), GateContext("", NOW))
            assert said is not None
            hit += said.policy_name == label
        assert hit == count


# ---------------------------------------------------------------------------------------------------- cli


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> "tuple[int, str, str]":
    code = main(["bundle", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def at_desk(desk: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(home / "state"))
    monkeypatch.chdir(desk)
    return desk


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_nothing_from_outside_of_a_skill_is_published(at_desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skill = at_desk / "skills" / "hubspot"
    (skill / ".env").write_text("TOKEN=1")
    (skill / "alias.sh").symlink_to("run.sh")
    command = ("build", "policy.yaml", "--skills", "skills")
    code, _, err = run(capsys, *command, "--preview")
    assert code == 0
    assert "hidden file .env" in err
    (skill / "notes.md").symlink_to(at_desk / "private.pem")
    for more in (("--preview",), ("--key", "private.pem", "--out", "site")):
        code, _, err = run(capsys, *command, *more)
        assert code == 1
        assert f"{Path('skills', 'hubspot', 'notes.md')} is a link that leads out" in err
    assert not (at_desk / "site").exists()


def test_keygen_makes_a_pair_once(at_desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "keygen", "--out", "keys")
    assert code == 0
    assert (at_desk / "keys/private.pem").stat().st_mode & 0o777 == 0o600
    before = (at_desk / "keys/private.pem").read_bytes()
    code, _, err = run(capsys, "keygen", "--out", "keys")
    assert (code, (at_desk / "keys/private.pem").read_bytes()) == (3, before)
    assert "exists" in err
    assert run(capsys, "keygen", "--out", "keys", "--force")[0] == 0
    assert "PRIVATE" not in out


def test_preview_writes_nothing(at_desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(at_desk.rglob("*"))
    code, out, _ = run(capsys, "build", "policy.yaml", "--skills", "skills", "--preview")
    assert (code, out) == (0, "policy Teamleader retired matches 1 entry\npolicy Freeze matches 1 entry\n")
    assert sorted(at_desk.rglob("*")) == before
    code, out, _ = run(capsys, "build", "policy.yaml", "--preview", "--json")
    found = json.loads(out)
    assert (code, found["entries"], found["policies"][1]) == (0, 2, {"policy": "Freeze", "entries": 0})
    assert found["warnings"][0] == "policy Teamleader retired: the replacement acme/hubspot isn't in the catalogue"


def test_build_says_what_it_did(at_desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build_it = ("build", "policy.yaml", "--skills", "skills", "--key", "private.pem", "--out", "site")
    assert f"wrote site: acme version 1, 2 skills, key {PUBLIC.id}" in run(capsys, *build_it)[1]
    assert "nothing changed in site: acme version 1" in run(capsys, *build_it)[1]
    found = json.loads(run(capsys, *build_it, "--json")[1])
    assert (found["version"], found["changed"], found["entries"]) == (1, False, 4)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["build", "policy.yaml"], 2, "build needs --key FILE and --out DIR"),
        (["build", "none.yaml", "--preview"], 3, "none.yaml can't be read"),
        (["build", "policy.yaml", "--skills", "none", "--preview"], 3, "none can't be read"),
        (["build", "private.pem", "--preview"], 3, ""),
        (["build", "policy.yaml", "--skills", "skills", "--key", "policy.yaml", "--out", "o"], 3, "no Ed25519 key"),
        (["sign", "policy.yaml", "--key", "none.pem", "--out", "o"], 3, "none.pem can't be read"),
        (["sign", "skills/hubspot/logo.bin", "--key", "private.pem", "--out", "o"], 3, "is no UTF-8 text"),
        (["sign", "policy.yaml", "--key", "private.pem", "--out", "policy.yaml/x"], 3, "can't be written"),
        (["verify", "policy.yaml"], 2, "verify needs --key FILE"),
        (["verify", "policy.yaml", "--key", "policy.yaml"], 3, "no Ed25519 key"),
        (["verify"], 3, "there is no policy bundle"),
        (["show", "policy.yaml"], 3, "is no JSON document"),
        (["diff", "-", "policy.yaml"], 3, "there is no policy bundle"),
        (
            ["rotate", "--old-key", "private.pem", "--new-key", "private.pem", "--org", "a", "--out", "o"],
            3,
            "no Ed25519",
        ),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_bad_input_is_one_clear_line(
    at_desk: Path, capsys: pytest.CaptureFixture[str], arguments: "list[str]", code: int, words: str
) -> None:
    got, _, err = run(capsys, *arguments)
    assert got == code
    assert words in err
    assert err.count("\n") == 1
    assert "PRIVATE KEY" not in err


def test_sign_signs_what_it_is_given(at_desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (at_desk / "payload.json").write_text('{"anything": "goes",\n "ü": 1}')
    assert run(capsys, "sign", "payload.json", "--key", "private.pem", "--out", "envelope")[0] == 0
    found = json.loads((at_desk / "envelope").read_text())
    assert found["payload"] == '{"anything": "goes",\n "ü": 1}'
    assert PUBLIC.signed(found["payload"].encode(), base64.b64decode(found["signature"]))


def test_sign_and_rotate_never_write_over_what_they_read(at_desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (at_desk / "payload.json").write_text("{}")
    (at_desk / "public.pem").write_text(PUBLIC.pem)
    (at_desk / "link").hardlink_to(at_desk / "private.pem")
    sign = ("sign", "payload.json", "--key", "private.pem")
    rotate = ("rotate", "--old-key", "other.pem", "--new-key", "public.pem", "--org", "acme")
    targets = [(sign, "payload.json"), (sign, "private.pem"), (sign, "link"), (rotate, "other.pem")]
    for command, out in [*targets, (rotate, "public.pem")]:
        before = (at_desk / out).read_bytes()
        code, _, err = run(capsys, *command, "--out", out, "--force")
        assert (code, err.count("\n")) == (2, 1)
        assert "name another one" in err
        assert (at_desk / out).read_bytes() == before
    for command in (sign, rotate):
        (at_desk / "notes.txt").write_text("mine")
        code, _, err = run(capsys, *command, "--out", "notes.txt")
        assert (code, err.count("\n")) == (3, 1)
        assert (at_desk / "notes.txt").read_text() == "mine"
        assert run(capsys, *command, "--out", "notes.txt", "--force")[0] == 0
        assert run(capsys, *command, "--out", "notes.txt")[0] == 0  # its own kind may be written again


def test_verify_holds_a_bundle_against_a_key(at_desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (at_desk / "good").write_bytes(envelope(payload()))
    (at_desk / "public.pem").write_text(PUBLIC.pem)
    (at_desk / "wrong.pem").write_text(OTHER_PUBLIC.pem)
    assert run(capsys, "verify", "good", "--key", "public.pem")[:2] == (
        0, f"good: acme version 7, signed by key {PUBLIC.id}\n",
    )  # fmt: skip
    assert run(capsys, "verify", "good", "--key", "wrong.pem")[0] == 3
    assert run(capsys, "verify", "good", "--key", "public.pem", "--org", "other")[0] == 3


def test_show_fits_a_terminal_and_names_what_is_unknown(at_desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = payload(policies=[{"name": "A" * 50, "matcher_type": "mood", "match_value": "v" * 60, "action": "halt"}])
    (at_desk / "b").write_bytes(envelope(data))
    code, out, err = run(capsys, "show", "b")
    assert code == 0
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "unknown matcher type 'mood'" in err
    assert json.loads(run(capsys, "show", "b", "--json")[1]) == data


def test_diff_says_what_changes() -> None:
    old = payload()
    row = old["policies"][0]
    new = payload(
        version=8,
        namespaces=["acme", "beta"],
        policies=[{**row, "action": "warn"}, {"policy_id": "p9", "name": "New"}],
        manifest_index={"acme/plan": {"status": "approved", "version": "2.0.0"}, "acme/new": {}},
    )
    found = diff(old, new)
    assert (found["old_version"], found["new_version"]) == (7, 8)
    assert found["policies"] == {
        "added": ["p9"],
        "removed": [],
        "changed": {"pol_teamleader": {"action": ["halt", "warn"]}},
    }
    assert found["skills"]["added"] == ["acme/new"]
    assert "acme/wipe-disk" in found["skills"]["removed"]
    lines = diff_lines(found)
    assert "~ skill acme/plan status: banned -> approved" in lines
    assert "~ setting namespaces: ['acme'] -> ['acme', 'beta']" in lines
    assert diff_lines(diff(old, old)) == []


def test_a_policy_in_a_file_may_be_bare_or_signed(at_desk: Path) -> None:
    (at_desk / "bare").write_text(json.dumps(payload()))
    (at_desk / "signed").write_bytes(envelope(payload()))
    assert read_policy("bare") == read_policy("signed") == read_policy("signed", PUBLIC) == payload()
    with pytest.raises(BundleError, match="no signature to verify"):
        read_policy("bare", PUBLIC)
    with pytest.raises(BundleError, match="signed by key"):
        read_policy("signed", OTHER_PUBLIC)

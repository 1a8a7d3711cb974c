"""A whole organisation: somebody publishes with ``gstack bundle build``, machines log in, gate and pull, and the
published ``skillsvault`` client syncs from the same site and decides the same."""

import functools
import http.server
import json
import os
import threading
from pathlib import Path

import pytest
import skillsvault
from gate_server import SECRET, serving

from gstack.cli import main
from gstack.gate.bundle import verify_installed

POLICY = """
org: acme
namespaces: [acme]
namespace: acme
policies:
  - policy_id: p-retired
    name: Teamleader retired
    matcher_type: declared_metadata
    match_value: "targets: teamleader"
    action: halt
    reason: Use acme/hubspot instead.
    replacement: acme/hubspot
  - policy_id: p-other
    name: Old suite
    matcher_type: namespace
    match_value: legacy
    action: warn
    reason: The old suite goes away.
catalogue:
  acme/hubspot: {version: 1.3.0, targets: [hubspot]}
  acme/teamleader: {version: 1.0.0, targets: [teamleader]}
  acme/onboard: {version: 0.9.0, status: deprecated}
  acme/leaky: {version: 2.0.0, status: banned}
"""

NAMES = ("acme/hubspot", "acme/teamleader", "acme/onboard", "acme/leaky", "acme/unheard", "legacy/x", "free/y",
         "skillsvault/onboarding")  # fmt: skip
WORDS = {"allow": "allow", "warn": "warn", "halt": "block"}


@pytest.fixture
def site(tmp_path, capsys) -> Path:
    """The site as ``gstack bundle build`` writes it."""
    for name in ("hubspot", "onboard", "leaky", "teamleader"):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: About {name}.\n---\nDo {name}.\n")
        (folder / "data.bin").write_bytes(bytes(range(200, 256)))
    (tmp_path / "policy.yaml").write_text(POLICY)
    keys, out = tmp_path / "keys", tmp_path / "site"
    assert main(["bundle", "keygen", "--out", str(keys)]) == 0
    build = ["bundle", "build", str(tmp_path / "policy.yaml"), "--skills", str(tmp_path / "skills")]
    assert main([*build, "--key", str(keys / "private.pem"), "--out", str(out)]) == 0
    capsys.readouterr()
    return out


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=["any file server", "a live server"])
def base(request, site):
    """The address of a server that has the site."""
    if request.param == "a live server":
        with serving(key=SECRET) as server:
            server.load_folder(site)
            for path in (site / "api" / "content").rglob("*.json"):
                server.contents[path.relative_to(site / "api" / "content" / "acme").as_posix()[:-5]] = path.read_bytes()
            yield server.url
        return
    plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=plain.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{plain.server_address[1]}"
    plain.shutdown()
    plain.server_close()
    thread.join(5)


@pytest.fixture
def root(home, monkeypatch) -> str:
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(home / "state"))
    monkeypatch.setenv("GSTACK_KEY", SECRET)
    return str(home / "state")


def decided(capsys, name: str) -> str:
    code = main(["gate", "--skill", name, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (code == 2) is (found["decision"] == "block")
    return found["decision"]


def test_the_published_client_and_we_sync_from_one_site_and_decide_the_same(base, root, capsys):
    assert main(["login", "--url", base, "--org", "acme"]) == 0
    capsys.readouterr()
    theirs = skillsvault.create_client(base, "acme", SECRET, retries=0)
    assert theirs.sync() == verify_installed(root).payload
    ours = {name: decided(capsys, name) for name in NAMES}
    assert ours == {name: WORDS[theirs.gate(name).decision] for name in NAMES}
    assert set(ours.values()) == {"allow", "warn", "block"}


def test_the_published_client_lists_what_we_pull(base, root, home, capsys):
    assert main(["login", "--url", base, "--org", "acme"]) == 0
    assert main(["pull", "--all"]) == 0
    out = capsys.readouterr().out
    theirs = skillsvault.create_client(base, "acme", SECRET, retries=0)
    theirs.sync()
    listed = {one["name"] for one in theirs.list_skills()}
    installed = {"acme/" + name for name in os.listdir(home / ".claude" / "skills")}
    assert installed == {name for name in listed if theirs.gate(name).decision != "halt"}
    assert installed == {"acme/hubspot", "acme/onboard"}
    assert "acme/teamleader" not in out
    assert (home / ".claude" / "skills" / "hubspot" / "data.bin").read_bytes() == bytes(range(200, 256))


def test_a_pulled_skill_is_the_approved_one_until_it_is_edited(base, root, home, capsys):
    assert main(["login", "--url", base, "--org", "acme"]) == 0
    assert main(["try", "hubspot"]) == 0
    capsys.readouterr()
    assert decided(capsys, "hubspot") == "allow"
    (home / ".claude" / "skills" / "hubspot" / "SKILL.md").write_text("---\nname: hubspot\n---\nDo something else.\n")
    assert decided(capsys, "hubspot") == "warn"


def test_a_live_servers_content_can_be_asked_by_name(site, root, capsys):
    with serving(key=SECRET) as server:
        server.load_folder(site)
        path = site / "api" / "content" / "acme" / "acme" / "hubspot.json"
        server.contents["acme/hubspot"] = path.read_bytes()
        theirs = skillsvault.create_client(server.url, "acme", SECRET, retries=0)
        content = theirs.get_skill("acme/hubspot")
        assert content is not None
        assert "SKILL.md" in {one["path"] for one in content["files"]}


def test_decisions_come_back_to_the_live_server(site, root, capsys):
    with serving(key=SECRET) as server:
        server.load_folder(site)
        assert main(["login", "--url", server.url, "--org", "acme"]) == 0
        assert main(["gate", "--skill", "acme/teamleader"]) == 2
        assert main(["gate", "--skill", "free/y"]) == 0
        (event,) = server.events  # a name that nobody governs makes none
        assert event["skill_name"] == "acme/teamleader"
        assert event["decision"] == "blocked"
        assert event["policy_id"] == "p-retired"
        assert event["policy_name"] == "Teamleader retired"
        assert event["machine_name"]
        assert event["event_id"]


def test_a_folder_gates_without_any_server(site, root, capsys):
    assert main(["login", "--url", site.as_uri(), "--org", "acme"]) == 0
    capsys.readouterr()
    assert decided(capsys, "acme/leaky") == "block"
    assert main(["pull"]) == 0
    assert main(["audit", "show"]) == 0
    assert capsys.readouterr().out.endswith("0 events wait\n")

"""Login, sync, logout and status: pin, verify, install, and the record of how it went."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from gate_server import NOW, SECRET, Organisation, Reply, serving

from gstack.errors import BundleError, StateError
from gstack.gate import login as login_module
from gstack.gate.audit import append
from gstack.gate.bundle import verify_installed
from gstack.gate.client import FetchError
from gstack.gate.credentials import Credentials, read_credentials
from gstack.gate.freshness import sync_state
from gstack.gate.index import bundle_path, index_path, trust_path
from gstack.gate.login import login, logout
from gstack.gate.signing import BundleRefused, public_key, rotation
from gstack.gate.spool import queue
from gstack.gate.status import read_status
from gstack.gate.sync import sync, sync_path
from gstack.gate.trust import read_trust


@pytest.fixture
def server():
    with serving(key=SECRET) as running:
        yield running


@pytest.fixture
def org():
    return Organisation()


@pytest.fixture
def root(tmp_path):
    return str(tmp_path / "state")


def at(now: float):
    return {"now": lambda: now}


def connected(root, server, org, **options):
    return login(root, Credentials(server.url, org.org, SECRET), **{**at(NOW), **options})


# ------------------------------------------------------------------------------------------------- login


def test_a_login_pins_on_first_use_and_syncs(root, server, org):
    org.publish(server, 3)
    done = connected(root, server, org)
    key = public_key(org.pem)
    assert (done.org, done.version, done.key_id, done.how, done.problem) == ("acme", 3, key.id, "first use", "")
    assert read_credentials(root) == Credentials(server.url, "acme", SECRET)
    assert verify_installed(root).version == 3
    assert Path(bundle_path(root)).read_bytes() == server.site["/api/bundle/acme"]
    assert sync_state(root) == {
        "last_success": NOW, "last_attempt": NOW, "failing_since": None, "last_error": None,
    }  # fmt: skip
    for path in Path(root, "gate").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_login_by_a_key_that_was_brought_along(root, server, org):
    org.publish(server)
    done = connected(root, server, org, by_hand=public_key(org.pem))
    assert done.how == "by hand"
    del server.site["/api/bundle/key"]
    assert sync(root, **at(NOW + 5)).version == 1  # the server needn't show a key then
    with pytest.raises(BundleRefused, match="signature"):
        connected(root + "2", server, org, by_hand=public_key(Organisation().pem))
    assert not os.path.exists(trust_path(root + "2"))


def test_a_login_with_a_wrong_key_saves_nothing(root, server, org):
    org.publish(server)
    with pytest.raises(FetchError, match="401"):
        login(root, Credentials(server.url, "acme", "wrong"), **at(NOW))
    assert read_credentials(root) is None
    assert read_trust(root) is None


@pytest.mark.parametrize("key", [b"", b"<html>not found</html>", b"-----BEGIN PUBLIC KEY-----\nxx\n"])
def test_a_server_without_a_usable_key_can_not_be_logged_in_to(root, server, org, key):
    org.publish(server)
    server.site["/api/bundle/key"] = key
    with pytest.raises(BundleRefused, match="Ed25519"):
        connected(root, server, org)
    assert read_credentials(root) is None


def test_a_bundle_that_fails_at_login_saves_nothing(root, server, org):
    org.publish(server)
    server.site["/api/bundle/acme"] = Organisation().envelope()
    with pytest.raises(BundleRefused, match="signature"):
        connected(root, server, org)
    assert read_credentials(root) is None
    assert read_trust(root) is None
    assert not os.path.exists(bundle_path(root))


def test_connected_but_never_synced(root, server, org):
    server.site["/api/bundle/key"] = org.pem
    done = connected(root, server, org)
    assert done.version is None
    assert "404" in done.problem
    assert read_credentials(root) is not None
    assert sync_state(root)["failing_since"] == NOW
    assert sync_state(root)["last_success"] is None
    org.publish(server)
    assert sync(root, **at(NOW + 60)).changed
    assert sync_state(root)["failing_since"] is None


def test_a_second_login_keeps_the_pin(root, server, org):
    org.publish(server)
    connected(root, server, org)
    other = Organisation()
    other.publish(server, 2)
    with pytest.raises(BundleRefused) as caught:
        connected(root, server, org)
    assert caught.value.cause == "key"
    assert read_trust(root).key.id == public_key(org.pem).id
    assert verify_installed(root).version == 1
    done = connected(root, server, org, by_hand=public_key(other.pem))
    assert (done.how, done.version) == ("by hand", 2)
    assert verify_installed(root).version == 2


def test_repinning_keeps_the_rollback_protection(root, server, org):
    org.publish(server, 7)
    connected(root, server, org)
    other = Organisation()
    other.publish(server, 6)
    with pytest.raises(BundleRefused) as caught:
        connected(root, server, org, by_hand=public_key(other.pem))
    assert caught.value.cause == "rollback"
    assert read_trust(root).key.id == public_key(org.pem).id


def test_another_organisation_starts_afresh(root, server, org):
    org.publish(server, 7)
    connected(root, server, org)
    append(root, {"decision": "blocked"}, now=NOW)
    server.say("/api/audit/ingest", Reply(503))
    other = Organisation("other")
    other.publish(server, 1)
    done = connected(root, server, other)
    assert (done.org, done.version, done.how) == ("other", 1, "first use")
    assert verify_installed(root).org == "other"
    assert queue(root).length == 0
    server.calm()
    assert sync(root, **at(NOW)).sent == 0
    assert server.events == []
    org.publish(server, 7)
    connected(root, server, org)
    assert len(server.events) == 1  # back at the first: its event was sent there


@pytest.mark.parametrize("answer", [Reply(404), Reply(503), Reply(body=b"{}")])
def test_a_working_policy_is_not_given_up_for_one_that_can_not_be_had(root, server, org, answer):
    org.publish(server, 7)
    connected(root, server, org)
    append(root, {"decision": "blocked"}, now=NOW)
    server.say("/api/audit/ingest", Reply(503))
    other = Organisation("other")
    server.site["/api/bundle/key"] = other.pem
    server.say("/api/bundle/other", answer)
    with pytest.raises((FetchError, BundleError)):
        connected(root, server, other)
    assert verify_installed(root).org == "acme"
    assert read_credentials(root).org == read_trust(root).org == "acme"
    assert queue(root).length == 1
    logout(root)
    assert answer.status == 200 or connected(root, server, other).version is None


def test_a_broken_pin_can_be_replaced_by_a_login(root, server, org):
    org.publish(server)
    connected(root, server, org)
    Path(trust_path(root)).write_text("{")
    with pytest.raises(BundleError, match="gstack login"):
        sync(root, **at(NOW))
    assert connected(root, server, org).how == "first use"
    assert sync(root, **at(NOW)).version == 1


# -------------------------------------------------------------------------------------------------- sync


def test_a_sync_installs_what_is_new(root, server, org):
    org.publish(server, 1)
    connected(root, server, org)
    org.publish(server, 2)
    done = sync(root, **at(NOW + 100))
    assert (done.version, done.changed, done.org) == (2, True, "acme")
    assert verify_installed(root).version == 2
    assert sync_state(root)["last_success"] == NOW + 100


def test_the_same_version_with_the_same_bytes_is_a_success(root, server, org):
    org.publish(server)
    connected(root, server, org)
    before = os.stat(bundle_path(root))
    done = sync(root, **at(NOW + 100))
    assert not done.changed
    assert sync_state(root)["last_success"] == NOW + 100
    assert os.stat(bundle_path(root)).st_mtime_ns == before.st_mtime_ns


def test_a_failure_is_recorded_since_when_and_why(root, server, org):
    org.publish(server)
    connected(root, server, org)
    server.say("/api/bundle/acme", Reply(503))
    for later in (10, 20):
        with pytest.raises(FetchError, match="503"):
            sync(root, **at(NOW + later))
    state = sync_state(root)
    assert (state["last_success"], state["last_attempt"], state["failing_since"]) == (NOW, NOW + 20, NOW + 10)
    assert "503" in state["last_error"]
    server.calm()
    sync(root, **at(NOW + 30))
    assert sync_state(root)["failing_since"] is None


def test_failing_since_a_time_that_is_still_to_come_starts_anew(root, server, org):
    org.publish(server)
    connected(root, server, org)
    server.say("/api/bundle/acme", Reply(503))
    with pytest.raises(FetchError):
        sync(root, **at(NOW + 9e6))
    with pytest.raises(FetchError):
        sync(root, **at(NOW + 10))
    assert sync_state(root)["failing_since"] == NOW + 10


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"payload": 5}', b'{"payload": "{}"}', b"\xff\xfe"])
def test_garbage_is_refused_and_the_last_good_bundle_stays(root, server, org, data):
    org.publish(server)
    connected(root, server, org)
    good = Path(bundle_path(root)).read_bytes()
    server.site["/api/bundle/acme"] = data
    with pytest.raises(BundleError) as caught:
        sync(root, **at(NOW))
    assert caught.value.exit_code == 3
    assert Path(bundle_path(root)).read_bytes() == good
    assert verify_installed(root).version == 1
    assert sync_state(root)["last_error"]


def test_a_rotation_statement_carries_the_pin_over(root, server, org):
    org.publish(server, 1)
    connected(root, server, org)
    successor = Organisation()
    statement = rotation("acme", org.private, public_key(successor.pem), NOW)
    server.site["/api/bundle/acme"] = successor.sign(json.dumps(org.payload(2)), rotations=[statement])
    # while the server still shows the old key, and then the new one
    assert sync(root, **at(NOW)).key_id == public_key(successor.pem).id
    assert read_trust(root).how == "rotation"
    server.site["/api/bundle/key"] = successor.pem
    successor.publish(server, 3)
    assert sync(root, **at(NOW)).version == 3


def test_the_queue_goes_first(root, server, org):
    org.publish(server)
    connected(root, server, org)
    append(root, {"decision": "blocked"}, now=NOW)
    server.requests.clear()
    assert sync(root, **at(NOW)).sent == 1
    assert server.paths()[0] == "/api/audit/ingest"


def test_what_this_gstack_doesnt_know_is_said(root, server, org):
    org.publish(server, policies=[{"policy_id": "p", "name": "P", "matcher_type": "moon", "action": "halt"}])
    connected(root, server, org)
    assert any("moon" in line for line in sync(root, **at(NOW)).problems)


def test_not_connected(root):
    with pytest.raises(StateError, match="gstack login"):
        sync(root)


def test_syncs_at_once_never_go_back(root, server, org):
    """A slow sync that fetched an older bundle doesn't fail, and doesn't undo a faster one."""
    org.publish(server, 1)
    connected(root, server, org)
    slow = Reply(body=org.envelope(2), delay=0.4)
    server.say("/api/bundle/acme", slow, times=1)
    org.publish(server, 3)
    failed = []

    def run():
        try:
            sync(root, **at(NOW))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert verify_installed(root).version == 3


def test_a_folder_serves_as_well(root, tmp_path, org):
    base = org.publish_folder(tmp_path / "site", 4)
    done = login(root, Credentials(base, "acme"), **at(NOW))
    assert done.version == 4
    org.publish_folder(tmp_path / "site", 5)
    assert sync(root, **at(NOW)).version == 5
    assert not append(root, {"decision": "blocked"}, now=NOW)


def test_the_compiled_index_is_there_after_a_sync(root, server, org):
    from gstack.gate.index import stored

    org.publish(server)
    connected(root, server, org)
    assert stored(root)
    os.unlink(index_path(root))
    sync(root, **at(NOW))
    assert stored(root)


# ------------------------------------------------------------------------------------------------ logout


def test_a_logout_forgets_everything(root, server, org):
    org.publish(server)
    connected(root, server, org)
    append(root, {"decision": "blocked"}, now=NOW)
    done = logout(root)
    assert (done.org, done.kept, done.unsent) == ("acme", False, 0)
    assert len(server.events) == 1
    for path in (bundle_path(root), index_path(root), trust_path(root), sync_path(root)):
        assert not os.path.exists(path)
    assert read_credentials(root) is None
    assert SECRET.encode() not in b"".join(p.read_bytes() for p in Path(root).rglob("*") if p.is_file())
    assert logout(root).org is None


def test_a_logout_can_keep_the_bundle(root, server, org):
    org.publish(server)
    connected(root, server, org)
    assert logout(root, keep_bundle=True).kept
    assert read_credentials(root) is None
    assert verify_installed(root).version == 1
    assert not append(root, {"decision": "blocked"}, now=NOW)
    # a pin that was kept still counts at the next login
    Organisation().publish(server, 2)
    with pytest.raises(BundleRefused, match="key changed"):
        connected(root, server, org)


def test_events_that_can_not_be_sent_wait_for_the_next_login(root, server, org):
    org.publish(server)
    connected(root, server, org)
    append(root, {"decision": "blocked"}, now=NOW)
    server.say("/api/audit/ingest", Reply(503))
    assert logout(root).unsent == 1
    server.calm()
    connected(root, server, org)
    assert len(server.events) == 1


def test_a_logout_with_broken_credentials_works(root, server, org):
    org.publish(server)
    connected(root, server, org)
    Path(root, "gate", "credentials.json").write_text("{")
    assert logout(root).org is None
    assert read_credentials(root) is None


# ------------------------------------------------------------------------------------------------ status


def test_status_before_anything(root):
    found = read_status(root, NOW)
    assert not found.connected
    assert found.as_data()["bundle"] is None
    assert found.problems == ()
    assert not os.path.exists(root)


def test_status_says_it_all(root, server, org):
    exception = {"machine": "box", "owner": "ann", "reason": "moving", "expires_at": "2026-06-05"}
    policy = {
        "policy_id": "p", "name": "P", "matcher_type": "name", "match_value": "acme/x", "action": "halt",
        "exceptions": [exception],
    }  # fmt: skip
    org.publish(server, 9, policies=[policy], gate_lock=True)
    connected(root, server, org)
    append(root, {"decision": "blocked"}, now=NOW)
    found = read_status(root, NOW + 7200).as_data()
    assert (found["connected"], found["org"], found["base_url"]) == (True, "acme", server.url)
    assert found["bundle"]["version"] == 9
    assert found["bundle"]["age_s"] == 7200
    assert found["bundle"]["gate_lock"]
    assert found["bundle"]["policies"] == 1
    assert found["bundle"]["entries"] == 3
    assert found["key"]["id"] == public_key(org.pem).id
    assert found["refresh"]["last_success"] == NOW
    assert found["audit"]["queued"] == 1
    assert "ann" in found["exceptions_ending"][0]["text"]
    assert found["problems"] == []
    assert SECRET not in json.dumps(found)
    json.dumps(found)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"payload": "{}", "signature": "AAAA"}'])
def test_a_corrupt_bundle_is_named_with_what_mends_it(root, server, org, data):
    org.publish(server)
    connected(root, server, org)
    path = Path(bundle_path(root))
    path.write_bytes(data)
    with pytest.raises(BundleRefused) as caught:
        verify_installed(root)
    assert str(path) in caught.value.message
    assert "gstack sync" in caught.value.message
    sync(root, **at(NOW))
    assert verify_installed(root).version == 1


def test_status_of_a_tampered_bundle_names_the_problem(root, server, org):
    org.publish(server)
    connected(root, server, org)
    path = Path(bundle_path(root))
    path.write_bytes(path.read_bytes().replace(b"acme/bad", b"acme/bat"))
    found = read_status(root, NOW)
    assert found.bundle is None
    assert any("signature" in line for line in found.problems)


# --------------------------------------------------------------------- the published client, side by side


def test_the_published_client_syncs_from_where_we_do(root, server, org):
    skillsvault = pytest.importorskip("skillsvault")
    org.publish(server, 2)
    connected(root, server, org)
    theirs = skillsvault.create_client(server.url, "acme", SECRET, retries=0)
    assert theirs.sync() == verify_installed(root).payload
    assert theirs.gate("acme/bad").decision == "halt"
    theirs.audit({"skill_name": "acme/bad", "decision": "blocked", "event_id": "x"})
    assert server.events[-1]["skill_name"] == "acme/bad"


def test_login_module_never_prints(capsys, root, server, org):
    org.publish(server)
    connected(root, server, org)
    assert capsys.readouterr() == ("", "")
    assert login_module.DEADLINE == 60.0


def test_a_dying_sync_leaves_a_good_bundle(root, server, org):
    """Killed at any moment, the old bundle or the new one is there, whole and verified."""
    if os.name != "posix":
        pytest.skip("kills processes")
    org.publish(server, 1)
    connected(root, server, org)
    code = "import sys\nfrom gstack.gate.sync import sync\nfor _ in range(999): sync(sys.argv[1])"
    for version in range(2, 5):
        org.publish(server, version)
        process = subprocess.Popen([sys.executable, "-c", code, root], stderr=subprocess.DEVNULL)
        try:
            process.wait(0.45 + version * 0.07)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        assert 1 <= verify_installed(root).version <= version

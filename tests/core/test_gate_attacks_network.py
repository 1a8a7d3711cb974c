"""Attacks on the gate's connection, each named after what it tries: network, credentials, spool, state folder."""

import gzip
import json
import os
import socket
import threading
from pathlib import Path

import pytest
from gate_server import NOW, SECRET, Organisation, Reply, serving

from gstack.cli import main
from gstack.errors import BundleError, StateError
from gstack.gate import audit, client
from gstack.gate.audit import append, spool_path, state_path
from gstack.gate.bundle import verify_installed
from gstack.gate.client import Client, FetchError
from gstack.gate.credentials import Credentials, credentials_path
from gstack.gate.index import bundle_path, trust_path
from gstack.gate.login import login
from gstack.gate.signing import BundleRefused, public_key, rotation
from gstack.gate.spool import belongs_to, flush, verify
from gstack.gate.sync import sync
from gstack.gate.trust import read_trust

posix = pytest.mark.skipif(os.name != "posix", reason="links and modes")


@pytest.fixture
def server():
    with serving(key=SECRET) as running:
        yield running


@pytest.fixture
def elsewhere():
    """Another server: nothing may ever reach it."""
    with serving() as running:
        yield running
        assert running.requests == []


@pytest.fixture
def org():
    return Organisation()


@pytest.fixture
def root(tmp_path, server, org):
    """A machine that is connected and has version 5."""
    folder = str(tmp_path / "state")
    org.publish(server, 5)
    login(folder, Credentials(server.url, "acme", SECRET), now=lambda: NOW)
    return folder


def refused(root, cause: str | None = None) -> BundleError:
    """The next sync is refused with exit 3, and version 5 of the right organisation stays."""
    good = Path(bundle_path(root)).read_bytes()
    with pytest.raises(BundleError) as caught:
        sync(root, now=lambda: NOW)
    assert caught.value.exit_code == 3
    assert SECRET not in str(caught.value)
    if cause is not None:
        assert getattr(caught.value, "cause", None) == cause
    assert Path(bundle_path(root)).read_bytes() == good
    assert verify_installed(root).version == 5
    return caught.value


# ------------------------------------------------------------------------------------------ keys, bundles


def test_changed_key_at_the_server_with_a_bundle_to_match(root, server):
    Organisation().publish(server, 6)
    error = refused(root, "key")
    assert "changed" in str(error)
    assert "--public-key" in str(error)


def test_changed_key_at_the_server_although_the_bundle_still_verifies(root, server, org):
    org.publish(server, 6)
    server.site["/api/bundle/key"] = Organisation().pem
    refused(root, "key")


def test_changed_key_while_nothing_is_shown(root, server):
    Organisation().publish(server, 6)
    del server.site["/api/bundle/key"]
    refused(root, "signature")


def test_a_rotation_that_the_new_key_signed_itself(root, server, org):
    thief = Organisation()
    statement = rotation("acme", thief.private, public_key(thief.pem), NOW)
    server.site["/api/bundle/key"] = thief.pem
    server.site["/api/bundle/acme"] = thief.sign(json.dumps(org.payload(6)), rotations=[statement])
    refused(root, "key")


def test_a_rotation_of_another_organisation(root, server, org):
    """The same key may sign for two organisations; a statement counts for its own."""
    thief = Organisation()
    statement = rotation("other", org.private, public_key(thief.pem), NOW)
    server.site["/api/bundle/acme"] = thief.sign(json.dumps(org.payload(6)), rotations=[statement])
    refused(root, "signature")


def test_a_key_that_was_handed_over_is_used_again(root, server, org):
    successor = Organisation()
    statement = rotation("acme", org.private, public_key(successor.pem), NOW)
    server.site["/api/bundle/acme"] = successor.sign(json.dumps(org.payload(6)), rotations=[statement])
    server.site["/api/bundle/key"] = successor.pem
    sync(root, now=lambda: NOW)
    org.publish(server, 7)
    with pytest.raises(BundleRefused):
        sync(root, now=lambda: NOW)
    assert verify_installed(root).version == 6
    assert read_trust(root).key.id == public_key(successor.pem).id


@pytest.mark.parametrize(
    "change",
    [
        lambda made: {"payload": made["payload"]},
        lambda made: {**made, "signature": ""},
        lambda made: {**made, "signature": None},
        lambda made: {**made, "signature": "AAAA"},
        lambda made: {**made, "signature": made["signature"][::-1]},
        lambda made: {**made, "key_id": "whatever", "signature": ""},
    ],
)
def test_stripped_signature(root, server, org, change):
    made = json.loads(org.envelope(6))
    server.site["/api/bundle/acme"] = json.dumps(change(made)).encode()
    refused(root)


def test_swapped_payload(root, server, org):
    made = json.loads(org.envelope(6))
    made["payload"] = json.dumps(org.payload(6, manifest_index={}))
    server.site["/api/bundle/acme"] = json.dumps(made).encode()
    refused(root, "signature")


def test_replayed_old_version(root, server, org):
    org.publish(server, 4)
    refused(root, "rollback")


def test_replayed_old_version_after_the_local_bundle_was_deleted(root, server, org):
    org.publish(server, 4)
    os.unlink(bundle_path(root))
    with pytest.raises(BundleRefused) as caught:
        sync(root, now=lambda: NOW)
    assert caught.value.cause == "rollback"
    assert not os.path.exists(bundle_path(root))


def test_same_version_with_other_rules(root, server, org):
    org.publish(server, 5, manifest_index={})
    refused(root, "conflict")


def test_other_org_signed_by_the_same_key(root, server, org):
    server.site["/api/bundle/acme"] = Organisation("other", org.private).envelope(6)
    refused(root, "org")


def test_future_date_so_that_later_ones_look_old(root, server, org):
    org.publish(server, 6, issued_at="2026-06-10T00:00:00Z")
    refused(root, "future")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_truncated_file_at_the_server(root, server, org, part):
    whole = org.envelope(6)
    server.site["/api/bundle/acme"] = whole[: int(len(whole) * part)]
    refused(root)


def test_truncated_answer(root, server, org):
    whole = org.envelope(6)
    server.say("/api/bundle/acme", Reply(body=whole[:50], cut=len(whole) - 50))
    with pytest.raises(FetchError):
        sync(root, now=lambda: NOW)
    assert verify_installed(root).version == 5


def test_truncated_file_on_this_machine_is_mended_by_a_sync(root):
    path = Path(bundle_path(root))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BundleError):
        verify_installed(root)
    sync(root, now=lambda: NOW)
    assert verify_installed(root).version == 5


# --------------------------------------------------------------------------------------------- the network


@pytest.mark.parametrize("path", ["/api/bundle/acme", "/api/bundle/key"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_to_another_host(root, server, elsewhere, path, status):
    server.say(path, Reply(status, headers={"Location": elsewhere.url + path}))
    if path.endswith("key"):
        sync(root, now=lambda: NOW)  # a pinned machine doesn't need it
        with pytest.raises(FetchError, match="another place"):
            login(root + "2", Credentials(server.url, "acme", SECRET), now=lambda: NOW)
        assert not os.path.exists(credentials_path(root + "2"))
    else:
        with pytest.raises(FetchError, match="another place"):
            sync(root, now=lambda: NOW)


@pytest.mark.parametrize(
    "target",
    ["http://localhost:1/x", "//evil.example/x", "https://127.0.0.1/x", "http://user@127.0.0.1/x", "file:///etc/passwd",
     "gopher://x", "http://[", "javascript:alert(1)", ""],
)  # fmt: skip
def test_redirect_to_where_it_must_not_go(root, server, target):
    server.say("/api/bundle/acme", Reply(302, headers={"Location": target}))
    with pytest.raises(FetchError, match=r"refused|can't be reached"):
        sync(root, now=lambda: NOW)
    assert server.paths()[-1] == "/api/bundle/acme"


def test_redirect_to_the_same_address_with_a_user_in_it(root, server):
    target = server.url.replace("http://", "http://evil@") + "/api/bundle/acme"
    server.say("/api/bundle/acme", Reply(302, headers={"Location": target}))
    with pytest.raises(FetchError, match="refused"):
        sync(root, now=lambda: NOW)


def test_redirect_of_audit_events_to_another_host(root, server, elsewhere):
    append(root, {"decision": "blocked"}, now=NOW)
    for status in (302, 307, 308):
        server.say("/api/audit/ingest", Reply(status, headers={"Location": elsewhere.url + "/x"}), times=1)
        assert flush(root, 5).left == 1


def test_redirect_in_circles(root, server):
    server.say("/api/bundle/acme", Reply(302, headers={"Location": "/api/bundle/acme"}))
    with pytest.raises(FetchError, match="redirects"):
        sync(root, now=lambda: NOW)
    assert server.paths().count("/api/bundle/acme") <= 8


def test_plain_http_at_login(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(tmp_path / "s"))
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("connected"))
    assert main(["login", "--url", "http://policy.example", "--org", "acme", "--key", SECRET]) == 2
    assert "plain HTTP" in capsys.readouterr().err


def test_plain_http_written_into_the_credentials(root, monkeypatch):
    path = Path(credentials_path(root))
    path.write_text(json.dumps({"base_url": "http://policy.example", "org": "acme", "key": SECRET}))
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("connected"))
    with pytest.raises(StateError, match="plain HTTP"):
        sync(root, now=lambda: NOW)
    assert "plain HTTP" in flush(root, 1).problem


def test_oversized_answer_that_says_so(root, server):
    server.say("/api/bundle/acme", Reply(headers={"Content-Length": str(65 << 20)}))
    with pytest.raises(FetchError, match="larger than 64 MiB"):
        sync(root, now=lambda: NOW)


def test_oversized_answer_that_never_ends(root, monkeypatch):
    """A chunked answer without an end: reading stops at the limit, and memory with it."""
    listener = socket.create_server(("127.0.0.1", 0))
    sent = [0]

    def pour() -> None:
        other, _ = listener.accept()
        other.recv(65536)
        other.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"%x\r\n" % (1 << 16) + b"0" * (1 << 16) + b"\r\n"
        try:
            while True:
                other.sendall(chunk)
                sent[0] += 1 << 16
        except OSError:
            pass

    threading.Thread(target=pour, daemon=True).start()
    credentials = Credentials(f"http://127.0.0.1:{listener.getsockname()[1]}", "acme", SECRET)
    with Client(credentials) as opened, pytest.raises(FetchError, match="larger than 2 MiB"):
        opened.get("api/bundle/acme", limit=2 << 20)
    listener.close()
    assert sent[0] < 16 << 20


def test_oversized_answer_in_a_small_gzip(root, server):
    packed = gzip.compress(bytes(9 << 20))
    assert len(packed) < 1 << 20
    server.say("/api/bundle/key", Reply(body=packed, headers={"Content-Encoding": "gzip"}))
    with pytest.raises(FetchError, match="larger than 8 MiB"):
        login(root + "2", Credentials(server.url, "acme", SECRET), now=lambda: NOW)


def test_oversized_bundle_in_a_folder(tmp_path, org, monkeypatch):
    base = org.publish_folder(tmp_path / "site")
    monkeypatch.setattr(client, "BUNDLE_LIMIT", 100)
    monkeypatch.setattr("gstack.gate.sync.BUNDLE_LIMIT", 100)
    done = login(str(tmp_path / "s"), Credentials(base, "acme"), now=lambda: NOW)
    assert "larger" in done.problem
    assert not os.path.exists(bundle_path(str(tmp_path / "s")))


def test_a_bundle_that_is_nested_too_deeply(root, server):
    server.site["/api/bundle/acme"] = b'{"payload": ' + b"[" * 100_000
    refused(root, "shape")


# -------------------------------------------------------------------------------------------- the spool


@posix
def test_symlinked_spool(root, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    os.symlink(precious, spool_path(root))
    with pytest.raises(OSError, match="link"):
        append(root, {"decision": "blocked"}, now=NOW)
    assert "link" in flush(root, 5).problem
    with pytest.raises(StateError, match="link"):
        verify(root)
    with pytest.raises(StateError, match="link"):
        belongs_to(root, "elsewhere")
    assert precious.read_text() == "mine"
    assert os.path.islink(spool_path(root))


@posix
def test_symlinked_spool_to_nowhere_is_not_created(root, tmp_path):
    os.symlink(tmp_path / "new", spool_path(root))
    with pytest.raises(OSError, match="link"):
        append(root, {"decision": "blocked"}, now=NOW)
    assert not (tmp_path / "new").exists()


@posix
def test_hard_linked_spool(root, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    os.link(precious, spool_path(root))
    with pytest.raises(OSError, match="refused"):
        append(root, {"decision": "blocked"}, now=NOW)
    assert precious.read_text() == "mine"


@posix
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_spool_that_is_no_file(root, make):
    make(spool_path(root))
    with pytest.raises(OSError):  # noqa: PT011 - whatever the system calls it
        append(root, {"decision": "blocked"}, now=NOW)
    assert flush(root, 5).problem


@posix
def test_symlinked_state_of_the_spool(root, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    if os.path.lexists(state_path(root)):
        os.unlink(state_path(root))
    os.symlink(precious, state_path(root))
    with pytest.raises(OSError):  # noqa: PT011 - whatever the system calls it
        append(root, {"decision": "blocked"}, now=NOW)
    assert precious.read_text() == "mine"


@posix
@pytest.mark.parametrize("name", ["audit.lock", "audit-flush.lock", "refresh.lock", "audit-send.lock"])
def test_symlinked_lock(root, tmp_path, name, monkeypatch):
    from gstack.gate import refresh

    append(root, {"decision": "blocked"}, now=NOW)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    path = Path(root, "gate", name)
    if path.exists():
        path.unlink()
    path.symlink_to(precious)
    monkeypatch.setattr(refresh, "start", lambda *_: pytest.fail("started"))
    monkeypatch.setattr(audit, "start", lambda *_: pytest.fail("started"))
    if name == "audit.lock":
        with pytest.raises(OSError):  # noqa: PT011 - whatever the system calls it
            append(root, {"decision": "blocked"}, now=NOW)
    elif name == "audit-flush.lock":
        assert flush(root, 5).problem
    elif name == "refresh.lock":
        assert not refresh.maybe_start(root, NOW + 99999)
    else:
        assert not audit.maybe_send(root, NOW)
    assert precious.read_text() == "mine"


@posix
def test_spool_that_others_can_read_is_closed(root):
    append(root, {"decision": "blocked"}, now=NOW)
    os.chmod(spool_path(root), 0o666)
    append(root, {"decision": "blocked"}, now=NOW)
    assert os.stat(spool_path(root)).st_mode & 0o777 == 0o600


@posix
def test_spool_of_another_user(root, monkeypatch):
    append(root, {"decision": "blocked"}, now=NOW)
    monkeypatch.setattr(audit.sys_os, "geteuid", lambda: 54321, raising=False)
    with pytest.raises(OSError, match="somebody else"):
        append(root, {"decision": "blocked"}, now=NOW)


def test_a_skill_name_that_would_forge_an_event(root):
    name = 'x"}\n{"event_id": "forged", "decision": "allowed"}\r\n\x1b[2J\u2028'
    assert append(root, {"skill_name": name, "decision": "blocked"}, now=NOW)
    data = Path(spool_path(root)).read_bytes()
    assert data.count(b"\n") == 1
    assert json.loads(data)["skill_name"] == name
    assert data.isascii()


def test_a_server_that_says_it_took_what_it_never_got(root, server):
    """A lying server empties the spool, but the next events still name the one before: the gap can be seen."""
    from gstack.gate.spool import verify_events

    append(root, {"decision": "blocked", "machine_name": "b"}, now=NOW)
    append(root, {"decision": "blocked", "machine_name": "b"}, now=NOW)
    flush(root, 5)
    server.events.pop()
    for _ in range(2):
        append(root, {"decision": "blocked", "machine_name": "b"}, now=NOW)
    flush(root, 5)
    assert len(verify_events(server.events).gaps) == 1


# ----------------------------------------------------------------------------- credentials and state folder


@posix
@pytest.mark.parametrize("which", ["root", "gate", "bundle.json", "trust.json"])
def test_world_writable_state_folder(root, server, which, monkeypatch):
    path = {"root": root, "gate": os.path.join(root, "gate")}.get(which, os.path.join(root, "gate", which))
    os.chmod(path, 0o777)
    server.requests.clear()
    with pytest.raises(StateError, match="can be written by another user"):
        sync(root, now=lambda: NOW)
    with pytest.raises(StateError, match="chmod"):
        login(root, Credentials(server.url, "acme", SECRET), now=lambda: NOW)
    assert server.requests == []
    os.chmod(path, 0o700)
    assert sync(root, now=lambda: NOW).version == 5


@posix
def test_a_fresh_folder_that_is_only_too_open_is_closed(tmp_path, server, org):
    org.publish(server)
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    login(str(folder), Credentials(server.url, "acme", SECRET), now=lambda: NOW)
    assert folder.stat().st_mode & 0o022 == 0


@posix
def test_symlinked_credentials(root, tmp_path):
    thief = tmp_path / "thief"
    os.rename(credentials_path(root), thief)
    os.symlink(thief, credentials_path(root))
    with pytest.raises(StateError, match="regular file"):
        sync(root, now=lambda: NOW)
    assert flush(root, 1).problem


@posix
@pytest.mark.parametrize("name", ["bundle.json", "trust.json", "sync.json", "credentials.json", "bundle.index"])
def test_a_link_in_a_files_place_is_replaced_and_not_followed(tmp_path, server, org, name):
    org.publish(server)
    root = str(tmp_path / "state")
    os.makedirs(os.path.join(root, "gate"), mode=0o700)
    os.chmod(root, 0o700)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    os.symlink(precious, os.path.join(root, "gate", name))
    try:
        login(root, Credentials(server.url, "acme", SECRET), now=lambda: NOW)
    except StateError:
        pass
    assert precious.read_text() == "mine"


def test_a_pinned_key_that_was_swapped_on_this_machine(root, server, org):
    """Whoever can write the folder could swap key and bundle together; the key alone isn't enough."""
    found = json.loads(Path(trust_path(root)).read_bytes())
    found["key"] = Organisation().pem.decode()
    Path(trust_path(root)).write_text(json.dumps(found))
    with pytest.raises(BundleError):
        verify_installed(root)
    with pytest.raises(BundleRefused):
        sync(root, now=lambda: NOW)


def test_the_key_is_nowhere_but_in_the_credentials(tmp_path, home, server, org, capsys, monkeypatch):
    """Every command, going well and going wrong: not in output, logs, records, or what a traceback would show."""
    root = home / "state"
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(root))
    monkeypatch.setenv("GSTACK_KEY", SECRET)
    org.publish(server)
    server.site["/api/skills/acme"] = b'{"skills": []}'
    commands = (["login", "--url", server.url, "--org", "acme"], ["sync"], ["status"], ["status", "--json"],
                ["pull"], ["try", "x"], ["audit", "flush"], ["audit", "verify"], ["audit", "show"])  # fmt: skip
    replies = (None, Reply(401), Reply(500), Reply(302, headers={"Location": "https://x.example/"}), Reply(drop=True))
    said = []
    for reply in replies:
        server.calm()
        for command in commands:
            if root.exists():
                append(str(root), {"decision": "blocked"}, now=NOW)
            if reply is not None and command[0] != "login":
                for path in ("/api/bundle/acme", "/api/skills/acme", "/api/audit/ingest"):
                    server.say(path, reply)
            main(command)
            main([*command, "--debug"])
            said.append("".join(capsys.readouterr()))
    assert SECRET not in "".join(said)
    holding = [path for path in home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert holding == [Path(credentials_path(str(root)))]


def test_the_key_goes_to_its_server_only(tmp_path, server, org, elsewhere):
    """Another organisation's server never sees the first one's key or events."""
    org.publish(server)
    root = str(tmp_path / "state")
    login(root, Credentials(server.url, "acme", SECRET), now=lambda: NOW)
    append(root, {"decision": "blocked"}, now=NOW)
    with serving() as second:
        other = Organisation("other")
        other.publish(second)
        login(root, Credentials(second.url, "other", "second-key"), now=lambda: NOW)
        sync(root, now=lambda: NOW)
        assert {headers.get("X-Skillsvault-Key") for _, _, headers in second.requests} == {"second-key"}
        assert second.events == []

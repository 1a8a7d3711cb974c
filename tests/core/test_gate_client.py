"""The client: the same paths over HTTP and folders, and what it refuses."""

import os
import threading
import time
from pathlib import Path

import httpx
import pytest
from gate_server import SECRET, GateServer, Reply, connect, serving
from hypothesis import given
from hypothesis import strategies as st

from gstack.errors import GstackError, StateError, UsageError
from gstack.gate import client as client_module
from gstack.gate.client import Client, FetchError, segment
from gstack.gate.credentials import (
    Credentials,
    check_base_url,
    check_key,
    check_org,
    forget_credentials,
    need_credentials,
    read_credentials,
    write_credentials,
)


@pytest.fixture
def server():
    with serving(key=SECRET) as running:
        yield running


def opened(server: GateServer, **options) -> Client:
    return Client(Credentials(server.url, "acme", SECRET), **options)


def test_gets_a_path_below_the_base_with_the_key(server):
    server.site["/api/bundle/acme"] = b"hello"
    with opened(server) as client:
        assert client.get("api/bundle/acme") == b"hello"
    assert server.requests[0][2]["X-Skillsvault-Key"] == SECRET


def test_a_base_with_a_path_keeps_it():
    with serving() as server:
        server.site["/sub/dir/api/bundle/key"] = b"pem"
        with Client(Credentials(server.url + "/sub/dir", "acme")) as client:
            assert client.get("api/bundle/key") == b"pem"
            assert client.get("../bundle/key", relative_to="api/skills/acme") == b"pem"


def test_without_a_key_no_header_is_sent():
    with serving() as server:
        server.site["/x"] = b"1"
        with Client(Credentials(server.url, "acme")) as client:
            client.get("x")
        assert "X-Skillsvault-Key" not in server.requests[0][2]


@pytest.mark.parametrize(
    ("status", "words"), [(401, "gstack login"), (403, "key"), (404, "no such thing"), (429, "later"), (503, "503")]
)
def test_a_status_becomes_one_clear_line(server, status, words):
    server.say("/x", Reply(status))
    with opened(server) as client, pytest.raises(FetchError, match=words) as caught:
        client.get("x")
    assert caught.value.status == status
    assert caught.value.absent == (status == 404)
    assert caught.value.exit_code == 1


def test_a_redirect_within_the_origin_is_followed_with_the_key(server):
    server.site["/there"] = b"found"
    server.say("/x", Reply(302, headers={"Location": "/there"}))
    with opened(server) as client:
        assert client.get("x") == b"found"


@pytest.mark.parametrize("hops", [3, 4])
def test_at_most_three_redirects(server, hops):
    for number in range(hops):
        server.say(f"/hop{number}", Reply(301, headers={"Location": f"/hop{number + 1}"}))
    server.site[f"/hop{hops}"] = b"end"
    with opened(server) as client:
        if hops == 3:
            assert client.get("hop0") == b"end"
        else:
            with pytest.raises(FetchError, match="more than 3 redirects"):
                client.get("hop0")


def test_a_redirect_without_a_place_is_an_error(server):
    server.say("/x", Reply(302))
    with opened(server) as client, pytest.raises(FetchError, match="refused"):
        client.get("x")


def test_a_post_gives_the_status_and_follows_nothing(server):
    with opened(server) as client:
        assert client.post("api/audit/ingest", b'{"events": []}') == 202
        server.say("/api/audit/ingest", Reply(307, headers={"Location": "/elsewhere"}))
        assert client.post("api/audit/ingest", b"{}") == 307
    assert server.paths() == ["/api/audit/ingest"] * 2


def test_gzip_is_unpacked_and_counted_unpacked(server):
    import gzip

    packed = gzip.compress(b"0" * (9 << 20))
    server.say("/big", Reply(body=packed, headers={"Content-Encoding": "gzip"}))
    with opened(server) as client:
        with pytest.raises(FetchError, match="larger than 8 MiB"):
            client.get("big")
        assert len(client.get("big", limit=10 << 20)) == 9 << 20


def test_other_packing_is_refused(server):
    server.say("/x", Reply(body=b"..", headers={"Content-Encoding": "br"}))
    with opened(server) as client, pytest.raises(FetchError, match="packed"):
        client.get("x")


@pytest.mark.parametrize("how", [Reply(delay=3.0), Reply(body=b"12", cut=5, delay=0.0)])
def test_a_slow_or_breaking_server_costs_at_most_the_deadline(server, how):
    server.say("/x", how)
    began = time.monotonic()
    with opened(server, deadline=0.4) as client, pytest.raises(FetchError):
        client.get("x")
    assert time.monotonic() - began < 2.0


def test_a_dribbling_server_costs_at_most_the_deadline(monkeypatch):
    """Single reads come in time, the whole doesn't: httpx alone would wait on."""
    import socket

    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def dribble():
        other, _ = listener.accept()
        other.recv(4096)
        try:
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nX: " + b"a" * 500:
                if stop.wait(0.05):
                    break
                other.send(bytes([byte]))
        except OSError:
            pass
        other.close()

    threading.Thread(target=dribble, daemon=True).start()
    began = time.monotonic()
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with Client(Credentials(base, "acme"), deadline=0.5) as client, pytest.raises(FetchError, match="in time"):
        client.get("x")
    assert time.monotonic() - began < 2.0
    stop.set()
    listener.close()


def test_nobody_listens():
    credentials = Credentials("http://127.0.0.1:9", "acme", SECRET)
    with Client(credentials, deadline=2) as client, pytest.raises(FetchError, match="can't be reached") as caught:
        client.get("api/bundle/acme")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx.RemoteProtocolError(f"illegal status line: bytearray(b'{SECRET}')"), "the answer is no HTTP"),
        (httpx.LocalProtocolError(f"Illegal header value b'{SECRET}'"), "the answer is no HTTP"),
        (httpx.RemoteProtocolError("Server disconnected without sending a response."), "closed the connection"),
        (httpx.ConnectError("x" * 190 + SECRET), r"can't be reached: x+\*\*\*"),
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_no_message_of_the_library_brings_the_key_out(error, words, method):
    def failing(request):
        raise error

    credentials = Credentials("https://policy.example", "acme", SECRET)
    client = Client(credentials, transport=httpx.MockTransport(failing))
    with client, pytest.raises(FetchError, match=words) as caught:
        client.get("x") if method == "get" else client.post("x", b"{}")
    assert SECRET[:8] not in str(caught.value) + caught.value.message


def test_a_redirect_that_carries_the_key_is_refused_without_quoting_it(server):
    server.say("/x", Reply(302, headers={"Location": f"https://elsewhere.example/{SECRET}"}))
    with opened(server) as client, pytest.raises(FetchError, match="another place") as caught:
        client.get("x")
    assert SECRET not in str(caught.value)


def test_a_proxy_of_the_environment_never_sees_what_goes_to_loopback(server, monkeypatch):
    with serving() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        server.site["/x"] = b"direct"
        with opened(server) as client:
            assert client.get("x") == b"direct"
        assert proxy.requests == []


# ---------------------------------------------------------------------------------------------- folders


def test_a_folder_speaks_the_same_paths(tmp_path):
    (tmp_path / "site dir" / "api" / "bundle").mkdir(parents=True)
    (tmp_path / "site dir" / "api" / "bundle" / "key").write_bytes(b"pem")
    credentials = Credentials(check_base_url((tmp_path / "site dir").as_uri()), "acme")
    with Client(credentials) as client:
        assert client.get("api/bundle/key") == b"pem"
        assert client.get("../bundle/key", relative_to="api/skills/acme") == b"pem"
        with pytest.raises(FetchError) as caught:
            client.get("api/bundle/acme")
        assert caught.value.absent
        with pytest.raises(FetchError) as caught:
            client.get("api/skills/acme/content?skill=x")
        assert caught.value.absent
        assert client.post("api/audit/ingest", b"{}") == 501


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../secret", "%2e%2e/secret", "file:///etc/passwd"])
def test_a_folder_is_not_left(tmp_path, path):
    (tmp_path / "site").mkdir()
    (tmp_path / "secret").write_text("s")
    with Client(Credentials((tmp_path / "site").as_uri(), "acme")) as client, pytest.raises(FetchError):
        client.get(path)


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_links_out_of_a_folder_and_pipes_are_refused(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "secret").write_text("s")
    (site / "link").symlink_to(tmp_path / "secret")
    (site / "inside").symlink_to(site / "real")
    (site / "real").write_text("r")
    os.mkfifo(site / "pipe")
    with Client(Credentials(site.as_uri(), "acme")) as client:
        with pytest.raises(FetchError, match="leads out"):
            client.get("link")
        with pytest.raises(FetchError, match="regular"):
            client.get("pipe")
        assert client.get("inside") == b"r"
        with pytest.raises(FetchError, match="larger"):
            client.get("real", limit=0)


# ---------------------------------------------------------------------------------------- addresses, key


@pytest.mark.parametrize(
    "url",
    [
        "https://host.example", "https://host.example:8443/base/", "http://localhost:8000", "http://127.0.0.1",
        "http://[::1]:80", "file:///srv/site/", "file://localhost/srv",
    ],
)  # fmt: skip
def test_addresses_that_may_be_synced_from(url):
    assert not check_base_url(url).endswith("/")


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("http://host.example", "plain HTTP"), ("http://localhost.evil.example", "plain HTTP"),
        ("http://127.0.0.1.evil.example", "plain HTTP"), ("https://u:p@host.example", "password"),
        ("https://host.example/?a=1", "end before"), ("https://host.example/#x", "end before"),
        ("ftp://host.example", "no address"), ("host.example", "no address"), ("", "no address"),
        ("https://", "no address"), ("file://other/srv", "this machine"), ("https://h\n.example", "control"),
        ("https://host\\.example", "backslash"), ("https://host:99999", "can't be read"), ("file:srv", "whole path"),
    ],
)  # fmt: skip
def test_addresses_that_are_refused(url, word):
    with pytest.raises(UsageError, match=word):
        check_base_url(url)


@given(st.text(max_size=60))
def test_an_address_is_accepted_or_refused_in_words(text):
    for prefix in ("", "https://", "http://", "file://"):
        try:
            found = check_base_url(prefix + text)
        except UsageError:
            continue
        assert found.startswith(("https://", "http://", "file:///"))
        assert found.isprintable()


@pytest.mark.parametrize("org", ["key", "KEY", "", ".", "..", "a/b", "a b", "../x", "-x", "a..b", "x" * 101, "é"])
def test_organisations_that_are_refused(org):
    with pytest.raises(UsageError):
        check_org(org)


def test_organisations_that_are_fine():
    assert [check_org(org) for org in ("acme", "a", "A-1_b.c")] == ["acme", "a", "A-1_b.c"]


@pytest.mark.parametrize("key", ["", "  ", f"{SECRET} two", f"{SECRET}\r\nX-Evil: 1", f"{SECRET}é"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_quoted(key):
    with pytest.raises(UsageError) as caught:
        check_key(key)
    assert "SECRET" not in str(caught.value)
    assert check_key(f" {SECRET}\n") == SECRET


BASE = Client(Credentials("http://localhost/base", "acme"))


@given(st.text(max_size=50), st.text(max_size=20))
def test_no_path_leaves_the_base(path, relative_to):
    try:
        found = BASE.url(path, relative_to=relative_to)
    except FetchError:
        return
    assert found.startswith("http://localhost/base/")


def test_a_segment_stays_one():
    assert segment("acme/de ploy?x#y") == "acme%2Fde%20ploy%3Fx%23y"


# ------------------------------------------------------------------------------------------ credentials


def test_credentials_are_private_and_come_back(tmp_path):
    root = tmp_path / "state"
    credentials = Credentials("https://host.example", "acme", SECRET)
    write_credentials(str(root), credentials)
    path = root / "gate" / "credentials.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert (root / "gate").stat().st_mode & 0o777 == 0o700
    assert read_credentials(str(root)) == credentials
    assert SECRET not in repr(credentials)
    assert SECRET not in f"{[credentials]}"
    assert forget_credentials(str(root))
    assert read_credentials(str(root)) is None
    assert not forget_credentials(str(root))


def test_credentials_that_others_could_read_are_made_private(tmp_path):
    root = connect(tmp_path / "s", "https://host.example")
    path = Path(root) / "gate" / "credentials.json"
    path.chmod(0o644)
    assert read_credentials(root) is not None
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"base_url": 1, "org": "a", "key": "k"}',
     '{"base_url": "http://x.y", "org": "a", "key": "k"}',
     '{"base_url": "https://x.y", "org": "key", "key": "k"}',
     '{"base_url": "https://x.y", "org": "a", "key": "a b"}'],
)  # fmt: skip
def test_broken_credentials_say_what_to_do(tmp_path, text):
    root = connect(tmp_path / "s", "https://host.example")
    (Path(root) / "gate" / "credentials.json").write_text(text)
    with pytest.raises(StateError, match="gstack login"):
        read_credentials(root)


def test_not_connected_says_what_to_do(tmp_path):
    with pytest.raises(StateError, match="gstack login"):
        need_credentials(str(tmp_path / "s"))


def test_the_error_tells_people_about_the_code_word():
    assert issubclass(FetchError, GstackError)
    assert FetchError.code == "GSTACK_NETWORK_ERROR"
    assert client_module.BUNDLE_LIMIT == 64 << 20

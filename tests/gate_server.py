"""A policy server on loopback for tests: a static site, a live control plane, an audit ingest, and scripted failures.

Importable by tests and by processes that tests start (``pythonpath`` holds this folder).
"""

import base64
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

#: The API key of the tests: what must never show up anywhere.
SECRET = "sv-SECRET-7f3a9c"

NOW = 1_780_000_000.0


@dataclass
class Reply:
    """A scripted answer. ``cut`` announces more bytes than it sends; ``drop`` closes the connection without a word."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int = 0
    drop: bool = False


class Organisation:
    """Somebody who publishes policy: a key pair and a payload that can be signed in any version."""

    def __init__(self, org: str = "acme", private: Ed25519PrivateKey | None = None) -> None:
        self.org = org
        self.private = private or Ed25519PrivateKey.generate()

    @property
    def pem(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def payload(self, version: int = 1, **more: Any) -> dict[str, Any]:
        made: dict[str, Any] = {
            "org": self.org,
            "version": version,
            "issued_at": "2026-05-28T00:00:00Z",
            "namespaces": [self.org],
            "defaults": {"managed_missing_manifest": "warn", "unmanaged": "allow"},
            "stale_after_s": 86400,
            "stale_action": "warn",
            "policies": [],
            "manifest_index": {
                "acme/deploy": {"version": "1.0.0", "status": "approved"},
                "acme/old": {"version": "0.9.0", "status": "deprecated"},
                "acme/bad": {"version": "1.0.0", "status": "banned"},
            },
        }
        made.update(more)
        return made

    def envelope(self, version: int = 1, **more: Any) -> bytes:
        return self.sign(json.dumps(self.payload(version, **more)))

    def sign(self, payload: str, **more: Any) -> bytes:
        signature = base64.b64encode(self.private.sign(payload.encode())).decode()
        return json.dumps({"payload": payload, "signature": signature, **more}).encode()

    def publish(self, server: "GateServer", version: int = 1, **more: Any) -> None:
        server.site["/api/bundle/key"] = self.pem
        server.site[f"/api/bundle/{self.org}"] = self.envelope(version, **more)

    def publish_folder(self, folder: Path, version: int = 1, **more: Any) -> str:
        (folder / "api" / "bundle").mkdir(parents=True, exist_ok=True)
        (folder / "api" / "bundle" / "key").write_bytes(self.pem)
        (folder / "api" / "bundle" / self.org).write_bytes(self.envelope(version, **more))
        return folder.as_uri()


class GateServer:
    """``site`` maps paths to bytes; ``contents`` names to what the query form gives; ``script`` says what goes wrong.

    ``events`` are the accepted events as they arrived, ``counted`` each id once; ``requests`` every request seen.
    """

    def __init__(self, *, key: str | None = None, ingest: bool = True) -> None:
        self.key = key
        self.ingest = ingest
        self.site: dict[str, bytes] = {}
        self.contents: dict[str, bytes] = {}
        self.script: dict[str, list[tuple[Reply, int]]] = defaultdict(list)
        self.events: list[dict[str, Any]] = []
        self.counted: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"gate": self})
        self.http = _Server(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def say(self, path: str, reply: Reply, times: int = 1_000_000) -> None:
        self.script[path].append((reply, times))

    def calm(self) -> None:
        self.script.clear()

    def scripted(self, path: str) -> Reply | None:
        with self.lock:
            waiting = self.script.get(path)
            if not waiting:
                return None
            reply, times = waiting[0]
            waiting[:1] = [(reply, times - 1)] if times > 1 else []
            return reply

    def load_folder(self, folder: Path) -> None:
        """Serve the files of a built static site."""
        for path in folder.rglob("*"):
            if path.is_file():
                self.site["/" + path.relative_to(folder).as_posix()] = path.read_bytes()

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.requests]

    def take(self, body: bytes) -> int:
        try:
            events = json.loads(body)["events"]
            ids = [event["event_id"] for event in events]
        except (ValueError, KeyError, TypeError):
            return 400
        with self.lock:
            for name, event in zip(ids, events, strict=True):
                self.events.append(event)
                self.counted.setdefault(name, event)
        return 202


class _Server(ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    gate: GateServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one write an answer: two cost 40 ms (Nagle and delayed acknowledgement)
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def answer(self, body: bytes) -> None:
        gate, parts = self.gate, urlsplit(self.path)
        gate.requests.append((self.command, self.path, dict(self.headers)))
        reply = gate.scripted(parts.path)
        if reply is None:
            reply = self.normal(parts.path, parts.query, body)
        time.sleep(reply.delay)
        if reply.drop:
            self.close_connection = True
            self.connection.close()
            return
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if not any(name.lower() in ("content-length", "transfer-encoding") for name in reply.headers):
                self.send_header("Content-Length", str(len(reply.body) + reply.cut))
            self.end_headers()
            self.wfile.write(reply.body)
        except OSError:
            self.close_connection = True
        if reply.cut:
            self.close_connection = True

    def normal(self, path: str, query: str, body: bytes) -> Reply:
        gate = self.gate
        if gate.key is not None and self.headers.get("X-Skillsvault-Key") != gate.key:
            return Reply(401)
        if self.command == "POST":
            known = path == "/api/audit/ingest" and gate.ingest
            return Reply(gate.take(body) if known else 404)
        if query and path.endswith("/content"):
            found = gate.contents.get(parse_qs(query).get("skill", [""])[0])
            return Reply(404) if found is None else Reply(body=found)
        found = gate.site.get(unquote(path))
        return Reply(404) if found is None else Reply(body=found)


@contextmanager
def serving(**options: Any) -> Iterator[GateServer]:
    """A running server, stopped at the end."""
    server = GateServer(**options)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join(5)


def connect(root: Path, base_url: str, org: str = "acme", key: str = SECRET) -> str:
    """Put credentials into a state folder, as a login leaves them; the folder as text."""
    gate = root / "gate"
    gate.mkdir(parents=True, exist_ok=True, mode=0o700)
    gate.chmod(0o700)
    root.chmod(0o700)
    path = gate / "credentials.json"
    path.write_text(json.dumps({"base_url": base_url, "org": org, "key": key}))
    path.chmod(0o600)
    return str(root)

"""A scripted stand-in for the Anthropic Messages API, on 127.0.0.1 only (standard library only).

Serves as much of HTTP as a headless agent needs for a session without any outside call: ``POST /v1/messages``
(streaming and not), ``POST /v1/messages/count_tokens``, ``GET /v1/models``, ``HEAD /``. Everything else is answered
with 404. What it replies is the scenario's ``model`` (see README.md); every request is kept.
"""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

NO_MORE = {"text": "mock finished (script exhausted)"}


def text_of(content: Any) -> str:
    """All text in a message's content (a string or a list of blocks), joined by newlines."""
    if isinstance(content, str):
        return content
    parts = []
    for block in content or []:
        if isinstance(block, dict) and block.get("type") == "text":
            parts.append(block.get("text") or "")
        elif isinstance(block, dict) and block.get("type") == "tool_result":
            parts.append(text_of(block.get("content")))
    return "\n".join(parts)


class Script:
    """Chooses the next step for a request; safe to use from several threads."""

    def __init__(self, model: Json | None) -> None:
        self.model = model or {}
        self.count: dict[str, int] = {}
        self.lock = threading.Lock()
        self.ids = 0

    def next_id(self) -> int:
        """A number that was not given before."""
        with self.lock:
            self.ids += 1
            return self.ids

    def pick(self, body: Json) -> tuple[str, int | None, Json]:
        """The route of a request, its place in the route's list, and the step to play."""
        found = next((route for route in self.model.get("routes") or [] if _hit(route["match"], body)), None)
        if found is None and not body.get("tools"):
            return "side", None, {"text": self.model.get("side") or "ok"}
        name = "main" if found is None else found["name"]
        steps = self.model.get("main") or [] if found is None else found["steps"]
        with self.lock:
            place = self.count.get(name, 0)
            self.count[name] = place + 1
        return name, place, steps[place] if place < len(steps) else NO_MORE


def _hit(match: Json, body: Json) -> bool:
    """Whether a request fits: each of ``first_user``, ``last_user`` and ``system`` is searched by its expression."""
    users = [message for message in body.get("messages") or [] if message.get("role") == "user"]
    parts = {
        "first_user": text_of(users[0].get("content")) if users else "",
        "last_user": text_of(users[-1].get("content")) if users else "",
        "system": text_of(body.get("system")),
    }
    return all(re.search(pattern, parts[key]) for key, pattern in match.items())


def _blocks(step: Json, script: Script) -> list[Json]:
    blocks: list[Json] = [{"type": "text", "text": step["text"]}] if step.get("text") else []
    for tool in step.get("tools") or []:
        ident = f"toolu_mock_{script.next_id():04d}"
        blocks.append({"type": "tool_use", "id": ident, "name": tool["name"], "input": tool.get("input") or {}})
    return blocks


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server_version = "mock-messages/1"
    server: "MockServer"

    def log_message(self, *_: Any) -> None:
        pass

    def _json(self, value: Json, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("request-id", f"req_mock_{self.server.script.next_id():04d}")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _not_found(self) -> None:
        self._json({"type": "error", "error": {"type": "not_found_error", "message": "mock"}}, 404)

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        self.server.record({"path": self.path, "route": "other"})
        if not self.path.split("?")[0].rstrip("/").endswith("/v1/models"):
            return self._not_found()
        model = {"type": "model", "id": "mock-model", "display_name": "mock", "created_at": "2026-01-01T00:00:00Z"}
        return self._json({"data": [model], "has_more": False, "first_id": "mock-model", "last_id": "mock-model"})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.split("?")[0]
        if path.endswith("/v1/messages/count_tokens"):
            return self._json({"input_tokens": max(1, len(raw) // 4)})
        if not path.endswith("/v1/messages"):
            self.server.record({"path": self.path, "route": "other"})
            return self._not_found()
        return self._message(json.loads(raw))

    def _message(self, body: Json) -> None:
        script = self.server.script
        route, place, step = script.pick(body)
        blocks = _blocks(step, script)
        self.server.record({"path": self.path, "route": route, "index": place, "body": body})
        if step.get("delay"):
            time.sleep(step["delay"])
        usage = {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {
            "id": f"msg_mock_{script.next_id():04d}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model") or "mock-model",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": 20},
        }
        stop = "tool_use" if step.get("tools") else "end_turn"
        if body.get("stream"):
            self._stream(message, blocks, stop)
        else:
            self._json({**message, "content": blocks, "stop_reason": stop})

    def _stream(self, message: Json, blocks: list[Json], stop: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self._event("message_start", {"message": message})
            for place, block in enumerate(blocks):
                self._block(place, block)
            delta = {"stop_reason": stop, "stop_sequence": None}
            self._event("message_delta", {"delta": delta, "usage": message["usage"]})
            self._event("message_stop", {})
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client was interrupted

    def _block(self, place: int, block: Json) -> None:
        if block["type"] == "text":
            begin: Json = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            begin = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        self._event("content_block_start", {"index": place, "content_block": begin})
        self._event("content_block_delta", {"index": place, "delta": delta})
        self._event("content_block_stop", {"index": place})

    def _event(self, kind: str, payload: Json) -> None:
        data = json.dumps({"type": kind, **payload})
        self.wfile.write(f"event: {kind}\ndata: {data}\n\n".encode())
        self.wfile.flush()


class MockServer(ThreadingHTTPServer):
    """The server; ``requests`` has what arrived, in order."""

    daemon_threads = True

    def __init__(self, model: Json | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = Script(model)
        self.requests: list[Json] = []
        self.arrived = threading.Condition()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def record(self, request: Json) -> None:
        """Keep a request and wake whoever waits for it."""
        with self.arrived:
            self.requests.append({"t": time.time(), **request})
            self.arrived.notify_all()

    def wait_for(self, route: str, count: int, timeout: float) -> bool:
        """Wait until ``count`` requests of ``route`` have arrived; False when time (seconds) is up."""
        with self.arrived:
            return self.arrived.wait_for(lambda: sum(one["route"] == route for one in self.requests) >= count, timeout)

    def start(self) -> "MockServer":
        """Serve in a thread of its own."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

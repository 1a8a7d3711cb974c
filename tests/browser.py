"""A real browser for tests of pages: Debian's chromium without a screen, driven over its debugging pipe.

No package is needed for it, and no port is opened. ``browser()`` skips the test where there is no chromium.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Browser:
    """One page in one browser. ``messages`` are what the page said on its console or tried to fetch."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out = to_browser
        self._in = from_browser
        self._data = b""
        self._count = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.errors: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._data:
            part = os.read(self._in, 1 << 16)
            assert part, "the browser went away"
            self._data += part
        line, _, self._data = self._data.partition(b"\0")
        found = json.loads(line)
        method, params = found.get("method"), found.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:400])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        return found

    def _wait_for(self, method: str) -> None:
        while self._receive().get("method") != method:
            continue

    def open(self, page: Path, *, width: int = 1280, dark: bool = False) -> None:
        """Show a file at a width in CSS pixels; narrow ones as a phone does."""
        phone = width < 600
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=844 if phone else 900,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)
        self.requests.clear()
        self.errors.clear()
        self.send("Page.navigate", url=page.as_uri())
        self._wait_for("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        said = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def shot(self, path: Path) -> None:
        """The whole page as a picture."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))


def _high(ends: tuple[int, int]) -> tuple[int, int]:
    """The same pipe on descriptors that none of the browser's is."""
    import fcntl

    made = (fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, 20), fcntl.fcntl(ends[1], fcntl.F_DUPFD_CLOEXEC, 20))
    for end in ends:
        os.close(end)
    return made


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in ``folder``."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None or sys.platform == "win32":
        pytest.skip("there is no chromium here (Debian: apt-get install chromium)")
    child_in, to_browser = _high(os.pipe())
    from_browser, child_out = _high(os.pipe())

    def connect() -> None:
        """The browser reads from descriptor 3 and writes to 4."""
        os.dup2(child_in, 3)
        os.dup2(child_out, 4)

    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
        close_fds=False,
        preexec_fn=connect,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    os.close(child_in)
    os.close(child_out)
    try:
        yield Browser(to_browser, from_browser)
    finally:
        os.close(to_browser)
        os.close(from_browser)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        if process.poll() is None:
            process.kill()
            process.wait()

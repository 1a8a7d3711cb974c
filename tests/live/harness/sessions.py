"""One session of the real Claude Code: headless (``-p``), or interactive on a pseudo terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path
from typing import Any

from mock_messages import MockServer

Json = dict[str, Any]

#: Escape sequences of a terminal.
ANSI = re.compile(rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>78cDMEH]")


class Box:
    """The folders and the environment of one scenario, all below ``root``."""

    def __init__(self, root: str, claude: str, path: str) -> None:
        self.root = Path(root).resolve()
        self.claude = claude
        self.path = path
        self.home = self.root / "home"
        self.config = self.home / ".claude"
        self.work = self.root / "work"
        self.tmp = self.root / "tmp"
        for folder in (self.config, self.work, self.tmp):
            folder.mkdir(parents=True, exist_ok=True)

    def env(self, url: str, extra: Json | None = None) -> dict[str, str]:
        """An environment made from nothing: no variable of the caller's but PATH, no real key, no telemetry."""
        return {
            "PATH": self.path,
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "TMPDIR": str(self.tmp),
            "CLAUDE_CODE_TMPDIR": str(self.tmp),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "dummy",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_BUG_COMMAND": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/sh",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            **(extra or {}),
        }

    def answer_first_questions(self) -> None:
        """Let an interactive session begin at the prompt."""
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "numStartups": 3,
            "installMethod": "unknown",
            "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
            "projects": {str(self.work): project},
        }
        path = self.config / ".claude.json"
        if not path.exists():
            path.write_text(json.dumps(state), encoding="utf-8")


def run_print(box: Box, run: Json, env: dict[str, str], timeout: float) -> Json:
    """``claude -p PROMPT``, to its end or until ``timeout`` (seconds)."""
    argv = [box.claude, "-p", "--output-format", "stream-json", "--verbose", "--include-hook-events"]
    argv += [*(run.get("args") or []), run["prompt"]]
    started = time.monotonic()
    with (box.root / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            argv,
            cwd=box.work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        killed = False
        try:
            out, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            killed = True
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
    events = [event for event in map(_parsed, out.splitlines()) if event]
    result = next((event for event in reversed(events) if event.get("type") == "result"), None)
    return {
        "mode": "print",
        "exit_code": process.returncode,
        "timed_out": killed,
        "seconds": round(time.monotonic() - started, 3),
        "stderr": (box.root / "stderr").read_text("utf-8", "replace")[-4000:],
        "result": result,
        # the first events of --continue carry a provisional id: the result is the one to trust
        "session_id": (result or {}).get("session_id"),
        "hooks": [_hook(event) for event in events if event.get("subtype") == "hook_response"],
        "notices": [event.get("content", "") for event in events if event.get("subtype") == "informational"],
    }


def _parsed(line: bytes) -> Json | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _hook(event: Json) -> Json:
    """What Claude Code itself says about one hook that it ran."""
    return {key: event.get(key) for key in ("hook_name", "hook_event", "outcome", "exit_code", "stdout", "stderr")}


class Terminal:
    """A process on a pseudo terminal of 50 lines and 160 columns."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: Path) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(argv[0], argv, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self.raw = bytearray()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._ended.is_set():
            if not select.select([self.fd], [], [], 0.1)[0]:
                continue
            try:
                part = os.read(self.fd, 65536)
            except OSError:
                return
            if not part:
                return
            self.raw.extend(part)
            if b"\x1b[c" in part:  # "what are you?": a plain terminal
                os.write(self.fd, b"\x1b[?62;c")

    def expect(self, pattern: str, since: int, timeout: float) -> bool:
        """Wait until the screen shows ``pattern`` in what came after byte ``since``."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            text = ANSI.sub(b" ", bytes(self.raw[since:])).decode("utf-8", "replace")
            if re.search(pattern, re.sub(r"\s+", " ", text)):
                return True
            time.sleep(0.05)
        return False

    def send(self, text: str) -> None:
        """Type ``text``; a final return comes a little later, so that it isn't taken for a paste."""
        data = text.encode()
        if len(data) > 1 and data.endswith(b"\r"):
            os.write(self.fd, data[:-1])
            time.sleep(0.4)
            data = b"\r"
        os.write(self.fd, data)

    def close(self, patience: float) -> tuple[int, bool]:
        """Wait for the end, at most ``patience`` seconds: the exit code, and whether it had to be killed."""
        end = time.monotonic() + patience
        done, status = os.waitpid(self.pid, os.WNOHANG)
        while not done and time.monotonic() < end:
            time.sleep(0.05)
            done, status = os.waitpid(self.pid, os.WNOHANG)
        if not done:
            os.killpg(self.pid, signal.SIGKILL)
            status = os.waitpid(self.pid, 0)[1]
        self._ended.set()
        self._thread.join(2)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status), not done

    @property
    def screen(self) -> str:
        """All that was shown, without escape sequences."""
        return re.sub(rb"[ \t]*\r+", b"\n", ANSI.sub(b"", bytes(self.raw))).decode("utf-8", "replace")


def run_tui(box: Box, run: Json, env: dict[str, str], server: MockServer, timeout: float) -> Json:
    """An interactive session; ``keys`` are played in order: ``expect``, ``wait_for`` and ``send`` (README.md)."""
    started = time.monotonic()
    terminal = Terminal([box.claude, *(run.get("args") or [])], env, box.work)
    since, missed = 0, []
    for key in run["keys"]:
        left = max(0.1, timeout - (time.monotonic() - started))
        if "expect" in key and not terminal.expect(key["expect"], since, left):
            missed.append(key)
        if "wait_for" in key and not server.wait_for(key.get("route", "main"), key["wait_for"], left):
            missed.append(key)
        if "send" in key:
            since = len(terminal.raw)
            terminal.send(key["send"])
    code, killed = terminal.close(max(1.0, timeout - (time.monotonic() - started)))
    return {
        "mode": "tui",
        "exit_code": code,
        "timed_out": killed,
        "seconds": round(time.monotonic() - started, 3),
        "screen": terminal.screen,
        "missed": missed,
        "session_id": None,
        "hooks": [],
        "notices": [],
    }

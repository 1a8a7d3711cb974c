"""A throw-away installation: a home, a state folder and the real launcher in a temporary folder. Cold.

For ``gstack demo`` and the fixtures of :mod:`gstack.testing`: what runs here is the process that hosts run, but nothing
of the person's is read or written.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from gstack.launcher import import_paths, launcher_path, launcher_text, write_launchers
from gstack.lowlevel import POSIX
from gstack.state import write_atomic

#: Variables that a child needs whatever it is for; everything else of the caller's stays outside.
_KEPT = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "LANG", "LC_ALL")


class Reply:
    """What one hook process did: its standard output and error, exit code, and the time it took in seconds."""

    def __init__(self, out: bytes, err: bytes, code: int, seconds: float) -> None:
        self.out = out
        self.err = err
        self.code = code
        self.seconds = seconds

    @property
    def answer(self) -> dict[str, Any] | None:
        """The answer as JSON; None when the hook said nothing."""
        return json.loads(self.out) if self.out.strip() else None


class Sandbox:
    """A temporary home with a state folder and launcher. Use it in ``with``; the folder goes afterwards."""

    def __init__(self, folder: str | None = None) -> None:
        self._own = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="gstack-")
        self.home = os.path.join(self.folder, "home")
        self.root = os.path.join(self.folder, "state")
        self.work = os.path.join(self.folder, "work")
        for path in (self.home, self.root, self.work):
            os.makedirs(path, mode=0o700, exist_ok=True)
        self.extra: dict[str, str] = {}
        self._folders: list[str] = []
        write_launchers(self.root)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        if self._own:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def env(self) -> dict[str, str]:
        """The environment that hooks get here."""
        env = {name: os.environ[name] for name in _KEPT if name in os.environ}
        env |= {"HOME": self.home, "USERPROFILE": self.home, "GSTACK_STATE_ROOT": self.root}
        return env | self.extra

    def add_import_folder(self, folder: str) -> None:
        """Let hooks and commands here import from ``folder`` as well, before everything else."""
        if folder in self._folders:
            return
        self._folders.append(folder)
        self.extra["PYTHONPATH"] = os.pathsep.join(self._folders)
        if POSIX:  # on Windows the console script reads the variable
            paths = [os.path.abspath(one) for one in self._folders]
            paths += [path for path in import_paths() if path not in paths]
            write_atomic(launcher_path(self.root), os.fsencode(launcher_text(self.root, paths=paths)), mode=0o700)

    def configure(self, **values: str) -> None:
        """Write the configuration of the sandbox."""
        text = "".join(f"{key}: {value}\n" for key, value in values.items())
        write_atomic(os.path.join(self.root, "config.yaml"), text.encode())

    def add_skill(self, name: str, text: str, *, folder: str = ".claude/skills") -> str:
        """Put a skill into the home; the path of its SKILL.md."""
        path = os.path.join(self.home, folder, name, "SKILL.md")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return path

    def run(
        self,
        event: str,
        payload: Mapping[str, Any] | bytes,
        *,
        host: str = "claude-code",
        env: Mapping[str, str] | None = None,
        timeout: float = 20.0,
    ) -> Reply:
        """Start the launcher as ``host`` would and give it ``payload``."""
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode() + b"\n"
        command = [launcher_path(self.root), host, event]
        if not POSIX and not os.path.exists(command[0]):
            raise FileNotFoundError(command[0])
        return self._start(command, data, env, timeout)

    def _start(self, command: list[str], data: bytes, env: Mapping[str, str] | None, timeout: float) -> Reply:
        started = time.perf_counter()
        done = subprocess.run(
            command,
            input=data,
            capture_output=True,
            env=self.env | dict(env or {}),
            cwd=self.work,
            timeout=timeout,
            check=False,
        )
        return Reply(done.stdout, done.stderr, done.returncode, time.perf_counter() - started)

    def cli(self, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 60.0) -> Reply:
        """Run a ``gstack`` command here, as a person would: ``cli("plugins", "list")``."""
        return self._start([sys.executable, "-m", "gstack", *arguments], b"", env, timeout)

    def log(self, name: str) -> list[str]:
        """The lines of a hook's log, without their time stamps."""
        try:
            with open(os.path.join(self.root, "hooks", name + ".log"), encoding="utf-8") as file:
                return [line.rstrip("\n").split(" ", 1)[1] for line in file]
        except FileNotFoundError:
            return []

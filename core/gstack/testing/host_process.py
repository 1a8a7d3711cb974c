"""The host adapter kit's checks of the real hook process: silent, with exit code 0, whatever it is fed. Cold."""

import os
import subprocess
import sys
import time
from typing import Any

from gstack.config import SWITCHES
from gstack.entrypoints import current_paths, find
from gstack.launcher import launcher_path, launcher_text
from gstack.lowlevel import POSIX
from gstack.sandbox import Sandbox
from gstack.state import write_atomic
from gstack.testing.host_files import HostChecks
from gstack.testing.kit import expect
from gstack.testing.site import FakeSite

_NOISE = (
    b"",
    b"\n",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe\x00\x01",
    b"[" * 200_000,
    b"x" * 10_000_000,
    b'{"hook_event_name": "' + b"y" * 10_000_000 + b'"}',
    b'{"prompt": ' + b'{"a": ' * 50_000,
)
#: What the process may take when standard input is never closed, in seconds (its own deadline is 5).
_PATIENCE = 9.0


class ProcessChecks(HostChecks):
    """Starts the launcher as the host would."""

    def test_noise_is_answered_with_silence(self) -> None:
        """Nothing, half a document, ten megabytes, nesting without end: exit code 0, no output."""
        for host in self.subjects():
            with self.box() as box:
                self._set_up(host, box)
                event = next(iter(host.events))
                for data in _NOISE:
                    reply = box.run(event, data, host=host.id)
                    expect(
                        (reply.code, reply.out) == (0, b""),
                        f"{host.id}: {len(data)} bytes {data[:20]!r}: exit {reply.code}, {reply.out[:80]!r}",
                    )

    def test_an_empty_object_is_answered_with_silence(self) -> None:
        """On every event that is registered."""
        for host in self.subjects():
            with self.box() as box:
                self._set_up(host, box)
                for event in host.events:
                    reply = box.run(event, b"{}\n", host=host.id)
                    expect((reply.code, reply.out) == (0, b""), f"{host.id}: {event}: {reply.code}, {reply.out!r}")

    def test_input_that_never_ends_is_given_up(self) -> None:
        """A host that keeps the pipe open, with half a document in it, isn't kept waiting."""
        for host in self.subjects():
            with self.box() as box:
                self._set_up(host, box)
                command = [launcher_path(box.root), host.id, next(iter(host.events))]
                started = time.monotonic()
                with subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=box.env
                ) as process:
                    assert process.stdin is not None
                    assert process.stdout is not None
                    process.stdin.write(b'{"half": ')
                    process.stdin.flush()
                    try:
                        code = process.wait(_PATIENCE)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        raise AssertionError(f"{host.id}: still running after {_PATIENCE:g} s") from None
                    out = process.stdout.read()
                expect((code, out) == (0, b""), f"{host.id}: exit {code}, {out!r}, {time.monotonic() - started:.1f} s")

    def test_a_missing_interpreter_or_package_is_silent(self) -> None:
        """What was registered outlives what it names: never exit code 2, which hosts read as "block"."""
        if not POSIX:
            return
        for host in self.subjects():
            with self.box() as box:
                path = launcher_path(box.root)
                for one in host.registrations(list(SWITCHES)):
                    _write(path, launcher_text(box.root, paths=[]))
                    _silent(host, box, [path, *one.args], (0,))
                    _write(path, launcher_text(box.root, interpreter=box.folder + "/gone/python"))
                    _silent(host, box, [path, *one.args], (126, 127))
                    os.unlink(path)
                    _silent(host, box, [path, *one.args], (126, 127))

    def _set_up(self, host: Any, box: Sandbox) -> None:
        """Switch everything on; a plug-in that isn't installed is installed into the sandbox."""
        box.configure(**dict.fromkeys(SWITCHES, "on"))
        modules = {found.module for found in find(current_paths()) if found.group == self.group}
        name = getattr(self.plugin, "__name__", "")
        if name in modules:
            return
        top = sys.modules[name.split(".")[0]]
        file = str(getattr(top, "__file__", ""))
        folder = os.path.dirname(file)
        if os.path.basename(file) == "__init__.py":
            folder = os.path.dirname(folder)
        site = FakeSite(os.path.join(box.folder, "site"), box)
        site("conformance-" + host.id.replace(".", "-"), {self.group: {host.id: name}}, path=folder)


def _write(path: str, text: str) -> None:
    write_atomic(path, os.fsencode(text), mode=0o700)


def _silent(host: Any, box: Sandbox, command: list[str], codes: tuple[int, ...]) -> None:
    """Run a command as a shell would; a command that isn't there ends in 127."""
    try:
        done = subprocess.run(command, input=b"{}\n", capture_output=True, env=box.env, timeout=20, check=False)
        code, out = done.returncode, done.stdout
    except OSError:
        code, out = 127, b""
    expect(code in codes and not out, f"{host.id}: {command[1:]}: exit {code}, {out!r}")

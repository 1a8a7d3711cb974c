"""pytest fixtures for the tests of plug-ins. Opt in with one line in ``conftest.py``::

    pytest_plugins = ["gstack.testing.fixtures"]

Nothing of the person's is read or written: home, state folder and launcher lie in the test's own folder.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gstack.sandbox import Reply, Sandbox
from gstack.testing.site import FakeSite
from gstack.testing.transcript import Transcript

#: Variables that would lead gstack, or a host's adapter, out of the temporary home.
_LEADING = ("GSTACK_", "CLAUDE", "XDG_", "CONDUCTOR_", "OPENCLAW_")
_CI = ("CI", "GITHUB_ACTIONS")


@pytest.fixture
def gstack_sandbox(tmp_path: Path) -> Sandbox:
    """A throw-away installation: ``home``, ``work`` and state folder, the real launcher, ``configure``, ``add_skill``,
    ``run``, ``cli`` and ``log``."""
    return Sandbox(str(tmp_path / "gstack"))


@pytest.fixture
def run_hook(gstack_sandbox: Sandbox) -> Callable[..., Reply]:
    """Start the real hook process: ``run_hook(event, payload, host="claude-code", env=None)``; gives a Reply with
    ``out``, ``err``, ``code``, ``seconds`` and ``answer`` (the answer as JSON, None for silence)."""
    return gstack_sandbox.run


@pytest.fixture
def fake_install(gstack_sandbox: Sandbox, tmp_path: Path) -> FakeSite:
    """Install a distribution for this test's hook process and command line alone:
    ``fake_install(name, {group: {entry: module}}, {file: text})``, or ``fake_install.project(folder)``."""
    return FakeSite(str(tmp_path / "site"), gstack_sandbox)


@pytest.fixture
def transcript(gstack_sandbox: Sandbox) -> Transcript:
    """An empty session in the sandbox's working folder, to be built step by step."""
    folder = Path(gstack_sandbox.home, ".claude", "projects", "-work")
    return Transcript(folder / "session.jsonl", cwd=gstack_sandbox.work)


@pytest.fixture
def gstack_home(gstack_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sandbox's home, and this process's environment points there: for code that is called straight."""
    for name in list(os.environ):
        if name.startswith(_LEADING) or name in _CI:
            monkeypatch.delenv(name)
    for name, value in gstack_sandbox.env.items():
        monkeypatch.setenv(name, value)
    return Path(gstack_sandbox.home)

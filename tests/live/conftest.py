"""Where the real Claude Code comes from, and a home for each test. See harness/README.md."""

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock, Timeout
from live_support import Live

#: The version that the facts in ``hosts/gstack_hosts/claude_code`` were measured with.
VERSION = "2.1.332"
PACKAGE = f"@anthropic-ai/claude-code@{VERSION}"
#: How long an installation may take, in seconds (the package holds about 130 MB).
INSTALL_LIMIT = 300
#: Longest that one test may take on a machine that does nothing else, in seconds.
TEST_LIMIT = 20.0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """These tests may fetch a large package, so they run only when they are asked for."""
    if "live" in config.option.markexpr:
        return
    for item in items:
        if "live" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="runs with `-m live` (tox -e live)"))


@pytest.fixture(scope="session")
def claude() -> Path:
    """The native executable: ``CC_HARNESS_CLAUDE``, else from the npm registry, kept in the person's cache folder."""
    if os.name != "posix":
        pytest.skip("the harness needs a POSIX system (pseudo terminals)")
    named = os.environ.get("CC_HARNESS_CLAUDE")
    if named:
        return _tried(Path(named))
    npm = shutil.which("npm")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gstack-live", VERSION)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / ".lock", timeout=INSTALL_LIMIT + 30):
            return _tried(_native(cache) or _installed(npm, cache))
    except Timeout:
        pytest.skip(f"another process has been installing {PACKAGE} into {cache} for too long")
    except OSError as error:
        pytest.skip(f"{cache} can't be written: {error.strerror}")


def _native(folder: Path) -> Path | None:
    """The binary of this platform, where it was installed completely."""
    found = list(folder.glob("node_modules/@anthropic-ai/claude-code-*/claude"))
    return found[0] if found and (folder / ".complete").exists() else None


def _installed(npm: str | None, folder: Path) -> Path:
    if npm is None:
        pytest.skip(f"no npm here that could install {PACKAGE}; CC_HARNESS_CLAUDE can name an executable")
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    # without a network, say so soon; a package that npm has in its own cache needs none
    patience = [
        "--prefer-offline",
        "--fetch-retries=1",
        "--fetch-retry-mintimeout=1000",
        "--fetch-retry-maxtimeout=3000",
    ]
    command = [npm, "install", "--prefix", str(folder), *quiet, *patience, PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install {PACKAGE} within {INSTALL_LIMIT} s")
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[0]
        pytest.skip(f"npm can't install {PACKAGE} (no network?): {said}")
    (folder / ".complete").touch()
    found = _native(folder)
    if found is None:
        pytest.skip(f"{PACKAGE} has no native executable for {platform.system()} {platform.machine()}")
    return found


def _tried(path: Path) -> Path:
    """``path``, if it can be run here."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{path} can't be run here: {error}")
    if done.returncode:
        pytest.skip(f"{path} can't be run here: {done.stderr.strip()[:200]}")
    return path.resolve()


@pytest.fixture
def live(claude: Path, tmp_path: Path) -> Iterator[Live]:
    """A home with skills, in which Claude Code and gstack can be run; the whole test must stay within its time."""
    started = time.monotonic()
    yield Live(tmp_path / "box", claude)
    took = time.monotonic() - started
    # what runs beside the tests slows them down as many times as there are processes too many for the cores
    limit = TEST_LIMIT * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert took < limit, f"took {took:.1f} s, may take {limit:.1f} s"


@pytest.fixture(scope="session")
def acme(claude: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of an organisation with a policy, as its security people published it."""
    return Live(tmp_path_factory.mktemp("acme") / "box", claude).publish()

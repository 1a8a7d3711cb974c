"""Background refresh: at most one start in five minutes, detached, and never in anybody's way."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gate_server import NOW, SECRET, connect
from hypothesis import given
from hypothesis import strategies as st

from gstack.gate import refresh
from gstack.gate.refresh import REFRESH_EVERY, claim, maybe_start


@pytest.fixture
def root(tmp_path):
    return connect(tmp_path / "state", "https://host.example")


@pytest.fixture
def started(monkeypatch):
    calls = []
    monkeypatch.setattr(refresh, "start", lambda root, args: calls.append(tuple(args)) or True)
    return calls


def synced(root, ago: float, **more) -> None:
    state = {"last_success": NOW - ago, "last_attempt": NOW - ago, "failing_since": None, "last_error": None, **more}
    Path(root, "gate", "sync.json").write_text(json.dumps(state))


@pytest.mark.parametrize(
    ("ago", "stale_after", "due"),
    [
        (0, 86400, False), (3599, 86400, False), (3601, 86400, True), (999999, 86400, True),
        (301, 600, True), (299, 600, False), (3599, 7200, False),
        (-200, 86400, False), (-400, 86400, True), (-1e9, 86400, True),
    ],
)  # fmt: skip
def test_older_than_an_hour_or_half_of_the_stale_time(root, started, ago, stale_after, due):
    synced(root, ago)
    assert maybe_start(root, NOW, stale_after_s=stale_after) is due
    assert started == [("sync", "--quiet")] * due


def test_connected_but_never_synced_starts_one(root, started):
    assert maybe_start(root, NOW)


def test_no_credentials_no_refresh(root, started):
    synced(root, 999999)
    os.unlink(os.path.join(root, "gate", "credentials.json"))
    assert not maybe_start(root, NOW)
    assert not maybe_start(str(Path(root) / "nowhere"), NOW)
    assert started == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"last_success": "x"}', '{"last_success": true}', "\0"])
def test_a_broken_record_means_that_one_is_due(root, started, text):
    Path(root, "gate", "sync.json").write_text(text)
    assert maybe_start(root, NOW)


def test_at_most_one_start_in_five_minutes(root, started):
    synced(root, 999999)
    moments = [0, 1, 299, 300.5, 301, 599, 601, 5000]
    assert [maybe_start(root, NOW + one) for one in moments] == [True, False, False, True, False, False, True, True]
    assert len(started) == 4


def test_a_clock_that_went_back_doesnt_stop_refreshing_for_ever(root, started):
    synced(root, 999999)
    assert maybe_start(root, NOW + 1e7)
    assert maybe_start(root, NOW)
    assert not maybe_start(root, NOW - 5)


@pytest.mark.parametrize("text", ["", "junk", "nan", "inf", "1e999", "\0\0", "9" * 5000])
def test_a_broken_lock_file_is_rewritten(root, started, text):
    synced(root, 999999)
    path = Path(root, "gate", "refresh.lock")
    path.write_text(text)
    assert maybe_start(root, NOW)
    assert path.read_text() == f"{NOW:.3f}\n"
    assert path.stat().st_mode & 0o022 == 0


@given(st.lists(st.floats(0, 2000), min_size=1, max_size=30))
def test_whatever_the_order_no_two_starts_are_closer_than_five_minutes(tmp_path_factory, moments):
    path = str(tmp_path_factory.mktemp("c") / "lock")
    got = [one for one in moments if claim(path, one, REFRESH_EVERY)]
    for before, after in zip(got, got[1:]):  # noqa: B905, RUF007
        assert abs(after - before) >= REFRESH_EVERY - 0.001


def test_many_threads_at_once_start_one(root, started):
    synced(root, 999999)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: maybe_start(root, NOW), range(64)))
    assert results.count(True) == 1
    assert len(started) == 1


@pytest.mark.skipif(os.name != "posix", reason="posix processes")
def test_many_processes_at_once_start_one(root):
    synced(root, 999999)
    code = (
        "import sys\nfrom gstack.gate import refresh\nrefresh.start = lambda *_: True\n"
        f"print(refresh.maybe_start(sys.argv[1], {NOW}))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, root], stdout=subprocess.PIPE, text=True) for _ in range(8)
    ]
    said = [process.communicate(timeout=30)[0].strip() for process in running]
    assert sorted(said) == ["False"] * 7 + ["True"]


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_lock_file_that_is_a_link_starts_nothing(root, started, tmp_path):
    synced(root, 999999)
    target = tmp_path / "precious"
    target.write_text("mine")
    Path(root, "gate", "refresh.lock").symlink_to(target)
    assert not maybe_start(root, NOW)
    assert target.read_text() == "mine"
    assert started == []


def test_nothing_starts_without_an_interpreter(root, monkeypatch):
    synced(root, 999999)
    monkeypatch.setattr(sys, "executable", None)
    assert not maybe_start(root, NOW)


# ---------------------------------------------------------------------------------------- the child

REPORT = """
import json, os, sys, time
fds = []
for fd in range(3, 40):
    try:
        os.fstat(fd)
    except OSError:
        continue
    fds.append(fd)
said = {"argv": sys.argv, "path": sys.path, "cwd": os.getcwd(), "sid": os.getsid(0), "pid": os.getpid(), "fds": fds,
        "std": [os.readlink(f"/proc/self/fd/{n}") if os.path.exists("/proc/self/fd") else os.devnull for n in range(3)],
        "root": os.environ.get("GSTACK_STATE_ROOT"), "cmdline": sys.orig_argv if hasattr(sys, "orig_argv") else []}
print("noise on standard output")
print("noise on standard error", file=sys.stderr)
until = time.monotonic() + 20
while not os.path.exists(os.path.join(said["root"], "go")) and time.monotonic() < until:
    time.sleep(0.02)
open(os.path.join(said["root"], "said.tmp"), "w").write(json.dumps(said))
os.rename(os.path.join(said["root"], "said.tmp"), os.path.join(said["root"], "said"))
"""

PARENT = """
import os, sys
from gstack.gate import refresh
refresh._BOOT = sys.argv[2]
reader, writer = os.pipe()
os.set_inheritable(writer, True)  # as a host may have left one open for us
sys.stdout.write(str(refresh.start(sys.argv[1], ("sync", "--quiet"))))
"""


@pytest.mark.skipif(os.name != "posix", reason="posix_spawn")
def test_the_child_is_detached_and_holds_nothing_of_ours(root, tmp_path):
    hostile = tmp_path / "project"
    hostile.mkdir()
    (hostile / "gstack.py").write_text("raise SystemExit('the project was imported')")
    (hostile / "json.py").write_text("raise SystemExit('the project was imported')")
    # returns at once although the child waits for "go": it holds none of our pipes
    done = subprocess.run(
        [sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-c", PARENT, root, REPORT],
        capture_output=True,
        cwd=hostile if sys.version_info >= (3, 11) else None,
        env={**os.environ, "GSTACK_KEY": SECRET, "PYTHONPATH": ""},
        check=True,
        timeout=15,
    )
    assert (done.stdout, done.stderr) == (b"True", b"")
    assert not Path(root, "said").exists()
    Path(root, "go").touch()
    deadline = time.monotonic() + 15
    while not Path(root, "said").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    said = json.loads(Path(root, "said").read_text())
    assert said["sid"] == said["pid"]
    assert said["fds"] == []
    assert said["std"] == [os.devnull] * 3
    assert said["root"] == root
    assert said["argv"][1:][-2:] == ["sync", "--quiet"]
    assert str(hostile) not in said["path"]
    assert "" not in said["path"]
    assert SECRET not in json.dumps(said["cmdline"])


def test_the_hot_modules_import_builtins_only():
    code = (
        "import sys; before = set(sys.modules); sys.path[:0] = [sys.argv[1]]\n"
        "import gstack.gate.audit, gstack.gate.refresh\n"
        "print(sorted(n for n in set(sys.modules) - before if not n.startswith('gstack')))"
    )
    core = str(Path(refresh.__file__).parents[2])
    done = subprocess.run([sys.executable, "-IS", "-c", code, core], capture_output=True, text=True, check=True)
    allowed = {"_json", "time", "posix", "_sha256", "_sha2"} if os.name == "posix" else None
    if allowed is not None:
        assert set(eval(done.stdout)) <= allowed

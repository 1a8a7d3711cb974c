"""State root, atomic writes, locks, logs and session records."""

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack import logs, sessions, state


def test_the_first_that_is_set_is_the_state_root(home: Path) -> None:
    env = {"HOME": str(home)}
    fallback = state.state_root(env)
    assert "gstack" in fallback
    (home / ".gstack").mkdir()
    assert state.state_root(env) == str(home / ".gstack")
    assert state.state_root(env, "/recorded") == "/recorded"
    assert state.state_root({**env, "GSTACK_HOME": "/h"}, "/recorded") == "/h"
    assert state.state_root({**env, "GSTACK_HOME": "/h", "GSTACK_STATE_ROOT": "/s/"}) == "/s"
    assert state.state_root({**env, "GSTACK_STATE_ROOT": "~/x"}) == str(home / "x")
    assert state.state_root({**env, "GSTACK_STATE_ROOT": "rel"}) == os.path.join(os.getcwd(), "rel")
    assert state.state_root({**env, "GSTACK_STATE_ROOT": ""}, "/recorded") == "/recorded"


def test_write_atomic_makes_private_files(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    state.write_atomic(str(path), b"one")
    state.write_atomic(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["file"]


def test_a_failed_write_leaves_the_old_file_and_no_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    state.write_atomic(str(path), b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state, "write_all", full)
    with pytest.raises(OSError, match="No space"):
        state.write_atomic(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_lock_excludes_and_is_given_back(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with state.Lock(path) as first:
        assert first.held
        with state.Lock(path, wait=False) as second:
            assert not second.held
        with state.Lock(path, timeout=0.05) as third:
            assert not third.held
    with state.Lock(path, wait=False) as again:
        assert again.held


def test_log_lines_are_one_line_each_and_private(tmp_path: Path) -> None:
    logs.log(str(tmp_path), "skill-route", "s 1\n", "routed skill=x\nforged\x1b[0m line")
    path = tmp_path / "hooks" / "skill-route.log"
    lines = path.read_text().splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(" s\\x201\\n routed skill=x\\nforged\\x1b[0m line")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_log_is_turned_over_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "ROTATE_AT", 300)
    for number in range(12):
        logs.log(str(tmp_path), "x", "s", f"line {number:03d} " + "." * 30)
    folder = tmp_path / "hooks"
    assert sorted(os.listdir(folder)) == ["x.log", "x.log.1"]
    assert (folder / "x.log.1").stat().st_size <= 400


def test_log_never_raises(tmp_path: Path) -> None:
    (tmp_path / "hooks").write_text("a file in the way")
    logs.log(str(tmp_path), "x", None, "text")
    logs.log("/proc/nowhere", "x", "\udcff", "text \udcff")


@pytest.mark.parametrize(
    "bad", [None, "", "..", "a/b", "a\\b", "../x", ".hidden", "x" * 129, "a..b", "nul", "COM1.txt", "a b", "é", "a\0b"]
)
def test_an_id_that_could_be_another_file_is_none(bad: str | None) -> None:
    assert sessions.safe_id(bad) is None


@given(st.text())
def test_a_safe_id_stays_in_its_folder(text: str) -> None:
    name = sessions.safe_id(text)
    if name is not None:
        assert os.path.basename(os.path.normpath(os.path.join("/x", name))) == name


def test_sessions_add_up(tmp_path: Path) -> None:
    root = str(tmp_path)
    sessions.update_session(root, "s", hinted=["qa"], error="skill_routing")
    found = sessions.update_session(root, "s", loaded=["qa", "review"], error="skill_routing", notice="n")
    assert found.errors == {"skill_routing": 2}
    again = sessions.read_session(root, "s")
    assert (again.loaded, again.hinted, again.notices) == ({"qa", "review"}, {"qa"}, {"n"})
    assert sessions.read_session(root, "other").hinted == set()


def test_two_writers_of_a_session_lose_nothing(tmp_path: Path) -> None:
    root = str(tmp_path)
    threads = [
        threading.Thread(target=lambda n=number: sessions.update_session(root, "s", hinted=[f"skill-{n}"]))
        for number in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sessions.read_session(root, "s").hinted) == 12


@pytest.mark.parametrize("text", ["", "[]", "{", '{"loaded": 3}', '{"errors": []}', '{"hinted": [1, null]}'])
def test_a_broken_record_is_an_empty_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "s.json").write_text(text)
    assert sessions.read_session(str(tmp_path), "s").hinted == set()
    assert sessions.update_session(str(tmp_path), "s", hinted=["a"]).hinted == {"a"}


def test_an_unwritable_root_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert sessions.update_session(str(tmp_path / "file"), "s", hinted=["a"]).hinted == set()

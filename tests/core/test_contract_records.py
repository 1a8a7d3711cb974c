"""Session records: what is read, what is refused, and that no outcome is ever lost (contracts C7)."""

import contextlib
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from contract_helpers import SESSION
from hypothesis import given
from hypothesis import strategies as st

from gstack.contracts.records import change_run, find_run, read_record, record_path
from gstack.errors import ContractState, RecordError
from gstack.lowlevel import POSIX

RUN: dict[str, Any] = {
    "skill": "investigate",
    "load_id": "load-1",
    "contract": {"version": 1, "digest": "abc"},
    "items": {"debug-report": "met"},
    "outcome": "met",
    "updated_at": 1_800_000_000,
}


def put(root: Path, run: dict[str, Any], session: str = SESSION) -> None:
    change_run(str(root), session, "claude-code", run["load_id"], lambda _old: run)


def write(root: Path, data: bytes) -> Path:
    path = Path(record_path(str(root), SESSION))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_absent_is_none(tmp_path: Path) -> None:
    assert read_record(str(tmp_path), SESSION) is None
    assert find_run(None, "load-1") is None


def test_shape_on_disk(tmp_path: Path) -> None:
    put(tmp_path, RUN)
    path = tmp_path / "skill-contracts" / f"{SESSION}.json"
    assert json.loads(path.read_text()) == {"version": 1, "session": SESSION, "host": "claude-code", "runs": [RUN]}
    if POSIX:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_second_run_is_added_and_the_first_one_changed_in_place(tmp_path: Path) -> None:
    put(tmp_path, RUN)
    put(tmp_path, {**RUN, "load_id": "load-2"})
    put(tmp_path, {**RUN, "outcome": "miss"})
    record = read_record(str(tmp_path), SESSION)
    assert record is not None
    assert [(run["load_id"], run["outcome"]) for run in record["runs"]] == [("load-1", "miss"), ("load-2", "met")]


def test_change_sees_a_copy_and_none_leaves_the_file(tmp_path: Path) -> None:
    put(tmp_path, RUN)
    before = Path(record_path(str(tmp_path), SESSION)).stat().st_mtime_ns

    def change(old: Any) -> None:
        old["outcome"] = "miss"

    change_run(str(tmp_path), SESSION, "claude-code", "load-1", change)
    assert Path(record_path(str(tmp_path), SESSION)).stat().st_mtime_ns == before
    assert find_run(read_record(str(tmp_path), SESSION), "load-1") == RUN


def test_unknown_keys_of_others_survive(tmp_path: Path) -> None:
    record = {"version": 1, "session": SESSION, "host": "h", "runs": [{**RUN, "note": 1}], "later": {"a": 1}}
    path = write(tmp_path, json.dumps(record).encode())
    put(tmp_path, {**RUN, "load_id": "load-2"})
    kept = json.loads(path.read_text())
    assert kept["later"] == {"a": 1}
    assert kept["runs"][0]["note"] == 1


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "corrupt"),
        (b"{", "corrupt"),
        (b'{"version": 1, "session": "' + SESSION.encode() + b'", "runs": [{"skill"', "corrupt"),
        (b"\xff\xfe\x00", "corrupt"),
        (b"[" * 100_000, "corrupt"),
        (b"[]", "no session record"),
        (b'{"hello": 1}', "no session record"),
        (b'{"version": "1", "runs": []}', "no session record"),
        (b'{"version": 9, "runs": "whatever"}', "a newer gstack wrote it (version 9"),
        (b'{"version": 1, "runs": []}', "corrupt"),
        (b'{"version": 1, "session": "x", "runs": {}}', "corrupt"),
        (b'{"version": 1, "session": "someone-else", "runs": []}', "another session"),
    ],
)
def test_what_cannot_be_used_is_told_apart_and_left_alone(tmp_path: Path, data: bytes, says: str) -> None:
    path = write(tmp_path, data)
    with pytest.raises(RecordError) as caught:
        read_record(str(tmp_path), SESSION)
    assert says in caught.value.message
    assert caught.value.path == str(path)
    with pytest.raises(ContractState):
        put(tmp_path, RUN)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "damage",
    [
        {"outcome": "fine"},
        {"items": []},
        {"items": {"a": "maybe"}},
        {"load_id": None},
        {"skill": 1},
        {"contract": None},
        {"blocked_at": "yesterday"},
        {"seen_agents": ["a"]},
        {"seen_agents": {"a": "b"}},
    ],
)
def test_a_run_that_lacks_what_it_must_have_is_corrupt(tmp_path: Path, damage: dict[str, Any]) -> None:
    record = {"version": 1, "session": SESSION, "host": "h", "runs": [{**RUN, **damage}]}
    write(tmp_path, json.dumps(record).encode())
    with pytest.raises(RecordError, match="corrupt"):
        read_record(str(tmp_path), SESSION)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ENTRY = st.dictionaries(st.sampled_from([*RUN, "blocked_at", "seen_agents"]), PLAIN) | st.just(RUN)


@given(PLAIN | st.fixed_dictionaries({"version": st.just(1), "session": st.just(SESSION), "runs": st.lists(ENTRY)}))
def test_any_json_is_a_record_or_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    root = tmp_path_factory.mktemp("state")
    write(root, json.dumps(value).encode())
    with contextlib.suppress(RecordError):  # anything else is a fault
        record = read_record(str(root), SESSION)
        assert record is not None
        put(root, {**RUN, "load_id": "new"})
        assert find_run(read_record(str(root), SESSION), "new")


def test_truncation_at_any_byte_is_noticed(tmp_path: Path) -> None:
    put(tmp_path, RUN)
    whole = Path(record_path(str(tmp_path), SESSION)).read_bytes()
    for end in range(len(whole.rstrip())):
        write(tmp_path, whole[:end])
        with pytest.raises(RecordError):
            read_record(str(tmp_path), SESSION)


def test_full_disk_between_temporary_file_and_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old record stays whole, nothing is left behind, and the caller learns of it."""
    put(tmp_path, RUN)
    path = Path(record_path(str(tmp_path), SESSION))
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    from gstack import state

    monkeypatch.setattr(state.sys_os, "fsync", full)
    with pytest.raises(RecordError, match="No space left on device"):
        put(tmp_path, {**RUN, "load_id": "load-2"})
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir() if one.name.endswith(".tmp")] == []


def test_state_root_that_is_a_file(tmp_path: Path) -> None:
    root = tmp_path / "state"
    root.write_text("")
    with pytest.raises(RecordError, match="can't be written"):
        put(root, RUN)


@pytest.mark.skipif(not POSIX or os.geteuid() == 0, reason="root reads everything")
def test_unreadable_record(tmp_path: Path) -> None:
    put(tmp_path, RUN)
    Path(record_path(str(tmp_path), SESSION)).chmod(0)
    with pytest.raises(RecordError, match="can't be read"):
        read_record(str(tmp_path), SESSION)


def test_record_that_is_a_folder(tmp_path: Path) -> None:
    Path(record_path(str(tmp_path), SESSION)).mkdir(parents=True)
    with pytest.raises(RecordError, match="can't be read"):
        read_record(str(tmp_path), SESSION)


def test_what_comes_after_the_write_runs_under_the_lock(tmp_path: Path) -> None:
    seen: list[bool] = []
    path = record_path(str(tmp_path), SESSION)
    change_run(str(tmp_path), SESSION, "h", "load-1", lambda _: RUN, then=lambda: seen.append(os.path.isfile(path)))
    change_run(str(tmp_path), SESSION, "h", "load-1", lambda _: None, then=lambda: seen.append(False))
    assert seen == [True]


def test_parallel_changes_lose_nothing(tmp_path: Path) -> None:
    threads = [
        threading.Thread(target=put, args=(tmp_path, {**RUN, "load_id": f"load-{number}"})) for number in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record = read_record(str(tmp_path), SESSION)
    assert record is not None
    assert {run["load_id"] for run in record["runs"]} == {f"load-{number}" for number in range(12)}

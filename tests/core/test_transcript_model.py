"""Names, times and files of lines: what every host's transcript reader shares."""

import copy
import datetime
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import Event
from gstack.errors import ContractState
from gstack.lowlevel import POSIX
from gstack.transcript import LIMIT, Source, epoch, is_load_of, same_skill, since_load
from gstack.values.tools import skill_name


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("investigate", "investigate", True),
        ("/investigate", " investigate ", True),
        ("acme:deploy", "deploy", True),
        ("deploy", "/acme:deploy", True),
        ("apps/web:deploy", "deploy", True),
        ("acme:deploy", "other:deploy", False),
        ("deploy", "redeploy", False),
        ("Investigate", "investigate", False),
        ("acme:", "acme:", True),
        ("acme:", "", False),
        ("", "", False),
        ("/", " ", False),
    ],
)
def test_names_of_the_same_skill(one: str, other: str, same: bool) -> None:
    assert same_skill(one, other) is same
    assert same_skill(other, one) is same


def test_a_name_loses_slashes_and_white_space() -> None:
    assert skill_name(" //acme:deploy \n") == "acme:deploy"


def load(name: str, **more: object) -> Event:
    return Event("load", name=name, how="tool", **more)  # type: ignore[arg-type]


def test_a_run_begins_at_the_last_load_of_its_skill() -> None:
    events = [load("a"), Event("text", text="1"), load("x:a"), Event("text", text="2"), load("b")]
    assert since_load(events, ["a"]) == events[2:]
    assert since_load(events, ["/b", "c"]) == events[4:]
    assert since_load(events, ["c"]) == []
    assert since_load(events, []) == []


def test_a_subagents_load_begins_no_run() -> None:
    assert not is_load_of(load("a", agent="a1"), ["a"])
    assert not is_load_of(Event("text", text="a"), ["a"])


def test_a_text_may_wait_until_it_is_asked_for() -> None:
    asked = []

    def printed() -> str:
        asked.append(1)
        return "3 passed"

    event, same = Event("result", ref="t", text=printed), Event("result", ref="t", text="3 passed")
    assert not asked
    assert (event == same, event.text, len(asked)) == (True, "3 passed", 1)
    for copied in (copy.deepcopy(Event("result", ref="t", text=printed)), pickle.loads(pickle.dumps(same))):
        assert copied == same
        assert (
            repr(copied)
            == repr(same)
            == "Event(denied=False, ordinal=0, origin='user', ref='t', text='3 passed', type='result', uid='')"
        )


# ------------------------------------------------------------------------------------------------ times


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("1970-01-01T00:00:00.000Z", 0.0),
        ("2026-11-30T13:05:44.459Z", 1796043944.459),
        ("2026-11-30T13:05:44Z", 1796043944.0),
        ("2026-11-30T15:05:44.459+02:00", 1796043944.459),
        ("2026-11-30T08:05:44.459-0500", 1796043944.459),
        ("2026-11-30T13:05:44.459123Z", 1796043944.459123),
        ("2026-11-30T13:05:44", 1796043944.0),
        (1796043944, 1796043944.0),
        (1796043944459, 1796043944.459),
        (1796043944.5, 1796043944.5),
    ],
)
def test_times(stamp: object, seconds: float) -> None:
    assert epoch(stamp) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    "stamp",
    [None, True, "", "soon", "2026", "2026-13-01T00:00:00Z", "2026-11-30", "2026-11-30Tnow", -5, 1e300, [], {},
     "[trimmed for fixture]", "2026-11-30T13:05:xxZ", "2026-11-30T13:05:44+x"],
)  # fmt: skip
def test_what_is_no_time_is_none(stamp: object) -> None:
    assert epoch(stamp) is None


@given(st.datetimes(min_value=datetime.datetime(1970, 1, 2), max_value=datetime.datetime(2200, 1, 1)))
def test_times_are_those_of_the_calendar(moment: datetime.datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=datetime.timezone.utc)
    text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert epoch(text) == pytest.approx(moment.timestamp(), abs=1e-4)


@given(st.text(max_size=30))
def test_no_text_breaks_the_clock(text: str) -> None:
    found = epoch(text)
    assert found is None or isinstance(found, float)


# ----------------------------------------------------------------------------------------------- reading


def cut(data: bytes) -> list[tuple[int, bytes]]:
    """The lines of ``data`` with their places, the plain way."""
    found, place = [], 0
    for line in data.split(b"\n"):
        found.append((place, line + b"\n"))
        place += len(line) + 1
    last_place, last = found.pop()
    return [*found, (last_place, last[:-1])] if last != b"\n" else found


LINES = st.binary(max_size=12).map(lambda data: data.replace(b"\r", b"x"))
FILES = st.builds(
    lambda lines, end: b"\n".join(lines) + end, st.lists(LINES, max_size=12), st.sampled_from([b"", b"\n"])
)


@given(data=FILES, block=st.integers(1, 20), start_at=st.integers(0, 5))
def test_lines_come_whole_from_either_end(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, block: int, start_at: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "f"
    path.write_bytes(data)
    lines = cut(data)
    with Source(str(path), LIMIT, block=block) as source:
        assert list(source.lines_back(len(data) + 1)) == lines[::-1]
        start = lines[start_at][0] if start_at < len(lines) else len(data)
        found = []
        for place, part, first, last in source.chunks(start, source.size):
            found += [(place + first + at, line) for at, line in cut(part[first:last])]
        assert found == [line for line in lines if line[0] >= start]


def test_the_search_from_the_end_stops_between_lines(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"one\ntwo\nthree\nfour\n")
    with Source(str(tmp_path / "f"), LIMIT, block=4) as source:
        assert list(source.lines_back(8)) == [(14, b"four\n")]
        assert list(source.lines_back(0)) == []


def test_a_file_that_shrinks_while_it_is_read_gives_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one\ntwo\nthree\n")
    with Source(str(path), LIMIT, block=4) as source:
        os.truncate(path, 5)
        assert [part[first:last] for _, part, first, last in source.chunks(0, source.size)] == [b"one\n", b"t"]
        assert [line for _, line in source.lines_back(100)][-1] == b"one\n"


def test_a_file_that_grows_is_read_as_it_was_when_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one\n")
    with Source(str(path), LIMIT) as source:
        path.write_bytes(b"one\ntwo\n")
        assert [line for _, line in source.lines_back()] == [b"one\n"]


def failure(path: str, limit: int = LIMIT) -> ContractState:
    with pytest.raises(ContractState) as caught:
        Source(path, limit)
    assert caught.value.exit_code == 3
    assert caught.value.message.startswith(f"{path}: ")
    assert caught.value.path == path  # type: ignore[attr-defined]
    return caught.value


def test_a_missing_file(tmp_path: Path) -> None:
    assert "there is no such file" in failure(str(tmp_path / "none")).message


def test_a_name_that_can_be_no_file() -> None:
    failure("a\0b")


def test_a_folder(tmp_path: Path) -> None:
    failure(str(tmp_path))


def test_a_file_over_the_limit_says_both_sizes(tmp_path: Path) -> None:
    path = tmp_path / "big"
    with path.open("wb") as file:
        file.truncate(33 << 20)
    assert failure(str(path)).message.endswith("it is larger than 32 MiB (33 MiB)")
    with Source(str(path), 33 << 20) as source:
        assert source.size == 33 << 20


@pytest.mark.skipif(not POSIX, reason="named pipes and modes are POSIX's")
def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in failure(str(tmp_path / "pipe")).message


@pytest.mark.skipif(not POSIX or os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    path.chmod(0)
    assert "can't be read" in failure(str(path)).message

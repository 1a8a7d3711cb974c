"""Adding up: bounded whatever comes, copies once, and any file gives rows or a reason."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_support import box, run, transcript

from gstack.errors import UsageError
from gstack.replay import report as reports
from gstack.replay.files import in_project
from gstack.replay.report import Latest, Report
from gstack.replay.rows import FileResult, PromptRow, RouteRow, RunRow, UseRow, key_of
from gstack.replay.spans import since

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "id", "name", "input", "skill", "content", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)
FACTS: dict[str, Any] = {"other": {"org": "acme", "version": 2}, "notes": []}


def route(key: int, ts: float | None, skill: str = "qa") -> RouteRow:
    return RouteRow(key, ts, f"s{key}", skill, 1.0, "t", "none", "", "")


def use(key: int, name: str, action: str = "warn", then: str = "block") -> UseRow:
    return UseRow(key, 1.0, "s", "skill", name, action, "P", "why", then, "Q", "because")


def test_the_latest_rows_stay_in_whatever_order_they_came() -> None:
    rows = [route(place, float(place)) for place in range(50)]
    random.Random(1).shuffle(rows)
    latest = Latest(5)
    for row in rows:
        latest.add(row)
    assert [row.ts for row in latest.rows] == [49.0, 48.0, 47.0, 46.0, 45.0]
    assert (latest.total, latest.left_out) == (50, 45)
    timeless = Latest(3)
    for place in range(9):
        timeless.add(route(place, None if place % 2 else float(place)))
    assert [row.ts for row in timeless.rows] == [8.0, 6.0, 4.0]


def test_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "NAMES", 10)
    report = Report(FACTS)
    for place in range(100):
        uses = tuple(use(place * 100 + n, f"name-{place}-{n}") for n in range(5))
        report.add(FileResult("/x", 1, uses=uses))
    # one further row for all other names of the same answer and policy
    assert len(report.by_policy()) == 11
    assert sum(row[4] for row in report.by_policy()) == 500
    assert len(report.by_change()) == 11
    assert report.changed == 500


def test_what_two_files_hold_counts_once() -> None:
    report = Report(FACTS)
    run_ = RunRow(7, 2.0, "s", "qa", "l", "blocked", ("a",), ("a",), "")
    one = FileResult(
        "/x", 1, prompts=(PromptRow(1, 1.0, "routed"),), routes=(route(1, 1.0),), runs=(run_,), uses=(use(3, "n"),)
    )
    report.add(one)
    report.add(
        one._replace(path="/fork", prompts=(*one.prompts, PromptRow(2, 3.0, "slash"), PromptRow(2, 3.0, "slash")))
    )
    assert report.as_dict()["prompts"] == {
        "total": 2, "typed": 2, "routed": 1, "reasons": {"routed": 1, "slash": 1},
    }  # fmt: skip
    assert (report.routed, report.run_total, report.held_total, report.use_total()) == (1, 1, 1, 1)
    assert report.twice == 4
    assert (report.files.first, report.files.last) == (1.0, 3.0)


def test_an_answer_that_nobody_gave_is_like_an_allow() -> None:
    report = Report(FACTS)
    report.add(FileResult("/x", 1, uses=(use(1, "a", "", "allow"), use(2, "b", "", "warn"), use(3, "c", "allow", ""))))
    assert [(row[0], row[2], row[3]) for row in report.by_change()] == [("b", "allow", "warn")]


def test_keys_differ_where_any_part_does() -> None:
    assert key_of("a", None) == key_of("a", None)
    assert len({key_of("a", "b"), key_of("ab"), key_of("a", "c"), key_of("\ud800")}) == 4


def test_since() -> None:
    assert [since(text, 1e6) for text in ("90m", " 12H ", "2d", "1w")] == [994600.0, 956800.0, 827200.0, 395200.0]
    assert since("1970-01-02", 0) == 86400.0
    for text in ("", "5", "0d", "-1d", "1y", "2026-13-01", "yesterday"):
        with pytest.raises(UsageError):
            since(text, 0)


@pytest.mark.parametrize(
    ("cwd", "project", "expected"),
    [
        ("/home/u/work", "work", True),
        ("/home/u/work/", "work", True),
        ("/home/u/work/deep", "work", False),
        ("/home/u/work/deep", "/home/u/work", True),
        ("/home/u/workshop", "/home/u/work", False),
        ("/home/u/work", "/", True),
        (None, "work", False),
        ("", "work", False),
    ],
)
def test_in_project(cwd: str | None, project: str, expected: bool) -> None:
    assert in_project(cwd, project) is expected


def states(folder: Path, data: bytes) -> dict[str, int]:
    path = folder / "t.jsonl"
    path.write_bytes(data)
    report = run({"HOME": str(folder / "home"), "GSTACK_STATE_ROOT": str(folder / "state")}, path)
    json.dumps(report.as_dict())
    return dict(report.files.states)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    box(folder)
    return folder


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "attachment", "system"]), JSON), max_size=4))
def test_any_records_give_rows_or_a_reason(place: Path, records: list[tuple[str, Any]]) -> None:
    made = transcript(place).prompt("fix this bug").load("investigate")
    lines = [json.dumps(record) for record in made.records]
    lines += [json.dumps({"type": kind, "message": {"content": value}, "attachment": value}) for kind, value in records]
    assert states(place, "\n".join(lines).encode()) == {"ok": 1}
    alone = "\n".join(lines[len(made.records) :]).encode()
    assert set(states(place, alone)) <= {"ok", "no transcript"}


def test_transcripts_that_break_off_anywhere(shared: Path, place: Path) -> None:
    chance = random.Random(5)
    found = sorted((shared / "corpus" / "transcripts").rglob("*.jsonl"))
    for path in chance.sample([one for one in found if 1000 < one.stat().st_size < 300_000], 12):
        data = path.read_bytes()
        for cut in chance.sample(range(len(data)), 4):
            assert set(states(place, data[:cut])) <= {"ok", "no transcript"}

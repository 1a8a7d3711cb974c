"""How old the bundle is, and what that does (gate G5)."""

import json
from pathlib import Path

import pytest

from gstack.gate.freshness import age_text, connected, judge, read_freshness

NOW = 1_800_000_000.0
HOUR = 3600.0


@pytest.mark.parametrize(
    ("age_h", "failing_h", "is_connected", "stale"),
    [
        (1, None, True, False),
        (30, None, True, False),  # a laptop that was closed
        (30, 1, True, False),
        (30, 23.9, True, False),
        (30, 24, True, True),
        (23, 48, True, False),
        (30, None, False, True),
        (23, None, False, False),
        (24, None, False, False),
    ],
)
def test_stale_takes_age_and_on_a_connected_machine_failing_as_well(
    age_h: float, failing_h: "float | None", is_connected: bool, stale: bool
) -> None:
    failing = None if failing_h is None else NOW - failing_h * HOUR
    assert judge(NOW, NOW - age_h * HOUR, failing, connected=is_connected).stale is stale


@pytest.mark.parametrize(
    ("age", "stale_after", "due"),
    [
        (3599, 86400, False),
        (3601, 86400, True),
        (1801, 3600, True),
        (1799, 3600, False),
        (-10, 86400, False),
        (-301, 86400, True),
        (None, 86400, True),
    ],
)
def test_a_refresh_is_due_after_an_hour_or_half_of_the_limit(
    age: "float | None", stale_after: float, due: bool
) -> None:
    last = None if age is None else NOW - age
    assert judge(NOW, last, None, connected=True, stale_after=stale_after).due is due
    assert not judge(NOW, last, None, connected=False, stale_after=stale_after).due, "no credentials, no refresh"


def test_a_clock_that_went_backwards_is_no_age() -> None:
    found = judge(NOW, NOW + 10 * 86400, None, connected=False)
    assert (found.age, found.stale) == (0, False)


def test_failing_since_the_future_is_not_failing() -> None:
    assert not judge(NOW, NOW - 30 * HOUR, NOW + HOUR, connected=True).stale


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (30 * HOUR, "30 hours"),
        (HOUR, "1 hour"),
        (240.5 * HOUR, "240 hours"),
        (300, "5 minutes"),
        (60, "1 minute"),
        (0, "0 minutes"),
    ],
)
def test_an_age_in_words(age: float, text: str) -> None:
    assert age_text(age) == text


def test_the_state_is_read_from_the_state_folder(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.mkdir()
    header = {"stale_after": 86400.0, "stale_action": "block"}
    (gate / "sync.json").write_text(json.dumps({"last_success": NOW - 30 * HOUR, "failing_since": None}))
    found = read_freshness(str(tmp_path), header, NOW)
    assert (found.stale, found.action, found.due) == (True, "block", False)
    (gate / "credentials.json").write_text("{}")
    assert connected(str(tmp_path))
    found = read_freshness(str(tmp_path), header, NOW)
    assert (found.stale, found.due) == (False, True)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"last_success": "yesterday"}', '{"last_success": true}'])
def test_a_broken_state_counts_from_when_the_bundle_was_written(tmp_path: Path, text: str) -> None:
    gate = tmp_path / "gate"
    gate.mkdir()
    (gate / "sync.json").write_text(text)
    (gate / "bundle.json").write_text("{}")
    written = (gate / "bundle.json").stat().st_mtime
    header = {"stale_after": 86400.0, "stale_action": "warn"}
    assert not read_freshness(str(tmp_path), header, written + 60).stale
    assert read_freshness(str(tmp_path), header, written + 90000).stale

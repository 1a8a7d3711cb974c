"""Sessions that Claude Code 2.1.332 wrote, cut down to their conversation, and what the reader makes of each."""

from pathlib import Path

import pytest
from claude_records import told

from gstack.transcript import LIMIT
from gstack_hosts.claude_code.transcript import last_load, read_run, read_transcript

DATA = Path(__file__).parents[2] / "data" / "transcripts"
CAPTURES = sorted(path.stem for path in DATA.glob("*.jsonl"))


def test_there_are_captures() -> None:
    assert len(CAPTURES) > 10


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_gives_these_events(name: str) -> None:
    """The ``.events`` files were checked by hand against the scenarios."""
    events = read_transcript(str(DATA / f"{name}.jsonl"), max_bytes=LIMIT)
    assert told(events) == (DATA / f"{name}.events").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("name", "skill", "how", "length"),
    [
        ("skill_call", "investigate", "tool", 11),
        ("tui_typed_skill_and_builtins", "/pre-landing-review", "typed", 6),
        ("plugin", "deploy-check", "typed", 3),
        ("plugin", "acme:ship", "typed", 7),
        ("skill_failures", "no-such-skill", None, 0),
        ("typed_forked_skill", "forked", None, 0),
    ],
)
def test_the_run_of_a_skill(name: str, skill: str, how: str | None, length: int) -> None:
    path = str(DATA / f"{name}.jsonl")
    run = read_run(path, skills=[skill], max_bytes=LIMIT)
    assert len(run) == length
    assert [event.how for event in run[:1]] == ([how] if how else [])
    assert last_load(path, skills=[skill], max_bytes=LIMIT) == (run[0] if run else None)

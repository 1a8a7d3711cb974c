"""Contracts on sessions that really happened: recorded stops of Claude Code, and every transcript that lies here."""

import contextlib
import json
import random
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from contract_helpers import WORKED_CONTRACT, built_in_kinds, call_plain, context

from gstack.api import Event, Skill
from gstack.contracts import hook
from gstack.contracts.check import evaluate
from gstack.contracts.judge import Bench, Declared, check_transcript
from gstack.contracts.runs import Names, last_run
from gstack.contracts.schema import parse_contract
from gstack.errors import NotLoaded, UnknownShape
from gstack_hosts.claude_code import ClaudeCode

HOST = ClaudeCode()
LABELS = {"version": 1, "items": [{"id": "r", "kind": "report_labels", "heading": "REPORT", "labels": ["A"]}]}
REVIEW = {
    "version": 1,
    "items": [
        {"id": "specialists", "kind": "selected_specialists_dispatched"},
        {"id": "reviewer", "kind": "agent_dispatch", "match": "security"},
    ],
}
CONTRACTS = {
    "investigate": WORKED_CONTRACT,
    "pre-landing-review": REVIEW,
    "acme:deploy-check": LABELS,
    "release-notes": LABELS,
    "greet": LABELS,
}
#: Scenario: for each of its stops whether it is held, and what stands in the record at the end.
SCENARIOS: dict[str, tuple[list[bool], list[tuple[str, str, str]]]] = {
    "skill_call": ([False], [("investigate", "met", "met met")]),
    "typed_skill": ([False], [("investigate", "met", "met met")]),
    "routing_hint": ([False], [("investigate", "met", "met met")]),
    "stop_block_then_fixed": ([True, False], [("investigate", "met_after_block", "met met")]),
    "tui_skill_then_stop_block": ([True, False], [("investigate", "met_after_block", "met met")]),
    # calls that were denied, or went wrong, are no edits
    "permission_denied": ([True], [("investigate", "blocked", "missing met")]),
    "permission_mode_dontask": ([True], [("investigate", "blocked", "missing met")]),
    # loads by reading the file, by the label, by a bare plugin name; refused ones are none
    "read_skill_md": ([True], [("investigate", "blocked", "missing met")]),
    "typed_by_frontmatter_label": ([True], [("release-notes", "blocked", "missing")]),
    "project_skill_typed_and_called": ([True, True, True], [("release-notes", "blocked", "missing")] * 3),
    "typed_command": ([True], [("greet", "blocked", "missing")]),
    "skill_failures": ([True], [("investigate", "blocked", "missing met")]),
    "pretool_deny_skill": ([False], []),
    "skill_reinvoked": ([True, True], [("investigate", "blocked", "missing met")] * 2),
    # a compaction that attaches the skill again is no load
    "compact_manual": ([True, False], [("investigate", "miss", "missing met")]),
    "tui_compact": ([True, False], [("investigate", "miss", "missing met")]),
    # of two stacked skills the last one counts; sessions without such a skill are let alone
    "tui_typed_skill_and_builtins": (
        [True, True, False],
        [("investigate", "blocked", "missing met"), ("pre-landing-review", "miss", "missing missing")],
    ),
    "agent_background": ([False, False], []),
    "stop_cap_print": ([False] * 9, []),
    "plan_mode": ([False], []),
}


def stops(folder: Path) -> list[dict[str, Any]]:
    with (folder / "hook_events.jsonl").open(encoding="utf-8") as file:
        return [event for event in map(json.loads, file) if event["event"] == "Stop"]


def as_it_was(folder: Path, stop: dict[str, Any], target: Path) -> None:
    """The session's transcript without what was written after the stop's hook began."""
    (source,) = folder.glob(f"projects/*/{stop['payload']['session_id']}.jsonl")
    kept = []
    for line in source.read_text(encoding="utf-8").splitlines(keepends=True):
        stamp = json.loads(line).get("timestamp")
        if stamp and datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() > stop["t0"]:
            break
        kept.append(line)
    target.write_text("".join(kept), encoding="utf-8")


@pytest.mark.parametrize("name", SCENARIOS)
def test_recorded_stops(name: str, shared: Path, tmp_path: Path) -> None:
    held, expected = SCENARIOS[name]
    folder = shared / "reference" / "claude-code-live" / "2.1.332" / name
    found = []
    for stop in stops(folder):
        target = tmp_path / f"{stop['payload']['session_id']}.jsonl"
        as_it_was(folder, stop, target)
        event = HOST.decode({**stop["payload"], "transcript_path": str(target)}, stop["env_shown"])
        assert event is not None
        fields = {key: getattr(event, key) for key in event.__slots__ if key not in ("host", "native_name")}
        options = {"contracts": CONTRACTS, "labels": {"label-differs": "release-notes"}, "env": stop["env_shown"]}
        ctx = context(tmp_path, HOST, now=stop["t0"], **options, **fields)
        ticks = iter(range(100))
        answer = hook.answer(ctx, clock=lambda ticks=ticks: next(ticks) * 0.2, pause=lambda _: None)
        assert answer.notice is None
        found.append(bool(answer.block_stop))
    assert found == held
    records = [json.loads(path.read_text()) for path in sorted((tmp_path / "state").glob("skill-contracts/*.json"))]
    runs = [run for record in records for run in record["runs"]]
    assert [(run["skill"], run["outcome"], " ".join(run["items"].values())) for run in runs] == expected


# --------------------------------------------------------------------------------------- every transcript here


def transcripts(shared: Path) -> list[Path]:
    live = sorted(shared.glob("reference/claude-code-live/*/*/projects/**/*.jsonl"))
    return [*sorted(path for path in (shared / "corpus" / "transcripts").rglob("*.jsonl")), *live]


ALL_KINDS = {"version": 1, "items": [*WORKED_CONTRACT["items"], *REVIEW["items"]]}


def loaded(events: list[Event]) -> set[str]:
    return {event.name for event in events if event.type == "load" and event.agent is None and event.name}


def declared(name: str, bench: Bench) -> Declared:
    return Declared(Skill(name, "SKILL.md", contract=ALL_KINDS), Names([name]), bench)


def test_every_transcript_gets_a_verdict_or_exit_4(shared: Path, tmp_path: Path) -> None:
    """And the part that the hook reads gives the same verdict as the whole."""
    bench = Bench(str(tmp_path), {})
    kinds = built_in_kinds()
    contract = parse_contract(ALL_KINDS, kinds, source="x")
    count = verdicts = 0
    for path in transcripts(shared):
        count += 1
        try:
            names = loaded(HOST.read_transcript(str(path), max_bytes=32 << 20))
        except UnknownShape:
            with pytest.raises(UnknownShape):
                check_transcript(str(path), declared("any", bench), bench)
            continue
        with pytest.raises(NotLoaded):
            check_transcript(str(path), declared("no-such-skill", bench), bench)
        for name in names:
            done = check_transcript(str(path), declared(name, bench), bench)
            assert len(done.outcome.results) == 4
            assert not done.outcome.unclear
            part = last_run(HOST.read_run(str(path), skills=[name], max_bytes=32 << 20), [name], Names([name]))
            assert part is not None
            assert evaluate(contract, part, kinds, call_plain) == done.outcome
            verdicts += 1
    assert count > 200
    assert verdicts > 30


def test_truncated_anywhere_it_is_still_read(shared: Path, tmp_path: Path) -> None:
    bench = Bench(str(tmp_path), {})
    random_ = random.Random(4)
    small = [path for path in transcripts(shared) if 1000 < path.stat().st_size < 400_000]
    for path in random_.sample(small, 30):
        copy = tmp_path / "t.jsonl"
        shutil.copy(path, copy)
        data = copy.read_bytes()
        for cut in sorted(random_.sample(range(len(data)), 8), reverse=True):
            copy.write_bytes(data[:cut])
            for name in ("investigate", "any"):
                with contextlib.suppress(UnknownShape, NotLoaded):  # anything else is a fault
                    check_transcript(str(copy), declared(name, bench), bench)

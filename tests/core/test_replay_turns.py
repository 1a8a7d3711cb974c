"""How a main thread falls into turns, what the model loaded after a prompt, and the stops against recorded ones."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from contract_helpers import WORKED_CONTRACT, called, load, result, said
from replay_support import run

from gstack.api import Event
from gstack.replay.turns import stops, what_followed


def prompt(text: str = "go", origin: str = "user") -> Event:
    return Event("prompt", text=text, origin=origin)


def feedback() -> Event:
    return Event("continuation", text="Stop hook feedback")


TURNS: dict[str, tuple[list[Event], list[tuple[int, bool]]]] = {
    "at the end of the file": ([prompt(), said("done")], [(2, False)]),
    "before the next prompt": ([prompt(), said("done"), prompt(), said("again")], [(2, False), (4, False)]),
    "at the host's mark, once": ([prompt(), said("done"), Event("turn_end"), prompt()], [(2, False)]),
    "before a notification": ([prompt(), said("wait"), prompt("x", "notification")], [(2, False)]),
    "not after a result": ([prompt(), said("I'll look"), called("shell", "1"), result("1")], []),
    "not where a prompt steers a turn": (
        [prompt(), called("shell", "1"), result("1"), prompt("faster"), said("ok")],
        [(5, False)],
    ),
    "not when it was broken off": ([prompt(), said("I'll"), Event("interrupted"), prompt()], []),
    "not with an open call": ([prompt(), said("now"), called("agent", "1")], []),
    "continued by a hook": (
        [prompt(), said("a"), feedback(), said("b"), prompt(), said("c")],
        [(2, False), (4, True), (6, False)],
    ),
    "nothing at all": ([], []),
}  # fmt: skip


@pytest.mark.parametrize("name", TURNS)
def test_stops(name: str) -> None:
    events, expected = TURNS[name]
    assert list(stops(events)) == expected


FOLLOWED: dict[str, tuple[list[Event], tuple[str, str]]] = {
    "loaded it": ([prompt(), load("qa")], ("followed", "qa")),
    "loaded it after another": ([prompt(), load("verify"), load("qa")], ("followed", "qa")),
    "by its label": ([prompt(), load("label")], ("followed", "qa")),
    "another": ([prompt(), load("other")], ("other", "other")),
    "none": ([prompt(), said("ok")], ("none", "")),
    "too late": ([prompt(), said("ok"), prompt("and now"), load("qa")], ("none", "")),
    "a person typed it": ([prompt(), Event("load", name="qa", how="typed")], ("none", "")),
    "after a notification": ([prompt(), said("w"), prompt("x", "notification"), load("qa")], ("followed", "qa")),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_followed(name: str) -> None:
    events, expected = FOLLOWED[name]
    assert what_followed(events, 0, "qa", {"qa": "qa", "label": "qa"}.get) == expected


# --------------------------------------------------------------------- against what the real hooks recorded

LABELS = {"version": 1, "items": [{"id": "r", "kind": "report_labels", "heading": "REPORT", "labels": ["A"]}]}
REVIEW = {
    "version": 1,
    "items": [
        {"id": "specialists", "kind": "selected_specialists_dispatched"},
        {"id": "reviewer", "kind": "agent_dispatch", "match": "security"},
    ],
}
#: Folder -> (label, contract). The stop hook's own test (test_contract_recorded) has the same.
SKILLS = {
    "investigate": ("investigate", WORKED_CONTRACT),
    "pre-landing-review": ("pre-landing-review", REVIEW),
    "deploy-check": ("deploy-check", LABELS),
    "release-notes": ("label-differs", LABELS),
    "greet": ("greet", LABELS),
}
#: Recorded scenario -> the outcomes in the records, as the stop hook writes them on the recorded payloads.
RECORDED: dict[str, list[tuple[str, str]]] = {
    "skill_call": [("investigate", "met")],
    "typed_skill": [("investigate", "met")],
    "routing_hint": [("investigate", "met")],
    "stop_block_then_fixed": [("investigate", "met_after_block")],
    "tui_skill_then_stop_block": [("investigate", "met_after_block")],
    "permission_denied": [("investigate", "blocked")],
    "permission_mode_dontask": [("investigate", "blocked")],
    "read_skill_md": [("investigate", "blocked")],
    "typed_by_frontmatter_label": [("release-notes", "blocked")],
    "project_skill_typed_and_called": [("release-notes", "blocked")] * 3,
    "typed_command": [("greet", "blocked")],
    "skill_failures": [("investigate", "blocked")],
    "pretool_deny_skill": [],
    "skill_reinvoked": [("investigate", "blocked")] * 2,
    "compact_manual": [("investigate", "miss")],
    "tui_compact": [("investigate", "miss")],
    "tui_typed_skill_and_builtins": [("investigate", "blocked"), ("pre-landing-review", "miss")],
    "agent_background": [],
    "stop_cap_print": [],
    "plan_mode": [],
}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    for folder, (label, contract) in SKILLS.items():
        place = tmp_path / "home" / ".claude" / "skills" / folder
        place.mkdir(parents=True)
        front: dict[str, Any] = {"name": label, "contract": contract}
        (place / "SKILL.md").write_text("---\n" + yaml.safe_dump(front) + "---\nbody\n", encoding="utf-8")
    return {"HOME": str(tmp_path / "home"), "GSTACK_STATE_ROOT": str(tmp_path / "state")}


@pytest.mark.parametrize("name", RECORDED)
def test_a_replayed_stop_is_decided_as_the_hook_did(name: str, shared: Path, env: dict[str, str]) -> None:
    """Beside the hook's records a replay lists the runs that no final turn ended."""
    report = run(env, shared / "reference" / "claude-code-live" / "2.1.332" / name / "projects")
    found = [(row.skill, row.outcome) for row in report.runs.rows if row.outcome != "open"]
    assert sorted(found) == sorted(RECORDED[name])
    held = [row for row in report.runs.rows if row.held]
    assert len(held) == sum(outcome != "met" for _, outcome in RECORDED[name])

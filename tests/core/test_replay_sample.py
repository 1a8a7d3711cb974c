"""The report's figures against ten sessions that were counted by hand, and every transcript that lies here.

How it was counted: each file's JSON lines were read record by record, without the transcript reader. A *prompt* is a
user record with text that is no meta record, no compaction summary, no interruption and not a subagent's, or a queued
command; it is *typed* unless a host's envelope or notification wrote it; a ``<command-message>`` record is a slash
prompt. A *route* was found by holding each prompt's words against the four sample skills' triggers by the rules of
routing R2 and R3 (content words, equivalents, window, negation), and what the model did by looking for Skill calls up
to the next typed prompt. A *run* is a Skill call that succeeded or a typed skill that is installed; it is held when the
last message before a stop hook's mark or the next prompt has no DEBUG REPORT (none of these runs edits a file, so the
other item is met). A *use* is a Skill or Agent/Task call or a typed skill or command, unless the host refused the call
as invalid (its result is a ``<tool_use_error>``): no hook ran then.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
from gate_support import payload
from replay_support import box, policy, run, write_json

from gstack.replay.report import Report

CORPUS = "corpus/transcripts/"
LIVE = "reference/claude-code-live/2.1.332/"
IRRLICHT = "ingo-eichhorst__Irrlicht__claudecode/regressions/13-full-lifecycle-continue-8a525d27/"
D_KIMUSON = "d-kimuson__claude-code-viewer__mock-global-claude-dir/projects/sample-project/"

#: Session -> prompts (typed, not typed), routes (routed, loaded it), runs by outcome, how many held, uses by kind.
COUNTED: dict[str, dict[str, Any]] = {
    # lines 1, 3, 12, 13, 14, 15 are typed (Russian); 11 is an interruption
    CORPUS + "craftwork-design__retro__session.jsonl": {"typed": 6, "not_typed": 0},
    # line 1 is /orchestrator; Task calls in lines 12 (refused: it has no prompt), 13 and 25; the rest is sidechain
    CORPUS + D_KIMUSON + "5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl": {
        "typed": 1,
        "not_typed": 0,
        "uses": {"typed": 1, "subagent": 2},
    },
    # lines 3 and 26 are typed skills, 69 is "ls"; notifications in lines 46 (queued), 52, 53, 57, 61, 65; Agent calls
    # in lines 10-12, 17-19, 30, 32, 34, 39, 41, 43
    CORPUS + IRRLICHT + "2026-04-11-20-52-54_irrlichd-unknown.jsonl": {
        "typed": 3,
        "not_typed": 6,
        "uses": {"typed": 2, "subagent": 12},
    },
    # typed: lines 3, 204, 318, 390, 459, 551; a host's: 383, 384, 387, 388, 456, 457, 548, 549, 583, 584, 589, 590;
    # notification: 231. Line 3 has "fix" and "failing" far apart in 252 words; line 204 asks to "fix lint error".
    # One Task call in line 222.
    CORPUS + "randlee__claude-history__docs/examples/claude-history-simple/export/source/session.jsonl": {
        "typed": 6,
        "not_typed": 13,
        "routed": {"investigate": 1},
        "uses": {"subagent": 1},
    },
    # typed: lines 49, 56, 96, 116, 126, 134, 136, 152, 154, 192, 232, 277, 304, 309, 313, 319, 337, 348, 371, 407, 424;
    # a host's: 230, 231; five interruptions. Line 96 begins "why is this ... failing", line 424 "Code Review for PR".
    CORPUS + "obra__episodic-memory__large-conversation.jsonl": {
        "typed": 21,
        "not_typed": 2,
        "routed": {"investigate": 1, "review": 1},
    },
    # line 3 "fix this bug"; line 19 calls the skill; stops after lines 29 ("Fixed.") and 40 (the report)
    LIVE + "stop_block_then_fixed/projects": {
        "typed": 1,
        "not_typed": 0,
        "routed": {"investigate": 1},
        "followed": 1,
        "runs": {"met_after_block": 1},
        "held": 1,
        "uses": {"skill": 1},
    },
    # lines 3, 58, 69 are typed, 31 is "check the deploy"; Skill calls in lines 34 and 39, an Agent call in line 47
    LIVE + "plugin/projects": {"typed": 4, "not_typed": 0, "uses": {"typed": 3, "skill": 2, "subagent": 1}},
    # first file: /clear in line 4. Second: typed skills in lines 5, 31, 34 (pre-landing-review isn't installed here),
    # "plain words" in line 43; stops after lines 21, 39 and 45: the second run is unmet at two of them
    LIVE + "tui_typed_skill_and_builtins/projects": {
        "typed": 4,
        "not_typed": 1,
        "runs": {"blocked": 1, "miss": 1},
        "held": 2,
        "uses": {"typed": 3},
    },
    # line 3 "twice", line 50 typed; Skill calls in lines 21, 31, 38, the first two followed by the next load
    LIVE + "skill_reinvoked/projects": {
        "typed": 2,
        "not_typed": 0,
        "runs": {"open": 2, "blocked": 2},
        "held": 2,
        "uses": {"skill": 3, "typed": 1},
    },
    # "first" to "third", and "fourth" in the fork, which copies the others, the load and its three stops
    LIVE + "resume_and_fork/projects": {
        "typed": 4,
        "not_typed": 0,
        "runs": {"miss": 1},
        "held": 1,
        "uses": {"skill": 1},
    },
}


def figures(report: Report) -> dict[str, Any]:
    data = report.as_dict()
    assert data["files"]["faults"] == []
    outcomes: dict[str, int] = {}
    for skill in data["runs"]["by_skill"]:
        for word, count in skill["outcomes"].items():
            outcomes[word] = outcomes.get(word, 0) + count
    uses: dict[str, int] = {}
    for kind in data["uses"]["by_kind"]:
        uses[kind["kind"]] = uses.get(kind["kind"], 0) + kind["uses"]
    return {
        "typed": data["prompts"]["typed"],
        "not_typed": data["prompts"]["reasons"].get("not-typed", 0),
        "routed": {one["skill"]: one["routed"] for one in data["routes"]["by_skill"]},
        "followed": data["routes"]["followed"],
        "runs": outcomes,
        "held": data["runs"]["held"],
        "uses": uses,
    }


def expected(counted: dict[str, Any]) -> dict[str, Any]:
    return {"routed": {}, "followed": 0, "runs": {}, "held": 0, "uses": {}, **counted}


@pytest.mark.parametrize("name", COUNTED)
def test_one_session_as_counted_by_hand(name: str, shared: Path, tmp_path: Path) -> None:
    assert figures(run(box(tmp_path), shared / name)) == expected(COUNTED[name])


def sum_of(key: str) -> Any:
    values = [expected(one)[key] for one in COUNTED.values()]
    if not isinstance(values[0], dict):
        return sum(values)
    total: dict[str, int] = {}
    for value in values:
        for name, count in value.items():
            total[name] = total.get(name, 0) + count
    return total


def test_all_ten_together_and_by_policy(shared: Path, tmp_path: Path) -> None:
    """In one folder, through two processes, with another bundle: the sums, and what that bundle would change."""
    folder = tmp_path / "ten"
    for place, name in enumerate(COUNTED):
        source = shared / name
        if source.is_dir():
            shutil.copytree(source, folder / str(place))
        else:
            (folder / str(place)).mkdir(parents=True)
            shutil.copy(source, folder / str(place) / source.name)
    bundle = write_json(tmp_path / "bundle.json", policy())
    report = run(box(tmp_path), folder, bundle=str(bundle), processes=2)
    assert figures(report) == {key: sum_of(key) for key in expected({"typed": 0, "not_typed": 0})}
    changes = {(one[0], one[1], one[3]): one[5] for one in report.by_change()}
    assert changes == {
        ("acme/investigate", "skill", "block"): 1 + 3 + 1,
        ("acme/investigate", "typed", "block"): 2 + 1,
        ("explore", "subagent", "warn"): 12,
        # names in the managed namespace that the catalogue lacks, and a deprecated one
        ("acme/deploy-check", "typed", "warn"): 2,
        ("acme/deploy-check", "skill", "warn"): 1,
        ("acme/auditor", "subagent", "warn"): 1,
        ("acme/ship", "typed", "warn"): 1,
    }
    assert report.changed == sum(changes.values())


@pytest.mark.parametrize("name", ["corpus/transcripts", "reference/claude-code-live"])
def test_every_transcript_here_replays(name: str, shared: Path, tmp_path: Path) -> None:
    """Without an error, against a bundle; what is left out is no transcript at all, and nothing stays behind."""
    bundle = write_json(tmp_path / "other.json", payload())
    report = run(box(tmp_path), shared / name, bundle=str(bundle))
    data = report.as_dict()
    assert data["files"]["faults"] == []
    assert set(data["files"]["left_out"]) <= {"no transcript"}
    assert data["files"]["replayed"] > 100
    assert data["prompts"]["total"] == sum(data["prompts"]["reasons"].values()) > 100
    assert not (tmp_path / "state").exists()

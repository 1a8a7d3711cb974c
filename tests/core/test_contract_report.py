"""The report: what counts as a miss, runs that are judged again, the page (contracts C8)."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from contract_helpers import SESSION, HasFile, Says, Transcript

from gstack.api import Skill
from gstack.contracts import report as reports
from gstack.contracts.judge import Bench, SkillBook
from gstack.contracts.records import STUCK_AFTER, stuck_runs
from gstack.contracts.report import Judge, Report, collect, misses_over_time, render_html
from gstack.errors import ContractUsage, RecordError

DAY = 86400
NOW = 1_800_000_000
CONTRACT = {"version": 1, "items": [{"id": "word", "kind": "test.says", "word": "magic"}]}


def run(outcome: str, **more: Any) -> dict[str, Any]:
    item = {"met": "met", "met_after_block": "met", "met_waived": "waived"}.get(outcome, "missing")
    return {
        "skill": "investigate",
        "load_id": "load-1",
        "contract": {"version": 1},
        "items": {} if outcome == "deferred" else {"word": item},
        "outcome": outcome,
        "updated_at": NOW,
        **more,
    }


def put(root: Path, *runs: dict[str, Any], session: str = SESSION, **more: Any) -> Path:
    path = root / "skill-contracts" / f"{session}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"version": 1, "session": session, "host": "claude-code", "runs": list(runs), **more}
    path.write_text(json.dumps(record))
    return path


def judge(root: Path, contract: Any = CONTRACT) -> Judge:
    bench = Bench(str(root), {"HOME": str(root)})
    bench.kinds |= {"test.says": Says(), "test.file": HasFile()}
    return Judge(bench, SkillBook([Skill("investigate", "/skills/investigate/SKILL.md", contract=contract)], bench))


def load_id(transcript: Transcript) -> str:
    """The id of the one load by the Skill tool that a transcript has: its call's."""
    return str(
        next(
            block["id"]
            for record in transcript.records
            for block in record.get("message", {}).get("content", ())
            if isinstance(block, dict) and block.get("name") == "Skill"
        )
    )


# ---------------------------------------------------------------------------------------------- what is a miss


@pytest.mark.parametrize(
    ("outcome", "miss"),
    [
        ("met", False),
        ("met_after_block", False),
        ("met_waived", True),
        ("blocked", True),
        ("miss", True),
        ("deferred", False),
    ],
)
def test_what_counts_as_a_miss(tmp_path: Path, outcome: str, miss: bool) -> None:
    put(tmp_path, run(outcome))
    found = collect(str(tmp_path))
    assert [row.miss for row in found.rows] == [miss]
    assert [row.missed_items for row in found.rows] == [["word"] if miss else []]


def test_a_waived_item_counts_also_in_a_run_that_was_fixed_otherwise(tmp_path: Path) -> None:
    put(tmp_path, run("met_after_block", items={"word": "waived", "other": "met"}))
    assert collect(str(tmp_path)).rows[0].missed_items == ["word"]


def test_by_skill_and_item(tmp_path: Path) -> None:
    put(tmp_path, run("miss"), run("met", load_id="load-2"), run("miss", skill="review", load_id="load-3"))
    put(tmp_path, run("met_waived", items={"word": "waived", "more": "met"}), session="other")
    found = collect(str(tmp_path))
    assert found.by_skill() == [("investigate", 2, 3), ("review", 1, 1)]
    assert found.by_item() == [
        ("investigate", "word", 2, 3),
        ("review", "word", 1, 1),
        ("investigate", "more", 0, 1),
    ]
    shown = found.as_dict()
    assert (shown["runs"], shown["missed"], len(shown["rows"])) == (4, 3, 4)


def test_one_session_only(tmp_path: Path) -> None:
    put(tmp_path, run("miss"))
    put(tmp_path, run("miss"), session="other")
    assert [row.session for row in collect(str(tmp_path), session="other").rows] == ["other"]
    assert collect(str(tmp_path), session="never-seen").rows == []
    with pytest.raises(ContractUsage):
        collect(str(tmp_path), session="../etc")


def test_one_record_that_cannot_be_used_costs_only_itself(tmp_path: Path) -> None:
    put(tmp_path, run("miss"))
    broken = put(tmp_path, session="broken")
    broken.write_text('{"version": 1, "ses')
    put(tmp_path, run("met"), session="newer", version=5)
    moved = put(tmp_path, run("met"), session="moved")
    moved.rename(moved.with_name("renamed.json"))
    found = collect(str(tmp_path))
    assert len(found.rows) == 1
    assert [(os.path.basename(path), problem.split(" (")[0]) for path, problem in found.errors] == [
        ("broken.json", "the record is corrupt"),
        ("newer.json", "a newer gstack wrote it"),
        ("renamed.json", "it belongs to another session; move it away"),
    ]


def test_nothing_recorded(tmp_path: Path) -> None:
    assert collect(str(tmp_path)).rows == []
    (tmp_path / "skill-contracts").write_text("no folder")
    assert collect(str(tmp_path)).rows == []


# ------------------------------------------------------------------------------------------------ judged again


def transcript(tmp_path: Path, *finals: str, waive: bool = False) -> Transcript:
    made = Transcript(tmp_path / "t.jsonl").prompt("go").load("investigate")
    if waive:
        made.shell("gstack-skill-contract waive word --reason 'docs only'", "waived word: docs only")
    for final in finals:
        made.say(final)
    made.write()
    return made


def again(tmp_path: Path, made: Transcript, outcome: str, **more: Any) -> Any:
    contract = more.pop("installed", CONTRACT)
    put(tmp_path, run(outcome, load_id=load_id(made), **more), transcript=str(made.path))
    return collect(str(tmp_path), judge=judge(tmp_path, contract)).rows[0]


def test_a_run_that_was_fixed_after_its_block_is_no_miss(tmp_path: Path) -> None:
    row = again(tmp_path, transcript(tmp_path, "hm", "magic"), "blocked", blocked_at=NOW)
    assert (row.outcome, row.result, row.miss) == ("blocked", "fixed_after_block", False)


def test_a_run_that_was_never_fixed_stays_a_miss(tmp_path: Path) -> None:
    row = again(tmp_path, transcript(tmp_path, "hm"), "blocked", blocked_at=NOW)
    assert (row.result, row.miss, row.missed_items) == ("blocked", True, ["word"])


def test_a_run_that_was_waived_after_its_block(tmp_path: Path) -> None:
    row = again(tmp_path, transcript(tmp_path, "hm", waive=True), "blocked", blocked_at=NOW)
    assert (row.result, row.miss, row.items) == ("met_waived", True, {"word": "waived"})


@pytest.mark.parametrize(("final", "result"), [("magic", "met"), ("hm", "miss"), ("STATUS: BLOCKED", "met")])
def test_a_deferred_run_is_judged(tmp_path: Path, final: str, result: str) -> None:
    assert again(tmp_path, transcript(tmp_path, final), "deferred").result == result


def test_a_deferred_run_whose_agents_still_run_stays_deferred(tmp_path: Path) -> None:
    made = Transcript(tmp_path / "t.jsonl").prompt("go").load("investigate").background_agent("a1").say("sent")
    made.write()
    row = again(tmp_path, made, "deferred")
    assert (row.result, row.miss) == ("deferred", False)
    made.agent_done("a1").say("nothing")
    made.write()
    assert again(tmp_path, made, "deferred").result == "miss"


def test_only_open_runs_are_judged_again(tmp_path: Path) -> None:
    for outcome in ("met", "met_waived", "met_after_block", "miss"):
        assert again(tmp_path, transcript(tmp_path, "magic"), outcome).result == outcome


def test_an_earlier_run_ends_at_the_next_load(tmp_path: Path) -> None:
    made = transcript(tmp_path, "hm")
    first = load_id(made)
    made.load("investigate").say("magic").write()
    put(tmp_path, run("blocked", load_id=first), transcript=str(made.path))
    assert collect(str(tmp_path), judge=judge(tmp_path)).rows[0].result == "blocked"


def test_the_transcript_is_found_by_the_sessions_id(tmp_path: Path) -> None:
    made = transcript(tmp_path, "magic")
    place = tmp_path / ".claude" / "projects" / "-home-u-work" / f"{SESSION}.jsonl"
    place.parent.mkdir(parents=True)
    made.path.rename(place)
    row = again(tmp_path, made, "blocked")
    assert row.result == "fixed_after_block"


def test_a_host_that_cannot_list_its_transcripts_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boom(self: Any, env: Any) -> list[str]:
        raise RuntimeError("no")

    made = transcript(tmp_path, "magic")
    put(tmp_path, run("blocked", load_id=load_id(made)))
    monkeypatch.setattr("gstack_hosts.claude_code.ClaudeCode.transcripts", boom)
    asked = judge(tmp_path)
    assert collect(str(tmp_path), judge=asked).rows[0].note == "its transcript is gone"
    assert "claude-code: its transcripts can't be listed: raised RuntimeError: no" in asked.bench.problems


def test_why_a_run_could_not_be_judged_again(tmp_path: Path) -> None:
    made = transcript(tmp_path, "magic")
    changed = again(tmp_path, made, "blocked", contract={"version": 1, "digest": "old"})
    assert (changed.result, changed.note) == ("blocked", "the contract has changed since")
    assert "declares no contract" in again(tmp_path, made, "blocked", installed=None).note
    assert (
        'unknown kind "nope"'
        in again(tmp_path, made, "blocked", installed={"version": 1, "items": [{"id": "a", "kind": "nope"}]}).note
    )
    put(tmp_path, run("blocked", load_id="gone"), transcript=str(made.path))
    assert "doesn't hold this load" in collect(str(tmp_path), judge=judge(tmp_path)).rows[0].note
    made.path.write_text('{"type": "nothing"}\n')
    assert "no installed host adapter understands" in again(tmp_path, made, "blocked").note
    made.path.unlink()
    gone = again(tmp_path, made, "blocked")
    assert (gone.result, gone.note, gone.miss) == ("blocked", "its transcript is gone", True)


def test_a_kind_about_files_looks_in_the_sessions_folder(tmp_path: Path) -> None:
    files = {"version": 1, "items": [{"id": "word", "kind": "test.file", "word": "out.txt"}]}
    made = Transcript(tmp_path / "t.jsonl", cwd=str(tmp_path / "work")).prompt("go").load("investigate").say("done")
    made.write()
    gone = again(tmp_path, made, "blocked", installed=files)
    assert (gone.result, gone.note) == ("blocked", "word can't be judged: the session's folder isn't known")
    (tmp_path / "work").mkdir()
    assert again(tmp_path, made, "blocked", installed=files).result == "blocked"
    assert again(tmp_path, made, "blocked", installed=files).note == ""
    (tmp_path / "work" / "out.txt").touch()
    assert again(tmp_path, made, "blocked", installed=files).result == "fixed_after_block"


def test_a_host_that_fails_to_say_the_folder_costs_only_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def boom(self: Any, path: str) -> dict[str, Any]:
        raise RuntimeError("no")

    monkeypatch.setattr("gstack_hosts.claude_code.ClaudeCode.about", boom)
    assert again(tmp_path, transcript(tmp_path, "magic"), "blocked").result == "fixed_after_block"


def test_a_skill_that_is_not_installed_any_more(tmp_path: Path) -> None:
    made = transcript(tmp_path, "magic")
    assert "no installed skill is called vanished" in again(tmp_path, made, "blocked", skill="vanished").note


# ------------------------------------------------------------------------------------------------ stuck runs


def test_runs_that_wait_for_ever(tmp_path: Path) -> None:
    put(tmp_path, run("deferred"), run("met", load_id="b"))
    put(tmp_path, session="broken").write_text("{")
    assert stuck_runs(str(tmp_path), NOW + STUCK_AFTER) == []
    assert stuck_runs(str(tmp_path), NOW + 2 * STUCK_AFTER) == [(SESSION, "investigate", 2.0)]
    assert stuck_runs(str(tmp_path / "nowhere"), NOW) == []


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gstack.contracts.records.sys_os.listdir", refuse)
    with pytest.raises(RecordError, match="can't be listed"):
        collect(str(tmp_path))


# ---------------------------------------------------------------------------------------------------- the page


def rows_of(tmp_path: Path, *runs: dict[str, Any]) -> list[reports.Row]:
    put(tmp_path, *[{**one, "load_id": f"load-{place}"} for place, one in enumerate(runs)])
    return collect(str(tmp_path)).rows


def test_chart_has_a_bar_for_each_day_without_gaps(tmp_path: Path) -> None:
    chart = misses_over_time(rows_of(tmp_path, run("miss"), run("met"), run("miss", updated_at=NOW + 3 * DAY)))
    assert [bar.total for bar in chart.bars] == [1, 0, 0, 1]
    assert [bar.told.partition(": ")[2] for bar in chart.bars] == [
        "investigate · word 1; 2 runs", "0; 0 runs", "0; 0 runs", "investigate · word 1; 1 runs"
    ]  # fmt: skip
    assert chart.series == ["investigate · word"]
    assert chart.top == 1


def test_chart_joins_days_into_weeks_and_rare_items_into_others(tmp_path: Path) -> None:
    items = {f"item-{n}": "missing" for n in range(9)}
    chart = misses_over_time(rows_of(tmp_path, run("miss", items=items), run("miss", updated_at=NOW + 400 * DAY)))
    assert len(chart.bars) <= 60
    assert len(chart.series) == 8
    assert chart.series[-1] == "others"
    assert sum(bar.total for bar in chart.bars) == 10
    assert misses_over_time([]).bars == []


def test_the_page_is_one_file_that_shows_every_run(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, run("miss", skill="<b>odd</b>"), run("met"), run("met_waived", updated_at=NOW + DAY))
    page = render_html(Report(rows, [("/x.json", "the record is corrupt")]), now=NOW)
    assert "&lt;b&gt;odd&lt;/b&gt;" in page
    assert "<b>odd" not in page
    assert "the record is corrupt" in page
    assert page.count("<rect") == 2 * (2 + 2)  # two days, a bar each, drawn wide and narrow
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|https?://""", page)
    assert page.count(SESSION) == 3


def test_the_page_without_a_run(tmp_path: Path) -> None:
    assert "Nothing is recorded yet" in render_html(collect(str(tmp_path)), now=NOW)

"""``gstack route overlap``, ``suggest`` and ``report``: routing held against past sessions."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_support import PROJECT, box, transcript

from gstack.cli import main
from gstack.replay.followed import Line, log_lines, parse_line
from gstack.replay.history import open_history
from gstack.replay.overlap import find_overlaps
from gstack.replay.suggest import phrases, suggest
from gstack.routing.hook import LOG
from gstack.testing.transcript import Transcript

Run = Any


@pytest.fixture
def env(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    env = box(tmp_path)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return env


@pytest.fixture
def run(env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*args: str) -> tuple[int, str, str]:
        code = main(["route", *args])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def skill(tmp_path: Path, name: str, *triggers: str, description: str = "d") -> Path:
    folder = tmp_path / "home" / ".claude" / "skills" / name
    folder.mkdir(parents=True)
    listed = "".join(f"  - {json.dumps(trigger)}\n" for trigger in triggers)
    path = folder / "SKILL.md"
    path.write_text(f"---\nname: {name}\ndescription: {json.dumps(description)}\ntriggers:\n{listed}---\n# {name}\n")
    return path


def unchanged(env: dict[str, str]) -> bool:
    return not Path(env["GSTACK_STATE_ROOT"]).exists()


# ---------------------------------------------------------------------------------------------- overlap


def test_overlap_by_triggers_and_by_past_prompts(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    skill(tmp_path, "patch", "fix this ios bug", "debug the app")
    skill(tmp_path, "poems", "write a poem")
    made = transcript(tmp_path).prompt("please fix this ios bug").say("ok").prompt("fix this bug").say("ok")
    made.prompt("write a poem").say("ok").typed("patch", "fix the bug").write()
    code, out, _ = run("overlap", "--since", "2020-01-01")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "3 past prompts at threshold 0.66"
    assert "/investigate and /patch (not routed to)" in lines
    assert "2 past prompts reach both; the better score has /investigate 1, /patch 1" in lines
    assert '"fix this bug" of /investigate reaches /patch with 0.67 by "fix this ios' in " ".join(lines)
    assert "poems" not in out
    (pair,) = json.loads(run("overlap", "--json", "--since", "2020-01-01")[1])["pairs"]
    assert pair["skills"] == ["investigate", "patch"]
    assert pair["prompts"] == 2
    assert pair["won"] == {"investigate": 1, "patch": 1}
    assert {(one["skill"], one["trigger"]) for one in pair["triggers"]} == {
        ("investigate", "fix this bug"), ("patch", "fix this ios bug"), ("patch", "debug the app"),
    }  # fmt: skip
    assert unchanged(env)


def test_overlap_of_one_skill_without_the_history(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    skill(tmp_path, "patch", "fix this ios bug")
    skill(tmp_path, "one", "deploy the site")
    skill(tmp_path, "two", "deploy the site now")
    transcript(tmp_path).prompt("fix this ios bug").say("ok").write()
    out = run("overlap", "--no-history", "/patch")[1]
    assert "past prompts" not in out
    assert "/patch" in out
    assert "/one" not in out
    assert "/one (not routed to) and /two (not routed to)" in run("overlap", "--no-history")[1]
    # at 1 a phrase that stands whole in another trigger still answers it
    assert len(json.loads(run("overlap", "--no-history", "--json", "--threshold", "1")[1])["pairs"]) == 2
    assert run("overlap", "--no-history", "qa")[1] == "no two skills answer the same words\n"


def test_a_fork_counts_a_prompt_once(env: dict[str, str], tmp_path: Path) -> None:
    skill(tmp_path, "patch", "fix this ios bug")
    made = transcript(tmp_path, "s1").prompt("fix this ios bug").say("ok")
    made.write()
    made.path = made.path.with_name("fork.jsonl")
    made.write()
    with open_history(env, processes=1) as history:
        found = find_overlaps(history)
        assert history.files == 2
    assert [pair.prompts for pair in found.pairs] == [1]


# ---------------------------------------------------------------------------------------------- suggest

LED = ("the import job hangs forever", "why does the import job hang", "import job is stuck")
OTHERS = ("write the import docs", "add a job board", "rename the module", "bump the version", "thanks")


def history(tmp_path: Path) -> None:
    """Three prompts after which the model loaded the skill, one typed name, others without."""
    made = transcript(tmp_path)
    for text in LED:
        made.prompt(text).load("investigate").say("ok")
    made.typed("investigate", "the import job crashed for SECRETPERSON")
    made.say("ok")
    for text in OTHERS:
        made.prompt(text).say("ok")
    made.write()


def test_suggest_finds_what_prompts_share_and_judges_it(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    history(tmp_path)
    code, out, _ = run("suggest", "investigate", "--since", "2020-01-01", "--show-prompts")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80 or str(tmp_path) in out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "/investigate: 4 past prompts led to it, 5 others did not"
    assert lines[1] == "now: precision -, recall 0.00 (0 right, 0 wrong, 4 missed)"
    assert lines[2] == "with them: precision 1.00, recall 1.00 (4 right, 0 wrong, 0 missed)"
    assert '4 0 1.00 1.00 "import job"' in lines
    assert unchanged(env)


def test_suggest_prints_nothing_that_a_person_typed(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    history(tmp_path)
    for args in ((), ("--json",)):
        out = run("suggest", "/investigate", "--since", "2020-01-01", *args)[1]
        for word in ("import", "SECRETPERSON", "hang", "crashed"):
            assert word not in out
    data = json.loads(run("suggest", "investigate", "--since", "2020-01-01", "--json")[1])
    assert [one["trigger"] for one in data["suggestions"]] == [None] * len(data["suggestions"])
    assert data["suggestions"][0]["after"]["recall"] == 1.0
    assert "are made of what people typed: --show-prompts shows them" in run(
        "suggest", "investigate", "--since", "2020-01-01"
    )[1]  # fmt: skip


def test_suggest_takes_the_description_and_shows_it(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    words = "Rotates the signing keys. Use when asked to \"rotate keys\" or 'renew the certificates'."
    skill(tmp_path, "keys", description=words)
    made = transcript(tmp_path)
    made.prompt("renew the certificates please").load("keys").say("ok")
    made.prompt("show the signing code").say("ok").write()
    data = json.loads(run("suggest", "keys", "--since", "2020-01-01", "--json")[1])
    assert [(one["trigger"], one["source"]) for one in data["suggestions"]] == [
        ("renew the certificates", "description")
    ]
    assert data["together"]["recall"] == 1.0
    assert data["prompts"] == {"led": 1, "others": 1}


def test_suggest_without_a_session_that_led_to_it(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    skill(tmp_path, "keys", description='Use when asked to "rotate keys" or "show code".')
    transcript(tmp_path).prompt("show the signing code").say("ok").write()
    out = run("suggest", "keys", "--since", "2020-01-01")[1]
    assert "nothing but its description speaks for a trigger" in out
    assert '"rotate keys"' in out
    assert '"show code"' not in out  # a prompt of another kind would have reached it
    skill(tmp_path, "bare", description="")
    code, out, err = run("suggest", "bare")
    assert (code, out) == (1, "")
    assert "bare has no description, and no session here loaded it" in err


def test_suggest_keeps_to_what_helps(env: dict[str, str], tmp_path: Path) -> None:
    """A phrase that as many other prompts hold is no suggestion, and neither is one that is a trigger already."""
    made = transcript(tmp_path)
    for text in ("check the big table", "sort the big table"):
        made.prompt(text).load("verify").say("ok")
    for text in ("draw the big table", "drop the big table", "confirm the fix"):
        made.prompt(text).say("ok")
    made.write()
    with open_history(env, processes=1) as history_:
        found = suggest(history_, "verify")
    assert "big table" not in [one.phrase for one in found.found]
    assert found.before.as_dict()["wrong"] == 1


def test_suggest_judges_a_bounded_choice(env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gstack.replay.suggest.LED", 3)
    monkeypatch.setattr("gstack.replay.suggest.OTHERS", 4)
    made = transcript(tmp_path)
    for place in range(10):
        made.prompt(f"import job {place} hangs").load("investigate").say("ok").prompt(f"note {place} down").say("ok")
    made.write()
    with open_history(env, processes=1) as history_:
        found = suggest(history_, "investigate")
        assert (found.led, found.others) == (3, 4)
        assert suggest(history_, "investigate").as_dict(show=True) == found.as_dict(show=True)


def test_phrases_of_a_text() -> None:
    found = list(phrases('Finds bugs on a site. Use when "qa this page", or to test the checkout flow - fast.'))
    assert found[0] == "qa this page"
    assert "test the checkout flow" in found
    assert "checkout flow" in found
    assert "site use" not in found
    assert not any(phrase.startswith(("the ", "a ")) or phrase.endswith((" the", " a")) for phrase in found)
    assert list(phrases("")) == []


@given(st.text(max_size=200))
def test_phrases_of_any_text_are_triggers(text: str) -> None:
    for phrase in phrases(text):
        assert 2 <= len(phrase.split()) <= 5


# ----------------------------------------------------------------------------------------------- report


@given(st.text(max_size=80))
def test_any_line_of_a_log_is_read_or_passed_over(text: str) -> None:
    line = parse_line(text)
    assert line is None or line.kind in ("routed", "observed", "no-route", "shadow", "error")


LINES = {
    "2026-11-30T12:00:01Z s1 routed skill=qa score=0.67": Line(1796040001.0, "s1", "routed", "qa", 0.67),
    "2026-11-30T12:00:01Z s1 no-route reason=observe skill=qa score=1.00": Line(
        1796040001.0, "s1", "observed", "qa", 1.0
    ),
    "2026-11-30T12:00:01Z - no-route reason=slash mode=observe": Line(1796040001.0, "-", "no-route", reason="slash"),
    "2026-11-30T12:00:01Z s1 shadow scorer=vendor.x skill=- score=0.00": Line(
        1796040001.0, "s1", "shadow", scorer="vendor.x"
    ),
    "2026-11-30T12:00:01Z s1 shadow scorer=vendor.x reason=scorer-error": Line(
        1796040001.0, "s1", "shadow", scorer="vendor.x", reason="scorer-error"
    ),
    "2026-11-30T12:00:01Z s1 error failures=2 what=OSError": Line(1796040001.0, "s1", "error"),
    "2026-11-30T12:00:01Z s1 something new=1": None,
    "yesterday s1 routed skill=qa score=1": None,
    "2026-11-30T12:00:01Z s1 routed skill=qa score=high": None,
    "": None,
}


@pytest.mark.parametrize("text", LINES)
def test_lines_of_the_log(text: str) -> None:
    assert parse_line(text) == LINES[text]


def log(env: dict[str, str], *lines: str, name: str = f"{LOG}.log") -> None:
    folder = Path(env["GSTACK_STATE_ROOT"]) / "hooks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("a", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)


def hinted(tmp_path: Path) -> list[str]:
    """Five sessions, each with one prompt at 12:00:01, and what the hook logged a second later."""
    then: list[Transcript] = [transcript(tmp_path, f"s{place}").prompt("fix this bug") for place in range(4)]
    then[0].load("investigate")
    then[1].load("verify")
    then[3].load("investigate")
    for made in then:
        made.say("ok").write()
    return [
        "2026-11-30T12:00:02Z s0 shadow scorer=vendor.x skill=investigate score=0.80",
        "2026-11-30T12:00:02Z s0 routed skill=investigate score=1.00",
        "2026-11-30T12:00:02Z s1 shadow scorer=vendor.x skill=qa score=0.90",
        "2026-11-30T12:00:02Z s1 routed skill=investigate score=1.00",
        "2026-11-30T12:00:02Z s2 shadow scorer=vendor.x reason=scorer-error",
        "2026-11-30T12:00:02Z s2 routed skill=investigate score=1.00",
        "2026-11-30T12:00:02Z gone routed skill=qa score=0.67",
        "2026-11-30T12:00:02Z s3 shadow scorer=vendor.x skill=investigate score=0.70",
        "2026-11-30T12:00:02Z s3 no-route reason=below-threshold",
        # hours later the session says nothing of such a prompt
        "2026-11-30T18:00:02Z s0 no-route reason=observe skill=verify score=0.75",
        "2026-11-30T12:00:03Z s3 no-route reason=slash mode=observe",
        "2026-11-30T12:00:03Z s3 error failures=1 what=OSError",
        "a broken line",
    ]


def test_report_tells_what_became_of_each_hint(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    log(env, *hinted(tmp_path))
    code, out, _ = run("report", "--since", "2026-01-01")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "7 prompts since 2026-01-01: 4 hinted, 1 only observed"
    assert "/investigate 3 1 1 1 0" in lines
    assert "/qa 1 0 0 0 1" in lines
    assert "/verify 1 0 0 0 1" in lines
    assert "vendor.x 4 3 1 1 2 1" in lines
    assert "not hinted: below-threshold 1, slash 1" in lines
    data = json.loads(run("report", "--json", "--since", "2026-01-01")[1])
    assert set(data) == {
        "since", "decisions", "errors", "reasons", "hints", "observed", "shadows", "rows", "rows_left_out",
    }  # fmt: skip
    assert {key: data["hints"][key] for key in ("total", "followed", "other", "none", "unknown")} == {
        "total": 4, "followed": 1, "other": 1, "none": 1, "unknown": 1,
    }  # fmt: skip
    assert data["observed"]["total"] == data["observed"]["unknown"] == 1
    assert data["errors"] == 1
    assert data["shadows"] == {"vendor.x": {"prompts": 4, "routes": 3, "same": 1, "only": 1, "loaded": 2, "errors": 1}}
    by_session = {row["session"]: (row["then"], row["loaded"]) for row in data["rows"] if not row["observed"]}
    assert by_session == {
        "s0": ("followed", "investigate"), "s1": ("other", "verify"), "s2": ("none", None), "gone": ("unknown", None),
    }  # fmt: skip


def test_report_reads_the_log_that_was_turned_over_and_only_the_time_asked_for(
    run: Run, env: dict[str, str], tmp_path: Path
) -> None:
    log(env, "2026-11-01T12:00:00Z s9 routed skill=qa score=1.00", name=f"{LOG}.log.1")
    log(env, *hinted(tmp_path))
    assert next(log_lines(env["GSTACK_STATE_ROOT"], None)).session == "s9"
    assert json.loads(run("report", "--json", "--since", "2026-10-01")[1])["hints"]["total"] == 5
    assert json.loads(run("report", "--json", "--since", "2026-11-15")[1])["hints"]["total"] == 4


def test_report_opens_only_sessions_that_were_hinted(env: dict[str, str], tmp_path: Path) -> None:
    from gstack.replay.followed import what_became

    log(env, *hinted(tmp_path))
    for place in range(20):
        transcript(tmp_path, f"other{place}").prompt("x").say("y").write()
    with open_history(env, processes=1) as history_:
        what_became(history_)
        assert history_.files == 4


def test_report_of_two_hints_in_one_session_takes_each_prompt(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    made = transcript(tmp_path).prompt("fix this bug").load("investigate").say("ok")
    for _ in range(58):
        made.say("...")
    made.prompt("qa test this").say("no")
    made.write()
    second = made.records[-2]["timestamp"]
    log(env, "2026-11-30T12:00:01Z s1 routed skill=investigate score=1.00", f"{second} s1 routed skill=qa score=1.00")
    data = json.loads(run("report", "--json", "--since", "2026-01-01")[1])
    assert {row["skill"]: row["then"] for row in data["rows"]} == {"investigate": "followed", "qa": "none"}


def test_report_as_a_page(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    log(env, *hinted(tmp_path))
    page = tmp_path / "hints.html"
    code, out, _ = run("report", "--since", "2026-01-01", "--html", str(page))
    assert code == 0
    assert out.endswith(f"written: {page}\n")
    text = page.read_text("utf-8")
    assert "loaded another" in text
    assert "vendor.x" in text
    assert "s2" in text
    run("report", "--since", "2030-01-01", "--html", str(page))
    assert "No hints are logged" in page.read_text("utf-8")


def test_report_without_a_log(run: Run) -> None:
    code, out, _ = run("report")
    assert code == 0
    assert out.startswith("no decisions are logged since 30d")


# ------------------------------------------------------------------------------------------------- both

BAD = {
    "no such skill to suggest for": (["suggest", "investigat"], 2, "did you mean investigate?"),
    "no such skill to overlap": (["overlap", "nope"], 2, "no installed skill is called 'nope'"),
    "odd threshold": (["overlap", "--threshold", "2"], 2, "--threshold 2 isn't above 0 and at most 1"),
    "odd time": (["report", "--since", "x"], 2, "'x' is no time"),
    "no such path": (["suggest", "qa", "--path", "no/such"], 3, "no/such: there is no such file or folder"),
    "no such host": (["report", "--host", "netscape"], 1, "no working host adapter"),
    "no skill named": (["suggest"], 2, "Missing argument"),
    "a page into nowhere": (["report", "--html", "none/x.html"], 3, "its folder doesn't exist"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(name: str, run: Run) -> None:
    args, expected, words = BAD[name]
    code, out, err = run(*args)
    assert code == expected
    assert out == ""
    assert words in err
    assert len(err.splitlines()) == 1


def test_the_log_can_be_a_folder(run: Run, env: dict[str, str]) -> None:
    (Path(env["GSTACK_STATE_ROOT"]) / "hooks" / f"{LOG}.log").mkdir(parents=True)
    code, _, err = run("report")
    assert code == 3
    assert "can't be read" in err


def test_other_plugins_scorers_may_fail(run: Run, env: dict[str, str], tmp_path: Path) -> None:
    """A scorer that isn't there answers nothing; the command still ends well."""
    root = Path(env["GSTACK_STATE_ROOT"])
    root.mkdir()
    (root / "config.yaml").write_text("route_scorer: vendor.none\n")
    history(tmp_path)
    assert run("overlap")[0] == 0
    assert run("suggest", "investigate", "--since", "2020-01-01")[0] == 0


def test_the_whole_corpus_can_be_looked_at(shared: Path, env: dict[str, str]) -> None:
    corpus = str(shared / "corpus" / "transcripts")
    with open_history(env, path=corpus, processes=1) as history_:
        assert find_overlaps(history_).prompts > 300
        found = suggest(history_, "investigate")
    assert found.others > 300


def test_sessions_are_those_of_the_host_without_subagents(env: dict[str, str], tmp_path: Path) -> None:
    transcript(tmp_path, "s1").prompt("fix this bug").say("ok").write()
    folder = tmp_path / "home" / ".claude" / "projects" / PROJECT / "s1" / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-x.jsonl").write_text("{}\n")
    with open_history(env, processes=1, since=time.time() - 60) as history_:
        assert [os.path.basename(job.path) for job in history_.jobs()] == ["s1.jsonl"]

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from routing_support import DATA, TRIGGERS, read_jsonl

from gstack.cli import main

Run = tuple[int, str, str]


@pytest.fixture
def work(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the six skills, an own state folder and an empty working folder."""
    for name, triggers in TRIGGERS.items():
        add_skill(home, name, "triggers:\n" + "".join(f"  - {one}\n" for one in triggers))
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def add_skill(home: Path, name: str, front: str) -> Path:
    path = home / ".claude" / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\n{front}---\n\n# {name}\n\n1. Reproduce it.\n", encoding="utf-8")
    return path


def configure(tmp_path: Path, text: str) -> None:
    (tmp_path / "state").mkdir(exist_ok=True)
    (tmp_path / "state" / "config.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def run(work: Path, capfd: pytest.CaptureFixture[str]):
    def go(*args: str) -> Run:
        code = main(["route", *args])
        out, err = capfd.readouterr()
        return code, out, err

    return go


def test_the_sample_of_the_specification(run, home: Path) -> None:
    code, out, err = run("--explain", "this test fails, fix it")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:-1] == [
        "switch: skill_routing off (default)",
        "threshold: 0.66",
        f"skills: 6 scanned in {home}/.claude/skills",
        "candidates:",
        '  1.00  /investigate  "fix this bug" (2 words)',
        '  0.67  /ios-fix  "fix this ios bug" (2 words)',
        "route: /investigate",
    ]
    assert lines[-1].startswith("hint: gstack skill routing (UserPromptSubmit hook; ")


def test_no_candidate_and_no_route(run) -> None:
    out = run("write a poem", "--explain")[1].splitlines()
    assert out[3:] == ["candidates: none", "route: none (below-threshold)"]


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("don't debug this", "negated"),
        ("fix " + "so " * 9 + "bug", "scattered"),
        ("/qa", "slash"),
        ("", "empty"),
        ("x" * 8001, "too-long"),
        ("patch the iphone app", "not-routable"),
    ],
)
def test_the_reason_is_a_word_of_the_log(run, prompt: str, reason: str) -> None:
    code, out, _ = run("--explain", prompt)
    assert code == 0
    assert out.splitlines()[-1] == f"route: none ({reason})"


def test_all_lists_what_scored_below(run) -> None:
    out = run("--all", "--explain", "this test fails, fix it")[1]
    assert '  0.50  /verify  "confirm the fix" (1 words)' in out.splitlines()


def test_options_in_any_order_and_another_threshold(run) -> None:
    for args in (
        ("--explain", "this test fails, fix it", "--threshold", "0.7", "--json"),
        ("--json", "this test fails, fix it", "--explain", "--threshold=0.7"),
        ("this test fails, fix it", "--threshold", "0.7", "--json", "--explain"),
        ("explain", "this test fails, fix it", "--threshold", "0.7", "--json"),
        ("--explain", "--json", "--threshold", "0.7", "--", "this test fails, fix it"),
    ):
        code, out, _ = run(*args)
        assert code == 0
        report = json.loads(out)
        assert report["threshold"] == 0.7
        assert [one["skill"] for one in report["candidates"]] == ["investigate"]


def test_json_has_the_same_facts(run, home: Path) -> None:
    report = json.loads(run("--explain", "--json", "this test fails, fix it")[1])
    hint = report.pop("hint")
    assert hint.startswith("gstack skill routing (UserPromptSubmit hook; ")
    assert report == {
        "switch": {"name": "skill_routing", "value": "off", "source": "default"},
        "threshold": 0.66,
        "skills": {"count": 6, "roots": [f"{home}/.claude/skills"], "skipped": []},
        "candidates": [
            {
                "score": 1.0, "skill": "investigate", "trigger": "fix this bug", "matched_words": 2,
                "routable": True, "source": "SKILL.md",
            },
            {
                "score": 0.6667, "skill": "ios-fix", "trigger": "fix this ios bug", "matched_words": 2,
                "routable": False, "source": "SKILL.md",
            },
        ],
        "route": "investigate",
        "reason": None,
    }  # fmt: skip
    report = json.loads(run("--explain", "--json", "write a poem")[1])
    assert (report["route"], report["reason"], report["hint"]) == (None, "below-threshold", None)


def test_the_prompt_can_come_from_standard_input(run, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    for data, reason in ((b"x" * 8000 + b"\n", "below-threshold"), (b"x" * 8001, "too-long"), (b"\xff\r\n", None)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        code, out, _ = run("-", "--explain")
        assert code == 0
        assert f"route: none ({reason or 'below-threshold'})" in out


def test_the_switch_is_shown_with_its_source(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, "skill_routing: observe\n")
    assert run("--explain", "x")[1].startswith("switch: skill_routing observe (config)\n")
    monkeypatch.setenv("GSTACK_SKILL_ROUTING", "yes")
    assert run("--explain", "x")[1].startswith("switch: skill_routing on (env)\n")
    (tmp_path / "state" / "config.yaml").write_bytes(b"\xff\xfe\x00")
    assert run("--explain", "x")[1].startswith("switch: skill_routing off (config unreadable)\n")


def test_a_dry_run_logs_nothing_and_marks_no_session(run, tmp_path: Path) -> None:
    run("--explain", "fix this bug")
    assert not (tmp_path / "state" / "hooks").exists()
    assert not (tmp_path / "state" / "sessions").exists()


def test_skipped_skills_follow_the_report(run, home: Path) -> None:
    path = home / ".claude" / "skills" / "broken" / "SKILL.md"
    path.mkdir(parents=True)
    lines = run("--explain", "write a poem")[1].splitlines()
    assert lines[4] == "route: none (below-threshold)"
    assert lines[5].startswith(f"skipped: {path} (")
    skipped = json.loads(run("--explain", "--json", "x")[1])["skills"]["skipped"]
    assert [row["path"] for row in skipped] == [str(path)]


def test_triggers_from_the_overlay_say_so(run, tmp_path: Path) -> None:
    configure(tmp_path, "")
    (tmp_path / "state" / "skills.yaml").write_text("qa:\n  triggers: [shake it hard]\n", encoding="utf-8")
    assert (
        '  1.00  /qa  "shake it hard" (2 words) from skills.yaml' in run("--explain", "shake it hard")[1].splitlines()
    )


def test_a_trigger_cannot_steer_the_terminal(run, home: Path) -> None:
    add_skill(home, "evil", 'triggers: ["paint \\e[31mred"]\n')
    out = run("--explain", "paint 31mred now")[1]
    assert "/evil" in out
    assert "\x1b" not in out


def test_the_default_of_a_switch(run) -> None:
    assert run("--default", "skill_routing")[:2] == (0, "off\n")
    assert run("--default=gate")[:2] == (0, "off\n")


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("a prompt without the flag",),
        ("--explain",),
        ("--explain", "a", "b"),
        ("--explain", "a", "--frob"),
        ("--explain", "a", "--threshold"),
        ("--explain", "a", "--threshold", "0"),
        ("--explain", "a", "--threshold", "1.01"),
        ("--explain", "a", "--threshold", "nan"),
        ("--explain", "a", "--threshold", "much"),
        ("--default",),
        ("--default", "routing"),
        ("eval",),
        ("eval", "x.jsonl", "--routed", " , "),
        ("why-not", "qa"),
    ],
)
def test_bad_usage(run, args: tuple[str, ...]) -> None:
    code, out, err = run(*args)
    assert code == 2
    assert err.startswith("SKILL_ROUTE_USAGE")
    assert err.count("\n") == 1
    assert out == ""


def test_help_names_both_forms(run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert "--explain" in out
    for word in ("explain", "eval", "why-not"):
        assert word in out


def test_a_prompt_may_be_the_name_of_a_command(run) -> None:
    code, out, _ = run("--explain", "eval")
    assert code == 0
    assert "route: none (below-threshold)" in out


def test_gstack_skill_route_is_the_same_command(
    work: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gstack.cli import route_main

    monkeypatch.setattr("sys.argv", ["gstack-skill-route", "--default", "skill_routing"])
    assert route_main() == 0
    assert capfd.readouterr().out == "off\n"


def test_parts_of_the_equivalents_that_say_nothing_are_named(run, tmp_path: Path) -> None:
    configure(tmp_path, "route_equivalents: bug=glitch; pull request=pr\n")
    code, out, err = run("--explain", "fix that glitch")
    assert code == 0
    assert "route: /investigate" in out
    assert "route_equivalents: 'pull request=pr'" in err


def test_a_scorer_that_is_not_there(run, tmp_path: Path) -> None:
    configure(tmp_path, "route_scorer: vendor.gone\n")
    code, out, err = run("--explain", "fix this bug")
    assert code == 0
    assert "route: none (scorer-error)" in out
    assert "vendor.gone" in err
    cases = tmp_path / "c.jsonl"
    cases.write_text('{"prompt": "fix this bug", "expected": "investigate"}\n')
    code, _, err = run("eval", str(cases))
    assert code == 1
    assert "vendor.gone" in err


def test_no_skills_at_all(run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    out = run("--explain", "fix this bug")[1].splitlines()
    assert out[2] == "skills: 0 scanned in no folder"
    assert out[3:] == ["candidates: none", "route: none (no-skills)"]


# -------------------------------------------------------------------------------------------------- eval


def test_eval_of_the_labelled_cases(run, tmp_path: Path) -> None:
    page = tmp_path / "eval.html"
    code, out, _ = run("eval", str(DATA / "routing_cases.jsonl"), "--html", str(page))
    assert code == 0
    assert max(map(len, out.splitlines())) <= max(80, len(f"written: {page}"))
    assert "57 prompts at threshold 0.66" in out
    assert "gone wrong" not in out
    html = page.read_text("utf-8")
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|https?://""", html)
    start = html.index("<svg")
    plot = ElementTree.fromstring(html[start : html.index("</svg>") + 6])
    assert {line.get("class") for line in plot.iter("polyline")} == {"precision", "recall", "F0.5"}


def test_eval_json_names_wrong_prompts_by_id_and_sweeps(run, tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    rows = [
        {"id": "a", "prompt": "fix this bug", "expected": "investigate"},
        {"id": "b", "prompt": "find bugs", "expected": "/gstack-qa"},
        {"id": "c", "prompt": "review the pr", "expected": None},
        {"id": "d", "prompt": "write a poem", "expected": "qa"},
        {"id": "e", "prompt": "write a poem", "expected": None},
        {"id": "f", "prompt": "fix this bug", "expected": "review"},
    ]
    cases.write_text("\n".join(map(json.dumps, rows)) + "\n\n", encoding="utf-8")
    code, out, _ = run("eval", "--json", str(cases))
    assert code == 0
    result = json.loads(out)
    assert result["cases"] == 6
    assert result["total"] == {
        "right": 2, "wrong": 2, "missed": 2, "precision": 0.5, "recall": 0.5, "false_route_rate": 0.5, "f0.5": 0.5,
    }  # fmt: skip
    assert result["skills"]["investigate"]["precision"] == 0.5
    assert result["skills"]["investigate"]["recall"] == 1.0
    assert result["skills"]["qa"]["recall"] == 0.5
    assert result["skills"]["review"] == {
        "right": 0, "wrong": 1, "missed": 1, "precision": 0.0, "recall": 0.0, "false_route_rate": 0.2, "f0.5": 0.0,
    }  # fmt: skip
    assert {(row["id"], row["expected"], row["routed"]) for row in result["wrong"]} == {
        ("c", None, "review"), ("d", "qa", None), ("f", "review", "investigate"),
    }  # fmt: skip
    sweep = {row["threshold"]: row for row in result["sweep"]}
    assert sweep[0.66]["right"] == 2
    assert sweep[0.7]["right"] == 1
    assert result["best_threshold"] == 0.66


def test_eval_with_another_routed_set_and_threshold(run, tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"id": "a", "prompt": "patch the iphone app", "expected": "ios-fix"}\n', encoding="utf-8")
    assert json.loads(run("eval", "--json", str(cases))[1])["total"]["right"] == 0
    for routed in ("all", "ios-fix,qa"):
        assert json.loads(run("eval", "--json", "--routed", routed, str(cases))[1])["total"]["right"] == 1
    result = json.loads(run("eval", "--json", "--routed", "all", "--threshold", "0.9", str(cases))[1])
    assert result["threshold"] == 0.9
    assert 0.9 in [row["threshold"] for row in result["sweep"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "can't be read"),
        (b"", "holds no cases"),
        (b"\xff", "isn't UTF-8"),
        (b'{"prompt": "x", "expected": null}\n{', "line 2: no JSON"),
        (b"[1]", "line 1"),
        (b'{"prompt": 1, "expected": null}', 'a text "prompt"'),
        (b'{"prompt": "x"}', '"expected" must be'),
        (b'{"prompt": "x", "expected": 3}', '"expected" must be'),
        (b'{"id": "a", "prompt": "x", "expected": null}\n' * 2, "'a' was used before"),
    ],
)
def test_cases_that_cannot_be_used(run, tmp_path: Path, text: bytes | None, said: str) -> None:
    path = tmp_path / "cases.jsonl"
    if text is not None:
        path.write_bytes(text)
    code, _, err = run("eval", str(path))
    assert code == 3
    assert err.startswith("GSTACK_STATE_ERROR")
    assert str(path) in err
    assert said in err


def test_a_page_that_cannot_be_written(run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = run("eval", str(DATA / "routing_cases.jsonl"), "--html", str(tmp_path / "file" / "x.html"))
    assert code == 3
    assert "its folder doesn't exist" in err


# ----------------------------------------------------------------------------------------------- why-not


def topics(run, *args: str) -> dict[str, str]:
    code, out, _ = run("why-not", *args, "--json")
    assert code == 0
    return {row["topic"]: row["text"] for row in json.loads(out)}


def test_why_not_names_the_missing_words_and_the_guard(run, home: Path) -> None:
    said = topics(run, "/qa", "find the cause of the failed job")
    assert said["discovery"] == f"/qa is {home}/.claude/skills/qa/SKILL.md"
    assert said["switch"] == "skill_routing off (default): the hook does nothing"
    assert said["trigger"] == '"find bugs on site" scores 0.67, which reaches the threshold 0.66'
    assert said["words"].endswith("missing: site")
    assert said["guard"].startswith("below-threshold")
    assert said["routed set"] == "in: routed_skills is investigate, review, qa, verify (default)"
    assert said["result"] == "nothing is routed to (below-threshold)"


@pytest.mark.parametrize(
    ("skill", "prompt", "topic", "said"),
    [
        ("qa", "don't test the site", "guard", "negated"),
        ("qa", "test " + "so " * 9 + "site", "guard", "scattered"),
        ("qa", "/qa", "prompt", "slash"),
        ("qa", "write a poem", "trigger", "no trigger of it shares a word"),
        ("qa", "fix this bug", "result", "/investigate is routed to instead, with 1.00"),
        ("investigate", "fix this bug", "result", "/investigate is routed to"),
        ("ios-fix", "patch the iphone app", "routed set", "out: routed_skills is"),
        ("review", "review this pr", "host", "a built-in of Claude Code is called review"),
        ("nope", "x", "discovery", "there is no nope/SKILL.md in"),
        ("nope", "x", "result", "no installed skill is called nope"),
    ],
)
def test_why_not_says(run, skill: str, prompt: str, topic: str, said: str) -> None:
    assert said in topics(run, skill, prompt)[topic]


def test_why_not_of_a_skill_that_keeps_itself_out_or_declares_nothing(run, home: Path) -> None:
    add_skill(home, "quiet", "routing: off\ntriggers: [sing a song]\n")
    add_skill(home, "bare", "description: nothing else\n")
    assert topics(run, "quiet", "sing a song")["routed set"] == "out: routing is off (SKILL.md)"
    assert topics(run, "bare", "sing a song")["trigger"] == "it declares no triggers"


def test_why_not_of_a_skipped_file(run, home: Path) -> None:
    (home / ".claude" / "skills" / "odd" / "SKILL.md").mkdir(parents=True)
    assert "was skipped" in topics(run, "odd", "x")["discovery"]


def test_why_not_of_what_a_session_saw(run, tmp_path: Path) -> None:
    from gstack.sessions import update_session

    update_session(str(tmp_path / "state"), "s1", loaded=["qa"], hinted=["review"])
    assert topics(run, "qa", "x", "--session", "s1")["session"].startswith("already-loaded")
    assert topics(run, "review", "x", "--session", "s1")["session"].startswith("already-hinted")
    assert topics(run, "verify", "x", "--session", "s1")["session"].startswith("this session neither")


def test_why_not_finds_the_packs_prefix(run, home: Path) -> None:
    add_skill(home, "gstack-retro", "triggers: [weekly retro]\n")
    assert topics(run, "retro", "weekly retro")["discovery"].startswith("/gstack-retro is ")


def test_the_dry_run_decides_and_says_what_the_hook_does(work: Path) -> None:
    """Both on one installation: the same route and the same hint for every labelled prompt."""
    import os

    from gstack.routing.explain import explain, routing_setup
    from gstack.routing.hook import answer

    ctx = routing_setup(dict(os.environ), str(work))
    for case in [*read_jsonl(DATA / "routing_cases.jsonl"), *read_jsonl(DATA / "routing_more.jsonl")]:
        ctx.event.prompt = case["prompt"]
        assert answer(ctx).inject == explain(ctx, case["prompt"]).hint()

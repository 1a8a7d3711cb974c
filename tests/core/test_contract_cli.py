"""``gstack contract``: exit codes 0 to 6 with their code words and their order; what is printed (contracts C8)."""

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from contract_helpers import REPORT, SESSION, WORKED_CONTRACT, Fails, HasFile, Transcript
from hypothesis import given
from hypothesis import strategies as st

from gstack import cli
from gstack.api import Verdict
from gstack.cli import contract as commands
from gstack.contracts import judge as judging
from gstack.contracts.lint import lint as lint_file
from gstack.contracts.waivers import parse_waive
from gstack.trust import trust as trust_folder

BENCH = judging.Bench("/nowhere", {})


@pytest.fixture(autouse=True)
def only_this_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other groups' imports are none of these tests' business."""
    app = typer.Typer()
    app.add_typer(commands.app, name="contract")
    app.callback()(lambda: None)
    monkeypatch.setattr(cli, "build_app", lambda: app)


@pytest.fixture
def root(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty state root, a home without skills, and a working folder outside of any project."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(tmp_path / "state"))
    return tmp_path / "state"


def install(home: Path, contract: Any = WORKED_CONTRACT, name: str = "investigate", **more: Any) -> Path:
    path = home / ".claude" / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"name": name, "description": "d", **more}
    if contract is not None:
        head["contract"] = contract
    path.write_text(f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n# {name}\n", encoding="utf-8")
    return path


def session(tmp_path: Path, name: str = "t") -> Transcript:
    return Transcript(tmp_path / f"{name}.jsonl").prompt("it fails").load("investigate")


@pytest.fixture
def unmet(tmp_path: Path) -> str:
    return session(tmp_path, "unmet").edit().say("Fixed: the null check was missing.").write()


@pytest.fixture
def met(tmp_path: Path) -> str:
    return session(tmp_path, "met").edit().shell("bun test").say(REPORT).write()


def run(*arguments: str) -> int:
    return cli.main(["contract", *arguments])


def check(path: str, *more: str, skill: str = "investigate") -> int:
    return run("check", "--transcript", path, "--skill", skill, *more)


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*")) if folder.exists() else []


# ------------------------------------------------------------------------------------------------------ check


def test_met(root: Path, home: Path, met: str, capsys: pytest.CaptureFixture[str]) -> None:
    install(home)
    assert check(met) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "SKILL_CONTRACT_MET investigate (contract v1): every item is met or waived",
        "  met        debug-report",
        "  met        repro-after-fix",
    ]


def test_unmet_starts_with_the_line_that_the_hook_would_block_with(
    root: Path, home: Path, unmet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install(home)
    assert check(unmet) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "SKILL_CONTRACT_UNMET investigate (contract v1): missing debug-report, repro-after-fix. Fix: debug-report: "
        "print the DEBUG REPORT with real values for Symptom, Root cause, Fix, Evidence; repro-after-fix: run the "
        "test or repro again after your last edit and show its result. If an item truly does not apply, run '"
    )
    assert [line.split(":")[0] for line in lines[1:]] == ["  missing    debug-report", "  missing    repro-after-fix"]
    assert all(": " in line for line in lines[1:])


def test_waived(root: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(home)
    made = session(tmp_path).edit()
    made.shell("gstack-skill-contract waive repro-after-fix --reason 'docs only'", "waived repro-after-fix: docs only")
    assert check(made.say(REPORT).write()) == 0
    assert "  waived     repro-after-fix: docs only" in capsys.readouterr().out


def test_json(root: Path, home: Path, unmet: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = install(home)
    assert check(unmet, "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert list(shown) == [
        "code", "exit_code", "skill", "contract", "load_id", "early_exit", "items", "block_text",
    ]  # fmt: skip
    assert (shown["code"], shown["exit_code"], shown["early_exit"]) == ("SKILL_CONTRACT_UNMET", 1, None)
    assert shown["contract"]["source"] == str(path)
    assert [item["status"] for item in shown["items"]] == ["missing", "missing"]
    assert shown["block_text"].startswith("SKILL_CONTRACT_UNMET investigate (contract v1): missing debug-report")


def test_contract_from_a_file_that_is_not_installed(
    root: Path, tmp_path: Path, unmet: str, met: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = install(tmp_path / "elsewhere")
    assert check(met, "--skill-file", str(path)) == 0
    assert check(met, "--skill-file", str(path), skill="/investigate") == 0
    assert check(met, "--skill-file", str(path), skill="gstack:investigate") == 0


def test_the_file_wins_over_the_installed_one(root: Path, home: Path, tmp_path: Path, met: str) -> None:
    install(home)
    strict = copy.deepcopy(WORKED_CONTRACT)
    strict["items"][0]["labels"].append("Owner")
    assert check(met) == 0
    assert check(met, "--skill-file", str(install(tmp_path / "elsewhere", strict))) == 1


def test_a_contract_of_a_trusted_project_names_that_file(
    root: Path,
    home: Path,
    tmp_path: Path,
    met: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install(home)
    project = tmp_path / "project"
    overlay = project / ".gstack" / "skills.yaml"
    overlay.parent.mkdir(parents=True)
    overlay.write_text("investigate:\n  contract: {version: 2, items: []}\n")
    trust_folder(str(root), str(project))
    monkeypatch.chdir(project)
    assert check(met) == 5
    assert error(capsys).startswith(f"SKILL_CONTRACT_NO_CONTRACT: {overlay.resolve()}: contract: ")


def test_a_skill_with_a_label_of_its_own(root: Path, home: Path, tmp_path: Path) -> None:
    path = install(home)
    path.write_text(path.read_text().replace("name: investigate", "name: Deep Dive"))
    made = Transcript(tmp_path / "t.jsonl").prompt("x").load("Deep Dive").say("hm").write()
    assert check(made) == 1
    assert check(made, skill="Deep Dive") == 1


def test_the_last_run_is_judged(root: Path, home: Path, tmp_path: Path) -> None:
    install(home)
    made = session(tmp_path).edit().shell("bun test").say(REPORT)
    assert check(made.write()) == 0
    assert check(made.load("investigate").say("hm").write()) == 1


def test_a_kind_about_files_looks_in_the_sessions_folder_and_else_here(
    root: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = with_kind(monkeypatch, HasFile())
    contract["items"][0]["word"] = "out.txt"
    install(home, contract)
    work, here = tmp_path / "there", tmp_path / "here"
    made = Transcript(tmp_path / "t.jsonl", cwd=str(work)).prompt("go").load("investigate").say(REPORT).write()
    here.mkdir()
    monkeypatch.chdir(here)
    assert check(made) == 1
    (here / "out.txt").touch()
    assert check(made) == 0
    work.mkdir()
    assert check(made) == 1
    (work / "out.txt").touch()
    (here / "out.txt").unlink()
    assert check(made) == 0


def test_check_writes_nothing(root: Path, home: Path, tmp_path: Path, met: str, unmet: str) -> None:
    install(home)
    before = [(path, path.stat().st_mtime_ns) for path in files_of(tmp_path)]
    assert (check(met), check(unmet)) == (0, 1)
    assert [(path, path.stat().st_mtime_ns) for path in files_of(tmp_path)] == before


# ---------------------------------------------------------------------------------------- the errors, in order


def error(capsys: pytest.CaptureFixture[str]) -> str:
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--transcript", "t.jsonl"],
        ["--skill", "investigate"],
        ["--transcript", "", "--skill", "x"],
        ["--transcript", "t.jsonl", "--skill", " / "],
        ["--transcript"],
        ["--transcript", "t.jsonl", "--skill", "x", "--what"],
        ["--transcript", "t.jsonl", "--skill", "x", "more"],
    ],
)
def test_usage(root: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", *arguments) == 2
    assert error(capsys).startswith("SKILL_CONTRACT_USAGE: ")


def test_no_such_skill(root: Path, home: Path, met: str, capsys: pytest.CaptureFixture[str]) -> None:
    install(home)
    assert check(met, skill="investigates") == 5
    assert error(capsys) == (
        "SKILL_CONTRACT_NO_CONTRACT: no installed skill is called investigates; did you mean investigate?"
    )


def test_no_contract(root: Path, home: Path, met: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = install(home, None)
    assert check(met) == 5
    assert error(capsys) == f"SKILL_CONTRACT_NO_CONTRACT: {path}: investigate declares no contract"


@pytest.mark.parametrize(
    ("contract", "says"),
    [
        ({"version": 2, "items": []}, 'contract: version "2" is not supported'),
        ({"version": 1, "items": [{"id": "a", "kind": "report_label"}]}, "did you mean report_labels?"),
        ({"version": 1, "items": [{"id": "a", "kind": "vendor.x"}]}, "install the distribution of vendor that has it"),
        ({"version": 1, "items": [{"id": "a", "kind": "zzz"}]}, "this installation has agent_dispatch, check_after"),
        (
            {"version": 1, "items": [{"id": "a", "kind": "agent_dispatch", "match": "("}]},
            "match is no regular expression",
        ),
        ({"version": 1, "items": [{"id": f"i{n}", "kind": "check_after_last_edit"} for n in range(21)]}, "21 items"),
    ],
)
def test_invalid_contract(
    root: Path, home: Path, met: str, contract: Any, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = install(home, contract)
    assert check(met) == 5
    line = error(capsys)
    assert line.startswith(f"SKILL_CONTRACT_NO_CONTRACT: {path}: contract")
    assert says in line


def test_a_kind_that_is_switched_off_names_its_distribution(
    root: Path, home: Path, met: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(home)
    monkeypatch.setenv("GSTACK_DISABLED_PLUGINS", "report_labels")
    assert check(met) == 5
    assert 'unknown kind "report_labels": the distribution gstack-skills has it, but its plug-in is disabled' in error(
        capsys
    )


def test_yaml_that_cannot_be_read(root: Path, home: Path, met: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = install(home, None)
    path.write_text("---\nname: investigate\ncontract:\n  version: 1\n  items: [\n---\n")
    assert check(met) == 5
    assert "contract: it can't be read as YAML" in error(capsys)


def test_labels_like_yes_and_no_stay_words(root: Path, home: Path, tmp_path: Path) -> None:
    path = install(home, None)
    path.write_text(
        "---\nname: investigate\ncontract:\n  version: 1\n  items:\n    - id: r\n      kind: report_labels\n"
        "      heading: REPORT\n      labels: [Yes, No, On]\n---\n"
    )
    assert check(session(tmp_path).say("REPORT\nYes: a\nNo: b\nOn: c").write()) == 0


def test_missing_transcript(root: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(home)
    assert check(str(tmp_path / "nowhere.jsonl")) == 3
    assert error(capsys).startswith(f"SKILL_CONTRACT_STATE_ERROR: {tmp_path}/nowhere.jsonl: ")
    assert check(str(tmp_path)) == 3


def test_33_mib(root: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(home)
    path = tmp_path / "big.jsonl"
    with path.open("wb") as file:
        file.truncate(33 << 20)
    assert check(str(path)) == 3
    assert "over 32 MiB" in error(capsys)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello\n",
        b'{"type": "system"}\n',
        b'{"type": "user", "message": {"content": 7}}\n',
        b'{"type": "user"}\n',
        b"\x00\xff\n",
        b"[1, 2]\n",
    ],
)
def test_unknown_shape(
    root: Path, home: Path, tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    install(home)
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    assert check(str(path)) == 4
    assert error(capsys).startswith(f"SKILL_CONTRACT_UNKNOWN_SHAPE: {path}: ")


def test_not_loaded(root: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(home)
    path = Transcript(tmp_path / "t.jsonl").prompt("hi").say("hello").write()
    assert check(path) == 6
    assert error(capsys) == f"SKILL_CONTRACT_NOT_LOADED: {path}: the transcript never loads investigate"


def test_errors_come_in_their_order(root: Path, home: Path, tmp_path: Path) -> None:
    """2, 5, 3, 4, 6: each case has all the later faults as well."""
    shapeless = tmp_path / "t.jsonl"
    shapeless.write_text("nothing\n")
    assert run("check", "--transcript", "/nowhere") == 2
    assert check("/nowhere", skill="unknown") == 5
    install(home, {"version": 1, "items": []})
    assert check("/nowhere") == 5
    install(home)
    assert check("/nowhere") == 3
    assert check(str(shapeless)) == 4
    assert check(Transcript(tmp_path / "u.jsonl").prompt("hi").write()) == 6


def boom() -> Verdict:
    raise RuntimeError("no way")


def with_kind(monkeypatch: pytest.MonkeyPatch, kind: Any) -> dict[str, Any]:
    """Add a kind to what is installed; a contract that asks for it."""
    before = judging.Bench.__init__

    def more(self: Any, *arguments: Any) -> None:
        before(self, *arguments)
        self.kinds[kind.name] = kind

    monkeypatch.setattr(judging.Bench, "__init__", more)
    items = [{"id": "odd", "kind": kind.name}, *WORKED_CONTRACT["items"]]
    return {"version": 1, "items": items}


def test_a_kind_that_cannot_tell(
    root: Path, home: Path, unmet: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(home, with_kind(monkeypatch, Fails(boom)))
    assert check(unmet) == 3
    out, err = capsys.readouterr()
    assert "  can't tell odd: raised RuntimeError: no way" in out
    assert "SKILL_CONTRACT_UNMET" not in out
    assert err.startswith("SKILL_CONTRACT_STATE_ERROR: ")
    assert check(unmet, "--json") == 3
    shown = json.loads(capsys.readouterr().out)
    assert (shown["code"], shown["items"][0]["status"]) == ("SKILL_CONTRACT_STATE_ERROR", "cannot_tell")


def test_an_expression_that_runs_away_is_stopped(
    root: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judging, "ITEM_LIMIT", 0.3)
    install(home, {"version": 1, "items": [{"id": "a", "kind": "agent_dispatch", "match": "(a+)+$"}]})
    made = session(tmp_path).tool("Agent", {"description": "a" * 60 + "b", "prompt": "x"}, "done", toolUseResult={})
    assert check(made.say("hm").write()) == 3
    assert "took longer than 0.3 s" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------ waive


def test_waive_prints_an_acknowledgement_and_stores_nothing(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(tmp_path)
    assert run("waive", "repro-after-fix", "--reason", "docs only") == 0
    assert capsys.readouterr().out == (
        "waived repro-after-fix: docs only (this session only; counted as a miss for follow)\n"
    )
    assert files_of(tmp_path) == before


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["item"],
        ["--reason", "x"],
        ["item", "--reason", ""],
        ["item", "--reason", "  "],
        ["item", "--reason", "<why>"],
        ["item", "--reason"],
        ["item", "more", "--reason", "x"],
        ["item", "--because", "x"],
    ],
)
def test_waive_usage(root: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("waive", *arguments) == 2
    assert error(capsys).startswith("SKILL_CONTRACT_USAGE: ")
    assert parse_waive(arguments) is None


def test_waive_refuses_an_item_that_no_contract_has(root: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(home)
    install(home, {"version": 1, "items": [{"id": "other", "kind": "check_after_last_edit"}]}, "review")
    assert run("waive", "repro-after-fix", "--reason", "x") == 0
    assert run("waive", "other", "--reason", "x") == 0
    assert run("waive", "other", "--reason", "x", "--skill", "review") == 0
    capsys.readouterr()
    assert run("waive", "repro-afer-fix", "--reason", "x") == 2
    assert "repro-afer-fix is no item of any installed contract (it has debug-report" in error(capsys)
    assert run("waive", "other", "--reason", "x", "--skill", "investigate") == 2
    assert error(capsys).startswith("SKILL_CONTRACT_USAGE: other is no item of the contract of investigate")
    assert run("waive", "other", "--reason", "x", "--skill", "nobody") == 5


# ----------------------------------------------------------------------------------------------------- report


def put_record(root: Path, *outcomes: str, session: str = SESSION) -> None:
    folder = root / "skill-contracts"
    folder.mkdir(parents=True, exist_ok=True)
    runs = [
        {
            "skill": "investigate",
            "load_id": f"load-{place}",
            "contract": {"version": 1, "digest": "d"},
            "items": {"debug-report": "missing"},
            "outcome": outcome,
            "updated_at": 1_800_000_000 + place,
        }
        for place, outcome in enumerate(outcomes)
    ]
    record = {"version": 1, "session": session, "host": "claude-code", "runs": runs}
    (folder / f"{session}.json").write_text(json.dumps(record))


def test_report_without_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report") == 0
    assert capsys.readouterr().out == "no runs are recorded yet\n"


def test_report_lists_misses_and_missed_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_record(root, "miss", "met", "blocked")
    assert run("report") == 0
    out = capsys.readouterr().out
    assert out.startswith("3 recorded runs, 2 missed\n")
    assert "investigate  debug-report  2       3" in out
    assert out.count("2027-01-15") == 2
    assert max(len(line) for line in out.splitlines()) <= 80


def test_report_of_one_session(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_record(root, "miss")
    put_record(root, "miss", "miss", session="other")
    assert run("report", "--session", "other", "--json") == 0
    assert {row["session"] for row in json.loads(capsys.readouterr().out)["rows"]} == {"other"}
    assert run("report", "--session", "../x") == 2


def test_report_goes_on_after_a_corrupt_record(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_record(root, "miss")
    (root / "skill-contracts" / "broken.json").write_text("{")
    assert run("report") == 3
    out, err = capsys.readouterr()
    assert out.startswith("1 recorded run, 1 missed")
    assert err.startswith("SKILL_CONTRACT_STATE_ERROR: ")
    assert "broken.json: the record is corrupt" in err
    assert run("report", "--json") == 3
    shown = json.loads(capsys.readouterr().out)
    assert [os.path.basename(one["path"]) for one in shown["errors"]] == ["broken.json"]


def test_report_as_a_page(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_record(root, "miss")
    (tmp_path / "out").mkdir()
    assert run("report", "--html", str(tmp_path / "out" / "misses.html")) == 0
    assert (tmp_path / "out" / "misses.html").read_text().startswith("<!doctype html>")
    assert f"wrote {tmp_path}/out/misses.html" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    assert run("report", "--html", str(tmp_path / "file" / "x.html")) == 3


# ------------------------------------------------------------------------------------------------------- lint


def lint(path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    code = run("lint", str(path))
    return code, [line.removeprefix(str(path.parent)) for line in capsys.readouterr().out.splitlines()]


def test_lint_of_a_good_one(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = install(tmp_path / "pack")
    assert run("lint", str(path), str(path.parent)) == 0
    assert capsys.readouterr().out == f"{path}: ok (2 items)\n" * 2


HEAD = "---\nname: x\ndescription: d\n"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (HEAD + "contract:\n  version: 2\n  items: []\n---\n", [(5, 'version "2" is not supported')]),
        (
            HEAD + "contract:\n  version: 1\n  colour: red\n  items:\n    - id: a\n      kind: nope\n"
            "    - id: A\n      kind: report_labels\n      heading: H\n      labels: []\n---\n",
            [
                (6, 'unknown field "colour"'),
                (9, 'unknown kind "nope"'),
                (10, "id must be lower-case"),
                (13, "labels must be a list of texts, not an empty list"),
            ],
        ),
        (
            HEAD + "contract: {version: 1, items: [{id: a, kind: check_after_last_edit, must_pas: yes}]}\n---\n",
            [(4, 'unknown field "must_pas"')],
        ),
        (
            HEAD + "metadata:\n  gstack-contract: |\n    version: 1\n    items:\n      - id: a\n        kind: x\n---\n",
            [(9, "unknown kind")],
        ),
        (HEAD + "contract:\n  version: 1\n  items: [\n---\n", [(6, "can't be read as YAML")]),
        (HEAD + "contract: yes please\n---\n", [(4, "must be a mapping")]),
        (HEAD + "contract:\n  version: 1\n  version: 1\n  items: []\n---\n", [(6, "'version' stands twice")]),
        (
            HEAD + "contract:\n  version: 1\n  items:\n    - id: a\n      id: b\n      kind: report_labels\n---\n",
            [(8, "'id' stands twice")],
        ),
        (
            HEAD + "metadata:\n  gstack-contract: |\n    version: 1\n    items: []\n    items: []\n---\n",
            [(8, "'items' stands twice")],
        ),
        (HEAD + "---\n", [(1, "declares no contract")]),
        ("no head at all\n", [(1, "declares no contract")]),
        (
            "---\nname: [unclosed\ncontract:\n  version: 1\n  items:\n    - id: a\n      kind: x\n---\n",
            [(7, "unknown kind")],
        ),
    ],
)
def test_lint_names_the_line(
    root: Path, tmp_path: Path, text: str, problems: list[tuple[int, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = lint(tmp_path / "pack" / "x" / "SKILL.md", text, capsys)
    assert code == 5
    assert len(lines) == len(problems)
    for line, (number, says) in zip(lines, problems, strict=True):
        assert line.startswith(f"/SKILL.md:{number}: ")
        assert says in line


def test_lint_of_the_file_beside_it(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pack" / "x" / "SKILL.md"
    path.parent.mkdir(parents=True)
    (path.parent / "gstack.yaml").write_text("triggers: [a]\ncontract:\n  version: 1\n  items:\n    - id: a\n")
    code, lines = lint(path, HEAD + "---\n", capsys)
    assert (code, lines) == (5, ['/gstack.yaml:5: contract item "a": kind is missing'])


@pytest.mark.parametrize(
    ("text", "line"), [("contract:\n  version: 1\n  items: [\n", 4), ("- contract\n", 1), ("a: b: c\n", 1)]
)
def test_lint_says_what_keeps_the_file_beside_it_from_counting(
    root: Path, tmp_path: Path, text: str, line: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pack" / "x" / "SKILL.md"
    path.parent.mkdir(parents=True)
    (path.parent / "gstack.yaml").write_text(text)
    code, (said,) = lint(path, HEAD + "---\n", capsys)
    assert code == 5
    assert said.startswith(f"/gstack.yaml:{line}: it can't be used: ")


@given(
    st.lists(
        st.sampled_from(
            [
                "contract:",
                "  version: 1",
                "  items:",
                "    - id: a",
                "      kind: report_labels",
                "\tx: [",
                "  - b",
                "---",
                "}",
                "metadata:",
                "  gstack-contract: |",
                "    version: 1",
                "é: 'x",
                "contract: {",
            ]
        ),
        max_size=9,
    )
)
def test_lint_of_any_lines_names_a_line_of_the_file(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("pack") / "SKILL.md"
    path.write_text("\n".join(["---", *lines, "---", ""]), encoding="utf-8")
    done = lint_file(str(path), BENCH)
    assert bool(done.problems) != bool(done.items)
    assert all(1 <= line <= len(lines) + 2 for line, _ in done.problems)


def test_lint_names_the_homes_that_do_not_count(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = install(tmp_path / "pack")
    (path.parent / "gstack.yaml").write_text("contract: {version: 1, items: []}\n")
    assert run("lint", str(path)) == 0
    assert capsys.readouterr().out == f"{path}: ok (2 items; ignored: gstack.yaml)\n"


def test_lint_usage_and_missing_files(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("lint") == 2
    assert error(capsys).startswith("SKILL_CONTRACT_USAGE: ")
    assert run("lint", str(tmp_path / "nowhere")) == 5
    assert run("lint", str(install(tmp_path / "pack")), str(tmp_path / "nowhere")) == 5
    assert "1 of 2 files have no valid contract" in capsys.readouterr().err


def test_lint_json(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = install(tmp_path / "pack", {"version": 1, "items": []})
    assert run("lint", "--json", str(path)) == 5
    shown = json.loads(capsys.readouterr().out)
    assert shown[0]["path"] == str(path)
    assert shown[0]["problems"][0]["line"] == 6


def test_samples_in_the_package_are_valid(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import gstack

    folder = Path(gstack.__file__).parent / "samples" / "skills"
    assert run("lint", *[str(path) for path in sorted(folder.iterdir())]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4

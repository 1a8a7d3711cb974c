"""What somebody else wrote never steers the terminal of who reads it."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from contract_helpers import SESSION, Transcript
from gate_support import envelope, install, payload
from rich.console import Console

from gstack.cli import main
from gstack.cli.common import plain, table
from gstack.terminal import tame, tame_json, visible

Run = Callable[..., "tuple[int, str, str]"]

#: Clears the screen, sets the title, one-byte CSI, writes backwards; and what rich would take for markup.
HOSTILE = "a\x1b[2J\x1b]0;t\x07\x9b31m\u202eb[/red]"
STEERING = "\x1b\x07\x9b\u202e"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, größer, 日本語, \u00a0, 👩\u200d🚀", "plain, größer, 日本語, \u00a0, 👩\u200d🚀"),
        ("a\tb\nc\r\n", "a\tb\nc\r\n"),
        ("a\rb", "a\\rb"),
        ("\x1b[2J\x00\x7f\x9b", "\\x1b[2J\\x00\\x7f\\x9b"),
        ("\u202e\u2066\u2028", "\\u202e\\u2066\\u2028"),
    ],
)
def test_only_what_steers_is_escaped(text: str, shown: str) -> None:
    assert tame(text) == shown
    assert json.loads(tame_json(json.dumps(text, ensure_ascii=False))) == text


def test_one_line_stays_one() -> None:
    assert visible("a\nb\u00a0c") == "a\\nb\\xa0c"


def test_cells_are_neither_markup_nor_steering() -> None:
    out = StringIO()
    made = table("one", "two")
    made.add_row("[red]x[/]", HOSTILE)
    console = Console(file=out, width=100)
    console.print(made)
    console.print(plain(HOSTILE))
    assert "[red]x[/]" in out.getvalue()
    assert out.getvalue().count("a\\x1b[2J\\x1b]0;t\\x07\\x9b31m\\u202eb[/red]") == 2


# ------------------------------------------------------------------------------------------------- commands


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    (home / "state").mkdir(mode=0o700)
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(home / "state"))
    monkeypatch.chdir(home)

    def command(*arguments: str) -> "tuple[int, str, str]":
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def hostile_policy() -> dict[str, Any]:
    policy = {
        "policy_id": "p" + HOSTILE,
        "name": HOSTILE,
        "matcher_type": "name",
        "match_value": "acme/*",
        "action": "halt",
        "reason": HOSTILE,
        "replacement": HOSTILE,
    }
    odd = {"policy_id": "q", "name": HOSTILE + "2", "matcher_type": HOSTILE, "match_value": HOSTILE, "action": "warn"}
    return payload(
        policies=[policy, odd],
        namespaces=["acme", HOSTILE],
        manifest_index={"acme/" + HOSTILE: {"version": HOSTILE, "status": HOSTILE}},
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("bundle", "show", "b"),
        ("bundle", "show", "b", "--json"),
        ("bundle", "diff", "plain", "b"),
        ("bundle", "diff", "plain", "b", "--json"),
        ("bundle", "verify", "b", "--key", HOSTILE),
        ("status",),
        ("status", "--json"),
        ("gate", "--skill", "acme/x", "--explain"),
        ("gate", "--skill", "acme/x", "--json"),
        ("gate", "--skill", HOSTILE, "--explain"),
        ("gate", "test", "cases.yaml"),
    ],
    ids=lambda words: " ".join(words).replace(HOSTILE, "HOSTILE"),
)
def test_texts_of_a_bundle(run: Run, home: Path, arguments: "tuple[str, ...]") -> None:
    data = hostile_policy()
    (home / "b").write_bytes(envelope(data))
    (home / "plain").write_bytes(envelope(payload()))
    install(home / "state", data)
    case = json.dumps({"skill": "acme/x" + HOSTILE, "expect": "allow", "policy": HOSTILE})
    (home / "cases.yaml").write_text(f"cases:\n  - {case}\n")
    code, out, err = run(*arguments)
    assert code in (0, 1, 2, 3)
    assert out + err
    assert not set(STEERING) & set(out + err)
    assert "GSTACK_ERROR" not in err
    if "--json" in arguments:
        json.loads(out)


def test_texts_of_records_and_transcripts(run: Run, home: Path) -> None:
    folder = home / "state" / "skill-contracts"
    folder.mkdir()
    run_ = {"skill": HOSTILE, "load_id": "l", "contract": {"version": 1}, "items": {HOSTILE: "missing"}}
    record = {
        "version": 1, "session": SESSION, "host": "x", "runs": [run_ | {"outcome": "miss", "updated_at": 1.0}]
    }  # fmt: skip
    (folder / f"{SESSION}.json").write_text(json.dumps(record))
    Transcript(home / "t.jsonl").prompt("fix this bug").load(HOSTILE).say(HOSTILE).write()
    for arguments in (
        ("contract", "report"),
        ("contract", "report", "--json"),
        ("contract", "waive", HOSTILE, "--reason", HOSTILE),
        ("contract", "check", "--transcript", str(home / "t.jsonl"), "--skill", HOSTILE),
        ("contract", "lint", HOSTILE),
        ("replay", "--path", str(home / "t.jsonl"), "--show-prompts"),
        ("route", "--explain", HOSTILE),
        ("config", "set", HOSTILE, HOSTILE),
    ):
        _, out, err = run(*arguments)
        assert out + err
        assert not set(STEERING) & set(out + err), arguments

"""The one line that holds a stop (contracts C5)."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from contract_helpers import WORKED_CONTRACT, Fails, Says, built_in_kinds, call_isolated

from gstack.api import Item
from gstack.contracts.block_text import block_text, fix_of, quoted, waive_command
from gstack.contracts.schema import Contract, parse_contract
from gstack.lowlevel import POSIX


def test_worked_example_word_for_word() -> None:
    kinds = built_in_kinds()
    contract = parse_contract(WORKED_CONTRACT, kinds, source="x")
    text = block_text(
        "investigate",
        contract,
        ["debug-report", "repro-after-fix"],
        kinds,
        call_isolated,
        "/opt/gstack/bin/gstack-skill-contract",
    )
    assert text == (
        "SKILL_CONTRACT_UNMET investigate (contract v1): missing debug-report, repro-after-fix. Fix: debug-report: "
        "print the DEBUG REPORT with real values for Symptom, Root cause, Fix, Evidence; repro-after-fix: run the "
        "test or repro again after your last edit and show its result. If an item truly does not apply, run "
        "'/opt/gstack/bin/gstack-skill-contract' waive <item> --reason \"<why>\" (this session only; counted as a "
        "miss for follow). This blocks once."
    )


def one(fix: str | None = None, kind: Any = None) -> tuple[Item, dict[str, Any]]:
    kind = kind or Says()
    return Item("word", kind.name, {"word": "done"}, fix=fix), {kind.name: kind}


def test_only_missing_items_are_named_in_the_contracts_order() -> None:
    items = tuple(Item(name, "test.says", {"word": name}) for name in ("a", "b", "c"))
    text = block_text("x", Contract(items, 1, ""), ["c", "a"], {"test.says": Says()}, call_isolated, "w")
    assert "missing a, c. Fix: a: say a; c: say c. If" in text


def test_own_fix_replaces_the_kinds_and_stays_on_one_line() -> None:
    item, kinds = one("print\n  it\tproperly.\n")
    assert fix_of(item, kinds, call_isolated) == "print it properly"
    item, kinds = one()
    assert fix_of(item, kinds, call_isolated) == "say done"


def raises() -> str:
    raise ValueError("no")


@pytest.mark.parametrize("how", [raises, lambda: "", lambda: " . "])
def test_a_kind_without_a_fix_costs_only_its_words(how: Any) -> None:
    item, kinds = one(kind=Fails(how))
    assert fix_of(item, kinds, call_isolated) == "produce what the skill asks for"


def test_off_switch_is_never_mentioned() -> None:
    item, kinds = one()
    text = block_text("x", Contract((item,), 1, ""), ["word"], kinds, call_isolated, "w")
    assert "config" not in text
    assert "skill_contracts" not in text


@pytest.mark.parametrize("path", ["/a b/c", "/it's/here", "C:\\Users\\x\\y.exe", '/"quoted"/$HOME'])
def test_command_is_one_word_of_a_shell(path: str) -> None:
    import shlex

    assert shlex.split(quoted(path)) == [path]


def test_waive_command_prefers_setups_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "gstack-skill-contract" if POSIX else "gstack-skill-contract.exe"
    launcher, scripts = tmp_path / "bin", tmp_path / "venv"
    scripts.mkdir()
    monkeypatch.setattr("sys.executable", str(scripts / "python"))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "nowhere"))
    assert waive_command(str(launcher)) == "gstack-skill-contract"
    (scripts / name).write_text("")
    assert waive_command(str(launcher)) == f"{scripts}/{name}"
    launcher.mkdir()
    (launcher / name).write_text("")
    assert waive_command(str(launcher)) == f"{launcher}/{name}"
    assert waive_command(None) == f"{scripts}/{name}"


def test_installed_command_is_found() -> None:
    """In an installed gstack the text names a command that is there."""
    command = waive_command(None)
    assert os.path.isabs(command)
    assert os.stat(command).st_mode & stat.S_IXUSR

"""The pages for pack authors say what is true: their examples pass and fail as shown, their anchors exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from contract_helpers import built_in_kinds, called, load, result, said

from gstack import errors
from gstack.api import MET, MISSING, Event, Item
from gstack.contracts.runs import Names, runs
from gstack.contracts.schema import parse_contract
from gstack.contracts.trouble import error_line

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "how-to" / "write-a-contract.md").read_text(encoding="utf-8")
CODES = (DOCS / "reference" / "exit-codes.md").read_text(encoding="utf-8")
KINDS = built_in_kinds()


def rows(kind: str) -> list[tuple[str, str]]:
    """The (passes, fails) cells of a kind's section."""
    section = PAGE.split(f"### `{kind}`", 1)[1].split("\n### ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [tuple(cell.strip() for cell in line.strip("| ").split(" | ")) for line in lines]  # type: ignore[misc]


def judge(kind: str, fields: dict[str, Any], *events: Event) -> str:
    run = runs([load(), *events], "investigate", Names(["investigate"]))[-1]
    return str(KINDS[kind].check(Item("x", kind, fields), run).status)


def test_every_kind_is_described() -> None:
    assert set(re.findall(r"^### `(\w+)`", PAGE, re.MULTILINE)) == set(KINDS)
    for kind in KINDS.values():
        section = PAGE.split(f"### `{kind.name}`", 1)[1].split("\n### ", 1)[0]
        assert all(f"`{field.name}`" in section for field in kind.fields)


def test_the_example_is_valid() -> None:
    block = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    assert len(parse_contract(yaml.safe_load(block[1])["contract"], KINDS, source="page").items) == 2


def test_report_examples() -> None:
    fields = {"heading": "DEBUG REPORT", "labels": ["Symptom", "Root cause", "Fix", "Evidence"]}
    for passes, fails in rows("report_labels"):
        for cell, status in ((passes, MET), (fails, MISSING)):
            text = cell.replace("`", "").replace("<br>", "\n")
            assert judge("report_labels", fields, said(text)) == status


@pytest.mark.parametrize(("passes", "fails"), rows("check_after_last_edit"))
def test_check_examples(passes: str, fails: str) -> None:
    for cell, status in ((passes, MET), (fails, MISSING)):
        events: list[Event] = []
        for number, step in enumerate(cell.split(", then ")):
            ident = f"c{number}"
            command = step.strip("`")
            made = called("edit", ident, paths=("x",)) if step == "edit" else called("shell", ident, command=command)
            events += [made, result(ident, ok=True)]
        assert judge("check_after_last_edit", {}, *events) == status, cell


def sent(*names: str) -> list[Event]:
    calls = [called("agent", f"a{n}", description=f"{name} review") for n, name in enumerate(names)]
    return [event for call in calls for event in (call, result(call.call.id, ok=True))]


def test_specialist_examples() -> None:
    (both, one), (none, _), (skipped, wrong) = rows("selected_specialists_dispatched")
    kind = "selected_specialists_dispatched"
    line = both.split("`")[1]
    assert judge(kind, {}, said(line), *sent("Testing", "Security")) == MET
    assert "the same line and one agent" in one
    assert judge(kind, {}, said(line), *sent("Testing")) == MISSING
    assert judge(kind, {}, said(none.split("`")[1])) == MET
    assert judge(kind, {}, said("hello")) == MISSING
    assert judge(kind, {}, said(skipped.split("`")[1]), *sent("Security")) == MET
    assert judge(kind, {}, said(wrong.split("`")[1]), *sent("Security")) == MISSING


def test_agent_examples() -> None:
    (first, second), _ = rows("agent_dispatch")
    for cell, status in ((first, MET), (second, MISSING)):
        assert judge("agent_dispatch", {"match": "security"}, *sent(cell.split('"')[1])) == status


def test_every_code_word_has_its_exit_code_and_anchor() -> None:
    lines = CODES.splitlines()
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, errors.GstackError):
            row = next(line for line in lines if line.startswith(f"| {error.exit_code} |"))
            assert f"`{error.code}`" in row
    for anchor in re.findall(r"\]\(#([\w-]+)\)", CODES):
        assert f"## {anchor}" in lines


def test_the_hooks_line_names_a_page_and_an_anchor_that_exist() -> None:
    place = re.search(r"\(see docs/(\S+)#(\S+)\)", error_line("/x", "y"))
    assert place is not None
    assert f"## {place[2]}" in (DOCS / place[1]).read_text(encoding="utf-8").splitlines()
    assert error_line("<path>", "<cause>") in CODES

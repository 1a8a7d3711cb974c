"""The selection line, its names, and the dispatches for them."""

import time

import pytest
from contract_helpers import called, result, said
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import MET, MISSING, Event, Item, Run, Verdict
from gstack_plugins.selected_specialists import (
    SelectedSpecialists,
    gstack_contract_kinds,
    is_plain,
    read_names,
    read_selection,
)

MARKER = "Dispatching N specialists:"
NO_LINE = f'no line "{MARKER}" was printed'


def agents(*names: str) -> list[Event]:
    return [called("agent", f"a-{name}", description=f"{name} specialist", prompt="Review it.") for name in names]


def check(*events: Event, final: str = "", **fields: str) -> Verdict:
    item = Item("x", "selected_specialists_dispatched", dict(fields))
    return SelectedSpecialists().check(item, Run("s", "l", events, final_text=final))


@pytest.mark.parametrize(
    "line",
    [
        "Dispatching 2 specialists: Testing, Data Migration",
        "Dispatching 2 specialists: Testing, Data Migration.",
        "Dispatching 2 specialists: Testing, Data Migration. Skipped: Design, Security (scope not detected).",
        "Dispatching 2 specialists: Testing, Data Migration. Gated: API Contract (0 findings in 3+ reviews).",
        "Dispatching 2 specialists: Testing, Data Migration. They run in parallel.",
        "Dispatching 2 specialists: Testing (always on), Data Migration (schema.sql, 2 files)",
        "Dispatching 2 specialists: Testing and Data Migration",
        "**Dispatching 2 specialists:** Testing, Data Migration",
        "**Dispatching 2 specialists**: **Testing**, `Data Migration`",
        "> - Dispatching 2 specialists: Testing, Data Migration  ",
        "Small diff.\nDispatching 2 specialists: Testing, Data Migration\nLaunching.",
        "Dispatching N specialists: as planned. Dispatching 2 specialists: Testing, Data Migration",
    ],
)
def test_every_name_was_dispatched(line: str) -> None:
    assert check(said(line), *agents("Testing", "Data Migration")) == Verdict(MET)
    assert check(said(line), *agents("Testing")) == Verdict(MISSING, "no agent was dispatched for Data Migration")
    assert check(said(line)) == Verdict(MISSING, "no agent was dispatched for Testing, Data Migration")


def test_three_with_a_comma_before_and() -> None:
    assert read_names(" Testing, Security, and Performance", 3) == ["Testing", "Security", "Performance"]
    assert read_names(" Search and Rescue, Testing", 2) == ["Search and Rescue", "Testing"]
    assert read_names(" Search and Rescue", 1) == ["Search and Rescue"]


@pytest.mark.parametrize(
    "text",
    [
        "Dispatching 0 specialists: (small diff)",
        "Dispatching 0 specialists:",
        "Small diff (12 lines) — specialists skipped.",
        "Dispatching 0 specialists: none",
        "Dispatching 2 specialists: Testing, Security\nOn second thought:\nDispatching 0 specialists: (small diff)",
    ],
)
def test_none_was_selected(text: str) -> None:
    assert check(said(text)) == Verdict(MET)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Dispatching 3 specialists: Testing, Security", "the selection line says 3 but names 2"),
        ("Dispatching 1 specialists: Testing, Security", "the selection line says 1 but names 2"),
        ("Dispatching 2 specialists:", "the selection line says 2 but names none"),
        ("Dispatching 2 specialists:\n- Testing\n- Security", "the selection line says 2 but names none"),
        ("Dispatching 1 specialists: <name>", 'the selection line has a name that isn\'t plain: "<name>"'),
        ("Dispatching 1 specialists: [names]", 'the selection line has a name that isn\'t plain: "[names]"'),
        (
            "Dispatching 1 specialists: " + "a" * 41,
            "the selection line has a name that isn't plain: \"" + "a" * 40 + '..."',
        ),
        ("Dispatching specialists: Testing", NO_LINE),
        ("Dispatching N specialists: Testing", NO_LINE),
        ("Dispatching two specialists: Testing, Security", NO_LINE),
        ("dispatching 1 specialists: Testing", NO_LINE),
        ("I dispatch Testing.", NO_LINE),
    ],
)
def test_a_line_that_does_not_do(line: str, why: str) -> None:
    assert check(said(line), *agents("Testing", "Security", "names")) == Verdict(MISSING, why)


def test_where_the_line_counts() -> None:
    line = "Dispatching 1 specialists: Testing"
    agent = agents("Testing")
    assert check(*agent, final=line).status == MET, "the payload's text, not yet in the file"
    printed = [called("shell", "c1", command="echo"), result("c1", ok=True, text=f"a\n{line}\n")]
    assert check(*printed, *agent).status == MET
    for kind in ("read", "web", "search", "mcp", "agent"):
        elsewhere = [called(kind, "c1"), result("c1", ok=True, text=line)]
        assert check(*elsewhere, *agent) == Verdict(MISSING, NO_LINE), kind
    denied = [called("shell", "c1", command="echo"), result("c1", denied=True, text=line)]
    assert check(*denied, *agent).status == MISSING
    typed = [
        Event("prompt", text=line),
        called("shell", "c1", command=f"echo {line}"),
        Event("continuation", text=line),
    ]
    assert check(*typed, *agent).status == MISSING


def test_the_last_line_of_the_run_counts() -> None:
    first, second = said("Dispatching 1 specialists: Testing"), said("Dispatching 1 specialists: Security")
    assert check(first, second, *agents("Security")).status == MET
    assert check(first, second, *agents("Testing")) == Verdict(MISSING, "no agent was dispatched for Security")
    assert check(first, said("specialists skipped")).status == MET
    assert check(said("specialists skipped"), first) == Verdict(MISSING, "no agent was dispatched for Testing")


@pytest.mark.parametrize(
    ("fields", "mentions"),
    [
        ({"description": "testing pass"}, True),
        ({"prompt": "You are the\nTESTING specialist."}, True),
        ({"agent_name": "testing-reviewer"}, True),
        ({"prompt": "(Testing)"}, True),
        ({"description": "contesting it"}, False),
        ({"description": "test it"}, False),
        ({"agent_type": "testing"}, False),
        ({}, False),
    ],
)
def test_how_a_dispatch_mentions_a_specialist(fields: dict[str, str], mentions: bool) -> None:
    line = said("Dispatching 1 specialists: Testing")
    assert (check(line, called("agent", "a1", **fields)).status == MET) is mentions
    assert check(line, called("agent", "a1", **fields), result("a1", ok=False)).status == MISSING, "refused"


def test_names_of_several_words_stand_together() -> None:
    line = said("Dispatching 1 specialists: Data Migration")
    assert check(line, called("agent", "a", prompt="the data\n  migration part")).status == MET
    assert check(line, called("agent", "a", agent_name="data-migration")).status == MET
    assert check(line, called("agent", "a", prompt="data of the migration")).status == MISSING
    assert check(line, called("agent", "a", description="data", prompt="migration")).status == MISSING


def test_markers_of_ones_own() -> None:
    fields = {"marker": "Asking N of NN experts (max N):", "empty_marker": "nobody asked"}
    assert check(said("Asking 1 of NN experts (max 5): Law"), *agents("Law"), **fields).status == MET
    assert check(said("Asking 1 of 3 experts (max 5): Law"), *agents("Law"), **fields).status == MISSING
    assert check(said("Well, nobody asked."), **fields).status == MET
    assert check(said("specialists skipped"), **fields).status == MISSING
    assert check(said("Experts: Law, Tax"), *agents("Law", "Tax"), marker="Experts:").status == MET
    assert check(said("Experts:"), marker="Experts:") == Verdict(MISSING, "the selection line names no specialist")


def test_a_marker_that_starts_with_the_number() -> None:
    assert check(said("Now 12 of us, 1 experts: Law"), *agents("Law"), marker="N experts:").status == MET
    started = time.process_time()
    assert check(said("1" * 200_000), marker="N experts:").status == MISSING
    assert time.process_time() - started < 2


def test_texts() -> None:
    (kind,) = gstack_contract_kinds()
    item = Item("x", kind.name)
    assert MARKER in kind.fix(item)
    assert kind.fix(Item("x", kind.name, {"marker": "Asking N:"})).startswith('print the line "Asking N:"')
    assert kind.summary(item) == "an agent dispatch for each selected specialist"
    assert {field.name: field.default for field in kind.fields} == {
        "marker": MARKER,
        "empty_marker": "specialists skipped",
    }


_NAME = (
    st.text("abcXYZ019 _-", min_size=1, max_size=40)
    .map(str.strip)
    .filter(
        lambda name: (
            any(char.isalnum() for char in name) and not name.startswith(("and ", "_")) and not name.endswith("_")
        )
    )
)


@given(
    st.lists(_NAME, min_size=1, max_size=5, unique_by=str.casefold),
    st.sampled_from(["", ".", ". Skipped: Design, Security (scope).", ". Gated: x.", " (small diff)", ". Go!", "  "]),
    st.sampled_from(["", "- ", "> ", "**", "## ", "So: "]),
)
def test_any_plain_names_are_read(names: list[str], end: str, start: str) -> None:
    line = f"{start}Dispatching {len(names)} specialists: {', '.join(names)}{end}"
    found = read_selection(line, MARKER)
    assert found is not None
    assert found.count == len(names)
    assert [" ".join(name.split()) for name in found.names] == [" ".join(name.split()) for name in names]
    assert all(is_plain(name) for name in found.names)
    assert check(said(line), *agents(*names)).status == MET


@given(st.text("Dispatching 0123N specialists: ab,.()*\n", max_size=120))
def test_any_text_is_read(text: str) -> None:
    assert check(said(text), said("Dispatching " + text)).status in (MET, MISSING)

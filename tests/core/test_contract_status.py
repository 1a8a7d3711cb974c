"""STATUS lines, the early exit and questions, as models print them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack.contracts.status import STATUSES, ends_on_question, last_status, nothing_to_review


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("STATUS: DONE", "DONE"),
        ("Status: DONE_WITH_CONCERNS", "DONE_WITH_CONCERNS"),
        ("**Status:** BLOCKED", "BLOCKED"),
        ("**Status**: BLOCKED", "BLOCKED"),
        ("**STATUS: NEEDS_CONTEXT**", "NEEDS_CONTEXT"),
        ("__Status:__ **DONE**", "DONE"),
        ("status: DONE", "DONE"),
        ("Status:          DONE", "DONE"),
        ("- **Status:** DONE", "DONE"),
        ("1. Status: DONE", "DONE"),
        ("> Status: DONE", "DONE"),
        ("### STATUS: DONE", "DONE"),
        ("║ Status: BLOCKED   ║", "BLOCKED"),
        ("| Status | BLOCKED |", "BLOCKED"),
        ("| **Status** | `DONE` |", "DONE"),
        ("STATUS: DONE — all tests pass", "DONE"),
        ("STATUS: DONE.", "DONE"),
        ("Status: DONE (one flake)", "DONE"),
        ("STATUS: `DONE`", "DONE"),
        ("Status: ✅ DONE", "DONE"),
        ("✅ STATUS: DONE", "DONE"),
        ("Status:\n  BLOCKED\n", "BLOCKED"),
        ("**Status:**\n\n**DONE**", "DONE"),
        ("STATUS：DONE", "DONE"),
        ("I did it.\n\nSTATUS: DONE\n\nREASON: all good", "DONE"),
        ("STATUS: DONE\r\nbye", "DONE"),
        ("STATUS: BLOCKED\nlater\nSTATUS: DONE", "DONE"),
        ("STATUS: DONE\nlater\nSTATUS: BLOCKED", "BLOCKED"),
        ("STATUS: DONE\nStatus: verified", "DONE"),
        ("```\nStatus: BLOCKED\n```", "BLOCKED"),
        ("", None),
        ("DONE", None),
        ("STATUS", None),
        ("STATUS DONE", None),
        ("Fix Status: DONE", None),
        ("Fix Status: verified", None),
        ("My status: DONE", None),
        ("Status: HEALTHY", None),
        ("**Status:** VERIFIED", None),
        ("Status: DRAFT/APPROVED", None),
        ("Status: done", None),
        ("Status: Done", None),
        ("Status: DONE_SOON", None),
        ("Status: DONENESS", None),
        ("Status: NOT DONE", None),
        ("Status_code: DONE", None),
        ("Statuses: DONE", None),
        ("STATUS: DONE | DONE_WITH_CONCERNS | BLOCKED", None),
        ("Status: DONE / BLOCKED", None),
        ("Status: DONE or BLOCKED", None),
        ("Status: [DONE | BLOCKED]", None),
        ("Status: <DONE>", None),
        ("Status:\n\nAll is well. DONE", None),
        ('the line "STATUS: DONE" ends it', None),
    ],
)
def test_last_status(text: str, status: str | None) -> None:
    assert last_status(text) == status


_DECORATION = st.sampled_from(["", "  ", "- ", "* ", "**", "> ", "### ", "║ ", "• ", "1. ", "2) **", "- **", "> - "])
_AFTER = st.sampled_from([": ", ":", ":** ", "**: ", ":   ", "： ", ": **"])
_END = st.sampled_from(["", ".", "**", " - why", " (why)", ", since", "  ║"])
_PROSE = st.text("abc XYZ?!.,;\n", max_size=40)


@given(
    _PROSE,
    _DECORATION,
    st.sampled_from(["STATUS", "Status", "status", "sTaTuS"]),
    _AFTER,
    st.sampled_from(STATUSES),
    _END,
    _PROSE,
)
def test_a_status_in_any_style_is_read(
    before: str, decoration: str, word: str, after: str, status: str, end: str, behind: str
) -> None:
    assert last_status(f"{before}\n{decoration}{word}{after}{status}{end}\n{behind}") == status


@given(_PROSE, _DECORATION, st.sampled_from(["Fix ", "a", "Code-", "my "]), _AFTER, st.sampled_from(STATUSES))
def test_another_word_before_it_makes_it_none(
    before: str, decoration: str, other: str, after: str, status: str
) -> None:
    assert last_status(f"{before}\n{decoration}{other}Status{after}{status}") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nothing to review", True),
        ("Nothing to review — the branch has no changes.", True),
        ("**Nothing to review** - no diff", True),
        ('"Nothing to review — on main."', True),
        ("> Nothing to review.", True),
        ("- **Nothing to review:** empty diff", True),
        ("“Nothing to review”", True),
        ('**"Nothing to review — x"**', True),
        ("Looked at it.\n\nNothing to review.", True),
        ("There is nothing to review", False),
        ("I found Nothing to review", False),
        ("nothing to review", False),
        ("Nothing to reviewers", False),
        ("Nothing to do", False),
        ("", False),
    ],
)
def test_nothing_to_review(text: str, expected: bool) -> None:
    assert nothing_to_review(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Shall I go on?", True),
        ("Done.\n\nShall I go on?", True),
        ("Shall I go on?  \n\n", True),
        ("**Shall I go on?**", True),
        ('He said "shall I go on?"', True),
        ("(Shall I go on?)", True),
        ("Shall I go on?)*", True),
        ("`Shall I go on?`", True),
        ("Shall I go on? 🙂", True),
        ("Really?!", True),
        ("続けますか？", True),
        ("هل أكمل؟", True),
        ("Shall I go on? (y/n)", True),
        ("Shall I go on? [Y/n]", True),
        ("", False),
        ("Done.", False),
        ("Shall I go on?\n\nI will.", False),
        ("Which one?\n- a\n- b", False),
        ("What is it? It is a bug.", False),
        ("Really? Yes!", False),
        ("(a/b)", False),
        ("?" * 3 + "x", False),
    ],
)
def test_ends_on_question(text: str, expected: bool) -> None:
    assert ends_on_question(text) is expected


@given(st.text(max_size=120))
def test_any_text_is_read(text: str) -> None:
    assert last_status(text) in (None, *STATUSES)
    assert nothing_to_review(text) in (True, False)
    assert ends_on_question(text) in (True, False)

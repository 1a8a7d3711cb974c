"""Reports as people and models print them, and what is said of a label that has no value."""

import random

import pytest
from contract_helpers import called, result, said
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import MET, MISSING, Event, Item, Run, Verdict
from gstack_plugins.report_labels import ReportLabels, gstack_contract_kinds

LABELS = ["Symptom", "Root cause", "Fix", "Evidence"]
ITEM = Item("debug-report", "report_labels", {"heading": "DEBUG REPORT", "labels": LABELS})


def check(*texts: str, item: Item = ITEM) -> Verdict:
    return ReportLabels().check(item, Run("s", "l", [said(text) for text in texts], final_text=texts[-1]))


TEMPLATE = """Here it is.
```
DEBUG REPORT
════════════════════════════════════════
Symptom:         the login page answers 500
Root cause:      user is null in
                 src/auth.ts:12
Fix:             {fix}
Evidence:        {evidence}
Regression test: src/auth.test.ts
Related:
Status:          DONE
════════════════════════════════════════
```
Let me know.
"""

GOOD = {
    "fenced": TEMPLATE.format(fix="a null check", evidence="bun test: 12 passed"),
    "plain": "DEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence: d",
    "other case": "DEBUG REPORT\nsymptom: a\nROOT CAUSE: b\nfix: c\nEvidence: d",
    "bullets with bold": (
        "**DEBUG REPORT**\n\n- **Symptom:** a\n- **Root cause**: b\n* **Fix:** c\n- **Evidence:** `d | e`"
    ),
    "bold paragraphs": (
        "## DEBUG REPORT\n\n**Symptom:** a\n\n**Root cause:** b\n\n**Fix:** c\n\n**Evidence:**\n\nd\n\nDone."
    ),
    "underscores": "# DEBUG REPORT\n__Symptom__: a\n__Root cause:__ b\n_Fix:_ c\n*Evidence*: d",
    "numbers": "DEBUG REPORT\n1. Symptom: a\n2. **Root cause** — b\n3) Fix: c\n4. Evidence: d",
    "headings": (
        "# DEBUG REPORT\n## Symptom\na\n## Root Cause\n\nb\n\n## Fix\n- c\n## Evidence\n"
        "### Before\n1 failed\n### After\n0"
    ),
    "headings with values": "## DEBUG REPORT\n### Symptom: a\n### Root cause: b\n### Fix: c\n### Evidence: d",
    "underlined": (
        "DEBUG REPORT\n============\n\nSymptom\n-------\na\n\nRoot cause\n----------\nb\n\n"
        "Fix\n---\nc\n\nEvidence\n----\nd"
    ),
    "table": (
        "### DEBUG REPORT\n| Field | Value |\n|---|---|\n| Symptom | a |\n| **Root cause** | b |\n| Fix: | c |\n"
        "| Evidence | `x \\| y` |"
    ),
    "drawn table": (
        "DEBUG REPORT\n┌─────────┬───┐\n│ Symptom │ a │\n├─────────┼───┤\n│ Root cause │ b │\n│ Fix │ c │\n"
        "│ Evidence │ d │\n└─────────┴───┘"
    ),
    "box": (
        "╔══════════╗\n║ DEBUG REPORT ║\n╠══════════╣\n║ Symptom: a ║\n║ Root cause: b ║\n║ Fix: c ║\n║ Evidence: d ║\n"
        "╚══════════╝"
    ),
    "quoted": "> DEBUG REPORT\n> Symptom: a\n> Root cause: b\n> Fix: c\n> Evidence:\n>   d",
    "next line": "DEBUG REPORT\nSymptom:\n  a\nRoot cause:\n  b\nFix:\n  c\nEvidence:\n  d",
    "next line, not indented": "DEBUG REPORT\nSymptom:\na\nRoot cause:\nb\nFix:\nc\nEvidence:\nd",
    "paragraphs": "DEBUG REPORT\n\nSymptom:\n\na\n\nRoot cause:\n\nb\n\nFix:\n\nc\n\nEvidence:\n\nd",
    "lists": (
        "DEBUG REPORT\nSymptom: a\nRoot cause:\n- b\nFix:\n\n- c\n- d\n\nEvidence:\n1. before: 1 failed\n2. after: none"
    ),
    "code as a value": (
        "DEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence:\n\n```\n$ npm test\nTests: 12 passed\n```\n\nBye."
    ),
    "see below": "DEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence: ...\n  $ npm test\n  12 passed",
    "in brackets": "DEBUG REPORT\nSymptom: [bug] a\nRoot cause: <div> b\nFix: [link](http://x/y)\nEvidence: a[0]",
    "urls and times": "DEBUG REPORT\nSymptom: at 12:30\nRoot cause: http://x/y\nFix: C:\\a.txt\nEvidence: a | b and c",
    "a note in parentheses": "DEBUG REPORT\nSymptom (seen): a\nRoot cause (sure): b\nFix: c\nEvidence (after): d",
    "full-width colon": "DEBUG REPORT\nSymptom：a\nRoot cause：b\nFix：c\nEvidence：d",
    "an emoji": "🐛 DEBUG REPORT\n🔎 Symptom: a\n🧠 **Root cause:** b\n🔧 Fix: c\n✅ Evidence: d",
    "tabs": "DEBUG REPORT\n\tSymptom:\ta\n\tRoot cause:\tb\n\tFix:\tc\n\tEvidence:\td",
    "windows line ends": "DEBUG REPORT\r\nSymptom: a\r\nRoot cause: b\r\nFix: c\r\nEvidence: d\r\n",
    "the heading twice": (
        "The DEBUG REPORT follows.\n\nDEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence: d\n\n"
        "DEBUG REPORT done."
    ),
    "a template before it": (
        "I fill in DEBUG REPORT\nSymptom: [x]\nRoot cause: [x]\nFix: [x]\nEvidence: [x]\n\n"
        "DEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence: d"
    ),
    "labels before the heading": "Symptom: a\nRoot cause: b\nFix: c\nEvidence: d\n(DEBUG REPORT)",
    "not applicable": "DEBUG REPORT\nSymptom: a\nRoot cause: none\nFix: N/A\nEvidence: ✅",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_a_report_that_is_met(text: str) -> None:
    assert check(text) == Verdict(MET)


PLACEHOLDERS = [
    *("[what proves it]", "<evidence>", "TBD", "TODO", "tbd", "TODO.", "(TBD)", "...", "…", "....", "DONE | BLOCKED"),
    *(
        "`[x]`",
        "**[x]**",
        "*TBD*",
        "[x].",
        "[a] [b]",
        "[a], [b]",
        "DONE | DONE_WITH_CONCERNS | BLOCKED",
        "yes | no",
        "-",
        "—",
    ),
    *("DONE/BLOCKED", "DONE or BLOCKED", "[a [nested] one]", "[…]", "pass|fail"),
]


@pytest.mark.parametrize("value", PLACEHOLDERS)
def test_a_placeholder_is_no_value(value: str) -> None:
    verdict = check(TEMPLATE.format(fix="a null check", evidence=value))
    assert verdict.status == MISSING
    assert verdict.why.startswith("DEBUG REPORT: Evidence is a placeholder")
    for style in (
        "**Evidence:** {}",
        "- **Evidence**: {}",
        "### Evidence\n{}",
        "Evidence:\n  {}",
        "### Evidence\n\n{}\n\nBye.",
    ):
        text = f"DEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\n{style.format(value)}"
        assert "Evidence" in check(text).why, style


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TEMPLATE.format(fix="", evidence="x"), "DEBUG REPORT: Fix is empty"),
        (TEMPLATE.format(fix="[x]", evidence=""), "DEBUG REPORT: Fix is a placeholder ([x]); Evidence is empty"),
        ("DEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c", "DEBUG REPORT: no Evidence"),
        ("DEBUG REPORT", "DEBUG REPORT: no Symptom; no Root cause; no Fix; no Evidence"),
        ("DEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence:\nStatus: DONE", "DEBUG REPORT: Evidence is empty"),
        ("DEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence:\nRelated: x", "DEBUG REPORT: Evidence is empty"),
        ("DEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence:\n\nI am done.", "DEBUG REPORT: Evidence is empty"),
        (
            "DEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence:\n────\nI am done.",
            "DEBUG REPORT: Evidence is empty",
        ),
        (
            "```\nDEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence:\n```\nDone.",
            "DEBUG REPORT: Evidence is empty",
        ),
        ("DEBUG REPORT\n## Symptom\na\n## Root cause\nb\n## Fix\n## Evidence\nc", "DEBUG REPORT: Fix is empty"),
        ("DEBUG REPORT\n**Symptom:** a\n**Root cause:** b\n**Fix:**\n**Evidence:** c", "DEBUG REPORT: Fix is empty"),
        (
            "DEBUG REPORT\n| Symptom | a |\n| Root cause | b |\n| Fix | |\n| Evidence | c |",
            "DEBUG REPORT: Fix is empty",
        ),
        (
            "DEBUG REPORT\n| Symptom | a |\n| Root cause | b |\n| Fix | DONE | BLOCKED |\n| Evidence | c |",
            "DEBUG REPORT: Fix is a placeholder (DONE | BLOCKED)",
        ),
        (
            "DEBUG REPORT\nSymptom: a\nRoot cause: [why it\n  happened]\nFix: c\nEvidence: d",
            "DEBUG REPORT: Root cause is a placeholder ([why it happened])",
        ),
        ("DEBUG REPORT\nSymptom: a\nThe root cause is b\nFix: c\nEvidence: d", "DEBUG REPORT: no Root cause"),
        ("DEBUG REPORT\nSymptom: a\nRoot causes: b\nFix: c\nEvidence: d", "DEBUG REPORT: no Root cause"),
        ("DEBUG REPORT\nSymptom: a\nRoot cause: b\nBug Fix: c\nEvidence: d", "DEBUG REPORT: no Fix"),
        ("debug report\nSymptom: a\nRoot cause: b\nFix: c\nEvidence: d", "no message has the heading DEBUG REPORT"),
        ("DEBUG REPORTS\nSymptom: a\nRoot cause: b\nFix: c\nEvidence: d", "no message has the heading DEBUG REPORT"),
        ("MYDEBUG REPORT\nSymptom: a\nRoot cause: b\nFix: c\nEvidence: d", "no message has the heading DEBUG REPORT"),
        ("Fixed: the null check was missing.", "no message has the heading DEBUG REPORT"),
    ],
)
def test_what_is_missing(text: str, why: str) -> None:
    assert check(text) == Verdict(MISSING, why)


def test_the_last_message_with_the_heading_counts() -> None:
    good, bad = GOOD["plain"], "DEBUG REPORT\nSymptom: a"
    assert check(good, "All done.").status == MET
    assert check(bad, good).status == MET
    assert check(good, bad).status == MISSING


def test_only_what_the_assistant_said_counts() -> None:
    text = GOOD["plain"]
    events = [
        Event("prompt", text=text),
        called("shell", "c1", command=f"echo '{text}'"),
        result("c1", ok=True, text=text),
        called("read", "c2", paths=("report.md",)),
        result("c2", ok=True, text=text),
        Event("continuation", text=text),
        Event("compacted", text=text),
        said("Done."),
    ]
    assert ReportLabels().check(ITEM, Run("s", "l", events, final_text="Done.")).status == MISSING


def test_the_payloads_final_text_counts_before_the_file_has_it() -> None:
    assert ReportLabels().check(ITEM, Run("s", "l", [said("On it.")], final_text=GOOD["plain"])) == Verdict(MET)


def test_other_headings_and_labels() -> None:
    item = Item("x", "report_labels", {"heading": "QA (v2)", "labels": ["Pass/Fail", "What's next"]})
    assert check("QA (v2)\nPass/Fail: pass\nWhat's next: rest", item=item).status == MET
    assert check("QA (v2)\nPass/Fail: pass\nWhat's next: TBD", item=item).why == (
        "QA (v2): What's next is a placeholder (TBD)"
    )


def test_texts() -> None:
    (kind,) = gstack_contract_kinds()
    assert kind.fix(ITEM) == "print the DEBUG REPORT with real values for Symptom, Root cause, Fix, Evidence"
    assert kind.summary(ITEM) == "a DEBUG REPORT with Symptom, Root cause, Fix, Evidence"
    assert [(field.name, field.type, field.required) for field in kind.fields] == [
        ("heading", "text", True), ("labels", "texts", True),
    ]  # fmt: skip


# -------------------------------------------------------------------------------------------- any style, any value

_VALUE = st.builds(
    "{} {}{}".format,
    st.sampled_from(
        ["the login", "src/auth.ts:12", "`npm test`", "12 passed", "a null check", "C:\\x", "http://x/?q=1"]
    ),
    st.text("abcdefgh ,()'\"-é3", max_size=30),
    st.sampled_from(["", ".", " was wrong", " (see a.ts)", " [1]", " | b c"]),
)
_STYLES = st.sampled_from(
    [
        *(
            "{label}: {value}",
            "{label}:          {value}",
            "- {label}: {value}",
            "**{label}:** {value}",
            "**{label}**: {value}",
        ),
        *(
            "- **{label}:** {value}",
            "* **{label}**: {value}",
            "  {label}:   {value}",
            "> {label}: {value}",
            "1. {label}: {value}",
        ),
        *(
            "### {label}\n{value}",
            "## {label}\n\n{value}\n",
            "{label}:\n  {value}",
            "**{label}:**\n{value}",
            "__{label}__: {value}",
        ),
        *(
            "#### {label}: {value}",
            "{label}:\n    {value}\n    more of it",
            "• {label}: {value}",
            "│ {label}: {value} │",
        ),
    ]
)
_FRAMES = st.sampled_from(
    [
        *(
            "DEBUG REPORT\n{body}",
            "# DEBUG REPORT\n\n{body}\n\nDone.",
            "```\nDEBUG REPORT\n════\n{body}\n════\n```\nBye.",
        ),
        *("**DEBUG REPORT**\n---\n{body}\n\nSTATUS: DONE", "Hello.\n\n## DEBUG REPORT (final)\n{body}"),
    ]
)
_RANDOMLY = st.randoms(use_true_random=False)


def _render(frame: str, style: str, values: dict[str, str], chooser: random.Random) -> str:
    lines = []
    for label, value in values.items():
        name = chooser.choice([label, label, label.upper(), label.lower(), label.title()])
        lines.append(style.format(label=name, value=value))
    return frame.format(body="\n".join(lines))


@given(_FRAMES, _STYLES, st.lists(_VALUE, min_size=4, max_size=4), _RANDOMLY)
def test_real_values_in_any_style_are_met(frame: str, style: str, values: list[str], chooser: random.Random) -> None:
    text = _render(frame, style, dict(zip(LABELS, values, strict=True)), chooser)
    assert check(text) == Verdict(MET), text


@given(
    _FRAMES,
    _STYLES,
    st.lists(_VALUE, min_size=4, max_size=4),
    _RANDOMLY,
    st.sampled_from(LABELS),
    st.sampled_from(["drop", "", "TBD", "TODO", "...", "[what it is]", "<value>", "DONE | BLOCKED", "…"]),
)
def test_one_that_is_dropped_or_a_placeholder_is_named(
    frame: str, style: str, values: list[str], chooser: random.Random, label: str, instead: str
) -> None:
    filled = dict(zip(LABELS, values, strict=True))
    if instead == "drop":
        del filled[label]
    else:
        filled[label] = instead
        style = style.replace("\n    more of it", "")
    text = _render(frame, style, filled, chooser)
    verdict = check(text)
    if "Done." in frame and "\n" in style and instead == "":
        return  # the text after the report then stands where the value would
    assert verdict.status == MISSING, text
    named = [one for one in LABELS if one in verdict.why]
    assert named == [label], (text, verdict.why)


@given(st.text("DEBUG REPORT\nSymptom:|*#-[]<> `~=Fix\t│║", max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert check("DEBUG REPORT\n" + text).status in (MET, MISSING)


def test_a_huge_message_takes_no_time() -> None:
    text = "DEBUG REPORT\n" * 5_000 + "Evidence:\n" * 20_000 + "| a | b |\n" * 5_000 + "x" * 200_000
    assert check(text).status == MISSING

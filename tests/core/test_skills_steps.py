"""The first step of a body."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack.skills import first_step


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("# Title\n\n1. Reproduce the bug.\n2. Fix it.\n", "Reproduce the bug."),
        ("1) Reproduce the bug.\n", "Reproduce the bug."),
        ("Intro text.\n\n- Read the diff\n- Judge it\n", "Read the diff"),
        ("* Read the diff\n", "Read the diff"),
        ("- [ ] Read the diff\n", "Read the diff"),
        ("1. **Collect symptoms:** Read the `log` and\n   the [docs](https://x.y/z).\n2. No\n",
         "Collect symptoms: Read the log and the docs."),
        ("1. Use <path> and <b>go</b> <!-- no --> on\n", "Use <path> and go on"),
        ("```bash\n# 1. no\n1. no\n- no\n```\n\n1. Yes\n", "Yes"),
        ("~~~\n- no\n~~~\n- Yes\n", "Yes"),
        ("## When to use\n\n- a test fails\n\n## Workflow\n\n- Look at it\n", "Look at it"),
        ("## When to use\n\n- a test fails\n", "a test fails"),
        ("## Contents\n\n- [Start](#start)\n- [End](#end)\n\n## Start\n\n- Load it\n", "Load it"),
        ("- no step\n\n## Step 1: Load and review\n\n- Detail\n", "Load and review"),
        ("### Phase 0 \u2014 Look around\n", "Look around"),
        ("### 1. Scope the work ###\n", "Scope the work"),
        ("## Step 1\n\n1. Do that.\n", "Do that."),
        ("# Title\n\nThis skill is good.\nRun the tests first.\n", "Run the tests first."),
        ("# Title\n\n**Always** check twice.\n", "Always check twice."),
        ("# Title\n\nThis skill is good.\n", ""),
        ("", ""),
        ("1. " + "word " * 100, ("word " * 39).strip() + "\u2026"),
        ("1. one\n- two\n", "one"),
    ],
)  # fmt: skip
def test_first_step(body: str, want: str) -> None:
    assert first_step(body) == want


def test_only_the_start_of_the_body_counts() -> None:
    assert first_step("x\n" * 40_000 + "1. Too far down\n") == ""


@pytest.mark.parametrize("text", ["*", "`", "<!--", "[", "[a](", "_", "1. ", "- ", "# ", "> ", "**a", "~~~\n", "\n  "])
def test_no_body_takes_long(text: str) -> None:
    start = time.monotonic()
    first_step("1. " + text * (70_000 // len(text)))
    first_step(text * (70_000 // len(text)))
    assert time.monotonic() - start < 5


@given(st.text(alphabet="ab1.-*#`[]()<>!\n \t_~:|", max_size=200))
def test_always_one_short_line(body: str) -> None:
    step = first_step(body)
    assert len(step) <= 200
    assert "\n" not in step
    assert step == step.strip()

"""The reader of short JSON documents: what it takes it reads as ``json`` does, and it refuses the rest."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gstack import lowlevel
from gstack.shortjson import read_short

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18) + 1, 10**18 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=12,
)
#: Texts that are nearly JSON: pieces of it, in any order.
pieces = st.lists(
    st.sampled_from(
        [
            *['"', "\\", '\\"', "\\\\", "\\n", "\\u00e9", "\\x", "{", "}", "[", "]", ":", ",", " ", "\n"],
            *["a", "é", "1", "-", "0", ".5", "e3", "true", "false", "null", "nul", "NaN", "\x00"],
        ]
    ),
    max_size=14,
).map("".join)


def as_json(text: str, at: int) -> Any:
    """What ``json`` reads there: (value, end), or None for a mistake."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


@given(plain, st.sampled_from(["", " ", "\n x"]))
def test_plain_documents_are_taken(value: object, rest: str) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=None) + rest
    if isinstance(value, int) and not isinstance(value, bool):
        text += " "  # that a number ends is only seen in what follows
    escaped = any(f"\\u00{number:02x}" in text for number in range(0x20))
    if not escaped:
        assert read_short(text, 0) == as_json(text, 0)


@given(pieces)
@example('"\\\\"')
@example('{"a":"b\\"c","d":[1,{}]}')
@example("-01 ")
@example('{"a":1,}')
@example("[1,]")
@example("- ")
@example("1234567890123456789012 ")
def test_what_is_taken_is_right(text: str) -> None:
    try:
        found = read_short(text, 0)
    except (ValueError, IndexError):
        return
    assert found == as_json(text, 0)
    assert [type(one) for one in found] == [type(one) for one in as_json(text, 0)]


def without_c(text: str) -> Any:
    """The same as a hook reads it, which hasn't loaded the C half yet."""
    lowlevel._c_json = None
    try:
        return lowlevel.scan_json(text, alone=True)
    except ValueError:
        return None


@given(pieces | plain.map(json.dumps) | st.floats().map(json.dumps))
def test_with_what_is_refused_the_answer_is_that_of_json(text: str) -> None:
    assert repr(without_c(text)) == repr(as_json(text, len(text) - len(text.lstrip(" \t\r\n"))))


@pytest.mark.parametrize(
    "text",
    ['{"session_id": "s", "prompt": "fix\\nthis \\"bug\\" in C:\\\\x", "n": 3, "on": true, "l": [{}, []], "of": null}'],
)
def test_a_payload_needs_no_shared_library(text: str) -> None:
    code = (
        "import sys; sys.path += sys.argv[1:2]\n"
        "from gstack.lowlevel import load_json, dump_json\n"
        "print(dump_json(load_json(sys.stdin.read())['l']), '_json' in sys.modules)"
    )
    core = str(Path(lowlevel.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-IS", "-c", code, core], input=text, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[{}, []] False\n"


def test_deep_nesting_is_a_value_error() -> None:
    lowlevel._c_json = None
    with pytest.raises(ValueError, match="nested"):
        lowlevel.load_json("[" * 12_000)

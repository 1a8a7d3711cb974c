"""The lenient head of a SKILL.md: what people write is read, what is dangerous is refused."""

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gstack.frontmatter import HEAD_LIMIT, SkillSkipped, frontmatter, read_head

GOOD = b"""---
name: investigate
description: "Find it: the cause"
allowed-tools:
  - Bash(git *)
triggers:
  - fix this bug
  - debug this
routing: off
contract:
  version: 1
  items:
    - id: report
      kind: report_labels
      heading: DEBUG REPORT
      labels: [Yes, No, Root cause]
    - id: check
      kind: check_after_last_edit
      must_pass: true
metadata:
  gstack-triggers: "[one, two]"
---
# Body
"""


def test_a_good_head() -> None:
    read = frontmatter(GOOD)
    assert read["name"] == "investigate"
    assert read["description"] == "Find it: the cause"
    assert read["triggers"] == ["fix this bug", "debug this"]
    assert read["routing"] == "off"
    assert read["contract"]["version"] == 1
    assert read["contract"]["items"][0]["labels"] == ["Yes", "No", "Root cause"]
    assert read["contract"]["items"][1]["must_pass"] == "true"
    assert read["metadata"] == {"gstack-triggers": "[one, two]"}
    assert read_head(GOOD).body.strip() == "# Body"


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n"),
        b"\n\n" + GOOD,
        GOOD.replace(b"\n---\n", b"\n--- \t\n"),
        GOOD.replace(b"\n---\n", b"\n...\n"),
        GOOD.replace(b"  - ", b"\t- "),
        GOOD.replace(b"name: inv", b"name:\tinv"),
        GOOD.replace(b"\n---\n", b"\n"),
        GOOD.partition(b"\n---\n")[0],
        GOOD.replace(b"allowed-tools:\n", b"allowed-tools: [\n"),
        GOOD.replace(b"allowed-tools:\n", b"allowed-tools: a: b: c\n"),
        GOOD.replace(b"allowed-tools:\n", b"this line is garbage\nallowed-tools:\n"),
        GOOD.replace(b"allowed-tools:\n", b"model: @opus\nallowed-tools:\n"),
        GOOD.replace(b"allowed-tools:\n", b'hooks: "never closed\nallowed-tools:\n'),
        GOOD.replace(b"allowed-tools:\n", b"other: &a [x]\nmore: [*a, *a]\nallowed-tools:\n"),
        GOOD.replace(b"allowed-tools:\n", b"other: !!python/object:os.system {}\nallowed-tools:\n"),
        GOOD.replace(b"allowed-tools:\n", b"bell: \x07\x00\nallowed-tools:\n"),
        GOOD.replace(b"allowed-tools:\n", b"latin: caf\xe9\nallowed-tools:\n"),
        GOOD.replace(b"allowed-tools:\n", b"name: investigate\nallowed-tools:\n"),
        GOOD.replace(b"allowed-tools:\n", b"day: 2026-13-45\nequal: =\n<<: {a: 1}\nallowed-tools:\n"),
    ],
    ids=[
        "bom", "crlf", "cr", "bom-crlf", "blank-first", "blank-after-fence", "dots", "tab-indent", "tab-value",
        "fence-missing", "fence-and-body-missing", "open-flow", "colons", "garbage-line", "at-sign", "open-quote",
        "aliases-elsewhere", "tag-elsewhere", "control", "latin-1", "duplicate", "odd-scalars",
    ],
)  # fmt: skip
def test_our_keys_survive(data: bytes) -> None:
    want = frontmatter(GOOD)
    read = frontmatter(data)
    for key in ("name", "description", "triggers", "routing", "contract", "metadata"):
        assert read[key] == want[key], key


def test_no_head() -> None:
    for data in (b"", b"# Title\n\n---\nname: x\n---\n", b"name: x\n", b"<!-- c -->\n---\nname: x\n---\n"):
        assert frontmatter(data) == {}
        assert read_head(data).body == data.decode()
    assert frontmatter(b"---\n---\n") == {}
    assert frontmatter(b"---") == {}


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("Use when: it fails: badly", "Use when: it fails: badly"),
        ('"Use when the user says "fix it", or so."', 'Use when the user says "fix it", or so.'),
        ("@Observable views", "@Observable views"),
        ("`code` first", "`code` first"),
        ("*Bold* claims", "*Bold* claims"),
        ("'it's broken'", "it's broken"),
        ("Long: one\n  and a second line", "Long: one and a second line"),
        ("", None),
        ("*anchor", None),
        ("!!str x", None),
    ],
)
def test_descriptions_that_yaml_refuses(line: str, want: "str | None") -> None:
    """A description is the text that a person sees; an alias or a tag is refused, not shown."""
    read = frontmatter(f"---\nname: x\ndescription: {line}\ntriggers: [a b]\n---\n".encode())
    assert read["name"] == "x"
    assert read["triggers"] == ["a b"]
    assert read.get("description") == want


@pytest.mark.parametrize(
    ("block", "want"),
    [
        (
            'triggers:\n  - fix "this" bug\n  - "debug" this\n  - @mention',
            ['fix "this" bug', '"debug" this', "@mention"],
        ),
        ("triggers: [fix this, \"debug 'this]", ["fix this", "\"debug 'this"]),
        ("triggers: fix: this bug: now", ["fix: this bug: now"]),
        ("triggers:\n  - good\n  - *bad\n  - !!set {a}", ["good"]),
        ("triggers: *bad", []),
        ("triggers:\n- flat one\n- flat: two: three", ["flat one", "flat: two: three"]),
    ],
)
def test_triggers_that_yaml_refuses(block: str, want: "list[str]") -> None:
    assert frontmatter(f"---\nname: x\n{block}\n---\n".encode())["triggers"] == want


def test_a_contract_that_yaml_refuses_is_not_lost() -> None:
    """It was declared, so that it can be reported as invalid."""
    head = read_head(b"---\nname: x\ncontract:\n  items: [a\n---\n")
    assert head.values["contract"] == "contract:\n  items: [a"
    assert "contract" in head.problems


def test_problems_name_the_line_of_the_file() -> None:
    head = read_head(b"\n---\nname: x\nbad: a: b\ntriggers:\n  - one\n  - *two\ncontract:\n  items:\n   - [a\n---\n")
    assert head.problems["triggers"] == "line 7: aliases (*name) are refused"
    assert head.problems["contract"].startswith("line 11: ")


def test_our_keys_inside_a_broken_metadata_map() -> None:
    data = (
        b"---\nname: x\nmetadata:\n  emoji: \"\n  gstack-triggers: '[one]'\n  gstack-contract: |\n    version: 1\n---\n"
    )
    assert frontmatter(data)["metadata"] == {"gstack-triggers": "[one]", "gstack-contract": "version: 1\n"}


def test_a_head_without_end_stops_at_the_prose() -> None:
    """The rule further down closes nothing, and what the body says is neither name nor trigger."""
    data = (
        b"---\nname: openfm\ndescription: Fixture: the fence is missing\ntriggers:\n  - one two\n\n# Title\n\n"
        b"- no trigger\n\nProse here.\n\nname: other\n\n---\n\nmore\n"
    )
    head = read_head(data)
    assert head.values["name"] == "openfm"
    assert head.values["triggers"] == ["one two"]
    assert head.values["description"] == "Fixture: the fence is missing"
    unclosed = read_head(data.replace(b"\n---\n\nmore", b""))
    assert unclosed.values["triggers"] == ["one two"]
    assert unclosed.body.startswith("# Title")


def test_words_and_numbers() -> None:
    """Booleans and dates stay as written, numbers are numbers, and everything is plain data."""
    read = frontmatter(
        b"---\na: [Yes, No, on, off, true, 3, 1.5, 2026-01-02, null, ~]\nb: {1: x}\nc: .nan\nd: .inf\n---\n"
    )
    assert read["a"] == ["Yes", "No", "on", "off", "true", 3, 1.5, "2026-01-02", None, None]
    assert type(read["a"][7]) is str
    assert read["b"] == {"1": "x"}
    assert (read["c"], read["d"]) == ("nan", "inf")


@pytest.mark.parametrize("data", [b"\xff\xfe-\0-\0-\0", b"\xfe\xff\0-\0-", b"-\0-\0-\0\n\0"])
def test_utf16_is_skipped(data: bytes) -> None:
    with pytest.raises(SkillSkipped, match="UTF-8"):
        frontmatter(data)


BOMBS = {
    "brackets": "a: " + "[" * 100_000,
    "nested": "\n".join(" " * depth + "a:" for depth in range(700)),
    "dashes": "- " * 100_000,
    "digits": "a: " + "9" * 200_000,
    "base 60": "a: " + ":".join(["1"] * 80_000),
    "base 60 float": "a: " + ":".join(["1"] * 80_000) + ".5",
    "aliases": "a0: &a0 [x]\n" + "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 60)),
    "keys": "? " * 90_000,
    "quotes": '"' * 200_000,
    "colons": ": " * 100_000,
    "tags": "a: " + "!x " * 60_000,
    "tabs": "\t" * 200_000 + "a: b",
    "stars": "a: " + " *b" * 80_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_harmless(name: str) -> None:
    data = (
        f"---\nname: x\ntriggers: [one two]\nother:\n  {BOMBS[name]}\n".encode()[: HEAD_LIMIT - 100] + b"\n---\nbody\n"
    )
    start = time.monotonic()
    read = frontmatter(data)
    assert time.monotonic() - start < 15  # seconds; unguarded they take minutes
    assert read["name"] == "x"
    assert read["triggers"] == ["one two"]


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_in_our_own_keys_are_harmless(name: str) -> None:
    data = f"---\nname: x\nmetadata:\n  {BOMBS[name]}\n".encode()[: HEAD_LIMIT - 100] + b"\n---\nbody\n"
    start = time.monotonic()
    assert frontmatter(data)["name"] == "x"
    assert time.monotonic() - start < 15  # seconds; unguarded they take minutes


def test_a_head_over_the_limit_is_read_as_far_as_it_is_allowed() -> None:
    filler = b"".join(b"k%d: v\n" % n for n in range(60_000))
    data = b"---\nname: x\ntriggers: [one two]\n" + filler + b"description: too far down\n---\nbody\n"
    assert len(filler) > HEAD_LIMIT
    read = frontmatter(data)
    assert (read["name"], read["triggers"]) == ("x", ["one two"])
    assert "description" not in read


def test_without_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pure Python loader gives the same."""
    from gstack import frontmatter as module

    want = frontmatter(GOOD)
    monkeypatch.delattr(yaml, "CSafeLoader")
    module._loader.cache_clear()
    try:
        assert frontmatter(GOOD) == want
        assert (
            frontmatter(GOOD.replace(b"allowed-tools:\n", b"x: a: b\nallowed-tools:\n"))["triggers"] == want["triggers"]
        )
        for bomb in ("brackets", "aliases"):
            assert frontmatter(f"---\nname: x\nother: {BOMBS[bomb][:20_000]}\n---\n".encode())["name"] == "x"
    finally:
        module._loader.cache_clear()


def _plain(value: object) -> bool:
    if isinstance(value, dict):
        return type(value) is dict and all(type(k) is str and _plain(v) for k, v in value.items())
    if isinstance(value, list):
        return type(value) is list and all(map(_plain, value))
    return value is None or type(value) in (str, int, float)


@given(st.binary(max_size=300))
def test_random_bytes_only_ever_raise_skill_skipped(data: bytes) -> None:
    for text in (data, b"---\n" + data, b"---\n" + data + b"\n---\nbody"):
        try:
            assert _plain(frontmatter(text))
        except SkillSkipped:
            pass


YAMLISH = st.text(alphabet="abn:-#[]{}|>'\"*&!@`%?, \n\t0159~.", max_size=120)


@given(YAMLISH)
def test_yamlish_text_only_ever_raises_skill_skipped(text: str) -> None:
    read = frontmatter(f"---\nname: x\ntriggers: [a b]\n---\n{text}".encode())
    assert read["triggers"] == ["a b"]
    assert _plain(frontmatter(f"---\n{text}\n---\n".encode()))


@given(st.integers(0, len(GOOD) - 1), st.binary(max_size=6), st.integers(0, 12))
def test_mutated_heads_only_ever_raise_skill_skipped(place: int, new: bytes, gone: int) -> None:
    try:
        assert _plain(frontmatter(GOOD[:place] + new + GOOD[place + gone :]))
    except SkillSkipped:
        pass


@given(st.lists(st.text(alphabet="abc :-#[]{}'\"*&!@,", max_size=12), max_size=4))
def test_bad_lines_that_are_none_of_ours_cost_nothing(bad: "list[str]") -> None:
    """Whatever stands under a key of somebody else, our keys read the same."""
    lines = "".join(f"  {line}\n" for line in bad)
    data = f"---\nname: x\ntriggers:\n  - fix this bug\nother:\n{lines}routing: off\ncontract:\n  version: 1\n---\nb\n"
    read = frontmatter(data.encode())
    assert read["name"] == "x"
    assert read["triggers"] == ["fix this bug"]
    assert read["routing"] == "off"
    assert read["contract"] == {"version": 1}

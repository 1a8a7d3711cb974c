"""What the pages claim about files, links and commands is so."""

import importlib.util
import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest
from page_support import (
    DOCS,
    PAGES,
    ROOT,
    anchors,
    gstack_commands,
    leaf_of,
    links,
    name_of,
    named_commands,
    options_of,
    refused,
    shown_commands,
)


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """``docs/generate.py`` as a module."""
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_pages_are_current(generate: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_page_is_found_and_written(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "configuration.md"
    shutil.copy(DOCS / "reference" / "configuration.md", page)
    before = page.read_text(encoding="utf-8")
    page.write_text(before.replace("`route_threshold`", "`route_limit`"), encoding="utf-8")
    monkeypatch.setattr(generate, "PAGES", {page: ("keys", generate.keys)})
    monkeypatch.setattr(generate, "DOCS", tmp_path / "docs")
    assert generate.main(["--check"]) == 1
    assert "configuration.md is stale" in capsys.readouterr().out
    assert generate.main([]) == 0
    assert page.read_text(encoding="utf-8") == before
    assert generate.main(["--bogus"]) == 2


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: no such file"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name_of)
def test_every_page_is_linked(page: Path) -> None:
    others = {
        (other.parent / link.partition("#")[0]).resolve() for other in PAGES if other != page for link in links(other)
    }
    assert page.resolve() in others


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_shown_command_is_accepted(page: Path) -> None:
    """The blocks' commands parse: the command exists, takes these options, and has the arguments it needs."""
    for words, line in shown_commands(page):
        assert not refused(words), f"line {line}: gstack {' '.join(words)}: {refused(words)}"


@pytest.mark.parametrize(
    "words",
    [
        ["bogus"],
        ["config", "get"],
        ["setup", "--bogus"],
        ["route", "eval"],
        ["gate", "test"],
        ["bundle", "sign", "x"],
        [],
    ],
)
def test_what_gstack_refuses_is_seen(words: list[str]) -> None:
    assert refused(words)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_named_command_exists(page: Path) -> None:
    """Commands in running text: the command exists, and it takes the options that stand there."""
    for text in named_commands(page):
        if re.search(r"[…]|\[|\|", text) or "COMMAND" in text:
            continue
        for words in gstack_commands(text):
            command, rest = leaf_of(words)
            for word in rest:
                if word.startswith("-") and word != "-":
                    assert word.partition("=")[0] in options_of(command), f"`{text}`"


def test_the_reader_of_a_shell_finds_what_stands_there() -> None:
    text = (
        'gstack route --explain "a # b"  # gstack no\n'
        "cat > x <<'END'\ngstack bogus\nEND\n"
        'cat "$(gstack config path)/x" | gstack gate test - || gstack status\n'
        "A=1 .gstack/bin/gstack bundle \\\n  show\necho gstack\n"
    )
    assert list(gstack_commands(text)) == [
        ["route", "--explain", "a # b"], ["gate", "test", "-"], ["status"], ["bundle", "show"], ["config", "path"],
    ]  # fmt: skip
    with pytest.raises(LookupError):
        leaf_of(["bogus"])


def test_names_of_pages_are_those_that_the_code_names() -> None:
    """Texts in the code that point at a page point at one that exists."""
    for folder in ("core", "hosts", "plugins"):
        for file in (ROOT / folder).rglob("*.py"):
            for path in re.findall(r"docs/[\w/-]+\.md", file.read_text(encoding="utf-8")):
                assert (ROOT / path).is_file(), f"{file}: {path}"

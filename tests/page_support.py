"""The documentation taken apart: pages, fenced blocks, links, anchors, and the gstack commands that pages show."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from gstack.cli import build_app
from gstack.cli.run import normalise
from gstack.errors import GstackError

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]

_FENCE = re.compile(r"^(?P<mark>```+)(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=mark)$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    """The page as people call it: ``docs/tutorial.md``."""
    return page.relative_to(ROOT).as_posix()


class Fence:
    """One fenced block: its info words (``sh run``), its text, and the line on which it starts."""

    def __init__(self, info: str, text: str, line: int) -> None:
        self.words = info.split()
        self.text = text
        self.line = line

    @property
    def language(self) -> str:
        return self.words[0] if self.words else ""


def fences(page: Path) -> list[Fence]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [Fence(m["info"], m["text"], text.count("\n", 0, m.start()) + 1) for m in _FENCE.finditer(text)]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """Where a page links to."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page)))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    out = set()
    for heading in re.findall(r"^#+ +(.+?) *#*$", prose(page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        times = found[slug] = found.get(slug, -1) + 1
        out.add(f"{slug}-{times}" if times else slug)
    return out


# ------------------------------------------------------------------------------------------ shell, commands

_HEREDOC = re.compile(r"<<-?\s*'?(\w+)'?(?P<rest>[^\n]*)\n.*?^\1$", re.MULTILINE | re.DOTALL)
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)")


def shell_commands(text: str) -> Iterator[list[str]]:
    """The commands of a shell text as words: each part between operators and line ends, comments and here-documents
    left out."""
    text = _HEREDOC.sub(lambda found: found["rest"], text).replace("\\\n", " ")
    words: list[str] = []
    word: str | None = None
    quote = ""
    skip = False
    for char in [*_SUBSTITUTION.sub("X", text), "\n"]:
        skip = skip and char != "\n"
        if skip:
            continue
        if quote:
            quote, word = ("", word) if char == quote else (quote, (word or "") + char)
        elif char in "'\"":
            quote, word = char, word or ""
        elif char == "#" and word is None:
            skip = True
        elif char in " \t\n;&|()<>":
            words += [] if word is None else [word]
            word = None
            if char not in " \t" and words:
                yield words
                words = []
        else:
            word = (word or "") + char
    for found in _SUBSTITUTION.findall(text):
        yield from shell_commands(found)


def gstack_commands(text: str) -> Iterator[list[str]]:
    """The arguments of each gstack command of a shell text."""
    for words in shell_commands(text):
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words = words[1:]
        if words and words[0].rpartition("/")[2] == "gstack":
            yield words[1:]


def shown_commands(page: Path) -> Iterator[tuple[list[str], int]]:
    """The gstack commands of a page's ``sh`` and ``console`` blocks, with the line of the block."""
    for fence in fences(page):
        text = fence.text
        if fence.language == "console":
            text = "\n".join(re.findall(r"^\$ ((?:.*\\\n)*.*)$", text, re.MULTILINE))
        elif fence.language not in ("sh", "bash", "shell"):
            continue
        for words in gstack_commands(text):
            yield words, fence.line


def named_commands(page: Path) -> Iterator[str]:
    """The gstack commands that a page names in its prose: ``gstack route eval``."""
    for text in re.findall(r"`([^`\n]+)`", prose(page).replace("\n", " ")):
        if text.startswith("gstack "):
            yield text


ROOT_COMMAND: Any = typer.main.get_command(build_app())


def leaf_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that ``words`` name, and the words after its name. Raises LookupError for none."""
    command, rest = ROOT_COMMAND, list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command, rest = command.commands[rest[0]], rest[1:]
    if command is ROOT_COMMAND and rest and not rest[0].startswith("-"):
        raise LookupError(f"there is no command {rest[0]}")
    if command is ROOT_COMMAND.commands["route"] and rest and rest[0] != "--help":
        command = command.commands["explain"]
    return command, rest


def options_of(command: Any) -> set[str]:
    """The options that a command takes."""
    found = {"--help", "-h", "--debug"}
    if command is ROOT_COMMAND:
        found.add("--version")
    return found.union(*(one.opts + one.secondary_opts for one in command.params if one.param_type_name == "option"))


def refused(words: list[str]) -> str:
    """Why gstack would refuse these arguments; ``""`` when they parse. Nothing is run."""
    try:
        command, rest = leaf_of(words)
        path = words[: len(words) - len(rest)]
        command.make_context("gstack", normalise([*path, *rest])[len(path) :])
    except LookupError as error:
        return str(error)
    except GstackError as error:
        return error.message
    except Exception as error:
        return "" if type(error).__name__ == "Exit" else getattr(error, "message", "") or type(error).__name__
    return ""

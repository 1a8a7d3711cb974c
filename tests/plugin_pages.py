"""The pages for plug-in authors, taken apart: their code blocks, and the signatures that they show."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "plugins").glob("*.md"))
_BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)


class Block:
    """One fenced block: its language, the file that it is (``""``: none), its text, and the line where it starts."""

    def __init__(self, language: str, title: str, text: str, line: int) -> None:
        self.language = language
        self.title = title
        self.text = text
        self.line = line


def blocks(page: Path) -> list[Block]:
    source = page.read_text(encoding="utf-8")
    return [
        Block(found["language"], found["title"] or "", found["text"], source.count("\n", 0, found.start()) + 1)
        for found in _BLOCK.finditer(source)
    ]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def files(page: Path) -> dict[str, str]:
    """The files of the example on a page."""
    return {block.title: block.text for block in blocks(page) if block.title}

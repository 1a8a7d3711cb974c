"""The documentation says things in words of its own: no sentence of the specification or the seeds stands in it."""

import re
from pathlib import Path

import pytest
from page_support import PAGES, ROOT, name_of, prose

#: How many words in a row are the same thing said the same way.
LENGTH = 12


def words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def runs(text: str) -> set[tuple[str, ...]]:
    """Every row of so many words in the sentences of a text; code and exact outputs aside."""
    found = set()
    for sentence in re.split(
        r"[.:;!?|]\s|\n\s*\n|\n\s*[-*|] ", re.sub(r"```.*?```|`[^`]*`", " ", text, flags=re.DOTALL)
    ):
        said = words(sentence)
        found |= {tuple(said[place : place + LENGTH]) for place in range(len(said) - LENGTH + 1)}
    return found


@pytest.fixture(scope="module")
def given(shared: Path) -> set[tuple[str, ...]]:
    files = [*(shared / "spec").glob("*.md"), *(shared / "seeds").iterdir()]
    return set().union(*(runs(file.read_text(encoding="utf-8", errors="replace")) for file in files))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_sentence_is_copied_into_a_page(page: Path, given: set[tuple[str, ...]]) -> None:
    same = runs(prose(page)) & given
    assert not same, [" ".join(one) for one in sorted(same)][:5]


def test_no_sentence_is_copied_into_a_docstring(given: set[tuple[str, ...]]) -> None:
    found = []
    for folder in ("core", "hosts", "plugins"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            texts = re.findall(r'"""(.*?)"""', file.read_text(encoding="utf-8"), re.DOTALL)
            found += [f"{file.name}: {' '.join(one)}" for text in texts for one in runs(text) & given]
    assert not found, sorted(found)[:10]


def test_a_copy_is_seen() -> None:
    text = "One two three four five six seven eight nine ten eleven twelve thirteen."
    assert runs(f"x. {text} y") & runs(text)
    assert not runs("One two three `four` five six seven eight nine ten eleven twelve.") & runs(text)

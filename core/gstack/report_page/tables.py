"""Tables of a page, as data: what a cell shows and what it is sorted by."""

from collections.abc import Sequence
from typing import Any

#: From so many rows on a table has a box to filter it.
FILTER_FROM = 9


class Cell:
    """One cell: its ``text``, what it is sorted by (``value``; the text itself where None), its ``tone`` (``good``,
    ``warn``, ``bad``, ``dim``), a ``note`` below it, and a ``share`` (0 to 1) that is drawn as a bar."""

    __slots__ = ("note", "share", "text", "tone", "value")

    def __init__(
        self, text: str, value: float | None = None, *, tone: str = "", note: str = "", share: float | None = None
    ) -> None:
        self.text = text
        self.value = value
        self.tone = tone
        self.note = note
        self.share = share


class Column:
    """One column: its ``label``, and whether it holds ``numeric`` values or ``long`` words that may break anywhere."""

    __slots__ = ("label", "long", "numeric")

    def __init__(self, label: str, *, numeric: bool = False, long: bool = False) -> None:
        self.label = label
        self.numeric = numeric
        self.long = long


class Table:
    """A table: ``columns`` as labels (a leading ``#`` means numbers, a leading ``~`` long words), ``rows`` of texts,
    numbers or cells.

    ``cards``: on a phone each row becomes a block of its own, which suits rows that are wide.
    """

    def __init__(
        self, ident: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, cards: bool = False, more: int = 0
    ) -> None:
        self.ident = ident
        self.columns = [Column(one.lstrip("#~"), numeric=one[:1] == "#", long=one[:1] == "~") for one in columns]
        self.rows = [[_cell(value) for value in row] for row in rows]
        self.cards = cards
        self.more = more

    @property
    def filtered(self) -> bool:
        """Whether there are enough words to filter."""
        return len(self.rows) >= FILTER_FROM and not all(column.numeric for column in self.columns)


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if value is None:
        return Cell("")
    if isinstance(value, (int, float)):
        return Cell(f"{value:,}", float(value))
    return Cell(str(value))


def share_cell(part: int, whole: int, *, tone: str = "") -> Cell:
    """A share as a bar: ``3 of 8``."""
    share = part / whole if whole else 0.0
    return Cell(f"{part:,} of {whole:,}", share, tone=tone, share=share)

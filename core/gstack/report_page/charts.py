"""Charts of a page, as data in the chart's own coordinates; ``parts.html.j2`` draws them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from gstack.report_page import day

#: How many stacks a chart tells apart, and how many bars fit; older days are joined into weeks.
SERIES, BARS = 7, 60
_DAY = 86400


class Bar:
    """One day (or week): its ``label``, the count of each series, and ``told``, all of it in words."""

    __slots__ = ("label", "parts", "told")

    def __init__(self, label: str, parts: list[int]) -> None:
        self.label = label
        self.parts = parts
        self.told = ""

    @property
    def total(self) -> int:
        """All that is stacked."""
        return sum(self.parts)


class Bars:
    """Counts over time, stacked: ``series`` names the stacks and ``colours`` their colours (CSS), ``bars`` are the days
    or weeks without gaps."""

    def __init__(self, series: list[str], colours: list[str], bars: list[Bar]) -> None:
        self.series = series
        self.colours = colours
        self.bars = bars

    @property
    def top(self) -> int:
        """The height of the field: the highest bar, rounded up so that half of it is whole, too."""
        top = max([bar.total for bar in self.bars], default=0) or 1
        return top if top == 1 else top + top % 2

    @property
    def key(self) -> list[tuple[str, str]]:
        """Name and colour of each series."""
        return list(zip(self.series, self.colours, strict=True))


def bars_over_time(
    days: Mapping[int, Counter[str]],
    *,
    order: Sequence[tuple[str, str]] | None = None,
    also: Mapping[int, int] | None = None,
    what: str = "",
) -> Bars:
    """The chart of counts by day (from the epoch, UTC) and name.

    The most frequent names get a stack each, the rest share one; ``order`` gives names and tones (``good``, ``warn``,
    ``bad``, ``dim``) instead. ``also`` are further counts by day, of ``what``, which are told but not drawn.
    """
    spanned = [*days, *(also or ())]
    if not spanned:
        return Bars([], [], [])
    first, last = min(spanned), max(spanned)
    step = 1 if last - first < BARS else 7 * (-(-(last - first + 1) // (7 * BARS)))
    counts: Counter[str] = Counter()
    for found in days.values():
        counts.update(found)
    series, colours = _series(counts, order)
    places = {name: place for place, name in enumerate(series)}
    bars = [Bar(day(start * _DAY), [0] * len(series)) for start in range(first, last + 1, step)]
    for at, found in days.items():
        for name, count in found.items():
            bars[(at - first) // step].parts[places.get(name, len(series) - 1)] += count
    further = [0] * len(bars)
    for at, count in (also or {}).items():
        further[(at - first) // step] += count
    for bar, count in zip(bars, further, strict=True):
        parts = ", ".join(f"{name} {part:,}" for name, part in zip(series, bar.parts, strict=True) if part)
        bar.told = f"{bar.label}{' (7 days)' if step == 7 else f' ({step} days)' if step > 1 else ''}: {parts or 0}"
        bar.told += f"; {count:,} {what}" if also is not None else ""
    return Bars(series, colours, bars)


def _series(counts: Counter[str], order: Sequence[tuple[str, str]] | None) -> tuple[list[str], list[str]]:
    if order is not None:
        return [name for name, _ in order], [f"var(--{tone})" for _, tone in order]
    names = sorted(counts, key=lambda name: (-counts[name], name))
    series = [*names[:SERIES], "others"] if len(names) > SERIES else names
    return series, [f"var(--s{place})" for place in range(len(series))]


class Line:
    """One line: its ``name`` and its points, both coordinates from 0 to 1 (up)."""

    __slots__ = ("name", "points")

    def __init__(self, name: str, points: Sequence[tuple[float, float]]) -> None:
        self.name = name
        self.points = list(points)


class Lines:
    """Measures between 0 and 1 over a range of values: the ``lines``, the marks below as (label, place), and upright
    lines as (label, place)."""

    def __init__(
        self, lines: Sequence[Line], marks: Sequence[tuple[str, float]], uprights: Sequence[tuple[str, float]] = ()
    ) -> None:
        self.lines = list(lines)
        self.marks = list(marks)
        self.uprights = list(uprights)

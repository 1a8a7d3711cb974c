"""The page of ``gstack route report --html``."""

from collections import Counter

from gstack.replay.followed import FATES, UNKNOWN, Followed, Hint
from gstack.replay.rows import FOLLOWED, NONE, OTHER
from gstack.report_page import charts, moment, render
from gstack.report_page.tables import Cell, Table, share_cell

#: What people read for a hint's fate, with the tone.
_FATES = {
    FOLLOWED: ("followed", "good"),
    OTHER: ("loaded another", "warn"),
    NONE: ("loaded none", "bad"),
    UNKNOWN: ("can't tell", "dim"),
}


def followed_page(found: Followed, *, now: float) -> str:
    """The report as one self-contained page; ``now`` (seconds since the epoch) is when it was made."""
    tables = {
        "given": _by_skill("given", found, found.given),
        "observed": _by_skill("observed", found, found.observed),
        "hints": Table(
            "hints",
            ["when (UTC)", "skill", "#score", "then", "~session"],
            [_hint(row) for row in found.rows.rows],
            cards=True,
            more=found.rows.left_out,
        ),
        "shadows": Table(
            "shadows",
            ["scorer", "#prompts", "#routes", "#same", "#only it", "#then loaded", "#errors"],
            [
                (name, one.prompts, one.routes, one.same, one.only, one.loaded, one.errors)
                for name, one in sorted(found.shadows.items())
            ],
        ),
        "reasons": Table("reasons", ["not hinted because", "#prompts"], found.reasons.most_common()),
    }
    chart = charts.bars_over_time(found.days.at, order=[(fate, _FATES[fate][1]) for fate in FATES])
    chart.series = [_FATES[fate][0] for fate in chart.series]
    return render("gstack.replay", "followed.html.j2", found=found, tables=tables, chart=chart, now=now)


def _by_skill(ident: str, found: Followed, counts: Counter[tuple[str, str]]) -> Table:
    return Table(
        ident,
        ["skill", "#hints", "#followed", "#another", "#none", "#can't tell", "share"],
        [
            (f"/{skill}", total, *(fates[fate] for fate in FATES), _share(fates))
            for skill, total, fates in found.by_skill(counts)
        ],
    )


def _share(fates: dict[str, int]) -> Cell:
    """Of the hints whose fate is known."""
    return share_cell(fates[FOLLOWED], sum(fates.values()) - fates[UNKNOWN], tone="good")


def _hint(row: Hint) -> tuple[Cell, str, Cell, Cell, str]:
    word, tone = _FATES[row.fate]
    note = row.loaded if row.fate == OTHER else ""
    word += " (observed)" if row.observed else ""
    return (
        Cell(moment(row.ts), row.ts),
        f"/{row.skill}",
        Cell(f"{row.score:.2f}", row.score),
        Cell(word, tone=tone, note=note),
        row.session,
    )

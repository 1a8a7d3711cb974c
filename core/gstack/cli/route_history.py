"""``gstack route overlap``, ``suggest`` and ``report``: routing held against past sessions (routing R9)."""

import textwrap
import time
from typing import TYPE_CHECKING, Annotated

import typer

from gstack.cli.common import console, emit, emit_json, plain, run_env, table
from gstack.cli.replay import bar, cutoff
from gstack.errors import RouteUsage

if TYPE_CHECKING:  # the replay brings cryptography, and this module is imported for every command
    from gstack.replay.followed import Followed
    from gstack.replay.overlap import Overlaps
    from gstack.replay.suggest import Suggestion, Suggestions
    from gstack.routing.evaluate import Figures

#: How many lines a list in the text has at most; the JSON has them all.
_LINES = 20

_JSON = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
_SINCE = Annotated[str, typer.Option("--since", metavar="TIME", help="How far back: 12h, 30d, 4w or 2026-11-01.")]
_PATH = Annotated[
    str | None, typer.Option("--path", metavar="PATH", help="Transcripts: a file or folder, not the host's own.")
]
_HOST = Annotated[str, typer.Option("--host", metavar="HOST", help="Whose transcripts.")]


def register(app: typer.Typer) -> None:
    """Add the commands to ``gstack route``."""
    app.command("overlap")(overlap_command)
    app.command("suggest")(suggest_command)
    app.command("report")(report_command)


# ---------------------------------------------------------------------------------------------- overlap


def overlap_command(
    skill: Annotated[str | None, typer.Argument(metavar="[SKILL]", help="Only pairs with this skill.")] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", metavar="N", help="Another cut-off, above 0 and at most 1.")
    ] = None,
    since: _SINCE = "30d",
    history: Annotated[bool, typer.Option("--history/--no-history", help="Look at past prompts, too.")] = True,
    path: _PATH = None,
    host: _HOST = "claude-code",
    as_json: _JSON = False,
) -> None:
    """Skills whose triggers answer the same prompts.

    Example: gstack route overlap review

    Each trigger is taken as a prompt: which other skill would it reach? Then past prompts: how many reach both?
    """
    from gstack.replay.history import open_history
    from gstack.replay.overlap import find_overlaps

    if threshold is not None and not 0 < threshold <= 1:
        raise RouteUsage(f"--threshold {threshold:g} isn't above 0 and at most 1")
    with open_history(run_env(), host=host, since=cutoff(since, time.time()), path=path) as opened:
        only = None if skill is None else _installed(opened.place.index.names, skill)
        with bar("looking at prompts") as progress:
            found = find_overlaps(opened, threshold=threshold, only=only, prompts=history, progress=progress)
    if as_json:
        emit_json(found.as_dict())
        return
    _show_overlaps(found, looked=history)


def _installed(known: dict[str, str], said: str) -> str:
    name = said.strip().removeprefix("/")
    if name not in known:
        raise RouteUsage(f"no installed skill is called {said!r}")
    return name


def _say(text: str) -> None:
    """One paragraph, folded like a list's item."""
    from gstack.routing.explain import printable

    emit(textwrap.fill(printable(text), 80, subsequent_indent="    ", break_on_hyphens=False))


def _show_overlaps(found: "Overlaps", *, looked: bool) -> None:
    if looked:
        emit(f"{found.prompts:,} past prompts at threshold {found.threshold:.2f}")
    if not found.pairs:
        emit("no two skills answer the same words")
        return
    for pair in found.pairs[:_LINES]:
        marks = [f"/{name}{'' if name in found.routed else ' (not routed to)'}" for name in (pair.one, pair.other)]
        emit()
        _say(f"{marks[0]} and {marks[1]}")
        if looked and pair.prompts:
            won = ", ".join(f"/{name} {pair.won[name]:,}" for name in (pair.one, pair.other))
            _say(f"  {pair.prompts:,} past prompts reach both; the better score has {won}")
        for skill, mine, theirs, score in pair.meetings[:5]:
            other = pair.other if skill == pair.one else pair.one
            _say(f'  "{mine}" of /{skill} reaches /{other} with {score:.2f} by "{theirs}"')
        if len(pair.meetings) > 5:
            emit(f"  and {len(pair.meetings) - 5} more triggers")
    if len(found.pairs) > _LINES:
        emit(f"\nand {len(found.pairs) - _LINES} more pairs (--json has them all)")


# ---------------------------------------------------------------------------------------------- suggest


def suggest_command(
    skill: Annotated[str, typer.Argument(help="The skill, with or without the slash.")],
    since: _SINCE = "90d",
    path: _PATH = None,
    host: _HOST = "claude-code",
    show_prompts: Annotated[
        bool, typer.Option("--show-prompts", help="Show triggers that are made of what people typed.")
    ] = False,
    as_json: _JSON = False,
) -> None:
    """Triggers for a skill, from its description and from the prompts that led to it, judged on past sessions.

    Example: gstack route suggest investigate

    Nothing that a person typed is printed without --show-prompts. Nothing is changed: add what you like to triggers
    in the skill's SKILL.md, or in skills.yaml of the state folder.
    """
    from gstack.replay.history import open_history
    from gstack.replay.suggest import suggest

    begin = cutoff(since, time.time())
    with open_history(run_env(), host=host, since=begin, path=path) as opened, bar("looking at prompts") as progress:
        found = suggest(opened, skill, progress=progress)
    if as_json:
        emit_json(found.as_dict(show=show_prompts))
        return
    _show_suggestions(found, show=show_prompts)


def _show_suggestions(found: "Suggestions", *, show: bool) -> None:
    emit(f"/{found.skill.name}: {found.led:,} past prompts led to it, {found.others:,} others did not")
    if not found.led:
        emit("so nothing but its description speaks for a trigger, and only false routes can be counted")
    emit(f"now:       {_figures(found.before)}")
    if not found.found:
        emit("no further trigger would make it better")
        return
    emit(f"with them: {_figures(found.together)}\n")
    out = table("prompts", "false", "precision", "recall", "trigger")
    for one in found.found:
        after = one.after
        out.add_row(str(one.gained), str(one.false), _rate(after.precision), _rate(after.recall), _phrase(one, show))
    console().print(out)
    emit()
    _say(f"add what you like to triggers in {found.skill.path}, or in skills.yaml of the state folder")
    hidden = sum(one.source == "history" for one in found.found)
    if hidden and not show:
        emit(f"{hidden} of them are made of what people typed: --show-prompts shows them")


def _phrase(one: "Suggestion", show: bool) -> str:
    from gstack.routing.explain import printable

    return printable(f'"{one.phrase}"') if show or one.source == "description" else "(from prompts)"


def _figures(found: "Figures") -> str:
    return (
        f"precision {_rate(found.precision)}, recall {_rate(found.recall)} "
        f"({found.right:,} right, {found.wrong:,} wrong, {found.missed:,} missed)"
    )


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


# ----------------------------------------------------------------------------------------------- report


def report_command(
    since: _SINCE = "30d",
    path: _PATH = None,
    host: _HOST = "claude-code",
    as_json: _JSON = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Also write a page with tables and a plot.")
    ] = None,
) -> None:
    """What became of the hints: the model loaded the skill, another, or none. Reads the hook's log.

    Example: gstack route report --since 30d
    """
    from gstack.replay.followed import what_became
    from gstack.replay.followed_page import followed_page
    from gstack.replay.history import open_history
    from gstack.report_page import check_page, write_page

    now = time.time()
    if html is not None:
        check_page(html)
    begin = cutoff(since, now)
    with open_history(run_env(), host=host, since=begin, path=path) as opened, bar("looking at sessions") as progress:
        found = what_became(opened, progress=progress)
    if html is not None:
        write_page(html, followed_page(found, now=now))
    if as_json:
        emit_json(found.as_dict())
        return
    _show_report(found, since)
    if html is not None:
        emit(f"\nwritten: {html}")


def _show_report(found: "Followed", since: str) -> None:
    from gstack.replay.followed import FATES

    if not found.decisions:
        emit(f"no decisions are logged since {since}: the routing hook logs when it is on")
        return
    given, watched = found.total(found.given), found.total(found.observed)
    prompts = "1 prompt" if found.decisions == 1 else f"{found.decisions:,} prompts"
    emit(f"{prompts} since {since}: {given:,} hinted, {watched:,} only observed")
    if found.errors:
        emit(f"{found.errors:,} errors (see gstack doctor)")
    for counts, title in ((found.given, "hints given"), (found.observed, "observed, no hint given")):
        rows = found.by_skill(counts)
        if rows:
            out = table(title, "total", "followed", "another", "none", "can't tell")
            for skill, total, fates in rows:
                out.add_row(f"/{skill}", f"{total:,}", *(f"{fates[fate]:,}" for fate in FATES))
            emit()
            console().print(out)
    if found.shadows:
        out = table("shadow scorer", "prompts", "routes", "same", "only it", "then loaded", "errors")
        for name, one in sorted(found.shadows.items()):
            counts_ = (one.prompts, one.routes, one.same, one.only, one.loaded, one.errors)
            out.add_row(name, *(f"{count:,}" for count in counts_))
        emit()
        console().print(out)
    reasons = ", ".join(f"{word} {count:,}" for word, count in found.reasons.most_common())
    if reasons:
        console().print(plain(f"\nnot hinted: {reasons}"))

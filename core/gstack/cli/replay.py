"""``gstack replay``: what the hooks would have done on the sessions that already lie on this machine."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from gstack.cli.common import console, emit, emit_json, err_console, plain, run_env, table, warn
from gstack.errors import UsageError

if TYPE_CHECKING:  # the replay brings cryptography, and this module is imported for every command
    from gstack.replay.report import Report

#: How many lines a list in the text report has at most; the page and the JSON have them all.
_LINES = 12

Progress = Callable[[int, int], None]


def register(app: typer.Typer) -> None:
    """Add the command to the root."""
    app.command("replay")(replay_command)


def replay_command(
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="PATH", help="A transcript, or a folder of them (*.jsonl, all the way down)."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="How far back: 12h, 30d, 4w or 2026-11-01.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option("--project", metavar="P", help="Only sessions started in this folder, or in one of this name."),
    ] = None,
    gate_bundle: Annotated[
        str | None,
        typer.Option("--gate-bundle", metavar="FILE", help="Also say what this bundle or payload would change."),
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Whose transcripts.")] = "claude-code",
    show_prompts: Annotated[
        bool, typer.Option("--show-prompts", help="Show how each routed prompt begins (keeps no checkpoint).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")] = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Also write a page with tables and plots.")
    ] = None,
) -> None:
    """What routing, contracts and the gate would have done with past sessions. Changes nothing.

    Example: gstack replay --since 30d --html replay.html

    Without --path it reads the host's own transcripts. What is installed and in force now decides. After Ctrl-C the
    same command goes on where it was.
    """
    from gstack.replay.page import replay_page
    from gstack.replay.run import Options, replay
    from gstack.report_page import check_page, write_page

    now = time.time()
    options = Options(host, path, cutoff(since, now), since or "", project, gate_bundle, show_prompts)
    if path == "":
        raise UsageError("--path needs the name of a file or folder")
    if html is not None:
        check_page(html)
    try:
        with bar("replaying") as progress:
            report = replay(run_env(), options, progress=progress, tell=warn)
    except KeyboardInterrupt:
        warn("interrupted" + ("" if show_prompts else ": the same command goes on where it was"))
        raise typer.Exit(130) from None
    if html is not None:
        write_page(html, replay_page(report, now=now))
    if as_json:
        emit_json(report.as_dict())
        return
    show(report, prompts=show_prompts)
    if html is not None:
        emit(f"\nwritten: {html}")


def cutoff(since: str | None, now: float) -> float | None:
    """When ``--since`` begins, in seconds since the epoch. Raises UsageError."""
    from gstack.replay.spans import since as parse

    return None if since is None else parse(since, now)


@contextmanager
def bar(what: str) -> Iterator[Progress | None]:
    """A progress bar by bytes on standard error; None where that is no terminal."""
    shown = err_console()
    if not shown.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=shown, transient=True) as drawn:
        task = drawn.add_task(what, total=None)
        yield lambda done, total: drawn.update(task, completed=done, total=max(total, 1))


def show(report: "Report", *, prompts: bool = False) -> None:
    """The report as text of at most 80 columns."""
    _show_files(report)
    emit()
    _show_prompts(report, prompts)
    emit()
    _show_runs(report)
    emit()
    _show_uses(report)


def _show_files(report: "Report") -> None:
    from gstack.report_page import day

    files = report.files
    span = f", {day(files.first)} to {day(files.last)}" if files.first is not None and files.last is not None else ""
    if not files.total:
        emit("there are no transcripts here: --path takes a file or folder")
        return
    emit(f"{files.states['ok']:,} transcripts replayed ({files.size / 1048576:.1f} MiB{span})")
    others = [f"{count:,} {state}" for state, count in sorted(files.states.items()) if state != "ok"]
    if others:
        emit(f"left out: {', '.join(others)}")
    for path, problem in files.faults[:_LINES]:
        emit(f"  {path}: {problem}")
    for note in report.facts["notes"]:
        emit(f"note: {note}")


def _show_prompts(report: "Report", prompts: bool) -> None:
    from gstack.replay.words import DID

    emit(f"PROMPTS  {report.typed:,} typed, {report.routed:,} would have been routed")
    rows = report.by_route()
    if rows:
        out = table("skill", "routed", "loaded it", "another", "none")
        for skill, total, followed, other, none in rows:
            out.add_row(f"/{skill}", *(f"{count:,}" for count in (total, followed, other, none)))
        console().print(out)
        done = [f"{report.did_total(did):,} {word}" for did, (word, _) in DID.items()]
        emit(f"what the model did by itself: {', '.join(done)}")
    reasons = [f"{word} {count:,}" for word, count in report.reasons.most_common() if word != "routed"]
    if reasons:
        console().print(plain(f"not routed: {', '.join(reasons)}"))
    for row in report.routes.rows[:_LINES] if prompts else ():
        console().print(plain(f'  /{row.skill} {row.score:.2f}: "{row.text}"'))


def _show_runs(report: "Report") -> None:
    from gstack.replay.words import outcomes_text

    emit(f"RUNS  {report.run_total:,} of a skill with a contract, {report.held_total:,} would have been held")
    rows = report.by_contract()
    if not rows:
        return
    out = table("skill", "runs", "held", "outcomes")
    for skill, total, held, outcomes in rows:
        out.add_row(skill, f"{total:,}", f"{held:,}", outcomes_text(outcomes))
    console().print(out)
    items = report.by_item()
    if items:
        out = table("skill", "missing item", "runs held for it")
        for skill, item, count in items[:_LINES]:
            out.add_row(skill, item, f"{count:,}")
        emit()
        console().print(out)


def _show_uses(report: "Report") -> None:
    facts = report.facts
    warned, blocked = report.use_total("warn"), report.use_total("block")
    emit(f"USES  {report.use_total():,} of skills, subagents and typed commands")
    emit(f"{warned:,} would have been warned, {blocked:,} would have been blocked")
    if facts["bundle"] is None:
        emit("no policy bundle is in force here")
    rows = report.by_policy()
    if rows:
        out = table("policy", "answer", "kind", "name", "uses")
        for policy, action, kind, name, count in rows[:_LINES]:
            out.add_row(policy, action, kind, name, f"{count:,}")
        console().print(out)
    if facts["other"] is None:
        return
    other = facts["other"]
    emit(f"\nwith the other bundle ({other['org']} {other['version']}): {report.changed:,} would be decided otherwise")
    changes = report.by_change()
    if changes:
        out = table("name", "kind", "now", "then", "policy", "uses")
        for name, kind, before, after, policy, count, _ in changes[:_LINES]:
            out.add_row(name, kind, before, after, policy, f"{count:,}")
        console().print(out)

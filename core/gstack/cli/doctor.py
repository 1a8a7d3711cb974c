"""``gstack doctor``."""

from collections import Counter
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from gstack.api import Finding
from gstack.cli.common import console, emit, emit_json, here, root_of, run_env
from gstack.doctor import Checkup, diagnose
from gstack.setup import find_host
from gstack.terminal import visible

_MARKS = {"ok": "[green]ok[/]", "info": "[dim]info[/]", "warn": "[yellow]warn[/]", "fail": "[red]fail[/]"}


def register(app: typer.Typer) -> None:
    """Add the command to the root app."""
    app.command()(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")] = False,
    project: Annotated[bool, typer.Option("--project", help="Look at the project's settings file (here).")] = False,
    host: Annotated[str, typer.Option("--host", help="The host to look at.")] = "claude-code",
    live: Annotated[
        bool,
        typer.Option("--live", help="Also run every registered hook as the host would."),
    ] = False,
) -> None:
    """Check that everything is in place and would work; exit 1 when something is wrong. Changes nothing.

    Example: gstack doctor --live
    """
    root, env = root_of(), run_env()
    cwd = here()
    checkup = Checkup(root, env, find_host(root, env, host), cwd if project else None, cwd)
    findings = diagnose(checkup)
    report = None
    if live:
        from gstack.doctor_live import try_live

        report = try_live(checkup)
        findings += report.findings
    if as_json:
        emit_json({**_as_json(checkup, findings), **({"live": report.as_dict()} if report else {})})
    else:
        _print(findings)
    if any(finding.status == "fail" for finding in findings):
        raise typer.Exit(1)


def _as_json(checkup: Checkup, findings: list[Finding]) -> dict[str, object]:
    return {
        "state_root": checkup.root,
        "host": checkup.host.id,
        "switches": {name: {"value": s.value, "source": s.source} for name, s in checkup.switches.items()},
        "findings": [
            {"status": f.status, "check": f.check, "detail": f.detail, "fix": f.fix or None} for f in findings
        ],
        "ok": not any(finding.status == "fail" for finding in findings),
    }


def _print(findings: list[Finding]) -> None:
    out = Table(box=None, pad_edge=False, show_header=False)
    out.add_column(no_wrap=True)
    out.add_column(no_wrap=False, overflow="fold", min_width=10, max_width=24)
    out.add_column(overflow="fold")
    for finding in findings:
        detail = visible(finding.detail)
        if finding.fix and finding.status in ("warn", "fail"):
            detail += f"\n-> {visible(finding.fix)}"
        out.add_row(_MARKS[finding.status], escape(visible(finding.check)), escape(detail))
    console().print(out)
    counts = Counter(finding.status for finding in findings)
    emit(f"{counts['fail']} wrong, {counts['warn']} to look at")

"""``gstack demo``."""

from itertools import chain
from typing import Annotated

import typer

from gstack.cli.common import console, emit_json, err_console, plain


def register(app: typer.Typer) -> None:
    """Add the command to the root app."""
    app.command()(demo)


def demo(as_json: Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")] = False) -> None:
    """Show what the hooks would do, in a temporary folder; touches nothing of yours.

    Example: gstack demo
    """
    from gstack.demo import python_line, run_demo

    if as_json:
        emit_json([step.as_dict() for step in run_demo()])
        return
    out = console()
    out.print(
        plain(f"Each step starts the real hook process, in a temporary home ({python_line()}).\n"), soft_wrap=True
    )
    feature = ""
    steps = run_demo()
    with err_console().status("preparing a temporary home"):
        first = next(steps)
    for step in chain([first], steps):
        if step.feature != feature:
            feature = step.feature
            out.print(f"[bold]{_TITLES[feature]}[/]\n")
        ran = plain(f"  {step.action}  ")
        ran.stylize("cyan")
        took = plain(f"({step.why}; {step.seconds * 1000:.0f} ms)")
        took.stylize("dim")
        out.print(ran + took)
        out.print(plain(f"    -> {step.outcome}\n"))
    out.print("Switch it on for real: gstack setup --skill-routing")
    out.print("Try it first:          gstack setup --skill-routing=observe")


_TITLES = {
    "routing": "Routing: the hook names the skill that fits a prompt",
    "contracts": "Contracts: the hook holds a stop once when a skill's outputs are missing",
}

"""What every command group shares: consoles, JSON output, the environment."""

import json
import os
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from gstack.state import state_root


def run_env() -> dict[str, str]:
    """A copy of this process's environment."""
    return dict(os.environ)


def root_of(env: dict[str, str] | None = None) -> str:
    """The state folder of this run."""
    return state_root(run_env() if env is None else env)


def _plain_asked() -> bool:
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def console(*, stderr: bool = False, no_color: bool = False) -> Console:
    """A rich console on standard output (or error): colour only on a real terminal, off with ``NO_COLOR``,
    ``TERM=dumb``."""
    plain = no_color or _plain_asked()
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else int(os.environ.get("COLUMNS") or 80)
    return Console(
        file=stream,
        no_color=plain,
        color_system=None if plain else "auto",
        highlight=False,
        soft_wrap=False,
        width=width,
        force_terminal=None,
    )


def err_console() -> Console:
    """A rich console on standard error."""
    return console(stderr=True)


def emit(text: str = "") -> None:
    """One line of plain text on standard output, as it is."""
    sys.stdout.write(text + "\n")


def warn(text: str) -> None:
    """One line on standard error."""
    sys.stderr.write(text + "\n")


def emit_json(value: Any) -> None:
    """``value`` as indented JSON on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def table(*columns: str) -> Table:
    """A table without rules, whose first column keeps its width and whose last one wraps; fits 80 columns."""
    made = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    for place, column in enumerate(columns):
        made.add_column(column, no_wrap=place == 0, overflow="fold")
    return made

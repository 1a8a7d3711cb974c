"""What every command group shares: the form of a group, consoles, JSON output, the environment."""

import json
import os
import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from gstack.errors import StateError
from gstack.state import state_root
from gstack.terminal import tame, tame_json

#: Columns of what isn't a terminal, where ``COLUMNS`` says nothing else.
_WIDTH = 80


class Group(TyperGroup):
    """A command group. Without arguments it prints its help on standard output and is wrong usage: exit 2."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual, but no arguments at all are an error of our own, the same with every version of typer."""
        if not args and not ctx.resilient_parsing:
            emit(ctx.get_help())
            ctx.fail("a command is missing")
        return super().parse_args(ctx, args)


def run_env() -> dict[str, str]:
    """A copy of this process's environment."""
    return dict(os.environ)


def root_of(env: dict[str, str] | None = None) -> str:
    """The state folder of this run."""
    return state_root(run_env() if env is None else env)


def here() -> str:
    """The working folder. Raises StateError when somebody deleted it."""
    try:
        return os.getcwd()
    except OSError as error:
        raise StateError("the working folder is gone: cd to another one") from error


def _plain_asked() -> bool:
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def console(*, stderr: bool = False, no_color: bool = False) -> Console:
    """A rich console on standard output (or error): colour only on a real terminal, off with ``NO_COLOR``,
    ``TERM=dumb``."""
    plain = no_color or _plain_asked()
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _width(os.environ.get("COLUMNS", ""))
    return Console(
        file=stream,
        no_color=plain,
        color_system=None if plain else "auto",
        highlight=False,
        soft_wrap=False,
        width=width,
        force_terminal=None,
    )


def _width(said: str) -> int:
    return int(said) if said.isdecimal() and int(said) else _WIDTH


def err_console() -> Console:
    """A rich console on standard error."""
    return console(stderr=True)


def emit(text: str = "") -> None:
    """One line of plain text on standard output; what would steer a terminal is escaped."""
    sys.stdout.write(tame(text) + "\n")


def warn(text: str) -> None:
    """One line on standard error; what would steer a terminal is escaped."""
    sys.stderr.write(tame(text) + "\n")


def emit_json(value: Any) -> None:
    """``value`` as indented JSON on standard output."""
    sys.stdout.write(tame_json(json.dumps(value, indent=2, ensure_ascii=False, default=str)) + "\n")


def plain(text: str) -> Text:
    """``text`` for a rich console: no markup in it counts, and what would steer a terminal is escaped."""
    return Text(tame(text))


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 skill``, ``2 skills``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Rows(Table):
    """A table whose cells are plain texts."""

    def add_row(self, *cells: Any, **more: Any) -> None:
        """One row; a cell that is a text is shown as :func:`plain` says."""
        super().add_row(*[plain(cell) if isinstance(cell, str) else cell for cell in cells], **more)


def table(*columns: str) -> Rows:
    """A table without rules, whose first column keeps its width and whose last one wraps; fits 80 columns."""
    made = Rows(box=None, pad_edge=False, show_header=True, header_style="bold")
    for place, column in enumerate(columns):
        made.add_column(column, no_wrap=place == 0, overflow="fold")
    return made

"""Writes what the reference pages take from the code: the commands, and the keys of the configuration.

``python docs/generate.py`` writes; ``--check`` writes nothing and ends with 1 when a page is stale. What stands between
the marker lines of a page is replaced; everything else there is written by hand.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer.main

from gstack.cli import build_app
from gstack.config import KEYS

DOCS = Path(__file__).resolve().parent
REFERENCE = DOCS / "reference"
EXIT_CODES = REFERENCE / "exit-codes.md"


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` name those that are stale (exit code 1)."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python docs/generate.py [--check]\n")
        return 2
    stale = []
    for page, (name, render) in PAGES.items():
        before = page.read_text(encoding="utf-8")
        after = replaced(before, name, render())
        if before != after:
            stale.append(page)
            if not arguments:
                page.write_text(after, encoding="utf-8", newline="\n")
    for page in stale:
        sys.stdout.write(f"{page.relative_to(DOCS.parent)} {'is stale' if arguments else 'written'}\n")
    if arguments and stale:
        sys.stdout.write("run: python docs/generate.py\n")
        return 1
    return 0


def replaced(text: str, name: str, content: str) -> str:
    """``text`` with ``content`` between its marker lines. Raises ValueError when it hasn't got them."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"the marker lines of {name} are missing")
    return f"{head}{begin}\n{content.strip()}\n\n{end}{tail}"


# ------------------------------------------------------------------------------------------ configuration

_TYPES = {"switch": "on, off, observe", "list": "names, with commas", "number": "number", "text": "text"}


def keys() -> str:
    """The table of keys."""
    rows = ["| key | value | default | environment | what it does |", "|---|---|---|---|---|"]
    for key, (kind, default, variable, text) in KEYS.items():
        words = kind[len("choice:") :].replace("|", ", ") if kind.startswith("choice:") else _TYPES[kind]
        shown = f"`{default}`" if default else "(empty)"
        rows.append(f"| `{key}` | {words} | {shown} | {f'`{variable}`' if variable else ''} | {cell(text)} |")
    return "\n".join(rows)


# ----------------------------------------------------------------------------------------------- commands


def commands() -> str:
    """Every command: an overview, then usage, help, example, arguments, options and exit codes of each."""
    found = list(walk(typer.main.get_command(build_app()), ()))
    parts = [overview(found)]
    parts += [section(path, command) for path, command in found if path]
    return "\n\n".join(parts)


def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands in alphabetical order, a group before what it holds."""
    yield path, command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        if not below.hidden:
            yield from walk(below, (*path, name))


def overview(found: list[tuple[tuple[str, ...], Any]]) -> str:
    """One line a command."""
    rows = ["| command | what it does |", "|---|---|"]
    for path, command in found:
        if path and acts(command):
            name = " ".join(("gstack", *path))
            first = said(command)[0].split("\n\n")[0]
            rows.append(f"| [`{name}`](#{'-'.join(('gstack', *path))}) | {cell(first)} |")
    return "\n".join(rows)


def acts(command: Any) -> bool:
    """Whether it does something by itself: a command, or a group that needs none."""
    return not hasattr(command, "commands") or bool(command.invoke_without_command)


def section(path: tuple[str, ...], command: Any) -> str:
    """Everything about one command."""
    name = " ".join(("gstack", *path))
    words, examples = said(command)
    parts = [f"## {name}", f"`{usage(name, command)}`", words, *(f"```sh\n{one}\n```" for one in examples)]
    rows = [row(one) for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    if rows:
        parts.append("\n".join(["| argument or option | what it is |", "|---|---|", *rows]))
    if hasattr(command, "commands"):
        below = [f"[`{one}`](#{'-'.join(('gstack', *path, one))})" for one in sorted(command.commands)]
        parts.append(f"Commands: {', '.join(below)}")
    if acts(command):
        parts.append(f"Exit: {exit_codes(path)}")
    return "\n\n".join(part for part in parts if part)


def said(command: Any) -> tuple[str, list[str]]:
    """The help of a command as (paragraphs, examples)."""
    words, examples = [], []
    for paragraph in (command.help or "").split("\n\n"):
        text, *shown = " ".join(paragraph.split()).split("Example: ")
        examples += shown
        if text.strip():
            words.append(text.strip())
    return "\n\n".join(words), examples


def usage(name: str, command: Any) -> str:
    """The usage line: flags and options in brackets unless they are needed, then the arguments."""
    parts = []
    for one in command.params:
        if one.name == "help" or getattr(one, "hidden", False):
            continue
        if one.param_type_name == "argument":
            word = label(one) + ("..." if one.nargs == -1 else "")
        else:
            word = spelled(one, one.opts[0])
        parts.append((one.param_type_name == "argument", word if one.required else f"[{word}]"))
    options = [word for is_argument, word in parts if not is_argument]
    arguments = [word for is_argument, word in parts if is_argument]
    if hasattr(command, "commands"):
        arguments.append("COMMAND")
    return " ".join([name, *options, *arguments])


def label(one: Any) -> str:
    """What an argument is called."""
    return str(one.metavar or one.name.upper())


def spelled(one: Any, opt: str) -> str:
    """An option with its value."""
    return opt if one.is_flag else f"{opt} {one.metavar or 'VALUE'}"


def row(one: Any) -> str:
    """One argument or option as a row."""
    if one.param_type_name == "argument":
        names = f"`{label(one)}`"
    else:
        names = ", ".join(f"`{spelled(one, opt)}`" for opt in one.opts)
    text = one.help or ""
    if isinstance(one.default, (str, int, float)) and not isinstance(one.default, bool) and one.default != "":
        text += f" Default: `{one.default}`."
    return f"| {names} | {cell(text)} |"


def exit_codes(path: tuple[str, ...]) -> str:
    """The row of exit-codes.md that holds for a command: its own, or else its group's. Raises ValueError for none."""
    table = codes()
    found = table.get(" ".join(path)) or table.get(path[0])
    if found is None:
        raise ValueError(f"{EXIT_CODES.name} has no row for {' '.join(path)}")
    return " · ".join(text if code == "others" else f"{code}: {text}" for code, text in found if text)


def codes() -> dict[str, list[tuple[str, str]]]:
    """The table by command in exit-codes.md: command to (exit code, meaning)."""
    lines = EXIT_CODES.read_text(encoding="utf-8").split("## By command\n", 1)[1].split("\n## ", 1)[0].splitlines()
    rows = [[part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("| ")]
    heads = rows[0][1:]
    return {
        name.strip(" `"): list(zip(heads, cells, strict=True))
        for names, *cells in rows[1:]
        for name in names.split(",")
    }


def cell(text: str) -> str:
    """``text`` so that it stays within one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


PAGES: dict[Path, tuple[str, Callable[[], str]]] = {
    REFERENCE / "commands.md": ("commands", commands),
    REFERENCE / "configuration.md": ("keys", keys),
}

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

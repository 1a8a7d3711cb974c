"""``gstack plugins``: what is installed, what is wrong with it, switching one off."""

from typing import Annotated

import typer
from rich.markup import escape

from gstack.cli.common import console, emit, emit_json, root_of, run_env, table
from gstack.entrypoints import current_paths, find
from gstack.errors import CheckFailed, StateError
from gstack.isolation import change_trouble
from gstack.plugins import Status, survey

app = typer.Typer(
    help="List, check and switch plug-ins. Example: gstack plugins list", no_args_is_help=True, rich_markup_mode="rich"
)

_JSON = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]


def complete_id(incomplete: str) -> list[str]:
    """Shell completion: the ids of what is installed; nothing is imported."""
    return sorted({found.id for found in find(current_paths()) if found.id.startswith(incomplete)})


_NAME = Annotated[str, typer.Argument(help="A plug-in's id, as `list` shows it.", autocompletion=complete_id)]


@app.command("list")
def list_(as_json: _JSON = False) -> None:
    """Every installed plug-in with its state. Works also when every one of them is broken."""
    statuses = survey(root_of(), run_env())
    if as_json:
        emit_json([status.as_dict() for status in statuses])
        return
    out = table("plug-in", "sort", "from", "state")
    for status in statuses:
        found = status.found
        out.add_row(
            escape(found.id),
            found.group.removeprefix("gstack.").removesuffix("s").replace("_", " "),
            escape(f"{found.dist} {found.version}"),
            escape(_state(status)),
        )
    console().print(out)


def _state(status: Status) -> str:
    parts = [status.state + (f": {status.why}" if status.why else "")]
    if status.trouble:
        parts.append(f"last trouble: {status.trouble}")
    return "; ".join(parts)


@app.command()
def disable(name: _NAME) -> None:
    """Switch a plug-in off. Example: gstack plugins disable vendor.file_exists"""
    root = root_of()
    _known(name)

    def change(data: dict[str, list[str]]) -> None:
        data["disabled"] = sorted({*data["disabled"], name})

    _change(root, change)
    emit(f"{name} is switched off")


@app.command()
def enable(name: _NAME) -> None:
    """Switch a plug-in on again; its strikes are forgotten. Example: gstack plugins enable vendor.file_exists"""
    root = root_of()

    def change(data: dict[str, dict[str, object] | list[str]]) -> None:
        data["disabled"] = [one for one in data["disabled"] if one != name]
        trouble = data["trouble"]
        if isinstance(trouble, dict):
            trouble.pop(name, None)

    _change(root, change)
    emit(f"{name} is switched on")


def _known(name: str) -> None:
    ids = sorted({found.id for found in find(current_paths())})
    if name not in ids:
        raise CheckFailed(f"no installed plug-in is called {name!r}", hint="installed: " + ", ".join(ids))


def _change(root: str, change: object) -> None:
    try:
        change_trouble(root, change)  # type: ignore[arg-type]
    except OSError as error:
        raise StateError(f"{root}/plugins.json can't be written: {error.strerror}") from error

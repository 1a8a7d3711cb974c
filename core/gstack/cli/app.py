"""The root typer app: every command group is named here once."""

import importlib
from typing import Annotated

import typer

from gstack import __version__
from gstack.cli.common import Group, emit

app = typer.Typer(
    name="gstack",
    cls=Group,
    help=(
        "Make coding agents use their skills: routing, contracts and a policy gate.\n\n"
        "Start with: gstack demo, then gstack setup --skill-routing"
    ),
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: Groups with sub-commands: name and module.
GROUPS = {
    "config": "gstack.cli.config",
    "route": "gstack.cli.route",
    "contract": "gstack.cli.contract",
    "gate": "gstack.cli.gate",
    "bundle": "gstack.cli.bundle",
    "plugins": "gstack.cli.plugins",
}

#: Modules that add single commands to the root.
SINGLE = ("gstack.cli.setup", "gstack.cli.doctor", "gstack.cli.demo", "gstack.cli.connect", "gstack.cli.replay")


def _version(shown: bool) -> None:
    if shown:
        emit(f"gstack {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Only carries the options that every command has."""


for _name, _module in GROUPS.items():
    app.add_typer(importlib.import_module(_module).app, name=_name)
for _module in SINGLE:
    importlib.import_module(_module).register(app)


@app.command()
def hook(
    host: Annotated[str, typer.Argument(help="The host whose payload it is.")],
    event: Annotated[str, typer.Argument(help="The event, as the host calls it.")] = "",
) -> None:
    """What hosts run: a payload on standard input, the answer on standard output; always exit 0.

    For trying a payload by hand. Example: gstack hook claude-code Stop < payload.json
    """
    from gstack.cli.common import run_env
    from gstack.hook import run_from_cli

    run_from_cli([host, event], run_env())

"""``gstack config``: read and change the settings."""

from typing import Annotated

import typer

from gstack.cli.common import Group, console, emit, emit_json, root_of, run_env, table
from gstack.config import KEYS, SWITCHES, Config, setting, switch
from gstack.config_edit import canonical, known_key, readable, set_key, unset_key
from gstack.gate.lock import leave_gate

app = typer.Typer(
    cls=Group,
    help="Read and change the settings. Example: gstack config set skill_routing observe",
    rich_markup_mode="rich",
)


def complete_key(incomplete: str) -> list[tuple[str, str]]:
    """Shell completion: the keys of the table with their help."""
    return [(key, row[3]) for key, row in KEYS.items() if key.startswith(incomplete)]


_KEY = Annotated[str, typer.Argument(help="A key of `gstack config list`.", autocompletion=complete_key)]
_JSON = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
_FORCE = Annotated[
    bool, typer.Option("--force", help="Switch the gate off although the organisation's policy locks it.")
]


def effective(key: str, config: Config) -> tuple[str, str]:
    """The value of ``key`` that is in force and where it came from: env, config, default or config unreadable."""
    env = run_env()
    if key in SWITCHES:
        found = switch(key, env, config)
        return found.value, found.source
    value = setting(key, env, config)
    variable = KEYS[key][2]
    if variable and env.get(variable, "").strip() == value:
        return value, "env"
    return value, "config" if config.has(key) and config.get(key).strip() == value else "default"


@app.command()
def get(key: _KEY) -> None:
    """Print the value in force. Example: gstack config get routed_skills"""
    value, _ = effective(known_key(key), readable(root_of()))
    emit(value)


@app.command("set")
def set_(
    key: _KEY,
    value: Annotated[str, typer.Argument(help="The new value, one line.")],
    force: _FORCE = False,
) -> None:
    """Store a value; hooks see it at their next run. Example: gstack config set gate on"""
    root = root_of()
    if known_key(key) == "gate":
        leave_gate(root, canonical(key, value), run_env(), force=force)
    set_key(root, key, value)


@app.command()
def has(key: _KEY) -> None:
    """Exit 0 when the file itself sets KEY, 1 when not, 3 when it can't be read."""
    if not readable(root_of()).has(known_key(key)):
        raise typer.Exit(1)


@app.command()
def unset(key: _KEY, force: _FORCE = False) -> None:
    """Go back to the default. Example: gstack config unset route_threshold"""
    root = root_of()
    if known_key(key) == "gate":
        leave_gate(root, KEYS[key][1], run_env(), force=force)
    if not unset_key(root, key):
        emit(f"{key} wasn't set")


@app.command("list")
def list_(as_json: _JSON = False) -> None:
    """Every key with the value in force and where it came from."""
    config = readable(root_of())
    rows = [(key, *effective(key, config)) for key in KEYS]
    if as_json:
        emit_json([{"key": key, "value": value, "source": source} for key, value, source in rows])
        return
    out = table("key", "value", "from")
    for key, value, source in rows:
        out.add_row(key, value, source)
    console().print(out)


@app.command()
def defaults(as_json: _JSON = False) -> None:
    """Every key with its default and what it is for."""
    if as_json:
        emit_json(
            [
                {"key": key, "type": kind, "default": value, "env": variable or None, "help": text}
                for key, (kind, value, variable, text) in KEYS.items()
            ]
        )
        return
    out = table("key", "default", "what it is for")
    for key, (_, value, _, text) in KEYS.items():
        out.add_row(key, value, text)
    console().print(out)


@app.command()
def path() -> None:
    """Print the state folder, in which config.yaml, skills.yaml and the logs lie.

    Example: gstack config path
    """
    emit(root_of())

"""``gstack plugins``: what is installed, what is wrong with it, switching one off; making, checking, installing one."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gstack.cli.common import Group, console, emit, emit_json, root_of, run_env, table
from gstack.entrypoints import current_paths, find
from gstack.errors import CheckFailed, StateError
from gstack.failures import change_trouble
from gstack.plan import read_trouble
from gstack.plugins import Status, survey
from gstack.snapshot import plan_path

if TYPE_CHECKING:
    from gstack.testing.runner import CheckResult

app = typer.Typer(
    cls=Group, help="List, check and switch plug-ins. Example: gstack plugins list", rich_markup_mode="rich"
)

_SORTS = ("kind", "scorer", "resolver", "host")
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
            found.id,
            found.group.removeprefix("gstack.").removesuffix("s").replace("_", " "),
            f"{found.dist} {found.version}",
            _state(status),
        )
    console().print(out)


def _state(status: Status) -> str:
    parts = [status.state + (f": {status.why}" if status.why else "")]
    if status.trouble:
        parts.append(f"last trouble: {status.trouble}")
    return "; ".join(parts)


@app.command()
def disable(
    name: _NAME,
    force: Annotated[bool, typer.Option("--force", help="Also where it ends a locked gate; that is audited.")] = False,
) -> None:
    """Switch a plug-in off. Example: gstack plugins disable vendor.file_exists"""
    from gstack.gate.human import BUNDLE_RESOLVER
    from gstack.gate.lock import leave_gate

    root = root_of()
    _known(name)
    if name == BUNDLE_RESOLVER and name not in read_trouble(root)["disabled"]:
        leave_gate(root, "off", run_env(), force=force, how="plugins disable")

    def change(data: dict[str, list[str]]) -> None:
        data["disabled"] = sorted({*data["disabled"], name})

    _change(root, change)
    emit(f"{name} is switched off")


@app.command()
def enable(name: _NAME) -> None:
    """Switch a plug-in on again; its strikes are forgotten. Example: gstack plugins enable vendor.file_exists"""
    root = root_of()
    known = read_trouble(root)
    if name not in (*known["disabled"], *known["trouble"]):
        _known(name)
        _forget_plan(root)
        emit(f"{name} wasn't switched off")
        return

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
    _forget_plan(root)


def _forget_plan(root: str) -> None:
    """The next hook looks at the plug-ins anew."""
    try:
        os.unlink(plan_path(root))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StateError(f"{plan_path(root)} can't be deleted: {error.strerror}") from error


@app.command()
def new(
    sort: Annotated[str, typer.Argument(help="kind, scorer, resolver or host.", autocompletion=lambda: list(_SORTS))],
    name: Annotated[str, typer.Argument(help="The plug-in's id: vendor.name, such as acme.word_count.")],
) -> None:
    """Write a distribution for a plug-in of your own into a new folder here; its tests pass at once.

    Example: gstack plugins new kind acme.word_count
    """
    from gstack.scaffold import create

    project, written = create(sort, name)
    for path in written:
        emit(path)
    emit()
    emit(f"cd {project.dist}")
    emit("python -m pytest                 # with pytest and gstack in this environment")
    emit("gstack plugins install -e .")
    emit(f"gstack plugins check {project.name}")


@app.command()
def check(
    name: Annotated[
        str, typer.Argument(help="A plug-in's id or a distribution; nothing: all.", autocompletion=complete_id)
    ] = "",
    as_json: _JSON = False,
) -> None:
    """Run the conformance kit on installed plug-ins; exit 1 when one fails.

    Example: gstack plugins check acme.word_count
    """
    from gstack.testing.runner import CheckResult, check_plugin

    statuses = [one for one in survey(root_of(), run_env()) if name in ("", one.found.id, one.found.dist)]
    if not statuses:
        _known(name)
    results: list[tuple[Status, list[CheckResult]]] = []
    for status in statuses:
        if status.state == "ok":
            done = list(check_plugin(status))
            if not status.in_hook:
                done.append(CheckResult("the hook can load it", status.why))
        else:
            done = [CheckResult("it loads", _state(status))]
        results.append((status, done))
        if not as_json:
            _print_checked(status, done)
    if as_json:
        emit_json(
            [
                {"id": status.found.id, "group": status.found.group, "checks": [one.as_dict() for one in done]}
                for status, done in results
            ]
        )
    bad = [status.found.id for status, done in results if any(one.problem for one in done)]
    if bad:
        raise CheckFailed(f"{len(bad)} of {len(results)} plug-ins don't pass: {', '.join(bad)}")


def _print_checked(status: Status, done: "Sequence[CheckResult]") -> None:
    problems = [one for one in done if one.problem]
    emit(
        f"{status.found.id}: "
        + (f"{len(problems)} of {len(done)} checks fail" if problems else f"ok, {len(done)} checks")
    )
    for one in problems:
        emit(f"  {one.name}: {one.problem}")


@app.command()
def install(
    requirements: Annotated[list[str], typer.Argument(help="What pip installs: a name, a file, a folder.")],
    editable: Annotated[
        bool, typer.Option("--editable", "-e", help="A folder that you work in, used in place.")
    ] = False,
) -> None:
    """Install plug-ins into gstack's own environment with pip, or say which command does.

    Example: gstack plugins install vendor-file-exists
    """
    from gstack import installer

    root, env = root_of(), run_env()
    found = installer.install(requirements, editable=editable)
    installer.refresh(root, env)
    if not found:
        emit("installed; no plug-in of gstack came with it that wasn't there before")
        return
    statuses = installer.states_of(root, env, found)
    for status in statuses:
        emit(f"{status.found.id} ({status.found.dist} {status.found.version}): {_state(status)}")
    bad = [status.found.id for status in statuses if status.state != "ok"]
    if bad:
        raise CheckFailed(f"installed, but not usable: {', '.join(bad)}", hint="gstack plugins list says why")


@app.command()
def uninstall(
    name: Annotated[str, typer.Argument(help="A plug-in's id, or its distribution.", autocompletion=complete_id)],
) -> None:
    """Take the distribution of a plug-in out of gstack's environment with pip, or say which command does.

    Example: gstack plugins uninstall vendor.file_exists
    """
    from gstack import installer

    dist = installer.uninstall(name)
    installer.refresh(root_of(), run_env())
    emit(f"{dist} is uninstalled")

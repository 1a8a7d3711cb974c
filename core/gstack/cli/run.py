"""Running the command line: every known error becomes one line ``<code word>: <message>`` on standard error and its
exit code; ``--debug`` adds the traceback.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from gstack import cli
from gstack.errors import ContractState, ContractUsage, GstackError, RouteUsage, StateError, UsageError
from gstack.terminal import tame

#: Flags of setup that may stand without a value.
_BARE_FLAGS = ("--skill-routing", "--skill-contracts", "--gate")

#: Groups in which a common error has a code word, or an exit code, of its own, whoever raises it.
_GROUPS: dict[str, dict[str, type[GstackError]]] = {
    "route": {UsageError.code: RouteUsage},
    "contract": {UsageError.code: ContractUsage, StateError.code: ContractState},
    "gate": {UsageError.code: StateError},
}

#: The modules that write to standard output; an error of the system that is raised there is about that.
_WRITERS = ("gstack.cli.run", "gstack.cli.common", "rich.console")


def run(arguments: Sequence[str] | None, name: str) -> int:
    """What :func:`gstack.cli.main` does, once everything is imported."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    if args[:1] == ["hook"] and args[1:2] not in (["-h"], ["--help"]):
        from gstack.hook import run_from_cli

        run_from_cli(args[1:], dict(os.environ))
    debug = "--debug" in args
    if debug:
        args.remove("--debug")
    _utf8_streams()
    try:
        code = _run(args, name)
        sys.stdout.flush()
        return code
    except GstackError as error:
        return _report(_in_group(error, args), debug)
    except KeyboardInterrupt:
        sys.stderr.write("\ngstack: interrupted\n")
        return 130
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # rich and click have noticed it first
            return _reader_gone()
        raise
    except Exception as error:
        if debug:
            raise
        return _report(_in_group(_unexpected(error), args), debug)


def _reader_gone() -> int:
    """The reader went away (``gstack … | head``): nothing is left to say, not even at exit."""
    _drop_output()
    return 0


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _run(args: list[str], name: str) -> int:
    import typer

    usage_error: Any = typer.BadParameter.__bases__[0]
    click_error: Any = usage_error.__bases__[0]
    try:
        done = cli.build_app()(args=normalise(args), prog_name=name, standalone_mode=False)
    except usage_error as error:
        said = " ".join(error.format_message().split()).rstrip(".")
        raise UsageError(said, hint=f"see {_command_path(error, name, args)} --help") from error
    except click_error as error:
        raise GstackError(error.format_message()) from error
    except typer.Exit as done_early:
        return int(done_early.exit_code)
    except typer.Abort:
        return 130
    return done if isinstance(done, int) else 0


def _command_path(error: Any, name: str, args: list[str]) -> str:
    """The command that was used wrongly, as a person types it."""
    if error.ctx is not None:
        path: str = error.ctx.command_path
        return path
    from typer.main import get_command

    command: Any = get_command(cli.build_app())
    words = [name]
    for word in args:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        words.append(word)
    return " ".join(words)


def normalise(args: list[str]) -> list[str]:
    """``--gate`` alone means ``--gate=on`` (switches S1)."""
    if args[:1] != ["setup"]:
        return args
    return [arg + "=on" if arg in _BARE_FLAGS else arg for arg in args]


def _in_group(error: GstackError, args: list[str]) -> GstackError:
    """The error as the command's group says it."""
    known = _GROUPS.get(args[0] if args else "", {}).get(error.code)
    if known is None or isinstance(error, known):
        return error
    made = known(error.message, hint=error.hint)
    if known is StateError:
        made.code = error.code  # wrong usage, as everywhere; only the exit code differs, since 2 means "block" there
    return made.with_traceback(error.__traceback__)


def _report(error: GstackError, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exception(error)
    hint = f" ({error.hint})" if error.hint else ""
    with contextlib.suppress(OSError):  # where nobody can be told, the exit code still says it
        sys.stderr.write(tame(f"{error.code}: {error.message}{hint}\n"))
    return error.exit_code


def _unexpected(error: Exception) -> GstackError:
    if isinstance(error, OSError):
        why = error.strerror or type(error).__name__
        return StateError(f"{error.filename}: {why}") if error.filename else _nameless(error, why)
    what = " ".join(str(error).split())[:300]
    return GstackError(f"unexpected {type(error).__name__}: {what}", hint="run again with --debug and report it")


def _nameless(error: OSError, why: str) -> StateError:
    """What an error of the system that names no file is about: the output, the working folder, or some file."""
    from gstack.cli.common import here

    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is not None and place.tb_frame.f_globals.get("__name__") in _WRITERS:
        _drop_output()
        return StateError(f"standard output: {why}")
    try:
        here()
    except StateError as gone:
        return gone
    return StateError(f"a file: {why}")


def _utf8_streams() -> None:
    """UTF-8 whatever the locale says; a stream that was closed at the start (``>&-``) leads nowhere."""
    # in this order: each takes the lowest free descriptor, its own, so that no file gets it later
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the process's life
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")

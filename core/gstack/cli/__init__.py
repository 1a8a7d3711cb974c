"""The command ``gstack``: one typer app, one module a command group, each thin over the feature's own functions.

This module is what starts the commands. It imports nothing that Python itself hasn't imported by then: a Ctrl-C while
the rest is imported, which takes most of a short command's time, must not end in a traceback.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def build_app() -> "Any":
    """The typer app with every command group."""
    from gstack.cli.app import app

    return app


def main(arguments: "Sequence[str] | None" = None, *, name: str = "gstack") -> int:
    """Run the command line; the exit code (0 to 6, see docs/reference/exit-codes.md). 130 after Ctrl-C."""
    try:
        from gstack.cli.run import run

        return run(arguments, name)
    except KeyboardInterrupt:
        return 130


def config_main() -> int:
    """``gstack-config`` is ``gstack config``."""
    return main(["config", *sys.argv[1:]])


def route_main() -> int:
    """``gstack-skill-route`` is ``gstack route``."""
    return main(["route", *sys.argv[1:]])


def contract_main() -> int:
    """``gstack-skill-contract`` is ``gstack contract``."""
    return main(["contract", *sys.argv[1:]])

"""The launcher that hosts run: a small script in the state folder that starts the hook.

Cold: ``gstack setup`` writes it. It names the interpreter in its shebang with ``-IS`` (no environment, no ``site``), so
that a vanished interpreter ends in 126 or 127 and a vanished package in 0: a host reads 2 as "block", and
``python missing.py`` would end in 2 (design: "The hook process"). ``-Xutf8`` makes paths UTF-8 whatever the locale is;
that locale then isn't loaded, which is worth 0.05 of a Python start.
"""

import os
import shlex
import subprocess
import sys

from gstack import boot
from gstack.entrypoints import current_paths
from gstack.lowlevel import POSIX, join
from gstack.state import write_atomic

#: How the interpreter is started; a shebang takes one word only.
FLAGS = "-ISXutf8"

#: Longest shebang line that every kernel takes, in bytes, with some room.
SHEBANG_LIMIT = 120

# As few words as can be: it is compiled anew by every hook. The stored code's file name says for which Python it is
# (gstack.boot), and whoever could write it could write this launcher beside it. It ends the process; where there is
# none, or none that fits, the text is compiled as well that does without it.
_CODE = """\
# Written by `gstack setup`; hosts run it as a hook. Deleting it is harmless: the agent goes on without gstack.
try:
    import marshal, sys
    root, paths = {root!r}, {paths!r}
    exec(marshal.loads(open("-".join([root + {name!r}, *sys.argv[1:3]]), "rb").read()))
except BaseException:
    exec({without!r})
"""
_WITHOUT = """\
try:
    sys.path += paths
    from gstack.boot import start
    start(sys.argv[1:], root, paths)
except BaseException:
    pass
"""


def launcher_path(root: str) -> str:
    """What is registered with hosts: the script in the state folder, or on Windows the console script's ``.exe``."""
    if POSIX:
        return join(root, "bin", "gstack-hook")
    return os.path.join(os.path.dirname(sys.executable), "gstack-hook.exe")


def contract_command_path(root: str) -> str:
    """The ``gstack-skill-contract`` that the block text names."""
    return join(root, "bin", "gstack-skill-contract")


def import_paths() -> list[str]:
    """The folders of this process that hold gstack or installed distributions, in import order."""
    wanted = []
    for path in current_paths():
        try:
            entries = os.listdir(path)
        except OSError:
            continue
        ours = [name for name in entries if name == "gstack" or name.startswith("gstack_")]
        # a folder of programs holds a file of that name, and is on the path of a console script
        if any(os.path.isdir(os.path.join(path, name)) for name in ours) or any(
            name.endswith(".dist-info") for name in entries
        ):
            wanted.append(os.path.abspath(path))
    return list(dict.fromkeys(wanted))


def launcher_text(root: str, *, interpreter: str | None = None, paths: list[str] | None = None) -> str:
    """The launcher's text: a Python script, or a shell script where a shebang can't hold the interpreter's path."""
    interpreter = interpreter or sys.executable
    paths = import_paths() if paths is None else paths
    code = _CODE.format(paths=paths, root=root, name="/snapshot/" + boot.TAG, without=_WITHOUT)
    shebang = f"#!{interpreter} {FLAGS}\n"
    if len(os.fsencode(shebang)) <= SHEBANG_LIMIT and not any(char.isspace() for char in interpreter):
        return shebang + code
    return f'#!/bin/sh\nexec {shlex.quote(interpreter)} {FLAGS} -c {shlex.quote(code)} "$@"\n'


def contract_command_text(interpreter: str | None = None) -> str:
    """The text of the ``gstack-skill-contract`` beside the launcher."""
    interpreter = interpreter or sys.executable
    code = "import sys\nfrom gstack.cli import contract_main\nsys.exit(contract_main())\n"
    shebang = f"#!{interpreter}\n"
    if len(os.fsencode(shebang)) <= SHEBANG_LIMIT and not any(char.isspace() for char in interpreter):
        return shebang + code
    return f'#!/bin/sh\nexec {shlex.quote(interpreter)} -c {shlex.quote(code)} "$@"\n'


def write_launchers(root: str) -> None:
    """Write both launchers into the state folder, executable; unchanged ones are left alone. Raises OSError."""
    if not POSIX:
        return
    for path, text in (
        (launcher_path(root), launcher_text(root)),
        (contract_command_path(root), contract_command_text()),
    ):
        data = os.fsencode(text)
        try:
            with open(path, "rb") as file:
                same = file.read() == data and os.access(path, os.X_OK)
        except OSError:
            same = False
        if not same:
            write_atomic(path, data, mode=0o700)


def try_launcher(
    path: str, *, host: str = "claude-code", timeout: float = 20.0, env: dict[str, str] | None = None
) -> str:
    """Run the launcher as a host would, on a payload that no feature answers; what is wrong, or ``""``."""
    try:
        done = subprocess.run(
            [path, host, "Stop"], input=b"{}\n", capture_output=True, timeout=timeout, check=False, env=env
        )
    except OSError as error:
        return f"{path} can't be run: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{path} didn't end within {timeout:g} s"
    if done.returncode != 0:
        return f"{path} ended with exit code {done.returncode}"
    if done.stdout:
        return f"{path} printed where it had nothing to say"
    return ""

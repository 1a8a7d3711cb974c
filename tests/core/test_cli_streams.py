"""The command line where its streams or its folder are not as usual: closed, full, read by nobody, gone."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gstack.cli import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")


def shell(line: str) -> tuple[int, str]:
    """A command line, with ``gstack`` in it: exit code of ``gstack`` and what it said on standard error."""
    command = f"{shlex.quote(sys.executable)} -m gstack"
    done = subprocess.run(
        ["bash", "-c", "set -o pipefail; " + line.replace("gstack", command, 1)], capture_output=True, timeout=60
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("line", ["gstack config get gate >&-", "gstack route --explain - <&-", "gstack doctor >&-"])
def test_a_closed_stream_is_no_error(home: Path, line: str) -> None:
    assert shell(line) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("line", ["gstack config get gate", "gstack config list", "gstack --version"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_output_is_named(home: Path, line: str, unbuffered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    code, err = shell(line + " >/dev/full")
    assert (code, err) == (3, "GSTACK_STATE_ERROR: standard output: No space left on device\n")


@pytest.mark.parametrize("line", ["gstack demo | head -1", "gstack doctor | true", "gstack route eval --help | true"])
def test_a_reader_that_goes_away_is_no_error(home: Path, line: str) -> None:
    assert shell(line) == (0, "")


def test_text_that_is_not_utf8_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "set", "routed_skills", "\udcff"]) == 2
    assert capsys.readouterr().err == "GSTACK_USAGE: the value of routed_skills must be UTF-8 text\n"


GONE = "GSTACK_STATE_ERROR: the working folder is gone: cd to another one\n"


@pytest.mark.parametrize(
    "arguments",
    ["route --explain x", "route report", "doctor", "setup --project", "trust .", "gate --skill x"],
)
def test_a_working_folder_that_is_gone_is_said(
    arguments: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "gone").mkdir()
    monkeypatch.chdir(home / "gone")
    (home / "gone").rmdir()
    assert main(arguments.split()) == 3
    assert capsys.readouterr().err == GONE
    assert main(["contract", "report"]) == 0
    capsys.readouterr()
    assert main(["contract", "check", "--transcript", "t", "--skill", "s"]) == 3
    assert capsys.readouterr().err == GONE.replace("GSTACK", "SKILL_CONTRACT")


def test_no_folder_is_not_this_folder(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", ""]) == 2
    assert capsys.readouterr().err.startswith("GSTACK_USAGE: trust needs a folder")


def test_an_option_without_its_value_names_its_command(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["route", "--default"]) == 2
    assert "(see gstack route --help)" in capsys.readouterr().err


#: Raises what a Ctrl-C raises while a module is imported, or when an attribute of gstack.cli.run is used.
_INTERRUPTED = """
import sys
class Finder:
    def find_spec(self, name, *rest):
        if name == sys.argv[1]:
            raise KeyboardInterrupt
if any(name == sys.argv[1] for name in sys.modules):
    sys.exit("it is imported by then: " + sys.argv[1])
sys.meta_path.insert(0, Finder())
from gstack.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("contextlib", ""),
        ("typing", ""),
        ("gstack.cli.run", ""),
        ("gstack.errors", ""),
        ("typer", "\ngstack: interrupted\n"),
        ("gstack.cli.app", "\ngstack: interrupted\n"),
        ("rich.table", "\ngstack: interrupted\n"),
    ],
)
def test_ctrl_c_while_it_is_imported_ends_it_quietly(module: str, said: str) -> None:
    command = [sys.executable, "-I", "-S", "-c", "import sys; sys.path = sys.argv.pop(1).split(chr(10))" + _INTERRUPTED]
    done = subprocess.run(
        [*command, "\n".join(sys.path), module, "config", "list"], capture_output=True, timeout=60, text=True
    )
    assert (done.returncode, done.stderr) == (130, said)

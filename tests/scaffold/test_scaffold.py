"""What ``gstack plugins new`` writes: it passes its own tests at once, is the examples' text, and refuses clearly."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gstack import scaffold
from gstack.cli import main
from gstack.errors import CheckFailed, StateError, UsageError
from gstack.testing import Sandbox

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = Path(str(scaffold.__file__)).parent / "templates"
NAMES = {"kind": "acme.word_count", "scorer": "acme.bag", "resolver": "acme.calm_down", "host": "acme.robot"}
EXAMPLES = {"kind": "vendor-file-exists", "host": "vendor-jsonl-host"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_tests(folder: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """As an author would: pytest, nothing installed, no option."""
    env = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LANG") if name in os.environ}
    env |= {"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("sort", sorted(NAMES))
def test_a_new_distribution_passes_its_tests_at_once(sort: str, here: Path) -> None:
    assert main(["plugins", "new", sort, NAMES[sort]]) == 0
    (folder,) = here.iterdir()
    done = run_tests(folder, here)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "failed" not in done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.parametrize("sort", sorted(EXAMPLES))
def test_the_template_is_the_examples_own_text(sort: str) -> None:
    example = ROOT / "examples" / EXAMPLES[sort]
    wanted = {
        path.relative_to(example).as_posix(): path.read_text(encoding="utf-8")
        for path in example.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    found = {
        path.relative_to(TEMPLATES / sort).as_posix().removesuffix(".txt"): path.read_text(encoding="utf-8")
        for path in (TEMPLATES / sort).rglob("*.txt")
    }
    assert found == wanted


@pytest.mark.parametrize("sort", sorted(NAMES))
def test_no_name_of_the_template_is_left(sort: str, here: Path) -> None:
    project, written = scaffold.create(sort, NAMES[sort])
    template = scaffold.SORTS[sort]
    assert written
    for path in written:
        text = Path(path).read_text(encoding="utf-8") + path
        for word in (template.name, template.module, template.dist, template.type, *template.words):
            assert word not in text, f"{word} is left in {path}"
    assert (project.module, project.dist) == (NAMES[sort].replace(".", "_"), project.module.replace("_", "-"))


def test_what_is_written_is_python_whatever_the_name(here: Path) -> None:
    for number, name in enumerate(("acme.field", "acme.verdict", "a.b.c_d9", "acme.file_exists", "vendor.file_exists")):
        folder = here / str(number)
        folder.mkdir()
        _, written = scaffold.create("kind", name, str(folder))
        for path in written:
            if path.endswith(".py"):
                ast.parse(Path(path).read_text(encoding="utf-8"))
    assert scaffold.Project("kind", "acme.field").type == "FieldKind"  # gstack.api has a Field


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("kind", "word_count"), "needs a vendor prefix"),
        (("kind", "Acme.Word"), "no plug-in's name"),
        (("kind", "acme.2fast"), "no plug-in's name"),
        (("kind", "acme..x"), "no plug-in's name"),
        (("kind", "acme.x-y"), "no plug-in's name"),
        (("kind", "../evil"), "no plug-in's name"),
        (("kind", ""), "no plug-in's name"),
        (("kind", "acme." + "x" * 99), "no plug-in's name"),
        (("kind", "gstack.mine"), "gstack's own"),
        (("kind", "acme.true"), "a word of Python's own"),
        (("scorer", "acme.none"), "a word of Python's own"),
        (("plugin", "acme.x"), "no sort of plug-in"),
    ],
)
def test_bad_names_are_refused(
    arguments: tuple[str, str], says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugins", "new", *arguments]) == UsageError.exit_code
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert list(here.iterdir()) == []


def test_an_existing_folder_is_left_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = here / "acme-x" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    assert main(["plugins", "new", "kind", "acme.x"]) == CheckFailed.exit_code
    assert "is there already; nothing was written" in capsys.readouterr().err
    assert [path.name for path in mine.parent.iterdir()] == ["mine.txt"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="this user may write everywhere")
def test_a_folder_that_cant_be_written_is_named(here: Path) -> None:
    here.chmod(0o500)
    with pytest.raises(StateError, match="acme-x can't be made"):
        scaffold.create("kind", "acme.x")


def test_the_wheel_has_the_templates() -> None:
    assert {sort.name for sort in TEMPLATES.iterdir()} == set(scaffold.SORTS)


def test_a_new_plug_in_passes_the_check_on_what_is_installed(here: Path, tmp_path: Path) -> None:
    """``gstack plugins check`` without pytest's help."""
    from gstack.testing import FakeSite

    box = Sandbox(str(tmp_path / "box"))
    scaffold.create("kind", "acme.word_count", str(here))
    FakeSite(str(tmp_path / "site"), box).project(here / "acme-word-count")
    reply = box.cli("plugins", "check", "acme.word_count")
    assert reply.code == 0, reply.err
    assert reply.out.decode().startswith("acme.word_count: ok, ")

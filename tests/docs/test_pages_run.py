"""The pages' commands run as they stand there, in order, and print what the pages say that they print.

A block whose info string is ``sh run`` is run; ``text output`` right after it is what it prints: ``…`` stands for
anything, and on a line of its own for any lines. README's commands for after the installation run in the same way.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

import pytest
from page_support import DOCS, PAGES, ROOT, Fence, fences, name_of

from gstack.lowlevel import POSIX

TUTORIAL = DOCS / "tutorial.md"
POLICY = DOCS / "how-to" / "publish-a-policy.md"
PROJECTS = DOCS / "how-to" / "use-projects-and-overlays.md"
README = ROOT / "README.md"
RUNNABLE = [page for page in PAGES if any(fence.words[:2] == ["sh", "run"] for fence in fences(page))]

pytestmark = pytest.mark.skipif(not POSIX or not shutil.which("bash"), reason="the pages show a POSIX shell")


class Home:
    """A home of somebody who has installed gstack and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / ".local" / "state" / "gstack"
        self.work = folder / "work"
        self.work.mkdir()
        command = folder / "bin" / "gstack"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m gstack "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        git = Path(shutil.which("git") or "/usr/bin/git").parent
        self.env = {
            "HOME": str(folder),
            "GSTACK_STATE_ROOT": str(self.root),
            "PATH": f"{command.parent}:{git}:/usr/bin:/bin",
            "USER": "you",
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",  # what is said first comes first, as on a terminal
        }

    def run(self, blocks: Sequence[str]) -> list[str]:
        """Run the blocks in one shell; what each printed, with the home as ``/home/you``."""
        script = "set -e\n" + "".join(f"echo '@@@'\n{block}\n" for block in blocks)
        done = subprocess.run(
            ["bash"],
            input=script,
            cwd=self.work,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        lines = [line.rstrip() for line in done.stdout.replace(str(self.folder), "/home/you").splitlines()]
        shown = [line for line in lines if not re.match(r"warning: .* lies in a temporary folder", line)]
        return "\n".join(shown).split("@@@\n")[1:] if len(blocks) > 1 or shown[1:] else [""]


@pytest.fixture(scope="module")
def homes() -> Iterator[dict[str, Home]]:
    """Homes by the name of their page; their paths are short, so that tables break as in a real home."""
    found: dict[str, Home] = {}
    yield found
    for home in found.values():
        shutil.rmtree(home.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def ran(homes: dict[str, Home]) -> "dict[str, list[tuple[Fence, str, Fence | None]]]":
    """Each page that can be run, run once: its blocks with what they printed, and the block that says what they do."""
    for page in RUNNABLE:
        homes[name_of(page)] = Home(Path(tempfile.mkdtemp(prefix="h", dir="/tmp")))
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda page: run_page(page, homes[name_of(page)]), RUNNABLE))
    return {name_of(page): result for page, result in zip(RUNNABLE, results, strict=True)}


def run_page(page: Path, home: Home) -> "list[tuple[Fence, str, Fence | None]]":
    found = fences(page)
    runs = [fence for fence in found if fence.words[:2] == ["sh", "run"]]
    said = {id(a): b for a, b in pairwise(found) if b.words[:2] == ["text", "output"]}
    printed = home.run([fence.text for fence in runs])
    assert len(printed) == len(runs)
    return [(run, text, said.get(id(run))) for run, text in zip(runs, printed, strict=True)]


def expected(text: str) -> str:
    """A block of output as a regular expression."""
    lines = []
    for line in text.splitlines():
        bare = line.rstrip()
        lines.append("(?:.*\n)*" if bare == "…" else ".*".join(map(re.escape, bare.split("…"))) + "\n")
    return "".join(lines)


def test_the_pages_that_show_a_way_can_be_run() -> None:
    assert {TUTORIAL, POLICY, PROJECTS} <= set(RUNNABLE)


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_a_page_runs_and_prints_what_it_says(
    page: Path, ran: "dict[str, list[tuple[Fence, str, Fence | None]]]"
) -> None:
    shown = 0
    for run, printed, said in ran[name_of(page)]:
        if said is not None:
            shown += 1
            text = printed.rstrip("\n") + "\n" if printed.strip() else ""
            assert re.fullmatch(expected(said.text), text), f"after line {run.line} it printed:\n{printed}"
    assert shown


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_output_follows_a_block_that_runs(page: Path) -> None:
    found = fences(page)
    for before, after in zip([None, *found], found, strict=False):
        if after.words[1:] == ["output"]:
            assert before is not None
            assert before.words == ["sh", "run"], f"line {after.line}"


def test_the_tutorial_ends_with_nothing_left(ran: object, homes: dict[str, Home]) -> None:
    home = homes[name_of(TUTORIAL)]
    assert not (home.folder / ".claude" / "settings.json").exists()
    assert not (home.root / "bin").exists()
    assert (home.root / "config.yaml").is_file()


def test_nothing_is_logged_of_what_was_typed(ran: object, homes: dict[str, Home]) -> None:
    for home in homes.values():
        for log in (home.root / "hooks").glob("*.log"):
            assert "birthday" not in log.read_text(encoding="utf-8")


# --------------------------------------------------------------------------------------------- files.md


def rows() -> list[str]:
    """The files that files.md lists in the state folder, as patterns."""
    text = (DOCS / "reference" / "files.md").read_text(encoding="utf-8")
    table = text.split("## The state folder", 1)[1].split("\n## ", 1)[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_every_file_is_on_the_page_of_files(ran: object, homes: dict[str, Home]) -> None:
    known = rows()
    seen = set()
    for home in homes.values():
        for path in [home.root, *home.root.rglob("*")]:
            name = path.relative_to(home.root).as_posix()
            mode = path.stat().st_mode & 0o777
            if path.is_dir():
                assert mode == 0o700, name
                continue
            found = next((one for one in known if fnmatch(name, one) or fnmatch(path.name, one)), None)
            assert found, f"{name} isn't on the page"
            seen.add(found)
            by_hand = name == "skills.yaml"
            assert by_hand or mode == (0o700 if name.startswith("bin/") else 0o600), name
    assert len(seen) > len(known) / 2


def test_every_file_of_the_page_is_named_in_the_code() -> None:
    """No row for a file that nobody writes."""
    code = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "core").rglob("*.py"))
    for name in rows():
        if name in ("*.lock", ".lock", "hooks/*.log.1"):
            continue
        stem = re.sub(r"\.\w+$", "", name.rpartition("/")[2]).strip("-*.")
        assert stem in code or not stem, name


# ----------------------------------------------------------------------------------------------- README


def readme_blocks() -> list[Fence]:
    return [fence for fence in fences(README) if fence.language == "sh"]


def test_readme_starts_with_one_line_each() -> None:
    """After a checkout, one line installs and shows the demo, one line installs tox and runs the tests."""
    demo, tests = readme_blocks()[:2]
    for block, last in ((demo, "gstack demo"), (tests, "tox")):
        assert len(block.text.splitlines()) == 1
        assert block.text.strip().endswith(last)
    assert "tox" in (ROOT / "tox.ini").name


def test_readme_commands_do_what_stands_beside_them(homes: dict[str, Home]) -> None:
    homes["README"] = home = Home(Path(tempfile.mkdtemp(prefix="h", dir="/tmp")))
    settings = home.folder / ".claude" / "settings.json"
    settings.parent.mkdir()
    before = b'{\r\n\t"model":   "opus",\r\n\t"hooks": {}}\r\n\r\n'
    settings.write_bytes(before)
    skill = settings.parent / "skills" / "investigate" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: investigate\ntriggers: [fix this bug]\n---\n", encoding="utf-8")
    text = "\n".join(block.text for block in readme_blocks()[2:])
    commands = [line for line in text.splitlines() if line.strip()]
    assert any("uninstall" in line for line in commands)
    said = dict(zip(commands, home.run(commands), strict=True))
    assert "observe" in next(out for line, out in said.items() if line.startswith("gstack setup"))
    assert settings.read_bytes() == before
    home.run(["gstack setup --skill-routing --dry-run"])
    assert settings.read_bytes() == before
    home.run(["gstack setup --skill-routing"])
    added = settings.read_bytes()
    assert added.count(b"gstack-hook") == 1
    assert added.startswith(b'{\r\n\t"model":   "opus",\r\n')
    home.run(["gstack uninstall"])
    assert settings.read_bytes() == before

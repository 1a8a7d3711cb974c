"""The house has no gaps: each plug-in is registered, tested and run by tox; each hook has a page and a kit.

Core knows no built-in. Every rule is also tried on a copy of the house in which it is broken."""

import ast
import configparser
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gstack import hookspecs
from gstack.testing.runner import KITS

ROOT = Path(__file__).resolve().parents[2]
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

PACKAGES = {"gstack_plugins": "plugins", "gstack_hosts": "hosts"}
#: Who may import whom, beside itself and libraries.
FORBIDDEN = {"core": set(PACKAGES), "plugins": {"gstack_hosts"}, "hosts": {"gstack_plugins"}}
#: Core may name the built-ins' packages only to compile them ahead.
MAY_NAME = {"core/gstack/setup.py", "core/gstack/bootstore.py"}


def imports(path: Path) -> set[str]:
    """The top-level names that a module imports, also those given to ``__import__`` and ``import_module``."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("__import__", "import_module") and isinstance(node.args[0].value, str):
                found.add(node.args[0].value.split(".")[0])
    return found


def entry_points(root: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = tomllib.loads((root / "pyproject.toml").read_text())["project"]["entry-points"]
    return found


def wrong_imports(root: Path) -> Iterator[str]:
    for folder, forbidden in FORBIDDEN.items():
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            for package in imports(path) & forbidden:
                yield f"{name} imports {package}"
            if folder == "core" and name not in MAY_NAME:
                for package in PACKAGES:
                    if f'"{package}' in path.read_text(encoding="utf-8"):
                        yield f"{name} names {package}"


def unregistered(root: Path) -> Iterator[str]:
    named = {module for group in entry_points(root).values() for module in group.values()}
    for package, folder in PACKAGES.items():
        for path in sorted((root / folder / package).iterdir()):
            if (path / "__init__.py").is_file() and f"{package}.{path.name}" not in named:
                yield f"{package}.{path.name} has no entry point"
        for module in sorted(named):
            if module.startswith(package) and not (root / folder / module.replace(".", "/")).is_dir():
                yield f"the entry point {module} leads nowhere"


def untested(root: Path) -> Iterator[str]:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(root / "tox.ini")
    commands, env_list = tox["testenv"]["commands"], tox["tox"]["env_list"]
    for group, entries in entry_points(root).items():
        for module in entries.values():
            package, name = module.split(".")
            folder = root / "tests" / PACKAGES[package] / name
            tests = sorted(folder.glob("test_*.py"))
            if not tests:
                yield f"{module} has no tests"
            elif not any(KITS[group].__name__ in path.read_text(encoding="utf-8") for path in tests):
                yield f"{module} doesn't pass {KITS[group].__name__}"
            if not re.search(rf"^\s*{name}: pytest ", commands, re.MULTILINE):
                yield f"tox runs no tests for {module}"
            if not re.search(rf"\b{name}\b", env_list):
                yield f"tox leaves {name} out"


def undocumented(root: Path) -> Iterator[str]:
    pages = {path.name: path.read_text(encoding="utf-8") for path in (root / "docs" / "plugins").glob("*.md")}
    tests = [path.read_text(encoding="utf-8") for path in (root / "tests").rglob("test_*.py")]
    for group, hook in hookspecs.GROUPS.items():
        if not any(f"def {hook}()" in text and "## When it is called" in text for text in pages.values()):
            yield f"{hook} has no page in docs/plugins"
        if group not in KITS:
            yield f"{hook} has no conformance kit"
        elif not any(f"({KITS[group].__name__})" in text for text in tests):
            yield f"{hook} has no test"


def outside(root: Path) -> Iterator[str]:
    text = (root / "tox.ini").read_text()
    for path in sorted((root / "examples").iterdir()):
        for needed in ("pyproject.toml", "README.md", "src", "tests"):
            if not (path / needed).exists():
                yield f"examples/{path.name} has no {needed}"
        if f"{{toxinidir}}/examples/{path.name}" not in text or f"examples/{path.name}/tests" not in text:
            yield f"tox doesn't install and test examples/{path.name}"


RULES = (wrong_imports, unregistered, untested, undocumented, outside)


def problems(root: Path) -> list[str]:
    return [problem for rule in RULES for problem in rule(root)]


def test_the_house_has_no_gaps() -> None:
    assert problems(ROOT) == []


def replace(path: str, old: str, new: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        text = (root / path).read_text(encoding="utf-8")
        assert old in text
        (root / path).write_text(text.replace(old, new), encoding="utf-8")

    return change


def add(path: str, text: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text((root / path).read_text() + text if (root / path).exists() else text)

    return change


def remove(path: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        shutil.rmtree(root / path)

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            add("core/gstack/new.py", "from gstack_hosts import claude_code\n"),
            "core/gstack/new.py imports gstack_hosts",
        ),
        (add("core/gstack/new.py", "__import__('gstack_plugins.x')\n"), "core/gstack/new.py imports gstack_plugins"),
        (add("core/gstack/new.py", 'NAME = "gstack_plugins.x"\n'), "core/gstack/new.py names gstack_plugins"),
        (
            add("plugins/gstack_plugins/agent_dispatch/__init__.py", "import gstack_hosts\n"),
            "plugins/gstack_plugins/agent_dispatch/__init__.py imports gstack_hosts",
        ),
        (add("plugins/gstack_plugins/lonely/__init__.py", ""), "gstack_plugins.lonely has no entry point"),
        (replace("pyproject.toml", 'agent_dispatch = "', 'other = "'), ""),
        (replace("pyproject.toml", "gstack_plugins.agent_dispatch", "gstack_plugins.gone"), "gone leads nowhere"),
        (remove("tests/plugins/agent_dispatch"), "gstack_plugins.agent_dispatch has no tests"),
        (
            replace("tests/plugins/agent_dispatch/test_agent_dispatch_conformance.py", "Conformance", "Nothing"),
            "gstack_plugins.agent_dispatch doesn't pass ContractKindConformance",
        ),
        (
            replace("tox.ini", "agent_dispatch: pytest", "x: pytest"),
            "tox runs no tests for gstack_plugins.agent_dispatch",
        ),
        (replace("tox.ini", ",agent_dispatch,", ","), "tox leaves agent_dispatch out"),
        (
            replace("docs/plugins/gate-resolvers.md", "def gstack_gate_resolvers()", ""),
            "gstack_gate_resolvers has no page",
        ),
        (add("examples/acme-new/pyproject.toml", ""), "tox doesn't install and test examples/acme-new"),
        (remove("examples/vendor-file-exists/tests"), "examples/vendor-file-exists has no tests"),
    ],
)
def test_each_gap_is_found(change: Callable[[Path], None], problem: str, tmp_path: Path) -> None:
    for name in ("core", "plugins", "hosts", "tests/plugins", "tests/hosts", "docs/plugins", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.tsv"))
    for name in ("pyproject.toml", "tox.ini"):
        shutil.copy(ROOT / name, tmp_path / name)
    change(tmp_path)
    found = problems(tmp_path)
    if problem:
        assert any(problem in one for one in found), found
    else:
        assert found == []


def test_a_hook_without_a_test_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs" / "plugins").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    assert {one.partition(" has ")[2] for one in undocumented(tmp_path)} == {"no page in docs/plugins", "no test"}

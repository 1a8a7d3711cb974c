"""The house as the design draws it: import directions, entry points, tests folders, tox factors, docs of the hooks."""

import ast
import configparser
import inspect
from pathlib import Path

import pytest

from gstack import api, hookspecs, protocols

ROOT = Path(__file__).resolve().parents[2]
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]


def imports_of(folder: str) -> dict[Path, set[str]]:
    out = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
        out[path.relative_to(ROOT)] = names
    return out


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("core", {"gstack_plugins", "gstack_hosts"}),
        ("plugins", {"gstack_hosts"}),
        ("hosts", {"gstack_plugins"}),
    ],
)
def test_dependencies_point_one_way(folder: str, forbidden: set[str]) -> None:
    assert {str(path): found for path, names in imports_of(folder).items() if (found := names & forbidden)} == {}


def entry_points() -> dict[str, dict[str, str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project["entry-points"]


def test_every_group_is_a_hookspec_and_has_built_ins() -> None:
    assert set(entry_points()) == set(hookspecs.GROUPS)
    assert {name for name in vars(hookspecs) if name.startswith("gstack_")} == set(hookspecs.GROUPS.values())


def modules_of_plugins() -> dict[str, str]:
    return {module: folder for group in entry_points().values() for folder in group for module in [group[folder]]}


def test_every_folder_of_plug_ins_has_an_entry_point() -> None:
    named = set(modules_of_plugins())
    for base, package in (("plugins/gstack_plugins", "gstack_plugins"), ("hosts/gstack_hosts", "gstack_hosts")):
        folders = {p.name for p in (ROOT / base).iterdir() if (p / "__init__.py").is_file()}
        assert {f"{package}.{name}" for name in folders} == {name for name in named if name.startswith(package)}


def test_every_plug_in_has_tests_and_a_tox_factor() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    commands, env_list = tox["testenv"]["commands"], tox["tox"]["env_list"]
    for module in modules_of_plugins():
        package, name = module.split(".")
        folder = ROOT / "tests" / ("plugins" if package == "gstack_plugins" else "hosts") / name
        assert list(folder.glob("test_*.py")), f"{module} has no tests in {folder.relative_to(ROOT)}"
        assert f"{name}: pytest" in commands, f"tox runs no tests for {module}"
        assert name in env_list, f"tox -e all leaves {module} out"


@pytest.mark.parametrize("name", sorted(hookspecs.GROUPS.values()))
def test_every_hookspec_says_when_what_and_what_failing_does(name: str) -> None:
    text = inspect.getdoc(getattr(hookspecs, name)) or ""
    for word in ("When:", "Return:", "Combined:", "Failing:"):
        assert word in text, f"{name} doesn't say {word}"


@pytest.mark.parametrize("name", ["ContractKind", "TriggerScorer", "GateResolver", "HostAdapter"])
def test_every_member_of_a_protocol_is_documented(name: str) -> None:
    for member, value in vars(getattr(protocols, name)).items():
        if not member.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{member} has no docstring"


def test_the_version_of_the_hooks_is_one_number() -> None:
    assert api.GSTACK_API == hookspecs.GSTACK_API


def test_files_stay_readable() -> None:
    long = {}
    for folder in ("core", "plugins", "hosts"):
        for path in (ROOT / folder).rglob("*.py"):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > 450:
                long[str(path.relative_to(ROOT))] = lines
    long.pop("core/gstack/api.py", None)  # the value types of all four extension points, in one file on purpose
    assert long == {}

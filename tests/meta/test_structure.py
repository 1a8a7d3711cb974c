"""The public surface is documented, and files stay readable. What the house must have is in test_house.py."""

import inspect
from pathlib import Path

import pytest

from gstack import api, hookspecs, protocols

ROOT = Path(__file__).resolve().parents[2]
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]


def entry_points() -> dict[str, dict[str, str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project["entry-points"]


def test_every_group_is_a_hookspec_and_has_built_ins() -> None:
    assert set(entry_points()) == set(hookspecs.GROUPS)
    assert {name for name in vars(hookspecs) if name.startswith("gstack_")} == set(hookspecs.GROUPS.values())


@pytest.mark.parametrize("name", sorted(hookspecs.GROUPS.values()))
def test_every_hookspec_says_when_what_and_what_failing_does(name: str) -> None:
    text = inspect.getdoc(getattr(hookspecs, name)) or ""
    for word in ("When:", "Return:", "Combined:", "Failing:"):
        assert word in text, f"{name} doesn't say {word}"


OPTIONAL = ["FindsLoads", "KnowsSessions", "NamesMarkers", "ReadsEnds", "SeesHooksOff", "TriedHost"]


@pytest.mark.parametrize(
    "name", ["ContractKind", "JudgesEnds", "TriggerScorer", "GateResolver", "HostAdapter", *OPTIONAL]
)
def test_every_member_of_a_protocol_is_documented(name: str) -> None:
    for member, value in vars(getattr(protocols, name)).items():
        if not member.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{member} has no docstring"


@pytest.mark.parametrize("name", OPTIONAL)
def test_what_an_adapter_may_offer_is_on_the_page_and_in_the_built_in_one(name: str) -> None:
    from gstack_hosts.claude_code import ClaudeCode

    assert f"`{name}`" in (ROOT / "docs" / "plugins" / "host-adapters.md").read_text(encoding="utf-8")
    for member in vars(getattr(protocols, name)):
        if not member.startswith("_"):
            assert hasattr(ClaudeCode, member), f"{name}.{member}"


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

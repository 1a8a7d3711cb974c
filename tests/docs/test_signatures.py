"""The docs show no signature that the code doesn't have: hooks, methods of plug-ins, kits, fixtures, commands."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from plugin_pages import PAGES, blocks, prose

from gstack import hookspecs, protocols, testing
from gstack.cli.app import app
from gstack.testing import Sandbox, Transcript, fixtures
from gstack_plugins.lexical_scorer import Lexical

PROTOCOLS = {"kind": "ContractKind", "scorer": "TriggerScorer", "resolver": "GateResolver", "host": "HostAdapter"}
#: Members that gstack asks for where a plug-in has them, by a built-in that does.
OPTIONAL = {
    "configure": Lexical.configure,
    "missing_words": Lexical.missing_words,
    "prepare_again": Lexical.prepare_again,
}


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def members() -> dict[str, list[str]]:
    """Each method that a plug-in may have, with its parameters."""
    found = {}
    for protocol in PROTOCOLS.values():
        for name, value in vars(getattr(protocols, protocol)).items():
            if not name.startswith("_") and inspect.isfunction(value):
                found[name] = parameters(value)
    return found | {name: parameters(function) for name, function in OPTIONAL.items()}


MEMBERS = members()


def parsed(page: Path) -> list[tuple[int, ast.Module]]:
    """Every python block of the page, with the line where it starts."""
    return [(block.line, ast.parse(block.text)) for block in blocks(page) if block.language == "python"]


def is_plugin_object(node: ast.ClassDef) -> bool:
    """Whether a class says its ``name`` or ``id``, as the objects do that a plug-in returns."""
    targets = [target for one in node.body if isinstance(one, ast.Assign) for target in one.targets]
    return any(isinstance(target, ast.Name) and target.id in ("name", "id") for target in targets)


def arguments(node: ast.FunctionDef) -> list[str]:
    return [one.arg for one in (*node.args.args, *node.args.kwonlyargs) if one.arg != "self"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_compiles(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            compile(block.text, f"{page.name}:{block.line}", "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_hook_functions_are_as_the_code_has_them(page: Path) -> None:
    for start, tree in parsed(page):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("gstack_"):
                where = f"{page.name}:{start + node.lineno}"
                assert node.name in hookspecs.GROUPS.values(), f"{where}: there is no hook {node.name}"
                assert arguments(node) == [], f"{where}: {node.name} takes no argument"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_methods_are_as_the_code_has_them(page: Path) -> None:
    for start, tree in parsed(page):
        for owner in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and is_plugin_object(node)]:
            for node in owner.body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    where = f"{page.name}:{start + node.lineno}"
                    assert node.name in MEMBERS, f"{where}: gstack asks no plug-in for {node.name}"
                    assert arguments(node) == MEMBERS[node.name], f"{where}: it is {node.name}{MEMBERS[node.name]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_signatures_in_the_text(page: Path) -> None:
    """``check(item, run)`` in backticks is what the code has."""
    for name, inside in re.findall(r"`(\w+)\(([\w, ]*)\)`", prose(page)):
        given = [part.strip() for part in inside.split(",") if part.strip()]
        if name in MEMBERS and given:
            assert given == MEMBERS[name], f"{page.name}: {name}({inside}), not {MEMBERS[name]}"


def test_every_hook_has_a_page_that_says_when_what_and_what_failing_does() -> None:
    titles = {
        "kind": "contract-kinds",
        "scorer": "trigger-scorers",
        "resolver": "gate-resolvers",
        "host": "host-adapters",
    }
    by_name = {page.stem: page for page in PAGES}
    for group, hook in hookspecs.GROUPS.items():
        sort = next(sort for sort in titles if sort in group or sort in hook)
        page = by_name[titles[sort]]
        text = page.read_text(encoding="utf-8")
        for heading in (
            "A whole example",
            "When it is called",
            "What to return",
            "What failing does",
            "Optional members",
        ):
            assert f"## {heading}\n" in text, f"{page.name} lacks {heading}"
        assert f"def {hook}()" in text
        assert group in text


def test_every_member_of_a_protocol_is_on_its_page() -> None:
    pages = {"ContractKind": "contract-kinds", "TriggerScorer": "trigger-scorers", "GateResolver": "gate-resolvers"}
    pages["HostAdapter"] = "host-adapters"
    for protocol, stem in pages.items():
        text = next(page for page in PAGES if page.stem == stem).read_text(encoding="utf-8")
        for name in vars(getattr(protocols, protocol)):
            if not name.startswith("_"):
                assert re.search(rf"\b{name}\b", text), f"{stem}.md doesn't mention {protocol}.{name}"


def test_the_page_on_testing_names_what_there_is() -> None:
    text = next(page for page in PAGES if page.stem == "testing").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)[:5] == [
        name
        for name in ("gstack_sandbox", "run_hook", "fake_install", "transcript", "gstack_home")
        if hasattr(fixtures, name)
    ]
    shown = set(re.findall(r"`(\w+)\(", text))
    places: list[Any] = [Transcript, Sandbox, *(getattr(testing, name) for name in testing.__all__)]
    unknown = {
        name
        for name in shown
        if not any(hasattr(place, name) for place in places) and name not in ("fake_install", "run_hook", "run")
    }
    assert unknown == set()
    for name in testing.__all__:
        if name.endswith("Conformance"):
            assert f"`{name}`" in text
    for name in vars(Transcript):
        if not name.startswith("_") and name not in ("call", "result", "last_text"):
            assert f"`{name}(" in text or f"{name}(" in text, f"testing.md doesn't mention Transcript.{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose(page)):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_command_exists() -> None:
    """``gstack plugins check`` in a block or in backticks is a command of the command line."""
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    single = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for first, second in re.findall(r"\bgstack ([a-z]+)(?: ([a-z-]+))?", text):
            if first in groups and second and groups[first].registered_commands:
                names = {
                    (command.name or getattr(command.callback, "__name__", "")).replace("_", "-")
                    for command in groups[first].registered_commands
                }
                if first == "plugins" or first == "contract":
                    assert second in names, f"{page.name}: gstack {first} {second}"
            elif f"`gstack {first}" in text:
                assert first in groups or first in single, f"{page.name}: gstack {first}"

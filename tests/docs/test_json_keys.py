"""Every ``--json`` prints the keys that docs/reference/json.md promises; the page has every command with the option."""

import json
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_support import DOCS, ROOT_COMMAND

from gstack.cli import main
from gstack.gate.audit import append
from gstack.gate.credentials import Credentials, write_credentials
from gstack.testing import Transcript

PAGE = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------ shapes


class Shape:
    """A document as the page describes it: keys of an object (``*``: any, and what they hold is open unless it is
    said), or what a list holds."""

    def __init__(self) -> None:
        self.keys: dict[str, Shape] | None = None
        self.items: Shape | None = None
        self.optional = False

    def problems(self, value: Any, path: str = "") -> Iterator[str]:
        """Each way in which ``value`` isn't as described."""
        if value is None:
            return
        if self.keys is not None:
            if not isinstance(value, dict):
                yield f"{path} is no object"
                return
            anything = self.keys.get("*")
            for key, item in value.items():
                below = self.keys.get(key, anything)
                if below is None:
                    yield f"{path}{{{key}}} isn't on the page"
                elif below is not anything or below.keys is not None or below.items is not None:
                    yield from below.problems(item, f"{path}.{key}")
            for key, below in self.keys.items():
                if key != "*" and key not in value and not below.optional:
                    yield f"{path}.{key} is missing"
        elif self.items is not None:
            if not isinstance(value, list):
                yield f"{path} is no list"
                return
            for item in value:
                yield from self.items.problems(item, f"{path}[]")
        elif isinstance(value, dict):
            yield f"{path} is an object, and the page doesn't say so"

    def filled(self, value: Any, path: str = "") -> Iterator[str]:
        """The lists of objects that ``value`` leaves empty: what they hold wasn't looked at."""
        if self.items is not None and self.items.keys is not None and value == []:
            yield path
        if isinstance(value, dict) and self.keys is not None:
            for key, item in value.items():
                yield from self.keys.get(key, self.keys.get("*", Shape())).filled(item, f"{path}.{key}")
        if isinstance(value, list) and self.items is not None:
            for item in value:
                yield from self.items.filled(item, f"{path}[]")


_TOKEN = re.compile(r"[\w.*-]+|[{}\[\],?]")


def parse(text: str) -> Shape:
    """``{a, b{c}, d[{e}], *, f?}``."""
    tokens = _TOKEN.findall(text)
    shape = _shape(tokens)
    assert not tokens, f"more follows: {tokens}"
    return shape


def _shape(tokens: list[str]) -> Shape:
    """What stands at the front of the tokens, which it takes away."""
    shape = Shape()
    if tokens[:1] == ["{"]:
        tokens.pop(0)
        shape.keys = {}
        while tokens[0] != "}":
            name = tokens.pop(0)
            optional = tokens[0] == "?"
            if optional:
                tokens.pop(0)
            below = shape.keys[name] = _shape(tokens)
            below.optional = optional
            if tokens[0] == ",":
                tokens.pop(0)
        tokens.pop(0)
    elif tokens[:1] == ["["]:
        tokens.pop(0)
        shape.items = _shape(tokens)
        assert tokens.pop(0) == "]"
    return shape


def rows() -> dict[str, Shape]:
    """The table of the page: command to the shape of its document."""
    found = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ", 1)]
        if not line.startswith("| `") or len(cells) != 2:
            continue
        text = re.search(r"`([{\[][^`]*)`", cells[1])
        assert text is not None, line
        for name in re.findall(r"`([^`]+)`", cells[0]):
            found[name] = parse(text[1])
    return found


ROWS = rows()


def commands_with_json(command: Any = ROOT_COMMAND, path: tuple[str, ...] = ()) -> Iterator[str]:
    if any("--json" in one.opts for one in command.params):
        yield " ".join(path)
    for name, below in getattr(command, "commands", {}).items():
        yield from commands_with_json(below, (*path, name))


def test_every_command_with_json_is_on_the_page() -> None:
    assert {name.removesuffix(" --list") for name in ROWS} == set(commands_with_json())


def test_shapes_are_read() -> None:
    shape = parse("{a, b{c, d?}, e[], f[{g}], h{*{i}}}")
    good = {"a": 1, "b": {"c": 1}, "e": [1], "f": [{"g": 1}], "h": {"x": {"i": 1}}}
    assert not list(shape.problems(good))
    for bad in (
        {**good, "z": 1},
        {**good, "a": {}},
        {**good, "b": {"d": 1}},
        {**good, "f": [{"g": 1, "x": 1}]},
        {**good, "h": {"x": {}}},
        {**good, "e": {}},
        [],
    ):
        assert list(shape.problems(bad))
    assert list(parse("[{a}]").filled([])) == [""]


# ------------------------------------------------------------------------------------------------- scene

SKILL = """---
name: investigate
description: Find the root cause of a failing login.
triggers: [fix this bug, debug this]
contract:
  version: 1
  items:
    - {id: debug-report, kind: report_labels, heading: DEBUG REPORT, labels: [Symptom]}
---
1. Look.
"""
PROMPT = "the login fails, fix this bug please"
POLICY = """
org: acme
namespaces: [acme]
policies:
  - {name: Freeze, matcher_type: name, match_value: acme/deploy, action: block, reason: No., overridable: true,
     exceptions: [{user: zoe, owner: ops, reason: Hotfix., expires_at: SOON}]}
  - {name: Ghost, matcher_type: name, match_value: acme/ghost, action: warn, reason: Ghosts.}
"""


@pytest.fixture
def scene(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A home with two skills, a past session, a policy site; connected, and a little used."""
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(home / "state"))
    monkeypatch.chdir(home)
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400))
    for name, text in (("investigate", SKILL), ("debug", SKILL.replace("investigate", "debug"))):
        write(home / ".claude" / "skills" / name / "SKILL.md", text)
    write(home / "skills" / "deploy" / "SKILL.md", "---\nversion: 1.0.0\ndescription: d\n---\n")
    write(home / "skills" / "crm" / "SKILL.md", "---\nversion: 1.0.0\ndescription: d\n---\n")
    write(home / "policy.yaml", POLICY.replace("SOON", soon))
    write(
        home / "cases.yaml", "cases:\n  - {skill: acme/deploy, expect: block}\n  - {skill: acme/crm, expect: block}\n"
    )
    write(home / "eval.jsonl", json.dumps({"id": "1", "prompt": "write a poem", "expected": "investigate"}) + "\n")
    write(home / ".gstack" / "config.yaml", "skill_routing: observe\n")
    session = Transcript(home / ".claude" / "projects" / "-x" / "session.jsonl", cwd=str(home))
    session.path.parent.mkdir(parents=True)
    session.prompt(PROMPT).load("investigate").edit().say("STATUS: DONE").write()
    for command in (
        "bundle keygen --out keys",
        "bundle build policy.yaml --skills skills --key keys/private.pem --out site",
        "bundle sign other.json --key keys/private.pem --out other",
        f"login --url {(home / 'site').as_uri()} --org acme",
        "config set skill_routing on",
        "gate --skill acme/deploy",
        "gate --skill acme/ghost",
        "trust",
    ):
        if command.startswith("bundle sign"):
            payload = json.loads(json.loads((home / "site/api/bundle/acme").read_text(encoding="utf-8"))["payload"])
            payload |= {"version": 2, "policies": []}
            write(home / "other.json", json.dumps(payload))
        main(command.split())
    capsys.readouterr()
    return home


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


#: How each command is called in the scene.
CALLS = {
    "audit flush": "audit flush",
    "audit show": "audit show",
    "audit verify": "audit verify",
    "bundle build": "bundle build policy.yaml --skills skills --key keys/private.pem --out site",
    "bundle diff": "bundle diff - other",
    "bundle show": "bundle show",
    "bundle verify": "bundle verify",
    "config defaults": "config defaults",
    "config list": "config list",
    "contract check": "contract check --transcript .claude/projects/-x/session.jsonl --skill investigate",
    "contract lint": "contract lint .claude/skills/investigate skills/crm",
    "contract report": "contract report",
    "demo": "demo",
    "doctor": "doctor --live",
    "gate": "gate --skill acme/deploy",
    "gate simulate": "gate simulate --bundle other",
    "gate test": "gate test cases.yaml",
    "login": "login",
    "plugins check": "plugins check lexical",
    "plugins list": "plugins list",
    "pull": "pull",
    "try": "try crm",
    "replay": "replay",
    "route explain": f'route explain "{PROMPT}"',
    "route eval": "route eval eval.jsonl",
    "route overlap": "route overlap --since 900d",
    "route report": "route report",
    "route suggest": "route suggest debug --since 900d",
    "route why-not": "route why-not investigate x",
    "status": "status",
    "sync": "sync",
    "trust --list": "trust --list",
}
#: Lists that stay empty in the scene.
EMPTY = {
    "doctor": {".live.hooks"},
    "route explain": {".skills.skipped"},
    "route suggest": {".suggestions"},
    "contract report": {".errors"},
    "contract lint": {"[].problems"},  # of the one that is fine
}


def test_every_row_is_tried() -> None:
    assert set(CALLS) == set(ROWS)


@pytest.mark.parametrize("name", CALLS)
def test_the_document_is_as_the_page_says(name: str, scene: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(name, scene)
    main([*shlex.split(CALLS[name]), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert not list(ROWS[name].problems(document))
    assert set(ROWS[name].filled(document)) <= EMPTY.get(name, set())


def prepare(name: str, scene: Path) -> None:
    """What must have happened before."""
    root = str(scene / "state")
    if name.startswith("audit"):
        write_credentials(root, Credentials("http://127.0.0.1:9", "acme"))
        facts = {"version": "1", "harness": "cli", "reason": "No.", "policy_id": None, "policy_name": None}
        for skill in ("acme/a", "acme/b"):
            event = {"decision": "blocked", "skill_name": skill, "machine_name": "box", **facts}
            assert append(root, event, now=1.78e9)
    if name == "contract report":
        run = {"skill": "investigate", "load_id": "l", "contract": {"version": 1, "digest": "d"}}
        run |= {"items": {"debug-report": "missing"}, "outcome": "miss", "updated_at": 1.8e9}
        record = {"version": 1, "session": "s", "host": "claude-code", "runs": [run]}
        write(scene / "state" / "skill-contracts" / "s.json", json.dumps(record))
    if name == "route report":
        line = "2026-11-30T12:00:00Z s routed skill=investigate score=1.00\n"
        write(scene / "state" / "hooks" / "skill-route.log", line)
    if name == "doctor":
        main(["setup", "--skill-routing", "--quiet"])


def test_the_switch_that_is_named_is_in_the_scene(scene: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["route", "--explain", "--json", PROMPT])
    assert json.loads(capsys.readouterr().out)["switch"] == {
        "name": "skill_routing", "value": "observe", "source": "project",
    }  # fmt: skip

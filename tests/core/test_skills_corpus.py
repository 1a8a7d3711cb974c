"""Every real SKILL.md of the corpus is read, and says what a person sees in the file."""

import re
from pathlib import Path

import pytest
import yaml

from gstack.frontmatter import read_head
from gstack.skills import read_skill


@pytest.fixture(scope="module")
def files(shared: Path) -> "list[Path]":
    folder = shared / "corpus" / "skills"
    if not folder.is_dir():
        pytest.skip("no corpus of skills here")
    found = sorted(path for path in folder.rglob("*") if path.name.lower() == "skill.md")
    assert len(found) >= 359
    return found


def head_lines(path: Path) -> "list[str] | None":
    """The lines between the fences, looked for in the plainest way; None where there is no head."""
    lines = path.read_bytes().decode("utf-8", "replace").lstrip("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return None
    for place, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return lines[1:place]
    return lines[1:]


def shown(lines: "list[str]", key: str) -> "str | None":
    """The text behind ``key:`` where it stands whole on that one line, quotes taken off."""
    for place, line in enumerate(lines):
        if line.startswith(f"{key}:"):
            text = line.partition(":")[2].strip()
            after = lines[place + 1] if place + 1 < len(lines) else ""
            if not text or text[0] in "|>" or after.startswith((" ", "\t")):
                return None
            if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
                return text[1:-1].replace('\\"', '"').replace("''", "'")
            return text.partition(" #")[0].strip()
    return None


def listed(lines: "list[str]", key: str) -> "list[str]":
    """The ``- item`` lines below ``key:``."""
    out: list[str] = []
    inside = False
    for line in lines:
        if line.startswith(f"{key}:"):
            inside = True
        elif inside and re.match(r"\s*- ", line):
            out.append(line.strip()[2:].strip().strip("\"'"))
        elif inside and line.strip() and not line.lstrip().startswith("#"):
            break
    return out


def refused(lines: "list[str]") -> bool:
    try:
        yaml.safe_load("\n".join(lines))
    except (yaml.YAMLError, ValueError):
        return True
    return False


def test_all_are_read_and_say_what_a_person_sees(files: "list[Path]") -> None:
    seen = dict.fromkeys(("name", "description", "triggers", "refused", "none"), 0)
    for path in files:
        skill = read_skill(str(path), path.parent.name, "personal")
        lines = head_lines(path)
        if lines is None:
            seen["none"] += 1
            assert (skill.label, skill.description, skill.triggers) == (None, "", ()), path
            continue
        name, description, triggers = shown(lines, "name"), shown(lines, "description"), listed(lines, "triggers")
        seen["refused"] += refused(lines)
        if name is not None:
            seen["name"] += 1
            assert (skill.label or path.parent.name) == name, path
        if description is not None:
            seen["description"] += 1
            assert skill.description == description.strip(), path
        elif any(line.startswith("description:") for line in lines):
            assert skill.description, path
        if triggers:
            seen["triggers"] += 1
            assert list(skill.triggers) == triggers, path
    assert seen["name"] > 300, seen
    assert seen["description"] > 200, seen
    assert seen["triggers"] > 15, seen
    assert seen["refused"] >= 20, seen
    assert seen["none"] >= 20, seen


def test_those_that_strict_yaml_refuses_keep_name_and_description(files: "list[Path]") -> None:
    checked = 0
    for path in files:
        lines = head_lines(path)
        if lines is None or not refused(lines):
            continue
        checked += 1
        values = read_head(path.read_bytes()).values
        text = "\n".join(lines)
        assert f"name: {values['name']}" in text, path
        # the whole description, as far as its own first line goes
        first = next(line for line in lines if line.startswith("description:")).partition(":")[2].strip().strip('"|>')
        assert values["description"].split("\n")[0].startswith(first[:40].strip()) or not first, path
        assert len(values["description"]) >= len(first.rstrip()) or not first, path
    assert checked >= 20


def test_no_body_is_lost(files: "list[Path]") -> None:
    for path in files:
        text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        body = read_head(path.read_bytes()).body
        assert text.endswith(body), path
        assert body.strip() or text.rstrip().endswith("---"), path

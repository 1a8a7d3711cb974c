"""``gstack contract lint``: what is wrong with a declared contract, and on which line (contracts C8). Cold."""

import os
import re
from typing import TYPE_CHECKING, Any

import yaml

from gstack.contracts.judge import Bench
from gstack.contracts.schema import declared_in, find_problems, reading_note
from gstack.skills import SkillSkipped, parse_skill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gstack.contracts.schema import Place


class Linted:
    """What was found for one ``SKILL.md``: the ``problems`` as (line, text), how many ``items`` a valid contract has.

    ``file`` is where the contract stands, ``shadowed`` names the homes that hold one too but don't count.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = path
        self.shadowed = ""
        self.items = 0
        self.problems: list[tuple[int, str]] = []

    def as_dict(self) -> dict[str, Any]:
        """The facts with stable keys."""
        return {
            "path": self.path,
            "file": self.file,
            "shadowed": self.shadowed,
            "items": self.items,
            "problems": [{"line": line, "problem": text} for line, text in self.problems],
        }


def lint(path: str, bench: Bench) -> Linted:
    """Check the contract of a ``SKILL.md`` (or of the folder that holds one)."""
    if os.path.isdir(path):
        path = os.path.join(path, "SKILL.md")
    done = Linted(path)
    try:
        skill = parse_skill(path)
    except SkillSkipped as error:
        done.problems.append((1, f"it {error.reason}"))
        return done
    if skill.contract is None:
        _none_declared(done, skill.sources)
        return done
    done.file = declared_in(path, skill.sources, bench.root)
    done.shadowed = skill.sources.get("others:contract", "")
    lines = _Lines(done.file, skill.sources.get("contract", ""))
    declared: Any = skill.contract  # lines that are no YAML are given as the text that they are
    if not isinstance(declared, dict) and reading_note(skill.sources):
        line, text = lines.broken or (lines.doubled() or lines.of(()), reading_note(skill.sources))
        done.problems.append((line, f"contract: it can't be read as YAML: {text}"))
        return done
    found = find_problems(declared, bench.kinds, kind_hint=bench.kind_hint)
    done.problems = [(lines.of(problem.place), problem.text) for problem in found]
    done.items = 0 if found else len(declared["items"])
    return done


def _none_declared(done: Linted, sources: "Mapping[str, str]") -> None:
    """No contract is there, or only one that stands in a ``gstack.yaml`` that can't be read."""
    for key, text in sources.items():
        if key.startswith("problem:gstack.yaml"):
            done.file = os.path.join(os.path.dirname(done.path), "gstack.yaml")
            at = re.match(r"line (\d+): ", text)
            what = text[at.end() :] if at else text
            done.problems.append((int(at[1]) if at else 1, f"it can't be used: {what}"))
    if not done.problems:
        done.problems.append((1, "it declares no contract"))


class _Lines:
    """Where in its file each part of a declared contract stands; lines count from 1."""

    def __init__(self, path: str, home: str) -> None:
        self.start = 1
        self.broken: tuple[int, str] | None = None
        self._node: yaml.Node | None = None
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            lines = file.read().split("\n")
        if home == "metadata":
            self._find(lines, "metadata")
            self._into_metadata()
        else:
            self._find(lines, "contract")

    def _find(self, lines: list[str], key: str) -> None:
        """Compose only the lines of one top-level key: the others may be no YAML at all."""
        starts = [place for place, line in enumerate(lines) if _is_key(line, key)]
        if not starts:
            return
        end = starts[0] + 1
        while end < len(lines) and (not lines[end].strip() or (lines[end][0] in " \t#-" and lines[end][:3] != "---")):
            end += 1
        self.start = starts[0] + 1
        node = self._compose("\n".join(lines[starts[0] : end]))
        self._node = node.value[0][1] if isinstance(node, yaml.MappingNode) and node.value else None

    def _compose(self, text: str) -> yaml.Node | None:
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            return yaml.compose(text.replace("\t", "  "), Loader=loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            last = text.rstrip().count("\n")  # what isn't closed is only missed behind the end
            line = self.start + min(mark.line if mark is not None else 0, last)
            self.broken = (line, " ".join((error.problem or error.context or "no YAML").split()))
        except yaml.YAMLError as error:
            self.broken = (self.start, " ".join(str(error).split()))
        return None

    def _into_metadata(self) -> None:
        """``metadata.gstack-contract`` is YAML in a string, or the mapping itself."""
        node = _child(self._node, "gstack-contract")
        self._node = None
        if node is None:
            return
        key, value = node
        first = self.start + key.start_mark.line
        if isinstance(value, yaml.ScalarNode):
            # the text of a block scalar begins on the line after its key
            self.start = first + 1 if value.style in ("|", ">") else first
            self._node = self._compose(value.value)
        else:
            self._node = value

    def doubled(self) -> int | None:
        """The line of the first key that stands twice in one mapping."""
        mark = _doubled(self._node)
        return None if mark is None else self.start + mark

    def of(self, place: "Place") -> int:
        """The line of a part, or that of the nearest part round it."""
        line = self.start
        node = self._node
        for step in place:
            found = _child(node, step)
            if found is None:
                break
            line = self.start + found[0].start_mark.line
            node = found[1]
        return line


def _is_key(line: str, key: str) -> bool:
    bare = line.rstrip()
    return any(bare == f"{name}:" or bare.startswith(f"{name}: ") for name in (key, f'"{key}"', f"'{key}'"))


def _doubled(node: yaml.Node | None) -> int | None:
    """Where, in lines from the start, a mapping has a key for the second time."""
    if isinstance(node, yaml.SequenceNode):
        return next((at for at in map(_doubled, node.value) if at is not None), None)
    seen: set[str] = set()
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if str(key.value) in seen:
            return int(key.start_mark.line)
        seen.add(str(key.value))
        below = _doubled(value)
        if below is not None:
            return below
    return None


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The entry of a mapping (its key and value) or the element of a list (twice)."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None

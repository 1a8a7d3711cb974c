"""JSON as text with places: change a few members of a document and keep every other byte of it.

``json`` forgets white space, doubled keys and how a number was spelled, so a person's file can't go through it.
:func:`parse` reads strict JSON into nodes that know where they stand; :class:`Patch` collects changes and gives
the new text. Two rules make a change reversible without a note of what was there before:

* a child is added right behind the last one, a comma first, and taken away from that comma on;
* a container that stood empty gets its first child right behind its bracket, while one that we open has white
  space there (:func:`opened`). Whoever takes the last child away can so tell whether the container goes as well.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: How deep arrays and objects may be nested.
MAX_DEPTH = 100

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_WORD = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_BLANK = " \t\r\n"
_BOM = "\ufeff"


class JsonError(ValueError):
    """Not one strict JSON document; the message says where, ``offset`` is the place in characters."""

    def __init__(self, text: str, offset: int, what: str) -> None:
        line = text.count("\n", 0, offset) + 1
        column = offset - (text.rfind("\n", 0, offset) + 1) + 1
        super().__init__(f"line {line}, column {column}: {what}")
        self.offset = offset


@dataclass(eq=False, slots=True)
class Node:
    """One value: ``kind`` is ``object``, ``array`` or ``scalar``; it stands at ``text[start:end]``."""

    kind: str
    start: int
    end: int
    value: Any = None
    children: "list[Child]" = field(default_factory=list)

    def get(self, key: str) -> "Node | None":
        """The member that counts: the last one of that key."""
        for child in reversed(self.children):
            if child.key == key:
                return child.node
        return None

    def text_of(self, key: str) -> str | None:
        """The member ``key`` if it is a string."""
        node = self.get(key)
        return node.value if node is not None and isinstance(node.value, str) else None

    def plain(self) -> Any:
        """The value as ordinary Python data."""
        if self.kind == "object":
            return {child.key: child.node.plain() for child in self.children}
        if self.kind == "array":
            return [child.node.plain() for child in self.children]
        return self.value


@dataclass(eq=False, slots=True)
class Child:
    """A member of an object or an element of an array (``key`` is None), from ``start`` to ``end``."""

    key: str | None
    start: int
    node: Node

    @property
    def end(self) -> int:
        """Where the child ends: where its value ends."""
        return self.node.end


# ----------------------------------------------------------------------------------------------- reading


def parse(text: str) -> Node | None:
    """The document; None when ``text`` is nothing but white space (a byte-order mark is white space here).

    Raises JsonError for what strict JSON refuses: comments, trailing commas, NaN, raw control characters.
    """
    start = _skip(text, len(_BOM) if text.startswith(_BOM) else 0)
    if start == len(text):
        return None
    root = _value(text, start, 0)
    end = _skip(text, root.end)
    if end != len(text):
        raise JsonError(text, end, _odd(text, end, "the end of the file"))
    return root


def _skip(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    return match.end() if match else offset


def _value(text: str, start: int, depth: int) -> Node:
    opening = text[start : start + 1]
    if opening == "{":
        return _container(text, start, "object", "}", depth)
    if opening == "[":
        return _container(text, start, "array", "]", depth)
    match = _STRING.match(text, start) if opening == '"' else _WORD.match(text, start)
    if match is None:
        raise JsonError(text, start, _odd(text, start, "a value"))
    return Node("scalar", start, match.end(), _scalar(match.group()))


def _scalar(word: str) -> Any:
    # An integer of thousands of digits is valid JSON, but Python refuses to convert it.
    return float(word) if len(word) > 400 and word[0] in "-0123456789" else json.loads(word)


def _container(text: str, start: int, kind: str, closing: str, depth: int) -> Node:
    if depth >= MAX_DEPTH:
        raise JsonError(text, start, f"nested deeper than {MAX_DEPTH} levels")
    node = Node(kind, start, start)
    offset = _skip(text, start + 1)
    if text[offset : offset + 1] == closing:
        node.end = offset + 1
        return node
    while True:
        child = _member(text, offset, depth) if kind == "object" else _element(text, offset, depth)
        node.children.append(child)
        offset = _skip(text, child.end)
        sign = text[offset : offset + 1]
        if sign == closing:
            node.end = offset + 1
            return node
        if sign != ",":
            raise JsonError(text, offset, _odd(text, offset, f"a comma or {closing}"))
        comma, offset = offset, _skip(text, offset + 1)
        if text[offset : offset + 1] == closing:
            raise JsonError(text, comma, "a comma behind the last entry, which strict JSON doesn't allow")


def _element(text: str, start: int, depth: int) -> Child:
    return Child(None, start, _value(text, start, depth + 1))


def _member(text: str, start: int, depth: int) -> Child:
    match = _STRING.match(text, start)
    if match is None:
        raise JsonError(text, start, _odd(text, start, "a key in double quotes"))
    colon = _skip(text, match.end())
    if text[colon : colon + 1] != ":":
        raise JsonError(text, colon, _odd(text, colon, "a colon"))
    return Child(json.loads(match.group()), start, _value(text, _skip(text, colon + 1), depth + 1))


def _odd(text: str, offset: int, wanted: str) -> str:
    """What stands at ``offset`` instead of ``wanted``. Quotes nothing: the file may hold secrets."""
    if text.startswith(("//", "/*", "#"), offset):
        return "a comment, which strict JSON doesn't allow"
    if text.startswith('"', offset) and not _STRING.match(text, offset):
        return "a text in quotes that doesn't end, or holds a raw control character or a wrong escape"
    return f"the file ends where {wanted} should be" if offset >= len(text) else f"{wanted} should be here"


# ----------------------------------------------------------------------------------------------- writing


@dataclass(frozen=True, slots=True)
class Layout:
    """How a document is laid out: ``newline``, one step of indentation, whether it has several lines."""

    newline: str = "\n"
    unit: str = "  "
    lines: bool = True

    @classmethod
    def of(cls, text: str, root: Node | None) -> "Layout":
        """What ``text`` uses; two blanks and ``\\n`` where it doesn't show."""
        newline = "\r\n" if "\r\n" in text else "\n" if "\n" in text or "\r" not in text else "\r"
        if root is None or not root.children:
            return cls(newline)
        lines = newline in text[root.start : root.end]
        before = text[root.start + 1 : root.children[0].start]
        unit = before.rpartition(newline)[2] if newline in before else ""
        outer = _indent(text, root.start)
        return cls(newline, unit.removeprefix(outer) or "  ", lines)

    def render(self, key: str | None, value: Any, base: str | None) -> str:
        """``value`` (with its key) over several lines that start with ``base``; None: on one line.

        A container that holds something always has white space behind its bracket, see :func:`opened`.
        """
        body = json.dumps(value, indent=self.unit if base is not None else "", ensure_ascii=False)
        body = body.replace("\n", " " if base is None else self.newline + base)
        return body if key is None else json.dumps(key, ensure_ascii=False) + ": " + body


def _indent(text: str, offset: int) -> str:
    """The white space that the line of ``offset`` starts with."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    line = text[start:offset].lstrip(_BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def opened(text: str, box: Node) -> bool:
    """Whether ``box`` was opened together with its first child (see the top of this module)."""
    return bool(box.children) and text[box.start + 1] in _BLANK


class Patch:
    """Changes of one parsed document, applied together by :meth:`result`."""

    def __init__(self, text: str, root: Node) -> None:
        self.source = text
        self.root = root
        self.layout = Layout.of(text, root)
        self._drops: dict[Node, set[int]] = {}
        self._adds: dict[Node, list[tuple[str | None, Any]]] = {}
        self._values: dict[Node, Any] = {}

    def drop(self, box: Node, index: int) -> None:
        """Take the child number ``index`` out of ``box``."""
        self._drops.setdefault(box, set()).add(index)

    def add(self, box: Node, key: str | None, value: Any) -> None:
        """Put ``value`` behind the last child of ``box`` (``key`` is None in an array)."""
        self._adds.setdefault(box, []).append((key, value))

    def put(self, box: Node, key: str, value: Any) -> bool:
        """Make the member ``key`` be ``value``; False when it is that already."""
        node = box.get(key)
        if node is None:
            self.add(box, key, value)
        elif json.dumps(node.plain()) == json.dumps(value):
            return False
        else:
            self._values[node] = value
        return True

    def take(self, box: Node, key: str) -> bool:
        """Take every member ``key`` out of ``box``; False when there is none."""
        found = [index for index, child in enumerate(box.children) if child.key == key]
        for index in found:
            self.drop(box, index)
        return bool(found)

    def emptied(self, box: Node) -> bool:
        """Whether ``box`` holds something now and nothing after these changes."""
        return bool(box.children) and len(self._drops.get(box, ())) == len(box.children) and box not in self._adds

    def closes(self, box: Node) -> bool:
        """Whether ``box`` goes as well: these changes empty it, and it was opened for its first child."""
        return self.emptied(box) and opened(self.source, box)

    def drop_closed(self, box: Node) -> None:
        """Take the members that go as well out of ``box``, unless a hidden one of the same key would then count."""
        keys = [child.key for child in box.children]
        for index, child in enumerate(box.children):
            if self.closes(child.node) and keys.count(child.key) == 1:
                self.drop(box, index)

    def result(self) -> str:
        """The changed text."""
        parts, place = [], 0
        for start, end, new in sorted(self._edits(self.root), key=lambda edit: edit[:2]):
            parts += [self.source[place:start], new]
            place = end
        return "".join(parts) + self.source[place:]

    def _edits(self, node: Node) -> Iterator[tuple[int, int, str]]:
        if node in self._values:
            yield node.start, node.end, json.dumps(self._values[node], ensure_ascii=False)
            return
        drops = self._drops.get(node, set())
        yield from self._removals(node, drops)
        yield from self._additions(node, drops)
        for index, child in enumerate(node.children):
            if index not in drops:
                yield from self._edits(child.node)

    def _removals(self, box: Node, drops: set[int]) -> Iterator[tuple[int, int, str]]:
        """A child goes from the comma before it on; the first ones go up to the one that is then the first."""
        kept = [index for index in range(len(box.children)) if index not in drops]
        if not kept:
            return
        if kept[0]:
            yield box.children[0].start, box.children[kept[0]].start, ""
        for index in drops:
            if index > kept[0]:
                comma = self.source.index(",", box.children[index - 1].end)
                yield comma, box.children[index].end, ""

    def _additions(self, box: Node, drops: set[int]) -> Iterator[tuple[int, int, str]]:
        separator, base = self._style(box)
        new = [self.layout.render(key, value, base) for key, value in self._adds.get(box, ())]
        if len(drops) < len(box.children):
            if new:
                yield box.children[-1].end, box.children[-1].end, "".join(separator + text for text in new)
        elif box.children:
            yield box.children[0].start, box.children[-1].end, separator.join(new)
        elif new:
            yield box.start + 1, box.start + 1, separator.join(new)

    def _style(self, box: Node) -> tuple[str, str | None]:
        """The separator before a new child of ``box``, and how its further lines start (None: one line)."""
        text, children = self.source, box.children
        inner = _indent(text, box.start) if self.layout.lines else None
        beside = ", " if self.layout.lines else ","
        if not children:
            return beside, inner
        if len(children) > 1:
            gap = text[children[-2].end : children[-1].start]
        else:
            gap = "," + (text[box.start + 1 : children[0].start] or beside[1:])
        space = gap.partition(",")[2]
        if re.search(r"[\r\n]", gap) and not re.search(r"[\r\n]", space):  # the comma stands first in its line
            space = self.layout.newline + _indent(text, children[-1].start)
        tail = re.split(r"[\r\n]", space)
        if len(tail) > 1:
            return "," + space, tail[-1]
        several = self.layout.newline in text[children[-1].start : children[-1].end]
        return "," + space, inner if several else None


def new_document(value: Any, blank: str | None) -> str:
    """The text of a file that holds ``value``: of a new file (``blank`` is None), or behind that white space.

    :func:`without_document` finds out from the text which of the two it was.
    """
    layout = Layout.of(blank or "", None)
    return (blank or "") + layout.render(None, value, "") + ("\n" if blank is None else "")


def without_document(text: str, root: Node) -> str | None:
    """What was there before :func:`new_document`: nothing (None: no file), or white space."""
    rest = text[: root.start] + text[root.end :]
    return None if rest == "\n" and root.start == 0 else rest

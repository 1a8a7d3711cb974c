"""The head of a ``SKILL.md``: found and read as leniently as people write it (routing R1).

The whole head is one YAML mapping, and then one pass suffices. Where YAML refuses it, each key of ours is read from its
own lines, so that a bad line elsewhere costs nothing; what even so isn't YAML is read as the text that it looks like.

Cold, but the hook's slow road imports it: nothing beyond ``re`` at import time, PyYAML in the function that needs it.
"""

import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    _Dict = dict[str, Any]
else:
    _Dict = dict

#: The keys that gstack reads; only these are rescued from a head that isn't YAML.
KEYS = ("name", "description", "triggers", "routing", "contract", "metadata", "disable-model-invocation")
#: How much of a file may be its head, in bytes (routing R1).
HEAD_LIMIT = 256 * 1024

_OPEN = re.compile(r"\s*---[ \t]*(?:\n|\Z)")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
# Most heads need none of these: each is compiled when it is used, since that costs a hook that came here as much as
# reading some files.

#: A line that starts a top-level key: quoted, or a word (with inner colons, as in ``plugin:name:``).
_KEY = (
    r"""(?:"(?P<double>[^"\n]+)"|'(?P<single>[^'\n]+)'|(?P<plain>[^\s#"'\[\]{},&*!|>%@`?:-]\S*?))[ \t]*:(?=[ \t]|$)"""
)
#: Characters that YAML forbids everywhere.
_FORBIDDEN = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff\ud800-\udfff]"
#: What may be an alias, an anchor or a tag; only then are the parser's events looked at.
_RISKY = r"(?m)(?:^|[\s\[{,:?-])(?:[*&][\w-]|!)"
_ITEM = r"\s*-[ \t]+(\S.*?)[ \t]*$"
#: Numbers longer than this stay text: YAML 1.1 multiplies a chain of base-60 digits out, which takes seconds.
_NUMBER_LIMIT = 40
#: Values nested deeper than this are refused.
_DEPTH_LIMIT = 60


class SkillSkipped(Exception):
    """A skill that can't be read; ``reason`` says why, in one line."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unreadable(Exception):
    """YAML that can't be parsed, or that holds what we refuse; ``line`` counts from 0, None where it isn't known."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.line = line

    def at(self, first: int = 1) -> str:
        """What is wrong, on one line, and where; ``first`` is the number of the text's first line."""
        return self.what if self.line is None else f"line {self.line + first}: {self.what}"


class Refused(Unreadable):
    """YAML that could be parsed, but holds an alias or a tag."""


class DateText(str):
    """A plain YAML date as it was written: text, but no trigger."""


class Doubled(_Dict):
    """A mapping in which a key stands twice, as YAML forbids: the last one counts.

    ``key`` is the first such, ``line`` where it stands for the second time, from 0.
    """

    key = ""
    line = 0


def doubled(value: "Any") -> "Iterator[Doubled]":
    """Every mapping in ``value``, as :func:`load` gave it, in which a key stands twice."""
    if isinstance(value, Doubled):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from doubled(item)


def doubled_key(value: "Any") -> str | None:
    """The first key in ``value``, as :func:`load` gave it, that stands twice in one mapping."""
    return next((found.key for found in doubled(value)), None)


class Head:
    """The head of a document.

    ``values`` are the top-level keys (all of them, or only those asked for when YAML refused the whole); ``problems``
    says for each key of ours that couldn't be read as YAML what was wrong; ``body`` is what follows the head; ``text``
    is the head as written, where it stands between fences and was read as a whole (else None).
    """

    __slots__ = ("body", "problems", "text", "values")

    def __init__(self, values: "dict[str, Any]", problems: dict[str, str], body: str, text: str | None = None) -> None:
        self.values = values
        self.problems = problems
        self.body = body
        self.text = text


def frontmatter(data: bytes) -> "dict[str, Any]":
    """The head of a ``SKILL.md`` as plain data (str, list, dict, int, float, None); empty when it has none.

    Booleans and dates stay the words as written. Raises SkillSkipped for what isn't UTF-8 text.
    """
    return {key: plain(value) for key, value in read_head(data).values.items()}


def read_head(data: bytes, keys: "Collection[str]" = KEYS) -> Head:
    """Find and read the head of a document. Raises SkillSkipped for what isn't UTF-8 text."""
    text = _decode(data)
    opened = _OPEN.match(text)
    if opened is None:
        return Head({}, {}, text)
    rest = text[opened.end() :]
    parts = _fenced(rest)
    if parts is not None:
        head, body = parts
    else:
        cut = rest if len(rest) <= HEAD_LIMIT else rest[:HEAD_LIMIT].rpartition("\n")[0]
        start = _prose(cut, heading=True)
        head, body = rest[:start], rest[start:]
    try:
        return Head(_mapping(load(head)), {}, body, None if parts is None else head)
    except Unreadable:
        first = text.count("\n", 0, opened.end()) + 1
        values, problems = read_blocks(head, keys, rescue=True, first=first)
    start = _prose(head)
    if start < len(head) and not any(key in keys for key, _, _ in _blocks(head[start:])):
        body = rest[start:]  # the fence was a rule of the body, below a head that nobody closed
    return Head(values, problems, body)


def fenced(data: bytes) -> tuple[str, str] | None:
    """The head and the body of a document, where the head stands between fences; nothing is parsed.

    Raises SkillSkipped for what isn't UTF-8 text.
    """
    text = _decode(data)
    opened = _OPEN.match(text)
    return None if opened is None else _fenced(text[opened.end() :])


def _fenced(rest: str) -> tuple[str, str] | None:
    fence = _CLOSE.search(rest, 0, HEAD_LIMIT)
    return None if fence is None else (rest[: fence.start()], rest[fence.end() :])


def _decode(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4]:
        raise SkillSkipped("isn't UTF-8 text (it looks like UTF-16): save it as UTF-8")
    text = data.decode("utf-8", "replace")
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def _mapping(value: "Any") -> "dict[str, Any]":
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable("is no mapping of keys to values")
    named = {str(key): item for key, item in value.items()}
    if not isinstance(value, Doubled):
        return named
    made = Doubled(named)
    made.key, made.line = value.key, value.line
    return made


# ---------------------------------------------------------------------------------------------- key by key


def read_blocks(
    text: str, keys: "Collection[str] | None" = None, *, rescue: bool = False, first: int = 1
) -> "tuple[dict[str, Any], dict[str, str]]":
    """Each top-level key read from its own lines: the values, and what was wrong with each that isn't YAML.

    ``keys`` are those wanted (None: all); ``rescue`` takes what isn't YAML as the text that a person reads there;
    ``first`` is the number of the first line, for the messages. The first of two equal keys counts.
    """
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for key, block, line in _blocks(text):
        if key in values or key in problems or (keys is not None and key not in keys):
            continue
        try:
            values[key] = next(iter(_mapping(load(block)).values()), None)
        except Unreadable as error:
            problems[key] = error.at(first + line)
            rescued = _rescue(key, block, refused=isinstance(error, Refused)) if rescue else None
            if rescued is not None:
                values[key] = rescued
    return values, problems


def _blocks(text: str) -> list[tuple[str, str, int]]:
    """The lines of each top-level key, and how many come before. Unindented text that is no key belongs to none."""
    found: list[tuple[str, list[str], int]] = []
    for number, (_, line, kind) in enumerate(_scan(text)):
        match = re.match(_KEY, line) if kind == "key" else None
        if match is not None:
            found.append((match["double"] or match["single"] or match["plain"], [line], number))
        elif kind == "more" and found:
            found[-1][1].append(line)
    return [(key, "\n".join(lines), number) for key, lines, number in found]


def _prose(text: str, *, heading: bool = False) -> int:
    """Where the first line starts that can't belong to a mapping (its end: there is none).

    With ``heading``, a comment below an empty line is taken for a Markdown heading.
    """
    before = "-"
    for place, line, kind in _scan(text):
        if kind == "prose" or (heading and not before.strip() and line.startswith("#")):
            return place
        before = line
    return len(text)


def _scan(text: str) -> "Iterator[tuple[int, str, str]]":
    """Each line with its place and what it is: ``key``, ``more`` (of the key above) or ``prose``."""
    place = 0
    inside = False
    items = "no"  # whether unindented list items may follow: no, maybe (nothing came yet), yes
    for line in text.split("\n"):
        kind = "more" if inside else "none"
        match = re.match(_KEY, line)
        if match is not None:
            kind, inside = "key", True
            rest = line[match.end() :].strip()
            items = "no" if rest and rest[0] != "#" else "maybe"
        elif line == "-" or line.startswith("- "):
            if items == "no":
                kind, inside = "prose", False
            else:
                items = "yes"
        elif line[:1] in (" ", "\t") and line.strip():
            items = "no" if items == "maybe" else items
        elif line and line[0] not in "#]} \t":
            kind, inside, items = "prose", False, "no"
        yield place, line, kind
        place += len(line) + 1


def _rescue(key: str, block: str, *, refused: bool) -> "Any":
    """What a person reads in lines that aren't YAML; None when that is nothing."""
    if key == "contract":
        return block.rstrip()  # it is declared, so it must be reported as invalid, not lost
    if key == "metadata":
        inner = _dedented(block)
        return read_blocks(inner, [k for k, _, _ in _blocks(inner) if k.startswith("gstack-")], rescue=True)[0] or None
    first, *more = block.split("\n")
    inline = first[first.index(":", len(key)) + 1 :].strip()
    more = [line.strip() for line in more if line.strip() and not line.lstrip().startswith("#")]
    if key == "triggers":
        return _rescue_triggers(inline, block)
    if refused:
        return None
    if inline[:1] in ("|", ">"):
        inline = ""
    text = _unquoted(" ".join([inline, *more]).strip())
    return text or None


def _rescue_triggers(inline: str, block: str) -> "list[Any]":
    if inline.startswith("["):
        items = block[block.index("[") + 1 :].rsplit("]", 1)[0].split(",")
    elif inline and inline[0] not in "|>#":
        items = [inline]
    else:
        items = [match[1] for match in [re.match(_ITEM, line) for line in block.split("\n")] if match]
    out: list[Any] = []
    for item in filter(None, map(str.strip, items)):
        try:
            out.append(load(item))
        except Refused:
            continue
        except Unreadable:
            out.append(_unquoted(item))
    return out


def _dedented(block: str) -> str:
    lines = block.split("\n")[1:]
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    width = min(indents, default=0)
    return "\n".join(line[width:] for line in lines)


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


# -------------------------------------------------------------------------------------------------- yaml


def load(text: str) -> "Any":
    """One YAML document: str, int, float, None, lists and dicts; dates as :class:`DateText`. Raises Unreadable.

    No aliases, no explicit tags, no merge keys; booleans stay words. Tabs count as two (or four) spaces.
    """
    if not text.replace("\n", " ").replace("\t", " ").isprintable():  # what is forbidden isn't printable
        text = re.sub(_FORBIDDEN, "\ufffd", text)
    try:
        return _load(text)
    except Unreadable:
        if "\t" not in text:
            raise
    try:
        return _load(_untabbed(text, 2))
    except Unreadable:
        return _load(_untabbed(text, 4))


def _untabbed(text: str, size: int) -> str:
    lines = []
    for line in text.split("\n"):
        body = line.lstrip(" \t")
        indent = line[: len(line) - len(body)].expandtabs(size)
        lines.append(indent + re.sub(r"([:-])\t+", r"\1 ", body, count=1))
    return "\n".join(lines)


def _load(text: str) -> "Any":
    import yaml

    loader = _loader()
    try:
        risky = any(sign in text for sign in "*&!") and re.search(_RISKY, text) is not None
        if risky or _may_be_deep(text):
            _refuse_risky(yaml.parse(text, Loader=loader))
        value = yaml.load(text, Loader=loader)  # noqa: S506 - a SafeLoader, with less
        _measure(value, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = (error.problem or error.context or "no YAML").replace("\n", " ")
        raise Unreadable(what, None if mark is None else mark.line) from None
    except (yaml.YAMLError, ValueError, ArithmeticError, TypeError, RecursionError) as error:
        raise Unreadable(" ".join(str(error).split())[:200] or type(error).__name__) from None
    return value


def _may_be_deep(text: str) -> bool:
    """Whether the text could be nested too deep: building nodes of it would then end the process in C (PyYAML up to
    6.0.3), before any depth is measured."""
    openers = sum(text.count(sign) for sign in ("[", "{", "- ", "? ", "-\t", "?\t"))
    return openers > _DEPTH_LIMIT or "\n" + " " * _DEPTH_LIMIT in text


def _refuse_risky(events: "Iterator[Any]") -> None:
    import yaml

    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH_LIMIT + 1:
            raise Unreadable(f"is nested deeper than {_DEPTH_LIMIT} levels")
        alias = isinstance(event, yaml.AliasEvent)
        if alias or getattr(event, "tag", None):
            raise Refused(f"{'aliases (*name)' if alias else 'tags (!name)'} are refused", event.start_mark.line)


def _measure(value: "Any", depth: int) -> None:
    if depth > _DEPTH_LIMIT:
        raise Unreadable(f"is nested deeper than {_DEPTH_LIMIT} levels")
    if isinstance(value, dict):
        for item in value.values():
            _measure(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _measure(item, depth + 1)


@lru_cache(maxsize=1)
def _loader() -> "Any":
    """A safe loader without the rules that turn words into something else (made once, when YAML is first needed)."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc,unused-ignore]
        def number(self, node: "Any") -> "Any":
            if len(node.value) > _NUMBER_LIMIT:
                return node.value
            kind = "int" if node.tag.endswith(":int") else "float"
            return getattr(self, f"construct_yaml_{kind}")(node)

        def date(self, node: "Any") -> DateText:
            return DateText(node.value)

        def mapping(self, node: "Any") -> "Any":
            values = self.construct_mapping(node, deep=True)
            if len(values) == len(node.value):
                return values
            made = Doubled(values)
            seen: set[str] = set()
            for key, _ in node.value:
                if str(key.value) in seen:
                    made.key, made.line = str(key.value), key.start_mark.line
                    break
                seen.add(str(key.value))
            return made

    dropped = {f"tag:yaml.org,2002:{name}" for name in ("bool", "merge", "value")}
    Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if pair[0] not in dropped]
        for first, pairs in base.yaml_implicit_resolvers.items()
    }
    Loader.add_constructor("tag:yaml.org,2002:int", Loader.number)
    Loader.add_constructor("tag:yaml.org,2002:float", Loader.number)
    Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.date)
    Loader.add_constructor("tag:yaml.org,2002:map", Loader.mapping)
    return Loader


def plain(value: "Any") -> "Any":
    """``value`` as data that JSON and ``marshal`` can hold: str, int, finite float, None, list, dict with str keys."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or type(value) in (str, int):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return str(value)

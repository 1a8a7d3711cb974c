"""A declared contract: checked as a whole, then compiled into items (contracts C1).

Hot: the stop hook compiles the contract of the skill that was loaded, so builtins only; ``re`` is imported when an
item has an expression. Never half applied: one problem anywhere makes the whole contract invalid.
"""

from gstack.api import Item, Value
from gstack.lowlevel import dump_json, join, parent, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from gstack.api import Field
    from gstack.protocols import ContractKind

    #: Where in the declared data something stands: keys and list positions from the contract on.
    Place = tuple[str | int, ...]
    KindHint = Callable[[str], str]

#: The one version of the declaration that this gstack knows.
VERSION = 1
#: How many items a contract may have.
MAX_ITEMS = 20

_ID_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
_OWN_FIELDS = ("id", "kind", "fix", "summary")
_TRUE = ("true", "yes", "on")
_FALSE = ("false", "no", "off")


class Contract(Value):
    """A valid contract: its ``items`` in order, its schema ``version``, and a ``digest`` (hexadecimal) of what was
    declared, which tells whether it changed since a run was judged."""

    __slots__ = ("digest", "items", "version")

    def __init__(self, items: "tuple[Item, ...]", version: int, digest: str) -> None:
        self.items = items
        self.version = version
        self.digest = digest


class Problem(Value):
    """One fault of a declaration: its ``place`` in the data, and ``text``, which names the item and says what to do."""

    __slots__ = ("place", "text")

    def __init__(self, place: "Place", text: str) -> None:
        self.place = place
        self.text = text


def parse_contract(
    raw: "Any",
    kinds: "Mapping[str, ContractKind]",
    *,
    source: str,
    kind_hint: "KindHint | None" = None,
    note: str = "",
) -> Contract:
    """Compile a declared contract.

    ``raw`` is the plain data of the declaration, ``source`` the file that it stands in, ``kind_hint`` says for a
    kind that ``kinds`` lacks how to get it, ``note`` what the reader of the file found wrong with it. Raises
    NoContract, whose message says where the mistake is and what it is.
    """
    problems = find_problems(raw, kinds, kind_hint=kind_hint)
    if note and not isinstance(raw, dict):
        problems = [Problem((), f"contract: it can't be read as YAML: {note}")]
    if problems:
        from gstack.errors import NoContract

        more = f" (and {len(problems) - 1} more: see gstack contract lint)" if len(problems) > 1 else ""
        raise NoContract(f"{source}: {problems[0].text}{more}")
    items = tuple([_item(entry, kinds[entry["kind"]]) for entry in raw["items"]])
    return Contract(items, VERSION, sha256(dump_json(_ordered(raw)).encode("ascii")))


#: What ``sources`` calls the overlay of a trusted project.
PROJECT_OVERLAY = ".gstack/skills.yaml"


def declared_in(path: str, sources: "Mapping[str, str]", root: str, overlay: "str | None" = None) -> str:
    """The file that a skill's contract stands in: its ``SKILL.md`` (``path``), the file beside it, or an overlay.

    ``sources`` is that of :class:`gstack.api.Skill`, ``root`` the state folder, ``overlay`` the file of the trusted
    project that the session is in.
    """
    home = sources.get("contract", "")
    if home == "gstack.yaml":
        return join(parent(path), home)
    if home == PROJECT_OVERLAY:
        return overlay or home
    return join(root, home) if home == "skills.yaml" else path


def reading_note(sources: "Mapping[str, str]") -> str:
    """What was wrong with the lines of a contract when its file was read; ``""`` when nothing was."""
    for key, text in sources.items():
        if key.startswith("problem:") and key.endswith("contract"):
            return text
    return ""


def kind_names(raw: "Any") -> "list[str]":
    """The kinds that a declaration's items name, whatever else is wrong with it."""
    return _values(raw, "kind")


def item_ids(raw: "Any") -> "list[str]":
    """The ids of a declaration's items, whatever else is wrong with it."""
    return _values(raw, "id")


def _values(raw: "Any", key: str) -> "list[str]":
    items = raw.get("items") if isinstance(raw, dict) else None
    found = [entry.get(key) for entry in items if isinstance(entry, dict)] if isinstance(items, list) else []
    return [value for value in found if isinstance(value, str)]


def find_problems(
    raw: "Any", kinds: "Mapping[str, ContractKind]", *, kind_hint: "KindHint | None" = None
) -> "list[Problem]":
    """Everything that is wrong with a declaration, in its order; empty when it is valid."""
    if not isinstance(raw, dict):
        return [Problem((), f"contract: it must be a mapping with version and items, not {_what(raw)}")]
    found = [
        Problem((key,), f"contract: unknown field {_show(key)} (it takes version and items)")
        for key in raw
        if key not in ("version", "items")
    ]
    version = raw.get("version")
    if version is None:
        found.append(Problem((), f"contract: version is missing: add version: {VERSION}"))
    elif type(version) is not int or version != VERSION:
        found.append(
            Problem(("version",), f"contract: version {_show(version)} is not supported (this gstack knows {VERSION})")
        )
        return found  # what the rest means is for that version to say
    items = raw.get("items")
    if not isinstance(items, list) or not items:
        found.append(Problem(("items",) if "items" in raw else (), "contract: items must be a list of 1 to 20 items"))
        return found
    if len(items) > MAX_ITEMS:
        found.append(Problem(("items",), f"contract: {len(items)} items, but at most {MAX_ITEMS} are allowed"))
    seen: set[str] = set()
    for place, entry in enumerate(items):
        found.extend(_item_problems(entry, ("items", place), kinds, kind_hint, seen))
    return found


def _item_problems(
    entry: "Any", place: "Place", kinds: "Mapping[str, ContractKind]", hint: "KindHint | None", seen: "set[str]"
) -> "Iterator[Problem]":
    number = int(place[-1]) + 1
    if not isinstance(entry, dict):
        yield Problem(place, f"contract item {number}: it must be a mapping with id and kind, not {_what(entry)}")
        return
    ident = entry.get("id")
    name = f'contract item "{ident}"' if isinstance(ident, str) and ident else f"contract item {number}"
    if not isinstance(ident, str) or not ident or not _ID_LETTERS.issuperset(ident):
        yield Problem(
            (*place, "id") if "id" in entry else place,
            f"{name}: id must be lower-case letters, digits, '.', '_' or '-'"
            + (f", not {_show(ident)}" if "id" in entry else " (it is missing)"),
        )
    elif ident in seen:
        yield Problem((*place, "id"), f"{name}: another item has this id; ids are unique")
    else:
        seen.add(ident)
    for key in ("fix", "summary"):
        if key in entry and not _is_text(entry[key]):
            yield Problem((*place, key), f"{name}: {key} must be a text, not {_what(entry[key])}")
    kind = entry.get("kind")
    if not isinstance(kind, str) or not kind:
        yield Problem((*place, "kind") if "kind" in entry else place, f"{name}: kind is missing")
    elif kind not in kinds:
        how = hint(kind) if hint else "gstack plugins list shows what is installed"
        yield Problem((*place, "kind"), f'{name}: unknown kind "{kind}": {how}')
    else:
        yield from _field_problems(entry, place, f"{name} ({kind})", kinds[kind])


def _field_problems(entry: "dict[str, Any]", place: "Place", name: str, kind: "ContractKind") -> "Iterator[Problem]":
    try:
        fields = _fields(kind)
    except (Exception, SystemExit) as error:
        yield Problem((*place, "kind"), f"{name}: the kind can't say which fields it takes ({type(error).__name__})")
        return
    for key in entry:
        if key not in fields and key not in _OWN_FIELDS:
            takes = f"it takes {', '.join(fields)}" if fields else "it takes none"
            yield Problem((*place, key), f"{name}: unknown field {_show(key)} ({takes})")
    for field in fields.values():
        if field.name not in entry:
            if field.required:
                yield Problem(place, f"{name}: {field.name} is missing (it must be {_WANTED[field.type]})")
            continue
        try:
            _convert(field, entry[field.name])
        except ValueError as error:
            yield Problem((*place, field.name), f"{name}: {field.name} {error}")


def _fields(kind: "ContractKind") -> "dict[str, Field]":
    return {field.name: field for field in kind.fields if field.name not in _OWN_FIELDS and field.type in _WANTED}


def _item(entry: "dict[str, Any]", kind: "ContractKind") -> Item:
    values = {}
    for name, field in _fields(kind).items():
        value = _convert(field, entry[name]) if name in entry else field.default
        if value is not None:
            values[name] = value
    return Item(entry["id"], entry["kind"], values, fix=entry.get("fix"), summary=entry.get("summary"))


_WANTED = {
    "text": "a text",
    "texts": "a list of texts",
    "flag": "true or false",
    "number": "a number",
    "regex": "a regular expression",
}


def _convert(field: "Field", value: "Any") -> "Any":
    """The value as its field's type wants it. Raises ValueError with what comes after the field's name."""
    wrong = ValueError(f"must be {_WANTED[field.type]}, not {_what(value)}")
    if field.type == "flag":
        if isinstance(value, bool):
            return value
        word = value.lower() if isinstance(value, str) else ""
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise wrong
    if field.type == "number":
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong
        return value
    if field.type == "texts":
        if not isinstance(value, list) or not value or not all(_is_text(one) for one in value):
            odd = [one for one in value if not _is_text(one)] if isinstance(value, list) else []
            raise ValueError(f"must be a list of texts, but holds {_what(odd[0])}") if odd else wrong
        return list(value)
    if not _is_text(value):
        raise wrong
    if field.type == "regex":
        _compile(value)
    return value


def _compile(expression: str) -> None:
    import re

    try:
        re.compile(expression)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        raise ValueError(f"is no regular expression: {' '.join(str(error).split())} in {_show(expression)}") from None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _what(value: object) -> str:
    """What a wrong value is, for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value} (quote it to make it a text)"
    if isinstance(value, str):
        return f"the text {_show(value)}" if value.strip() else "an empty text"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "a mapping" if isinstance(value, dict) else "something else"


def _show(value: object) -> str:
    """A value as it may stand in a message: one line, not too long."""
    text = " ".join(str(value).split())
    return f'"{text[:60]}..."' if len(text) > 63 else f'"{text}"'


def _ordered(value: "Any") -> "Any":
    """Plain data with its keys in order, so that the same declaration always has the same digest."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value, key=str)}
    return [_ordered(one) for one in value] if isinstance(value, list) else value

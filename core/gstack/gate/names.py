"""How an invoked name is mapped back to the catalogue (gate G2).

Hot: imported by the hook on every use of a skill, so builtins only. The same functions serve the command line, the
index compiler and replays: ``source`` is anything that has the five lookups of :class:`gstack.gate.index.Index`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol

    from gstack.api import Invocation

    #: ``(name, version, kind, digest, rules, drift rules, entry order)``; kind is None for a name that has no entry.
    Candidate = tuple[Any, ...]

    class Source(Protocol):
        """What names are looked up in."""

        def entries(self, name: str) -> "list[Candidate]":
            """The entries of this full name (more than one when names differ by case only)."""

        def bare(self, last: str) -> "list[Candidate]":
            """The entries whose last segment this is."""

        def plugin(self, prefix: str, last: str) -> "list[Candidate]":
            """The entries of this plugin with this last segment."""

        def managed(self, name: str) -> bool:
            """Whether this namespace is a managed one."""

        def unknown(self, name: str) -> "Candidate":
            """What holds for a name without an entry: policies that reach it, and the default."""


#: Names in this namespace are always allowed: the onboarding skill lives there (gate G1).
RESERVED = "skillsvault"

#: Which kinds of entry an invocation of a kind can mean (gate G2).
FITS = {
    "skill": ("skill", "command"),
    "command": ("skill", "command"),
    "subagent": ("subagent",),
    "any": ("skill", "command", "subagent"),
}


def normal(name: str) -> str:
    """``name`` without case, leading slash, and whatever follows the first white space; empty when nothing is left."""
    words = name.strip().lstrip("/").split(None, 1)
    return words[0].strip("/").lower() if words else ""


def entry_kind(kind: object) -> str:
    """The kind of a catalogue entry, ``skill`` where it says none or something that is no kind of its own."""
    word = kind.strip().lower() if isinstance(kind, str) else ""
    if word in ("subagent", "agent"):
        return "subagent"
    return word if word == "command" else "skill"


def namespace(name: str) -> str:
    """The first segment of a normalised name, in any of its forms (``acme`` for ``acme/deploy`` and
    ``acme:deploy``)."""
    cut = name.find("/")
    colon = name.find(":")
    if colon >= 0 and (cut < 0 or colon < cut):
        cut = colon
    return name if cut < 0 else name[:cut]


def last_segment(name: str) -> str:
    """What a host invokes an installed entry by: the part after the last slash or colon."""
    return name[max(name.rfind("/"), name.rfind(":")) + 1 :]


def meanings(source: "Source", invocation: "Invocation") -> "list[Candidate]":
    """Everything that the invoked name and the other names of the same installed thing can mean; empty without a name.

    A name that the organisation knows nothing of counts only when no other name says more.
    """
    if not invocation.aliases:
        plain = normal(invocation.name)
        return candidates(source, plain, invocation.kind) if plain else []
    found: list[Candidate] = []
    names: list[str] = []
    for name in (invocation.name, *invocation.aliases):
        plain = normal(name)
        if plain and plain not in names:
            names.append(plain)
            found += [one for one in candidates(source, plain, invocation.kind) if one not in found]
    if len(found) < 2:
        return found
    return [one for one in found if one[2] is not None or one[4][0][3] != "default:unmanaged"] or found[:1]


def candidates(source: "Source", name: str, kind: str) -> "list[Candidate]":
    """Everything that a normalised name can mean for an invocation of ``kind``; never empty.

    A name that means no entry gives one candidate whose kind is None, with the rules that reach unregistered names.
    """
    fits = FITS[kind]
    head, colon, rest = name.partition(":")
    if not colon:
        found = source.entries(name) if "/" in name else source.bare(name)
        return _fitting(found, fits) or [source.unknown(name)]
    last = last_segment(rest)
    if "/" in head or not head or not last:
        return _fitting(source.bare(last), fits) or [source.unknown(last or name)]
    if head == RESERVED or source.managed(head):
        full = head + "/" + rest.replace(":", "/")
        found = source.entries(full)
        if last != rest:
            found = found + source.entries(head + "/" + last)
        return _fitting(found, fits) or [source.unknown(full)]
    return _fitting(source.plugin(head, last), fits) or [source.unknown(name)]


def _fitting(found: "Iterable[Candidate]", fits: "tuple[str, ...]") -> "list[Candidate]":
    return [one for one in found if one[2] in fits]


def glob_match(pattern: str, text: str) -> bool:
    """Whether a glob covers the whole ``text``: ``*`` any characters (slashes too), ``?`` one, ``[a-z]`` or ``[!a-z]``.

    Linear in practice and never worse than the product of the lengths: no expression can hold the hook.
    """
    at, place, star, mark = 0, 0, -1, 0
    while at < len(text):
        step = _one(pattern, place, text[at]) if place < len(pattern) else 0
        if step < 0:
            star, mark = place, at
            place += 1
        elif step > 0:
            place += step
            at += 1
        elif star >= 0:
            mark += 1
            at, place = mark, star + 1
        else:
            return False
    while place < len(pattern) and pattern[place] == "*":
        place += 1
    return place == len(pattern)


def _one(pattern: str, place: int, char: str) -> int:
    """How many characters of the pattern match ``char`` at ``place``: 0 none, -1 for a star."""
    what = pattern[place]
    if what == "*":
        return -1
    if what == "?":
        return 1
    if what == "[":
        end = pattern.find("]", place + 2 + (pattern[place + 1 : place + 2] in ("!", "^")))
        if end > 0:
            return end - place + 1 if _in_set(pattern[place + 1 : end], char) else 0
    return 1 if what == char else 0


def _in_set(chars: str, char: str) -> bool:
    negate = chars[:1] in ("!", "^")
    chars = chars[1:] if negate else chars
    found, at = False, 0
    while at < len(chars):
        if chars[at + 1 : at + 2] == "-" and at + 2 < len(chars):
            found = found or chars[at] <= char <= chars[at + 2]
            at += 3
        else:
            found = found or chars[at] == char
            at += 1
    return found is not negate

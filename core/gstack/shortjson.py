"""Reads the short, plain JSON documents that most hooks are given: a payload, a session's record.

Hot, and hand-written because loading the C half of ``json`` (a shared library) costs a hook more than everything that
it then reads: 0.04 of a Python start (docs/performance.md). Anything out of the ordinary (a number that isn't a short
integer, a ``\\u`` escape, a mistake) is refused, and :mod:`gstack.lowlevel` asks ``json``'s own code, which decides.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SPACE = " \t\r\n"
_WORDS: "dict[str, tuple[str, Any]]" = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_ESCAPES = (('\\"', '"'), ("\\n", "\n"), ("\\t", "\t"), ("\\/", "/"), ("\\r", "\r"), ("\\b", "\b"), ("\\f", "\f"))


def read_short(text: str, at: int) -> "tuple[Any, int]":
    """The JSON value that starts at ``at``, and where it ends. Raises ValueError or IndexError for what is refused."""
    char = text[at]
    if char == '"':
        return _string(text, at + 1)
    if char == "{":
        return _object(text, at + 1)
    if char == "[":
        return _array(text, at + 1)
    if char in _WORDS:
        word, value = _WORDS[char]
        if not text.startswith(word, at):
            raise ValueError
        return value, at + len(word)
    return _integer(text, at)


def _past_space(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _object(text: str, at: int) -> "tuple[dict[str, Any], int]":
    found: dict[str, Any] = {}
    at = _past_space(text, at)
    if text[at] == "}":
        return found, at + 1
    while text[at] == '"':
        key, at = _string(text, at + 1)
        if text[at] != ":":
            at = _past_space(text, at)
            if text[at] != ":":
                break
        at = _past_space(text, at + 1)
        found[key], at = _string(text, at + 1) if text[at] == '"' else read_short(text, at)
        at = _past_space(text, at)
        if text[at] == "}":
            return found, at + 1
        if text[at] != ",":
            break
        at = _past_space(text, at + 1)
    raise ValueError


def _array(text: str, at: int) -> "tuple[list[Any], int]":
    found: list[Any] = []
    at = _past_space(text, at)
    if text[at] == "]":
        return found, at + 1
    while True:
        value, at = read_short(text, at)
        found.append(value)
        at = _past_space(text, at)
        if text[at] == "]":
            return found, at + 1
        if text[at] != ",":
            raise ValueError
        at = _past_space(text, at + 1)


def _string(text: str, at: int) -> "tuple[str, int]":
    end = text.index('"', at)
    while text[end - 1] == "\\" and _escaped(text, at, end):
        end = text.index('"', end + 1)
    found = text[at:end]
    if "\\" in found:
        parts = found.split("\\\\")
        for escape, char in _ESCAPES:
            parts = [part.replace(escape, char) for part in parts]
        if any("\\" in part for part in parts):
            raise ValueError
        found = "\\".join(parts)
    return found, end + 1


def _escaped(text: str, at: int, end: int) -> bool:
    """Whether the quote at ``end`` has an odd number of backslashes before it."""
    before = end
    while before > at and text[before - 1] == "\\":
        before -= 1
    return (end - before) % 2 == 1


def _integer(text: str, at: int) -> "tuple[int, int]":
    end = at + 1 if text[at] == "-" else at
    first = end
    while "0" <= text[end] <= "9":
        end += 1
    digits = text[first:end]
    if not 0 < len(digits) < 19 or (digits[0] == "0" and digits != "0") or text[end] in ".eE":
        raise ValueError
    return int(text[at:end]), end

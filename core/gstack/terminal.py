"""Texts that somebody else wrote, on a person's terminal: none of them may steer it. Cold.

Policies, skills, plug-ins, transcripts and file names are printed by many commands, and a terminal obeys what stands in
them: an escape sequence moves the cursor or renames the window, a change of direction makes a name read as another.
"""

import re

#: Controls other than a line break and a tab, C1 controls (one of them begins a sequence too), Unicode's own line
#: breaks and what changes the direction of writing. A carriage return may stand before a line break.
_STEERS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]|\r(?!\n)"
)


def tame(text: str) -> str:
    """``text`` with what would steer a terminal escaped; line breaks and tabs stay."""
    return text if text.isascii() and text.isprintable() else _STEERS.sub(_escaped, text)


def _escaped(found: "re.Match[str]") -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def tame_json(document: str) -> str:
    """The same for JSON, which stays the same document: such characters stand only in its strings."""
    return _STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def visible(text: str) -> str:
    """``text`` as one line: every character that isn't printable escaped."""
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() else char.encode("unicode_escape").decode() for char in text])

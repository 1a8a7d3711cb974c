"""What a message says about its own end: a STATUS line, "Nothing to review", or a question (contracts C3, C4).

Hot: the stop hook reads the final text with it on every stop, so it is written by hand with builtins only.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: The only four words that are a status, longest first, in capitals.
STATUSES = ("DONE_WITH_CONCERNS", "NEEDS_CONTEXT", "BLOCKED", "DONE")

_NOTHING = "Nothing to review"
_MARKS = frozenset(" \t*_>#+-|~`•·◦‣")
_BARS = frozenset("|│┃║")
_EMPHASIS = " \t*_`~"
_QUOTES = "\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u2039\u203a"
_CLOSERS = frozenset(_QUOTES + _EMPHASIS + ")]}>")
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
#: Arrows, boxes, bullets and pictures start here; none of them is a letter.
_SYMBOLS = 0x2190


def undecorated(line: str) -> str:
    """``line`` without what people and models put in front of text: list bullets and numbers, quote and heading marks,
    emphasis, table bars, boxes and pictures."""
    start = _skip_marks(line, 0)
    digits = start
    while digits < len(line) and line[digits] in "0123456789":
        digits += 1
    if start < digits < len(line) - 1 and line[digits] in ".)" and line[digits + 1] in " \t":
        start = _skip_marks(line, digits + 1)
    return line[start:]


def _skip_marks(line: str, start: int) -> int:
    while start < len(line) and is_mark(line[start]):
        start += 1
    return start


def is_mark(char: str) -> bool:
    """Whether a character is decoration rather than text."""
    return char in _MARKS or (ord(char) >= _SYMBOLS and not char.isalnum())


def last_status(text: str) -> "str | None":
    """The status that the last STATUS line of ``text`` gives, None when there is none (contracts C3, C4).

    The word stands at a line's start in any case, bold or in a list or not, and a colon (or a table's bar) follows;
    a template of alternatives (``DONE | BLOCKED``) says nothing.
    """
    lines = text.splitlines()
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place]
        if "status" not in line.lower():
            continue
        value = _status_value(undecorated(line))
        if value is None:
            continue
        found = _status_word(value) if value else _lone_status(lines[place + 1 :])
        if found:
            return found
    return None


def _status_value(line: str) -> "str | None":
    """What follows ``STATUS:`` on a line that starts so; ``""`` when nothing does, None for another line."""
    if line[:6].lower() != "status":
        return None
    rest = line[6:].lstrip(_EMPHASIS)
    if not rest or not (rest[0] in ":\uff1a" or rest[0] in _BARS):
        return None
    return rest[_skip_marks(rest, 1) :]


def _status_word(value: str) -> "str | None":
    for word in STATUSES:
        if value.startswith(word):
            rest = value[len(word) :]
            if rest[:1].isalnum() or rest[:1] == "_":
                return None
            return None if _is_alternative(rest.lstrip(_EMPHASIS)) else word
    return None


def _is_alternative(rest: str) -> bool:
    """Whether a status word is followed by a bar or "or" and another one."""
    if rest[:1] in _BARS or rest[:1] == "/":
        rest = rest[1:]
    elif rest[:3] == "or ":
        rest = rest[3:]
    else:
        return False
    return rest.lstrip(_EMPHASIS).startswith(STATUSES)


def _lone_status(following: "list[str]") -> "str | None":
    """A status that stands alone on the next line that isn't blank."""
    for line in following:
        bare = undecorated(line).rstrip(_EMPHASIS + ".")
        if bare:
            return bare if bare in STATUSES else None
    return None


def nothing_to_review(text: str) -> bool:
    """Whether a line of ``text`` starts with "Nothing to review", a review's early exit (contracts C3)."""
    for line in text.splitlines():
        if _NOTHING in line:
            bare = undecorated(line)
            while bare[:1] and bare[0] in _QUOTES:
                bare = undecorated(bare[1:])
            after = bare[len(_NOTHING) :][:1]
            if bare.startswith(_NOTHING) and not (after.isalnum() or after == "_"):
                return True
    return False


def ends_on_question(text: str) -> bool:
    """Whether the last paragraph of ``text`` ends in a question mark (contracts C4).

    Closing quotes, brackets, emphasis, pictures and a choice such as ``(y/n)`` may follow the mark.
    """
    return any(rest.rstrip("!").endswith(_QUESTION_MARKS) for rest in _ends(text))


def needs_context(text: str) -> bool:
    """Whether the last paragraph says NEEDS_CONTEXT, which is a question to the person whatever sign it ends in."""
    paragraph = text.rstrip().replace("\r\n", "\n").rpartition("\n\n")[2]
    before, word, after = paragraph.rpartition("NEEDS_CONTEXT")
    return bool(word) and not any(char.isalnum() or char == "_" for char in before[-1:] + after[:1])


def _ends(text: str) -> "Iterator[str]":
    """``text`` without what may follow its last sign, and again without a closing choice in brackets."""
    end = len(text.rstrip())
    tail = text[max(0, end - 400) : end]
    yield _without_closers(tail)
    bare = _without_closers(tail, keep=")]")
    if bare[-1:] in (")", "]"):
        opening = max(bare.rfind("("), bare.rfind("["))
        if opening >= 0 and "/" in bare[opening:] and len(bare) - opening <= 16:
            yield _without_closers(bare[:opening])


def _without_closers(text: str, keep: str = "") -> str:
    end = len(text)
    while end:
        char = text[end - 1]
        if char in keep or not (char in _CLOSERS or char.isspace() or (ord(char) >= _SYMBOLS and not char.isalnum())):
            break
        if char in _QUESTION_MARKS:  # the full-width one is beyond the symbols' start
            break
        end -= 1
    return text[:end]

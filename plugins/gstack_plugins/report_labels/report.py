"""Reading a report as people and models print it (contracts C2).

Hot and hand-written: the stop hook reads with it. A report may be fenced or boxed, a list, a table of two columns or
headings; labels may be bold; a value may follow its label, stand below it, or go on over several lines.
"""

from gstack.contracts.status import STATUSES, last_status, undecorated
from gstack_plugins.report_labels import heading_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_EMPHASIS = "*_`~ \t"
_BARS = "|│┃║"
_COLONS = (":", "\uff1a")
_DASHES = ("\u2013 ", "\u2014 ", "- ")
_RULE_SIGNS = frozenset("=-_*~#+ \t" + _BARS)
_FENCES = ("```", "~~~")
#: Nothing but these is no value.
_NO_VALUE = frozenset(".…-_*/\\?!,:;()[]<>{}\"'`~|= \t\n\u2013\u2014")
#: A line that may be a label has at most so many characters and words before its colon.
_LABEL_LENGTH, _LABEL_WORDS = 40, 5

#: What a label's value came to.
ABSENT, EMPTY, PLACEHOLDER, REAL = range(4)


class Line:
    """One line of a report.

    ``text`` is without its decoration; ``kind`` is ``plain``, ``bullet``, ``heading``, ``table``, ``rule``, ``fence``
    or ``blank``; ``depth`` a heading's level, else its indentation in columns; ``bold`` whether it starts bold;
    ``fenced`` whether it stands in a code fence; ``cells`` are those of a table's row.
    """

    __slots__ = ("bold", "cells", "depth", "fenced", "kind", "text")

    def __init__(self, raw: str, fenced: bool) -> None:
        raw = raw.expandtabs(4)
        stripped = raw.strip()
        inside = stripped.lstrip(_BARS + ">")
        body = inside.strip().rstrip(_BARS).rstrip()
        self.fenced = fenced
        self.cells: list[str] = []
        self.depth = len(raw) - len(raw.lstrip()) + len(inside) - len(inside.lstrip())
        self.bold = body.lstrip("-+#>• 0123456789.)").startswith(("**", "__")) or body.startswith(("**", "__"))
        self.text = " ".join(undecorated(body).split())
        if not body:
            self.kind = "blank"
        elif stripped.startswith(_FENCES):
            self.kind = "fence"
        elif _is_rule(stripped):
            self.kind = "rule"
        elif stripped[0] in _BARS and len(_cells(stripped)) > 1:
            self.kind = "table"
            self.cells = _cells(stripped)
        elif body[0] == "#" and body.lstrip("#")[:1] in ("", " "):
            self.kind = "heading"
            self.depth = len(body) - len(body.lstrip("#"))
        else:
            self.kind = "bullet" if _is_bullet(body) else "plain"


def _is_rule(stripped: str) -> bool:
    if len(stripped) < 3:
        return False
    return all(char in _RULE_SIGNS or "\u2500" <= char <= "\u259f" for char in stripped)


def _cells(stripped: str) -> "list[str]":
    """The cells of a table's row, one when it is none; an escaped bar is text."""
    text, bar = stripped.replace("\\|", "\0"), stripped[0]
    text = text[1:-1] if text.endswith(bar) and len(text) > 1 else text[1:]
    if bar not in text and bar in "┃║":
        bar = "│"  # a box with a double or thick border
    return [cell.strip().replace("\0", "|") for cell in text.split(bar)]


def _is_bullet(body: str) -> bool:
    if body[0] in "-*+•\u2013" and body[1:2] == " ":
        return True
    rest = body.lstrip("0123456789")
    return len(rest) < len(body) and rest[:2] in (". ", ") ")


def read_lines(text: str, labels: "Sequence[str]", *, fenced: bool = False) -> "list[Line]":
    """The lines of a report; ``fenced`` whether it starts inside a code fence."""
    lines: list[Line] = []
    for raw in text.splitlines():
        line = Line(raw, fenced)
        if line.kind == "fence":
            fenced = not fenced
            line.fenced = True
        above = lines[-1] if lines else None
        if line.kind == "rule" and above and above.kind == "plain" and any(_same(above.text, one) for one in labels):
            above.kind, above.depth = "heading", 1  # a label that is underlined
            continue
        lines.append(line)
    return lines


def problems(text: str, heading: str, labels: "Sequence[str]") -> "list[str]":
    """What is wrong with the report in ``text``, one phrase a label, in the labels' order; empty when nothing is."""
    found = _read_region(text, heading, labels)
    said = []
    for label in labels:
        state, value = found[label]
        if state == ABSENT:
            said.append(f"no {label}")
        elif state == EMPTY:
            said.append(f"{label} is empty")
        elif state == PLACEHOLDER:
            said.append(f"{label} is a placeholder ({value[:40]})")
    return said


def _read_region(text: str, heading: str, labels: "Sequence[str]") -> "dict[str, tuple[int, str]]":
    """Each label's state and value: from the last heading on that labels follow, else from the whole message."""
    whole = read_values(text, labels)
    starts = [text.rfind("\n", 0, place) + 1 for place in heading_places(text, heading)]
    starts = [start for start in starts if undecorated(text[start : start + len(heading) + 200]).startswith(heading)]
    for start in reversed(starts[-8:]):
        found = read_values(text[start:], labels, fenced=_in_fence(text[:start]))
        if any(state != ABSENT for state, _ in found.values()):
            return {label: found[label] if found[label][0] != ABSENT else whole[label] for label in labels}
    return whole


def _in_fence(text: str) -> bool:
    return sum(1 for line in text.splitlines() if line.lstrip().startswith(_FENCES)) % 2 == 1


def read_values(text: str, labels: "Sequence[str]", *, fenced: bool = False) -> "dict[str, tuple[int, str]]":
    """Each label's state and value in ``text``; of several lines for a label the first with a real value counts."""
    lines = read_lines(text, labels, fenced=fenced)
    spots = []
    for place, line in enumerate(lines):
        label, rest = _match(line, labels)
        if label is not None:
            spots.append((place, label, rest))
    inline = any(rest and lines[place].kind != "table" for place, _, rest in spots)
    found = dict.fromkeys(labels, (ABSENT, ""))
    for place, label, rest in spots:
        value = _value(lines, place, rest, labels, inline)
        if value[0] > found[label][0]:
            found[label] = value
    return found


def _match(line: Line, labels: "Sequence[str]") -> "tuple[str | None, str]":
    """The label that a line gives and what follows it on the line."""
    if line.kind == "table":
        name = _plain(line.cells[0]).rstrip(":")
        for label in labels:
            if _same(name, label):
                cells = [cell for cell in line.cells[1:] if cell]
                joined = " | ".join(cells) if all(_plain(cell) in STATUSES for cell in cells) else line.cells[1]
                return label, joined
    if line.kind in ("plain", "bullet", "heading", "table"):
        for label in labels:
            rest = _after_label(line, label)
            if rest is not None:
                return label, rest
    return None, ""


def _after_label(line: Line, label: str) -> "str | None":
    """What follows ``label`` and its colon on a line; None when the line isn't the label's."""
    text, wanted = line.text, undecorated(" ".join(label.split()))
    if text[: len(wanted)].casefold() != wanted.casefold():
        return None
    rest = text[len(wanted) :]
    bare = rest.lstrip(_EMPHASIS)
    if bare[:1] == "(" and ")" in bare:
        bare = bare[bare.index(")") + 1 :].lstrip(_EMPHASIS)
    if bare.startswith(_COLONS):
        return bare[1:].strip()
    marked = line.kind == "heading" or line.bold
    if marked and not bare:
        return ""
    if marked and bare.startswith(_DASHES) and rest[:1] in "*_ ":
        return bare[1:].strip()
    return None


def _value(lines: "list[Line]", place: int, rest: str, labels: "Sequence[str]", inline: bool) -> "tuple[int, str]":
    """The state and value of the label at ``place`` that ``rest`` follows; ``inline`` whether other labels have
    their value beside them."""
    line = lines[place]
    if line.kind == "table":
        return judge_value(rest)
    below = _below(lines, place, labels)
    gap = bool(below) and below[0].kind == "blank"
    block = _first_block(below)
    said = rest
    if not _plain(said):
        quiet = line.kind == "plain" and not line.bold
        if inline and gap and quiet and block and not _belongs(block[0], line):
            return EMPTY, ""  # what comes after a gap is the text that follows the report
        return judge_value(_joined(block))
    if _plain(said)[0] in "[<" and not is_placeholder(said):
        return judge_value(_unwrapped(said, below))
    state, value = judge_value(said)
    if state == PLACEHOLDER and not _is_filler(said) and not gap and block and _belongs(block[0], line):
        return judge_value(_joined(block))  # "see below", and the value is there
    return state, value


def _unwrapped(said: str, below: "list[Line]") -> str:
    """What opens a bracket, with the lines up to the one that closes it."""
    for line in below:
        if line.kind == "blank" or "]" in said or ">" in said:
            break
        said = f"{said} {line.text}"
    return said


def _first_block(lines: "list[Line]") -> "list[Line]":
    """The first lines with text that no blank line parts."""
    block: list[Line] = []
    for line in lines:
        if line.kind == "blank" and block:
            break
        if line.kind not in ("blank", "fence"):
            block.append(line)
    return block


def _joined(block: "list[Line]") -> str:
    return " ".join([line.text for line in block])


def _belongs(line: Line, label: Line) -> bool:
    """Whether a line below a label is a part of it by its look: deeper, a list, a table or code."""
    if line.fenced != label.fenced:
        return line.fenced
    return line.depth > label.depth or (line.kind in ("bullet", "table") and label.kind in ("plain", "heading"))


def _below(lines: "list[Line]", place: int, labels: "Sequence[str]") -> "list[Line]":
    """The lines that a label's value may take up: until the next label, a rule, or the end of its fence."""
    label = lines[place]
    found = []
    for line in lines[place + 1 :]:
        same = line.fenced == label.fenced
        if label.fenced and (not same or line.kind == "fence"):
            break
        if same and line.kind == "rule":
            break
        if same and line.kind == "heading" and (label.kind != "heading" or line.depth <= label.depth):
            break
        if _match(line, labels)[0] is not None or _is_sibling(line, label):
            break
        found.append(line)
    return found


def _is_sibling(line: Line, label: Line) -> bool:
    """Whether a line is another label of the same report, one that the contract doesn't ask for."""
    if line.fenced == label.fenced and last_status(line.text):
        return True
    if (line.kind, line.bold, line.fenced) != (label.kind, label.bold, label.fenced) or line.depth > label.depth:
        return False
    name, colon, rest = line.text.partition(":")
    if not colon or len(name) > _LABEL_LENGTH or len(name.split()) > _LABEL_WORDS:
        return False
    if rest[:1] not in ("", " ", "*", "_"):
        return False
    bare = _plain(name)
    return bare[:1].isupper() and all(char.isalnum() or char in " -_/()'" for char in bare)


def _plain(text: str) -> str:
    return text.strip().strip(_EMPHASIS).strip()


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


# ---------------------------------------------------------------------------------------------------- values


def judge_value(value: str) -> "tuple[int, str]":
    """The state of a value, and the value as it may be shown."""
    shown = _plain(value)
    if not shown:
        return EMPTY, ""
    return (PLACEHOLDER if is_placeholder(value) else REAL), shown


def is_placeholder(value: str) -> bool:
    """Whether a value stands for one that is still to come (contracts C2): in brackets, ``TBD``, ``TODO``, dots, or a
    template of alternatives."""
    bare = _plain(value)
    code = value.lstrip("*_~ ")[:1] == "`"
    if all(char in _NO_VALUE for char in bare):
        return True
    if _all_in_brackets(bare.rstrip(".,;:!")):
        return True
    return _is_filler(bare) or (not code and _is_template(bare))


def _is_filler(value: str) -> bool:
    return _plain(value).strip(".,;:!() ").upper() in ("TBD", "TODO")


def _all_in_brackets(text: str) -> bool:
    """Whether ``text`` is one or more ``[...]`` or ``<...>`` and nothing besides."""
    closing, depth = "", 0
    for char in text:
        if not closing:
            if char.isspace() or char in ",/":
                continue
            if char not in "[<":
                return False
            opening, closing, depth = char, "]" if char == "[" else ">", 1
        elif char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
            if not depth:
                closing = ""
    return bool(text) and not closing


def _is_template(text: str) -> bool:
    for bar in ("|", "│"):
        parts = [_plain(part) for part in text.split(bar)]
        if len(parts) > 1 and all(_is_token(part) for part in parts):
            return True
    for other in ("/", " or ", ","):
        parts = [_plain(part) for part in text.split(other)]
        if len(parts) > 1 and all(part in STATUSES for part in parts):
            return True
    return False


def _is_token(text: str) -> bool:
    return bool(text) and all(char.isalnum() or char in "_-" for char in text)

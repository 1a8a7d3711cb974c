"""The contract kind ``selected_specialists_dispatched``: every specialist that the selection line names was dispatched.

The line (``Dispatching 2 specialists: Testing, Security. Skipped: Design``) counts in what the assistant said and in
what a shell command printed, never in a page or file that was read (contracts C2).
Hot: the stop hook judges with it, so it is written by hand with builtins only.
"""

from gstack.api import MET, MISSING, Field, Verdict, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gstack.api import EndVerdict, Item, Run

MARKER = "Dispatching N specialists:"
EMPTY_MARKER = "specialists skipped"

#: Characters that a specialist's name may have besides letters and digits, and the most that it may have.
_NAME_SIGNS = frozenset(" _.-")
_NAME_LENGTH = 40
_EMPHASIS = "*_`~"


class Selection:
    """One selection line: the number it gives (None: the marker has none), the names after it, ``count`` 0 for none."""

    __slots__ = ("count", "names")

    def __init__(self, count: "int | None", names: "list[str]") -> None:
        self.count = count
        self.names = names


class SelectedSpecialists:
    """The run's last selection line was printed, and each specialist on it has a dispatch that mentions it."""

    name = "selected_specialists_dispatched"
    fields = (
        Field("marker", "text", default=MARKER, help="the line's literal start; a whole-word N stands for a number"),
        Field("empty_marker", "text", default=EMPTY_MARKER, help="what a line says when no specialist was selected"),
    )

    def check(self, item: "Item", run: "Run") -> Verdict:
        """Met when nothing was selected or everything selected was dispatched."""
        marker, found = _selected(item, run)
        if found is None:
            return Verdict(MISSING, f'no line "{marker}" was printed')
        if found.count == 0:
            return Verdict(MET)
        odd = next((name for name in found.names if not is_plain(name)), None)
        if odd is not None:
            return Verdict(MISSING, f'the selection line has a name that isn\'t plain: "{_short(odd)}"')
        if found.count is not None and found.count != len(found.names):
            named = f"names {len(found.names)}" if found.names else "names none"
            return Verdict(MISSING, f"the selection line says {found.count} but {named}")
        if not found.names:
            return Verdict(MISSING, "the selection line names no specialist")
        texts = [text for call in run.dispatches() for text in (call.description, call.prompt, call.agent_name) if text]
        dispatched = [_words(text) for text in texts]
        missing = [name for name in found.names if not any(_words(name) in text for text in dispatched)]
        if missing:
            return Verdict(MISSING, f"no agent was dispatched for {', '.join(missing)}")
        return Verdict(MET)

    def check_end(self, item: "Item", run: "Run") -> "EndVerdict | None":
        """The last selection line is in the run's end, and the agents are, or some may have been dispatched earlier."""
        from gstack.api import EndVerdict

        if _selected(item, run)[1] is None:
            return None  # a command may have printed one before
        verdict = self.check(item, run)
        return EndVerdict(verdict, unless_called=() if verdict.status == MET else ("agent",))

    def fix(self, item: "Item") -> str:
        """What to do about it."""
        return (
            f'print the line "{item.fields.get("marker") or MARKER}" with the names of the selected specialists and '
            "dispatch an agent for each, named in its description"
        )

    def summary(self, item: "Item") -> str:  # noqa: ARG002 - the same for every item
        """The item as a noun phrase."""
        return "an agent dispatch for each selected specialist"


@hookimpl
def gstack_contract_kinds() -> "list[SelectedSpecialists]":
    """This plug-in's kind."""
    return [SelectedSpecialists()]


def _selected(item: "Item", run: "Run") -> "tuple[str, Selection | None]":
    """The item's marker, and the run's last selection line."""
    marker = str(item.fields.get("marker") or MARKER)
    return marker, last_selection(run, marker, str(item.fields.get("empty_marker") or EMPTY_MARKER))


def last_selection(run: "Run", marker: str, empty_marker: str) -> "Selection | None":
    """The last selection line of the run, None when none was printed."""
    for text in reversed(list(_printed(run))):
        for line in reversed(text.splitlines()):
            found = read_selection(line, marker)
            if found is not None:
                return found
            if empty_marker in line:
                return Selection(0, [])
    return None


def _printed(run: "Run") -> "Iterator[str]":
    """What the assistant said and what shell commands printed, in order; the final text last."""
    shells = {call.id for _, call, _ in run.calls("shell") if call.id}
    last = ""
    for event in run.events:
        if event.type == "text":
            last = event.text
            yield event.text
        elif event.type == "result" and event.ref in shells and not event.denied:
            yield event.text
    if run.final_text and run.final_text.strip() != last.strip():
        yield run.final_text


def read_selection(line: str, marker: str) -> "Selection | None":
    """The selection that a line makes, None when it has no ``marker``; emphasis inside the marker is looked through."""
    return _read_selection(line, marker) or _read_selection(line.replace("*", "").replace("`", ""), marker)


def _read_selection(line: str, marker: str) -> "Selection | None":
    parts = _split_marker(marker)
    start = line.find(parts[0])
    while start >= 0:
        place, numbers = start + len(parts[0]), []
        end = place
        for part in parts[1:]:
            end = place
            while end < len(line) and line[end] in "0123456789":
                end += 1
            if end == place or not line.startswith(part, end):
                break
            numbers.append(int(line[place : min(end, place + 9)]))
            place = end + len(part)
        else:
            return Selection(numbers[0] if numbers else None, read_names(line[place:], numbers[0] if numbers else None))
        start = line.find(parts[0], max(start + 1, 0 if parts[0] else end))
    return None


def _split_marker(marker: str) -> "list[str]":
    """The literal parts between the whole-word Ns of a marker."""
    parts, start = [], 0
    for place, char in enumerate(marker):
        if char == "N" and not _is_word(marker[place - 1 : place]) and not _is_word(marker[place + 1 : place + 2]):
            parts.append(marker[start:place])
            start = place + 1
    return [*parts, marker[start:]]


def read_names(text: str, count: "int | None" = None) -> "list[str]":
    """The names of a selection: what stands before the end of the sentence, without what is in parentheses."""
    text = _first_sentence(_without_parentheses(text).strip(" \t" + _EMPHASIS))
    names = [_name(part) for part in text.split(",")]
    names = [name for name in names if name]
    if count is not None and names and len(names) == count - 1 and " and " in names[-1]:
        first, _, second = names.pop().rpartition(" and ")
        names.extend([first.strip(), second.strip()])
    return names


def _name(part: str) -> str:
    name = part.strip().strip(_EMPHASIS).strip()
    return name[4:].strip().strip(_EMPHASIS) if name.startswith("and ") else name


def _without_parentheses(text: str) -> str:
    pieces, depth = [], 0
    for char in text:
        if char == "(":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif not depth:
            pieces.append(char)
    return "".join(pieces)


def _first_sentence(text: str) -> str:
    """``text`` up to a full stop that a space or the end follows."""
    place = text.find(".")
    while place >= 0:
        after = text[place + 1 :].lstrip(_EMPHASIS)[:1]
        if not after or after.isspace():
            return text[:place]
        place = text.find(".", place + 1)
    return text


def is_plain(name: str) -> bool:
    """Whether a name has letters, digits, spaces, ``_``, ``.`` and ``-`` only, 1 to 40 of them."""
    return 0 < len(name) <= _NAME_LENGTH and all(char.isalnum() or char in _NAME_SIGNS for char in name)


def _words(text: str) -> str:
    """``text`` in lower case with one space between its words and round it, so that ``in`` finds whole words."""
    return " " + " ".join("".join([char if char.isalnum() else " " for char in text.casefold()]).split()) + " "


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _short(text: str) -> str:
    return text if len(text) <= _NAME_LENGTH else text[:_NAME_LENGTH] + "..."

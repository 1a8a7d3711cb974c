"""Waivers: a model's own ``gstack contract waive`` call, found in the transcript (contracts C6).

Hot: the stop hook looks for them when an item isn't met, so builtins only. The command is stateless and prints an
acknowledgement; the call in the transcript is the waiver. :func:`parse_waive` is the one check of its arguments,
for the command and for the call that is found.
"""

from gstack.api import Value
from gstack.contracts.matching import happened
from gstack.shell import commands
from gstack.transcript import same_skill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gstack.api import Event, Run
    from gstack.shell import Command, Word

#: The command under the name of its own; ``gstack contract`` is the other spelling.
COMMAND = "gstack-skill-contract"

#: What the block text shows in the place of a reason; copied as it is, it is none.
_PLACEHOLDER = "<why>"
#: Programs that only run the command after them, and their options that take a value.
_RUNNERS = {
    "env": ("-u", "--unset", "-C", "--chdir"),
    "command": (),
    "exec": (),
    "time": (),
    "nohup": (),
    "uvx": ("--from", "--with", "-p", "--python"),
    "uv run": ("--project", "--directory", "--with", "-p", "--python", "--extra", "--group"),
    "poetry run": (),
    "pdm run": (),
    "hatch run": (),
    "pipenv run": (),
    "pipx run": ("--spec",),
}
#: What a shell or the command says when the call came to nothing although a later command ended well.
_FAILED = (
    "SKILL_CONTRACT_USAGE",
    "SKILL_CONTRACT_STATE_ERROR",
    "SKILL_CONTRACT_NO_CONTRACT",
    "command not found",
    ": not found",
    "No such file or directory",
    "is not recognized as",
)


class Waive(Value):
    """The arguments of a waive call: the ``item``, the ``reason``, and the ``skill`` where one is named."""

    __slots__ = ("item", "reason", "skill")

    def __init__(self, item: str, reason: str, skill: "str | None" = None) -> None:
        self.item = item
        self.reason = reason
        self.skill = skill


def acknowledgement(waive: Waive) -> str:
    """The line that the command prints; it also tells that the call came through where its exit code is hidden."""
    of = f" of {waive.skill}" if waive.skill else ""
    return f"waived {waive.item}{of}: {waive.reason} (this session only; counted as a miss for follow)"


def _acknowledged(waive: Waive, said: str) -> bool:
    """Whether the command's own line for this item stands in what the call printed."""
    return any(f"waived {waive.item}{after}" in said for after in (":", " of "))


def parse_waive(argv: "Sequence[str]") -> "Waive | None":
    """The arguments after ``waive``; None when they are malformed: no item or more than one, no reason, an empty one
    or the block text's own placeholder, an option that the command hasn't."""
    values: dict[str, str] = {}
    items: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            items.extend(rest)
            break
        if name in ("--reason", "--skill"):
            if not equals:
                if not rest:
                    return None
                value = rest.pop(0)
            values[name] = value
        elif word.startswith("-") and word != "-":
            return None
        else:
            items.append(word)
    if len(items) != 1 or not items[0].strip():
        return None
    return checked_waive(items[0], values.get("--reason"), values.get("--skill"))


def checked_waive(item: "str | None", reason: "str | None", skill: "str | None" = None) -> "Waive | None":
    """A waive call's values when they are complete: an item and a reason that says something. None otherwise."""
    why = " ".join((reason or "").split())
    if not item or not item.strip() or not why or why == _PLACEHOLDER:
        return None
    return Waive(item.strip(), why, skill.strip().lstrip("/") if skill and skill.strip() else None)


def find_waivers(
    run: "Run",
    skill: str,
    item_ids: "Collection[str]",
    *,
    names: "Collection[str]" = (),
    others: "Mapping[str, Collection[str]] | None" = None,
) -> "dict[str, str]":
    """The items that the model waived in ``run``, each with its reason; of two waivers of an item the later one's.

    ``names`` are further names of ``skill`` (its frontmatter label). ``others`` maps the other skills that declare a
    contract to their item ids: a call without ``--skill`` belongs to the skill that was loaded last before it, unless
    that one has no such item.
    """
    found: dict[str, str] = {}
    results = run.results()
    current = skill
    for place, event in enumerate(run.events):
        if event.type == "load" and others:
            current = next((other for other in others if same_skill(other, event.name or "")), current)
        call = event.call
        if event.type != "call" or call is None or call.kind != "shell" or not call.command:
            continue
        if "waive" not in call.command:
            continue
        result = results.get(call.id or "")
        if not happened(run, place, result) or (result is not None and result.ok is False):
            continue
        for waive in _waives(call.command, result, background=call.background):
            if waive.item not in item_ids:
                continue
            if waive.skill:
                if not any(same_skill(waive.skill, name) for name in (skill, *names)):
                    continue
            elif current != skill and others and waive.item in others.get(current, ()):
                continue
            found[waive.item] = waive.reason
    return found


def _waives(text: str, result: "Event | None", *, background: bool) -> "list[Waive]":
    """The valid waive calls of a command line that ran and came to their end."""
    found = []
    line = commands(text)
    # inside if, for, a function: whether it ran can only be told by what it printed
    unsure = background or any(command.keywords for command in line)
    said = result.text if result is not None else ""
    for command in line:
        if command.inner:
            continue
        arguments = _waive_arguments(command.words)
        waive = parse_waive([word.text for word in arguments]) if arguments is not None else None
        if waive is None:
            continue
        if unsure or _hidden(command):
            if not _acknowledged(waive, said):
                continue
        elif command.after in (";", "\n") and any(sign in said for sign in _FAILED):
            continue
        found.append(waive)
    return found


def _hidden(command: "Command") -> bool:
    """Whether the whole line ends well even if this command failed or never ran: ``|| true``, a pipe, ``&``."""
    return command.before == "||" or command.after in ("||", "|", "|&", "&")


def _waive_arguments(words: "list[Word]") -> "list[Word] | None":
    """The words after ``waive`` when the command is ours, however it is spelled; None for any other command."""
    words = _without_runners(words)
    if not words:
        return None
    name = words[0].program
    rest = words[1:]
    if name.startswith(("python", "pypy")) and [word.text for word in rest[:2]] == ["-m", "gstack"]:
        name, rest = "gstack", rest[2:]
    if name == "gstack":
        rest = _skip_options(rest)
        if not rest or rest[0].text != "contract":
            return None
        name, rest = COMMAND, rest[1:]
    rest = _skip_options(rest)
    return rest[1:] if name == COMMAND and rest and rest[0].text == "waive" else None


def _skip_options(words: "list[Word]") -> "list[Word]":
    start = 0
    while start < len(words) and words[start].text.startswith("-"):
        start += 1
    return words[start:]


def _without_runners(words: "list[Word]") -> "list[Word]":
    """``words`` without ``env A=1``, ``uv run`` and the like in front."""
    while words:
        name = words[0].program
        two = f"{name} {words[1].text}" if len(words) > 1 else ""
        if two in _RUNNERS:
            name, words = two, words[2:]
        elif name in _RUNNERS:
            words = words[1:]
        else:
            return words
        start = 0
        while start < len(words) and (words[start].text.startswith("-") or "=" in words[start].text):
            start += 2 if words[start].text in _RUNNERS[name] else 1
        words = words[start:]
    return words

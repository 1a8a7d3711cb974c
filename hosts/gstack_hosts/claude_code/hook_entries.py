"""gstack's entries in the ``hooks`` of Claude Code's settings: finding them, and changing the text around them.

An entry is gstack's by what it runs: the event that it stands under, the launcher (``bin/gstack-hook``, in whatever
state folder, or its ``.exe``) and the arguments. Claude Code rewrites the file and drops keys that it doesn't know,
so a private tag would not last. What belongs to gstack is the single hook, not the matcher entry around it, which may
hold a person's hooks as well.
"""

import ntpath
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gstack.api import Registration
from gstack.errors import SettingsError
from gstack.jsonfile import Edited
from gstack.jsontext import Child, Node, Patch, new_document, parse, without_document
from gstack_hosts.claude_code import ClaudeCode

#: Keys of a hook that change whether or how the host waits for it; ours carries none of them.
_FOREIGN = ("async", "asyncRewake", "once", "shell")
_LAUNCHERS = ("gstack-hook", "gstack-hook.exe")


@dataclass(eq=False, slots=True)
class Found:
    """One hook of gstack's: ``items[index]`` of ``entry``, which is ``entries[place]`` under ``event``.

    ``counts`` is False where a later key of the same name hides it from the host.
    """

    event: str
    entries: Node
    place: int
    entry: Node
    items: Node
    index: int
    counts: bool

    @property
    def item(self) -> Node:
        """The hook itself."""
        return self.items.children[self.index].node

    @property
    def command(self) -> str:
        """The launcher that it names."""
        return self.item.text_of("command") or ""

    @property
    def args(self) -> tuple[str, ...]:
        """Its arguments."""
        args = self.item.get("args")
        return tuple(args.plain()) if args is not None else ()

    @property
    def matcher(self) -> str | None:
        """The entry's matcher; None for one that matches everything."""
        matcher = self.entry.get("matcher")
        value = None if matcher is None else matcher.plain()
        return None if value in (None, "", "*") else value if isinstance(value, str) else repr(value)

    @property
    def condition(self) -> Any:
        """The hook's ``if``."""
        condition = self.item.get("if")
        return None if condition is None else condition.plain()

    def __str__(self) -> str:
        return line(self.event, self.command, self.args)


def line(event: str, command: str, args: Sequence[str]) -> str:
    """An entry in one printable line."""
    text = f"{event}: {' '.join((command, *args))}"
    return "".join(char if char.isprintable() else "?" for char in text)


def is_launcher(command: str) -> bool:
    """Whether ``command`` is a gstack launcher's path, of whatever state folder."""
    parts = command.replace("\\", "/").split("/")
    return len(parts) > 2 and parts[-2] == "bin" and parts[-1].lower() in _LAUNCHERS


def is_ours(event: str, item: Node) -> bool:
    """Whether the hook ``item`` under ``event`` is one of gstack's."""
    args = item.get("args")
    words = args.plain() if args is not None and args.kind == "array" else None
    if not isinstance(words, list) or len(words) != 2 or words[0] != ClaudeCode.id:
        return False
    return words[1] in (event, *ClaudeCode.events) and is_launcher(item.text_of("command") or "")


def find(root: Node) -> list[Found]:
    """Every hook of gstack's in the document, in file order. What is malformed around them is passed over."""
    return [
        Found(event.key or "", event.node, place, entry.node, items.node, index, counts)
        for hooks, counts_1 in _members(root, "hooks", "object")
        for event, counts_2 in _members(hooks.node, None, "array")
        for place, entry in enumerate(event.node.children)
        for items, counts_3 in _members(entry.node, "hooks", "array")
        for index, item in enumerate(items.node.children)
        for counts in [counts_1 and counts_2 and counts_3]
        if is_ours(event.key or "", item.node)
    ]


def _members(box: Node, key: str | None, kind: str) -> list[tuple[Child, bool]]:
    """The members of ``box`` of that key (None: any) and kind, each with whether it is the last of its key."""
    if box.kind != "object":
        return []
    last = {child.key: child for child in box.children}
    return [
        (child, last[child.key] is child)
        for child in box.children
        if child.node.kind == kind and key in (None, child.key)
    ]


def pair(wanted: Sequence[Registration], found: Sequence[Found]) -> dict[int, Found]:
    """Which of ``found`` stands for which of ``wanted`` (by its place there). The closest go together first.

    Two registrations of one event run the same command, so matcher and filter tell them apart; but one whose matcher
    was edited is still ours, and is mended instead of doubled (fault F3).
    """
    left = [have for have in found if have.counts]
    pairs: dict[int, Found] = {}
    for distance in range(4):
        for place, want in enumerate(wanted):
            near = [have for have in left if _distance(want, have) <= distance]
            if place not in pairs and near:
                pairs[place] = near[0]
                left.remove(near[0])
    return pairs


def _distance(want: Registration, have: Found) -> int:
    if (have.event, have.args) != (want.event, want.args):
        return 4
    return int(have.matcher != want.matcher) + 2 * int(have.condition != want.condition)


def differs(want: Registration, have: Found, launcher: str) -> list[str]:
    """What of ``have`` isn't as it would be registered for ``launcher``: names of keys."""
    wrong = [] if have.matcher == want.matcher else ["matcher"]
    item = have.item.plain()
    wrong += [key for key, value in hook(want, launcher).items() if not _same(item.get(key), value)]
    extra = _FOREIGN if want.condition is not None else (*_FOREIGN, "if")
    return wrong + [key for key in extra if key in item]


def _same(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def hook(want: Registration, launcher: str) -> dict[str, Any]:
    """One registration as Claude Code's hook object, in exec form."""
    item: dict[str, Any] = {
        "type": "command",
        "command": launcher,
        "args": list(want.args),
        "timeout": want.timeout,
    }
    if want.condition is not None:
        item["if"] = want.condition
    return item


def _entry(want: Registration, launcher: str) -> dict[str, Any]:
    """A matcher entry for one registration alone."""
    matcher = {} if want.matcher is None else {"matcher": want.matcher}
    return {**matcher, "hooks": [hook(want, launcher)]}


# ----------------------------------------------------------------------------------------------- changing


def edit(text: str | None, wanted: Sequence[Registration], launcher: str, path: str) -> Edited:
    """The settings with exactly ``wanted`` registered for ``launcher`` (None: there is no file).

    Raises JsonError for what isn't JSON, and SettingsError where ``hooks`` or a needed event has the wrong type.
    """
    root = None if text is None else parse(text)
    if text is None or root is None:
        return _first(text, wanted, launcher)
    _check_shape(root, wanted, path)
    patch, found = Patch(text, root), find(root)
    pairs = pair(wanted, found)
    changed = [str(have) for place, have in pairs.items() if _mend(patch, wanted[place], have, launcher)]
    stale = [have for have in found if have not in pairs.values()]
    for have in stale:
        patch.drop(have.items, have.index)
    added = [want for place, want in enumerate(wanted) if place not in pairs]
    _register(patch, added, launcher)
    return Edited(_cleared(patch, found), tuple(added), tuple(changed), tuple(map(str, stale)))


def _first(blank: str | None, wanted: Sequence[Registration], launcher: str) -> Edited:
    """A file that holds nothing yet."""
    if not wanted:
        return Edited(blank)
    return Edited(new_document({"hooks": _events(wanted, launcher)}, blank), tuple(wanted))


def _events(wanted: Sequence[Registration], launcher: str) -> dict[str, list[dict[str, Any]]]:
    events: dict[str, list[dict[str, Any]]] = {}
    for want in wanted:
        events.setdefault(want.event, []).append(_entry(want, launcher))
    return events


def _check_shape(root: Node, wanted: Sequence[Registration], path: str) -> None:
    """Refuse what can't be changed without guessing. Raises SettingsError."""
    hooks = root.get("hooks") if root.kind == "object" else None
    wrong = ""
    if root.kind != "object":
        wrong = "the file isn't a JSON object"
    elif hooks is not None and hooks.kind != "object":
        wrong = '"hooks" isn\'t an object of events'
    elif hooks is not None:
        values = {want.event: hooks.get(want.event) for want in wanted}
        odd = [event for event, node in values.items() if node is not None and node.kind != "array"]
        wrong = f'"hooks.{odd[0]}" isn\'t a list' if odd else ""
    if wrong:
        raise SettingsError(f"{path}: {wrong}; it was left as it was", hint="mend the file, then try again")


def _mend(patch: Patch, want: Registration, have: Found, launcher: str) -> bool:
    """Make ``have`` what ``want`` says; False when it is already."""
    wrong = differs(want, have, launcher)
    if not wrong:
        return False
    if "matcher" in wrong and len(have.items.children) > 1:
        # The matcher is also that of the other hooks in this entry: ours moves to an entry of its own.
        patch.drop(have.items, have.index)
        patch.add(have.entries, None, _entry(want, launcher))
        return True
    if "matcher" in wrong and want.matcher is None:
        patch.take(have.entry, "matcher")
    elif "matcher" in wrong:
        patch.put(have.entry, "matcher", want.matcher)
    for key, value in hook(want, launcher).items():
        if key in wrong:
            patch.put(have.item, key, value)
    for key in ("if", *_FOREIGN):
        if key in wrong and not (key == "if" and want.condition is not None):
            patch.take(have.item, key)
    return True


def _register(patch: Patch, wanted: Sequence[Registration], launcher: str) -> None:
    """Add entries, with their events and ``hooks`` itself where these are missing."""
    events = _events(wanted, launcher)
    hooks = patch.root.get("hooks")
    if hooks is None:
        if events:
            patch.add(patch.root, "hooks", events)
        return
    for event, entries in events.items():
        present = hooks.get(event)
        if present is None:
            patch.add(hooks, event, entries)
        else:
            for entry in entries:
                patch.add(present, None, entry)


def _cleared(patch: Patch, found: Sequence[Found]) -> str | None:
    """The changed text, without the entries, events, ``hooks`` and file that these changes have left empty."""
    for have in found:
        keys = [child.key for child in have.entry.children]
        if patch.emptied(have.items) and keys.count("hooks") == 1:
            patch.drop(have.entries, have.place)
    for child in patch.root.children:
        if child.key == "hooks" and child.node.kind == "object":
            patch.drop_closed(child.node)
    patch.drop_closed(patch.root)
    return without_document(patch.source, patch.root) if patch.closes(patch.root) else patch.result()


def check_launcher(launcher: str) -> None:
    """Refuse a launcher that would not be known again as gstack's (faults F1, F2, F24). Raises SettingsError."""
    if not (os.path.isabs(launcher) or ntpath.isabs(launcher)) or not is_launcher(launcher):
        raise SettingsError(f"can't register {launcher!r}: a launcher is an absolute path that ends in bin/gstack-hook")

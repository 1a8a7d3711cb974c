"""What contract kinds declare, judge and say.

Hot: builtins only. Import these names from :mod:`gstack.api`.
"""

from gstack.api import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gstack.values.events import Event
    from gstack.values.tools import ToolCall


class Field(Value):
    """One field that a contract kind's items may carry.

    ``type`` is ``text``, ``texts`` (a list of at least one text), ``flag`` (true/false), ``number`` or
    ``regex`` (a Python expression that must compile).
    """

    __slots__ = ("default", "help", "name", "required", "type")

    def __init__(
        self,
        name: str,
        type: str = "text",
        *,
        required: bool = False,
        default: object = None,
        help: str = "",
    ) -> None:
        self.name = name
        self.type = type
        self.required = required
        self.default = default
        self.help = help


class Item(Value):
    """One required output of a contract: ``id``, ``kind`` and the kind's own ``fields`` (checked before).

    ``fix`` and ``summary`` are the pack author's own words, None when the kind's are to be used.
    """

    __slots__ = ("fields", "fix", "id", "kind", "summary")

    def __init__(
        self,
        id: str,
        kind: str,
        fields: "dict[str, Any] | None" = None,
        *,
        fix: "str | None" = None,
        summary: "str | None" = None,
    ) -> None:
        self.id = id
        self.kind = kind
        self.fields = fields or {}
        self.fix = fix
        self.summary = summary


class Verdict(Value):
    """What a kind says of an item: ``status`` (``met``, ``missing`` or ``cannot_tell``) and ``why`` in a few words."""

    __slots__ = ("status", "why")

    def __init__(self, status: str, why: str = "") -> None:
        self.status = status
        self.why = why


class EndVerdict(Value):
    """What a kind says of an item by a run's last part alone: ``verdict`` is that on the whole run, unless before that
    part a message of the assistant holds one of the texts ``unless_said``, or calls a tool of one of the kinds
    ``unless_called`` (:data:`gstack.api.TOOL_KINDS`)."""

    __slots__ = ("unless_called", "unless_said", "verdict")

    def __init__(
        self, verdict: Verdict, *, unless_said: "Sequence[str]" = (), unless_called: "Sequence[str]" = ()
    ) -> None:
        self.verdict = verdict
        # a text alone is meant as one, not as its characters
        self.unless_said = (unless_said,) if isinstance(unless_said, str) else tuple(unless_said)
        self.unless_called = (unless_called,) if isinstance(unless_called, str) else tuple(unless_called)


class Run(Value):
    """One load of a skill and what followed it on the main thread: what a contract kind judges.

    ``events`` are in file order, from the event after the load on; ``final_text`` is the text of the turn's last
    message (the payload's, where the hook has one), ``""`` when there is none; ``cwd`` the session's folder;
    ``loaded_at`` seconds since the epoch or None.
    """

    __slots__ = ("cwd", "events", "final_text", "load_id", "loaded_at", "skill")

    def __init__(
        self,
        skill: str,
        load_id: str,
        events: "Sequence[Event]" = (),
        *,
        final_text: str = "",
        cwd: "str | None" = None,
        loaded_at: "float | None" = None,
    ) -> None:
        self.skill = skill
        self.load_id = load_id
        self.events = tuple(events)
        self.final_text = final_text
        self.cwd = cwd
        self.loaded_at = loaded_at

    def texts(self) -> "list[str]":
        """The assistant's messages in order, the final one last."""
        found = [event.text for event in self.events if event.type == "text"]
        if self.final_text and (not found or found[-1].strip() != self.final_text.strip()):
            found.append(self.final_text)
        return found

    def results(self) -> "dict[str, Event]":
        """The result of each call that has one, by call id."""
        return {event.ref: event for event in self.events if event.type == "result" and event.ref}

    def calls(self, kind: str) -> "list[tuple[int, ToolCall, Event | None]]":
        """Each call of a tool kind: its place in ``events``, the call, and its result (None: none yet)."""
        results = self.results()
        return [
            (place, event.call, results.get(event.call.id or ""))
            for place, event in enumerate(self.events)
            if event.type == "call" and event.call is not None and event.call.kind == kind
        ]

    def dispatches(self) -> "list[ToolCall]":
        """The agent launches that were not refused (spec, contracts C2)."""
        return [
            call
            for _, call, result in self.calls("agent")
            if result is None or not (result.denied or result.ok is False)
        ]

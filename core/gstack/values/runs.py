"""What happened in a session: its events, and the runs that contract kinds judge.

Hot: builtins only. Import these names from :mod:`gstack.api`.
"""

from gstack.api import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gstack.values.tools import ToolCall


class Event(Value):
    """One thing that happened in a session, in the model that every host's transcript is read into.

    ``type`` is one of
    ``prompt`` (text of a person, or of a host's envelope when ``origin`` isn't ``user``), ``text`` (what the
    assistant said), ``call`` (``call`` is a :class:`ToolCall`), ``result`` (of the call ``ref``: ``ok`` is None when
    the host doesn't say; ``denied`` means that it never ran), ``load`` (a skill entered: ``name``, ``how`` is
    ``tool``, ``typed`` or ``read``), ``agent_started`` / ``agent_finished`` (``ref`` is the agent's id; a start
    carries the ``call`` it came from), ``continuation`` (a hook's feedback, our own block among them),
    ``compacted``, ``interrupted`` and ``turn_end``.
    ``uid`` is stable over forks; ``ordinal`` is the place in the file; ``ts`` seconds since the epoch or None;
    ``agent`` is None on the main thread.
    """

    __slots__ = (
        "agent",
        "call",
        "denied",
        "how",
        "name",
        "ok",
        "ordinal",
        "origin",
        "path",
        "ref",
        "text",
        "ts",
        "type",
        "uid",
    )  # fmt: skip

    def __init__(
        self,
        type: str,
        *,
        uid: str = "",
        ordinal: int = 0,
        ts: "float | None" = None,
        agent: "str | None" = None,
        text: str = "",
        origin: str = "user",
        call: "ToolCall | None" = None,
        ref: "str | None" = None,
        ok: "bool | None" = None,
        denied: bool = False,
        name: "str | None" = None,
        how: "str | None" = None,
        path: "str | None" = None,
    ) -> None:
        self.type = type
        self.uid = uid
        self.ordinal = ordinal
        self.ts = ts
        self.agent = agent
        self.text = text
        self.origin = origin
        self.call = call
        self.ref = ref
        self.ok = ok
        self.denied = denied
        self.name = name
        self.how = how
        self.path = path


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

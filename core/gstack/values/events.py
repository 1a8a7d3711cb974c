"""What happened in a session, in the model that every host's transcript is read into.

Hot: builtins only. Import these names from :mod:`gstack.api`.
"""

from gstack.api import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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
    ``agent`` is None on the main thread. ``text`` may be given as a function that gives it, called when it is first
    asked for: most of what tools print never is.
    """

    __slots__ = (
        "_text",
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
        text: "str | Callable[[], str]" = "",
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
        self._text = text
        self.origin = origin
        self.call = call
        self.ref = ref
        self.ok = ok
        self.denied = denied
        self.name = name
        self.how = how
        self.path = path

    @property
    def text(self) -> str:
        """What was said or printed."""
        if not isinstance(self._text, str):
            self._text = self._text()
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._text = text


# what is compared, shown and copied
Event.__slots__ = tuple(sorted(["text", *Event.__slots__[1:]]))  # type: ignore[assignment]

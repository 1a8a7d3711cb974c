"""What plug-ins import: the ``hookimpl`` marker and the value types of all four extension points.

Everything that the documentation names is imported from here::

    from gstack.api import MET, MISSING, Field, Item, Run, Verdict, hookimpl

Hot: the hook loads this module on every event, so it uses builtins only (no ``dataclasses``, no ``typing``: together
they cost more than the whole hook may), and the types that most events don't need are made when they are first asked
for (:mod:`gstack.values`). The types are plain classes with ``__slots__``, compare by value and are treated as
immutable. :mod:`gstack.hookspecs` says where each one is used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from gstack.values.contracts import EndVerdict as EndVerdict
    from gstack.values.contracts import Field as Field
    from gstack.values.contracts import Item as Item
    from gstack.values.contracts import Run as Run
    from gstack.values.contracts import Verdict as Verdict
    from gstack.values.events import Event as Event
    from gstack.values.gate import Decision as Decision
    from gstack.values.gate import GateContext as GateContext
    from gstack.values.gate import Invocation as Invocation
    from gstack.values.settings import Finding as Finding
    from gstack.values.settings import Registration as Registration
    from gstack.values.skills import Skill as Skill
    from gstack.values.skills import SkillRoot as SkillRoot
    from gstack.values.tools import ToolCall as ToolCall

    _F = TypeVar("_F", bound="Callable[..., Any]")

#: Version of the hookspecs and value types; a plug-in may set ``GSTACK_API`` in its module to say which it needs.
GSTACK_API = 1

#: The attribute that pluggy looks for on an implementation (its project name is ``gstack``).
_MARK = "gstack_impl"


def hookimpl(function: "_F") -> "_F":
    """Mark ``function`` as the implementation of the hookspec of the same name.

    Writes the attribute that ``pluggy.HookimplMarker("gstack")`` would write, without importing pluggy,
    because the hook imports plug-in modules on every event (design: "The hook process").
    Takes no options: order and wrappers mean nothing to the four extension points.
    """
    opts = {
        "wrapper": False,
        "hookwrapper": False,
        "optionalhook": False,
        "tryfirst": False,
        "trylast": False,
        "specname": None,
    }
    setattr(function, _MARK, opts)
    return function


class Value:
    """Base of the value types: equality and ``repr`` over the slots."""

    __slots__: "tuple[str, ...]" = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={getattr(self, name)!r}"
            for name in self.__slots__
            if name != "raw" and getattr(self, name) is not None
        )
        return f"{type(self).__name__}({shown})"


# ------------------------------------------------------------------------------------ events and answers

#: The canonical kinds of event (``HookEvent.kind``).
SESSION_STARTED = "session_started"
PROMPT_SUBMITTED = "prompt_submitted"
COMMAND_TYPED = "command_typed"
TOOL_PROPOSED = "tool_proposed"
TOOL_FINISHED = "tool_finished"
TURN_ENDING = "turn_ending"
SUBAGENT_ENDING = "subagent_ending"
SESSION_ENDED = "session_ended"

#: The canonical kinds of tool (``ToolCall.kind``).
TOOL_KINDS = ("shell", "edit", "read", "search", "skill", "agent", "agent_wait", "web", "mcp", "ask", "other")


class HookEvent(Value):
    """One hook payload in neutral words. A field that the host didn't send is None: missing is not false.

    ``kind`` is one of the constants above; ``scope`` is ``main`` or ``subagent``; ``origin`` of a prompt is ``user``
    (a person, or the host doesn't say; only such a prompt is routed), or says who else wrote it: ``continuation``,
    ``tool_result``, ``notification``, ``agent``, ``channel``, ``host``; ``command`` and ``command_args`` are
    a typed command's name (no slash) and rest; ``command_kind`` is ``skill`` (or anything the host expands from a
    file) or ``mcp``; ``pending_agents`` the ids of agents that the host says are running (None: it doesn't say);
    ``interactive`` whether a person sits at the session (None: the host doesn't say); ``transcript_path`` is
    used verbatim; ``raw`` is the decoded payload.
    """

    __slots__ = (
        "agent_id",
        "command",
        "command_args",
        "command_kind",
        "cwd",
        "host",
        "interactive",
        "kind",
        "last_assistant_text",
        "native_name",
        "origin",
        "pending_agents",
        "prompt",
        "raw",
        "scope",
        "session_id",
        "stop_active",
        "stop_count",
        "tool",
        "transcript_path",
        "turn_id",
        "workspace",
    )  # fmt: skip

    def __init__(
        self,
        host: str,
        kind: str,
        native_name: str,
        *,
        scope: str = "main",
        origin: str = "user",
        session_id: "str | None" = None,
        turn_id: "str | None" = None,
        agent_id: "str | None" = None,
        cwd: "str | None" = None,
        workspace: "str | None" = None,
        prompt: "str | None" = None,
        command: "str | None" = None,
        command_args: "str | None" = None,
        command_kind: "str | None" = None,
        tool: "ToolCall | None" = None,
        stop_active: "bool | None" = None,
        stop_count: "int | None" = None,
        last_assistant_text: "str | None" = None,
        pending_agents: "tuple[str, ...] | None" = None,
        interactive: "bool | None" = None,
        transcript_path: "str | None" = None,
        raw: "Mapping[str, Any] | None" = None,
    ) -> None:
        self.host = host
        self.kind = kind
        self.native_name = native_name
        self.scope = scope
        self.origin = origin
        self.session_id = session_id
        self.turn_id = turn_id
        self.agent_id = agent_id
        self.cwd = cwd
        self.workspace = workspace
        self.prompt = prompt
        self.command = command
        self.command_args = command_args
        self.command_kind = command_kind
        self.tool = tool
        self.stop_active = stop_active
        self.stop_count = stop_count
        self.last_assistant_text = last_assistant_text
        self.pending_agents = pending_agents
        self.interactive = interactive
        self.transcript_path = transcript_path
        self.raw = raw


class Answer(Value):
    """What gstack says to the host, in neutral words; the adapter renders it.

    At most one of ``inject`` (one line of context for the model), ``deny`` (refuse this tool call or typed
    command, with the reason) and ``block_stop`` (hold the stop, with the reason) is set; ``notice`` (a text
    for the person) goes with any of them or alone. All None: the hook prints nothing.
    """

    __slots__ = ("block_stop", "deny", "inject", "notice")

    def __init__(
        self,
        *,
        inject: "str | None" = None,
        deny: "str | None" = None,
        block_stop: "str | None" = None,
        notice: "str | None" = None,
    ) -> None:
        self.inject = inject
        self.deny = deny
        self.block_stop = block_stop
        self.notice = notice

    @property
    def empty(self) -> bool:
        """True when there is nothing to say (the hook then prints nothing)."""
        return not (self.inject or self.deny or self.block_stop or self.notice)


#: The answer that says nothing.
ALLOW = Answer()


# ----------------------------------------------------------------------------------------------- routing


class Candidate(Value):
    """A skill that a scorer found for a prompt.

    ``score`` lies in 0..1; ``trigger`` is the phrase that scored; ``matched_words`` how many content words of it
    the prompt holds; ``phrase`` whether the whole phrase stood in the prompt; ``evidence`` the positions of the
    matched words in :func:`gstack.routing.words.tokens` of the prompt, ascending (empty: the scorer can't say, and
    the guards of the decision that need positions are skipped); ``equivalents`` how many of the matched words the
    prompt holds only by another word of the same meaning.
    """

    __slots__ = ("equivalents", "evidence", "matched_words", "phrase", "score", "skill", "trigger")

    def __init__(
        self,
        skill: str,
        score: float,
        trigger: str = "",
        *,
        matched_words: int = 0,
        phrase: bool = False,
        evidence: "tuple[int, ...]" = (),
        equivalents: int = 0,
    ) -> None:
        self.skill = skill
        self.score = score
        self.trigger = trigger
        self.matched_words = matched_words
        self.phrase = phrase
        self.evidence = evidence
        self.equivalents = equivalents


#: The states of a :class:`Verdict`.
MET = "met"
MISSING = "missing"
CANNOT_TELL = "cannot_tell"


#: The actions of a :class:`Decision`, weakest first.
ACTIONS = ("allow", "warn", "block")

#: Where the types live that not every hook needs.
_HOMES = {
    "EndVerdict": "contracts",
    "Event": "events",
    "Field": "contracts",
    "Item": "contracts",
    "Run": "contracts",
    "Verdict": "contracts",
    "Decision": "gate",
    "GateContext": "gate",
    "Invocation": "gate",
    "Finding": "settings",
    "Registration": "settings",
    "Skill": "skills",
    "SkillRoot": "skills",
    "ToolCall": "tools",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        """Import a type on its first use; making all of them would cost every hook what three modules cost."""
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'gstack.api' has no attribute {name!r}")
        import sys

        module = "gstack.values." + home
        __import__(module)
        value = globals()[name] = getattr(sys.modules[module], name)
        return value

    def __dir__():
        return sorted([*globals(), *_HOMES])

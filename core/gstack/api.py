"""What plug-ins import: the ``hookimpl`` marker and the value types of all four extension points.

The hook loads this module on every event, so it uses builtins only (no ``dataclasses``, no ``typing``:
together they cost more than the whole hook may). The types are plain classes with ``__slots__``, compare
by value and are treated as immutable. :mod:`gstack.hookspecs` says where each one is used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

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


class ToolCall(Value):
    """One tool call, whatever the host calls the tool.

    ``kind`` is one of :data:`TOOL_KINDS`; ``id`` pairs it with its result (None in a host without ids);
    ``command`` is a shell call's text; ``paths`` what an edit or read names; ``skill``, ``agent_type``,
    ``agent_name`` and ``prompt`` (with ``description``) are set for skill and agent calls; ``input`` is the
    host's own argument object.
    """

    __slots__ = (
        "agent_name",
        "agent_type",
        "background",
        "command",
        "description",
        "id",
        "input",
        "kind",
        "native_name",
        "paths",
        "prompt",
        "skill",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        native_name: str = "",
        *,
        id: "str | None" = None,
        command: "str | None" = None,
        paths: "tuple[str, ...]" = (),
        skill: "str | None" = None,
        agent_type: "str | None" = None,
        agent_name: "str | None" = None,
        description: "str | None" = None,
        prompt: "str | None" = None,
        background: bool = False,
        input: "Mapping[str, Any] | None" = None,
    ) -> None:
        self.kind = kind
        self.native_name = native_name
        self.id = id
        self.command = command
        self.paths = paths
        self.skill = skill
        self.agent_type = agent_type
        self.agent_name = agent_name
        self.description = description
        self.prompt = prompt
        self.background = background
        self.input = input


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


# ------------------------------------------------------------------------------------------------ skills


class Skill(Value):
    """One installed skill as its host sees it.

    ``name`` is how the host invokes it (a directory name, or ``plugin:name``); ``label`` the frontmatter's
    ``name`` when it differs; ``path`` its ``SKILL.md``; ``scope`` is ``personal``, ``project`` or ``plugin``;
    ``routing_off`` whether the skill keeps itself out; ``contract`` the declared contract as plain data (None:
    it declares none); ``sources`` says where ``triggers``, ``routing`` and ``contract`` came from.
    """

    __slots__ = (
        "contract",
        "description",
        "first_step",
        "label",
        "name",
        "path",
        "routing_off",
        "routing_on",
        "scope",
        "sources",
        "triggers",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        path: str,
        *,
        label: "str | None" = None,
        description: str = "",
        scope: str = "personal",
        triggers: "tuple[str, ...]" = (),
        routing_off: bool = False,
        routing_on: bool = False,
        contract: "dict[str, Any] | None" = None,
        first_step: str = "",
        sources: "dict[str, str] | None" = None,
    ) -> None:
        self.name = name
        self.path = path
        self.label = label
        self.description = description
        self.scope = scope
        self.triggers = triggers
        self.routing_off = routing_off
        self.routing_on = routing_on
        self.contract = contract
        self.first_step = first_step
        self.sources = sources or {}


class SkillRoot(Value):
    """A folder that holds skills: ``path``, ``scope`` (as in :class:`Skill`) and, for a plugin, its ``prefix``.

    ``hidden`` are the invocable names that the host's own settings switch off, ``unroutable`` those that they keep
    from the model (only a person can invoke them).
    """

    __slots__ = ("hidden", "path", "prefix", "scope", "unroutable")

    def __init__(
        self,
        path: str,
        scope: str,
        prefix: str = "",
        *,
        hidden: "tuple[str, ...]" = (),
        unroutable: "tuple[str, ...]" = (),
    ) -> None:
        self.path = path
        self.scope = scope
        self.prefix = prefix
        self.hidden = hidden
        self.unroutable = unroutable


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


# --------------------------------------------------------------------------------------------- contracts


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


#: The states of a :class:`Verdict`.
MET = "met"
MISSING = "missing"
CANNOT_TELL = "cannot_tell"


class Verdict(Value):
    """What a kind says of an item: ``status`` (``met``, ``missing`` or ``cannot_tell``) and ``why`` in a few words."""

    __slots__ = ("status", "why")

    def __init__(self, status: str, why: str = "") -> None:
        self.status = status
        self.why = why


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


# -------------------------------------------------------------------------------------------------- gate


class Invocation(Value):
    """One use to decide about.

    ``name`` as the host or the person said it; ``kind`` is ``skill``, ``subagent``, ``command`` or ``any``
    (``--skill``); ``aliases`` are other names of the same installed thing (the directory behind a frontmatter
    label); ``path`` its ``SKILL.md`` where one is installed.
    """

    __slots__ = ("aliases", "host", "kind", "name", "path", "session_id")

    def __init__(
        self,
        name: str,
        kind: str = "any",
        *,
        host: str = "",
        session_id: "str | None" = None,
        aliases: "tuple[str, ...]" = (),
        path: "str | None" = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.host = host
        self.session_id = session_id
        self.aliases = aliases
        self.path = path


class GateContext(Value):
    """What a resolver may know beside the invocation.

    ``state_root`` is gstack's state folder; ``now`` seconds since the epoch; ``machine`` and ``user`` the names
    that exceptions may be made for; ``explain`` asks for every rule that applied, not only the strongest.
    """

    __slots__ = ("explain", "machine", "now", "state_root", "user")

    def __init__(
        self, state_root: str, now: float, *, machine: str = "", user: str = "", explain: bool = False
    ) -> None:
        self.state_root = state_root
        self.now = now
        self.machine = machine
        self.user = user
        self.explain = explain


#: The actions of a :class:`Decision`, weakest first.
ACTIONS = ("allow", "warn", "block")


class Decision(Value):
    """What a resolver says of an invocation.

    ``action`` is ``allow``, ``warn`` or ``block``; ``reason`` one sentence; ``skill_name`` and ``version`` the
    catalogue entry that was meant (the invoked name where none was); ``policy_id`` and ``policy_name`` the policy
    that decided, None for a default; ``replacement`` what to use instead; ``entry_kind`` the kind of the entry (a
    ``command`` is capped at warn by the core); ``governed`` whether an audit event is due; ``rules`` every rule that
    applied, strongest first, as ``(action, rule, reason)``.
    """

    __slots__ = (
        "action",
        "entry_kind",
        "governed",
        "overridable",
        "policy_id",
        "policy_name",
        "reason",
        "replacement",
        "resolver",
        "rule",
        "rules",
        "skill_name",
        "version",
    )  # fmt: skip

    def __init__(
        self,
        action: str,
        reason: str = "",
        *,
        skill_name: str = "",
        version: "str | None" = None,
        policy_id: "str | None" = None,
        policy_name: "str | None" = None,
        replacement: "str | None" = None,
        entry_kind: str = "skill",
        governed: bool = True,
        rule: str = "",
        rules: "Sequence[tuple[str, str, str]]" = (),
        overridable: bool = False,
        resolver: str = "",
    ) -> None:
        self.action = action
        self.reason = reason
        self.skill_name = skill_name
        self.version = version
        self.policy_id = policy_id
        self.policy_name = policy_name
        self.replacement = replacement
        self.entry_kind = entry_kind
        self.governed = governed
        self.rule = rule
        self.rules = tuple(rules)
        self.overridable = overridable
        self.resolver = resolver


# ----------------------------------------------------------------------------------------- registration


class Registration(Value):
    """One entry that gstack wants in a host's settings: ``event`` (the host's own name), ``matcher`` (None: all),
    ``args`` for the launcher, ``timeout`` in seconds and ``condition`` (the host's own filter, None: none)."""

    __slots__ = ("args", "condition", "event", "feature", "matcher", "timeout")

    def __init__(
        self,
        event: str,
        args: "tuple[str, ...]",
        *,
        feature: str,
        matcher: "str | None" = None,
        timeout: int = 10,
        condition: "str | None" = None,
    ) -> None:
        self.event = event
        self.args = args
        self.feature = feature
        self.matcher = matcher
        self.timeout = timeout
        self.condition = condition


class Finding(Value):
    """One line of a diagnosis: ``status`` is ``ok``, ``warn``, ``fail`` or ``info``; ``fix`` says what to do."""

    __slots__ = ("check", "detail", "fix", "status")

    def __init__(self, status: str, check: str, detail: str = "", fix: str = "") -> None:
        self.status = status
        self.check = check
        self.detail = detail
        self.fix = fix

"""What gate resolvers are asked and say.

Hot: builtins only. Import these names from :mod:`gstack.api`.
"""

from gstack.api import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


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

"""The gate's decision: rules that matched become one answer, resolvers' answers become one, then floor and cap.

Hot: imported by the hook, so builtins only. Pure functions of their arguments, apart from :func:`decide`, which
asks the resolvers and reads what the floor needs. The hook, ``gstack gate``, ``gate test``, ``simulate`` and the
replay all decide here.
"""

from gstack.api import ACTIONS
from gstack.gate.freshness import Freshness, read_freshness
from gstack.gate.names import RESERVED, glob_match, meanings, namespace, normal
from gstack.lowlevel import sys_os
from gstack.values.gate import Decision, GateContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from gstack.api import Invocation
    from gstack.errors import BundleError
    from gstack.gate.names import Candidate, Source

ALLOW, WARN, BLOCK = range(3)

#: Where a rule comes from; of equally strong ones the lower is named (gate G1).
POLICY, STATUS, DRIFT, DEFAULT = range(4)

#: The places in a rule, which is a plain tuple so that the compiled index can hold it:
#: rank (index into ACTIONS), source (above), order (in the bundle), rule (``policy:<id>``), reason, policy id, policy
#: name, replacement, overridable, expires (seconds since the epoch or None) and exceptions, each of them
#: ``(name glob or None, machine or None, user or None, until or None, text)``.
RANK, SOURCE, ORDER, RULE, REASON, POLICY_ID, POLICY_NAME, REPLACEMENT, OVERRIDABLE, EXPIRES, EXCEPTIONS = range(11)

#: The places in a candidate (see :mod:`gstack.gate.names`).
NAME, VERSION, KIND, DIGEST, RULES, DRIFT_RULES, ENTRY_ORDER = range(7)

#: What a catalogue entry that no rule speaks against gets.
_APPROVED = (ALLOW, DEFAULT, 0, "approved", "", None, None, None, False, None, ())
_RESERVED = (ALLOW, DEFAULT, 0, "reserved", "skillsvault system skill.", None, None, None, False, None, ())


def strength(rule: "tuple[Any, ...]") -> "tuple[int, int, int]":
    """What rules are ordered by: strongest first, then policies, status, drift and defaults, each in bundle order."""
    return (-rule[RANK], rule[SOURCE], rule[ORDER])


# ------------------------------------------------------------------------------------ rules -> one decision


def decide_from(source: "Source", invocation: "Invocation", context: GateContext) -> "Decision | None":
    """What one bundle says of an invocation; None when that has no recognisable name.

    ``source`` is a compiled index or a :class:`gstack.gate.rules.Rulebook`: both give the same decision, the latter
    with every rule that applied.
    """
    found = meanings(source, invocation)
    if not found:
        return None
    return fold(found, invocation.kind, context, drifted=_drifted(found, invocation, context))


def _drifted(found: "Sequence[Candidate]", invocation: "Invocation", context: GateContext) -> bool:
    """Whether the installed copy is none of the approved ones."""
    if not invocation.path:
        return False
    digests = [one[DIGEST] for one in found if one[DIGEST]]
    if not digests:
        return False
    from gstack.gate.digest import installed_digest

    digest = installed_digest(context.state_root, invocation.path)
    return digest is not None and digest not in digests


def fold(found: "Sequence[Candidate]", kind: str, context: GateContext, *, drifted: bool = False) -> Decision:
    """The decision about an invocation of ``kind`` that can mean any of the candidates ``found`` (gate G1).

    The most restrictive wins, of equals the first in the bundle. Where a typed name means both a command and
    something else, the command's part is capped at warn here, so that it can't hide the other's block.
    ``drifted`` says that the installed copy isn't the approved one.
    """
    if len(found) == 1:
        one = found[0]
        rule, lifted, firm, shown = _judge(one, context, drifted)
        rank, entry = rule[RANK], one[KIND]
    else:
        one, rule, rank, lifted, firm, shown, entry = _strongest(found, context, drifted)
    if entry is None:
        entry = kind if kind in ("command", "subagent") else "skill"
    return Decision(
        ACTIONS[rank],
        _reason(rule, lifted) if lifted else rule[REASON],
        skill_name=one[NAME],
        version=one[VERSION],
        policy_id=rule[POLICY_ID],
        policy_name=rule[POLICY_NAME],
        replacement=rule[REPLACEMENT],
        entry_kind=entry,
        governed=_governed(found, shown),
        rule=rule[RULE],
        rules=[(ACTIONS[each[RANK]], each[RULE], each[REASON]) for each in shown],
        overridable=rank == BLOCK and not firm,
    )


def _strongest(found: "Sequence[Candidate]", context: GateContext, drifted: bool) -> "tuple[Any, ...]":
    """Of several candidates: the one that decides, its rule and rank, what was lifted, whether a block is firm, all
    rules that are in force, and the kind of entry that the answer is about."""
    commands = [one[KIND] == "command" for one in found]
    mixed = any(commands) and not all(commands)
    best: tuple[Any, ...] = ()
    shown: list[tuple[Any, ...]] = []
    firm = False
    for place, one in enumerate(found):
        rule, lifted, solid, applied = _judge(one, context, drifted)
        shown += applied
        rank = WARN if mixed and commands[place] and rule[RANK] == BLOCK else rule[RANK]
        firm = firm or (rank == BLOCK and solid)
        key = (-rank, rule[SOURCE], rule[ORDER], place)
        if not best or key < best[0]:
            best = (key, one, rule, rank, lifted)
    shown.sort(key=strength)
    _, one, rule, rank, lifted = best
    entry = next(other[KIND] for other in found if other[KIND] != "command") if mixed else one[KIND]
    return one, rule, rank, lifted, firm, shown, entry


def _judge(
    one: "Candidate", context: GateContext, drifted: bool
) -> "tuple[tuple[Any, ...], list[str], bool, list[tuple[Any, ...]]]":
    """The rule that decides about one candidate, the stronger ones that an exception lifts, whether a block that
    can't be overridden is in force, and all rules that are."""
    name = one[NAME]
    if name[: len(RESERVED)].lower() == RESERVED and namespace(name.lower()) == RESERVED:
        return _RESERVED, [], False, [_RESERVED]
    rules = one[RULES]
    if drifted and one[DIGEST]:
        rules = tuple(sorted(rules + one[DRIFT_RULES], key=strength))
    lifted: list[Any] = []
    applied: list[tuple[Any, ...]] = []
    solid = False
    for rule in rules:
        expires = rule[EXPIRES]
        if expires is not None and context.now >= expires:
            continue
        text = _exception(rule[EXCEPTIONS], name, context) if rule[EXCEPTIONS] else None
        if text is not None:
            if not applied:
                lifted.append((rule[RANK], text))
            continue
        applied.append(rule)
        solid = solid or (rule[RANK] == BLOCK and not rule[OVERRIDABLE])
    if not applied:
        applied.append(_APPROVED)
    if lifted:
        lifted = [text for rank, text in lifted if rank > applied[0][RANK]]
    return applied[0], lifted, solid, applied


def _exception(exceptions: "Iterable[tuple[Any, ...]]", name: str, context: "GateContext") -> "str | None":
    """The text of the first exception that holds for this name, machine and user; None when none does."""
    for glob, machine, user, until, text in exceptions:
        if until is not None and context.now >= until:
            continue
        if machine is not None and machine != context.machine.lower():
            continue
        if user is not None and user != context.user.lower():
            continue
        if glob is None or glob_match(glob, name.lower()):
            return str(text)
    return None


def _reason(rule: "tuple[Any, ...]", lifted: "list[Any]") -> str:
    """The rule's reason, with the exceptions that made it less than it would be elsewhere (gate: the same on every
    machine)."""
    return " ".join([part for part in (rule[REASON], *lifted) if part])


def _governed(found: "Sequence[Candidate]", shown: "Iterable[tuple[Any, ...]]") -> bool:
    for one in found:
        if one[KIND] is not None:
            return True
    return any(rule[SOURCE] == POLICY or rule[RULE] == "default:managed_missing_manifest" for rule in shown)


# --------------------------------------------------------------------------- decisions -> the gate's answer


def reserved(invocation: "Invocation") -> bool:
    """Whether every name of what is invoked lies in the reserved namespace, which is always allowed (gate G1)."""
    names = [normal(name) for name in (invocation.name, *invocation.aliases)]
    return all(namespace(name) == RESERVED for name in names)


def combine(
    decisions: "Sequence[Decision]",
    freshness: "Freshness | None" = None,
    overridden: "Callable[[Decision], str | None] | None" = None,
) -> "Decision | None":
    """One answer of all resolvers' (gate G1, G8): the most restrictive, of equals the first.

    None when nobody has an opinion. On each of them, in this order: a person's override of an overridable block
    (``overridden`` gives its text), the stale floor, the cap on commands. The cap is per decision, so that a command's
    block never hides a skill's.
    """
    best: Decision | None = None
    for one in decisions:
        if overridden is not None and one.action == "block" and one.overridable:
            text = overridden(one)
            one = one if text is None else _changed(one, "warn", text, "override")
        if freshness is not None and freshness.stale and one.rule != "reserved" and _weaker(one, freshness.action):
            one = _changed(one, freshness.action, freshness.reason, "stale")
        if one.entry_kind == "command" and one.action == "block":
            one = _changed(one, "warn", one.reason, one.rule)
        if best is None or _weaker(best, one.action):
            best = one
    return best


def _weaker(one: Decision, action: str) -> bool:
    return ACTIONS.index(one.action) < ACTIONS.index(action)


def _changed(one: Decision, action: str, reason: str, rule: str) -> Decision:
    """``one`` with another action; a new rule takes the place of the policy that was named."""
    same = rule == one.rule
    return Decision(
        action,
        reason,
        skill_name=one.skill_name,
        version=one.version,
        policy_id=one.policy_id if same or rule == "override" else None,
        policy_name=one.policy_name if same or rule == "override" else None,
        replacement=one.replacement if same else None,
        entry_kind=one.entry_kind,
        governed=one.governed or rule == "override",
        rule=rule,
        rules=one.rules if same else ((action, rule, reason), *one.rules),
        resolver=one.resolver,
    )


class Outcome:
    """What the gate found.

    ``decision`` is None when nobody has an opinion; ``base`` its action without staleness and overrides (for the log);
    ``bundle_error`` says that the bundle is missing or can't be used; ``failures`` are the resolvers that were left
    out, with why; ``freshness`` and ``notice`` (a state folder that others can write) are set where a bundle was read.
    """

    __slots__ = ("base", "bundle_error", "decision", "failures", "freshness", "notice")

    def __init__(self) -> None:
        self.decision: Decision | None = None
        self.base = ""
        self.bundle_error: BundleError | None = None
        self.failures: list[tuple[str, str]] = []
        self.freshness: Freshness | None = None
        self.notice = ""


def gate_context(root: str, env: "Mapping[str, str]", now: float, *, explain: bool = False) -> GateContext:
    """The facts about this machine that a decision may depend on: its node name and the login name."""
    if hasattr(sys_os, "uname"):
        machine = sys_os.uname().nodename
    else:
        machine = env.get("COMPUTERNAME", "")
    return GateContext(root, now, machine=machine, user=_login(env), explain=explain)


def _login(env: "Mapping[str, str]") -> str:
    for name in ("USER", "LOGNAME", "USERNAME"):
        if env.get(name):
            return env[name]
    try:
        import pwd

        return pwd.getpwuid(sys_os.getuid()).pw_name
    except (ImportError, KeyError, AttributeError):
        return ""


def decide(
    resolvers: "Sequence[tuple[str, Any]]",
    invocation: "Invocation",
    context: GateContext,
    call: "Callable[..., Any]",
) -> Outcome:
    """Ask every resolver (``(plug-in id, object)``) through ``call(owner, function, *args)`` and combine what they say.

    A resolver that fails is reported and left out, so that it can't swallow another's block. A bundle that is
    missing or can't be used ends up in ``bundle_error``.
    """
    outcome = Outcome()
    if reserved(invocation):
        name = normal(invocation.name)
        outcome.decision = fold([(name, None, None, None, (), (), 0)], invocation.kind, context)
        outcome.base = "allow"
        return outcome
    decisions = _ask_all(resolvers, invocation, context, call, outcome)
    if outcome.bundle_error is None:
        _read_state(context, outcome)

    def overridden(one: Decision) -> "str | None":
        from gstack.gate.overrides import override_text

        return override_text(context.state_root, one, context.now)

    outcome.decision = combine(decisions, outcome.freshness, overridden)
    if outcome.decision is not None:
        raised = outcome.decision.rule in ("stale", "override")
        plain = combine(decisions) if raised else outcome.decision
        outcome.base = plain.action if plain else ""
        if context.explain and len(decisions) > 1:
            others = [rule for one in decisions if one.resolver != outcome.decision.resolver for rule in one.rules]
            rules = [*outcome.decision.rules, *others]
            outcome.decision.rules = tuple(sorted(rules, key=lambda rule: -ACTIONS.index(rule[0])))
    return outcome


def _ask_all(
    resolvers: "Sequence[tuple[str, Any]]",
    invocation: "Invocation",
    context: GateContext,
    call: "Callable[..., Any]",
    outcome: Outcome,
) -> "list[Decision]":
    decisions = []
    for plugin, resolver in resolvers:
        try:
            said = call(resolver, _ask, resolver, invocation, context, "." in plugin)
        except Exception as failed:
            outcome.failures.append((plugin, getattr(failed, "what", None) or type(failed).__name__))
            continue
        if isinstance(said, Decision):
            decisions.append(_complete(said, plugin, invocation))
        elif said is not None:
            outcome.bundle_error = said
    return decisions


def _complete(said: Decision, plugin: str, invocation: "Invocation") -> Decision:
    """``said`` with what a resolver may leave out: its name, the name that it decided about, a rule."""
    if said.resolver and said.skill_name and said.rule:
        return said
    rule = said.rule or "resolver:" + plugin
    return Decision(
        said.action,
        said.reason,
        skill_name=said.skill_name or normal(invocation.name),
        version=said.version,
        policy_id=said.policy_id,
        policy_name=said.policy_name,
        replacement=said.replacement,
        entry_kind=said.entry_kind,
        governed=said.governed,
        rule=rule,
        rules=said.rules or ((said.action, rule, said.reason),),
        overridable=said.overridable,
        resolver=said.resolver or plugin,
    )


def _ask(resolver: "Any", invocation: "Invocation", context: GateContext, outside: bool) -> object:
    """What a resolver says; an unusable bundle comes back as a value, since it is no fault of the plug-in.

    Raises Unsound for what is neither a Decision nor None. The texts of an ``outside`` one are made fit to be shown.
    """
    try:
        said = resolver.decide(invocation, context)
    except Exception as error:
        from gstack.errors import BundleError  # not before: it costs more than asking

        if isinstance(error, BundleError):
            return error
        raise
    if said is None or (not outside and isinstance(said, Decision)):
        return said
    from gstack.gate.answers import sound

    return sound(said)


def _read_state(context: GateContext, outcome: Outcome) -> None:
    """How fresh the bundle is, if a resolver read one in this process."""
    from gstack.gate.index import opened

    index = opened(context.state_root)
    if index is not None:
        outcome.freshness = read_freshness(context.state_root, index.header, context.now)
        outcome.notice = index.notice

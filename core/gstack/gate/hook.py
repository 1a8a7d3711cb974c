"""The gate's hook entry: what is used, may it be, and what to say (gate G2, G3).

Hot: imported on every use of a skill, subagent or typed command, so builtins only. Log line, session record, audit
event and background refresh come after the answer. It never says ``allow``: where nothing speaks against a use, it
says nothing.
"""

from gstack.api import ALLOW, COMMAND_TYPED, Answer
from gstack.gate.decision import decide, gate_context
from gstack.gate.freshness import STALE_AFTER, connected
from gstack.gate.index import Index, bundle_path, opened, store_missing
from gstack.gate.names import normal
from gstack.logs import log
from gstack.lowlevel import join, sys_os
from gstack.sessions import read_session, update_session
from gstack.snapshot import node
from gstack.values.gate import Invocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gstack.api import HookEvent
    from gstack.errors import BundleError
    from gstack.gate.decision import Outcome
    from gstack.hook import HookContext
    from gstack.snapshot import SkillIndex

#: The log's name under ``hooks/``.
LOG = "skill-gate"
_GROUP = "gstack.gate_resolvers"

#: Bundles above this size, in bytes, are compiled by a process of their own: the host waits for this one.
_LARGE = 1 << 20

#: Least time between two such processes, in seconds.
_COMPILE_EVERY = 60.0


def answer(ctx: "HookContext") -> Answer:
    """What to say of this use. Called when the switch is on or observe; every decision is logged."""
    invocation = invoked(ctx)
    if invocation is None:
        return ALLOW
    outcome = judge(ctx, invocation)
    _later(ctx, invocation, outcome)
    return _answer(ctx, outcome)


def would_block(ctx: "HookContext", skill: str) -> bool:
    """Whether the gate would block this installed skill now. Logs nothing; False where it can't tell."""
    try:
        decision = judge(ctx, installed(ctx.skills(), skill, "skill", host=ctx.host.id)).decision
    except Exception:
        return False
    return decision is not None and decision.action == "block"


def judge(ctx: "HookContext", invocation: Invocation, *, explain: bool = False) -> "Outcome":
    """Ask the resolvers of this process's plan: the one road for the hook, the router and ``gstack gate --skill``."""
    context = gate_context(ctx.root, ctx.env, ctx.now, explain=explain)
    return decide(ctx.plan.objects(_GROUP), invocation, context, ctx.call)


# ----------------------------------------------------------------------------------------- what is invoked


def invoked(ctx: "HookContext") -> "Invocation | None":
    """What the event uses; None when it names nothing that the gate knows of (gate G2)."""
    event = ctx.event
    if event.kind == COMMAND_TYPED:
        if event.command_kind == "mcp" or not event.command:
            return None
        return known(ctx, event.command, "command")
    tool = event.tool
    if tool is None:
        return None
    if tool.kind == "skill" and tool.skill:
        return known(ctx, tool.skill, "skill")
    if tool.kind == "agent" and tool.agent_type and normal(tool.agent_type):
        return Invocation(tool.agent_type, "subagent", host=event.host, session_id=event.session_id)
    if tool.kind == "read" and tool.paths and tool.paths[0].lower().endswith("skill.md"):
        skills = _skills(ctx)
        name = skill_at(skills, tool.paths[0], event) if skills is not None else None
        return known(ctx, name, "skill") if name else None
    return None


def known(ctx: "HookContext", name: str, kind: str) -> "Invocation | None":
    """The invocation of ``name`` with what is installed here; None for a name that is none."""
    event, skills = ctx.event, _skills(ctx)
    if not normal(name):
        return None
    if skills is None:
        return Invocation(name, kind, host=event.host, session_id=event.session_id)
    return installed(skills, name, kind, host=event.host, session_id=event.session_id)


def _skills(ctx: "HookContext") -> "SkillIndex | None":
    """The installed skills; None when they can't be read, which must not switch the gate off."""
    try:
        return ctx.skills()
    except Exception as error:
        what = f"error skills what={type(error).__name__}"
        ctx.later(lambda: log(ctx.root, LOG, ctx.event.session_id, what))
        return None


def installed(
    skills: "SkillIndex", name: str, kind: str, *, host: str = "", session_id: "str | None" = None
) -> Invocation:
    """The invocation of ``name``, with the other names that the host has for the same installed skill (gate G2).

    A ban can't be dodged by a frontmatter name, by another directory name, or by leaving out a plugin's prefix.
    """
    plain = normal(name)
    said = name.strip().lstrip("/")
    found = [one for one in (said, plain) if one in skills.names]
    found += [skills.labels[one] for one in (said, plain) if one in skills.labels]
    if not found:
        found = [one for one in skills.names if one.lower() == plain or one.lower().endswith(":" + plain)]
        found += [one for label, one in skills.labels.items() if label.lower() == plain]
    labels = [label for label, one in skills.labels.items() if one in found and len(label.split()) == 1]
    aliases = dict.fromkeys([one for one in (*found, *labels) if one != name])
    path = skills.names.get(found[0]) if found else None
    return Invocation(name, kind, host=host, session_id=session_id, aliases=tuple(aliases), path=path)


def skill_at(skills: "SkillIndex", path: str, event: "HookEvent") -> "str | None":
    """The installed skill whose ``SKILL.md`` a path leads to, by whatever spelling or link; None for any other file."""
    if not path.startswith("/") and path[1:2] != ":":
        path = join(event.cwd or ".", path)
    tidy = _tidy(path)
    for name, file in skills.names.items():
        if file in (path, tidy):
            return name
    targets = [target for target in (node(path), node(tidy)) if target is not None]
    for name, file in skills.names.items() if targets else ():
        if node(file) in targets:
            return name
    return None


def _tidy(path: str) -> str:
    """``path`` without ``.``, ``..`` and doubled slashes, as a host resolves it before it opens the file."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and len(parts) > 1:
            parts.pop()
        elif part not in ("", ".", "..") or not parts:
            parts.append(part)
    return "/".join(parts)


# ------------------------------------------------------------------------------------------------- answers


def _answer(ctx: "HookContext", outcome: "Outcome") -> Answer:
    decision = outcome.decision
    deny, notices = None, []
    if decision is not None and decision.action != "allow":
        from gstack.gate.texts import deny_text, warn_text

        if decision.action == "block":
            found = opened(ctx.root)
            deny = deny_text(decision, found.header if found is not None else None)
        else:
            notices.append(warn_text(decision))
    notices += [text for text in (bundle_notice(ctx.root, outcome), _folder_notice(ctx, outcome)) if text]
    return Answer(deny=deny, notice=" ".join(notices) or None) if deny or notices else ALLOW


def bundle_notice(root: str, outcome: "Outcome") -> str:
    """What is said of a bundle that is missing or can't be used; empty when it is fine."""
    error = outcome.bundle_error
    if error is None:
        return ""
    from gstack.gate.texts import NEVER_SYNCED, NOT_CONFIGURED, unusable

    if _is_missing(error):
        return NEVER_SYNCED if connected(root) else NOT_CONFIGURED
    return unusable(error.message)


def _is_missing(error: "BundleError | None") -> bool:
    if error is None:
        return False
    from gstack.errors import BundleMissing  # the errors cost more than all of the gate, and most hooks have none

    return isinstance(error, BundleMissing)


def _folder_notice(ctx: "HookContext", outcome: "Outcome") -> str:
    """A state folder that others can write is said once a session."""
    if not outcome.notice:
        return ""
    session = ctx.event.session_id
    if "gate-folder" in read_session(ctx.root, session).notices:
        return ""
    ctx.later(lambda: update_session(ctx.root, session, notice="gate-folder"))
    return f"gstack: {outcome.notice}."


# -------------------------------------------------------------------------------------- after the answer


def _later(ctx: "HookContext", invocation: Invocation, outcome: "Outcome") -> None:
    """Everything that the host needn't wait for, each step on its own, the cheapest first."""
    observing = ctx.switch.value == "observe"
    session = ctx.event.session_id
    ctx.later(lambda: log(ctx.root, LOG, session, log_line(invocation, outcome, observing=observing)))
    for plugin, what in outcome.failures:
        line = f"error resolver={plugin} what={what}"
        ctx.later(lambda line=line: log(ctx.root, LOG, session, line))  # type: ignore[misc]
    ctx.later(lambda: _remember(ctx, invocation, outcome, observing=observing))
    if not observing:
        ctx.later(lambda: _report(ctx, outcome))
    ctx.later(lambda: _refresh(ctx, outcome))
    ctx.later(lambda: _store_index(ctx))


def log_line(invocation: Invocation, outcome: "Outcome", *, observing: bool = False) -> str:
    """One line of ``hooks/skill-gate.log``: what ``simulate`` and reports read. Values hold no spaces."""
    decision, error = outcome.decision, outcome.bundle_error
    fields = {"decision": "none"}
    if decision is not None:
        fields = {
            "decision": decision.action,
            "name": decision.skill_name,
            "version": decision.version or "",
            "rule": decision.rule,
            "base": outcome.base if outcome.base != decision.action else "",
        }
    fields["invoked"] = normal(invocation.name)
    fields["as"] = ",".join([one for one in invocation.aliases if "," not in one])
    fields["kind"] = invocation.kind
    fields["host"] = invocation.host
    if error is not None:
        fields["bundle"] = "missing" if _is_missing(error) else "unusable"
    fields["mode"] = "observe" if observing else ""
    return " ".join([f"{key}={value.replace(' ', '%20')[:200]}" for key, value in fields.items() if value])


def _remember(ctx: "HookContext", invocation: Invocation, outcome: "Outcome", *, observing: bool) -> None:
    """Note in the session record that a skill was loaded, or blocked, by the name that the host has for it."""
    event, decision = ctx.event, outcome.decision
    if invocation.path is None or event.scope == "subagent":
        return
    skills = ctx.skills()
    name = next((name for name, path in skills.names.items() if path == invocation.path), invocation.name)
    blocked = decision is not None and decision.action == "block" and not observing
    # read first: the lock costs more than all of the gate, and most uses are of a skill that was noted before
    session = read_session(ctx.root, event.session_id)
    if name not in (session.blocked if blocked else session.loaded):
        new: list[str] = [name]
        update_session(ctx.root, event.session_id, blocked=new if blocked else (), loaded=() if blocked else new)


def _report(ctx: "HookContext", outcome: "Outcome") -> None:
    """Put the decision about a governed name into the audit spool, and see that somebody sends it (gate G6)."""
    decision = outcome.decision
    if decision is None or not decision.governed or not connected(ctx.root):
        return
    from gstack.gate.audit import append, decision_event, maybe_send

    machine = gate_context(ctx.root, ctx.env, ctx.now).machine
    append(ctx.root, decision_event(decision, harness=ctx.host.id, machine=machine, now=ctx.now), now=ctx.now)
    maybe_send(ctx.root, ctx.now)


def _refresh(ctx: "HookContext", outcome: "Outcome") -> None:
    """Start a detached sync where the bundle is due, or was never fetched (gate G5)."""
    fresh, found = outcome.freshness, opened(ctx.root)
    missing = _is_missing(outcome.bundle_error) and connected(ctx.root)
    if not missing and (fresh is None or not fresh.due):
        return
    from gstack.gate.refresh import maybe_start

    stale_after = found.header["stale_after"] if found is not None else STALE_AFTER
    maybe_start(ctx.root, ctx.now, stale_after_s=stale_after)


def _store_index(ctx: "HookContext") -> None:
    """See that the index which this process found missing or stale is there for the next one."""
    found = opened(ctx.root)
    if found is None or isinstance(found, Index) or found.notice:
        return
    if sys_os.stat(bundle_path(ctx.root)).st_size <= _LARGE:
        store_missing(ctx.root)
        return
    from gstack.gate.refresh import claim, start

    if claim(join(ctx.root, "gate", "index.lock"), ctx.now, _COMPILE_EVERY):
        start(ctx.root, ("bundle", "verify"))

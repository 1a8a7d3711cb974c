"""``gstack gate --skill``: the gate for a person or CI, decided by the hook's own code (gate G3). Cold."""

import time
from collections.abc import Mapping
from typing import Any

from gstack.api import TOOL_PROPOSED, HookEvent, Invocation
from gstack.config import read_config, switch
from gstack.errors import BundleError, BundleMissing, CheckFailed, GstackError, StateError, UsageError
from gstack.gate.decision import Outcome, gate_context
from gstack.gate.freshness import connected
from gstack.gate.hook import LOG, judge, known, log_line
from gstack.gate.index import load, opened, store_missing
from gstack.gate.overrides import LONGEST, add_override
from gstack.gate.texts import exception_page
from gstack.hook import HookContext
from gstack.launcher import import_paths
from gstack.logs import log
from gstack.snapshot import load_plan
from gstack.state import state_root

#: What the audit calls the command line, where it names the agent for a hook.
HARNESS = "cli"

#: The built-in resolver that asks the bundle.
BUNDLE_RESOLVER = "policy_bundle"

#: How long sending may take after the answer, in seconds (gate G6).
SEND_BUDGET = 1.5


class Report:
    """What the gate says of one name: the ``outcome`` and the bundle's ``header`` (None: no usable bundle)."""

    def __init__(self, ctx: HookContext, invocation: Invocation, outcome: Outcome) -> None:
        self.ctx = ctx
        self.invocation = invocation
        self.outcome = outcome
        found = opened(ctx.root) if outcome.bundle_error is None else None
        self.header: Mapping[str, Any] | None = found.header if found is not None else None

    @property
    def bundle_missing(self) -> bool:
        """Whether there is no bundle on this machine."""
        return isinstance(self.outcome.bundle_error, BundleMissing)

    @property
    def unasked(self) -> str:
        """Why the bundle had no say in this, though one may be here; empty when it was asked or failed (which
        ``outcome.failures`` tells)."""
        working = [plugin for plugin, _ in self.ctx.plan.objects("gstack.gate_resolvers")]
        if not working:
            return "no gate resolver works here, so nothing was checked (see gstack plugins list)"
        if BUNDLE_RESOLVER not in working:
            return (
                f"the gate resolver {BUNDLE_RESOLVER} doesn't work here: no bundle was asked (see gstack plugins list)"
            )
        return ""

    @property
    def hostless(self) -> str:
        """What isn't known because no host's adapter works here; empty where one does."""
        if self.ctx.host is not _NoHost:
            return ""
        return "no host adapter works here, so installed skills with names of their own aren't recognised"

    def need_bundle(self) -> None:
        """Raise BundleError unless a usable bundle is here and was asked."""
        load(self.ctx.root)
        failed = [what for plugin, what in self.outcome.failures if plugin == BUNDLE_RESOLVER]
        problem = self.unasked or (f"the gate resolver {BUNDLE_RESOLVER} failed ({failed[0]})" if failed else "")
        if problem:
            raise BundleError(f"the policy bundle wasn't asked: {problem}")

    def exception_page(self) -> str:
        """Where to ask for an exception; empty where there is no page."""
        return exception_page(self.outcome.decision, self.header) if self.outcome.decision else ""


def ask(env: Mapping[str, str], cwd: str, name: str, *, kind: str = "any", explain: bool = False) -> Report:
    """What the gate says of ``name``, of whatever kind unless one is given; ``explain`` collects every rule that
    applied.

    Raises BundleError for a bundle that can't be used; a missing one is part of the report.
    """
    ctx = _context(env, cwd)
    invocation = known(ctx, name, kind)
    if invocation is None:
        raise UsageError(f"{name!r} names nothing that could be used")
    outcome = judge(ctx, invocation, explain=explain)
    report = Report(ctx, invocation, outcome)
    if outcome.bundle_error is not None and not report.bundle_missing:
        raise outcome.bundle_error
    return report


class _NoHost:
    """Stands for the host where no adapter works: then no skill is known to be installed, and names mean what the
    bundle says they mean."""

    id = HARNESS
    skill_variables = ()

    @staticmethod
    def skill_places(*_: object) -> tuple[list[Any], list[str]]:
        """No folder is read."""
        return [], []

    @staticmethod
    def taken_names() -> tuple[str, ...]:
        """No name is taken."""
        return ()


def _context(env: Mapping[str, str], cwd: str) -> HookContext:
    """What the hook would be given for a use in ``cwd``, without a session: of Claude Code, where its adapter works,
    else of the first host that has one."""
    root = state_root(dict(env))
    config = read_config(root)
    plan = load_plan(root, import_paths(), env)
    host = plan.get("gstack.host_adapters", "claude-code") or next(
        (one for _, one in plan.objects("gstack.host_adapters")), _NoHost
    )
    started = time.monotonic()
    event = HookEvent(HARNESS, TOOL_PROPOSED, "gate", cwd=cwd)
    found = switch("gate", env, config)
    return HookContext(event, dict(env), root, config, host, plan, found, None, started, started + 3600)


def afterwards(report: Report) -> None:
    """What comes after the answer: the log line, the audit event (sent within 1.5 s), the refresh. Never raises."""
    ctx, outcome = report.ctx, report.outcome
    log(ctx.root, LOG, None, log_line(report.invocation, outcome))
    try:
        store_missing(ctx.root)
        decision = outcome.decision
        if decision is not None and decision.governed:
            from gstack.gate.audit import decision_event

            machine = gate_context(ctx.root, ctx.env, ctx.now).machine
            _send(ctx.root, decision_event(decision, harness=HARNESS, machine=machine, now=ctx.now), ctx.now)
        if outcome.freshness is not None and outcome.freshness.due and report.header is not None:
            from gstack.gate.refresh import maybe_start

            maybe_start(ctx.root, ctx.now, stale_after_s=report.header["stale_after"])
    except (OSError, GstackError) as error:
        log(ctx.root, LOG, None, f"error after-answer what={type(error).__name__}")


def _send(root: str, event: dict[str, Any], now: float) -> bool:
    """Record an event and send what waits; False when the event wasn't recorded. Raises OSError."""
    if not connected(root):
        return False
    from gstack.gate.audit import append
    from gstack.gate.spool import flush

    recorded = append(root, event, now=now)
    flush(root, SEND_BUDGET)
    return recorded


def allow(env: Mapping[str, str], cwd: str, name: str, *, seconds: float, reason: str) -> tuple[str, float, str]:
    """Let ``name`` through on this machine for a while, where the policy that blocks it may be overridden; audited.

    Gives the full name, the end in seconds since the epoch, and why the organisation isn't told (empty: it is, or
    this machine reports to none). Raises CheckFailed when nothing blocks it or the
    policy can't be overridden, BundleError without a usable bundle, StateError when it can't be written.
    """
    report = ask(env, cwd, name)
    ctx, decision = report.ctx, report.outcome.decision
    if report.outcome.bundle_error is not None:
        raise BundleError("there is no policy bundle on this machine, so nothing is blocked")
    if decision is None or (decision.action != "block" and decision.rule != "override"):
        raise CheckFailed(f"{decision.skill_name if decision else name} isn't blocked, so there is nothing to allow")
    if decision.action == "block" and not decision.overridable:
        page = report.exception_page()
        where = f"ask for an exception: {page}" if page else "ask your organisation for an exception"
        raise CheckFailed(f"{decision.skill_name} is blocked by a rule that can't be overridden here; {where}")
    until = ctx.now + min(seconds, LONGEST)
    context = gate_context(ctx.root, ctx.env, ctx.now)
    try:
        add_override(ctx.root, decision.skill_name, until, reason, context.user, ctx.now)
    except OSError as error:
        raise StateError(f"the override can't be written: {error.strerror or error}") from None
    log(ctx.root, LOG, None, f"override name={decision.skill_name} for={int(until - ctx.now)}s rule={decision.rule}")
    return decision.skill_name, until, _audit_override(report, reason, seconds, context.machine)


def _audit_override(report: Report, reason: str, seconds: float, machine: str) -> str:
    """Record the override; why it could not be, empty when it was or nobody takes events."""
    from gstack.gate.audit import decision_event, takes_events

    ctx, decision = report.ctx, report.outcome.decision
    assert decision is not None
    event = decision_event(decision, harness=HARNESS, machine=machine, now=ctx.now)
    event["decision"] = "allowed"
    event["reason"] = f"overridden on this machine for {int(seconds // 60)} minutes: {reason}"
    try:
        if _send(ctx.root, event, ctx.now) or not takes_events(ctx.root):
            return ""
        return "the server takes no events, or the queue is full (see gstack audit show)"
    except OSError as error:
        log(ctx.root, LOG, None, f"error audit what={type(error).__name__}")
        return error.strerror or str(error)

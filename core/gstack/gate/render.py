"""How a decision is shown to a person, and as JSON (gate G3). Cold. Styling never changes text, stream or exit code."""

import os
import sys
from typing import Any, TextIO

from gstack.api import Decision
from gstack.gate.hook import bundle_notice
from gstack.gate.human import Report
from gstack.gate.texts import policy_of, replacement, sentence, warning
from gstack.terminal import tame

#: Exit code of a block; everything else that was decided is 0.
BLOCKED = 2

_MARKS = {"allow": ("✓ ALLOW", "32"), "warn": ("⚠ WARN", "33"), "block": ("⛔ BLOCKED", "31")}


def coloured(stream: TextIO, *, no_color: bool = False) -> bool:
    """Whether ``stream`` may be styled: a real terminal, and neither ``--no-color``, ``NO_COLOR`` nor ``TERM=dumb``."""
    asked = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return not asked and stream.isatty()


def decision_lines(report: Report, *, colour: bool = False) -> list[str]:
    """The decision in words; empty when nobody has an opinion."""
    decision = report.outcome.decision
    if decision is None:
        return []
    mark, code = _MARKS[decision.action]
    first, *others = [tame(line) for line in _lines(report, decision, mark)]
    return [f"\x1b[{code}m{mark}\x1b[0m{first[len(mark) :]}" if colour else first, *others]


def _lines(report: Report, decision: Decision, mark: str) -> list[str]:
    head = f"{mark} {decision.skill_name}"
    if decision.action == "allow":
        version = f"@{decision.version}" if decision.version else ""
        return [head + version + (f" — {decision.reason}" if decision.reason else "")]
    if decision.action == "warn":
        return [f"{head} — {warning(decision)}"]
    policy = policy_of(decision)
    lines = [head, f"   policy: {policy}" if policy else "", *_below(decision.reason), *_below(replacement(decision))]
    page = report.exception_page()
    ask = f"ask for an exception: {page}" if page else "ask your organisation for an exception."
    return [line for line in lines if line] + [f"   need it? {ask}"]


def _below(text: str) -> list[str]:
    return [f"   {line.strip()}" for line in text.splitlines() if line.strip()]


def rule_lines(report: Report) -> list[str]:
    """Every rule that applied, strongest first."""
    decision = report.outcome.decision
    if decision is None:
        return ["rules: none"]
    lines = ["rules:"]
    for action, rule, reason in decision.rules:
        lines.append(f"  {action:<5}  {rule}" + (f"  {reason}" if reason else ""))
    return lines


def notices(report: Report) -> list[str]:
    """What is wrong around the decision: no bundle, a folder that others can write, resolvers that were left out."""
    outcome = report.outcome
    found = [bundle_notice(report.ctx.root, outcome)]
    found.append(f"gstack: {report.unasked}" if report.unasked else "")
    found.append(f"gstack: {report.hostless} (see gstack plugins list)" if report.hostless else "")
    found.append(f"gstack: {sentence(outcome.notice)}" if outcome.notice else "")
    found += [f"gstack: the gate resolver {name} was left out: {what}" for name, what in outcome.failures]
    return [text for text in found if text]


def as_dict(report: Report) -> dict[str, Any]:
    """The decision with stable keys, for ``--json``."""
    decision, fresh, header = report.outcome.decision, report.outcome.freshness, report.header
    shown: dict[str, Any] = {"invoked": report.invocation.name, "decision": None, "rules": []}
    if decision is not None:
        shown |= {
            "decision": decision.action,
            "skill_name": decision.skill_name,
            "version": decision.version,
            "kind": decision.entry_kind,
            "reason": decision.reason,
            "rule": decision.rule,
            "policy_id": decision.policy_id,
            "policy_name": decision.policy_name,
            "replacement": decision.replacement,
            "overridable": decision.overridable,
            "governed": decision.governed,
            "resolver": decision.resolver or None,
            "exception_url": (report.exception_page() or None) if decision.action == "block" else None,
            "rules": [{"action": action, "rule": rule, "reason": reason} for action, rule, reason in decision.rules],
        }
    shown["bundle"] = None
    if header is not None:
        shown["bundle"] = {"org": header["org"], "version": header["version"], "key_id": header["key_id"]}
    if fresh is not None:
        shown["age_s"] = int(fresh.age)
        shown["stale"] = fresh.stale
    shown["notices"] = notices(report)
    return shown


def show(report: Report, *, quiet: bool = False, no_color: bool = False, explain: bool = False) -> int:
    """Print the report and give the exit code: an allow on standard output, everything else on standard error."""
    decision = report.outcome.decision
    for text in notices(report):
        sys.stderr.write(tame(text) + "\n")
    allowed = decision is None or decision.action == "allow"
    stream = sys.stdout if allowed else sys.stderr
    lines = [] if quiet and allowed else decision_lines(report, colour=coloured(stream, no_color=no_color))
    if explain:
        lines += [tame(line) for line in rule_lines(report)]
    stream.write("".join(line + "\n" for line in lines))
    stream.flush()
    return exit_code(report)


def exit_code(report: Report) -> int:
    """2 for a block, else 0."""
    decision = report.outcome.decision
    return BLOCKED if decision is not None and decision.action == "block" else 0

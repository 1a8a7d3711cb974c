"""``gstack route why-not``: why a skill isn't routed to, one line for each thing that has a say (routing R9). Cold."""

import os
from typing import Any

from gstack.api import Candidate
from gstack.config import names, setting
from gstack.hook import HookContext
from gstack.routing.decision import ALREADY_HINTED, ALREADY_LOADED, bare_name, enough_of_its_own, guard, unroutable
from gstack.routing.explain import Explanation, explain, printable
from gstack.routing.words import tokens
from gstack.sessions import read_session

Line = tuple[str, str]

_GUARDS = {
    "scattered": "scattered: its words stand too far apart, or in the middle of a long prompt",
    "negated": "negated: the prompt says not to, or that it was done",
    "below-threshold": "below-threshold: a word is missing and another is only an equivalent",
}


def why_not(ctx: HookContext, skill: str, prompt: str, *, session: str | None = None) -> list[Line]:
    """(topic, what it says) for each of: discovery, switch, prompt, trigger, guard, routed set, host, policy, session,
    and the result. ``skill`` may have a slash, lack the pack's prefix, or be the frontmatter's name."""
    name, lines = _discovery(ctx, skill)
    lines.append(("switch", _switch(ctx)))
    never = unroutable(prompt)
    if never:
        lines.append(("prompt", f"{never}: a prompt of this kind is never routed"))
    if name is None:
        return [*lines, ("result", f"no installed skill is called {skill}")]
    report = explain(ctx, prompt)
    found = next((one for one in report.candidates if one.skill == name), None)
    if not never:
        lines += _trigger(ctx, report, name, found, prompt)
    lines.append(("routed set", _routed(ctx, report, name)))
    if name in ctx.host.taken_names():
        lines.append(("host", f"a built-in of {ctx.host.title} is called {name}: the hint names the file instead"))
    else:
        lines.append(("host", f"{ctx.host.title} can invoke it"))
    if any(one.skill == name and reason == "blocked-by-policy" for one, reason in report.outcome.refused):
        lines.append(("policy", "the policy gate would block it"))
    if session:
        lines.append(("session", _session(ctx, name, session)))
    return [*lines, ("result", _result(report, name))]


def _discovery(ctx: HookContext, skill: str) -> tuple[str | None, list[Line]]:
    skills = ctx.skills()
    asked = skill.strip().removeprefix("/")
    name = asked if asked in skills.names else skills.labels.get(asked)
    if name is None:
        name = next((one for one in sorted(skills.names) if bare_name(one) == bare_name(asked)), None)
    lines: list[Line] = []
    if name is not None:
        lines.append(("discovery", f"/{name} is {skills.names[name]}"))
        lines += [("discovery", f"it hides {path}") for path, by in skills.shadowed if by == skills.names[name]]
        return name, lines
    for path, why in skills.skipped:
        if os.path.basename(os.path.dirname(path)) in (asked, bare_name(asked)):
            lines.append(("discovery", f"{path} was skipped: {why}"))
    for path, by in skills.shadowed:
        if os.path.basename(os.path.dirname(path)) in (asked, bare_name(asked)):
            lines.append(("discovery", f"{path} is hidden by {by}"))
    where = ", ".join(skills.roots) or "no folder"
    return None, lines or [("discovery", f"there is no {asked}/SKILL.md in {where}")]


def _switch(ctx: HookContext) -> str:
    found = ctx.switch
    doing = {"on": "the hook hints", "observe": "the hook only logs", "off": "the hook does nothing"}
    return f"skill_routing {found.value} ({found.source}): {doing[found.value]}"


def _trigger(ctx: HookContext, report: Explanation, name: str, found: Candidate | None, prompt: str) -> list[Line]:
    if found is None:
        declared = "triggers" in report.skills.sources.get(name, {})
        none = "no trigger of it shares a word that counts with the prompt"
        return [("trigger", none if declared else "it declares no triggers")]
    reaches = "reaches" if found.score >= report.threshold else "is below"
    lines = [
        (
            "trigger",
            f'"{found.trigger}" scores {found.score:.2f}, which {reaches} the threshold {report.threshold:.2f}',
        ),
        ("words", _words(ctx, found, prompt)),
    ]
    if found.score >= report.threshold:
        reason = guard(found, prompt, tokens(prompt), report.threshold)
        lines.append(("guard", _GUARDS[reason] if reason else "none holds it back"))
    return lines


def _words(ctx: HookContext, found: Candidate, prompt: str) -> str:
    if found.phrase:
        return "the whole phrase stands in the prompt"
    text = f"{found.matched_words} matched"
    if found.equivalents:
        text += f" ({found.equivalents} of them by an equivalent"
        text += ")" if enough_of_its_own(found, found.score) else ", which doesn't make up for a missing word)"
    scorer_name = setting("route_scorer", ctx.env, ctx.config)
    scorer: Any = ctx.plan.get("gstack.trigger_scorers", scorer_name)
    missing_words = getattr(scorer, "missing_words", None)
    if missing_words is None:
        return text
    missing = missing_words(prompt, found.trigger, ctx.skills().scorers[scorer_name])
    return f"{text}, missing: {', '.join(missing) or 'none'}"


def _routed(ctx: HookContext, report: Explanation, name: str) -> str:
    said = report.skills.routing.get(name)
    if said == "off":
        return f"out: routing is off ({report.skills.sources.get(name, {}).get('routing', 'its SKILL.md')})"
    listed = setting("routed_skills", ctx.env, ctx.config)
    source = "config" if ctx.config.has("routed_skills") else "default"
    if name in report.routed:
        return "in: the overlay brings it in" if said == "on" else f"in: routed_skills is {listed} ({source})"
    project = ctx.project
    if project is not None and project.has("routed_skills"):
        return f"out: this project's routed_skills is {', '.join(names(project.get('routed_skills')))}"
    return f"out: routed_skills is {listed} ({source}); gstack config set routed_skills adds it"


def _session(ctx: HookContext, name: str, session: str) -> str:
    record = read_session(ctx.root, session)
    if name in record.loaded:
        return f"{ALREADY_LOADED}: this session loaded it, so it isn't hinted"
    if name in record.hinted:
        return f"{ALREADY_HINTED}: this session was hinted to it before"
    return "this session neither loaded it nor was hinted to it"


def _result(report: Explanation, name: str) -> str:
    if report.route == name:
        return f"/{name} is routed to"
    if report.route is not None and report.outcome.route is not None:
        return f"/{report.route} is routed to instead, with {report.outcome.route.score:.2f}"
    reason = next((why for one, why in report.outcome.refused if one.skill == name), report.outcome.reason)
    return f"nothing is routed to ({reason})"


def text_of(lines: list[Line]) -> list[str]:
    """The lines for a terminal."""
    return [printable(f"{topic}: {text}") for topic, text in lines]

"""The prompt-submit hook's entry: decide, log, hint (spec, routing R3, R4, R6, R7).

Hot: imported on every prompt, so builtins only. What is written (log line, session record) is written after the answer.
"""

from gstack.api import ALLOW, Answer, Candidate
from gstack.config import names, setting, switch
from gstack.logs import log
from gstack.plan import plugin_failed
from gstack.routing.decision import NO_SKILLS, SCORER_ERROR, SLASH, Outcome, RoutedSet, decide, unroutable
from gstack.routing.words import line_numbers, tokens
from gstack.sessions import read_session, update_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from gstack.api import HookEvent
    from gstack.hook import HookContext
    from gstack.snapshot import SkillIndex

#: The log's name under ``hooks/``.
LOG = "skill-route"
_GROUP = "gstack.trigger_scorers"


def answer(ctx: "HookContext") -> Answer:
    """The hint for this prompt, or nothing. Called when the switch is on or observe; every decision is logged."""
    event = ctx.event
    reason = _never(event)
    if reason:
        if reason == SLASH:
            ctx.later(lambda: _note_typed(ctx))
        return _no_route(ctx, reason)
    prompt = event.prompt or ""
    session = read_session(ctx.root, event.session_id)
    _, outcome = judge(ctx, prompt, blocked=gate_of(ctx), loaded=session.loaded, hinted=session.hinted)
    _shadows(ctx, prompt)
    if outcome.route is None:
        return _no_route(ctx, outcome.reason or "")
    return _route(ctx, outcome.route)


def _never(event: "HookEvent") -> "str | None":
    """Why a prompt of this kind is never routed; None when it may be."""
    if event.scope == "subagent" or event.agent_id:
        return "subagent"
    return "not-typed" if event.origin != "user" else unroutable(event.prompt)


def _note_typed(ctx: "HookContext") -> None:
    """A typed ``/name`` of an installed skill is a load; with a space before it the host takes it for text."""
    prompt = ctx.event.prompt or ""
    name = prompt[1:].split(None, 1)[0] if prompt[:1] == "/" and prompt[1:2].strip() else ""
    skills = ctx.skills()
    if name and not line_numbers(skills.listed, [name]):
        name = skills.labels.get(name, "")
    if name:
        update_session(ctx.root, ctx.event.session_id, loaded=[name])


def judge(
    ctx: "HookContext",
    prompt: str,
    *,
    threshold: "float | None" = None,
    routed: "RoutedSet | None" = None,
    blocked: "Callable[[str], bool] | None" = None,
    loaded: "Collection[str]" = (),
    hinted: "Collection[str]" = (),
) -> "tuple[list[Candidate], Outcome]":
    """Score and decide ``prompt`` with what is installed and configured: the candidates, best first, and the outcome.

    The one road for the hook and the command line; ``threshold`` and ``routed`` stand in for the configured ones.
    """
    reason = unroutable(prompt)
    if reason:
        return [], Outcome(None, reason)
    skills = ctx.skills()
    if not skills.count:
        return [], Outcome(None, NO_SKILLS)
    try:
        candidates = scored(ctx, prompt, setting("route_scorer", ctx.env, ctx.config))
    except plugin_failed():
        return [], Outcome(None, SCORER_ERROR)
    outcome = decide(
        prompt,
        candidates,
        threshold_of(ctx) if threshold is None else threshold,
        routed_set(ctx) if routed is None else routed,
        loaded=loaded,
        hinted=hinted,
        blocked=blocked,
    )
    return candidates, outcome


def scored(ctx: "HookContext", prompt: str, scorer_name: str) -> "list[Candidate]":
    """What a scorer says of the prompt, checked. Raises PluginFailed when it is missing or gives no sound result."""
    skills = ctx.skills()
    scorer = ctx.plan.get(_GROUP, scorer_name)
    index = skills.scorers.get(scorer_name)
    if scorer is None or index is None:
        raise plugin_failed()(scorer_name, "no such scorer works here")
    return _sound(ctx.call(scorer, scorer.score, prompt, index), skills, prompt, scorer_name)


def _sound(found: "Any", skills: "SkillIndex", prompt: str, scorer: str) -> "list[Candidate]":
    """A scorer's result, if it is candidates of installed skills with sound values. Raises PluginFailed."""
    if found == []:
        return []
    total = len(tokens(prompt))
    try:
        names = line_numbers(skills.listed, [one.skill for one in found if isinstance(one.skill, str)])
        for one in found:
            places = one.evidence
            if (
                not isinstance(one, Candidate)
                or one.skill not in names
                or not 0 <= one.score <= 1
                or (places and not 0 <= min(places) <= max(places) < total)
            ):
                raise plugin_failed()(scorer, "gave a candidate that makes no sense")
        return list(found)
    except (TypeError, AttributeError):
        raise plugin_failed()(scorer, "gave no list of candidates") from None


def threshold_of(ctx: "HookContext") -> float:
    """The configured threshold."""
    return float(setting("route_threshold", ctx.env, ctx.config))


def routed_set(ctx: "HookContext", listed: "list[str] | None" = None) -> RoutedSet:
    """The skills that may be routed to here; ``listed`` stands in for the configured names."""
    project = ctx.project
    within = project.get("routed_skills") if project is not None and project.has("routed_skills") else None
    return RoutedSet(
        names(setting("routed_skills", ctx.env, ctx.config)) if listed is None else listed,
        ctx.skills().routing,
        None if within is None else names(within),
    )


def gate_of(ctx: "HookContext") -> "Callable[[str], bool] | None":
    """What asks the policy gate whether it would block a skill; None where its switch wouldn't let it."""
    if switch("gate", ctx.env, ctx.config).value != "on":
        return None

    def blocked(skill: str) -> bool:
        from gstack.gate.hook import would_block

        return bool(would_block(ctx, skill))

    return blocked


def hint_for(ctx: "HookContext", skill: str) -> str:
    """The hint that names ``skill``, in the configured variant."""
    from gstack.routing.hint import compose, detail_of

    skills = ctx.skills()
    path = skills.path_of(skill)
    detail = detail_of(
        setting("route_hint", ctx.env, ctx.config),
        first_step=skills.first_steps.get(skill, ""),
        contract=skills.contracts.get(skill),
        plan=ctx.plan,
        path=path,
    )
    return compose(skill, path, ctx.host, ctx.event.native_name, detail=detail)


def _route(ctx: "HookContext", found: Candidate) -> Answer:
    score = f"skill={found.skill} score={found.score:.2f}"
    if ctx.switch.value == "observe":
        return _no_route(ctx, "observe " + score)
    hint = hint_for(ctx, found.skill)
    session = ctx.event.session_id
    ctx.later(lambda: log(ctx.root, LOG, session, "routed " + score))
    ctx.later(lambda: update_session(ctx.root, session, hinted=[found.skill]))
    return Answer(inject=hint)


def _no_route(ctx: "HookContext", reason: str) -> Answer:
    # in observe mode every line says so: either as its reason or at its end (switches S1)
    mark = " mode=observe" if ctx.switch.value == "observe" and not reason.startswith("observe") else ""
    ctx.later(lambda: log(ctx.root, LOG, ctx.event.session_id, f"no-route reason={reason}{mark}"))
    return ALLOW


def _shadows(ctx: "HookContext", prompt: str) -> None:
    """Let the shadow scorers run once the answer is out; only their best candidate is logged."""
    for name in names(setting("route_shadow_scorers", ctx.env, ctx.config)):

        def run(name: str = name) -> None:
            _shadow(ctx, name, prompt)

        ctx.later(run)


def _shadow(ctx: "HookContext", name: str, prompt: str) -> None:
    try:
        found = scored(ctx, prompt, name)
    except plugin_failed():
        said = "reason=" + SCORER_ERROR
    else:
        said = f"skill={found[0].skill} score={found[0].score:.2f}" if found else "skill=- score=0.00"
    log(ctx.root, LOG, ctx.event.session_id, f"shadow scorer={name} {said}")

"""``gstack route --explain``: what the hook would do with a prompt (routing R5). Cold. Injects and logs nothing."""

import time
from collections.abc import Mapping
from typing import Any

from gstack.api import PROMPT_SUBMITTED, Candidate, HookEvent
from gstack.config import read_config, switch
from gstack.errors import GstackError
from gstack.hook import HookContext, project_config
from gstack.launcher import import_paths
from gstack.routing.decision import Outcome, RoutedSet
from gstack.routing.hook import gate_of, hint_for, judge, routed_set, threshold_of
from gstack.snapshot import load_plan
from gstack.state import state_root


def routing_setup(env: Mapping[str, str], cwd: str, *, host: str = "claude-code") -> HookContext:
    """What the hook would be given for a prompt in ``cwd``, without a session: plug-ins, skills, configuration, switch.

    Raises GstackError when the host's adapter doesn't work.
    """
    root = state_root(dict(env))
    config = read_config(root)
    plan = load_plan(root, import_paths(), env)
    adapter = plan.get("gstack.host_adapters", host)
    if adapter is None:
        raise GstackError(f"no working host adapter is called {host!r}", hint="see gstack plugins list")
    native = next(name for name, kind in adapter.events.items() if kind == PROMPT_SUBMITTED)
    project = project_config(root, cwd)
    found = switch("skill_routing", env, config, project)
    event = HookEvent(host, PROMPT_SUBMITTED, native, cwd=cwd)
    started = time.monotonic()
    return HookContext(event, dict(env), root, config, adapter, plan, found, project, started, started + 3600)


class Explanation:
    """What the hook would do with one prompt: ``candidates`` are all that scored, best first."""

    def __init__(
        self, ctx: HookContext, threshold: float, candidates: list[Candidate], outcome: Outcome, routed: RoutedSet
    ) -> None:
        self.ctx = ctx
        self.threshold = threshold
        self.candidates = candidates
        self.outcome = outcome
        self.routed = routed
        self.skills = ctx.skills()

    @property
    def route(self) -> str | None:
        """The name of the skill that is routed to."""
        return self.outcome.route.skill if self.outcome.route else None

    def hint(self) -> str | None:
        """The hint that the hook would give."""
        return hint_for(self.ctx, self.route) if self.route else None

    def shown(self, *, below: bool = False) -> list[Candidate]:
        """The candidates at or above the threshold; ``below`` adds the others."""
        return [found for found in self.candidates if below or found.score >= self.threshold]

    def source(self, skill: str) -> str:
        """Where the skill's triggers come from, when that isn't the top of its ``SKILL.md``; else ``""``."""
        said = self.skills.sources.get(skill, {}).get("triggers", "")
        return "" if said in ("", "SKILL.md") else said

    def lines(self, *, below: bool = False) -> list[str]:
        """The report as R5 shows it; skipped skills follow at the end, where there are any."""
        found = self.ctx.switch
        where = ", ".join(self.skills.roots) or "no folder"
        shown = self.shown(below=below)
        lines = [
            f"switch: skill_routing {found.value} ({found.source})",
            f"threshold: {self.threshold:.2f}",
            f"skills: {len(self.skills.names)} scanned in {where}",
            "candidates:" if shown else "candidates: none",
            *[self._candidate(one) for one in shown],
            f"route: /{self.route}" if self.route else f"route: none ({self.outcome.reason})",
        ]
        hint = self.hint()
        if hint:
            lines.append(f"hint: {hint}")
        lines += [f"skipped: {path} ({why})" for path, why in self.skills.skipped]
        return [printable(line) for line in lines]

    def _candidate(self, found: Candidate) -> str:
        source = self.source(found.skill)
        return (
            f'  {found.score:.2f}  /{found.skill}  "{found.trigger}" ({found.matched_words} words)'
            f"{f' from {source}' if source else ''}"
        )

    def as_dict(self, *, below: bool = False) -> dict[str, Any]:
        """The same facts with stable keys, for ``--json``."""
        found = self.ctx.switch
        return {
            "switch": {"name": "skill_routing", "value": found.value, "source": found.source},
            "threshold": self.threshold,
            "skills": {
                "count": len(self.skills.names),
                "roots": list(self.skills.roots),
                "skipped": [{"path": path, "reason": why} for path, why in self.skills.skipped],
            },
            "candidates": [
                {
                    "score": round(one.score, 4),
                    "skill": one.skill,
                    "trigger": one.trigger,
                    "matched_words": one.matched_words,
                    "routable": one.skill in self.routed,
                    "source": self.source(one.skill) or "SKILL.md",
                }
                for one in self.shown(below=below)
            ],
            "route": self.route,
            "reason": self.outcome.reason,
            "hint": self.hint(),
        }


def explain(ctx: HookContext, prompt: str, *, threshold: float | None = None) -> Explanation:
    """What the hook would do with ``prompt``; ``threshold`` stands in for the configured one."""
    cutoff = threshold_of(ctx) if threshold is None else threshold
    routed = routed_set(ctx)
    candidates, outcome = judge(ctx, prompt, threshold=cutoff, routed=routed, blocked=gate_of(ctx))
    return Explanation(ctx, cutoff, candidates, outcome, routed)


def printable(text: str) -> str:
    """``text`` without control characters: a skill's file must not steer the terminal."""
    return text if text.isprintable() else "".join([char if char.isprintable() else "?" for char in text])

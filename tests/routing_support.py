"""What the routing tests share: the triggers of four skills, a context without a disk, the corpus."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gstack.api import PROMPT_SUBMITTED, HookEvent, Item, Skill
from gstack.config import Config, Switch
from gstack.failures import PluginFailed
from gstack.hook import HookContext
from gstack.snapshot import SkillIndex
from gstack.snapshot_build import index_data
from gstack_plugins.lexical_scorer import Lexical

DATA = Path(__file__).parent / "data"

#: What the skills that route by default declare, and two that share words with them.
TRIGGERS = {
    "investigate": (
        "debug this", "fix this bug", "why is this broken", "root cause analysis", "investigate this error",
    ),
    "review": ("review this pr", "code review", "check my diff", "pre-landing review"),
    "qa": ("qa test this", "find bugs on site", "test the site"),
    "verify": ("verify this works", "check that it works", "confirm the fix"),
    "ios-fix": ("fix this ios bug", "patch the iphone app", "auto-fix the ios issue"),
    "qa-only": ("qa report only", "just report bugs", "test but dont fix"),
}  # fmt: skip


def skills_of(triggers: Mapping[str, Sequence[str]]) -> list[Skill]:
    return [Skill(name, f"/skills/{name}/SKILL.md", triggers=tuple(phrases)) for name, phrases in triggers.items()]


def corpus_triggers(shared: Path) -> dict[str, tuple[str, ...]]:
    """gstack's own triggers as the corpus has them, and those of verify, which it lacks."""
    found = {"verify": TRIGGERS["verify"]}
    for file in sorted((shared / "corpus" / "skills" / "garrytan__gstack").rglob("SKILL.md")):
        text = file.read_text("utf-8", errors="replace")
        if text.startswith("---"):
            triggers = yaml.safe_load(text.split("---", 2)[1]).get("triggers") or []
            if isinstance(triggers, list):
                found[file.parent.name] = tuple(map(str, triggers))
    return found


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


class StubHost:
    """An adapter with just what routing asks of it."""

    id = "claude-code"
    title = "Claude Code"
    skill_variables = ()

    def taken_names(self) -> tuple[str, ...]:
        return ("review",)

    def load_phrase(self, skill: Skill) -> str:
        if skill.name in self.taken_names():
            return f"A built-in is called /{skill.name}, so read {skill.path}"
        return f"Run /{skill.name} with the Skill tool"


class StubKind:
    name = "report_labels"
    fields = ()

    def summary(self, item: Item) -> str:
        return f"the {item.id} report"


class StubPlan:
    """A plan with the given scorers; calls go straight through."""

    def __init__(self, scorers: Mapping[str, Any]) -> None:
        self.scorers = dict(scorers)

    def get(self, group: str, name: str) -> Any:
        return self.scorers.get(name)

    def objects(self, group: str) -> list[tuple[str, Any]]:
        return [("report_labels", StubKind())] if group == "gstack.contract_kinds" else []

    def call(self, owner: object, function: Any, *args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            raise PluginFailed("stub", str(error)) from error


class Context(HookContext):
    """A context whose skills are given; what is to run later runs at :meth:`finish`."""

    def __init__(self, root: Path, index: SkillIndex, plan: Any, **event: Any) -> None:
        event.setdefault("session_id", "s1")
        env = event.pop("env", {})
        config = event.pop("config", {})
        switch = event.pop("switch", "on")
        project = event.pop("project", None)
        super().__init__(
            HookEvent("claude-code", PROMPT_SUBMITTED, "UserPromptSubmit", **event),
            env,
            str(root),
            Config("config.yaml", "ok", config),
            StubHost(),
            plan,
            Switch(switch, "config"),
            None if project is None else Config("project", "ok", project),
            0.0,
            1e12,
        )
        self.index = index

    def skills(self) -> SkillIndex:
        return self.index

    def finish(self) -> list[str]:
        """Run what was put off; the lines of the log without their time."""
        for step in self.after:
            step()
        self.after.clear()
        log = Path(self.root) / "hooks" / "skill-route.log"
        return [line.split(" ", 1)[1] for line in log.read_text("utf-8").splitlines()] if log.exists() else []


def index_of(
    triggers: Mapping[str, Sequence[str]], scorers: Mapping[str, Any] | None = None, **more: Any
) -> SkillIndex:
    skills = skills_of(triggers)
    scorers = {"lexical": Lexical()} if scorers is None else scorers
    facts: dict[str, Any] = {
        "names": {skill.name: skill.path for skill in skills},
        **{part: {} for part in ("labels", "contracts", "routing", "first_steps", "sources")},
        "skipped": [],
        "shadowed": [],
        **more,
    }
    prepared = {name: scorer.prepare(skills) for name, scorer in scorers.items()}
    return SkillIndex(index_data(roots=["/skills"], scorers=prepared, **facts))


def context(
    root: Path,
    prompt: str | None = None,
    *,
    triggers: Mapping[str, Sequence[str]] = TRIGGERS,
    scorers: Mapping[str, Any] | None = None,
    index: Mapping[str, Any] | None = None,
    **event: Any,
) -> Context:
    scorers = {"lexical": Lexical()} if scorers is None else scorers
    return Context(root, index_of(triggers, scorers, **(index or {})), StubPlan(scorers), prompt=prompt, **event)

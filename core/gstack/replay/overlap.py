"""``gstack route overlap``: skills whose triggers answer the same prompts (routing R9)."""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Any

from gstack.api import Candidate, Skill
from gstack.config import setting
from gstack.failures import PluginFailed
from gstack.replay.engine import Job
from gstack.replay.history import History, HistoryWork, Progress, asked
from gstack.replay.scene import Place, Scene, Setup
from gstack.routing.decision import guard, unroutable
from gstack.routing.hook import routed_set, scored, threshold_of
from gstack.routing.words import tokens

#: How many prompts are told apart, so that one that a fork copied counts once.
_PROMPTS = 2_000_000


class Pair:
    """Two skills that answer the same words: ``meetings`` are (skill, its trigger, the other's trigger, score), where
    the first skill's trigger, taken as a prompt, reaches the other; ``prompts`` counts real ones that both answer, and
    ``won`` how many of them each has the better score for."""

    def __init__(self, one: str, other: str) -> None:
        self.one = one
        self.other = other
        self.meetings: list[tuple[str, str, str, float]] = []
        self.prompts = 0
        self.won: Counter[str] = Counter()

    def as_dict(self) -> dict[str, Any]:
        """The facts with stable keys."""
        return {
            "skills": [self.one, self.other],
            "triggers": [
                {"skill": skill, "trigger": mine, "other_trigger": theirs, "score": round(score, 4)}
                for skill, mine, theirs, score in self.meetings
            ],
            "prompts": self.prompts,
            "won": {name: self.won[name] for name in (self.one, self.other)},
        }


class Overlaps:
    """The result: ``pairs``, most overlap first; ``prompts`` is how many real ones were looked at; ``routed`` the
    skills that may be routed to."""

    def __init__(self, threshold: float, pairs: list[Pair], prompts: int, routed: Collection[str]) -> None:
        self.threshold = threshold
        self.pairs = sorted(pairs, key=lambda pair: (-pair.prompts, -len(pair.meetings), pair.one, pair.other))
        self.prompts = prompts
        self.routed = routed

    def as_dict(self) -> dict[str, Any]:
        """Stable keys, for ``--json``."""
        return {
            "threshold": self.threshold,
            "prompts": self.prompts,
            "routed_skills": sorted(self.routed),
            "pairs": [pair.as_dict() for pair in self.pairs],
        }


class _Work(HistoryWork):
    """Which skills each prompt reaches, best first."""

    def __init__(self, setup: Setup, cwd: str, threshold: float) -> None:
        super().__init__(setup)
        self.cwd = cwd
        self.threshold = threshold

    def of(self, scene: Scene, job: Job) -> list[tuple[int, list[str]]]:
        """Key and skills of each prompt."""
        place = scene.place(self.cwd)
        return [
            (one.key, [found.skill for found in reached(scene, place, one.text, self.threshold)])
            for one in asked(scene, job)
            if not one.typed and unroutable(one.text) is None
        ]


def reached(scene: Scene, place: Place, prompt: str, threshold: float) -> list[Candidate]:
    """The skills that a prompt reaches and whose evidence is enough, best first; none where the scorer fails."""
    context = scene.context(place)
    try:
        candidates = scored(context, prompt, setting("route_scorer", context.env, context.config))
    except PluginFailed:
        return []
    words = tokens(prompt)
    return [one for one in candidates if one.score >= threshold and guard(one, prompt, words, threshold) is None]


def find_overlaps(
    history: History,
    *,
    threshold: float | None = None,
    only: str | None = None,
    prompts: bool = True,
    progress: Progress | None = None,
) -> Overlaps:
    """The overlaps of the installed skills, or of the one called ``only``.

    ``threshold`` stands in for the configured one; without ``prompts`` the history is left alone.
    """
    context = history.scene.context(history.place)
    cutoff = threshold_of(context) if threshold is None else threshold
    pairs: dict[tuple[str, str], Pair] = {}
    skills = history.skills()
    _by_triggers(history, skills, cutoff, pairs)
    seen: set[int] = set()
    for result in history.through(_Work(history.setup, history.cwd, cutoff), progress=progress) if prompts else ():
        for key, names in result:
            if key not in seen and len(seen) < _PROMPTS:
                seen.add(key)
                _count(names, pairs)
    found = [pair for pair in pairs.values() if only is None or only in (pair.one, pair.other)]
    routed = routed_set(context)
    return Overlaps(cutoff, found, len(seen), [skill.name for skill in skills if skill.name in routed])


def _pair(pairs: dict[tuple[str, str], Pair], one: str, other: str) -> Pair:
    first, second = sorted((one, other))
    return pairs.setdefault((first, second), Pair(first, second))


def _by_triggers(history: History, skills: Sequence[Skill], cutoff: float, pairs: dict[tuple[str, str], Pair]) -> None:
    for skill in skills:
        for trigger in skill.triggers:
            for found in reached(history.scene, history.place, trigger, cutoff):
                if found.skill != skill.name:
                    meeting = (skill.name, trigger, found.trigger, found.score)
                    _pair(pairs, skill.name, found.skill).meetings.append(meeting)


def _count(names: Sequence[str], pairs: dict[tuple[str, str], Pair]) -> None:
    places = {name: place for place, name in enumerate(names)}
    for one, other in combinations(sorted(places), 2):
        pair = _pair(pairs, one, other)
        pair.prompts += 1
        pair.won[one if places[one] < places[other] else other] += 1

"""``gstack route suggest``: triggers for a skill, from its description and from the prompts that led to it (R9).

Each is judged on the history by the evaluation's own figures: a prompt after which the model loaded the skill, or that
followed its typed name, should reach it, and no other one should.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gstack.api import Skill
from gstack.config import names, setting
from gstack.errors import GstackError, UsageError
from gstack.replay.engine import Job
from gstack.replay.history import History, HistoryWork, Progress, asked
from gstack.replay.scene import Context, Place, Scene, Setup
from gstack.routing.decision import RoutedSet, bare_name, guard, unroutable
from gstack.routing.evaluate import Case, Figures, figures
from gstack.routing.hook import judge, threshold_of
from gstack.routing.words import COMMON, tokens
from gstack.snapshot import SkillIndex
from gstack.snapshot_build import prepare_scorers

#: How many prompts that led to the skill, and how many others, are judged on; of more a fixed choice.
LED, OTHERS = 1000, 3000
#: How many words a suggested trigger has.
_LENGTHS = (2, 3, 4)
#: In how many prompts a phrase from the history must stand.
_TWICE = 2
#: How many candidates are scored, and how many of the best are judged in full.
_SCORED, _JUDGED = 400, 12
#: What separates the phrases of a description.
_BREAKS = re.compile(
    r"[.,:;!?()\[\]{}\n\u2013\u2014/|]| - |\b(?:when|use|to|or|and|for|if|with|that|after|before)\b", re.IGNORECASE
)
_QUOTED = re.compile(
    "[\"\u201c\u00ab]([^\"\u201c\u201d\u00ab\u00bb]{3,60})[\"\u201d\u00bb]|(?<!\\w)'([^']{3,60})'(?!\\w)"
)


class Suggestion:
    """A trigger: the ``phrase``, where it is ``from`` (``description`` or ``history``), and the figures with it."""

    def __init__(self, phrase: str, source: str) -> None:
        self.phrase = phrase
        self.source = source
        self.gained = 0
        self.false = 0
        self.after = Figures()

    def as_dict(self, *, show: bool) -> dict[str, Any]:
        """The facts; the phrase only where it may be shown."""
        return {
            "trigger": self.phrase if show or self.source == "description" else None,
            "source": self.source,
            "prompts_gained": self.gained,
            "false_routes": self.false,
            "after": self.after.as_dict(),
        }


class Suggestions:
    """The result: the figures ``before``, each suggestion's, and those of all ``together``; ``led`` prompts led to the
    skill, ``others`` didn't."""

    def __init__(self, skill: Skill, led: int, others: int, before: Figures) -> None:
        self.skill = skill
        self.led = led
        self.others = others
        self.before = before
        self.found: list[Suggestion] = []
        self.together = before

    def as_dict(self, *, show: bool) -> dict[str, Any]:
        """Stable keys, for ``--json``."""
        return {
            "skill": self.skill.name,
            "triggers": list(self.skill.triggers),
            "prompts": {"led": self.led, "others": self.others},
            "before": self.before.as_dict(),
            "suggestions": [one.as_dict(show=show) for one in self.found],
            "together": self.together.as_dict(),
        }


# ---------------------------------------------------------------------------------------------- the history


class _Work(HistoryWork):
    """The routable prompts, and which of them led to the skill."""

    def __init__(self, setup: Setup, skill: str) -> None:
        super().__init__(setup)
        self.skill = skill

    def of(self, scene: Scene, job: Job) -> list[tuple[int, str, bool]]:
        """Key, text and whether it led to the skill."""
        return [
            (one.key, one.text, self.skill in (one.typed, *one.loaded))
            for one in asked(scene, job)
            if one.typed in ("", self.skill) and unroutable(one.text) is None
        ]


def _sample(results: Iterable[Sequence[tuple[int, str, bool]]]) -> tuple[list[str], list[str]]:
    """The prompts that led to the skill and the others, at most so many of each: those with the lowest keys, which is
    as good as by chance and always the same choice."""
    kept: tuple[dict[int, str], dict[int, str]] = ({}, {})
    for result in results:
        for key, text, led in result:
            chosen, limit = (kept[0], LED) if led else (kept[1], OTHERS)
            chosen[key] = text
            if len(chosen) >= 2 * limit:
                for gone in sorted(chosen)[limit:]:
                    del chosen[gone]
    with_it, without = ([chosen[key] for key in sorted(chosen)] for chosen in kept)
    return with_it[:LED], without[:OTHERS]


# --------------------------------------------------------------------------------------------- candidates


def phrases(text: str) -> Iterator[str]:
    """The phrases of a text that could be triggers: what stands in quotes, then runs of a few words that begin and end
    in a content word."""
    for quoted in _QUOTED.finditer(text):
        words = tokens(quoted[1] or quoted[2])
        if len(words) in (*_LENGTHS, 5):
            yield " ".join(words)
    for part in _BREAKS.split(text):
        words = tokens(part)
        for length in _LENGTHS:
            for start in range(len(words) - length + 1):
                run = words[start : start + length]
                content = [word for word in run if word not in COMMON]
                if len(content) > 1 and run[0] in content and run[-1] in content:
                    yield " ".join(run)


def candidates(skill: Skill, led: Sequence[str]) -> list[Suggestion]:
    """Triggers that the skill lacks: those of its description first, then phrases that several prompts share."""
    known = {" ".join(tokens(trigger)) for trigger in skill.triggers}
    found: dict[str, Suggestion] = {}
    for phrase in phrases(skill.description):
        if phrase not in known:
            found.setdefault(phrase, Suggestion(phrase, "description"))
    shared: dict[str, int] = {}
    for prompt in led:
        for phrase in set(phrases(prompt)):
            shared[phrase] = shared.get(phrase, 0) + 1
    for phrase, count in sorted(shared.items(), key=lambda one: (-one[1], one[0])):
        if count >= _TWICE and phrase not in known and len(found) < _SCORED:
            found.setdefault(phrase, Suggestion(phrase, "history"))
    return list(found.values())[:_SCORED]


# ------------------------------------------------------------------------------------------------ judging


class _Retuned:
    """A skill index with other scorers and names."""

    def __init__(self, index: SkillIndex, scorers: Mapping[str, Any], names_: Mapping[str, str]) -> None:
        self._index = index
        self.scorers = scorers
        self.names = names_
        self.listed = "\n" + "".join([name + "\n" for name in names_])
        self.count = len(names_)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)


class _Judge:
    """Routes the sampled prompts with other triggers than the installed ones."""

    def __init__(
        self, history: History, skills: Sequence[Skill], skill: Skill, led: Sequence[str], others: Sequence[str]
    ) -> None:
        self.history = history
        self.skills = list(skills)
        self.skill = skill
        self.name = bare_name(skill.name)
        self.cases = [Case(f"led-{n}", text, self.name) for n, text in enumerate(led)]
        self.cases += [Case(f"other-{n}", text, None) for n, text in enumerate(others)]
        plain = history.scene.context(history.place)
        self.threshold = threshold_of(plain)
        # what triggers do shows only once the skill may be routed to
        listed = names(setting("routed_skills", plain.env, plain.config))
        self.routed = RoutedSet(listed, {**history.place.index.routing, skill.name: "on"})

    def figures(self, extra: Sequence[str]) -> Figures:
        """The skill's figures with further triggers."""
        changed = [_with_triggers(one, extra) if one.name == self.skill.name else one for one in self.skills]
        context = self._context(changed)
        judged = []
        for case in self.cases:
            _, outcome = judge(context, case.prompt, threshold=self.threshold, routed=self.routed)
            judged.append((case, bare_name(outcome.route.skill) if outcome.route else None, outcome.reason))
        return figures(judged, self.name)

    def _context(self, skills: Sequence[Skill], names_: Mapping[str, str] | None = None) -> Context:
        """A context whose scorers know the triggers of ``skills`` and no others."""
        scene, place = self.history.scene, self.history.place
        scorers = prepare_scorers(skills, scene.config, scene.plan)
        index: Any = _Retuned(place.index, scorers, place.index.names if names_ is None else names_)
        return Context(scene, Place(index, place.project), self.history.setup.root)

    def score(self, found: Sequence[Suggestion]) -> None:
        """How many prompts each phrase alone reaches: of those that led to the skill, and of the others."""
        by_name = {f"candidate-{place}": one for place, one in enumerate(found)}
        skills = [Skill(name, "", triggers=(one.phrase,)) for name, one in by_name.items()]
        context = self._context(skills, dict.fromkeys(by_name, ""))
        everything = RoutedSet(["all"])
        for case in self.cases:
            hits, _ = judge(context, case.prompt, threshold=self.threshold, routed=everything)
            words = tokens(case.prompt)
            for hit in hits:
                if hit.score >= self.threshold and guard(hit, case.prompt, words, self.threshold) is None:
                    one = by_name[hit.skill]
                    one.gained += case.expected is not None
                    one.false += case.expected is None


def _with_triggers(skill: Skill, extra: Sequence[str]) -> Skill:
    values = {name: getattr(skill, name) for name in Skill.__slots__}
    name, path = values.pop("name"), values.pop("path")
    return Skill(name, path, **{**values, "triggers": (*skill.triggers, *extra)})


def suggest(history: History, said: str, *, progress: Progress | None = None) -> Suggestions:
    """Triggers for the skill called ``said``, best first.

    Raises UsageError when no such skill is installed, GstackError when there is nothing to take triggers from.
    """
    skills = history.skills()
    skill = _skill(skills, said)
    results = history.through(_Work(history.setup, skill.name), progress=progress)
    led, others = _sample(results)
    bench = _Judge(history, skills, skill, led, others)
    done = Suggestions(skill, len(led), len(others), bench.figures(()))
    found = candidates(skill, led)
    if not found and not led:
        raise GstackError(f"{skill.name} has no description, and no session here loaded it: there is nothing to go by")
    bench.score(found)
    useful = [one for one in found if one.gained > one.false or (not led and not one.false)]
    useful.sort(key=lambda one: (one.false - one.gained, one.source, len(one.phrase), one.phrase))
    chosen: list[str] = []
    for one in useful[:_JUDGED]:
        one.after = bench.figures([one.phrase])
        better = one.after.f_half > done.before.f_half or (not led and one.source == "description")
        if better:
            done.found.append(one)
    for one in sorted(done.found, key=lambda each: -each.after.f_half):
        with_it = bench.figures([*chosen, one.phrase])
        if not chosen or with_it.f_half > done.together.f_half:
            chosen.append(one.phrase)
            done.together = with_it
    done.found.sort(key=lambda each: (each.phrase not in chosen, -each.after.f_half, each.phrase))
    return done


def _skill(skills: Sequence[Skill], said: str) -> Skill:
    import difflib

    asked_for = said.strip().removeprefix("/")
    for test in (
        lambda one: one.name == asked_for,
        lambda one: asked_for == one.label,
        lambda one: bare_name(one.name) == bare_name(asked_for),
    ):
        for skill in skills:
            if test(skill):
                return skill
    near = difflib.get_close_matches(asked_for, [one.name for one in skills], n=1)
    raise UsageError(f"no installed skill is called {said!r}" + (f"; did you mean {near[0]}?" if near else ""))

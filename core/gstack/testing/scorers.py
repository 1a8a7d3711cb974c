"""The conformance kit for trigger scorers. Cold."""

from typing import Any

from gstack.api import Candidate, Skill
from gstack.routing.words import tokens
from gstack.testing.kit import Conformance, expect, offline, same

_PROMPTS = (
    "",
    " \n\t ",
    "?!… --- ...",
    "/qa this page",
    "please find the root cause of this bug",
    "find the root cause, then find the root cause again",
    "Füge \u202eÜnïcode hinzu 😀 日本語のテスト",
    "\x00\x1b[31m",
    "word " * 1500,
)


class TriggerScorerConformance(Conformance):
    """Inherit from it in a test class::

    class TestInitials(TriggerScorerConformance):
        plugin = acme_initials

        def cases(self):
            return [("find the root cause", "investigate"), ("write a haiku", None)]
    """

    group = "gstack.trigger_scorers"

    def skills(self) -> list[Skill]:
        """The skills that prompts are scored against."""
        return [
            Skill("investigate", "/s/investigate/SKILL.md", triggers=("find the root cause", "why does it fail")),
            Skill("qa", "/s/qa/SKILL.md", triggers=("qa test this page", "find bugs on the site")),
            Skill("silent", "/s/silent/SKILL.md"),
            Skill("tools:plan", "/s/plan/SKILL.md", triggers=("plan the next release", "?!")),
        ]

    def cases(self) -> list[tuple[str, str | None]]:
        """Prompts, each with the skill that must come first (None: no candidate may reach 0.66)."""
        return []

    # ---------------------------------------------------------------------------------------------- checks

    def test_the_index_is_plain_data(self) -> None:
        """It is stored between processes, so nothing but plain data can be in it, and it is the same each time."""
        for scorer in self.subjects():
            index = self._index(scorer)
            expect(same(index) == index, f"{scorer.name}: the index isn't what it was once it was stored")
            again = self.ask(scorer.prepare, self.skills())
            expect(again == index, f"{scorer.name}: the same skills gave another index")

    def test_no_skills_no_candidates(self) -> None:
        """An empty set of skills has an index too."""
        for scorer in self.subjects():
            index = self.ask(scorer.prepare, [])
            for prompt in _PROMPTS:
                expect(list(self.ask(scorer.score, prompt, index)) == [], f"{scorer.name}: a candidate out of nothing")

    def test_candidates_make_sense(self) -> None:
        """Known skills, scores above 0 and up to 1, best first, one a skill, evidence inside the prompt."""
        names = {skill.name for skill in self.skills()}
        for scorer in self.subjects():
            index = self._index(scorer)
            for prompt in _PROMPTS:
                self._sound(scorer, self.ask(scorer.score, prompt, index), prompt, names)

    def test_scoring_is_deterministic_offline_and_changes_nothing(self) -> None:
        """The same prompt and index give the same candidates, with the network cut off."""
        for scorer in self.subjects():
            index = self._index(scorer)
            kept = same(index)
            with offline():
                for prompt in _PROMPTS:
                    first = self.ask(scorer.score, prompt, index)
                    expect(first == self.ask(scorer.score, prompt, same(index)), f"{scorer.name}: two answers")
            expect(index == kept, f"{scorer.name}: score changed the index")

    def test_five_hundred_skills_are_scored_in_time(self) -> None:
        """Within what one call may take in the hook; preparing may take longer, it happens once a change."""
        skills = [
            Skill(f"skill-{number}", f"/s/{number}/SKILL.md", triggers=(f"do task {number} for me", f"topic{number}"))
            for number in range(500)
        ]
        for scorer in self.subjects():
            index = self.ask(scorer.prepare, skills, limit=5.0)
            self.ask(scorer.score, "please do task 7 for me, about topic12 and topic99", index)

    def test_optional_methods_take_what_they_are_given(self) -> None:
        """``configure(settings)``, ``prepare_again(skills, index)``, ``missing_words(prompt, trigger, index)``: where
        there are any."""
        for scorer in self.subjects():
            configure = getattr(scorer, "configure", None)
            if configure is not None:
                self.ask(configure, {"equivalents": ""})
            again = getattr(scorer, "prepare_again", None)
            if again is not None:
                skills = [Skill("other", "/s/other/SKILL.md", triggers=("find the root cause",))]
                found = self.ask(again, skills, self._index(scorer))
                wanted = self.ask(scorer.prepare, skills)
                expect(found == wanted, f"{scorer.name}: prepare_again gave another index than prepare")
            missing = getattr(scorer, "missing_words", None)
            if missing is not None:
                said = self.ask(missing, "find the cause", "find the root cause", self._index(scorer))
                texts = isinstance(said, (list, tuple)) and all(isinstance(word, str) for word in said)
                expect(texts, f"{scorer.name}: missing_words gave {said!r}, not words")

    def test_cases(self) -> None:
        """The plug-in's own cases."""
        for scorer in self.subjects():
            index = self._index(scorer)
            for prompt, wanted in self.cases():
                found = self.ask(scorer.score, prompt, index)
                first = found[0].skill if found and (wanted is not None or found[0].score >= 0.66) else None
                expect(first == wanted, f"{scorer.name}: {prompt!r} gave {first}, not {wanted}")

    def _index(self, scorer: Any) -> Any:
        return self.ask(scorer.prepare, self.skills(), limit=5.0)

    def _sound(self, scorer: Any, found: Any, prompt: str, names: set[str]) -> None:
        what = f"{scorer.name}: for {prompt[:40]!r}"
        expect(isinstance(found, (list, tuple)), f"{what}: score gave {type(found).__name__}, not a list")
        words = len(tokens(prompt))
        for one in found:
            expect(isinstance(one, Candidate), f"{what}: {type(one).__name__} is no gstack.api.Candidate")
            expect(one.skill in names, f"{what}: there is no skill {one.skill!r}")
            expect(0 < one.score <= 1, f"{what}: a score of {one.score}")
            places = list(one.evidence)
            expect(places == sorted(set(places)), f"{what}: evidence isn't ascending: {places}")
            expect(not places or (places[0] >= 0 and places[-1] < words), f"{what}: evidence outside the prompt")
        scores = [one.score for one in found]
        expect(scores == sorted(scores, reverse=True), f"{what}: candidates aren't best first")
        expect(len({one.skill for one in found}) == len(found), f"{what}: a skill comes twice")

"""The decision: which skill a prompt is routed to, or why to none. Pure, and the only place that decides.

Hot: imported by the hook, so builtins only. The hook, ``gstack route`` and its evaluation all come here, so that they
can't differ. Rules: spec, routing R3; reasons are the words of R6.
"""

from gstack.routing.guards import negated, scattered
from gstack.routing.words import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from gstack.api import Candidate

#: A prompt of more characters (code points) is pasted material, not a request.
PROMPT_LIMIT = 8000
#: The prefix that a pack may be installed under: ``gstack-qa`` counts as ``qa`` in the routed set.
PACK_PREFIX = "gstack-"
#: Reasons why no prompt of this kind is ever scored, and why candidates were refused (R6).
EMPTY, SLASH, TOO_LONG = "empty", "slash", "too-long"
NO_SKILLS, BELOW_THRESHOLD, NOT_ROUTABLE = "no-skills", "below-threshold", "not-routable"
SCATTERED, NEGATED, BLOCKED = "scattered", "negated", "blocked-by-policy"
ALREADY_LOADED, ALREADY_HINTED, SCORER_ERROR = "already-loaded", "already-hinted", "scorer-error"


def unroutable(prompt: "str | None") -> "str | None":
    """Why this prompt is never routed, whatever the skills; None when it may be."""
    text = (prompt or "").lstrip()
    if not text:
        return EMPTY
    if text.startswith("/"):
        return SLASH
    return TOO_LONG if len(prompt or "") > PROMPT_LIMIT else None


class RoutedSet:
    """The skills that may be routed to: the configured names (or all), as the skills themselves and the overlay allow.

    ``names`` is the key ``routed_skills`` as a list; ``routing`` maps a skill to ``off`` (it keeps itself out) or
    ``on`` (the overlay brings it in); ``within``, a trusted project's list, can only narrow.
    """

    __slots__ = ("all", "names", "routing", "within")

    def __init__(
        self,
        names: "Sequence[str]",
        routing: "Mapping[str, str] | None" = None,
        within: "Sequence[str] | None" = None,
    ) -> None:
        self.all = "all" in names
        self.names = frozenset(map(bare_name, names))
        self.routing = routing or {}
        self.within = None if within is None or "all" in within else frozenset(map(bare_name, within))

    def __contains__(self, skill: str) -> bool:
        said = self.routing.get(skill)
        if said == "off" or (self.within is not None and bare_name(skill) not in self.within):
            return False
        return said == "on" or self.all or bare_name(skill) in self.names


def bare_name(skill: str) -> str:
    """A skill's name without the pack's prefix and a leading slash."""
    return skill.removeprefix("/").removeprefix(PACK_PREFIX)


class Outcome:
    """What was decided: ``route`` is the candidate (None: no route) and ``reason`` the word why not; ``refused`` has
    each routable candidate that a guard held back, best first, with its reason."""

    __slots__ = ("reason", "refused", "route")

    def __init__(
        self,
        route: "Candidate | None",
        reason: "str | None" = None,
        refused: "Sequence[tuple[Candidate, str]]" = (),
    ) -> None:
        self.route = route
        self.reason = reason
        self.refused = tuple(refused)


def decide(
    prompt: str,
    candidates: "Sequence[Candidate]",
    threshold: float,
    routed: "RoutedSet",
    *,
    loaded: "Collection[str]" = (),
    hinted: "Collection[str]" = (),
    blocked: "Callable[[str], bool] | None" = None,
) -> Outcome:
    """Route to the best candidate of the routed set that reaches the threshold and passes every guard (R3).

    ``candidates`` come best first from the scorer; ``loaded`` and ``hinted`` are what this session already saw;
    ``blocked`` says whether the policy gate would block a skill, and is asked last. If none passes, the reason is that
    of the best one.
    """
    reached = [found for found in candidates if found.score >= threshold]
    if not reached:
        return Outcome(None, BELOW_THRESHOLD)
    words = tokens(prompt)
    refused: list[tuple[Candidate, str]] = []
    for found in reached:
        if found.skill not in routed:
            continue
        reason = guard(found, prompt, words, threshold)
        if reason is None and found.skill in loaded:
            reason = ALREADY_LOADED
        if reason is None and found.skill in hinted:
            reason = ALREADY_HINTED
        if reason is None and blocked is not None and blocked(found.skill):
            reason = BLOCKED
        if reason is None:
            return Outcome(found, None, refused)
        refused.append((found, reason))
    return Outcome(None, refused[0][1] if refused else NOT_ROUTABLE, refused)


def guard(found: "Candidate", prompt: str, words: "Sequence[str]", threshold: float) -> "str | None":
    """Why this candidate's evidence isn't enough; None when it is."""
    if not enough_of_its_own(found, threshold):
        return BELOW_THRESHOLD
    if scattered(found.evidence, len(words)):
        return SCATTERED
    return NEGATED if negated(prompt, words, found.evidence) else None


def enough_of_its_own(found: "Candidate", threshold: float) -> bool:
    """Whether the trigger stands on its own words: an equivalent doesn't make up for a word that is missing.

    "find the cause of the failed job" has one word of "find bugs on site", an equivalent of another and not the third:
    two concessions are one too many.
    """
    if found.score >= 1 or not found.equivalents or not found.matched_words:
        return True
    return found.score * (found.matched_words - found.equivalents) / found.matched_words >= threshold

"""The scorer's index: the triggers by their words. Cold: made when the set of skills has changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from gstack.api import Skill
from gstack.routing.words import COMMON, QUESTIONS, stem, tokens
from gstack_plugins.lexical_scorer import PHRASE_ONLY
from gstack_plugins.lexical_scorer.equivalents import groups

#: Letters that a trigger's only content word needs to count without the rest of the phrase (R2).
LONE_WORD = 5

#: The largest number that a code point can stand for.
LAST_CODE_POINT = 0x10FFFF


def compiled(skills: Sequence[Skill], extra: str) -> dict[str, Any]:
    """The index of these skills' triggers. Skills go by name, so their order means nothing.

    ``skills`` are the names, a line each; per trigger, in parallel: ``owner`` (place in ``skills``), ``starts`` (of its
    phrase in ``text``), ``size`` (number of content words, 0 for one that counts on its whole phrase only); ``words``
    maps a stem to the triggers that have it, and ``bare`` a first token to the triggers without content words; ``same``
    are the equivalents.
    """
    ordered = sorted(skills, key=lambda skill: skill.name)
    owner: list[int] = []
    text: list[str] = []
    size: list[int] = []
    words: dict[str, list[int]] = {}
    bare: dict[str, list[int]] = {}
    seen: dict[str, str] = {}
    for place, skill in enumerate(ordered):
        for trigger in sorted(set(skill.triggers)):
            parts = tokens(trigger)
            if not parts:
                continue
            stems = content(parts, seen)
            for one in stems:
                words.setdefault(one, []).append(len(owner))
            if not stems:
                bare.setdefault(parts[0], []).append(len(owner))
            owner.append(place)
            text.append(trigger)
            size.append(_size(stems))
    starts = [0]
    for trigger in text:
        starts.append(starts[-1] + len(trigger))
    long = starts[-1] > LAST_CODE_POINT
    # numbers as texts of code points, and all phrases in one: a few objects are read in faster than thousands
    return {
        "skills": "\n".join(skill.name for skill in ordered),
        "owner": _packed(owner),
        "text": text if long else "".join(text),
        "starts": "" if long else _packed(starts),
        "size": _packed(size),
        "words": {one: _packed(numbers) for one, numbers in words.items()},
        "bare": bare,
        "same": [sorted(group) for group in groups(extra)[0]],
    }


def _packed(numbers: Sequence[int]) -> str:
    return "".join(map(chr, numbers))


def content(parts: Sequence[str], seen: dict[str, str] | None = None) -> dict[str, str]:
    """The content words of a trigger's tokens: stem -> word as written, in order; ``seen`` keeps stems."""
    seen = {} if seen is None else seen
    found: dict[str, str] = {}
    for word in parts:
        if word not in COMMON:
            one = seen.get(word)
            if one is None:
                one = seen[word] = stem(word)
            found.setdefault(one, word)
    return found


def _size(stems: Mapping[str, str]) -> int:
    """The number of content words, or 0 when only the whole phrase counts (R2: one short or asking word, or none)."""
    if len(stems) == 1:
        (word,) = stems.values()
        letters = sum(char.isalpha() for char in word)
        return 1 if letters >= LONE_WORD and word not in QUESTIONS else PHRASE_ONLY
    return len(stems)

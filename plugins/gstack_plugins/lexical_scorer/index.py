"""The scorer's index: the triggers by their words. Cold: made when the set of skills has changed."""

from array import array
from itertools import accumulate

from gstack.routing.words import ASCII, COMMON, QUESTIONS, stem, tokens
from gstack_plugins.lexical_scorer import PHRASE_ONLY
from gstack_plugins.lexical_scorer.equivalents import groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Sized
    from typing import Any

    from gstack.api import Skill

#: Letters that a trigger's only content word needs to count without the rest of the phrase (R2).
LONE_WORD = 5


def compiled(skills: "Sequence[Skill]", extra: str) -> "dict[str, Any]":
    """The index of these skills' triggers. Skills go by name, so their order means nothing.

    ``skills`` are the names and ``triggers`` the phrases, all in one text, with where each starts in ``skills_starts``
    and ``triggers_starts``; per trigger, in parallel: ``owner`` (number of its skill), ``size`` (number of content
    words, 0 for one that counts on its whole phrase only); ``words`` are the stems, a line each, and ``postings`` the
    triggers that have the first stem, those that have the second and so on, with where each begins in
    ``postings_starts``; ``bare`` maps a first token to the triggers without content words; ``same`` are the
    equivalents, each stem with the triggers that have it.
    """
    names, declared = _declared(skills)
    owner: list[int] = []
    text: list[str] = []
    size: list[int] = []
    words: dict[str, list[int]] = {}
    bare: dict[str, list[int]] = {}
    seen: dict[str, str] = {}
    for (trigger, place), parts in zip(declared, _tokens_of([trigger for trigger, _ in declared]), strict=True):
        if not parts:
            continue
        stems = content(parts, seen)
        for one in stems:
            if one in words:
                words[one].append(len(owner))
            else:
                words[one] = [len(owner)]
        if not stems:
            bare.setdefault(parts[0], []).append(len(owner))
        owner.append(place)
        text.append(trigger)
        size.append(len(stems) if len(stems) > 1 else _size(stems))
    return {
        **_phrases(names, text, owner),
        "size": _packed(size),
        "words": "\n" + "".join([one + "\n" for one in words]),
        "postings": _packed([number for numbers in words.values() for number in numbers]),
        "postings_starts": _starts(words.values()),
        "bare": bare,
        "same": [{one: _packed(words.get(one, ())) for one in sorted(group)} for group in groups(extra)[0]],
    }


def holds(index: "Mapping[str, Any]", skills: "Sequence[Skill]", extra: str) -> bool:
    """Whether ``index`` is what :func:`compiled` would make of these skills (if it says no it may still be)."""
    names, declared = _declared(skills)
    phrases = _phrases(names, [trigger for trigger, _ in declared], [place for _, place in declared])
    same = [sorted(group) for group in groups(extra)[0]]
    return all(index[key] == value for key, value in phrases.items()) and [*map(list, index["same"])] == same


def _declared(skills: "Sequence[Skill]") -> "tuple[list[str], list[tuple[str, int]]]":
    """The skills' names in order, and each trigger with the number of its skill."""
    ordered = sorted(skills, key=lambda skill: skill.name)
    triggers = [(trigger, place) for place, skill in enumerate(ordered) for trigger in sorted(set(skill.triggers))]
    return [skill.name for skill in ordered], triggers


def _phrases(names: "Sequence[str]", text: "Sequence[str]", owner: "Sequence[int]") -> "dict[str, Any]":
    """The part of the index that the rest follows from."""
    return {
        "skills": "".join(names),
        "skills_starts": _starts(names),
        "triggers": "".join(text),
        "triggers_starts": _starts(text),
        "owner": _packed(owner),
    }


def _tokens_of(texts: "Sequence[str]") -> "list[list[str]]":
    """The tokens of each text; plain ones, as most are, all in one go."""
    joined = "\n".join(texts)
    if not joined.isascii() or joined.count("\n") != len(texts) - 1:
        return [tokens(text) for text in texts]
    return [line.split() for line in joined.lower().translate({**ASCII, ord("\n"): "\n"}).split("\n")]


def _packed(numbers: "Iterable[int]") -> bytes:
    """Numbers in one object: that is read in faster than thousands."""
    return array("I", numbers).tobytes()


def _starts(parts: "Iterable[Sized]") -> bytes:
    """Where each part starts when they stand one after the other, and where the last one ends."""
    return _packed(accumulate(map(len, parts), initial=0))


def content(parts: "Sequence[str]", seen: dict[str, str] | None = None) -> dict[str, str]:
    """The content words of a trigger's tokens: stem -> word as written, in order.

    ``seen`` keeps the stem of each word (``""``: a common word).
    """
    seen = {} if seen is None else seen
    found: dict[str, str] = {}
    for word in parts:
        one = seen.get(word)
        if one is None:
            one = seen[word] = "" if word in COMMON else stem(word)
        if one and one not in found:
            found[one] = word
    return found


def _size(stems: "Mapping[str, str]") -> int:
    """The number of content words, or 0 when only the whole phrase counts (R2: one short or asking word, or none)."""
    if len(stems) == 1:
        (word,) = stems.values()
        letters = sum(char.isalpha() for char in word)
        return 1 if letters >= LONE_WORD and word not in QUESTIONS else PHRASE_ONLY
    return len(stems)

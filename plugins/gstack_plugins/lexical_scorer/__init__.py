"""The built-in trigger scorer ``lexical``: how many of a trigger's content words does the prompt hold?

Hot: imported by the hook, so builtins only. Rules: spec, routing R2. :func:`Lexical.prepare` turns the triggers into an
inverted index, so that scoring touches only triggers that share a word with the prompt.
"""

from gstack.api import Candidate, hookimpl
from gstack.routing.guards import choose_places, well_placed
from gstack.routing.words import COMMON, line_numbers, stem, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    from gstack.api import Skill

    # a trigger that scores above 0: its rank (score, whole phrase, matched words, length), its number in the index as
    # a negative, so that of equal ranks the first is the greater; where each matched word stands; how many of those are
    # only equivalents
    Match = tuple[tuple[float, bool, int, int], int, list[list[int]], int]

#: The ``size`` of a trigger that counts on its whole phrase only.
PHRASE_ONLY = 0
#: What of the index is numbers, packed into bytes.
NUMBERS = ("skills_starts", "triggers_starts", "postings", "postings_starts", "owner", "size")


class Lexical:
    """The scorer. Its table of equivalents goes into the index, so that scoring needs nothing else."""

    name = "lexical"

    def __init__(self) -> None:
        self._extra = ""

    def configure(self, settings: "Mapping[str, str]") -> "list[str]":
        """Take ``settings["equivalents"]`` (the key ``route_equivalents``) for the next :meth:`prepare`.

        Gives one line for each part of it that says nothing.
        """
        from gstack_plugins.lexical_scorer.equivalents import groups

        self._extra = settings.get("equivalents", "")
        return groups(self._extra)[1]

    def prepare(self, skills: "Sequence[Skill]") -> "dict[str, Any]":
        """The index of these skills' triggers (see :func:`gstack_plugins.lexical_scorer.index.compiled`)."""
        from gstack_plugins.lexical_scorer.index import compiled

        return compiled(skills, self._extra)

    def prepare_again(self, skills: "Sequence[Skill]", index: "Mapping[str, Any]") -> "Mapping[str, Any]":
        """The same, where ``index`` was made before: most changes of skills leave their triggers alone."""
        from gstack_plugins.lexical_scorer.index import compiled, holds

        return index if holds(index, skills, self._extra) else compiled(skills, self._extra)

    def score(self, prompt: str, index: "Mapping[str, Any]") -> "list[Candidate]":
        """Every skill with a score above 0, best first: score, whole phrase, matched words, longer trigger, name."""
        words, index = tokens(prompt), _with_numbers(index)
        best: dict[int, Match] = {}
        for match in _matches(words, index):
            place = index["owner"][-match[1]]
            # of equals the first in byte order stays
            if place not in best or match > best[place]:
                best[place] = match
        # skills are in byte order of their names, and sorting keeps that among equals
        ordered = sorted(best.items())
        ordered.sort(key=lambda item: item[1][0], reverse=True)
        return [_candidate(words, _cut(index, "skills", place), match, index) for place, match in ordered]

    def missing_words(self, prompt: str, trigger: str, index: "Mapping[str, Any]") -> "list[str]":
        """The content words of ``trigger`` that the prompt lacks, as written (for ``gstack route why-not``)."""
        from gstack_plugins.lexical_scorer.index import content

        heard = _heard(tokens(prompt))
        stems = content(tokens(trigger))
        return [word for one, word in stems.items() if not _places(heard, one, index["same"], len(stems))]


def _with_numbers(index: "Mapping[str, Any]") -> "dict[str, Any]":
    """The index with its packed numbers readable."""
    return {**index, **{key: memoryview(index[key]).cast("I") for key in NUMBERS}}


def _cut(index: "Mapping[str, Any]", what: str, number: int) -> "Any":
    """One of the ``skills``, ``triggers`` or ``postings`` of the index."""
    starts = index[what + "_starts"]
    return index[what][starts[number] : starts[number + 1]]


def _heard(words: "Sequence[str]") -> "dict[str, list[int]]":
    """Where each content word's stem stands in a prompt of these tokens."""
    stems = {word: stem(word) for word in set(words) - COMMON}
    heard: dict[str, list[int]] = {}
    for at, word in enumerate(words):
        if word in stems:
            heard.setdefault(stems[word], []).append(at)
    return heard


def _matches(words: "Sequence[str]", index: "Mapping[str, Any]") -> "Iterator[Match]":
    """Every trigger that scores above 0."""
    size, bare = index["size"], index["bare"]
    heard, line = _heard(words), _line(words)
    own: dict[int, list[list[int]]] = {}
    for one, place in line_numbers(index["words"], heard).items():
        for number in _cut(index, "postings", place):
            if number in own:
                own[number].append(heard[one])
            else:
                own[number] = [heard[one]]
    helped = _helped(heard, index)
    for number in own.keys() | helped.keys():
        literal, added = own.get(number, []), helped.get(number, [])
        whole, matched = size[number], len(literal) + len(added)
        trigger = _cut(index, "triggers", number)
        phrase = len(literal) >= (whole or 1) and _line(tokens(trigger)) in line
        if phrase or whole != PHRASE_ONLY:
            share = 1.0 if phrase else matched / whole
            yield (share, phrase, matched, len(trigger)), -number, literal + added, len(added)
    for word in bare.keys() & words:
        for number in bare[word]:
            trigger = _cut(index, "triggers", number)
            if _line(tokens(trigger)) in line:
                yield (1.0, True, 0, len(trigger)), -number, [], 0


def _line(words: "Sequence[str]") -> str:
    """Tokens as a text in which whole phrases can be looked for, token by token."""
    return " " + " ".join(words) + " "


def _helped(heard: "Mapping[str, list[int]]", index: "Mapping[str, Any]") -> "dict[int, list[list[int]]]":
    """For each trigger of several content words, the places of the equivalents that stand for words it lacks."""
    found: dict[int, list[list[int]]] = {}
    for group in index["same"]:
        places = sorted([at for one in group for at in heard.get(one, ())])
        if places:
            for one, numbers in group.items():
                if one not in heard:
                    for number in memoryview(numbers).cast("I"):
                        if index["size"][number] > 1:
                            found.setdefault(number, []).append(places)
    return found


def _candidate(words: "Sequence[str]", skill: str, match: "Match", index: "Mapping[str, Any]") -> Candidate:
    (share, phrase, matched, _), number, places, helped = match
    trigger = _cut(index, "triggers", -number)
    return Candidate(
        skill,
        share,
        trigger,
        matched_words=matched,
        phrase=phrase,
        evidence=_phrase_places(words, tokens(trigger)) if phrase else choose_places(places, len(words)),
        equivalents=helped,
    )


def _phrase_places(words: "Sequence[str]", parts: "Sequence[str]") -> "tuple[int, ...]":
    """The tokens of the best-placed whole phrase; of equally placed ones the first."""
    total, size = len(words), len(parts)
    starts = [at for at in range(total - size + 1) if words[at : at + size] == parts]
    first = min(starts, key=lambda at: (not well_placed(at, at + size - 1, total, size), at))
    return tuple(range(first, first + size))


def _places(
    heard: "Mapping[str, Sequence[int]]", one: str, same: "Sequence[Collection[str]]", size: int
) -> "Sequence[int]":
    """Where the prompt has a trigger's word: the word itself, else, in triggers of several words, an equivalent."""
    if one in heard:
        return heard[one]
    if size > 1:
        for group in same:
            if one in group:
                return sorted(at for other in group for at in heard.get(other, ()))
    return ()


@hookimpl
def gstack_trigger_scorers() -> "list[Lexical]":
    """The plug-in's scorer."""
    return [Lexical()]

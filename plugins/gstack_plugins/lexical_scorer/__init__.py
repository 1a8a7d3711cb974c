"""The built-in trigger scorer ``lexical``: how many of a trigger's content words does the prompt hold?

Hot: imported by the hook, so builtins only. Rules: spec, routing R2. :func:`Lexical.prepare` turns the triggers into an
inverted index, so that scoring touches only triggers that share a word with the prompt.
"""

from gstack.api import Candidate, hookimpl
from gstack.routing.guards import choose_places, well_placed
from gstack.routing.words import COMMON, stem, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from gstack.api import Skill

#: The ``size`` of a trigger that counts on its whole phrase only.
PHRASE_ONLY = 0


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

    def score(self, prompt: str, index: "Mapping[str, Any]") -> "list[Candidate]":
        """Every skill with a score above 0, best first: score, whole phrase, matched words, longer trigger, name."""
        heard = _Heard(prompt)
        best: dict[int, _Match] = {}
        owner = index["owner"]
        for match in _matches(heard, index):
            place = ord(owner[match.number])
            known = best.get(place)
            # of equals the first in byte order stays
            if known is None or match.rank > known.rank or (match.rank == known.rank and match.number < known.number):
                best[place] = match
        # skills are in byte order of their names, and sorting keeps that among equals
        ordered = sorted(best.items())
        ordered.sort(key=lambda item: item[1].rank, reverse=True)
        if not ordered:
            return []
        names, phrases = index["skills"].split("\n"), _Phrases(index)
        return [_candidate(heard, names[place], phrases[match.number], match) for place, match in ordered]

    def missing_words(self, prompt: str, trigger: str, index: "Mapping[str, Any]") -> "list[str]":
        """The content words of ``trigger`` that the prompt lacks, as written (for ``gstack route why-not``)."""
        from gstack_plugins.lexical_scorer.index import content

        heard = _Heard(prompt)
        stems = content(tokens(trigger))
        return [word for one, word in stems.items() if not _places(heard, one, index["same"], len(stems))]


class _Match:
    """One trigger that scores above 0: its ``number`` in the index, its ``rank`` (score, whole phrase, matched words,
    length), where each matched word stands, and how many of those are only equivalents."""

    __slots__ = ("helped", "number", "places", "rank")

    def __init__(
        self, number: int, rank: "tuple[float, bool, int, int]", places: "list[list[int]]", helped: int = 0
    ) -> None:
        self.number = number
        self.rank = rank
        self.places = places
        self.helped = helped


class _Phrases:
    """The triggers' phrases by number: pieces of one text, or a list where that would be too long for code points."""

    __slots__ = ("starts", "text")

    def __init__(self, index: "Mapping[str, Any]") -> None:
        self.text: str | list[str] = index["text"]
        self.starts: str = index["starts"]

    def __getitem__(self, number: int) -> str:
        if isinstance(self.text, list):
            return self.text[number]
        return self.text[ord(self.starts[number]) : ord(self.starts[number + 1])]


def _matches(heard: "_Heard", index: "Mapping[str, Any]") -> "Iterator[_Match]":
    size, text, words, bare = index["size"], _Phrases(index), index["words"], index["bare"]
    own: dict[int, list[list[int]]] = {}
    for one, places in heard.places.items():
        for number in map(ord, words.get(one, "")):
            if number in own:
                own[number].append(places)
            else:
                own[number] = [places]
    helped = _helped(heard, index)
    for number in own.keys() | helped.keys():
        literal, added = own.get(number, []), helped.get(number, [])
        whole, matched = ord(size[number]), len(literal) + len(added)
        phrase = len(literal) >= (whole or 1) and heard.holds(text[number])
        if phrase or whole != PHRASE_ONLY:
            share = 1.0 if phrase else matched / whole
            yield _Match(number, (share, phrase, matched, len(text[number])), literal + added, len(added))
    for word in heard.words & bare.keys():
        for number in bare[word]:
            if heard.holds(text[number]):
                yield _Match(number, (1.0, True, 0, len(text[number])), [])


def _helped(heard: "_Heard", index: "Mapping[str, Any]") -> "dict[int, list[list[int]]]":
    """For each trigger of several content words, the places of the equivalents that stand for words it lacks."""
    found: dict[int, list[list[int]]] = {}
    for group in index["same"]:
        places = sorted(at for one in group for at in heard.places.get(one, ()))
        if places:
            for one in group:
                if one not in heard.places:
                    for number in map(ord, index["words"].get(one, "")):
                        if ord(index["size"][number]) > 1:
                            found.setdefault(number, []).append(places)
    return found


def _candidate(heard: "_Heard", skill: str, trigger: str, match: _Match) -> Candidate:
    share, phrase, matched, _ = match.rank
    return Candidate(
        skill,
        share,
        trigger,
        matched_words=matched,
        phrase=phrase,
        evidence=heard.phrase_places(trigger) if phrase else choose_places(match.places, len(heard.tokens)),
        equivalents=match.helped,
    )


def _places(heard: "_Heard", one: str, same: "Sequence[Sequence[str]]", size: int) -> "Sequence[int]":
    """Where the prompt has a trigger's word: the word itself, else, in triggers of several words, an equivalent."""
    if one in heard.places:
        return heard.places[one]
    if size > 1:
        for group in same:
            if one in group:
                return sorted(at for other in group for at in heard.places.get(other, ()))
    return ()


class _Heard:
    """A prompt as the scorer sees it: its tokens, and where each content word's stem stands."""

    __slots__ = ("line", "places", "tokens", "words")

    def __init__(self, prompt: str) -> None:
        self.tokens = tokens(prompt)
        self.words = set(self.tokens)
        self.line = " " + " ".join(self.tokens) + " "
        stems = {word: stem(word) for word in self.words - COMMON}
        self.places: dict[str, list[int]] = {}
        for at, word in enumerate(self.tokens):
            if word in stems:
                self.places.setdefault(stems[word], []).append(at)

    def holds(self, trigger: str) -> bool:
        """Whether the whole phrase stands in the prompt, token by token."""
        return " " + " ".join(tokens(trigger)) + " " in self.line

    def phrase_places(self, trigger: str) -> "tuple[int, ...]":
        """The tokens of the best-placed whole phrase; of equally placed ones the first."""
        parts, total = tokens(trigger), len(self.tokens)
        size = len(parts)
        starts = [at for at in range(total - size + 1) if self.tokens[at : at + size] == parts]
        first = min(starts, key=lambda at: (not well_placed(at, at + size - 1, total, size), at))
        return tuple(range(first, first + size))


@hookimpl
def gstack_trigger_scorers() -> "list[Lexical]":
    """The plug-in's scorer."""
    return [Lexical()]

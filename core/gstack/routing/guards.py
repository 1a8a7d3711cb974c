"""The guards of the decision: is the evidence of a candidate scattered over the prompt, is it negated?

Hot: imported by the hook, so builtins only. The score says that a trigger's words occur in the prompt; the guards look
at where and how (spec, routing R3). They work on token positions, so they fit any scorer that gives evidence. The
constants were tuned with ``gstack route eval``.

Each rule in one sentence. *Scattered*: the matched words stand within ``TOGETHER`` tokens, and in a long prompt within
``EDGE`` tokens of its beginning or end (``EDGE_LONE`` for a single word). *Negated*: a refusal stands at most
``REFUSAL_REACH`` tokens before a matched word in the same clause; or "not needed" stands right behind it; or "I", "we",
"already", "was" right before its ``-ed`` form report it as done.
"""

from gstack.routing.words import COMMON, tokens, word_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: The matched words must stand within so many tokens.
TOGETHER = 8
#: A prompt of more tokens than this is long: there the request stands at one of its ends, the rest is material.
LONG_PROMPT = 60
#: How far from the beginning or the end of a long prompt evidence still counts, in tokens.
EDGE = 40
#: The same for evidence of a single word, which is weaker.
EDGE_LONE = 20
#: A refusal reaches so many tokens forward, at most to the end of its clause.
REFUSAL_REACH = 4


# --------------------------------------------------------------------------------------------- scattered


def well_placed(first: int, last: int, total: int, count: int = 1) -> bool:
    """Whether ``count`` words from token ``first`` to ``last`` of ``total`` stand together and where requests stand.

    More than :data:`TOGETHER` words stand together when nothing is between them.
    """
    if last - first >= max(TOGETHER, count):
        return False
    edge = EDGE if last > first else EDGE_LONE
    return total <= LONG_PROMPT or last < edge or first >= total - edge


def scattered(evidence: "Sequence[int]", total: int) -> bool:
    """Whether the evidence lies scattered in a prompt of ``total`` tokens; no evidence is never scattered."""
    return bool(evidence) and not well_placed(evidence[0], evidence[-1], total, len(evidence))


def choose_places(groups: "Sequence[Sequence[int]]", total: int) -> "tuple[int, ...]":
    """One position out of each group of positions, ascending: the choice that the guards like best.

    For scorers: a matched word may occur several times, and one good place is enough. Well placed goes before narrow,
    narrow before early.
    """
    if len(groups) == 1:
        if len(groups[0]) == 1:
            return (groups[0][0],)
        place = min(groups[0], key=lambda at: (not well_placed(at, at, total), at))
        return (place,)
    merged = sorted((at, number) for number, group in enumerate(groups) for at in group)
    last_seen: dict[int, int] = {}
    best: tuple[bool, int, int] | None = None
    chosen: list[int] = []
    for at, number in merged:
        last_seen[number] = at
        if len(last_seen) == len(groups):
            first = min(last_seen.values())
            key = (not well_placed(first, at, total, len(groups)), at - first, first)
            if best is None or key < best:
                # one token may stand for two words of a trigger
                best, chosen = key, sorted(set(last_seen.values()))
    return tuple(chosen)


# ----------------------------------------------------------------------------------------------- negated

#: Words that refuse what follows them. "doesn't", "isn't", "can't" aren't here: they tell a symptom, not a wish.
REFUSALS = word_set("dont no without neednt shouldnt mustnt")
#: Refusals of two words.
REFUSAL_PAIRS = frozenset([("instead", "of"), ("rather", "than")])
#: A bare "not" refuses behind one of these or at the head of a clause ("do not"); elsewhere it tells what is so
#: ("is not", "tests not passing").
REFUSING_BEFORE_NOT = word_set("do should must need please but and or to better im am") | {""}
#: Words that refuse when they open a clause ("skip the review", "never debug it"); "the server stops" refuses nothing.
OPENING_REFUSALS = word_set("never stop skip avoid forget nevermind")
#: Behind one of these a refusal tells what is so: "there is no", "with no output", "they don't", "why don't we".
TELLING = word_set("""is are was were been has have had got get gets see sees shows gives returns prints with
    it they that which who these those why""")
#: Before one of these a refusal refuses nothing: "I don't know why", "not sure", "don't forget to", "not only".
NO_REFUSAL_OF = word_set("""know understand see seen get remember think believe sure clear certain idea clue able
    forget hesitate skip stop miss only just matter longer problem worries""")
#: A refusal doesn't reach beyond one of these.
SCOPE_ENDS = word_set("but just only instead while until unless because so then if when although though")
#: "we fixed that bug", "it was reviewed": a word in ``-ed`` right behind one of these reports what was done ...
REPORTERS = word_set("i we ive weve already was were been")
#: ... unless it is a symptom, which is what people report when they want help.
SYMPTOMS = word_set("failed crashed errored")
#: "a review is not needed": a negation and one of these right behind the evidence.
NEEDED = word_set("needed necessary required wanted")
_BEHIND = word_set("not isnt arent wasnt no unnecessary")
_BEHIND_REACH = 3
_ANY_REFUSAL = REFUSALS | OPENING_REFUSALS | _BEHIND | {"of", "than"}

#: What ends a clause: these characters before white space, and some wherever they stand.
_CLAUSE_ENDS = (". ", ", ", ": ", ".\t", ",\t", " - ", ";", "!", "?", "(", ")", "\u2014", "\u2013", "\u2026", "\r")


def negated(prompt: str, words: "Sequence[str]", evidence: "Sequence[int]") -> bool:
    """Whether the prompt refuses what the evidence asks for, or reports it as done. ``words`` are ``tokens(prompt)``.

    A negation that is evidence itself (the trigger holds it) doesn't count.
    """
    if any(_reported(words, at) for at in evidence):
        return True
    if not _near_refusal(words, evidence):
        return False
    starts = _clause_starts(prompt, len(words))
    own = set(evidence)
    for at in evidence:
        start = max([s for s in starts if s <= at])
        end = min([s for s in starts if s > at], default=len(words))
        if _unneeded(words[at + 1 : min(at + 1 + _BEHIND_REACH, end)]):
            return True
        for back in range(at - 1, max(start, at - REFUSAL_REACH) - 1, -1):
            if back not in own and _refuses(words, back, start):
                return True
            if words[back] in SCOPE_ENDS:
                break
    return False


def _near_refusal(words: "Sequence[str]", evidence: "Sequence[int]") -> bool:
    """A cheap look before the clauses are found: is there anything that could negate at all?"""
    return any(
        word in _ANY_REFUSAL for at in evidence for word in words[max(0, at - REFUSAL_REACH) : at + _BEHIND_REACH + 1]
    )


def _refuses(words: "Sequence[str]", at: int, start: int) -> bool:
    """Whether the word at ``at``, in a clause that begins at ``start``, refuses what follows."""
    word = words[at]
    before = words[at - 1] if at > start else ""
    refuses = (
        (word in REFUSALS and before not in TELLING)
        or (before, word) in REFUSAL_PAIRS
        or (word == "not" and before in REFUSING_BEFORE_NOT)
        or (word in OPENING_REFUSALS and all(w in COMMON for w in words[start:at]))
    )
    if not refuses:
        return False
    following = next((w for w in words[at + 1 :] if w not in COMMON), "")
    return following not in NO_REFUSAL_OF


def _reported(words: "Sequence[str]", at: int) -> bool:
    word = words[at]
    return at > 0 and words[at - 1] in REPORTERS and word.endswith("ed") and word not in SYMPTOMS


def _unneeded(behind: "Sequence[str]") -> bool:
    return any(
        word == "unnecessary" or (word in _BEHIND and NEEDED.intersection(behind[place + 1 :]))
        for place, word in enumerate(behind)
    )


def _clause_starts(prompt: str, total: int) -> "list[int]":
    """The token positions at which clauses begin, ascending, 0 first."""
    for mark in _CLAUSE_ENDS:
        prompt = prompt.replace(mark, "\n")
    starts, at = [0], 0
    for part in prompt.split("\n"):
        at += len(tokens(part))
        if at > starts[-1]:
            starts.append(at)
    # cut up, a text could in theory split into other words: then there are no clauses to rely on
    return starts if at == total else [0]

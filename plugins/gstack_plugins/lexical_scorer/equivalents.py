"""Words that mean the same to the scorer: the one table, and how a configuration extends it.

Imported when an index is made, so also on the hook's slow road: builtins only. Rules: spec, routing R2.
"""

from gstack.routing.words import stem, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Each row is a set of words of which any one stands for any other, in triggers of two or more content words.
#: One row today: the words people use for a symptom. "issue", "problem" and "break" are left out on purpose: they name
#: tickets, exercises and line ends at least as often.
EQUIVALENTS = (("bug", "fail", "failure", "error", "broken", "broke", "crash", "defect", "exception"),)


def groups(extra: str = "") -> "tuple[list[frozenset[str]], list[str]]":
    """The table with ``extra`` added, as sets of stems, and one line for each part of ``extra`` that says nothing.

    ``extra`` is the value of the key ``route_equivalents``: ``bug=glitch,regression; deploy=rollout``. A part joins the
    row that knows any of its words, or is a row of its own.
    """
    rows = [frozenset(stem(word) for word in row) for row in EQUIVALENTS]
    problems = []
    for part in extra.split(";"):
        if not part.strip():
            continue
        head, equals, rest = part.partition("=")
        words = [tokens(word) for word in (head, *rest.split(","))]
        if not equals or any(len(word) != 1 for word in words):
            problems.append(f"route_equivalents: {part.strip()!r} isn't of the form word=word,word")
            continue
        rows = _joined(rows, frozenset(stem(word[0]) for word in words))
    return rows, problems


def _joined(rows: "Sequence[frozenset[str]]", new: "frozenset[str]") -> "list[frozenset[str]]":
    apart = [row for row in rows if row.isdisjoint(new)]
    together = [row for row in rows if not row.isdisjoint(new)]
    return [*apart, new.union(*together)]

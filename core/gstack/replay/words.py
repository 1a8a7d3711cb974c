"""What people read for the words of the rows (:mod:`gstack.replay.rows`), each with its tone on a page."""

from gstack.replay.rows import FOLLOWED, NONE, OTHER

#: Outcomes of runs (contracts C7, and those that only a replay has).
OUTCOMES = {
    "met": ("met", "good"),
    "met_waived": ("met, with a waiver", "warn"),
    "blocked": ("unmet at the end", "bad"),
    "miss": ("unmet again later", "bad"),
    "met_after_block": ("unmet at a stop, met later", "warn"),
    "deferred": ("agents were still running", "dim"),
    "open": ("no final turn", "dim"),
    "cannot_tell": ("couldn't be judged", "dim"),
    "invalid": ("its contract is invalid", "dim"),
}
#: What the model did after a prompt.
DID = {FOLLOWED: ("loaded it", "good"), OTHER: ("loaded another", "warn"), NONE: ("loaded none", "bad")}
#: Kinds of use.
KINDS = {"skill": "skill", "subagent": "subagent", "typed": "typed command", "read": "SKILL.md read"}


def outcomes_text(counts: dict[str, int]) -> str:
    """How many runs had which outcome."""
    return "; ".join(f"{count:,} {OUTCOMES[word][0]}" for word, count in counts.items())

"""What one replayed transcript gives: small rows of plain data, for processes and checkpoints to hand on.

No row holds a word that a person typed, unless the replay was asked to show prompts. ``key`` tells the same thing
apart in two files: a session that was forked copies its history, and that counts once. ``ts`` is in seconds since the
epoch, None where the transcript has no time.
"""

from hashlib import blake2b
from typing import Any, NamedTuple

#: Why a file gave no rows (``FileResult.state``), beside ``ok``.
STRANGE = "no transcript"
ELSEWHERE = "another project"
OLD = "too old"
FAILED = "failed"

#: ``PromptRow.reason`` of a prompt that would have been routed.
ROUTED = "routed"

#: What the model did after a prompt that would have been routed (``RouteRow.did``).
FOLLOWED, OTHER, NONE = "followed", "other", "none"

#: Outcomes of a run beside those of the session records (contracts C7): no turn of it was a final one; a contract kind
#: couldn't tell; its contract is invalid.
OPEN, CANNOT_TELL, INVALID = "open", "cannot_tell", "invalid"


class PromptRow(NamedTuple):
    """A prompt, and what routing says of it: ``routed`` or one of the reasons of routing R6."""

    key: int
    ts: float | None
    reason: str


class RouteRow(NamedTuple):
    """A prompt that would have been routed to ``skill``, and what the model ``did``; ``loaded`` is the first skill that
    it loaded; ``text`` the beginning of the prompt, where prompts are to be shown."""

    key: int
    ts: float | None
    session: str
    skill: str
    score: float
    trigger: str
    did: str
    loaded: str
    text: str


class RunRow(NamedTuple):
    """A run of a skill with a contract: its ``outcome``, the items that it would have been ``held`` for, when, and
    ``why`` it couldn't be judged."""

    key: int
    ts: float | None
    session: str
    skill: str
    load_id: str
    outcome: str
    held: tuple[str, ...]
    items: tuple[str, ...]
    why: str


class UseRow(NamedTuple):
    """A use of a skill, subagent or typed command: its ``kind`` (``skill``, ``subagent``, ``typed``, ``read``), what
    the bundle in force says, and what the other one does (``""``: there is no such bundle, or it has no opinion)."""

    key: int
    ts: float | None
    session: str
    kind: str
    name: str
    action: str
    policy: str
    reason: str
    then_action: str
    then_policy: str
    then_reason: str


class FileResult(NamedTuple):
    """What became of one transcript: its ``state`` (``ok`` or one of the words above) with ``why``, and the rows."""

    path: str
    size: int
    state: str = "ok"
    why: str = ""
    session: str = ""
    prompts: tuple[PromptRow, ...] = ()
    routes: tuple[RouteRow, ...] = ()
    runs: tuple[RunRow, ...] = ()
    uses: tuple[UseRow, ...] = ()

    @classmethod
    def from_plain(cls, data: Any) -> "FileResult":
        """The result that JSON made plain. Raises TypeError or ValueError for anything else."""
        path, size, state, why, session, prompts, routes, runs, uses = data
        return cls(
            path,
            size,
            state,
            why,
            session,
            tuple(PromptRow(*row) for row in prompts),
            tuple(RouteRow(*row) for row in routes),
            tuple(_run_row(*row) for row in runs),
            tuple(UseRow(*row) for row in uses),
        )


def _run_row(*row: Any) -> RunRow:
    run = RunRow(*row)
    return run._replace(held=tuple(run.held), items=tuple(run.items))


def key_of(*parts: object) -> int:
    """A number that two things share only when all their parts are equal."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")

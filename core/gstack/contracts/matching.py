"""Matching a pack author's regular expression, bounded in time, and which calls of a run happened (contracts C2, C8).

Hot: contract kinds use it in the stop hook, so builtins only; ``re`` is imported when an expression is matched.

No thread can stop ``re``. On POSIX the hook's own timer raises a BaseException inside of it, so nothing here may
swallow one; on Windows, which has no such timer, the expression runs in a child process with a time limit.
"""

from gstack.lowlevel import POSIX, dump_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gstack.api import Event, Run

#: Seconds that a child process may take to match (Windows).
LIMIT = 2.0

_CHILD = (
    "import json, re, sys\n"
    "pattern, flags, texts = json.loads(sys.stdin.buffer.read())\n"
    "match = re.compile(pattern, flags).search\n"
    "print(next((place for place, text in enumerate(texts) if match(text)), -1))\n"
)


def search(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether the expression matches anywhere in ``text``.

    Raises re.error for an expression that doesn't compile and TimeoutError when a child process took too long.
    """
    return first_match(pattern, (text,), ignore_case=ignore_case) is not None


def first_match(pattern: str, texts: "Sequence[str]", *, ignore_case: bool = False) -> "int | None":
    """The place of the first of ``texts`` that the expression matches anywhere, None when it matches none.

    Raises as :func:`search` does.
    """
    if not texts:
        return None
    if not POSIX:
        return match_in_child(pattern, texts, ignore_case=ignore_case)
    import re

    expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    for place, text in enumerate(texts):
        if expression.search(text):
            return place
    return None


def match_in_child(
    pattern: str, texts: "Sequence[str]", *, ignore_case: bool = False, limit: float = LIMIT
) -> "int | None":
    """:func:`first_match` in another process that is ended after ``limit`` seconds. Raises TimeoutError then."""
    import re
    import subprocess
    import sys

    re.compile(pattern)
    task = dump_json([pattern, int(re.IGNORECASE) if ignore_case else 0, list(texts)]).encode("ascii")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            input=task,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limit,
            check=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"the expression {pattern[:60]!r} took longer than {limit:g} s") from None
    place = int(done.stdout)
    return None if place < 0 else place


def happened(run: "Run", place: int, result: "Event | None") -> bool:
    """Whether the call at ``place`` of the run's events was carried out, whatever came of it.

    A call that was denied or refused wasn't. One without a result counts when the session went on after it (the
    result was lost, or the host pairs none), and doesn't when it was broken off or is the last thing there.
    """
    if result is not None:
        return not result.denied
    for event in run.events[place + 1 :]:
        if event.type != "call":
            return event.type != "interrupted"
    said = run.final_text.strip()
    return bool(said) and all(event.text.strip() != said for event in run.events if event.type == "text")

"""When the stop hook can't judge: it fails open and says so (contracts C8).

Hot, but imported only when something went wrong. One line on standard error each time, one message to the person a
session, one line in the log; a transcript of unknown shape also raises a count that ``doctor`` shows.
"""

from gstack.api import ALLOW, Answer
from gstack.contracts.hook import look
from gstack.errors import ContractState, UnknownShape
from gstack.logs import log
from gstack.lowlevel import dump_json, join, load_json, read_fd, read_file, sys_os, write_all
from gstack.sessions import read_session, update_session
from gstack.state import Lock, write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gstack.hook import HookContext

#: The notice's name in the session record.
NOTICE = "skill-contract-state-error"
#: How much of a transcript's end is searched for a message that was given before, in bytes.
_TAIL = 1 << 20


def answer_to(ctx: "HookContext", error: Exception) -> Answer:
    """The answer where reading or recording ended in ``error``; raises any that a stop isn't to end in."""
    transcript = ctx.event.transcript_path or ""
    if isinstance(error, UnknownShape):
        return fail_open(ctx, transcript, error.message, canary=True)
    if not isinstance(error, (ContractState, OSError)):
        raise error
    path = getattr(error, "path", None) or transcript
    if path == transcript and look(path)[0] <= 0:
        return ALLOW  # it disappeared while it was read
    return fail_open(ctx, path, getattr(error, "message", None) or str(error))


def fail_open(ctx: "HookContext", path: str, problem: str, *, canary: bool = False) -> Answer:
    """Report that the stop is allowed although nothing could be judged; the answer carries the notice, once a session.

    ``path`` is the file that is at fault, ``problem`` says what is wrong with it (a leading ``path: `` is taken off).
    """
    line = error_line(path, problem)
    _say(line)
    if canary:
        count_canary(ctx.root, ctx.event.host, int(ctx.now))
    session = ctx.event.session_id
    before = read_session(ctx.root, session)
    after = update_session(ctx.root, session, notice=NOTICE, error="skill_contracts")
    failures = after.errors.get("skill_contracts", 1)
    what = "unknown-shape" if canary else "state-error"
    log(ctx.root, "skill-contract", session, f"error failures={failures} what={what} path={path}")
    if NOTICE in before.notices:
        return Answer()
    if NOTICE not in after.notices and _said_before(ctx.event.transcript_path or ""):
        return Answer()  # the state folder can't be written, so the transcript is the only memory
    return Answer(notice=line)


def error_line(path: str, problem: str) -> str:
    """The exact line (contracts C8)."""
    cause = " ".join(problem.removeprefix(path + ":").split())
    text = (
        f"gstack-skill-contract: {ContractState.code} {path}: {cause}; stop allowed, miss not recorded "
        "(see docs/reference/exit-codes.md#state-error)"
    )
    return "".join([char if char.isprintable() else "?" for char in text])


def _say(line: str) -> None:
    try:
        write_all(2, line.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        return


def _said_before(transcript: str) -> bool:
    """Whether the host's record of the session already shows such a message near its end."""
    try:
        fd = sys_os.open(transcript, sys_os.O_RDONLY | getattr(sys_os, "O_BINARY", 0))
        try:
            size = sys_os.fstat(fd).st_size
            sys_os.lseek(fd, max(0, size - _TAIL), 0)
            return ContractState.code.encode() in read_fd(fd, _TAIL)
        finally:
            sys_os.close(fd)
    except OSError:
        return False


# ---------------------------------------------------------------------------------------------- canary


def canary_path(root: str) -> str:
    """Where it is counted how often a transcript had a shape that no reader knew."""
    return join(root, "hooks", "skill-contract.canary.json")


def read_canary(root: str) -> "dict[str, Any]":
    """``{"count", "host", "last_at"}``; a count of 0 when there is no file or it can't be read. Never raises."""
    try:
        data = load_json(read_file(canary_path(root), 1 << 16))
    except (OSError, ValueError):
        data = None
    if not isinstance(data, dict) or type(data.get("count")) is not int:
        return {"count": 0, "host": "", "last_at": 0}
    return {"count": data["count"], "host": str(data.get("host", "")), "last_at": data.get("last_at", 0)}


def count_canary(root: str, host: str, now: int) -> None:
    """Add one to the count (``now``: seconds since the epoch). Never raises."""
    try:
        with Lock(canary_path(root) + ".lock", timeout=0.3) as lock:
            if lock.held:
                data = {"count": read_canary(root)["count"] + 1, "host": host, "last_at": now}
                write_atomic(canary_path(root), dump_json(data).encode("ascii") + b"\n")
    except OSError:
        return

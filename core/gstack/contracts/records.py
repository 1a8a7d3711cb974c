"""What became of each run, one file a session (contracts C7).

Hot: read and written by the stop hook, so builtins only. A file that can't be understood is left as it is: it may hold
outcomes, and none is ever lost.
"""

from gstack.api import CANNOT_TELL, MET, MISSING
from gstack.lowlevel import dump_json, join, load_json, read_file, sys_os
from gstack.state import Lock, write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gstack.errors import RecordError

    #: One run as the file has it: skill, load_id, contract{version, digest}, items{id: state}, outcome, updated_at, and
    #: where they apply blocked_at, seen_agents{agent: first seen} and observe. Times are seconds since the epoch.
    RunRecord = dict[str, Any]
    SessionRecord = dict[str, Any]

#: Format of the file.
VERSION = 1
#: Largest file that is read, in bytes.
LIMIT = 8 << 20

#: How long a run may stay deferred before it counts as stuck, in seconds.
STUCK_AFTER = 3600

OUTCOMES = ("met", "met_waived", "blocked", "met_after_block", "miss", "deferred")
#: The outcomes that stay as they are.
DONE = ("met", "met_waived", "met_after_block")
_ITEM_STATES = (MET, MISSING, "waived", CANNOT_TELL)


def records_dir(root: str) -> str:
    """The folder of the session records."""
    return join(root, "skill-contracts")


def record_path(root: str, session: str) -> str:
    """A session's record; ``session`` must have passed :func:`gstack.sessions.safe_id`."""
    return join(records_dir(root), session + ".json")


def read_record(root: str, session: str) -> "SessionRecord | None":
    """A session's record; None when there is none. Raises RecordError for one that can't be used."""
    path = record_path(root, session)
    found = read_record_file(path)
    if found is not None and found["session"] != session:
        raise _unusable(path, "it belongs to another session; move it away")
    return found


def read_record_file(path: str) -> "SessionRecord | None":
    """The record in ``path``; None when there is no such file.

    Raises RecordError, whose message tells apart what can't be read, is cut off or corrupt, comes from a newer
    gstack, or isn't ours.
    """
    try:
        data = read_file(path, LIMIT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, f"it can't be read ({cause(error)})") from None
    if len(data) > LIMIT:
        raise _unusable(path, f"it is larger than {LIMIT >> 20} MiB; delete it")
    try:
        record = load_json(data)
    except ValueError:
        raise _unusable(path, "the record is corrupt (no JSON); delete it") from None
    problem = _problem(record)
    if problem:
        raise _unusable(path, problem)
    return record  # type: ignore[no-any-return]


def _problem(record: "Any") -> str:
    """Why this is no record that can be used; ``""`` when it is one."""
    if not isinstance(record, dict) or type(record.get("version")) is not int or "runs" not in record:
        return "it is no session record of gstack; move it away"
    if record["version"] > VERSION:
        return f"a newer gstack wrote it (version {record['version']}, this one knows {VERSION}); update gstack"
    if not isinstance(record.get("session"), str) or not isinstance(record["runs"], list):
        return "the record is corrupt (no session or no list of runs); delete it"
    for run in record["runs"]:
        if not _is_run(run):
            return "the record is corrupt (a run lacks what it must have); delete it"
    return ""


def _is_run(run: "Any") -> bool:
    if not isinstance(run, dict) or run.get("outcome") not in OUTCOMES:
        return False
    items, agents = run.get("items"), run.get("seen_agents", {})
    return (
        isinstance(run.get("skill"), str)
        and isinstance(run.get("load_id"), str)
        and isinstance(run.get("contract"), dict)
        and isinstance(items, dict)
        and all(state in _ITEM_STATES for state in items.values())
        and isinstance(agents, dict)
        and all(isinstance(seen, (int, float)) for seen in agents.values())
        and isinstance(run.get("blocked_at", 0), (int, float))
        and isinstance(run.get("updated_at", 0), (int, float))
    )


def find_run(record: "SessionRecord | None", load_id: str) -> "RunRecord | None":
    """The run of one load."""
    for run in record["runs"] if record else ():
        if run["load_id"] == load_id:
            return run  # type: ignore[no-any-return]
    return None


def may_be_settled(root: str, session: str) -> bool:
    """Whether the session's record may hold a run whose outcome stays: a look at its bytes, which decides nothing."""
    try:
        return b'"outcome": "met' in read_file(record_path(root, session), LIMIT)
    except OSError:
        return False


def change_run(
    root: str,
    session: str,
    host: str,
    load_id: str,
    change: "Callable[[RunRecord | None], RunRecord | None]",
    *,
    transcript: "str | None" = None,
    then: "Callable[[], object] | None" = None,
) -> None:
    """Change one run under the records' lock; ``change`` gets the run as recorded (or None) and gives what it becomes.

    None from ``change`` leaves the file as it is. ``then`` is called after the file was written, still under the lock.
    Raises RecordError when it can't be locked, read or written; nothing was changed then.
    """
    path = record_path(root, session)
    try:
        with Lock(join(records_dir(root), ".lock"), timeout=1.0) as lock:
            if not lock.held:
                raise _unusable(path, "another process holds its lock")
            record = read_record(root, session) or {"version": VERSION, "session": session, "host": host, "runs": []}
            old = find_run(record, load_id)
            new = change(dict(old) if old is not None else None)
            if new is None or new == old:
                return
            if old is None:
                record["runs"].append(new)
            else:
                record["runs"][record["runs"].index(old)] = new
            if transcript:
                record["transcript"] = transcript
            write_atomic(path, dump_json(record).encode("ascii") + b"\n")
            if then is not None:
                then()
    except OSError as error:
        raise _unusable(path, f"it can't be written ({cause(error)}); make {root} writable") from None


def record_files(root: str) -> "list[tuple[str, str]]":
    """Every session record as (path, session id), by name; empty when there is no folder. Raises RecordError."""
    folder = records_dir(root)
    try:
        found = sorted([name for name in sys_os.listdir(folder) if name.endswith(".json")])
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unusable(folder, f"it can't be listed ({cause(error)})") from None
    return [(join(folder, name), name[: -len(".json")]) for name in found]


def stuck_runs(root: str, now: float) -> "list[tuple[str, str, float]]":
    """The runs that have been deferred for over an hour, as (session, skill, hours): their agents never reported back.

    Records that can't be used are passed over (``gstack contract report`` names them). Raises RecordError as
    :func:`record_files` does.
    """
    from gstack.errors import ContractState

    found = []
    for path, session in record_files(root):
        try:
            record = read_record_file(path)
        except ContractState:
            continue
        for run in record["runs"] if record else ():
            since = now - float(run.get("updated_at") or now)
            if run["outcome"] == "deferred" and since > STUCK_AFTER:
                found.append((session, run["skill"], since / 3600))
    return found


def _unusable(path: str, problem: str) -> "RecordError":
    from gstack.errors import RecordError

    return RecordError(path, problem)


def cause(error: Exception) -> str:
    """An error in a few words."""
    return getattr(error, "strerror", None) or type(error).__name__

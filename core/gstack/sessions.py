"""What gstack itself saw in a session: skills loaded, hinted and blocked, errors, notices already given.

Hot: imported by the hook, so builtins only. Written by the hooks as they see it, so that no prompt waits for a
transcript (design: "The hook process"). One file a session: ``sessions/<id>.json``.
"""

from gstack.lowlevel import dump_json, is_file, join, load_json, read_file
from gstack.state import Lock, write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Names that Windows keeps for devices, whatever their ending.
_DEVICES = frozenset(["con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))])
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def safe_id(session_id: "str | None") -> "str | None":
    """``session_id`` if it can be a file name on every platform, else None (contracts C7): letters, digits, ``._-``,
    at most 128 characters, no leading dot, no ``..``."""
    if not session_id or not isinstance(session_id, str) or len(session_id) > 128:
        return None
    if session_id[0] == "." or ".." in session_id or not _PLAIN.issuperset(session_id):
        return None
    return None if session_id.split(".")[0].lower() in _DEVICES else session_id


class Session:
    """The record of one session; ``errors`` counts failures by feature."""

    __slots__ = ("blocked", "errors", "hinted", "loaded", "notices")

    def __init__(self) -> None:
        self.loaded: set[str] = set()
        self.hinted: set[str] = set()
        self.blocked: set[str] = set()
        self.notices: set[str] = set()
        self.errors: dict[str, int] = {}


_SETS = ("loaded", "hinted", "blocked", "notices")


def session_path(root: str, session_id: str) -> str:
    """The record's file."""
    return join(root, "sessions", session_id + ".json")


def read_session(root: str, session_id: "str | None") -> Session:
    """The record of a session; an empty one when there is none or it can't be read. Never raises."""
    session = Session()
    name = safe_id(session_id)
    if name is None:
        return session
    try:
        data = load_json(read_file(session_path(root, name), 1 << 20))
        for key in _SETS:
            setattr(session, key, {text for text in data.get(key, ()) if isinstance(text, str)})
        session.errors = {k: v for k, v in data.get("errors", {}).items() if isinstance(v, int)}
    except (OSError, ValueError, AttributeError, TypeError):
        return session
    return session


def update_session(
    root: str,
    session_id: "str | None",
    *,
    loaded: "Iterable[str]" = (),
    hinted: "Iterable[str]" = (),
    blocked: "Iterable[str]" = (),
    notice: "str | None" = None,
    error: "str | None" = None,
) -> Session:
    """Add to the record under its lock and write it atomically; give it as it then is. Never raises.

    ``error`` is a feature's name whose count goes up by one.
    """
    name = safe_id(session_id)
    if name is None:
        return Session()
    try:
        with Lock(join(root, "sessions", ".lock"), timeout=0.3) as lock:
            session = read_session(root, name)
            if not lock.held:
                return session
            return _add(session, session_path(root, name), loaded, hinted, blocked, notice, error)
    except (OSError, ValueError):
        return read_session(root, name)


def _add(
    session: Session,
    path: str,
    loaded: "Iterable[str]",
    hinted: "Iterable[str]",
    blocked: "Iterable[str]",
    notice: "str | None",
    error: "str | None",
) -> Session:
    before = sum(len(getattr(session, key)) for key in _SETS)
    session.loaded |= set(loaded)
    session.hinted |= set(hinted)
    session.blocked |= set(blocked)
    session.notices |= {notice} if notice else set()
    if error:
        session.errors[error] = session.errors.get(error, 0) + 1
    if error or sum(len(getattr(session, key)) for key in _SETS) != before or not is_file(path):
        record: dict[str, object] = {"version": 1, "errors": session.errors}
        for key in _SETS:
            record[key] = sorted(getattr(session, key))
        write_atomic(path, dump_json(record).encode("ascii") + b"\n")
    return session

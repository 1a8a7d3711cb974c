"""How old the bundle is, and what that does to a decision (gate G5).

Hot: imported by the hook, so builtins only. Age is now minus the last successful sync of this machine, never the date
inside the bundle. The network side writes ``gate/sync.json``; :func:`judge` is pure, with the time as an argument.
"""

from gstack.lowlevel import is_file, join, load_json, read_file, sys_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: Age from which a bundle is refreshed in the background, in seconds; half of ``stale_after_s`` where that is less.
REFRESH_AFTER = 3600.0

#: What a bundle without ``stale_after_s`` means, in seconds (gate G1).
STALE_AFTER = 86400.0

#: How far a last sync may lie in the future before the clock must have been wrong, in seconds.
CLOCK_SLACK = 300.0


class Freshness:
    """``age`` in seconds; ``stale`` whether decisions are raised to ``action``, with ``reason``; ``due`` whether a
    background refresh is worth starting."""

    __slots__ = ("action", "age", "due", "reason", "stale")

    def __init__(self, age: float, stale: bool, due: bool, action: str) -> None:
        self.age = age
        self.stale = stale
        self.due = due
        self.action = action
        self.reason = f"policy bundle is {age_text(age)} old — run gstack sync" if stale else ""


def judge(
    now: float,
    last_success: "float | None",
    failing_since: "float | None",
    *,
    connected: bool,
    stale_after: float = STALE_AFTER,
    action: str = "warn",
) -> Freshness:
    """The freshness at ``now`` (all times in seconds since the epoch).

    On a connected machine a bundle is stale only once refreshing has been failing for ``stale_after`` seconds too;
    without credentials its age alone decides. A clock that went backwards is no age. ``action`` is what a stale
    decision is raised to: ``allow`` (nothing), ``warn`` or ``block``.
    """
    age = max(0.0, now - last_success) if last_success is not None else 0.0
    failing = now - failing_since if failing_since is not None else -1.0
    stale = age > stale_after and (not connected or failing >= stale_after)
    due = last_success is None or age > min(REFRESH_AFTER, stale_after / 2) or now < last_success - CLOCK_SLACK
    return Freshness(age, stale, connected and due, action)


def age_text(age: float) -> str:
    """An age in whole hours, or minutes below one hour: ``30 hours``, ``1 hour``, ``5 minutes``."""
    number, word = (int(age // 3600), "hour") if age >= 3600 else (int(age // 60), "minute")
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def read_freshness(root: str, header: "Mapping[str, Any]", now: float) -> Freshness:
    """The freshness of the bundle that ``header`` (of the compiled index) describes, from the state folder.

    A bundle that was installed without a recorded sync counts from when its file was written.
    """
    state = sync_state(root)
    last = _time(state.get("last_success"))
    if last is None:
        try:
            last = sys_os.stat(join(root, "gate", "bundle.json")).st_mtime
        except OSError:
            last = None
    return judge(
        now,
        last,
        _time(state.get("failing_since")),
        connected=connected(root),
        stale_after=header["stale_after"],
        action=header["stale_action"],
    )


def sync_state(root: str) -> "dict[str, Any]":
    """``gate/sync.json`` as plain data; empty when it is missing or broken."""
    try:
        value = load_json(read_file(join(root, "gate", "sync.json"), 1 << 16))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def connected(root: str) -> bool:
    """Whether this machine has credentials, so that something can refresh its bundle."""
    return is_file(join(root, "gate", "credentials.json"))


def _time(value: object) -> "float | None":
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    return float(value) if usable else None  # type: ignore[arg-type]

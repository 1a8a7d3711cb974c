"""``gstack gate allow``: what the person at this machine let through for a while, where a policy may be overridden.

Light enough for the hook, which imports it only when an overridable policy blocks. An override turns such a block into
a warning that says so; it can't touch a block that isn't ``overridable: true`` in the bundle. Kept in
``gate/overrides.json``: a list of ``{"name", "until", "reason", "user", "made_at"}``, times in seconds since the epoch.
"""

from time import localtime, strftime

from gstack.lowlevel import dump_json, join, load_json, read_file
from gstack.state import Lock, write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gstack.api import Decision

#: The longest that one override may last, in seconds.
LONGEST = 7 * 86400.0


def overrides_path(root: str) -> str:
    """Where the overrides lie."""
    return join(root, "gate", "overrides.json")


def read_overrides(root: str, now: float) -> "list[dict[str, Any]]":
    """The overrides that hold at ``now``; none when the file is missing or broken."""
    try:
        found = load_json(read_file(overrides_path(root), 1 << 20))
    except (OSError, ValueError):
        return []
    return [one for one in found if _holds(one, now)] if isinstance(found, list) else []


def _holds(one: object, now: float) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("name"), str):
        return False
    until = one.get("until")
    # an end further away than anything that can be asked for was not written by us, or by another clock
    return isinstance(until, (int, float)) and now < until <= now + LONGEST


def add_override(root: str, name: str, until: float, reason: str, user: str, now: float) -> None:
    """Let ``name`` (a full name) through until then. An older override of it goes. Raises OSError."""
    with Lock(join(root, "gate", "overrides.lock")) as lock:
        if not lock.held:
            raise OSError("busy: another process holds " + lock.path)
        kept = [one for one in read_overrides(root, now) if one["name"].lower() != name.lower()]
        kept.append({"name": name, "until": until, "reason": reason, "user": user, "made_at": now})
        write_atomic(overrides_path(root), dump_json(kept).encode("ascii") + b"\n")


def override_text(root: str, decision: "Decision", now: float) -> "str | None":
    """What is said of a block that the person overrode; None when they didn't."""
    for one in read_overrides(root, now):
        if one["name"].lower() == decision.skill_name.lower():
            until = strftime("%Y-%m-%d %H:%M", localtime(one["until"]))
            who = f"policy {decision.policy_name}" if decision.policy_name else "policy"
            return f"Blocked by {who}, allowed on this machine until {until}: {one.get('reason')}"
    return None

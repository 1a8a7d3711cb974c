"""A locked gate: what it takes to switch it off on a machine whose organisation locks it. Cold.

A guard rail, not a sandbox: the person can always ``--force`` it, and the organisation is told.
"""

import time
from collections.abc import Mapping
from typing import Any

from gstack.config import read_config, switch
from gstack.errors import CheckFailed, StateError
from gstack.gate.audit import append, maybe_send, takes_events
from gstack.lowlevel import join, load_json, read_file


def locked_by(root: str) -> str | None:
    """The organisation whose bundle locks the gate here, None when none does.

    The bundle isn't verified for this: a tampered one can only make leaving harder, never easier.
    """
    try:
        envelope = load_json(read_file(join(root, "gate", "bundle.json"), 64 << 20))
        payload: Any = load_json(envelope["payload"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if not isinstance(payload, dict) or payload.get("gate_lock") is not True:
        return None
    return str(payload.get("org") or "the organisation")


def may_leave(root: str, value: str, env: Mapping[str, str], *, force: bool) -> bool:
    """Whether a locked gate would be left by going to ``value``, which is to be reported then.

    Raises CheckFailed when the gate is locked and ``force`` is missing.
    """
    if value == "on" or switch("gate", env, read_config(root)).value != "on":
        return False
    org = locked_by(root)
    if org is None:
        return False
    if not force:
        told = ": switching it off is reported to the organisation" if takes_events(root) else ""
        raise CheckFailed(f"{org} locks the gate on this machine{told}", hint="add --force to do it all the same")
    return True


def report_left(root: str, value: str, how: str) -> None:
    """Spool the event that a locked gate was left. Raises StateError when that can't be done."""
    event = {"event": "gate_off", "decision": "gate_off", "reason": f"switched to {value} by {how} --force"}
    try:
        append(root, event, now=time.time())
    except OSError as error:
        raise StateError(f"the event can't be stored, so the gate stays on: {error}") from error


def leave_gate(root: str, value: str, env: Mapping[str, str], *, force: bool, how: str = "config") -> None:
    """Ask whether the gate may go to ``value``; with ``force`` it may, and an event ``gate_off`` is spooled.

    Raises CheckFailed when the gate is locked and ``force`` is missing.
    """
    if may_leave(root, value, env, force=force):
        report_left(root, value, how)
        maybe_send(root, time.time())  # with the gate off no hook would do it

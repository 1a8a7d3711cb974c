"""What ``gstack status`` says: where this machine is connected, how fresh its policy is, what waits. Cold."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gstack.errors import BundleMissing, GstackError
from gstack.gate.bundle import Bundle, verify_installed
from gstack.gate.credentials import read_credentials
from gstack.gate.freshness import Freshness, read_freshness, sync_state
from gstack.gate.index import unsafe
from gstack.gate.rules import Rulebook, ending_exceptions
from gstack.gate.spool import Queue, queue
from gstack.gate.trust import Trust, read_trust

_T = TypeVar("_T")


@dataclass(frozen=True)
class Status:
    """The connection as it is now.

    ``problems`` has one line for each thing that needs somebody; ``broken`` is why the bundle here can't be used.
    """

    base_url: str | None = None
    org: str | None = None
    bundle: Bundle | None = None
    freshness: Freshness | None = None
    trust: Trust | None = None
    refresh: dict[str, Any] = field(default_factory=dict)
    queue: Queue = field(default_factory=Queue)
    exceptions: tuple[tuple[str, float], ...] = ()
    problems: tuple[str, ...] = ()
    broken: GstackError | None = None

    @property
    def connected(self) -> bool:
        """Whether this machine has credentials."""
        return self.base_url is not None

    def as_data(self) -> dict[str, Any]:
        """The stable form for ``--json``; times in seconds since the epoch, ages in seconds."""
        bundle, fresh, trust = self.bundle, self.freshness, self.trust
        return {
            "connected": self.connected,
            "base_url": self.base_url,
            "org": self.org,
            "bundle": None
            if bundle is None
            else {
                "version": bundle.version,
                "issued_at": bundle.issued_at,
                "sha256": bundle.sha256,
                "policies": len(bundle.payload.get("policies") or ()),
                "entries": len(bundle.payload.get("manifest_index") or ()),
                "age_s": round(fresh.age) if fresh else None,
                "stale": fresh.stale if fresh else False,
                "gate_lock": bundle.payload.get("gate_lock") is True,
            },
            "key": None
            if trust is None
            else {"id": trust.key.id, "how": trust.how, "pinned_at": trust.pinned_at, "org": trust.org},
            "refresh": {
                name: self.refresh.get(name) for name in ("last_success", "last_attempt", "failing_since", "last_error")
            },
            "audit": {
                "queued": self.queue.length,
                "bytes": self.queue.bytes,
                "dropped": self.queue.dropped,
                "refused": self.queue.refused,
                "last_sent": self.queue.last_sent,
                "last_error": self.queue.last_error,
            },
            "exceptions_ending": [{"text": text, "until": until} for text, until in self.exceptions],
            "problems": list(self.problems),
        }


def read_status(root: str, now: float) -> Status:
    """Look at everything; what can't be read becomes a line in ``problems``. Never raises for a broken file."""
    problems: list[str] = []

    def attempt(function: Callable[[str], _T], otherwise: _T) -> _T:
        try:
            return function(root)
        except GstackError as error:
            if error.message not in problems:
                problems.append(error.message)
        return otherwise

    danger = unsafe(root)
    if danger:
        problems.append(danger)
    credentials = attempt(read_credentials, None)
    trust = attempt(read_trust, None)
    bundle, broken = _bundle(root)
    if broken is not None and broken.message not in problems:
        problems.append(broken.message)
    fresh, exceptions = None, []
    if bundle is not None:
        book = Rulebook(bundle.payload)
        problems += book.problems
        header = {"stale_after": book.stale_after, "stale_action": book.stale_action}
        fresh = read_freshness(root, header, now)
        exceptions = ending_exceptions(bundle.payload, now)
    return Status(
        base_url=credentials.base_url if credentials else None,
        org=credentials.org if credentials else (trust.org if trust else None),
        bundle=bundle,
        freshness=fresh,
        trust=trust,
        refresh=sync_state(root),
        queue=attempt(queue, Queue()),
        exceptions=tuple(exceptions),
        problems=tuple(problems),
        broken=broken,
    )


def _bundle(root: str) -> tuple[Bundle | None, GstackError | None]:
    """The verified bundle, or why the one here can't be used; neither when there is none."""
    try:
        return verify_installed(root), None
    except BundleMissing:
        return None, None
    except GstackError as error:
        return None, error

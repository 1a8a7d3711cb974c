"""``--since``: how far back to look."""

import re
from datetime import datetime, timezone

from gstack.errors import UsageError

_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def since(text: str, now: float) -> float:
    """When ``--since`` begins, in seconds since the epoch: a span before ``now`` (``90m``, ``12h``, ``30d``, ``4w``) or
    a day (``2026-11-01``, UTC). Raises UsageError."""
    said = text.strip().lower()
    found = re.fullmatch(r"(\d{1,5})([mhdw])", said)
    if found is not None and int(found[1]):
        return now - int(found[1]) * _UNITS[found[2]]
    try:
        return datetime.strptime(said, "%Y-%m-%d").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        raise UsageError(f"--since {text!r} is no time such as 12h, 30d, 4w or 2026-11-01") from None

"""What a host's adapter says about a whole session beside its events. Cold."""

from typing import Any, NamedTuple


class SessionFacts(NamedTuple):
    """What holds for a whole session: the folder that it was started in, whether a person sat at it, its id.

    None: the transcript doesn't say.
    """

    cwd: str | None = None
    interactive: bool | None = None
    session_id: str | None = None


def facts_of(host: Any, path: str) -> SessionFacts:
    """What the host's adapter knows of the session of a transcript; nothing where it isn't one that
    :class:`gstack.protocols.KnowsSessions` describes."""
    about = getattr(host, "about", None)
    if about is None:
        return SessionFacts()
    said = about(path)
    return SessionFacts(said.get("cwd"), said.get("interactive"), said.get("session_id"))

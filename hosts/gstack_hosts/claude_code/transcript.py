"""Reading Claude Code's transcripts: whole, and from the last load of a skill on.

Hot: the stop hook calls :func:`read_run`, so builtins only.
"""

import gc

from gstack.lowlevel import CHUNK, join
from gstack.transcript import TAIL, Source
from gstack_hosts.claude_code.search import Search, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeVar

    from gstack.api import Event

    T = TypeVar("T")


def read_transcript(path: str, *, max_bytes: int) -> "list[Event]":
    """The whole transcript, main thread and subagents, in file order.

    Raises UnknownShape when not one user or assistant record of a known shape is in it (an empty file has none),
    ContractState when it can't be read or has more than ``max_bytes``.
    """
    return _reading(path, max_bytes, CHUNK, whole)


def read_run(
    path: str, *, skills: "Collection[str]", max_bytes: int, block: int = CHUNK, tail: int = TAIL
) -> "list[Event]":
    """The events from the main thread's last load of one of ``skills`` (that load first) to the end.

    They are the end of what :func:`read_transcript` gives, and the errors are the same; empty when there is no such
    load. A skill may be named with or without a slash or its plugin's prefix. ``block`` and ``tail`` say how much is
    read at once, and how far back from the end the search goes before it begins at the start, in bytes.

    A record that was copied from before the load is told by its time, which is older; only a whole stretch of history
    that was copied, its load included, and that begins farther back than was read, is taken for the original.
    """
    return _reading(path, max_bytes, block, lambda source: Search(source, skills).run(tail))


def last_load(
    path: str, *, skills: "Collection[str]", max_bytes: int, block: int = CHUNK, tail: int = TAIL
) -> "Event | None":
    """The load that :func:`read_run` begins with, or None; the same errors.

    It costs a search and no more, however far back the load stands: for the many stops at which the load alone tells
    that there is nothing to judge.
    """
    return _reading(path, max_bytes, block, lambda source: Search(source, skills).load(tail))


def transcripts(env: "Mapping[str, str]") -> "list[str]":
    """The sessions' transcripts on this machine, newest first; subagents' files are not among them."""
    import os

    from gstack_hosts.claude_code.paths import config_dir

    found = []
    root = join(config_dir(env), "projects")
    for folder in _entries(root):
        for name in _entries(join(root, folder)):
            # until 2025 a subagent's file lay beside its session's
            if name.endswith(".jsonl") and not name.startswith("agent-"):
                path = join(root, folder, name)
                try:
                    found.append((os.stat(path).st_mtime_ns, path))
                except OSError:
                    continue
    return [path for _, path in sorted(found, reverse=True)]


def _entries(folder: str) -> "list[str]":
    import os

    try:
        return os.listdir(folder)
    except OSError:
        return []


def _reading(path: str, max_bytes: int, block: int, read: "Callable[[Source], T]") -> "T":
    """What ``read`` makes of a transcript; the garbage collector would walk its many objects, which hold no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        with Source(path, max_bytes, block=block) as source:
            return read(source)
    finally:
        if was_on:
            gc.enable()

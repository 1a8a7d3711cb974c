"""Which transcripts are replayed."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gstack.errors import StateError
from gstack.replay.engine import Job

#: What transcripts are called; a folder that a person names is searched for them all the way down.
ENDING = ".jsonl"


def host_jobs(host: Any, env: Mapping[str, str], *, subagents: bool = True) -> list[Job]:
    """The host's own transcripts on this machine, newest first, each followed by those of its ``subagents``."""
    paths = host.transcripts(env)
    return list(_jobs(_with_subagents(host, paths) if subagents else paths))


def path_jobs(host: Any, path: str) -> list[Job]:
    """The transcript ``path`` with its subagents', or every one below the folder ``path``, by name.

    Raises StateError when there is no such file or folder, or the folder can't be listed.
    """
    if os.path.isdir(path):
        return list(_jobs(_below(path)))
    if not os.path.exists(path):
        raise StateError(f"{path}: there is no such file or folder")
    return list(_jobs(_with_subagents(host, [path])))


def _with_subagents(host: Any, paths: Iterable[str]) -> Iterator[str]:
    others = getattr(host, "subagent_transcripts", None)
    for path in paths:
        yield path
        if others is not None:
            yield from others(path)


def _below(folder: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        if error.filename == folder:
            raise StateError(f"{folder}: it can't be listed ({error.strerror})")

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders.sort()
        yield from [os.path.join(place, name) for name in sorted(names) if name.endswith(ENDING)]


def _jobs(paths: Iterable[str]) -> Iterator[Job]:
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue  # it went, or it is a link that leads nowhere
        yield Job(path, found.st_size, found.st_mtime_ns)


def in_project(cwd: str | None, project: str) -> bool:
    """Whether a session that was started in ``cwd`` belongs to ``project``: a folder (or one above it), or its name."""
    if not cwd:
        return False
    folder = os.path.normpath(cwd)
    if os.sep not in project and project not in (".", ".."):
        return os.path.basename(folder) == project
    wanted = os.path.abspath(project)
    return folder == wanted or folder.startswith(wanted.rstrip(os.sep) + os.sep)

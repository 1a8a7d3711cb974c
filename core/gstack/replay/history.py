"""The prompts of past sessions and what the model loaded after each: what ``gstack route``'s commands look at.

What people typed stays in memory; nothing of it is stored.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from gstack.api import Skill
from gstack.inventory import load_skills
from gstack.replay.engine import Job, Work, stream
from gstack.replay.files import host_jobs, path_jobs
from gstack.replay.rows import FileResult, key_of
from gstack.replay.scene import Scene, Setup, make_setup
from gstack.replay.session import read_session
from gstack.replay.turns import answered
from gstack.trust import trusted_overlay

#: Called with how many bytes are done and of how many.
Progress = Callable[[int, int], None]


class Asked(NamedTuple):
    """What a person asked for: the ``text``, when (seconds since the epoch), and the skills that the model ``loaded``
    then. A typed ``/skill words`` is its words, with ``typed`` the skill."""

    key: int
    ts: float | None
    text: str
    loaded: tuple[str, ...]
    typed: str = ""


def asked(scene: Scene, job: Job) -> Iterator[Asked]:
    """Everything that a person asked for in one transcript; nothing where it doesn't count."""
    read = read_session(scene, job)
    if isinstance(read, FileResult):
        return
    facts, events = read
    place = scene.place(facts.cwd)
    main = [event for event in events if event.agent is None]
    since = scene.setup.since
    for at, event in enumerate(main):
        if event.type != "prompt" or event.origin != "user" or (since is not None and (event.ts or since) < since):
            continue
        key = key_of("prompt", event.uid or f"{job.path}:{event.ordinal}", event.ts, event.text[:200])
        loaded = [place.names.resolve(one.name or "") or (one.name or "") for one in answered(main, at)]
        following = main[at + 1] if at + 1 < len(main) else None
        if following is not None and following.type == "load" and following.how == "typed":
            words = event.text.partition(" ")[2]
            yield Asked(key, event.ts, words, (), place.names.resolve(following.name or "") or "")
        else:
            yield Asked(key, event.ts, event.text, tuple(dict.fromkeys(loaded)))


class HistoryWork:
    """The work on each file; ``of`` is what is made of one transcript's prompts."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.scene: Scene | None = None

    def open(self) -> None:
        """Get ready, once a process."""
        self.scene = Scene(self.setup)

    def do(self, job: Job) -> Any:
        """The result of one transcript."""
        assert self.scene is not None
        return self.of(self.scene, job)

    def of(self, scene: Scene, job: Job) -> Any:
        """What is made of one transcript: small plain data."""
        return list(asked(scene, job))

    def failed(self, job: Job, why: str) -> Any:  # noqa: ARG002 - the engine's signature
        """A transcript that can't be looked at says nothing."""
        return []


class History:
    """A look at past sessions: the ``scene`` (what is installed), its ``skills``, and the transcripts to go through."""

    def __init__(self, setup: Setup, path: str | None, processes: int | None) -> None:
        self.setup = setup
        self.scene = Scene(setup)
        self.path = path
        self.processes = processes
        self.cwd = os.getcwd()
        self.place = self.scene.place(self.cwd)
        self.files = 0

    def skills(self) -> list[Skill]:
        """The installed skills with their triggers, as a session in this folder sees them."""
        overlay, _ = trusted_overlay(self.setup.root, self.cwd)
        scene = self.scene
        return load_skills(
            scene.host, scene.skill_env, self.cwd, state_root=self.setup.root, trusted_overlay=overlay
        ).skills

    def jobs(self) -> list[Job]:
        """The transcripts."""
        if self.path is not None:
            return path_jobs(self.scene.host, self.path)
        return host_jobs(self.scene.host, self.setup.env, subagents=False)

    def through(self, work: Work, *, progress: Progress | None = None, jobs: list[Job] | None = None) -> Iterator[Any]:
        """The result of ``work`` for each transcript, in order."""
        jobs = self.jobs() if jobs is None else jobs
        self.files = len(jobs)
        total, done = sum(job.size for job in jobs), 0
        with closing(stream(jobs, work, processes=self.processes)) as results:
            for job, result in results:
                yield result
                done += job.size
                if progress is not None:
                    progress(done, total)


@contextmanager
def open_history(
    env: Mapping[str, str],
    *,
    host: str = "claude-code",
    since: float | None = None,
    path: str | None = None,
    processes: int | None = None,
) -> Iterator[History]:
    """Look at the sessions since ``since`` (seconds since the epoch), the host's own or those in ``path``.

    Raises GstackError when the host's adapter doesn't work, StateError for a path that isn't there.
    """
    with tempfile.TemporaryDirectory(prefix="gstack-history-") as scratch:
        yield History(make_setup(env, host, scratch, since=since), path, processes)

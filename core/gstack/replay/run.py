"""``gstack replay``: from the arguments to the report."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from gstack.replay.engine import Job, stream
from gstack.replay.files import host_jobs, path_jobs
from gstack.replay.journal import Journal, with_journal
from gstack.replay.report import Report
from gstack.replay.scene import Scene, Setup, make_setup
from gstack.replay.session import Replay

#: Called with how many bytes are done and of how many, whenever a file is.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What to replay: ``path`` (a file or folder; None: the host's own), ``since`` (seconds since the epoch) as it was
    ``said``, ``project``, and ``bundle``, the file of the other policy. ``processes`` None means all cores."""

    host: str = "claude-code"
    path: str | None = None
    since: float | None = None
    said: str = ""
    project: str | None = None
    bundle: str | None = None
    show_prompts: bool = False
    processes: int | None = None


def replay(
    env: Mapping[str, str],
    options: Options,
    *,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> Report:
    """Replay and add up; ``tell`` is given lines for the person meanwhile.

    Raises StateError for a path or bundle that can't be read, BundleError for one that is no policy, GstackError when
    the host's adapter doesn't work.
    """
    other = _other(options.bundle)
    with tempfile.TemporaryDirectory(prefix="gstack-replay-", dir=_memory()) as scratch:
        setup = make_setup(
            env,
            options.host,
            scratch,
            other=other,
            since=options.since,
            project=options.project,
            show_prompts=options.show_prompts,
        )
        scene = Scene(setup)
        jobs = path_jobs(scene.host, options.path) if options.path else host_jobs(scene.host, env)
        report = Report(_facts(options, setup, scene))
        if options.show_prompts:
            # what people typed is written down nowhere, so such a replay can't be gone on with
            _through(jobs, setup, report, options, None, progress, 0)
            return report
        with Journal(setup.root, _arguments(options, setup, scene), since=options.since) as journal:
            if journal.resumed and tell is not None:
                tell(f"going on with a replay that was broken off: {journal.resumed} of {len(jobs)} files are done")
            left, done = with_journal(jobs, journal)
            setup = _since(setup, journal.since)
            for result in done:
                report.add(result)
            _through(left, setup, report, options, journal, progress, sum(job.size for job in jobs))
            if journal.problem and tell is not None:
                tell(f"no checkpoint was kept: {journal.problem}")
            journal.finish()
    return report


def _memory() -> str | None:
    """A folder that lies in memory, where there is one: the stop hook's records are forced to disk, which is waste
    here and would cost most of the time. None: the usual one for temporary files."""
    folder = "/dev/shm"  # noqa: S108 - a folder of its own is made in it
    return folder if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK) else None


def _through(
    jobs: Sequence[Job],
    setup: Setup,
    report: Report,
    options: Options,
    journal: Journal | None,
    progress: Progress | None,
    total: int,
) -> None:
    total = total or sum(job.size for job in jobs)
    ahead = total - sum(job.size for job in jobs)
    with closing(stream(jobs, Replay(setup), processes=options.processes)) as results:
        for job, result in results:
            report.add(result)
            if journal is not None:
                journal.add(job, result)
            ahead += job.size
            if progress is not None:
                progress(ahead, total)


def _since(setup: Setup, since: float | None) -> Setup:
    from dataclasses import replace

    return setup if since == setup.since else replace(setup, since=since)


def _other(path: str | None) -> Mapping[str, Any] | None:
    if path is None:
        return None
    from gstack.gate.policyfile import read_policy

    return read_policy(path)


def _facts(options: Options, setup: Setup, scene: Scene) -> dict[str, Any]:
    place = scene.place(None)
    notes = [f"{skill}: its contract is invalid: {why}" for skill, why in sorted(place.invalid.items())]
    if setup.bundle_problem:
        notes.append(f"the policy bundle in force can't be used: {setup.bundle_problem}")
    return {
        "version": 1,
        "host": options.host,
        "path": options.path,
        "since": options.since,
        "project": options.project,
        "skills": len(place.index.names),
        "contracts": len(place.index.contracts) - len(place.invalid),
        "bundle": _bundle(setup.bundle),
        "other": _bundle(setup.other),
        "notes": notes,
    }


def _bundle(payload: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if payload is None else {"org": payload.get("org"), "version": payload.get("version")}


def _arguments(options: Options, setup: Setup, scene: Scene) -> dict[str, Any]:
    """Everything that the result depends on, beside the transcripts: a change of it begins anew."""
    place = scene.place(None)
    skills = [place.index.names, place.index.labels, place.index.contracts, place.index.routing]
    return {
        "host": options.host,
        "path": os.path.abspath(options.path) if options.path else "",
        "since": options.said,
        "project": options.project,
        "config": scene.config.values,
        "env": {name: setup.env.get(name, "") for name in (*scene.host.skill_variables, "USER", "LOGNAME")},
        "plugins": [sorted(map(str, row.items())) for row in setup.rows],
        "skills": _digest([*skills, place.index.scorers]),
        "bundles": [_digest(setup.bundle), _digest(setup.other)],
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()

"""What the replay's tests share: a home with gstack's sample skills, and transcripts in Claude Code's folders."""

import json
import shutil
from pathlib import Path
from typing import Any

from contract_helpers import REPORT, Transcript

from gstack.replay.report import Report
from gstack.replay.run import Options, replay

SAMPLES = Path(__file__).resolve().parents[1] / "core" / "gstack" / "samples" / "skills"
PROJECT = "-home-u-work"
#: When each session begins: 2026-11-30 12:00:00 UTC; its records are a second apart.
START = 1_796_040_000.0


def box(folder: Path, *names: str) -> dict[str, str]:
    """The environment of a home that has the sample skills (all, or these)."""
    skills = folder / "home" / ".claude" / "skills"
    skills.mkdir(parents=True, exist_ok=True)
    for source in sorted(SAMPLES.iterdir()):
        if not names or source.name in names:
            shutil.copytree(source, skills / source.name)
    return {"HOME": str(folder / "home"), "GSTACK_STATE_ROOT": str(folder / "state")}


def run(env: dict[str, str], path: Path | str | None = None, **more: Any) -> Report:
    """Replay in this process."""
    options = Options(path=str(path) if path is not None else None, **{"processes": 1, **more})
    return replay(env, options)


class Session(Transcript):
    """A transcript whose ids no other one has."""

    def _next(self, prefix: str) -> str:
        return f"{super()._next(prefix)}-{self.session}"


def transcript(folder: Path, name: str = "s1", project: str = PROJECT) -> Session:
    """A session to be written into the host's folder of the home in ``folder``."""
    place = folder / "home" / ".claude" / "projects" / project
    place.mkdir(parents=True, exist_ok=True)
    return Session(place / f"{name}.jsonl", session=name, start=START)


def typical(folder: Path, name: str = "s1") -> str:
    """A session: a prompt that routes and is followed, a stop that would be held, then the report."""
    made = transcript(folder, name).prompt("fix this bug").load("investigate").edit().say("Fixed.")
    return made.prompt("show me").shell("pytest").say(REPORT).write()


def policy(**changes: Any) -> dict[str, Any]:
    """A payload that bans the skill acme/investigate and warns of the subagent Explore."""
    return {
        "org": "acme",
        "version": 3,
        "issued_at": "2026-11-01T00:00:00Z",
        "namespaces": ["acme"],
        "policies": [
            {
                "policy_id": "p1",
                "name": "Investigate retired",
                "matcher_type": "name",
                "match_value": "acme/investigate",
                "action": "halt",
                "reason": "Use acme/debug instead.",
                "replacement": "acme/debug",
            },
            {
                "policy_id": "p2",
                "name": "No explorers",
                "matcher_type": "name",
                "match_value": "explore",
                "action": "warn",
                "reason": "They cost too much.",
            },
        ],
        "manifest_index": {
            "acme/investigate": {"version": "1.0.0", "status": "approved"},
            "acme/ship": {"version": "1.0.0", "status": "deprecated"},
        },
        **changes,
    }


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path

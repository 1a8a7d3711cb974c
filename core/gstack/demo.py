"""``gstack demo``: what a person gets, shown with the real hook process in a throw-away home. Cold."""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from importlib import resources
from typing import Any

from gstack.sandbox import Reply, Sandbox
from gstack.setup import compile_hot
from gstack.snapshot import RACY_NS
from gstack.testing.transcript import Transcript

#: What is typed in the demo, and why it is interesting.
PROMPTS = (
    ("the login test fails since yesterday, find the root cause", "fits a trigger of /investigate"),
    ("write a haiku about autumn", "fits nothing"),
    ("don't debug this yet, just explain what it does", "fits, but says not to"),
    ("/investigate the login test", "the person chose already"),
)


class Step:
    """One thing that the demo shows: what was done, what the hook said, why, and how long it took (seconds)."""

    def __init__(self, feature: str, action: str, outcome: str, why: str, seconds: float) -> None:
        self.feature = feature
        self.action = action
        self.outcome = outcome
        self.why = why
        self.seconds = seconds

    def as_dict(self) -> dict[str, Any]:
        """The facts with stable keys, for ``--json``."""
        return {
            "feature": self.feature,
            "action": self.action,
            "outcome": self.outcome,
            "why": self.why,
            "milliseconds": round(self.seconds * 1000, 1),
        }


def run_demo() -> Iterator[Step]:
    """Play every step in a sandbox that goes when the demo ends."""
    compile_hot()
    with Sandbox() as box:
        install_samples(box)
        box.configure(skill_routing="on", skill_contracts="on")
        # what is younger isn't trusted by a snapshot, and nobody's skills are that young
        time.sleep(RACY_NS / 1e9 + 0.1)
        for number in range(3):  # the first hooks make snapshots and store their code: nobody's sessions start so
            for _ in (*_routing(box, f"warm-{number}"), *_contracts(box, f"warm-{number}")):
                pass
        yield from _routing(box, "demo")
        yield from _contracts(box, "demo")


def install_samples(box: Sandbox) -> None:
    """Put the skills that ship with gstack into the sandbox's home."""
    with resources.as_file(resources.files("gstack") / "samples" / "skills") as folder:
        shutil.copytree(folder, os.path.join(box.home, ".claude", "skills"), dirs_exist_ok=True)


def _prompt(session: str, text: str) -> dict[str, Any]:
    return {"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": text}


def _routing(box: Sandbox, session: str) -> Iterator[Step]:
    for number, (text, why) in enumerate(PROMPTS):
        reply = box.run("UserPromptSubmit", _prompt(f"{session}-{number}", text))
        yield Step("routing", text, _context(reply) or f"nothing ({_reason(box)})", why, reply.seconds)


def _context(reply: Reply) -> str:
    answer = reply.answer or {}
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext") or "")


def _reason(box: Sandbox) -> str:
    lines = box.log("skill-route")
    return lines[-1].rpartition("reason=")[2] if lines else "no log"


def _contracts(box: Sandbox, name: str) -> Iterator[Step]:
    """A skill is loaded, a file edited, and the agent wants to stop; then it does what was missing."""
    session = Transcript(os.path.join(box.folder, f"{name}.jsonl"), session=name, cwd=box.work)
    session.load("investigate").edit("src/auth.py").say("Fixed: the null check was missing.")
    reply = box.run("Stop", session.stop())
    yield Step(
        "contracts",
        "stop after an edit, without report or test",
        _reason_of(reply),
        "held once, with what is missing",
        reply.seconds,
    )
    report = "DEBUG REPORT\nSymptom: login fails\nRoot cause: a missing null check\nFix: src/auth.py\n"
    report += "Evidence: 12 tests pass"
    session.feedback(_reason_of(reply)).shell("pytest -q", "12 passed").say(report)
    reply = box.run("Stop", session.stop(active=True))
    outcome = _reason_of(reply) or f"the stop goes through ({_outcome(box, name)})"
    yield Step("contracts", "stop after the test and the report", outcome, "everything is there", reply.seconds)


def _reason_of(reply: Reply) -> str:
    return str((reply.answer or {}).get("reason") or "")


def _outcome(box: Sandbox, session: str) -> str:
    try:
        with open(os.path.join(box.root, "skill-contracts", f"{session}.json"), encoding="utf-8") as file:
            return str(json.load(file)["runs"][-1]["outcome"])
    except (OSError, ValueError, KeyError, IndexError):
        return "no record"


def python_line() -> str:
    """Which Python the demo ran on."""
    return f"Python {sys.version.split()[0]}"

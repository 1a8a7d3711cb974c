"""A home with Claude Code's settings and gstack set up in it, for the tests of ``gstack doctor``."""

import os
import time
from pathlib import Path
from typing import Any

from gate_support import install

from gstack.api import Finding
from gstack.doctor import Checkup, diagnose
from gstack.doctor_live import Report, try_live
from gstack.setup import Flags, run_setup
from gstack_hosts.claude_code import ClaudeCode

INVESTIGATE = """\
---
name: investigate
description: d
triggers: [fix this bug]
contract:
  version: 1
  items:
    - {id: debug-report, kind: report_labels, heading: DEBUG REPORT, labels: [Symptom]}
---
# Investigate
"""
DEPLOY = "---\nname: deploy\ndescription: d\n---\n# Deploy\n"
#: Banned: the skill `deploy` and the subagent `auditor`.
BANS: dict[str, Any] = {
    "org": "acme",
    "version": 1,
    "namespaces": ["acme"],
    "policies": [],
    "manifest_index": {
        "acme/deploy": {"version": "1.0.0", "status": "banned"},
        "acme/auditor": {"version": "1.0.0", "status": "banned", "kind": "subagent"},
    },
}


class Doctored:
    """A home with a state folder and a ``claude`` that only knows its version."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.config = self.home / ".claude"
        self.work = base / "work"
        self.root = base / "state"
        self.host = ClaudeCode()
        for folder in (self.config, self.work, base / "bin"):
            folder.mkdir(parents=True)
        claude = base / "bin" / "claude"
        claude.write_text("#!/bin/sh\necho '2.1.332 (Claude Code)'\n")
        claude.chmod(0o755)
        self.env = {
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "PATH": os.pathsep.join([str(claude.parent), os.defpath]),
            "GSTACK_STATE_ROOT": str(self.root),
        }

    @property
    def settings(self) -> Path:
        return self.config / "settings.json"

    @property
    def launcher(self) -> Path:
        return self.root / "bin" / "gstack-hook"

    def skill(self, name: str, text: str) -> Path:
        path = self.config / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def setup(self, **switches: str) -> None:
        """``gstack setup`` with some switches."""
        run_setup(str(self.root), self.env, Flags({"skill_routing": None, "skill_contracts": None, **switches}))

    def checkup(self, **env: str) -> Checkup:
        return Checkup(str(self.root), {**self.env, **env}, self.host)

    def findings(self, **env: str) -> list[Finding]:
        return diagnose(self.checkup(**env))

    def replace_launcher(self, text: str) -> None:
        """Let the registered command be another program."""
        self.launcher.write_text(text)
        self.launcher.chmod(0o755)

    def written(self, path: Path, *, hours_ago: float) -> None:
        """Let a file be as old as that."""
        when = time.time() - hours_ago * 3600
        os.utime(path, (when, when))


def of(findings: list[Finding], check: str) -> list[Finding]:
    """The findings of one check."""
    return [one for one in findings if one.check == check]


def worst(findings: list[Finding]) -> list[str]:
    """What is wrong or worth a look, as one line each."""
    return [f"{one.status} {one.check}: {one.detail}" for one in findings if one.status in ("fail", "warn")]


def enforced(base: Path) -> Doctored:
    """Everything switched on and set up, with a skill that routes and has a contract, and one that is banned."""
    box = Doctored(base)
    box.skill("investigate", INVESTIGATE)
    box.skill("deploy", DEPLOY)
    box.setup(skill_routing="on", skill_contracts="on", gate="on")
    install(box.root, BANS)
    return box


def live(box: Doctored, **env: str) -> Report:
    """``gstack doctor --live`` in the current folder."""
    return try_live(box.checkup(**env))

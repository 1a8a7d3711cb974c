"""What the live tests share: a throw-away home, the gstack under test, the harness, and what a session showed.

The gstack under test is the one of the Python that runs the tests (in ``tox -e live``: the built wheel).
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from live.harness.sanitise import sanitise

Json = dict[str, Any]

HARNESS = Path(__file__).parent / "live" / "harness" / "run_scenario.py"

INVESTIGATE = """\
---
name: investigate
description: Find the root cause of a bug before changing code.
triggers:
  - test fails
  - fix this bug
contract:
  version: 1
  items:
    - id: debug-report
      kind: report_labels
      heading: DEBUG REPORT
      labels: [Symptom, Root cause, Fix, Evidence]
    - id: repro-after-fix
      kind: check_after_last_edit
---
# Investigate

1. Reproduce the failure, then look for its cause.
"""
AUDIT = """\
---
name: audit
description: Let an agent look for security problems.
contract:
  version: 1
  items:
    - id: reviewer
      kind: agent_dispatch
      match: security
    - id: audit-report
      kind: report_labels
      heading: AUDIT REPORT
      labels: [Finding]
---
# Audit

1. Send an agent.
"""
DEPLOY = "---\nname: deploy\ndescription: Put the work on the servers.\n---\n# Deploy\n\nDEPLOY-BODY\n"
SHIP = "---\ndescription: Ship it\n---\nSHIP-BODY ship $ARGUMENTS\n"
AUDITOR = "---\nname: auditor\ndescription: Looks at everything.\n---\nYou are an auditor.\n"

PROJECT = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "from calc import add\nassert add(2, 2) == 4\nprint('ok')\n",
}

REPORT = (
    "DEBUG REPORT\nSymptom: add(2, 2) gives 0\nRoot cause: a minus where a plus belongs\nFix: calc.py adds now\n"
    "Evidence: test_calc.py prints ok\n\nSTATUS: DONE"
)

POLICY = """\
org: acme
namespaces: [acme]
policies:
  - name: Deploys are frozen
    matcher_type: name
    match_value: acme/deploy
    action: block
    reason: The servers are being moved.
    replacement: acme/handover
catalogue:
  acme/deploy: {version: 1.0.0}
  acme/auditor: {version: 1.0.0, kind: subagent, status: banned}
  acme/ship: {version: 1.0.0, kind: command, status: banned}
"""

#: What the person's own settings look like before gstack comes: odd spacing on purpose.
SETTINGS = """\
{
   "permissions": { "allow": ["Bash", "Edit", "Write", "Read", "Skill", "Agent"] },

   "env": {"MINE": "1"}
}
"""


def say(text: str) -> Json:
    """A step of the model: only text, which ends the turn."""
    return {"text": text}


def call(tool: str, **given: Any) -> Json:
    """A step of the model: one tool call."""
    return {"tools": [{"name": tool, "input": given}]}


def fix_the_bug() -> list[Json]:
    """The steps that repair ``calc.py``."""
    return [
        call("Read", file_path="@{WORK}/calc.py"),
        call("Edit", file_path="@{WORK}/calc.py", old_string="a - b", new_string="a + b"),
    ]


def run_the_test() -> Json:
    """The step that shows that it is repaired."""
    return call("Bash", command="python3 test_calc.py", description="Run the test")


class Played:
    """What a scenario showed: the harness's summary with a few questions."""

    def __init__(self, summary: Json) -> None:
        self.summary = summary
        self.runs: list[Json] = summary["runs"]
        self.requests = [one for one in summary["requests"] if one["route"] == "main"]

    @property
    def steps(self) -> int:
        """How many requests the main conversation made."""
        return len(self.requests)

    def seen(self, place: int = -1) -> str:
        """All that the model could read in one request of the main conversation."""
        return "\n".join(text for _, text in self.requests[place]["messages"])

    def results(self, place: int = -1) -> list[tuple[bool, str]]:
        """The results (is it an error, text) of the tools called before that request."""
        return [(failed, text) for failed, text in self.requests[place]["tool_results"]]

    def hooks(self, event: str, run: int = 0) -> list[Json]:
        """What Claude Code says of the hooks of one event, in order."""
        return [hook for hook in self.runs[run]["hooks"] if hook["hook_event"] == event]

    def answers(self, event: str, run: int = 0) -> list[Json]:
        """The JSON that hooks of one event printed; each ended with exit code 0."""
        hooks = self.hooks(event, run)
        assert all(hook["exit_code"] == 0 and hook["outcome"] == "success" for hook in hooks), hooks
        return [json.loads(hook["stdout"]) for hook in hooks if hook["stdout"].strip()]

    def transcript(self, run: int = 0) -> Path:
        """The main transcript of a run."""
        name = f"{self.runs[run]['session_id']}.jsonl"
        main = [Path(path) for path in self.summary["transcripts"] if "subagents" not in Path(path).parts]
        return main[0] if self.runs[run]["session_id"] is None else next(one for one in main if one.name == name)


class Live:
    """A home, a working folder and a state folder below ``root``."""

    def __init__(self, root: Path, claude: Path) -> None:
        self.root = root
        self.claude = claude
        self.home = root / "home"
        self.config = self.home / ".claude"
        self.work = root / "work"
        self.state = self.home / "gstack-state"
        for folder in (self.config, self.work):
            folder.mkdir(parents=True)
        self.settings = self.config / "settings.json"
        self.settings.write_text(SETTINGS)
        self.skill("investigate", INVESTIGATE)
        self.skill("audit", AUDIT)
        self.skill("deploy", DEPLOY)
        self.write(self.config / "commands" / "ship.md", SHIP)
        self.write(self.config / "agents" / "auditor.md", AUDITOR)
        for name, text in PROJECT.items():
            self.write(self.work / name, text)

    def write(self, path: Path, text: str) -> Path:
        """A file, with its folder."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def skill(self, name: str, text: str) -> Path:
        """A personal skill."""
        return self.write(self.config / "skills" / name / "SKILL.md", text)

    @property
    def path(self) -> str:
        """PATH of everything: the real CLI as ``claude``, then the caller's."""
        return os.pathsep.join([str(self.claude.parent), os.environ.get("PATH", os.defpath)])

    def gstack(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        """Run the installed ``gstack`` command in this home; its standard output."""
        command = Path(sys.executable).with_name("gstack")
        env = {
            "PATH": self.path,
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "GSTACK_STATE_ROOT": str(self.state),
            "LANG": "C.UTF-8",
        }
        done = subprocess.run(
            [command, *arguments], env=env, cwd=self.work, input=stdin, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def setup(self, *flags: str) -> str:
        """``gstack setup`` with some switches."""
        return self.gstack("setup", *flags)

    def publish(self) -> Path:
        """Publish the policy as an organisation would; the folder of its site."""
        policy = self.write(self.root / "policy.yaml", POLICY)
        keys, site = self.root / "keys", self.root / "site"
        self.gstack("bundle", "keygen", "--out", str(keys))
        self.gstack("bundle", "build", str(policy), "--key", str(keys / "private.pem"), "--out", str(site))
        return site

    def join(self, site: Path, *flags: str) -> None:
        """Connect this machine to an organisation, fetch its policy, and switch the gate on."""
        self.gstack("login", "--url", site.as_uri(), "--org", "acme")
        self.gstack("sync")
        self.setup("--gate", *flags)

    def play(
        self,
        prompt: str | None = None,
        steps: list[Json] | None = None,
        *,
        runs: list[Json] | None = None,
        routes: list[Json] | None = None,
        record: bool = False,
        timeout: float = 18,
    ) -> Played:
        """One session (or several) in the real Claude Code, with the model's replies given by ``steps``."""
        scenario = {
            "model": {"main": steps or [], "routes": routes or []},
            "runs": runs or [{"prompt": prompt}],
            "record": record,
        }
        path = self.write(self.root / "scenario.json", json.dumps(scenario))
        command = [sys.executable, HARNESS, path, "--claude", self.claude, "--root", self.root, "--path", self.path]
        done = subprocess.run(
            [*map(str, command), "--timeout", str(timeout)],
            capture_output=True,
            text=True,
            timeout=timeout * len(scenario["runs"]) + 20,
        )
        assert done.returncode == 0, done.stderr
        played = Played(json.loads(done.stdout))
        assert played.summary["other_requests"] == []
        for run in played.runs:
            assert not run["timed_out"], run
            assert run["exit_code"] == 0, run
        return played

    def log(self, name: str) -> list[str]:
        """The lines of a hook's log, without time and session."""
        path = self.state / "hooks" / f"{name}.log"
        return [line.split(" ", 2)[2] for line in path.read_text().splitlines()] if path.exists() else []

    def outcomes(self) -> list[str]:
        """The outcomes of all recorded runs."""
        records = sorted((self.state / "skill-contracts").glob("*.json"))
        return [run["outcome"] for path in records for run in json.loads(path.read_text())["runs"]]

    def keep(self, played: Played, name: str) -> None:
        """Write the session's transcript as test data, where ``GSTACK_LIVE_RECORD`` names a folder for it."""
        folder = os.environ.get("GSTACK_LIVE_RECORD")
        if folder:
            self.write(Path(folder, f"{name}.jsonl"), sanitise(played.transcript(), self.root))

    def check(self, transcript: Path, skill: str, *, code: int = 0) -> Json:
        """``gstack contract check`` on a transcript."""
        out = self.gstack("contract", "check", "--transcript", str(transcript), "--skill", skill, "--json", code=code)
        return json.loads(out)

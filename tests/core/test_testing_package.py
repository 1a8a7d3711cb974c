"""What plug-in authors import: each fixture, fake installations, and sessions as the host's own adapter reads them."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from gstack.sandbox import Reply, Sandbox
from gstack.state import state_root
from gstack.testing import FakeSite, Transcript
from gstack_hosts.claude_code import ClaudeCode

pytest_plugins = ["gstack.testing.fixtures"]
SCORER = """
from gstack.api import Candidate, hookimpl
class Scorer:
    name = "acme.first"
    def prepare(self, skills): return sorted(skill.name for skill in skills)
    def score(self, prompt, index): return [Candidate(index[0], 1.0)] if index else []
@hookimpl
def gstack_trigger_scorers(): return [Scorer()]
"""
SKILL = "---\nname: release\ndescription: d\n---\n"


def events(session: Transcript) -> list[tuple[str, str]]:
    found = ClaudeCode().read_transcript(session.write(), max_bytes=1 << 20)
    return [(event.type, event.text or event.name or (event.call.kind if event.call else "")) for event in found]


def test_a_fake_installation_is_seen_by_hook_and_command_line(
    gstack_sandbox: Sandbox, fake_install: FakeSite, run_hook: Callable[..., Reply]
) -> None:
    fake_install("acme-first", {"gstack.trigger_scorers": {"acme.first": "acme_first"}}, {"acme_first.py": SCORER})
    gstack_sandbox.configure(skill_routing="on", routed_skills="all", route_scorer="acme.first")
    gstack_sandbox.add_skill("release", SKILL)
    reply = run_hook(
        "UserPromptSubmit", {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "anything"}
    )
    assert "/release" in str(reply.answer)
    assert (reply.code, reply.err) == (0, b"")
    assert 0 < reply.seconds < 20
    rows = json.loads(gstack_sandbox.cli("plugins", "list", "--json").out)
    assert {row["id"]: (row["distribution"], row["state"]) for row in rows}["acme.first"] == ("acme-first", "ok")


def test_the_next_test_knows_nothing_of_it(gstack_sandbox: Sandbox) -> None:
    assert b"acme.first" not in gstack_sandbox.cli("plugins", "list").out


def test_a_project_is_installed_by_its_own_file(
    gstack_sandbox: Sandbox, fake_install: FakeSite, tmp_path: Path
) -> None:
    (tmp_path / "p" / "src").mkdir(parents=True)
    (tmp_path / "p" / "src" / "acme_first.py").write_text(SCORER)
    project = '[project]\nname = "acme-first"\nversion = "3.1"\n[project.entry-points."gstack.trigger_scorers"]\n'
    (tmp_path / "p" / "pyproject.toml").write_text(project + '"acme.first" = "acme_first"\n')
    assert fake_install.project(tmp_path / "p") == "acme-first"
    assert b"acme-first 3.1" in gstack_sandbox.cli("plugins", "list").out


def test_the_home_is_the_sandboxs(gstack_home: Path, gstack_sandbox: Sandbox) -> None:
    assert os.path.expanduser("~") == str(gstack_home) == gstack_sandbox.home
    assert state_root(dict(os.environ)) == gstack_sandbox.root
    assert not [name for name in os.environ if name.startswith("CLAUDE")]


def test_a_session_reads_as_it_was_written(transcript: Transcript) -> None:
    transcript.prompt("the login fails").load("investigate").read("a.py", "x = 1").edit("a.py").shell(
        "pytest", "1 failed", ok=False
    )
    transcript.agent("Review", "Look.").background_agent("b7", "Test").agent_done("b7").say("Fixed.").feedback("unmet")
    assert events(transcript) == [
        ("prompt", "the login fails"),
        ("call", "skill"), ("load", "investigate"), ("result", ""),
        ("call", "read"), ("result", ""),
        ("call", "edit"), ("result", ""),
        ("call", "shell"), ("result", "Exit code 1\n1 failed"),
        ("call", "agent"), ("result", ""), ("agent_started", "agent"), ("agent_finished", "agent"),
        ("call", "agent"), ("result", ""), ("agent_started", "agent"),
        ("agent_finished", ""), ("prompt", events(transcript)[18][1]),
        ("text", "Fixed."), ("continuation", "unmet"),
    ]  # fmt: skip
    assert transcript.last_text == "Fixed."


def test_what_a_person_does(tmp_path: Path) -> None:
    made = Transcript(tmp_path / "t.jsonl").typed("qa", "the page").say("Looking.").interrupt()
    assert events(made) == [("prompt", "/qa the page"), ("load", "qa"), ("text", "Looking."), ("interrupted", "")]


def test_the_stop_that_comes_now(transcript: Transcript, gstack_sandbox: Sandbox) -> None:
    payload = transcript.load("qa").say("Done.").stop(active=True, permission_mode="plan")
    assert Path(payload["transcript_path"]).read_text().count("\n") == len(transcript.records)
    wanted = {"stop_hook_active": True, "last_assistant_message": "Done.", "permission_mode": "plan"}
    assert {name: payload[name] for name in wanted} == wanted
    assert payload["cwd"] == gstack_sandbox.work
    assert os.fspath(transcript) == payload["transcript_path"]


def test_times_are_those_of_writing_or_as_asked(tmp_path: Path) -> None:
    def times(made: Transcript) -> list[float]:
        made.write()
        return [event.ts or 0.0 for event in ClaudeCode().read_transcript(str(made.path), max_bytes=1 << 20)]

    before = time.time()
    now = times(Transcript(tmp_path / "a.jsonl").prompt("a").say("b").prompt("c"))
    assert now == sorted(set(now))
    assert before - 0.01 <= now[0] <= now[-1] <= time.time() + 1
    fixed = times(Transcript(tmp_path / "b.jsonl", start=1_800_000_000.0).prompt("a").say("b").prompt("c"))
    assert fixed == [1_800_000_000.0, 1_800_000_001.0, 1_800_000_002.0]

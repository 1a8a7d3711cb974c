"""Take one built-in's entry point out of an installation: everything else works, and what is missing is named."""

import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import gstack
import gstack_hosts
import gstack_plugins
from gstack.launcher import launcher_path
from gstack.lowlevel import POSIX
from gstack.sandbox import Reply, Sandbox
from gstack.testing import Transcript

KINDS = ("report_labels", "check_after_last_edit", "selected_specialists_dispatched", "agent_dispatch")
BUILT_INS = (*KINDS, "lexical", "policy_bundle", "claude-code")
FIELDS = {
    "report_labels": "      heading: REPORT\n      labels: [Fix]\n",
    "agent_dispatch": "      match: review\n",
}
SKILL = """---
name: {name}
description: d
triggers:
  - use {name} for this
contract:
  version: 1
  items:
    - id: item
      kind: {kind}
{fields}---
# {name}
"""

pytestmark = pytest.mark.skipif(not POSIX, reason="the fake installation is made of links")


def installation(folder: Path, without: str) -> Path:
    """A copy of this installation of gstack, its packages as links, with one entry point less."""
    site = folder / "site"
    site.mkdir()
    for package in (gstack, gstack_plugins, gstack_hosts):
        (site / package.__name__).symlink_to(Path(str(package.__file__)).parent)
    found: Any = metadata.distribution("gstack-skills")
    target = site / found._path.name
    shutil.copytree(found._path, target)
    lines = (target / "entry_points.txt").read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(without + " =")]
    assert len(kept) == len(lines) - 1
    (target / "entry_points.txt").write_text("".join(kept))
    return site


@pytest.fixture(params=BUILT_INS)
def without(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def box(tmp_path: Path, without: str) -> Sandbox:
    made = Sandbox(str(tmp_path / "box"))
    made.configure(skill_routing="on", skill_contracts="on", gate="on", routed_skills="all")
    for kind in KINDS:
        name = kind.replace("_", "-")
        made.add_skill(name, SKILL.format(name=name, kind=kind, fields=FIELDS.get(kind, "")))
    made.add_import_folder(str(installation(tmp_path, without)))
    assert str(tmp_path / "site") in Path(launcher_path(made.root)).read_text()
    return made


def hint(box: Sandbox) -> str:
    payload = {"session_id": "h", "hook_event_name": "UserPromptSubmit", "prompt": "use agent-dispatch for this"}
    reply = box.run("UserPromptSubmit", payload)
    assert reply.code == 0
    return str((reply.answer or {}).get("hookSpecificOutput", {}).get("additionalContext", ""))


def stop(box: Sandbox, kind: str, tmp_path: Path) -> dict[str, Any]:
    session = Transcript(tmp_path / f"{kind}.jsonl", session=kind, cwd=box.work).load(kind.replace("_", "-"))
    reply = box.run("Stop", session.edit("src/a.py").say("Done.").stop())
    assert reply.code == 0
    return reply.answer or {}


def use(box: Sandbox) -> Reply:
    payload = {"hook_event_name": "PreToolUse", "session_id": "g", "tool_name": "Skill", "tool_input": {"skill": "qa"}}
    return box.run("PreToolUse", payload)


def text(reply: Reply) -> str:
    return (reply.out + reply.err).decode()


def test_everything_else_works_and_what_is_missing_is_named(without: str, box: Sandbox, tmp_path: Path) -> None:
    listed = text(box.cli("plugins", "list"))
    for name in BUILT_INS:
        assert (name in listed) == (name != without)
    assert listed.count(" ok") == len(BUILT_INS) - 1
    if without == "claude-code":
        without_the_host(box)
        return
    assert ("/agent-dispatch" in hint(box)) == (without != "lexical")
    for kind in KINDS:
        answer = stop(box, kind, tmp_path)
        if kind == without:
            assert set(answer) == {"systemMessage"}
            assert f'unknown kind "{kind}"' in answer["systemMessage"]
        else:
            assert answer["reason"].startswith(f"SKILL_CONTRACT_UNMET {kind.replace('_', '-')}")
    reply = use(box)
    assert reply.code == 0
    assert set(reply.answer or {}) <= {"systemMessage"}
    assert "decision" in box.log("skill-gate")[-1]
    done = box.cli("setup", "--skill-routing", "--skill-contracts")
    assert done.code == 0, text(done)


def without_the_host(box: Sandbox) -> None:
    assert hint(box) == ""
    setup = box.cli("setup", "--skill-routing")
    assert setup.code == 2
    assert "no host adapter is called 'claude-code'" in text(setup)
    gate = box.cli("gate", "--skill", "qa")
    assert gate.code == 0
    assert "no host adapter works here" in text(gate)
    assert box.cli("config", "list").code == 0


def test_the_missing_kind_is_named_with_its_distribution(without: str, box: Sandbox) -> None:
    if without not in KINDS:
        pytest.skip("about kinds")
    path = str(Path(box.home, ".claude", "skills", without.replace("_", "-")))
    before = box.cli("contract", "lint", path)
    assert before.code == 5
    assert f'unknown kind "{without}"' in text(before)
    # an installation that had it before knows which distribution that was
    whole = Sandbox(str(Path(box.folder).parent / "whole"))
    assert whole.cli("setup", "--skill-contracts").code == 0
    broken = box.cli("contract", "lint", path, env={"GSTACK_STATE_ROOT": whole.root})
    assert broken.code == 5
    assert f'unknown kind "{without}": it comes with gstack-skills' in text(broken)


def test_what_the_commands_say(without: str, box: Sandbox) -> None:
    routed = box.cli("route", "--explain", "use agent-dispatch for this")
    gate = box.cli("gate", "--skill", "qa", "--explain")
    doctor = text(box.cli("doctor"))
    if without == "lexical":
        assert "scorer" in text(routed)
        assert "no scorer called lexical works here" in " ".join(doctor.split())
    elif without == "policy_bundle":
        assert gate.code == 0
        assert "no gate resolver works here, so nothing was checked" in text(gate)
        assert "no gate resolver works here: nothing is checked" in " ".join(doctor.split())
    elif without != "claude-code":
        assert "agent-dispatch" in text(routed)
        assert gate.code == 0
        assert "works here" not in doctor
    assert "Traceback" not in text(routed) + text(gate) + doctor

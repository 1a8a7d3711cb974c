"""A plug-in of each sort that hangs, crashes, prints or exits, when it is imported and when it is asked.

The hook answers in time, ``plugins list`` says what happened, and nothing else changes."""

import json
from pathlib import Path
from typing import Any

import pytest

from gstack.lowlevel import POSIX
from gstack.sandbox import Sandbox
from gstack.testing import FakeSite, Transcript

pytestmark = pytest.mark.skipif(not POSIX, reason="nothing interrupts a call on Windows")

FAULTS = {
    "hang": ("__import__('time').sleep(60)", "took longer"),
    "loop": ("exec('while True: pass')", "took longer"),
    "crash": ("raise ValueError('broken')", "raised ValueError: broken"),
    "print": ("print('noise')", "printed to standard output"),
    "exit": ("raise SystemExit(2)", "called sys.exit"),
    "interrupt": ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
    "hard exit": ("__import__('os')._exit(2)", "called sys.exit"),
}
#: The hook's own deadlines (2 s, 5 s for a stop) and what starting a process may take on a busy machine, in seconds.
IN_TIME, STOP_IN_TIME = 4.0, 7.5
GROUPS = {
    "kind": "gstack.contract_kinds",
    "scorer": "gstack.trigger_scorers",
    "resolver": "gstack.gate_resolvers",
    "host": "gstack.host_adapters",
}
#: A plug-in of each sort whose every method starts with FAULT.
TEXTS = {
    "kind": """
from gstack.api import MET, Verdict, hookimpl
class Broken:
    name = "acme.broken"
    fields = ()
    def check(self, item, run):
        FAULT
        return Verdict(MET)
    def fix(self, item): return "mend it"
    def summary(self, item): return "a thing"
@hookimpl
def gstack_contract_kinds(): return [Broken()]
""",
    "scorer": """
from gstack.api import hookimpl
class Broken:
    name = "acme.broken"
    def prepare(self, skills): return []
    def score(self, prompt, index):
        FAULT
        return []
@hookimpl
def gstack_trigger_scorers(): return [Broken()]
""",
    "resolver": """
from gstack.api import hookimpl
class Broken:
    name = "acme.broken"
    def decide(self, invocation, context):
        FAULT
@hookimpl
def gstack_gate_resolvers(): return [Broken()]
""",
    "host": """
from gstack.api import hookimpl
from gstack_hosts.claude_code import ClaudeCode
class Broken(ClaudeCode):
    id = "acme.broken"
    def decode(self, payload, env):
        FAULT
        return super().decode(payload, env)
@hookimpl
def gstack_host_adapters(): return [Broken()]
""",
}
#: A sound outside resolver, whose block must stand whatever the others do.
FREEZE = """
from gstack.api import Decision, hookimpl
class Freeze:
    name = "good.freeze"
    def decide(self, invocation, context):
        return Decision("block", "It is frozen.") if invocation.name == "deploy" else None
@hookimpl
def gstack_gate_resolvers(): return [Freeze()]
"""
SKILL = """---
name: {name}
description: d
triggers:
  - {trigger}
contract:
  version: 1
  items:
    - id: item
      kind: {kind}
{fields}---
# {name}
"""
REPORT = "      heading: REPORT\n      labels: [Fix]\n"


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    made = Sandbox(str(tmp_path / "box"))
    made.configure(skill_routing="on", skill_contracts="on", gate="on", routed_skills="all")
    made.add_skill("fine", SKILL.format(name="fine", trigger="fix this bug", kind="report_labels", fields=REPORT))
    made.add_skill("odd", SKILL.format(name="odd", trigger="unheard of", kind="acme.broken", fields=""))
    return made


@pytest.fixture
def site(box: Sandbox, tmp_path: Path) -> FakeSite:
    made = FakeSite(str(tmp_path / "site"), box)
    made("good-freeze", {GROUPS["resolver"]: {"good.freeze": "good_freeze"}}, {"good_freeze.py": FREEZE})
    return made


def break_it(site: FakeSite, sort: str, fault: str, where: str, *, dist: str = "acme-broken") -> None:
    """Install a plug-in that does it when it is imported, or when it is asked."""
    text = TEXTS[sort].replace("FAULT", FAULTS[fault][0] if where == "call" else "pass")
    if where == "import":
        text = FAULTS[fault][0] + text
    module = dist.replace("-", "_")
    site(dist, {GROUPS[sort]: {"acme.broken": module}}, {module + ".py": text})


def listed(box: Sandbox, name: str = "acme.broken") -> dict[str, Any]:
    reply = box.cli("plugins", "list", "--json")
    assert reply.code == 0, reply.err
    rows: dict[str, dict[str, Any]] = {row["id"]: row for row in json.loads(reply.out)}
    others = {key: row["state"] for key, row in rows.items() if key != name}
    assert set(others.values()) == {"ok"}, others
    return rows[name]


def said(row: dict[str, Any]) -> str:
    return f"{row['why']} {row['trouble']}"


def hint(box: Sandbox, session: str, **more: Any) -> str:
    payload = {"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": "please fix this bug"}
    reply = box.run("UserPromptSubmit", payload, **more)
    assert reply.code == 0
    assert reply.seconds < IN_TIME
    return str((reply.answer or {}).get("hookSpecificOutput", {}).get("additionalContext", ""))


def refusal(box: Sandbox, skill: str) -> str:
    use = {"session_id": "g", "hook_event_name": "PreToolUse", "tool_name": "Skill", "tool_input": {"skill": skill}}
    reply = box.run("PreToolUse", use)
    assert reply.code == 0
    assert reply.seconds < IN_TIME
    return str((reply.answer or {}).get("hookSpecificOutput", {}).get("permissionDecisionReason", ""))


def stop(box: Sandbox, skill: str, tmp_path: Path, session: str, **more: Any) -> dict[str, Any]:
    made = Transcript(tmp_path / f"{session}.jsonl", session=session, cwd=box.work).load(skill).say("Done.")
    reply = box.run("Stop", made.stop(), **more)
    assert reply.code == 0
    assert reply.seconds < STOP_IN_TIME
    return reply.answer or {}


def everything_else_works(box: Sandbox, tmp_path: Path, session: str) -> None:
    assert "/fine" in hint(box, session)
    assert "frozen" in refusal(box, "deploy")
    assert refusal(box, "fine") == ""
    assert stop(box, "fine", tmp_path, session)["reason"].startswith("SKILL_CONTRACT_UNMET fine")


@pytest.mark.parametrize("fault", sorted(FAULTS))
@pytest.mark.parametrize("sort", sorted(GROUPS))
def test_one_that_cant_be_imported(sort: str, fault: str, box: Sandbox, site: FakeSite, tmp_path: Path) -> None:
    break_it(site, sort, fault, "import")
    everything_else_works(box, tmp_path, "a")
    row = listed(box)
    assert row["state"] in ("failed", "set aside")
    assert FAULTS[fault][1] in said(row)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_kind_that_is_asked(fault: str, box: Sandbox, site: FakeSite, tmp_path: Path) -> None:
    """The stop is allowed, with one message for the person; a contract without the kind is judged as ever."""
    break_it(site, "kind", fault, "call")
    answer = stop(box, "odd", tmp_path, "k")
    assert set(answer) == {"systemMessage"}
    assert "acme.broken" in answer["systemMessage"]
    assert FAULTS[fault][1] in said(listed(box))
    everything_else_works(box, tmp_path, "a")


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_scorer_that_is_asked(fault: str, box: Sandbox, site: FakeSite, tmp_path: Path) -> None:
    """The configured one: no hint, and the log says why. As a shadow it has no effect at all."""
    break_it(site, "scorer", fault, "call")
    switches = {"skill_routing": "on", "skill_contracts": "on", "gate": "on", "routed_skills": "all"}
    box.configure(**switches, route_scorer="acme.broken")
    assert hint(box, "s") == ""
    assert "no-route reason=scorer-error" in box.log("skill-route")[-1]
    assert FAULTS[fault][1] in said(listed(box))
    box.configure(**switches, route_shadow_scorers="acme.broken")
    everything_else_works(box, tmp_path, "a")
    assert any("shadow scorer=acme.broken reason=scorer-error" in line for line in box.log("skill-route"))


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_resolver_that_is_asked(fault: str, box: Sandbox, site: FakeSite, tmp_path: Path) -> None:
    """What the others say stands, blocks and silence alike."""
    break_it(site, "resolver", fault, "call")
    everything_else_works(box, tmp_path, "a")
    assert FAULTS[fault][1] in said(listed(box))
    assert any(line.startswith("g error resolver=acme.broken") for line in box.log("skill-gate"))


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_host_that_is_asked(fault: str, box: Sandbox, site: FakeSite, tmp_path: Path) -> None:
    """Its own events are answered with silence; another host's are answered as ever."""
    break_it(site, "host", fault, "call")
    assert hint(box, "h", host="acme.broken") == ""
    assert FAULTS[fault][1] in said(listed(box))
    everything_else_works(box, tmp_path, "a")


@pytest.mark.parametrize("method", ["claims", "render", "read_run", "skill_places", "load_phrase"])
def test_each_method_of_a_host(method: str, box: Sandbox, site: FakeSite, tmp_path: Path) -> None:
    text = f"""
from gstack.api import hookimpl
from gstack_hosts.claude_code import ClaudeCode
class Broken(ClaudeCode):
    id = "acme.broken"
    def {method}(self, *args, **named):
        __import__("time").sleep(60)
@hookimpl
def gstack_host_adapters(): return [Broken()]
"""
    site("acme-broken", {GROUPS["host"]: {"acme.broken": "acme_broken"}}, {"acme_broken.py": text})
    if method == "read_run":
        assert set(stop(box, "fine", tmp_path, "m", host="acme.broken")) <= {"systemMessage"}
    else:
        assert hint(box, "m", host="acme.broken") == ""
    assert "took longer" in said(listed(box))
    everything_else_works(box, tmp_path, "a")


def test_three_overruns_set_it_aside_until_it_is_enabled(box: Sandbox, site: FakeSite, tmp_path: Path) -> None:
    break_it(site, "resolver", "hang", "call")
    for _ in range(3):
        assert "frozen" in refusal(box, "deploy")
    row = listed(box)
    assert (row["state"], "gstack" in row["why"] or "overran" in row["why"]) == ("set aside", True)
    assert "frozen" in refusal(box, "deploy")
    quick = box.run("PreToolUse", {"hook_event_name": "PreToolUse", "tool_name": "Skill", "tool_input": {"skill": "x"}})
    assert quick.seconds < 0.3 or "took longer" in said(listed(box))
    assert box.cli("plugins", "enable", "acme.broken").code == 0
    assert listed(box)["state"] == "ok"


def test_switching_it_off(box: Sandbox, site: FakeSite, tmp_path: Path) -> None:
    """By command, or for one session by the environment."""
    break_it(site, "resolver", "crash", "call")
    refusal(box, "deploy")
    assert box.cli("plugins", "disable", "acme.broken").code == 0
    assert listed(box)["state"] == "disabled"
    before = len(box.log("skill-gate"))
    assert "frozen" in refusal(box, "deploy")
    assert not any("resolver=acme.broken" in line for line in box.log("skill-gate")[before:])
    plan = Path(box.root, "snapshot", "plan")
    assert plan.exists()
    assert box.cli("plugins", "enable", "acme.broken").code == 0
    assert not plan.exists()  # the next hook looks anew
    off = box.cli("plugins", "list", "--json", env={"GSTACK_DISABLED_PLUGINS": "acme.broken"})
    assert {row["id"]: row["state"] for row in json.loads(off.out)}["acme.broken"] == "disabled"


def test_twelve_that_hang_at_once(box: Sandbox, site: FakeSite, tmp_path: Path) -> None:
    """More than fit into the hook's time: after a few hooks all are set aside, and the hook answers again."""
    for number in range(12):
        text = FAULTS["hang"][0] + TEXTS["kind"].replace("acme.broken", f"acme.slow{number}")
        module = f"acme_slow{number}"
        site(f"acme-slow{number}", {GROUPS["kind"]: {f"acme.slow{number}": module}}, {module + ".py": text})
    answers = [hint(box, f"t{number}") for number in range(12)]
    assert "/fine" in answers[-1]
    rows = json.loads(box.cli("plugins", "list", "--json", timeout=90).out)
    assert {row["state"] for row in rows if row["id"].startswith("acme.slow")} == {"set aside"}

"""The gate in the hook: names, exact answers, log, session record, what comes after (gate G2, G3, G5, G6)."""

import json
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest
from gate_support import BASE, PRIVATE, SAMPLE, envelope, install, payload

from gstack.api import COMMAND_TYPED, TOOL_PROPOSED, Answer, Decision, HookEvent, Invocation
from gstack.cli import main
from gstack.config import Switch, read_config
from gstack.gate import hook as gate_hook
from gstack.gate.bundle import install_bundle
from gstack.gate.hook import answer, installed, log_line, would_block
from gstack.hook import HookContext
from gstack.launcher import import_paths
from gstack.plan import Plan
from gstack.sandbox import Sandbox
from gstack.sessions import read_session
from gstack.snapshot import load_plan

NOT_CONFIGURED = (
    "gstack: not configured on this machine — run `gstack login`. "
    "This call was not checked against your organisation's policy."
)
PAGE = f"{BASE}/acme/requests/exception"
DENIED = (
    "gstack blocked this skill — policy: Teamleader retired. Use acme/hubspot-crm-entry instead. "
    f"Need it? Ask for an exception: {PAGE}?policy=pol_teamleader&skill=acme%2Fteamleader-crm-entry"
)
BANNED = (
    "gstack blocked this skill — Skill version is banned by the organisation. "
    f"Need it? Ask for an exception: {PAGE}?skill=acme%2F"
)


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    found = Sandbox(str(tmp_path / "box"))
    found.extra["GSTACK_GATE"] = "on"
    return found


def synced(box: Sandbox, data: "dict[str, Any]" = SAMPLE) -> None:
    install(Path(box.root), data)


def warm(box: Sandbox) -> None:
    """Let the first run make the snapshots, so that the slow road of the bundle has the whole time for itself."""
    box.run("PreToolUse", tool("Skill", skill="foreign"))


def tool(name: str, **given: object) -> dict[str, Any]:
    return {
        "hook_event_name": "PreToolUse",
        "session_id": "s1",
        "transcript_path": "/t",
        "cwd": "/",
        "tool_name": name,
        "tool_input": given,
    }


def typed(name: str, **more: object) -> dict[str, Any]:
    return {
        "hook_event_name": "UserPromptExpansion",
        "session_id": "s1",
        "transcript_path": "/t",
        "cwd": "/",
        "expansion_type": "slash_command",
        "command_name": name,
        "prompt": "/" + name,
    } | more


def deny(reason: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


# -------------------------------------------------------------------------- the real process, exact answers


def test_the_worked_example_piped_in_by_hand(box: Sandbox) -> None:
    synced(box)
    reply = box.run("PreToolUse", b'{"tool_name":"Skill","tool_input":{"skill":"acme/teamleader-crm-entry"}}')
    assert (reply.answer, reply.code) == (deny(DENIED), 0)


@pytest.mark.parametrize(
    ("event", "payload_", "wanted"),
    [
        ("PreToolUse", tool("Skill", skill="teamleader-crm-entry"), deny(DENIED)),
        ("PreToolUse", tool("Skill", skill="/Teamleader-CRM-entry"), deny(DENIED)),
        ("PreToolUse", tool("Skill", skill="acme:teamleader-crm-entry", args="x"), deny(DENIED)),
        ("PreToolUse", tool("Agent", subagent_type="auditor", prompt="x"), deny(BANNED + "auditor")),
        ("PreToolUse", tool("Task", subagent_type="auditor", prompt="x"), deny(BANNED + "auditor")),
        ("PreToolUse", tool("Skill", skill="hubspot-crm-entry"), None),
        ("PreToolUse", tool("Skill", skill="foreign"), None),
        ("PreToolUse", tool("Agent", subagent_type="Plan", prompt="x"), None),
        ("PreToolUse", tool("Agent", prompt="x"), None),
        ("PreToolUse", tool("Skill"), None),
        ("PreToolUse", tool("Skill", skill=7), None),
        ("PreToolUse", tool("Skill", skill=" / "), None),
        ("PreToolUse", tool("Bash", command="gstack"), None),
        ("PreToolUse", tool("Read", file_path="/etc/passwd"), None),
        ("UserPromptExpansion", typed("teamleader-crm-entry"), {"decision": "block", "reason": DENIED}),
        ("UserPromptExpansion", typed("teamleader-crm-entry", expansion_type="mcp_prompt"), None),
        (
            "UserPromptExpansion",
            typed("ship"),
            {"systemMessage": "gstack: warning for acme/ship — Skill version is banned by the organisation."},
        ),
        (
            "PreToolUse",
            tool("Skill", skill="onboard-customer"),
            {"systemMessage": "gstack: warning for acme/onboard-customer — Skill is deprecated."},
        ),
    ],
)
def test_an_event_gets_this_answer(
    box: Sandbox, event: str, payload_: "dict[str, Any]", wanted: "dict[str, Any] | None"
) -> None:
    synced(box)
    reply = box.run(event, payload_)
    assert (reply.answer, reply.code) == (wanted, 0)


def test_unconfigured_fails_open_and_says_so(box: Sandbox) -> None:
    reply = box.run("PreToolUse", tool("Skill", skill="acme/x"))
    assert (reply.answer, reply.code) == ({"systemMessage": NOT_CONFIGURED}, 0)
    assert box.run("UserPromptExpansion", typed("x")).answer == {"systemMessage": NOT_CONFIGURED}
    assert box.run("PreToolUse", tool("Agent", prompt="x")).answer is None, "no name, no message"


def test_connected_but_never_synced_points_at_sync(box: Sandbox) -> None:
    gate = Path(box.root, "gate")
    gate.mkdir(mode=0o700)
    (gate / "credentials.json").write_text('{"base_url": "file:///nowhere", "org": "acme", "key": ""}')
    (gate / "refresh.lock").write_text(f"{time.time():.3f}\n")
    said = box.run("PreToolUse", tool("Skill", skill="acme/x")).answer
    assert said == {"systemMessage": NOT_CONFIGURED.replace("not configured", "not synced").replace("login", "sync")}


def test_a_tampered_bundle_fails_open_and_says_so(box: Sandbox) -> None:
    synced(box)
    warm(box)
    path = Path(box.root, "gate", "bundle.json")
    path.write_bytes(path.read_bytes().replace(b"banned", b"active"))
    said = box.run("PreToolUse", tool("Skill", skill="acme/wipe-disk")).answer
    assert said is not None
    assert list(said) == ["systemMessage"]
    assert said["systemMessage"].startswith("gstack: the policy bundle on this machine can't be used: ")
    assert said["systemMessage"].endswith("This call was not checked against your organisation's policy.")


def test_the_frontmatter_name_and_a_read_are_loads_too(box: Sandbox) -> None:
    synced(box)
    path = box.add_skill("teamleader-crm-entry", "---\nname: innocent\ndescription: x\n---\nbody\n")
    assert box.run("PreToolUse", tool("Skill", skill="innocent")).answer == deny(DENIED)
    for spelling in (path, path.replace("/skills/", "/skills/./x/../"), path.replace("/skills/", "//skills/")):
        assert box.run("PreToolUse", tool("Read", file_path=spelling)).answer == deny(DENIED), spelling
    link = Path(box.work, "SKILL.md")
    link.symlink_to(path)
    assert box.run("PreToolUse", tool("Read", file_path=str(link))).answer == deny(DENIED)
    other = Path(box.work, "src", "SKILL.md")
    other.parent.mkdir()
    other.write_text("---\nname: innocent\n---\n")
    assert box.run("PreToolUse", tool("Read", file_path=str(other))).answer is None, "a source, not an installed skill"


def test_a_renamed_directory_does_not_dodge_a_ban(box: Sandbox) -> None:
    synced(box)
    box.add_skill("harmless", "---\nname: wipe-disk\ndescription: x\n---\nbody\n")
    assert box.run("PreToolUse", tool("Skill", skill="harmless")).answer == deny(BANNED + "wipe-disk")


def test_observe_decides_and_logs_but_never_acts(box: Sandbox) -> None:
    synced(box)
    box.extra["GSTACK_GATE"] = "observe"
    box.add_skill("wipe-disk", "---\nname: wipe-disk\ndescription: x\n---\n")
    assert box.run("PreToolUse", tool("Skill", skill="wipe-disk")).answer is None
    assert box.log("skill-gate")[-1].endswith("mode=observe")
    assert "decision=block" in box.log("skill-gate")[-1]
    assert read_session(box.root, "s1").blocked == set()


def test_off_says_and_logs_nothing(box: Sandbox) -> None:
    synced(box)
    box.extra["GSTACK_GATE"] = "off"
    assert box.run("PreToolUse", tool("Skill", skill="wipe-disk")).answer is None
    assert box.log("skill-gate") == []


def test_what_is_logged_and_remembered(box: Sandbox) -> None:
    synced(box)
    box.add_skill("wipe-disk", "---\nname: wiper\ndescription: x\n---\n")
    box.add_skill("hubspot-crm-entry", "---\nname: hubspot-crm-entry\ndescription: x\n---\n")
    box.run("PreToolUse", tool("Skill", skill="wiper"))
    box.run("PreToolUse", tool("Skill", skill="hubspot-crm-entry"))
    blocked, allowed = box.log("skill-gate")
    start = "s1 decision=block name=acme/wipe-disk version=1.0.0 rule=status:banned "
    assert blocked == start + "invoked=wiper as=wipe-disk kind=skill host=claude-code"
    start = "s1 decision=allow name=acme/hubspot-crm-entry version=1.3.0 rule=approved "
    assert allowed == start + "invoked=hubspot-crm-entry kind=skill host=claude-code"
    session = read_session(box.root, "s1")
    assert (session.blocked, session.loaded) == ({"wipe-disk"}, {"hubspot-crm-entry"})


def test_a_subagents_load_is_not_the_sessions(box: Sandbox) -> None:
    synced(box)
    box.add_skill("hubspot-crm-entry", "---\nname: hubspot-crm-entry\ndescription: x\n---\n")
    box.run("PreToolUse", tool("Skill", skill="hubspot-crm-entry") | {"agent_id": "a1"})
    assert read_session(box.root, "s1").loaded == set()


def test_a_missing_index_is_made_again_behind_the_answer(box: Sandbox) -> None:
    synced(box)
    warm(box)
    index = Path(box.root, "gate", "bundle.index")
    index.unlink()
    assert box.run("PreToolUse", tool("Skill", skill="wipe-disk")).answer == deny(BANNED + "wipe-disk")
    assert index.is_file()


def test_a_large_bundle_is_compiled_by_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    install(root, payload())
    index = root / "gate" / "bundle.index"
    index.unlink()
    monkeypatch.setattr(gate_hook, "_LARGE", 100)
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr("gstack.gate.refresh.start", lambda where, words: started.append(words))
    for _ in range(2):
        ctx = context(root, command("wipe-disk"))
        assert answer(ctx).deny
        for step in ctx.after:
            step()
    assert started == [("bundle", "verify")]
    assert not index.exists()
    monkeypatch.setenv("GSTACK_STATE_ROOT", str(root))
    assert main(list(started[0])) == 0
    assert index.exists()


def test_a_stale_bundle_warns(box: Sandbox) -> None:
    synced(box, payload(stale_after_s=60))
    state = Path(box.root, "gate", "sync.json")
    state.write_text(json.dumps({"last_success": time.time() - 30 * 3600 - 5, "failing_since": None}))
    said = box.run("PreToolUse", tool("Skill", skill="hubspot-crm-entry")).answer
    text = "gstack: warning for acme/hubspot-crm-entry — policy bundle is 30 hours old — run gstack sync"
    assert said == {"systemMessage": text}
    assert "decision=warn" in box.log("skill-gate")[-1]
    assert "rule=stale base=allow" in box.log("skill-gate")[-1]
    assert box.run("PreToolUse", tool("Skill", skill="wipe-disk")).answer == deny(BANNED + "wipe-disk")


def test_a_world_writable_folder_is_said_once_a_session(box: Sandbox) -> None:
    synced(box)
    warm(box)
    Path(box.root, "gate").chmod(0o777)
    first = box.run("PreToolUse", tool("Skill", skill="hubspot-crm-entry")).answer
    assert first is not None
    assert "can be written by another user" in first["systemMessage"]
    assert box.run("PreToolUse", tool("Skill", skill="hubspot-crm-entry")).answer is None
    blocked = box.run("PreToolUse", tool("Skill", skill="wipe-disk")).answer
    assert blocked == deny(BANNED + "wipe-disk")


# ------------------------------------------------------------------------------------ inside the process


class Resolver:
    def __init__(self, said: object) -> None:
        self.name = "r"
        self.said = said

    def decide(self, invocation: Invocation, context: object) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


class Installed:
    """The part of a skill index that the gate asks for."""

    names: ClassVar = {"deploy": "/s/deploy/SKILL.md", "tools:plan": "/p/SKILL.md"}
    labels: ClassVar = {"Label": "deploy"}


def context(root: Path, event: HookEvent, *resolvers: object, value: str = "on") -> HookContext:
    """A hook's context with resolvers of our own (none: the installed ones) and two installed skills."""
    env = {"HOME": str(root), "USER": "alice"}
    root.mkdir(exist_ok=True, mode=0o700)
    plan = load_plan(str(root), import_paths(), env)
    host = plan.get("gstack.host_adapters", "claude-code")
    assert host is not None
    if resolvers:
        plan = Plan(str(root), [])
        plan.objects = lambda group: [(f"v.{n}", one) for n, one in enumerate(resolvers)]  # type: ignore[method-assign]
    ctx = HookContext(
        event,
        env,
        str(root),
        read_config(str(root)),
        host,
        plan,
        Switch(value, "env"),
        None,
        time.monotonic(),
        time.monotonic() + 9,
    )
    ctx._skills = Installed()  # type: ignore[assignment]
    return ctx


def event(kind: str = TOOL_PROPOSED, **more: Any) -> HookEvent:
    return HookEvent("claude-code", kind, "PreToolUse", session_id="s1", cwd="/", **more)


def command(name: str) -> HookEvent:
    return event(COMMAND_TYPED, command=name, command_kind="skill")


def test_a_failing_resolver_is_logged_and_left_out(tmp_path: Path) -> None:
    ctx = context(tmp_path, command("x"), Resolver(RuntimeError("secret text")), Resolver(Decision("block", "no")))
    said = answer(ctx)
    assert said.deny == "gstack blocked this skill — no. Need it? Ask your organisation for an exception."
    for step in ctx.after:
        step()
    log = (tmp_path / "hooks" / "skill-gate.log").read_text()
    assert "error resolver=v.0" in log


def test_nobody_has_an_opinion_and_nothing_is_said(tmp_path: Path) -> None:
    assert answer(context(tmp_path, command("x"), Resolver(None))) == Answer()


def test_a_block_beside_a_missing_bundle_holds(tmp_path: Path) -> None:
    from gstack.errors import BundleMissing

    said = answer(context(tmp_path, command("x"), Resolver(BundleMissing()), Resolver(Decision("block", "no"))))
    assert said.deny is not None
    assert said.notice == NOT_CONFIGURED


def test_skills_that_cannot_be_read_do_not_switch_the_gate_off(tmp_path: Path) -> None:
    ctx = context(tmp_path, command("x"), Resolver(Decision("block", "no")))

    def broken() -> Any:
        raise OSError("disk")

    ctx.skills = broken  # type: ignore[method-assign]
    assert answer(ctx).deny is not None


def test_the_router_asks_without_leaving_a_trace(tmp_path: Path) -> None:
    root = tmp_path / "root"
    install(root, payload(manifest_index={"acme/deploy": {"status": "banned"}, "acme/plan": {"status": "deprecated"}}))
    ctx = context(root, event())
    assert would_block(ctx, "deploy")
    assert not would_block(ctx, "tools:plan")
    assert ctx.after == []
    (root / "gate" / "bundle.json").unlink()
    assert not would_block(ctx, "deploy")


@pytest.mark.parametrize(
    ("said", "aliases", "path"),
    [
        ("deploy", ("Label",), "/s/deploy/SKILL.md"),
        ("/deploy", ("deploy", "Label"), "/s/deploy/SKILL.md"),
        ("Label", ("deploy",), "/s/deploy/SKILL.md"),
        ("label", ("deploy", "Label"), "/s/deploy/SKILL.md"),
        ("DEPLOY now", ("deploy", "Label"), "/s/deploy/SKILL.md"),
        ("plan", ("tools:plan",), "/p/SKILL.md"),
        ("tools:plan", (), "/p/SKILL.md"),
        ("unknown", (), None),
    ],
)
def test_the_other_names_of_an_installed_skill(
    tmp_path: Path, said: str, aliases: "tuple[str, ...]", path: "str | None"
) -> None:
    ctx = context(tmp_path, event())
    found = installed(ctx.skills(), said, "skill")
    assert (found.aliases, found.path) == (aliases, path)


def test_refresh_and_audit_start_after_the_answer_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    install(root, payload())
    (root / "gate" / "credentials.json").write_text(json.dumps({"base_url": BASE, "org": "acme", "key": "k"}))
    (root / "gate" / "sync.json").write_text(json.dumps({"last_success": time.time() - 7200}))
    started: list[str] = []
    monkeypatch.setattr("gstack.gate.refresh.maybe_start", lambda *a, **k: started.append(f"refresh {k}"))
    monkeypatch.setattr("gstack.gate.audit.maybe_send", lambda *a: started.append("send"))
    ctx = context(root, command("onboard-customer"))
    assert answer(ctx).notice
    assert started == []
    for step in ctx.after:
        step()
    assert started == ["send", "refresh {'stale_after_s': 86400.0}"]
    spooled = json.loads((root / "gate" / "audit-spool.jsonl").read_text())
    assert (spooled["skill_name"], spooled["decision"], spooled["harness"]) == (
        "acme/onboard-customer",
        "warned",
        "claude-code",
    )
    assert spooled["reason"] == "Skill is deprecated."


@pytest.mark.parametrize("why", ["not governed", "observe", "logged out"])
def test_no_audit_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    root = tmp_path / "root"
    install(root, payload())
    if why != "logged out":
        (root / "gate" / "credentials.json").write_text(json.dumps({"base_url": BASE, "org": "acme", "key": "k"}))
    monkeypatch.setattr("gstack.gate.refresh.maybe_start", lambda *a, **k: False)
    name = "foreign" if why == "not governed" else "onboard-customer"
    ctx = context(root, command(name), value="observe" if why == "observe" else "on")
    answer(ctx)
    for step in ctx.after:
        step()
    assert not (root / "gate" / "audit-spool.jsonl").exists()


def test_a_new_bundle_counts_at_once(tmp_path: Path) -> None:
    root = tmp_path / "root"
    install(root, payload())
    assert answer(context(root, command("hubspot-crm-entry"))) == Answer()
    data = payload(version=8, manifest_index={"acme/hubspot-crm-entry": {"status": "banned"}})
    install_bundle(str(root), envelope(data, PRIVATE))
    assert answer(context(root, command("hubspot-crm-entry"))).deny


def test_a_log_line_holds_no_spaces_within_a_value() -> None:
    from gstack.gate.decision import Outcome

    outcome = Outcome()
    outcome.decision = Decision("allow", skill_name="My Skill", rule="policy:a b")
    line = log_line(Invocation("x", "skill", aliases=("a,b", "c d")), outcome)
    assert line == "decision=allow name=My%20Skill rule=policy:a%20b invoked=x as=c%20d kind=skill"


def test_the_hook_module_is_where_the_core_looks_for_it() -> None:
    from gstack.hook import FEATURES

    assert FEATURES[TOOL_PROPOSED][1:3] == (gate_hook.__name__, gate_hook.LOG)
    assert FEATURES[COMMAND_TYPED][1:3] == (gate_hook.__name__, gate_hook.LOG)

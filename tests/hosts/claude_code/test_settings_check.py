"""What doctor says of Claude Code's side: each way in which it silently runs no hook."""

import json
import os
import time

import pytest

from gstack.jsontext import parse
from gstack_hosts.claude_code import settings, settings_check
from gstack_hosts.claude_code.schema import problems

FEATURES = ("skill_routing", "skill_contracts", "gate")
ALL = settings.registrations(FEATURES)
HOOK = {"type": "command", "command": "true"}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-ins are shell scripts")


class Machine:
    """A home with Claude Code, a launcher and registered hooks, everything in order."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.config = folder / "claude"
        self.path = self.config / "settings.json"
        self.work = folder / "work"
        self.launcher = self.script("state/bin/gstack-hook", "exit 0")
        self.claude = self.script("bin/claude", "echo '2.1.332 (Claude Code)'")
        self.env = {"CLAUDE_CONFIG_DIR": str(self.config), "PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder)}
        self.work.mkdir()
        monkeypatch.chdir(self.work)
        monkeypatch.setattr(settings_check, "managed_files", lambda: [str(folder / "managed-settings.json")])
        self.register()

    def script(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    def register(self, features=FEATURES, launcher=None, project=None):
        wanted = settings.registrations(features)
        settings.apply_settings(settings.plan_settings(wanted, launcher or self.launcher, self.env, project))

    def change(self, **members):
        self.path.write_text(json.dumps({**json.loads(self.path.read_text()), **members}))

    def write(self, name, value):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(path)

    def findings(self, features=FEATURES, project=None):
        return settings.diagnose(settings.registrations(features), self.launcher, self.env, project)

    def wrong(self, **more):
        return [found for found in self.findings(**more) if found.status in ("warn", "fail")]

    def only(self, **more):
        [found] = self.wrong(**more)
        return found


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


def test_a_machine_in_order(machine):
    findings = machine.findings()
    assert {found.status for found in findings} == {"ok"}
    checks = [found.check for found in findings]
    assert checks[:5] == ["claude", "configuration folder", "settings file", "settings content", "hooks allowed"]
    assert "hook PreToolUse (Read)" in checks
    assert findings[0].detail == f"2.1.332 ({machine.claude})"


def test_every_finding_is_a_line_and_says_what_to_do(machine):
    machine.change(disableAllHooks=True, cleanupPeriodDays="no")
    os.unlink(machine.launcher)
    for found in machine.wrong():
        assert "\n" not in found.detail + found.fix
        assert found.detail
        assert found.fix


# ------------------------------------------------------------------------------------------------ the host


def test_no_claude(machine):
    os.unlink(machine.claude)
    machine.env["PATH"] = f"{machine.folder}/bin"
    assert (machine.only().status, machine.only().check) == ("warn", "claude")
    assert "not found" in machine.only().detail


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        ("exit 3", "gave no version"),
        ("echo hello", "gave no version"),
        ("printf '\\377\\376'", "gave no version"),
    ],
)
def test_a_claude_that_does_not_work(machine, script, detail):
    machine.script("bin/claude", script)
    assert machine.only().status == "warn"
    assert detail in machine.only().detail


def test_a_claude_that_can_not_be_started(machine):
    with open(machine.claude, "w") as file:
        file.write("#!/no/such/interpreter\n")
    assert "can't be run" in machine.only().detail


def test_a_claude_that_hangs(machine, monkeypatch):
    monkeypatch.setattr(settings_check, "VERSION_LIMIT", 0.2)
    machine.script("bin/claude", "exec sleep 20")
    started = time.monotonic()
    assert "no answer within" in machine.only().detail
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("version", "status"), [("2.1.138", "fail"), ("2.1.139", "ok"), ("10.0.0", "ok"), ("1.0.9", "fail")]
)
def test_a_claude_too_old_for_the_registered_form(machine, version, status):
    machine.script("bin/claude", f"echo '{version} (Claude Code)'")
    assert machine.findings()[0].status == status


def test_a_configuration_folder_that_depends_on_where_you_are(machine):
    machine.env["CLAUDE_CONFIG_DIR"] = "../claude"
    assert [found.check for found in machine.wrong()] == ["configuration folder"]


# ------------------------------------------------------------------------------------------------ the file


def test_no_file(machine):
    machine.path.unlink()
    found = {(found.status, found.check) for found in machine.wrong()}
    assert ("fail", "settings file") in found
    assert ("fail", "hook Stop") in found
    assert {found.status for found in machine.findings(features=())} == {"ok"}


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('{"a": 1,}', "line 1, column 8: a comma behind the last entry"),
        ('{\n// x\n"a": 1}', "line 2, column 1: a comment"),
        ("{", "line 1, column 2"),
    ],
)
def test_a_file_that_does_not_parse(machine, text, detail):
    machine.path.write_text(text)
    found = machine.wrong()[0]
    assert (found.status, found.check) == ("fail", "settings file")
    assert detail in found.detail
    assert "ignores the whole file" in found.detail


def test_a_folder_in_place_of_the_file(machine):
    machine.path.unlink()
    machine.path.mkdir()
    assert "is a folder" in machine.wrong()[0].detail


#: What the real Claude Code 2.1.332 did with a settings file that holds this beside a good hook.
VOIDS = [
    ({"cleanupPeriodDays": "no"}, "cleanupPeriodDays isn't a whole number above 0"),
    ({"cleanupPeriodDays": 0}, "cleanupPeriodDays"),
    ({"cleanupPeriodDays": 1.5}, "cleanupPeriodDays"),
    ({"cleanupPeriodDays": None}, "cleanupPeriodDays"),
    ({"permissions": {"allow": "Bash"}}, "permissions.allow isn't a list"),
    ({"permissions": {"deny": "Bash"}}, "permissions.deny"),
    ({"permissions": {"ask": {}}}, "permissions.ask"),
    ({"permissions": {"additionalDirectories": "x"}}, "permissions.additionalDirectories"),
    ({"permissions": {"defaultMode": 5}}, "permissions.defaultMode"),
    ({"permissions": []}, "permissions isn't an object"),
    ({"permissions": None}, "permissions isn't an object"),
    ({"model": 5}, "model isn't a text"),
    ({"model": None}, "model isn't a text"),
    ({"$schema": 5}, "$schema isn't a text"),
    ({"apiKeyHelper": 5}, "apiKeyHelper"),
    ({"includeCoAuthoredBy": "no"}, "includeCoAuthoredBy isn't true or false"),
    ({"enableAllProjectMcpServers": "x"}, "enableAllProjectMcpServers"),
    ({"statusLine": "x"}, "statusLine isn't an object"),
    ({"enabledPlugins": []}, "enabledPlugins"),
    ({"availableModels": "opus"}, "availableModels isn't a list of texts"),
    ({"availableModels": [5]}, "availableModels isn't a list of texts"),
    ({"hooks": None}, "hooks isn't an object"),
    ({"hooks": []}, "hooks isn't an object"),
    ({"hooks": {"PreToolUse": {}}}, "hooks.PreToolUse isn't a list"),
    ({"hooks": {"PreToolUse": "x"}}, "hooks.PreToolUse isn't a list"),
    ({"hooks": {"PreToolUse": ["x"]}}, "hooks.PreToolUse[0] isn't an object"),
    ({"hooks": {"PreToolUse": [None]}}, "hooks.PreToolUse[0] isn't an object"),
    ({"hooks": {"PreToolUse": [{"matcher": "Bash"}]}}, "hooks.PreToolUse[0] has no list of hooks"),
    ({"hooks": {"PreToolUse": [{"hooks": {}}]}}, "hooks.PreToolUse[0] has no list of hooks"),
    ({"hooks": {"PreToolUse": [{"matcher": 5, "hooks": []}]}}, "hooks.PreToolUse[0].matcher isn't a text"),
    ({"hooks": {"PreToolUse": [{"matcher": None, "hooks": []}]}}, "hooks.PreToolUse[0].matcher"),
    ({"hooks": {"PreToolUse": [{"hooks": ["true"]}]}}, "hooks.PreToolUse[0].hooks[0] isn't an object"),
    ({"hooks": {"PreToolUse": [{"hooks": [{"command": "x"}]}]}}, "hooks.PreToolUse[0].hooks[0].type"),
    ({"hooks": {"PreToolUse": [{"hooks": [{"type": "banana"}]}]}}, "type isn't one of command"),
    ({"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}, "hooks[0] has no command"),
    ({"hooks": {"PreToolUse": [{"hooks": [{"type": "http"}]}]}}, "hooks[0] has no url"),
    ({"hooks": {"PreToolUse": [{"hooks": [{**HOOK, "command": 5}]}]}}, "hooks[0] has no command"),
    ({"hooks": {"PreToolUse": [{"hooks": [{**HOOK, "timeout": "5"}]}]}}, "timeout isn't a number above 0"),
    ({"hooks": {"PreToolUse": [{"hooks": [{**HOOK, "timeout": 0}]}]}}, "timeout isn't a number above 0"),
    ({"hooks": {"PreToolUse": [{"hooks": [{**HOOK, "timeout": -5}]}]}}, "timeout isn't a number above 0"),
    ({"hooks": {"PreToolUse": [{"hooks": [{**HOOK, "args": "x"}]}]}}, "args isn't a list of texts"),
    ({"hooks": {"PreToolUse": [{"hooks": [{**HOOK, "args": [5]}]}]}}, "args isn't a list of texts"),
    ({"hooks": {"PreToolUse": [{"hooks": [{**HOOK, "if": 5}]}]}}, "if isn't a text"),
    ({"hooks": {"PreToolUse": [{"hooks": [{**HOOK, "async": "x"}]}]}}, "async isn't true or false"),
    ({"hooks": {"PreToolUse": [{"hooks": [{**HOOK, "statusMessage": 5}]}]}}, "statusMessage isn't a text"),
    ({"hooks": {"PermissionRequest": [{"matcher": "x"}]}}, "hooks.PermissionRequest[0] has no list of hooks"),
    ({"hooks": {"PermissionRequest": [{"hooks": [{**HOOK, "timeout": "5"}]}]}}, "timeout isn't a number"),
]
#: What it ran the hooks of all the same; the second of the pair says that it dropped this one entry.
RUNS = [
    ({"env": {"A": 1}}, False),
    ({"permissions": {"allow": [5, "bad rule ("], "nope": 5}}, False),
    ({"unknown": {"v": 1}, "theme": 5}, False),
    ({"hooks": {"NoSuchEvent": [{"hooks": [HOOK]}], "PreToolUse": None}}, False),
    ({"hooks": {"PreToolUse": [{"matcher": "Bash(", "hooks": []}]}}, False),
    ({"hooks": {"PreToolUse": [{"_tag": 1, "hooks": [{**HOOK, "_tag": True, "timeout": 2.5}]}]}}, False),
    ({"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}}, False),
    ({"hooks": {"Stop": {"matcher": "x"}}}, True),
    ({"hooks": {"Stop": [{"matcher": "x"}]}}, True),
    ({"hooks": {"UserPromptSubmit": ["oops"]}}, True),
    ({"hooks": {"UserPromptSubmit": [{"hooks": [{**HOOK, "timeout": "5"}]}]}}, True),
    ({"hooks": {"PostToolUse": [{"hooks": [{"type": "banana"}]}]}}, True),
]


@pytest.mark.parametrize(("value", "message"), VOIDS)
def test_what_voids_a_whole_file(value, message):
    fatal, local = problems(parse(json.dumps(value)))
    assert len(fatal) == 1
    assert message in fatal[0]
    assert local == []


@pytest.mark.parametrize(("value", "drops"), RUNS)
def test_what_costs_at_most_itself(value, drops):
    fatal, local = problems(parse(json.dumps(value)))
    assert fatal == []
    assert bool(local) == drops


def test_somebody_elses_mistake_is_reported_with_its_effect(machine):
    hooks = json.loads(machine.path.read_text())["hooks"]
    hooks["PreToolUse"].append({"matcher": "Bash"})
    hooks["Stop"].append("x")
    machine.change(hooks=hooks, cleanupPeriodDays="no")
    found = machine.wrong()
    assert [entry.status for entry in found] == ["fail", "fail", "warn"]
    assert f"ignores every hook of {machine.path}" in found[0].detail
    assert "hooks.PreToolUse[2] has no list of hooks" in found[1].detail
    assert "hooks.Stop[1] isn't an object: Claude Code ignores this entry" in found[2].detail


def test_real_settings_files_are_not_accused(shared):
    """The public files that belong to Claude Code work for their owners."""
    count = 0
    for path in (shared / "corpus" / "settings").glob("*.claude_settings*.json"):
        fatal, local = problems(parse(path.read_text("utf-8")))
        assert (fatal, local) == ([], []), path.name
        count += 1
    assert count > 20


# ------------------------------------------------------------------------------------------------ switches


@pytest.mark.parametrize("where", ["user", "project", "local", "managed"])
def test_hooks_switched_off_in_any_layer(machine, where):
    off = {"disableAllHooks": True}
    path = {
        "user": str(machine.path),
        "project": f"{machine.work}/.claude/settings.json",
        "local": f"{machine.work}/.claude/settings.local.json",
        "managed": f"{machine.folder}/managed-settings.json",
    }[where]
    if where == "user":
        machine.change(**off)
    else:
        machine.write(path, off)
    assert (machine.only().status, machine.only().check) == ("fail", "hooks allowed")
    assert machine.only().detail == f"disableAllHooks in {path}: no hook runs"


def test_the_stronger_layer_decides(machine):
    machine.change(disableAllHooks=True)
    machine.write(f"{machine.work}/.claude/settings.local.json", {"disableAllHooks": False})
    assert machine.wrong() == []


def test_local_settings_are_those_of_the_repository(machine, monkeypatch):
    (machine.work / ".git").mkdir()
    below = machine.work / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    machine.write(f"{machine.work}/.claude/settings.local.json", {"disableAllHooks": True})
    machine.write(f"{machine.work}/.claude/settings.json", {"disableAllHooks": True})
    assert "settings.local.json" in machine.only().detail


def test_an_organisation_that_allows_only_its_own_hooks(machine):
    machine.change(allowManagedHooksOnly=True)
    assert machine.wrong() == []
    machine.write("managed-settings.json", {"allowManagedHooksOnly": True})
    assert machine.only().status == "fail"
    assert "only your organisation's hooks run" in machine.only().detail


def test_where_managed_settings_lie(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "listdir", lambda path: ["10-a.json", "20-b.json", "notes.txt"])
    names = settings_check.managed_files("linux")
    assert names == [
        "/etc/claude-code/managed-settings.d/20-b.json",
        "/etc/claude-code/managed-settings.d/10-a.json",
        "/etc/claude-code/managed-settings.json",
    ]
    assert "Application Support" in settings_check.managed_files("darwin")[-1]
    assert settings_check.managed_files("win32")[-1].startswith("C:\\Program Files\\ClaudeCode")


# --------------------------------------------------------------------------------------------- the entries


def test_what_is_missing_different_double_and_left_over(machine):
    hooks = json.loads(machine.path.read_text())["hooks"]
    del hooks["UserPromptSubmit"]
    hooks["Stop"][0]["hooks"][0]["timeout"] = 5
    hooks["Stop"] += hooks["Stop"]
    hooks["PreToolUse"][0]["matcher"] = "Skill"
    hooks["UserPromptExpansion"][0]["hooks"][0]["command"] = "/old/bin/gstack-hook"
    hooks["SubagentStop"] = [
        {"hooks": [{"type": "command", "command": machine.launcher, "args": ["claude-code", "SubagentStop"]}]}
    ]
    machine.change(hooks=hooks)
    assert [(found.status, found.check, found.detail) for found in machine.wrong()] == [
        ("fail", "hook UserPromptSubmit", "not registered"),
        ("fail", "hook Stop", "registered, but timeout isn't as it should be"),
        ("fail", "hook PreToolUse (Skill|Agent|Task)", "registered, but matcher isn't as it should be"),
        ("fail", "hook UserPromptExpansion", "registered, but command isn't as it should be"),
        ("fail", "hook Stop", f"registered twice: Stop: {machine.launcher} claude-code Stop"),
        ("warn", "hook SubagentStop", f"left over: SubagentStop: {machine.launcher} claude-code SubagentStop"),
    ]
    machine.register()
    assert machine.wrong() == []


def test_what_is_registered_for_a_feature_that_is_off_is_no_fault(machine):
    """The hooks read the switch: to switch one off, nothing need be registered anew (switches S2)."""
    assert machine.wrong(features=()) == []
    found = [one for one in machine.findings(features=()) if one.check.startswith("hook ")]
    assert [(one.status, one.detail.split(" while ")[0]) for one in found] == [
        ("info", "registered, and does nothing")
    ] * len(ALL)
    assert {one.detail.split(" while ")[1] for one in found} == {
        f"{feature} is off (gstack setup takes it out)" for feature in ("skill_routing", "skill_contracts", "gate")
    }


def test_leftovers_of_another_place(machine):
    machine.path.write_text(machine.path.read_text().replace(machine.launcher, "/old/bin/gstack-hook"))
    found = machine.wrong(features=())
    assert {(entry.status, entry.detail.split(":")[0]) for entry in found} == {("warn", "left over")}
    assert len(found) == len(ALL)


def test_a_hook_that_the_host_would_not_wait_for(machine):
    hooks = json.loads(machine.path.read_text())["hooks"]
    hooks["Stop"][0]["hooks"][0]["async"] = True
    hooks["Stop"][0]["hooks"][0]["statusMessage"] = "gstack"
    machine.change(hooks=hooks)
    assert machine.only().detail == "registered, but async isn't as it should be"
    machine.register()
    assert machine.wrong() == []
    assert json.loads(machine.path.read_text())["hooks"]["Stop"][0]["hooks"][0]["statusMessage"] == "gstack"


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_the_same_hook_in_a_project_too(machine, name):
    same = machine.path.read_text()
    path = machine.write(f"{machine.work}/.claude/{name}", same)
    assert machine.wrong() == []
    infos = [found for found in machine.findings() if found.status == "info"]
    assert len(infos) == len(ALL)
    assert infos[0].detail == f"also in {path}, which runs once all the same"
    machine.write(path, same.replace("/state/bin", "/old/bin"))
    found = machine.wrong()
    assert len(found) == len(ALL)
    assert "so it runs twice" in found[0].detail


def test_home_as_the_start_folder_is_not_a_second_file(machine, monkeypatch):
    machine.env["CLAUDE_CONFIG_DIR"] = ""
    machine.config.rename(machine.folder / ".claude")
    monkeypatch.chdir(machine.folder)
    assert {found.status for found in machine.findings()} == {"ok"}


@pytest.mark.parametrize("enabled", [True, False, None])
def test_the_same_hook_in_a_plugin_too(machine, enabled):
    plugin = machine.folder / "plugin"
    hook = {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/bin/gstack-hook claude-code Stop"}
    machine.write(f"{plugin}/hooks/hooks.json", {"hooks": {"Stop": [{"hooks": [hook, {**hook, "command": "x"}]}]}})
    entry = [{"scope": "user", "installPath": str(plugin)}]
    machine.write(f"{machine.config}/plugins/installed_plugins.json", {"version": 2, "plugins": {"g@m": entry}})
    if enabled is not None:
        machine.change(enabledPlugins={"g@m": enabled})
    details = [found.detail for found in machine.wrong()]
    assert details == ([] if enabled is False else ["the plugin g@m registers it as well, so it runs twice"])


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"plugins": 5}', '{"plugins": {"a@b": [5, {}, {"installPath": "/none"}]}}']
)
def test_a_list_of_plugins_that_can_not_be_read(machine, text):
    machine.write(f"{machine.config}/plugins/installed_plugins.json", text)
    assert machine.wrong() == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_the_list_of_plugins_is_not_waited_for(machine):
    machine.write(f"{machine.config}/plugins/installed_plugins.json", "")
    os.unlink(f"{machine.config}/plugins/installed_plugins.json")
    os.mkfifo(f"{machine.config}/plugins/installed_plugins.json")
    assert machine.wrong() == []


def test_a_command_that_runs_the_launcher_in_a_form_of_its_own(machine):
    hooks = json.loads(machine.path.read_text())["hooks"]
    mine = {"type": "command", "command": "'/old dir/bin/gstack-hook' claude-code Stop\n"}
    hooks["Stop"].append({"hooks": [mine, {"type": "command", "command": "my-gstack-hooks"}]})
    machine.change(hooks=hooks)
    assert machine.only().status == "warn"
    assert "in a form of its own: Stop: '/old dir/bin/gstack-hook' claude-code Stop?" in machine.only().detail


# --------------------------------------------------------------------------------------------- the project


def test_registering_in_a_project_warns(machine):
    machine.register(features=(), launcher=machine.launcher)
    machine.register(project=str(machine.work))
    found = machine.wrong(project=str(machine.work))
    assert [(entry.status, entry.check) for entry in found] == [("warn", "project settings")] * 2
    assert "only when it is started in" in found[0].detail
    assert "on this machine alone" in found[1].detail
    assert settings.project_findings(str(machine.work), machine.launcher) == found


def test_a_start_folder_that_was_deleted(machine, monkeypatch):
    def gone():
        raise FileNotFoundError

    monkeypatch.setattr(os, "getcwd", gone)
    assert machine.findings()

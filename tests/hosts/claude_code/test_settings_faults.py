"""The faults of earlier installers, one test each: what registration must guarantee so that they can't come back.

Where a fault also needs something of another part (setup's order, the hook's answers), that part has its own test.
"""

import json
import os
import re
import stat
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from gstack.api import TOOL_PROPOSED, Answer, HookEvent
from gstack.errors import SettingsError
from gstack.jsonfile import backups
from gstack.jsontext import parse
from gstack_hosts.claude_code import ClaudeCode, settings
from gstack_hosts.claude_code.hook_entries import find

FEATURES = ("skill_routing", "skill_contracts", "gate")
ALL = settings.registrations(FEATURES)
LAUNCHER = "/home/u/.gstack/bin/gstack-hook"


class Claude:
    """A configuration folder and what a person does with it."""

    def __init__(self, folder, launcher=LAUNCHER):
        self.path = folder / "settings.json"
        self.env = {"CLAUDE_CONFIG_DIR": str(folder)}
        self.launcher = launcher

    def write(self, value):
        self.path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2), "utf-8")

    def read(self):
        return json.loads(self.path.read_text("utf-8"))

    def setup(self, *features, launcher=None):
        wanted = settings.registrations(features or FEATURES)
        return settings.apply_settings(settings.plan_settings(wanted, launcher or self.launcher, self.env))

    def uninstall(self):
        return settings.apply_settings(settings.plan_settings((), "", self.env))

    def ours(self):
        return find(parse(self.path.read_text("utf-8")))

    def events(self):
        return sorted(have.event for have in self.ours())


EVERY_EVENT = sorted(want.event for want in ALL)


@pytest.fixture
def claude(tmp_path):
    folder = tmp_path / "conf"
    folder.mkdir()
    return Claude(folder)


def our_entry(event="Stop", launcher=LAUNCHER, **more):
    return {"hooks": [{"type": "command", "command": launcher, "args": ["claude-code", event], "timeout": 30, **more}]}


def test_f1_a_path_that_will_be_gone_is_reported_and_replaced(claude, tmp_path, monkeypatch):
    """A worktree's or temporary folder's launcher in the settings of all projects."""
    passing = tmp_path / "temporary"
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(passing))
    old = passing / "state" / "bin" / "gstack-hook"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\n")
    old.chmod(0o755)
    claude.setup(launcher=str(old))
    findings = settings.diagnose(ALL, str(old), {**claude.env, "PATH": ""})
    assert any(found.check == "launcher" and "temporary folder" in found.detail for found in findings)
    claude.setup()
    assert {have.command for have in claude.ours()} == {LAUNCHER}
    assert claude.events() == EVERY_EVENT


def test_f2_the_same_hook_is_registered_once_whatever_tags_it_lost(claude):
    tagged = {**our_entry(), "_gstack_source": "contracts"}
    claude.write({"hooks": {"Stop": [our_entry(), tagged, our_entry(launcher="/old/bin/gstack-hook"), our_entry()]}})
    claude.setup("skill_contracts")
    assert claude.events() == ["Stop"]
    for _ in range(3):
        claude.setup("skill_contracts")
    assert claude.events() == ["Stop"]


def test_f3_a_changed_matcher_is_mended_and_not_doubled(claude):
    claude.setup("gate")
    text = claude.path.read_text()
    claude.write(text.replace("Skill|Agent|Task", "Skill").replace('"Read"', '"Read|Grep"'))
    change = claude.setup("gate")
    assert claude.path.read_text() == text
    assert not change.added
    assert len(change.changed) == 2


@pytest.mark.parametrize("text", ['{"hooks": {', '{"a": 1,}', "// mine\n{}", "\x00", "nonsense"])
def test_f4_a_file_that_does_not_parse_is_never_replaced(claude, text):
    claude.write(text)
    for act in (claude.setup, claude.uninstall):
        with pytest.raises(SettingsError, match="isn't strict JSON"):
            act()
    assert claude.path.read_text() == text
    assert os.listdir(claude.path.parent) == ["settings.json"]


def test_f5_the_mode_is_kept_and_two_setups_share_no_temporary_name(claude, monkeypatch):
    claude.write({"model": "opus"})
    claude.path.chmod(0o600)
    names = []
    real = os.open

    def watched(path, flags, *rest, **more):
        if str(path).endswith(".tmp"):
            names.append(path)
        return real(path, flags, *rest, **more)

    monkeypatch.setattr("gstack.state.sys_os.open", watched)
    threads = [threading.Thread(target=claude.setup, args=(name,)) for name in FEATURES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stat.S_IMODE(claude.path.stat().st_mode) == 0o600
    assert len(set(names)) == len(names) > 2
    assert claude.read()["model"] == "opus"


def test_f6_a_persons_hook_in_the_same_entry_stays(claude):
    mine = {"type": "command", "command": "say done"}
    entry = our_entry()
    entry["hooks"] = [mine, *entry["hooks"], {**mine, "command": "say more"}]
    claude.write({"hooks": {"Stop": [entry, {"hooks": []}]}})
    claude.uninstall()
    assert claude.read() == {"hooks": {"Stop": [{"hooks": [mine, {**mine, "command": "say more"}]}, {"hooks": []}]}}


def test_f6_a_shared_entry_keeps_its_matcher_and_ours_moves_out(claude):
    mine = {"type": "command", "command": "log"}
    entry = our_entry("PreToolUse")
    claude.write({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [*entry["hooks"], mine]}]}})
    claude.setup("gate")
    first, *rest = claude.read()["hooks"]["PreToolUse"]
    assert first == {"matcher": "Bash", "hooks": [mine]}
    assert sorted(entry["matcher"] for entry in rest) == ["Read", "Skill|Agent|Task"]


def test_f7_entries_that_the_host_rewrote_are_removed(claude):
    claude.write({"model": "opus"})
    claude.setup()
    claude.path.write_text(json.dumps(claude.read(), separators=(",", ":"), sort_keys=True))
    claude.uninstall()
    assert claude.read()["model"] == "opus"
    assert claude.ours() == []
    assert "gstack" not in claude.path.read_text()


def test_f8_removal_needs_neither_the_launcher_nor_its_folder(claude):
    """Setup's part is the order (registration first); ours is that removal works in either order, and says so."""
    claude.setup(launcher="/gone/bin/gstack-hook")
    change = claude.uninstall()
    assert len(change.removed) == len(ALL)
    assert not claude.path.exists()


def test_f9_every_part_honours_the_configuration_folder(claude, home):
    env = {**claude.env, "HOME": str(home), "PATH": ""}
    settings.apply_settings(settings.plan_settings(ALL, LAUNCHER, env))
    assert claude.events() == EVERY_EVENT
    assert list(home.iterdir()) == []
    details = [found.detail for found in settings.diagnose(ALL, LAUNCHER, env)]
    assert any(str(claude.path) in detail for detail in details)
    assert not any(str(home) in detail for detail in details)
    without = {"HOME": str(home), "CLAUDE_CONFIG_DIR": ""}
    assert settings.plan_settings(ALL, LAUNCHER, without).path == str(home / ".claude" / "settings.json")


def test_f10_what_the_host_or_environment_looks_like_changes_nothing(claude):
    """Only the features that the person switched on decide."""
    env = {**claude.env, "CLAUDECODE": "1", "CI": "true", "CONDUCTOR_PORT": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}
    wanted = settings.registrations(["skill_routing"])
    assert (
        settings.plan_settings(wanted, LAUNCHER, env).after
        == settings.plan_settings(wanted, LAUNCHER, claude.env).after
    )


def test_f11_no_failure_is_swallowed(claude, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gstack.state.sys_os.replace", full)
    with pytest.raises(SettingsError, match="No space left") as caught:
        claude.setup()
    assert caught.value.exit_code == 3
    assert not claude.path.exists()


def test_f12_names_that_objects_have_by_birth_are_ordinary_events(claude):
    odd = ["__proto__", "constructor", "toString", "hasOwnProperty", "keys", "__class__"]
    claude.write(
        {"hooks": {name: [our_entry(name), {"hooks": [{"type": "command", "command": name}]}] for name in odd}}
    )
    before = claude.read()
    claude.setup()
    assert claude.events() == EVERY_EVENT
    claude.uninstall()
    assert claude.read() == {
        "hooks": {name: entries[1:] for name, entries in before["hooks"].items()},
    }


@pytest.mark.parametrize("folder", ["with space", 'quote"s', "$(touch x)", "back\\slash", "new\nline", "é😀", "`id`;&"])
def test_f13_a_path_is_data_and_never_code(claude, folder):
    launcher = f"/opt/{folder}/bin/gstack-hook"
    claude.setup(launcher=launcher)
    for have in claude.ours():
        item = have.item.plain()
        assert item["command"] == launcher
        assert item["args"] == ["claude-code", have.event]
    claude.uninstall()
    assert not claude.path.exists()


def test_f14_registration_never_asks(claude, monkeypatch):
    def asked(*args):
        raise AssertionError("something was read from the terminal")

    monkeypatch.setattr("builtins.input", asked)
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setattr("getpass.getpass", asked)
    claude.setup()
    settings.diagnose(ALL, LAUNCHER, {**claude.env, "PATH": ""})
    claude.uninstall()


def test_f15_a_decision_is_nested_where_the_host_looks_for_it():
    event = HookEvent("claude-code", TOOL_PROPOSED, "PreToolUse")
    answer = json.loads(ClaudeCode().render(Answer(deny="no"), event))
    assert answer["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "permissionDecision" not in answer


def test_f16_no_tool_that_a_person_answers_is_hooked_and_nothing_is_deferred():
    for want in ALL:
        names = set((want.matcher or "").split("|"))
        assert want.event != "PreToolUse" or names <= {"Skill", "Agent", "Task", "Read"}
    event = HookEvent("claude-code", TOOL_PROPOSED, "PreToolUse")
    assert ClaudeCode().render(Answer(), event) == b""


def test_f17_no_variable_stands_in_a_registered_command(claude):
    claude.setup()
    for have in claude.ours():
        assert not re.search(r"[$~%`]", json.dumps(have.item.plain()))
        assert os.path.isabs(have.command)


def test_f18_a_windows_launcher_keeps_its_one_drive_letter(claude):
    launcher = r"C:\Users\Jo Doe\AppData\Local\gstack\bin\gstack-hook.exe"
    claude.setup(launcher=launcher)
    assert {have.command for have in claude.ours()} == {launcher}
    claude.setup(launcher=launcher.replace("\\", "/"))
    assert claude.events() == EVERY_EVENT
    claude.uninstall()
    assert not claude.path.exists()


@pytest.mark.skipif(os.name != "posix", reason="POSIX launcher")
def test_f19_a_launcher_that_can_not_run_is_found(claude, tmp_path):
    launcher = tmp_path / "state" / "bin" / "gstack-hook"
    env = {**claude.env, "PATH": ""}
    claude.setup(launcher=str(launcher))

    def status():
        [found] = [found for found in settings.diagnose(ALL, str(launcher), env) if found.check == "launcher"]
        return found.status, found.detail

    assert status() == ("fail", f"{launcher} doesn't exist")
    launcher.parent.mkdir(parents=True)
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o644)
    assert status() == ("fail", f"{launcher} isn't executable")
    launcher.chmod(0o755)
    assert status()[0] == "ok"


def test_f20_a_vanished_launcher_is_a_harmless_not_found(claude, tmp_path):
    """Run as the host does. An interpreter with a missing script would exit 2, which blocks."""
    claude.setup(launcher=str(tmp_path / "bin" / "gstack-hook"))
    for have in claude.ours():
        item = have.item.plain()
        assert os.path.basename(item["command"]) == "gstack-hook"
        with pytest.raises(FileNotFoundError):
            subprocess.run([item["command"], *item["args"]], check=False)


def test_f21_the_arguments_are_plain_words():
    """Nothing that an option parser could refuse with exit code 2."""
    for want in ALL:
        assert want.args == ("claude-code", want.event)
        assert all(re.fullmatch("[A-Za-z-]+", word) and not word.startswith("-") for word in want.args)


def test_f22_a_subagents_stop_is_never_held_and_a_turns_only_once(claude):
    assert [want.event for want in ALL if "Stop" in want.event] == ["Stop"]
    claude.write({"hooks": {"SubagentStop": [our_entry("SubagentStop")], "Stop": [our_entry(), our_entry()]}})
    claude.setup()
    assert claude.events() == EVERY_EVENT
    assert "SubagentStop" not in claude.read()["hooks"]


def test_f23_a_setup_that_changes_nothing_leaves_no_trace(claude):
    claude.setup()
    before = {path.name: path.stat().st_mtime_ns for path in claude.path.parent.iterdir()}
    for _ in range(3):
        change = claude.setup()
        assert change.before == change.after
    assert {path.name: path.stat().st_mtime_ns for path in claude.path.parent.iterdir()} == before
    assert backups(str(claude.path)) == []


def test_f24_the_registered_path_is_the_launchers_wherever_it_lies(claude):
    for launcher in ("/srv/a/bin/gstack-hook", "/home/u/.local/state/gstack/bin/gstack-hook"):
        claude.setup(launcher=launcher)
        assert {have.command for have in claude.ours()} == {launcher}
        assert claude.events() == EVERY_EVENT


def test_the_incident_of_dead_paths(claude):
    """Eleven entries, six of them dead, beside a person's own hook: five right ones stay."""
    mine = {"hooks": [{"type": "command", "command": "/home/u/compact.sh"}]}
    dead = [f"/tmp/worktree-{number}/bin/gstack-hook" for number in range(6)]
    claude.write(
        {
            "hooks": {
                "PreCompact": [mine],
                "Stop": [our_entry(), our_entry(launcher=dead[0]), our_entry(launcher=dead[1])],
                "UserPromptSubmit": [our_entry("UserPromptSubmit", path) for path in (LAUNCHER, *dead[2:4])],
                "PreToolUse": [
                    {"matcher": "Skill|Agent|Task", **our_entry("PreToolUse")},
                    {"matcher": "Read", **our_entry("PreToolUse", **{"if": "Read(**/SKILL.md)"})},
                    {"matcher": "Skill", **our_entry("PreToolUse", dead[4])},
                ],
                "UserPromptExpansion": [our_entry("UserPromptExpansion", path) for path in (LAUNCHER, dead[5])],
            }
        }
    )
    assert len(claude.ours()) == 11
    claude.setup()
    assert claude.events() == EVERY_EVENT
    assert len(claude.ours()) == 5
    assert {have.command for have in claude.ours()} == {LAUNCHER}
    assert claude.read()["hooks"]["PreCompact"] == [mine]
    assert Path(backups(str(claude.path))[0]).exists()

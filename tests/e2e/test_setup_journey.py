"""Setup, the switches and uninstall as a person uses them: the real command in a home of its own."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gstack.lowlevel import POSIX


class Person:
    """Runs `gstack` in a fresh home."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = folder / "state"
        self.home.mkdir()
        self.env = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
        self.env |= {"HOME": str(self.home), "USERPROFILE": str(self.home), "GSTACK_STATE_ROOT": str(self.root)}
        self.settings = self.home / ".claude" / "settings.json"

    def run(self, *args: str, code: int = 0, cwd: Path | None = None, **env: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "gstack", *args], env=self.env | env, cwd=cwd or self.home, capture_output=True,
            text=True, stdin=subprocess.DEVNULL, timeout=120, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, (args, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def events(self) -> list[str]:
        if not self.settings.exists():
            return []
        hooks = json.loads(self.settings.read_text()).get("hooks", {})
        return sorted(event for event, entries in hooks.items() for entry in entries for _ in entry["hooks"])

    def config(self) -> str:
        path = self.root / "config.yaml"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_from_nothing_to_on_and_back(person: Person) -> None:
    before = b'{\n\t"model": "opus",\n\t"hooks": {}\n}'
    person.settings.parent.mkdir()
    person.settings.write_bytes(before)
    person.settings.chmod(0o640)
    out = person.run("setup", "--skill-routing=observe")
    assert "registered skill routing" in out
    assert "observe" in out
    assert person.events() == ["UserPromptSubmit"]
    assert "skill_routing: observe" in person.config()
    assert "registered" not in person.run("setup")  # one line, the first time only
    person.run("setup", "--skill-routing", "--skill-contracts", "--gate")
    assert person.events() == ["PreToolUse", "PreToolUse", "Stop", "UserPromptExpansion", "UserPromptSubmit"]
    person.run("setup", "--no-gate")
    assert person.events() == ["Stop", "UserPromptSubmit"]
    entry = json.loads(person.settings.read_text())["hooks"]["UserPromptSubmit"][0]["hooks"][0]
    done = subprocess.run(
        [entry["command"], *entry["args"]], input=b"{}", env=person.env, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")
    person.run("uninstall")
    assert person.settings.read_bytes() == before
    assert os.listdir(person.settings.parent) == ["settings.json"]
    assert not POSIX or stat.S_IMODE(person.settings.stat().st_mode) == 0o640
    assert not (person.root / "bin").exists()
    assert "skill_routing: on" in person.config()


def test_a_second_setup_writes_nothing(person: Person) -> None:
    person.run("setup", "--skill-routing")
    mark = person.settings.stat().st_mtime_ns
    beside = sorted(os.listdir(person.settings.parent))
    assert "nothing to change" in person.run("setup")
    assert person.settings.stat().st_mtime_ns == mark
    assert sorted(os.listdir(person.settings.parent)) == beside


def test_dry_run_prints_the_difference_and_writes_nothing(person: Person) -> None:
    out = person.run("setup", "--gate", "--dry-run")
    assert "+" in out
    assert "UserPromptExpansion" in out
    assert not person.settings.exists()
    assert person.config() == ""
    assert not (person.root / "bin").exists()


@pytest.mark.parametrize("text", ["{", '{"hooks": []}', '{"a": 1,}', "// c\n{}", "[]"])
def test_settings_that_cant_be_used_are_left_alone(person: Person, text: str) -> None:
    person.settings.parent.mkdir()
    person.settings.write_text(text)
    out = person.run("setup", "--skill-routing", code=3)
    assert out.count("\n") == 1
    assert str(person.settings) in out
    assert person.settings.read_text() == text
    assert person.config() == ""


def test_an_unreadable_configuration_stops_setup(person: Person) -> None:
    person.root.mkdir()
    (person.root / "config.yaml").write_bytes(b"\xff")
    out = person.run("setup", "--skill-routing", code=3)
    assert "config.yaml" in out
    assert not person.settings.exists()


@pytest.mark.parametrize(
    "args", [["--no-such-flag"], ["extra"], ["--skill-routing=on", "--no-skill-routing"], ["--host", "nobody"]]
)
def test_wrong_usage_is_one_line_and_exit_2(person: Person, args: list[str]) -> None:
    out = person.run("setup", *args, code=2)
    assert out.startswith("GSTACK_USAGE: ")
    assert out.count("\n") == 1
    assert not person.settings.exists()


def test_a_value_that_is_none_warns_and_isn_t_saved(person: Person) -> None:
    out = person.run("setup", "--skill-routing=maybe")
    assert "warning: --skill-routing=maybe" in out
    assert person.events() == []
    assert person.config() == ""


def test_the_environment_decides_and_isn_t_saved(person: Person) -> None:
    out = person.run("setup", GSTACK_SKILL_CONTRACTS="yes")
    assert "skill_contracts: on (env)" in out
    assert person.events() == ["Stop"]
    assert person.config() == ""


def test_no_team_leaves_only_the_gate(person: Person) -> None:
    person.run("setup", "--skill-routing", "--skill-contracts", "--gate")
    person.run("setup", "--no-team")
    assert person.events() == ["PreToolUse", "PreToolUse", "UserPromptExpansion"]


def test_claude_config_dir_is_honoured(person: Person, tmp_path: Path) -> None:
    person.run("setup", "--skill-routing", CLAUDE_CONFIG_DIR=str(tmp_path / "elsewhere"))
    assert not person.settings.exists()
    assert (tmp_path / "elsewhere" / "settings.json").exists()


def test_project_settings_on_request_with_a_warning(person: Person, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    out = person.run("setup", "--skill-routing", "--project", cwd=project)
    assert "warning: project settings" in out
    assert (project / ".claude" / "settings.json").exists()
    assert not person.settings.exists()
    person.run("uninstall", "--project", cwd=project)
    assert not (project / ".claude" / "settings.json").exists()


def test_quiet_says_nothing(person: Person) -> None:
    out = person.run("setup", "--skill-routing", "--quiet")
    assert [line for line in out.splitlines() if not line.startswith("warning: ")] == []


def test_two_setups_at_once_leave_one_registration(person: Person) -> None:
    command = [sys.executable, "-m", "gstack", "setup", "--skill-routing", "--quiet"]
    running = [subprocess.Popen(command, env=person.env, cwd=person.home, stderr=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    assert person.events() == ["UserPromptSubmit"]


def test_uninstall_takes_the_entries_before_the_files(person: Person) -> None:
    """When the settings can't be written, the launcher that they name must stay."""
    person.run("setup", "--skill-routing")
    person.settings.write_text("{ broken")
    person.run("uninstall", code=3)
    assert (person.root / "bin" / "gstack-hook").exists()


def test_config_commands(person: Person) -> None:
    assert person.run("config", "get", "skill_routing") == "off\n"
    person.run("config", "has", "skill_routing", code=1)
    person.run("config", "set", "skill_routing", "YES")
    assert person.run("config", "get", "skill_routing") == "on\n"
    person.run("config", "has", "skill_routing")
    listed = {row["key"]: row for row in json.loads(person.run("config", "list", "--json"))}
    assert listed["skill_routing"] == {"key": "skill_routing", "value": "on", "source": "config"}
    assert "did you mean skill_routing?" in person.run("config", "get", "skil_routing", code=1)
    person.run("config", "set", "gate", "perhaps", code=2)
    person.run("config", "unset", "skill_routing")
    assert person.run("config", "get", "skill_routing") == "off\n"
    for line in (person.run("config", "list") + person.run("config", "defaults")).splitlines():
        assert len(line) <= 80


def test_plugins_commands(person: Person) -> None:
    states = {row["id"]: row["state"] for row in json.loads(person.run("plugins", "list", "--json"))}
    assert states["lexical"] == "ok"
    person.run("plugins", "disable", "lexical")
    states = {row["id"]: row["state"] for row in json.loads(person.run("plugins", "list", "--json"))}
    assert states["lexical"] == "disabled"
    person.run("plugins", "enable", "lexical")
    assert "no installed plug-in" in person.run("plugins", "disable", "nobody", code=1)


def test_trust_is_bound_to_what_is_there(person: Person, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    assert "no .gstack" in person.run("trust", str(project), code=2)
    (project / ".gstack").mkdir()
    (project / ".gstack" / "config.yaml").write_text("skill_routing: off\n")
    (project / "deep").mkdir()
    assert str(project) in person.run("trust", str(project / "deep"))
    assert str(project.resolve()) in str(json.loads(person.run("trust", "--list", "--json")))
    person.run("trust", "--remove", str(project))
    assert "no folder is trusted" in person.run("trust", "--list")


def test_demo_touches_nothing_of_the_person_s(person: Person) -> None:
    steps = json.loads(person.run("demo", "--json"))
    assert [step["feature"] for step in steps].count("routing") == 4
    assert "/investigate" in steps[0]["outcome"]
    assert [step["outcome"] for step in steps[1:4]] == [
        f"nothing ({why})" for why in ("below-threshold", "negated", "slash")
    ]
    assert steps[4]["outcome"].startswith("SKILL_CONTRACT_UNMET investigate (contract v1): missing debug-report, repro")
    assert "met_after_block" in steps[5]["outcome"]
    assert os.listdir(person.home) == []
    assert not person.root.exists()


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder, with its time and content."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def test_a_dry_run_and_doctor_write_nothing(person: Person, tmp_path: Path) -> None:
    dry = ("setup", "--dry-run", "--skill-routing", "--gate"), ("uninstall", "--dry-run")
    before = tree(tmp_path)
    for arguments in dry:
        person.run(*arguments)
    person.run("doctor")
    assert tree(tmp_path) == before

    skill = person.home / ".claude" / "skills" / "investigate" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: investigate\ndescription: d\ntriggers: [fix this bug]\n---\n")
    person.run("setup", "--skill-routing", "--skill-contracts")
    for path in (person.root / "snapshot").iterdir():
        path.unlink()  # what is stale, too, is the hook's to mend
    before = tree(tmp_path)
    for arguments in dry:
        person.run(*arguments)
    person.run("doctor")
    assert tree(tmp_path) == before
    person.run("doctor", "--live")
    new = tree(tmp_path).keys() - before.keys()
    # the launcher keeps its own compiled code where setup told it to, whatever the state folder of the event
    assert all(os.path.basename(path).startswith("code") for path in new), new


def test_the_launcher_stays_while_another_settings_file_names_it(person: Person, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    person.run("setup", "--skill-routing")
    person.run("setup", "--project", cwd=project)
    out = person.run("uninstall")
    assert str(project / ".claude" / "settings.json") in out
    assert (person.root / "bin" / "gstack-hook").exists()
    person.run("uninstall", CLAUDE_CONFIG_DIR=str(tmp_path / "other"))
    assert (person.root / "bin" / "gstack-hook").exists()
    person.run("uninstall", "--project", cwd=project)
    assert not (person.root / "bin").exists()

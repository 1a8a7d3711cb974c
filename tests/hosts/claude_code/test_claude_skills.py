"""Where Claude Code finds personal and project skills, what it calls them, and which names it has taken."""

import subprocess
import sys
from pathlib import Path

import pytest
from claude_box import Box

import gstack_hosts
from gstack.api import Skill, SkillRoot
from gstack.inventory import load_skills
from gstack_hosts.claude_code import ClaudeCode
from gstack_hosts.claude_code.skills import load_phrase, project_folders, skill_places, skills_in, taken_names


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


# ------------------------------------------------------------------------------------ personal and project


def test_personal(box: Box) -> None:
    root = box.config / "skills"
    for name in ("plain", "Upper", "with space", ".hidden", "synced", "group/nested"):
        box.skill(root / name, name)
    box.skill(root / "lab", "label-of-lab")
    box.write(root / "lower" / "skill.md", "---\nname: lower\n---\n")
    box.write(root / "file.md", "x")
    (root / "dangling").symlink_to(box.base / "nowhere")
    box.skill(box.base / "away", "away")
    (root / "linked").symlink_to(box.base / "away")
    found = box.load()
    want = [".hidden", "Upper", "lab", "linked", "plain", "with space"]
    if (root / "lower" / "SKILL.md").exists():  # a file system that doesn't tell the cases apart
        want.insert(4, "lower")
    assert [skill.name for skill in found.skills] == want
    assert {skill.scope for skill in found.skills} == {"personal"}
    assert found.skills[2].label == "label-of-lab"
    assert found.roots == [SkillRoot(str(root), "personal")]


def test_the_configuration_folder(box: Box) -> None:
    box.skill(box.config / "skills" / "one")
    box.skill(box.base / "other" / "skills" / "two")
    assert box.names() == ["one"]
    assert box.names(CLAUDE_CONFIG_DIR="") == ["one"]
    assert box.names(CLAUDE_CONFIG_DIR=str(box.base / "other")) == ["two"]
    assert box.load(HOME=str(box.base / "none")).skills == []


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_project_up_to_the_root_of_the_repository(box: Box, kind: str) -> None:
    deep = box.work / "a" / "b"
    deep.mkdir(parents=True)
    git = box.work / ".git"
    if kind == "folder":
        git.mkdir()
        (git / "HEAD").write_text("ref: refs/heads/main\n")
    else:
        git.write_text("gitdir: elsewhere\n")
    box.skill(box.base / ".claude" / "skills" / "above")
    for folder, name in ((box.work, "at-root"), (box.work / "a", "at-a"), (deep, "at-b"), (deep / "c", "below")):
        box.skill(folder / ".claude" / "skills" / name)
        box.skill(folder / ".claude" / "skills" / "same")
    box.skill(box.config / "skills" / "at-a")
    found = box.load(deep)
    assert [skill.name for skill in found.skills] == ["at-a", "at-b", "same", "at-root"]
    assert [skill.scope for skill in found.skills] == ["personal", "project", "project", "project"]
    assert found.skills[2].path == f"{deep}/.claude/skills/same/SKILL.md"
    assert len(found.shadowed) == 3
    assert f"{deep}/.git" in found.depends_on
    assert (str(git) in found.depends_on) == (kind == "file"), "the folder changes with every commit"
    assert (f"{git}/HEAD" in found.depends_on) == (kind == "folder")


def test_project_outside_a_repository_is_the_start_folder_only(box: Box) -> None:
    deep = box.work / "a"
    box.skill(box.work / ".claude" / "skills" / "above")
    box.skill(deep / ".claude" / "skills" / "here")
    assert box.names(deep) == ["here"]
    places, depends = skill_places(box.env, str(deep))
    assert [place.scope for place in places] == ["personal", "project"]
    assert {f"{deep}/.git", f"{box.work}/.git"} <= set(depends)


def test_the_start_folder_does_not_follow_a_cd(box: Box) -> None:
    box.skill(box.work / ".claude" / "skills" / "one")
    box.skill(box.base / "else" / ".claude" / "skills" / "two")
    assert box.names(box.base / "else") == ["two"]
    assert box.names(box.base / "else", CLAUDE_PROJECT_DIR=str(box.work)) == ["one"]


def test_a_home_that_is_the_repository(box: Box) -> None:
    (box.home / ".git").mkdir()
    box.skill(box.config / "skills" / "one")
    box.skill(box.home / "proj" / ".claude" / "skills" / "two")
    found = box.load(box.home / "proj")
    assert [(skill.name, skill.scope) for skill in found.skills] == [("one", "personal"), ("two", "project")]
    assert [root.path for root in found.roots] == [f"{box.config}/skills", f"{box.home}/proj/.claude/skills"]


def test_no_working_folder(box: Box) -> None:
    box.skill(box.config / "skills" / "one")
    assert [place.scope for place in skill_places(box.env, None)[0]] == ["personal"]
    gone = load_skills(ClaudeCode(), box.env, str(box.base / "gone"), state_root=str(box.base / "state"))
    assert [skill.name for skill in gone.skills] == ["one"]


def test_absent_folders_and_files_are_depended_on(box: Box) -> None:
    depends = box.load().depends_on
    for path in (
        box.config / "skills",
        box.work / ".claude" / "skills",
        box.config / "settings.json",
        box.work / ".claude" / "settings.json",
        box.work / ".claude" / "settings.local.json",
        box.config / "plugins" / "installed_plugins.json",
        box.base / "state" / "skills.yaml",
    ):
        assert str(path) in depends


def test_skills_in_a_folder_that_may_not_be_listed(box: Box) -> None:
    for path in (box.base / "missing", box.write(box.base / "file", "x")):
        with pytest.raises(OSError, match=r"\w"):
            skills_in(SkillRoot(str(path), "personal"))


def test_a_link_loop_is_reported(box: Box) -> None:
    root = box.config / "skills"
    box.skill(root / "good")
    (root / "loop").symlink_to(root / "loop")
    found = box.load()
    assert [skill.name for skill in found.skills] == ["good"]
    assert [path for path, _ in found.skipped] == [f"{root}/loop/SKILL.md"]


# ------------------------------------------------------------------------------------------------- names


def test_taken_names() -> None:
    names = taken_names()
    assert {"review", "code-review", "clear", "compact", "cost", "help", "model", "usage"} <= set(names)
    assert not {"investigate", "qa", "verify", "ship", "acme:review"} & set(names)
    assert all(name == name.strip().lower() and not name.startswith("/") for name in names)


def test_load_phrase() -> None:
    assert load_phrase(Skill("investigate", "/h/skills/investigate/SKILL.md")) == "Run /investigate with the Skill tool"
    assert load_phrase(Skill("acme:review", "/p/skills/review/SKILL.md")) == "Run /acme:review with the Skill tool"
    taken = load_phrase(Skill("review", "/h/.claude/skills/review/SKILL.md"))
    assert "/h/.claude/skills/review/SKILL.md" in taken
    assert "Skill tool" not in taken


def test_the_adapter_offers_all_of_it(box: Box) -> None:
    host = ClaudeCode()
    box.skill(box.config / "skills" / "one")
    root = SkillRoot(f"{box.config}/skills", "personal")
    assert host.skills_in(root) == [("one", f"{box.config}/skills/one/SKILL.md")]
    assert "review" in host.taken_names()
    assert host.load_phrase(Skill("one", "x")) == "Run /one with the Skill tool"


def test_imports_are_light() -> None:
    """A hint's phrase costs no import beyond the hot set; listing skills adds ``os`` at most."""
    hosts = str(Path(gstack_hosts.__file__).parent.parent)
    core = str(Path(sys.modules["gstack"].__file__ or "").parent.parent)
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]; import gstack_hosts.claude_code.skills as s; s.taken_names(); "
        "first = 'os' in sys.modules; s.skill_places({'HOME': '/nowhere'}, '/nowhere/x'); "
        "heavy = ('re', 'json', 'typing', 'enum', 'collections', 'functools', 'pathlib'); "
        "print(first, [m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-IS", "-c", code, core, hosts], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{sys.platform == 'win32'} []"


@pytest.mark.parametrize("start", ["/\ud800", "/a\0b"])
def test_a_start_folder_that_is_no_path(start: str) -> None:
    assert project_folders(start) == ([], [])

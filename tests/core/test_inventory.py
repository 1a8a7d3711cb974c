"""The inventory: roots, precedence, duplicates, overlays, and the incremental rebuild."""

import itertools
import marshal
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack import inventory as module
from gstack import skills
from gstack.api import SkillRoot
from gstack.inventory import Inventory, load_skills

LATER = 10_000_000_000


class Host:
    """A host whose folders are given; ``skills_in`` lists every child, as simply as can be."""

    def __init__(self, *roots: SkillRoot, depends: "tuple[str, ...]" = ()) -> None:
        self.roots = list(roots)
        self.depends = list(depends)
        self.failing: set[str] = set()

    def skill_places(self, env: Any, cwd: Any) -> "tuple[list[SkillRoot], list[str]]":
        return self.roots, self.depends

    def skills_in(self, root: SkillRoot) -> "list[tuple[str, str]]":
        if root.path in self.failing:
            raise PermissionError(13, "Permission denied")
        if root.prefix and os.path.isfile(root.path + "/SKILL.md"):
            return [(f"{root.prefix}:{os.path.basename(root.path)}", root.path + "/SKILL.md")]
        found = []
        for name in sorted(os.listdir(root.path)):
            path = f"{root.path}/{name}/SKILL.md"
            if os.path.lexists(path):
                found.append((f"{root.prefix}:{name}" if root.prefix else name, path))
        return found


def write(root: Path, name: str, head: str = "", *, body: str = "1. Go.") -> str:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\n{head or 'name: ' + name}\n---\n{body}\n")
    return str(folder / "SKILL.md")


def load(tmp_path: Path, *roots: SkillRoot, **options: Any) -> Inventory:
    return load_skills(Host(*roots), {}, None, state_root=str(tmp_path / "state"), **options)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the test are old enough to be believed."""
    real = time.time_ns
    monkeypatch.setattr(module, "now_ns", lambda: real() + LATER)


def test_precedence_and_duplicates_by_name(tmp_path: Path) -> None:
    mine, project, plugin = tmp_path / "mine", tmp_path / "project", tmp_path / "plugin"
    first = write(mine, "review", "triggers: [mine]")
    second = write(project, "review", "triggers: [theirs]")
    write(project, "deploy")
    write(plugin, "review")
    found = load(
        tmp_path,
        SkillRoot(str(mine), "personal"),
        SkillRoot(str(project), "project"),
        SkillRoot(str(plugin), "plugin", "acme"),
    )
    assert [(skill.name, skill.scope) for skill in found.skills] == [
        ("review", "personal"), ("deploy", "project"), ("acme:review", "plugin"),
    ]  # fmt: skip
    assert found.skills[0].triggers == ("mine",)
    assert found.shadowed == [(second, first)]
    assert [root.scope for root in found.roots] == ["personal", "project", "plugin"]


def test_links_and_duplicates_by_real_path(tmp_path: Path) -> None:
    root, away = tmp_path / "root", tmp_path / "away"
    target = write(away, "target")
    write(root, "plain")
    (root / "again").symlink_to(root / "plain")
    (root / "linked").symlink_to(away / "target")
    (root / "zzz").mkdir()
    (root / "zzz" / "SKILL.md").symlink_to(target)
    (root / "dangling").symlink_to(tmp_path / "nowhere")
    (root / "loop").symlink_to(root / "loop")
    (root / "file").write_text("x")
    found = load(tmp_path, SkillRoot(str(root), "personal"))
    assert [skill.name for skill in found.skills] == ["again", "linked"]
    assert found.skills[1].label == "target"
    assert found.shadowed == [
        (f"{root}/plain/SKILL.md", f"{root}/again/SKILL.md"),
        (f"{root}/zzz/SKILL.md", f"{root}/linked/SKILL.md"),
    ]
    assert found.skipped == []


def test_hard_links_are_two_skills(tmp_path: Path) -> None:
    path = write(tmp_path / "root", "one")
    (tmp_path / "root" / "two").mkdir()
    os.link(path, tmp_path / "root" / "two" / "SKILL.md")
    found = load(tmp_path, SkillRoot(str(tmp_path / "root"), "personal"))
    assert [skill.name for skill in found.skills] == ["one", "two"]


def test_roots_are_taken_once_by_real_path(tmp_path: Path) -> None:
    """A home that is the repository: its folder is both, and counts as personal."""
    root = tmp_path / "root"
    write(root, "one")
    (tmp_path / "link").symlink_to(root)
    found = load(tmp_path, SkillRoot(str(root), "personal"), SkillRoot(str(tmp_path / "link"), "project"))
    assert [skill.scope for skill in found.skills] == ["personal"]
    assert [root.path for root in found.roots] == [str(root)]
    assert found.shadowed == []
    assert str(tmp_path / "link") in found.depends_on


def test_roots_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    missing, file, bad = str(tmp_path / "missing"), str(tmp_path / "file"), tmp_path / "bad"
    write(tmp_path / "good", "one")
    bad.mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    places = [missing, file, str(tmp_path / "loop"), file + "/below", str(bad), str(tmp_path / "good"), "a\0b"]
    host = Host(*[SkillRoot(path, "personal") for path in places], depends=("settings.json",))
    host.failing.add(str(bad))
    found = load_skills(host, {}, None, state_root=str(tmp_path / "state"))
    assert [skill.name for skill in found.skills] == ["one"]
    assert [root.path for root in found.roots] == [str(bad), str(tmp_path / "good")]
    reasons = dict(found.skipped)
    assert reasons[file] == "is no folder"
    assert reasons[str(bad)] == "can't be read: Permission denied"
    assert "can't be read" in reasons[str(tmp_path / "loop")]
    assert missing not in reasons
    assert found.depends_on[0] == "settings.json"
    assert {missing, file, str(tmp_path / "state" / "skills.yaml")} <= set(found.depends_on)


def test_skills_that_cannot_be_read_cost_only_themselves(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "good")
    (root / "folder" / "SKILL.md").mkdir(parents=True)
    (root / "utf16").mkdir()
    (root / "utf16" / "SKILL.md").write_bytes("---\nname: x\n---\n".encode("utf-16"))
    (root / "dangling").mkdir()
    (root / "dangling" / "SKILL.md").symlink_to(tmp_path / "nowhere")
    (root / "loop").mkdir()
    (root / "loop" / "SKILL.md").symlink_to("SKILL.md")
    write(root, "bad\nname")
    (root / "fifo").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(root / "pipe")
        os.mkfifo(root / "fifo" / "SKILL.md")
    found = load(tmp_path, SkillRoot(str(root), "personal"))
    assert [skill.name for skill in found.skills] == ["good"]
    reasons = {os.path.basename(os.path.dirname(path)): why for path, why in found.skipped}
    assert reasons["folder"] == "is a folder"
    assert "UTF-8" in reasons["utf16"]
    assert reasons["dangling"] == "is a link to nothing"
    assert reasons["loop"].startswith("can't be read")
    assert reasons["bad\nname"] == "its name holds a control character"
    if hasattr(os, "mkfifo"):
        assert reasons["fifo"] == "is no regular file"


def test_a_skill_that_is_skipped_leaves_its_name_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "mine" / "review" / "SKILL.md").mkdir(parents=True)
    write(tmp_path / "project", "review")
    found = load(
        tmp_path, SkillRoot(str(tmp_path / "mine"), "personal"), SkillRoot(str(tmp_path / "project"), "project")
    )
    assert [(skill.name, skill.scope) for skill in found.skills] == [("review", "project")]


def test_a_packaged_folder_that_is_the_skill_is_called_by_its_frontmatter(tmp_path: Path) -> None:
    write(tmp_path, "1.0.0", "name: rooty")
    write(tmp_path, "unnamed", "description: d")
    write(tmp_path / "skills", "folder", "name: label")
    found = load(
        tmp_path,
        SkillRoot(str(tmp_path / "1.0.0"), "plugin", "acme"),
        SkillRoot(str(tmp_path / "unnamed"), "plugin", "acme"),
        SkillRoot(str(tmp_path / "skills"), "plugin", "acme"),
    )
    assert [(skill.name, skill.label) for skill in found.skills] == [
        ("acme:rooty", None), ("acme:unnamed", None), ("acme:folder", "label"),
    ]  # fmt: skip


def test_what_the_host_hides_or_keeps_from_the_model(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        write(tmp_path / "root", name, "routing: on")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "skills.yaml").write_text("two:\n  routing: on\n")
    found = load(tmp_path, SkillRoot(str(tmp_path / "root"), "personal", hidden=("one",), unroutable=("two",)))
    assert [(skill.name, skill.routing_off, skill.routing_on) for skill in found.skills] == [
        ("three", False, False), ("two", True, False),
    ]  # fmt: skip
    assert found.skills[1].sources["routing"] == "host settings"
    assert found.skipped == [(str(tmp_path / "root/one/SKILL.md"), "is switched off in the host's own settings")]


# ---------------------------------------------------------------------------------------------- overlays


def test_overlays(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "one", "triggers: [own]\nrouting: off")
    write(root, "folder", "name: label\ntriggers: [own]")
    write(root, "two", "name: one\ntriggers: [own]")
    state, project = tmp_path / "state", tmp_path / "project.yaml"
    state.mkdir()
    (state / "skills.yaml").write_text(
        "one:\n  triggers: [person]\nlabel:\n  triggers: [by label]\nabsent: {routing: on}\n"
    )
    project.write_text("one:\n  triggers: [project]\n  routing: on\n  contract: {version: 1}\nbroken: [\n")
    found = load(tmp_path, SkillRoot(str(root), "personal"), trusted_overlay=str(project))
    folder, one, two = found.skills
    assert folder.triggers == ("by label",)
    assert two.triggers == ("own",), "an installed skill of that name goes before a label"
    assert one.triggers == ("person",)
    assert (one.routing_on, one.contract) == (True, {"version": 1})
    assert one.sources["triggers"] == "skills.yaml"
    assert one.sources["others:triggers"] == ".gstack/skills.yaml, SKILL.md"
    assert one.sources["contract"] == ".gstack/skills.yaml"
    assert [path for path, _ in found.skipped] == [str(project)]
    assert {str(state / "skills.yaml"), str(project)} <= set(found.depends_on)


def test_an_overlay_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "root", "one", "triggers: [own]")
    (tmp_path / "state" / "skills.yaml").mkdir(parents=True)
    found = load(tmp_path, SkillRoot(str(tmp_path / "root"), "personal"))
    assert found.skills[0].triggers == ("own",)
    assert found.skipped == [(str(tmp_path / "state/skills.yaml"), "is a folder")]


# ----------------------------------------------------------------------------------------------- rebuild


def packed(known: Any) -> Any:
    """What the snapshot does with it: through marshal and back."""
    return marshal.loads(marshal.dumps(known))


def test_only_changed_files_are_parsed_again(tmp_path: Path, settled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    for name in ("one", "two", "three", "four"):
        write(root, name, f"triggers: [{name} old]")
    (root / "utf16").mkdir()
    (root / "utf16" / "SKILL.md").write_bytes(b"\xff\xfe-\0")
    (root / "four" / "gstack.yaml").write_text("routing: off")
    parsed: list[str] = []
    real = module.read_row
    monkeypatch.setattr(
        module,
        "read_row",
        lambda path, *old: parsed.append(os.path.basename(os.path.dirname(path))) or real(path, *old),
    )
    before = load(tmp_path, SkillRoot(str(root), "personal"))
    assert sorted(parsed) == ["four", "one", "three", "two", "utf16"]
    assert len(before.known) == 5
    assert before.stamps[f"{root}/four/gstack.yaml"] is not None
    parsed.clear()
    same = load(tmp_path, SkillRoot(str(root), "personal"), known=packed(before.known))
    assert parsed == []
    assert (same.skills, same.skipped, same.known) == (before.skills, before.skipped, before.known)

    write(root, "two", "triggers: [two new]")
    (root / "three" / "gstack.yaml").write_text("routing: off")
    (root / "four" / "gstack.yaml").unlink()
    write(root, "five")
    (root / "one" / "SKILL.md").unlink()
    after = load(tmp_path, SkillRoot(str(root), "personal"), known=packed(same.known))
    assert sorted(parsed) == ["five", "four", "three", "two"]
    anew = load(tmp_path, SkillRoot(str(root), "personal"))
    assert (after.skills, after.skipped, after.known) == (anew.skills, anew.skipped, anew.known)
    assert [skill.name for skill in after.skills] == ["five", "four", "three", "two"]


def test_known_skills_get_todays_name_scope_and_overlay(tmp_path: Path, settled: None) -> None:
    root = tmp_path / "root"
    write(root, "one", "name: label\ntriggers: [own]")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "skills.yaml").write_text("one: {triggers: [mine]}")
    before = load(tmp_path, SkillRoot(str(root), "personal"))
    assert before.skills[0].triggers == ("mine",)
    (tmp_path / "state" / "skills.yaml").unlink()
    after = load(tmp_path, SkillRoot(str(root), "plugin", "acme"), known=packed(before.known))
    assert (after.skills[0].name, after.skills[0].scope) == ("acme:one", "plugin")
    assert (after.skills[0].label, after.skills[0].triggers) == ("label", ("own",))
    assert after.skills == load(tmp_path, SkillRoot(str(root), "plugin", "acme")).skills


def test_a_file_that_changed_just_now_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next change may leave the same stamp behind (as in git)."""
    path = write(tmp_path / "root", "one", "triggers: [old]")
    found = load(tmp_path, SkillRoot(str(tmp_path / "root"), "personal"))
    assert list(found.stamps) == [path]
    monkeypatch.setattr(module, "read_row", lambda path, old: (None, "", ("new",), False, None, "", {}, ""))
    again = load(tmp_path, SkillRoot(str(tmp_path / "root"), "personal"), known=packed(found.known))
    assert again.skills[0].triggers == ("new",)
    (tmp_path / "root/one/gstack.yaml").write_text("routing: off")
    assert load(tmp_path, SkillRoot(str(tmp_path / "root"), "personal")).known == {}


@pytest.mark.parametrize(
    ("head", "yaml"),
    [
        ("name: one\ntriggers: [a]\ncontract: {version: 1}", False),
        ("name: one\ntriggers: [a]\nbad: [", True),
        ("name: one\ntriggers: {a: b}", False),
        ("just text", True),
    ],
)
def test_an_edit_below_the_head_needs_no_yaml(
    head: str, yaml: bool, tmp_path: Path, settled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    write(root, "one", head, body="1. Go.")
    before = load(tmp_path, SkillRoot(str(root), "personal"))
    write(root, "one", head, body="1. Stay here.\n---\nx")
    loaded: list[str] = []
    real = skills.read_head
    monkeypatch.setattr(skills, "read_head", lambda data: loaded.append("head") or real(data))
    after = load(tmp_path, SkillRoot(str(root), "personal"), known=packed(before.known))
    assert bool(loaded) == yaml
    assert after.skills == load(tmp_path, SkillRoot(str(root), "personal")).skills
    assert after.skills[0].first_step == "Stay here."
    loaded.clear()
    (root / "one" / "gstack.yaml").write_text("routing: off")
    again = load(tmp_path, SkillRoot(str(root), "personal"), known=packed(after.known))
    assert loaded
    assert again.skills == load(tmp_path, SkillRoot(str(root), "personal")).skills


NAMES = st.sampled_from(["a", "b", "c", "d"])
CHANGES = st.lists(
    st.tuples(st.sampled_from(["write", "body", "beside", "drop", "link", "folder"]), NAMES, st.integers(0, 9)),
    max_size=6,
)


@given(CHANGES, CHANGES)
def test_incremental_and_full_give_the_same(tmp_path_factory: pytest.TempPathFactory, first: Any, second: Any) -> None:
    base = tmp_path_factory.getbasetemp() / "incremental"
    shutil.rmtree(base, ignore_errors=True)
    root = base / "root"
    root.mkdir(parents=True)
    real, module.now_ns = module.now_ns, lambda: time.time_ns() + LATER
    try:
        _change(root, first)
        before = load(base, SkillRoot(str(root), "personal"))
        _change(root, second)
        fast = load(base, SkillRoot(str(root), "personal"), known=packed(before.known))
        slow = load(base, SkillRoot(str(root), "personal"))
    finally:
        module.now_ns = real
    assert fast.skills == slow.skills
    assert (fast.skipped, fast.shadowed, fast.stamps) == (slow.skipped, slow.shadowed, slow.stamps)


TICKS = itertools.count(1_000_000_000)


def _change(root: Path, changes: "list[tuple[str, str, int]]") -> None:
    for what, name, number in changes:
        folder = root / name
        if folder.is_symlink():
            folder.unlink()
        if what not in ("beside", "body"):
            shutil.rmtree(folder, ignore_errors=True)
        if what == "write":
            _date(Path(write(root, name, f"name: n{number}\ntriggers: [{'x' * number} y]")))
        elif what == "body" and (folder / "SKILL.md").is_file():
            text = (folder / "SKILL.md").read_text()
            (folder / "SKILL.md").write_text(text.rpartition("---\n")[0] + f"---\n1. Do {number}.\n")
            _date(folder / "SKILL.md")
        elif what == "beside" and folder.is_dir():
            (folder / "gstack.yaml").write_text("routing: off" if number % 2 else "routing: on")
            _date(folder / "gstack.yaml")
        elif what == "link":
            folder.symlink_to(root / "abcd"[number % 4])
        elif what == "folder":
            (folder / "SKILL.md").mkdir(parents=True)


def _date(path: Path) -> None:
    """A stamp of its own, however fast the test is (the racy case has a test of its own)."""
    tick = next(TICKS)
    os.utime(path, ns=(tick, tick))


def test_two_thousand_skills(tmp_path: Path, settled: None) -> None:
    root = tmp_path / "root"
    for number in range(2000):
        write(
            root,
            f"skill-{number:04}",
            f"name: skill-{number:04}\ntriggers:\n  - do the {number} thing\n  - thing {number}",
        )
    found = load(tmp_path, SkillRoot(str(root), "personal"))
    assert len(found.skills) == 2000
    start = time.process_time()
    again = load(tmp_path, SkillRoot(str(root), "personal"), known=found.known)
    assert time.process_time() - start < 1.0, "nothing is parsed twice"
    assert again.skills == found.skills


def test_import_is_light() -> None:
    """The hook's slow road imports this module: PyYAML only where a skill is parsed, and nothing that is heavy."""
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]; import gstack.inventory; "
        "heavy = 'yaml pathlib typer pluggy platformdirs importlib.metadata dataclasses json logging'.split(); "
        "print(' '.join(m for m in heavy if m in sys.modules))"
    )
    core = str(Path(module.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-IS", "-c", code, core], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""

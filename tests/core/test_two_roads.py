"""The hook's two roads give the same answer: the stored index and the one made anew, over random changes and clocks."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gstack import snapshot, snapshot_build
from gstack.api import SkillRoot
from gstack.config import read_config
from gstack.launcher import import_paths
from gstack.plan import Plan
from gstack.snapshot import load_index, load_plan
from gstack_hosts.claude_code.skills import skills_in

FACTS = [
    "roots", "count", "names", "labels", "contracts", "routing", "scorers", "first_steps", "sources", "skipped",
    "shadowed",
]  # fmt: skip
WORDS = ["debug", "site", "review", "broken", "diff", "test", "page"]
names = st.sampled_from(["alpha", "beta", "gamma", "de\u0142ta"])
triggers = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), max_size=3)
steps = st.one_of(
    st.tuples(st.just("write"), names, triggers),
    st.tuples(st.just("delete"), names, st.just([])),
    st.tuples(st.just("link"), names, st.just([])),
    st.tuples(st.just("beside"), names, triggers),
    st.tuples(st.just("alone"), names, st.just([])),
    st.tuples(st.just("bare"), names, st.just([])),
    st.tuples(st.just("plugin"), names, st.just([])),
    st.tuples(st.just("shut"), names, st.just([])),
    st.tuples(st.just("open"), names, st.just([])),
    st.tuples(st.just("swap"), names, st.just([])),
    st.tuples(st.just("old date"), names, triggers),
    st.tuples(st.just("future date"), names, triggers),
    st.tuples(st.just("clock"), names, st.just([])),
    st.tuples(st.just("look"), names, st.just([])),
)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return load_plan(str(tmp_path_factory.mktemp("plan")), import_paths(), {})


def text(words: list[str]) -> str:
    return "---\nname: x\ntriggers:\n" + "".join(f"  - {word}\n" for word in words) + "---\nbody\n"


def change(folder: Path, what: str, name: str, words: list[str], clock: list[int]) -> None:
    skill = folder / name
    if what == "delete":
        shutil.rmtree(skill, ignore_errors=True) if not skill.is_symlink() else skill.unlink()
    elif what == "clock":
        clock[0] += {"alpha": 3_000_000_000, "beta": -3_000_000_000}.get(name, 500_000_000)
    elif what == "link":
        if not skill.exists() and not skill.is_symlink():
            skill.symlink_to(folder / "alpha")
    elif what in ("alone", "bare"):
        with contextlib.suppress(OSError):  # a link to itself, a folder that may not be looked into
            (skill / ("gstack.yaml" if what == "alone" else "SKILL.md")).unlink()
    elif what == "plugin":
        with contextlib.suppress(OSError):
            (skill / ".claude-plugin").mkdir(parents=True, exist_ok=True)
            (skill / ".claude-plugin/plugin.json").write_text(json.dumps({"name": name}))
    elif what in ("shut", "open"):
        if skill.is_dir():
            skill.chmod(0o600 if what == "shut" else 0o700)
    elif what == "swap":  # the folder moves aside, and a link to it takes its place
        if skill.is_dir() and not skill.is_symlink():
            aside = folder.parent / f"{name}-{len(os.listdir(folder.parent))}"
            skill.rename(aside)
            skill.symlink_to(aside)
    elif what != "look":
        if skill.is_symlink():
            skill.unlink()
        skill.mkdir(exist_ok=True)
        skill.chmod(0o700)
        file = skill / ("gstack.yaml" if what == "beside" else "SKILL.md")
        file.write_text("triggers: [" + ", ".join(words) + "]\n" if what == "beside" else text(words))
        if what == "old date":
            os.utime(file, (1, 1))
        elif what == "future date":
            os.utime(file, (4_000_000_000, 4_000_000_000))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=st.lists(steps, min_size=1, max_size=8))
def test_both_roads_give_the_same_index(
    history: list[tuple[str, str, list[str]]], plan: Plan, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("roads")
    folder = base / "home" / ".claude" / "skills"
    folder.mkdir(parents=True)
    env = {"HOME": str(base / "home")}
    host = plan.get("gstack.host_adapters", "claude-code")
    config = read_config(str(base))
    clock = [5_000_000_000]  # late enough for what is stored to be believed
    real = snapshot.now_ns

    def stepped() -> int:
        return real() + clock[0]

    snapshot_build.now_ns = stepped  # type: ignore[attr-defined]
    try:
        for what, name, words in history:
            change(folder, what, name, words, clock)
            stored = load_index(str(base / "kept"), host, env, str(base), config, plan)
            anew = load_index(str(base / "fresh"), host, env, str(base), config, plan)
            shutil.rmtree(base / "fresh", ignore_errors=True)
            for slot in FACTS:
                assert getattr(stored, slot) == getattr(anew, slot), (slot, what, name)
    finally:
        snapshot_build.now_ns = real  # type: ignore[attr-defined]


def test_a_trusted_snapshot_is_really_used(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this the property above would also hold if every run took the slow road."""
    folder = tmp_path / "home/.claude/skills/alpha"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text(["debug this"]))
    env = {"HOME": str(tmp_path / "home")}
    host = plan.get("gstack.host_adapters", "claude-code")
    config = read_config(str(tmp_path))
    monkeypatch.setattr(snapshot_build, "now_ns", lambda: snapshot.now_ns() + 5_000_000_000)
    load_index(str(tmp_path / "kept"), host, env, str(tmp_path), config, plan)
    monkeypatch.setattr(snapshot_build, "build_index", lambda *_, **__: pytest.fail("the slow road was taken"))
    assert load_index(str(tmp_path / "kept"), host, env, str(tmp_path), config, plan).names


def tree(base: Path) -> None:
    """A folder of skills and of what is none, and a packaged folder that is itself the skill."""
    for name in ("plain", "with-yaml", "linked-file"):
        (base / "root" / name).mkdir(parents=True)
        (base / "root" / name / "SKILL.md").write_text(text([name]))
    (base / "root/with-yaml/gstack.yaml").write_text("routing: off")
    for name in ("empty", ".hidden", "dangling"):
        (base / "root" / name).mkdir()
    (base / "root/empty/.mark").mkdir()
    (base / "root/README.md").write_text("x")
    for name in ("one", "two"):
        (base / "away" / name).mkdir(parents=True)
        (base / "away" / name / "SKILL.md").write_text(text([name]))
    (base / "away/one/.mark").mkdir()
    (base / "away/one/.mark/x").write_text("")
    (base / "root/linked").symlink_to(base / "away/one")
    (base / "root/linked-file/SKILL.md").unlink()
    (base / "root/linked-file/SKILL.md").symlink_to(base / "away/two/SKILL.md")
    (base / "root/dangling/SKILL.md").symlink_to(base / "away/later.md")
    (base / "root/plain/gstack.yaml").symlink_to(base / "away/later.yaml")
    (base / "pack").mkdir()
    (base / "pack/SKILL.md").write_text(text(["packed"]))


def replaced(path: Path, content: str) -> None:
    """As editors do it: another file takes its place."""
    path.with_name("new").write_text(content)
    path.with_name("new").replace(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a gstack.yaml appears": lambda base: (base / "root/linked-file/gstack.yaml").write_text("routing: off"),
    "one appears behind a link": lambda base: (base / "away/one/gstack.yaml").write_text("routing: off"),
    "one goes": lambda base: (base / "root/with-yaml/gstack.yaml").unlink(),
    "one changes": lambda base: (base / "root/with-yaml/gstack.yaml").write_text("routing: on "),
    "what one is a link to appears": lambda base: (base / "away/later.yaml").write_text("routing: off"),
    "a SKILL.md appears": lambda base: (base / "root/empty/SKILL.md").write_text(text(["new"])),
    "in a hidden folder": lambda base: (base / "root/.hidden/SKILL.md").write_text(text(["new"])),
    "what it is a link to appears": lambda base: (base / "away/later.md").write_text(text(["new"])),
    "it goes": lambda base: (base / "root/plain/SKILL.md").unlink(),
    "it is replaced by one of the same size": lambda base: replaced(base / "root/plain/SKILL.md", text(["plane"])),
    "it is a link and points elsewhere": lambda base: (
        (base / "root/linked-file/SKILL.md").unlink(),
        (base / "root/linked-file/SKILL.md").symlink_to(base / "away/one/SKILL.md"),
    ),
    "it becomes a folder": lambda base: (
        (base / "root/plain/SKILL.md").unlink(),
        (base / "root/plain/SKILL.md").mkdir(),
    ),
    "a folder is a link and points elsewhere": lambda base: (
        (base / "root/linked").unlink(),
        (base / "root/linked").symlink_to(base / "away/two"),
    ),
    "what it is a link to is another folder": lambda base: (
        (base / "away/one").rename(base / "away/gone"),
        (base / "away/two").rename(base / "away/one"),
    ),
    "a folder goes": lambda base: shutil.rmtree(base / "root/plain"),
    "a folder gets another name": lambda base: (base / "root/plain").rename(base / "root/other"),
    "a folder becomes a link to itself moved": lambda base: (
        (base / "root/plain").rename(base / "away/moved"),
        (base / "root/plain").symlink_to(base / "away/moved"),
    ),
    "a file becomes a folder": lambda base: (
        (base / "root/README.md").unlink(),
        shutil.copytree(base / "away/two", base / "root/README.md"),
    ),
    "a skill's folder can't be read": lambda base: (base / "root/plain").chmod(0),
    "another folder can't be read": lambda base: (base / "root/empty").chmod(0),
    "the root can't be read": lambda base: (base / "root").chmod(0),
    "a skill's folder becomes a plugin": lambda base: (
        (base / "root/plain/.mark").mkdir(),
        (base / "root/plain/.mark/x").write_text(""),
    ),
    "one without a skill becomes one": lambda base: (base / "root/empty/.mark/x").write_text(""),
    "one that was a plugin is none": lambda base: (base / "away/one/.mark/x").unlink(),
    "a packaged skill changes": lambda base: (base / "pack/SKILL.md").write_text(text(["other"])),
    "a gstack.yaml appears beside it": lambda base: (base / "pack/gstack.yaml").write_text("routing: off"),
    "it goes, and the folder holds skills": lambda base: (
        (base / "pack/SKILL.md").unlink(),
        shutil.copytree(base / "away/two", base / "pack/two"),
    ),
}


def host_of(base: Path, **more: Any) -> Any:
    """A host for which a skill's folder with a mark is a plugin of one skill too."""

    def skill_places(env: Any, cwd: Any) -> tuple[list[SkillRoot], list[str]]:
        roots = [SkillRoot(str(base / "root"), "personal"), SkillRoot(str(base / "pack"), "plugin", "acme")]
        marked = sorted((base / "root").glob("*/.mark/x"))
        return [*roots, *[SkillRoot(str(one.parents[1]), "plugin", "marked") for one in marked]], list(map(str, marked))

    return SimpleNamespace(id="test", skill_variables=(), skill_places=skill_places, skills_in=skills_in, **more)


@pytest.mark.parametrize("more", [{}, {"skill_markers": (".mark/x",)}], ids=["any file", "known files"])
@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_seen(
    what: str, more: dict[str, Any], plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "one without a skill becomes one" and not more:
        pytest.skip("the folder's own stamp doesn't show what appears further below")
    tree(tmp_path)
    host = host_of(tmp_path, **more)
    config = read_config(str(tmp_path))
    monkeypatch.setattr(snapshot_build, "now_ns", lambda: snapshot.now_ns() + 5_000_000_000)
    rebuilt: list[str] = []
    real = snapshot_build.build_index
    monkeypatch.setattr(
        snapshot_build, "build_index", lambda path, *a, **k: (rebuilt.append(path), real(path, *a, **k))[1]
    )

    def both() -> dict[str, Any]:
        found = []
        for root in ("kept", "anew"):
            index = load_index(str(tmp_path / root), host, {}, None, config, plan)
            found.append({fact: getattr(index, fact) for fact in FACTS})
        shutil.rmtree(tmp_path / "anew")
        assert found[0] == found[1]
        return found[0]

    before = both()
    rebuilt.clear()
    assert both() == before
    assert len(rebuilt) == 1, "the one of both that is stored nowhere"
    try:
        CHANGES[what](tmp_path)
        after = both()
    finally:
        for path in (tmp_path / "root", tmp_path / "root/plain", tmp_path / "root/empty"):
            if path.exists():
                path.chmod(0o700)
    harmless = what == "a folder becomes a link to itself moved" or (what.endswith("be read") and os.geteuid() == 0)
    assert after != before or harmless
    both()


def test_where_an_index_lies_stays_the_same() -> None:
    """In every process and Python: another place would cost each folder a slow hook."""
    found = snapshot.index_path("/r", "claude-code", "\0\0/home/u\0", "/home/u/work")
    assert found == "/r/snapshot/skills-5b931398f67e1049"


places = st.tuples(st.sampled_from(["a", "b"]), st.text(max_size=40), st.one_of(st.none(), st.text(max_size=40)))


@given(places, places)
def test_each_folder_has_an_index_of_its_own(one: Any, other: Any) -> None:
    same = (*one[:2], one[2] or "") == (*other[:2], other[2] or "")
    key = "\0".join([*one[:2], one[2] or ""]) == "\0".join([*other[:2], other[2] or ""])
    assert (snapshot.index_path("", *one) == snapshot.index_path("", *other)) == (same or key)


def test_names_that_are_no_text(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    try:
        os.makedirs(os.fsencode(root) + b"/na\xffme")
    except OSError:
        pytest.skip("this file system takes only text")
    (tmp_path / "pack").mkdir()
    (root / "na\udcffme" / "SKILL.md").write_text(text(["debug this"]))
    monkeypatch.setattr(snapshot_build, "now_ns", lambda: snapshot.now_ns() + 5_000_000_000)
    config = read_config(str(tmp_path))

    def load() -> Any:
        return load_index(str(tmp_path / "kept"), host_of(tmp_path, skill_markers=()), {}, "/\ud800", config, plan)

    load()
    monkeypatch.setattr(snapshot_build, "build_index", lambda *_, **__: pytest.fail("the slow road was taken"))
    assert "control character" in load().skipped[0][1]


def test_two_folders_whose_indexes_share_a_file(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_build, "now_ns", lambda: snapshot.now_ns() + 5_000_000_000)
    monkeypatch.setattr(snapshot, "index_path", lambda root, *_: f"{root}/snapshot/skills-one")
    for name in ("one", "two"):
        (tmp_path / name / ".claude/skills" / name).mkdir(parents=True)
        (tmp_path / name / ".claude/skills" / name / "SKILL.md").write_text(text(["debug this"]))
    host = plan.get("gstack.host_adapters", "claude-code")
    config = read_config(str(tmp_path))
    for name in ("one", "two", "one"):
        index = load_index(str(tmp_path / "kept"), host, {"HOME": str(tmp_path)}, str(tmp_path / name), config, plan)
        assert list(index.names) == [name]

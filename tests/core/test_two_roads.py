"""The hook's two roads give the same answer: the stored index and the one made anew, over random changes and clocks."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gstack import snapshot, snapshot_build
from gstack.config import read_config
from gstack.launcher import import_paths
from gstack.plan import Plan
from gstack.snapshot import SkillIndex, load_index, load_plan

FACTS = [*SkillIndex.__slots__[1:], "first_steps", "sources", "skipped", "shadowed"]
WORDS = ["debug", "site", "review", "broken", "diff", "test", "page"]
names = st.sampled_from(["alpha", "beta", "gamma", "delta"])
triggers = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), max_size=3)
steps = st.one_of(
    st.tuples(st.just("write"), names, triggers),
    st.tuples(st.just("delete"), names, st.just([])),
    st.tuples(st.just("link"), names, st.just([])),
    st.tuples(st.just("beside"), names, triggers),
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
    elif what != "look":
        if skill.is_symlink():
            skill.unlink()
        skill.mkdir(exist_ok=True)
        file = skill / ("gstack.yaml" if what == "beside" else "SKILL.md")
        file.write_text("triggers: [" + ", ".join(words) + "]\n" if what == "beside" else text(words))
        if what == "old date":
            os.utime(file, (1, 1))
        elif what == "future date":
            os.utime(file, (4_000_000_000, 4_000_000_000))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
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
    clock = [0]
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

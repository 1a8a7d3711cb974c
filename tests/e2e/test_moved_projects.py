"""The hook sees that a session's folder leads elsewhere, or lies in another repository, than when it looked last."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gstack.lowlevel import POSIX
from gstack.sandbox import Sandbox
from gstack.snapshot import RACY_NS

pytestmark = pytest.mark.skipif(not POSIX, reason="links need rights on Windows")


def skill(folder: Path, name: str, trigger: str) -> None:
    path = folder / ".claude/skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ntriggers: [{trigger}]\n---\nbody\n")


@pytest.fixture
def asked(tmp_path: Path) -> Callable[[str, str], bytes]:
    """Asks a hook in a new session: ``asked(cwd, prompt)``."""
    box = Sandbox(str(tmp_path / "box"))
    box.configure(skill_routing="on", routed_skills="all")

    def ask(cwd: str, prompt: str) -> bytes:
        payload = {"session_id": f"s{time.time_ns()}", "cwd": cwd, "hook_event_name": "UserPromptSubmit"}
        reply = box.run("UserPromptSubmit", payload | {"prompt": prompt})
        assert (reply.code, reply.err) == (0, b"")
        return reply.out

    return ask


def settled() -> None:
    time.sleep(RACY_NS / 1e9 + 0.1)


@pytest.mark.parametrize("below", ["", "/sub"])
def test_a_link_that_moves(below: str, tmp_path: Path, asked: Callable[[str, str], bytes]) -> None:
    for version, trigger in (("v1", "violet walrus"), ("v2", "amber lynx")):
        skill(tmp_path / version, "rel", trigger)
        (tmp_path / version / "sub").mkdir()
        (tmp_path / version / ".git").mkdir()
    link = tmp_path / "current"
    link.symlink_to("v1")
    settled()
    cwd = f"{link}{below}"
    for _ in range(2):
        assert b"/rel" in asked(cwd, "violet walrus")
    link.unlink()
    link.symlink_to("v2")
    assert b"/rel" in asked(cwd, "amber lynx")
    assert not asked(cwd, "violet walrus")


@pytest.mark.parametrize("sort", ["folder with a HEAD", "empty folder", "file"])
def test_a_repository_that_is_none_any_more(sort: str, tmp_path: Path, asked: Callable[[str, str], bytes]) -> None:
    repository = tmp_path / "repo"
    skill(repository, "rel", "violet walrus")
    (repository / "sub").mkdir()
    git = repository / ".git"
    if sort == "file":
        git.write_text("gitdir: elsewhere\n")
    else:
        git.mkdir()
        if "HEAD" in sort:
            (git / "HEAD").write_text("ref: refs/heads/main\n")
    settled()
    cwd = str(repository / "sub")
    for _ in range(2):
        assert b"/rel" in asked(cwd, "violet walrus")
    git.unlink() if sort == "file" else shutil.rmtree(git)
    assert not asked(cwd, "violet walrus")

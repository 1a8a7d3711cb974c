"""The stored code: used when it is fresh, passed over when anything differs, never in the way."""

import os
import time
from pathlib import Path

import pytest

from gstack.lowlevel import POSIX
from gstack.sandbox import Sandbox

pytestmark = pytest.mark.skipif(not POSIX, reason="code is stored on POSIX only")

SKILL = "---\nname: qa\ntriggers: [qa test this]\n---\nbody\n"


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    made = Sandbox(str(tmp_path / "box"))
    made.add_skill("qa", SKILL)
    made.configure(skill_routing="on")
    time.sleep(2.1)
    for number in range(12):  # on a busy machine storing may run out of the time that it has after the answer
        assert hinted(made, f"warm-{number}")
        if number > 1 and list(Path(made.root, "snapshot").glob("code*")):
            return made
    pytest.fail("no code was stored")


def hinted(box: Sandbox, session: str) -> bool:
    payload = {"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": "qa test this"}
    reply = box.run("UserPromptSubmit", payload)
    assert (reply.code, reply.err) == (0, b"")
    return b"/qa" in reply.out


def stored(box: Sandbox) -> Path:
    (found,) = Path(box.root, "snapshot").glob("code*")
    return found


def test_code_is_stored_once_and_then_used(box: Sandbox) -> None:
    path = stored(box)
    before = path.stat()
    for number in range(3):
        assert hinted(box, f"s{number}")
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert before.st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", ["empty", "cut", "garbage", "folder", "gone", "other shape"])
def test_damaged_code_is_passed_over(box: Sandbox, damage: str) -> None:
    path = stored(box)
    data = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "gone":
        import marshal

        other = {"empty": b"", "cut": data[:5000], "garbage": b"\xff" * 999, "other shape": marshal.dumps((1, 2))}
        path.write_bytes(other[damage])
    assert hinted(box, "s")


def test_code_of_changed_sources_is_passed_over(box: Sandbox, tmp_path: Path) -> None:
    """The stored code of a copy of gstack is not used once a source of the copy has changed."""
    import shutil

    import gstack
    from gstack.launcher import import_paths, launcher_path, launcher_text

    copy = tmp_path / "copy"
    shutil.copytree(os.path.dirname(gstack.__file__), copy / "gstack", ignore=shutil.ignore_patterns("__pycache__"))
    launcher = Path(launcher_path(box.root))
    launcher.write_text(launcher_text(box.root, paths=[str(copy), *import_paths()]))
    stored(box).unlink()
    for number in range(4):
        assert hinted(box, f"c{number}")
    hint = copy / "gstack/routing/hint.py"
    hook = copy / "gstack/routing/hook.py"
    hook.write_text(hook.read_text() + "\n\ndef answer(ctx):\n    return Answer(inject='/qa CHANGED')\n")
    payload = {"session_id": "x", "hook_event_name": "UserPromptSubmit", "prompt": "qa test this"}
    assert b"CHANGED" in box.run("UserPromptSubmit", payload).out
    assert hint.exists()


def test_a_read_only_snapshot_folder_is_no_error(box: Sandbox) -> None:
    folder = Path(box.root, "snapshot")
    stored(box).unlink()
    folder.chmod(0o500)
    try:
        assert hinted(box, "r")
    finally:
        folder.chmod(0o700)

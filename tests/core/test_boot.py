"""The stored code: used when it is fresh, passed over when anything differs, never in the way."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gstack import bootstore
from gstack.launcher import import_paths, launcher_path, launcher_text
from gstack.lowlevel import POSIX
from gstack.sandbox import Sandbox

pytestmark = pytest.mark.skipif(not POSIX, reason="code is stored on POSIX only")

SKILL = "---\nname: qa\ntriggers: [qa test this]\n---\nbody\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    made = Sandbox(str(tmp_path_factory.mktemp("boot") / "box"))
    made.add_skill("qa", SKILL)
    made.configure(skill_routing="on")
    time.sleep(2.1)
    return made


@pytest.fixture
def box(made: Sandbox) -> Iterator[Sandbox]:
    """A sandbox whose hook runs from stored code."""
    settle(made)
    kept = Path(launcher_path(made.root)).read_text()
    yield made
    Path(launcher_path(made.root)).write_text(kept)
    for path in Path(made.root, "snapshot").glob("code*"):
        if path.is_dir():
            path.rmdir()


def settle(box: Sandbox) -> None:
    """Run until a run stores nothing: the first takes the slow road, later ones store what they came to call."""
    before: object = None
    for _ in range(12):  # on a busy machine storing may run out of the time that it has after the answer
        assert hinted(box)
        now = [(path.name, path.stat().st_mtime_ns) for path in sorted(Path(box.root, "snapshot").glob("code*"))]
        if now and now == before:
            return
        before = now
    pytest.fail("no code was stored, or it never settled")


def hinted(box: Sandbox) -> bool:
    """Whether a new session is given the hint."""
    payload = {
        "session_id": f"s{time.time_ns()}",
        "hook_event_name": "UserPromptSubmit",
        "prompt": "qa test this",
    }
    reply = box.run("UserPromptSubmit", payload)
    assert (reply.code, reply.err) == (0, b"")
    return b"/qa" in reply.out


def stored(box: Sandbox) -> Path:
    (found,) = [path for path in Path(box.root, "snapshot").glob("code*") if "~" not in path.name]
    return found


def waiting(box: Sandbox) -> Path:
    (found,) = Path(box.root, "snapshot").glob("code*~*")
    return found


def test_code_is_stored_once_and_then_used(box: Sandbox) -> None:
    path = stored(box)
    before = path.stat()
    for _ in range(3):
        assert hinted(box)
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
    assert hinted(box)


@pytest.mark.parametrize("damage", ["empty", "cut", "longer", "folder", "gone"])
def test_a_damaged_second_file_is_passed_over_and_made_anew(box: Sandbox, damage: str) -> None:
    path = waiting(box)
    data = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "gone":
        path.write_bytes({"empty": b"", "cut": data[:-1], "longer": data + b"x"}[damage])
    assert hinted(box)
    if damage != "folder":
        settle(box)
        assert waiting(box).stat().st_size


def test_a_second_file_whose_content_is_damaged_goes(box: Sandbox) -> None:
    """What is damaged is only seen where it is fetched: that hook fails open, and the next makes the file anew."""
    path = waiting(box)
    path.write_bytes(bytes(path.stat().st_size))
    assert bootstore.damaged(box.root) == [str(path)]
    for _ in range(3):
        box.run("UserPromptSubmit", {"session_id": "d", "hook_event_name": "UserPromptSubmit", "prompt": "/qa now"})
        box.run(
            "UserPromptSubmit",
            {"session_id": "d", "hook_event_name": "UserPromptSubmit", "prompt": "don't qa test this"},
        )
    settle(box)
    assert bootstore.damaged(box.root) == []


def test_where_code_cannot_be_stored_it_is_not_compiled(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hook would do that work for nothing."""

    def compiles(*_: object) -> None:
        raise AssertionError("compiled")

    main = stored(box)
    bootstore.remove_all(box.root)
    main.mkdir()
    monkeypatch.setattr(bootstore, "_loaded", compiles)
    with pytest.raises(IsADirectoryError):
        bootstore.store(str(main), ())
    monkeypatch.setattr(bootstore, "write_atomic", full)
    with pytest.raises(OSError, match="No space"):
        bootstore.store(str(main) + "-other", ())
    assert [path.name for path in Path(box.root, "snapshot").glob("code*")] == [main.name]
    assert hinted(box)


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_setup_takes_all_stored_code_away(box: Sandbox) -> None:
    assert stored(box)
    Path(box.root, "snapshot", "code2-old~x").mkdir()
    bootstore.remove_all(box.root)
    assert not list(Path(box.root, "snapshot").glob("code*"))
    assert list(Path(box.root, "snapshot").glob("skills-*"))


def test_a_function_that_was_never_called_is_there_when_it_is(box: Sandbox) -> None:
    """Prompts of another sort than the ones that the code was stored after get the right answer too."""
    for prompt, hint in {
        "please don't qa test this": False,
        "/qa now": False,
        "": False,
        "qa test this " * 900: False,
        "Qa Test THIS, s'il te plaît — “now”": True,
    }.items():
        reply = box.run(
            "UserPromptSubmit",
            {"session_id": f"p{time.time_ns()}", "hook_event_name": "UserPromptSubmit", "prompt": prompt},
        )
        assert (reply.code, reply.err, b"/qa" in reply.out) == (0, b"", hint), prompt[:40]


def test_runs_that_differ_settle_too(box: Sandbox) -> None:
    """Prompts that take one road and prompts that take another, in turn: each finds its code."""
    for _ in range(4):
        assert hinted(box)
        box.run("UserPromptSubmit", {"session_id": "t", "hook_event_name": "UserPromptSubmit", "prompt": "/qa now"})
        box.run("UserPromptSubmit", {"session_id": "", "hook_event_name": "UserPromptSubmit", "prompt": 3})
    before = [path.stat().st_mtime_ns for path in (stored(box), waiting(box))]
    for _ in range(2):
        assert hinted(box)
        box.run("UserPromptSubmit", {"session_id": "t", "hook_event_name": "UserPromptSubmit", "prompt": "/qa now"})
    assert [path.stat().st_mtime_ns for path in (stored(box), waiting(box))] == before


def test_code_of_changed_sources_is_passed_over(box: Sandbox, tmp_path: Path) -> None:
    """The stored code of a copy of gstack is not used once a source of the copy has changed."""
    import shutil

    import gstack

    copy = tmp_path / "copy"
    shutil.copytree(os.path.dirname(gstack.__file__), copy / "gstack", ignore=shutil.ignore_patterns("__pycache__"))
    launcher = Path(launcher_path(box.root))
    launcher.write_text(launcher_text(box.root, paths=[str(copy), *import_paths()]))
    stored(box).unlink()
    settle(box)
    hint = copy / "gstack/routing/hint.py"
    hook = copy / "gstack/routing/hook.py"
    hook.write_text(hook.read_text() + "\n\ndef answer(ctx):\n    return Answer(inject='/qa CHANGED')\n")
    payload = {"session_id": f"x{time.time_ns()}", "hook_event_name": "UserPromptSubmit", "prompt": "qa test this"}
    assert b"CHANGED" in box.run("UserPromptSubmit", payload).out
    assert hint.exists()


def test_a_read_only_snapshot_folder_is_no_error(box: Sandbox) -> None:
    folder = Path(box.root, "snapshot")
    stored(box).unlink()
    folder.chmod(0o500)
    try:
        assert hinted(box)
    finally:
        folder.chmod(0o700)

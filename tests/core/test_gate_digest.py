"""The digest of a skill's folder, and the digests that are kept (gate G4)."""

import hashlib
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack.gate import digest as module
from gstack.gate.digest import digest_of, installed_digest, skill_digest, skill_files

TREE = {"SKILL.md": b"one", "a/b.txt": b"two", "a.txt": b"three", "z/é.bin": b"\xff"}


def make(folder: Path, tree: "dict[str, bytes]" = TREE, *, old: bool = True) -> str:
    for path, data in tree.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return str(folder)


def test_the_digest_is_what_it_is_documented_to_be(tmp_path: Path) -> None:
    lines = sorted(
        path.encode() + b"\0" + hashlib.sha256(data).hexdigest().encode() + b"\n" for path, data in TREE.items()
    )
    assert skill_digest(make(tmp_path)) == "sha256:" + hashlib.sha256(b"".join(lines)).hexdigest()


def test_litter_is_no_part_of_a_skill_but_hidden_files_are(tmp_path: Path) -> None:
    before = skill_digest(make(tmp_path))
    make(tmp_path, {"__pycache__/x.pyc": b"x", "a/.DS_Store": b"x", ".git/config": b"x"})
    assert skill_digest(str(tmp_path)) == before
    make(tmp_path, {".hidden": b"x"})
    assert skill_digest(str(tmp_path)) != before


def test_a_link_to_a_file_counts_as_the_file_and_one_to_a_folder_not_at_all(tmp_path: Path) -> None:
    plain, linked = tmp_path / "plain", tmp_path / "linked"
    make(plain)
    make(linked, {path: data for path, data in TREE.items() if path != "a.txt"})
    os.symlink(plain / "a.txt", linked / "a.txt")
    os.symlink(plain, linked / "loop")
    assert skill_digest(str(linked)) == skill_digest(str(plain))


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.just("0" * 64), max_size=5))
def test_the_order_of_the_files_plays_no_part(files: "dict[str, str]") -> None:
    rows = list(files.items())
    assert digest_of(rows) == digest_of(rows[::-1])


def test_paths_cannot_be_confused_with_each_other() -> None:
    one, two = "1" * 64, "2" * 64
    assert digest_of([("a", one), ("b", two)]) != digest_of([("a", two), ("b", one)])


def test_what_was_computed_is_kept_until_a_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "skill")
    root = str(tmp_path / "root")
    later = time.time_ns() + 10_000_000_000
    monkeypatch.setattr(module, "time_ns", lambda: later)
    computed = []
    real = module.skill_digest
    monkeypatch.setattr(module, "skill_digest", lambda where: computed.append(where) or real(where))
    path = os.path.join(folder, "SKILL.md")
    first = installed_digest(root, path)
    assert installed_digest(root, path) == first == real(folder)
    assert len(computed) == 1
    make(tmp_path / "skill", {"SKILL.md": b"two"})
    assert installed_digest(root, path) == real(folder) != first
    make(tmp_path / "skill", {"new": b""})
    assert installed_digest(root, path) == real(folder)
    os.unlink(os.path.join(folder, "new"))
    assert installed_digest(root, path) == real(folder)
    assert len(computed) == 4


def test_a_file_that_changed_just_now_is_looked_at_each_time(tmp_path: Path) -> None:
    folder = make(tmp_path / "skill")
    installed_digest(str(tmp_path / "root"), os.path.join(folder, "SKILL.md"))
    assert not (tmp_path / "root" / "gate" / "digests").exists()


def test_too_many_files_cannot_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 3)
    assert installed_digest(str(tmp_path / "root"), os.path.join(make(tmp_path / "skill"), "SKILL.md")) is None


def test_a_missing_folder_cannot_be_told(tmp_path: Path) -> None:
    assert installed_digest(str(tmp_path), str(tmp_path / "none" / "SKILL.md")) is None
    with pytest.raises(OSError, match="none"):
        skill_files(str(tmp_path / "none"))

"""Where a page may be written that a person named by ``--html``."""

import os
import stat
from pathlib import Path

import pytest

from gstack.cli import main
from gstack.errors import StateError, UsageError
from gstack.report_page import write_page


def test_a_link_stays_a_link_and_the_file_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "real.html"
    target.write_text("<!DOCTYPE html>\nold")
    target.chmod(0o640)
    link = tmp_path / "link.html"
    link.symlink_to(target)
    write_page(str(link), "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_page_has_the_mode_of_a_document(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_page(str(tmp_path / "new.html"), "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new.html").stat().st_mode) == 0o640


def test_only_a_page_is_replaced(tmp_path: Path) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text('{"type": "user"}\n')
    with pytest.raises(StateError, match="no HTML page"):
        write_page(str(transcript), "<!doctype html>")
    assert transcript.read_text() == '{"type": "user"}\n'
    for before in ("", "\n<!doctype html>\nold"):
        (tmp_path / "page.html").write_text(before)
        write_page(str(tmp_path / "page.html"), "<!doctype html>new")
        assert (tmp_path / "page.html").read_text() == "<!doctype html>new"


def test_what_is_no_file_is_refused_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path in (str(pipe), str(link), os.devnull):
        with pytest.raises(StateError, match="no regular file"):
            write_page(path, "x")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_no_folder_is_made_and_no_name_is_none(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="its folder doesn't exist"):
        write_page(str(tmp_path / "none" / "x.html"), "x")
    assert not (tmp_path / "none").exists()
    with pytest.raises(UsageError, match="name of a file"):
        write_page("", "x")


@pytest.mark.parametrize(
    "command",
    [
        ["route", "eval", "cases.jsonl"],
        ["route", "report"],
        ["contract", "report"],
        ["replay"],
        ["gate", "simulate", "--bundle", "b.json"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_command_refuses_a_pipe_before_it_starts(
    command: list[str], home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    os.mkfifo(home / "pipe")
    assert main([*command, "--html", "pipe"]) == 3
    assert "pipe: it is no regular file" in capsys.readouterr().err
    assert main([*command, "--html", ""]) == (3 if command[0] == "gate" else 2)

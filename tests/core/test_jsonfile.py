"""Settings files on disk: what is kept, what is refused, and who wins when several write."""

import errno
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import gstack.jsonfile
import gstack.state
from gstack.errors import SettingsError
from gstack.jsonfile import BACKUPS, Edited, apply, backups, diff, plan, tidy
from gstack.jsontext import Patch, new_document, parse
from gstack.state import Lock

POSIX = os.name == "posix"


def adding(name, value=True):
    """An edit that sets one member of the document."""

    def edit(text):
        root = parse(text) if text is not None else None
        if root is None:
            return Edited(new_document({name: value}, text))
        patch = Patch(text, root)
        patch.put(root, name, value)
        return Edited(patch.result())

    return edit


def write(path, name, value=True):
    return apply(plan(str(path), adding(name, value)))


def files(folder):
    """What lies in ``folder``, without the lock that stays there."""
    return sorted(name for name in os.listdir(folder) if not name.endswith(".gstack-lock"))


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "conf" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(b'{"mine": 1}\n')
    return path


def test_a_change_is_written_with_a_private_backup(settings):
    write(settings, "ours")
    assert settings.read_bytes() == b'{"mine": 1,"ours": true}\n'
    [backup] = backups(str(settings))
    assert Path(backup).read_bytes() == b'{"mine": 1}\n'
    assert stat.S_IMODE(os.stat(backup).st_mode) == 0o600
    assert files(settings.parent) == ["settings.json", os.path.basename(backup)]


def test_a_change_that_changes_nothing_writes_nothing(settings):
    before = os.stat(settings)
    change = plan(str(settings), adding("mine", 1))
    assert change.before == change.after
    assert diff(change) == ""
    apply(change)
    assert os.stat(settings).st_mtime_ns == before.st_mtime_ns
    assert os.stat(settings).st_ino == before.st_ino
    assert os.listdir(settings.parent) == ["settings.json"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640, 0o664])
def test_the_mode_is_kept_whatever_the_umask(settings, mode):
    settings.chmod(mode)
    old = os.umask(0o077)
    try:
        write(settings, "ours")
    finally:
        os.umask(old)
    assert stat.S_IMODE(settings.stat().st_mode) == mode


def test_a_new_file_is_private_and_its_folder_is_made(tmp_path):
    path = tmp_path / "new" / "settings.json"
    write(path, "ours")
    assert json.loads(path.read_bytes()) == {"ours": True}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert backups(str(path)) == []


def test_the_newest_ten_backups_stay(settings):
    other = settings.parent / "settings.json.gstack-backup-notes.txt"
    other.write_text("not a backup")
    for number in range(BACKUPS + 4):
        write(settings, "ours", number)
    kept = [json.loads(Path(path).read_bytes()).get("ours") for path in backups(str(settings))]
    assert kept == list(range(BACKUPS + 2, 2, -1))
    assert other.exists()


def test_a_file_that_goes_leaves_a_backup(settings):
    apply(plan(str(settings), lambda text: Edited(None)))
    assert not settings.exists()
    assert len(backups(str(settings))) == 1


# -------------------------------------------------------------------------------------------------- links


def test_a_link_stays_a_link(settings, tmp_path):
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    real = dotfiles / "claude.json"
    os.replace(settings, real)
    settings.symlink_to(os.path.relpath(real, settings.parent))
    write(settings, "ours")
    assert settings.is_symlink()
    assert json.loads(real.read_bytes()) == {"mine": 1, "ours": True}
    assert files(dotfiles) == ["claude.json"], "backups belong beside the link, not into the dotfiles"
    assert len(backups(str(settings))) == 1


def test_a_dangling_link_gets_its_file(tmp_path):
    link, real = tmp_path / "settings.json", tmp_path / "real.json"
    link.symlink_to("real.json")
    write(link, "ours")
    assert link.is_symlink()
    assert json.loads(real.read_bytes()) == {"ours": True}
    apply(plan(str(link), lambda text: Edited(None)))
    assert link.is_symlink()
    assert not real.exists()


def test_a_link_into_a_missing_folder_is_refused(tmp_path):
    link = tmp_path / "settings.json"
    link.symlink_to("gone/settings.json")
    with pytest.raises(SettingsError, match="doesn't exist"):
        write(link, "ours")
    assert os.listdir(tmp_path) == ["settings.json"]


def test_a_link_to_itself_is_refused(tmp_path):
    link = tmp_path / "settings.json"
    link.symlink_to("settings.json")
    with pytest.raises(SettingsError, match=r"settings\.json can't be read"):
        write(link, "ours")


# ------------------------------------------------------------------------------------------------ refusals


@contextmanager
def untouched(path):
    """Nothing about the file and its folder changes inside, and a SettingsError ends it."""
    before = path.read_bytes() if path.is_file() else None
    names = files(path.parent)
    with pytest.raises(SettingsError) as caught:
        yield caught
    assert (path.read_bytes() if path.is_file() else None) == before
    assert files(path.parent) == names
    assert "\n" not in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "data", [b'{"a": 1,}', b"{// x\n}", b'{"a": ', b"\xff\xfe{\x00}\x00", b'{"a": "\xe9"}', b"\x00", b"[" * 5000]
)
def test_what_is_no_strict_utf8_json_is_left_alone(settings, data):
    settings.write_bytes(data)
    with untouched(settings):
        write(settings, "ours")


def test_a_folder_in_place_of_the_file(tmp_path):
    path = tmp_path / "settings.json"
    path.mkdir()
    with untouched(path) as caught:
        write(path, "ours")
    assert "is a folder" in caught.value.message


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "conf").write_text("x")
    with pytest.raises(SettingsError, match="can't be read"):
        write(tmp_path / "conf" / "settings.json", "ours")


@pytest.mark.skipif(not POSIX, reason="pipes")
def test_a_pipe_in_place_of_the_file_does_not_hang(tmp_path):
    path = tmp_path / "settings.json"
    os.mkfifo(path)
    with untouched(path) as caught:
        write(path, "ours")
    assert "no regular file" in caught.value.message


def test_a_huge_file_is_left_alone(settings, monkeypatch):
    monkeypatch.setattr(gstack.jsonfile, "LIMIT", 5)
    with untouched(settings):
        write(settings, "ours")


def test_a_read_only_file_is_left_alone(settings):
    settings.chmod(0o444)
    with untouched(settings) as caught:
        write(settings, "ours")
    assert "read-only" in caught.value.message


@contextmanager
def somebody_else():
    """Root may write everywhere: be nobody for a moment."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(not POSIX, reason="POSIX permissions")
@pytest.mark.parametrize("mode", [0o555, 0o111, 0o000])
def test_a_folder_that_can_not_be_written_or_read(mode):
    folder = Path(tempfile.mkdtemp())
    path = folder / "settings.json"
    path.write_bytes(b"{}")
    path.chmod(0o666)
    folder.chmod(mode)
    try:
        with somebody_else(), pytest.raises(SettingsError, match=r"settings\.json can't be (written|read): "):
            write(path, "ours")
    finally:
        folder.chmod(0o700)
    assert path.read_bytes() == b"{}"
    assert os.listdir(folder) == ["settings.json"]
    path.unlink()
    folder.rmdir()


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_no_litter(settings, monkeypatch, step):
    """Full at the write of the new file, not at the backup before it."""
    real, calls = getattr(gstack.state.sys_os, step), []

    def full(*args):
        calls.append(args)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args)

    if step == "write":
        monkeypatch.setattr(gstack.state, "write_all", lambda fd, data: full(fd, data))
    else:
        monkeypatch.setattr(gstack.state.sys_os, step, full)
    with untouched(settings) as caught:
        write(settings, "ours")
    assert len(calls) == 2
    assert "No space left" in caught.value.message


def test_no_backup_no_change(settings, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(gstack.state.sys_os, "replace", full)
    with untouched(settings):
        write(settings, "ours")


def test_text_that_is_no_utf8_is_not_written(settings):
    with untouched(settings):
        write(settings, "ours", "\udcff")


@pytest.mark.skipif(not POSIX or os.geteuid() != 0, reason="needs root")
def test_root_leaves_the_owner_in_possession(settings):
    os.chown(settings, 65534, 65534)
    os.chown(settings.parent, 65534, 65534)
    write(settings, "ours")
    owned = [settings, *map(Path, backups(str(settings))), Path(f"{settings}.gstack-lock")]
    assert [path.stat().st_uid for path in owned] == [65534] * 3


# --------------------------------------------------------------------------------------------- several writers


def test_what_somebody_wrote_since_the_plan_stays(settings):
    change = plan(str(settings), adding("ours"))
    settings.write_bytes(b'{"mine": 2, "theirs": 3}\n')
    written = apply(change)
    assert settings.read_bytes() == b'{"mine": 2, "theirs": 3, "ours": true}\n' == written.after


def test_a_file_that_appeared_or_vanished_since_the_plan(settings):
    change = plan(str(settings), adding("ours"))
    settings.unlink()
    apply(change)
    assert json.loads(settings.read_bytes()) == {"ours": True}
    settings.unlink()
    change = plan(str(settings), adding("ours"))
    settings.write_bytes(b'{"theirs": 3}')
    apply(change)
    assert json.loads(settings.read_bytes()) == {"theirs": 3, "ours": True}


def test_a_file_broken_since_the_plan_is_left_alone(settings):
    change = plan(str(settings), adding("ours"))
    settings.write_bytes(b"{broken")
    with untouched(settings):
        apply(change)


def test_a_program_without_our_lock_is_not_overwritten(settings, monkeypatch):
    """It writes between our reading under the lock and our rename."""
    real = gstack.jsonfile._back_up

    def back_up(path, data):
        settings.write_bytes(b'{"theirs": 3}')
        return real(path, data)

    monkeypatch.setattr(gstack.jsonfile, "_back_up", back_up)
    with pytest.raises(SettingsError, match="being written by another program"):
        write(settings, "ours")
    assert settings.read_bytes() == b'{"theirs": 3}'
    assert files(settings.parent) == ["settings.json"]


def test_a_lock_that_stays_taken_is_reported(settings, monkeypatch):
    monkeypatch.setattr(gstack.jsonfile, "PATIENCE", 0.05)
    with Lock(f"{settings}.gstack-lock") as lock, untouched(settings) as caught:
        assert lock.held
        write(settings, "ours")
    assert "another gstack process" in caught.value.message


# ------------------------------------------------------------------------------------------------- tidying up


def taking_out(text):
    """An edit that takes the member ``ours`` out, and the file with its last member."""
    if text is None:
        return Edited(None)
    root = parse(text)
    patch = Patch(text, root)
    patch.take(root, "ours")
    return Edited(patch.result() if parse(patch.result()).plain() else None)


def take_out(path):
    return apply(plan(str(path), taking_out))


def test_what_our_own_changes_left_goes(settings):
    write(settings, "ours")
    change = take_out(settings)
    assert len(backups(str(settings))) == 2
    assert tidy(change) == []
    assert os.listdir(settings.parent) == ["settings.json"]
    assert settings.read_bytes() == b'{"mine": 1}\n'


def test_a_file_that_was_ours_alone_leaves_nothing(tmp_path):
    path = tmp_path / "settings.json"
    write(path, "ours")
    assert tidy(take_out(path)) == []
    assert os.listdir(tmp_path) == []


def test_an_earlier_version_that_holds_something_else_stays(settings):
    write(settings, "ours")
    [first] = backups(str(settings))
    settings.write_bytes(settings.read_bytes().replace(b'"mine": 1', b'"mine": 2'))
    broken = f"{settings}.gstack-backup-20200101T000000.000000000"
    Path(broken).write_text("{")
    assert tidy(take_out(settings)) == [first, broken]
    assert files(settings.parent) == sorted(os.path.basename(path) for path in (settings, first, broken))


def test_tidying_makes_nothing_and_waits_for_nobody(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(gstack.jsonfile, "PATIENCE", 0.05)
    assert tidy(plan(str(tmp_path / "no" / "settings.json"), taking_out)) == []
    assert not (tmp_path / "no").exists()
    assert tidy(plan(str(settings), taking_out)) == []
    assert os.listdir(settings.parent) == ["settings.json"]
    write(settings, "ours")
    with Lock(f"{settings}.gstack-lock"):
        assert tidy(plan(str(settings), taking_out)) == backups(str(settings))
    assert Path(f"{settings}.gstack-lock").exists()


@pytest.mark.skipif(not POSIX, reason="an open file stays there on Windows")
def test_a_lock_that_was_taken_away_keeps_nobody_in(settings, monkeypatch):
    """Who waited for a lock whose file its holder takes away goes on with the new one."""
    path = f"{settings}.gstack-lock"
    real, tries = gstack.jsonfile._in_place, []

    def in_place(lock):
        if not tries:
            os.unlink(path)
        tries.append(real(lock))
        return tries[-1]

    monkeypatch.setattr(gstack.jsonfile, "_in_place", in_place)
    write(settings, "ours")
    assert tries == [False, True]


def test_threads_that_write_at_once_all_survive(settings):
    threads = [threading.Thread(target=write, args=(settings, f"t{number}", number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert json.loads(settings.read_bytes()) == {"mine": 1, **{f"t{number}": number for number in range(8)}}


_WRITER = """
import sys
from gstack.jsonfile import Edited, apply, plan
from gstack.jsontext import Patch, parse

def edit(text):
    patch = Patch(text, parse(text))
    patch.put(patch.root, "p" + sys.argv[2], int(sys.argv[2]))
    return Edited(patch.result())

apply(plan(sys.argv[1], edit))
"""


def test_processes_that_write_at_once_all_survive(settings):
    command = [sys.executable, "-c", _WRITER, str(settings)]
    processes = [subprocess.Popen([*command, str(number)]) for number in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert json.loads(settings.read_bytes()) == {"mine": 1, **{f"p{number}": number for number in range(4)}}


# -------------------------------------------------------------------------------------------------- diff


def test_the_diff_of_a_change(settings):
    settings.write_bytes(b'{\n  "mine": 1\n}')
    text = diff(plan(str(settings), adding("ours")))
    assert text.splitlines() == [
        f"--- {settings}",
        f"+++ {settings}",
        "@@ -1,3 +1,4 @@",
        " {",
        '-  "mine": 1',
        '+  "mine": 1,',
        '+  "ours": true',
        " }",
        "\\ No newline at end of file",
    ]


def test_the_diff_of_a_file_that_comes_and_goes(tmp_path):
    path = tmp_path / "settings.json"
    text = diff(plan(str(path), adding("ours")))
    assert text.splitlines()[:2] == ["--- /dev/null", f"+++ {path}"]
    write(path, "ours")
    text = diff(plan(str(path), lambda text: Edited(None)))
    assert text.splitlines()[:2] == [f"--- {path}", "+++ /dev/null"]
    assert all(line[:1] == "-" for line in text.splitlines()[3:])

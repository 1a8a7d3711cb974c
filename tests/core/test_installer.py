"""``gstack plugins install`` and ``uninstall``: pip where it is the way, the exact command where it isn't."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gstack import installer
from gstack.cli import main
from gstack.errors import CheckFailed, UsageError
from gstack.launcher import launcher_path
from gstack.sandbox import Sandbox
from gstack.testing import FakeSite

KIND = """
from gstack.api import hookimpl
class Kind:
    name = "acme.kind"
    fields = ()
@hookimpl
def gstack_contract_kinds(): return [Kind()]
"""


class Pip:
    """Stands in for ``python -m pip``: remembers how it was called, and does what the test says."""

    def __init__(self, code: int = 0, err: str = "", then: Any = None) -> None:
        self.calls: list[list[str]] = []
        self.code = code
        self.err = err
        self.then = then

    def __call__(self, command: list[str], **more: Any) -> Any:
        self.calls.append(command)
        if self.then:
            self.then()
        return SimpleNamespace(returncode=self.code, stdout="", stderr=self.err)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSite:
    """A folder of this process's own that distributions can appear in."""
    box = Sandbox(str(tmp_path / "box"))
    monkeypatch.setenv("GSTACK_STATE_ROOT", box.root)
    made = FakeSite(str(tmp_path / "site"), box)
    monkeypatch.setattr(sys, "path", [*sys.path, made.folder])
    yield made
    sys.modules.pop("acme_kind", None)


def use(monkeypatch: pytest.MonkeyPatch, pip: Pip, tmp_path: Path, *, has_pip: bool = True) -> None:
    """An ordinary virtual environment with this pip."""
    prefix = tmp_path / "prefix"
    prefix.mkdir(exist_ok=True)
    monkeypatch.setattr(installer.subprocess, "run", pip)
    monkeypatch.setattr(installer.sys, "prefix", str(prefix))
    real = installer.importlib.util.find_spec
    monkeypatch.setattr(
        installer.importlib.util,
        "find_spec",
        lambda name: (real("json") if has_pip else None) if name == "pip" else real(name),
    )


def add_kind(site: FakeSite) -> None:
    site("acme-kind", {"gstack.contract_kinds": {"acme.kind": "acme_kind"}}, {"acme_kind.py": KIND})


def test_pip_installs_and_the_plan_is_made_anew(
    site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pip = Pip(then=lambda: add_kind(site))
    use(monkeypatch, pip, tmp_path)
    assert main(["plugins", "install", "acme-kind"]) == 0
    assert capsys.readouterr().out == "acme.kind (acme-kind 1.0): ok\n"
    assert pip.calls[0][:3] == [sys.executable, "-m", "pip"]
    assert pip.calls[0][-3:] == ["install", "acme-kind", "--quiet"]
    plan = Path(site.box.root, "snapshot", "plan").read_bytes()
    assert b"acme.kind" in plan
    assert site.folder in Path(launcher_path(site.box.root)).read_text()


def test_a_folder_is_installed_in_place(site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip()
    use(monkeypatch, pip, tmp_path)
    assert main(["plugins", "install", "-e", "."]) == 0
    assert pip.calls[0][-4:] == ["install", "-e", ".", "--quiet"]


def test_what_isnt_usable_is_told(
    site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"gstack.contract_kinds": {"acme.kind": "acme_kind"}}
    use(monkeypatch, Pip(then=lambda: site("acme-kind", entry, {"acme_kind.py": "raise ValueError('no')"})), tmp_path)
    assert main(["plugins", "install", "acme-kind"]) == CheckFailed.exit_code
    shown = capsys.readouterr()
    assert "failed: raised ValueError: no" in shown.out
    assert "installed, but not usable: acme.kind" in shown.err


def test_what_brings_no_plug_in_is_told(
    site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Pip(), tmp_path)
    assert main(["plugins", "install", "requests"]) == 0
    assert "no plug-in of gstack came with it" in capsys.readouterr().out


def test_pips_own_words_when_it_fails(
    site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Pip(1, "noise\nERROR: No matching distribution found for nope\nhint: x\n"), tmp_path)
    assert main(["plugins", "install", "nope"]) == CheckFailed.exit_code
    error = capsys.readouterr().err
    assert "pip ended with 1: ERROR: No matching distribution found for nope (run: " in error
    assert error.count("\n") == 1


def test_pip_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang() -> None:
        raise subprocess.TimeoutExpired("pip", 1)

    use(monkeypatch, Pip(then=hang), tmp_path)
    with pytest.raises(CheckFailed, match="pip didn't end well: TimeoutExpired"):
        installer.install(["x"], editable=False)


@pytest.mark.parametrize(
    ("marker", "content", "verb", "command"),
    [
        ("pipx_metadata.json", "{}", "install", "pipx inject gstack-skills acme-kind"),
        ("pipx_metadata.json", "{}", "uninstall", "pipx uninject gstack-skills acme-kind"),
        ("uv-receipt.toml", "[tool]\n", "install", "uv tool install gstack-skills --with acme-kind"),
        (
            "uv-receipt.toml",
            '[tool]\nrequirements = [{ name = "gstack-skills" }, { name = "other" }, { name = "acme-kind" }]\n',
            "install",
            "uv tool install gstack-skills --with other --with acme-kind",
        ),
        (
            "uv-receipt.toml",
            '[tool]\nrequirements = [{ name = "gstack-skills" }, { name = "other" }, { name = "acme-kind" }]\n',
            "uninstall",
            "uv tool install gstack-skills --with other",
        ),
    ],
)
def test_pipx_and_uv_are_told_as_commands(
    marker: str, content: str, verb: str, command: str, site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = Pip()
    use(monkeypatch, pip, tmp_path)
    (tmp_path / "prefix" / marker).write_text(content)
    add_kind(site)
    act = partial(installer.install, ["acme-kind"], editable=False)
    with pytest.raises(CheckFailed) as caught:
        act() if verb == "install" else installer.uninstall("acme.kind")
    assert caught.value.hint == "run: " + command
    assert pip.calls == []


@pytest.mark.parametrize(
    ("uv", "command"), [("/bin/uv", "uv pip install --python"), (None, "-m ensurepip, then try again")]
)
def test_without_pip(uv: "str | None", command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Pip(), tmp_path, has_pip=False)
    monkeypatch.setattr(installer.shutil, "which", lambda name: uv)
    with pytest.raises(CheckFailed) as caught:
        installer.install(["acme-kind"], editable=False)
    assert command in caught.value.hint


def test_an_environment_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Pip(), tmp_path)
    monkeypatch.setattr(installer.sys, "base_prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(installer.sysconfig, "get_path", lambda name: str(tmp_path))
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    with pytest.raises(CheckFailed) as caught:
        installer.install(["acme-kind"], editable=False)
    assert caught.value.hint == "run: pipx install gstack-skills, then pipx inject gstack-skills acme-kind"


def test_uninstalling_by_id_and_by_distribution(
    site: FakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_kind(site)
    for name in ("acme.kind", "acme-kind"):
        pip = Pip()
        use(monkeypatch, pip, tmp_path)
        assert installer.uninstall(name) == "acme-kind"
        assert pip.calls[0][-4:] == ["uninstall", "--yes", "acme-kind", "--quiet"]


@pytest.mark.parametrize(
    ("name", "says"), [("nobody", "no installed plug-in is"), ("lexical", "comes with gstack itself")]
)
def test_what_cant_be_uninstalled(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        installer.uninstall(name)

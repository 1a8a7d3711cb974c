"""Finding, checking and listing plug-ins: fake installations in a folder of their own."""

import importlib
import os
import sys
import time
from marshal import loads
from pathlib import Path

import pytest

from gstack import entrypoints, plugins
from gstack.plan import OWN_DISTRIBUTION
from gstack.snapshot import fresh
from gstack.snapshot_build import build_plan

GROUP = "gstack.contract_kinds"
GOOD = (
    "from gstack.api import hookimpl\n"
    "class Kind:\n    name = {name!r}\n    fields = ()\n"
    "@hookimpl\ndef gstack_contract_kinds():\n    return [Kind()]\n"
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("fake_"):
            del sys.modules[name]


def install(site: Path, dist: str, entry: str, code: str, *, group: str = GROUP, module: str = "") -> None:
    module = module or "fake_" + dist.replace("-", "_")
    (site / f"{module}.py").write_text(code)
    info = site / f"{dist.replace('-', '_')}-1.0.dist-info"
    info.mkdir(exist_ok=True)
    with (info / "entry_points.txt").open("a") as file:
        file.write(f"[{group}]\n{entry} = {module}\n\n")


def survey(site: Path) -> dict[str, plugins.Status]:
    return {
        status.found.id + "@" + status.found.dist: status for status in plugins.survey(str(site), {}, paths=[str(site)])
    }


def test_finding_imports_nothing(site: Path) -> None:
    install(site, "a-dist", "vendor.a", "raise SystemExit")
    (found,) = entrypoints.find([str(site), str(site)])
    assert (found.id, found.dist, found.version, found.builtin) == ("vendor.a", "a-dist", "1.0", False)
    assert "fake_a_dist" not in sys.modules


@pytest.mark.parametrize(
    ("code", "state", "why"),
    [
        (GOOD.format(name="vendor.x"), "ok", ""),
        ("raise SystemExit(1)", "failed", "called sys.exit"),
        ("import nowhere_really", "failed", "ModuleNotFoundError"),
        ("x = 1", "failed", "no function gstack_contract_kinds"),
        ("GSTACK_API = 2\n" + GOOD.format(name="vendor.x"), "incompatible", "GSTACK_API 2"),
        (GOOD.format(name="vendor.x") + "@hookimpl\ndef gstack_unknown_hook():\n    pass\n", "failed", "unknown hook"),
        (GOOD.format(name="bare"), "refused", "vendor.bare"),
        ("print('x')\n" + GOOD.format(name="vendor.x"), "failed", "printed"),
        (
            "import time\n" + GOOD.format(name="vendor.x").replace("return", "time.sleep(9); return"),
            "failed",
            "took longer",
        ),
        (
            (
                "import pluggy\n@pluggy.HookimplMarker('gstack')(wrapper=True)\n"
                "def gstack_contract_kinds():\n    return (yield)\n"
            ),
            "failed",
            "wrapper",
        ),
        (
            "from gstack.api import hookimpl\n@hookimpl\ndef gstack_contract_kinds(extra):\n    return []\n",
            "failed",
            "gstack_contract_kinds",
        ),
    ],
)
def test_each_fault_costs_only_itself(
    site: Path, code: str, state: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "the-dist", "vendor.x", code)
    install(site, "good-dist", "vendor.good", GOOD.format(name="vendor.good"))
    found = {s.found.id: s for s in plugins.survey(str(site), {}, paths=[str(site)], limit=0.4)}
    assert (found["vendor.x"].state, why in found["vendor.x"].why) == (state, True), found["vendor.x"].why
    assert found["vendor.good"].state == "ok"


def test_conflicts_name_both_distributions(site: Path) -> None:
    install(site, "a-dist", "vendor.x", GOOD.format(name="vendor.x"))
    install(site, "b-dist", "vendor.x", GOOD.format(name="vendor.y"))
    install(site, "c-dist", "vendor.z", GOOD.format(name="vendor.x"))
    found = survey(site)
    assert found["vendor.x@a-dist"].state == "ok"
    for key in ("vendor.x@b-dist", "vendor.z@c-dist"):
        assert found[key].state == "conflict"
        assert "a-dist" in found[key].why
        assert key.split("@")[1] in found[key].why


def test_an_unprefixed_outside_name_is_refused(site: Path) -> None:
    install(site, "a-dist", "plain", GOOD.format(name="vendor.x"))
    assert survey(site)["plain@a-dist"].state == "refused"


def test_switched_off_is_listed_and_not_imported(site: Path) -> None:
    install(site, "a-dist", "vendor.x", "raise SystemExit")
    (status,) = plugins.survey(str(site), {"GSTACK_DISABLED_PLUGINS": "vendor.x"}, paths=[str(site)])
    assert status.state == "disabled"
    assert "fake_a_dist" not in sys.modules


def test_pth_folders_are_followed_and_import_hooks_are_not(
    site: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = tmp_path_factory.mktemp("src")
    install(site, "a-dist", "vendor.x", "", module="fake_elsewhere")
    (site / "fake_elsewhere.py").unlink()
    (status,) = plugins.survey(str(site), {}, paths=[str(site)])
    assert not status.in_hook
    (source / "fake_elsewhere.py").write_text(GOOD.format(name="vendor.x"))
    (site / "x.pth").write_text(f"import os\n{source}\n# comment\nnowhere\n")
    (status,) = plugins.survey(str(site), {}, paths=[str(site)])
    assert (status.in_hook, status.folder, status.state) == (True, str(source), "ok")
    assert plugins.plan_rows([status])[0]["folder"] == str(source)


def test_the_built_ins_come_in_by_entry_points() -> None:
    found = [status for status in plugins.survey("/nowhere", {}) if status.found.dist == OWN_DISTRIBUTION]
    assert {status.found.id for status in found} == {
        "report_labels", "check_after_last_edit", "selected_specialists_dispatched", "agent_dispatch", "lexical",
        "policy_bundle", "claude-code",
    }  # fmt: skip
    assert [(s.found.id, s.why) for s in found if s.state != "ok"] == []


def broken_site(site: Path, layout: str) -> tuple[Path, str]:
    """A plug-in that can't be imported: its file that is to be mended, and the right text for it."""
    good = GOOD.format(name="vendor.mended")
    info = site / "mend-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\nvendor.mended = fake_mend{'.sub' if layout != 'file' else ''}\n"
    )
    if layout == "file":
        (site / "fake_mend.py").write_text("import nowhere_really\n")
        return site / "fake_mend.py", good
    (site / "fake_mend").mkdir()
    (site / "fake_mend" / "__init__.py").write_text("")
    if layout == "missing":
        return site / "fake_mend" / "sub.py", good
    (site / "fake_mend" / "sub.py").write_text("from fake_mend.helper import Broken\n" + good)
    (site / "fake_mend" / "helper.py").write_text("Broken = 1 / 0\n")
    return site / "fake_mend" / "helper.py", "Broken = 1\n"


@pytest.mark.parametrize("layout", ["file", "missing", "helper"])
def test_a_plug_in_that_failed_is_used_again_once_it_is_mended(site: Path, layout: str) -> None:
    """The stored plan is bound to what failed, so that the repair makes it stale."""
    where, text = broken_site(site, layout)
    old = time.time() - 3600
    state = site / "state"
    state.mkdir()
    rows, bound = loads(build_plan(str(state), [str(site)], [])["groups"][GROUP])
    assert rows == []
    bound["racy"] = False
    assert fresh(bound)
    where.write_text(text)
    os.utime(where, (old, old))
    assert not fresh(bound)
    for name in [name for name in sys.modules if name.startswith("fake_mend")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    rows, _ = loads(build_plan(str(state), [str(site)], [])["groups"][GROUP])
    assert [row["id"] for row in rows] == ["vendor.mended"]

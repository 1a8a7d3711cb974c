"""The stored plan: each extension point is bound to the files of its own plug-ins, and gives what a new look would."""

import importlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gstack import snapshot, snapshot_build
from gstack.entrypoints import GROUPS
from gstack.snapshot import load_plan, plan_path, read_blob

CODE = (
    "from gstack.api import hookimpl\n"
    "class One:\n    name = id = {name!r}\n"
    "@hookimpl\ndef {hook}():\n    return [One()]\n"
)
KINDS, SCORERS, RESOLVERS, HOSTS = GROUPS


class Site:
    """A folder of distributions whose every change gets a time of its own, and the state folder that plans lie in."""

    def __init__(self, folder: Path) -> None:
        self.site = folder / "site"
        self.root = str(folder / "state")
        self.clock = 1_000_000_000
        self.site.mkdir(parents=True)

    def install(self, dist: str, group: str, *, code: str | None = None, module: str = "") -> Path:
        """A distribution with one plug-in, ``vendor.DIST``; its module's file."""
        module = module or f"snap_{dist}"
        file = self.site.joinpath(*module.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        self.write(file, CODE.format(name=f"vendor.{dist}", hook=group.replace(".", "_")) if code is None else code)
        self.entries(dist, f"[{group}]\nvendor.{dist} = {module}\n")
        self.touch(self.site)
        return file

    def entries(self, dist: str, text: str, *, kind: str = "dist-info") -> None:
        info = self.site / f"{dist}-1.0.{kind}"
        info.mkdir(exist_ok=True)
        if kind == "egg-info":
            (info / "PKG-INFO").write_text(f"Name: {dist}\nVersion: 1.0\n")
        self.write(info / "entry_points.txt", text)

    def remove(self, dist: str) -> None:
        (self.site / f"snap_{dist}.py").unlink(missing_ok=True)
        shutil.rmtree(self.site / f"{dist}-1.0.dist-info", ignore_errors=True)
        self.touch(self.site)

    def write(self, file: Path, text: str) -> None:
        file.write_text(text)
        self.touch(file)

    def touch(self, path: Path) -> None:
        self.clock += 1
        os.utime(path, (self.clock, self.clock))

    def plan(self, root: str = "", **env: str) -> Any:
        """The plan as a new process sees it."""
        for name in [name for name in sys.modules if name.startswith("snap_")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return load_plan(root or self.root, [str(self.site)], env)

    def ids(self, group: str, **env: str) -> list[str]:
        return [row["id"] for row in self.plan(**env).rows(group)]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one for each plan that is made; a plan is trusted at once."""
    real, seen = snapshot_build.build_plan, []

    def build(*args: Any, **named: Any) -> Any:
        seen.append("made")
        return real(*args, **named)

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(snapshot_build, "build_plan", build)
    monkeypatch.setattr(snapshot_build, "now_ns", lambda: snapshot.now_ns() + 5_000_000_000)
    return seen


@pytest.fixture
def site(tmp_path: Path, made: list[str]) -> Iterator[Site]:
    yield Site(tmp_path)
    for name in [name for name in sys.modules if name.startswith("snap_")]:
        del sys.modules[name]


def test_a_changed_plug_in_makes_its_own_extension_point_stale_and_no_other(site: Site, made: list[str]) -> None:
    kind = site.install("kind", KINDS)
    site.install("scorer", SCORERS)
    assert site.ids(SCORERS) == ["vendor.scorer"]
    assert len(made) == 1
    site.write(kind, CODE.format(name="vendor.other", hook="gstack_contract_kinds"))
    assert site.ids(SCORERS) == ["vendor.scorer"]
    assert site.ids(RESOLVERS) == []
    assert len(made) == 1
    assert site.plan().rows(KINDS)[0]["names"] == ["vendor.other"]
    assert len(made) == 2
    assert site.plan().rows(KINDS)[0]["names"] == ["vendor.other"]
    assert len(made) == 2


def test_nothing_of_the_others_is_looked_at(site: Site, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    site.install("kind", KINDS)
    site.install("scorer", SCORERS)
    site.ids(SCORERS)
    looked: list[str] = []
    real = os.stat

    class Spy:
        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        @staticmethod
        def stat(path: "str | bytes", **named: Any) -> os.stat_result:
            looked.append(os.fsdecode(path))
            return real(path, **named)

    monkeypatch.setattr(snapshot, "sys_os", Spy())
    assert site.ids(SCORERS) == ["vendor.scorer"]
    assert any("scorer" in path for path in looked)
    assert not [path for path in looked if "kind" in path]
    assert len(made) == 1


def test_a_plan_that_turns_out_stale_half_way_is_made_once_and_keeps_what_is_in_use(
    site: Site, made: list[str]
) -> None:
    site.install("host", HOSTS)
    kind = site.install("kind", KINDS)
    scorer = site.install("scorer", SCORERS)
    site.ids(HOSTS)
    for file, hook in ((kind, "gstack_contract_kinds"), (scorer, "gstack_trigger_scorers")):
        site.write(file, CODE.format(name="vendor.renamed", hook=hook))
    plan = site.plan()
    host = plan.get(HOSTS, "vendor.host")
    assert [row["names"] for row in plan.rows(KINDS)] == [["vendor.renamed"]]
    assert [row["names"] for row in plan.rows(SCORERS)] == [["vendor.renamed"]]
    assert plan.get(HOSTS, "vendor.host") is host
    assert len(made) == 2


def test_what_every_extension_point_depends_on(site: Site, made: list[str]) -> None:
    site.install("kind", KINDS)
    assert site.ids(SCORERS) == []
    site.install("scorer", SCORERS)
    assert site.ids(SCORERS) == ["vendor.scorer"]
    site.remove("kind")
    assert site.ids(KINDS) == []
    assert site.ids(SCORERS, GSTACK_DISABLED_PLUGINS="vendor.scorer") == []
    assert site.ids(SCORERS) == ["vendor.scorer"]
    assert len(made) == 5


def test_entry_points_that_are_edited_in_place(site: Site) -> None:
    site.install("kind", KINDS)
    assert site.ids(KINDS) == ["vendor.kind"]
    site.entries("kind", f"[{KINDS}]\nvendor.again = snap_kind\n")
    assert site.ids(KINDS) == ["vendor.again"]


def test_an_egg_info_may_get_another_extension_point_in_place(site: Site) -> None:
    """As ``pip install -e`` did it in older days: the metadata lies among the sources and is rewritten there."""
    site.write(site.site / "snap_old.py", CODE.format(name="vendor.old", hook="gstack_contract_kinds"))
    site.entries("old", f"[{KINDS}]\nvendor.old = snap_old\n", kind="egg-info")
    assert site.ids(SCORERS) == []
    both = CODE.format(name="vendor.old", hook="gstack_contract_kinds")
    both += "@hookimpl\ndef gstack_trigger_scorers():\n    return [One()]\n"
    site.write(site.site / "snap_old.py", both)
    site.entries("old", f"[{KINDS}]\nvendor.old = snap_old\n[{SCORERS}]\nvendor.old = snap_old\n", kind="egg-info")
    assert site.ids(SCORERS) == ["vendor.old"]


def test_one_distribution_with_two_sorts_is_watched_for_both(site: Site) -> None:
    both = CODE.format(name="vendor.both", hook="gstack_contract_kinds")
    both += "@hookimpl\ndef gstack_trigger_scorers():\n    return [One()]\n"
    file = site.install("both", KINDS, code=both)
    site.entries("both", f"[{KINDS}]\nvendor.both = snap_both\n[{SCORERS}]\nvendor.both = snap_both\n")
    assert site.ids(SCORERS) == site.ids(KINDS) == ["vendor.both"]
    site.write(file, both.replace("'vendor.both'", "'vendor.new'"))
    assert site.plan().rows(SCORERS)[0]["names"] == ["vendor.new"]


@pytest.mark.parametrize("module", ["snap_plain", "snap_pack.inner", "snap_pack.deep.inner"])
def test_an_outside_plug_in_is_imported_from_where_it_lies(site: Site, module: str) -> None:
    """And is what an import makes of it: its own siblings, its file, its spec."""
    folder = site.site.joinpath(*module.split(".")).parent
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "snap_sibling.py").write_text("WORD = 'beside'\n")
    for part in ("snap_pack", "snap_pack/deep"):
        if (site.site / part).is_dir():
            (site.site / part / "__init__.py").write_text("")
    package = module.rpartition(".")[0]
    code = f"from {package + '.' if package else ''}snap_sibling import WORD\n"
    file = site.install("x", SCORERS, code=code + CODE.format(name="vendor.x", hook="gstack_trigger_scorers"),
                        module=module)  # fmt: skip
    (row,) = site.plan().rows(SCORERS)
    top = module.partition(".")[0]
    assert row["file"] == str(site.site / (top + ".py" if top == module else top + "/__init__.py"))
    assert site.plan().get(SCORERS, "vendor.x").name == "vendor.x"
    found = sys.modules[module]
    assert (found.WORD, found.__file__, found.__spec__.name, found.__package__) == (
        "beside",
        str(file),
        module,
        package,
    )
    assert found.__spec__.loader is not None


def test_a_plug_in_whose_import_fails_leaves_no_module(site: Site) -> None:
    file = site.install("x", SCORERS)
    site.ids(SCORERS)
    plan = site.plan()
    assert plan.rows(SCORERS)
    file.write_text("1 / 0\n")
    assert plan.get(SCORERS, "vendor.x") is None
    assert [failed.what for failed in plan.failures] == ["raised ZeroDivisionError: division by zero"]
    assert "snap_x" not in sys.modules


CHANGES = ("install", "remove", "rename", "break", "take", "entry", "look")
steps = st.tuples(st.sampled_from(CHANGES), st.sampled_from("abc"), st.sampled_from([KINDS, SCORERS, HOSTS]))


def change(site: Site, what: str, dist: str, group: str) -> None:
    file = site.site / f"snap_{dist}.py"
    lines = site.site / f"{dist}-1.0.dist-info" / "entry_points.txt"
    if what == "install":
        site.remove(dist)
        site.install(dist, group)
    elif what == "remove":
        site.remove(dist)
    elif what != "look" and file.exists():
        own = lines.read_text().split("]")[0].strip("[")
        name = {"rename": f"vendor.{dist}{site.clock}", "take": "vendor.a"}.get(what, f"vendor.{dist}")
        if what == "entry":
            site.write(lines, f"[{own}]\nvendor.{dist}{site.clock} = snap_{dist}\n")
        else:
            site.write(file, "1 / 0" if what == "break" else CODE.format(name=name, hook=own.replace(".", "_")))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=st.lists(st.tuples(steps, st.sampled_from([KINDS, SCORERS, HOSTS])), min_size=4, max_size=10))
def test_both_roads_give_the_same_plan(
    history: list[tuple[tuple[str, str, str], str]], made: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is asked for after each change: the stored plan, made at any time before, and one made anew."""
    site = Site(tmp_path_factory.mktemp("plans"))
    for dist, group in zip("abc", (KINDS, SCORERS, HOSTS), strict=True):
        site.install(dist, group)
    for number, (step, asked) in enumerate(history):
        change(site, *step)
        assert site.plan().rows(asked) == site.plan(f"{site.root}-{number}").rows(asked), (step, asked)


def test_a_plan_of_an_older_layout_is_made_anew(site: Site, made: list[str]) -> None:
    site.install("kind", KINDS)
    site.ids(KINDS)
    path = Path(plan_path(site.root))
    data = path.read_bytes()
    path.write_bytes(data.replace(f"gstack {snapshot.FORMAT} ".encode(), b"gstack 5 ", 1))
    assert read_blob(str(path)) is None
    assert site.ids(KINDS) == ["vendor.kind"]
    assert len(made) == 2

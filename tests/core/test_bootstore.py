"""Stored code does what the source says, whichever of its functions wait."""

import ast
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from gstack import boot, bootstore
from gstack.lowlevel import POSIX

pytestmark = pytest.mark.skipif(not POSIX, reason="code is stored on POSIX only")

SOURCE = '''
"""Hot: an example."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import nowhere
else:
    there = 1

LIMIT: "int" = 3
later: "nowhere.Thing"


def plain(a, b=LIMIT, *rest: "int", key: "str" = "k", **more: "Any") -> "tuple":
    """Documented."""
    local: "int"
    local = a
    count: "int" = b
    return local, count, rest, key, more


def numbers(limit):
    yield from range(limit)


def outer(x):
    def inner(y):
        return x + y
    return inner


def again(n):
    return n if n < 1 else again(n - 1)


def mark(function):
    function.marked = True
    return function


@mark
def marked():
    return "marked"


TABLE = {"plain": plain}


class Base:
    def __init__(self, value: "int" = 1) -> None:
        self.value = value
        self.other: "int" = 2

    def name(self):
        return "base"

    def __eq__(self, other):
        return self.value == other.value

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.value = "left"

    @property
    def double(self):
        return self.value * 2

    @double.setter
    def double(self, value):
        self.value = value // 2

    @staticmethod
    def still(x):
        return x

    @classmethod
    def made(cls, value):
        return cls(value)


class Child(Base):
    FACTOR = 7
    __slots__ = ("extra",)

    def name(self):
        return "child of " + super().name()

    def kind(self):
        return __class__.__name__

    def __hidden(self):
        return "hidden"

    def shown(self):
        return self.__hidden()

    def times(self, by=FACTOR):
        return self.value * by


class Fails(Exception):
    def __init__(self, what):
        super().__init__(what)
        self.what = what


def fail():
    raise Fails("so")


def __getattr__(name):
    if name == "lazy":
        return "made"
    raise AttributeError(name)
'''


def run(called: Collection[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], list[str]]:
    """The globals of the example run from stored code, and the names of the functions that it fetches from then on."""
    path = tmp_path / "example.py"
    path.write_text(SOURCE)
    waiting = bootstore._Waiting()
    source = bootstore._Source("example", str(path), package=False)
    code = bootstore._Compiler(called, (), waiting).code(source)
    second = tmp_path / "second"
    second.write_bytes(waiting.data)
    fetched: list[str] = []
    monkeypatch.setattr(boot, "_fetched", fetched)
    monkeypatch.setattr(boot, "_waiting_file", os.open(second, os.O_RDONLY))
    space: dict[str, Any] = {"__name__": "example"}
    space["_waiting_"] = boot._waiting(space)
    exec(code, space)
    return space, fetched


def results(space: dict[str, Any]) -> list[Any]:
    """What the example's functions give, as plain values."""
    base, child = space["Base"](), space["Child"](5)
    base.double = 10
    with space["Base"]() as entered:
        pass
    failure = None
    try:
        space["fail"]()
    except space["Fails"] as error:
        failure = (error.what, str(error))
    return [
        space["plain"](1),
        space["plain"](1, 2, 3, key="x", other=4),
        space["TABLE"]["plain"](9),
        list(space["numbers"](3)),
        space["outer"](1)(2),
        space["again"](5),
        (space["marked"](), space["marked"].marked),
        (base.value, base.double, base.name(), base.other),
        (space["Base"](5) == child, space["Base"](4) == child),
        entered.value,
        (space["Base"].still(3), space["Child"].made(4).value),
        (child.name(), child.kind(), child.shown(), child.times(), child.times(2)),
        failure,
        space["__getattr__"]("lazy"),
        (space["there"], space["LIMIT"]),
    ]


def expected(tmp_path: Path) -> list[Any]:
    space: dict[str, Any] = {"__name__": "example"}
    exec(compile(SOURCE, "example.py", "exec"), space)
    return results(space)


@pytest.mark.parametrize(
    "called",
    [
        (),
        ("example:plain", "example:Base.__init__", "example:again"),
        tuple(f"example:{name}" for name in ("numbers", "outer", "fail", "Base.name", "Child.name", "Base.double")),
    ],
)
def test_the_same_whichever_functions_wait(
    called: Collection[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space, fetched = run(called, tmp_path, monkeypatch)
    assert fetched == (["example:mark"] if "example:mark" not in called else [])
    assert results(space) == expected(tmp_path)
    assert set(fetched).isdisjoint(called)
    assert len(fetched) == len(set(fetched)), "each is fetched once"
    assert {"example:fail", "example:numbers"} - set(called) <= set(fetched)


def test_what_depends_on_its_class_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space, fetched = run((), tmp_path, monkeypatch)
    results(space)
    names = {name.partition(":")[2] for name in fetched}
    assert names.isdisjoint(["Child.name", "Child.kind", "Child.shown", "Child._Child__hidden", "Child.times"])
    assert names.isdisjoint(["marked", "__getattr__", "Fails.__init__"])
    assert {"plain", "Base.__init__", "Base.name", "Base.double", "Base.still", "Base.made"} <= names


def test_a_module_asks_for_the_stored_ones_that_it_imports(tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(
        "import a.b\nfrom a import c\n\ndef f(name):\n    from d import e\n    __import__(name)\n    return e\n"
    )
    source = bootstore._Source("example", str(path), package=False)
    tree = bootstore._Needs(["a.b", "a.c", "d"]).visit(source.tree)
    asked = [
        ast.unparse(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and "_need_" in ast.unparse(node)
    ]
    assert sorted(asked) == ["'a.b'", "'a.c'", "'d'", "name"]

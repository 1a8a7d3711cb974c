"""One failure domain for each plug-in."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gstack import plan
from gstack.failures import PluginFailed, change_trouble, note_trouble
from gstack.isolation import isolated
from gstack.plan import Plan

OUTSIDE = (
    "from gstack.api import hookimpl\n"
    "class Kind:\n"
    "    name = 'vendor.{name}'\n"
    "    def check(self, *a):\n"
    "        {body}\n"
    "@hookimpl\n"
    "def gstack_contract_kinds():\n"
    "    return [Kind()]\n"
)


def rows(folder: Path, name: str, body: str, *, names: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    (folder / f"outside_{name}.py").write_text(OUTSIDE.format(name=name, body=body))
    return [
        {
            "id": f"vendor.{name}",
            "group": "gstack.contract_kinds",
            "module": f"outside_{name}",
            "attr": "",
            "dist": "vendor-x",
            "version": "1",
            "builtin": False,
            "names": [*(names or (f"vendor.{name}",))],
            "folder": str(folder),
            "file": str(folder / f"outside_{name}.py"),
        }
    ]


@pytest.fixture(autouse=True)
def clean_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("raise ValueError('no')", "raised ValueError: no"),
        ("raise SystemExit(3)", "called sys.exit"),
        ("print('hello')", "printed to standard output"),
        ("__import__('time').sleep(9)", "took longer"),
        ("exec('while True: pass')", "took longer"),
        ("raise BaseException()", "raised BaseException"),
        ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
        ("__import__('re').search('(a+)+$', 'a' * 40 + 'b')", "took longer"),
    ],
)
def test_what_a_call_does_wrong_costs_only_itself(tmp_path: Path, body: str, what: str) -> None:
    name = "call" + str(abs(hash(body)) % 10**6)
    made = Plan(str(tmp_path), rows(tmp_path, name, body))
    kind = made.get("gstack.contract_kinds", "vendor." + name)
    assert kind is not None
    started = time.monotonic()
    with pytest.raises(PluginFailed, match=what):
        made.call(kind, kind.check)
    assert time.monotonic() - started < 6
    assert what.split(":")[0] in plan.read_trouble(str(tmp_path))["trouble"]["vendor." + name]["what"]
    print("standard output works again")


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ("__import__('time').sleep(9)", "took longer"),
        ("raise SystemExit(2)", "called sys.exit"),
        ("raise ValueError", r"raised Odd: \(no text\)"),
        ("print('hello'); return 'said'", "raised Odd: said"),
    ],
)
def test_the_text_of_an_error_is_the_plug_ins_as_well(
    tmp_path: Path, told: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "text" + str(abs(hash(told)) % 10**6)
    made = Plan(str(tmp_path), rows(tmp_path, name, "raise Odd"))
    file = tmp_path / f"outside_{name}.py"
    file.write_text(f"class Odd(Exception):\n    def __str__(self):\n        {told}\n" + file.read_text())
    kind: Any = made.get("gstack.contract_kinds", "vendor." + name)
    started = time.monotonic()
    with pytest.raises(PluginFailed, match=what):
        made.call(kind, kind.check)
    assert time.monotonic() - started < 6
    assert capsys.readouterr().out == ""


def test_objects_that_come_one_by_one_come_within_the_plug_ins_own_time(tmp_path: Path) -> None:
    made = Plan(str(tmp_path), rows(tmp_path, "lazily", "return 1"))
    file = tmp_path / "outside_lazily.py"
    file.write_text(file.read_text().replace("return [Kind()]", "yield __import__('time').sleep(9)"))
    assert made.objects("gstack.contract_kinds") == []
    assert [failed.what for failed in made.failures] == ["took longer than 0.3 s"]


@pytest.mark.parametrize(
    "text", ["raise SystemExit(2)", "import nowhere_at_all", "syntax error here", "import time; time.sleep(9)"]
)
def test_a_plug_in_that_cant_be_imported_is_left_out(tmp_path: Path, text: str) -> None:
    name = "import" + str(abs(hash(text)) % 10**6)
    good = rows(tmp_path, name + "good", "return 1")
    bad = rows(tmp_path, name, "return 1")
    (tmp_path / f"outside_{name}.py").write_text(text)
    made = Plan(str(tmp_path), [*bad, *good])
    assert [owner for owner, _ in made.objects("gstack.contract_kinds")] == [f"vendor.{name}good"]
    assert len(made.failures) == 1


def test_three_overruns_set_aside_until_enabled(tmp_path: Path) -> None:
    root = str(tmp_path)
    for _ in range(3):
        assert "vendor.slow" not in plan.disabled_plugins(root, {})
        note_trouble(root, PluginFailed("vendor.slow", "took longer", overran=True))
    assert "vendor.slow" in plan.disabled_plugins(root, {})
    made = Plan(root, rows(tmp_path, "slow", "return 1"), plan.disabled_plugins(root, {}))
    assert not made.rows("gstack.contract_kinds")
    change_trouble(root, lambda data: data["trouble"].pop("vendor.slow"))
    assert "vendor.slow" not in plan.disabled_plugins(root, {})


def test_switched_off_by_the_environment(tmp_path: Path) -> None:
    assert plan.disabled_plugins(str(tmp_path), {"GSTACK_DISABLED_PLUGINS": "a, b"}) == {"a", "b"}


def test_only_the_plug_in_that_has_the_name_is_imported(tmp_path: Path) -> None:
    made = Plan(str(tmp_path), rows(tmp_path, "lazyone", "return 1") + rows(tmp_path, "lazytwo", "return 1"))
    assert made.get("gstack.contract_kinds", "vendor.lazytwo").name == "vendor.lazytwo"
    assert "outside_lazytwo" in sys.modules
    assert "outside_lazyone" not in sys.modules
    assert made.get("gstack.contract_kinds", "vendor.nobody") is None


def test_a_swallowed_overrun_is_repeated() -> None:
    def stubborn() -> None:
        try:
            time.sleep(9)
        except BaseException:
            time.sleep(9)

    started = time.monotonic()
    with pytest.raises(PluginFailed, match="took longer"):
        isolated("vendor.stubborn", stubborn)
    assert time.monotonic() - started < 6


def test_ctrl_c_during_a_call_is_no_fault_of_the_plug_in() -> None:
    # a process that was started in the background ignores the signal
    found = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            isolated("vendor.slow", lambda: signal.raise_signal(signal.SIGINT))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, found)


def test_what_is_written_to_descriptor_1_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    """By the system call and by a child; what the command itself says before and after stays in place."""
    print("before")
    isolated("vendor.raw", lambda: os.write(1, b"by call\n"))
    isolated("vendor.raw", lambda: os.system("echo by child"), limit=5)
    print("after")
    out, err = capfd.readouterr()
    assert out == "before\nafter\n"
    assert err.split("\n")[:2] == ["by call", "by child"]


def test_no_descriptor_is_left_open() -> None:
    before = os.dup(0)
    os.close(before)
    for _ in range(3):
        isolated("vendor.x", int)
    after = os.dup(0)
    os.close(after)
    assert before == after


@pytest.mark.parametrize("text", ["", "[]", '{"disabled": 3, "trouble": []}', '{"trouble": {"a": 1}}', "{"])
def test_a_broken_file_switches_nothing_off(tmp_path: Path, text: str) -> None:
    (tmp_path / "plugins.json").write_text(text)
    assert plan.disabled_plugins(str(tmp_path), {}) == frozenset()
    note_trouble(str(tmp_path), PluginFailed("x", "y"))
    assert plan.read_trouble(str(tmp_path))["trouble"]["x"]["what"] == "y"

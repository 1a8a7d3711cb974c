"""The hand-written JSON, locks and file functions against the standard library's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack import lowlevel

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(plain)
def test_dump_is_read_by_json(value: object) -> None:
    text = lowlevel.dump_json(value)
    assert text.isascii()
    assert json.loads(text) == value


@given(plain)
def test_load_reads_what_json_writes(value: object) -> None:
    assert lowlevel.load_json(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) == json.loads(
        json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    )


@given(st.text())
def test_load_raises_nothing_but_value_error(text: str) -> None:
    try:
        lowlevel.load_json(text)
    except ValueError:
        pass


@pytest.mark.parametrize("bad", ["", "[1", "{", '{"a"', "nul", "[1,]", '{"a":1} x', "[" * 100_000])
def test_bad_json_without_the_json_module(bad: str) -> None:
    """The C half alone fails in odd ways; in a bare interpreter it must still be a ValueError."""
    code = (
        "import sys; sys.path += sys.argv[1:2]\n"
        "from gstack.lowlevel import load_json\n"
        "try: load_json(sys.stdin.read())\n"
        "except ValueError: print('ok')"
    )
    core = str(Path(lowlevel.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-IS", "-c", code, core], input=bad, capture_output=True, text=True, check=True
    )
    assert done.stdout == "ok\n"


def test_without_the_c_module_json_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowlevel, "_c_json", ())
    assert lowlevel.load_json(b'\xef\xbb\xbf {"a": [1, "\xc3\xa9"]} ') == {"a": [1, "é"]}
    assert lowlevel.dump_json({"a": 'é"'}) == '{"a": "\\u00e9\\""}'
    with pytest.raises(ValueError, match="text after"):
        lowlevel.load_json("1 2")


def test_sha256_is_the_known_one() -> None:
    assert lowlevel.sha256(b"abc").startswith("ba7816bf8f01cfea")


@given(st.text(), st.text())
def test_short_hash_tells_texts_apart(one: str, other: str) -> None:
    assert len(lowlevel.short_hash(one)) == 16
    assert (lowlevel.short_hash(one) == lowlevel.short_hash(other)) == (
        one.encode("utf-8", "surrogatepass") == other.encode("utf-8", "surrogatepass")
    )


def test_parent_and_join() -> None:
    assert lowlevel.parent("/a/b") == "/a"
    assert lowlevel.parent("/a") == "/"
    assert lowlevel.parent("/") == "/"
    assert lowlevel.parent("a") == "."
    assert lowlevel.join("/", "a") == "/a"
    assert lowlevel.join("/a/", "b", "c") == "/a/b/c"


def test_environ_is_the_environment() -> None:
    assert lowlevel.environ() == dict(os.environ)


@pytest.mark.skipif(not lowlevel.POSIX, reason="there are no named pipes")
def test_a_pipe_in_place_of_a_file_is_an_error_and_no_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match=r"regular|directory"):
            lowlevel.read_file(str(path), 10)


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 70_000, lowlevel.CHUNK + 1])
@pytest.mark.parametrize("limit", [-1, 1, 10, 11, 69_999, 1 << 20])
def test_a_file_is_read_up_to_the_limit(size: int, limit: int, tmp_path: Path) -> None:
    data = bytes(number % 251 for number in range(size))
    (tmp_path / "file").write_bytes(data)
    assert lowlevel.read_file(str(tmp_path / "file"), limit) == (data if limit < 0 else data[:limit])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_a_file_that_says_it_is_empty_is_read(tmp_path: Path) -> None:
    assert b"Name:" in lowlevel.read_file("/proc/self/status")
    assert lowlevel.read_file("/proc/self/status", 5) == b"Name:"

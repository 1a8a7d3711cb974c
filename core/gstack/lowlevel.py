"""The few system calls, JSON functions and locks that the hook needs, without ``os`` or ``json``.

Hot, and hand-written because importing costs what users feel: ``os`` adds 16 % and ``json`` (through ``re``) 120 % to
the bare interpreter (docs/performance.md). On POSIX everything comes from the built-in ``posix`` module and from
``_json``, the C half of ``json``; where those are missing, the ordinary modules are used.
"""

import sys

from gstack.shortjson import read_short

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    sys_os = os
else:
    try:
        import posix as sys_os
    except ImportError:  # Windows
        import os as sys_os

POSIX: bool = getattr(sys_os, "name", "posix") == "posix"

#: Largest part that is read or written at once, in bytes.
CHUNK = 1 << 18


def environ() -> "dict[str, str]":
    """This process's environment as text (undecodable bytes become surrogates, as in ``os.environ``)."""
    env: Any = sys_os.environ
    out = {}
    for key, value in env.items():
        if isinstance(key, bytes):
            key = key.decode("utf-8", "surrogateescape")
            value = value.decode("utf-8", "surrogateescape")
        out[key] = value
    return out


def join(*parts: str) -> str:
    """Path parts joined by a slash (which Windows accepts as well)."""
    return "/".join(part.rstrip("/") if part != "/" else "" for part in parts[:-1]) + "/" + parts[-1]


_READ = (
    sys_os.O_RDONLY
    | getattr(sys_os, "O_CLOEXEC", 0)
    | getattr(sys_os, "O_BINARY", 0)
    | getattr(sys_os, "O_NONBLOCK", 0)  # a pipe in place of a file must end in an error, not in waiting for a writer
)


def read_file(path: str, limit: int = -1) -> bytes:
    """The bytes of a regular file (links followed), at most ``limit`` of them (-1: all). Raises OSError."""
    fd = sys_os.open(path, _READ)
    try:
        status = sys_os.fstat(fd)
        if status.st_mode & 0o170000 != 0o100000:
            raise OSError(22, "not a regular file", path)
        # one read as a rule, no larger than needed: fresh memory costs more than reading
        wanted = status.st_size + 1
        wanted = wanted if limit < 0 else min(limit, wanted)
        data = sys_os.read(fd, wanted)
        if len(data) < wanted or len(data) == limit:
            return data
        return data + read_fd(fd, limit if limit < 0 else limit - len(data))
    finally:
        sys_os.close(fd)


def read_fd(fd: int, limit: int = -1) -> bytes:
    """What is left to read of ``fd``, at most ``limit`` bytes (-1: all). Raises OSError."""
    parts = []
    left = limit
    while limit < 0 or left > 0:
        part = sys_os.read(fd, CHUNK if limit < 0 else min(CHUNK, left))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[sys_os.write(fd, view) :]


_digest: "Any" = None


def sha256(data: bytes) -> str:
    """The SHA-256 of ``data`` in hexadecimal."""
    global _digest
    if _digest is None:
        for name in ("_sha2", "_sha256", "hashlib"):  # 3.12 and later, before, anywhere
            try:
                _digest = __import__(name).sha256
            except (ImportError, AttributeError):
                continue
            break
    return str(_digest(data).hexdigest())


def short_hash(text: str) -> str:
    """A stable name of 16 hexadecimal digits for ``text`` (FNV-1a; not a cryptographic hash, but needs no import)."""
    value = 0xCBF29CE484222325
    for byte in text.encode("utf-8", "surrogatepass"):
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def is_dir(path: str) -> bool:
    """Whether ``path`` is a folder (links followed); False on any error."""
    try:
        return sys_os.stat(path).st_mode & 0o170000 == 0o040000
    except (OSError, ValueError):
        return False


def open_folder(path: "str | bytes") -> "int | None":
    """A descriptor of a folder, to look at what is below it without walking the way to it each time; None where there
    is none (Windows; a folder that can't be opened). The caller closes it."""
    if not POSIX:
        return None
    try:
        return sys_os.open(path, sys_os.O_RDONLY | sys_os.O_DIRECTORY)
    except (OSError, ValueError):
        return None


def is_file(path: str) -> bool:
    """Whether ``path`` is a regular file (links followed); False on any error."""
    try:
        return sys_os.stat(path).st_mode & 0o170000 == 0o100000
    except (OSError, ValueError):
        return False


def parent(path: str) -> str:
    """The folder that holds ``path``; ``path`` itself at the top."""
    bare = path.rstrip("/" if POSIX else "/\\")
    cut = bare.rfind("/") if POSIX else max(bare.rfind("/"), bare.rfind("\\"))
    if cut < 0:
        return "." if bare else path
    return bare[:cut] or "/"


# -------------------------------------------------------------------------------------------------- json


def _constant(name: str) -> float:
    return float(name.replace("Infinity", "inf"))


def _integer(digits: str) -> "int | float":
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts: nobody's number, but no reason to refuse the document
        return float(digits)


#: A document of more characters is read by the C half of ``json`` at once.
_SHORT = 1 << 14
_SPACE = " \t\r\n"

_c_json: "tuple[Any, Any] | tuple[()] | None" = None


def _json_in_c() -> "tuple[Any, Any] | tuple[()]":
    """The scanner and the string encoder of the C half of ``json``, loaded on first use; empty where there is none."""
    global _c_json
    if _c_json is None:
        try:
            import _json
        except ImportError:  # another Python than CPython
            _c_json = ()
        else:
            # the scanner reads its settings from any object; this type is there already, making a class costs more
            namespace: Any = type(sys.implementation)
            settings = namespace(
                strict=False,
                object_hook=None,
                object_pairs_hook=None,
                parse_float=float,
                parse_int=_integer,
                parse_constant=_constant,
                memo={},
            )
            _c_json = (_json.make_scanner(settings), _json.encode_basestring_ascii)
    return _c_json


def scan_json(text: str, start: int = 0, *, alone: bool = False) -> "tuple[Any, int]":
    """The first JSON value of ``text`` from ``start`` on, and where it ends. Raises ValueError.

    ``alone``: not one of many, so that a short one isn't worth loading the C half for.
    """
    while start < len(text) and text[start] in _SPACE:
        start += 1
    if alone and _c_json is None and len(text) - start <= _SHORT:
        try:
            return read_short(text, start)
        except (ValueError, IndexError, RecursionError):
            pass  # not plain enough, or a mistake
    in_c = _json_in_c()
    if not in_c:
        from json import JSONDecoder

        return JSONDecoder(strict=False).raw_decode(text, start)
    try:
        found: tuple[Any, int] = in_c[0](text, start)
    except (StopIteration, SystemError):
        # before 3.12 the C half needs json.decoder to be imported to say what is wrong, and else fails in this odd way
        raise ValueError("no JSON value") from None
    return found


def load_json(data: "bytes | str") -> "Any":
    """One JSON document, a byte-order mark tolerated. Raises ValueError when it isn't just that."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    text = text.removeprefix("\ufeff")
    try:
        value, end = scan_json(text, alone=True)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
    if text[end:].strip(_SPACE):
        raise ValueError("text after the JSON document")
    return value


def dump_json(value: "Any") -> str:
    """``value`` (dict, list, tuple, str, int, float, bool, None) as ASCII-only JSON on one line."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return repr(value) if value == value and value not in (float("inf"), float("-inf")) else "null"
    if isinstance(value, dict):
        return "{" + ", ".join([dump_json(str(k)) + ": " + dump_json(v) for k, v in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([dump_json(v) for v in value]) + "]"
    raise TypeError("not plain data: " + type(value).__name__)


def _quoted(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    in_c = _json_in_c()
    if in_c:
        return str(in_c[1](text))
    from json import dumps

    return dumps(text)


# -------------------------------------------------------------------------------------------------- lock


def lock_fd(fd: int, *, wait: bool) -> bool:
    """Take the exclusive lock of an open file, for as long as it is open; False when another holds it
    (``wait=False``)."""
    if POSIX:
        import fcntl

        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True
    import msvcrt
    import time

    while True:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            if not wait:
                return False
            time.sleep(0.02)
        else:
            return True

"""Keeping the bundle fresh without anybody waiting for it (gate G5): at most one detached ``gstack sync``
in five minutes.

Hot: the hook imports this after it has answered, so builtins only, and ``posix_spawn`` instead of
``subprocess`` (which costs more than the whole hook). The sync itself lies in :mod:`gstack.gate.sync`.
"""

import sys

from gstack.gate.freshness import STALE_AFTER, read_freshness
from gstack.lowlevel import POSIX, environ, join, lock_fd, parent, read_fd, sys_os, write_all
from gstack.state import ensure_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Least time between two background starts of a sync, in seconds (gate G5).
REFRESH_EVERY = 300.0

#: What a detached child runs: the install that started it, whichever way it was put there (argument 1: its
#: folder).
_BOOT = (
    "import sys;sys.path.append(sys.argv.pop(1));sys.argv[0]='gstack';"
    "from gstack.cli import main;raise SystemExit(main())"
)

#: Descriptors that a child mustn't keep open: a host waits for whoever holds its pipes.
_INHERITABLE = range(3, 64)


def maybe_start(root: str, now: float, *, stale_after_s: float = STALE_AFTER) -> bool:
    """Start ``gstack sync --quiet`` detached when the bundle is due; True when this process started it.

    Due: connected, and the last successful sync is older than an hour (or than half of ``stale_after_s``), lies
    in the future (the clock was wrong), or never was. ``now`` in seconds since the epoch. Never raises.
    """
    try:
        if not read_freshness(root, {"stale_after": stale_after_s, "stale_action": "warn"}, now).due:
            return False
        return claim(join(root, "gate", "refresh.lock"), now, REFRESH_EVERY) and start(root, ("sync", "--quiet"))
    except (OSError, ValueError):
        return False


def claim(path: str, now: float, every: float) -> bool:
    """Whether this process may do what ``path`` limits to once in ``every`` seconds; True notes ``now``
    there.

    However many ask at once, one gets it. A noted time over ``every`` seconds in the future is a clock that
    went back. Raises OSError when the file can't be used (a link, a folder).
    """
    ensure_dir(parent(path))
    flags = sys_os.O_RDWR | sys_os.O_CREAT | getattr(sys_os, "O_NOFOLLOW", 0) | getattr(sys_os, "O_BINARY", 0)
    fd = sys_os.open(path, flags | getattr(sys_os, "O_CLOEXEC", 0), 0o600)
    try:
        if not lock_fd(fd, wait=False):
            return False
        try:
            noted = float(read_fd(fd, 64))
        except ValueError:
            noted = None
        if noted is not None and abs(now - noted) < every:
            return False
        note = b"%.3f\n" % now
        sys_os.lseek(fd, 0, 0)
        write_all(fd, note)
        sys_os.ftruncate(fd, len(note))
        return True
    finally:
        sys_os.close(fd)


def start(root: str, args: "Sequence[str]") -> bool:
    """Start ``gstack <args>`` for the state folder ``root``, detached and silent; False when there is no
    interpreter.

    The child has a session of its own, none of our descriptors, and its arguments hold no secret: it reads
    the credentials itself. ``-I`` keeps the project that the host happens to stand in out of its import
    path. Raises OSError.
    """
    if not sys.executable:
        return False
    folder = parent(parent(parent(__file__)))
    argv = [sys.executable, "-I", "-c", _BOOT, folder, *args]
    env = environ()
    env["GSTACK_STATE_ROOT"] = root
    if POSIX:
        _spawn(argv, env)
    else:  # pragma: no cover - Windows
        _popen(argv, env)
    return True


def _spawn(argv: "list[str]", env: "dict[str, str]") -> None:
    for fd in _INHERITABLE:
        try:
            sys_os.set_inheritable(fd, False)
        except OSError:
            pass
    null = [(sys_os.POSIX_SPAWN_OPEN, fd, "/dev/null", sys_os.O_RDWR, 0) for fd in (0, 1, 2)]
    signals = [
        1,
        2,
        13,
        15,
    ]  # hang-up, interrupt, pipe, terminate: what the host's parent may have set to ignore
    try:
        sys_os.posix_spawn(argv[0], argv, env, file_actions=null, setsid=True, setsigdef=signals)
    except NotImplementedError:  # a C library without POSIX_SPAWN_SETSID: a process group of its own must do
        sys_os.posix_spawn(argv[0], argv, env, file_actions=null, setpgroup=0, setsigdef=signals)


def _popen(argv: "list[str]", env: "dict[str, str]") -> None:  # pragma: no cover - Windows
    import subprocess

    flags = 0
    for name in ("CREATE_NO_WINDOW", "CREATE_NEW_PROCESS_GROUP"):
        flags |= getattr(subprocess, name, 0)
    null = subprocess.DEVNULL
    subprocess.Popen(argv, env=env, stdin=null, stdout=null, stderr=null, close_fds=True, creationflags=flags)

"""Where gstack keeps its state, and how files there are written: atomically, private, under locks.

Hot: imported by the hook, so builtins only (see :mod:`gstack.lowlevel`). Layout: spec, switches S4.
"""

from time import monotonic, sleep

from gstack.lowlevel import POSIX, is_dir, join, lock_fd, parent, sys_os, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_CLOEXEC = getattr(sys_os, "O_CLOEXEC", 0) | getattr(sys_os, "O_BINARY", 0)


def home_dir(env: "Mapping[str, str]") -> str:
    """The person's home folder, from the environment alone."""
    return env.get("HOME") or env.get("USERPROFILE") or "/"


def state_root(env: "Mapping[str, str]", recorded: "str | None" = None) -> str:
    """The state folder (switches S4).

    The first that is set of ``GSTACK_STATE_ROOT``, ``GSTACK_HOME``, ``recorded`` (what setup wrote into the
    launcher), an
    existing ``~/.gstack``, and the platform's own state folder. The folder needn't exist.
    """
    for name in ("GSTACK_STATE_ROOT", "GSTACK_HOME"):
        value = env.get(name)
        if value:
            return _absolute(value, env)
    if recorded:
        return recorded
    legacy = join(home_dir(env), ".gstack")
    if is_dir(legacy):
        return legacy
    from platformdirs import user_state_dir

    return user_state_dir("gstack", appauthor=False)


def _absolute(path: str, env: "Mapping[str, str]") -> str:
    if path == "~" or path.startswith("~/"):
        path = home_dir(env) + path[1:]
    rooted = path.startswith("/") or (not POSIX and (path[1:2] == ":" or path.startswith("\\")))
    path = path if rooted else join(sys_os.getcwd(), path)
    return path.rstrip("/") or "/"


def ensure_dir(path: str) -> None:
    """Make a folder and its parents, mode 0700. Raises OSError."""
    if is_dir(path):
        return
    above = parent(path)
    if above != path:
        ensure_dir(above)
    try:
        sys_os.mkdir(path, 0o700)
    except FileExistsError:
        if not is_dir(path):
            raise


def write_atomic(path: str, data: bytes, *, mode: int = 0o600, sync: bool = True) -> None:
    """Replace ``path`` by ``data`` as a whole: a temporary file beside it, fsync (unless told otherwise), rename.

    Raises OSError. The folder is made when it is missing. A reader sees the old bytes or the new ones, never a part; on
    an error the old file is as it was and the temporary one is gone.
    """
    ensure_dir(parent(path))
    temporary = f"{path}.{sys_os.getpid()}.{int(monotonic() * 1e9):x}.tmp"
    fd = sys_os.open(temporary, sys_os.O_WRONLY | sys_os.O_CREAT | sys_os.O_EXCL | _CLOEXEC, mode)
    try:
        try:
            if POSIX:
                sys_os.fchmod(fd, mode)  # whatever the umask says
            write_all(fd, data)
            if sync:
                sys_os.fsync(fd)
        finally:
            sys_os.close(fd)
        sys_os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise


def remove(path: str) -> bool:
    """Delete a file; False when it could not be deleted (it may be gone already)."""
    try:
        sys_os.unlink(path)
    except OSError:
        return False
    return True


class Lock:
    """An exclusive lock on the file ``path``, held inside ``with`` and given back by the system if the process dies.

    ``wait=False`` tries once; otherwise it waits at most ``timeout`` seconds. ``held`` says whether it was got;
    entering
    never raises for a busy lock, but raises OSError when the file can't be made.
    """

    __slots__ = ("_fd", "held", "path", "timeout", "wait")

    def __init__(self, path: str, *, wait: bool = True, timeout: float = 5.0) -> None:
        self.path = path
        self.wait = wait
        self.timeout = timeout
        self.held = False
        self._fd = -1

    def __enter__(self) -> "Lock":
        ensure_dir(parent(self.path))
        flags = sys_os.O_RDWR | sys_os.O_CREAT | _CLOEXEC | getattr(sys_os, "O_NOFOLLOW", 0)
        self._fd = sys_os.open(self.path, flags, 0o600)
        until = monotonic() + self.timeout
        while True:
            self.held = lock_fd(self._fd, wait=False)
            if self.held or not self.wait or monotonic() >= until:
                return self
            sleep(0.005)

    def __exit__(self, *_: object) -> None:
        fd, self._fd, self.held = self._fd, -1, False
        if fd >= 0:
            sys_os.close(fd)

"""The hooks' logs: one line a decision, never a word that a person typed.

Hot: imported by the hook, so builtins only. Rules: spec, routing R6.
"""

from time import gmtime, strftime

from gstack.lowlevel import join, sys_os, write_all
from gstack.state import ensure_dir

#: Size at which a log is turned over, in bytes; one old file is kept.
ROTATE_AT = 1 << 20

_FLAGS = (
    sys_os.O_WRONLY
    | sys_os.O_CREAT
    | sys_os.O_APPEND
    | getattr(sys_os, "O_CLOEXEC", 0)
    | getattr(sys_os, "O_NOFOLLOW", 0)
    | getattr(sys_os, "O_BINARY", 0)
)


def log_path(root: str, name: str) -> str:
    """Where the log ``name`` lies."""
    return join(root, "hooks", name + ".log")


def log(root: str, name: str, session_id: "str | None", text: str) -> None:
    """Append ``<UTC time> <session> <text>`` to ``hooks/<name>.log``: one write, mode 0600. Never raises.

    Control characters are written as ``\\xNN``, so that a line stays a line; a session without id is ``-``.
    """
    try:
        stamp = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())
        line = f"{stamp} {_plain((session_id or '-')[:128], spaces=False)} {_plain(text)}\n"
        path = log_path(root, name)
        try:
            fd = sys_os.open(path, _FLAGS, 0o600)
        except FileNotFoundError:
            ensure_dir(join(root, "hooks"))
            fd = sys_os.open(path, _FLAGS, 0o600)
        try:
            status = sys_os.fstat(fd)
            write_all(fd, line.encode("utf-8", "backslashreplace"))
        finally:
            sys_os.close(fd)
        # only the file that was seen full is turned over: another hook may have done it in between
        if status.st_size + len(line) > ROTATE_AT and sys_os.stat(path).st_ino == status.st_ino:
            sys_os.replace(path, path + ".1")
    except (OSError, ValueError):
        return


def _plain(text: str, *, spaces: bool = True) -> str:
    if not spaces:
        text = text.replace(" ", "\\x20")
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() else char.encode("unicode_escape").decode() for char in text])

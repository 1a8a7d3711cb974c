"""Whether the name of a script or a target says that it tests or checks (contracts C2).

Hot: the stop hook judges with it, so builtins only.
"""

from gstack_plugins.check_after_last_edit import table


def says_script(path: str) -> bool:
    """Whether a script's name says test, spec, repro, check, verify or lint."""
    folder, _, base = path.replace("\\", "/").rpartition("/")
    for ending in table.SCRIPT_ENDINGS:
        if base.lower().endswith(ending):
            base = base[: -len(ending)]
            break
    parts = _parts(base)
    if _says_check(parts, table.CHECK_WORDS):
        return True
    return folder.rpartition("/")[2].lower() in table.TEST_FOLDERS and bool(parts) and parts[0] in table.RUN_WORDS


def says_target(name: str) -> bool:
    """Whether the name of a package script or a target says test or check, or is a tool's that does."""
    if name.lower() in table.RUNNERS:
        return True
    return _says_check(_parts(name), table.CHECK_WORDS | table.TARGET_WORDS | table.RUNNERS)


def _says_check(parts: "list[str]", words: "frozenset[str]") -> bool:
    if not parts or (parts[0] in table.NOT_FIRST and "and" not in parts):
        return False
    if len(parts) > 1 and parts[-1] in table.NOT_AFTER_TEST and parts[-2] in ("test", "tests", "spec", "specs"):
        parts = parts[:-2]
    return any(part in words or (part.endswith(table.CHECK_ENDINGS) and part not in table.LOOKALIKES) for part in parts)


def _parts(name: str) -> "list[str]":
    """The words of a name: ``run-unitTests`` is run, unit, tests."""
    pieces = []
    lower = False
    for char in name:
        if not char.isalnum():
            pieces.append(" ")
        elif char.isupper() and lower:
            pieces.append(" " + char)
        else:
            pieces.append(char)
        lower = char.islower()
    return "".join(pieces).lower().split()

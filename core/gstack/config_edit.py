"""Changing the configuration file without disturbing the rest of it. Cold."""

import difflib

from gstack.config import KEYS, Config, config_path, plain_value, problem_with, read_config, switch_word
from gstack.errors import CheckFailed, StateError, UsageError
from gstack.lowlevel import join
from gstack.state import Lock, write_atomic

_HEADER = "# gstack's settings: flat `key: value` lines. `gstack config list` shows every key.\n"


def known_key(key: str) -> str:
    """``key`` itself. Raises CheckFailed with the nearest name when the table lacks it (exit 1)."""
    if key in KEYS:
        return key
    near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.4)
    raise CheckFailed(f"there is no key {key!r}", hint=f"did you mean {near[0]}?" if near else "see gstack config list")


def readable(root: str) -> Config:
    """The configuration. Raises StateError when it exists but can't be read (exit 3)."""
    config = read_config(root)
    if config.status == "unreadable":
        raise StateError(
            f"{config.path} can't be read: {config.problem}; routing and contracts are off until it is mended"
        )
    return config


def canonical(key: str, value: str) -> str:
    """``value`` as it is stored. Raises UsageError when the key's type refuses it."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"the value of {key} must be UTF-8 text") from None
    problem = problem_with(key, value)
    if problem:
        raise UsageError(f"{value!r} can't be the value of {key}: {problem}")
    if "\n" in value or "\r" in value:
        raise UsageError(f"the value of {key} must be one line")
    return switch_word(value) or value if KEYS[key][0] == "switch" else value.strip()


def set_key(root: str, key: str, value: str) -> None:
    """Set a key, keeping every other line. Raises CheckFailed, UsageError, StateError."""
    known_key(key)
    stored = canonical(key, value)
    if not stored:
        raise UsageError(f"the value of {key} is empty", hint=f"gstack config unset {key} goes back to the default")
    if plain_value(_written(stored)) != stored:
        raise UsageError(f"the value of {key} mixes both kinds of quotes in a way that a line can't hold")
    _rewrite(root, key, f"{key}: {_written(stored)}")


def unset_key(root: str, key: str) -> bool:
    """Take a key out of the file; False when it wasn't in it. Raises CheckFailed, StateError."""
    known_key(key)
    if not readable(root).has(key):
        return False
    _rewrite(root, key, None)
    return True


def _written(value: str) -> str:
    """The value so that it reads back as it is: quoted where a ``#`` or quotes would be taken for something else."""
    if plain_value(value) == value:
        return value
    return f'"{value}"' if '"' not in value else f"'{value}'"


def _rewrite(root: str, key: str, line: str | None) -> None:
    path = config_path(root)
    try:
        with Lock(join(root, "config.lock")):
            config = readable(root)
            text = "" if config.status == "absent" else _text_of(path)
            write_atomic(path, _replaced(text, key, line).encode("utf-8"))
    except OSError as error:
        raise StateError(f"{path} can't be written: {error.strerror}") from error


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8-sig", newline="") as file:
        return file.read()


def _replaced(text: str, key: str, line: str | None) -> str:
    """Every line of ``key`` becomes ``line`` (None: goes); without one it is added at the end."""
    ending = "\r\n" if "\r\n" in text else "\n"
    out: list[str] = []
    done = line is None
    for old in (text or _HEADER).splitlines(keepends=True):
        if old.partition(":")[0].strip() == key and old[:1] not in " \t#":
            if line is not None and not done:
                out.append(line + ending)
                done = True
            continue
        out.append(old)
    if not done and line is not None:
        if out and not out[-1].endswith(("\n", "\r")):
            out.append(ending)
        out.append(line + ending)
    return "".join(out)

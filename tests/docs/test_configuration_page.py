"""The page of the configuration names every environment variable that gstack reads, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from page_support import DOCS, ROOT

from gstack.config import KEYS

PAGE = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")

#: Read by libraries that gstack uses.
OF_LIBRARIES = {"XDG_STATE_HOME", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"}
#: What test helpers and the sandbox pass on isn't read by gstack itself.
APART = ("testing/", "scaffold/", "sandbox.py")
_NAME = re.compile(r"[A-Z][A-Z0-9_]{2,}")


def read_variables() -> set[str]:
    found: set[str] = set()
    for folder in ("core", "hosts", "plugins"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if not any(part in file.as_posix() for part in APART):
                found |= set(variables_of(file))
    return found


def variables_of(file: Path) -> Iterator[str]:
    """The names that a module looks up in an environment; where it looks up a variable's value, the upper-case words
    of its tuples as well."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    dynamic = False
    for node in ast.walk(tree):
        key = looked_up(node)
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value
        elif key is not None:
            dynamic = True
    for node in ast.walk(tree) if dynamic else ():
        if isinstance(node, ast.Tuple):
            yield from (
                item.value
                for item in node.elts
                if isinstance(item, ast.Constant) and isinstance(item.value, str) and _NAME.fullmatch(item.value)
            )


def looked_up(node: ast.AST) -> ast.expr | None:
    """The key of ``env.get(key)``, ``env[key]`` or ``environ...``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        owner, key = node.func.value, node.args[0]
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        owner, key = node.value, node.slice
    else:
        return None
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return key if name in ("env", "environ", "variables") else None


def test_every_variable_that_is_read_is_on_the_page_and_no_other() -> None:
    rows = [line.split("|")[1] for line in PAGE.split("## Other environment variables")[1].splitlines() if "|" in line]
    named = {name for cell in rows for name in re.findall(r"`([A-Z_]+)`", cell)}
    named |= {row[2] for row in KEYS.values() if row[2]} | {"XDG_STATE_HOME"}
    assert named - OF_LIBRARIES == read_variables()


def test_every_key_and_type_is_explained() -> None:
    for key, (kind, default, variable, text) in KEYS.items():
        line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{key}` |"))
        assert text.replace("|", "\\|") in line
        assert (f"`{default}`" if default else "(empty)") in line
        assert variable in line
        assert all(word in line for word in (kind[7:].split("|") if kind.startswith("choice:") else ()))

"""Writes the file of compiled code that :mod:`gstack.boot` starts the hook from. Cold: once after an update.

Stored are the loaded modules whose docstring says that the hook imports them. What the hook, the host and the feature
import at their top runs at once; what functions import waits until it is asked for.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from marshal import dumps
from typing import Any

from gstack import boot
from gstack.hook import FEATURES
from gstack.lowlevel import read_file
from gstack.state import write_atomic


class _Source:
    """One loaded module: its file, stamp and parsed source; ``hot``: whether the hook is meant to import it."""

    def __init__(self, name: str, path: str, *, package: bool) -> None:
        self.name = name
        self.path = path
        self.package = package
        self.stamp = boot.stamp_of(path)
        self.tree = ast.parse(read_file(path), path)
        self.hot = package or re.search(r"\bHot\b", ast.get_docstring(self.tree) or "") is not None

    def entry(self, code: Any) -> tuple[Any, ...]:
        """The row of the stored file."""
        return (self.name, self.path, self.stamp, self.package, code)

    def code(self) -> Any:
        """Compiled without docstrings: nobody reads them in a hook, and reading them in costs."""
        return compile(self.tree, self.path, "exec", dont_inherit=True, optimize=2)


def store(path: str) -> None:
    """Store the code of the hot modules that this process has loaded. Raises OSError, SyntaxError, ValueError."""
    sources = {source.name: source for source in _loaded()}
    always = _in_order(sources)
    lazy = [name for name, source in sources.items() if source.hot and name not in always]
    stored = (
        sources["gstack.boot"].code(),
        [sources[name].entry(sources[name].code()) for name in always],
        [sources[name].entry(dumps(sources[name].code())) for name in lazy],
        [name for name in sys.modules if name.startswith("gstack")],
    )
    write_atomic(path, dumps(stored), sync=False)


def _loaded() -> Iterator[_Source]:
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None) or ""
        if name.split(".")[0].split("_")[0] == "gstack" and path.endswith(".py"):
            yield _Source(name, path, package=hasattr(module, "__path__"))


def _in_order(sources: dict[str, _Source]) -> list[str]:
    """What every hook of this kind needs, each after what it imports: then every import finds its module in place."""
    order: dict[str, None] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in order or name in above or name not in sources:
            return
        parent = name.rpartition(".")[0]
        for needed in (parent, *_imports(sources[name].tree.body)):
            visit(needed, (*above, name))
        order[name] = None

    features = [module for _, module, _, _ in FEATURES.values()]
    for name in ("gstack.boot", "gstack.hook", *(n for n in sources if n.startswith("gstack_hosts.")), *features):
        if name.count(".") < 2 or name in features:
            visit(name, ())
    return list(order)


def _imports(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The modules that a module imports when it runs: not those for type checkers, nor those inside functions."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If):
            checking = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            yield from _imports(node.orelse if checking else [*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _imports([*node.body, *node.orelse, *node.finalbody])

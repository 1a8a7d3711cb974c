"""Writes the file of compiled code that :mod:`gstack.boot` starts the hook from. Cold: once after an update.

Stored are the loaded modules whose docstring says that the hook imports them. What the hook, the host and the feature
import at their top runs at once; what functions import waits until it is asked for. Within each module, the functions
that no run has called so far wait as well. What nobody reads in a hook (docstrings, annotations) is left out.
"""

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from marshal import dumps
from typing import Any

from gstack import boot
from gstack.hook import FEATURES
from gstack.lowlevel import read_file
from gstack.state import write_atomic

#: Decorators that take a function which only waits as well as the function itself.
_PLAIN_DECORATORS = frozenset(["property", "staticmethod", "classmethod"])
#: Methods that Python itself looks at when it makes the class.
_MAKING = frozenset(["__new__", "__init_subclass__", "__class_getitem__"])


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

    def code(self, called: Collection[str]) -> Any:
        """Compiled as a hook needs it; functions that aren't among ``called`` (``module:name``) wait."""
        bare: ast.Module = _Bare().visit(self.tree)
        if self.name != boot.__name__:  # that one is there before anything can wait
            for place, node in enumerate(bare.body):
                bare.body[place] = self._waiting(node, "", called)
        return _compiled(bare, self.path)

    def _waiting(self, node: Any, prefix: str, called: Collection[str]) -> Any:
        """``node``, if it is a function that can and should wait: a statement that leaves its code for later."""
        if isinstance(node, ast.ClassDef) and not prefix:
            for place, inner in enumerate(node.body):
                node.body[place] = self._waiting(inner, node.name + ".", called)
        if (
            not isinstance(node, ast.FunctionDef)
            or f"{self.name}:{prefix}{node.name}" in called
            or not _can_wait(node, prefix)
        ):
            return node
        decorators, node.decorator_list = node.decorator_list, []
        value: ast.expr = ast.Call(
            ast.Name("_waiting_", ast.Load()),
            [ast.Constant(prefix + node.name), ast.Constant(dumps(_compiled(ast.Module([node], []), self.path)))],
            [],
        )
        for decorator in reversed(decorators):
            value = ast.Call(decorator, [value], [])
        return ast.copy_location(ast.Assign([ast.Name(node.name, ast.Store())], value), node)


class _Bare(ast.NodeTransformer):
    """Takes out annotations and what is for type checkers only."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        value = node.value
        return ast.copy_location(ast.Pass() if value is None else ast.Assign([node.target], value), node)

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        return (node.orelse or ast.copy_location(ast.Pass(), node)) if _for_type_checkers(node) else node


def _compiled(tree: ast.Module, path: str) -> Any:
    """Without docstrings: nobody reads them in a hook, and reading them in costs."""
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True, optimize=2)


def _can_wait(node: ast.FunctionDef, prefix: str) -> bool:
    """Whether nothing tells a function that waits from the function itself: no closure over its class, no default
    that only the class body can give, no decorator but the plainest."""
    if any(getattr(one, "id", "") not in _PLAIN_DECORATORS for one in node.decorator_list):
        return False
    if not prefix:
        return not node.name.startswith("__")  # a module's own __getattr__
    defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    if node.name in _MAKING or not all(isinstance(one, ast.Constant) for one in defaults):
        return False
    names = {getattr(one, "id", getattr(one, "attr", "")) for one in ast.walk(node)}
    return names.isdisjoint(["super", "__class__"]) and not any(map(_is_mangled, names))


def _is_mangled(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def store(path: str, called: Collection[str]) -> None:
    """Store the code of the hot modules that this process has loaded; ``called``: the functions that runs like this
    one call, as ``module:name``. Raises OSError, SyntaxError, ValueError."""
    sources = {source.name: source for source in _loaded()}
    always = _in_order(sources)
    lazy = [name for name, source in sources.items() if source.hot and name not in always]
    stored = (
        [sources[name].entry(sources[name].code(called)) for name in always],
        [sources[name].entry(dumps(sources[name].code(called))) for name in lazy],
        [name for name in sys.modules if name.startswith("gstack")],
        dumps(sorted(called)),
    )
    write_atomic(path, dumps(_starter(sources[boot.__name__], stored)), sync=False)


def _starter(source: _Source, stored: tuple[Any, ...]) -> Any:
    """The code that the launcher runs: :mod:`gstack.boot`, with what is stored as a constant that it is given."""
    tree = ast.parse("start_stored('stored')")
    code = _compiled(ast.Module([*source.tree.body, *tree.body], []), source.path)
    return code.replace(co_consts=tuple(stored if one == "stored" else one for one in code.co_consts))


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
            yield from _imports(node.orelse if _for_type_checkers(node) else [*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _imports([*node.body, *node.orelse, *node.finalbody])


def _for_type_checkers(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"

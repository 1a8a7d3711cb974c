"""Writes the file of compiled code that :mod:`gstack.boot` starts the hook from. Cold: once after an update.

Stored are the loaded modules whose docstring says that the hook imports them. What the hook, the host and the feature
import at their top runs at once; what functions import waits until it is asked for. Within each module, the functions
that no run has called so far wait as well. What nobody reads in a hook (docstrings, annotations) is left out.
"""

import ast
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from marshal import dumps
from types import CodeType
from typing import Any

from gstack import boot
from gstack.hook import FEATURES
from gstack.lowlevel import read_file, sha256
from gstack.state import remove, write_atomic

#: What is stored: these packages keep to what stored code can do; an outside plug-in needn't.
_OURS = ("gstack", "gstack_plugins", "gstack_hosts")
#: More than the code of one host and event takes, in bytes.
_ROOM = 1 << 19
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


class _Waiting:
    """The second file: what is fetched when it is needed."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, value: Any) -> tuple[int, int]:
        """Put plain data or code there; gives its place and size in bytes."""
        start, one = len(self.data), dumps(value)
        self.data += one
        return start, len(one)


class _Compiler:
    """Makes the code that a hook runs; functions that aren't among ``called`` (``module:name``) go to ``waiting``.

    ``lazy`` are the modules that the stored code has but doesn't run at once.
    """

    def __init__(self, called: Collection[str], lazy: Collection[str], waiting: _Waiting) -> None:
        self.called = called
        self.lazy = lazy
        self.waiting = waiting

    def code(self, source: _Source) -> Any:
        """A module's code."""
        bare: ast.Module = _Needs(self.lazy).visit(_Bare().visit(source.tree))
        for place, node in enumerate(bare.body):
            bare.body[place] = self._waiting(source, node, "")
        return _compiled(bare, source.path)

    def starter(self, source: _Source, stored: tuple[Any, ...]) -> Any:
        """The code that the launcher runs: :mod:`gstack.boot`, which is given ``stored`` as a constant."""
        tree = ast.parse("start_stored('stored')")
        code = _compiled(ast.Module([*_Bare().visit(source.tree).body, *tree.body], []), source.path)
        return code.replace(co_consts=tuple(stored if one == "stored" else one for one in code.co_consts))

    def _waiting(self, source: _Source, node: Any, prefix: str) -> Any:
        """``node``, or a statement in place of a function that can and should wait."""
        if isinstance(node, ast.ClassDef) and not prefix:
            for place, inner in enumerate(node.body):
                node.body[place] = self._waiting(source, inner, node.name + ".")
        if (
            not isinstance(node, ast.FunctionDef)
            or f"{source.name}:{prefix}{node.name}" in self.called
            or not _can_wait(node, prefix)
        ):
            return node
        decorators, node.decorator_list = node.decorator_list, []
        start, size = self.waiting.add(_compiled(ast.Module([node], []), source.path))
        arguments: list[ast.expr] = [ast.Constant(one) for one in (prefix + node.name, start, size)]
        value: ast.expr = ast.Call(ast.Name("_waiting_", ast.Load()), arguments, [])
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


class _Needs(ast.NodeTransformer):
    """Lets code ask for a stored module before it imports it (:func:`gstack.boot._need`)."""

    def __init__(self, lazy: Collection[str]) -> None:
        self.lazy = lazy

    def visit_Import(self, node: ast.Import) -> Any:
        return self._after_asking(node, [alias.name for alias in node.names])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        module = node.module or ""
        return self._after_asking(node, [module, *(f"{module}.{alias.name}" for alias in node.names)])

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != "__import__":
            return node
        return [ast.copy_location(_asking(call.args[0]), node), node]

    def _after_asking(self, node: ast.stmt, names: Iterable[str]) -> Any:
        asking = [ast.copy_location(_asking(ast.Constant(name)), node) for name in names if name in self.lazy]
        return [*asking, node]


def _asking(name: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name("_need_", ast.Load()), [name], []))


def _compiled(tree: ast.Module, path: str) -> Any:
    """Without docstrings and line numbers: nobody sees them in a hook, and reading them in costs."""
    return _without_lines(compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True, optimize=2))


def _without_lines(code: Any) -> Any:
    inner = tuple(_without_lines(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_consts=inner, co_linetable=b"")


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


def store(
    path: str, called: Collection[str], earlier: Iterable[tuple[Any, ...]] = (), known: Collection[str] = ()
) -> None:
    """Store the code of the hot modules that this process has loaded, and of those that it got from the stored code.

    ``called`` are the functions that runs for this event call, as ``module:name``; ``earlier`` and ``known`` what the
    stored code has and knows of: runs differ, and each must find what it needs. Raises OSError, SyntaxError,
    ValueError.
    """
    _make_sure_of_room(path)
    sources = {source.name: source for source in _loaded()}
    for name, source, _, is_package, _ in earlier:
        if name not in sources:
            sources[name] = _Source(name, source, package=is_package)
    order = _in_order(sources)
    lazy_names = [source.name for source in sources.values() if source.hot and source.name not in order]
    waiting = _Waiting()
    compiler = _Compiler(called, lazy_names, waiting)
    always = [sources[name].entry(compiler.code(sources[name])) for name in order if name != boot.__name__]
    always.insert(order.index(boot.__name__), sources[boot.__name__].entry(None))
    lazy = [sources[name].entry(waiting.add(compiler.code(sources[name]))) for name in lazy_names]
    names = sorted({*known, *(name for name in sys.modules if name.startswith("gstack"))})
    place = waiting.add(sorted(called))
    second = second_file(path, waiting.data)
    write_atomic(second, waiting.data)
    stored = (second, always, lazy, names, place)
    write_atomic(path, dumps(compiler.starter(sources[boot.__name__], stored)))
    _remove_older(path, second)


def second_file(path: str, data: bytes) -> str:
    """The path of the second file that holds ``data``."""
    return f"{path}~{sha256(data)[:16]}"


def remove_all(root: str) -> None:
    """Remove the stored code of every host and event, whatever it is like. Raises OSError."""
    import shutil

    folder = f"{root}/snapshot"
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.startswith("code"):
            path = f"{folder}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


def damaged(root: str) -> list[str]:
    """The second files that aren't what they were written as. Raises OSError."""
    folder = f"{root}/snapshot"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    paths = [f"{folder}/{name}" for name in sorted(names) if name.startswith("code") and "~" in name]
    return [path for path in paths if path != second_file(path.rpartition("~")[0], read_file(path))]


def _make_sure_of_room(path: str) -> None:
    """Find out before the work of it whether the code can be stored at all. Raises OSError."""
    if os.path.isdir(path):
        raise IsADirectoryError(path)
    trial = f"{path}~{os.getpid()}"
    try:
        write_atomic(trial, bytes(_ROOM), sync=False)
    finally:
        remove(trial)


def _remove_older(path: str, second: str) -> None:
    """Remove the second files that no newer hook will open."""
    folder, _, name = path.rpartition("/")
    for one in os.listdir(folder):
        if one.startswith(name + "~") and f"{folder}/{one}" != second:
            remove(f"{folder}/{one}")


def _loaded() -> Iterator[_Source]:
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None) or ""
        if name.split(".")[0] in _OURS and path.endswith(".py"):
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

"""What the four conformance kits share. Cold; needs no pytest, so that ``gstack plugins check`` can run them too."""

import marshal
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any, ClassVar

from gstack.failures import PluginFailed
from gstack.isolation import CALL_LIMIT, isolated
from gstack.plugins import pluggy_problem


def expect(condition: object, message: str) -> None:
    """Fail with ``message`` unless ``condition`` holds. Raises AssertionError, also under ``python -O``."""
    if not condition:
        raise AssertionError(message)


class Conformance:
    """Base of the kits: name the plug-in's module in ``plugin``, then every ``test_`` method checks one promise.

    ``builtin`` is for gstack's own plug-ins, whose names have no vendor prefix.
    """

    #: The module (or object) that the entry point names.
    plugin: Any = None
    builtin = False
    #: The entry-point group.
    group: ClassVar[str] = ""
    #: What one call may take in the hook, in seconds.
    limit: float = CALL_LIMIT

    def subjects(self) -> list[Any]:
        """The objects that the plug-in's hook returns."""
        expect(self.plugin is not None, "name the plug-in's module: plugin = my_module")
        hook = self.group.replace(".", "_")
        found = self.ask(getattr(self.plugin, hook))
        expect(isinstance(found, (list, tuple)), f"{hook} gave {type(found).__name__}, not a list")
        expect(found, f"{hook} gave nothing")
        return list(found)

    def ask(self, function: Callable[..., Any], *args: Any, limit: float | None = None, **named: Any) -> Any:
        """Call the plug-in as the hook does: raising, printing, exiting or taking too long fails the check."""
        name = getattr(function, "__qualname__", "the plug-in")
        with TemporaryFile() as raw:
            try:
                said = isolated(name, lambda: function(*args, **named), limit=limit or self.limit, raw=raw.fileno())
            except PluginFailed as failed:
                raise AssertionError(f"{name} {failed.what}") from failed.__cause__
            wrote = os.fstat(raw.fileno()).st_size
        expect(not wrote, f"{name} wrote {wrote} bytes to file descriptor 1, standard output")
        return said

    # ---------------------------------------------------------------------------------------------- checks

    def test_pluggy_accepts_the_plug_in(self) -> None:
        """The hook function has the right name, mark and arguments."""
        problem = pluggy_problem(self.plugin, self.group)
        expect(not problem, problem)

    def test_names_are_prefixed(self) -> None:
        """A name is one word; an outside one starts with its vendor: ``vendor.name``."""
        for one in self.subjects():
            name = one.id if self.group == "gstack.host_adapters" else one.name
            expect(isinstance(name, str) and name, f"the name is {name!r}, not a text")
            expect(not any(char.isspace() for char in name), f"{name!r} has white space in it")
            if not self.builtin:
                vendor, dot, rest = name.partition(".")
                expect(vendor and dot and rest, f"{name!r} needs a vendor prefix: vendor.{name}")


def one_line(text: object, what: str, *, limit: int = 400) -> str:
    """``text``, which must be one line of visible text. Raises AssertionError."""
    expect(isinstance(text, str), f"{what} is {type(text).__name__}, not a text")
    said = str(text)
    expect(said.strip() == said and said, f"{what} is empty or has white space round it: {said!r}")
    expect(said.isprintable(), f"{what} has a line break or control character: {said!r}")
    expect(len(said) <= limit, f"{what} has {len(said)} characters, more than {limit}")
    return said


def same(value: Any) -> Any:
    """A copy of plain data, to see later whether it was changed. Raises AssertionError for what is no plain data."""
    try:
        return marshal.loads(marshal.dumps(value))  # noqa: S302 - made in the same call
    except ValueError:
        raise AssertionError(
            "an index must be plain data (dict, list, tuple, str, bytes, int, float, bool, None)"
        ) from None


@contextmanager
def offline() -> Iterator[None]:
    """Any attempt to connect somewhere fails the check."""
    import socket

    def refused(*_: object, **__: object) -> None:
        raise OSError("a plug-in of this sort may not use the network")

    kept = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex", "sendto")}
    try:
        for name in kept:
            setattr(socket.socket, name, refused)
        yield
    finally:
        for name, value in kept.items():
            setattr(socket.socket, name, value)

"""``gstack plugins new``: a whole distribution for a plug-in of one's own, from a template. Cold.

The templates are working plug-ins: those for a kind and a host are the text of the distributions under ``examples/``.
Making one's own means replacing their names, so that what is written passes its tests at once.
"""

import keyword
import os
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

from gstack import api
from gstack.errors import CheckFailed, StateError, UsageError

__all__ = ["SORTS", "Project", "create"]

#: Template files end with this, so that no tool takes them for what they will be.
_SUFFIX = ".txt"
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)*")


class Template:
    """The names in a template: its plug-in's ``name``, ``module``, distribution (``dist``), class (``type``), and other
    words that follow from the name (``words``: word -> how it is made from the name's last part)."""

    def __init__(self, name: str, module: str, dist: str, type: str, words: dict[str, str] | None = None) -> None:
        self.name = name
        self.module = module
        self.dist = dist
        self.type = type
        self.words = words or {}


SORTS = {
    "kind": Template("vendor.file_exists", "vendor_file_exists", "vendor-file-exists", "FileExists"),
    "scorer": Template("vendor.shared_words", "vendor_shared_words", "vendor-shared-words", "SharedWords"),
    "resolver": Template("vendor.freeze", "vendor_freeze", "vendor-freeze", "Freeze"),
    "host": Template(
        "vendor.jsonl",
        "vendor_jsonl_host",
        "vendor-jsonl-host",
        "VendorJsonl",
        {"jsonl-agent": "{part}-agent", "JSONL agent": "{title} agent"},
    ),
}


class Project:
    """What is going to be written: the ``folder`` (in the current one), and the names in it."""

    def __init__(self, sort: str, name: str) -> None:
        """Raises UsageError for a name that no plug-in can have."""
        if sort not in SORTS:
            raise UsageError(f"{sort!r} is no sort of plug-in", hint="kind, scorer, resolver or host")
        if not _NAME.fullmatch(name) or len(name) > 60:
            raise UsageError(
                f"{name!r} is no plug-in's name",
                hint="lower-case letters and digits, parts joined by '.' or '_', such as acme.word_count",
            )
        vendor, dot, rest = name.partition(".")
        if not dot:
            raise UsageError(f"{name!r} needs a vendor prefix", hint=f"such as acme.{name}")
        if vendor == "gstack":
            raise UsageError("the prefix 'gstack' is gstack's own", hint=f"such as acme.{rest}")
        self.sort = sort
        self.name = name
        self.module = name.replace(".", "_")
        self.dist = self.module.replace("_", "-")
        words = re.split(r"[._]", rest)
        self.type = "".join(word.capitalize() for word in words)
        if keyword.iskeyword(self.type):
            raise UsageError(
                f"{name!r} would name its class {self.type}, which is a word of Python's own",
                hint=f"such as {name}_{sort}",
            )
        if hasattr(api, self.type):  # the module imports that one
            self.type += sort.capitalize()
        self.part = "-".join(words)
        self.title = " ".join(words).capitalize()

    def files(self) -> Iterator[tuple[str, str]]:
        """Each file: its path in the folder, and its text."""
        template = SORTS[self.sort]
        root = resources.files("gstack.scaffold") / "templates" / self.sort
        for path, text in _walk(root, ""):
            yield self._named(path, template), self._named(text, template)

    def _named(self, text: str, template: Template) -> str:
        pairs = [
            (template.name, self.name),
            (template.module, self.module),
            (template.dist, self.dist),
            (template.type, self.type),
        ]
        pairs += [(word, made.format(part=self.part, title=self.title)) for word, made in template.words.items()]
        # all at once: a name that was put in must not be taken for one of the template's
        table = dict(pairs)
        return re.sub("|".join(map(re.escape, table)), lambda found: table[found[0]], text)


def _walk(folder: Any, base: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _walk(entry, f"{base}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            yield base + entry.name.removesuffix(_SUFFIX), entry.read_text("utf-8")


def create(sort: str, name: str, where: str = "") -> tuple[Project, list[str]]:
    """Write the distribution of a new plug-in into a new folder in ``where``; gives it and the paths that were written.

    Raises UsageError for a bad name, CheckFailed when the folder is there already, StateError when it can't be written.
    """
    project = Project(sort, name)
    folder = os.path.join(where, project.dist)
    try:
        os.mkdir(folder)
    except FileExistsError:
        raise CheckFailed(f"{folder} is there already; nothing was written") from None
    except OSError as error:
        raise StateError(f"{folder} can't be made: {error.strerror}") from error
    written = []
    for path, text in project.files():
        target = os.path.join(folder, *path.split("/"))
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise StateError(f"{target} can't be written: {error.strerror}") from error
        written.append(target)
    return project, written

"""Distributions that are installed nowhere but in a folder of their own. Cold.

What is written is what an installer writes (a ``.dist-info`` with entry points, modules or a ``.pth`` file), so that
the launcher, the plug-in manager and the command line see it as they see any other.
"""

import importlib
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from gstack.sandbox import Sandbox


class FakeSite:
    """A folder like ``site-packages`` that ``box`` imports from. Calling it installs a distribution."""

    def __init__(self, folder: str, box: Sandbox) -> None:
        self.folder = folder
        self.box = box
        os.makedirs(folder, exist_ok=True)
        box.add_import_folder(folder)

    def __call__(
        self,
        name: str,
        entry_points: Mapping[str, Mapping[str, str]],
        files: Mapping[str, str] | None = None,
        *,
        version: str = "1.0",
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Install the distribution ``name``.

        ``entry_points`` maps each group to ``{entry point's name: module or module:attribute}``; ``files`` are written
        into the folder (``{"acme.py": text}``); ``path`` is a folder that holds the modules instead, as with
        ``pip install -e``.
        """
        stem = name.replace("-", "_")
        for file, text in (files or {}).items():
            self._write(file, text)
        if path is not None:
            self._write(f"_{stem}.pth", os.path.abspath(path) + "\n")
        info = f"{stem}-{version}.dist-info"
        # as an installer does it: what was there goes, which changes the folder
        shutil.rmtree(os.path.join(self.folder, info), ignore_errors=True)
        self._write(os.path.join(info, "METADATA"), f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines: list[str] = []
        for group, entries in entry_points.items():
            lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()), ""]
        self._write(os.path.join(info, "entry_points.txt"), "\n".join(lines))

    def project(self, folder: str | os.PathLike[str]) -> str:
        """Install the project in ``folder`` as ``pip install -e`` would: by its ``pyproject.toml``, with its ``src``.

        Gives the distribution's name. Raises OSError, or ValueError for what is no TOML.
        """
        project = _read_toml(os.path.join(folder, "pyproject.toml"))["project"]
        src = os.path.join(folder, "src")
        self(
            str(project["name"]),
            project.get("entry-points", {}),
            version=str(project.get("version", "0")),
            path=src if os.path.isdir(src) else folder,
        )
        return str(project["name"])

    def _write(self, name: str, text: str) -> None:
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)


def _read_toml(path: str) -> dict[str, Any]:
    # before 3.11 pytest brings the reader
    reader = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    with open(path, "rb") as file:
        found: dict[str, Any] = reader.load(file)
    return found

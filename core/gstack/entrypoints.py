"""Finding plug-ins without importing them: the entry points of what is installed.

Written by hand because the hook's slow road runs it too: reading the ``entry_points.txt`` files ourselves
takes a tenth of what ``importlib.metadata`` takes (docs/performance.md). Imports ``os`` only.
"""

import os
import sys
from collections.abc import Iterable, Sequence

from gstack.plan import OWN_DISTRIBUTION

#: The groups that gstack asks for.
GROUPS = ("gstack.contract_kinds", "gstack.trigger_scorers", "gstack.gate_resolvers", "gstack.host_adapters")


class Found:
    """One entry point of one of our groups.

    ``id`` is its name, ``module`` and ``attr`` its value, ``dist`` and ``version`` the distribution, ``metadata`` the
    folder that says so, ``site`` the folder that this lies in.
    """

    __slots__ = ("attr", "dist", "group", "id", "metadata", "module", "site", "version")

    def __init__(
        self,
        id: str,
        group: str,
        value: str,
        dist: str,
        version: str,
        metadata: str,
        site: str,
    ) -> None:
        self.id = id
        self.group = group
        module, _, attr = value.partition(":")
        self.module = module.strip()
        self.attr = attr.split("[")[0].strip()
        self.dist = dist
        self.version = version
        self.metadata = metadata
        self.site = site

    @property
    def builtin(self) -> bool:
        """Whether it comes with gstack itself."""
        return self.dist == OWN_DISTRIBUTION


def find(paths: Sequence[str]) -> list[Found]:
    """The entry points of our groups in these folders: built-ins first, then by distribution and name.

    Of a distribution that lies in several folders the first counts, as for ``import``.
    """
    found: list[Found] = []
    seen: set[str] = set()
    for site in dict.fromkeys(paths):
        for metadata in _metadata_folders(site):
            dist, version = _name_and_version(metadata)
            if dist.lower() in seen:
                continue
            seen.add(dist.lower())
            found += [
                Found(name, group, value, dist, version, metadata, site)
                for group, name, value in _read(os.path.join(metadata, "entry_points.txt"))
            ]
    order = {group: place for place, group in enumerate(GROUPS)}
    return sorted(found, key=lambda one: (order[one.group], not one.builtin, one.dist, one.id))


def _metadata_folders(site: str) -> Iterable[str]:
    try:
        names = sorted(os.listdir(site or "."))
    except OSError:
        return []
    return [os.path.join(site, name) for name in names if name.endswith((".dist-info", ".egg-info"))]


def _name_and_version(metadata: str) -> tuple[str, str]:
    """From the folder's name; an older ``.egg-info`` or a name with odd letters says it in its metadata file."""
    stem = os.path.basename(metadata).rsplit(".", 1)[0]
    name, _, version = stem.partition("-")
    if metadata.endswith(".dist-info") and version:
        return name.replace("_", "-"), version
    for file in ("METADATA", "PKG-INFO"):
        try:
            with open(os.path.join(metadata, file), encoding="utf-8", errors="replace") as lines:
                fields = dict(line.split(": ", 1) for line in lines.read(4096).splitlines() if ": " in line)
        except OSError:
            continue
        return fields.get("Name", name).strip(), fields.get("Version", version).strip()
    return name.replace("_", "-"), version


def _read(path: str) -> Iterable[tuple[str, str, str]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 20)
    except OSError:
        return
    if "gstack." not in text:
        return
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group in GROUPS and "=" in line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield group, name.strip().strip("\"'"), value.strip()


def import_folders(paths: Sequence[str]) -> list[str]:
    """``paths`` and the folders that their ``.pth`` files name: what an import finds without running import hooks.

    The hook runs without ``site``, so it has to look for itself; lines that are code are passed over.
    """
    out = [path for path in dict.fromkeys(paths) if path]
    for path in list(out):
        try:
            names = sorted(name for name in os.listdir(path) if name.endswith(".pth"))
        except OSError:
            continue
        for name in names:
            out += [folder for folder in _pth_lines(path, name) if folder not in out]
    return out


def _pth_lines(path: str, name: str) -> list[str]:
    try:
        with open(os.path.join(path, name), encoding="utf-8-sig", errors="replace") as file:
            lines = file.read(1 << 16).splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        if not line.strip() or line.startswith(("#", "import ", "import\t")):
            continue
        folder = os.path.join(path, line.strip())
        if os.path.isdir(folder):
            found.append(os.path.abspath(folder))
    return found


def locate(module: str, folders: Sequence[str]) -> str | None:
    """The folder of ``folders`` that ``module`` would be imported from, without importing anything; None: none of
    them."""
    first = module.split(".")[0]
    for folder in folders:
        base = os.path.join(folder, first)
        if os.path.isfile(base + ".py") or os.path.isfile(os.path.join(base, "__init__.py")):
            return folder
    for folder in folders:
        base = os.path.join(folder, *module.split("."))
        if os.path.isfile(base + ".py") or os.path.isfile(os.path.join(base, "__init__.py")):
            return folder  # a namespace package on the way
    return None


def current_paths() -> list[str]:
    """The folders of this process that distributions can lie in."""
    return [path for path in sys.path if path and os.path.isdir(path)]

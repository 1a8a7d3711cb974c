"""Claude Code's settings and installed plugins, as far as they say which skills there are.

Light, like ``skills``: builtins and ``lowlevel`` only. Measured on 2.1.332: a plugin counts when its merged
``enabledPlugins`` value is true and an installation of it applies to the start folder; its manifest's name is the
prefix; a manifest that is broken or names a path outside the plugin's folder takes the whole plugin out.
"""

import sys

from gstack.lowlevel import is_dir, is_file, join, load_json, parent, read_file, sys_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: The largest settings or plugin file that is read, in bytes.
_LIMIT = 8 * 1024 * 1024


class Settings:
    """What the settings of all scopes say together.

    ``files`` are those that may say something, present or not; ``enabled`` maps ``plugin@marketplace`` to whether it is
    on, ``overrides`` a skill's name to its ``skillOverrides`` word.
    """

    __slots__ = ("enabled", "files", "overrides")

    def __init__(self, files: "list[str]", enabled: "dict[str, bool]", overrides: "dict[str, str]") -> None:
        self.files = files
        self.enabled = enabled
        self.overrides = overrides


def read_settings(config: str, chain: "Sequence[str]") -> "Settings":
    """Merge the settings, weakest first: user, project (start folder only), local (repository's root), managed.

    ``chain`` are the folders from the start folder to the repository's root. A file that doesn't parse says nothing, as
    in Claude Code.
    """
    files = [join(config, "settings.json")]
    if chain:
        files += [join(chain[0], ".claude", "settings.json"), join(chain[-1], ".claude", "settings.local.json")]
    files.append(_managed())
    enabled: dict[str, bool] = {}
    overrides: dict[str, str] = {}
    for path in files:
        data = read_object(path) or {}
        enabled.update({k: v for k, v in _object(data.get("enabledPlugins")).items() if isinstance(v, bool)})
        overrides.update({k: v for k, v in _object(data.get("skillOverrides")).items() if isinstance(v, str)})
    return Settings(files, enabled, overrides)


def _managed() -> str:
    """The settings file of the organisation."""
    if sys.platform == "darwin":
        return "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "win32":
        return "C:/Program Files/ClaudeCode/managed-settings.json"
    return "/etc/claude-code/managed-settings.json"


def plugin_roots(
    config: str, chain: "Sequence[str]", bases: "Sequence[str]", settings: Settings, depends: "list[str]"
) -> "list[tuple[str, str]]":
    """The skill folders of all plugins that are on, each with its prefix.

    ``bases`` are the personal and project skill folders, which may hold plugins of their own; files that the answer
    depends on are added to ``depends``.
    """
    found: list[tuple[str, str]] = []
    for folder, name, entry in _installed(config, chain, settings, depends):
        found += _skill_folders(folder, name, entry, depends)
    for base in bases:
        for folder, name in _in_skill_folder(base):
            if settings.enabled.get(name + "@skills-dir", True):
                found += _skill_folders(folder, name, {}, depends)
    return found


# ------------------------------------------------------------------------------------------ installations


def _installed(
    config: str, chain: "Sequence[str]", settings: Settings, depends: "list[str]"
) -> "list[tuple[str, str, dict[str, Any]]]":
    """Folder, name and marketplace entry of each installed plugin that is on here, by id."""
    path = join(config, "plugins", "installed_plugins.json")
    depends.append(path)
    plugins = _object((read_object(path) or {}).get("plugins"))
    wanted = [one for one in sorted(plugins) if settings.enabled.get(one) is True]
    markets = _Marketplaces(config, depends) if wanted else None
    found = []
    for one in wanted:
        place = _installation(plugins[one], chain)
        if place is None or markets is None:
            continue
        name, _, market = one.rpartition("@")
        entry = markets.entry(market, name)
        found.append((markets.live_folder(market, entry) or place, name or market, entry))
    return found


def _installation(value: "Any", chain: "Sequence[str]") -> "str | None":
    """The folder of the first installation that applies: for everywhere, or for a folder that we are in.

    Files of version 1 have one object where later ones have a list.
    """
    for entry in value if isinstance(value, list) else [value]:
        if not isinstance(entry, dict) or not isinstance(entry.get("installPath"), str):
            continue
        project = entry.get("projectPath")
        if entry.get("scope") not in ("project", "local") or (isinstance(project, str) and _inside(chain, project)):
            return str(entry["installPath"])
    return None


def _inside(chain: "Sequence[str]", project: str) -> bool:
    import os

    if not chain:
        return False
    real = os.path.realpath(project)
    return chain[0] == real or chain[0].startswith(real.rstrip(os.sep) + os.sep)


class _Marketplaces:
    """The known marketplaces and their lists of plugins, each read once."""

    def __init__(self, config: str, depends: "list[str]") -> None:
        path = join(config, "plugins", "known_marketplaces.json")
        depends.append(path)
        self.known = read_object(path) or {}
        self.depends = depends
        self.lists: dict[str, list[Any]] = {}

    def entry(self, market: str, name: str) -> "dict[str, Any]":
        """What the marketplace says of a plugin; empty when it says nothing."""
        place = _object(self.known.get(market)).get("installLocation")
        if market not in self.lists:
            self.lists[market] = []
            if isinstance(place, str):
                path = join(place, ".claude-plugin", "marketplace.json")
                self.depends.append(path)
                plugins = (read_object(path) or {}).get("plugins")
                self.lists[market] = plugins if isinstance(plugins, list) else []
        for one in self.lists[market]:
            if isinstance(one, dict) and one.get("name") == name:
                return one
        return {}

    def live_folder(self, market: str, entry: "dict[str, Any]") -> "str | None":
        """The plugin's own folder in a marketplace that is a folder of this machine: not the installed copy is used."""
        source = _object(_object(self.known.get(market)).get("source"))
        base, relative = source.get("path"), entry.get("source")
        if source.get("source") != "directory" or not isinstance(base, str) or not isinstance(relative, str):
            return None
        folder = within(base, relative)
        return folder if folder is not None and is_dir(folder) else None


def _in_skill_folder(base: str) -> "list[tuple[str, str]]":
    """Plugins that lie in a folder for skills: each child with a manifest, and its name."""
    try:
        children = sorted(sys_os.listdir(base))
    except OSError:
        return []
    found = []
    base = base.rstrip("/")
    for child in children:
        folder = f"{base}/{child}"
        manifest = folder + "/.claude-plugin/plugin.json"
        if sys_os.access(manifest, 0) and is_file(manifest):  # to ask whether it is there costs least
            found.append((folder, child))
    return found


# ------------------------------------------------------------------------------------------ skill folders


def _skill_folders(folder: str, name: str, entry: "dict[str, Any]", depends: "list[str]") -> "list[tuple[str, str]]":
    """The skill folders of one plugin, each with its prefix; none when its manifest is broken.

    ``skills/``, then what the manifest and the marketplace's ``entry`` add; a plugin with neither is one skill where it
    has a ``SKILL.md``. An entry whose source is the marketplace itself names all its skills.
    """
    path = join(folder, ".claude-plugin", "plugin.json")
    own, default = join(folder, "SKILL.md"), join(folder, "skills")
    depends += [path, default, own]
    manifest = read_object(path)
    if manifest is None:
        if is_file(path):
            return []
        manifest = {"name": name}
    prefix = manifest.get("name")
    added = _added(folder, manifest.get("skills"))
    if not isinstance(prefix, str) or not prefix or added is None:
        return []
    listed = _added(folder, entry.get("skills")) or []
    folders = added + listed
    if not (listed and entry.get("source") in ("./", ".")) and is_dir(default):
        folders = [default, *[one for one in folders if parent(one) != default and one != default]]
    if not folders and is_file(own):
        folders.append(folder)
    return [(one, prefix) for one in folders]


def _added(folder: str, paths: "Any") -> "list[str] | None":
    """Skill folders named by a manifest (one path or a list); None when one of them isn't allowed."""
    found = []
    for path in [] if paths is None else paths if isinstance(paths, list) else [paths]:
        inside = within(folder, path) if isinstance(path, str) and path.startswith("./") else None
        if inside is None:
            return None
        found.append(inside)
    return found


def within(folder: str, relative: str) -> "str | None":
    """``relative`` below ``folder``; None when it leads out of it."""
    parts: list[str] = []
    for part in relative.replace("\\", "/").split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return None if relative.startswith("/") else join(folder, *parts) if parts else folder


# ------------------------------------------------------------------------------------------------- files


def read_object(path: str) -> "dict[str, Any] | None":
    """The JSON object in a file; None when there is none that can be read."""
    try:
        if not is_file(path):
            return None
        data = load_json(read_file(path, _LIMIT))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _object(value: "Any") -> "dict[str, Any]":
    return value if isinstance(value, dict) else {}

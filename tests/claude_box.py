"""A home of Claude Code with skills, settings, plugins and marketplaces, as the real host lays them out."""

import json
from pathlib import Path
from typing import Any

from gstack.inventory import Inventory, load_skills
from gstack_hosts.claude_code import ClaudeCode


class Box:
    """A home, a configuration folder and a working folder."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.config = self.home / ".claude"
        self.work = base / "work"
        self.env = {"HOME": str(self.home), "USERPROFILE": str(self.home)}
        for folder in (self.config, self.work):
            folder.mkdir(parents=True)

    def skill(self, folder: Path, name: "str | None" = None) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text("---\n" + (f"name: {name}\n" if name else "") + "description: d\n---\nbody\n")
        return folder

    def write(self, path: Path, value: Any) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def settings(self, **enabled: bool) -> None:
        self.write(
            self.config / "settings.json", {"enabledPlugins": {f"{name}@gh": on for name, on in enabled.items()}}
        )

    def cached(self, name: str, *, market: str = "gh", version: str = "1.0.0") -> Path:
        folder = self.config / "plugins" / "cache" / market / name / version
        self.write(folder / ".claude-plugin" / "plugin.json", {"name": name, "version": version})
        self.skill(folder / "skills" / f"s-{name}", f"s-{name}")
        return folder

    def install(self, **entries: Any) -> None:
        """Entries of the installed plugins: a folder, a list of entries, or (scope, folder, project folder)."""
        data: dict[str, Any] = {}
        for name, entry in entries.items():
            data[f"{name}@gh"] = entry if isinstance(entry, list) else [self.entry(entry)]
        self.write(self.config / "plugins" / "installed_plugins.json", {"version": 2, "plugins": data})

    def entry(self, entry: Any) -> "dict[str, str]":
        scope, folder, project = entry if isinstance(entry, tuple) else ("user", entry, None)
        out = {"scope": scope, "installPath": str(folder), "version": "1.0.0"}
        return dict(out, projectPath=str(project)) if project else out

    def market(self, *plugins: "dict[str, Any]", market: str = "gh", source: "dict[str, str] | None" = None) -> Path:
        place = self.config / "plugins" / "marketplaces" / market if source is None else Path(source["path"])
        self.write(place / ".claude-plugin" / "marketplace.json", {"name": market, "plugins": list(plugins)})
        known = {market: {"source": source or {"source": "github", "repo": "x/y"}, "installLocation": str(place)}}
        self.write(self.config / "plugins" / "known_marketplaces.json", known)
        return place

    def load(self, cwd: "Path | None" = None, **env: str) -> Inventory:
        return load_skills(
            ClaudeCode(), {**self.env, **env}, str(cwd or self.work), state_root=str(self.base / "state")
        )

    def names(self, cwd: "Path | None" = None, **env: str) -> "list[str]":
        found = self.load(cwd, **env)
        assert found.skipped == []
        return [skill.name for skill in found.skills]

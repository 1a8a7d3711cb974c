"""Where Claude Code keeps skills, how it names them and which names it has taken itself.

Light: the hook imports it for a hint's phrase and on its slow road, so builtins and ``lowlevel`` only, ``os`` in the
function that needs it. Facts: measured on Claude Code 2.1.332 with marketplaces, plugins and settings of all scopes.
"""

from gstack.api import SkillRoot
from gstack.lowlevel import is_file, join, open_folder, sys_os
from gstack_hosts.claude_code.paths import config_dir
from gstack_hosts.claude_code.plugins import Settings, plugin_roots, read_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gstack.api import Skill

#: A personal folder of this name is Claude Code's own: skills in it aren't loaded.
_RESERVED = "synced"

#: Commands that the Skill tool refused by name ("is a UI command", "is a built-in CLI command") or took for its own
#: (``review`` and ``code-review``), each called with no skill of that name installed, in print mode and in the
#: terminal interface of 2.1.332. Since 2.1.223 ``review`` is another name of the built-in ``code-review``, and versions
#: from then on refused or diverted a skill's call by these names; 2.1.332 lets a personal or project skill have them.
#: Reading the file works in every version. Bundled skills (``verify``, ``debug``, …) yield to a skill of that name.
_TAKEN = """
add-dir agents allowed-tools android auto-mode-setup autocompact background bashes bg branch btw bug cd checkpoint
clear code-review color compact config context continue copy cost diff effort exit export fast feedback focus fork
goal heapdump help hooks ide ios keybindings list-agents login logout marketplace mcp memory mobile model name new
output-style passes peers permissions plan plugin plugins powerup pro-trial-expired quit radio recap release-notes
reload-plugins reload-skills rename reset resume review rewind sandbox scroll-speed settings setup-bedrock
setup-vertex share skills stats status stickers subtask tasks terminal-setup theme tui undo usage workflows
"""


def skill_places(env: "Mapping[str, str]", cwd: "str | None") -> "tuple[list[SkillRoot], list[str]]":
    """The folders that skills are read from, highest precedence first, and the files that this answer depends on.

    Personal, then the project's from the start folder up to the repository's root, then plugins (routing R1). The
    start folder is ``CLAUDE_PROJECT_DIR``, which doesn't follow a ``cd``, else ``cwd``. Folders that don't exist are
    among the answer.
    """
    config = config_dir(env)
    start = env.get("CLAUDE_PROJECT_DIR") or cwd
    chain, depends = project_folders(start) if start else ([], [])
    settings = read_settings(config, chain)
    depends += settings.files
    bases = [(join(config, "skills"), "personal")]
    bases += [(join(folder, ".claude", "skills"), "project") for folder in chain]
    hidden, unroutable = _overridden(settings)
    roots = [SkillRoot(path, scope, hidden=hidden, unroutable=unroutable) for path, scope in bases]
    for path, prefix in plugin_roots(config, chain, [path for path, _ in bases], settings, depends):
        roots.append(SkillRoot(path, "plugin", prefix, hidden=hidden, unroutable=unroutable))
    return roots, depends


def project_folders(start: str) -> "tuple[list[str], list[str]]":
    """The folders from ``start`` up to the repository's root, and what would make that another list.

    Outside a repository only ``start`` itself. For a ``.git`` folder that is there stands its ``HEAD``: the folder
    itself changes with every commit.
    """
    import os

    try:
        folder = os.path.realpath(start)
    except ValueError:  # no path at all: a lone surrogate, a NUL
        return [], []
    chain = [folder]
    depends: list[str] = []
    while True:
        git = join(folder, ".git")
        if os.path.exists(git):
            head = join(git, "HEAD")
            return chain, [*depends, head if os.path.exists(head) else git]
        depends.append(git)
        above = os.path.dirname(folder)
        if above == folder:
            return chain[:1], depends
        folder = above
        chain.append(folder)


def _overridden(settings: "Settings") -> "tuple[tuple[str, ...], tuple[str, ...]]":
    """The skills that ``skillOverrides`` switch off, and those that only a person may invoke."""
    overrides = settings.overrides
    hidden = tuple([name for name, value in overrides.items() if value == "off"])
    return hidden, tuple([name for name, value in overrides.items() if value == "user-invocable-only"])


def skills_in(root: "SkillRoot") -> "list[tuple[str, str]]":
    """The skills of one root as (invocable name, path of SKILL.md), in path order; no file is parsed. Raises OSError.

    A personal or project skill is called by its folder; a plugin's by ``plugin:folder``. A plugin's root that holds a
    ``SKILL.md`` itself is that one skill.
    """
    if root.prefix:
        own = join(root.path, "SKILL.md")
        if is_file(own):
            folder = root.path.rstrip("/").rpartition("/")[2]
            return [(root.prefix + ":" + _as_name(folder), own)]
    found = []
    base = root.path.rstrip("/")
    folders = sorted(sys_os.listdir(root.path))
    fd = open_folder(root.path)
    for folder in folders:
        if root.scope == "personal" and folder == _RESERVED:
            continue
        name = f"{folder}/SKILL.md"
        if _is_there(name if fd is not None else f"{base}/{name}", fd):
            found.append((root.prefix + ":" + folder if root.prefix else folder, f"{base}/{name}"))
    if fd is not None:
        sys_os.close(fd)
    return found


def _is_there(path: str, fd: "int | None") -> bool:
    """Whether there is something that can be read, or that should be reported because it can't."""
    if sys_os.access(path, 0, dir_fd=fd):
        return True
    try:
        sys_os.lstat(path, dir_fd=fd)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def _as_name(folder: str) -> str:
    return "".join([char if char.isalnum() or char in "-_" else "-" for char in folder])


def taken_names() -> "Collection[str]":
    """Names of Claude Code's own commands, which its Skill tool refuses or takes for itself."""
    return frozenset(_TAKEN.split())


def load_phrase(skill: "Skill") -> str:
    """How the model runs the skill; one whose name a built-in has taken is read by its path (routing R3)."""
    if skill.name in taken_names():
        return f"A built-in of Claude Code is called /{skill.name}, so read {skill.path}"
    return f"Run /{skill.name} with the Skill tool"

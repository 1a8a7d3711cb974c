"""Where Claude Code keeps its files. Every module asks here, so that all honour ``CLAUDE_CONFIG_DIR``.

Hot: the hook needs it to find skills, so builtins only.
"""

from gstack.lowlevel import join
from gstack.state import home_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def config_dir(env: "Mapping[str, str]") -> str:
    """The configuration folder: ``CLAUDE_CONFIG_DIR`` (an empty one counts as unset), else ``~/.claude``."""
    return env.get("CLAUDE_CONFIG_DIR") or join(home_dir(env), ".claude")


def settings_path(env: "Mapping[str, str]", project: "str | None" = None) -> str:
    """The settings file of the user, or the shared one of the folder ``project``."""
    return join(project, ".claude", "settings.json") if project else join(config_dir(env), "settings.json")

"""The parts of Claude Code's settings schema that decide whether the hooks of a file run.

Measured: each row was written into a settings file with a hook beside it, and a real Claude Code 2.1.332 was started
on it. A value of another type (``null`` too) made it ignore the whole file without a word. Keys that it reads more
leniently, and those that it doesn't know, aren't listed.
"""

from collections.abc import Callable
from typing import Any

from gstack.jsontext import Node

_Test = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _positive(value: Any) -> bool:
    return _number(value) and value > 0


def _days(value: Any) -> bool:
    return _positive(value) and value == int(value)


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


_TEXTS = """$schema agent apiKeyHelper autoMemoryDirectory autoUpdatesChannel awsAuthRefresh awsCredentialExport
    defaultShell language model otelHeadersHelper outputStyle plansDirectory permissions.defaultMode"""
_FLAGS = """allowManagedHooksOnly alwaysThinkingEnabled autoCompactEnabled autoMemoryEnabled disableAllHooks
    disableBundledSkills disableSkillShellExecution enableAllProjectMcpServers fastMode includeCoAuthoredBy
    includeGitInstructions prefersReducedMotion respectGitignore showTurnDuration
    skipDangerousModePermissionPrompt spinnerTipsEnabled terminalProgressBarEnabled verbose"""
_OBJECTS = """attribution enabledPlugins fileSuggestion hooks modelOverrides permissions pluginConfigs sandbox
    skillOverrides spinnerVerbs statusLine worktree"""
_LISTS = "permissions.additionalDirectories permissions.allow permissions.ask permissions.deny"
_TEXT_LISTS = """allowedHttpHookUrls availableModels claudeMdExcludes companyAnnouncements
    httpHookAllowedEnvVars"""

#: What the value of a key must be: the test and its words.
_KEYS: dict[str, tuple[_Test, str]] = {
    **dict.fromkeys(_TEXTS.split(), (_text, "a text")),
    **dict.fromkeys(_FLAGS.split(), (_flag, "true or false")),
    **dict.fromkeys(_OBJECTS.split(), (_object, "an object")),
    **dict.fromkeys(_LISTS.split(), (_list, "a list")),
    **dict.fromkeys(_TEXT_LISTS.split(), (_texts, "a list of texts")),
    "cleanupPeriodDays": (_days, "a whole number above 0"),
    "feedbackSurveyRate": (_number, "a number"),
}

#: Events of which one malformed entry takes every hook of the file with it; elsewhere only the entry is ignored.
STRICT_EVENTS = ("PreToolUse", "PermissionRequest")

#: The kinds of hook, and the key that each must have (as text).
_HOOK_TYPES = {"command": "command", "http": "url", "prompt": "prompt", "agent": "prompt", "mcp_tool": ""}
#: Other keys of a hook that have a type of their own.
_HOOK_KEYS: dict[str, tuple[_Test, str]] = {
    "timeout": (_positive, "a number above 0"),
    "args": (_texts, "a list of texts"),
    "if": (_text, "a text"),
    "async": (_flag, "true or false"),
    "statusMessage": (_text, "a text"),
}


def problems(root: Node) -> tuple[list[str], list[str]]:
    """What makes Claude Code ignore every hook of this file, and what makes it ignore one entry; a line for each."""
    if root.kind != "object":
        return ["the file isn't a JSON object"], []
    fatal = [f"{key} isn't {what}" for key, (test, what) in _KEYS.items() if not _fits(root, key, test)]
    local: list[str] = []
    hooks = root.plain().get("hooks")
    for event, entries in hooks.items() if isinstance(hooks, dict) else ():
        found = _event_problems(event, entries)
        (fatal if event in STRICT_EVENTS else local).extend(found)
    return fatal, local


def _fits(root: Node, path: str, test: _Test) -> bool:
    node: Node | None = root
    for key in [path] if path.startswith("$") else path.split("."):
        node = node.get(key) if node is not None else None
    return node is None or test(node.plain())


def _event_problems(event: str, entries: Any) -> list[str]:
    if entries is None:
        return []
    if not isinstance(entries, list):
        return [f"hooks.{event} isn't a list"]
    return [problem for place, entry in enumerate(entries) for problem in _entry_problems(f"{event}[{place}]", entry)]


def _entry_problems(where: str, entry: Any) -> list[str]:
    if not isinstance(entry, dict):
        return [f"hooks.{where} isn't an object"]
    found = []
    if "matcher" in entry and not _text(entry["matcher"]):
        found.append(f"hooks.{where}.matcher isn't a text")
    items = entry.get("hooks")
    if not isinstance(items, list):
        return [*found, f"hooks.{where} has no list of hooks"]
    for place, item in enumerate(items):
        found += _hook_problems(f"hooks.{where}.hooks[{place}]", item)
    return found


def _hook_problems(where: str, item: Any) -> list[str]:
    if not isinstance(item, dict):
        return [f"{where} isn't an object"]
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in _HOOK_TYPES:
        return [f"{where}.type isn't one of {', '.join(_HOOK_TYPES)}"]
    needed = _HOOK_TYPES[kind]
    found = [f"{where} has no {needed}"] if needed and not _text(item.get(needed)) else []
    return found + [
        f"{where}.{key} isn't {what}" for key, (test, what) in _HOOK_KEYS.items() if key in item and not test(item[key])
    ]

"""Registering gstack's hooks in Claude Code's settings: what, where, and planning and writing the change.

The hook commands are in exec form (an absolute launcher and its arguments, no shell), so a launcher that has vanished
is a harmless "not found" and never an exit code 2, which Claude Code reads as "block".
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from gstack import jsonfile
from gstack.api import Registration
from gstack.jsonfile import Change
from gstack_hosts.claude_code import ClaudeCode, hook_entries
from gstack_hosts.claude_code.paths import settings_path
from gstack_hosts.claude_code.settings_check import diagnose, hooks_off, project_findings

__all__ = [
    "apply_settings",
    "diagnose",
    "hooks_off",
    "plan_settings",
    "project_findings",
    "registrations",
    "settings_path",
]

#: Feature, event, seconds, matcher, the host's own filter. A subagent's stop is never held (contracts C1).
_TABLE = (
    ("skill_routing", "UserPromptSubmit", 10, None, None),
    ("skill_contracts", "Stop", 30, None, None),
    ("gate", "PreToolUse", 10, "Skill|Agent|Task", None),
    ("gate", "PreToolUse", 10, "Read", "Read(**/SKILL.md)"),
    ("gate", "UserPromptExpansion", 10, None, None),
)


def registrations(features: Collection[str]) -> list[Registration]:
    """The entries that these features need (``skill_routing``, ``skill_contracts``, ``gate``)."""
    return [
        Registration(
            event, (ClaudeCode.id, event), feature=feature, matcher=matcher, timeout=seconds, condition=condition
        )
        for feature, event, seconds, matcher, condition in _TABLE
        if feature in features
    ]


def plan_settings(
    wanted: Sequence[Registration], launcher: str, env: Mapping[str, str], project: str | None = None
) -> Change:
    """What the settings file must become so that exactly ``wanted`` is registered for ``launcher``.

    Entries of an older launcher, duplicates and entries that aren't wanted any more are mended or taken out; everything
    else keeps its bytes. Raises SettingsError when the file can't be read, parsed or changed.
    """
    if wanted:
        hook_entries.check_launcher(launcher)
    path = settings_path(env, project)
    return jsonfile.plan(path, partial(hook_entries.edit, wanted=tuple(wanted), launcher=launcher, path=path))


def apply_settings(change: Change) -> Change:
    """Write ``change`` under a lock, if it changes anything; gives what was written. Raises SettingsError."""
    return jsonfile.apply(change)

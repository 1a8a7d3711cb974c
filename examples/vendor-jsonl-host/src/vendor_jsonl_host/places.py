"""Where the agent keeps things: ``~/.jsonl-agent`` with ``runs/``, ``skills/`` and ``hooks.json``."""

import os

from gstack.api import SkillRoot
from vendor_jsonl_host import AGENT


def folder(env):
    """The agent's folder in the home that ``env`` names."""
    home = env.get("HOME") or env.get("USERPROFILE") or os.path.expanduser("~")
    return os.path.join(home, "." + AGENT)


def transcripts(env):
    """The transcripts, newest first."""
    runs = os.path.join(folder(env), "runs")
    found = [os.path.join(runs, name) for name in _names(runs) if name.endswith(".jsonl")]
    return sorted(found, key=_age, reverse=True)


def skill_roots(env, cwd):
    """The person's skills, then the project's; folders that don't exist are among them."""
    roots = [SkillRoot(os.path.join(folder(env), "skills"), "personal")]
    if cwd:
        roots.append(SkillRoot(os.path.join(cwd, "." + AGENT, "skills"), "project"))
    return roots


def skills_in(root):
    """The skills of one folder. Raises OSError, which gstack takes for an empty one."""
    found = []
    for name in sorted(os.listdir(root.path)):
        path = os.path.join(root.path, name, "SKILL.md")
        if os.path.isfile(path):
            found.append((name, path))
    return found


def _names(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def _age(path):
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0.0

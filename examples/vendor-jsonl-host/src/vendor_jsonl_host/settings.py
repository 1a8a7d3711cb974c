"""The agent's ``hooks.json``, which people edit as well: a list of ``{"on": event, "run": [command], "seconds": 10}``.

An entry is ours by what it runs. ``gstack.jsonfile`` does what concerns the file (lock, backup, one rename, nothing
written without a change), ``gstack.jsontext`` changes entries and keeps every other byte.
"""

from gstack import jsonfile
from gstack.api import Finding, Registration
from gstack.errors import SettingsError
from gstack.jsonfile import Edited
from gstack.jsontext import Patch, new_document, parse, without_document

_HOST = "vendor.jsonl"
_EVENTS = {"skill_routing": ("ask", 10), "skill_contracts": ("finish", 30), "gate": ("use", 10)}


def registrations(features):
    """One entry a feature."""
    return [
        Registration(event, (_HOST, event), feature=feature, timeout=seconds)
        for feature, (event, seconds) in _EVENTS.items()
        if feature in features
    ]


def plan_settings(path, wanted, launcher):
    """What the file must become. Raises SettingsError when it can't be read or parsed."""
    return jsonfile.plan(path, lambda text: _edit(path, text, wanted, launcher))


def _edit(path, text, wanted, launcher):
    entries = [_entry(one, launcher) for one in wanted]
    root = None if text is None else parse(text)
    if root is None:  # no file, or an empty one
        return Edited(new_document(entries, text) if entries else text, tuple(wanted))
    if root.kind != "array":
        raise SettingsError(f"{path}: it isn't a list of hooks; it was left as it was", hint="mend the file")
    patch, removed = Patch(text, root), []
    missing = dict(zip(map(str, entries), wanted, strict=True))
    for place, child in enumerate(root.children):
        entry = child.node.plain()
        if _is_ours(entry) and missing.pop(str(entry), None) is None:
            patch.drop(root, place)
            removed.append(f"{entry.get('on')}: {' '.join(map(str, entry['run']))}")
    for entry in entries:
        if str(entry) in missing:
            patch.add(root, None, entry)
    after = without_document(text, root) if patch.closes(root) else patch.result()
    return Edited(after, tuple(missing.values()), (), tuple(removed))


def _entry(one, launcher):
    return {"on": one.event, "run": [launcher, *one.args], "seconds": one.timeout}


def _is_ours(entry):
    run = entry.get("run") if isinstance(entry, dict) else None
    if not isinstance(run, list) or len(run) != 3 or run[1] != _HOST or not isinstance(run[0], str):
        return False
    return run[0].replace("\\", "/").endswith(("bin/gstack-hook", "/gstack-hook.exe"))


def diagnose(path, wanted, launcher):
    """Does the file parse, and is what is wanted in it?"""
    try:
        change = plan_settings(path, wanted, launcher)
    except SettingsError as error:
        return [Finding("fail", "JSONL agent's hooks", error.message, "mend the file")]
    if change.before == change.after:
        return [Finding("ok", "JSONL agent's hooks", f"{len(wanted)} in {path}")]
    return [Finding("fail", "JSONL agent's hooks", f"{path} lacks some", f"gstack setup --host {_HOST}")]

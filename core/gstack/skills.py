"""Reading one skill: its ``SKILL.md``, the portable homes of our keys, and the overlays (routing R1, contracts C1).

``triggers``, ``routing`` and ``contract`` may stand in four homes; the first that sets a key wins:
``skills.yaml`` of the person, then of a trusted project (switches S3), the top level of the frontmatter, its
``metadata`` (``gstack-triggers`` and so on, for validators that refuse unknown keys), and ``gstack.yaml`` beside
``SKILL.md``. ``Skill.sources`` keeps what ``doctor`` and ``--explain`` show: under ``triggers``, ``routing`` and
``contract`` the home that counted, under ``others:<key>`` the homes that were ignored, under ``problem:<key>`` what
was wrong with a value.

Cold, but imported by the hook's slow road, which pays for PyYAML only when a skill changed.
"""

import os
import stat

from gstack.api import Skill
from gstack.frontmatter import (
    HEAD_LIMIT,
    DateText,
    SkillSkipped,
    Unreadable,
    doubled_key,
    fenced,
    frontmatter,
    load,
    plain,
    read_blocks,
    read_head,
)
from gstack.lowlevel import sha256
from gstack.steps import BODY_LIMIT, first_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    # label, description, triggers, routing_off, contract, first_step, sources; the digest of the head that all but the
    # first step came from ("": it isn't as simple as that)
    Row = tuple[str | None, str, tuple[str, ...], bool, Any, str, dict[str, str], str]

__all__ = [
    "KEYS", "OVERLAY", "PROJECT_OVERLAY", "SkillSkipped", "apply_overlay", "first_step", "frontmatter", "os_reason",
    "parse_skill", "place", "read_overlay", "read_row", "read_skill", "read_stable", "skill_from_plain",
    "skill_to_plain",
]  # fmt: skip

#: The keys that a skill declares for gstack.
KEYS = ("triggers", "routing", "contract")
#: Names of the homes, as reports show them.
OVERLAY = "skills.yaml"
PROJECT_OVERLAY = ".gstack/skills.yaml"
_TOP, _METADATA, _BESIDE = "SKILL.md", "metadata", "gstack.yaml"
#: Where a skill that its author reserved for people is kept from routing: the host's skill tool refuses it.
_RESERVED = "disable-model-invocation"

_OFF = ("off", "no", "false", "0")
_ON = ("on", "yes", "true", "1")
_OVERLAY_LIMIT = 4 * 1024 * 1024
#: Most files are read with their first part, in bytes.
_FIRST_PART = BODY_LIMIT + 8 * 1024


def read_skill(path: str, name: str, scope: str, *, overlay: "Mapping[str, Any] | None" = None) -> Skill:
    """Read the skill in ``path`` (its ``SKILL.md``), which the host invokes as ``name``.

    ``scope`` is ``personal``, ``project`` or ``plugin``; ``overlay`` this skill's own entry of ``skills.yaml``.
    Raises SkillSkipped with the reason when the file can't be read.
    """
    skill = place(read_row(path), path, name, scope)
    return apply_overlay(skill, overlay, OVERLAY) if overlay else skill


def place(row: "Row", path: str, name: str, scope: str) -> Skill:
    """The skill of a row under the name that its host gives it: its ``label`` stays only where it says something
    else."""
    skill = _skill(row, path, name, scope)
    if skill.label == name or skill.label == name.rpartition(":")[2]:
        skill.label = None
    return skill


def parse_skill(path: str) -> Skill:
    """What the files say, whoever asks: the folder's name, and ``label`` even where that is the same.

    Raises SkillSkipped.
    """
    return _skill(read_row(path), path, os.path.basename(os.path.dirname(path)), "personal")


def _skill(row: "Row", path: str, name: str, scope: str) -> Skill:
    label, description, triggers, routing_off, contract, first_step, sources, _ = row
    return Skill(
        name,
        path,
        label=label,
        description=description,
        scope=scope,
        triggers=triggers,
        routing_off=routing_off,
        contract=contract,
        first_step=first_step,
        sources=sources,
    )


def read_row(path: str, old: "Row | None" = None) -> "Row":
    """What the files of a skill say, as data that can be stored. Raises SkillSkipped.

    ``old`` is what they said before, if ``gstack.yaml`` is as it was then: most edits leave the head alone, and without
    a new one nothing needs YAML.
    """
    data = read_stable(path)
    if old is not None and old[-1]:
        parts = fenced(data)
        if parts is not None and old[-1] == _digest(parts[0]):
            return (*old[:5], first_step(parts[1]), *old[6:])
    head = read_head(data)
    values, problems = head.values, {f"problem:{key}": text for key, text in head.problems.items()}
    homes = [(_TOP, values), (_METADATA, _from_metadata(values.get("metadata"), problems))]
    homes.append((_BESIDE, _from_beside(os.path.dirname(path), problems)))
    found, sources = _first_set(homes, problems)
    if "routing" not in found and str(values.get(_RESERVED)).strip().lower() in _ON:
        found["routing"], sources["routing"] = "off", _RESERVED
    return (
        _line(values.get("name")) or None,
        _text(values.get("description")),
        found.get("triggers", ()),
        found.get("routing") == "off",
        found.get("contract"),
        first_step(head.body),
        {**sources, **problems},
        "" if head.text is None else _digest(head.text),
    )


def _digest(head: str) -> str:
    return sha256(head.encode("utf-8", "surrogatepass"))


# ------------------------------------------------------------------------------------------------- homes


def _from_metadata(metadata: "Any", problems: dict[str, str]) -> "dict[str, Any]":
    """Our keys of the ``metadata`` map: YAML in a string, or the list or map itself."""
    if not isinstance(metadata, dict):
        return {}
    found: dict[str, Any] = {}
    for key in KEYS:
        value = metadata.get(f"gstack-{key}")
        if isinstance(value, str) and value.strip():
            try:
                parsed = load(value)
            except Unreadable as error:
                problems[f"problem:metadata.gstack-{key}"] = error.what
                parsed = value
            # a trigger with a colon in it looks like a map
            value = value if key == "triggers" and isinstance(parsed, dict) else parsed
        found[key] = value
    return found


def _from_beside(folder: str, problems: dict[str, str]) -> "dict[str, Any]":
    """Our keys of ``gstack.yaml`` beside ``SKILL.md``; empty when there is none."""
    path = os.path.join(folder, "gstack.yaml")
    if not os.path.lexists(path):
        return {}
    try:
        text = read_stable(path, HEAD_LIMIT).decode("utf-8-sig", "replace")
    except SkillSkipped as error:
        problems["problem:gstack.yaml"] = error.reason
        return {}
    values, bad = _read_mapping(text)
    problems.update({f"problem:gstack.yaml:{key}": why for key, why in bad.items()})
    return values


def _read_mapping(text: str) -> "tuple[dict[str, Any], dict[str, str]]":
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        value = load(text)
    except Unreadable as error:
        values, problems = read_blocks(text)
        return values, problems or {"": error.at()}
    if value is None or isinstance(value, dict):
        return {str(key): item for key, item in (value or {}).items()}, {}
    return {}, {"": "is no mapping of keys to values"}


def _first_set(
    homes: "list[tuple[str, dict[str, Any]]]", problems: dict[str, str]
) -> "tuple[dict[str, Any], dict[str, str]]":
    """For each key the value of the first home that sets it, and which home that was and which were ignored."""
    found: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key in KEYS:
        setters = []
        for home, values in homes:
            value = _value(key, values.get(key), home, problems)
            if value is not None:
                found.setdefault(key, value)
                setters.append(home)
        if setters:
            sources[key] = setters[0]
        if setters[1:]:
            sources[f"others:{key}"] = ", ".join(setters[1:])
    return found, sources


def _value(key: str, value: "Any", home: str, problems: dict[str, str]) -> "Any":
    """A declared value in its final form; None: not set (an unusable one is reported)."""
    if value is None:
        return None
    if key == "contract":
        doubled = doubled_key(value)
        if doubled is None:
            return plain(value)
        # one of both would be dropped silently; as text it is declared, but no valid contract
        problems.setdefault("problem:contract", f"the key {doubled!r} stands twice in one mapping")
        return f"the key {doubled!r} stands twice in one mapping"
    if key == "triggers":
        if isinstance(value, str) and not isinstance(value, DateText):
            value = [value]
        if isinstance(value, list):
            lines = [_line(item) for item in value if isinstance(item, str) and not isinstance(item, DateText)]
            return tuple(dict.fromkeys(filter(None, lines)))
        problems.setdefault(f"problem:{key}", f"{home}: triggers must be a list of phrases, or one phrase")
        return None
    word = _line(plain(value)).lower()
    if word in _OFF or word in _ON:
        return "off" if word in _OFF else "on"
    problems.setdefault(f"problem:{key}", f"{home}: routing must be on or off")
    return None


def _text(value: "Any") -> str:
    return "" if value is None or isinstance(value, (list, dict)) else str(plain(value)).strip()


def _line(value: "Any") -> str:
    return " ".join(_text(value).split())


# ---------------------------------------------------------------------------------------------- overlays


def read_overlay(path: str, problems: list[str] | None = None) -> "dict[str, dict[str, Any]]":
    """A ``skills.yaml``: skill name to its ``triggers``, ``routing`` and ``contract``; empty when there is no file.

    A skill's entry that can't be read costs only itself and is added to ``problems``. Raises SkillSkipped when the
    file is there but can't be read at all.
    """
    if not os.path.lexists(path):
        return {}
    values, bad = _read_mapping(read_stable(path, _OVERLAY_LIMIT).decode("utf-8-sig", "replace"))
    notes = [f"{key}: {why}" if key else why for key, why in bad.items()]
    out: dict[str, dict[str, Any]] = {}
    for name, entry in values.items():
        if not isinstance(entry, dict):
            notes.append(f"{name}: must hold triggers, routing or contract")
            continue
        unknown = [str(key) for key in entry if key not in KEYS]
        if unknown:
            notes.append(f"{name}: unknown key {unknown[0]!r}; known are triggers, routing and contract")
        out[name] = {key: entry[key] for key in KEYS if key in entry}
    if problems is not None:
        problems.extend(notes)
    return out


def apply_overlay(skill: Skill, entry: "Mapping[str, Any]", source: str) -> Skill:
    """``skill`` with what an overlay's entry says of it; the home that it replaces is among the ignored ones."""
    values = skill_to_plain(skill)
    sources: dict[str, str] = values["sources"]
    problems: dict[str, str] = {}
    for key in KEYS:
        value = _value(key, entry.get(key), source, problems)
        if value is None:
            continue
        before = [sources[key], sources.get(f"others:{key}")] if key in sources else []
        if before:
            sources[f"others:{key}"] = ", ".join(filter(None, before))
        sources[key] = source
        if key == "routing":
            values["routing_off"], values["routing_on"] = value == "off", value == "on"
        else:
            values[key] = value
    sources.update(problems)
    return skill_from_plain(values)


# ------------------------------------------------------------------------------------------- files, data


def read_stable(path: str, limit: int | None = None) -> bytes:
    """The first part of a regular file, read again when it changed meanwhile.

    ``limit`` is in bytes; without it as much is read as the head and the start of the body may take. Never waits for
    a pipe or device. Raises SkillSkipped.
    """
    data, tries, same = b"", 0, False
    try:
        while not same and tries < 3:
            data, same = _read_once(path, limit)
            tries += 1
    except (OSError, ValueError) as error:
        raise SkillSkipped(os_reason(error, path)) from None
    return data


def _read_once(path: str, limit: int | None) -> tuple[bytes, bool]:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    fd = os.open(path, flags)
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise SkillSkipped("is a folder" if stat.S_ISDIR(before.st_mode) else "is no regular file")
        data = _read_part(fd, _FIRST_PART if limit is None else limit)
        if limit is None and len(data) == _FIRST_PART and b"\n---" not in data[4:-BODY_LIMIT]:
            data += _read_part(fd, HEAD_LIMIT)
        after = os.fstat(fd)
    finally:
        os.close(fd)
    return data, (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)


def _read_part(fd: int, size: int) -> bytes:
    parts = []
    while size > 0:
        part = os.read(fd, size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def os_reason(error: OSError | ValueError, path: str) -> str:
    """Why ``path`` can't be read, in a few words."""
    if isinstance(error, FileNotFoundError) and os.path.islink(path):
        return "is a link to nothing"
    return f"can't be read: {getattr(error, 'strerror', None) or error}"


def skill_to_plain(skill: Skill) -> "dict[str, Any]":
    """A skill as data that can be stored; :func:`skill_from_plain` makes it a skill again."""
    values = {name: getattr(skill, name) for name in Skill.__slots__}
    return dict(values, sources=dict(skill.sources))


def skill_from_plain(values: "Mapping[str, Any]") -> Skill:
    """The skill that :func:`skill_to_plain` gave these values of."""
    return Skill(**dict(values, triggers=tuple(values["triggers"])))

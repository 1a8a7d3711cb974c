"""Skills as a server offers them: the list, one skill's files, and what makes either unacceptable (gate
G7). Cold.

``api/skills/<org>`` is ``{"skills": [{"name": "acme/deploy", "version"?, "content_url"?}, ...]}``;
``content_url`` is relative to the list's own address. Without one the query form
``api/skills/<org>/content?skill=<name>`` is asked, which live servers have. A skill's content is
``{"files": [{"path": "SKILL.md", "content": "...", "encoding"?, "executable"?}]}``, ``encoding`` being
``utf-8`` or ``base64``; ``SKILL.md`` may also stand apart as ``skill_md``.

Neither is signed, so nothing here is believed: the catalogue of the verified bundle says which names,
statuses and digests are right, and no path may lead out of the skill's own folder.
"""

import base64
import binascii
import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gstack.errors import BundleError
from gstack.gate.client import Client, segment
from gstack.gate.digest import IGNORED, MOST_FILES, digest_of

#: Names that Windows keeps for devices, whatever their suffix.
_DEVICES = frozenset(["con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))])

#: Characters that some file system can't store, or gives a meaning of its own.
_BAD_CHARACTERS = frozenset('<>:"|?*\\')


class SkillRefused(BundleError):
    """A skill that may not be installed as it was served."""


@dataclass(frozen=True)
class Offer:
    """A skill that the server offers. ``content_url`` is empty where only the query form is left."""

    name: str
    content_url: str = ""


@dataclass(frozen=True)
class SkillFile:
    """One file of a skill: ``path`` with slashes, relative to the skill's folder."""

    path: str
    data: bytes
    executable: bool = False


def fetch_offers(client: Client, org: str) -> list[Offer]:
    """What the organisation offers, in its order. Raises FetchError, or SkillRefused for a malformed list."""
    data = _document(client.get(f"api/skills/{segment(org)}"), "the list of skills")
    skills = data.get("skills") if isinstance(data, dict) else None
    if not isinstance(skills, list):
        raise SkillRefused("the list of skills is malformed: it holds no 'skills'")
    found = []
    for entry in skills:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name.strip():
            raise SkillRefused("the list of skills is malformed: an entry has no name")
        url = entry.get("content_url")
        found.append(Offer(name, url if isinstance(url, str) else ""))
    return found


def fetch_files(client: Client, org: str, offer: Offer) -> list[SkillFile]:
    """The files of one skill, their paths checked. Raises FetchError or SkillRefused."""
    listing = f"api/skills/{segment(org)}"
    if offer.content_url:
        data = client.get(offer.content_url, relative_to=listing)
    else:
        data = client.get(f"{listing}/content?skill={segment(offer.name)}")
    return read_files(data)


def read_files(data: bytes) -> list[SkillFile]:
    """The files in a skill's content. Raises SkillRefused: a path that leads elsewhere, a link, a twin, no SKILL.md."""
    content = _document(data, "the skill's content")
    if not isinstance(content, dict):
        raise SkillRefused("the skill's content is malformed: it is no object")
    entries = content.get("files") or []
    if not isinstance(entries, list):
        raise SkillRefused("the skill's content is malformed: 'files' is no list")
    found = [_file(entry) for entry in entries]
    apart = content.get("skill_md")
    if isinstance(apart, str) and not any(one.path == "SKILL.md" for one in found):
        found.insert(0, SkillFile("SKILL.md", apart.encode("utf-8", "surrogatepass")))
    if len(found) > MOST_FILES:
        raise SkillRefused(f"the skill has {len(found)} files, more than {MOST_FILES}")
    _refuse_twins([one.path for one in found])
    if not any(one.path == "SKILL.md" for one in found):
        raise SkillRefused("the skill's content has no SKILL.md")
    return found


def content_digest(files: list[SkillFile]) -> str:
    """The digest of all files, to be held against the catalogue's."""
    return digest_of([(one.path, hashlib.sha256(one.data).hexdigest()) for one in files])


def _document(data: bytes, what: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise SkillRefused(f"{what} is no JSON document") from None


def _file(entry: object) -> SkillFile:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("path"), str):
        raise SkillRefused("the skill's content is malformed: a file has no path")
    path = entry["path"]
    check_path(path)
    if entry.get("type", "file") != "file" or "link" in entry or "target" in entry:
        raise SkillRefused(f"{path!r} is a link or a special file: refused")
    text, encoding = entry.get("content"), entry.get("encoding", "utf-8")
    if not isinstance(text, str) or encoding not in ("utf-8", "base64"):
        raise SkillRefused(f"{path!r} has no content that can be read")
    try:
        data = base64.b64decode(text, validate=True) if encoding == "base64" else text.encode()
    except (binascii.Error, ValueError):
        raise SkillRefused(f"{path!r} has no content that can be read") from None
    return SkillFile(path, data, entry.get("executable") is True)


def check_path(path: str) -> None:
    """Raise SkillRefused unless ``path`` is a plain relative path that means one file on every system."""
    for part in path.split("/"):
        stem = part.partition(".")[0].lower()
        if part in ("", ".", "..") or part.strip() != part or part.endswith("."):
            raise SkillRefused(f"the path {path!r} leads out of the skill's folder or isn't plain: refused")
        if not part.isprintable() or _BAD_CHARACTERS & set(part) or stem in _DEVICES:
            raise SkillRefused(f"the path {path!r} means something else on some system: refused")
        if part in IGNORED:
            raise SkillRefused(f"the path {path!r} isn't covered by the digest: refused")
    if len(path.encode("utf-8", "surrogatepass")) > 512:
        raise SkillRefused(f"the path {path[:40]!r}... is too long")


def _refuse_twins(paths: list[str]) -> None:
    """Two paths that some file system takes for one, or a file where another path needs a folder."""
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        plain = unicodedata.normalize("NFC", path).casefold()
        if plain in seen:
            raise SkillRefused(f"the paths {seen[plain]!r} and {path!r} are one file on some systems: refused")
        seen[plain] = path
        while "/" in plain:
            plain = plain.rpartition("/")[0]
            folders[plain] = path
    for plain in folders.keys() & seen.keys():
        raise SkillRefused(f"{seen[plain]!r} is a file and a folder ({folders[plain]!r}): refused")

"""``pull`` and ``try``: the organisation's approved skills in the host's personal skills folder (gate G7). Cold.

A skill is installed by its bare name (``acme/deploy`` as ``deploy``), since that is how hosts invoke it. What may be
installed says the verified bundle, decided by the gate's own code: a skill that the gate would block is removed. What
somebody changed here, or put there themselves, is never overwritten without ``force``.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from gstack.api import GateContext
from gstack.errors import GstackError, StateError, UsageError
from gstack.gate.bundle import verify_installed
from gstack.gate.client import Client
from gstack.gate.credentials import gate_folder, need_credentials
from gstack.gate.decision import fold, gate_context
from gstack.gate.folders import (
    BARE,
    Record,
    holds,
    read_manifest,
    remove_folder,
    sweep,
    write_folder,
    write_manifest,
)
from gstack.gate.names import last_segment
from gstack.gate.package import Offer, SkillRefused, content_digest, fetch_files, fetch_offers
from gstack.gate.rules import QUIET_STATUSES, Rulebook
from gstack.gate.sync import SyncResult, sync
from gstack.state import Lock

#: Called before each skill with how many are done, of how many, and its name.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Outcome:
    """What happened to one skill.

    ``action`` is ``installed``, ``updated``, ``unchanged``, ``removed``, ``kept`` (it stands in the way, or isn't
    offered any more) or ``refused``; ``why`` says more.
    """

    name: str
    action: str
    why: str = ""

    @property
    def bare(self) -> str:
        """The name by which the host invokes it."""
        return last_segment(self.name)


@dataclass(frozen=True)
class Pulled:
    """The result of a pull: where to, from which bundle, and what happened to each skill."""

    folder: str
    sync: SyncResult
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def refused(self) -> list[Outcome]:
        """The skills that could not be installed as they were served."""
        return [one for one in self.outcomes if one.action == "refused"]


def pull(
    root: str,
    folder: str,
    env: Mapping[str, str],
    *,
    everything: bool = False,
    force: bool = False,
    now: Callable[[], float] = time.time,
    progress: Progress | None = None,
    transport: httpx.BaseTransport | None = None,
) -> Pulled:
    """Sync, then bring ``folder`` up to the approved skills; ``everything`` takes deprecated ones too.

    ``env`` gives the login name, for exceptions. Raises what :func:`gstack.gate.sync.sync` raises, FetchError for the
    list, SkillRefused for a malformed one, StateError when the folder can't be used. One skill's fault stays with it.
    """
    with _session(root, folder, env, force, now, transport) as session:
        offers = fetch_offers(session.client, session.org)
        wanted = [offer for offer in offers if session.wanted(offer.name, everything)]
        outcomes = session.remove_banned()
        for number, offer in enumerate(wanted):
            if progress is not None:
                progress(number, len(wanted), offer.name)
            outcomes.append(session.install(offer))
    return Pulled(folder, session.sync, outcomes)


def try_skill(
    root: str,
    folder: str,
    env: Mapping[str, str],
    name: str,
    *,
    force: bool = False,
    now: Callable[[], float] = time.time,
    transport: httpx.BaseTransport | None = None,
) -> Pulled:
    """Sync, then install one skill, by its full or its bare name.

    Raises as :func:`pull`, and UsageError for a name that the organisation doesn't offer or that means several skills.
    """
    with _session(root, folder, env, force, now, transport) as session:
        offers = fetch_offers(session.client, session.org)
        plain = name.strip().lstrip("/")
        meant = [one for one in offers if one.name == plain] or [
            one for one in offers if last_segment(one.name).lower() == plain.lower()
        ]
        if not meant:
            raise UsageError(f"{session.org} offers no skill called {plain!r}")
        if len(meant) > 1:
            names = " or ".join(one.name for one in meant)
            raise UsageError(f"{plain!r} can mean several skills: say {names}")
        return Pulled(folder, session.sync, [session.install(meant[0])])


@contextmanager
def _session(
    root: str,
    folder: str,
    env: Mapping[str, str],
    force: bool,
    now: Callable[[], float],
    transport: httpx.BaseTransport | None,
) -> Iterator["_Session"]:
    synced = sync(root, now=now, transport=transport)
    credentials = need_credentials(root)
    context = gate_context(root, env, now())
    try:
        with (
            Lock(os.path.join(gate_folder(root), "install.lock"), timeout=30.0) as lock,
            Client(credentials, transport=transport) as client,
        ):
            if not lock.held:
                raise StateError(f"another pull is running ({lock.path} stayed locked); try again later")
            sweep(folder)
            session = _Session(folder, client, synced, force, context)
            try:
                yield session
            finally:
                write_manifest(root, session.manifest)
    except OSError as error:
        raise StateError(f"{error.filename or folder} can't be used: {error.strerror or error}") from None


@dataclass(frozen=True)
class _Entry:
    """A skill of the catalogue as the gate sees it: the ``action`` it would decide, and why."""

    name: str
    version: str
    digest: str | None
    action: str
    reason: str
    approved: bool
    is_skill: bool


class _Catalogue:
    """The verified bundle, asked by an entry's exact name."""

    def __init__(self, payload: Mapping[str, Any], context: GateContext) -> None:
        self._book = Rulebook(payload)
        self._context = context

    def get(self, name: str) -> _Entry | None:
        raw = (self._book.payload.get("manifest_index") or {}).get(name)
        if raw is None:
            return None
        candidate = self._book.candidate(name)
        decision = fold([candidate], "any", self._context)
        status = raw.get("status")
        approved = status is None or (isinstance(status, str) and status.strip().lower() in QUIET_STATUSES)
        return _Entry(
            name,
            candidate[1] or "",
            candidate[3],
            decision.action,
            decision.reason,
            approved,
            candidate[2] == "skill",
        )


class _Session:
    """One pull under its lock."""

    def __init__(self, folder: str, client: Client, synced: SyncResult, force: bool, context: GateContext) -> None:
        self.folder = folder
        self.client = client
        self.sync = synced
        self.org = synced.org
        self.force = force
        self.now = context.now
        self.catalogue = _Catalogue(verify_installed(context.state_root).payload, context)
        self.manifest = read_manifest(context.state_root)
        self.mine: dict[str, Record] = self.manifest.setdefault(folder, {})
        self.seen: dict[str, str] = {}

    def wanted(self, name: str, everything: bool) -> bool:
        """Whether a pull takes this skill: approved, or deprecated with ``--all``, or here already."""
        entry = self.catalogue.get(name)
        if entry is None:
            return True  # refused with a reason, rather than passed over
        if not entry.is_skill or entry.action == "block":
            return False
        here = self.mine.get(last_segment(name), {}).get("name") == name
        return entry.approved or everything or here

    def remove_banned(self) -> list[Outcome]:
        """Remove what was installed from here and the gate would block now, unless it was edited."""
        found = [self._look(bare, record) for bare, record in sorted(self.mine.items())]
        return [outcome for outcome in found if outcome is not None]

    def _look(self, bare: str, record: Record) -> Outcome | None:
        """What becomes of one installed skill before the list is worked through; None: nothing to say."""
        name, target = record["name"], os.path.join(self.folder, bare)
        if not os.path.lexists(target):
            del self.mine[bare]
            return None
        entry = self.catalogue.get(name)
        if entry is None:
            return Outcome(name, "kept", "the organisation doesn't list it any more")
        if entry.action != "block":
            return None
        if not self.force and not holds(target, record["digest"]):
            why = f"the gate blocks it ({entry.reason}), but it was edited here: --force removes it"
            return Outcome(name, "kept", why)
        remove_folder(target)
        del self.mine[bare]
        return Outcome(name, "removed", entry.reason)

    def install(self, offer: Offer) -> Outcome:
        """Install or update one skill; its own faults end in the outcome."""
        try:
            return self._install(offer)
        except GstackError as error:
            return Outcome(offer.name, "refused", error.message)
        except OSError as error:
            return Outcome(offer.name, "refused", f"{error.filename}: {error.strerror or error}")

    def _install(self, offer: Offer) -> Outcome:
        name, bare = offer.name, last_segment(offer.name)
        entry = self._acceptable(offer, bare)
        target = os.path.join(self.folder, bare)
        record = self.mine.get(bare)
        there = os.path.lexists(target)
        if there and entry.digest and holds(target, entry.digest):
            self._remember(entry, bare, entry.digest)
            return Outcome(name, "unchanged" if record else "installed", "" if record else "it was there already")
        same = record is not None and not entry.digest and record["version"] == entry.version
        if there and record and same and not self.force and holds(target, record["digest"]):
            return Outcome(name, "unchanged")
        if not entry.digest and not self.force:
            raise SkillRefused("the signed catalogue has no digest of it, so it can't be checked: --force takes it")
        if there and not self.force:
            if record is None:
                return Outcome(name, "kept", f"{target} is there already and isn't from a pull: --force replaces it")
            if not holds(target, record["digest"]):
                return Outcome(name, "kept", f"{target} was edited here: --force replaces it")
        files = fetch_files(self.client, self.org, offer)
        digest = content_digest(files)
        if entry.digest and digest != entry.digest:
            raise SkillRefused(f"its content has the digest {digest}, the signed catalogue says {entry.digest}")
        write_folder(target, files)
        self._remember(entry, bare, digest)
        return Outcome(name, "updated" if there else "installed", _said(entry))

    def _acceptable(self, offer: Offer, bare: str) -> _Entry:
        """The catalogue's entry for an offer. Raises SkillRefused."""
        entry = self.catalogue.get(offer.name)
        if entry is None:
            raise SkillRefused("the signed catalogue doesn't know it")
        if not entry.is_skill:
            raise SkillRefused("it isn't a skill, and only skills can be installed")
        if entry.action == "block":
            raise SkillRefused(f"the gate blocks it: {entry.reason}")
        if not BARE.fullmatch(bare):
            raise SkillRefused(f"{bare!r} can't be the name of a skill's folder")
        owner = self.seen.setdefault(bare.lower(), self._owner(bare) or offer.name)
        if owner != offer.name:
            raise SkillRefused(f"both {owner} and {offer.name} would be {bare!r}: only {owner} can have it")
        return entry

    def _owner(self, bare: str) -> str | None:
        """The installed skill that has this bare name already, in any case."""
        for known, record in self.mine.items():
            if known.lower() == bare.lower() and os.path.lexists(os.path.join(self.folder, known)):
                return str(record["name"])
        return None

    def _remember(self, entry: _Entry, bare: str, digest: str) -> None:
        kept = self.mine.get(bare)
        if kept is None or (kept["name"], kept["digest"], kept["version"]) != (entry.name, digest, entry.version):
            self.mine[bare] = {
                "name": entry.name,
                "version": entry.version,
                "digest": digest,
                "installed_at": self.now,
            }


def _said(entry: _Entry) -> str:
    text = entry.reason if entry.action == "warn" else ""
    return text if entry.digest else f"{text} Its content could not be checked: no digest.".strip()

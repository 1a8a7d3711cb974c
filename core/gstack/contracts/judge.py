"""Judging a run outside the hook, as ``gstack contract check`` and ``report`` do (contracts C8, C9).

Cold. Reads only: no snapshot, no record, no log is written. Any installed host adapter may read the transcript,
whatever host is running.
"""

import difflib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gstack.api import Event, Run, Skill
from gstack.contracts.block_text import block_text, waive_command
from gstack.contracts.check import Outcome, evaluate
from gstack.contracts.runs import Names, last_run, with_final_text
from gstack.contracts.schema import Contract, declared_in, item_ids, parse_contract, reading_note
from gstack.errors import ContractState, NoContract, NotLoaded, UnknownShape
from gstack.failures import PluginFailed
from gstack.inventory import load_skills
from gstack.isolation import isolated
from gstack.plan import OWN_DISTRIBUTION, load_object
from gstack.plugins import Status, known_owner, survey
from gstack.protocols import ContractKind, HostAdapter
from gstack.session_facts import facts_of
from gstack.skills import SkillSkipped, read_skill
from gstack.transcript import LIMIT
from gstack.trust import trusted_overlay

#: What one item may take outside the hook, in seconds: enough for anything but an expression that runs away.
ITEM_LIMIT = 10.0


class Bench:
    """What is installed here to judge with: the contract kinds, the host adapters, and where from.

    ``kinds`` by name; ``hosts`` in plug-in order; ``problems`` says for each plug-in that can't be used why.
    """

    def __init__(self, root: str, env: Mapping[str, str]) -> None:
        self.root = root
        self.env = env
        self._statuses = survey(root, env, group="gstack.contract_kinds")
        hosts = survey(root, env, group="gstack.host_adapters")
        self.kinds: dict[str, ContractKind] = {kind.name: kind for kind in _objects(self._statuses)}
        self.hosts: list[HostAdapter] = _objects(hosts)
        self.problems = [
            f"{status.found.id} ({status.found.dist}): {status.state}, {status.why}"
            for status in [*self._statuses, *hosts]
            if status.state != "ok"
        ]

    def kind_hint(self, name: str) -> str:
        """How to get a kind that isn't here: the distribution that has it where one is known, else the nearest name."""
        for status in self._statuses:
            if status.state != "ok" and name in (status.found.id, *status.names):
                what = "failed" if status.state == "failed" else f"is {status.state}"
                how = f"; gstack plugins enable {status.found.id}" if status.state in ("disabled", "set aside") else ""
                return f"the distribution {status.found.dist} has it, but its plug-in {what} ({status.why}){how}"
        owner = known_owner(self.root, name)
        if owner == OWN_DISTRIBUTION:
            return f"it comes with {owner}, but isn't registered by this installation of it: install {owner} again"
        if owner:
            return f"the distribution {owner} had it, and isn't installed any more: gstack plugins install {owner}"
        near = difflib.get_close_matches(name, self.kinds, n=1)
        if near:
            return f"did you mean {near[0]}?"
        if "." in name:
            return f"install the distribution of {name.split('.')[0]} that has it"
        return f"this installation has {', '.join(sorted(self.kinds)) or 'none'}; names of outside kinds have a prefix"

    def transcripts(self) -> list[str]:
        """The transcripts of every installed host on this machine, each host's newest first."""
        found: list[str] = []
        for host in self.hosts:
            try:
                found += isolated(host.id, lambda host=host: list(host.transcripts(self.env)), limit=60.0)
            except PluginFailed as failed:
                self.problems.append(f"{host.id}: its transcripts can't be listed: {failed.what}")
        return found

    @staticmethod
    def call(owner: Any, function: Callable[..., Any], *args: Any) -> Any:
        """Call a kind's method in its own failure domain. Raises PluginFailed."""
        return isolated(str(getattr(owner, "name", type(owner).__name__)), function, *args, limit=ITEM_LIMIT)


def _objects(statuses: Sequence[Status]) -> list[Any]:
    found: list[Any] = []
    for status in statuses:
        if status.state == "ok":
            names = (status.found.module, status.found.attr, status.found.group)
            try:
                found.extend(isolated(status.found.id, load_object, *names, limit=ITEM_LIMIT))
            except PluginFailed as failed:
                status.state, status.why = "failed", failed.what
    return found


def read_transcript(
    path: str, hosts: Sequence[HostAdapter], prefer: Callable[[list[Event]], bool]
) -> tuple[list[Event], HostAdapter]:
    """The events of a transcript, read by the first adapter that understands it and whose reading ``prefer`` likes, and
    that adapter.

    Raises ContractState for a file that can't be read or is too large, UnknownShape when no adapter understands it.
    """
    try:
        size = os.stat(path).st_size
    except OSError as error:
        raise ContractState(f"{path}: the transcript can't be read ({error.strerror})") from None
    if size > LIMIT:
        raise ContractState(f"{path}: the transcript is over {LIMIT >> 20} MiB ({size} bytes)")
    readings: list[tuple[list[Event], HostAdapter]] = []
    shapes: list[str] = []
    for host in hosts:
        try:
            events = isolated(host.id, _read, host, path, limit=60.0)
        except PluginFailed as failed:
            cause = failed.__cause__
            if isinstance(cause, ContractState):
                raise cause from None
            shapes.append(f"{host.id}: {getattr(cause, 'message', failed.what)}")
            continue
        readings.append((list(events), host))
        if prefer(events):
            return readings[-1]
    if readings:
        return readings[0]
    raise UnknownShape(f"{path}: no installed host adapter understands this transcript ({'; '.join(shapes) or 'none'})")


def _read(host: HostAdapter, path: str) -> list[Event]:
    return host.read_transcript(path, max_bytes=LIMIT)


def session_folder(path: str, host: HostAdapter) -> str | None:
    """The folder that the session of a transcript was started in, for kinds that are about files.

    None where the transcript, or the host's adapter, doesn't say, and where there is no such folder here (any more):
    what is missing from it then says nothing about the run.
    """
    try:
        folder = isolated(host.id, facts_of, host, path, limit=60.0).cwd
    except PluginFailed:
        return None
    return folder if folder and os.path.isdir(folder) else None


class Checked:
    """A run that was judged: ``skill``, ``contract``, the file (``source``) that declares it, ``run``, ``outcome``."""

    def __init__(self, skill: str, contract: Contract, source: str, run: Run, outcome: Outcome) -> None:
        self.skill = skill
        self.contract = contract
        self.source = source
        self.run = run
        self.outcome = outcome

    def block_text(self, bench: Bench) -> str:
        """The line that the hook would hold the stop with."""
        command = waive_command(os.path.join(bench.root, "bin"))
        missing: Collection[str] = self.outcome.missing
        return block_text(self.skill, self.contract, missing, bench.kinds, bench.call, command)


class Declared:
    """A skill's contract, the names that its loads may carry, and the item ids of the other skills' contracts.

    ``overlay`` is the trusted project's. Raises NoContract when the skill has none, or an invalid one.
    """

    def __init__(
        self,
        skill: Skill,
        names: Names,
        bench: Bench,
        others: Mapping[str, Collection[str]] | None = None,
        *,
        overlay: str | None = None,
    ) -> None:
        self.skill = skill.name
        self.names = names
        self.others = others
        self.source = declared_in(skill.path, skill.sources, bench.root, overlay)
        if skill.contract is None:
            raise NoContract(f"{skill.path}: {skill.name} declares no contract")
        note = reading_note(skill.sources)
        self.contract = parse_contract(
            skill.contract, bench.kinds, source=self.source, kind_hint=bench.kind_hint, note=note
        )


class SkillBook:
    """The installed skills' contracts, each compiled when it is asked for; ``overlay`` is the trusted project's."""

    def __init__(self, skills: Collection[Skill], bench: Bench, *, overlay: str | None = None) -> None:
        self._overlay = overlay
        self._skills: dict[str, Skill] = {}
        for skill in skills:
            self._skills.setdefault(skill.name, skill)
        labels = {skill.label: skill.name for skill in self._skills.values() if skill.label}
        self.names = Names(list(self._skills), labels)
        self._bench = bench
        self._declared: dict[str, Declared] = {}

    def declared(self, said: str) -> Declared:
        """The contract of the skill that ``said`` names. Raises NoContract."""
        name = self.names.resolve(said)
        if name is None:
            near = difflib.get_close_matches(said, self._skills, n=1)
            raise NoContract(f"no installed skill is called {said}" + (f"; did you mean {near[0]}?" if near else ""))
        if name not in self._declared:
            others = {
                other.name: item_ids(other.contract)
                for other in self._skills.values()
                if other.name != name and other.contract is not None
            }
            self._declared[name] = Declared(self._skills[name], self.names, self._bench, others, overlay=self._overlay)
        return self._declared[name]

    def item_ids(self) -> list[str]:
        """The item ids of every installed contract."""
        return [ident for skill in self._skills.values() for ident in item_ids(skill.contract)]


def installed_skills(bench: Bench, cwd: str) -> SkillBook:
    """The skills that the installed hosts offer in ``cwd``; of two of one name the first host's counts."""
    overlay, _ = trusted_overlay(bench.root, cwd)
    skills: list[Skill] = []
    for host in bench.hosts:
        try:
            found = isolated(host.id, _skills_of, host, bench, cwd, overlay, limit=60.0)
        except PluginFailed as failed:
            bench.problems.append(f"{host.id}: its skills can't be read: {failed.what}")
            continue
        skills.extend(found)
    return SkillBook(skills, bench, overlay=overlay)


def _skills_of(host: HostAdapter, bench: Bench, cwd: str, overlay: str | None) -> list[Skill]:
    return load_skills(host, bench.env, cwd, state_root=bench.root, trusted_overlay=overlay).skills


def declared_in_file(said: str, path: str, bench: Bench) -> Declared:
    """The contract of a SKILL.md that needn't be installed, for the skill that ``said`` names. Raises NoContract."""
    try:
        skill = read_skill(path, said, "personal")
    except SkillSkipped as error:
        raise NoContract(f"{path}: it {error.reason}") from None
    return Declared(skill, Names([said], {skill.label: said} if skill.label else {}), bench)


def check_transcript(path: str, declared: Declared, bench: Bench, *, cwd: str | None = None) -> Checked:
    """Judge the last run of a skill in a transcript: a function of the file and the contract alone.

    Only kinds that are about files look elsewhere: in the session's folder; in ``cwd`` where the transcript names none
    that is here (None: they can't tell).

    Raises ContractState, UnknownShape, NotLoaded (contracts C8).
    """

    def run_in(events: Sequence[Event]) -> Run | None:
        return last_run(events, [declared.skill], declared.names)

    events, host = read_transcript(path, bench.hosts, lambda events: run_in(events) is not None)
    run = run_in(events)
    if run is None:
        raise NotLoaded(f"{path}: the transcript never loads {declared.skill}")
    run = with_final_text(run, None, cwd=session_folder(path, host) or cwd)
    return Checked(declared.skill, declared.contract, declared.source, run, judge_run(run, declared, bench))


def judge_run(run: Run, declared: Declared, bench: Bench) -> Outcome:
    """Judge one run by a skill's contract."""
    aliases = declared.names.aliases([declared.skill])
    return evaluate(declared.contract, run, bench.kinds, bench.call, aliases=aliases, others=declared.others)

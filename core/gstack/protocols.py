"""The objects that plug-ins return, as Protocols: for type checkers and for reading.

Never imported by the hook (``typing`` alone costs more than a hook may). A plug-in needn't inherit from these: any
object, even a module, that has the members fits.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gstack.api import (
    Answer,
    Candidate,
    Decision,
    EndVerdict,
    Event,
    Field,
    Finding,
    GateContext,
    HookEvent,
    Invocation,
    Item,
    Registration,
    Run,
    Skill,
    SkillRoot,
    Verdict,
)


class ContractKind(Protocol):
    """How to check one kind of contract item."""

    @property
    def name(self) -> str:
        """What ``kind:`` says in a contract; an outside kind's name starts with its vendor prefix."""

    @property
    def fields(self) -> Sequence[Field]:
        """The fields that an item may carry; the core refuses unknown, missing and wrong-typed ones."""

    def check(self, item: Item, run: Run) -> Verdict:
        """Judge ``item`` on ``run``. Pure: reads nothing but its arguments, unless files are what the kind is about."""

    def fix(self, item: Item) -> str:
        """The action that the block text names, in the imperative, without a full stop."""

    def summary(self, item: Item) -> str:
        """A noun phrase for the routing hint: what the item wants to exist."""


class JudgesEnds(Protocol):
    """What a :class:`ContractKind` may offer besides, so that a run of many megabytes needn't be read whole where its
    end tells. A run is judged so only when all items of its contract are of such kinds."""

    def check_end(self, item: Item, run: Run) -> EndVerdict | None:
        """What ``check`` would say of a whole run that ends with the events of ``run``, or None where that can't be
        told. No call stands before them whose result is among them."""


class TriggerScorer(Protocol):
    """How well a prompt fits the skills' triggers."""

    @property
    def name(self) -> str:
        """What the key ``route_scorer`` names."""

    def prepare(self, skills: Sequence[Skill]) -> Any:
        """Compile the triggers into an index of plain data (dict, list, tuple, str, bytes, int, float, bool, None)."""

    def score(self, prompt: str, index: Any) -> list[Candidate]:
        """Every skill with a score above 0, best first. Deterministic, offline."""


class GateResolver(Protocol):
    """Whether a use is allowed."""

    @property
    def name(self) -> str:
        """Shown by ``--explain``."""

    def decide(self, invocation: Invocation, context: GateContext) -> Decision | None:
        """Decide, or None when this resolver has no opinion. No network."""


class SettingsChange(Protocol):
    """A planned change of a host's settings file, not yet written."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def before(self) -> bytes | None:
        """Its bytes as read; None when there is no file."""

    @property
    def after(self) -> bytes | None:
        """Its bytes as they will be; None when the file goes. Equal to ``before``: nothing will be written."""

    @property
    def added(self) -> Sequence[Registration]:
        """What is registered anew."""

    @property
    def removed(self) -> Sequence[str]:
        """One line for each entry that goes."""


class HostAdapter(Protocol):
    """One coding agent: its payloads, answers, transcripts, skills and settings file. Knows nothing of the features.

    The hook calls ``claims``, ``decode``, ``render`` and, on a stop, ``read_run``: the modules behind these stay
    within the hook's import budget. Everything else may import what it likes, in the method.
    """

    @property
    def id(self) -> str:
        """The name in the registered command (``claude-code``)."""

    @property
    def title(self) -> str:
        """The name that people know."""

    @property
    def docs(self) -> str:
        """Where the host documents its hooks."""

    @property
    def events(self) -> Mapping[str, str]:
        """The host's event names and the canonical kind of each (:mod:`gstack.api`)."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the host does with answers, as data: ``inject``, ``deny``, ``block_stop``, ``notice`` (each a form's
        name or
        ``none``), ``inject_limit`` (characters), ``escapes_markup``, ``crash_is`` (``open`` or ``closed``),
        ``evidence``."""

    @property
    def skill_variables(self) -> Sequence[str]:
        """The environment variables that ``skill_places`` depends on."""

    def claims(self, env: Mapping[str, str], payload: Mapping[str, Any]) -> str:
        """``mine``, ``unsure`` or ``foreign``: a foreign payload is answered with nothing."""

    def decode(self, payload: Mapping[str, Any], env: Mapping[str, str]) -> HookEvent | None:
        """The payload in neutral words; None for an event that gstack doesn't use or that lacks what it needs."""

    def render(self, answer: Answer, event: HookEvent) -> bytes:
        """Standard output for ``answer``: one JSON document or nothing."""

    def session_kind(self, env: Mapping[str, str]) -> str | None:
        """``interactive`` or ``headless`` where the host's own variables say so, else None (contracts C4)."""

    def read_transcript(self, path: str, *, max_bytes: int) -> list[Event]:
        """The whole transcript, main thread and subagents, in file order.

        Raises UnknownShape for what is no transcript of this host, ContractState for one that can't be read or is over
        ``max_bytes``.
        """

    def read_run(self, path: str, *, skills: Collection[str], max_bytes: int) -> list[Event]:
        """The events from the last load of one of ``skills`` (that load first) to the end; empty when there is none.

        What the stop hook uses: it reads from the end, and gives what ``read_transcript`` gives for the same part.
        """

    def transcripts(self, env: Mapping[str, str]) -> Iterable[str]:
        """The transcripts that lie on this machine, newest first."""

    def skill_places(self, env: Mapping[str, str], cwd: str | None) -> tuple[list[SkillRoot], list[str]]:
        """The folders that skills are read from, highest precedence first, and the files that this answer depends
        on."""

    def skills_in(self, root: SkillRoot) -> list[tuple[str, str]]:
        """The skills of one root as (invocable name, path of SKILL.md), in path order; no file is parsed."""

    def taken_names(self) -> Collection[str]:
        """Names that a built-in of the host has taken, so that its skill tool refuses them."""

    def load_phrase(self, skill: Skill) -> str:
        """How the model runs the skill, for the routing hint: ``Run /x with the Skill tool``."""

    def registrations(self, features: Collection[str]) -> list[Registration]:
        """The entries that these features (``skill_routing``, ``skill_contracts``, ``gate``) need."""

    def settings_path(self, env: Mapping[str, str], project: str | None) -> str:
        """The settings file of the user, or of ``project``."""

    def plan_settings(
        self, wanted: Sequence[Registration], launcher: str, env: Mapping[str, str], project: str | None
    ) -> SettingsChange:
        """What the settings file must become so that exactly ``wanted`` is registered for ``launcher``.

        Raises SettingsError when the file can't be read or parsed.
        """

    def apply_settings(self, change: SettingsChange) -> None:
        """Write ``change`` under a lock, if the file still is what it was. Raises SettingsError."""

    def diagnose(
        self, wanted: Sequence[Registration], launcher: str, env: Mapping[str, str], project: str | None
    ) -> list[Finding]:
        """Is the host here, does its file parse, are the entries present and right, will it run them?"""


class KnowsSessions(Protocol):
    """What a :class:`HostAdapter` may offer besides, each by itself, about the sessions of its transcripts.

    Without ``about`` a replay takes every session for one of a person in no particular folder, and kinds about files
    can't tell in ``gstack contract report``; without ``subagent_transcripts`` files of subagents are left out.
    """

    def about(self, path: str) -> Mapping[str, Any]:
        """``cwd`` (the folder that it was started in), ``interactive`` and ``session_id`` of a transcript, each where
        it says so. Never raises."""

    def subagent_transcripts(self, path: str) -> Sequence[str]:
        """The files that hold what the subagents of a session did, by its transcript. Never raises."""


class SeesHooksOff(Protocol):
    """What a :class:`HostAdapter` may offer besides, so that ``gstack setup`` says at once that what it registered
    won't run."""

    def hooks_off(self, env: Mapping[str, str], project: str | None) -> Sequence[Finding]:
        """What in the host's settings keeps every hook from running, of the user and of ``project`` where one is
        given; empty when nothing does. ``gstack setup`` prints each finding as a warning. Never raises."""


class FindsLoads(Protocol):
    """What a :class:`HostAdapter` may offer besides, so that a stop at which nothing is to be judged (the turn ends on
    a question, or the run was met before) needn't read the whole run. Within the hook's import budget."""

    def last_load(self, path: str, *, skills: Collection[str], max_bytes: int) -> Event | None:
        """The event that ``read_run`` would begin with, or None where it would be empty; the same errors."""


class ReadsEnds(Protocol):
    """What a :class:`HostAdapter` may offer besides, so that a long run may be judged by its last part
    (:class:`JudgesEnds`). Within the hook's import budget. The errors are those of ``read_run``."""

    def read_end(self, path: str, *, skills: Collection[str], max_bytes: int) -> list[Event] | None:
        """The main thread's first load of one of ``skills``, and the events of the last part of what follows. Empty
        where there is no load; None where the run has to be read: a load stands in or close to that part, or the part
        can't be told apart from the rest (a call and its result, a copy of an earlier record)."""

    def rest_lacks(
        self,
        path: str,
        *,
        skills: Collection[str],
        max_bytes: int,
        events: Sequence[Event],
        said: Sequence[str],
        called: Sequence[str],
        anywhere: Sequence[str],
    ) -> Event | bool:
        """Whether what ``read_end`` left out between the first of ``events`` and the others surely has none of these:
        a text of ``said`` in a message of the assistant, a call of a tool of one of the kinds ``called``, a text of
        ``anywhere``. Where another load of one of ``skills`` stands there, that load, and nothing before it is looked
        at: it begins the run."""


class NamesMarkers(Protocol):
    """What a :class:`HostAdapter` may offer besides, so that a prompt needs no stamp of each skill's folder: the hook
    then looks only whether one of these files has appeared in it, instead of any file."""

    @property
    def skill_markers(self) -> Sequence[str]:
        """The files in a skill's folder, beside ``SKILL.md`` and ``gstack.yaml``, that ``skill_places`` and
        ``skills_in`` look at, as relative paths; empty: none. They aren't looked for in roots of the scope ``plugin``.
        """


class RegisteredCommand(NamedTuple):
    """A command of gstack's in a host's settings: the host's ``event``, the ``command`` line, its limit in ``seconds``,
    and the settings ``file``."""

    event: str
    command: tuple[str, ...]
    seconds: float
    file: str


class TriedHost(Protocol):
    """What a :class:`HostAdapter` may offer besides, all or nothing, so that ``gstack doctor --live`` can try its
    hooks as the host would."""

    @property
    def gaps(self) -> str:
        """What is known to keep hooks from running although everything is in place; one line for the person."""

    def registered_commands(self, env: Mapping[str, str], cwd: str) -> Sequence[RegisteredCommand]:
        """The commands of gstack's that a session in ``cwd`` would run, from every settings file that applies."""

    def sample_env(self, cwd: str) -> Mapping[str, str]:
        """The variables that an interactive session in ``cwd`` gives to its hooks."""

    def sample_payloads(
        self,
        cwd: str,
        *,
        session_id: str,
        prompt: str = "",
        command: str = "",
        skill: str = "",
        subagent: str = "",
        read: str = "",
        transcript_path: str = "",
        final_text: str = "",
        stop_active: bool = False,
    ) -> Mapping[str, Mapping[str, Any]]:
        """One payload of each use that the host has a hook for: ``prompt`` (typed text), ``command`` (a typed name),
        ``skill`` and ``subagent`` (called by the model), ``read`` (of the file with that path), ``stop``."""

    def sample_transcript(self, cwd: str, *, session_id: str, skill: str, final_text: str) -> bytes:
        """A short transcript: ``skill`` is loaded, a file is edited, and the agent ends with ``final_text``."""

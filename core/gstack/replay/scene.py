"""What the hooks would find on this machine, for any folder that a session ran in. Writes nothing of the person's.

A :class:`Setup` is plain data that the command makes once and hands to every worker process; a :class:`Scene` is what
one process makes of it. The hooks' own snapshots aren't used: a replay may see hundreds of folders, and each would
leave a snapshot behind. Skills are parsed once for all folders, into a scratch folder that goes with the replay.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gstack.api import Decision as GateDecision
from gstack.api import HookEvent, Invocation
from gstack.config import Config, Switch, read_config
from gstack.contracts.runs import Names
from gstack.errors import BundleError, BundleMissing, GstackError, NoContract
from gstack.failures import PluginFailed
from gstack.gate.bundle import verify_installed
from gstack.gate.decision import combine, decide_from, gate_context
from gstack.gate.hook import installed
from gstack.gate.rules import Rulebook
from gstack.hook import HookContext, project_config
from gstack.isolation import isolated
from gstack.lowlevel import join
from gstack.plan import Plan, disabled_plugins
from gstack.plugins import plan_rows, survey
from gstack.snapshot import SkillIndex, scorer_settings
from gstack.snapshot_build import build_index
from gstack.state import state_root
from gstack.trust import trusted_project

#: How many folders' skills one process keeps.
_KEPT = 64
#: How many folders are remembered by the skills that they see.
_FOLDERS = 4096
#: What judging one item of a contract may take, in seconds: enough for anything but an expression that runs away.
ITEM_LIMIT = 5.0


@dataclass(frozen=True)
class Setup:
    """What a replay is made with.

    ``rows`` and ``disabled`` are the plug-ins as :class:`gstack.plan.Plan` takes them; ``scratch`` is a folder for this
    replay alone; ``bundle`` is the payload in force (None: none), with ``bundle_problem`` where it can't be used, and
    ``other`` the one to compare it with; ``since`` (seconds since the epoch) and ``project`` narrow what counts.
    """

    root: str
    env: Mapping[str, str]
    host: str
    rows: tuple[Any, ...]
    disabled: frozenset[str]
    scratch: str
    bundle: Mapping[str, Any] | None = field(default=None, repr=False)
    bundle_problem: str = ""
    other: Mapping[str, Any] | None = field(default=None, repr=False)
    since: float | None = None
    project: str | None = None
    show_prompts: bool = False


def make_setup(env: Mapping[str, str], host: str, scratch: str, **more: Any) -> Setup:
    """What is installed and in force now; ``more`` are fields of :class:`Setup` that the caller knows."""
    root = state_root(dict(env))
    rows = tuple(plan_rows(survey(root, env)))
    payload, problem = _in_force(root)
    return Setup(
        root=root,
        env=dict(env),
        host=host,
        rows=rows,
        disabled=disabled_plugins(root, env),
        scratch=scratch,
        bundle=payload,
        bundle_problem=problem,
        **more,
    )


def _in_force(root: str) -> tuple[Mapping[str, Any] | None, str]:
    try:
        return verify_installed(root).payload, ""
    except BundleMissing:
        return None, ""
    except BundleError as error:
        return None, error.message


class Context(HookContext):
    """What a hook is given, for one folder and with every switch on; nothing is put off, logged or recorded."""

    def __init__(self, scene: "Scene", place: "Place", root: str) -> None:
        event = HookEvent(scene.host.id, "", "")
        switch = Switch("on", "replay")
        setup = scene.setup
        super().__init__(
            event, dict(setup.env), root, scene.config, scene.host, scene.plan, switch, place.project, 0.0, float("inf")
        )
        self._skills = place.index

    def later(self, function: Callable[[], object]) -> None:
        """What a hook does after its answer has no place in a replay."""


class CannotJudge(GstackError):
    """A contract kind can't tell; where the hook would let the stop pass and say so."""


class StopContext(Context):
    """The stop hook's context: its state lies in the scratch folder, and an item that can't be judged ends the stop."""

    def __init__(self, scene: "Scene", place: "Place", root: str) -> None:
        super().__init__(scene, place, root)
        self.env = {}  # who sits there now says nothing about who sat there then

    def call(self, owner: object, function: Callable[..., Any], *args: Any) -> Any:
        """Call a contract kind. Raises CannotJudge when it has no verdict, PluginFailed for its other methods."""
        name = str(getattr(owner, "name", type(owner).__name__))
        checking = getattr(function, "__name__", "") == "check"
        try:
            result = isolated(name, function, *args, limit=ITEM_LIMIT)
        except PluginFailed as failed:
            if checking:
                raise CannotJudge(f"{args[0].id} ({name}): {failed.what}") from None
            raise
        if checking and getattr(result, "status", None) not in ("met", "missing"):
            raise CannotJudge(f"{args[0].id} ({name}): {getattr(result, 'why', '') or 'it gave no verdict'}")
        return result


class Place:
    """What sessions in one folder see: ``index``, the skills' ``names``, the trusted project's configuration, and the
    contracts that are ``invalid``, with why."""

    def __init__(self, index: SkillIndex, project: Config | None) -> None:
        self.index = index
        self.project = project
        self.names = Names(index.names, index.labels)
        self.invalid: dict[str, str] = {}
        self.context: Context | None = None


class Scene:
    """What one process replays with. Raises GstackError when the host's adapter doesn't work."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.config = read_config(setup.root)
        # the root of the plan is where it notes what plug-ins did wrong: nowhere that counts
        self.plan = Plan(setup.scratch, setup.rows, setup.disabled)
        self.host: Any = self.plan.get("gstack.host_adapters", setup.host)
        if self.host is None:
            raise GstackError(f"no working host adapter is called {setup.host!r}", hint="see gstack plugins list")
        #: The variables that skills depend on: others are of the session that runs the replay.
        self.skill_env = {name: setup.env[name] for name in self.host.skill_variables if name in setup.env}
        self.gate = Gate(self)
        self._settings = scorer_settings(self.config, self.plan)
        self._keys: OrderedDict[str | None, Any] = OrderedDict()
        self._places: OrderedDict[Any, Place] = OrderedDict()

    def place(self, cwd: str | None) -> Place:
        """What a session that was started in ``cwd`` sees now."""
        if cwd not in self._keys:
            self._keys[cwd] = self._key(cwd)
            if len(self._keys) > _FOLDERS:
                self._keys.popitem(last=False)
        key = self._keys[cwd]
        if key not in self._places:
            self._places[key] = self._build(cwd)
            if len(self._places) > _KEPT:
                self._places.popitem(last=False)
        self._places.move_to_end(key)
        return self._places[key]

    def context(self, place: Place) -> Context:
        """The context for sessions there; its event is to be set for each question."""
        if place.context is None:
            place.context = Context(self, place, self.setup.root)
        return place.context

    def _key(self, cwd: str | None) -> Any:
        """What tells folders apart that see other skills, or another configuration."""
        roots, _ = self.host.skill_places(self.skill_env, cwd)
        there = [
            (root.path, root.scope, root.prefix, root.hidden, root.unroutable)
            for root in roots
            if os.path.isdir(root.path)
        ]
        return (*there, trusted_project(self.setup.root, cwd))

    def _build(self, cwd: str | None) -> Place:
        setup = self.setup
        path = join(setup.scratch, "skills")
        # an older snapshot, even an empty one, makes it take over what was parsed for another folder
        blob = build_index(
            path, setup.root, self.host, self.skill_env, cwd, self.config, self.plan, self._settings, old={}
        )
        place = Place(SkillIndex(blob["index"]), project_config(setup.root, cwd))
        self._check_contracts(place)
        return place

    def _check_contracts(self, place: Place) -> None:
        from gstack.contracts.schema import kind_names, parse_contract, reading_note

        for skill, raw in place.index.contracts.items():
            wanted = {name: self.plan.get("gstack.contract_kinds", name) for name in kind_names(raw)}
            kinds = {name: kind for name, kind in wanted.items() if kind is not None}
            note = reading_note(place.index.sources.get(skill, {}))
            try:
                parse_contract(raw, kinds, source=place.index.names.get(skill, skill), note=note)
            except NoContract as error:
                place.invalid[skill] = error.message


class Verdicts:
    """What the bundle in force says of a use, and what the other one does (None: no such bundle, or no opinion)."""

    __slots__ = ("now", "then")

    def __init__(self, now: GateDecision | None, then: GateDecision | None) -> None:
        self.now = now
        self.then = then


class Gate:
    """The gate's decision by the bundle in force and by another, with the other resolvers that are installed.

    Staleness and this machine's overrides have no say: they are of today. Neither has the digest of the installed copy,
    since nobody knows which copy was used then.
    """

    def __init__(self, scene: Scene) -> None:
        setup = scene.setup
        self._plan = scene.plan
        own = {row["id"] for row in scene.plan.rows("gstack.gate_resolvers") if row["builtin"]}
        # the built-in one reads the installed bundle, which is asked here as a payload like the other
        self._others = [pair for pair in scene.plan.objects("gstack.gate_resolvers") if pair[0] not in own]
        self.now = Rulebook(setup.bundle) if setup.bundle is not None else None
        self.then = Rulebook(setup.other) if setup.other is not None else None
        self._facts = gate_context(setup.root, setup.env, time.time())
        self.failures: set[str] = set()

    @property
    def idle(self) -> bool:
        """Whether there is nothing that could have an opinion."""
        return self.now is None and self.then is None and not self._others

    def judge(self, invocation: Invocation, at: float | None) -> Verdicts:
        """What is said of a use at a time (seconds since the epoch; None: now)."""
        invocation = _of_no_copy(invocation)
        context = self._facts
        if at is not None:
            context = type(context)(context.state_root, at, machine=context.machine, user=context.user)
        others = [said for pair in self._others if (said := self._ask(pair, invocation, context)) is not None]
        sides = []
        for book in (self.now, self.then):
            said = decide_from(book, invocation, context) if book is not None else None
            opinions = [one for one in (said, *others) if one is not None]
            sides.append(combine(opinions) if opinions else None)
        return Verdicts(*sides)

    def would_block(self, place: Place, skill: str, at: float | None) -> bool:
        """Whether the bundle in force would block this installed skill, so that no prompt is routed to it."""
        if self.now is None and not self._others:
            return False
        decision = self.judge(installed(place.index, skill, "skill"), at).now
        return decision is not None and decision.action == "block"

    def _ask(self, pair: tuple[str, Any], invocation: Invocation, context: Any) -> GateDecision | None:
        name, resolver = pair
        try:
            said = self._plan.call(resolver, resolver.decide, invocation, context)
        except PluginFailed:
            self.failures.add(name)
            return None
        return said if isinstance(said, GateDecision) else None


def _of_no_copy(one: Invocation) -> Invocation:
    """The invocation without the installed copy, which may not be the one that was used then."""
    return Invocation(one.name, one.kind, host=one.host, session_id=one.session_id, aliases=one.aliases)

"""The stops of one session, decided by the stop hook's own code with its records in a scratch folder (contracts C4)."""

import os
from collections.abc import Sequence
from itertools import count

from gstack.api import TURN_ENDING, Event, HookEvent
from gstack.contracts.decision import decide
from gstack.contracts.records import DONE, find_run, read_record, record_path
from gstack.contracts.runs import final_text
from gstack.lowlevel import join
from gstack.replay.rows import CANNOT_TELL, INVALID, OPEN, RunRow, key_of
from gstack.replay.scene import CannotJudge, Place, Scene, StopContext
from gstack.sessions import session_path
from gstack.state import remove

#: How far apart two stops are taken to be in a transcript that has no times, in seconds: more than what tells two
#: hooks of one stop apart.
_STEP = 60.0
#: Numbers the sessions of this process: each has records of its own in the scratch folder.
_number = count()


def _no_patience() -> bool:
    """A transcript that lies there doesn't change."""
    return False


class _Run:
    """A load of a skill with a contract, and what became of it so far."""

    def __init__(self, skill: str, load: Event) -> None:
        self.skill = skill
        self.load = load
        self.outcome = OPEN
        self.held: tuple[str, ...] = ()
        self.items: tuple[str, ...] = ()
        self.why = ""
        self.judged_at: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing that comes can change what was recorded."""
        return self.outcome in DONE or self.outcome in (CANNOT_TELL, INVALID)


class Stops:
    """Judges a session's turns as they end.

    ``load`` and ``stop`` are to be called in the order of the main thread's events.
    """

    def __init__(self, scene: Scene, place: Place, *, session: str, interactive: bool | None) -> None:
        self._place = place
        self._host = scene.host.id
        self._interactive = interactive
        self._session = session
        self._id = f"replay-{next(_number)}"
        self._root = join(scene.setup.scratch, f"state-{os.getpid()}")
        self._context = StopContext(scene, place, self._root)
        self._runs: list[_Run] = []
        self._from = 0
        self._clock = 0.0

    def load(self, event: Event, at: int) -> None:
        """A skill entered at place ``at`` of the main thread."""
        skill = self._place.names.resolve(event.name or "")
        if skill is None or skill not in self._place.index.contracts:
            return
        run = _Run(skill, event)
        if skill in self._place.invalid:
            run.outcome, run.why = INVALID, self._place.invalid[skill]
        self._runs.append(run)
        self._from = at

    def stop(self, main: Sequence[Event], end: int, *, active: bool) -> None:
        """The turn ended before place ``end`` of the main thread; ``active``: a stop hook had already continued it."""
        run = self._runs[-1] if self._runs else None
        if run is None or run.over:
            return
        events = main[self._from : end]
        self._clock = max(self._clock + _STEP, events[-1].ts or 0.0)
        context = self._context
        context.now = events[-1].ts or self._clock
        context.event = HookEvent(
            self._host,
            TURN_ENDING,
            "",
            session_id=self._id,
            stop_active=active,
            last_assistant_text=final_text(events),
            interactive=self._interactive,
        )
        try:
            answer = decide(context, events, _no_patience)
        except CannotJudge as unclear:
            run.outcome, run.why = CANNOT_TELL, unclear.message
            return
        self._note(run, held=bool(answer.block_stop), at=events[-1].ts)

    def _note(self, run: _Run, *, held: bool, at: float | None) -> None:
        entry = find_run(read_record(self._root, self._id), run.load.uid)
        if entry is None:
            return
        run.outcome = entry["outcome"]
        run.items = tuple(item for item, state in entry["items"].items() if state in ("missing", "waived"))
        if run.judged_at is None:
            run.judged_at = at
        if held:
            run.held = run.items

    def close(self) -> None:
        """Delete the scratch records."""
        record = record_path(self._root, self._id)
        for path in (record, record.removesuffix(".json") + ".lock", session_path(self._root, self._id)):
            remove(path)

    def rows(self) -> tuple[RunRow, ...]:
        """What became of every run."""
        return tuple(
            RunRow(
                # a fork holds the same load and the same first verdict; a load that a fork goes on with doesn't
                key_of("run", run.load.uid, run.load.ts, run.judged_at),
                run.load.ts,
                self._session,
                run.skill,
                run.load.uid,
                run.outcome,
                run.held,
                run.items,
                run.why,
            )
            for run in self._runs
        )

"""A long run is judged by its end as it would be judged whole."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from claude_records import Records, file_of
from contract_helpers import REPORT, SESSION, Says, context
from hypothesis import given, settings
from hypothesis import strategies as st

from gstack.api import MET, MISSING, EndVerdict, Item, Run, Verdict
from gstack.contracts import hook
from gstack.contracts.by_end import decide_by_end
from gstack.contracts.records import change_run, record_path
from gstack_hosts.claude_code.run_end import read_end, rest_lacks
from gstack_hosts.claude_code.transcript import read_run, read_transcript

SMALL = {"block": 2000, "tail": 9000, "part": 8000}

ITEMS: list[dict[str, Any]] = [
    {"id": "report", "kind": "report_labels", "heading": "DEBUG REPORT", "labels": ["Symptom", "Fix"]},
    {"id": "check", "kind": "check_after_last_edit"},
    {"id": "passes", "kind": "check_after_last_edit", "must_pass": True},
    {"id": "named", "kind": "check_after_last_edit", "match": "make check"},
    {"id": "team", "kind": "selected_specialists_dispatched"},
    {"id": "agent", "kind": "agent_dispatch", "match": "security"},
]
FINALS = [REPORT, "All done.", "Done. STATUS: DONE", "DEBUG REPORT\nSymptom: x\nFix: y", "STATUS: BLOCKED",
          "Nothing to review here.", "DEBUG REPORT\nSymptom: TBD\nFix: y", "Shall I?"]  # fmt: skip


class Session:
    """Draws what happens in a long run."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.records = Records()
        self.records.prompt("start")
        self.records.skill("investigate")

    def act(self, name: str) -> None:
        getattr(self, name)()

    def edit(self) -> None:
        error = self.rng.random() < 0.2
        value = "Error: no" if error else {"filePath": "/a", "oldString": "x"}
        self.records.tool("Edit", {"file_path": "/work/a.py", "old_string": "x"}, "done", value, error=error)

    def test(self) -> None:
        command = self.rng.choice(["pytest -q", "make check", "ls -l", "npm install"])
        failed = self.rng.random() < 0.3
        if failed:
            self.records.tool("Bash", {"command": command}, "Exit code 1", "Error: Exit code 1", error=True)
        else:
            self.records.bash(command, "word " * self.rng.choice([1, 700]))

    def talk(self) -> None:
        self.records.says(self.rng.choice(["Going on.", "I will print the DEBUG REPORT.", *FINALS[:1]]))

    def team(self) -> None:
        line = self.rng.choice(
            ["Dispatching 2 specialists: Testing, Security.", "Dispatching 0 specialists:", "specialists skipped"]
        )
        if self.rng.random() < 0.5:
            self.records.says(line)
        else:
            self.records.bash("./select", line)

    def agent(self) -> None:
        error = self.rng.random() < 0.2
        given = {"description": self.rng.choice(["Testing", "Security audit"]), "prompt": "Look."}
        self.records.tool("Agent", given, "fine", "Error: no" if error else None, error=error)

    def waive(self) -> None:
        item = self.rng.choice(ITEMS)["id"]
        self.records.bash(f"gstack contract waive {item} --reason 'not here'", "waived")

    def feedback(self) -> None:
        self.records.user("Stop hook feedback:\nSKILL_CONTRACT_UNMET investigate (contract v1): x", isMeta=True)

    def prompt(self) -> None:
        self.records.prompt("go on")

    def again(self) -> None:
        self.records.skill(self.rng.choice(["investigate", "ship", "other"]))

    def side(self) -> None:
        self.records.call("Edit", {"file_path": "/x"}, side=True, agentId="a1")

    def interrupted(self) -> None:
        self.records.prompt("[Request interrupted by user]")


ACTS = ["edit", "test", "test", "talk", "team", "agent", "waive", "feedback", "prompt", "again", "side", "interrupted"]


def host_of(**members: Callable[..., Any]) -> Any:
    return SimpleNamespace(
        id="claude-code",
        session_kind=lambda env: "interactive",
        read_run=read_run,
        read_transcript=read_transcript,
        **members,
    )


def by_end(**how: Any) -> Any:
    return host_of(
        read_end=lambda path, **asked: read_end(path, **asked, **how),
        rest_lacks=lambda path, **asked: rest_lacks(path, **asked, block=how["block"]),
    )


def seen(root: Path) -> tuple[Any, list[str]]:
    """What a stop left behind: the record, the log."""
    record = Path(record_path(str(root / "state"), SESSION))
    log = root / "state" / "hooks" / "skill-contract.log"
    lines = [line.split(" ", 2)[2] for line in log.read_text().splitlines()] if log.exists() else []
    return json.loads(record.read_text()) if record.exists() else None, lines


def both(tmp_path: Path, path: str, final: str, **more: Any) -> str | None:
    """Decide by the end, and on the whole: the same answer, record and log. The first word of the log; None where the
    end doesn't tell."""
    event = {"transcript_path": path, "last_assistant_text": final, "pending_agents": ()}
    one = context(tmp_path / "end", by_end(**SMALL), **event, **more)
    two = context(tmp_path / "whole", host_of(), **event, **more)
    end = one.host.read_end(path, **{k: v for k, v in hook.what_to_read(one, one.skills()).items() if k != "path"})
    if end is None:
        return None
    answer = decide_by_end(one, end) if end else hook.ALLOW
    if answer is None:
        return None
    whole = hook.answer(two, pause=lambda seconds: None)
    for ctx in (one, two):
        for step in ctx.after:
            step()
    assert (answer.block_stop or "").replace("/end/", "/whole/") == (whole.block_stop or "")
    assert seen(tmp_path / "end") == seen(tmp_path / "whole")
    return "".join(seen(tmp_path / "end")[1][-1:]).split(" ")[0]


def contracts(rng: random.Random) -> dict[str, Any]:
    items = rng.sample(ITEMS, rng.randint(1, 3))
    return {name: {"version": 1, "items": items} for name in ("investigate", "ship")}


def session_of(seed: int, acts: list[str], calm: int) -> tuple[Records, str]:
    rng = random.Random(seed)
    session = Session(rng)
    final = rng.choice(FINALS)
    if rng.random() < 0.2:
        session.records.says(final)
    for name in acts:
        session.act(name)
    for name in rng.choices(["test", "talk", "edit", "agent", "team"], k=calm):
        session.act(name)
    way = rng.random()
    if way < 0.85:
        session.records.says(final)
    elif way < 0.95:
        session.records.call(rng.choice(["Bash", "AskUserQuestion"]), {"command": "pytest"})
    return session.records, final


@settings(max_examples=300)
@given(seed=st.integers(0, 1 << 30), acts=st.lists(st.sampled_from(ACTS), max_size=25), calm=st.integers(5, 30))
def test_a_long_run_is_judged_the_same(
    tmp_path_factory: pytest.TempPathFactory, seed: int, acts: list[str], calm: int
) -> None:
    folder = tmp_path_factory.mktemp("judged")
    records, final = session_of(seed, acts, calm)
    both(folder, file_of(records.data(), folder), final, contracts=contracts(random.Random(seed)))


def test_many_of_them_are_judged_by_their_end(tmp_path: Path) -> None:
    """The property above isn't empty: runs are met, held and missed by their end."""
    words: Counter[str | None] = Counter()
    for seed in range(150):
        folder = tmp_path / str(seed)
        folder.mkdir()
        records, final = session_of(seed, [], 30)
        path = file_of(records.data(), folder)
        words[both(folder, path, final, contracts=contracts(random.Random(seed)))] += 1
    assert words["met"] >= 30
    assert words["blocked"] >= 20
    assert words[None] <= 90


# ---------------------------------------------------------------------------------------------- case by case


def calm_session(*acts: str) -> Records:
    records = Records()
    records.prompt("start")
    records.skill("investigate")
    session = Session(random.Random(1))
    session.records = records
    for name in acts:
        session.act(name)
    for number in range(25):
        records.bash(f"ls {number}", "out " * 100)
    return records


def test_met_and_recorded(tmp_path: Path) -> None:
    records = calm_session("edit")
    records.bash("pytest -q")
    records.says(REPORT)
    assert both(tmp_path, file_of(records.data(), tmp_path), REPORT) == "met"
    assert seen(tmp_path / "end")[0]["runs"][0]["outcome"] == "met"


def test_unmet_and_held_and_then_a_miss(tmp_path: Path) -> None:
    records = calm_session()
    records.says("All done.")
    path = file_of(records.data(), tmp_path)
    assert both(tmp_path, path, "All done.") == "blocked"
    later = {"now": 1_800_000_100.0}
    assert both(tmp_path, path, "All done.", stop_active=True, **later) == "miss"


def test_what_isnt_there_yet_takes_the_run(tmp_path: Path) -> None:
    """The payload's final text isn't in the file: the rest may be missing as well, so the whole run waits for it."""
    records = calm_session()
    records.says("All done.")
    path = file_of(records.data(), tmp_path)
    assert both(tmp_path, path, "All done now.") is None


@pytest.mark.parametrize("act", ["feedback", "waive", "edit"])
def test_what_a_verdict_depends_on_stands_earlier(act: str, tmp_path: Path) -> None:
    records = calm_session(act)
    records.says("All done.")
    assert both(tmp_path, file_of(records.data(), tmp_path), "All done.") is None


def test_a_record_that_knows_the_run(tmp_path: Path) -> None:
    records = calm_session()
    records.says(REPORT)
    path = file_of(records.data(), tmp_path)
    load = read_run(path, skills=["investigate"], max_bytes=1 << 25)[0]
    for root in ("end", "whole"):
        state = str(tmp_path / root / "state")
        entry = {"skill": "investigate", "load_id": load.uid, "contract": {}, "items": {}, "outcome": "met",
                 "updated_at": 1}  # fmt: skip
        Path(state).mkdir(parents=True)
        change_run(state, SESSION, "claude-code", load.uid, lambda old, entry=entry: entry)
    assert both(tmp_path, path, REPORT) == "allow"


class OnlyWhole(Says):
    """A kind that has no ``check_end``."""


class End(Says):
    def check_end(self, item: Item, run: Run) -> Any:
        return EndVerdict(Verdict(MET if item.fields["word"] in run.final_text else MISSING))


class Raises(Says):
    def check_end(self, item: Item, run: Run) -> Any:
        raise ValueError("odd")


def odd_end(**fields: Any) -> EndVerdict:
    end = EndVerdict(Verdict(MET))
    for name, value in fields.items():
        setattr(end, name, value)
    return end


class Sub(EndVerdict):
    @property
    def verdict(self) -> Any:  # type: ignore[override]
        raise RuntimeError("odd")

    @verdict.setter
    def verdict(self, value: Any) -> None:
        pass


#: What an outside kind's ``check_end`` may give instead of a sound answer.
ODD: list[Callable[[], Any]] = [
    lambda: Verdict(MET),
    lambda: EndVerdict(Verdict(MET), unless_said=[3]),  # type: ignore[list-item]
    lambda: EndVerdict(Verdict("odd")),
    lambda: EndVerdict(Verdict(MET, 3)),  # type: ignore[arg-type]
    lambda: EndVerdict(Verdict(MET), unless_called=["Edit"]),
    lambda: EndVerdict(Verdict(MET), unless_said=[str(number) for number in range(1000)]),
    lambda: odd_end(unless_said=None),
    lambda: odd_end(unless_called=5),
    lambda: odd_end(unless_said=itertools.count()),
    lambda: odd_end(verdict=None),
    lambda: EndVerdict.__new__(EndVerdict),
    lambda: EndVerdict(Verdict.__new__(Verdict)),
    lambda: Sub(Verdict(MET)),
    lambda: 3,
    lambda: itertools.repeat(1),
]


class Gives(Says):
    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.asked = 0

    def check_end(self, item: Item, run: Run) -> Any:
        self.asked += 1
        return self.make()


@pytest.mark.parametrize("number", range(len(ODD)))
def test_an_odd_answer_takes_the_run(number: int, tmp_path: Path) -> None:
    kind = Gives(ODD[number])
    assert judged_magic(tmp_path, kind) is None
    assert kind.asked == 1  # what failed once isn't asked again in this stop


@pytest.mark.parametrize(("kind", "expected"), [(OnlyWhole, None), (End, "met"), (Raises, None)])
def test_kinds_of_others(kind: type[Says], expected: str | None, tmp_path: Path) -> None:
    assert judged_magic(tmp_path, kind()) == expected


def judged_magic(tmp_path: Path, kind: Any) -> str | None:
    records = calm_session()
    records.says("It is magic.")
    items = [{"id": f"word{number}", "kind": "test.says", "word": "magic"} for number in range(3)]
    return both(
        tmp_path,
        file_of(records.data(), tmp_path),
        "It is magic.",
        contracts={"investigate": {"version": 1, "items": items}},
        kinds={"test.says": kind},
    )


def test_a_text_alone_is_one(tmp_path: Path) -> None:
    end = EndVerdict(Verdict(MET), unless_said="WEB", unless_called="edit")
    assert (end.unless_said, end.unless_called) == (("WEB",), ("edit",))


@pytest.mark.parametrize("last", ["agent", "open call", "question"])
def test_a_final_text_that_is_not_the_ends_last_takes_the_run(last: str, tmp_path: Path) -> None:
    """What was said before the run's end, and is the payload's final text, decides what came after it."""
    records = Records()
    records.prompt("start")
    records.skill("investigate")
    final = "Dispatching 1 specialists: Testing."
    records.says(final)
    for number in range(25):
        records.bash(f"ls {number}", "out " * 100)
    if last == "agent":
        records.tool("Agent", {"description": "Testing", "prompt": "x"})
        records.bash("./select", "Dispatching 1 specialists: Design.")
    elif last == "open call":
        records.tool("Edit", {"file_path": "/a"}, "ok", {"filePath": "/a"})
        records.call("Bash", {"command": "pytest"})
    else:
        records.call("AskUserQuestion", {"questions": []})
    contract = {"version": 1, "items": [ITEMS[4] if last == "agent" else ITEMS[1]]}
    assert both(tmp_path, file_of(records.data(), tmp_path), final, contracts={"investigate": contract}) is None


def test_many_loads_take_the_run(tmp_path: Path) -> None:
    records = calm_session(*["again"] * 12)
    records.says(REPORT)
    assert both(tmp_path, file_of(records.data(), tmp_path), REPORT) is None


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({}, "end"),
        ({"pending_agents": None}, "run"),
        ({"last_assistant_text": None}, "run"),
        ({"TAIL": 1 << 22}, "run"),
    ],
)
def test_when_the_end_is_asked_for(
    event: dict[str, Any], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only of a long transcript, and where the payload has what else the whole run would have to tell."""
    monkeypatch.setattr(hook, "TAIL", event.pop("TAIL", 1000))
    records = calm_session()
    records.says(REPORT)
    path = file_of(records.data(), tmp_path)
    asked: list[str] = []
    host = by_end(**SMALL)
    read, whole = host.read_end, host.read_run
    host.read_end = lambda path, **what: asked.append("end") or read(path, **what)
    host.read_run = lambda path, **what: asked.append("run") or whole(path, **what)
    fields = {"transcript_path": path, "last_assistant_text": REPORT, "pending_agents": (), **event}
    hook.answer(context(tmp_path, host, **fields), pause=lambda seconds: None)
    assert asked == [expected]

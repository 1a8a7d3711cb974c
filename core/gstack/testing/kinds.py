"""The conformance kit for contract kinds. Cold."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from gstack.api import CANNOT_TELL, MET, MISSING, TOOL_KINDS, EndVerdict, Event, Field, Item, Run, ToolCall, Verdict
from gstack.contracts.schema import parse_contract
from gstack.errors import NoContract
from gstack.testing.kit import Conformance, expect, one_line

#: What a field of each type may hold, where the plug-in's tests name no example.
_EXAMPLES: dict[str, Any] = {"text": "text", "texts": ["one", "two"], "flag": True, "number": 1, "regex": "one|two"}
_RESERVED = ("id", "kind", "fix", "summary")


class Case:
    """One item and run with the verdict that the kind must give: ``status`` is ``met``, ``missing`` or
    ``cannot_tell``; ``kind`` is needed only where the plug-in has several."""

    def __init__(self, fields: Mapping[str, Any], run: Run, status: str, *, kind: str | None = None) -> None:
        self.fields = dict(fields)
        self.run = run
        self.status = status
        self.kind = kind


class ContractKindConformance(Conformance):
    """Inherit from it in a test class::

    class TestWordCount(ContractKindConformance):
        plugin = acme_word_count
        examples = {"path": "report.md"}

        def cases(self):
            return [Case({"path": "no.md"}, Run("demo", "load"), "missing")]
    """

    group = "gstack.contract_kinds"
    #: Values for fields, by name, that a pack author might write; others are made up by their type.
    examples: ClassVar[Mapping[str, Any]] = {}

    def cases(self) -> list[Case]:
        """Verdicts that are known: the plug-in's own tests give them."""
        return []

    # ---------------------------------------------------------------------------------------------- checks

    def test_fields_are_sound(self) -> None:
        """Each field has a name of its own, a known type, and a default of that type."""
        for kind in self.subjects():
            names = [field.name for field in kind.fields]
            expect(len(set(names)) == len(names), f"{kind.name}: two fields have one name: {names}")
            for field in kind.fields:
                what = f"{kind.name}: the field {field.name!r}"
                expect(isinstance(field, Field), f"{what} is {type(field).__name__}, not a gstack.api.Field")
                expect(field.name not in _RESERVED, f"{what} has a name that every item has already")
                expect(field.type in _EXAMPLES, f"{what} has the type {field.type!r}; known: {', '.join(_EXAMPLES)}")
                if field.default is not None:
                    self._declared(kind, {field.name: field.default})

    def test_an_item_can_be_declared(self) -> None:
        """With the required fields alone, and with all of them."""
        for kind in self.subjects():
            self._declared(kind, {})
            self._declared(kind, {field.name: self._example(field) for field in kind.fields})

    def test_every_run_gets_a_verdict(self) -> None:
        """Whatever the session looks like, ``check`` gives a Verdict with a known status and one line of why."""
        for kind, item, run in self._probes():
            verdict = self.ask(kind.check, item, run)
            expect(isinstance(verdict, Verdict), f"check gave {type(verdict).__name__}, not a gstack.api.Verdict")
            known = (MET, MISSING, CANNOT_TELL)
            expect(verdict.status in known, f"the status {verdict.status!r} is none of {', '.join(known)}")
            expect(isinstance(verdict.why, str), "a verdict's why is a text")
            if verdict.status != MET:
                one_line(verdict.why, "why the item isn't met", limit=2000)

    def test_checking_changes_nothing(self) -> None:
        """The same item and run get the same verdict again, and stay as they were."""
        for kind, item, run in self._probes():
            kept = copy.deepcopy((item, run))
            first = self.ask(kind.check, item, run)
            expect((item, run) == kept, f"{kind.name}: check changed its item or run")
            expect(self.ask(kind.check, item, run) == first, f"{kind.name}: the second verdict differs from the first")

    def test_a_long_run_is_judged_in_time(self) -> None:
        """A run of 3,000 events, within what one call may take in the hook."""
        for kind in self.subjects():
            self.ask(kind.check, self._item(kind), Run("demo", "load", _session(500), cwd="."))

    def test_the_end_of_a_run_tells_what_the_whole_would(self) -> None:
        """``check_end``, where a kind has it, says of each end of a run what ``check`` says of the whole, unless
        something that it names stands before that end."""
        known = {kind.name: kind for kind in self.subjects()}
        cases = [(known.get(case.kind or "") or next(iter(known.values())), case) for case in self.cases()]
        runs = [(kind, self._declared(kind, case.fields), case.run) for kind, case in cases]
        for kind, item, run in [*self._probes(), *runs]:
            if not hasattr(kind, "check_end"):
                continue
            whole = self.ask(kind.check, item, run)
            kept = copy.deepcopy((item, run))
            self.ask(kind.check_end, item, run)
            expect((item, run) == kept, f"{kind.name}: check_end changed its item or run")
            for place in _partings(run.events):
                end = self.ask(kind.check_end, item, _with_events(run, run.events[place:]))
                if end is None:
                    continue
                expect(isinstance(end, EndVerdict), f"check_end gave {type(end).__name__}, not a gstack.api.EndVerdict")
                odd = sorted(set(end.unless_called) - set(TOOL_KINDS))
                expect(not odd, f"{kind.name}: unless_called names {odd}; kinds are {', '.join(TOOL_KINDS)}")
                if not _holds(run.events[:place], end):
                    expect(
                        end.verdict.status == whole.status,
                        f"{kind.name}: by the end from event {place} on {end.verdict.status}, on the whole run "
                        f"{whole.status} ({whole.why})",
                    )

    def test_fix_and_summary_fit_their_sentences(self) -> None:
        """``fix`` is an imperative without a full stop, ``summary`` a noun phrase; both are one line."""
        for kind in self.subjects():
            item = self._item(kind)
            for name in ("fix", "summary"):
                text = one_line(self.ask(getattr(kind, name), item), f"{kind.name}: {name}", limit=600)
                expect(
                    not text.endswith("."), f"{kind.name}: {name} ends in a full stop; the sentence round it has one"
                )

    def test_cases(self) -> None:
        """The plug-in's own cases."""
        kinds = {kind.name: kind for kind in self.subjects()}
        for number, case in enumerate(self.cases()):
            kind = kinds[case.kind] if case.kind else next(iter(kinds.values()))
            verdict = self.ask(kind.check, self._declared(kind, case.fields), case.run)
            expect(
                verdict.status == case.status,
                f"case {number} ({case.fields}): {verdict.status} ({verdict.why}), not {case.status}",
            )

    # ---------------------------------------------------------------------------------------------- probes

    def _example(self, field: Field) -> Any:
        return self.examples.get(field.name, _EXAMPLES.get(field.type))

    def _item(self, kind: Any) -> Item:
        return self._declared(kind, {})

    def _declared(self, kind: Any, fields: Mapping[str, Any]) -> Item:
        """The item as a contract would declare it: with these fields and every required one."""
        needed = {field.name: self._example(field) for field in kind.fields if field.required}
        raw = {"version": 1, "items": [{"id": "probe", "kind": kind.name, **needed, **fields}]}
        try:
            return parse_contract(raw, {kind.name: kind}, source=kind.name).items[0]
        except NoContract as error:
            raise AssertionError(error.message) from error

    def _probes(self) -> Iterator[tuple[Any, Item, Run]]:
        for kind in self.subjects():
            full = {field.name: self._example(field) for field in kind.fields}
            for item in (self._item(kind), self._declared(kind, full)):
                for run in _runs():
                    yield kind, item, run


def _runs() -> list[Run]:
    """Sessions of every sort: empty, ordinary, with results missing or refused, with text of any kind."""
    odd = "\u202e\u0000 \ud83d\ude00 | `*_# " + "x" * 5000
    return [
        Run("demo", "load"),
        Run("demo", "load", final_text="Done.\n\nSTATUS: DONE", loaded_at=0.0),
        Run("demo", "load", _session(1), final_text="Done.", cwd=".", loaded_at=1_800_000_000.0),
        Run("demo", "load", _session(2), final_text=odd, cwd="/nowhere/at/all", loaded_at=None),
        Run("demo", "load", [Event("call"), Event("result"), Event("something_new"), Event("text", text=odd)]),
    ]


def _session(rounds: int) -> list[Event]:
    events: list[Event] = []
    for number in range(rounds):
        shell = ToolCall("shell", "Bash", id=f"s{number}", command="pytest -q", input={})
        edit = ToolCall("edit", "Edit", id=f"e{number}", paths=(f"src/file{number}.py",), input={})
        agent = ToolCall("agent", "Agent", id=f"a{number}", description="Review", prompt="Review it", input={})
        events += [
            Event("text", text="Working on it."),
            Event("call", call=edit),
            Event("call", call=shell),
            Event("result", ref=f"s{number}", ok=number % 2 == 0, text="12 passed"),
            Event("call", call=agent),
            Event("result", ref=f"a{number}", ok=False, denied=True),
        ]
    return events


def _partings(events: Sequence[Event]) -> list[int]:
    """The places at which no call is parted from its result."""
    last = {event.ref: place for place, event in enumerate(events) if event.type == "result" and event.ref}
    found, until = [], 0
    for place, event in enumerate(events):
        if place >= until:
            found.append(place)
        if event.type == "call" and event.call is not None:
            until = max(until, last.get(event.call.id or "", place) + 1)
    return found


def _with_events(run: Run, events: Sequence[Event]) -> Run:
    return Run(run.skill, run.load_id, events, final_text=run.final_text, cwd=run.cwd, loaded_at=run.loaded_at)


def _holds(events: Sequence[Event], end: EndVerdict) -> bool:
    """Whether something stands there that the verdict depends on."""
    for event in events:
        call = event.call if event.type == "call" else None
        said = event.text if event.type == "text" else repr(call) if call is not None else ""
        if any(text in said for text in end.unless_said) or (call is not None and call.kind in end.unless_called):
            return True
    return False

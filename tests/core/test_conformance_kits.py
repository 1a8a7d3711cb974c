"""Each kit finds the faults that it is there for: a sound plug-in passes, every broken one fails the right check."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gstack.api import MET, Candidate, Decision, EndVerdict, Event, Field, HookEvent, Verdict, hookimpl
from gstack.testing import (
    Case,
    ContractKindConformance,
    GateResolverConformance,
    HostAdapterConformance,
    Transcript,
    TriggerScorerConformance,
)
from gstack.testing.kit import Conformance
from gstack.testing.runner import run_kit
from gstack_hosts.claude_code import ClaudeCode


def problems(kit: type[Conformance], hook: str, *objects: Any, **attributes: Any) -> dict[str, str]:
    def function() -> list[Any]:
        return list(objects)

    function.__name__ = hook
    plugin = SimpleNamespace(**{hook: hookimpl(function)})
    made = kit()
    made.plugin = plugin
    for name, value in attributes.items():
        setattr(made, name, value)
    return {result.name: result.problem for result in run_kit(made) if result.problem}


# --------------------------------------------------------------------------------------------------- kinds


class Kind:
    name = "acme.kind"
    fields = (Field("path", required=True),)

    def check(self, item: Any, run: Any) -> Any:
        return Verdict(MET)

    def fix(self, item: Any) -> Any:
        return f"write {item.fields['path']}"

    def summary(self, item: Any) -> Any:
        return "a file"


def kind(**changes: Any) -> Kind:
    made = Kind()
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def kind_problems(made: Any, **attributes: Any) -> dict[str, str]:
    return problems(ContractKindConformance, "gstack_contract_kinds", made, **attributes)


def spoil(item: Any, run: Any) -> Verdict:
    item.fields["path"] = "elsewhere"
    return Verdict(MET)


def flip(item: Any, run: Any, calls: list[int] = []) -> Verdict:  # noqa: B006 - it has to remember
    calls.append(1)
    return Verdict(MET if len(calls) % 2 else "missing", "odd")


def edited(item: Any, run: Any) -> Verdict:
    return Verdict(MET if run.calls("edit") else "missing", "nothing was edited")


#: The check of ``check_end``.
END = "the end of a run tells what the whole would"


def test_a_sound_kind_passes() -> None:
    assert kind_problems(kind()) == {}


def test_a_kind_that_judges_by_the_end_and_says_what_may_be_otherwise_passes() -> None:
    def check_end(item: Any, run: Any) -> EndVerdict | None:
        verdict = edited(item, run)
        return EndVerdict(verdict, unless_called=() if verdict.status == MET else ("edit",))

    assert kind_problems(kind(check=edited, check_end=check_end)) == {}
    assert kind_problems(kind(check_end=lambda item, run: None)) == {}


@pytest.mark.parametrize(
    ("changes", "check", "says"),
    [
        ({"name": "plain"}, "names are prefixed", "vendor.plain"),
        ({"name": "acme.two words"}, "names are prefixed", "white space"),
        ({"fields": (Field("id"),)}, "fields are sound", "every item has already"),
        ({"fields": (Field("a", "colour"),)}, "fields are sound", "colour"),
        ({"fields": (Field("a", "number", default="three"),)}, "fields are sound", "a number"),
        ({"fields": (Field("a"), Field("a"))}, "fields are sound", "one name"),
        ({"fields": ("path",)}, "fields are sound", "'str'"),
        ({"check": lambda item, run: True}, "every run gets a verdict", "bool"),
        ({"check": lambda item, run: Verdict("maybe")}, "every run gets a verdict", "maybe"),
        ({"check": lambda item, run: Verdict("missing", "two\nlines")}, "every run gets a verdict", "line break"),
        ({"check": lambda item, run: run.events[0]}, "every run gets a verdict", "IndexError"),
        ({"check": lambda item, run: print("hello") or Verdict(MET)}, "every run gets a verdict", "printed"),
        ({"check": lambda item, run: exit(3)}, "every run gets a verdict", "sys.exit"),
        ({"check": spoil}, "checking changes nothing", "changed its item"),
        ({"check": flip}, "checking changes nothing", "differs"),
        ({"fix": lambda item: "Write it."}, "fix and summary fit their sentences", "full stop"),
        ({"summary": lambda item: "a\nb"}, "fix and summary fit their sentences", "line break"),
        ({"summary": lambda item: None}, "fix and summary fit their sentences", "NoneType"),
        ({"check_end": lambda item, run: EndVerdict(Verdict("missing"))}, END, "on the whole run met"),
        ({"check_end": lambda item, run: Verdict(MET)}, END, "not a gstack.api.EndVerdict"),
        ({"check_end": lambda item, run: EndVerdict(Verdict(MET), unless_called=["Edit"])}, END, "['Edit']"),
        ({"check_end": lambda item, run: EndVerdict(spoil(item, run))}, END, "check_end changed its item"),
        ({"check_end": lambda item, run: run.events[0]}, END, "IndexError"),
        ({"check": edited, "check_end": lambda item, run: EndVerdict(edited(item, run))}, END, "on the whole run met"),
    ],
)
def test_a_broken_kind_fails(changes: dict[str, Any], check: str, says: str) -> None:
    assert says in kind_problems(kind(**changes))[check]


def test_a_slow_kind_fails() -> None:
    def slow(item: Any, run: Any) -> Verdict:
        while len(run.events) > 100:
            pass
        return Verdict(MET)

    assert "took longer" in kind_problems(kind(check=slow))["a long run is judged in time"]


def test_an_authors_case_that_fails_is_told() -> None:
    cases = [Case({"path": "x"}, SimpleNamespace(events=()), "missing")]  # type: ignore[arg-type]
    assert "not missing" in kind_problems(kind(), cases=lambda: cases)["cases"]


def test_a_plug_in_without_its_hook_fails() -> None:
    made = ContractKindConformance()
    made.plugin = SimpleNamespace(gstack_contract_kinds=lambda: [kind()])
    found = {result.name: result.problem for result in run_kit(made)}
    assert "marked with gstack.api.hookimpl" in found["pluggy accepts the plug in"]


# ------------------------------------------------------------------------------------------------- scorers


class Scorer:
    name = "acme.scorer"

    def prepare(self, skills: Any) -> Any:
        return sorted(skill.name for skill in skills)

    def score(self, prompt: str, index: Any) -> Any:
        return [Candidate(name, 0.5) for name in index if name in prompt.split()]


@pytest.mark.parametrize(
    ("changes", "check", "says"),
    [
        ({"prepare": lambda skills: {len(skills): object()}}, "the index is plain data", "plain data"),
        ({"score": lambda prompt, index: None}, "no skills no candidates", "not iterable"),
        (
            {"score": lambda prompt, index: [Candidate("nobody", 0.5)] if index else []},
            "candidates make sense",
            "nobody",
        ),
        ({"score": lambda prompt, index: [Candidate("qa", 7)] if index else []}, "candidates make sense", "score of 7"),
        (
            {"score": lambda prompt, index: [Candidate("qa", 0.2), Candidate("silent", 0.9)] if index else []},
            "candidates make sense",
            "best first",
        ),
        (
            {"score": lambda prompt, index: [Candidate("qa", 0.2, evidence=(9999,))] if index else []},
            "candidates make sense",
            "outside the prompt",
        ),
        (
            {"score": lambda prompt, index: index.append("x") or []},
            "scoring is deterministic offline and changes nothing",
            "changed the index",
        ),
        (
            {"score": lambda prompt, index: __import__("socket").create_connection(("127.0.0.1", 9))},
            "scoring is deterministic offline and changes nothing",
            "network",
        ),
        ({"configure": lambda: None}, "optional methods take what they are given", "TypeError"),
        (
            {"prepare_again": lambda skills, index: index},
            "optional methods take what they are given",
            "another index than prepare",
        ),
        ({"missing_words": lambda *a: 3}, "optional methods take what they are given", "not words"),
    ],
)
def test_a_broken_scorer_fails(changes: dict[str, Any], check: str, says: str) -> None:
    made = Scorer()
    for name, value in changes.items():
        setattr(made, name, value)
    assert says in problems(TriggerScorerConformance, "gstack_trigger_scorers", made)[check]


def test_a_sound_scorer_passes() -> None:
    assert problems(TriggerScorerConformance, "gstack_trigger_scorers", Scorer()) == {}


# ------------------------------------------------------------------------------------------------ resolvers


class Resolver:
    name = "acme.resolver"

    def decide(self, invocation: Any, context: Any) -> Any:
        return Decision("block", "frozen") if invocation.name == "qa" else None


@pytest.mark.parametrize(
    ("decide", "check", "says"),
    [
        (lambda i, c: "block", "every invocation gets a decision or none", "not a Decision"),
        (lambda i, c: Decision("explode", "x"), "every invocation gets a decision or none", "explode"),
        (lambda i, c: Decision("block", ""), "every invocation gets a decision or none", "reason"),
        (lambda i, c: {}["x"], "every invocation gets a decision or none", "KeyError"),
        (lambda i, c: os.write(1, b"x") and None, "every invocation gets a decision or none", "file descriptor 1"),
        (
            lambda i, c: setattr(i, "name", "other"),
            "deciding is deterministic offline and changes nothing",
            "changed the invocation",
        ),
    ],
)
def test_a_broken_resolver_fails(decide: Any, check: str, says: str) -> None:
    made = Resolver()
    made.decide = decide  # type: ignore[method-assign]
    assert says in problems(GateResolverConformance, "gstack_gate_resolvers", made)[check]


def test_a_sound_resolver_passes() -> None:
    assert problems(GateResolverConformance, "gstack_gate_resolvers", Resolver()) == {}


# ---------------------------------------------------------------------------------------------------- hosts


class Host(ClaudeCode):
    """The built-in one with one fault at a time."""

    id = "acme.host"


def host_problem(check: str, **changes: Any) -> str:
    made = Host()
    for name, value in changes.items():
        setattr(made, name, value)
    kit = HostAdapterConformance()
    kit.subjects = lambda: [made]  # type: ignore[method-assign]
    try:
        getattr(kit, "test_" + check)()
    except AssertionError as error:
        return str(error)
    return ""


def write_and_say(text: str) -> Any:
    def apply(change: Any) -> None:
        ClaudeCode().apply_settings(change)
        with open(change.path, "a", encoding="utf-8") as file:
            file.write(text)

    return apply


@pytest.mark.parametrize(
    ("check", "changes", "says"),
    [
        ("identity_and_tables", {"title": ""}, "title"),
        ("identity_and_tables", {"events": {"Stop": "stopping"}}, "stopping"),
        ("identity_and_tables", {"capabilities": {}}, "capabilities lack inject"),
        ("other_hosts_payloads_are_not_claimed", {"claims": lambda env, payload: "mine"}, "claims a payload of codex"),
        ("odd_payloads_raise_nothing", {"decode": lambda payload, env: payload["cwd"] and None}, "KeyError"),
        ("answers_render", {"render": lambda answer, event: b"{}"}, "an empty answer"),
        ("answers_render", {"render": lambda answer, event: b"oops" if not answer.empty else b""}, "no JSON"),
        ("answers_render", {"render": lambda answer, event: b""}, "inject"),
        ("a_skill_is_found_and_named", {"load_phrase": lambda skill: "Run <it>"}, "doesn't name the skill"),
        ("a_skill_is_found_and_named", {"skills_in": lambda root: []}, "skills_in"),
        ("what_is_no_transcript_is_of_unknown_shape", {"read_transcript": lambda path, max_bytes: []}, "was read"),
        (
            "unreadable_and_huge_transcripts_are_reported",
            {"read_run": lambda path, skills, max_bytes: Path(path).read_text()},
            "FileNotFoundError",
        ),
        ("registrations_name_the_host_and_known_events", {}, "doesn't name the host"),
        ("install_install_remove_leaves_every_byte", {"apply_settings": lambda change: None}, "isn't there"),
        (
            "install_install_remove_leaves_every_byte",
            {"apply_settings": write_and_say(" ")},
            "changes something|written",
        ),
        ("a_broken_settings_file_is_left_alone", {"plan_settings": lambda *a: None}, "was taken for a settings file"),
        ("diagnosis_works_in_any_state", {"diagnose": lambda *a: ["fine"]}, "diagnose gave str"),
        ("transcripts_of_an_empty_machine", {"session_kind": lambda env: "quiet"}, "quiet"),
    ],
)
def test_a_broken_host_fails(check: str, changes: dict[str, Any], says: str) -> None:
    found = host_problem(check, **changes)
    assert any(one in found for one in says.split("|")), found


def test_a_host_that_chokes_on_a_cut_transcript_fails(tmp_path: Any) -> None:
    def read(path: str, *, max_bytes: int) -> list[Event]:
        import json

        with open(path, encoding="utf-8", errors="replace") as file:
            return [Event(str(json.loads(line)["type"])) for line in file]

    from gstack.testing import Sample

    made = Host()
    made.read_transcript = read  # type: ignore[assignment,method-assign]
    kit = HostAdapterConformance()
    kit.subjects = lambda: [made]  # type: ignore[method-assign]
    path = Transcript(tmp_path / "t.jsonl").prompt("hi").say("hello").write()
    kit.samples = lambda: [Sample(path, [{"type": "user"}, {"type": "assistant"}])]  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="cut at byte"):
        kit.test_cut_transcripts_raise_nothing_but_unknown_shape()
    made.read_run = lambda path, skills, max_bytes: [HookEvent("x", "y", "z")]  # type: ignore[assignment,method-assign]
    with pytest.raises(AssertionError, match="another run"):
        kit.test_a_run_is_the_end_of_its_transcript()


def test_a_host_that_finds_another_load_than_its_run_begins_with_fails(tmp_path: Any) -> None:
    from gstack.testing import Sample

    made = Host()
    kit = HostAdapterConformance()
    kit.subjects = lambda: [made]  # type: ignore[method-assign]
    path = Transcript(tmp_path / "t.jsonl").prompt("hi").say("hello").write()
    kit.samples = lambda: [Sample(path, [])]  # type: ignore[method-assign]
    kit.test_the_last_load_is_where_the_run_begins()  # it has none
    made.last_load = lambda path, skills, max_bytes: None  # type: ignore[attr-defined]
    kit.test_the_last_load_is_where_the_run_begins()
    made.last_load = lambda path, skills, max_bytes: Event("load", name="x")  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="begins no run of never-loaded"):
        kit.test_the_last_load_is_where_the_run_begins()
    made.last_load = lambda path, skills, max_bytes: Path(path).read_text()  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="FileNotFoundError"):
        kit.test_unreadable_and_huge_transcripts_are_reported()


def test_a_host_that_finds_another_end_than_its_runs_fails(tmp_path: Any) -> None:
    from gstack.testing import Sample

    made: Any = Host()
    kit = HostAdapterConformance()
    kit.subjects = lambda: [made]  # type: ignore[method-assign]
    path = Transcript(tmp_path / "t.jsonl").load("x").edit().load("x").shell("ls").say("hello").write()
    kit.samples = lambda: [Sample(path, [])]  # type: ignore[method-assign]
    kit.test_an_end_is_the_end_of_its_run()  # it is too short for one
    events = made.read_transcript(path, max_bytes=1 << 20)
    first, last = [event for event in events if event.type == "load"]

    def says(end: Any, lacks: Any) -> None:
        made.read_end = lambda path, skills, max_bytes: end if "x" in skills else []
        made.rest_lacks = lambda path, **asked: lacks
        kit.test_an_end_is_the_end_of_its_run()

    says([first, *events[-2:]], last)
    says([last, *events[-2:]], True)
    says([first, *events[-2:]], False)
    with pytest.raises(AssertionError, match="begins no run of x"):
        says([first, *events[-2:]], True)
    with pytest.raises(AssertionError, match="another end of the run of x"):
        says([last, *events[-3:-1]], True)
    with pytest.raises(AssertionError, match="misses the run of x"):
        says([], True)

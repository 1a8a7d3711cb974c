"""The conformance kit for host adapters: payloads, answers, skills, and all that its other parts check. Cold.

The promises are those of any host: its own payloads decode and nobody else's are claimed, answers render, transcripts
can be cut anywhere, settings files keep their bytes, and the hook process is silent whatever it is fed.
"""

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from gstack import api
from gstack.api import Answer, HookEvent, Skill
from gstack.testing.host_files import SettingsChecks, TranscriptChecks
from gstack.testing.host_process import ProcessChecks
from gstack.testing.kit import expect, one_line

_KINDS = {
    api.SESSION_STARTED,
    api.PROMPT_SUBMITTED,
    api.COMMAND_TYPED,
    api.TOOL_PROPOSED,
    api.TOOL_FINISHED,
    api.TURN_ENDING,
    api.SUBAGENT_ENDING,
    api.SESSION_ENDED,
}
_WORDS = ("mine", "unsure", "foreign")
_ODD: tuple[Any, ...] = (None, 7, True, "", "\udc80\x00", [], [1], {}, {"a": {"b": []}})
#: What each form of answer says, the capability that it needs, and the event that it is for.
_ANSWERS = (
    ("inject", Answer(inject="one line of context"), api.PROMPT_SUBMITTED),
    ("deny", Answer(deny="this is not allowed"), api.TOOL_PROPOSED),
    ("block_stop", Answer(block_stop="something is missing"), api.TURN_ENDING),
    ("notice", Answer(notice="a word for the person"), api.TURN_ENDING),
)


class Capture:
    """One payload as the host sent it: the ``payload``, the environment that came with it, and what it must become.

    ``expect`` maps fields of :class:`gstack.api.HookEvent` to their values (those that are named are compared); None:
    ``decode`` gives None.
    """

    def __init__(
        self, payload: Mapping[str, Any], expect: Mapping[str, Any] | None, *, env: Mapping[str, str] | None = None
    ) -> None:
        self.payload = dict(payload)
        self.expect = expect
        self.env = dict(env or {})


class HostAdapterConformance(TranscriptChecks, SettingsChecks, ProcessChecks):
    """Inherit from it in a test class, name the plug-in's module in ``plugin`` and give what only you know:

    ``captures()``, ``samples()`` (transcripts), ``rendered()``, ``settings_files()`` and ``broken_settings()``.
    """

    def captures(self) -> list[Capture]:
        """Payloads that the host sent."""
        return []

    def rendered(self) -> list[tuple[Answer, str, Any]]:
        """Answers, each with the host's name of the event and the JSON that the host understands (None: nothing)."""
        return []

    # ---------------------------------------------------------------------------------------------- identity

    def test_identity_and_tables(self) -> None:
        """Texts that people see, events of known kinds, capabilities as data."""
        for host in self.subjects():
            one_line(host.title, "title")
            one_line(host.docs, "docs")
            expect(host.events, f"{host.id}: no events")
            for name, kind in host.events.items():
                expect(isinstance(name, str) and kind in _KINDS, f"{host.id}: {name} has the unknown kind {kind!r}")
            for form in ("inject", "deny", "block_stop", "notice"):
                expect(isinstance(host.capabilities.get(form), str), f"{host.id}: capabilities lack {form}")
            crash = host.capabilities.get("crash_is")
            expect(crash in ("open", "closed", "closed_if_text"), f"{host.id}: crash_is is {crash!r}")
            expect(all(isinstance(name, str) for name in host.skill_variables), f"{host.id}: skill_variables")

    # ---------------------------------------------------------------------------------------------- payloads

    def test_own_captures_decode(self) -> None:
        """Each capture is claimed (never as foreign) and becomes the event that it is."""
        for host in self.subjects():
            for number, capture in enumerate(self.captures()):
                said = self.ask(host.claims, capture.env, capture.payload)
                expect(said in ("mine", "unsure"), f"{host.id}: capture {number} is called {said!r}")
                event = self.ask(host.decode, capture.payload, capture.env)
                if capture.expect is None:
                    expect(event is None, f"{host.id}: capture {number} became an event of kind {event and event.kind}")
                    continue
                expect(isinstance(event, HookEvent), f"{host.id}: capture {number} became {type(event).__name__}")
                self._matches(host, number, event, capture.expect)

    def _matches(self, host: Any, number: int, event: HookEvent, wanted: Mapping[str, Any]) -> None:
        expect(event.host == host.id, f"{host.id}: the event says that it is from {event.host!r}")
        expect(event.kind in _KINDS, f"{host.id}: the kind {event.kind!r} is unknown")
        for name, value in wanted.items():
            found = getattr(event, name)
            if name == "tool" and isinstance(value, Mapping):
                for key, part in value.items():
                    said = getattr(found, key)
                    expect(said == part, f"{host.id}: capture {number}: tool.{key} is {said!r}, not {part!r}")
            else:
                expect(found == value, f"{host.id}: capture {number}: {name} is {found!r}, not {value!r}")

    def test_other_hosts_payloads_are_not_claimed(self) -> None:
        """What other hosts send is foreign, or at most unsure; it is never called mine."""
        for host in self.subjects():
            for name, capture in foreign_captures():
                if name == host.id:
                    continue
                said = self.ask(host.claims, capture.env, capture.payload)
                expect(said in _WORDS, f"{host.id}: claims gave {said!r}; it may say {', '.join(_WORDS)}")
                expect(said != "mine", f"{host.id}: claims a payload of {name}: {sorted(capture.payload)}")

    def test_odd_payloads_raise_nothing(self) -> None:
        """Whatever a field holds or lacks, the payload is decoded or refused."""
        for host in self.subjects():
            for capture in [*self.captures(), *[one for _, one in foreign_captures()], Capture({}, None)]:
                for payload in _variations(capture.payload):
                    self.ask(host.claims, capture.env, payload)
                    event = self.ask(host.decode, payload, capture.env)
                    sound = event is None or (isinstance(event, HookEvent) and event.kind in _KINDS)
                    expect(sound, f"{host.id}: decode gave {event!r}")

    def test_decoding_leaves_the_payload_as_it_was(self) -> None:
        """Others see the payload too."""
        for host in self.subjects():
            for capture in self.captures():
                kept = json.dumps(capture.payload)
                self.ask(host.decode, capture.payload, capture.env)
                expect(json.dumps(capture.payload) == kept, f"{host.id}: decode changed the payload")

    # ---------------------------------------------------------------------------------------------- answers

    def test_answers_render(self) -> None:
        """Nothing for nothing; else one JSON document that holds the text where the host can show it at all."""
        for host in self.subjects():
            for native, kind in host.events.items():
                event = HookEvent(host.id, kind, native)
                expect(
                    self.ask(host.render, Answer(), event) == b"", f"{host.id}: an empty answer renders to something"
                )
                for form, answer, meant_for in _ANSWERS:
                    said = _document(host, self.ask(host.render, answer, event))
                    able = host.capabilities.get(form) not in (None, "none")
                    if kind == meant_for:
                        text = getattr(answer, form)
                        found = text in _texts(said)
                        expect(
                            found == able, f"{host.id}: {native}: {form} is {host.capabilities.get(form)}, got {said}"
                        )

    def test_rendered_forms(self) -> None:
        """The forms that were seen to work with the host."""
        for host in self.subjects():
            for answer, native, wanted in self.rendered():
                event = HookEvent(host.id, host.events[native], native)
                said = _document(host, self.ask(host.render, answer, event))
                expect(said == wanted, f"{host.id}: {native}: {answer!r} rendered to {said}, not {wanted}")

    # ---------------------------------------------------------------------------------------------- skills

    def test_skills_are_found_without_any(self) -> None:
        """On a machine without any skill the folders are listed and nothing is raised."""
        for host in self.subjects():
            with self.box() as box:
                for cwd in (box.work, box.work + "/not/there", None):
                    roots, depends = self.ask(host.skill_places, box.env, cwd, limit=2.0)
                    expect(all(isinstance(root, api.SkillRoot) for root in roots), f"{host.id}: roots are SkillRoots")
                    expect(all(isinstance(path, str) for path in depends), f"{host.id}: files are paths")
                expect(all(isinstance(name, str) for name in host.taken_names()), f"{host.id}: taken_names")

    def test_a_skill_is_found_and_named(self) -> None:
        """A SKILL.md in the first folder is listed, and the phrase says how the model runs it, in one line."""
        for host in self.subjects():
            with self.box() as box:
                roots, _ = self.ask(host.skill_places, box.env, box.work, limit=2.0)
                root = next((one for one in roots if one.scope in ("personal", "project")), None)
                if root is None:
                    continue
                path = box.write(f"{root.path}/demo/SKILL.md", "---\nname: demo\ndescription: d\n---\nbody\n")
                found = self.ask(host.skills_in, root, limit=2.0)
                names = [name for name, _ in found]
                expect("demo" in names, f"{host.id}: {root.path} holds demo, skills_in says {names}")
                phrase = one_line(self.ask(host.load_phrase, Skill("demo", path)), f"{host.id}: load_phrase")
                expect("demo" in phrase, f"{host.id}: the phrase doesn't name the skill: {phrase}")
                expect(not set("<>") & set(phrase), f"{host.id}: hosts escape angle brackets: {phrase}")


def foreign_captures() -> Iterator[tuple[str, Capture]]:
    """Real payloads of six hosts, with the environment variables that came with them."""
    text = (resources.files("gstack.testing") / "foreign.json").read_text("utf-8")
    for host, rows in json.loads(text).items():
        for row in rows:
            yield host, Capture(row["payload"], None, env=dict.fromkeys(row["env"], "1"))


def _variations(payload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The payload, without each of its fields, and with each of them holding something odd."""
    yield dict(payload)
    for key in payload:
        yield {name: value for name, value in payload.items() if name != key}
        for odd in _ODD:
            yield {**payload, key: odd}


def _document(host: Any, data: object) -> Any:
    expect(isinstance(data, bytes), f"{host.id}: render gave {type(data).__name__}, not bytes")
    if not data:
        return None
    try:
        return json.loads(bytes(data))  # type: ignore[call-overload]
    except ValueError as error:
        raise AssertionError(f"{host.id}: what was rendered is no JSON document: {data!r}") from error


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]

"""The host adapter kit's checks of transcripts and settings files. Cold."""

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gstack.api import Event, Finding
from gstack.config import SWITCHES
from gstack.errors import ContractState, GstackError, SettingsError, UnknownShape
from gstack.launcher import launcher_path
from gstack.sandbox import Sandbox
from gstack.testing.kit import Conformance, expect
from gstack.transcript import since_load

#: How many places a transcript is cut at; a short one is cut at every byte.
_CUTS = 600
_LIMIT = 32 << 20


class Sample:
    """A transcript of the host: its ``path``, and the ``events`` in it, each as the fields that must be so
    (``{"type": "load", "name": "qa"}``)."""

    def __init__(self, path: str | os.PathLike[str], events: Sequence[Mapping[str, Any]]) -> None:
        self.path = os.fspath(path)
        self.events = [dict(event) for event in events]


class _Box(Sandbox):
    """A sandbox that writes files anywhere in its folder."""

    def write(self, path: str, text: str) -> str:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class HostChecks(Conformance):
    """What the parts of the host kit share."""

    group = "gstack.host_adapters"

    @contextmanager
    def box(self) -> Iterator[_Box]:
        """A throw-away home."""
        box = _Box()
        with box:
            yield box

    def allowed(self, function: Callable[..., Any], *args: Any, errors: tuple[type[GstackError], ...]) -> Any:
        """Call the plug-in, where some errors are answers: the result, or the error."""

        def call() -> Any:
            try:
                return function(*args)
            except errors as error:
                return error

        return self.ask(call, limit=5.0)


class TranscriptChecks(HostChecks):
    """Reading what the host wrote."""

    def samples(self) -> list[Sample]:
        """Transcripts of the host with what is in them."""
        return []

    def test_transcripts_give_their_events(self) -> None:
        """Each sample is read as the events that happened, in file order."""
        for host in self.subjects():
            for sample in self.samples():
                events = self._events(host, sample.path)
                kinds = [event.type for event in events]
                wanted = [event["type"] for event in sample.events]
                expect(kinds == wanted, f"{sample.path}: events {kinds}, not {wanted}")
                for place, (event, fields) in enumerate(zip(events, sample.events, strict=True)):
                    self._matches_event(f"{sample.path}: event {place}", event, fields)

    @staticmethod
    def _matches_event(what: str, event: Event, fields: Mapping[str, Any]) -> None:
        for name, value in fields.items():
            found: Any = event
            for part in name.split("."):  # call.kind
                found = getattr(found, part)
            expect(found == value, f"{what}: {name} is {found!r}, not {value!r}")

    def test_a_run_is_the_end_of_its_transcript(self) -> None:
        """``read_run`` gives what ``read_transcript`` gives from the last load on."""
        for host in self.subjects():
            for sample in self.samples():
                events = self._events(host, sample.path)
                for skill in {event.name for event in events if event.type == "load" and event.name} | {"never-loaded"}:
                    run = self._run(host, sample.path, {skill})
                    expect(run == since_load(events, {skill}), f"{sample.path}: another run of {skill}")

    def test_the_last_load_is_where_the_run_begins(self) -> None:
        """``last_load``, where a host has it, gives the first event of ``read_run``, or None."""
        for host in [one for one in self.subjects() if hasattr(one, "last_load")]:
            for sample in self.samples():
                names = {event.name for event in self._events(host, sample.path) if event.type == "load" and event.name}
                for skill in [*names, "never-loaded"]:
                    run = self._run(host, sample.path, {skill})
                    load = self.ask(host.last_load, sample.path, skills={skill}, max_bytes=_LIMIT, limit=5.0)
                    expect(load == (run[0] if run else None), f"{sample.path}: {load!r} begins no run of {skill}")

    def test_an_end_is_the_end_of_its_run(self) -> None:
        """``read_end``, where a host has it, gives the load and the last events of ``read_run``, unless ``rest_lacks``
        finds a later load."""
        for host in [one for one in self.subjects() if hasattr(one, "read_end")]:
            for sample in self.samples():
                names = {event.name for event in self._events(host, sample.path) if event.type == "load" and event.name}
                for skill in [*names, "never-loaded"]:
                    run = self._run(host, sample.path, {skill})
                    what = {"skills": {skill}, "max_bytes": _LIMIT}
                    end = self.ask(host.read_end, sample.path, **what, limit=5.0)
                    if not end:
                        expect(end is None or not run, f"{sample.path}: read_end misses the run of {skill}")
                        continue
                    expect(end[1:] == run[1 - len(end) :], f"{sample.path}: another end of the run of {skill}")
                    nothing: dict[str, list[str]] = {"said": [], "called": [], "anywhere": []}
                    later = self.ask(host.rest_lacks, sample.path, **what, events=end, **nothing, limit=5.0)
                    if later is not False:
                        load = end[0] if later is True else later
                        expect(load == run[0], f"{sample.path}: {load!r} begins no run of {skill}")

    def test_cut_transcripts_raise_nothing_but_unknown_shape(self) -> None:
        """A host may be writing at this moment: any part of a transcript is read, or is of unknown shape."""
        for host in self.subjects():
            for sample in self.samples():
                data = _bytes_of(sample.path)
                loads = [event for event in self._events(host, sample.path) if event.type == "load"]
                skills = {event.name or "" for event in loads} or {"x"}
                step = max(1, len(data) // _CUTS)
                with _file() as path:
                    for end in [*range(0, len(data), step), len(data)]:
                        _put(path, data[:end])
                        self._read_or_unknown(host, path, skills, f"{sample.path} cut at byte {end}")

    def test_what_is_no_transcript_is_of_unknown_shape(self) -> None:
        """Nothing, noise, and another program's JSON."""
        for host in self.subjects():
            with _file() as path:
                for data in (b"", b"\n\n", os.urandom(3000), b"{}\n[]\nnull\n1\n", b'{"type": "unheard of"}\n' * 50):
                    _put(path, data)
                    found = self.allowed(_whole, host, path, errors=(UnknownShape,))
                    expect(isinstance(found, UnknownShape), f"{host.id}: {data[:30]!r} was read as a transcript")

    def test_unreadable_and_huge_transcripts_are_reported(self) -> None:
        """A missing file and one over the limit are state errors that name the path."""
        for host in self.subjects():
            with _file() as path:
                _put(path, b"{}\n" * 100)
                reads = [_whole, _run, _load] if hasattr(host, "last_load") else [_whole, _run]
                for where, limit in ((path + ".gone", _LIMIT), (path, 10)):
                    for read in reads:
                        found = self.allowed(read, host, where, limit, errors=(ContractState,))
                        said = isinstance(found, ContractState) and where in found.message
                        expect(said, f"{host.id}: {read.__name__.strip('_')}: {found!r} for {where}")

    def test_transcripts_of_an_empty_machine(self) -> None:
        """There are none, and that is no error."""
        for host in self.subjects():
            with self.box() as box:
                expect(list(self.ask(host.transcripts, box.env)) == [], f"{host.id}: transcripts out of nothing")
                said = self.ask(host.session_kind, box.env)
                expect(said in (None, "interactive", "headless"), f"{host.id}: session_kind gave {said!r}")

    def _events(self, host: Any, path: str) -> list[Event]:
        return list(self.ask(_whole, host, path, limit=5.0))

    def _run(self, host: Any, path: str, skills: Collection[str]) -> list[Event]:
        return list(self.ask(host.read_run, path, skills=skills, max_bytes=_LIMIT, limit=5.0))

    def _read_or_unknown(self, host: Any, path: str, skills: Collection[str], what: str) -> None:
        def read() -> Any:
            try:
                return host.read_run(path, skills=skills, max_bytes=_LIMIT), host.read_transcript(
                    path, max_bytes=_LIMIT
                )
            except UnknownShape:
                return None

        try:
            self.ask(read, limit=5.0)
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from error


class SettingsChecks(HostChecks):
    """Registering in the host's settings file."""

    def settings_files(self) -> list[bytes | None]:
        """Contents that the settings file may have had before gstack (None: there was none)."""
        return [None]

    def broken_settings(self) -> list[bytes]:
        """Contents that the host itself couldn't read: they must be left alone."""
        return [b"\x00 no settings file \xff"]

    def test_registrations_name_the_host_and_known_events(self) -> None:
        """Each feature's entries run the launcher with the host's id on an event that the adapter knows."""
        for host in self.subjects():
            expect(host.registrations([]) == [], f"{host.id}: registrations without a feature")
            for feature in SWITCHES:
                for one in self.ask(host.registrations, [feature]):
                    expect(one.feature == feature, f"{host.id}: an entry of {one.feature} for {feature}")
                    expect(one.event in host.events, f"{host.id}: {one.event} isn't among its events")
                    expect(one.args and one.args[0] == host.id, f"{host.id}: the command doesn't name the host first")
                    expect(one.timeout > 0, f"{host.id}: a timeout of {one.timeout} s")

    def test_install_install_remove_leaves_every_byte(self) -> None:
        """Twice in and out again: the file is as it was; the second time nothing is written."""
        for host in self.subjects():
            for before in self.settings_files():
                with self.box() as box:
                    path = self.ask(host.settings_path, box.env, None)
                    expect(path.startswith(box.folder), f"{host.id}: {path} doesn't follow the environment's home")
                    if before is not None:
                        os.makedirs(os.path.dirname(path), exist_ok=True)
                        _put(path, before)
                    self._install(host, box, path, before)

    def _install(self, host: Any, box: Sandbox, path: str, before: bytes | None) -> None:
        some, full = host.registrations(["skill_routing"]), host.registrations(list(SWITCHES))
        for wanted in (some, full):
            self._change(host, box, wanted)
            expect(os.path.isfile(path), f"{host.id}: {path} isn't there after registering")
            text = _bytes_of(path)
            expect(os.fsencode(os.path.basename(launcher_path(box.root))) in text, f"{path}: nothing was registered")
            status = os.stat(path).st_mtime_ns
            change = self._change(host, box, wanted)
            expect(change.after == change.before, f"{path}: registering again changes something")
            expect((_bytes_of(path), os.stat(path).st_mtime_ns) == (text, status), f"{path}: written without a change")
        self._change(host, box, [])
        left = _bytes_of(path) if os.path.exists(path) else None
        expect(left == before, f"{path}: {before!r} before, {left!r} after it was removed")

    def _change(self, host: Any, box: Sandbox, wanted: Sequence[Any]) -> Any:
        change = self.ask(host.plan_settings, wanted, launcher_path(box.root), box.env, None, limit=2.0)
        self.ask(host.apply_settings, change, limit=2.0)
        return change

    def test_a_broken_settings_file_is_left_alone(self) -> None:
        """A file that can't be parsed: a clear error, and not one byte changes."""
        for host in self.subjects():
            wanted = host.registrations(list(SWITCHES))
            for data in self.broken_settings():
                with self.box() as box:
                    path = host.settings_path(box.env, None)
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    _put(path, data)
                    arguments = (wanted, launcher_path(box.root), box.env, None)
                    found = self.allowed(host.plan_settings, *arguments, errors=(SettingsError,))
                    expect(isinstance(found, SettingsError), f"{host.id}: {data!r} was taken for a settings file")
                    expect(path in found.message, f"{host.id}: the error doesn't name {path}: {found}")
                    expect(_bytes_of(path) == data, f"{host.id}: a broken file was changed")

    def test_diagnosis_works_in_any_state(self) -> None:
        """With nothing there, with everything registered, and with a broken file."""
        for host in self.subjects():
            wanted = host.registrations(list(SWITCHES))
            with self.box() as box:
                arguments = (wanted, launcher_path(box.root), box.env, None)
                self._diagnosis(host, *arguments)
                self._change(host, box, wanted)
                self._diagnosis(host, *arguments)
                _put(host.settings_path(box.env, None), self.broken_settings()[0])
                self._diagnosis(host, *arguments)

    def _diagnosis(self, host: Any, *arguments: Any) -> None:
        for finding in self.ask(host.diagnose, *arguments, limit=20.0):
            expect(isinstance(finding, Finding), f"{host.id}: diagnose gave {type(finding).__name__}")
            expect(finding.status in ("ok", "warn", "fail", "info"), f"{host.id}: a finding is {finding.status!r}")


def _whole(host: Any, path: str, limit: int = _LIMIT) -> Any:
    return host.read_transcript(path, max_bytes=limit)


def _run(host: Any, path: str, limit: int = _LIMIT) -> Any:
    return host.read_run(path, skills={"demo"}, max_bytes=limit)


def _load(host: Any, path: str, limit: int = _LIMIT) -> Any:
    return host.last_load(path, skills={"demo"}, max_bytes=limit)


def _bytes_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _put(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


@contextmanager
def _file() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="gstack-") as folder:
        yield os.path.join(folder, "transcript.jsonl")

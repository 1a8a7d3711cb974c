"""Reading whole and from the end give the same events, whatever the file holds and wherever it breaks off."""

import json
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_records import Records, events_of, file_of, notification, run_of, told
from claude_writer import STEPS, written
from hypothesis import given, settings
from hypothesis import strategies as st

from gstack.api import Event
from gstack.errors import ContractState, UnknownShape
from gstack.transcript import LIMIT, since_load
from gstack_hosts.claude_code import transcript
from gstack_hosts.claude_code.events import Decoder
from gstack_hosts.claude_code.records import feed, records_of
from gstack_hosts.claude_code.transcript import last_load, read_run, read_transcript, transcripts

#: Ways to read: as the hook does, and with blocks so small that every edge is met.
READINGS: list[dict[str, int]] = [{}, {"block": 700, "tail": 2000}, {"block": 64, "tail": 0}]


def whole(path: str) -> list[Event] | None:
    """All events; None for an unknown shape."""
    try:
        return read_transcript(path, max_bytes=LIMIT)
    except UnknownShape:
        return None


def assert_same_both_ways(path: str, skills: Iterable[str], readings: Iterable[dict[str, int]] = READINGS) -> None:
    """What reading from the end gives is the end of what reading whole gives."""
    events = whole(path)
    names = list(skills)
    for how in readings:
        if events is None:
            for read in (read_run, last_load):
                with pytest.raises(UnknownShape):
                    read(path, skills=names, max_bytes=LIMIT, **how)
            continue
        run = since_load(events, names)
        assert read_run(path, skills=names, max_bytes=LIMIT, **how) == run
        assert last_load(path, skills=names, max_bytes=LIMIT, **how) == (run[0] if run else None)


def questions(path: str) -> list[list[str]]:
    """Every skill that a transcript loads, all of them, and none."""
    found = sorted({event.name or "" for event in whole(path) or [] if event.type == "load"})
    return [[name] for name in found] + [found, ["no-such-skill"], []]


# ---------------------------------------------------------------------------------------- what really was written


def real_transcripts(shared: Path) -> Iterator[Path]:
    index = shared / "corpus" / "transcripts" / "INDEX.tsv"
    for line in index.read_text(encoding="utf-8").splitlines()[1:]:
        yield index.parent / line.split("\t")[0]
    yield from sorted((shared / "reference" / "claude-code-live").glob("*/*/projects/**/*.jsonl"))


def test_every_real_transcript_reads_the_same_both_ways(shared: Path) -> None:
    count = loads = 0
    for path in real_transcripts(shared):
        readings = READINGS if path.stat().st_size < 40_000 else READINGS[:1]
        for names in questions(str(path)):
            assert_same_both_ways(str(path), names, readings)
            loads += bool(names) and names != ["no-such-skill"]
        count += 1
    assert count > 300
    assert loads > 50


def test_what_is_no_transcript_of_claude_code_is_of_unknown_shape(shared: Path) -> None:
    folder = shared / "corpus" / "transcripts" / "other-shapes"
    for path in sorted(folder.rglob("*.jsonl")):
        assert whole(str(path)) is None, path


@pytest.mark.parametrize("style", ["compact", "spaced", "ascii"])
def test_what_is_cut_says_what_is_decoded_whole(shared: Path, style: str) -> None:
    """The needles of the fast way against the plain way, on every line, in every style of JSON."""
    for path in real_transcripts(shared):
        lines = path.read_bytes().split(b"\n")
        data = b"".join([_restyled(line, style) + b"\n" for line in lines])
        fast, plain, place = Decoder(), Decoder(), 0
        feed(fast, 0, data, 0, len(data))
        for line in (
            data.splitlines(keepends=True) if b"\r" not in data else [p + b"\n" for p in data.split(b"\n")[:-1]]
        ):
            for record in records_of(line):
                plain.add(record, place)
            place += len(line)
        assert fast.events == plain.events, path
        assert (fast.shaped, fast.suspects, fast.unsure) == (plain.shaped, plain.suspects, plain.unsure)


def _restyled(line: bytes, style: str) -> bytes:
    try:
        record = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return line
    compact = (",", ":") if style == "compact" else None
    return json.dumps(record, ensure_ascii=style == "ascii", separators=compact).encode("utf-8", "surrogatepass")


def test_frequent_records_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast way is taken at all: of 2.1.332's messages and results only failures are decoded whole."""
    session = Records()
    session.prompt("go")
    for number in range(5):
        session.says(f"step {number} ✓")
        session.bash("pytest -q", f"{number} passed “all”\n" * 50)
        session.tool("Read", {"file_path": "/a"}, "1\tx" * 300, {"type": "text", "file": {"filePath": "/a"}})
        session.tool(
            "Edit", {"file_path": "/a", "old_string": "x" * 900, "new_string": "y"}, "done", {"filePath": "/a"}
        )
    decoded: list[Any] = []
    monkeypatch.setattr("gstack_hosts.claude_code.records.records_of", lambda line, **_: decoded.append(line) or [])
    for spaced in (False, True):
        decoded.clear()
        decoder, data = Decoder(), session.data(spaced=spaced)
        feed(decoder, 0, data, 0, len(data))
        assert len(decoded) == 1
        assert len(decoder.events) == 35


# --------------------------------------------------------------------------------------------- what could be written


@settings(max_examples=250)
@given(seed=st.integers(0, 1 << 30), steps=st.lists(st.sampled_from(STEPS), max_size=25), block=st.integers(40, 900))
def test_any_session_reads_the_same_both_ways(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: list[str], block: int
) -> None:
    path = file_of(written(seed, ["prompt", *steps]), tmp_path_factory.mktemp("any"))
    for names in (["investigate"], ["/review"], ["acme:review"], ["investigate", "x:review"], []):
        assert_same_both_ways(path, names, [{"block": block, "tail": block * (seed % 4)}, {}])


@settings(max_examples=120)
@given(seed=st.integers(0, 1 << 30), steps=st.lists(st.sampled_from(STEPS), max_size=25), cut=st.integers(0, 1 << 30))
def test_a_cut_changes_nothing_but_the_tail(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: list[str], cut: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    data = written(seed, ["prompt", *steps])
    cut %= len(data) + 1
    assert_tail_only(data, cut, folder)
    assert_same_both_ways(file_of(data[:cut], folder), ["investigate", "review"])


def assert_tail_only(data: bytes, cut: int, folder: Path, known: dict[int, list[Event] | None] | None = None) -> None:
    """Cut at ``cut``, the file says what its whole lines say, or these and the last one if nothing of it is missing."""
    known = {} if known is None else known
    lines = data.rfind(b"\n", 0, cut) + 1
    if lines not in known:
        known[lines] = whole(file_of(data[:lines], folder))
    before, found = known[lines], whole(file_of(data[:cut], folder))
    if found != before:
        assert found is not None
        assert found == whole(file_of(data[:cut] + b"\n", folder))
        # the last line may add to a text, or decide about a load; nothing else before it changes
        assert [e.uid for e in found if e.ordinal < lines and e.type != "load"] == [
            e.uid for e in before or [] if e.type != "load"
        ]


@pytest.mark.parametrize(("name", "step"), [("typed_forked_skill", 1), ("skill_call", 29), ("agent_stopped", 31)])
def test_every_cut_of_a_small_transcript(tmp_path: Path, name: str, step: int) -> None:
    """All cuts of the smallest; of the others every so many bytes, and those about the ends of lines."""
    data = (Path(__file__).parents[2] / "data" / "transcripts" / f"{name}.jsonl").read_bytes()
    events = events_of(data, tmp_path)
    known: dict[int, list[Event] | None] = {}
    ends = [place + near for place, byte in enumerate(data) if byte == 10 for near in (-1, 0, 1, 2)]
    for cut in sorted({*range(0, len(data) + 1, step), *ends}):
        assert_tail_only(data, cut, tmp_path, known)
        found = whole(str(tmp_path / "session.jsonl")) or []
        assert all(event in events for event in found if event.type == "load")


def test_cuts_of_real_transcripts(shared: Path, tmp_path: Path) -> None:
    rng = random.Random(7)
    for path in real_transcripts(shared):
        data = path.read_bytes()
        for _ in range(1 if len(data) > 200_000 else 4):
            cut = rng.randrange(len(data) + 1)
            assert_tail_only(data, cut, tmp_path)
            assert_same_both_ways(file_of(data[:cut], tmp_path), ["investigate"], READINGS[:1])


# ------------------------------------------------------------------------------------------------ copies, from the end


def long_session(lines_before: int = 0, lines_after: int = 0) -> Records:
    session = Records()
    session.prompt("start")
    for number in range(lines_before):
        session.bash(f"echo {number}", "x" * 400)
    session.skill()
    for number in range(lines_after):
        session.bash(f"echo {number}", "y" * 400)
    return session


def assert_tail_reading(data: bytes, folder: Path, *, from_tail: bool) -> None:
    """Reading from the end is right, and (``from_tail``) didn't need the whole file."""
    path = file_of(data, folder)
    read: list[str] = []
    original = transcript.whole
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcript, "whole", lambda source: read.append("whole") or original(source))
        run = read_run(path, skills=["investigate"], max_bytes=LIMIT, block=1500, tail=7000)
    assert run == since_load(read_transcript(path, max_bytes=LIMIT), ["investigate"])
    assert run
    assert read == ([] if from_tail else ["whole"])


def test_a_load_near_the_end_is_read_from_there(tmp_path: Path) -> None:
    assert_tail_reading(long_session(40, 2).data(), tmp_path, from_tail=True)


def test_a_load_far_back_is_read_from_there(tmp_path: Path) -> None:
    assert_tail_reading(long_session(20, 40).data(), tmp_path, from_tail=True)


def test_results_of_calls_beside_the_load_need_no_more(tmp_path: Path) -> None:
    session = long_session(40)
    one = session.call("Bash", {"command": "x"})
    session.skill()
    session.result(one, "printed")
    assert_tail_reading(session.data(), tmp_path, from_tail=True)
    assert f"result {one} ok 'printed'" in told(run_of(session.data(), tmp_path, ["investigate"]))


def test_an_old_record_after_the_load_that_is_no_copy_needs_no_more(tmp_path: Path) -> None:
    """A queued prompt has the time when it was typed."""
    session = long_session(40)
    session.attachment("queued_command", prompt="also", commandMode="prompt")["timestamp"] = "2026-11-30T00:00:01.000Z"
    assert_tail_reading(session.data(), tmp_path, from_tail=True)


@pytest.mark.parametrize("which", [3, -4])
def test_a_copy_of_a_record_before_the_load_does_not_count_again(tmp_path: Path, which: int) -> None:
    session = long_session(40, 1)
    session.all.append(session.all[which])
    assert_tail_reading(session.data(), tmp_path, from_tail=which < 0)


def test_a_copy_of_the_load_begins_no_run(tmp_path: Path) -> None:
    session = long_session(20, 40)
    call = next(number for number, r in enumerate(session.all) if "'Skill'" in str(r["message"]))
    session.all += session.all[call : call + 2]
    session.bash("last")
    assert_tail_reading(session.data(), tmp_path, from_tail=False)
    assert last_load(str(tmp_path / "session.jsonl"), skills=["investigate"], max_bytes=LIMIT, block=999, tail=3000)


def test_a_doubled_result_of_a_call_before_the_load(tmp_path: Path) -> None:
    session = long_session(40, 1)
    session.result("toolu_0003", "again")
    assert_tail_reading(session.data(), tmp_path, from_tail=False)


def test_a_session_without_times_is_read_whole(tmp_path: Path) -> None:
    session = long_session(40, 2)
    for record in session.all:
        record.pop("timestamp", None)
    assert_tail_reading(session.data(), tmp_path, from_tail=False)


def test_the_last_of_several_loads_counts_if_its_call_succeeded(tmp_path: Path) -> None:
    session = long_session(5, 5)
    session.tool("Skill", {"skill": "investigate"}, "Unknown skill", error=True)
    session.call("Skill", {"skill": "investigate"})
    session.skill("other")
    for how in READINGS:
        run = run_of(session.data(), tmp_path, ["x:investigate", "nothing"], **how)
        assert run[0].uid == "toolu_0011"


# ---------------------------------------------------------------------------------- escapes, spaces and other disguises


DISGUISES = [
    lambda text: text,
    lambda text: text.replace("/", "\\/"),
    lambda text: text.replace("<", "\\u003c").replace(">", "\\u003E"),
    lambda text: text.replace("investigate", "\\u0069nvesti\\u0067ate"),
    lambda text: text.replace('"Skill"', '"\\u0053kill"').replace("SKILL.md", "SKILL\\u002emd"),
    lambda text: text.replace('":', '" : ').replace(',"', ' , "'),
]


@pytest.mark.parametrize("number", range(len(DISGUISES)))
@pytest.mark.parametrize("way", ["skill", "typed", "read"])
@pytest.mark.parametrize("how", READINGS)
def test_no_way_of_writing_json_hides_a_load(tmp_path: Path, number: int, way: str, how: dict[str, int]) -> None:
    session = Records()
    session.prompt("start")
    if way == "read":
        session.tool("Read", {"file_path": "/h/skills/investigate/SKILL.md"}, "x", {"type": "text"})
    else:
        getattr(session, way)("investigate")
    for _ in range(10):
        session.bash("echo", "text \\u006e \x1b[2m that was escaped twice")
    lines = [DISGUISES[number](line) for line in session.data().decode().splitlines()]
    run = run_of("\n".join([*lines, ""]).encode(), tmp_path, ["investigate"], **how)
    assert [event.name for event in run[:1]] == ["investigate"]


# --------------------------------------------------------------------------------------------------- broken files


def test_broken_lines_cost_only_themselves(tmp_path: Path) -> None:
    session = Records()
    session.prompt("one")
    session.says("two")
    first, second = session.data().splitlines()
    bad = [b"", b"\0\0\0", b"[1, 2]", b"null", b"{", b'{"type":"user"', b"\xff\xfe", b'{"type":"user","message":"x"}',
           b'{"type":"user","message":{"content":null}}', b'{"type":"assistant"}', b'{"type":["x"]}', b"{} {} x",
           b'{"type":"assistant","message":{"content":[1,"x",null]}}', b'{"a":' * 3000]  # fmt: skip
    data = b"\n".join([*bad, first, *bad, second, *bad])
    assert told(events_of(data, tmp_path)) == ["prompt 'one'", "text 'two'"]


def test_holes_and_lost_newlines(tmp_path: Path) -> None:
    session = Records()
    session.prompt("one")
    session.says("two")
    session.bash("three")
    session.add({"type": "last-prompt", "lastPrompt": "x"})
    session.says("four")
    session.says("five")
    lines = session.data().splitlines()
    expected = told(events_of(b"\n".join(lines), tmp_path))
    for data in (
        b"".join(lines),
        b"\0\0".join(lines),
        b" \t".join(lines) + b"\n\n",
        b"\n".join([line[:40] + line for line in lines]),  # each broke off and was written again
        b"\xef\xbb\xbf" + b"\r\n".join(lines),
    ):
        assert told(events_of(data, tmp_path)) == expected


@pytest.mark.parametrize("spaced", [False, True])
def test_what_hides_among_records_without_events_is_found(spaced: bool, tmp_path: Path) -> None:
    session = Records()
    session.prompt("one")
    session.says("two")
    separators = None if spaced else (",", ":")
    first, second = [json.dumps(record, separators=separators).encode() for record in session.all]
    old = json.dumps({"type": "user", **session.all[0], "uuid": "old"}, separators=separators).encode()
    dull = [json.dumps({"type": kind, "x": "y"}, separators=separators).encode() for kind in ("tag", "mode", "summary")]
    queued = Records()
    queued.add({"type": "queue-operation", "operation": "enqueue", "content": notification("a1", "completed")})
    told_late = json.dumps(queued.all[0], separators=separators).encode()
    expected = {old: ["prompt 'one'"], second: ["text 'two'"], told_late: ["agent_finished completed a1"]}
    for hidden in expected:
        for lines in (
            [*dull, hidden, *dull],
            [*dull, dull[0] + hidden, *dull],
            [*dull, hidden + dull[0], *dull],
            [*dull, dull[0][:12] + hidden, *dull] if hidden == second else [*dull, hidden],
            [*dull, dull[0] + b"\0\0" + hidden, *dull],
            [*dull, b"", hidden, b"", *dull],
            [*dull, b"[]", hidden],
            [hidden, *dull, dull[0][:-1]],
        ):
            data = b"\n".join([first, *lines])
            assert told(events_of(data, tmp_path)) == ["prompt 'one'", *expected[hidden]], lines


def test_a_record_that_broke_off_inside_another_does_not_surface_it(tmp_path: Path) -> None:
    """The subagent's record inside a cut progress record must not become one of the main thread."""
    session = Records()
    session.prompt("one")
    inner = Records()
    inner.count = 50
    inner.says("a subagent's")
    data = {"message": inner.all[0], "type": "agent_progress", "agentId": "a"}
    session.conversation({"type": "progress", "data": {**data, "message": {**data, "message": inner.all[0]}}}, {})
    text = session.data()
    for cut in range(text.find(b"\n") + 1, len(text)):
        assert told(events_of(text[:cut], tmp_path)) == ["prompt 'one'"]


@pytest.mark.parametrize("name", ["Bash", "Read"])
def test_a_result_that_broke_off_and_was_written_again_is_one(name: str, tmp_path: Path) -> None:
    """Whichever the two records on its line are: the same result again, or another call's."""
    session = Records()
    session.prompt("one")
    for number in range(4):
        said = f"said {number}\n" + "word " * 120
        value = {"stdout": said, "stderr": ""} if name == "Bash" else {"type": "text", "file": {"content": said}}
        session.tool(name, {"command": "x", "file_path": "/x"}, said, value)
    lines = session.data().splitlines(keepends=True)
    expected = events_of(session.data(), tmp_path)
    # behind these, a record could be one that another holds
    cuts = [cut for cut in range(20, len(lines[6]) - 1, 5) if lines[6][cut - 1] not in b":,["]
    for cut in cuts:
        for again in (b"", lines[5]):
            found = events_of(b"".join([*lines[:6], lines[6][:cut], again, *lines[6:]]), tmp_path)
            for one, other in zip(found, expected, strict=True):
                assert (one.type, one.uid, one.ref, one.text) == (other.type, other.uid, other.ref, other.text), cut


def test_what_broke_off_before_another_record_does_not_swallow_it(tmp_path: Path) -> None:
    """Wherever it broke off, the next record on the line is found, and is all that the line tells."""
    for long in ("result", "edit"):
        session = Records()
        session.prompt("one")
        for _ in range(3):
            if long == "result":
                session.bash("x")
            else:
                given = {"file_path": "/a", "old_string": "x" * 900, "new_string": "y"}
                session.tool("Edit", given, "ok", {"filePath": "/a"})
        session.says("two")
        lines = session.data().splitlines(keepends=True)
        broken = lines[-2] if long == "result" else lines[-3]
        kept = lines[: lines.index(broken)]
        expected = [*told(events_of(b"".join(kept), tmp_path)), "text 'two'"]
        for cut in range(20, len(broken) - 2):
            if broken[cut - 1] not in b":,[":
                found = told(events_of(b"".join([*kept, broken[:cut], lines[-1]]), tmp_path))
                assert found == expected, broken[:cut][-40:]


def test_odd_characters(tmp_path: Path) -> None:
    session = Records()
    session.prompt("half a pair \ud83d and \U0001f4a5")
    session.bash("x", "\x1b[31mred\x1b[0m \udc80")
    data = session.data()
    assert events_of(data, tmp_path)[0].text.endswith("\U0001f4a5")
    escaped = session.data(ascii_only=True)
    assert events_of(escaped, tmp_path)[0].text == "half a pair \ud83d and \U0001f4a5"
    assert len(events_of(data.replace(b"pair", b"p\xc3\x28r"), tmp_path)) == 3


def test_lines_of_many_megabytes(tmp_path: Path) -> None:
    session = long_session(2)
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * (6 << 20)}}
    session.user([{"type": "text", "text": "look"}, picture])
    ident = session.tool("Read", {"file_path": "/x.png"}, [picture], {"type": "image", "file": {"base64": "B" * 1000}})
    session.says("seen")
    path = file_of(session.data(), tmp_path)
    assert told(read_transcript(path, max_bytes=LIMIT))[-4:] == [
        "prompt 'look'",
        f"call read {ident}",
        f"result {ident} ok",
        "text 'seen'",
    ]
    assert_same_both_ways(path, ["investigate"], [{}])


def test_old_records_first(tmp_path: Path) -> None:
    """Metadata may stand before the conversation and after it."""
    session = Records()
    session.add({"type": "summary", "summary": "STATUS: DONE", "leafUuid": "x"})
    session.add({"type": "mode", "mode": "normal"})
    session.prompt("one")
    session.add({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}})
    assert told(session.events(tmp_path)) == ["prompt 'one'"]


# ---------------------------------------------------------------------------------------------------------- errors


UNKNOWN = [
    b"",
    b"\n\n",
    b"hello\n",
    b'{"type":"summary","summary":"x"}\n',
    b'{"role":"user","message":{"content":[{"type":"text","text":"x"}]}}\n',
    b'{"type":"session_meta","payload":{}}\n{"type":"response_item","payload":{"type":"message"}}\n',
    b'{"type":"user","message":"text"}\n{"type":"assistant","message":[{"type":"text","text":"x"}]}\n',
    b'{"type":"user","message":{"role":"user","parts":[{"text":"x"}]}}\n',
    b'{"type":"user","message":{"content":5}}\n{"type":"assistant","message":{"content":[1]}}\n',
]


@pytest.mark.parametrize("number", range(len(UNKNOWN)))
def test_unknown_shapes(tmp_path: Path, number: int) -> None:
    path = file_of(UNKNOWN[number], tmp_path)
    with pytest.raises(UnknownShape) as caught:
        read_transcript(path, max_bytes=LIMIT)
    assert caught.value.exit_code == 4
    assert caught.value.message.startswith(f"{path}: ")
    for names in (["investigate"], []):
        assert_same_both_ways(path, names)


def test_one_known_record_makes_a_transcript(tmp_path: Path) -> None:
    for known in (b'{"type":"user","message":{"content":""}}', b'{"type":"assistant","message":{"content":[]}}'):
        path = file_of(UNKNOWN[6] + known, tmp_path)
        assert read_transcript(path, max_bytes=LIMIT) is not None
        assert_same_both_ways(path, ["investigate"])


def test_a_large_file_that_is_no_transcript(tmp_path: Path) -> None:
    path = file_of(b'{"type":"event_msg","payload":"assistant"}\n' * 30_000, tmp_path)
    assert_same_both_ways(path, ["investigate"], [{}, {"tail": 5000}])


@pytest.mark.parametrize("read", [read_run, last_load])
def test_files_that_cannot_be_read(tmp_path: Path, read: Any) -> None:
    big = tmp_path / "big.jsonl"
    with big.open("wb") as file:
        file.truncate(33 << 20)
    for path in (tmp_path / "none.jsonl", tmp_path, big):
        with pytest.raises(ContractState, match=str(path)):
            read(str(path), skills=["investigate"], max_bytes=LIMIT)
        with pytest.raises(ContractState):
            read_transcript(str(path), max_bytes=LIMIT)


# ------------------------------------------------------------------------------------------------ on this machine


def test_transcripts_newest_first_without_subagents(home: Path) -> None:
    projects = home / ".claude" / "projects"
    for age, name in enumerate(
        ["-a/new.jsonl", "-b/old.jsonl", "-a/new/subagents/agent-x.jsonl", "-a/agent-y.jsonl", "-a/x.txt"]
    ):
        path = projects / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
        os.utime(path, (1e9 - age, 1e9 - age))
    (projects / "file").write_text("no folder")
    found = transcripts({"HOME": str(home)})
    assert [path.removeprefix(str(projects)) for path in found] == ["/-a/new.jsonl", "/-b/old.jsonl"]
    assert transcripts({"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": str(home / ".claude")}) == found
    assert transcripts({"HOME": str(home / "empty")}) == []

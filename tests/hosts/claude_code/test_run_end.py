"""The end of a long run, and what is left out before it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from claude_records import Records, file_of
from claude_writer import STEPS, written
from hypothesis import given, settings
from hypothesis import strategies as st

from gstack.api import Event
from gstack.errors import ContractState, UnknownShape
from gstack.transcript import LIMIT
from gstack_hosts.claude_code.loads import between_results
from gstack_hosts.claude_code.run_end import read_end, rest_lacks
from gstack_hosts.claude_code.transcript import read_run

#: Blocks and parts so small that a short session is a long one.
SMALL = {"block": 2000, "tail": 9000, "part": 8000}
SKILLS = ["investigate", "x:review"]


def lacks(path: str, events: Sequence[Event], **asked: Any) -> Event | bool:
    asked = {"said": [], "called": [], "anywhere": [], **asked}
    return rest_lacks(path, skills=SKILLS, max_bytes=LIMIT, events=events, block=900, **asked)


def long_run(*between: str, before: str = "", after: int = 12) -> Records:
    """A session that loads the skill, does what the names of :class:`Records`' methods in ``between`` say, and goes on.

    ``before`` is said before the load.
    """
    session = Records()
    session.prompt("start")
    if before:
        session.says(before)
    session.skill("investigate")
    for number in range(8):
        session.bash(f"make {number}", "out " * 60)
    for name in between:
        getattr(session, name.partition(" ")[0])(*name.split(" ")[1:])
    for number in range(after):
        session.bash(f"ls {number}", "out " * 60)
    session.says("the end")
    return session


def end_of(session: Records, folder: Path, **how: int) -> tuple[str, list[Event] | None]:
    path = file_of(session.data(), folder)
    return path, read_end(path, skills=SKILLS, max_bytes=LIMIT, **{**SMALL, **how})


# ------------------------------------------------------------------------------------------------ any session


@settings(max_examples=400)
@given(
    seed=st.integers(0, 1 << 30),
    steps=st.lists(st.sampled_from([name for name in STEPS if name != "said_more"]), min_size=5, max_size=40),
    part=st.integers(500, 9000),
    asked=st.sampled_from(
        [{"said": ["STATUS"]}, {"said": ["pytest"]}, {"called": ["edit"]}, {"called": ["agent", "shell"]}, {},
         {"anywhere": ["SKILL_CONTRACT_UNMET "]}]
    ),
)  # fmt: skip
def test_the_end_of_a_run_is_its_end(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: list[str], part: int, asked: dict[str, list[str]]
) -> None:
    path = file_of(written(seed, ["prompt", *steps, "bash", "says"]), tmp_path_factory.mktemp("end"))
    try:
        end = read_end(path, skills=SKILLS, max_bytes=LIMIT, block=900, tail=part, part=part)
    except UnknownShape:
        with pytest.raises(UnknownShape):
            read_run(path, skills=SKILLS, max_bytes=LIMIT)
        return
    if end is None:
        return
    run = read_run(path, skills=SKILLS, max_bytes=LIMIT)
    if not end:
        assert not run
        return
    found = lacks(path, end, **asked)
    while isinstance(found, Event):
        end = [found, *end[1:]]
        found = lacks(path, end, **asked)
    if not found:
        return
    assert run[0] == end[0]
    assert run[-len(end) + 1 :] == end[1:]
    for event in run[1 : -len(end) + 1]:
        if event.agent is None:
            assert not any(text in f"{event.text} {event.call and event.call.command}" for text in asked.get("said", ())
                           if event.type in ("text", "call"))  # fmt: skip
            assert not (event.call and event.type == "call" and event.call.kind in asked.get("called", ()))
            assert not (event.type == "continuation" and asked.get("anywhere"))


def test_such_ends_are_found_in_many_sessions(tmp_path: Path) -> None:
    """The property above isn't empty: a good part of the plain sessions is told by the end."""
    plain = ["bash", "edit", "says", "failed_bash", "long_bash", "prompt", "turn_end", "dull", "agent"]
    told = 0
    for seed in range(60):
        steps = ["prompt", "skill", *(plain[(seed * 7 + number * number) % 9] for number in range(30))]
        path = file_of(written(seed, steps), tmp_path)
        end = read_end(path, skills=SKILLS, max_bytes=LIMIT, **SMALL)
        told += bool(end) and lacks(path, end or []) is True
    assert told >= 20


# ---------------------------------------------------------------------------------------------- case by case


def test_a_load_far_back_and_the_last_part(tmp_path: Path) -> None:
    path, end = end_of(long_run(), tmp_path)
    assert end is not None
    run = read_run(path, skills=SKILLS, max_bytes=LIMIT)
    assert end[0] == run[0]
    assert 3 < len(end) < len(run) - 8
    assert end[1:] == run[-len(end) + 1 :]
    assert end[1].type == "call"
    assert lacks(path, end) is True


def test_a_load_near_the_end_takes_the_run(tmp_path: Path) -> None:
    session = long_run()
    session.skill("review")
    session.says("reviewed")
    assert end_of(session, tmp_path)[1] is None


def test_no_load_at_all(tmp_path: Path) -> None:
    session = Records()
    for number in range(30):
        session.bash(f"ls {number}", "out " * 60)
    assert end_of(session, tmp_path)[1] == []
    with pytest.raises(UnknownShape):
        read_end(file_of(b'{"type":"mode"}\n' * 900, tmp_path), skills=SKILLS, max_bytes=LIMIT, **SMALL)


def test_a_short_file_takes_the_run(tmp_path: Path) -> None:
    assert end_of(long_run(), tmp_path, tail=1 << 20)[1] is None


def test_a_load_that_failed_is_none(tmp_path: Path) -> None:
    session = Records()
    session.prompt("start")
    session.tool("Skill", {"skill": "investigate"}, "<tool_use_error>no</tool_use_error>", error=True)
    for number in range(30):
        session.bash(f"ls {number}", "out " * 60)
    assert end_of(session, tmp_path)[1] == []


def test_a_later_load_begins_the_run(tmp_path: Path) -> None:
    for name in ("skill review", "typed review", "skill investigate"):
        path, end = end_of(long_run(name), tmp_path)
        assert end is not None
        later = lacks(path, end)
        assert isinstance(later, Event)
        assert later == read_run(path, skills=SKILLS, max_bytes=LIMIT)[0]
        assert lacks(path, [later, *end[1:]]) is True


@pytest.mark.parametrize(
    ("between", "asked", "expected"),
    [
        ("says DEBUG_REPORT", {"said": ["DEBUG_REPORT"]}, False),
        ("says DEBUG_REPORT", {"said": ["debug_report"]}, True),
        ("prompt DEBUG_REPORT", {"said": ["DEBUG_REPORT"]}, True),
        ("bash waive", {"said": ["waive"]}, False),
        ("bash x waive", {"said": ["waive"]}, True),
        ("prompt SKILL_CONTRACT_UNMET", {"anywhere": ["SKILL_CONTRACT_UNMET"]}, False),
        ("call Edit {}", {"called": ["edit"]}, False),
        ("call NotebookEdit {}", {"called": ["edit"]}, False),
        ("call Edit {}", {"called": ["agent", "web"]}, True),
        ("call Task {}", {"called": ["agent"]}, False),
        ("says Edit.", {"called": ["edit"]}, True),
    ],
)
def test_what_stands_between(between: str, asked: dict[str, list[str]], expected: bool, tmp_path: Path) -> None:
    path, end = end_of(long_run(between), tmp_path)
    assert end is not None
    assert lacks(path, end, **asked) is expected


@pytest.mark.parametrize(
    "asked",
    [
        *({"said": [text]} for text in ("B\u00c4RICHT", 'a"b', "a\\b", "a/b", "", "a\nb")),
        {"anywhere": ["\u00e9"]},
        {"called": ["mcp"]},
        {"called": ["other"]},
        {"called": ["Edit"]},
    ],
)
def test_what_may_be_written_in_several_ways_cannot_be_told(asked: dict[str, list[str]], tmp_path: Path) -> None:
    path, end = end_of(long_run(), tmp_path)
    assert end is not None
    assert lacks(path, end, **asked) is False


def test_what_an_escape_hides_is_not_passed_over(tmp_path: Path) -> None:
    session = long_run("says DEBUG_REPORT")
    data = session.data().replace(b"DEBUG_REPORT", b"DEBUG_\\u0052EPORT")
    path = file_of(data, tmp_path)
    end = read_end(path, skills=SKILLS, max_bytes=LIMIT, **SMALL)
    assert end is not None
    assert lacks(path, end, said=["DEBUG_REPORT"]) is False


@pytest.mark.parametrize("hidden", [b"SKILL_CONTRACT\\u005fUNMET", b"SKILL_CONTRACT\0_UNMET"])
def test_our_feedback_is_hidden_by_nothing(hidden: bytes, tmp_path: Path) -> None:
    data = long_run("prompt SKILL_CONTRACT_UNMET").data().replace(b"SKILL_CONTRACT_UNMET", hidden)
    path = file_of(data, tmp_path)
    end = read_end(path, skills=SKILLS, max_bytes=LIMIT, **SMALL)
    assert end is not None
    assert lacks(path, end, anywhere=["SKILL_CONTRACT_UNMET"]) is False


def test_history_that_was_copied_is_not_new(tmp_path: Path) -> None:
    """A resumed session may write all that was there once more: the part begins among the copies."""
    for skipped in (0, 3):
        session = long_run()
        history = session.all[skipped:]
        session.says("new")
        session.all += history
        session.says("newer")
        path, end = end_of(session, tmp_path)
        assert end is None or lacks(path, end) is False


def test_a_message_is_not_parted_by_a_subagents(tmp_path: Path) -> None:
    session = long_run(after=16)
    session.assistant({"type": "text", "text": "one"}, ident="m1")
    for _ in range(8):
        session.user("look", side=True, agentId="a1")
        session.says("yes " * 90, side=True, agentId="a1")
    session.assistant({"type": "text", "text": "two"}, ident="m1")
    session.says("the end")
    end = end_of(session, tmp_path)[1]
    assert end is None or "one\ntwo" in [event.text for event in end] or "two" not in [event.text for event in end]


def test_many_lines_that_may_hold_a_load_are_read_instead(tmp_path: Path) -> None:
    session = Records()
    session.prompt("start")
    for _ in range(6):
        session.call("Read", {"file_path": "/h/skills/investigate/SKILL.md"})
    session.skill("investigate")
    for number in range(20):
        session.bash(f"ls {number}", "out " * 60)
    assert end_of(session, tmp_path)[1] is None
    for name in ("call", "tool"):
        session = long_run()
        middle = len(session.all) // 2
        later = Records()
        later.count = 1000
        for _ in range(6):
            getattr(later, name)("Read", {"file_path": "/h/skills/investigate/SKILL.md"}, *["no"] * (name == "tool"),
                                 **{"error": True} if name == "tool" else {})  # fmt: skip
        session.all[middle:middle] = later.all
        path, end = end_of(session, tmp_path)
        assert end is not None
        assert lacks(path, end) is False


def test_what_a_lost_newline_hides_behind_a_long_result_is_found(tmp_path: Path) -> None:
    session = long_run()
    ident = session.bash("long", "word " * 900)
    data = session.data()
    hidden = Records()
    hidden.count = 5000
    hidden.says("DEBUG_REPORT")
    later = Records()
    later.count = 6000
    for number in range(12):
        later.bash(f"ls {number}", "out " * 60)
    path = file_of(data.rstrip(b"\n") + hidden.data() + later.data(), tmp_path)
    assert ident.encode() in data
    end = read_end(path, skills=SKILLS, max_bytes=LIMIT, **SMALL)
    assert end is not None
    assert lacks(path, end, said=["DEBUG_REPORT"]) is False


def test_a_record_without_the_foot_of_a_result_is_none_wherever_it_starts() -> None:
    """Neither is a place found by chance: no needle at all, and the chunk begins some bytes before the line."""
    session = Records()
    session.prompt("start")
    session.bash("long", "word " * 900)
    with_foot = session.data().splitlines(keepends=True)[-1]
    record = session.all[-1]
    del record["sourceToolAssistantUUID"]
    for spaced in (False, True):
        without = session.data(spaced=spaced).splitlines(keepends=True)[-1]
        for before in range(80):
            data = b"x" * before + without
            assert between_results(data, before, len(data)) == [(before, len(data))]
    data = b"x" * 11 + with_foot
    assert between_results(data, 11, len(data)) == []


def test_a_copy_of_an_earlier_record_takes_the_run(tmp_path: Path) -> None:
    session = long_run()
    lines = session.data().splitlines(keepends=True)
    path = file_of(b"".join([*lines[:-4], lines[2], *lines[-4:]]), tmp_path)
    assert read_end(path, skills=SKILLS, max_bytes=LIMIT, **SMALL) is None


def test_a_message_is_not_parted(tmp_path: Path) -> None:
    """The blocks of one message are records with tools' results between them; its texts are one text."""
    session = long_run(after=0)
    for number in range(14):
        session.says(f"text {number}", ident="one")
        ident = session.call("Bash", {"command": f"{number}"})
        session.all[-1]["message"]["id"] = "one"
        session.result(ident, "out " * 60)
    assert end_of(session, tmp_path)[1] is None
    for number in range(3):
        session.bash(f"ls {number}", "out " * 60)
    end = end_of(session, tmp_path)[1]
    assert end is not None
    assert [event.type for event in end[1:]] == ["call", "result"] * (len(end) // 2)
    assert 1 < len(end) <= 7


def test_a_file_that_shrank_cannot_be_told(tmp_path: Path) -> None:
    path, end = end_of(long_run(), tmp_path)
    assert end is not None
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: end[1].ordinal - 10])
    assert lacks(path, end) is False
    Path(path).unlink()
    with pytest.raises(ContractState):
        lacks(path, end)


def test_the_layout_does_not_matter(tmp_path: Path) -> None:
    """Records of another order of keys, with spaces, give the same end."""
    session = long_run("says DEBUG_REPORT")
    session.all = [dict(sorted(record.items(), reverse=True)) for record in session.all]
    path = file_of("".join([json.dumps(record) + "\n" for record in session.all]).encode(), tmp_path)
    end = read_end(path, skills=SKILLS, max_bytes=LIMIT, **SMALL)
    assert end is not None
    assert end[1:] == read_run(path, skills=SKILLS, max_bytes=LIMIT)[-len(end) + 1 :]
    assert lacks(path, end) is True
    assert lacks(path, end, said=["DEBUG_REPORT"]) is False

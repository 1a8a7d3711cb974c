"""When each hook last ran, and the sessions in which it should have: the second half of ``gstack doctor --live``."""

import json
import time
from pathlib import Path

import pytest
from doctor_support import Doctored, enforced, live, of

from gstack.api import COMMAND_TYPED, TOOL_PROPOSED, TURN_ENDING
from gstack.doctor_history import last_line
from gstack.doctor_live import Report
from gstack.lowlevel import POSIX

pytestmark = pytest.mark.skipif(not POSIX, reason="the stand-in for claude is a shell script")


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctored:
    box = enforced(tmp_path)
    monkeypatch.chdir(box.work)
    return box


def session(box: Doctored, name: str, *, hours_ago: float, skill: str = "investigate") -> Path:
    """A transcript in which somebody types, a skill is loaded and the agent stops, all at that time."""
    when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - hours_ago * 3600))
    data = box.host.sample_transcript(str(box.work), session_id=name, skill=skill, final_text="Done.")
    records = [json.dumps({**json.loads(line), "timestamp": when}) for line in data.splitlines()]
    path = box.config / "projects" / "-work" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in records))
    box.written(path, hours_ago=hours_ago)
    return path


def registered(box: Doctored, *, hours_ago: float) -> None:
    for path in (box.launcher, box.settings):
        box.written(path, hours_ago=hours_ago)


def logged(box: Doctored, name: str, text: str, *, hours_ago: float) -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - hours_ago * 3600))
    path = box.root / "hooks" / f"{name}.log"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(f"{stamp} {text}\n")


def warned(report: Report) -> set[str]:
    return {one.check.removeprefix("last ran ") for one in report.findings if one.status == "warn"}


def test_sessions_in_which_no_hook_ran_are_named(box: Doctored) -> None:
    registered(box, hours_ago=5)
    older = session(box, "older", hours_ago=4)
    newer = session(box, "newer", hours_ago=1)
    report = live(box)
    assert warned(report) == {"UserPromptSubmit", "Stop", "PreToolUse"}
    (found,) = of(report.findings, "last ran UserPromptSubmit")
    assert found.detail == f"skill_routing: it never ran, but 2 session(s) needed it; the newest is {newer}"
    assert "VS Code" in found.fix
    assert report.history[0].missed == [str(newer), str(older)]


def test_sessions_before_the_registration_do_not_count(box: Doctored) -> None:
    registered(box, hours_ago=1)
    session(box, "old", hours_ago=2)
    assert warned(live(box)) == set()


def test_hooks_that_ran_in_them_are_fine(box: Doctored) -> None:
    registered(box, hours_ago=5)
    session(box, "s", hours_ago=2)
    logged(box, "skill-route", "s no-route reason=below-threshold", hours_ago=2)
    logged(box, "skill-contract", "s allow skill=investigate load=x reason=not-final", hours_ago=2)
    logged(box, "skill-gate", "- decision=allow invoked=x", hours_ago=0)  # the command line's, no hook's
    report = live(box)
    assert warned(report) == {"PreToolUse"}
    assert of(report.findings, "last ran UserPromptSubmit")[0].detail.endswith(" UTC")


def test_one_that_stopped_running_is_named(box: Doctored) -> None:
    registered(box, hours_ago=50)
    session(box, "s", hours_ago=2, skill="deploy")
    for name in ("skill-route", "skill-gate"):
        logged(box, name, "before x=1", hours_ago=48)
    report = live(box)
    assert warned(report) == {"UserPromptSubmit", "PreToolUse"}  # /deploy has no contract
    assert "gate: it hasn't run since 20" in of(report.findings, "last ran PreToolUse")[0].detail


def test_a_switch_that_is_off_misses_nothing(box: Doctored) -> None:
    registered(box, hours_ago=5)
    session(box, "s", hours_ago=2)
    assert warned(live(box, GSTACK_SKILL_ROUTING="off", GSTACK_GATE="off")) == {"Stop"}


def test_a_session_that_is_still_running_is_given_time(box: Doctored) -> None:
    registered(box, hours_ago=5)
    session(box, "s", hours_ago=0)
    assert warned(live(box)) == set()


def test_the_last_line_that_a_session_wrote(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    assert last_line(str(path), TURN_ENDING) is None
    (tmp_path / "x.log.1").write_text("2026-11-30T10:00:00Z s first\n")
    assert last_line(str(path), TURN_ENDING) == 1796032800
    path.write_text("2026-11-30T11:00:00Z s one\n2026-11-30T12:00:00Z - by hand\nhalf a li")
    assert last_line(str(path), TURN_ENDING) == 1796036400


def test_typed_commands_and_tool_calls_share_a_log(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(
        "2026-11-30T10:00:00Z s decision=allow invoked=x kind=command host=h\n"
        "2026-11-30T11:00:00Z s decision=allow invoked=x kind=skill host=h\n"
    )
    assert last_line(str(path), COMMAND_TYPED) == 1796032800
    assert last_line(str(path), TOOL_PROPOSED) == 1796036400
    with path.open("a") as file:
        file.write("2026-11-30T12:00:00Z s error failures=1 what=OSError\n")
    assert last_line(str(path), COMMAND_TYPED) == last_line(str(path), TOOL_PROPOSED) == 1796040000

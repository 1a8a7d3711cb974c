"""``gstack doctor --live``: every registered command is run as the host would, judged, and leaves nothing behind."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from doctor_support import BANS, Doctored, enforced, live, of, worst
from gate_support import install, payload
from hypothesis import given
from hypothesis import strategies as st

from gstack import doctor_live
from gstack.api import COMMAND_TYPED, PROMPT_SUBMITTED, TOOL_PROPOSED, TURN_ENDING, Answer, HookEvent
from gstack.cli import main
from gstack.doctor import Checkup
from gstack.doctor_live import Report, Trial, answer_of, try_live
from gstack.gate.credentials import Credentials, write_credentials
from gstack.lowlevel import POSIX
from gstack.trust import trust
from gstack_hosts.claude_code import ClaudeCode

pytestmark = pytest.mark.skipif(not POSIX, reason="the stand-ins for launchers are shell scripts")

USES = ("prompt", "command", "skill", "subagent", "read", "stop")


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctored:
    box = enforced(tmp_path)
    monkeypatch.chdir(box.work)
    return box


def trial(report: Report, use: str) -> Trial:
    (found,) = [one for one in report.trials if one.use == use]
    return found


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; compiled code aside, which any hook may store."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("code")]
    return {str(path): path.read_bytes() for path in files}


# ------------------------------------------------------------------------------------------- all is well


def test_every_path_is_enforced(box: Doctored) -> None:
    report = live(box)
    assert [(one.use, one.status) for one in report.trials] == [(use, "ok") for use in USES]
    assert worst(report.findings) == []
    assert "this request fits /investigate" in (trial(report, "prompt").answered or "")
    assert "SKILL_CONTRACT_UNMET investigate" in (trial(report, "stop").answered or "")
    assert "let go the second time" in trial(report, "stop").detail
    for use in ("command", "skill", "subagent", "read"):
        assert "gstack blocked this skill" in (trial(report, use).answered or "")
    assert all(one.milliseconds and one.expected == one.answered for one in report.trials)


def test_nothing_is_left_behind_and_nothing_is_sent(
    box: Doctored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(doctor_live.tempfile, "tempdir", str(tmp_path / "temporary"))
    write_credentials(str(box.root), Credentials("https://policy.example", "acme", "secret"))
    live(box)  # what is compiled ahead is there now
    before = tree(tmp_path)
    assert trial(live(box), "skill").status == "ok"
    assert tree(tmp_path) == before
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (box.root / "sessions").exists()
    assert not (box.root / "gate" / "audit-spool.jsonl").exists()
    assert not (box.root / "gate" / "refresh.lock").exists()


def test_what_the_person_had_logged_and_recorded_stays_untouched(box: Doctored) -> None:
    log = box.root / "hooks" / "skill-route.log"
    log.parent.mkdir()
    log.write_text("2026-11-30T10:00:00Z s routed skill=investigate score=1.00\n")
    live(box)
    assert log.read_text() == "2026-11-30T10:00:00Z s routed skill=investigate score=1.00\n"


def test_a_cold_machine_is_tried_as_well(box: Doctored) -> None:
    for path in (box.root / "snapshot").iterdir():
        path.unlink()
    assert worst(live(box).findings) == []


# ----------------------------------------------------------------------------------- what the switches say


def test_observe_is_silent_and_logs(box: Doctored) -> None:
    report = live(box, GSTACK_SKILL_ROUTING="observe", GSTACK_SKILL_CONTRACTS="observe", GSTACK_GATE="observe")
    assert worst(report.findings) == []
    assert [one.answered for one in report.trials] == [None] * len(USES)
    for use, word in (("prompt", "reason=observe"), ("skill", "mode=observe"), ("stop", "observe miss")):
        assert word in trial(report, use).detail


def test_off_is_silent(box: Doctored) -> None:
    report = live(box, GSTACK_SKILL_ROUTING="off", GSTACK_SKILL_CONTRACTS="off", GSTACK_GATE="off")
    assert worst(report.findings) == []
    assert {one.status for one in report.trials} == {"info"}
    assert trial(report, "stop").detail == "silent, since skill_contracts is off"


def test_what_is_on_but_not_registered_fails(box: Doctored) -> None:
    box.settings.write_text("{}")
    report = live(box)
    assert {one.status for one in report.trials} == {"fail"}
    assert trial(report, "prompt").detail == "skill_routing is on, but nothing is registered for UserPromptSubmit"
    assert {one.fix for one in report.findings if one.status == "fail"} == {
        "gstack setup, then gstack doctor --live again"
    }


def test_what_is_off_and_not_registered_is_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Doctored(tmp_path)
    monkeypatch.chdir(box.work)
    assert live(box).trials == []


def test_with_nothing_to_act_on_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Doctored(tmp_path)
    monkeypatch.chdir(box.work)
    box.setup(skill_routing="on", skill_contracts="on", gate="on")
    install(box.root, payload(**{**BANS, "manifest_index": {}}))
    report = live(box)
    assert {one.status for one in report.trials} == {"info"}
    assert "no skill of the routed set is installed" in trial(report, "prompt").detail
    assert "the policy bans no subagent" in trial(report, "subagent").detail
    assert "no installed skill declares a contract" in trial(report, "stop").detail
    assert [one.use for one in report.trials] == ["prompt", "command", "skill", "subagent", "stop"]


def test_a_policy_about_what_no_catalogue_lists_is_tried(box: Doctored) -> None:
    rule = {"policy_id": "p", "name": "No", "matcher_type": "name", "match_value": "investigate", "action": "halt"}
    install(box.root, payload(**{**BANS, "version": 2, "policies": [rule], "manifest_index": {}}))
    report = live(box)
    assert trial(report, "skill").detail == "investigate is denied"
    assert trial(report, "read").detail.endswith("investigate/SKILL.md is denied")
    assert trial(report, "prompt").status == "info"  # what would be denied isn't routed to


def test_a_host_with_fewer_hooks_is_tried_with_those(box: Doctored) -> None:
    class Fewer(ClaudeCode):
        def sample_payloads(self, cwd: str, **given: Any) -> "dict[str, dict[str, Any]]":
            return {"stop": super().sample_payloads(cwd, **given)["stop"]}

    report = try_live(Checkup(str(box.root), box.env, Fewer()))
    assert [(one.use, one.status) for one in report.trials] == [("stop", "ok")]


def test_a_gate_without_a_policy_says_what_the_hook_says(box: Doctored) -> None:
    (box.root / "gate" / "bundle.json").unlink()
    found = trial(live(box), "skill")
    assert found.status == "info"
    assert "no policy" in found.detail
    assert "gstack login" in (found.answered or "")


def test_a_trusted_projects_narrowing_counts(box: Doctored) -> None:
    (box.work / ".gstack").mkdir()
    (box.work / ".gstack" / "config.yaml").write_text("skill_routing: off\n")
    trust(str(box.root), str(box.work))
    assert trial(live(box), "prompt").detail == "silent, since skill_routing is off"


# ------------------------------------------------------------------------------------- commands that fail


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("#!/bin/sh\ncat >/dev/null\n", "said nothing; due was: gstack skill routing"),
        ("#!/bin/sh\nexit 2\n", "ended with exit code 2, which hosts read as a block"),
        ("#!/bin/sh\nexit 1\n", "ended with exit code 1"),
        ("#!/bin/sh\necho 'Warning: old'; echo '{}'\n", "isn't one JSON object"),
        ("#!/bin/sh\necho '{} {}'\n", "isn't one JSON object"),
        ("#!/bin/sh\necho '[1]'\n", "isn't one JSON object"),
        ('#!/bin/sh\necho \'{"additionalContext": "unnested"}\'\n', "said nothing; due was: gstack skill routing"),
        ("#!/nowhere/python -IS\n", "can't be run: No such file or directory; the host goes on without it"),
        ("#!/bin/sh\nsleep 5\necho late\n", "gave no answer within 0.3 s"),
    ],
)
def test_a_command_that_does_not_do_its_work(
    box: Doctored, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    monkeypatch.setattr(doctor_live, "LIMIT", 0.3 if "sleep" in text else 20.0)
    box.replace_launcher(text)
    found = trial(live(box), "prompt")
    assert found.status == "fail"
    assert problem in found.detail


def test_another_text_than_the_one_due_fails(box: Doctored) -> None:
    said = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "use /qa"}}
    box.replace_launcher(f"#!/bin/sh\ncat >/dev/null\necho '{json.dumps(said)}'\n")
    found = trial(live(box), "prompt")
    assert found.detail.startswith("said: use /qa; due was: gstack skill routing")


def test_a_word_where_none_is_due_fails(box: Doctored) -> None:
    box.replace_launcher('#!/bin/sh\ncat >/dev/null\necho \'{"decision": "block", "reason": "no"}\'\n')
    found = trial(live(box, GSTACK_SKILL_CONTRACTS="off"), "stop")
    assert (found.status, found.detail) == ("fail", "said: no; due was: nothing")
    box.replace_launcher("#!/bin/sh\ncat >/dev/null\necho '{\"unheard\": 1}'\n")
    found = trial(live(box, GSTACK_SKILL_CONTRACTS="off"), "stop")
    assert (found.status, found.detail) == ("fail", "said what no host reads")


def test_a_stop_that_is_held_twice_fails(box: Doctored) -> None:
    real = box.base / "real" / "bin" / "gstack-hook"
    real.parent.mkdir(parents=True)
    box.launcher.rename(real)
    forget = 'rm -rf "$GSTACK_STATE_ROOT/skill-contracts" "$GSTACK_STATE_ROOT/sessions"\n'
    untrue = 'sed \'s/"stop_hook_active": true/"stop_hook_active": false/\''
    box.replace_launcher(f'#!/bin/sh\n{forget}{untrue} | "{real}" "$@"\n')
    found = trial(live(box), "stop")
    assert (found.status, found.detail) == ("fail", "holds the same stop a second time")


def test_each_registered_command_is_run(box: Doctored) -> None:
    other = box.base / "other" / "bin" / "gstack-hook"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\nexit 3\n")
    other.chmod(0o755)
    project = box.work / ".claude" / "settings.json"
    project.parent.mkdir()
    project.write_text(box.settings.read_text().replace(str(box.launcher), str(other)))
    found = [one for one in live(box).trials if one.use == "prompt"]
    assert [(one.file, one.status) for one in found] == [(str(project), "fail"), (str(box.settings), "ok")]


def test_a_folder_that_hooks_cannot_write_is_found(box: Doctored) -> None:
    (box.root / "skill-contracts").write_text("in the way")
    (found,) = of(live(box).findings, "writing skill-contracts")
    assert found.status == "fail"
    assert found.detail.endswith("so no stop can be held")
    assert (box.root / "skill-contracts").read_text() == "in the way"


def test_an_adapter_without_payloads_is_no_fault(box: Doctored) -> None:
    class Plain:
        title = "Plain"

    report = try_live(Checkup(str(box.root), box.env, Plain()))
    assert [one.status for one in report.findings] == ["info"]
    assert report.trials == []


def test_an_adapter_that_breaks_costs_only_this(box: Doctored) -> None:
    class Broken(ClaudeCode):
        def sample_payloads(self, cwd: str, **given: Any) -> "dict[str, dict[str, Any]]":
            raise KeyError("x")

        def transcripts(self, env: Mapping[str, str]) -> "list[str]":
            raise RuntimeError("no disk")

    report = try_live(Checkup(str(box.root), box.env, Broken()))
    said = {one.check: one.detail for one in report.findings if one.status == "fail"}
    assert said == {"live": "unexpected KeyError: 'x'", "last ran": "unexpected RuntimeError: no disk"}


def test_an_environment_of_another_host_is_named(box: Doctored) -> None:
    found = trial(live(box, CURSOR_VERSION="1"), "prompt")
    assert found.status == "fail"
    assert "look like another host's" in found.detail


# ------------------------------------------------------------------------------- answers, read back again

_EVENTS = {
    "prompt": HookEvent("claude-code", PROMPT_SUBMITTED, "UserPromptSubmit"),
    "command": HookEvent("claude-code", COMMAND_TYPED, "UserPromptExpansion"),
    "skill": HookEvent("claude-code", TOOL_PROPOSED, "PreToolUse"),
    "stop": HookEvent("claude-code", TURN_ENDING, "Stop"),
}
_texts = st.one_of(st.none(), st.text(min_size=1))


@given(use=st.sampled_from(sorted(_EVENTS)), text=_texts, notice=_texts)
def test_an_answer_is_read_back_as_it_was_rendered(use: str, text: "str | None", notice: "str | None") -> None:
    form = doctor_live._FORMS[use]
    answer = Answer(**{form: text}, notice=notice)
    rendered = ClaudeCode().render(answer, _EVENTS[use])
    said = json.loads(rendered) if rendered else {}
    assert answer_of(ClaudeCode(), _EVENTS[use], said, use) == answer


_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)
_keys = ("decision", "reason", "hookSpecificOutput", "hookEventName", "additionalContext", "systemMessage")


@given(use=st.sampled_from(sorted(_EVENTS)), said=st.dictionaries(st.sampled_from(_keys), _json))
def test_any_answer_can_be_read(use: str, said: Mapping[str, Any]) -> None:
    answer_of(ClaudeCode(), _EVENTS[use], said, use)


# ------------------------------------------------------------------------------------------ command line


def test_the_command_line(box: Doctored, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in os.environ if name.startswith(("GSTACK_", "CLAUDE"))]:
        monkeypatch.delenv(name)
    for name, value in box.env.items():
        monkeypatch.setenv(name, value)
    assert main(["doctor", "--live", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report["live"]) == {"trials", "hooks"}
    assert set(report["live"]["trials"][0]) == {
        "use", "event", "command", "file", "status", "detail", "expected", "answered", "milliseconds",
    }  # fmt: skip
    assert report["live"]["trials"][0]["command"][0] == str(box.launcher)
    assert report["live"]["hooks"][0] == {
        "feature": "skill_routing",
        "switch": "on",
        "event": "UserPromptSubmit",
        "last_ran": None,
        "sessions_without": [],
    }
    box.replace_launcher("#!/bin/sh\ncat >/dev/null\n")
    assert main(["doctor", "--live"]) == 1
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "live prompt" in out

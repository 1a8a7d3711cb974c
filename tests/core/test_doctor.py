"""``gstack doctor``: every kind of finding, each with what to do about it."""

import json
import sys
import time
from pathlib import Path

import pytest
from doctor_support import BANS, DEPLOY, INVESTIGATE, Doctored, of, worst
from gate_support import install

from gstack.cli import main
from gstack.doctor import Checkup, diagnose
from gstack.errors import SettingsError
from gstack.lowlevel import POSIX
from gstack.plan import STRIKES
from gstack.trust import trust

pytestmark = pytest.mark.skipif(not POSIX, reason="the stand-in for claude is a shell script")


@pytest.fixture
def box(tmp_path: Path) -> Doctored:
    """Everything switched on and set up, with a skill."""
    box = Doctored(tmp_path)
    box.skill("investigate", INVESTIGATE)
    box.setup(skill_routing="on", skill_contracts="on")
    return box


def test_after_setup_nothing_is_wrong(box: Doctored) -> None:
    findings = box.findings()
    assert worst(findings) == []
    assert [one.detail for one in of(findings, "skill_routing")] == ["on (config)"]
    assert of(findings, "contracts")[0].detail == "1 skill declares one"
    assert of(findings, "skills")[0].detail.startswith("1 in ")


def test_before_setup_it_says_what_to_do(tmp_path: Path) -> None:
    box = Doctored(tmp_path)
    for _ in range(2):  # what looking leaves behind is no setup
        findings = box.findings()
        assert not [one for one in findings if one.status == "fail"]
        assert [(one.status, one.fix) for one in of(findings, "state")] == [("info", "run gstack setup")]
    on = box.findings(GSTACK_SKILL_ROUTING="on")
    assert of(on, "state")[0].status == "fail"
    assert of(on, "state")[0].fix == "run gstack setup"
    assert of(on, "hook UserPromptSubmit")[0].detail == "not registered"


# ------------------------------------------------------------------------------------------------ launcher


def test_a_missing_launcher(box: Doctored) -> None:
    box.launcher.unlink()
    (found,) = of(box.findings(), "launcher")
    assert (found.status, found.detail) == ("fail", f"{box.launcher} doesn't exist")
    assert found.fix == "run gstack setup"


def test_a_launcher_for_another_python(box: Doctored) -> None:
    other = box.base / "bin" / "python-elsewhere"
    other.symlink_to(sys.executable)
    text = box.launcher.read_text()
    box.replace_launcher(text.replace(text.splitlines()[0], f"#!{other} -IS"))
    found = of(box.findings(), "launcher")
    assert [one.status for one in found] == ["ok", "warn", "ok"]
    assert "another Python or place" in found[1].detail


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("#!/bin/sh\nexit 2\n", "ended with exit code 2"),
        ("#!/bin/sh\necho surprise\n", "printed where it had nothing to say"),
        ("#!/nowhere/python -IS\n", "can't be run: No such file or directory"),
    ],
)
def test_a_launcher_that_does_not_work(box: Doctored, text: str, problem: str) -> None:
    box.replace_launcher(text)
    assert any(one.status == "fail" and problem in one.detail for one in of(box.findings(), "launcher"))


# ----------------------------------------------------------------------------------- state, configuration


def test_a_state_folder_that_is_none_or_that_others_can_write(tmp_path: Path) -> None:
    box = Doctored(tmp_path)
    box.root.write_text("a file")
    assert of(box.findings(), "state")[0].detail == f"{box.root} is not a folder"
    box.root.unlink()
    box.root.mkdir()
    (box.root / "config.yaml").touch()
    box.root.chmod(0o777)
    found = of(box.findings(), "state")[0]
    assert (found.status, found.fix) == ("warn", f"chmod 700 {box.root}")


def test_a_configuration_that_cannot_be_read(box: Doctored) -> None:
    (box.root / "config.yaml").write_bytes(b"skill_routing: on\n\xff\n")
    findings = box.findings()
    (found,) = of(findings, "configuration")
    assert found.status == "fail"
    assert str(box.root / "config.yaml") in found.detail
    assert found.fix.startswith("mend or delete")
    assert of(findings, "skill_routing")[0].detail == "off (config unreadable)"


def test_a_switch_with_a_value_that_is_none(box: Doctored) -> None:
    (box.root / "config.yaml").write_text("skill_routing: perhaps\n")
    (found,) = of(box.findings(), "configuration")
    assert found.status == "warn"
    assert "'perhaps' is not on, off or observe" in found.detail


def test_lines_of_the_configuration_that_say_nothing(box: Doctored) -> None:
    lines = "skill_routing: on\nskill_contracts: on\nroute_threshold: 7\nroute_hint: loud\nrouted_skils: all\n"
    (box.root / "config.yaml").write_text(lines)
    found = of(box.findings(), "configuration")
    found = [one for one in found if str(box.config) not in one.detail or one.status == "warn"]
    assert [one.status for one in found] == ["warn"] * 3
    assert "it must be above 0 and at most 1; the default (0.66) is used" in found[0].detail
    assert "route_hint: 'loud': it must be one of name, step, contract" in found[1].detail
    assert "there is no key 'routed_skils'" in found[2].detail
    assert found[2].fix.endswith("routed_skills")


@pytest.mark.parametrize("text", ["{", '{"hooks": {},}', "[]", '{"hooks": []}'])
def test_broken_settings(box: Doctored, text: str) -> None:
    box.settings.write_text(text)
    findings = box.findings()
    assert any(one.status == "fail" and str(box.settings) in one.detail for one in findings)
    assert box.settings.read_text() == text
    if text != '{"hooks": []}' and text != "[]":  # nobody knows what is registered
        assert [one for one in worst(findings) if "hook" in one.split(":")[0]] == []


def test_an_entry_that_somebody_changed(box: Doctored) -> None:
    box.settings.write_text(box.settings.read_text().replace('"timeout": 30', '"timeout": 1'))
    (found,) = of(box.findings(), "hook Stop")
    assert (found.status, found.fix) == ("fail", "run gstack setup")
    assert "timeout" in found.detail


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SettingsError("the settings went away"), "the settings went away"),
        (ValueError("a\nb"), "unexpected ValueError: a b"),
    ],
)
def test_a_check_that_breaks_is_itself_a_finding(box: Doctored, error: Exception, said: str) -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            return getattr(box.host, name)

        def diagnose(self, *_: object) -> None:
            raise error

    findings = diagnose(Checkup(str(box.root), box.env, Broken()))
    assert [(one.status, one.detail) for one in of(findings, "host")] == [("fail", said)]
    assert of(findings, "plug-ins")


# ------------------------------------------------------------------------------------------------- skills


def test_skills_that_are_skipped_or_shadowed(box: Doctored) -> None:
    (box.config / "skills" / "odd" / "SKILL.md").mkdir(parents=True)
    (box.config / "skills" / "copy").symlink_to(box.config / "skills" / "investigate")
    findings = box.findings()
    (skipped,) = of(findings, "skill skipped")
    assert skipped.status == "warn"
    assert skipped.detail.endswith("odd/SKILL.md: is a folder")
    (shadowed,) = of(findings, "skill shadowed")
    assert shadowed.status == "info"


def test_where_declarations_come_from_is_said(box: Doctored) -> None:
    path = box.skill("qa", "---\nname: qa\ndescription: d\ntriggers: [qa this]\n---\n# QA\n")
    (path.parent / "gstack.yaml").write_text("triggers: [check this]\nrouting: sideways\n")
    (box.root / "skills.yaml").write_text("qa:\n  triggers: [look at this]\n")
    found = {one.status: one.detail for one in of(box.findings(), "skill")}
    assert found["warn"].startswith(f"{path}: routing: gstack.yaml: ")
    said = [one.detail for one in of(box.findings(), "skill")]
    assert "/qa: triggers from skills.yaml" in said
    assert any(line.startswith(f"{path}: triggers is also set in ") for line in said)


def test_a_contract_that_does_not_hold(box: Doctored) -> None:
    path = box.skill("bad", INVESTIGATE.replace("kind: report_labels", "kind: report_lables"))
    (found,) = of(box.findings(), "contract")
    assert found.status == "warn"
    assert "report_lables" in found.detail
    assert found.fix == f"gstack contract lint {path}"


def test_a_contract_of_the_overlay_names_that_file(box: Doctored) -> None:
    overlay = box.root / "skills.yaml"
    overlay.write_text("investigate:\n  contract: {version: 2, items: []}\n")
    (found,) = of(box.findings(), "contract")
    assert found.detail.startswith(f"{overlay}: ")
    assert found.fix == f"mend {overlay}"


def test_a_contract_of_a_trusted_project_names_that_file(box: Doctored) -> None:
    overlay = box.work / ".gstack" / "skills.yaml"
    overlay.parent.mkdir()
    overlay.write_text("investigate:\n  contract: {version: 2, items: []}\n")
    trust(str(box.root), str(box.work))
    (found,) = of(diagnose(Checkup(str(box.root), box.env, box.host, cwd=str(box.work))), "contract")
    assert found.detail.startswith(f"{overlay.resolve()}: ")
    assert found.fix == f"mend {overlay.resolve()}"


# ------------------------------------------------------------------------------------- plug-ins, records


def test_plug_ins_that_are_off_or_were_set_aside(box: Doctored) -> None:
    trouble = {"lexical": {"what": "took longer than 300 ms", "overruns": STRIKES}}
    (box.root / "plugins.json").write_text(json.dumps({"disabled": ["agent_dispatch"], "trouble": trouble}))
    findings = box.findings()
    (off,) = of(findings, "plug-in agent_dispatch")
    assert (off.status, off.fix) == ("info", "gstack plugins enable agent_dispatch")
    (aside,) = of(findings, "plug-in lexical")
    assert aside.status == "warn"
    assert "set aside" in aside.detail
    assert "took longer than 300 ms" in aside.detail


def test_transcripts_of_unknown_shape_are_counted(box: Doctored) -> None:
    path = box.root / "hooks" / "skill-contract.canary.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"count": 3}')
    (found,) = of(box.findings(), "contract canary")
    assert (found.status, found.detail[:1]) == ("warn", "3")
    path.write_text("no JSON")
    assert not of(box.findings(), "contract canary")


def test_runs_that_wait_for_ever(box: Doctored) -> None:
    run = {"skill": "investigate", "load_id": "x", "contract": {}, "items": {}, "outcome": "deferred"}
    record = {"version": 1, "session": "s1", "host": "claude-code", "runs": [{**run, "updated_at": time.time() - 7300}]}
    path = box.root / "skill-contracts" / "s1.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record))
    (found,) = of(box.findings(), "contract deferred")
    assert found.detail == "investigate in session s1 has waited for its agents for 2 h"


# --------------------------------------------------------------------------------------------------- gate


def test_the_gates_bundle(box: Doctored) -> None:
    box.skill("deploy", DEPLOY)
    box.setup(gate="on")
    assert [one.fix for one in of(box.findings(), "gate") if one.status == "warn"] == ["gstack login"]
    install(box.root, BANS)
    assert of(box.findings(), "gate bundle")[0].detail.startswith("acme, version 1, ")
    (box.root / "gate" / "bundle.json").write_text("{}")
    (found,) = of(box.findings(), "gate bundle")
    assert (found.status, found.fix) == ("fail", "gstack sync")


# ------------------------------------------------------------------------------------------ command line


def test_the_command_line(box: Doctored, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in box.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(box.work)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "0 wrong, 0 to look at"
    assert max(map(len, out.splitlines())) <= 80
    box.launcher.unlink()
    assert main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"state_root", "host", "switches", "findings", "ok"}
    assert report["ok"] is False
    assert report["switches"]["skill_routing"] == {"value": "on", "source": "config"}
    assert set(report["findings"][0]) == {"status", "check", "detail", "fix"}
    assert main(["doctor", "--host", "nobody"]) == 2
    assert "no host adapter is called 'nobody'" in capsys.readouterr().err

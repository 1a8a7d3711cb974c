"""Setting up and going away again: a clean doctor, no trace, and an agent that works when gstack is gone."""

import json
import re
import sys
from pathlib import Path

import pytest
from live_support import SETTINGS, Live, Played, call, say

from gstack.launcher import import_paths, launcher_path, launcher_text

pytestmark = pytest.mark.live

PROMPT = "this test fails, fix it"
UNCHECKED = "A hook gave no usable answer, so it didn't check this action."
ALL = ("--skill-routing", "--skill-contracts", "--gate")


def test_doctor_is_content_after_setup(live: Live) -> None:
    live.setup("--skill-routing", "--skill-contracts")
    report = json.loads(live.gstack("doctor", "--json"))
    assert report["ok"], report
    (found,) = [one for one in report["findings"] if one["check"] == "claude"]
    assert found["status"] == "ok"


def test_uninstall_leaves_the_settings_as_they_were(live: Live) -> None:
    live.setup(*ALL)
    assert live.settings.read_text() != SETTINGS
    assert "gstack skill routing" in live.play(PROMPT, [say("I see.")]).seen(0)
    live.gstack("uninstall")
    assert live.settings.read_text() == SETTINGS
    played = live.play(PROMPT, [say("I see.")])
    assert played.runs[0]["hooks"] == []
    assert "gstack skill routing" not in played.seen(0)


def test_uninstall_leaves_what_the_host_itself_made_of_the_settings(live: Live, claude: Path) -> None:
    """Claude Code rewrites the whole file when it moves a setting into it; here one of its own first-run state."""
    control = Live(live.root.parent / "control", claude)
    for box in (live, control):
        box.write(box.config / ".claude.json", json.dumps({"autoUpdates": False, "hasCompletedOnboarding": True}))
    live.setup(*ALL)
    for box in (live, control):
        box.play(PROMPT, [say("I see.")])
    assert control.settings.read_text() != SETTINGS
    assert "gstack-hook" in live.settings.read_text()
    live.gstack("uninstall")
    assert live.settings.read_text() == control.settings.read_text()


def take_away(live: Live, what: str) -> None:
    """Let a part of the installation vanish that the registered command needs."""
    launcher = Path(launcher_path(str(live.state)))
    if what == "launcher":
        launcher.unlink()
    elif what == "interpreter":
        text = launcher.read_text()
        launcher.write_text(text.replace(text.splitlines()[0], f"#!{live.root}/gone/python -IS"))
    else:
        for link in (live.root / "lib").iterdir():
            link.unlink()


def run_from_links(live: Live) -> None:
    """Write the launcher again for an installation that can be taken away: links to the real import folders."""
    links = []
    for number, folder in enumerate(import_paths()):
        link = live.root / "lib" / str(number)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(folder)
        links.append(str(link))
    text = launcher_text(str(live.state), interpreter=sys.executable, paths=links)
    Path(launcher_path(str(live.state))).write_text(text)


def shown(played: Played) -> list[str]:
    """What the model saw in each request, without the ids that differ from session to session."""
    return [re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", played.seen(place)) for place in range(played.steps)]


@pytest.mark.parametrize("what", ["package", "launcher", "interpreter"])
def test_with_a_part_gone_the_agent_works_as_if_it_had_never_been_there(live: Live, what: str) -> None:
    live.setup(*ALL)
    if what == "package":
        run_from_links(live)
    assert "gstack skill routing" in live.play(PROMPT, [say("I see.")]).seen(0)
    take_away(live, what)
    steps = [call("Skill", skill="investigate"), call("Bash", command="echo hi", description="Say hi"), say("Done.")]
    played = live.play(PROMPT, steps)
    assert {hook["hook_event"] for hook in played.runs[0]["hooks"]} == {"UserPromptSubmit", "PreToolUse", "Stop"}
    assert all(not hook["stdout"] and hook["exit_code"] != 2 for hook in played.runs[0]["hooks"])
    assert played.runs[0]["result"]["result"] == "Done."
    # of a command that isn't there Claude Code says to the person that nothing was checked; a failed import is silent
    assert played.runs[0]["notices"] == ([] if what == "package" else [UNCHECKED])
    live.gstack("uninstall")
    control = live.play(PROMPT, steps)
    assert control.runs[0]["hooks"] == []
    assert shown(played) == shown(control)
    assert [played.results(place) for place in (1, 2)] == [control.results(place) for place in (1, 2)]

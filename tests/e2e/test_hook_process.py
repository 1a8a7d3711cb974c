"""The real hook process with real payloads in a home of its own: right answers, and silence with exit 0 whatever
happens."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gstack.launcher import launcher_path, launcher_text
from gstack.lowlevel import POSIX
from gstack.sandbox import Reply, Sandbox

SKILL = "---\nname: {name}\ndescription: d\ntriggers:\n  - {trigger}\n---\n# {name}\n"


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    made = Sandbox(str(tmp_path / "box"))
    made.configure(skill_routing="on", skill_contracts="on", gate="on")
    made.add_skill("investigate", SKILL.format(name="investigate", trigger="fix this bug"))
    made.add_skill("qa", SKILL.format(name="qa", trigger="qa test this"))
    return made


def prompt(text: str, session: str = "s", **more: Any) -> dict[str, Any]:
    return {"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": text, **more}


def hint(reply: Reply) -> str:
    assert reply.code == 0
    answer = reply.answer
    if answer is None:
        return ""
    assert set(answer) == {"hookSpecificOutput"}
    assert answer["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    return str(answer["hookSpecificOutput"]["additionalContext"])


def test_a_prompt_that_fits_gets_one_line(box: Sandbox) -> None:
    text = hint(box.run("UserPromptSubmit", prompt("please fix this bug")))
    assert "\n" not in text
    assert len(text) <= 600
    assert "/investigate" in text
    assert "skill_routing off" in text
    assert box.log("skill-route")[-1] == "s routed skill=investigate score=1.00"


def test_the_second_time_it_is_silent(box: Sandbox) -> None:
    assert hint(box.run("UserPromptSubmit", prompt("fix this bug")))
    assert not hint(box.run("UserPromptSubmit", prompt("fix this bug")))
    assert box.log("skill-route")[-1] == "s no-route reason=already-hinted"
    assert hint(box.run("UserPromptSubmit", prompt("fix this bug", session="other")))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("write a haiku", "below-threshold"),
        ("/investigate fix this bug", "slash"),
        ("  /investigate", "slash"),
        ("", "empty"),
        (" \n ", "empty"),
        ("fix this bug " + "x" * 7988, "too-long"),
        ("don't fix this bug", "negated"),
        ("<task-notification>\nfix this bug</task-notification>", "not-typed"),
    ],
)
def test_why_nothing_is_said(box: Sandbox, text: str, reason: str) -> None:
    assert not hint(box.run("UserPromptSubmit", prompt(text)))
    assert box.log("skill-route")[-1] == f"s no-route reason={reason}"


def test_exactly_8000_characters_still_route(box: Sandbox) -> None:
    text = "fix this bug " + "😀" * 7987
    assert len(text) == 8000
    assert hint(box.run("UserPromptSubmit", prompt(text)))


def test_a_typed_skill_counts_as_loaded(box: Sandbox) -> None:
    box.run("UserPromptSubmit", prompt("/investigate the login"))
    box.run("UserPromptSubmit", prompt("fix this bug"))
    assert box.log("skill-route")[-1] == "s no-route reason=already-loaded"


def test_a_subagent_is_not_routed(box: Sandbox) -> None:
    assert not hint(box.run("UserPromptSubmit", prompt("fix this bug", agent_id="a1")))
    assert box.log("skill-route")[-1] == "s no-route reason=subagent"


def test_observe_decides_and_logs_and_never_acts(box: Sandbox) -> None:
    box.configure(skill_routing="observe")
    assert box.run("UserPromptSubmit", prompt("fix this bug")).out == b""
    line = box.log("skill-route")[-1]
    assert "observe" in line
    assert "investigate" in line


def test_the_switch_is_read_on_every_run(box: Sandbox) -> None:
    assert hint(box.run("UserPromptSubmit", prompt("fix this bug", session="a")))
    box.configure(skill_routing="off")
    assert not hint(box.run("UserPromptSubmit", prompt("fix this bug", session="b")))
    assert box.log("skill-route")[-1] == "b no-route reason=off"
    assert hint(box.run("UserPromptSubmit", prompt("fix this bug", session="c"), env={"GSTACK_SKILL_ROUTING": "on"}))
    Path(box.root, "config.yaml").write_bytes(b"skill_routing: on\n\xff")
    assert not hint(box.run("UserPromptSubmit", prompt("fix this bug", session="d")))
    assert box.log("skill-route")[-1] == "d no-route reason=config-unreadable"


def test_nothing_that_was_typed_is_stored(box: Sandbox) -> None:
    secret = "zanzibar-4711"
    for text in (
        f"fix this bug {secret}",
        f"write about {secret}",
        f"/investigate {secret}",
        f"don't fix this bug {secret}",
    ):
        box.run("UserPromptSubmit", prompt(text))
    for path in Path(box.root).rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert secret.encode() not in data, path
            assert POSIX is False or path.parent.name == "bin" or path.stat().st_mode & 0o777 == 0o600, path


def test_an_edit_is_seen_at_once(box: Sandbox) -> None:
    assert not hint(box.run("UserPromptSubmit", prompt("polish the brass", session="a")))
    box.add_skill("investigate", SKILL.format(name="investigate", trigger="polish the brass"))
    assert hint(box.run("UserPromptSubmit", prompt("polish the brass", session="b")))
    shutil.rmtree(Path(box.home, ".claude/skills/investigate"))
    assert not hint(box.run("UserPromptSubmit", prompt("polish the brass", session="c")))


# --------------------------------------------------------------------------------------------- bad input

PAYLOADS: list[bytes] = [
    b"",
    b"\n",
    b"{",
    b'{"hook_event_name": "UserPromptSubmit", "prompt": "fix this b',
    b"[]",
    b"null",
    b'"text"',
    b"12",
    b"\xff\xfe\x00",
    b'{"hook_event_name": "UserPromptSubmit", "prompt": "\xff\xfe"}',
    b'{"hook_event_name": "UserPromptSubmit"}',
    b'{"hook_event_name": "UserPromptSubmit", "prompt": 3}',
    b'{"hook_event_name": "NoSuchEvent", "session_id": "s"}',
    b'{"hook_event_name": ["x"]}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Skill"}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Skill", "tool_input": {"skill": 3}}',
    b'{"hook_event_name": "Stop"}',
    b'{"hook_event_name": "Stop", "session_id": "../../x", "transcript_path": "/nowhere"}',
    b'{"hook_event_name": "SubagentStop", "session_id": "s", "agent_id": "a"}',
    b'{"hook_event_name": "UserPromptExpansion", "command_name": ""}',
    b'{"a":' * 3000,
    b'{"hook_event_name": "UserPromptSubmit", "session_id": "' + b"x" * 5000 + b'", "prompt": "hello"}',
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_a_bad_payload_is_silence(box: Sandbox, payload: bytes) -> None:
    reply = box.run("UserPromptSubmit", payload)
    assert (reply.code, reply.seconds < 8) == (0, True)
    if reply.out:  # the gate says that it isn't configured; that is one JSON object without a decision
        assert set(json.loads(reply.out)) == {"systemMessage"}
    assert b"Traceback" not in reply.err


def test_ten_megabytes_are_read(box: Sandbox) -> None:
    big = prompt("fix this bug", tool_result="x" * 10_000_000)
    assert hint(box.run("UserPromptSubmit", json.dumps(big).encode()))


def test_input_that_never_ends_is_not_waited_for(box: Sandbox) -> None:
    process = subprocess.Popen(
        [launcher_path(box.root), "claude-code"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=box.env, cwd=box.work,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    data = json.dumps(prompt("fix this bug")).encode()
    started = time.monotonic()
    for part in (data[:20], data[20:]):  # and comes in pieces
        process.stdin.write(part)
        process.stdin.flush()
        time.sleep(0.1)
    assert b"/investigate" in process.stdout.read()
    assert process.wait(5) == 0
    assert time.monotonic() - started < 4
    process.stdin.close()


def test_input_that_never_comes_ends_at_the_deadline(box: Sandbox) -> None:
    process = subprocess.Popen(
        [launcher_path(box.root), "claude-code"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=box.env, cwd=box.work,
    )  # fmt: skip
    assert process.stdin is not None
    out, _ = "", process.wait(8)
    assert process.returncode == 0
    assert process.stdout is not None
    assert process.stdout.read() == b""
    process.stdin.close()
    assert out == ""


@pytest.mark.parametrize(
    "arguments", [[], ["no-such-host"], ["claude-code", "Nonsense"], ["--help"], ["claude-code", "Stop", "x"]]
)
def test_odd_arguments_are_silence(box: Sandbox, arguments: list[str]) -> None:
    done = subprocess.run(
        [launcher_path(box.root), *arguments], input=b"{}", capture_output=True, env=box.env, cwd=box.work, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_closed_standard_streams(box: Sandbox) -> None:
    command = f"exec '{launcher_path(box.root)}' claude-code <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], env=box.env, check=False).returncode == 0
    command = f"exec '{launcher_path(box.root)}' claude-code >&-"
    data = json.dumps(prompt("fix this bug")).encode()
    assert subprocess.run(["sh", "-c", command], input=data, env=box.env, check=False).returncode == 0


@pytest.mark.parametrize("what", ["missing", "file", "unreadable", "loop", "dangling"])
def test_an_odd_skills_folder_is_silence(box: Sandbox, what: str) -> None:
    folder = Path(box.home, ".claude/skills")
    if what == "unreadable":
        folder.chmod(0)
    else:
        shutil.rmtree(folder)
    if what == "file":
        folder.write_text("x")
    elif what == "loop":
        folder.symlink_to(folder)
    elif what == "dangling":
        folder.symlink_to("/nowhere/at/all")
    reply = box.run("UserPromptSubmit", prompt("fix this bug"))
    folder.chmod(0o700) if what == "unreadable" else None
    assert reply.code == 0
    if what != "unreadable" or os.geteuid() != 0:
        assert reply.out == b""
        assert box.log("skill-route")[-1] == "s no-route reason=no-skills"


def test_links_loops_and_odd_entries_cost_the_others_nothing(box: Sandbox) -> None:
    folder = Path(box.home, ".claude/skills")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "dangling").symlink_to("/nowhere")
    (folder / "a-file").write_text("x")
    (folder / "empty").mkdir()
    (folder / "is-folder" / "SKILL.md").mkdir(parents=True)
    if POSIX:
        (folder / "pipe").mkdir()
        os.mkfifo(folder / "pipe" / "SKILL.md")
    (folder / "binary").mkdir()
    (folder / "binary" / "SKILL.md").write_bytes(b"\xff\x00" * 1000)
    assert hint(box.run("UserPromptSubmit", prompt("fix this bug")))


@pytest.mark.skipif(not POSIX or os.geteuid() == 0, reason="root can write everywhere")
def test_a_read_only_state_root_still_answers(box: Sandbox) -> None:
    for path in (Path(box.root), Path(box.root, "hooks"), Path(box.root, "snapshot")):
        path.mkdir(exist_ok=True)
        path.chmod(0o500)
    assert hint(box.run("UserPromptSubmit", prompt("fix this bug")))


def test_a_state_root_that_is_a_file_is_silence_for_routing(box: Sandbox, tmp_path: Path) -> None:
    launcher = tmp_path / "launcher"
    shutil.copy(launcher_path(box.root), launcher)
    file = tmp_path / "file"
    file.write_text("")
    env = box.env | {"GSTACK_STATE_ROOT": str(file)}
    done = subprocess.run(
        [str(launcher), "claude-code"],
        input=json.dumps(prompt("fix this bug")).encode(),
        env=env,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("place", ["plan", "skills", "sessions"])
@pytest.mark.parametrize("damage", ["empty", "cut", "garbage", "folder", "others"])
def test_a_damaged_snapshot_or_record_is_made_anew(box: Sandbox, place: str, damage: str) -> None:
    assert hint(box.run("UserPromptSubmit", prompt("fix this bug", session="a")))
    folder = Path(box.root, "sessions" if place == "sessions" else "snapshot")
    for path in folder.glob("*" if place == "sessions" else place + "*"):
        data = path.read_bytes()
        if damage == "folder":
            path.unlink()
            path.mkdir()
        elif damage == "others":
            path.chmod(0o666)
        else:
            path.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "garbage": data[:40] + b"\xff" * 50}[damage])
    assert hint(box.run("UserPromptSubmit", prompt("fix this bug", session="b")))


def test_vanished_parts_are_harmless(box: Sandbox, tmp_path: Path) -> None:
    """A host reads exit code 2 as "block": nothing that can vanish may end in it."""
    gone_package = tmp_path / "gone-package"
    gone_package.write_text(launcher_text(box.root, paths=["/nowhere/at/all"]))
    gone_python = tmp_path / "gone-python"
    gone_python.write_text(launcher_text(box.root, interpreter="/nowhere/python"))
    spaced_python = tmp_path / "spaced-python"
    spaced_python.write_text(launcher_text(box.root, interpreter="/no where/python"))
    for path, codes in ((gone_package, {0}), (gone_python, {126, 127}), (spaced_python, {126, 127})):
        path.chmod(0o700)
        done = subprocess.run(["sh", "-c", f"'{path}' claude-code"], input=b"{}", capture_output=True, check=False)
        assert done.returncode in codes, path
        assert done.stdout == b""


@pytest.mark.skipif(not POSIX, reason="shebangs are POSIX's")
def test_an_interpreter_whose_path_no_shebang_can_hold(box: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "with space" / ("x" * 110)
    folder.mkdir(parents=True)
    python = folder / "python"
    python.symlink_to(sys.executable)
    pyvenv = Path(sys.prefix, "pyvenv.cfg")
    if pyvenv.is_file():
        shutil.copy(pyvenv, tmp_path / "with space" / "pyvenv.cfg")
    text = launcher_text(box.root, interpreter=str(python))
    assert text.startswith("#!/bin/sh\n")
    path = Path(launcher_path(box.root))
    path.write_text(text)
    assert hint(box.run("UserPromptSubmit", prompt("fix this bug")))


def test_hooks_and_changes_at_the_same_time(box: Sandbox) -> None:
    """Four sessions at once while a skill is rewritten: every answer is one of the two right ones."""
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            for trigger in ("fix this bug", "debug this"):
                box.add_skill("investigate", SKILL.format(name="investigate", trigger=trigger))
                time.sleep(0.01)

    writer = threading.Thread(target=rewrite)
    writer.start()
    replies: list[Reply] = []
    try:
        threads = [
            threading.Thread(
                target=lambda n=n: replies.append(box.run("UserPromptSubmit", prompt("qa test this", session=f"s{n}")))
            )
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        writer.join()
    assert [bool(hint(reply)) for reply in replies] == [True] * 4, box.log("skill-route")
    assert len(box.log("skill-route")) == 4


def test_what_a_plug_in_prints_never_reaches_the_host(box: Sandbox, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "loud-1.0.dist-info").mkdir(parents=True)
    (site / "loud-1.0.dist-info" / "entry_points.txt").write_text("[gstack.trigger_scorers]\nvendor.loud = loud\n")
    (site / "loud.py").write_text(
        "import os\nfrom gstack.api import hookimpl\n\n\nclass Loud:\n    name = 'vendor.loud'\n\n"
        "    def prepare(self, skills):\n        return []\n\n    def score(self, prompt, index):\n"
        "        os.write(1, b'{}')\n        os.system('echo loud')\n        print('loud')\n"
        "        return []\n\n\n"
        "@hookimpl\ndef gstack_trigger_scorers():\n    return [Loud()]\n"
    )
    from gstack.launcher import import_paths

    path = Path(launcher_path(box.root))
    path.write_text(launcher_text(box.root, paths=[*import_paths(), str(site)]))
    box.configure(skill_routing="on", route_shadow_scorers="vendor.loud")
    assert "/investigate" in hint(box.run("UserPromptSubmit", prompt("fix this bug")))
    trouble = json.loads(Path(box.root, "plugins.json").read_text())["trouble"]
    assert "printed" in trouble["vendor.loud"]["what"]

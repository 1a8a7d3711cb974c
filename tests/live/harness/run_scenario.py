"""Run the real Claude Code CLI against a scripted model on loopback and print one JSON summary.

    python run_scenario.py SCENARIO.json --claude PATH --root DIR [--net auto|isolated|host] [--timeout SECONDS]

``DIR`` may hold a home that was prepared before (skills, settings, gstack); what the scenario names is added. See
README.md.
"""

import argparse
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from mock_messages import MockServer, text_of
from sessions import Box, run_print, run_tui

Json = dict[str, Any]

INSIDE = "CC_HARNESS_IN_NETNS"
EVENTS = (
    "SessionStart", "UserPromptSubmit", "UserPromptExpansion", "PreToolUse", "PostToolUse", "SubagentStart",
    "SubagentStop", "Stop", "StopFailure", "SessionEnd",
)  # fmt: skip


def enter_network_namespace(mode: str) -> None:
    """Start over in a network namespace of its own, with nothing but loopback (``auto``: where that works)."""
    if os.environ.get(INSIDE):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            # SIOCSIFFLAGS: UP and RUNNING
            fcntl.ioctl(sock, 0x8914, struct.pack("16sh22x", b"lo", 0x41))
        return
    tool = shutil.which("unshare")
    if mode == "host" or (mode == "auto" and tool is None):
        return
    command = [tool or "unshare", "-n" if os.geteuid() == 0 else "-rn"]
    try:
        works = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    if works:
        os.environ[INSIDE] = "1"
        os.execv(command[0], [*command, sys.executable, *sys.argv])
    if mode == "isolated":
        sys.exit("there is no network namespace here (unshare -n)")


def fill(value: Any, table: dict[str, str]) -> Any:
    """``value`` with every ``@{NAME}`` replaced."""
    if isinstance(value, str):
        for name, text in table.items():
            value = value.replace("@{" + name + "}", text)
        return value
    if isinstance(value, list):
        return [fill(one, table) for one in value]
    if isinstance(value, dict):
        return {fill(key, table): fill(one, table) for key, one in value.items()}
    return value


def write_files(box: Box, files: dict[str, str]) -> None:
    """Files of the scenario; a relative path lies in the working folder."""
    for name, text in files.items():
        path = box.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def add_recorder(box: Box, log: Path) -> None:
    """Register the recorder beside whatever the settings register."""
    path = box.config / "settings.json"
    settings = json.loads(path.read_text("utf-8")) if path.exists() else {}
    hook = {
        "type": "command",
        "command": sys.executable,
        "args": ["-IS", str(Path(__file__).parent / "recorder.py"), str(log)],
    }
    for event in EVENTS:
        settings.setdefault("hooks", {}).setdefault(event, []).append({"hooks": [hook]})
    path.write_text(json.dumps(settings, indent=1), encoding="utf-8")


def run_scenario(scenario: Json, *, claude: str, root: str, timeout: float, path: str) -> Json:
    """Play a scenario; the summary (README.md)."""
    box = Box(root, claude, path)
    table = {"ROOT": str(box.root), "HOME": str(box.home), "CONFIG": str(box.config), "WORK": str(box.work)}
    scenario = fill(scenario, table)
    box.answer_first_questions()
    write_files(box, scenario.get("files") or {})
    log = box.root / "recorded.jsonl"
    if scenario.get("record"):
        add_recorder(box, log)
    server = MockServer(scenario.get("model")).start()
    runs: list[Json] = []
    for run in scenario["runs"]:
        run = fill(run, {"SESSION": runs[-1]["session_id"] or "" if runs else ""})
        env = box.env(server.url, {**(scenario.get("env") or {}), **(run.get("env") or {})})
        if run.get("mode") == "tui":
            runs.append(run_tui(box, run, env, server, timeout))
        else:
            runs.append(run_print(box, run, env, timeout))
    server.shutdown()
    return {
        "network_isolated": bool(os.environ.get(INSIDE)),
        "runs": runs,
        "transcripts": sorted(map(str, (box.config / "projects").rglob("*.jsonl"))),
        "recorded": [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else [],
        "requests": [_request(one) for one in server.requests if one["route"] not in ("other", "side")],
        "other_requests": [one["path"] for one in server.requests if one["route"] == "other"],
    }


def _request(record: Json) -> Json:
    """What the model saw in one request, as text by role, with the results of the tools it had called last."""
    messages = record["body"].get("messages") or []
    last = messages[-1].get("content") if messages else None
    results = [block for block in last if block.get("type") == "tool_result"] if isinstance(last, list) else []
    return {
        "route": record["route"],
        "index": record["index"],
        "messages": [[message.get("role"), text_of(message.get("content"))] for message in messages],
        "tool_results": [[bool(one.get("is_error")), text_of(one.get("content"))] for one in results],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenario")
    parser.add_argument("--claude", required=True, help="the claude executable")
    parser.add_argument("--root", required=True, help="the folder in which everything happens")
    parser.add_argument("--net", choices=["auto", "isolated", "host"], default="auto")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for each run")
    parser.add_argument("--path", default=os.environ.get("PATH", os.defpath), help="PATH of Claude Code and its hooks")
    args = parser.parse_args()
    enter_network_namespace(args.net)
    with open(args.scenario, encoding="utf-8") as file:
        scenario = json.load(file)
    summary = run_scenario(
        scenario, claude=os.path.abspath(args.claude), root=args.root, timeout=args.timeout, path=args.path
    )
    json.dump(summary, sys.stdout)


if __name__ == "__main__":
    main()

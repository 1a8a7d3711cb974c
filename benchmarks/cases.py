"""The cases of the benchmark: sandboxes of every size, each with the goal that it has to reach."""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import make_transcript

from gstack.launcher import import_paths, launcher_path, launcher_text
from gstack.sandbox import Sandbox
from gstack.setup import compile_hot

PROMPT = "the login test fails since yesterday, find the root cause"


class Case:
    """One command to time: ``goal`` is the ratio to reach, to F or to the case ``against``."""

    def __init__(
        self,
        label: str,
        name: str,
        command: list[str],
        payload: bytes = b"",
        *,
        env: dict[str, str] | None = None,
        goal: float | None = None,
        against: str = "",
        before: Callable[[], object] | None = None,
        rounds: int = 1000,
        warm: int = 5,
    ) -> None:
        self.label = label
        self.name = name
        self.command = command
        self.payload = payload
        self.env = env
        self.goal = goal
        self.against = against
        self.before = before
        self.rounds = rounds
        self.warm = warm
        self.group = ""

    def warm_up(self, once: Callable[["Case"], object]) -> None:
        """Runs that don't count: they store what later ones start from."""
        before, self.before = self.before, None
        for _ in range(self.warm):
            once(self)
        self.before = before


def skill_text(number: int) -> str:
    words = ("deploy", "canary", "rollout", "metrics", "invoice", "ledger", "sprite", "shader", "tenant", "quota")
    one, two = words[number % 10], words[(number // 10) % 10]
    triggers = f"  - {one} the {two} {number}\n  - check {one} of {two}\n  - {two} report {number}\n"
    return (
        f"---\nname: skill-{number}\ndescription: Does {one} with {two}, number {number}.\nversion: 1.0.0\n"
        f"allowed-tools:\n  - Bash\n  - Read\ntriggers:\n{triggers}---\n# Skill {number}\n\n1. Look at {one}.\n"
    )


INVESTIGATE = (
    "---\nname: investigate\ndescription: Find the cause.\ntriggers:\n  - debug this\n  - root cause analysis\n"
    "contract:\n  version: 1\n  items:\n    - {id: debug-report, kind: report_labels, heading: DEBUG REPORT, "
    "labels: [Symptom, Root cause, Fix, Evidence]}\n    - {id: repro, kind: check_after_last_edit}\n"
    "---\n# Investigate\n"
)


def sandbox(folder: Path, name: str, skills: int) -> Sandbox:
    box = Sandbox(str(folder / name))
    box.configure(skill_routing="on", skill_contracts="on", gate="on")
    box.add_skill("investigate", INVESTIGATE)
    for number in range(skills - 1):
        box.add_skill(f"skill-{number}", skill_text(number))
    return box


def prompt_payload(box: Sandbox, session: str) -> bytes:
    payload = {"session_id": session, "cwd": box.work, "hook_event_name": "UserPromptSubmit", "prompt": PROMPT}
    return json.dumps(payload).encode() + b"\n"


def hook_case(box: Sandbox, label: str, name: str, payload: bytes, **more: Any) -> Case:
    env = {**box.env, "CLAUDECODE": "1"}
    command = [launcher_path(box.root), "claude-code", json.loads(payload)["hook_event_name"]]
    return Case(label, name, command, payload, env=env, **more)


@contextlib.contextmanager
def all_cases(only: str = "") -> Iterator[list[Case]]:
    """Every case whose name holds ``only``; the sandboxes go afterwards."""
    compile_hot()
    with tempfile.TemporaryDirectory(prefix="gstack-bench-") as name:
        folder = Path(name)
        cases = [Case("", "floor", [sys.executable, "-I", "-S", "-c", "pass"])]
        for build in (routing_cases, plugin_cases, other_cases, gate_cases, contract_cases, miss_cases, naive_cases):
            if not only or only in build.__name__:
                found = build(folder)
                for case in found:
                    case.group = build.__name__
                cases += found
        time.sleep(2.2)  # what is younger than two seconds isn't trusted by a snapshot
        yield cases


def routing_cases(folder: Path) -> list[Case]:
    """G1 and G2: a warm route with 65, 500 and 2000 skills."""
    out = []
    for skills, label, goal in ((65, "G1", 1.25), (500, "G2", 1.5), (2000, "G2", 2.5)):
        box = sandbox(folder, f"route{skills}", skills)
        # the same session: the hint was given, so no record is written; and a new session, where one is
        out.append(hook_case(box, label, f"route, {skills} skills", prompt_payload(box, "bench"), goal=goal))
    return out


OUTSIDE = {
    "scorer": (
        "gstack.trigger_scorers",
        "from gstack.api import hookimpl\n\n\nclass Scorer:\n    name = '{name}'\n\n    def prepare(self, skills):\n"
        "        return len(skills)\n\n    def score(self, prompt, index):\n        return []\n\n\n"
        "@hookimpl\ndef gstack_trigger_scorers():\n    return [Scorer()]\n",
    ),
    "kind": (
        "gstack.contract_kinds",
        "from gstack.api import Verdict, hookimpl\n\n\nclass Kind:\n    name = '{name}'\n    fields = ()\n\n"
        "    def check(self, item, run):\n        return Verdict('met')\n\n"
        "    def fix(self, item):\n        return 'do it'\n\n"
        "    def summary(self, item):\n        return 'it'\n\n\n"
        "@hookimpl\ndef gstack_contract_kinds():\n    return [Kind()]\n",
    ),
}


def with_site(box: Sandbox, site: Path) -> None:
    """Let the sandbox's launcher see one more folder of distributions."""
    path = Path(launcher_path(box.root))
    path.write_text(launcher_text(box.root, paths=[*import_paths(), str(site)]))
    path.chmod(0o700)


def install(site: Path, name: str, sort: str) -> None:
    group, code = OUTSIDE[sort]
    module = name.replace(".", "_")
    (site / f"{module}.py").write_text(code.format(name=name))
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")


def plugin_cases(folder: Path) -> list[Case]:
    """G3: outside plug-ins that have no part in a prompt cost nothing; shadows that have cost 0.03 F each."""
    out = []
    for count in (3, 10, 50):
        for sort, each in (("kind", 0.0), ("scorer", 0.03)):
            site = folder / f"site-{sort}-{count}"
            site.mkdir()
            names = [f"bench.{sort}{number}" for number in range(count)]
            for name in names:
                install(site, name, sort)
            box = sandbox(folder, f"plugins-{sort}-{count}", 65)
            with_site(box, site)
            if sort == "scorer":
                box.configure(skill_routing="on", route_shadow_scorers=", ".join(names))
            what = "that have no part in a prompt" if sort == "kind" else "that score every prompt"
            out.append(
                hook_case(
                    box,
                    "G3",
                    f"route, {count} plug-ins {what}",
                    prompt_payload(box, "b"),
                    goal=1.25 + 0.03 + each * count,
                )
            )
    return out


def other_cases(folder: Path) -> list[Case]:
    """G4: 300 other distributions change nothing."""
    out = []
    for count in (0, 300):
        site = folder / f"others-{count}"
        site.mkdir()
        for number in range(count):
            info = site / f"other_{number}-1.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Name: other-{number}\nVersion: 1.0\n")
        box = sandbox(folder, f"others{count}", 65)
        with_site(box, site)
        more: dict[str, Any] = {"goal": 1.02, "against": "route, 0 other distributions"} if count else {}
        out.append(hook_case(box, "G4", f"route, {count} other distributions", prompt_payload(box, "b"), **more))
    return out


def gate_cases(folder: Path) -> list[Case]:
    """G5: flat from 22 KB to 12 MB of bundle."""
    from gate_bundle import install_bench_bundle

    out = []
    for policies, entries, size in (
        (10, 100, "22 KB"),
        (100, 1000, "220 KB"),
        (1000, 5000, "1.2 MB"),
        (10000, 50000, "12 MB"),
    ):
        box = sandbox(folder, f"gate{policies}", 65)
        install_bench_bundle(box.root, policies, entries)
        payload = {
            "session_id": "b",
            "cwd": box.work,
            "hook_event_name": "PreToolUse",
            "tool_name": "Skill",
            "tool_use_id": "t",
            "tool_input": {"skill": "investigate"},
        }
        out.append(hook_case(box, "G5", f"gate, {size} bundle", json.dumps(payload).encode() + b"\n", goal=1.25))
    return out


def contract_cases(folder: Path) -> list[Case]:
    """G6: a stop on 1, 10 and 32 MiB, with the load near the end, far back, and never.

    The turn ends on a question. Beside that, on 1 and 32 MiB: a run that is judged, met and recorded, and the next stop
    after it, at which it is settled.
    """
    out = []
    box = sandbox(folder, "contract", 65)
    for size in (1, 10, 32):
        for where in ("near", "far", "never"):
            path = folder / f"{where}-{size}.jsonl"
            make_transcript.write(path, (size << 20) - 4096, where)
            payload = {
                "session_id": f"b-{where}-{size}",
                "cwd": box.work,
                "hook_event_name": "Stop",
                "transcript_path": str(path),
                "stop_hook_active": True,
                "last_assistant_message": "Shall I go on?",
                "background_tasks": [],
            }
            goal: dict[str, Any] = {"goal": 1.3} if where == "near" else {}
            if size == 32 and where != "near":
                goal = {"goal": 0.6, "against": "orjson parse, 32 MiB"}
            out.append(
                hook_case(box, "G6", f"stop, {size} MiB, load {where}", json.dumps(payload).encode() + b"\n", **goal)
            )
    for size, where in ((1, "near"), (32, "near"), (32, "far")):
        out += _verdict_cases(box, folder, size, where)
    parse = "import orjson, sys\nfor line in open(sys.argv[1], 'rb'): orjson.loads(line)"
    out.append(
        Case("G6", "orjson parse, 32 MiB", [sys.executable, "-c", parse, str(folder / "never-32.jsonl")], rounds=9)
    )
    return out


#: What the model says at the end of a run whose report is missing.
UNREPORTED = "The fix is in place, and all tests pass."


def _verdict_cases(box: Sandbox, folder: Path, size: int, where: str) -> list[Case]:
    goal: dict[str, Any] = {"goal": 0.6, "against": "orjson parse, 32 MiB"} if where == "far" else {}
    out = []
    for what, last, says in (
        ("judged met", make_transcript.REPORT, make_transcript.REPORT),
        ("judged unmet", UNREPORTED, UNREPORTED),
        ("settled", make_transcript.REPORT, "The fix is in place."),
    ):
        path = folder / f"{where}-{size}-{what}.jsonl"
        make_transcript.write(path, (size << 20) - 4096, where, last=last)
        session = f"{what}-{where}-{size}".replace(" ", "-")
        payload = {
            "session_id": session,
            "cwd": box.work,
            "hook_event_name": "Stop",
            "transcript_path": str(path),
            "stop_hook_active": False,
            "last_assistant_message": says,
            "background_tasks": [],
        }
        records = [Path(box.root, name, f"{session}.json") for name in ("skill-contracts", "sessions")]

        def forget(records: list[Path] = records) -> None:
            for record in records:
                record.unlink(missing_ok=True)

        case = hook_case(
            box, "G6" if goal else "", f"stop, {size} MiB, load {where}, {what}", json.dumps(payload).encode() + b"\n",
            before=None if what == "settled" else forget, **goal,
        )  # fmt: skip
        first = {**payload, "last_assistant_message": last}
        judge = json.dumps(first).encode() + b"\n"
        subprocess.run(case.command, input=judge, env=case.env, check=True, stdout=subprocess.DEVNULL)
        if ('"blocked"' if last == UNREPORTED else '"met"') not in records[0].read_text():
            raise SystemExit(f"{records[0]}: {what} isn't what became of the run")
        out.append(case)
    return out


def miss_cases(folder: Path) -> list[Case]:
    """G7: one changed skill, and everything anew."""
    out = []
    for skills, one, full in ((65, 5.0, 12.0), (2000, 10.0, 55.0)):
        box = sandbox(folder, f"miss{skills}", skills)
        folder_of_skills = Path(box.home, ".claude/skills")

        def edit_head(path: Path = folder_of_skills / "investigate/SKILL.md") -> None:
            path.write_text(INVESTIGATE.replace("the cause", f"the cause {time.time_ns()}"))

        def edit_body(path: Path = folder_of_skills / "skill-0/SKILL.md") -> None:
            path.write_text(skill_text(0) + f"\n<!-- {time.time_ns()} -->\n")

        def forget(box: Sandbox) -> None:
            shutil.rmtree(Path(box.root, "snapshot"), ignore_errors=True)

        rounds = 31 if skills == 65 else 11
        payload = prompt_payload(box, "b")
        # where only the body changed, nothing needs YAML
        for what, edit in (("its head", edit_head), ("its body", edit_body)):
            name = f"route, 1 of {skills} skills changed, {what}"
            out.append(hook_case(box, "G7", name, payload, goal=one, before=edit, rounds=rounds))
        again = sandbox(folder, f"full{skills}", skills)
        payload = prompt_payload(again, "b")
        out.append(
            hook_case(
                again,
                "G7",
                f"route, all of {skills} skills anew",
                payload,
                goal=full,
                before=lambda again=again, forget=forget: forget(again),
                rounds=rounds,
            )
        )
    return out


NAIVE = """
import json, sys, pathlib, importlib.metadata
import pluggy, typer, yaml
app = typer.Typer()

@app.command()
def other() -> None: ...

@app.command()
def hook() -> None:
    payload = json.load(sys.stdin)
    manager = pluggy.PluginManager("naive")
    manager.load_setuptools_entrypoints("naive.plugins")
    words = set(payload["prompt"].lower().split())
    best = (0.0, "")
    for path in sorted(pathlib.Path(sys.argv[2]).glob("*/SKILL.md")):
        head = path.read_text().split("---")[1]
        data = yaml.load(head, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for trigger in data.get("triggers") or []:
            parts = trigger.split()
            best = max(best, (sum(p in words for p in parts) / len(parts), path.parent.name))
    print(json.dumps({"best": best}))

sys.argv = [sys.argv[0], "hook"] if False else sys.argv
folder = sys.argv[2]
app(["hook"])
"""


def naive_cases(folder: Path) -> list[Case]:
    """G8: what the same costs with typer, pluggy, entry points and a scan; at least 15 times our route."""
    box = sandbox(folder, "naive", 65)
    script = folder / "naive.py"
    script.write_text(NAIVE)
    command = [sys.executable, str(script), "hook", str(Path(box.home, ".claude/skills"))]
    ours = hook_case(box, "", "route, 65 skills (again)", prompt_payload(box, "b"))
    slow = Case("", "naive", command, prompt_payload(box, "b"), rounds=21, warm=1)
    ours.label, ours.goal, ours.against = "G8", 1 / 15, "naive"
    return [ours, slow]

"""Measure gstack's hooks as whole processes, as ratios to a bare interpreter in the same run.

    python benchmarks/run.py                 every goal
    python benchmarks/run.py --only route    cases whose name holds a word
    python benchmarks/run.py --write         put the table into docs/performance.md

Each group of cases is measured on its own, with the bare interpreter: in rounds, interleaved in random order, and
medians are taken, so that a machine whose speed drifts gives the same ratios and large cases don't disturb small ones.
Run it on a quiet machine, with a venv's interpreter.
"""

import argparse
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from cases import Case, all_cases

MARKS = ("<!-- figures: begin -->", "<!-- figures: end -->")


def environment() -> dict[str, str]:
    """This environment without what makes Python start otherwise than at a user's."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def once(case: Case) -> tuple[float, float]:
    """One run: wall and processor seconds."""
    if case.before:
        case.before()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(case.command, input=case.payload, capture_output=True, env=case.env or environment(), check=False)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall, cpu


def measure_groups(cases: list[Case], rounds: int) -> dict[str, tuple[float, float]]:
    """Median wall and processor seconds of each case; the floor's stand beside each, as ``floor of <name>``."""
    found: dict[str, tuple[float, float]] = {}
    floor = cases[0]
    for group in dict.fromkeys(case.group for case in cases[1:]):
        mine = [case for case in cases if case.group == group]
        times = measure([floor, *mine], rounds)
        found |= {f"floor of {case.name}": times[floor.name] for case in mine}
        found |= times
    return found


def measure(cases: list[Case], rounds: int) -> dict[str, tuple[float, float]]:
    """Median wall and processor seconds of each case, over interleaved rounds in random order."""
    times: dict[str, list[tuple[float, float]]] = {case.name: [] for case in cases}
    for pause in (2.2, 0.0):  # what a first run writes is too young to be trusted for two seconds
        for case in cases:
            case.warm_up(once)
        time.sleep(pause)
    for number in range(rounds):
        # all ratios hang on the floor, so it is measured more often
        order = [case for case in cases if number < case.rounds for _ in range(5 if case.name == "floor" else 1)]
        random.shuffle(order)
        for case in order:
            times[case.name].append(once(case))
        if sys.stderr.isatty():
            sys.stderr.write(f"\rround {number + 1} of {rounds}")
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    return {
        name: (statistics.median(t[0] for t in found), statistics.median(t[1] for t in found))
        for name, found in times.items()
    }


def report(cases: list[Case], found: dict[str, tuple[float, float]]) -> str:
    """The figures as a Markdown table."""
    floors = [wall * 1000 for name, (wall, _) in found.items() if name.startswith("floor of ")]
    lines = [
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"{time.strftime('%Y-%m-%d')}; F = {min(floors):.1f} to {max(floors):.1f} ms (`python -I -S -c pass`).",
        "",
        "| goal | case | wall / F | cpu / F | to reach | |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases:
        if case.name == "floor":
            continue
        wall, cpu = found[case.name]
        floor_wall, floor_cpu = found[f"floor of {case.name}"]
        base = found[case.against][0] if case.against else floor_wall
        ratio = wall / base
        mark = "" if case.goal is None else ("reached" if ratio <= case.goal * 1.005 else "**missed**")
        unit = f" x {case.against}" if case.against else ""
        goal = "" if case.goal is None else f"{case.goal:g}{unit}"
        shown = f"{ratio:.2f}{unit}" if case.against else f"{ratio:.2f}"
        lines.append(f"| {case.label} | {case.name} | {shown} | {cpu / floor_cpu:.2f} | {goal} | {mark} |")
    return "\n".join(lines)


def write(text: str) -> None:
    """Put the table between the marks of docs/performance.md."""
    path = Path(__file__).parents[1] / "docs" / "performance.md"
    old = path.read_text(encoding="utf-8")
    head, rest = old.split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    path.write_text(f"{head}{MARKS[0]}\n{text}\n{MARKS[1]}{tail}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    with all_cases(asked.only) as cases:
        text = report(cases, measure_groups(cases, asked.rounds))
    print(text)
    if asked.write:
        write(text)
    return 1 if "**missed**" in text else 0


if __name__ == "__main__":
    raise SystemExit(main())

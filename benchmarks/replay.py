"""How fast and how small `gstack replay` is: at least half the speed of parsing the files with orjson on one core.

    python benchmarks/replay.py                       # 2,000 sessions of its own making, about 250 MB
    python benchmarks/replay.py --path FOLDER         # transcripts that lie there

Both are timed in turn, three rounds, and the best of each counts, since other work on the machine only ever slows down.
Ends with 1 when the goal is missed.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parent))
import make_transcript

from gstack.replay.engine import cores
from gstack.replay.run import Options, replay

GOAL = 0.5
SAMPLES = Path(__file__).resolve().parents[1] / "core" / "gstack" / "samples" / "skills"


def make(folder: Path, count: int) -> None:
    """Sessions as Claude Code writes them, of 10 KB to some MB, a tenth of them with a run of a contract."""
    chance = random.Random(7)
    for place in range(count):
        path = folder / f"p{place % 50}" / f"s{place:05d}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        size = min(int(chance.lognormvariate(11.8, 1.0)) + 10_000, 8 << 20)
        make_transcript.write(path, size, "middle" if place % 10 == 0 else "never", seed=place)


class Clock:
    """Wall and processor seconds (of this process and those it waited for) since it was made."""

    def __init__(self) -> None:
        self.wall, self.processor = time.perf_counter(), self._processor()

    @staticmethod
    def _processor() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self.wall, self._processor() - self.processor


def parsed(paths: list[Path]) -> tuple[float, float]:
    """The time to parse every line with orjson."""
    clock = Clock()
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                try:
                    orjson.loads(line)
                except ValueError:
                    continue
    return clock.read()


def replayed(env: dict[str, str], folder: Path) -> tuple[float, float]:
    """The time to replay all of it."""
    clock = Clock()
    replay(env, Options(path=str(folder)))
    return clock.read()


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--path")
    options.add_argument("--files", type=int, default=2000)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        (home / ".claude").mkdir(parents=True)
        (home / ".claude" / "skills").symlink_to(SAMPLES)
        env = {"HOME": str(home), "GSTACK_STATE_ROOT": str(Path(scratch) / "state")}
        folder = Path(asked.path) if asked.path else Path(scratch) / "sessions"
        if not asked.path:
            make(folder, asked.files)
        paths = sorted(folder.rglob("*.jsonl"))
        size = sum(path.stat().st_size for path in paths) / 1e6
        rounds = [(parsed(paths), replayed(env, folder)) for _ in range(3)]
    return show(len(paths), size, [one for one, _ in rounds], [two for _, two in rounds])


def show(files: int, size: float, orjson_: list[tuple[float, float]], replay_: list[tuple[float, float]]) -> int:
    """Print the figures; 1 when the goal is missed."""
    wall = min(one[0] for one in orjson_) / min(one[0] for one in replay_)
    # what the wall would say if nothing else ran on the machine
    alone = min(one[1] for one in orjson_) / (min(one[1] for one in replay_) / cores())
    memory = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{files} files, {size:.0f} MB, {cores()} cores")
    for name, times in (("orjson, one core", orjson_), ("gstack replay", replay_)):
        print(f"{name}: {min(t[0] for t in times):.2f} s, {min(t[1] for t in times):.2f} s of processors")
    print(f"speed of orjson's: {wall:.2f} by the wall, {alone:.2f} by the processors (goal {GOAL})")
    print(f"peak memory: {memory[0]:.0f} MiB here, {memory[1]:.0f} MiB in the largest worker")
    return 0 if max(wall, alone) >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())

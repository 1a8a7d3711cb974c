"""Files through worker processes: order, all cores, faults that stay with their file, breaking off."""

import os
from pathlib import Path

import pytest
from replay_work import CantOpen, Sizes

from gstack.errors import GstackError
from gstack.replay import engine
from gstack.replay.engine import Job, cores, stream


def jobs(count: int, size: int = 3 << 20) -> list[Job]:
    return [Job(f"/x/{place:03d}", size, 0) for place in range(count)]


def names(found: list[tuple[Job, tuple[str, int, str]]]) -> list[str]:
    assert all(os.path.basename(job.path) == result[0] for job, result in found)
    return [result[0] for _, result in found]


def test_results_come_in_order_from_several_processes() -> None:
    found = list(stream(jobs(12), Sizes(slow=0.05), processes=2))
    assert names(found) == [f"{place:03d}" for place in range(12)]
    processes = {result[1] for _, result in found}
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_few_bytes_stay_in_this_process() -> None:
    found = list(stream(jobs(3, size=1000), Sizes()))
    assert {result[1] for _, result in found} == {os.getpid()}
    assert list(stream([], Sizes())) == []
    assert cores() >= 1


@pytest.mark.parametrize("processes", [1, 2])
def test_a_file_that_raises_costs_only_itself(processes: int) -> None:
    found = list(stream(jobs(4), Sizes(raises="001"), processes=processes))
    assert names(found) == ["000", "001", "002", "003"]
    assert [result[2] for _, result in found] == ["ok", "/x/001: unexpected RuntimeError: odd file", "ok", "ok"]


def test_a_file_that_ends_its_process_costs_only_itself() -> None:
    few = [Job(f"/x/{name}", 1000, 0) for name in ("a", "b", "deadly", "c")]
    found = list(stream([*few, *jobs(2)], Sizes(kills="deadly"), processes=2))
    assert names(found) == ["a", "b", "deadly", "c", "000", "001"]
    said = {result[0]: result[2] for _, result in found}
    assert said.pop("deadly") == "/x/deadly: the process that replayed it was ended (out of memory?)"
    assert set(said.values()) == {"ok"}


def test_processes_that_never_start_end_in_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_BROKEN", 1)
    with pytest.raises(GstackError, match="end again and again"):
        list(stream(jobs(4), CantOpen(), processes=2))


def test_only_a_few_groups_are_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the reader of the results is, results don't pile up."""
    sent: list[list[Job]] = []

    class Future:
        def __init__(self, group: list[Job]) -> None:
            self.group = group

        def result(self) -> list[str]:
            return [job.path for job in self.group]

    class Pool:
        def __init__(self, *args: object) -> None:
            pass

        def submit(self, function: object, group: list[Job]) -> Future:
            sent.append(group)
            return Future(group)

        def shutdown(self, **more: object) -> None:
            sent.append([])

    monkeypatch.setattr(engine, "ProcessPoolExecutor", Pool)
    results = stream(jobs(100), Sizes(), processes=2)
    next(results)
    assert len(sent) == 6
    for _ in range(9):
        next(results)
    assert len(sent) == 6 + 9
    results.close()
    assert sent[-1] == []


def test_groups_are_small_in_bytes_and_files() -> None:
    assert [len(group) for group in engine._groups(jobs(3, size=9 << 20))] == [1, 1, 1]
    assert [len(group) for group in engine._groups(jobs(130, size=10))] == [64, 64, 2]


def test_work_is_spawn_safe(tmp_path: Path) -> None:
    """The real work pickles, and gives in other processes what it gives here."""
    from replay_support import box, run, typical

    env = box(tmp_path)
    for name in ("s1", "s2", "s3"):
        typical(tmp_path, name)
    alone = run(env).as_dict()
    assert run(env, processes=2).as_dict() == alone
    assert alone["files"]["replayed"] == 3

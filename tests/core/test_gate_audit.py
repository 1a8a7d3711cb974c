"""The audit spool: append, send, chain, and processes that die anywhere."""

import hashlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from gate_server import NOW, SECRET, Reply, connect, serving
from hypothesis import given
from hypothesis import strategies as st

from gstack.api import Decision
from gstack.errors import StateError
from gstack.gate import audit, spool
from gstack.gate.audit import append, decision_event, maybe_send, new_id, spool_path, state_path
from gstack.gate.spool import belongs_to, flush, queue, read_events, verify, verify_events, waiting


@pytest.fixture
def server():
    with serving(key=SECRET) as running:
        yield running


@pytest.fixture
def root(tmp_path, server):
    return connect(tmp_path / "state", server.url)


def event(name: str = "acme/deploy", **more):
    decision = Decision("block", "Retired.", skill_name=name, version="1.0.0", policy_id="p1", policy_name="P 1")
    return {**decision_event(decision, harness="claude-code", machine="box", now=NOW), **more}


def fill(root, count: int, **more) -> list[str]:
    made = [event(f"acme/s{number}", **more) for number in range(count)]
    assert all(append(root, one, now=NOW) for one in made)
    return [one["event_id"] for one in made]


def lines(root) -> list[bytes]:
    return Path(spool_path(root)).read_bytes().splitlines()


def ids(events) -> list[str]:
    return [one["event_id"] for one in events]


# ----------------------------------------------------------------------------------------------- append


def test_an_event_has_the_fields_of_the_specification():
    made = event()
    assert made == {
        "event_id": made["event_id"],
        "decided_at": "2026-05-28T20:26:40Z",
        "skill_name": "acme/deploy",
        "version": "1.0.0",
        "harness": "claude-code",
        "machine_name": "box",
        "decision": "blocked",
        "reason": "Retired.",
        "policy_id": "p1",
        "policy_name": "P 1",
    }
    assert [audit.DECISIONS[action] for action in ("allow", "warn", "block")] == ["allowed", "warned", "blocked"]


def test_ids_are_uuids():
    import uuid

    found = {new_id() for _ in range(200)}
    assert len(found) == 200
    assert all(str(uuid.UUID(one)) == one and uuid.UUID(one).version == 4 for one in found)


def test_an_appended_event_is_one_private_line_in_order(root):
    made = fill(root, 3)
    assert ids(map(json.loads, lines(root))) == made
    assert Path(spool_path(root)).stat().st_mode & 0o777 == 0o600
    assert queue(root).length == 3
    assert ids(waiting(root)) == made


def test_an_event_without_id_and_time_gets_them(root):
    assert append(root, {"decision": "gate_off"}, now=NOW)
    (made,) = waiting(root)
    assert made["event_id"]
    assert made["decided_at"] == "2026-05-28T20:26:40Z"


def test_each_event_carries_the_hash_of_the_one_before(root):
    fill(root, 3)
    found = lines(root)
    assert json.loads(found[0])["prev"] == ""
    for before, line in itertools.pairwise(found):
        # what a server can compute from the parsed event
        canonical = json.dumps(json.loads(before), sort_keys=True).encode()
        assert canonical == before
        assert json.loads(line)["prev"] == hashlib.sha256(canonical).hexdigest()


@given(st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=8)))
def test_a_line_is_canonical_json_of_any_flat_event(fields):
    line = audit._line(fields, "x", NOW)
    assert b"\n" not in line
    assert json.dumps(json.loads(line), sort_keys=True).encode() == line


def test_long_texts_are_cut(root):
    assert append(root, event(reason="\U0001f600" * 9000), now=NOW)
    (line,) = lines(root)
    assert len(json.loads(line)["reason"]) == audit.FIELD_LIMIT
    assert len(line) < audit.TAIL // 2


def test_nothing_is_queued_where_nothing_can_be_sent(tmp_path):
    unconnected = str(tmp_path / "a")
    assert not append(unconnected, event(), now=NOW)
    assert not os.path.exists(spool_path(unconnected))
    folder = connect(tmp_path / "b", "file:///srv/site")
    assert not append(folder, event(), now=NOW)
    assert not os.path.exists(spool_path(folder))


def test_past_the_cap_new_events_are_dropped_and_counted(root, monkeypatch):
    monkeypatch.setattr(audit, "CAP", 2000)
    results = [append(root, event(), now=NOW) for _ in range(10)]
    kept = results.count(True)
    assert results == [True] * kept + [False] * (10 - kept)
    assert 0 < kept < 10
    found = queue(root)
    assert (found.length, found.dropped) == (kept, 10 - kept)
    assert found.bytes <= 2000
    assert verify(root).gaps == []


def test_the_real_cap_is_one_megabyte():
    assert audit.CAP == 1_000_000


def test_a_half_line_of_a_dying_process_is_overwritten(root):
    fill(root, 2)
    with open(spool_path(root), "ab") as file:
        file.write(b'{"event_id": "half')
    fill(root, 1)
    assert len(lines(root)) == 3
    assert verify(root).gaps == []


def test_a_whole_line_without_its_end_is_kept(root):
    fill(root, 2)
    data = Path(spool_path(root)).read_bytes()
    Path(spool_path(root)).write_bytes(data[:-1])
    fill(root, 1)
    assert len(lines(root)) == 3
    assert verify(root).gaps == []


@given(st.binary(max_size=300))
def test_whatever_lies_in_the_spool_an_append_adds_one_event(tmp_path_factory, junk):
    root = connect(tmp_path_factory.mktemp("s"), "https://host.example")
    Path(spool_path(root)).write_bytes(junk)
    made = event()
    assert append(root, made, now=NOW)
    assert json.loads(lines(root)[-1])["event_id"] == made["event_id"]
    assert waiting(root)[-1]["event_id"] == made["event_id"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"head": 5, "dropped": "x", "sent": []}', "\0\xff"])
def test_a_broken_state_costs_nothing_but_itself(root, text):
    fill(root, 1)
    Path(state_path(root)).write_text(text, encoding="latin-1")
    fill(root, 1)
    assert queue(root).length == 2
    assert flush(root, 5).sent == 2


def test_a_longer_old_state_is_not_read_past_its_end(root):
    fill(root, 1)
    path = Path(state_path(root))
    path.write_text(path.read_text().rstrip() + "  , garbage of a longer one}")
    assert queue(root).length == 1
    fill(root, 1)
    assert verify(root).gaps == []


def test_a_busy_lock_is_an_error_and_not_a_wait(root, monkeypatch):
    monkeypatch.setattr(audit, "LOCK_WAIT", 0.05)
    monkeypatch.setattr(audit.spool_lock, "__defaults__", (0.05,))
    with audit.spool_lock(root) as held:
        assert held.held
        with pytest.raises(OSError, match="busy"):
            append(root, event(), now=NOW)


# ------------------------------------------------------------------------------------------------- send


def test_what_was_queued_arrives_in_order(root, server):
    made = fill(root, 450)
    done = flush(root, 10)
    assert (done.sent, done.left, done.problem) == (450, 0, "")
    assert ids(server.events) == made
    assert server.paths() == ["/api/audit/ingest"] * 3
    assert server.requests[0][2]["X-Skillsvault-Key"] == SECRET
    assert queue(root).length == 0
    assert verify_events(server.events).gaps == []


def test_the_chain_goes_on_across_flushes(root, server):
    for _ in range(3):
        fill(root, 2)
        assert flush(root, 5).sent == 2
        assert verify(root).gaps == []
    fill(root, 1)
    assert verify(root).gaps == []
    assert flush(root, 5).sent == 1
    assert len(server.events) == 7
    assert verify_events(server.events).gaps == []


@pytest.mark.parametrize("status", [429, 401, 403, 500, 502, 503, 301, 307, 409])
def test_what_doesnt_get_through_stays(root, server, status):
    made = fill(root, 3)
    server.say("/api/audit/ingest", Reply(status, headers={"Location": "/other"}))
    done = flush(root, 5)
    assert (done.sent, done.left) == (0, 3)
    assert str(status) in done.problem
    assert queue(root).last_error == done.problem
    server.calm()
    assert flush(root, 5).sent == 3
    assert ids(server.events) == made
    assert queue(root).last_error is None
    assert queue(root).last_sent is not None


def test_an_unreachable_server_keeps_everything(tmp_path):
    root = connect(tmp_path / "s", "http://127.0.0.1:9")
    fill(root, 2)
    done = flush(root, 3)
    assert (done.sent, done.left) == (0, 2)
    assert SECRET not in done.problem


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_batch_that_is_invalid_is_dropped(root, server, status):
    fill(root, 3)
    server.say("/api/audit/ingest", Reply(status), times=1)
    done = flush(root, 5)
    assert (done.sent, done.refused, done.left) == (0, 3, 0)
    assert queue(root).refused == 3
    fill(root, 1)
    assert flush(root, 5).sent == 1
    assert verify(root).gaps == []


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_without_the_endpoint_gets_nothing_queued_for_a_day(root, server, status):
    fill(root, 3)
    server.say("/api/audit/ingest", Reply(status))
    assert flush(root, 5, now=lambda: NOW).left == 0
    assert (queue(root).length, queue(root).dropped) == (0, 3)
    assert not append(root, event(), now=NOW + 3600)
    assert not append(root, event(), now=NOW + 86399)
    assert append(root, event(), now=NOW + 86401)
    server.calm()
    assert flush(root, 5).sent == 1
    assert verify(root).gaps == []


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_that_took_events_is_not_believed_to_have_no_endpoint(root, server, status):
    fill(root, 1)
    assert flush(root, 5, now=lambda: NOW).sent == 1
    fill(root, 3)
    server.say("/api/audit/ingest", Reply(status))
    done = flush(root, 5, now=lambda: NOW + 60)
    assert (done.left, done.problem) == (3, f"the server said {status}")
    assert queue(root).dropped == 0
    assert append(root, event(), now=NOW + 61)
    server.calm()
    assert flush(root, 5).sent == 4
    assert verify(root).gaps == []


def test_an_event_that_the_server_may_not_know_goes_alone(root, server):
    """A server that refuses a ``gate_off`` must not take ordinary decisions with it."""
    fill(root, 2)
    append(root, {"event": "gate_off", "decision": "gate_off"}, now=NOW)
    fill(root, 2)
    sizes = []
    take = server.take

    def counting(body):
        sizes.append(len(json.loads(body)["events"]))
        return take(body)

    server.take = counting
    assert flush(root, 5).sent == 5
    assert sizes == [2, 1, 2]


def test_lines_that_are_no_events_are_passed_over(root, server):
    fill(root, 1)
    with open(spool_path(root), "ab") as file:
        file.write(b"not json\n[]\n\n")
    fill(root, 1)
    assert flush(root, 5).sent == 2
    assert queue(root).length == 0


def test_a_flush_is_bounded(root, server):
    fill(root, 1)
    server.say("/api/audit/ingest", Reply(202, delay=3.0))
    began = time.monotonic()
    done = flush(root, 0.3)
    assert time.monotonic() - began < 1.5
    assert (done.sent, done.left) == (0, 1)


def test_an_event_that_arrived_but_was_answered_late_counts_once(root, server):
    made = fill(root, 2)
    server.say("/api/audit/ingest", Reply(500), times=1)
    take = server.take
    server.scripted = lambda path, ask=server.scripted: (
        take(json.dumps({"events": [json.loads(line) for line in lines(root)]}).encode()) and ask(path)
    )
    assert flush(root, 5).left == 2
    assert flush(root, 5).sent == 2
    assert len(server.events) > 2
    assert list(server.counted) == made


def test_one_process_sends_at_a_time(root):
    from gstack.state import Lock

    fill(root, 1)
    with Lock(os.path.join(root, "gate", "audit-flush.lock")):
        assert flush(root, 2).problem == "another process is sending"
    assert flush(root, 2).sent == 1


def test_events_that_come_while_a_batch_is_on_its_way_are_kept(root, server):
    first = fill(root, 2)
    take, late = server.take, []

    def slow(body):
        if not late:
            late.extend(fill(root, 2))
        return take(body)

    server.take = slow
    assert flush(root, 5).sent == 4
    assert ids(server.events) == first + late


def test_a_spool_that_was_changed_while_it_was_sent_is_left(root, server):
    fill(root, 2)
    take = server.take

    def meddling(body):
        Path(spool_path(root)).write_bytes(b'{"event_id": "other"}\n')
        return take(body)

    server.take = meddling
    assert "changed" in flush(root, 5).problem
    assert lines(root) == [b'{"event_id": "other"}']


@pytest.mark.parametrize("step", ["before the spool", "before the state"])
def test_a_sender_that_dies_while_it_takes_events_away(root, server, step, monkeypatch):
    made = fill(root, 3)

    class Died(Exception):
        pass

    def die(*_args, **_more):
        raise Died

    monkeypatch.setattr(spool, "write_atomic" if step == "before the spool" else "write_state", die)
    with pytest.raises(Died):
        flush(root, 5)
    monkeypatch.undo()
    assert verify(root).gaps == []
    assert flush(root, 5).left == 0
    assert list(server.counted) == made
    assert verify(root).gaps == []


def test_not_connected_or_a_folder_sends_nothing(tmp_path):
    assert flush(str(tmp_path / "none"), 1) == spool.Flushed()
    assert flush(connect(tmp_path / "s", "file:///srv"), 1) == spool.Flushed()


def test_at_most_one_sender_a_minute(root, monkeypatch):
    started = []
    monkeypatch.setattr(audit, "start", lambda root, args: started.append(tuple(args)) or True)
    assert not maybe_send(root, NOW)  # nothing waits
    fill(root, 1)
    assert [maybe_send(root, NOW + second) for second in (0, 1, 59.9, 60.1, 61)] == [True, False, False, True, False]
    assert started == [("audit", "flush", "--quiet")] * 2


def test_no_sender_without_credentials(root, monkeypatch):
    monkeypatch.setattr(audit, "start", lambda *_: pytest.fail("started"))
    fill(root, 1)
    os.unlink(os.path.join(root, "gate", "credentials.json"))
    assert not maybe_send(root, NOW)


# ------------------------------------------------------------------------------------------------ verify


def rewrite(root, change) -> None:
    Path(spool_path(root)).write_bytes(b"".join(line + b"\n" for line in change(lines(root))))


@pytest.mark.parametrize(
    ("change", "gaps"),
    [
        (lambda found: found, 0),
        (lambda found: found[1:], 1),
        (lambda found: found[:2] + found[3:], 1),
        (lambda found: found[:-1], 1),
        (lambda found: found[:-2], 1),
        (lambda found: [found[1], found[0], *found[2:]], 3),
        (lambda found: [found[0], found[1].replace(b"blocked", b"allowed"), *found[2:]], 1),
        (lambda found: [found[0], b"junk", *found[2:]], 2),
        (lambda found: [], 1),
    ],
)
def test_a_gap_in_the_spool_shows(root, change, gaps):
    fill(root, 5)
    rewrite(root, change)
    assert len(verify(root).gaps) == gaps


def test_a_deleted_tail_shows_after_the_next_append(root, server):
    fill(root, 5)
    rewrite(root, lambda found: found[:-2])
    fill(root, 1)
    assert len(verify(root).gaps) == 1
    flush(root, 5)
    assert len(verify_events(server.events).gaps) == 1


def test_a_deleted_spool_shows_here_and_at_the_server(root, server):
    fill(root, 2)
    flush(root, 5)
    fill(root, 2)
    os.unlink(spool_path(root))
    assert len(verify(root).gaps) == 1
    fill(root, 1)
    assert len(verify(root).gaps) == 1
    flush(root, 5)
    assert len(verify_events(server.events).gaps) == 1


def test_a_process_that_died_before_it_noted_the_head_leaves_no_gap(root):
    fill(root, 2)
    state = Path(state_path(root)).read_bytes()
    fill(root, 1)
    Path(state_path(root)).write_bytes(state)
    assert verify(root).gaps == []
    fill(root, 1)
    assert verify(root).gaps == []


def test_events_of_a_server_are_checked_whatever_it_adds(root, server, tmp_path):
    fill(root, 4)
    flush(root, 5)
    events = [{**one, "occurred_at": "later", "id": 7} for one in server.events]
    random.Random(1).shuffle(events)
    assert verify_events(events).gaps == []
    assert verify_events(events).events == 4
    for text in (json.dumps(events), json.dumps({"events": events}), "\n".join(map(json.dumps, events))):
        path = tmp_path / "export"
        path.write_text(text)
        assert verify_events(read_events(str(path))).gaps == []
    by_time = sorted(events, key=lambda one: one["skill_name"])
    assert verify_events(by_time[1:]).gaps == []  # an export may begin later
    assert len(verify_events([by_time[0], *by_time[2:]]).gaps) == 1
    twice = {**by_time[2], "event_id": "another"}
    assert len(verify_events([*by_time, twice]).gaps) == 1


@pytest.mark.parametrize("text", ["", "{", "5", '["a"]', '{"events": 5}'])
def test_an_export_that_holds_no_events_is_an_error(tmp_path, text):
    path = tmp_path / "export"
    path.write_text(text)
    if text:
        with pytest.raises(StateError):
            read_events(str(path))
    else:
        assert read_events(str(path)) == []
    with pytest.raises(StateError, match="can't be read"):
        read_events(str(tmp_path / "none"))


# ------------------------------------------------------------------------------------------------ places


def test_no_organisation_gets_anothers_events(root, server):
    belongs_to(root, "https://a.example/acme")
    first = fill(root, 2)
    belongs_to(root, "https://a.example/other")
    assert queue(root).length == 0
    second = fill(root, 1)
    assert verify(root).gaps == []
    assert flush(root, 5).sent == 1
    assert ids(server.events) == second
    belongs_to(root, "https://a.example/acme")
    assert ids(waiting(root)) == first
    assert verify(root).gaps == []
    fill(root, 1)
    assert verify(root).gaps == []


def test_a_login_asks_a_server_again_that_had_no_endpoint(root, server):
    fill(root, 1)
    server.say("/api/audit/ingest", Reply(404))
    flush(root, 5, now=lambda: NOW)
    assert not append(root, event(), now=NOW)
    belongs_to(root, "somewhere")
    assert append(root, event(), now=NOW)


# ---------------------------------------------------------------------- processes that die anywhere


GATE = """
import sys, time
sys.path[:0] = sys.argv[3:]
from gstack.gate.audit import append
root, name = sys.argv[1:3]
number = 0
while True:
    number += 1
    event_id = f"{name}-{number}"
    if append(root, {"event_id": event_id, "machine_name": "box", "decision": "blocked"}, now=1.78e9):
        sys.stdout.write(event_id + "\\n")
        sys.stdout.flush()
    time.sleep(0.004)
"""

SENDER = """
import sys
sys.path[:0] = sys.argv[2:]
from gstack.gate.spool import flush
while True:
    flush(sys.argv[1], 5)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills processes")
def test_ten_gates_and_two_senders_killed_at_random_points_lose_and_double_nothing(root, server, tmp_path, request):
    """Every event whose append returned is counted by the server exactly once, in each process's order."""
    dice = random.Random(20260528)
    core = str(Path(audit.__file__).parents[2])
    acknowledged: dict[str, Path] = {}
    running: dict[str, subprocess.Popen] = {}
    # a failed assertion must leave no sender behind
    request.addfinalizer(lambda: [process.kill() for process in running.values()])

    def start(kind: str, name: str) -> None:
        if kind == "gate":
            acknowledged[name] = tmp_path / f"{name}.ids"
            with open(acknowledged[name], "wb") as out:
                argv = [sys.executable, "-c", GATE, root, name, core]
                running[name] = subprocess.Popen(argv, stdout=out, stderr=subprocess.PIPE)
        else:
            argv = [sys.executable, "-c", SENDER, root, core]
            running[name] = subprocess.Popen(argv, stderr=subprocess.PIPE)

    for number in range(10):
        start("gate", f"gate{number}-0")
    for number in range(2):
        start("sender", f"sender{number}-0")
    until = time.monotonic() + 6.0
    kills = 0
    while time.monotonic() < until:
        time.sleep(dice.uniform(0.02, 0.15))
        # a sender takes half a second to start: killed as often as a gate, it would never get to send
        kind = "sender" if dice.random() < 0.07 else "gate"
        name = dice.choice(sorted(one for one in running if one.startswith(kind)))
        running[name].send_signal(signal.SIGKILL)
        failed = running.pop(name).communicate()[1]
        assert failed == b""
        kills += 1
        stem, _, generation = name.rpartition("-")
        start("gate" if stem.startswith("gate") else "sender", f"{stem}-{int(generation) + 1}")
    for process in running.values():
        process.kill()
        assert process.communicate()[1] == b""
    assert kills > 20

    deadline = time.monotonic() + 10
    while queue(root).length and time.monotonic() < deadline:
        flush(root, 5)
    assert queue(root).length == 0
    for path in acknowledged.values():
        said = path.read_text().splitlines()
        assert [one for one in said if one not in server.counted] == []
    for name in acknowledged:
        order = [int(one.rpartition("-")[2]) for one in server.counted if one.startswith(name + "-")]
        assert order == sorted(order) == list(range(1, len(order) + 1))
    assert len(server.counted) > 100
    assert verify(root).gaps == []
    assert verify_events(server.counted.values()).gaps == []
    assert queue(root).dropped == 0


def test_threads_and_a_sender_at_once(root, server):
    made: list[list[str]] = [[] for _ in range(4)]

    def work(mine: list[str]) -> None:
        for _ in range(40):
            one = event()
            assert append(root, one, now=NOW)
            mine.append(one["event_id"])

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        flush(root, 5)
    flush(root, 5)
    assert sorted(server.counted) == sorted(itertools.chain.from_iterable(made))
    for mine in made:
        assert [one for one in server.counted if one in set(mine)] == mine
    assert verify(root).gaps == []

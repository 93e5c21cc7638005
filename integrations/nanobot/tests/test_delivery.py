"""The queue on disk and the sender: in order, across crashes, once."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import FakeSlot, problem
from memhost_client.outbox import Full, Outbox
from memhost_client.sender import Sender
from memhost_client.slot import Slot, SlotError


def event(number: int, user: str = "ann", text: str = "x") -> dict[str, Any]:
    return {
        "event_id": f"{user}-{number}",
        "run_id": "r",
        "user_id": user,
        "session_id": "s",
        "turn_id": f"t{number}",
        "timestamp": "2026-03-02T09:00:00Z",
        "messages": [{"role": "user", "content": text}],
    }


def outbox(folder: Path, **more: Any) -> Outbox:
    return Outbox(folder, **{"max_events": 100, "max_bytes": 1 << 20, **more})


class Told:
    """What was said to the log."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __call__(self, level: str, text: str) -> None:
        self.lines.append((level, text))

    def at(self, level: str) -> list[str]:
        return [text for at, text in self.lines if at == level]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def put(box: Outbox, *numbers: int, user: str = "ann") -> None:
    for n in numbers:
        box.put(user, event(n, user))


def sender(box: Outbox, slot: FakeSlot | str, told: Told | None = None, clock: Callable[[], float] | None = None) -> Sender:
    url = slot if isinstance(slot, str) else slot.url
    return Sender(box, Slot(url), send_timeout=5, say=told or Told(), clock=clock or time.monotonic)


def nowhere() -> str:
    """An address where nobody listens."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"


def test_events_leave_in_their_order_and_the_queue_is_empty(tmp_path: Path, slot: FakeSlot) -> None:
    box = outbox(tmp_path)
    put(box, 1, 2, 3)
    assert sender(box, slot).deliver() is None
    assert slot.arrivals == ["ann-1", "ann-2", "ann-3"]
    assert box.count() == 0


def test_an_event_put_twice_waits_once(tmp_path: Path) -> None:
    box = outbox(tmp_path)
    put(box, 1, 1)
    assert box.count() == 1


def test_a_full_queue_keeps_what_it_has_and_refuses_the_new(tmp_path: Path) -> None:
    box = outbox(tmp_path, max_events=2)
    put(box, 1, 2)
    with pytest.raises(Full, match="2 events"):
        put(box, 3)
    assert [w.event_id for w in box.heads()] == ["ann-1"]
    small = outbox(tmp_path / "small", max_bytes=600)
    with pytest.raises(Full):
        small.put("ann", event(1, text="y" * 1000))


def test_nobody_there_keeps_everything_and_says_so_once(tmp_path: Path, slot: FakeSlot) -> None:
    box, told, clock = outbox(tmp_path), Told(), Clock()
    put(box, 1, 2)
    put(box, 1, user="bob")
    s = sender(box, nowhere(), told, clock)
    assert s.deliver() == 0.5
    clock.now = 0.6
    assert s.deliver() == pytest.approx(1.0)
    assert box.count() == 3
    assert len(told.at("warning")) == 1
    assert "unreachable" in told.at("warning")[0]
    s._slot = Slot(slot.url)
    clock.now = 2
    assert s.deliver() is None
    assert [e for e in slot.arrivals if e.startswith("ann")] == ["ann-1", "ann-2"]
    assert "is back" in told.at("info")[0]


def test_the_trouble_of_one_scope_holds_no_other(tmp_path: Path, slot: FakeSlot) -> None:
    def fail(body: dict[str, Any]) -> Any:
        if body["user_id"] == "ann":
            return problem(503, "unavailable", retryable=True)(body)
        raise FakeSlot.Pass

    slot.fail["/v1/events"] = fail
    box, clock = outbox(tmp_path), Clock()
    put(box, 1, 2)
    put(box, 1, 2, user="bob")
    s = sender(box, slot, clock=clock)
    assert s.deliver() == 0.5
    assert slot.arrivals == ["bob-1", "bob-2"]
    slot.fail.clear()
    clock.now = 1
    assert s.deliver() is None
    assert slot.arrivals[2:] == ["ann-1", "ann-2"]


def test_the_slot_may_say_how_long_to_wait(tmp_path: Path, slot: FakeSlot) -> None:
    slot.fail["/v1/events"] = problem(429, "rate_limited", retryable=True, retry_after_ms=7000)
    box = outbox(tmp_path)
    put(box, 1)
    assert sender(box, slot, clock=Clock()).deliver() == 7.0


@pytest.mark.parametrize(("status", "code"), [(400, "invalid_argument"), (409, "conflict"), (413, "too_large")])
def test_what_the_slot_will_never_take_is_set_aside_for_a_person(tmp_path: Path, slot: FakeSlot, status: int, code: str) -> None:
    def fail(body: dict[str, Any]) -> Any:
        if body["event_id"] == "ann-1":
            return problem(status, code)(body)
        raise FakeSlot.Pass

    slot.fail["/v1/events"] = fail
    box, told = outbox(tmp_path), Told()
    put(box, 1, 2)
    assert sender(box, slot, told).deliver() is None
    assert slot.arrivals == ["ann-2"]
    ((event_id, scope, _, error),) = box.listing("aside")
    assert (event_id, scope) == ("ann-1", "ann")
    assert code in error
    assert "is not recorded" in told.at("error")[0]
    assert box.retry_aside() == 1
    slot.fail.clear()
    sender(box, slot).deliver()
    assert slot.arrivals == ["ann-2", "ann-1"]


def test_a_backend_that_fails_is_asked_again_and_for_an_hour(tmp_path: Path, slot: FakeSlot) -> None:
    slot.fail["/v1/events"] = problem(502, "backend")
    box, clock = outbox(tmp_path), Clock()
    put(box, 1)
    s = sender(box, slot, clock=clock)
    while box.count():
        pause = s.deliver()
        clock.now += pause or 0
    assert 3000 < clock.now < 4000
    assert len(box.listing("aside")) == 1


@pytest.mark.parametrize(("status", "code"), [(401, "unauthenticated"), (403, "denied")])
def test_a_slot_that_lets_nobody_in_loses_nothing(tmp_path: Path, slot: FakeSlot, status: int, code: str) -> None:
    slot.fail["/v1/events"] = problem(status, code)
    box, clock = outbox(tmp_path), Clock()
    put(box, 1)
    s = sender(box, slot, clock=clock)
    for _ in range(70):
        clock.now += s.deliver() or 0
    assert (box.count(), box.listing("aside")) == (1, [])


def test_something_else_at_the_address_is_no_slot(tmp_path: Path, slot: FakeSlot) -> None:
    slot.fail["/v1/events"] = lambda body: (200, b"<html>", "text/html")
    box = outbox(tmp_path)
    put(box, 1)
    sender(box, slot).deliver()
    assert box.count() == 1
    with pytest.raises(SlotError, match="not as a memhost slot does"):
        Slot(slot.url).record(b"{}", 5)


def test_a_receipt_that_got_lost_means_sending_again_and_storing_once(tmp_path: Path, slot: FakeSlot) -> None:
    lost = iter([True])

    def hang_up(body: dict[str, Any]) -> Any:
        if next(lost, False):
            slot._record(body)
            return None
        raise FakeSlot.Pass

    slot.fail["/v1/events"] = hang_up
    box, clock = outbox(tmp_path), Clock()
    put(box, 1)
    s = sender(box, slot, clock=clock)
    s.deliver()
    assert box.count() == 1
    clock.now = 10
    s.deliver()
    assert (slot.arrivals, len(slot.events), box.count()) == (["ann-1", "ann-1"], 1, 0)


def _skipped(body: dict[str, Any]) -> tuple[int, bytes, str]:
    return 200, json.dumps({"event_id": body["event_id"], "status": "skipped_read_only", "duplicate": False, "warnings": []}).encode(), "application/json"


def test_a_read_only_slot_keeps_nothing_of_a_test_run(tmp_path: Path, slot: FakeSlot) -> None:
    slot.fail["/v1/events"] = _skipped
    box = outbox(tmp_path)
    put(box, 1)
    sender(box, slot).deliver()
    assert (box.count(), box.listing("aside")) == (0, [])


def test_what_an_outage_carried_into_a_read_only_phase_is_not_lost(tmp_path: Path, slot: FakeSlot) -> None:
    box, clock = outbox(tmp_path), Clock()
    put(box, 1)
    s = sender(box, nowhere(), clock=clock)
    s.deliver()
    slot.fail["/v1/events"] = _skipped
    s._slot = Slot(slot.url)
    clock.now = 10
    s.deliver()
    assert [row[0] for row in box.listing("aside")] == ["ann-1"]


def _uncertain(retry_after_ms: int | None) -> Callable[[dict[str, Any]], Any]:
    def answer(body: dict[str, Any]) -> Any:
        receipt = {
            "event_id": body["event_id"],
            "status": "uncertain",
            "native_ids": [],
            "duplicate": False,
            "warnings": ["delivery_uncertain: the answer was lost"],
            "retry_after_ms": retry_after_ms,
        }
        return 200, json.dumps(receipt).encode(), "application/json"

    return answer


def test_what_is_uncertain_is_recorded_again_when_the_slot_says(tmp_path: Path, slot: FakeSlot) -> None:
    box, told, clock = outbox(tmp_path), Told(), Clock()
    put(box, 1, 2)
    slot.fail["/v1/events"] = _uncertain(3000)
    s = sender(box, slot, told, clock)
    for attempt in range(12):  # retry_after_ms says that it can be settled: it is never given up
        pause = s.deliver()
        assert pause is not None
        assert pause >= 3.0, attempt
        clock.now += 100
    assert (box.count(), box.listing("aside")) == (2, [])
    assert "delivery_uncertain" in told.at("warning")[0]
    slot.fail.clear()
    assert s.deliver() is None
    assert slot.arrivals == ["ann-1", "ann-2"]


def test_what_no_retry_can_settle_is_set_aside(tmp_path: Path, slot: FakeSlot) -> None:
    box, clock = outbox(tmp_path), Clock()
    put(box, 1)
    slot.fail["/v1/events"] = _uncertain(None)
    s = sender(box, slot, clock=clock)
    for _ in range(8):
        assert box.count() == 1
        s.deliver()
        clock.now += 100
    assert (box.count(), [row[0] for row in box.listing("aside")]) == (0, ["ann-1"])


def test_two_agents_on_one_queue_send_each_event_once(tmp_path: Path, slot: FakeSlot) -> None:
    boxes = [outbox(tmp_path), outbox(tmp_path)]
    senders = [sender(b, slot) for b in boxes]
    for n in range(20):
        put(boxes[n % 2], n)
    for s in senders:
        s.wake()
    slot.wait_for_events(20)
    for s in senders:
        s.close(10)  # the first may still count what the other is just sending
    assert boxes[0].count() == 0
    assert slot.arrivals == [f"ann-{n}" for n in range(20)]


def test_while_one_process_sends_another_does_not(tmp_path: Path, slot: FakeSlot) -> None:
    box = outbox(tmp_path)
    put(box, 1)
    code = (
        "import sys, pathlib\nfrom memhost_client.outbox import Outbox\n"
        "with Outbox(pathlib.Path(sys.argv[1]), max_events=9, max_bytes=9999).sending() as ours:\n    print(ours, flush=True)\n    sys.stdin.read()\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "True\n"
    assert sender(box, slot).deliver() == 2.0
    assert slot.arrivals == []
    other.kill()
    other.communicate()
    assert sender(box, slot).deliver() is None
    assert slot.arrivals == ["ann-1"]


def test_a_process_that_is_killed_after_put_has_lost_nothing(tmp_path: Path, slot: FakeSlot) -> None:
    code = (
        "import sys, os, json, pathlib\nfrom memhost_client.outbox import Outbox\n"
        "box = Outbox(pathlib.Path(sys.argv[1]), max_events=9, max_bytes=9999)\n"
        "for e in json.loads(sys.argv[2]):\n    box.put('ann', e)\nos._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path), json.dumps([event(1), event(2)])], check=False)
    assert done.returncode == 9
    sender(outbox(tmp_path), slot).deliver()
    assert slot.arrivals == ["ann-1", "ann-2"]


def test_a_damaged_queue_is_kept_and_a_new_one_begun(tmp_path: Path) -> None:
    (tmp_path / "events.db").write_bytes(b"no database at all" * 100)
    told: list[str] = []
    box = outbox(tmp_path, say=told.append)
    put(box, 1)
    assert box.count() == 1
    assert "is damaged" in told[0]
    assert [p.read_bytes()[:2] for p in tmp_path.glob("events.damaged-*.db")] == [b"no"]


def test_what_people_said_is_for_the_user_only(tmp_path: Path) -> None:
    box = outbox(tmp_path / "q")
    put(box, 1)
    assert (box.path.stat().st_mode & 0o077, box.folder.stat().st_mode & 0o077) == (0, 0)


def test_a_disk_that_does_not_take_it_is_an_error_of_put(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((OSError, sqlite3.Error)):
        put(outbox(tmp_path / "file" / "q"), 1)


def test_settle_waits_for_the_scopes_events_and_no_longer_than_asked(tmp_path: Path, slot: FakeSlot) -> None:
    box = outbox(tmp_path)
    s = sender(box, slot)
    slot.gate.clear()
    put(box, 1)
    s.wake()
    assert s.settle("ann", 0.05) == 1
    assert s.settle("bob", 5) == 0
    threading.Timer(0.05, slot.gate.set).start()
    assert s.settle("ann", 10) == 0


def test_settle_does_not_wait_for_a_slot_that_is_down(tmp_path: Path) -> None:
    box = outbox(tmp_path)
    put(box, 1)
    s = sender(box, nowhere(), clock=Clock())
    s.deliver()
    s._idle = False
    assert s.settle("ann", 3600) == 1


def test_close_tries_once_more_and_is_over_in_time(tmp_path: Path, slot: FakeSlot) -> None:
    box = outbox(tmp_path)
    put(box, 1)
    s = sender(box, slot)
    slot.gate.clear()
    s.wake()
    assert s.close(0.05) == 1
    slot.gate.set()
    slot.wait_for_events(1)
    assert s.close(10) == 0  # it ends behind the answer, and would send what comes next
    s2 = sender(box, nowhere())
    put(box, 2)
    s2.wake()
    assert s2.close(10) >= 1


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_no_proxy_of_the_environment_is_used(slot: FakeSlot, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, nowhere())
    assert os.environ[variable]
    assert Slot(slot.url).manifest(5)["provider"] == "fake"


def test_a_slow_slot_is_given_up_in_time(slot: FakeSlot) -> None:
    slot.gate.clear()
    with pytest.raises(SlotError) as e:
        Slot(slot.url).retrieve({}, 0.05)
    assert (e.value.code, e.value.retryable) == ("slow", True)


def test_an_answer_that_breaks_off_is_no_answer() -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        peer, _ = server.accept()
        peer.recv(65536)
        peer.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"status": "committed"}')
        peer.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises(SlotError, match="unreachable"):
        Slot(f"127.0.0.1:{server.getsockname()[1]}").record(b"{}", 5)
    thread.join()
    server.close()


def test_the_token_goes_with_every_call() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    seen: list[bytes] = []

    def serve() -> None:
        peer, _ = server.accept()
        seen.append(peer.recv(65536))
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        peer.close()

    thread = threading.Thread(target=serve)
    thread.start()
    Slot(f"127.0.0.1:{server.getsockname()[1]}", "s3cret").manifest(5)
    thread.join()
    server.close()
    assert b"Authorization: Bearer s3cret\r\n" in seen[0]

"""The thread that delivers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from memhost_client import Memory, Scope
from memhost_client.outbox import Outbox
from memhost_client.sender import Sender
from memhost_client.slot import Context, Receipt, Slot, SlotError


def test_the_end_tries_once_more_also_when_an_attempt_fails_meanwhile(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, max_events=10, max_bytes=1000)
    left: list[int] = []

    class Failing(Slot):
        def record(self, *args: Any) -> Receipt:
            if ending.ident is None:
                ending.start()
                with sender._changed:
                    assert sender._changed.wait_for(lambda: sender._closing, 30)
                raise SlotError("unreachable", "no slot answers", retryable=True)
            return Receipt("committed", duplicate=False, warnings=())

    sender = Sender(outbox, Failing("127.0.0.1:1", ""), send_timeout=30, say=lambda level, text: None)
    ending = threading.Thread(target=lambda: left.append(sender.close(30)))
    outbox.put("scope", {"event_id": "e1"})
    sender.wake()
    assert sender._thread is not None
    sender._thread.join(30)
    ending.join(30)
    assert left == [0]


def test_a_scope_that_the_slot_does_not_serve_holds_back_no_other(tmp_path: Path) -> None:
    outbox, took = Outbox(tmp_path, max_events=10, max_bytes=1000), []

    class OneScope(Slot):
        def record(self, event: bytes, *args: Any) -> Receipt:
            if b"ann" in event:
                raise SlotError("denied", "this door serves the configured scope only", retryable=False)
            took.append(event)
            return Receipt("committed", duplicate=False, warnings=())

    outbox.put("ann", {"event_id": "ann-1"})
    outbox.put("bob", {"event_id": "bob-1"})
    Sender(outbox, OneScope("127.0.0.1:1", ""), send_timeout=30, say=lambda level, text: None).deliver()
    assert took == [b'{"event_id": "bob-1"}']
    assert outbox.count("ann") == 1


def test_a_queue_that_cannot_be_used_costs_the_record_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    memory = Memory(tmp_path / "file" / "queue", server="127.0.0.1:1")
    monkeypatch.setattr(memory.slot, "retrieve", lambda *args: Context("- likes oolong", "probe", None, ()))
    memory.record_now("t1", Scope("r", "ann"), "s", [("user", "hello")])
    assert memory.context_now("which tea?", Scope("r", "ann")) == "- likes oolong"
    assert memory.close() == 0
    assert "the turn t1 is not recorded" in caplog.text

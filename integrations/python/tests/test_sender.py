"""The thread that delivers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from memhost_client.outbox import Outbox
from memhost_client.sender import Sender
from memhost_client.slot import Receipt, Slot, SlotError


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

"""A receipt is one of the event that was sent: another server may answer {"ok": true} to anything."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from memhost_client import Slot, SlotError

_EVENT = b'{"event_id": "e1"}'


@contextmanager
def _server(answer: object) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "answer",
    [
        {"ok": True},
        {},
        [],
        {"status": "ok"},
        {"event_id": "e1", "status": "ok"},
        {"event_id": "e2", "status": "committed"},
        {"status": "committed"},
        {"event_id": "e1", "status": 1},
        {"event_id": "e1", "status": ["committed"]},
    ],
)
def test_another_server_s_answer_is_no_receipt(answer: object) -> None:
    with _server(answer) as url, pytest.raises(SlotError) as failed:
        Slot(url).record(_EVENT, 5)
    assert failed.value.code == "unreachable"
    assert failed.value.retryable, "the event stays in the queue"


def test_a_receipt_of_the_event_is_taken() -> None:
    with _server({"event_id": "e1", "status": "committed", "duplicate": True}) as url:
        assert Slot(url).record(_EVENT, 5).duplicate

"""Servers for the tests: a fake slot, and a language model that logs its prompts."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Json = dict[str, Any]


class _Server:
    """An HTTP server on loopback; handle answers (status, body), or None to hang up without a word."""

    def __init__(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.answer(self, json.loads(body or b"{}"))

            def do_GET(self) -> None:
                outer.answer(self, {})

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler, body: Json) -> None:
        reply = self.handle(request.path, body)
        if reply is None:
            request.close_connection = True
            return
        status, content, kind = reply
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def handle(self, path: str, body: Json) -> tuple[int, bytes, str] | None:
        raise NotImplementedError

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


def _json(status: int, value: Any) -> tuple[int, bytes, str]:
    return status, json.dumps(value).encode(), "application/json"


class FakeSlot(_Server):
    """A slot that keeps what it is told and remembers everything said in a scope, and that can be made to fail.

    fail maps a path to a function that is asked first: it answers a reply, or None to hang up, or raises Pass to let the slot answer.
    """

    class Pass(Exception):
        """The slot answers as usual."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Condition()
        self.events: list[Json] = []
        self.arrivals: list[str] = []
        self.asked: list[Json] = []
        self.fail: dict[str, Callable[[Json], tuple[int, bytes, str] | None]] = {}
        # A held path answers only after release.
        self.gate = threading.Event()
        self.gate.set()
        self.context: str | None = None

    def handle(self, path: str, body: Json) -> tuple[int, bytes, str] | None:
        self.gate.wait(30)
        if path in self.fail:
            try:
                return self.fail[path](body)
            except FakeSlot.Pass:
                pass
        if path == "/v1/events":
            return self._record(body)
        if path == "/v1/retrieve":
            return self._retrieve(body)
        if path == "/v1/manifest":
            return _json(200, {"manifest": 1, "provider": "fake"})
        return _json(404, {"code": "not_found", "message": path, "retryable": False})

    def _record(self, event: Json) -> tuple[int, bytes, str]:
        with self.lock:
            self.arrivals.append(event["event_id"])
            known = [e for e in self.events if e["event_id"] == event["event_id"]]
            if known and known[0] != event:
                return _json(409, {"code": "conflict", "message": "event_id: recorded before with other content", "retryable": False})
            if not known:
                self.events.append(event)
            self.lock.notify_all()
        return _json(200, {"event_id": event["event_id"], "status": "committed", "native_ids": [], "duplicate": bool(known), "warnings": []})

    def _retrieve(self, request: Json) -> tuple[int, bytes, str]:
        with self.lock:
            self.asked.append(request)
            scope = request["scope"]
            mine = [e for e in self.events if (e["run_id"], e["user_id"]) == (scope["run_id"], scope["persona_id"])]
            said = [m["content"] for e in mine for m in e["messages"] if m["role"] == "user"]
        text = self.context
        if text is None:
            lines = "\n".join(f"- {s}" for s in said)
            text = f'<memory-context backend="fake" scope="{scope["run_id"]}/{scope["persona_id"]}">\n{lines}\n</memory-context>' if said else ""
        trace = {"backend_name": "fake", "token_count": len(text) // 4, "warnings": []}
        return _json(200, {"raw": {}, "formatted_context": text, "evidence": [], "trace": trace})

    def wait_for_events(self, count: int, seconds: float = 10) -> list[Json]:
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.events) >= count, seconds), f"{len(self.events)} events of {count} after {seconds} s"
            return list(self.events)


def problem(status: int, code: str, *, retryable: bool = False, **more: Any) -> Callable[[Json], tuple[int, bytes, str]]:
    return lambda body: _json(status, {"code": code, "message": f"made to fail with {code}", "retryable": retryable, **more})


class Model(_Server):
    """An OpenAI-compatible chat model that keeps each request whole, and whose answer depends on nothing but what the user said last.

    internal/test/testenv/llm, the project's stand-in for a model, answers from the whole prompt and logs it as text: here the answer must be the
    same with and without a memory context, and tools and message boundaries count. "CALL:name {json}" makes it call a tool first, "MODELFAIL" makes
    it fail, "SLOW" makes it wait for go.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Json] = []
        self.go = threading.Event()
        self.busy = threading.Event()

    def handle(self, path: str, body: Json) -> tuple[int, bytes, str] | None:
        self.requests.append(body)
        messages = body["messages"]
        said = without_context(text_of([m for m in messages if m["role"] == "user"][-1]["content"]))
        if "MODELFAIL" in said:
            return _json(400, {"error": {"message": "made to fail", "type": "invalid_request_error"}})
        if "SLOW" in said:
            self.busy.set()
            self.go.wait(20)
        message: Json = {"role": "assistant", "content": f"ANSWER[{said}]"}
        call = re.fullmatch(r"CALL:(\w+) (\{.*\})", said)
        if call and messages[-1]["role"] != "tool":
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": call[1], "arguments": call[2]}}],
            }
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        head = {"id": "c", "created": 1, "model": body.get("model", "stub")}
        if not body.get("stream"):
            return _json(200, {**head, "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage})
        chunks = [
            {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
        ]
        text = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
        return 200, text.encode(), "text/event-stream"


def text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(p.get("text", "") for p in content)
    return content or ""


_CONTEXT = re.compile(r"\n*<memory-context .*?</memory-context>", re.S)


def without_context(text: str) -> str:
    return _CONTEXT.sub("", text)


@pytest.fixture
def slot() -> Generator[FakeSlot, None, None]:
    server = FakeSlot()
    yield server
    server.gate.set()
    server.close()


@pytest.fixture
def model() -> Generator[Model, None, None]:
    server = Model()
    yield server
    server.go.set()
    server.close()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """No configuration of this machine or of an earlier test (Agent sets one), and no MEMHOST_ variable, reaches a test."""
    import os

    for name in list(os.environ):
        if name.startswith(("MEMHOST_", "NANOBOT_MEMHOST_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

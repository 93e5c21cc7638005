"""The slot's HTTP door, as far as an agent needs it (docs/http.md): blocking calls, each with a time after which it ends.

No proxy of the environment is used: the slot serves on loopback or where the operator says.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_MAX_ANSWER = 64 << 20
# The statuses of docs/http.md. Another server may answer {"status": "ok"} to anything.
_STATUSES = ("committed", "queued", "pending", "partial", "uncertain", "not_retained", "skipped_read_only")


def base_url(server: str) -> str:
    """The slot's address as a URL without a slash at its end: HOST:PORT is http."""
    return (server if "://" in server else "http://" + server).rstrip("/")


class SlotError(Exception):
    """A call that failed. code is the slot's (docs/http.md), or "unreachable" when there was no whole answer of a slot, or "slow" when the time was over."""

    def __init__(self, code: str, message: str, *, retryable: bool, retry_after: float = 0.0) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.retryable = retryable
        # Seconds that the slot asks to wait; 0: it does not say.
        self.retry_after = retry_after


@dataclass(frozen=True)
class Context:
    """A memory context: text is empty or one memory-context element."""

    text: str
    provider: str
    tokens: int | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Receipt:
    """What became of an event: a status of docs/http.md."""

    status: str
    duplicate: bool
    warnings: tuple[str, ...]
    # Seconds after which recording an uncertain or partial event again can settle it. None: no retry can.
    retry_after: float | None = None


class Slot:
    """A slot at an address. Safe for several threads: each call has a connection of its own."""

    def __init__(self, server: str, token: str = "") -> None:
        self.url = base_url(server)
        self._token = token

    def retrieve(self, request: Mapping[str, Any], seconds: float) -> Context:
        """POST /v1/retrieve."""
        answer = self._call("POST", "/v1/retrieve", json.dumps(request).encode(), seconds)
        text, trace = answer.get("formatted_context"), answer.get("trace")
        if not isinstance(text, str) or not isinstance(trace, dict):
            raise SlotError("unreachable", f"{self.url} answers, but not as a memhost slot does", retryable=True)
        tokens = trace.get("token_count")
        return Context(text, str(trace.get("backend_name", "?")), tokens if isinstance(tokens, int) else None, _texts(trace.get("warnings")))

    def record(self, event: bytes, seconds: float) -> Receipt:
        """POST /v1/events with an event as JSON. Sending one again is safe: the slot knows its event_id."""
        answer = self._call("POST", "/v1/events", event, seconds)
        status = answer.get("status")
        if status not in _STATUSES or answer.get("event_id") != json.loads(event).get("event_id"):
            raise SlotError("unreachable", f"{self.url} answers, but not as a memhost slot does", retryable=True)
        after = answer.get("retry_after_ms")
        return Receipt(
            status,
            answer.get("duplicate") is True,
            _texts(answer.get("warnings")),
            after / 1000 if isinstance(after, (int, float)) else None,
        )

    def manifest(self, seconds: float) -> dict[str, Any]:
        """GET /v1/manifest: which provider serves."""
        return self._call("GET", "/v1/manifest", None, seconds)

    def _call(self, method: str, path: str, body: bytes | None, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        try:
            status, data = self._exchange(method, path, body, deadline)
        except TimeoutError:
            raise SlotError("slow", f"no answer of {self.url} within {seconds:.1f} s", retryable=True) from None
        except (OSError, http.client.HTTPException) as e:
            raise SlotError("unreachable", f"{self.url}: {e or type(e).__name__}", retryable=True) from e
        try:
            answer = json.loads(data)
        except ValueError:
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer
        raise self._problem(status, answer)

    def _exchange(self, method: str, path: str, body: bytes | None, deadline: float) -> tuple[int, bytes]:
        url = urlsplit(self.url)
        headers = {"Accept": "application/json", "Connection": "close"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        connection: http.client.HTTPConnection
        if url.scheme == "https":
            connection = http.client.HTTPSConnection(url.hostname or "", url.port, timeout=_left(deadline), context=ssl.create_default_context())
        else:
            connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=_left(deadline))
        try:
            connection.connect()
            sock = connection.sock
            sock.settimeout(_left(deadline))
            connection.request(method, url.path + path, body, headers)
            response = connection.getresponse()
            parts: list[bytes] = []
            size = 0
            while True:
                sock.settimeout(_left(deadline))
                part = response.read1(1 << 16)
                if not part:
                    break
                parts.append(part)
                size += len(part)
                if size > _MAX_ANSWER:
                    raise http.client.HTTPException(f"the answer has more than {_MAX_ANSWER} bytes")
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return response.status, b"".join(parts)
        finally:
            connection.close()

    def _problem(self, status: int, answer: Any) -> SlotError:
        if not isinstance(answer, dict) or not isinstance(answer.get("code"), str):
            return SlotError("unreachable", f"{self.url} answers with status {status}, but not as a memhost slot does", retryable=True)
        message = str(answer.get("message", ""))
        if answer.get("hint"):
            message += f" ({answer['hint']})"
        after = answer.get("retry_after_ms")
        return SlotError(
            answer["code"], message, retryable=answer.get("retryable") is True, retry_after=after / 1000 if isinstance(after, (int, float)) else 0.0
        )


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(v) for v in value) if isinstance(value, list) else ()

"""What every request goes through, below the framework: a number, a longest body, and, without a key, the caller's place."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .config import is_loopback

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Edge:
    """Every answer carries X-Request-ID, which a 502 says in its body too. Without a key only this machine's own programs are served: no page in a browser."""

    def __init__(self, app: App, body_bytes: int, open_to_all: bool) -> None:
        self.app = app
        self.body_bytes = body_bytes
        self.open_to_all = open_to_all
        self.too_large = {"detail": f"The body is longer than {body_bytes} bytes.", "code": "body_too_large"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        number = uuid.uuid4().hex[:8]
        scope.setdefault("state", {})["id"] = number
        headers = dict(scope["headers"])
        taken = 0

        async def numbered(message: Message) -> None:
            if taken > self.body_bytes:
                return  # what was made of half a body
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), (b"x-request-id", number.encode())]
            await send(message)

        if self.open_to_all and (b"origin" in headers or not is_loopback(_host(headers.get(b"host", b"").decode("latin-1")))):
            return await answer(numbered, 403, {"detail": "Without a key only programs of this machine are served.", "code": "not_local"})
        size = headers.get(b"content-length", b"0")
        if not size.isdigit() or int(size) > self.body_bytes:
            return await answer(numbered, 413, self.too_large)

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            return message if taken <= self.body_bytes else {"type": "http.disconnect"}

        await self.app(scope, bounded, numbered)
        if taken > self.body_bytes:
            taken = 0
            await answer(numbered, 413, self.too_large)


def _host(header: str) -> str:
    """The host of a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


async def answer(send: Send, status: int, body: dict[str, str]) -> None:
    text = json.dumps(body).encode()
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode())]})
    await send({"type": "http.response.body", "body": text})

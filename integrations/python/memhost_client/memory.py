"""Context before a turn, a record after it. Nothing here raises into the agent, and nothing takes longer than configured."""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import json
import logging
import os
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from .outbox import Full, Outbox
from .sender import Sender
from .slot import Slot, SlotError

log = logging.getLogger("memhost")

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


@dataclass(frozen=True)
class Scope:
    """Whose memory it is: of one user, in one run. Nothing that is said in a conversation should choose it."""

    run_id: str
    user_id: str

    @property
    def key(self) -> str:
        """The scope as one text, by which the queue keeps the order of its events."""
        return f"{self.run_id}\x00{self.user_id}"


class Memory:
    """The slot at an address as an agent's memory. Safe for several threads and event loops.

    server: HOST:PORT or a URL; MEMHOST_SERVER, and then 127.0.0.1:7077, where it is not given. token: MEMHOST_TOKEN where it is not given.
    queue: the folder in which events wait until the slot has them. Programs may share one; one of them sends at a time.
    max_tokens: the most tokens of a context, 0 for no limit. timeout: how many seconds a turn waits for its context; fresh: how many of them it waits for
    earlier turns of the same memory to arrive.
    """

    def __init__(
        self,
        queue: str | Path,
        *,
        server: str = "",
        token: str = "",
        max_tokens: int = 2000,
        timeout: float = 4.0,
        fresh: float = 1.0,
        max_events: int = 10_000,
    ) -> None:
        self.slot = Slot(server or os.environ.get("MEMHOST_SERVER") or "127.0.0.1:7077", token or os.environ.get("MEMHOST_TOKEN", ""))
        self.outbox = Outbox(Path(queue), max_events=max_events, max_bytes=64 << 20, say=lambda text: log.error("%s", text))
        self.sender = Sender(self.outbox, self.slot, send_timeout=120.0, say=_say)
        self._max_tokens, self._timeout, self._fresh = max_tokens, timeout, min(fresh, timeout / 2)
        self.sender.wake()  # for what an earlier process left behind
        atexit.register(_close, weakref.ref(self))

    def context_now(self, query: str, scope: Scope, session_id: str = "") -> str:
        """The context for a message: one memory-context element, or "" where there is none or it did not come in time, which the log says."""
        if not query.strip():
            return ""
        until = time.monotonic() + self._timeout
        request = {
            "query": query,
            "scope": {"run_id": scope.run_id, "persona_id": scope.user_id},
            "session_id": session_id or "session",
            "budget": {"max_tokens": self._max_tokens} if self._max_tokens else {},
        }
        try:
            try:
                late = self.sender.settle(scope.key, self._fresh)
            except Exception as e:
                late = 0
                log.warning("it cannot be told whether earlier turns are still on their way, the queue cannot be read: %s", e)
            if late:
                log.warning("%d earlier turns of this memory are still on their way to the slot; the context may lack them", late)
            return self.slot.retrieve(request, max(0.001, until - time.monotonic())).text
        except SlotError as e:
            log.warning("no memory context in this turn: %s", e)
        except Exception as e:
            log.warning("no memory context in this turn: %s: %s", type(e).__name__, e)
        return ""

    async def context(self, query: str, scope: Scope, session_id: str = "") -> str:
        """context_now, without holding the event loop."""
        return await asyncio.to_thread(self.context_now, query, scope, session_id)

    def record_now(self, turn: str, scope: Scope, session_id: str, messages: Sequence[tuple[str, str]], at: datetime | None = None) -> None:
        """Queues a finished turn: (role, text) of what people and the agent said. It is on disk when this returns; a thread delivers it.

        turn names the turn within its session and must be the same whenever it is recorded: the slot stores it once, however often it comes.
        """
        said = [{"role": role, "content": text} for role, text in messages if text.strip()]
        if not any(m["role"] == "user" for m in said):
            return
        name = json.dumps([scope.run_id, scope.user_id, session_id, turn]).encode()
        event = {
            "event_id": "turn-" + hashlib.sha256(name).hexdigest()[:40],
            "run_id": scope.run_id,
            "user_id": scope.user_id,
            "session_id": session_id or "session",
            "turn_id": turn,
            "timestamp": (at or datetime.now(UTC)).astimezone().isoformat(),
            "messages": said,
        }
        try:
            self.outbox.put(scope.key, event)
        except Full as e:
            log.error("the turn %s is not recorded, the queue is full: %s", turn, e)
        except Exception as e:
            log.error("the turn %s is not recorded, %s does not take it: %s", turn, self.outbox.path, e)
        self.sender.wake()

    async def record(self, turn: str, scope: Scope, session_id: str, messages: Sequence[tuple[str, str]], at: datetime | None = None) -> None:
        """record_now, without holding the event loop."""
        await asyncio.to_thread(self.record_now, turn, scope, session_id, messages, at)

    def close(self, seconds: float = 5.0) -> int:
        """Delivers what it still can, for at most this long. Answers how many events wait on disk for the next start."""
        try:
            left = self.sender.close(seconds)
        except Exception as e:
            log.error("how many turns wait cannot be told, the queue in %s cannot be read: %s", self.outbox.folder, e)
            return 0
        if left:
            log.warning("%d turns wait in %s and are sent when an agent runs again", left, self.outbox.folder)
        return left


def with_context(text: str, context: str) -> str:
    """A message as the model is shown it."""
    return f"{text}\n\n{context}" if context else text


def _say(level: str, text: str) -> None:
    log.log(_LEVELS[level], "%s", text)


def _close(memory: weakref.ref[Memory]) -> None:
    alive = memory()
    if alive is not None:
        alive.close()

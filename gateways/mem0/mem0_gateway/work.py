"""What runs when: a bounded number of requests, in threads of its own, and one after another where the library wants it so.

The library is synchronous. A started call always comes to its end, whether its client still waits or not: cancelling it during its LLM call would lose the
write. Waiting for one's turn happens on the event loop, so that a busy scope holds no thread.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

Result = TypeVar("Result")


class Busy(Exception):
    """More requests run or wait than are allowed; nothing was done."""


class Closing(Exception):
    """The gateway is shutting down; nothing was done."""


class Kind(Enum):
    READ = "read"
    ADD = "add"
    CHANGE = "change"  # of one memory, by its id
    ERASE = "erase"  # of a scope
    RESET = "reset"


@dataclass(frozen=True)
class Claim:
    """What a request touches. ``ids`` are those of a scope, or ``{"memory": id}`` for a change."""

    kind: Kind
    ids: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, kind: Kind, ids: Mapping[str, str | None] | None = None) -> Claim:
        """A claim on a scope. Ids are trimmed, as the library trims them."""
        return cls(kind, frozenset((name, value.strip()) for name, value in (ids or {}).items() if value))

    def conflicts(self, other: Claim) -> bool:
        """Whether the two may not run at once.

        Adds of one scope: in parallel one sentence is stored up to ten times. An erasure beside an add of a scope that it covers leaves the late row; beside
        another, or a change, it fails midway. A reset swaps the history's connection under everybody.
        """
        kinds = {self.kind, other.kind}
        if Kind.RESET in kinds:
            return True
        if Kind.READ in kinds:
            return False
        if kinds == {Kind.ADD} or kinds == {Kind.CHANGE}:
            return self.ids == other.ids
        if kinds == {Kind.ERASE, Kind.CHANGE}:
            return True
        if kinds == {Kind.ERASE}:
            return self.ids <= other.ids or other.ids <= self.ids
        if kinds == {Kind.ERASE, Kind.ADD}:
            erased, added = (self.ids, other.ids) if self.kind is Kind.ERASE else (other.ids, self.ids)
            return erased <= added
        return False


@dataclass(eq=False)
class _Turn:
    claim: Claim
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Work:
    """Runs calls of the library. Belongs to one event loop; ``close`` waits for what was accepted."""

    def __init__(self, workers: int, queue: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="mem0")
        self._queue = queue
        self._turns: dict[_Turn, None] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing = False

    @property
    def accepted(self) -> int:
        """Requests that run or wait."""
        return len(self._turns)

    async def run(self, claim: Claim, call: Callable[[], Result]) -> Result:
        """Run a call when every earlier conflicting one is over. Raises Busy, Closing, and what the call raises."""
        if self._closing:
            raise Closing
        if len(self._turns) >= self._queue:
            raise Busy
        before = [turn for turn in self._turns if turn.claim.conflicts(claim)]
        turn = _Turn(claim)
        self._turns[turn] = None
        task = asyncio.get_running_loop().create_task(self._take(turn, before, call))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def _take(self, turn: _Turn, before: list[_Turn], call: Callable[[], Result]) -> Result:
        try:
            for earlier in before:
                await earlier.over.wait()
            return await asyncio.get_running_loop().run_in_executor(self._pool, contextvars.copy_context().run, call)
        finally:
            del self._turns[turn]
            turn.over.set()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # its client may be gone: nobody else asks

    async def close(self) -> None:
        """Take nothing more, and wait until all that was accepted is over."""
        self._closing = True
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        self._pool.shutdown(wait=True)

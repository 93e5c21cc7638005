"""One write of a group at a time, in the order in which they came; groups beside each other.

graphiti-core needs it: six adds to one group at once give six copies of the speaker and miss contradictions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .errors import GatewayError


class Turn(Protocol):
    """A write that waits for its turn."""

    #: a queued one is on disk: its number is bounded by the journal, and it outlives the process
    queued: bool

    async def run(self) -> None: ...

    def refuse(self, error: GatewayError) -> None: ...


@dataclass(eq=False)
class Call:
    """A synchronous write: somebody waits for its answer."""

    work: Callable[[], Awaitable[Any]]
    answer: asyncio.Future[Any]
    queued: bool = False

    async def run(self) -> None:
        try:
            result = await self.work()
        except asyncio.CancelledError:
            self.refuse(GatewayError("shutting_down", "the gateway ended during the call", stored="unknown"))
            raise
        except Exception as error:
            if not self.answer.done():
                self.answer.set_exception(error)
        else:
            if not self.answer.done():
                self.answer.set_result(result)

    def refuse(self, error: GatewayError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Lanes:
    """The lanes of all groups. A lane exists while something runs or waits in it."""

    def __init__(self, *, waiting_per_group: int, waiting: int, concurrent_groups: int) -> None:
        self._per_group, self._total = waiting_per_group, waiting
        self._slots = asyncio.Semaphore(concurrent_groups)
        self._lanes: dict[str, deque[Turn]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting = 0
        self._stopping = False

    @property
    def accepting(self) -> bool:
        return not self._stopping

    @property
    def waiting(self) -> int:
        """Synchronous writes that have not begun."""
        return self._waiting

    async def call(self, group: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run a synchronous write in its turn and give its result. Raises queue_full and shutting_down before anything was begun."""
        self.admit()
        lane = self._lanes.get(group, ())
        if sum(1 for turn in lane if not turn.queued) >= self._per_group:
            raise GatewayError("queue_full", "too many writes of this group wait", limit=self._per_group, scope="group")
        if self._waiting >= self._total:
            raise GatewayError("queue_full", "too many writes wait", limit=self._total, scope="gateway")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.push(group, Call(work, answer))
        # Shielded: when the caller goes away the write goes on, since nobody could say how far it had come.
        return await asyncio.shield(answer)

    def admit(self) -> None:
        if self._stopping:
            raise GatewayError("shutting_down", "the gateway ends; nothing was begun")

    def push(self, group: str, turn: Turn) -> None:
        """Put a turn at the end of a group's lane. The caller has asked ``admit``."""
        lane = self._lanes.setdefault(group, deque())
        lane.append(turn)
        self._waiting += not turn.queued
        if group not in self._tasks:
            self._tasks[group] = asyncio.create_task(self._work_off(group))

    def withdraw(self, group: str, which: Callable[[Turn], bool]) -> list[Turn]:
        """Take waiting turns out of a lane."""
        lane = self._lanes.get(group)
        if lane is None:
            return []
        gone = [turn for turn in lane if which(turn)]
        for turn in gone:
            lane.remove(turn)
            self._waiting -= not turn.queued
        return gone

    async def _work_off(self, group: str) -> None:
        lane = self._lanes[group]
        try:
            while lane and not self._stopping:
                async with self._slots:
                    if not lane or self._stopping:
                        break
                    turn = lane.popleft()
                    self._waiting -= not turn.queued
                    await turn.run()
        finally:
            del self._tasks[group]
            if not lane:
                del self._lanes[group]

    def stop(self) -> None:
        """Begin nothing more. What waits synchronously is told so; queued writes stay on disk."""
        self._stopping = True
        for group in list(self._lanes):
            for turn in self.withdraw(group, lambda turn: not turn.queued):
                turn.refuse(GatewayError("shutting_down", "the gateway ends; nothing was begun"))

    async def drain(self, seconds: float) -> None:
        """Wait for what runs; after ``seconds`` break it off."""
        tasks = list(self._tasks.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=5)

"""The flow of a turn: context before it, events after it. Nothing here raises into the agent, and nothing takes longer than configured."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from loguru import logger
from memhost_client.outbox import Full, Outbox
from memhost_client.sender import Sender
from memhost_client.slot import Context, Slot, SlotError

from . import native
from .config import Settings
from .scope import Access, access
from .turn import Ask, NotRecorded, Turn, events, strip

T = TypeVar("T")
Public = Callable[[Mapping[str, Any]], dict[str, Any]]

# Turns that never came to their end (ephemeral ones, failed ones) are forgotten after so many newer ones.
_KEEP_TURNS = 500


class Memory:
    """The slot as the memory of one agent. sessions is Nanobot's session manager, public its public_history_message."""

    def __init__(self, settings: Settings, sessions: Any, public: Public, *, workspace: Path | None = None, nanobot_config: Path | None = None) -> None:
        self.settings = settings
        self._sessions, self._public = sessions, public
        self._workspace, self._nanobot_config = workspace, nanobot_config
        self._native_problems: list[str] = []
        self._turns: OrderedDict[str, Turn] = OrderedDict()
        self.slot = Slot(settings.server, settings.token(os.environ))
        self.outbox = Outbox(settings.queue, max_events=settings.queue_max_events, max_bytes=settings.queue_max_bytes, say=lambda text: say("error", text))
        self.sender = Sender(self.outbox, self.slot, send_timeout=settings.send_timeout_ms / 1000, say=say, queue="memhost-nanobot queue")
        self._writes: set[threading.Thread] = set()
        # What an earlier process left behind.
        self.sender.wake()
        atexit.register(_close, weakref.ref(self))

    async def before_turn(self, request: Any) -> Context | None:
        """The context for a message, or None: none is found, none may be read, or it did not come in time; the log says which."""
        started = time.monotonic()
        try:
            allowed = access(self.settings, request)
            turn = self._turn(request)
            text = request.original_user_text or ""
            turn.asks.append(Ask(text, str(request.sender_id or ""), allowed))
            self._check_native(turn.session_key)
            if not allowed.read:
                say("debug", f"no memory in this turn of {turn.session_key}: {allowed.why}")
                return None
            context = await self.ask(allowed, text)
            if context.text:
                turn.blocks.append(context.text.strip())
            took = (time.monotonic() - started) * 1000
            say("debug", f"context of {context.provider} for {turn.session_key}: {len(context.text)} characters, {took:.0f} ms")
            return context if context.text.strip() else None
        except Exception as e:
            why = str(e) if isinstance(e, SlotError) else f"{type(e).__name__}: {e}"
            say("warning", f"no memory context in this turn of {getattr(request, 'session_key', '?')}: {why}")
            return None

    async def ask(self, allowed: Access, query: str, *, max_items: int = 0, at_most: int = 0) -> Context:
        """Retrieves in a scope, within the configured time. max_items takes the place of the configured one, at_most bounds the configured tokens; 0: neither.

        Errors: SlotError.
        """
        seconds = self.settings.context_timeout_ms / 1000
        tokens = min(self.settings.max_tokens or at_most, at_most or self.settings.max_tokens)
        budget = {"max_tokens": tokens, "max_items": max_items or self.settings.max_items}
        request = {
            "query": query,
            "scope": {"run_id": allowed.scope.run_id, "persona_id": allowed.scope.user_id},
            "session_id": allowed.session_id,
            "budget": {k: v for k, v in budget.items() if v},
            **allowed.labels,
        }

        def work() -> Context:
            until = time.monotonic() + seconds
            late = 0
            try:
                late = self.sender.settle(allowed.scope.key, min(self.settings.fresh_ms / 1000, seconds / 2))
            except Exception as e:
                say("warning", f"it cannot be told whether earlier turns are still on their way, the queue cannot be read: {e}")
            if late:
                say("warning", f"{late} earlier turns of this memory are still on their way to the slot; the context may lack them")
            context = self.slot.retrieve(request, max(0.001, until - time.monotonic()))
            for warning in context.warnings:
                say("debug", f"{context.provider}: {warning}")
            return context

        try:
            return await in_time(work, seconds)
        except TimeoutError:
            raise SlotError("slow", f"no answer of {self.slot.url} within {seconds:.1f} s", retryable=True) from None

    def access_now(self, request: Any) -> Access:
        """What a request may do, for the tool."""
        return access(self.settings, request)

    def turn_started(self, event: Any) -> None:
        """Takes old contexts out of the session, which a turn that broke off has left there: the handler runs before Nanobot reads the history."""
        try:
            self._strip(self._session(event), save=False)
        except Exception as e:
            say("error", f"old memory contexts stay in the session: {type(e).__name__}: {e}")

    async def after_turn(self, event: Any) -> None:
        """Queues the finished turn for the slot, and takes the contexts and the results of memory_search out of the session: Nanobot would send them again with
        every later turn, in a group chat to people whose memory it is not.
        """
        try:
            session = self._session(event)
            turn = self._turns.pop(event.turn_id, None)
            if turn is not None and session is not None:
                await self._record(turn, [dict(m) for m in session.messages])
            self._strip(session, save=True)
        except Exception as e:
            say("error", f"the turn {getattr(event, 'turn_id', '?')} is not recorded: {type(e).__name__}: {e}")

    async def _record(self, turn: Turn, messages: Sequence[Mapping[str, Any]]) -> None:
        try:
            made, left_out = events(turn, messages, self._public)
        except NotRecorded as e:
            say("error", f"the turn {turn.turn_id} is not recorded: {e}")
            return
        for why in left_out:
            say("debug" if why != "the model call failed" else "info", f"not recorded of the turn {turn.turn_id}: {why}")
        if not made:
            return

        def write() -> None:
            try:
                for event in made:
                    self.outbox.put(scope_key(event), event)
            except Full as e:
                say("error", f"the turn {turn.turn_id} is not recorded, the queue is full: {e}")
            except Exception as e:
                say("error", f"the turn {turn.turn_id} is not recorded, {self.outbox.path} does not take it: {e}")
            self.sender.wake()

        try:
            await in_time(write, self.settings.record_timeout_ms / 1000, self._writes)
        except TimeoutError:
            say("warning", f"the turn {turn.turn_id} is not on disk after {self.settings.record_timeout_ms} ms; the reply goes out before it")

    def close(self) -> None:
        """Waits a moment for what is on its way. Called when the program ends."""
        until = time.monotonic() + self.settings.exit_timeout_ms / 1000
        for thread in list(self._writes):
            thread.join(max(0.0, until - time.monotonic()))
        try:
            left = self.sender.close(max(0.0, until - time.monotonic()))
        except Exception as e:
            say("error", f"the queue {self.outbox.path}: {e}")
            return
        if left:
            say("warning", f"{left} turns wait in {self.outbox.folder} and are sent when an agent runs again, or by: memhost-nanobot queue --send")

    def _turn(self, request: Any) -> Turn:
        turn = self._turns.get(request.turn_id) if request.turn_id else None
        if turn is None:
            session = self._sessions.get_cached(request.session_key)
            turn = Turn(str(request.session_key), str(request.turn_id), str(request.channel), 0 if session is None else len(session.messages))
            self._turns[request.turn_id] = turn
            while len(self._turns) > _KEEP_TURNS:
                self._turns.popitem(last=False)
        return turn

    def _session(self, event: Any) -> Any:
        return self._sessions.get_cached(event.context.session_key)

    def _strip(self, session: Any, *, save: bool) -> None:
        if session is None:
            return
        cleaned = strip(session.messages, self._public)
        if cleaned is not None:
            session.messages[:] = cleaned
            if save:
                self._sessions.save(session)

    def _check_native(self, session_key: str) -> None:
        """Says once of each way in which Nanobot's own memory can reach the prompt, where that is not wanted."""
        if self.settings.native_memory != "off" or self._workspace is None:
            return
        found = list(native.problems(self._workspace, self._nanobot_config))
        others = sum(1 for s in self._sessions.list_sessions() if s.get("key") != session_key)
        if others:
            found.append(f"{others} other sessions of {self._workspace} are there for the session tools; one made again at its old path has its old ones")
        for problem in found:
            if problem not in self._native_problems:
                say("error", f"native_memory is off, but {problem}")
        self._native_problems = found


def scope_key(event: Mapping[str, Any]) -> str:
    """Scope.key of an event."""
    return f"{event['run_id']}\x00{event['user_id']}"


async def in_time(work: Callable[[], T], seconds: float, threads: set[threading.Thread] | None = None) -> T:
    """Runs work in a thread of its own and waits for it, at most this long; then TimeoutError, and the thread goes on unheard.

    Not the event loop's pool: the end of the loop would wait for its threads.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as e:
            error = e
        if threads is not None:
            threads.discard(threading.current_thread())
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            return  # the loop has ended, nobody waits

    thread = threading.Thread(target=run, name="memhost-call", daemon=True)
    if threads is not None:
        threads.add(thread)
    thread.start()
    return await asyncio.wait_for(future, seconds)


def say(level: str, text: str) -> None:
    """A line in the agent's log."""
    logger.log(level.upper(), "memhost: {}", text)


def _close(memory: weakref.ref[Memory]) -> None:
    alive = memory()
    if alive is not None:
        alive.close()

"""Delivers what waits in the outbox, in a thread of its own: in order within a scope, again and again until the slot has it.

Nobody waits for it but settle (a moment, so that a context knows the turn before) and close (a moment, at the end of the program). The thread is a daemon and
never keeps a program alive; what it has not delivered waits on disk for the next start.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .outbox import Outbox, Waiting
from .slot import Receipt, Slot, SlotError

# Errors that lie in the event: the slot will refuse it for ever.
_REFUSED = frozenset({"invalid_argument", "conflict", "too_large"})
# Errors of which it is not known whose they are: an event that meets one so often (about an hour) is set aside, for those behind it.
_GIVE_UP = frozenset({"internal", "backend", "isolation_breach", "unsupported", "not_found"})
_GIVE_UP_AFTER = 60
# How often an event is sent whose receipt says each time that it is uncertain, and not after what time to ask again.
_UNCERTAIN_MOST = 8

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
# How long another process may send before we look again: seconds, and at the end of the program.
_OTHER_SENDS, _OTHER_SENDS_AT_END = 2.0, 0.1


class Sender:
    """Delivers from an outbox to a slot. say takes a level (debug, info, warning, error) and a text; queue is how a person looks at what was set aside."""

    def __init__(
        self,
        outbox: Outbox,
        slot: Slot,
        *,
        send_timeout: float,
        say: Callable[[str, str], None],
        clock: Callable[[], float] = time.monotonic,
        queue: str = "see Outbox.listing and retry_aside",
    ) -> None:
        self._outbox, self._slot, self._timeout, self._say, self._clock = outbox, slot, send_timeout, say, clock
        self._queue = queue
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._woken = False
        self._closing = False
        self._other_sends = False
        self._end = 0.0
        self._idle = True
        # Scopes, and "" for the slot as a whole, that are not tried before a time; and how often they failed since the last success.
        self._not_before: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._down = False

    def wake(self) -> None:
        """There is something to send. Never blocks, never raises."""
        with self._changed:
            self._woken, self._idle = True, False
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="memhost-sender", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:
                    # The interpreter ends; the event waits on disk.
                    self._thread, self._idle = None, True
            self._changed.notify_all()

    def settle(self, scope: str, seconds: float) -> int:
        """Waits until the scope's events are delivered, or have failed, or the time is over. Answers how many still wait."""
        until = time.monotonic() + seconds
        with self._changed:
            while True:
                left = until - time.monotonic()
                waiting = self._outbox.count(scope)
                if not waiting or left <= 0 or self._idle or self._clock() < max(self._not_before.get("", 0), self._not_before.get(scope, 0)):
                    return waiting
                self._changed.wait(min(left, 0.25))

    def close(self, seconds: float) -> int:
        """Tries once more what waits, for at most this long, and stops; while another process sends, it waits for that. Answers how many still wait."""
        with self._changed:
            self._closing, self._end = True, time.monotonic() + seconds
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)
        return self._outbox.count()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._woken = False
                last = self._closing
                if last:
                    self._not_before.clear()  # also what an attempt has put there that failed meanwhile
            try:
                pause = self.deliver()
            except Exception as e:
                self._say("error", f"the queue in {self._outbox.folder} cannot be read: {e}")
                pause = _LONGEST_PAUSE
            with self._changed:
                self._idle = pause is None and not self._woken
                self._changed.notify_all()
                if last and self._other_sends and time.monotonic() < self._end:
                    self._changed.wait(_OTHER_SENDS_AT_END)
                    continue
                if last:
                    return
                if not self._woken and not self._closing:
                    self._changed.wait(pause)

    def deliver(self) -> float | None:
        """Sends what can be sent now. Answers the seconds after which to try again, or None where nothing waits."""
        with self._outbox.sending() as ours:
            self._other_sends = not ours
            if not ours:
                return _OTHER_SENDS if self._outbox.count() else None
            while not self._pausing(""):
                heads = [w for w in self._outbox.heads() if not self._pausing(w.scope)]
                if not heads:
                    break
                for event in heads:
                    if not self._pausing(""):
                        self._deliver_one(event)
        if not self._outbox.count():
            return None
        with self._changed:
            now = self._clock()
            pauses = [t - now for t in self._not_before.values() if t > now]
        return max(0.05, min(pauses, default=_FIRST_PAUSE))

    def _deliver_one(self, event: Waiting) -> None:
        try:
            receipt = self._slot.record(event.body, self._timeout)
        except SlotError as e:
            self._failed(event, e)
            return
        if receipt.status in ("uncertain", "partial"):
            self._again(event, receipt)
            return
        if receipt.status == "skipped_read_only" and event.attempts:
            # It was said while the slot was to record; that it is read-only now is an accident of the outage.
            self._outbox.set_aside(event, "skipped_read_only: the slot was read-only when the event could be delivered")
            self._say("warning", f"event {event.event_id} met a read-only slot after an outage and is set aside ({self._queue})")
        else:
            self._outbox.done(event)
            self._say("debug", f"event {event.event_id}: {receipt.status}" + (", there already" if receipt.duplicate else ""))
        with self._changed:
            for key in ("", event.scope):
                self._not_before.pop(key, None)
                self._failures.pop(key, None)
            self._changed.notify_all()
        if self._down:
            self._down = False
            self._say("info", f"the slot at {self._slot.url} is back; what waited is being delivered")

    def _again(self, event: Waiting, receipt: Receipt) -> None:
        """Keeps an event that may have arrived. When it comes again the slot asks its backend first, and sends only what is missing."""
        why = "; ".join(receipt.warnings) or "the slot does not say why"
        said = f"it is not known whether event {event.event_id} has arrived: {why}"
        error = SlotError(receipt.status, said, retryable=True, retry_after=receipt.retry_after or 0.0)
        if receipt.retry_after is None and event.attempts + 1 >= _UNCERTAIN_MOST:
            self._outbox.set_aside(event, str(error))
            self._say("error", f"{error}. It is set aside after {_UNCERTAIN_MOST} attempts ({self._queue})")
            return
        self._failed(event, error)

    def _failed(self, event: Waiting, error: SlotError) -> None:
        if error.code in _REFUSED or (error.code in _GIVE_UP and event.attempts + 1 >= _GIVE_UP_AFTER):
            self._outbox.set_aside(event, str(error))
            self._say("error", f"event {event.event_id} is not recorded, the slot refuses it: {error}. It is set aside ({self._queue})")
            return
        self._outbox.failed(event, str(error))
        # No slot, or one that lets nobody in, concerns every scope; a backend's trouble, or a slot that serves other scopes, may concern one.
        key = "" if error.code in ("unreachable", "slow", "unauthenticated") else event.scope
        with self._changed:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            pause = max(error.retry_after, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (failures - 1)))
            self._not_before[key] = self._clock() + pause
            self._changed.notify_all()
        if not self._down:
            self._down = True
            self._say("warning", f"turns wait in {self._outbox.folder} and are sent later: {error}")

    def _pausing(self, key: str) -> bool:
        with self._changed:
            return self._clock() < self._not_before.get(key, 0)

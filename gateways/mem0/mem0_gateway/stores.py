"""The embedded store behind one lock, and how many rows it has."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Locked:
    """A vector store of which one call runs at a time. Embedded Qdrant is not safe for threads: without this, acknowledged rows were gone after a reopening.

    The lock is around each call of the store and not around the LLM's, so adds still wait for their models side by side.
    """

    def __init__(self, store: Any, lock: threading.RLock) -> None:
        self._store = store
        self._lock = lock

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        if not callable(value) or name == "client":
            return value
        return self._guarded(value)

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                return call(*arguments, **named)

        return guarded

    def reset(self) -> Locked:
        with self._lock:
            self._store.reset()
        return self

    def rows(self) -> int:
        """How many rows there are."""
        with self._lock:
            return int(self._store.client.count(self._store.collection_name).count)


def has_entities(store: Any, collection: str) -> bool:
    """Whether an entity collection exists already: its rows outlive a deletion by a process that never opened it."""
    listed = store.list_cols()
    names = [getattr(c, "name", c) for c in getattr(listed, "collections", listed)]
    return f"{collection}_entities" in names

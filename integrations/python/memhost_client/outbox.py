"""Events on their way to the slot, on disk: a SQLite file that several agents may share.

An event is in it before the reply goes out, and leaves it when the slot has answered with a receipt. After a crash it is still there and is sent again; the
slot knows it by its event_id. Events of one scope leave in the order in which they came.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS waiting (seq INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL UNIQUE, scope TEXT NOT NULL, body BLOB NOT NULL,
    queued_at REAL NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS waiting_scope ON waiting (scope, seq);
CREATE TABLE IF NOT EXISTS aside (seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL, scope TEXT NOT NULL, body BLOB NOT NULL, queued_at REAL NOT NULL,
    error TEXT NOT NULL);
"""

# How many seconds to wait for other processes that write to the queue. Many of them, on a slow disk, take turns in no order.
_OTHERS_WRITE = 30.0
# How many events that the slot refused are kept for a person to look at.
_KEEP_ASIDE = 1000


class Full(Exception):
    """The queue has no room for the event."""


@dataclass(frozen=True)
class Waiting:
    """An event that waits. body is the event as JSON; attempts counts deliveries that failed."""

    seq: int
    event_id: str
    scope: str
    body: bytes
    attempts: int


class Outbox:
    """The queue in a folder, which is made where it is missing. Safe for several threads and several processes."""

    def __init__(self, folder: Path, *, max_events: int, max_bytes: int, clock: Callable[[], float] = time.time, say: Callable[[str], None] = print) -> None:
        self.folder = folder
        self.path = folder / "events.db"
        self._max_events, self._max_bytes, self._clock, self._say = max_events, max_bytes, clock, say
        self._lock = threading.Lock()
        self._ready = False

    def put(self, scope: str, event: dict[str, Any]) -> None:
        """Adds an event at the end; one with an event_id that is there already changes nothing. When it returns the event survives a power loss.

        Errors: Full, sqlite3.Error or OSError where the disk does not take it.
        """
        body = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
        with self._open() as db, _transaction(db):
            if db.execute("SELECT 1 FROM waiting WHERE event_id = ?", (event["event_id"],)).fetchone():
                return
            count, size = db.execute("SELECT count(*), coalesce(sum(length(body)), 0) FROM waiting").fetchone()
            if count >= self._max_events or size + len(body) > self._max_bytes:
                raise Full(f"{count} events with {size} bytes wait in {self.path}")
            db.execute("INSERT INTO waiting (event_id, scope, body, queued_at) VALUES (?, ?, ?, ?)", (event["event_id"], scope, body, self._clock()))

    def heads(self, skip: Sequence[str] = ()) -> list[Waiting]:
        """The oldest event of each scope, oldest first, without the scopes in skip."""
        with self._open() as db:
            rows = db.execute(
                "SELECT seq, event_id, scope, body, attempts FROM waiting WHERE seq IN (SELECT min(seq) FROM waiting GROUP BY scope) ORDER BY seq"
            ).fetchall()
        return [w for w in (Waiting(*row) for row in rows) if w.scope not in set(skip)]

    def done(self, event: Waiting) -> None:
        """The slot has it."""
        with self._open() as db, _transaction(db):
            db.execute("DELETE FROM waiting WHERE seq = ?", (event.seq,))

    def failed(self, event: Waiting, error: str) -> None:
        """A delivery failed; the event keeps its place."""
        with self._open() as db, _transaction(db):
            db.execute("UPDATE waiting SET attempts = attempts + 1, error = ? WHERE seq = ?", (error[:500], event.seq))

    def set_aside(self, event: Waiting, error: str) -> None:
        """The slot will never take it as it is: it leaves the queue and is kept to be looked at."""
        with self._open() as db, _transaction(db):
            db.execute("INSERT OR REPLACE INTO aside SELECT seq, event_id, scope, body, queued_at, ? FROM waiting WHERE seq = ?", (error[:500], event.seq))
            db.execute("DELETE FROM waiting WHERE seq = ?", (event.seq,))
            db.execute("DELETE FROM aside WHERE seq NOT IN (SELECT seq FROM aside ORDER BY seq DESC LIMIT ?)", (_KEEP_ASIDE,))

    def count(self, scope: str | None = None) -> int:
        """How many wait, of one scope or in all."""
        with self._open() as db:
            row = db.execute("SELECT count(*) FROM waiting" + ("" if scope is None else " WHERE scope = ?"), () if scope is None else (scope,)).fetchone()
        return int(row[0])

    def listing(self, table: str) -> list[tuple[str, str, float, str]]:
        """event_id, scope, time queued and last error of what is "waiting" or "aside"."""
        if table not in ("waiting", "aside"):
            raise ValueError(table)
        with self._open() as db:
            return [(str(r[0]), str(r[1]), float(r[2]), str(r[3])) for r in db.execute(f"SELECT event_id, scope, queued_at, error FROM {table} ORDER BY seq")]

    def retry_aside(self) -> int:
        """Puts what was set aside back at the end of the queue, in its order. Answers how many."""
        with self._open() as db, _transaction(db):
            done = db.execute(
                "INSERT OR IGNORE INTO waiting (event_id, scope, body, queued_at) SELECT event_id, scope, body, queued_at FROM aside ORDER BY seq"
            )
            db.execute("DELETE FROM aside")
            return done.rowcount

    @contextlib.contextmanager
    def sending(self) -> Generator[bool, None, None]:
        """The right to send, which one process has at a time: True where it is ours for the block. The system takes it back from a process that dies."""
        self._prepare()
        db = sqlite3.connect(self.folder / "sender.lock.db", timeout=0, isolation_level=None)
        ours = True
        try:
            try:
                db.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                ours = False
            yield ours
        finally:
            db.close()

    @contextlib.contextmanager
    def _open(self) -> Generator[sqlite3.Connection, None, None]:
        self._prepare()
        db = self._connect()
        try:
            yield db
        finally:
            db.close()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=_OTHERS_WRITE, isolation_level=None)
        db.execute("PRAGMA synchronous = FULL")
        return db

    def _prepare(self) -> None:
        """Makes the folder and the tables once. A damaged file is moved out of the way and kept."""
        with self._lock:
            if self._ready:
                return
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                self._create()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as e:
                kept = self.path.with_name(f"events.damaged-{int(self._clock() * 1000)}.db")
                self.path.rename(kept)
                # A journal of the damaged file would be played into the new one.
                journal = self.path.with_name(self.path.name + "-journal")
                if journal.exists():
                    journal.rename(kept.with_name(kept.name + "-journal"))
                self._say(f"the queue {self.path} is damaged ({e}); it is kept as {kept}, and a new one is begun")
                self._create()
            self._ready = True

    def _create(self) -> None:
        db = self._connect()
        try:
            db.executescript(_SCHEMA)
            # What people said stands in it.
            os.chmod(self.path, 0o600)  # noqa: PTH101
        finally:
            db.close()


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Generator[None, None, None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")

"""Queued writes on disk: an SQLite file that one process has open. What was acknowledged is in it before the answer leaves."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from .errors import GatewayError, not_found
from .settings import SettingsError

T = TypeVar("T")

STATES = ("queued", "running", "done", "failed", "cancelled", "interrupted")

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  group_id TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, names TEXT NOT NULL, digest TEXT NOT NULL,
  body TEXT, result TEXT, error TEXT, created_at TEXT NOT NULL, started_at TEXT, finished_at TEXT,
  UNIQUE (group_id, id)
);
CREATE INDEX IF NOT EXISTS jobs_state ON jobs (group_id, state, seq);
"""

INTERRUPTED = GatewayError("internal", "the gateway ended while the write ran", exception="", stored="unknown")


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def digest_of(kind: str, body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps([kind, body], sort_keys=True).encode()).hexdigest()


class Journal:
    """The jobs of all groups. Methods run in a thread, one after another; the ones named ``_`` are their blocking halves."""

    def __init__(self, path: Path, *, limit: int, keep_done: int) -> None:
        """Open the file, and mark what a killed process left running. Raises SettingsError when it cannot be had alone."""
        self._limit, self._keep = limit, keep_done
        self._lock = asyncio.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"queue.path: {path}: {error.strerror}") from None
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=0)
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")  # a second gateway would run the jobs twice
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("PRAGMA secure_delete=ON")  # the text of a job that is deleted is overwritten
            self._db.executescript(SCHEMA)
            self._db.execute(
                "UPDATE jobs SET state = 'interrupted', body = NULL, finished_at = ?, error = ? WHERE state = 'running'",
                (now(), json.dumps(INTERRUPTED.body())),
            )
        except sqlite3.Error as error:
            held = " (another gateway has it open)" if "locked" in str(error) else ""
            raise SettingsError(f"queue.path: {path}: {error}{held}") from None

    async def _run(self, work: Callable[[], T]) -> T:
        async with self._lock:
            return await asyncio.to_thread(work)

    async def add(self, group: str, job: str, kind: str, names: list[str], body: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Write a job down; the answer says whether it is new. One that failed, was cancelled or interrupted makes room for its like.

        Raises job_exists for the id of another request, and queue_full.
        """
        return await self._run(lambda: self._add(group, job, kind, names, body))

    def _add(self, group: str, job: str, kind: str, names: list[str], body: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        digest = digest_of(kind, body)
        known = self._db.execute("SELECT * FROM jobs WHERE group_id = ? AND id = ?", (group, job)).fetchone()
        if known is not None and known["state"] in ("queued", "running", "done"):
            if known["digest"] != digest:
                raise GatewayError("job_exists", "another request has this job_id", job_id=job)
            return self._wire(known), False
        waiting = self._db.execute("SELECT count(*) FROM jobs WHERE state = 'queued'").fetchone()[0]
        if waiting >= self._limit:
            raise GatewayError("queue_full", "too many jobs wait", limit=self._limit, scope="gateway")
        self._db.execute(
            "REPLACE INTO jobs (group_id, id, kind, state, names, digest, body, created_at) VALUES (?, ?, ?, 'queued', ?, ?, ?, ?)",
            (group, job, kind, json.dumps(names), digest, json.dumps(body), now()),
        )
        return self._one(group, job), True

    async def start(self, group: str, job: str) -> tuple[str, dict[str, Any]] | None:
        """Mark a job as running and give its kind and body; None if it waits no longer."""

        def work() -> tuple[str, dict[str, Any]] | None:
            row = self._db.execute("SELECT kind, body FROM jobs WHERE group_id = ? AND id = ? AND state = 'queued'", (group, job)).fetchone()
            if row is None:
                return None
            self._db.execute("UPDATE jobs SET state = 'running', started_at = ? WHERE group_id = ? AND id = ?", (now(), group, job))
            return row["kind"], json.loads(row["body"])

        return await self._run(work)

    async def finish(self, group: str, job: str, state: str, *, result: bytes | None = None, error: dict[str, Any] | None = None) -> None:
        """End a job. Its body goes; of done and cancelled ones the newest of the group stay."""

        def work() -> None:
            self._db.execute(
                "UPDATE jobs SET state = ?, body = NULL, result = ?, error = ?, finished_at = ? WHERE group_id = ? AND id = ?",
                (state, result.decode() if result is not None else None, json.dumps(error) if error is not None else None, now(), group, job),
            )
            self._db.execute(
                "DELETE FROM jobs WHERE group_id = ? AND state IN ('done', 'cancelled') AND seq <="
                " (SELECT seq FROM jobs WHERE group_id = ? AND state IN ('done', 'cancelled') ORDER BY seq DESC LIMIT 1 OFFSET ?)",
                (group, group, self._keep),
            )

        await self._run(work)

    async def cancel_group(self, group: str) -> int:
        """Cancel what waits of a group and forget what is finished: its texts go with the group. Gives the number of cancelled jobs."""

        def work() -> int:
            self._db.execute("DELETE FROM jobs WHERE group_id = ? AND state NOT IN ('queued', 'running')", (group,))
            return self._db.execute(
                "UPDATE jobs SET state = 'cancelled', body = NULL, finished_at = ? WHERE group_id = ? AND state = 'queued'", (now(), group)
            ).rowcount

        return await self._run(work)

    async def delete(self, group: str, job: str) -> dict[str, Any]:
        """Forget a job. Raises not_found, and job_running."""

        def work() -> dict[str, Any]:
            found = self._one(group, job)
            if found["state"] == "running":
                raise GatewayError("job_running", "the job runs; it ends by itself", job_id=job)
            self._db.execute("DELETE FROM jobs WHERE group_id = ? AND id = ?", (group, job))
            return found

        return await self._run(work)

    async def get(self, group: str, job: str) -> dict[str, Any]:
        """A job with its result. Raises not_found."""
        return await self._run(lambda: self._one(group, job))

    async def jobs(self, group: str, state: str | None, limit: int) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """The group's jobs, oldest first, without their results, and how many there are by state."""

        def work() -> tuple[list[dict[str, Any]], dict[str, int]]:
            where, values = ("AND state = ?", [state]) if state else ("", [])
            rows = self._db.execute(f"SELECT * FROM jobs WHERE group_id = ? {where} ORDER BY seq LIMIT ?", [group, *values, limit]).fetchall()
            return [{**self._wire(row), "result": None} for row in rows], self._counts(group)

        return await self._run(work)

    async def counts(self, group: str | None = None) -> dict[str, int]:
        """Jobs by state, of a group or of all."""
        return await self._run(lambda: self._counts(group))

    async def waiting(self) -> list[tuple[str, str]]:
        """Group and id of what waits, in order: what a start takes up again."""
        return await self._run(
            lambda: [(row["group_id"], row["id"]) for row in self._db.execute("SELECT group_id, id FROM jobs WHERE state = 'queued' ORDER BY seq")]
        )

    def close(self) -> None:
        self._db.close()

    def _counts(self, group: str | None) -> dict[str, int]:
        where, values = ("WHERE group_id = ?", [group]) if group is not None else ("", [])
        found = dict(self._db.execute(f"SELECT state, count(*) FROM jobs {where} GROUP BY state", values).fetchall())
        return {state: found.get(state, 0) for state in STATES}

    def _one(self, group: str, job: str) -> dict[str, Any]:
        row = self._db.execute("SELECT * FROM jobs WHERE group_id = ? AND id = ?", (group, job)).fetchone()
        if row is None:
            raise not_found("job", job)
        return self._wire(row)

    def _wire(self, row: sqlite3.Row) -> dict[str, Any]:
        position = None
        if row["state"] == "queued":
            ahead = self._db.execute("SELECT count(*) FROM jobs WHERE group_id = ? AND state = 'queued' AND seq <= ?", (row["group_id"], row["seq"]))
            position = ahead.fetchone()[0]
        return {
            "id": row["id"],
            "group_id": row["group_id"],
            "kind": row["kind"],
            "state": row["state"],
            "position": position,
            "names": json.loads(row["names"]),
            "created_at": row["created_at"],
            "started_at": row["started_at"],
            "finished_at": row["finished_at"],
            "result": json.loads(row["result"]) if row["result"] else None,
            "error": json.loads(row["error"]) if row["error"] else None,
        }

"""The flow of a turn with a session manager of our own: nothing raises into the agent, nothing takes longer than configured."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import FakeSlot, problem
from loguru import logger
from nanobot.runtime_context import RuntimeContextBlock, append_runtime_context, public_history_message

from memhost_nanobot.config import Settings
from memhost_nanobot.memory import Memory


class Sessions:
    """Nanobot's session manager, as far as it is used."""

    def __init__(self) -> None:
        self.session = SimpleNamespace(messages=[])
        self.saved = 0

    def get_cached(self, key: str) -> Any:
        return self.session if key == "cli:t" else None

    def save(self, session: Any) -> None:
        self.saved += 1


@pytest.fixture
def log() -> Generator[list[str], None, None]:
    lines: list[str] = []
    number = logger.add(lambda m: lines.append(f"{m.record['level'].name} {m.record['message']}"), level="DEBUG")
    yield lines
    logger.remove(number)


def memory(folder: Path, slot: FakeSlot | str, **more: Any) -> tuple[Memory, Sessions]:
    sessions = Sessions()
    settings = Settings(server=slot if isinstance(slot, str) else slot.url, home=folder, **{"fresh_ms": 2000, **more})
    return Memory(settings, sessions, public_history_message), sessions


def request(text: str = "hello", turn: str = "cli:t:1", **more: Any) -> SimpleNamespace:
    base = {"channel": "cli", "chat_id": "direct", "session_key": "cli:t", "sender_id": "user", "turn_id": turn, "original_user_text": text, "attributes": {}}
    return SimpleNamespace(**{**base, **more})


def persisted(turn: str = "cli:t:1", key: str = "cli:t") -> SimpleNamespace:
    return SimpleNamespace(context=SimpleNamespace(session_key=key), turn_id=turn, sender_id="user")


async def whole_turn(m: Memory, sessions: Sessions, text: str, turn: str) -> str:
    """A turn as Nanobot plays it. Answers the context."""
    m.turn_started(persisted(turn))
    context = await m.before_turn(request(text, turn))
    blocks = [RuntimeContextBlock("memhost", context.text)] if context else []
    content, marker = append_runtime_context(text, blocks)
    sessions.session.messages.append({"role": "user", "content": content, **({"_runtime_context": marker} if marker else {})})
    sessions.session.messages.append({"role": "assistant", "content": "answer to " + text})
    await m.after_turn(persisted(turn))
    return context.text if context else ""


def test_what_was_said_in_one_turn_is_context_in_the_next(tmp_path: Path, slot: FakeSlot) -> None:
    m, sessions = memory(tmp_path, slot)

    async def talk() -> list[str]:
        return [await whole_turn(m, sessions, "My cat is called Zorvex.", "cli:t:1"), await whole_turn(m, sessions, "And?", "cli:t:2")]

    first, second = asyncio.run(talk())
    assert first == ""
    assert "Zorvex" in second
    assert [e["turn_id"] for e in slot.wait_for_events(2)] == ["cli:t:1", "cli:t:2"]
    assert "memory-context" not in str(slot.events)
    assert "memory-context" not in str(sessions.session.messages)
    assert sessions.saved == 1
    assert slot.asked[1] == {
        "query": "And?",
        "scope": {"run_id": "nanobot", "persona_id": "cli:user"},
        "session_id": "cli:t",
        "budget": {"max_tokens": 2000},
    }


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (problem(503, "unavailable", retryable=True), "unavailable: made to fail"),
        (problem(500, "internal"), "internal: made to fail"),
        (lambda body: (200, b"[]", "application/json"), "not as a memhost slot does"),
        (lambda body: (200, b'{"formatted_context": 7}', "application/json"), "not as a memhost slot does"),
        (lambda body: None, "unreachable"),
    ],
)
def test_without_a_context_the_turn_goes_on_and_the_log_says_why(tmp_path: Path, slot: FakeSlot, log: list[str], answer: Any, said: str) -> None:
    slot.fail["/v1/retrieve"] = answer
    m, sessions = memory(tmp_path, slot)
    assert asyncio.run(whole_turn(m, sessions, "hi", "cli:t:1")) == ""
    (line,) = [line for line in log if line.startswith("WARNING")]
    assert line.startswith("WARNING memhost: no memory context in this turn of cli:t: ")
    assert said in line
    slot.wait_for_events(1)


def test_a_slot_that_hangs_costs_a_turn_no_more_than_configured(tmp_path: Path, slot: FakeSlot, log: list[str]) -> None:
    slot.gate.clear()
    m, sessions = memory(tmp_path, slot, context_timeout_ms=50, exit_timeout_ms=50)
    # The gate is closed for the whole turn: that it ends at all shows that it does not wait for the slot.
    assert asyncio.run(whole_turn(m, sessions, "hi", "cli:t:1")) == ""
    assert any("no answer of" in line for line in log)
    assert m.outbox.count() == 1
    slot.gate.set()
    slot.wait_for_events(1)


def test_a_disk_that_hangs_costs_a_reply_no_more_than_configured(tmp_path: Path, slot: FakeSlot, log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    m, sessions = memory(tmp_path, slot, record_timeout_ms=50)
    hangs = threading.Event()
    put = m.outbox.put

    def slow(*args: Any, **more: Any) -> None:
        hangs.wait(20)
        put(*args, **more)

    monkeypatch.setattr(m.outbox, "put", slow)
    asyncio.run(whole_turn(m, sessions, "hi", "cli:t:1"))
    assert any("is not on disk after 50 ms" in line for line in log)
    assert slot.events == []
    hangs.set()
    slot.wait_for_events(1)
    m.close()


def test_a_disk_that_fails_is_said_and_harms_nobody(tmp_path: Path, slot: FakeSlot, log: list[str]) -> None:
    (tmp_path / "file").write_text("")
    slot.context = '<memory-context backend="b" scope="r/u">x</memory-context>'
    m, sessions = memory(tmp_path, slot, queue_dir=str(tmp_path / "file" / "queue"))
    assert asyncio.run(whole_turn(m, sessions, "hi", "cli:t:1")) == slot.context
    assert any(line.startswith("ERROR") and "does not take it" in line for line in log)


def test_a_full_queue_is_said(tmp_path: Path, slot: FakeSlot, log: list[str]) -> None:
    slot.fail["/v1/events"] = problem(503, "unavailable", retryable=True)
    m, sessions = memory(tmp_path, slot, queue_max_events=1)

    async def talk() -> None:
        for n in "12":
            await whole_turn(m, sessions, "hi", "cli:t:" + n)

    asyncio.run(talk())
    assert any("the queue is full" in line for line in log)
    assert m.outbox.count() == 1


def test_a_turn_of_which_there_is_no_request_is_not_recorded(tmp_path: Path, slot: FakeSlot) -> None:
    m, sessions = memory(tmp_path, slot)
    sessions.session.messages.append({"role": "user", "content": "/status", "_command": True})
    asyncio.run(m.after_turn(persisted()))
    assert m.outbox.count() == 0


def test_an_update_that_changes_the_request_or_the_event_harms_nobody(tmp_path: Path, slot: FakeSlot, log: list[str]) -> None:
    m, _ = memory(tmp_path, slot)
    assert asyncio.run(m.before_turn(object())) is None
    asyncio.run(m.after_turn(object()))
    m.turn_started(object())
    assert [line.split()[0] for line in log] == ["WARNING", "ERROR", "ERROR"]


def test_stopping_a_turn_is_not_swallowed(tmp_path: Path, slot: FakeSlot) -> None:
    slot.gate.clear()
    m, _ = memory(tmp_path, slot)

    async def stop() -> None:
        task = asyncio.create_task(m.before_turn(request()))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stop())


def test_contexts_of_a_turn_that_broke_off_are_gone_before_the_next_prompt(tmp_path: Path, slot: FakeSlot) -> None:
    m, sessions = memory(tmp_path, slot)
    content, marker = append_runtime_context("hi", [RuntimeContextBlock("memhost", "<memory-context a>b</memory-context>")])
    sessions.session.messages.append({"role": "user", "content": content, "_runtime_context": marker})
    m.turn_started(persisted())
    assert sessions.session.messages == [{"role": "user", "content": "hi"}]


def test_read_only_reads_and_records_nothing(tmp_path: Path, slot: FakeSlot) -> None:
    m, sessions = memory(tmp_path, slot, read_only=True)
    slot.context = '<memory-context backend="b" scope="r/u">x</memory-context>'
    assert asyncio.run(whole_turn(m, sessions, "hi", "cli:t:1")) == slot.context
    assert m.outbox.count() == 0
    assert "memory-context" not in str(sessions.session.messages)


def test_turns_that_never_end_do_not_pile_up(tmp_path: Path, slot: FakeSlot) -> None:
    m, _ = memory(tmp_path, slot)

    async def many() -> None:
        for n in range(520):
            await m.before_turn(request(turn=f"t{n}", sender_id="cron"))

    asyncio.run(many())
    assert len(m._turns) == 500


def test_the_last_context_is_said_to_be_incomplete_when_earlier_turns_are_late(tmp_path: Path, slot: FakeSlot, log: list[str]) -> None:
    slot.fail["/v1/events"] = problem(503, "unavailable", retryable=True)
    m, sessions = memory(tmp_path, slot)

    async def talk() -> None:
        for n in "12":
            await whole_turn(m, sessions, "hi", "cli:t:" + n)

    asyncio.run(talk())
    assert any("1 earlier turns of this memory are still on their way" in line for line in log)

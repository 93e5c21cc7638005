"""One conversation for every framework: nothing is lost, doubled or crossed, and the test finds it where recording, the queue or the scope is off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import RunningSlot
from talkers import RUN, TALKERS, Talker

from memhost_client import Memory, Scope

Make = Callable[[], Talker]


@pytest.fixture(params=list(TALKERS))
def make(request: pytest.FixtureRequest, slot: RunningSlot, tmp_path: Path) -> Iterator[Make]:
    made: list[Talker] = []

    def one() -> Talker:
        talker = TALKERS[request.param](Memory(tmp_path / "queue", server=slot.server, timeout=20.0, fresh=10.0))
        made.append(talker)
        return talker

    yield one
    for talker in made:
        talker.memory.close(0.1)


def check(slot: RunningSlot, want: dict[str, list[str]]) -> None:
    """0 lost, 0 doubled, 0 crossed."""
    slot.command("swap", "full_history")
    for user, said in want.items():
        assert slot.said(RUN, user) == said


async def converse(talker: Talker, slot: RunningSlot) -> dict[str, list[str]]:
    """24 turns of two people, with an outage, a model that fails and tools."""
    want: dict[str, list[str]] = {"ann": [], "bob": []}
    slot.command("swap", "full_history")
    for n in range(24):
        user = ("ann", "bob")[n % 2]
        if n == 8:
            slot.stop()
        if n == 12:
            slot.start()
        text = f"{'TOOL ' if n % 5 == 4 else ''}fact {n} of {user}"
        talker.prompts.clear()
        assert await talker.say(user, f"{user}-{n // 12}", text) == f"ANSWER[{text}]"
        want[user].append(text)
        other = ("bob", "ann")[n % 2]
        assert f" of {other}" not in "".join(talker.prompts), "one person's words are in another's prompt"
    return want


async def test_24_turns(make: Make, slot: RunningSlot) -> None:
    talker = make()
    want = await converse(talker, slot)
    assert talker.memory.close(30) == 0
    check(slot, want)


async def test_another_session_knows_and_the_stored_one_is_clean(make: Make, slot: RunningSlot) -> None:
    talker = make()
    await talker.say("ann", "monday", "My cat is called Zorvex.")
    assert await talker.say("ann", "tuesday", "TOOL What is my cat called?") == "ANSWER[TOOL What is my cat called?]"
    assert len(talker.prompts) == 3
    assert all("Zorvex" in p and p.count("<memory-context") == 1 for p in talker.prompts[1:]), "also while the model calls tools"
    await talker.say("ann", "tuesday", "Thanks.")
    assert talker.prompts[-1].count("<memory-context") == 1
    assert "memory-context" not in await talker.stored("ann", "tuesday")
    assert talker.memory.close(30) == 0
    text = slot.command("retrieve", "x", "--run", RUN, "--user", "ann")
    assert "TOOLRESULT" not in text
    assert text.count("<memory-context") == 1, "nothing is recorded that the memory itself said"


async def test_providers_are_swapped_while_the_agent_runs(make: Make, slot: RunningSlot) -> None:
    talker = make()
    for turn, provider in enumerate(("no_memory", "full_history", "bm25", "full_history")):
        # A turn that is still on its way when the provider is swapped is the next provider's.
        assert talker.memory.sender.settle(Scope(RUN, "ann").key, 30) == 0
        slot.command("swap", provider)
        for n in range(6):
            text = f"{provider} likes tea number {n}"
            talker.prompts.clear()
            assert await talker.say("ann", f"session {turn}", text) == f"ANSWER[{text}]"
            shown = "".join(talker.prompts)
            assert provider != "no_memory" or "<memory-context" not in shown
            assert provider == "no_memory" or n == 0 or f'<memory-context backend="{provider}"' in shown
    assert talker.memory.close(30) == 0
    assert len(slot.said(RUN, "ann")) == 12, "what full_history was told is there when it comes back, and nothing of the others"


async def test_a_model_that_fails_records_no_answer(make: Make, slot: RunningSlot) -> None:
    talker = make()
    with pytest.raises(Exception, match="the model is down"):
        await talker.say("ann", "s", "MODELFAIL")
    assert slot.said(RUN, "ann") == []


async def test_without_recording_the_conversation_is_found_lost(make: Make, slot: RunningSlot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memory, "record_now", lambda *args: None)
    talker = make()
    want = await converse(talker, slot)
    with pytest.raises(AssertionError):
        check(slot, want)


async def test_without_the_queue_the_outage_is_found(make: Make, slot: RunningSlot, monkeypatch: pytest.MonkeyPatch) -> None:
    def direct(self: Memory, scope: str, event: dict[str, object], **more: object) -> None:
        import contextlib
        import json

        with contextlib.suppress(Exception):
            self.slot.record(json.dumps(event).encode(), 5)

    talker = make()
    monkeypatch.setattr(talker.memory.outbox, "put", lambda scope, event: direct(talker.memory, scope, event))
    want = await converse(talker, slot)
    with pytest.raises(AssertionError):
        check(slot, want)


async def test_without_scopes_the_crossing_is_found(make: Make, slot: RunningSlot, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Memory.context_now
    monkeypatch.setattr(Memory, "context_now", lambda self, query, scope, session="": real(self, query, Scope(RUN, "ann"), session))
    talker = make()
    with pytest.raises(AssertionError, match="one person's words are in another's prompt"):
        await converse(talker, slot)


async def test_parallel_sessions(make: Make, slot: RunningSlot) -> None:
    talker = make()
    await asyncio.gather(*(talker.say(f"user {n}", f"s{n}", f"hello from {n}") for n in range(8)))
    assert talker.memory.close(30) == 0
    for n in range(8):
        assert slot.said(RUN, f"user {n}") == [f"hello from {n}"]

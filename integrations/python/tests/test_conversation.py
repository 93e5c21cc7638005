"""One conversation for every framework: nothing is lost, doubled or crossed, and the test finds it where recording, the queue or the scope is off."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import RunningSlot
from conversation import RUN, TURNS, USERS, WITHOUT, check, wrong_in_archive, wrong_with
from talkers import TALKERS, Talker

from memhost_client import Memory, Scope

Make = Callable[..., Talker]


@pytest.fixture(params=list(TALKERS))
def make(request: pytest.FixtureRequest, slot: RunningSlot, tmp_path: Path) -> Iterator[Make]:
    made: list[Talker] = []

    def one(queue: str = "queue") -> Talker:
        talker = TALKERS[request.param](Memory(tmp_path / queue, server=slot.server, timeout=20.0, fresh=10.0))
        made.append(talker)
        return talker

    yield one
    for talker in made:
        talker.memory.close(0.1)


async def hold(talker: Talker, slot: RunningSlot) -> list[str]:
    """Holds the conversation of integrations/testdata, whose README says what its fields are, and gives what is wrong with what was shown and recorded."""
    found: list[str] = []
    for n, turn in enumerate(TURNS):
        if turn.get("slot") == "stop":
            slot.stop()
        if turn.get("slot") == "start":
            slot.start()
        if "provider" in turn:
            for user in USERS:  # what is on its way is this provider's
                talker.memory.sender.settle(Scope(RUN, user).key, 30)
            slot.command("swap", turn["provider"])
        user, text = turn["user"], turn["text"]
        talker.prompts.clear()
        assert await talker.say(user, turn["session"], text) == f"ANSWER[{text}]"
        assert len(talker.prompts) == (2 if text.startswith("TOOL") else 1)
        for prompt in talker.prompts:
            found += wrong_with(n, prompt)
    if waiting := talker.memory.close(30):
        found.append(f"lost: {waiting} turns wait")
    return found + wrong_in_archive(slot.command("archive", "export"))


def direct(memory: Memory, event: dict[str, object]) -> None:
    """Sends an event at once, or never."""
    with contextlib.suppress(Exception):
        memory.slot.record(json.dumps(event).encode(), 5)


@pytest.mark.parametrize(("without", "want"), WITHOUT)
async def test_24_turns(make: Make, slot: RunningSlot, monkeypatch: pytest.MonkeyPatch, without: str, want: str) -> None:
    talker = make()
    if without == "recording":
        monkeypatch.setattr(Memory, "record_now", lambda *args: None)
    if without == "queue":
        talker.whole = False  # ADK's sessions, added again, make up for a queue
        monkeypatch.setattr(talker.memory.outbox, "put", lambda scope, event: direct(talker.memory, event))
    if without == "scope":
        real = Memory.context_now
        monkeypatch.setattr(Memory, "context_now", lambda self, query, scope, session="": real(self, query, Scope(RUN, "ann"), session))
    check(await hold(talker, slot), want)


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


async def test_parallel_sessions(make: Make, slot: RunningSlot) -> None:
    talker = make()
    await asyncio.gather(*(talker.say(f"user {n}", f"s{n}", f"hello from {n}") for n in range(8)))
    assert talker.memory.close(30) == 0
    for n in range(8):
        assert slot.said(RUN, f"user {n}") == [f"hello from {n}"]


async def test_two_agents_on_one_scope(make: Make, slot: RunningSlot) -> None:
    first, second = make(), make("other")
    for n in range(6):
        await (first, second)[n % 2].say("ann", "the same session", f"turn {n}")
    assert (first.memory.close(30), second.memory.close(30)) == (0, 0)
    assert sorted(slot.said(RUN, "ann")) == [f"turn {n}" for n in range(6)]


async def test_a_slot_that_stays_down_fills_the_queue_whose_oldest_stay(
    make: Make, slot: RunningSlot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    talker = make()
    monkeypatch.setattr(talker.memory.outbox, "_max_events", 4)
    slot.stop()
    with caplog.at_level(logging.WARNING, "memhost"):
        for n in range(6):
            assert await talker.say("ann", "s", f"turn {n}") == f"ANSWER[turn {n}]"
    assert len({line.split()[2] for line in caplog.messages if "is not recorded, the queue is full" in line}) == 2, "each turn is named"
    assert sum("no memory context in this turn" in line for line in caplog.messages) == 6
    slot.start()
    assert talker.memory.close(30) == 0
    assert slot.said(RUN, "ann") == [f"turn {n}" for n in range(4)]

"""The real nanobot-ai with the plugin installed, a fake slot, and a model that logs its prompts."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from agent import Agent, memory
from conftest import FakeSlot, Model, problem
from loguru import logger
from nanobot.bus.events import InboundMessage

from memhost_nanobot import native
from memhost_nanobot.cli import main

Memhost = dict[str, Any]


@pytest.fixture
def agent(tmp_path: Path, model: Model, slot: FakeSlot, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("NANOBOT_MEMHOST_CONFIG", "")
    return Agent(tmp_path / "agent", model, {"server": slot.url, "fresh_ms": 2000})


@pytest.fixture
def log() -> Generator[list[str], None, None]:
    lines: list[str] = []
    number = logger.add(lambda m: lines.append(f"{m.record['level'].name} {m.record['message']}"), level="DEBUG", filter=lambda r: "memhost" in r["message"])
    yield lines
    logger.remove(number)


def test_context_goes_into_the_prompt_and_the_turn_into_memory(agent: Agent, slot: FakeSlot, model: Model) -> None:
    async def talk() -> list[str]:
        bot = agent.bot()
        return [(await bot.run(text, session_key="sdk:s")).content for text in ("My cat is called Zorvex.", "And my cat?", "Thanks.")]

    assert asyncio.run(talk())[1] == "ANSWER[And my cat?]"
    events = slot.wait_for_events(3)
    assert [[m["content"] for m in e["messages"]] for e in events[:2]] == [
        ["My cat is called Zorvex.", "ANSWER[My cat is called Zorvex.]"],
        ["And my cat?", "ANSWER[And my cat?]"],
    ]
    assert agent.last_user(0) == "My cat is called Zorvex."
    assert agent.last_user(1) == 'And my cat?\n\n<memory-context backend="fake" scope="nanobot/cli:user">\n- My cat is called Zorvex.\n</memory-context>'
    # A context stays in its turn: the third prompt has one, though two were given before, and the stored session has none.
    assert json.dumps(model.requests[2]["messages"]).count("<memory-context") == 1
    stored = [p.read_text() for p in agent.folder.rglob("*.jsonl")]
    assert any("Zorvex" in text for text in stored)
    assert not any("memory-context" in text for text in stored)
    assert "memory_search" in [t["function"]["name"] for t in model.requests[0]["tools"]]


def test_the_context_stays_while_the_model_calls_tools_and_is_asked_for_once(agent: Agent, slot: FakeSlot, model: Model) -> None:
    async def talk() -> None:
        bot = agent.bot()
        await bot.run("My cat is called Zorvex.", session_key="sdk:s")
        await bot.run('CALL:memory_search {"query": "cat"}', session_key="sdk:s")

    asyncio.run(talk())
    assert len(model.requests) == 3
    assert agent.last_user(1) == agent.last_user(2)
    assert [a["query"] for a in slot.asked] == ["My cat is called Zorvex.", 'CALL:memory_search {"query": "cat"}', "cat"]
    assert slot.asked[2]["budget"] == {"max_tokens": 2000}
    assert model.requests[2]["messages"][-1]["content"].startswith('<memory-context backend="fake" scope="nanobot/cli:user">')
    event = slot.wait_for_events(2)[1]
    assert [m["role"] for m in event["messages"]] == ["user", "assistant"]
    assert "memory-context" not in json.dumps(event)


def test_a_group_chat_has_one_session_and_a_memory_for_each(agent: Agent, slot: FakeSlot) -> None:
    async def talk() -> None:
        bot = agent.bot()
        group: dict[str, Any] = {"session_key": "telegram:g1", "channel": "telegram", "chat_id": "g1"}
        await bot.run("I am Ann and like oolong.", sender_id="ann", **group)
        await bot.run("I am Bob and like mate.", sender_id="bob", **group)
        await bot.run("What do I like?", sender_id="ann", **group)
        await bot.run("And I?", sender_id="bob", **group)
        await bot.run('CALL:memory_search {"query": "ann", "scope": "nanobot/telegram:ann"}', sender_id="bob", **group)

    asyncio.run(talk())
    assert [e["user_id"] for e in slot.wait_for_events(5)][:2] == ["telegram:ann", "telegram:bob"]
    assert "oolong" in agent.last_user(2)
    assert "mate" not in agent.last_user(2)
    assert "mate" in agent.last_user(3)
    assert "oolong" not in agent.last_user(3)
    assert all("telegram:ann" not in json.dumps(m) for r in agent.model.requests[3:] for m in r["messages"] if m["role"] in ("tool",))
    assert slot.asked[-1]["scope"]["persona_id"] == "telegram:bob"


def test_what_was_searched_for_one_person_reaches_no_later_prompt(agent: Agent, slot: FakeSlot, model: Model) -> None:
    async def talk() -> None:
        bot = agent.bot()
        group: dict[str, Any] = {"session_key": "telegram:g1", "channel": "telegram", "chat_id": "g1"}
        slot.context = '<memory-context backend="fake" scope="nanobot/telegram:ann">\nthe door code is 4711\n</memory-context>'
        await bot.run('CALL:memory_search {"query": "door code"}', sender_id="ann", **group)
        slot.context = ""
        await bot.run("What is the door code?", sender_id="bob", **group)

    asyncio.run(talk())
    assert "4711" in model.requests[1]["messages"][-1]["content"], "in its own turn the model has it"
    assert "4711" not in json.dumps(model.requests[2]["messages"])
    assert not any("4711" in p.read_text() for p in agent.folder.rglob("*.jsonl"))


@pytest.mark.parametrize("how", [{"ephemeral": True}, {"attributes": {"memhost": {"read_only": True}}}], ids=["ephemeral", "read_only"])
def test_ephemeral_and_test_runs_read_and_leave_no_trace(agent: Agent, slot: FakeSlot, how: dict[str, Any]) -> None:
    slot.context = '<memory-context backend="fake" scope="r/u">\nZorvex\n</memory-context>'

    async def talk() -> int:
        bot = agent.bot()
        await bot.run("Which cat?", session_key="sdk:s", **how)
        return int(memory(bot).outbox.count())

    assert asyncio.run(talk()) == 0
    assert "Zorvex" in agent.last_user()
    assert slot.events == []


def test_a_slot_that_is_down_harms_nobody_and_gets_everything_later_once(agent: Agent, slot: FakeSlot, model: Model, log: list[str]) -> None:
    slot.fail["/v1/retrieve"] = slot.fail["/v1/events"] = lambda body: None

    async def talk() -> Any:
        bot = agent.bot()
        answers = [(await bot.run(f"Fact {n}.", session_key="sdk:s")).content for n in range(3)]
        assert answers == [f"ANSWER[Fact {n}.]" for n in range(3)]
        return memory(bot)

    left = asyncio.run(talk())
    assert all("memory-context" not in json.dumps(r) for r in model.requests)
    assert len([line for line in log if "no memory context in this turn of sdk:s: unreachable" in line]) == 3
    assert left.outbox.count() == 3
    slot.fail.clear()
    assert left.sender.close(10) == 0
    assert [e["messages"][0]["content"] for e in slot.events] == ["Fact 0.", "Fact 1.", "Fact 2."]
    assert len(slot.arrivals) == 3


def test_a_slot_that_hangs_does_not_hold_the_agent(agent: Agent, slot: FakeSlot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NANOBOT_MEMHOST_CONTEXT_TIMEOUT_MS", "50")
    slot.gate.clear()

    async def talk() -> str:
        return (await agent.bot().run("hi", session_key="sdk:s")).content

    assert asyncio.run(talk()) == "ANSWER[hi]"
    slot.gate.set()
    slot.wait_for_events(1)


def test_two_agents_share_one_scope(agent: Agent, slot: FakeSlot, model: Model, tmp_path: Path) -> None:
    agents = [Agent(tmp_path / name, model, {"server": slot.url, "user": "ann", "fresh_ms": 2000}) for name in ("desk", "phone")]

    async def talk() -> None:
        bots = [a.bot() for a in agents]
        for n in range(4):
            await bots[n % 2].run(f"Fact {n}.", session_key="sdk:s")
            slot.wait_for_events(n + 1)

    asyncio.run(talk())
    assert [e["messages"][0]["content"] for e in slot.events] == [f"Fact {n}." for n in range(4)]
    assert len({e["event_id"] for e in slot.events}) == 4
    assert all(f"Fact {n}." in agents[0].last_user() for n in range(3))


def test_a_failed_model_call_and_a_command_are_not_recorded(agent: Agent, slot: FakeSlot) -> None:
    async def talk() -> None:
        bot = agent.bot()
        for text in ("MODELFAIL", "/status", "A real turn."):
            await bot.run(text, session_key="sdk:s")

    asyncio.run(talk())
    (event,) = slot.wait_for_events(1)
    assert event["messages"][0]["content"] == "A real turn."


def test_a_follow_up_while_the_agent_is_busy_is_in_the_same_turn(agent: Agent, slot: FakeSlot, model: Model) -> None:
    def message(text: str, sender: str) -> InboundMessage:
        return InboundMessage(channel="telegram", sender_id=sender, chat_id="g", content=text)

    async def talk() -> None:
        bot = agent.bot()
        loop = bot._loop
        running = asyncio.create_task(loop.run())
        await loop.bus.publish_inbound(message("SLOW first", "ann"))
        await asyncio.to_thread(model.busy.wait, 20)
        await loop.bus.publish_inbound(message("second", "bob"))
        while loop.bus.inbound_size:
            await asyncio.sleep(0.01)
        model.go.set()
        await asyncio.to_thread(slot.wait_for_events, 2)
        loop.stop()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(talk())
    assert [(e["user_id"], e["messages"][0]["content"]) for e in slot.events] == [("telegram:ann", "SLOW first"), ("telegram:bob", "second")]
    assert slot.events[0]["turn_id"] == slot.events[1]["turn_id"]


@pytest.mark.parametrize(("block", "said"), [({"sever": "x"}, "unknown key 'sever', did you mean 'server'?"), ({"user": "{who}"}, "user: unknown field {who}")])
def test_a_wrong_configuration_is_one_clear_line(agent: Agent, log: list[str], block: Memhost, said: str) -> None:
    (agent.folder / "memhost.json").write_text(json.dumps(block))

    async def talk() -> str:
        return (await agent.bot().run("hi", session_key="sdk:s")).content

    assert asyncio.run(talk()) == "ANSWER[hi]"
    errors = [line for line in log if line.startswith("ERROR")]
    assert len(errors) == 1
    assert said in errors[0]
    assert "memory_search" not in json.dumps(agent.model.requests[0]["tools"])


def test_it_can_be_switched_off(agent: Agent, slot: FakeSlot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NANOBOT_MEMHOST_ENABLED", "no")
    asyncio.run(agent.bot().run("hi", session_key="sdk:s"))
    assert (slot.asked, slot.events) == ([], [])


# One process a turn, as `nanobot agent -m` is used.


def test_one_shot_delivers_before_it_ends_and_the_next_process_knows(agent: Agent, slot: FakeSlot) -> None:
    agent.cli("My cat is called Zorvex.")
    assert len(slot.events) == 1
    agent.cli("And my cat?", session="cli:other")
    assert "Zorvex" in agent.last_user()
    assert len(slot.arrivals) == 2


def test_one_shot_with_a_hanging_slot_ends_and_the_turn_waits_on_disk(agent: Agent, slot: FakeSlot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NANOBOT_MEMHOST_CONTEXT_TIMEOUT_MS", "300")
    monkeypatch.setenv("NANOBOT_MEMHOST_EXIT_TIMEOUT_MS", "300")
    slot.gate.clear()
    done = agent.cli("hi")
    assert "ANSWER[hi]" in done.stdout
    assert "no memory context in this turn of cli:t: slow" in done.stderr
    assert "1 turns wait in" in done.stderr
    slot.gate.set()
    # What the killed request left at the slot and what is sent now are one event.
    assert main(["-c", str(agent.config), "queue", "--send"]) == 0
    assert len(slot.events) == 1


MOVED = """
import nanobot.sdk.clients
import nanobot.bus.runtime_events as events
async def elsewhere(self, *args, **more): pass
events.RuntimeEventPublisher.session_turn_persisted = elsewhere
del events.SessionTurnPersisted
"""


def test_an_update_that_moved_an_extension_point_is_one_clear_line_and_harms_nobody(agent: Agent, slot: FakeSlot, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(MOVED)
    done = agent.cli("hi", python_path=str(tmp_path))
    assert "ANSWER[hi]" in done.stdout
    said = [line for line in done.stderr.splitlines() if "memhost" in line]
    assert len(said) == 1
    assert "has no nanobot.bus.runtime_events.SessionTurnPersisted. The agent runs on without the memory slot" in said[0]
    assert "Traceback" not in done.stderr
    assert (slot.asked, slot.events) == ([], [])


# Nanobot's own memory.


def test_with_native_memory_off_nothing_of_it_is_in_the_prompt(
    agent: Agent, slot: FakeSlot, model: Model, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NANOBOT_MEMHOST_NATIVE_MEMORY", "off")
    slot.context = '<memory-context backend="fake" scope="r/u">\nZorvex\n</memory-context>'

    async def talk() -> None:
        bot = agent.bot()
        await bot.run("hi", session_key="sdk:s")

    asyncio.run(talk())
    assert not [line for line in log if "native_memory is off" in line]
    assert "Zorvex" in agent.last_user(), "there is context without the tool"
    assert len(slot.wait_for_events(1)) == 1
    assert "# Memory" not in model.requests[0]["messages"][0]["content"]
    names = sorted(t["function"]["name"] for t in model.requests[0]["tools"])
    assert names == sorted(["create_goal", "list_sessions", "message", "read_session", "search_sessions", "send_session_message", "spawn", "update_goal"])


def test_a_nanobot_that_cannot_keep_the_tool_from_the_model_is_complained_of(
    agent: Agent, slot: FakeSlot, model: Model, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NANOBOT_MEMHOST_NATIVE_MEMORY", "off")
    monkeypatch.setattr("memhost_nanobot.points.register_provider", lambda ctx: None)
    asyncio.run(agent.bot().run("hi", session_key="sdk:s"))
    assert [line for line in log if "gives no way to keep the tool memory_search from the model" in line]
    assert "memory_search" in json.dumps(model.requests[0]["tools"])
    assert len(slot.asked) == 1


def test_native_memory_that_is_there_all_the_same_is_complained_of(agent: Agent, log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NANOBOT_MEMHOST_NATIVE_MEMORY", "off")
    (agent.workspace / "memory").mkdir(parents=True)
    (agent.workspace / "memory" / "MEMORY.md").write_text("The cat is called Zorvex.")

    async def talk() -> None:
        bot = agent.bot()
        for _ in range(2):
            await bot.run("hi", session_key="sdk:s")

    asyncio.run(talk())
    (line,) = [line for line in log if "native_memory is off" in line]
    assert line.startswith("ERROR memhost: native_memory is off, but ")
    assert "MEMORY.md has text of its own, which enters every prompt" in line


def test_another_session_in_the_workspace_is_native_memory_too(agent: Agent, log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NANOBOT_MEMHOST_NATIVE_MEMORY", "off")

    async def talk() -> None:
        bot = agent.bot()
        for session in ("sdk:s", "sdk:t", "sdk:t"):
            await bot.run("hi", session_key=session)

    asyncio.run(talk())
    (line,) = [line for line in log if "native_memory is off" in line]
    assert "1 other sessions of" in line


def test_fair_makes_a_folder_that_check_approves(agent: Agent, slot: FakeSlot, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = Agent(tmp_path / "plain", agent.model, {"server": slot.url}, fair=False)
    assert main(["-c", str(plain.config), "check"]) == 0
    assert len(list(native.problems(plain.workspace, plain.config))) == 9
    assert main(["-c", str(plain.config), "fair", str(tmp_path / "fair")]) == 0
    assert main(["-c", str(tmp_path / "fair" / "config.json"), "check"]) == 0
    assert "nothing of Nanobot's own memory enters" in capsys.readouterr().out
    (tmp_path / "fair" / "workspace" / "USER.md").write_text("Likes oolong.")
    assert main(["-c", str(tmp_path / "fair" / "config.json"), "check"]) == 1
    assert "USER.md has text of its own" in capsys.readouterr().out
    assert main(["-c", str(plain.config), "fair", str(tmp_path / "fair")]) == 2
    assert "is not empty" in capsys.readouterr().err


# The command.


def test_check_says_what_is_not_in_place(agent: Agent, slot: FakeSlot, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", str(agent.config), "check"]) == 0
    out = capsys.readouterr().out
    assert "every extension point is there" in out
    assert f"{slot.url} serves fake" in out
    slot.fail["/v1/manifest"] = problem(401, "unauthenticated")
    assert main(["-c", str(agent.config), "check"]) == 1
    assert "BAD  slot      unauthenticated" in capsys.readouterr().out


def test_queue_lists_what_waits(agent: Agent, slot: FakeSlot, capsys: pytest.CaptureFixture[str]) -> None:
    slot.fail["/v1/events"] = problem(400, "invalid_argument")

    async def talk() -> None:
        bot = agent.bot()
        await bot.run("hi", session_key="sdk:s")
        memory(bot).close()

    asyncio.run(talk())
    assert main(["-c", str(agent.config), "queue"]) == 0
    assert "run 'nanobot' user 'cli:user'" in capsys.readouterr().out
    slot.fail.clear()
    assert main(["-c", str(agent.config), "queue", "--retry", "--send"]) == 0
    assert "1 events are back in the queue" in capsys.readouterr().out
    assert len(slot.events) == 1


def test_the_command_is_a_program_too(agent: Agent) -> None:
    import subprocess

    done = subprocess.run([str(Path(sys.executable).parent / "memhost-nanobot"), "-c", str(agent.config), "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

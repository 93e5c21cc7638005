"""The conversation that each integration holds (integrations/testdata), with the real nanobot-ai and the real memhost."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from agent import Agent, memory
from conftest import Model, text_of
from conversation import RUN, TURNS, WITHOUT, check, wrong_in_archive, wrong_with
from memhost_client.outbox import Outbox
from test_memhost import memhost_program, running

__all__ = ["memhost_program"]


class RunningSlot:
    """memhost run on a data folder. It can be stopped and started again at its address."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder, self.server = program, folder, "127.0.0.1:0"
        folder.mkdir()
        (folder / "memhost.yaml").write_text("memory: {condition: full_history, archive: true}\n")
        self._running = ExitStack()
        self.start()

    def start(self) -> None:
        command = [str(self._program), "run", "--data", str(self._folder / "data"), "--listen", self.server]
        match = self._running.enter_context(running(command, r"127\.0\.0\.1:(\d+)", cwd=self._folder))
        self.server = "127.0.0.1:" + match[1]

    def stop(self) -> None:
        self._running.close()

    def command(self, *args: str) -> str:
        done = subprocess.run([str(self._program), "--server", self.server, *args], capture_output=True, text=True, timeout=60, check=False, cwd=self._folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def serving(memhost_program: Path, tmp_path: Path) -> Generator[RunningSlot, None, None]:
    slot = RunningSlot(memhost_program, tmp_path / "slot")
    yield slot
    slot.stop()


async def hold(agent: Agent, model: Model, slot: RunningSlot, without: str) -> list[str]:
    """Holds the conversation and gives what is wrong with what was shown and recorded, one line each."""
    found: list[str] = []
    bot: Any = None
    for n, turn in enumerate(TURNS):
        if turn.get("slot") == "stop":
            slot.stop()
        if turn.get("slot") == "start":
            slot.start()
        if "provider" in turn:
            if bot is not None:  # what is on its way is this provider's
                assert await asyncio.to_thread(memory(bot).sender.close, 30) == 0 or without
            slot.command("swap", turn["provider"])
            bot = agent.bot()
        where = {"session_key": f"telegram:{turn['session']}", "channel": "telegram", "chat_id": turn["session"], "sender_id": turn["user"]}
        model.requests.clear()
        assert (await bot.run(turn["text"], **where)).content == f"ANSWER[{turn['text']}]"
        for request in model.requests:
            found += wrong_with(n, "\n".join(text_of(m["content"]) for m in request["messages"]))
        if without == "queue":
            empty(memory(bot).outbox)
    if waiting := await asyncio.to_thread(memory(bot).sender.close, 30):
        found.append(f"lost: {waiting} turns wait")
    return found + wrong_in_archive(slot.command("archive", "export"))


def empty(queue: Outbox) -> None:
    """Takes what waits from the disk, as if it had never been there."""
    for waiting in queue.heads():
        queue.done(waiting)


@pytest.mark.parametrize(("without", "want"), WITHOUT)
def test_24_turns(tmp_path: Path, model: Model, serving: RunningSlot, monkeypatch: pytest.MonkeyPatch, without: str, want: str) -> None:
    user = "ann" if without == "scope" else "{sender_id}"
    memhost = {"server": serving.server, "run_id": RUN, "user": user, "context_timeout_ms": 20000, "fresh_ms": 10000}
    if without == "recording":
        monkeypatch.setattr(Outbox, "put", lambda *args, **more: None)
    check(asyncio.run(hold(Agent(tmp_path / "agent", model, memhost), model, serving, without)), want)

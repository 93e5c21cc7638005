"""The real nanobot-ai and the real memhost: one conversation under several memories, and the prompts differ in the memory context only."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agent import Agent
from conftest import Model, text_of, without_context

ROOT = Path(__file__).resolve().parents[3]

# Two sessions: what is said in the first is asked for in the second, whose workspace is fresh.
SESSIONS = (
    ("sdk:monday", ("My cat is called Zorvex.", "I prefer aisle seats on long flights.")),
    ("sdk:friday", ("What is my cat called?", "Which seat should I book?")),
)


def built(variable: str, package: str, folder: Path) -> Path:
    """A program of this repository, built unless the environment names it."""
    if os.environ.get(variable):
        return Path(os.environ[variable])
    program = folder / Path(package).name
    subprocess.run(["go", "build", "-trimpath", "-o", str(program), package], cwd=ROOT, check=True)
    return program


# Session fixtures, so that Go finds its cache: a test has a home of its own.
@pytest.fixture(scope="session")
def memhost_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("NANOBOT_TEST_PROGRAM", "./cmd/memhost", tmp_path_factory.mktemp("memhost"))


@pytest.fixture(scope="session")
def fake_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("NANOBOT_TEST_FAKE", "./internal/test/fakes/cmd/fake", tmp_path_factory.mktemp("fake"))


@pytest.fixture(scope="session")
def backend_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("NANOBOT_TEST_BACKEND", "./internal/test/testenv/cmd/backend", tmp_path_factory.mktemp("backend"))


@contextmanager
def running(command: list[str], said: str, **more: Any) -> Generator[re.Match[str], None, None]:
    """A program until the end of the block; the match of the line on which it says that it serves."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **more)
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line)
            if match := re.search(said, "".join(lines)):
                threading.Thread(target=process.stdout.read, daemon=True).start()
                yield match
                return
        raise AssertionError(f"{command[0]} ended:\n{''.join(lines)}")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


class Slot:
    """A running memhost slot."""

    def __init__(self, program: Path, data: Path, server: str) -> None:
        self.program, self.data, self.server = program, data, server

    def command(self, *arguments: str) -> str:
        done = subprocess.run([str(self.program), *arguments, "--data", str(self.data)], capture_output=True, text=True, check=False, cwd=self.data)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def slot(program: Path, data: Path, config: str, **env: str) -> Generator[Slot, None, None]:
    data.mkdir(parents=True)
    (data / "memhost.yaml").write_text(config)
    command = [str(program), "run", "--config", str(data / "memhost.yaml"), "--data", str(data), "--listen", "127.0.0.1:0"]
    with running(command, r"127\.0\.0\.1:(\d+)", env={**os.environ, **env}, cwd=data) as match:
        yield Slot(program, data, "127.0.0.1:" + match[1])


def talk(agent: Agent, model: Model) -> list[dict[str, Any]]:
    """Holds the conversation and answers the prompts that the model got."""
    model.requests.clear()
    for session, texts in SESSIONS:

        async def one(session: str = session, texts: tuple[str, ...] = texts) -> None:
            bot = agent.bot(agent.fresh_workspace())
            for text in texts:
                result = await bot.run(text, session_key=session)
                assert result.content == f"ANSWER[{text}]"

        asyncio.run(one())
    return json.loads(json.dumps(model.requests))  # type: ignore[no-any-return]


def plain(prompt: dict[str, Any]) -> dict[str, Any]:
    """The prompt without memory contexts."""
    return {**prompt, "messages": [{**m, "content": without_context(text_of(m["content"]))} for m in prompt["messages"]]}


def contexts(prompts: list[dict[str, Any]]) -> list[str]:
    """The memory context at the end of each prompt's last message, or the empty text."""
    found = []
    for prompt in prompts:
        blocks = [re.findall(r"<memory-context .*?</memory-context>", text_of(m["content"]), re.S) for m in prompt["messages"]]
        assert not any(blocks[:-1]), "a context outside of the current message"
        assert len(blocks[-1]) <= 1
        text = blocks[-1][0] if blocks[-1] else ""
        assert text_of(prompt["messages"][-1]["content"]).endswith(text)
        found.append(text)
    return found


def files(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in (folder / "config.json", folder / "memhost.json")}


def compare(agent: Agent, model: Model, running_slot: Slot, providers: tuple[str, ...]) -> dict[str, list[str]]:
    """The conversation under each provider, swapped in while the slot serves. Answers the contexts, by provider."""
    before = files(agent.folder)
    prompts: dict[str, list[dict[str, Any]]] = {}
    for provider in providers:
        running_slot.command("swap", provider)
        prompts[provider] = talk(agent, model)
    assert files(agent.folder) == before, "nothing changed on Nanobot's side"
    floor = prompts["no_memory"]
    assert len(floor) == 4
    assert contexts(floor) == ["", "", "", ""]
    for provider, got in prompts.items():
        # The whole request: system prompt, tools, history, model, sampling.
        assert [plain(p) for p in got] == floor, provider
    found = {provider: contexts(got) for provider, got in prompts.items()}
    for provider, texts in found.items():
        assert all(text.startswith(f'<memory-context backend="{provider}" scope="study/ann"') for text in texts if text), provider
    return found


@pytest.fixture
def agent(tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("NANOBOT_MEMHOST_CONFIG", "")
    # The slot's address comes from the environment, as the operator of a study would give it; everything else stands in the file.
    return Agent(tmp_path / "agent", model, {"run_id": "study", "user": "ann", "native_memory": "off", "context_timeout_ms": 20000, "fresh_ms": 10000})


def test_prompts_differ_in_the_memory_context_only(
    agent: Agent, model: Model, memhost_program: Path, fake_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running([str(fake_program), "mem0"], r"URL=(\S+)") as url:
        config = f"memory:\n  condition: full_history\n  backends:\n    mem0: {{url: '{url[1]}'}}\n"
        with slot(memhost_program, tmp_path / "data", config) as serving:
            monkeypatch.setenv("MEMHOST_SERVER", serving.server)
            found = compare(agent, model, serving, ("no_memory", "full_history", "mem0"))

            # full_history has every turn before, in order, also those of the other session and none twice.
            history = found["full_history"]
            assert history[0] == ""
            assert [text.count("] user: ") for text in history[1:]] == [1, 2, 3]
            assert history[2].index("Zorvex") < history[2].index("aisle")
            # mem0 answers what fits the question, in a session that never heard it.
            assert "Zorvex" in found["mem0"][2]
            assert "aisle" in found["mem0"][3]

            # What one provider was told is still there when it comes back, and read-only slots stay as they are.
            serving.command("swap", "full_history")
            serving.command("mode", "read-only", "--reason", "test session")
            again = contexts(talk(agent, model))
            assert [text.count("] user: ") for text in again] == [4, 4, 4, 4]


def test_turns_of_an_outage_arrive_once_when_the_slot_is_back(agent: Agent, model: Model, memhost_program: Path, tmp_path: Path) -> None:
    config = "memory: {condition: full_history}\n"
    with slot(memhost_program, tmp_path / "data", config) as serving:
        port = serving.server
    memhost = json.loads((agent.folder / "memhost.json").read_text()) | {"server": port}
    (agent.folder / "memhost.json").write_text(json.dumps(memhost))

    async def without_slot() -> None:
        bot = agent.bot()
        for text in ("My cat is called Zorvex.", "I moved to Lyon."):
            assert (await bot.run(text, session_key="sdk:s")).content == f"ANSWER[{text}]"

    asyncio.run(without_slot())
    assert contexts(model.requests) == ["", ""]
    (tmp_path / "data" / "memhost.yaml").unlink()
    (tmp_path / "data2").mkdir()
    command = [str(memhost_program), "run", "--condition", "full_history", "--data", str(tmp_path / "data"), "--listen", port]
    with running(command, re.escape(port), cwd=tmp_path / "data2"):

        async def with_slot() -> None:
            await agent.bot().run("Where do I live?", session_key="sdk:t")

        asyncio.run(with_slot())
        (context,) = contexts(model.requests[2:])
        assert context.count("] user: ") == 2
        assert context.index("Zorvex") < context.index("Lyon")


@pytest.mark.live
def test_the_same_with_the_real_mem0(
    agent: Agent, model: Model, memhost_program: Path, backend_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mem0ai on PostgreSQL, started from published packages with the rule-answering model (internal/test/testenv/README.md)."""
    with running([str(backend_program), "mem0"], r"export (\w+)=(\S+)\ncat [^\n]*\n((?s:.*?)\n)END\n", cwd=ROOT) as printed:
        config = printed[3].replace("backend: mem0", "condition: no_memory", 1)
        with slot(memhost_program, tmp_path / "data", config, **{printed[1]: printed[2]}) as serving:
            monkeypatch.setenv("MEMHOST_SERVER", serving.server)
            found = compare(agent, model, serving, ("no_memory", "full_history", "mem0"))
    assert "Zorvex" in found["mem0"][2]
    assert "aisle" in found["mem0"][3]

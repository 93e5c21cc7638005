"""docs/agents.md as it stands: its Python is run, with stub models in place of real ones."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from agents import RunConfig, Runner, SQLiteSession
from conftest import RunningSlot
from google.adk.runners import Runner as AdkRunner
from google.genai import types
from langchain.agents import create_agent
from talkers import AdkTalker, LangChainTalker, OpenAITalker

DOCS = Path(__file__).parents[3] / "docs" / "agents.md"


async def run(block: str, names: dict[str, Any]) -> None:
    """Runs a block, which may await at its top level."""
    code = compile(block, str(DOCS), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done = eval(code, names)
    if inspect.isawaitable(done):
        await done


async def test_the_python_of_the_page(slot: RunningSlot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHOST_SERVER", slot.server)
    monkeypatch.chdir(tmp_path)
    blocks = [inspect.cleandoc("\n" + b) for b in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)]
    begin, langchain, adk, openai_agents = blocks
    names: dict[str, Any] = {}
    await run(begin, names)
    memory = names["memory"]

    chain = LangChainTalker(memory)
    names |= {"create_agent": create_agent, "model": chain.model, "tools": chain.tools}
    await run(langchain, names)
    await names["agent"].ainvoke({"messages": [("user", "I like oolong.")]}, context={"user": "ann"})

    kit = AdkTalker(memory)
    session = await kit.sessions.create_session(app_name="home", user_id="ann", session_id="adk")
    other = AdkRunner(agent=kit.agent, app_name="home", session_service=kit.sessions)
    async for _ in other.run_async(user_id="ann", session_id="adk", new_message=types.Content(role="user", parts=[types.Part(text="I like mate.")])):
        pass
    session = await kit.sessions.get_session(app_name="home", user_id="ann", session_id="adk") or session
    await run(adk, names | {"Runner": AdkRunner, "agent": kit.agent, "sessions": kit.sessions, "session": session})

    sdk = OpenAITalker(memory)
    asked = {"Runner": Runner, "RunConfig": RunConfig, "SQLiteSession": SQLiteSession, "agent": sdk.agent, "text": "Which tea do I like?"}
    await run(openai_agents, names | asked)
    assert "I like oolong." in sdk.prompts[-1]
    assert "I like mate." in sdk.prompts[-1]
    assert memory.close(30) == 0
    assert slot.said("home", "ann") == ["I like oolong.", "I like mate.", "Which tea do I like?"]

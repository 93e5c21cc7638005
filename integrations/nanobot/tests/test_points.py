"""A Nanobot update that moved something."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import nanobot.agent.tools.base
import nanobot.bus.runtime_events
import nanobot.runtime_context
import pytest
from loguru import logger

from memhost_nanobot import plugin, points


def test_this_Nanobot_has_every_point() -> None:
    points.probe()
    assert issubclass(plugin.MemhostTool, nanobot.agent.tools.base.Tool)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (nanobot.bus.runtime_events, "SessionTurnPersisted"),
        (nanobot.runtime_context, "RuntimeContextBlock"),
        (nanobot.agent.tools.base, "Tool"),
    ],
)
def test_a_point_that_is_gone_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    monkeypatch.delattr(module, name)
    with pytest.raises(points.Moved) as e:
        points.probe()
    text = str(e.value)
    assert f"has no {module.__name__}.{name}." in text
    assert "The agent runs on without the memory slot" in text
    assert 'pip install "nanobot-ai==0.3.5"' in text


@pytest.mark.parametrize(
    "changed",
    [lambda m: dict(m), lambda m: 1 / 0, lambda: {}],
    ids=["leaves the context in", "raises", "takes no message"],
)
def test_a_point_that_does_something_else_counts_as_moved(monkeypatch: pytest.MonkeyPatch, changed: Any) -> None:
    monkeypatch.setattr(nanobot.runtime_context, "public_history_message", changed)
    with pytest.raises(points.Moved, match=r"runtime_context|removes a context"):
        points.probe()


def test_the_plugin_loads_all_the_same_and_is_no_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    number = logger.add(lambda m: lines.append(m.record["message"]))
    try:
        with monkeypatch.context() as patch:
            patch.delattr(nanobot.bus.runtime_events, "SessionTurnPersisted")
            reloaded = importlib.reload(plugin)
            assert not issubclass(reloaded.MemhostTool, nanobot.agent.tools.base.Tool)
    finally:
        logger.remove(number)
        importlib.reload(plugin)
    assert len(lines) == 1
    assert "SessionTurnPersisted" in lines[0]


@pytest.mark.parametrize(
    ("ctx", "what"),
    [
        (SimpleNamespace(runtime_events=1), "no bus"),
        (SimpleNamespace(bus=None, sessions=None), "no bus"),
        (SimpleNamespace(bus=SimpleNamespace(subscribe=print), sessions=SimpleNamespace(get=print)), "no sessions"),
    ],
)
def test_a_tool_context_without_bus_or_sessions_disables_the_tool(ctx: Any, what: str) -> None:
    lines: list[str] = []
    number = logger.add(lambda m: lines.append(m.record["message"]))
    try:
        assert plugin.MemhostTool.enabled(ctx) is False
    finally:
        logger.remove(number)
    assert len(lines) == 1
    assert what in lines[0]

"""The extension points of Nanobot that this package uses, all of them, looked at once when it is loaded.

A Nanobot update that moves one is told in one message, and the agent runs on without this memory.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

# Made and tested with this version; 0.3.0 still lacked SessionTurnPersisted.
TESTED = "0.3.5"

_NAMES = (
    ("nanobot.agent.tools.base", "Tool"),
    ("nanobot.agent.tools.context", "current_request_context"),
    ("nanobot.runtime_context", "RuntimeContextBlock"),
    ("nanobot.runtime_context", "public_history_message"),
    ("nanobot.bus.runtime_events", "SessionTurnStarted"),
    ("nanobot.bus.runtime_events", "SessionTurnPersisted"),
    ("nanobot.config.loader", "get_config_path"),
)


class Moved(Exception):
    """An extension point is not where it was; the text is for the agent's log and says what to do."""


def nanobot_version() -> str:
    """The installed version of nanobot-ai, or "?"."""
    try:
        return version("nanobot-ai")
    except PackageNotFoundError:
        return "?"


def probe() -> None:
    """Raises Moved unless every point is there and does what is relied on."""
    found: dict[str, Any] = {}
    missing: list[str] = []
    for module, name in _NAMES:
        try:
            found[name] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            missing.append(f"{module}.{name}")
    if missing:
        raise moved(f"has no {', '.join(missing)}")
    if not callable(getattr(found["Tool"], "runtime_context_provider", None)):
        raise moved("asks a Tool for no runtime_context_provider")
    try:
        block = found["RuntimeContextBlock"]("memhost", "b")
        stored = {"role": "user", "content": "a\n\nb", "_runtime_context": {"version": 1, "sources": ["memhost"], "suffix": "b"}}
        public = found["public_history_message"](stored)
        fits = block.content == "b" and public.get("content") == "a"
    except Exception as e:
        raise moved(f"has another runtime_context: {e}") from e
    if not fits:
        raise moved("removes a context block from a stored message in another way")


def check_context(ctx: Any) -> None:
    """Raises Moved unless a ToolContext has the bus and the sessions that are needed."""
    if not callable(getattr(getattr(ctx, "bus", None), "subscribe", None)):
        raise moved("gives its tools no bus to subscribe to (ToolContext.bus)")
    sessions = getattr(ctx, "sessions", None)
    if not callable(getattr(sessions, "get_cached", None)) or not callable(getattr(sessions, "save", None)):
        raise moved("gives its tools no sessions (ToolContext.sessions.get_cached, save)")


def register_provider(ctx: Any) -> Any:
    """The agent's own register_runtime_context_provider, which gives context to turns without offering the model a tool; None where it is not found.

    A ToolContext does not hand it out: it is behind the runtime control, under a private name.
    """
    target = getattr(getattr(ctx, "runtime_control", None), "_AgentRuntimeControl__target", None)
    register = getattr(target, "register_runtime_context_provider", None)
    return register if callable(register) else None


def moved(what: str) -> Moved:
    """The error for a point that is not as expected."""
    return Moved(
        f"memhost: nanobot-ai {nanobot_version()} {what}. The agent runs on without the memory slot. This integration was made for nanobot-ai {TESTED}: "
        f'install that (pip install "nanobot-ai=={TESTED}"), or a newer memhost-nanobot.'
    )

"""The tool that Nanobot makes of this package. Its context provider and its handlers are the memory; what the model is offered of it is a search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loguru import logger
from memhost_client.slot import SlotError
from nanobot.agent.tools.base import Tool, ToolResult
from nanobot.agent.tools.context import RequestContext, ToolContext, current_request_context
from nanobot.bus.runtime_events import SessionTurnPersisted, SessionTurnStarted
from nanobot.config.loader import get_config_path
from nanobot.runtime_context import RuntimeContextBlock, RuntimeContextProvider, public_history_message

from . import points
from .config import ConfigError, Settings, load
from .memory import Memory, say
from .turn import SEARCH, SOURCE

# Tokens of a search's result: Nanobot puts what is over 16,000 characters into a file and shows the model a preview.
_MOST = 3500


class MemhostTool(Tool):
    """memory_search, and by its being there the slot as memory of every turn."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @classmethod
    def enabled(cls, ctx: ToolContext) -> bool:
        """Whether the memory can be used; where it cannot, the log says why, in one line."""
        try:
            points.check_context(ctx)
            settings = _settings()
            # In a comparison the model is offered no tool of the memory's: the tools are those of an agent without one.
            return settings.enabled and not (settings.native_memory == "off" and cls._without_tool(ctx))
        except points.Moved as moved:
            logger.error("{}", moved)
        except ConfigError as e:
            say("error", f"the agent runs without the memory slot: {e}")
        return False

    @classmethod
    def create(cls, ctx: ToolContext) -> MemhostTool:
        """Called by Nanobot, before any event loop runs."""
        settings = _settings()
        # Nanobot's configuration stands beside ours. The SDK does not make its own path known: there NANOBOT_MEMHOST_CONFIG says the folder.
        config = settings.home / Path(get_config_path()).name
        memory = Memory(settings, ctx.sessions, public_history_message, workspace=Path(ctx.workspace), nanobot_config=config)
        assert ctx.bus is not None
        ctx.bus.subscribe(memory.turn_started, SessionTurnStarted)
        ctx.bus.subscribe(memory.after_turn, SessionTurnPersisted)
        say("debug", f"the slot at {memory.slot.url} is the memory; undelivered turns wait in {settings.queue}")
        return cls(memory)

    @classmethod
    def _without_tool(cls, ctx: ToolContext) -> bool:
        """Makes the memory a context provider of the agent's and nothing else; False where that cannot be."""
        register = points.register_provider(ctx)
        if register is None:
            say("error", f"native_memory is off, but nanobot-ai {points.nanobot_version()} gives no way to keep the tool {SEARCH} from the model")
            return False
        register(cls.create(ctx)._provide)
        return True

    @property
    def name(self) -> str:
        return SEARCH

    @property
    def description(self) -> str:
        return (
            "Search the long-term memory of this user. What fits the current message is already given with it; "
            "search for something else that the user may have told you in earlier conversations."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, in words"},
                "max_items": {"type": "integer", "description": "How many memories at most", "minimum": 1},
            },
            "required": ["query"],
        }

    @property
    def read_only(self) -> bool:
        return True

    def runtime_context_provider(self) -> RuntimeContextProvider:
        return self._provide

    async def _provide(self, request: RequestContext) -> RuntimeContextBlock | None:
        context = await self._memory.before_turn(request)
        return None if context is None else RuntimeContextBlock(SOURCE, context.text)

    async def execute(self, **kwargs: Any) -> str:
        """Searches the memory of whoever the current turn is with; the model cannot name another."""
        request = current_request_context()
        allowed = None if request is None else self._memory.access_now(request)
        if allowed is None or not allowed.read:
            return ToolResult.error("Error: this turn has no memory" + (f": {allowed.why}" if allowed is not None else ""))
        try:
            context = await self._memory.ask(allowed, str(kwargs.get("query", "")), max_items=int(kwargs.get("max_items") or 0), at_most=_MOST)
        except SlotError as e:
            say("warning", f"memory_search: {e}")
            return ToolResult.error("Error: the memory cannot be reached now")
        return context.text or "Nothing is remembered about that."


def _settings() -> Settings:
    return load(Path(get_config_path()).parent)

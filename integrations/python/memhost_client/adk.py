"""A memhost slot as Google ADK's memory service.

    runner = Runner(agent=agent, app_name="home", session_service=sessions, memory_service=MemhostMemoryService(memory))

Let the agent have the tool preload_memory (context with each message) or load_memory (the model searches), and call
runner.memory_service.add_session_to_memory(session) after a run, or in an after_agent_callback. A session may be added as often as you like: each of its turns
is recorded once, when it has its final response. Only what the user and the agents said is recorded, no calls of tools and no results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from .checked import checked
from .memory import Memory, Scope

with checked("google-adk", "2.13.0"):
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
    from google.genai import types


class MemhostMemoryService(BaseMemoryService):
    """A memory for each user of each application: run_id is the application's name where none is given."""

    def __init__(self, memory: Memory, *, run_id: str = "") -> None:
        self.memory, self._run_id = memory, run_id

    async def add_session_to_memory(self, session: Session) -> None:
        await self.add_events_to_memory(app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        turns: dict[str, list[Event]] = {}
        for event in events:
            turns.setdefault(event.invocation_id, []).append(event)
        for name, turn in turns.items():
            end = turn[-1]
            if not name or end.author == "user" or end.error_code or not end.is_final_response():
                continue
            said = [("user" if e.author == "user" else "assistant", _text(e)) for e in turn if not e.partial]
            if any(role == "assistant" and text.strip() for role, text in said):
                await self.memory.record(name, self._scope(app_name, user_id), session_id or "", said, datetime.fromtimestamp(turn[0].timestamp, UTC))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        context = await self.memory.context(query, self._scope(app_name, user_id))
        if not context:
            return SearchMemoryResponse()
        return SearchMemoryResponse(memories=[MemoryEntry(content=types.Content(parts=[types.Part(text=context)]))])

    def _scope(self, app_name: str, user_id: str) -> Scope:
        return Scope(self._run_id or app_name, user_id)


def _text(event: Event) -> str:
    """What was said in an event: no thoughts, no calls of tools."""
    parts = event.content.parts if event.content and event.content.parts else []
    return "\n".join(p.text for p in parts if p.text and not p.thought)

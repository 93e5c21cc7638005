"""A memhost slot as the memory of the OpenAI Agents SDK: a wrapper of the session, and a filter of the model's input.

    session = MemhostSession(SQLiteSession("monday"), memory, Scope("home", "ann"))
    await Runner.run(agent, "Which tea do I like?", session=session, run_config=RunConfig(call_model_input_filter=session.with_memory))

The filter puts the context at the end of the person's message whenever the model is called. What a filter adds is not stored, unlike what a
session_input_callback adds, which the SDK takes for new input. The wrapper passes everything on to the session, and records a turn when its answer is stored:
the person's words and the answer, no calls of tools and no results.
"""

from __future__ import annotations

import uuid
from typing import Any, cast

from .checked import checked
from .memory import Memory, Scope, with_context

with checked("openai-agents", "0.24.0"):
    from agents import TResponseInputItem
    from agents.memory import Session, SessionSettings
    from agents.run_config import CallModelData, ModelInputData


class MemhostSession:
    """A session of one person. The scope is the session's: another person has another session."""

    def __init__(self, session: Session, memory: Memory, scope: Scope) -> None:
        self.session_id: str = session.session_id
        self.session_settings: SessionSettings | None = session.session_settings
        self._session, self._memory, self._scope = session, memory, scope
        # What was said and not answered yet; the turn's name; and the context of a message, by its place and text.
        self._said: list[str] = []
        self._turn = ""
        self._found: tuple[int, str, str] | None = None

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return await self._session.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._session.add_items(items)
        answer = ""
        for item in items:
            kind = item.get("type", "message")
            if kind == "message" and item.get("role") == "user":
                self._said.append(_text(item))
                answer = ""
            elif kind == "message" and item.get("role") == "assistant":
                answer = "\n".join(text for text in (answer, _text(item)) if text)
            elif kind != "reasoning":
                answer = ""  # a call of a tool, or its result: the answer comes later
        if not self._said:
            return
        self._turn = self._turn or uuid.uuid4().hex
        if answer:
            said, turn = [("user", text) for text in self._said], self._turn
            self._said, self._turn, self._found = [], "", None
            await self._memory.record(turn, self._scope, self.session_id, [*said, ("assistant", answer)])

    async def pop_item(self) -> TResponseInputItem | None:
        item = await self._session.pop_item()
        if item is not None and item.get("role") == "user" and self._said:
            self._said.pop()
        return item

    async def clear_session(self) -> None:
        self._said, self._turn, self._found = [], "", None
        await self._session.clear_session()

    async def with_memory(self, data: CallModelData[Any]) -> ModelInputData:
        """The call_model_input_filter: the model's input with the context at the end of the person's last message."""
        items = list(data.model_data.input)
        at = next((i for i in range(len(items) - 1, -1, -1) if items[i].get("role") == "user"), None)
        if at is None:
            return data.model_data
        text = _text(items[at])
        if self._found is None or self._found[:2] != (at, text):
            self._found = (at, text, await self._memory.context(text, self._scope, self.session_id))
        items[at] = _shown(items[at], self._found[2])
        return ModelInputData(input=items, instructions=data.model_data.instructions)


def _text(item: TResponseInputItem) -> str:
    content = cast(dict[str, Any], item).get("content")
    if isinstance(content, list):
        return "\n".join(p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str))
    return content if isinstance(content, str) else ""


def _shown(item: TResponseInputItem, context: str) -> TResponseInputItem:
    if not context:
        return item
    message = cast(dict[str, Any], item)
    content: Any = message["content"]
    shown = with_context(content, context) if isinstance(content, str) else [*content, {"type": "input_text", "text": context}]
    return cast(TResponseInputItem, {**message, "content": shown})

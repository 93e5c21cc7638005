"""A memhost slot as the memory of a LangChain agent: an AgentMiddleware.

    agent = create_agent(model, tools, middleware=[MemhostMiddleware(memory, run_id="home", user=lambda runtime: runtime.context.user_id)])

The context is at the end of the person's message whenever the model is called, and nowhere in the agent's state: no checkpoint has it, and no later turn. When
the agent has answered, the person's words and the answer are recorded; tool calls and their results are not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from .checked import checked
from .memory import Memory, Scope, log, with_context

with checked("langchain", "1.4.7"):
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
    from langgraph.config import get_config
    from langgraph.runtime import Runtime

# Turns whose context is kept until the agent has answered; those that never end go when so many newer ones have begun.
_KEEP_TURNS = 500

User = str | Callable[[Runtime[Any]], str]


class MemhostMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """user is whose memory it is: one name for all, or a function of the run. Where it gives nothing, or fails, the turn has no memory."""

    def __init__(self, memory: Memory, *, run_id: str, user: User) -> None:
        super().__init__()
        self.memory, self._run_id, self._user = memory, run_id, user
        self._contexts: dict[tuple[str, str, str], str] = {}

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]) -> ModelResponse[Any]:
        at, scope = _asked(request.messages), self._scope(request.runtime)
        if at is None or scope is None:
            return handler(request)
        message, session = request.messages[at], _session()
        key = (scope.key, session, _name(message, at))
        if key not in self._contexts:
            self._keep(key, self.memory.context_now(message.text, scope, session))
        return handler(_shown(request, at, self._contexts[key]))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]) -> ModelResponse[Any]:
        at, scope = _asked(request.messages), self._scope(request.runtime)
        if at is None or scope is None:
            return await handler(request)
        message, session = request.messages[at], _session()
        key = (scope.key, session, _name(message, at))
        if key not in self._contexts:
            self._keep(key, await self.memory.context(message.text, scope, session))
        return await handler(_shown(request, at, self._contexts[key]))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        turn = self._turn(state, runtime)
        if turn is not None:
            self.memory.record_now(*turn)

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        turn = self._turn(state, runtime)
        if turn is not None:
            await self.memory.record(*turn)

    def _turn(self, state: AgentState[Any], runtime: Runtime[Any]) -> tuple[str, Scope, str, list[tuple[str, str]]] | None:
        """The turn that has ended: what was said since the answer before it."""
        messages, scope, session = state["messages"], self._scope(runtime), _session()
        at = _asked(messages)
        if at is None or scope is None:
            return None
        self._contexts.pop((scope.key, session, _name(messages[at], at)), None)
        end = messages[-1]
        if not isinstance(end, AIMessage) or end.tool_calls:
            return None  # no answer
        begin = next((i + 1 for i in range(at, -1, -1) if isinstance(messages[i], AIMessage)), 0)
        said = [("user", m.text) for m in messages[begin : at + 1] if isinstance(m, HumanMessage)]
        return _name(messages[at], at), scope, session, [*said, ("assistant", end.text)]

    def _scope(self, runtime: Runtime[Any]) -> Scope | None:
        try:
            user = self._user if isinstance(self._user, str) else self._user(runtime)
        except Exception as e:
            log.warning("no memory in this turn: whose it is cannot be told: %s: %s", type(e).__name__, e)
            return None
        return Scope(self._run_id, user) if user else None

    def _keep(self, key: tuple[str, str, str], context: str) -> None:
        self._contexts[key] = context
        while len(self._contexts) > _KEEP_TURNS:
            self._contexts.pop(next(iter(self._contexts)))


def _asked(messages: list[AnyMessage]) -> int | None:
    """Where the person's last message is."""
    return next((i for i in range(len(messages) - 1, -1, -1) if isinstance(messages[i], HumanMessage)), None)


def _name(message: AnyMessage, at: int) -> str:
    """A message by its id, which LangGraph gives each message of a state."""
    return message.id or f"message {at}"


def _shown(request: ModelRequest[Any], at: int, context: str) -> ModelRequest[Any]:
    """The request with the context at the end of the message; the state's own message stays as it is."""
    if not context:
        return request
    message = request.messages[at]
    content: Any = with_context(message.content, context) if isinstance(message.content, str) else [*message.content, {"type": "text", "text": context}]
    messages = [*request.messages[:at], message.model_copy(update={"content": content}), *request.messages[at + 1 :]]
    return request.override(messages=messages)


def _session() -> str:
    """The thread of the conversation, "" without a checkpointer."""
    configurable: dict[str, Any] = get_config().get("configurable", {})
    return str(configurable.get("thread_id", ""))

"""An agent of each framework, with the framework's own loop and a stub model. Each has a tool, which the model calls for a message that begins with TOOL."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, function_tool
from conversation import RUN
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner as AdkRunner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from memhost_client import Memory, Scope
from memhost_client.adk import MemhostMemoryService
from memhost_client.langchain import MemhostMiddleware
from memhost_client.openai_agents import MemhostSession


class Talker:
    """An agent that people talk to. prompts has the whole text of each request to the model."""

    # Records what the framework has of the session, where it hands over that, and not the last turn alone.
    whole = True

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.prompts: list[str] = []

    async def say(self, user: str, session: str, text: str) -> str:
        """A turn; it gives the agent's answer."""
        raise NotImplementedError

    async def stored(self, user: str, session: str) -> str:
        """What the framework has stored of a session, as text."""
        raise NotImplementedError


def reply(said: str, has_result: bool) -> str | None:
    """The model: the answer to what was said, or None for a call of the tool."""
    said = said.split("\n\n<memory-context", 1)[0]
    if said == "MODELFAIL":
        raise RuntimeError("the model is down")
    return None if said.startswith("TOOL") and not has_result else f"ANSWER[{said}]"


class LangChainTalker(Talker):
    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        outer = self

        class Stub(BaseChatModel):
            @property
            def _llm_type(self) -> str:
                return "stub"

            def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
                return self

            def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
                outer.prompts.append("\n".join(m.text for m in messages))
                last = max(i for i, m in enumerate(messages) if m.type == "human")
                text = reply(messages[last].text, messages[-1].type == "tool")
                call = [{"name": "look", "args": {}, "id": f"call-{len(outer.prompts)}"}]
                return ChatResult(generations=[ChatGeneration(message=AIMessage(text or "", tool_calls=[] if text else call))])

        def look() -> str:
            """Looks."""
            return "TOOLRESULT"

        middleware = MemhostMiddleware(memory, run_id=RUN, user=lambda runtime: runtime.context["user"])
        self.model, self.tools = Stub(), [look]
        self.agent: Any = create_agent(self.model, self.tools, middleware=[middleware], checkpointer=InMemorySaver(), context_schema=dict)

    async def say(self, user: str, session: str, text: str) -> str:
        config = {"configurable": {"thread_id": session}}
        state = await self.agent.ainvoke({"messages": [("user", text)]}, config, context={"user": user})
        return str(state["messages"][-1].text)

    async def stored(self, user: str, session: str) -> str:
        return str((await self.agent.aget_state({"configurable": {"thread_id": session}})).values)


class AdkTalker(Talker):
    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        outer = self

        class Stub(BaseLlm):
            async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
                contents = llm_request.contents
                texts = ["\n".join(p.text or "" for p in c.parts or []) for c in contents]
                outer.prompts.append("\n".join([*texts, str(llm_request.config.system_instruction)]))
                asked = [i for i, t in enumerate(texts) if contents[i].role == "user" and t and "<PAST_CONVERSATIONS>" not in t]
                text = reply(texts[asked[-1]], any(p.function_response for c in contents[asked[-1] :] for p in c.parts or []))
                part = types.Part(text=text) if text else types.Part(function_call=types.FunctionCall(name="look", args={}))
                yield LlmResponse(content=types.Content(role="model", parts=[part]))

        def look() -> str:
            """Looks."""
            return "TOOLRESULT"

        self.sessions = InMemorySessionService()
        self.agent = LlmAgent(name="helper", model=Stub(model="stub"), tools=[PreloadMemoryTool(), look])
        self.service = MemhostMemoryService(memory)
        self.runner = AdkRunner(agent=self.agent, app_name=RUN, session_service=self.sessions, memory_service=self.service)

    async def say(self, user: str, session: str, text: str) -> str:
        found = await self.sessions.get_session(app_name=RUN, user_id=user, session_id=session)
        if found is None:
            found = await self.sessions.create_session(app_name=RUN, user_id=user, session_id=session)
        said = ""
        try:
            async for event in self.runner.run_async(user_id=user, session_id=session, new_message=types.Content(role="user", parts=[types.Part(text=text)])):
                if event.is_final_response() and event.content and event.content.parts:
                    said = event.content.parts[0].text or ""
        finally:
            after = await self.sessions.get_session(app_name=RUN, user_id=user, session_id=session)
            assert after is not None
            events = after.events if self.whole else [e for e in after.events if e.invocation_id == after.events[-1].invocation_id]
            for _ in range(2):  # as often as one likes
                await self.service.add_events_to_memory(app_name=RUN, user_id=user, events=events, session_id=session)
        return said

    async def stored(self, user: str, session: str) -> str:
        found = await self.sessions.get_session(app_name=RUN, user_id=user, session_id=session)
        return str(found.events if found else "")


class OpenAITalker(Talker):
    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        outer = self

        class Stub(Model):
            async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
                items = [{"role": "user", "content": input}] if isinstance(input, str) else input
                outer.prompts.append("\n".join(str(i.get("content", i.get("output", ""))) for i in items))
                said = [i["content"] for i in items if i.get("role") == "user"][-1]
                text = reply(said, items[-1].get("type") == "function_call_output")
                if text is None:
                    call = ResponseFunctionToolCall(name="look", arguments="{}", call_id=f"call-{len(outer.prompts)}", type="function_call")
                    return ModelResponse(output=[call], usage=Usage(), response_id=None)
                part = ResponseOutputText(text=text, type="output_text", annotations=[])
                message = ResponseOutputMessage(id=f"m-{len(outer.prompts)}", content=[part], role="assistant", status="completed", type="message")
                return ModelResponse(output=[message], usage=Usage(), response_id=None)

            def stream_response(self, *args: Any, **kwargs: Any) -> Any:
                raise NotImplementedError

        @function_tool
        def look() -> str:
            """Looks."""
            return "TOOLRESULT"

        self.agent = Agent(name="helper", model=Stub(), tools=[look])
        self.stores: dict[str, SQLiteSession] = {}
        self.sessions: dict[tuple[str, str], MemhostSession] = {}

    async def say(self, user: str, session: str, text: str) -> str:
        store = self.stores.setdefault(session, SQLiteSession(session))  # in a group all have one
        wrapped = self.sessions.setdefault((user, session), MemhostSession(store, self.memory, Scope(RUN, user)))
        config = RunConfig(call_model_input_filter=wrapped.with_memory, tracing_disabled=True)
        return str((await Runner.run(self.agent, text, session=wrapped, run_config=config)).final_output)

    async def stored(self, user: str, session: str) -> str:
        return str(await self.sessions[user, session].get_items())


TALKERS = {"langchain": LangChainTalker, "adk": AdkTalker, "openai-agents": OpenAITalker}

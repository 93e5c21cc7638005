"""Bodies of the requests. Unknown fields are ignored, as mem0's server does; fields that its server does not have say so."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError


def _content(value: Any) -> Any:
    """A text, or content parts. For anything else the answer is the server's own."""
    parts = value if isinstance(value, list) else [value]
    if isinstance(value, str) or (parts and all(isinstance(part, dict) for part in parts)):
        return value
    raise PydanticCustomError("string_type", "Input should be a valid string")


class Message(BaseModel):
    """One message."""

    role: str
    content: Annotated[Any, BeforeValidator(_content)] = Field(
        description="Text; or, not in mem0's own server, a list of {type: text} or {type: image_url} parts, or one image_url part",
        json_schema_extra={"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}, {"type": "object"}]},
    )
    name: str | None = Field(default=None, description="Not in mem0's own server. Without extraction it becomes actor_id; the extractor never sees it")


class MemoryCreate(BaseModel):
    """POST /memories. At least one of the three ids is needed; ``infer`` false stores the messages as they are."""

    messages: list[Message]
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    metadata: dict[str, Any] | None = None
    expiration_date: str | None = None
    infer: bool | None = None
    memory_type: str | None = None
    prompt: str | None = None
    observation_date: str | None = Field(default=None, description="Not in mem0's own server. YYYY-MM-DD; needs patches.observation_date")


class MemoryUpdate(BaseModel):
    """PUT /memories/{id}. A field that is given as null counts as given."""

    text: str | None = None
    metadata: dict[str, Any] | None = None
    expiration_date: str | None = None


class SearchRequest(BaseModel):
    """POST /search. The ids at the top are the old form: they are copied into the filters."""

    query: str
    filters: dict[str, Any] | None = None
    user_id: str | None = None
    run_id: str | None = None
    agent_id: str | None = None
    top_k: int | None = None
    threshold: float | None = None
    explain: bool | None = None
    show_expired: bool | None = None
    rerank: bool | None = Field(default=None, description="Not in mem0's own server. Needs mem0.reranker; adds rerank_score and reorders, score stays")
    rerank_pool: int | None = Field(default=None, ge=1, le=1000, description="Not in mem0's own server. How many rows are searched for and reranked before they are cut to top_k")
    rerank_on_error: Literal["error", "plain"] | None = Field(default=None, description="Not in mem0's own server. plain: the search's own order where the reranker fails")


class ListRequest(BaseModel):
    """POST /memories/list, not in mem0's own server: the memories that fit the filters, in no order. top_k has no upper bound."""

    filters: dict[str, Any]
    top_k: int = Field(default=20, ge=1)
    show_expired: bool = False

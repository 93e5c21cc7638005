"""Bodies of the requests. Unknown fields are ignored, as mem0's server does."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Message(BaseModel):
    """One message; the server keeps only these two fields of it."""

    role: str
    content: str


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

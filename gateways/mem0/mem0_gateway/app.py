"""The routes, in the shape of mem0's self-hosted server (its OpenAPI document and its recorded answers), for the admin key alone.

Not here: users, sessions and per-user keys (/auth/* beyond the set-up status), /entities, changing the configuration at run time.
"""

import secrets
import uuid
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import psycopg
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse, Response
from mem0 import Memory

from .errors import DETAILS, Upstream, call
from .models import MemoryCreate, MemoryUpdate, SearchRequest
from .settings import Settings

IDS = ("user_id", "agent_id", "run_id")
#: keys of a stored payload that an item shows at its top level in a listing of everything
OWN = (*IDS, "hash", "expiration_date", "created_at", "updated_at")
SECRETS = ("password", "api_key", "secret", "token")
LIST_LIMIT = 1000


def create(settings: Settings | None = None, memory: Memory | None = None) -> FastAPI:
    """Build the application. Without settings they come from the environment; without a memory one is made from the settings."""
    settings = settings or Settings.from_environment()
    config = settings.memory_config()
    store = memory if memory is not None else Memory.from_config(config)
    app = FastAPI(
        title="Mem0 REST APIs",
        version="1.0.0",
        description="A REST API for managing and searching memories. A gateway over the mem0ai package, for the admin key.",
        redirect_slashes=False,
    )

    def database_answers() -> None:
        """mem0's server keeps its users in the database: what asks for them is a plain 500 while it is down."""
        with psycopg.connect(
            host=settings.postgres_host,
            port=settings.postgres_port,
            dbname=settings.postgres_database,
            user=settings.postgres_user,
            password=settings.postgres_password,
            connect_timeout=5,
        ) as connection:
            connection.execute("SELECT 1")

    def authenticate(request: Request) -> None:
        if request.headers.get("authorization", "").lower().startswith("bearer "):
            raise HTTPException(401, "Invalid or expired token.")
        key = request.headers.get("x-api-key")
        if key is None:
            raise HTTPException(401, "Authentication required. Provide a Bearer token or X-API-Key header.", {"WWW-Authenticate": "Bearer"})
        if not secrets.compare_digest(key.encode(), settings.admin_key.encode()):
            database_answers()
            raise HTTPException(401, "Invalid API key.")

    def administrate(_: Annotated[None, Depends(authenticate)]) -> None:
        database_answers()

    user, admin = [Depends(authenticate)], [Depends(administrate)]

    @app.middleware("http")
    async def number(request: Request, next_: Callable[[Request], Awaitable[Response]]) -> Response:
        """Every answer carries X-Request-ID; a 502 says it in its body too."""
        request.state.id = uuid.uuid4().hex[:8]
        response = await next_(request)
        response.headers["X-Request-ID"] = request.state.id
        return response

    @app.exception_handler(Upstream)
    async def upstream(request: Request, error: Upstream) -> JSONResponse:
        return JSONResponse({"detail": DETAILS[error.code], "code": error.code, "request_id": request.state.id}, 502)

    @app.get("/auth/setup-status", tags=["auth"])
    def setup_status() -> dict[str, bool]:
        """Open to all; touches the database."""
        database_answers()
        return {"needsSetup": True}

    @app.get("/configure/providers", dependencies=user)
    def providers() -> dict[str, list[str]]:
        return {"llm": ["openai"], "embedder": ["openai"]}

    @app.get("/configure", dependencies=user)
    def configuration() -> Any:
        return redact(config)

    @app.post("/memories", dependencies=user)
    def add_memory(body: MemoryCreate) -> Any:
        if not any(given(body.user_id, body.agent_id, body.run_id)):
            raise HTTPException(400, "At least one identifier (user_id, agent_id, run_id) is required.")
        arguments = body.model_dump(exclude_none=True)
        return call(lambda: store.add(**arguments))

    @app.post("/search", dependencies=user)
    def search_memories(body: SearchRequest) -> Any:
        arguments = body.model_dump(exclude_none=True)
        query = arguments.pop("query")
        arguments.pop("filters", None)
        filters = dict(body.filters or {})
        for name in IDS:
            if value := arguments.pop(name, None):
                filters[name] = value
        return call(lambda: store.search(query=query, filters=filters, **arguments), blame="request")

    @app.get("/memories")
    def list_memories(
        _: Annotated[None, Depends(authenticate)],
        user_id: str = "",
        run_id: str = "",
        agent_id: str = "",
        top_k: Annotated[int | None, Query(ge=0, le=LIST_LIMIT)] = None,
        show_expired: bool = False,
    ) -> Any:
        """The memories of a scope, 20 unless top_k says otherwise; without any id those of everybody, in a shape of its own."""
        filters = named(user_id, agent_id, run_id)
        if filters:
            limit = {} if top_k is None else {"top_k": top_k}
            return call(lambda: store.get_all(filters=filters, show_expired=show_expired, **limit), blame="upstream")
        database_answers()
        rows = call(lambda: store.vector_store.list(top_k=LIST_LIMIT if top_k is None else top_k)[0], blame="upstream")
        return {"results": [listed(row.id, row.payload) for row in rows]}

    @app.get("/memories/{memory_id}", dependencies=user)
    def get_memory(memory_id: str) -> Any:
        return call(lambda: store.get(memory_id), blame="upstream")

    @app.get("/memories/{memory_id}/history", dependencies=user)
    def memory_history(memory_id: str) -> Any:
        return call(lambda: store.history(memory_id=memory_id), blame="upstream")

    @app.put("/memories/{memory_id}", dependencies=user)
    def update_memory(memory_id: str, body: MemoryUpdate) -> Any:
        arguments: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
        if "text" in arguments:
            arguments["data"] = arguments.pop("text")
        return call(lambda: store.update(memory_id=memory_id, **arguments))

    @app.delete("/memories/{memory_id}", dependencies=user)
    def delete_memory(memory_id: str) -> dict[str, str]:
        call(lambda: store.delete(memory_id=memory_id))
        return {"message": "Memory deleted successfully"}

    @app.delete("/memories", dependencies=admin)
    def delete_scope(user_id: str = "", run_id: str = "", agent_id: str = "") -> dict[str, str]:
        filters = named(user_id, agent_id, run_id)
        if not filters:
            raise HTTPException(400, "At least one identifier is required.")
        call(lambda: store.delete_all(**filters), blame="upstream")
        return {"message": "All relevant memories deleted"}

    @app.post("/reset", dependencies=admin)
    def reset() -> dict[str, str]:
        call(store.reset, blame="upstream")
        return {"message": "All memories reset"}

    return app


def given(*values: str | None) -> list[str]:
    """The values that are neither null nor empty."""
    return [value for value in values if value]


def named(user_id: str, agent_id: str, run_id: str) -> dict[str, str]:
    """The ids that are not empty, by name."""
    return {name: value for name, value in zip(IDS, (user_id, agent_id, run_id)) if value}


def listed(memory_id: str, payload: dict[str, Any]) -> dict[str, Any]:
    """An item of the listing of everything: own keys at the top, null where absent, the rest of the payload as metadata."""
    item: dict[str, Any] = {"id": memory_id, "memory": payload.get("data")}
    item.update({name: payload.get(name) for name in OWN})
    item["metadata"] = {name: value for name, value in payload.items() if name != "data" and name not in OWN}
    return item


def redact(value: Any) -> Any:
    """A configuration without its secrets."""
    if isinstance(value, dict):
        return {name: "[redacted]" if name in SECRETS else redact(inner) for name, inner in value.items()}
    return value

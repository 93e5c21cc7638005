"""The routes: those of mem0's self-hosted server in its shape (its OpenAPI document and its recorded answers), and those that the library has beyond it.

Not here: users, sessions and per-user keys (/auth/* beyond the set-up status), /entities, changing the configuration at run time.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse, Response

from . import __version__
from .config import Config
from .errors import DETAILS, Refused, StoreFull, Upstream, call
from .filters import IDS
from .library import Library
from .middleware import Edge
from .models import ListRequest, MemoryCreate, MemoryUpdate, SearchRequest
from .work import Busy, Claim, Closing, Kind, Work

LIST_LIMIT = 1000
#: words in the names of settings that are secrets, wherever they stand
SECRETS = ("password", "api_key", "secret", "token", "credential", "connection_string", "authorization")

Result = TypeVar("Result")


def create(config: Config, library: Library) -> FastAPI:
    """Build the application in front of an opened library, which it closes at its end."""
    work = Work(config.limits.workers, config.limits.queue)
    started = time.monotonic()
    probes = ThreadPoolExecutor(2, thread_name_prefix="probe")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        # The server has stopped listening and has sent what it owed; what clients have given up still comes to its end.
        await work.close()
        probes.shutdown(wait=True)
        library.close()

    app = FastAPI(
        title="Mem0 REST APIs",
        version="1.0.0",
        description=f"A REST API for managing and searching memories. memhost's gateway {__version__} over the mem0ai package; GET /capabilities says what it has.",
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.work = work
    app.add_middleware(Edge, body_bytes=config.limits.body_bytes, open_to_all=config.auth_disabled)

    async def authenticate(request: Request) -> None:
        if config.key is None:
            return
        expected = config.key.encode()
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            # As at mem0's server, a Bearer wins over an X-API-Key, right or wrong.
            if not secrets.compare_digest(token.strip().encode(), expected):
                raise HTTPException(401, "Invalid or expired token.")
            return
        key = request.headers.get("x-api-key")
        if key is None:
            raise HTTPException(401, "Authentication required. Provide a Bearer token or X-API-Key header.", {"WWW-Authenticate": "Bearer"})
        if not secrets.compare_digest(key.encode(), expected):
            raise HTTPException(401, "Invalid API key.")

    user = [Depends(authenticate)]

    async def do(claim: Claim, work_: Callable[[], Result], blame: str = "caller") -> Response:
        """Run a call of the library when it is its turn, and answer with what it returns."""
        return answered(await work.run(claim, lambda: call(work_, blame=blame)))

    @app.exception_handler(Upstream)
    async def upstream(request: Request, error: Upstream) -> JSONResponse:
        body = {"detail": DETAILS[error.code], "code": error.code, "request_id": request.state.id}
        if error.more:
            body["detail"] += " " + error.more
        return JSONResponse(body, 502)

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        return JSONResponse({"detail": str(error), "code": error.code}, 400)

    @app.exception_handler(StoreFull)
    async def full(request: Request, error: StoreFull) -> JSONResponse:
        return JSONResponse({"detail": str(error), "code": "store_full", "request_id": request.state.id}, 507)

    @app.exception_handler(Busy)
    async def busy(_: Request, __: Busy) -> JSONResponse:
        detail = f"{config.limits.queue} requests run or wait already; nothing was done."
        return JSONResponse({"detail": detail, "code": "queue_full"}, 429, {"Retry-After": "1"})

    @app.exception_handler(Closing)
    async def closing(_: Request, __: Closing) -> JSONResponse:
        return JSONResponse({"detail": "The gateway is shutting down; nothing was done.", "code": "closing"}, 429, {"Retry-After": "5"})

    # Of mem0's own server

    @app.get("/auth/setup-status", tags=["auth"])
    async def setup_status() -> Response:
        """Open to all; touches the store, in threads that no add can take."""
        await asyncio.get_running_loop().run_in_executor(probes, lambda: call(library.alive, blame="upstream"))
        return answered({"needsSetup": True})

    @app.get("/configure/providers", dependencies=user)
    async def providers() -> Response:
        return answered({section: [config.mem0[section]["provider"]] for section in ("llm", "embedder")})

    @app.get("/configure", dependencies=user)
    async def configuration() -> Response:
        return answered(redact({"version": "v1.1", **config.mem0}))

    @app.post("/memories", dependencies=user)
    async def add_memory(body: MemoryCreate) -> Response:
        """Store messages, or what an LLM makes of them. Adds of one scope run one after another, in the order of their arrival."""
        ids = {"user_id": body.user_id, "agent_id": body.agent_id, "run_id": body.run_id}
        if not any(ids.values()):
            raise HTTPException(400, "At least one identifier (user_id, agent_id, run_id) is required.")
        arguments = body.model_dump(exclude_none=True)
        return await do(Claim.of(Kind.ADD, ids), lambda: library.add(**arguments))

    @app.post("/search", dependencies=user)
    async def search_memories(body: SearchRequest) -> Response:
        """Search. With ``rerank`` the answer says beside ``results`` what the reranker did; its failures are a 502, or plain order."""
        arguments = body.model_dump(exclude_none=True, exclude={"filters", "query", "rerank", "rerank_pool", "rerank_on_error", *IDS})
        filters = dict(body.filters or {})
        for name in IDS:
            if value := getattr(body, name):
                filters[name] = value
        if body.rerank:
            pool, on_error = body.rerank_pool, body.rerank_on_error or "error"
            return await do(Claim(Kind.READ), lambda: library.search_reranked(body.query, filters, pool, on_error, **arguments), "request")
        return await do(Claim(Kind.READ), lambda: library.search(body.query, filters, **arguments), "request")

    @app.get("/memories", dependencies=user)
    async def list_memories(
        user_id: str = "",
        run_id: str = "",
        agent_id: str = "",
        top_k: Annotated[int | None, Query(ge=0, le=LIST_LIMIT)] = None,
        show_expired: bool = False,
    ) -> Response:
        """The memories of a scope, 20 unless top_k says otherwise; without any id those of everybody, in a shape of its own."""
        filters = named(user_id, agent_id, run_id)
        if filters:
            limit = {} if top_k is None else {"top_k": top_k}
            return await do(Claim(Kind.READ), lambda: library.list(dict(filters), show_expired=show_expired, **limit), "upstream")
        return await do(Claim(Kind.READ), lambda: library.list_everything(LIST_LIMIT if top_k is None else top_k), "upstream")

    @app.get("/memories/{memory_id}", dependencies=user)
    async def get_memory(memory_id: str) -> Response:
        return await do(Claim(Kind.READ), lambda: library.get(memory_id), "upstream")

    @app.get("/memories/{memory_id}/history", dependencies=user)
    async def memory_history(memory_id: str) -> Response:
        return await do(Claim(Kind.READ), lambda: library.history(memory_id), "upstream")

    @app.put("/memories/{memory_id}", dependencies=user)
    async def update_memory(memory_id: str, body: MemoryUpdate) -> Response:
        arguments: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
        return await do(Claim.of(Kind.CHANGE, {"memory": memory_id}), lambda: library.update(memory_id, **arguments))

    @app.delete("/memories/{memory_id}", dependencies=user)
    async def delete_memory(memory_id: str) -> Response:
        await do(Claim.of(Kind.CHANGE, {"memory": memory_id}), lambda: library.delete(memory_id))
        return answered({"message": "Memory deleted successfully"})

    @app.delete("/memories", dependencies=user)
    async def delete_scope(user_id: str = "", run_id: str = "", agent_id: str = "", buffer: bool | None = None) -> Response:
        """Delete the memories of a scope. With ``buffer`` given the answer counts; ``buffer=true`` also removes the scope's last messages."""
        ids = named(user_id, agent_id, run_id)
        if not ids:
            raise HTTPException(400, "At least one identifier is required.")
        if buffer is not None:
            return await do(Claim.of(Kind.ERASE, ids), lambda: library.delete_scope_counted(ids, buffer), "upstream")
        await do(Claim.of(Kind.ERASE, ids), lambda: library.delete_scope(ids), "upstream")
        return answered({"message": "All relevant memories deleted"})

    @app.post("/reset", dependencies=user)
    async def reset() -> Response:
        await do(Claim(Kind.RESET), library.reset, "upstream")
        return answered({"message": "All memories reset"})

    # Beyond mem0's own server

    @app.get("/capabilities", dependencies=user, tags=["gateway"])
    async def capabilities() -> Response:
        """What this server has beyond mem0's own, which answers 404 here."""
        return answered({**library.capabilities(), "uptime_ms": int((time.monotonic() - started) * 1000)})

    @app.post("/memories/list", dependencies=user, tags=["gateway"])
    async def list_filtered(body: ListRequest) -> Response:
        return await do(Claim(Kind.READ), lambda: library.list(body.filters, top_k=body.top_k, show_expired=body.show_expired), "request")

    @app.get("/messages", dependencies=user, tags=["gateway"])
    async def last_messages(user_id: str = "", run_id: str = "", agent_id: str = "", limit: Annotated[int, Query(ge=1, le=10)] = 10) -> Response:
        """The scope's last messages, which the extractor is shown with the next add."""
        ids = named(user_id, agent_id, run_id)
        if not ids:
            raise HTTPException(400, "At least one identifier is required.")
        return await do(Claim(Kind.READ), lambda: library.last_messages(ids, limit), "request")

    @app.get("/entity-rows", dependencies=user, tags=["gateway"])
    async def entity_rows(user_id: str = "", run_id: str = "", agent_id: str = "", top_k: Annotated[int, Query(ge=1, le=10_000)] = 1000) -> Response:
        """The entities of a scope, with the memories that each is linked to."""
        ids = named(user_id, agent_id, run_id)
        if not ids:
            raise HTTPException(400, "At least one identifier is required.")
        return await do(Claim(Kind.READ), lambda: library.entity_rows(ids, top_k), "request")

    return app


def answered(value: Any) -> Response:
    """The value as JSON. The library returns plain values: the framework's walk over them, which costs more than all the rest, is left out."""
    try:
        return Response(orjson.dumps(value), media_type="application/json")
    except TypeError:  # half a surrogate pair, a number of more than 64 bits
        return JSONResponse(value)


def named(user_id: str, agent_id: str, run_id: str) -> dict[str, str]:
    """The ids that are not empty, by name."""
    return {name: value for name, value in (("user_id", user_id), ("agent_id", agent_id), ("run_id", run_id)) if value}


def redact(value: Any) -> Any:
    """A configuration without its secrets."""
    if isinstance(value, dict):
        return {name: "[redacted]" if any(word in name.lower() for word in SECRETS) and inner is not None and not isinstance(inner, (int, dict)) else redact(inner)
                for name, inner in value.items()}
    if isinstance(value, list):
        return [redact(inner) for inner in value]
    return value

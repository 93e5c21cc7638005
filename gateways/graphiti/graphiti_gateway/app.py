"""The routes (API.md). ``create`` builds the application from an engine; the queue, the lanes and their shutdown hang on it."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import __version__, bodies, render
from .engine import Engine
from .errors import GatewayError, path_of, translate
from .journal import STATES, Journal
from .lanes import Lanes

log = logging.getLogger("graphiti_gateway")

REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}\Z")
#: routes that need no token
OPEN = frozenset({"/health", "/openapi.json"})


class JSON(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else render.dumps(content)


def failure(error: GatewayError) -> JSON:
    return JSON({"error": error.body()}, error.status, error.headers)


class Door:
    """Before any route: the request's id, the token, the size of the body. Plain ASGI, since this is in the path of every search."""

    def __init__(self, app: ASGIApp, *, token: str, body_bytes: int) -> None:
        self._app, self._token, self._limit = app, b"Bearer " + token.encode(), body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        number = given if REQUEST_ID.match(given) else uuid.uuid4().hex[:12].encode()

        async def numbered(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", number)]
            await send(message)

        if scope["path"] not in OPEN and not secrets.compare_digest(headers.get(b"authorization", b""), self._token):
            error = GatewayError("unauthorized", "send the header Authorization: Bearer <token>")
            await failure(error)(scope, receive, numbered)
            return
        size = 0

        async def measured() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._limit:
                raise GatewayError("body_too_large", "the body is too large", limit=self._limit)
            return message

        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._limit:
            error = GatewayError("body_too_large", "the body is too large", limit=self._limit)
            await failure(error)(scope, receive, numbered)
            return
        await self._app(scope, measured, numbered)


@dataclass(eq=False)
class Job:
    """A queued write in its lane; its body is in the journal."""

    service: Service
    group: str
    id: str
    queued: bool = True

    async def run(self) -> None:
        try:
            await self.service.run_job(self.group, self.id)
        except Exception:  # the journal's disk: the next start finds the job as interrupted, and the lane goes on
            log.exception("job %s of group %s: the journal failed", self.id, self.group)

    def refuse(self, error: GatewayError) -> None:
        """It stays on disk for the next start."""


class Service:
    """Writes in order, at once or from the journal."""

    def __init__(self, engine: Engine, journal: Journal | None) -> None:
        limits = engine.limits
        self.engine, self.journal = engine, journal
        self.lanes = Lanes(waiting_per_group=limits.waiting_per_group, waiting=limits.waiting, concurrent_groups=limits.concurrent_groups)
        self._adding = asyncio.Lock()
        #: kind of a write, which is the engine's method of that name -> its body
        self._kinds: dict[str, type[bodies.Write]] = {
            "add_episode": bodies.AddEpisode,
            "add_episode_bulk": bodies.AddEpisodeBulk,
            "add_triplet": bodies.AddTriplet,
        }

    async def _perform(self, kind: str, group: str, body: bodies.Write) -> dict[str, Any]:
        result: dict[str, Any] = await getattr(self.engine.of(group), kind)(group, body)
        return result

    async def resume(self) -> None:
        """Take up what a former process left waiting."""
        if self.journal is None:
            return
        for group, job in await self.journal.waiting():
            self.lanes.push(group, Job(self, group, job))

    async def write(self, kind: str, group: str, body: bodies.Write, names: list[str]) -> JSON:
        """Answer a write: 200 with its result, or 202 with its job."""
        if body.mode == "sync":
            return JSON(await self.lanes.call(group, lambda: self._perform(kind, group, body)))
        if self.journal is None:
            raise GatewayError("queue_disabled", "this gateway has no journal; set queue.path")
        self.engine.check(body)
        self.lanes.admit()
        async with self._adding:  # the order on disk is the order in the lane
            job, new = await self.journal.add(group, body.job_id or uuid.uuid4().hex, kind, names, body.model_dump(mode="json", exclude_unset=True))
            if new:
                self.lanes.push(group, Job(self, group, job["id"]))
        return JSON({"job": job}, 202)

    async def run_job(self, group: str, job: str) -> None:
        assert self.journal is not None
        started = await self.journal.start(group, job)
        if started is None:  # cancelled or deleted meanwhile
            return
        kind, data = started
        try:
            result = render.dumps(await self._perform(kind, group, self._kinds[kind].model_validate(data)))
        except Exception as error:
            known = translate(error, writing=True)
            log.warning("job %s of group %s failed: %s", job, group, known.code)
            await self.journal.finish(group, job, "failed", error=known.body())
        else:
            await self.journal.finish(group, job, "done", result=result)

    async def remove_group(self, group: str) -> dict[str, Any]:
        """Delete a group in its turn: before it the group's waiting jobs are cancelled, which would bring it back."""
        cancelled = 0
        async with self._adding:
            removing = self.lanes.enter(group, lambda: self.engine.of(group).remove_group(group))
            self.lanes.withdraw(group, lambda turn: turn.queued)
            if self.journal is not None:
                cancelled = await self.journal.cancel_group(group)
        return {"group_id": group, "removed": await asyncio.shield(removing), "cancelled_jobs": cancelled}

    async def stop(self) -> None:
        """End in order: nothing new begins, what runs is waited for, what is queued stays on disk."""
        self.lanes.stop()
        await self.lanes.drain(self.engine.limits.drain_seconds)


async def group_of(group_id: str) -> str:  # not a plain function: those the framework sends to a thread
    if not bodies.GROUP.match(group_id):
        raise GatewayError("invalid_group_id", "a group_id is 1 to 255 of [A-Za-z0-9_-]", group_id=group_id[:300])
    return group_id


Group = Annotated[str, Depends(group_of)]
Limit = Annotated[int, Query(ge=1)]

ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "details": {"type": "object"}},
            "required": ["code", "message", "details"],
        }
    },
    "required": ["error"],
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    422: {"description": "refused before anything was done", "content": {"application/json": {"schema": ERROR}}},
    "default": {"description": "any other failure", "content": {"application/json": {"schema": ERROR}}},
}


def create(engine: Engine, token: str, journal: Journal | None = None) -> FastAPI:
    """Build the application over an engine. ``app.state.service`` is there once it has started."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        service = app.state.service = Service(engine, journal)
        await service.resume()
        yield
        await service.stop()
        await engine.close()
        if journal is not None:
            journal.close()

    app = FastAPI(
        title="Graphiti gateway",
        version=__version__,
        description="The methods of graphiti-core over HTTP. API.md says what each field means.",
        lifespan=life,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        responses=ANSWERS,
    )
    app.add_middleware(Door, token=token, body_bytes=engine.limits.body_bytes)

    def service() -> Service:
        found: Service = app.state.service
        return found

    @app.exception_handler(GatewayError)
    async def told(_: Request, error: GatewayError) -> JSON:
        return failure(error)

    @app.exception_handler(RequestValidationError)
    async def refused(_: Request, error: RequestValidationError) -> JSON:
        return failure(invalid(error))

    @app.exception_handler(HTTPException)
    async def strayed(_: Request, error: HTTPException) -> JSON:
        if error.status_code == 404:
            return failure(GatewayError("no_such_route", "there is no such route"))
        if error.status_code == 405:
            return failure(GatewayError("method_not_allowed", "the route has other methods"))
        if isinstance(error.__cause__, GatewayError):  # the body broke off at the door
            return failure(error.__cause__)
        return failure(GatewayError("invalid_request", str(error.detail), errors=[]))

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSON:
        return failure(translate(error, writing=False))

    # About the gateway.

    @app.get("/health", tags=["gateway"])
    async def health() -> JSON:
        return JSON({"status": "ok"})

    @app.get("/v1/ready", tags=["gateway"])
    async def ready() -> JSON:
        await engine.ping()
        service().lanes.admit()
        counts = await journal.counts() if journal else dict.fromkeys(STATES, 0)
        jobs = {state: counts[state] for state in ("queued", "running", "failed", "interrupted")}
        return JSON({"status": "ready", "database": "ok", "accepting": True, "jobs": jobs, "waiting": service().lanes.waiting})

    @app.get("/v1/info", tags=["gateway"])
    async def info() -> JSON:
        return JSON(engine.info(queue=journal is not None))

    @app.get("/v1/usage", tags=["gateway"])
    async def usage() -> JSON:
        return JSON(engine.usage())

    @app.delete("/v1/usage", tags=["gateway"])
    async def reset_usage() -> JSON:
        return JSON(engine.reset_usage())

    # Writing.

    @app.post("/v1/groups/{group_id}/episodes", tags=["writing"])
    async def add_episode(group: Group, body: bodies.AddEpisode) -> JSON:
        return await service().write("add_episode", group, body, [body.name])

    @app.post("/v1/groups/{group_id}/episodes/bulk", tags=["writing"])
    async def add_episode_bulk(group: Group, body: bodies.AddEpisodeBulk) -> JSON:
        return await service().write("add_episode_bulk", group, body, [item.name for item in body.episodes])

    @app.post("/v1/groups/{group_id}/triplets", tags=["writing"])
    async def add_triplet(group: Group, body: bodies.AddTriplet) -> JSON:
        return await service().write("add_triplet", group, body, [])

    @app.post("/v1/groups/{group_id}/communities", tags=["writing"])
    async def build_communities(group: Group, body: bodies.Communities) -> JSON:
        return JSON(await service().lanes.call(group, lambda: engine.of(group).build_communities(group, body)))

    @app.post("/v1/groups/{group_id}/sagas/{uuid}/summary", tags=["writing"])
    async def summarize_saga(group: Group, uuid: str, body: bodies.Body) -> JSON:
        return JSON(await service().lanes.call(group, lambda: engine.of(group).summarize_saga(group, uuid)))

    # Jobs.

    def jobs() -> Journal:
        if journal is None:
            raise GatewayError("queue_disabled", "this gateway has no journal; set queue.path")
        return journal

    @app.get("/v1/groups/{group_id}/jobs", tags=["jobs"])
    async def list_jobs(group: Group, state: str | None = None, limit: Limit = 100) -> JSON:
        if state is not None and state not in STATES:
            raise GatewayError("invalid_request", "no such state", errors=[{"path": "query.state", "message": f"one of {', '.join(STATES)}"}])
        found, counts = await jobs().jobs(group, state, min(limit, engine.limits.page))
        return JSON({"jobs": found, "counts": counts})

    @app.get("/v1/groups/{group_id}/jobs/{job_id}", tags=["jobs"])
    async def get_job(group: Group, job_id: str) -> JSON:
        return JSON({"job": await jobs().get(group, job_id)})

    @app.delete("/v1/groups/{group_id}/jobs/{job_id}", tags=["jobs"])
    async def delete_job(group: Group, job_id: str) -> JSON:
        return JSON({"job": await jobs().delete(group, job_id)})

    # Searching.

    @app.post("/v1/groups/{group_id}/search", tags=["searching"])
    async def search(group: Group, body: bodies.Search) -> JSON:
        return JSON(await engine.of(group).search(group, body))

    @app.post("/v1/groups/{group_id}/search_", tags=["searching"])
    async def search_(group: Group, body: bodies.SearchAdvanced) -> JSON:
        return JSON(await engine.of(group).search_(group, body))

    # Reading by id.

    @app.post("/v1/groups/{group_id}/episodes/lookup", tags=["reading"])
    async def lookup_episodes(group: Group, body: bodies.EpisodeLookup) -> JSON:
        if body.names is not None:
            return JSON(await engine.of(group).lookup_names(group, body.names))
        return JSON(await engine.of(group).lookup(group, "episodes", body.uuids or []))

    @app.post("/v1/groups/{group_id}/nodes/lookup", tags=["reading"])
    async def lookup_nodes(group: Group, body: bodies.Lookup) -> JSON:
        return JSON(await engine.of(group).lookup(group, "nodes", body.uuids))

    @app.post("/v1/groups/{group_id}/edges/lookup", tags=["reading"])
    async def lookup_edges(group: Group, body: bodies.Lookup) -> JSON:
        return JSON(await engine.of(group).lookup(group, "edges", body.uuids))

    @app.post("/v1/groups/{group_id}/episodes/retrieve", tags=["reading"])
    async def retrieve_episodes(group: Group, body: bodies.Retrieve) -> JSON:
        return JSON(await engine.of(group).retrieve_episodes(group, body))

    @app.post("/v1/groups/{group_id}/episodes/contents", tags=["reading"])
    async def contents(group: Group, body: bodies.Contents) -> JSON:
        return JSON(await engine.of(group).contents(group, body))

    @app.get("/v1/groups/{group_id}/episodes", tags=["reading"])
    async def list_episodes(group: Group, limit: Limit = 100, cursor: str | None = None) -> JSON:
        return JSON(await engine.of(group).page(group, "episodes", limit, cursor))

    @app.get("/v1/groups/{group_id}/nodes", tags=["reading"])
    async def list_nodes(group: Group, limit: Limit = 100, cursor: str | None = None) -> JSON:
        return JSON(await engine.of(group).page(group, "nodes", limit, cursor))

    @app.get("/v1/groups/{group_id}/edges", tags=["reading"])
    async def list_edges(group: Group, limit: Limit = 100, cursor: str | None = None) -> JSON:
        return JSON(await engine.of(group).page(group, "edges", limit, cursor))

    @app.get("/v1/groups/{group_id}/sagas", tags=["reading"])
    async def list_sagas(group: Group, limit: Limit = 100, cursor: str | None = None) -> JSON:
        return JSON(await engine.of(group).page(group, "sagas", limit, cursor))

    @app.get("/v1/groups/{group_id}/sagas/{uuid}", tags=["reading"])
    async def get_saga(group: Group, uuid: str) -> JSON:
        return JSON(await engine.of(group).get_saga(group, uuid))

    @app.get("/v1/groups/{group_id}/episodes/{uuid}", tags=["reading"])
    async def get_episode(group: Group, uuid: str) -> JSON:
        return JSON(await engine.of(group).get_episode(group, uuid))

    @app.get("/v1/groups/{group_id}/nodes/{uuid}", tags=["reading"])
    async def get_node(group: Group, uuid: str) -> JSON:
        return JSON(await engine.of(group).get_node(group, uuid))

    @app.get("/v1/groups/{group_id}/edges/{uuid}", tags=["reading"])
    async def get_edge(group: Group, uuid: str) -> JSON:
        return JSON(await engine.of(group).get_edge(group, uuid))

    # Removing, and the group as a whole.

    @app.delete("/v1/groups/{group_id}/episodes/{uuid}", tags=["removing"])
    async def remove_episode(group: Group, uuid: str, shared: Literal["keep"] | None = None) -> JSON:
        return JSON(await service().lanes.call(group, lambda: engine.of(group).remove_episode(group, uuid, keep_shared=shared is not None)))

    @app.delete("/v1/groups/{group_id}/nodes/{uuid}", tags=["removing"])
    async def remove_node(group: Group, uuid: str) -> JSON:
        return JSON(await service().lanes.call(group, lambda: engine.of(group).remove_node(group, uuid)))

    @app.delete("/v1/groups/{group_id}/edges/{uuid}", tags=["removing"])
    async def remove_edge(group: Group, uuid: str, summaries: Literal["clean"] | None = None) -> JSON:
        return JSON(await service().lanes.call(group, lambda: engine.of(group).remove_edge(group, uuid, clean_summaries=summaries is not None)))

    @app.delete("/v1/groups/{group_id}", tags=["removing"])
    async def remove_group(group: Group) -> JSON:
        return JSON(await service().remove_group(group))

    @app.get("/v1/groups/{group_id}", tags=["reading"])
    async def get_group(group: Group) -> JSON:
        its = engine.of(group)
        counts = await its.reading(lambda: its.counts(group))
        return JSON({"group_id": group, "counts": counts, "jobs": await journal.counts(group) if journal else dict.fromkeys(STATES, 0)})

    return app


def invalid(error: RequestValidationError) -> GatewayError:
    """The code of a refused body: searches have codes of their own for their two nested objects."""
    found = error.errors()
    places = [tuple(item["loc"]) for item in found]
    listed = [{"path": path_of(place), "message": item["msg"]} for place, item in zip(places, found, strict=True)]
    if any(place[:3] == ("body", "search_filter", "property_filters") for place in places):
        return GatewayError("unsupported", "search_filter.property_filters: graphiti-core ignores them", field="search_filter.property_filters")
    if any(place[:2] == ("body", "search_filter") for place in places):
        return GatewayError("invalid_search_filter", "the search_filter is refused", errors=listed)
    if any(place[:2] == ("body", "config") for place in places):
        return GatewayError("invalid_search_config", "the config is refused", errors=listed)
    return GatewayError("invalid_request", "the request is refused", errors=listed)

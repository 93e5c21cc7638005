"""The library, opened once: one driver and one set of clients for the life of the process. Every method checks the group, calls graphiti-core, answers JSON.

Order within a group is not kept here but in ``lanes``.
"""

from __future__ import annotations

import asyncio
import copy
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, TypeVar
from uuid import uuid4

import graphiti_core.embedder.client
from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
from graphiti_core.edges import EntityEdge
from graphiti_core.embedder import OpenAIEmbedder
from graphiti_core.embedder.openai import OpenAIEmbedderConfig
from graphiti_core.errors import EdgeNotFoundError, GroupsEdgesNotFoundError, GroupsNodesNotFoundError, NodeNotFoundError
from graphiti_core.llm_client import LLMClient, LLMConfig, OpenAIClient
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode, SagaNode
from graphiti_core.search import search_config_recipes
from graphiti_core.search.search_config import SearchConfig
from graphiti_core.search.search_filters import SearchFilters
from graphiti_core.utils.bulk_utils import RawEpisode
from openai import AsyncOpenAI
from pydantic import BaseModel

from . import __version__, bodies, communities, render
from .databases import Store, open_store
from .errors import GatewayError, not_found, translate
from .ontology import EDGE_FIELDS, ENTITY, NODE_FIELDS, TypeSchema, build
from .settings import Model, Settings, SettingsError

T = TypeVar("T")

#: the library's named SearchConfigs. They are shared objects that Graphiti.search writes into: never hand one out, see ``recipe``.
RECIPES: dict[str, SearchConfig] = {name: value for name, value in vars(search_config_recipes).items() if isinstance(value, SearchConfig)}

#: groups whose engines are kept, where each group is a graph of its own
ENGINES = 10_000

#: ids of this group among those asked for
KNOWN = {
    "episode": "MATCH (n:Episodic {group_id: $group}) WHERE n.uuid IN $uuids RETURN n.uuid AS uuid",
    "node": "MATCH (n:Entity {group_id: $group}) WHERE n.uuid IN $uuids RETURN n.uuid AS uuid",
    "edge": "MATCH (:Entity)-[e:RELATES_TO {group_id: $group}]->(:Entity) WHERE e.uuid IN $uuids RETURN e.uuid AS uuid",
}

#: what a write that failed has left: its episodes, and whether anything hangs on them
LEFT = (
    "MATCH (e:Episodic {group_id: $group}) WHERE e.created_at >= $since OR e.uuid IN $uuids OPTIONAL MATCH (e)-[m:MENTIONS]->()"
    " RETURN e.uuid AS uuid, e.name AS name, e.content AS content, count(m) AS mentions"
)


class NoReranker(CrossEncoderClient):
    """Stands where no cross encoder is configured; the routes refuse such searches before."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        raise GatewayError("reranker_not_configured", "this gateway has no reranker")


def client_of(model: Model) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=model.api_key.read(), base_url=model.base_url, timeout=model.timeout_seconds, max_retries=model.retries)


def llm_of(settings: Settings) -> LLMClient:
    llm = settings.llm
    config = LLMConfig(model=llm.model, small_model=llm.small_model)
    if llm.temperature is not None:
        config.temperature = llm.temperature
    if llm.api == "chat":
        generic = OpenAIGenericClient(config=config, client=client_of(llm), structured_output_mode=llm.structured_output)
        generic.max_tokens = llm.max_tokens or generic.max_tokens
        return generic
    client = OpenAIClient(config=config, client=client_of(llm))
    client.max_tokens = llm.max_tokens or client.max_tokens
    return client


class Engine:
    """graphiti-core over one database. Make it where no event loop runs, or the library builds indexes in the background.

    What is asked of a group is asked of ``of(group)``: the same engine on Neo4j, on FalkorDB one over the group's graph.
    """

    def __init__(self, settings: Settings) -> None:
        if settings.embedder.dimensions != graphiti_core.embedder.client.EMBEDDING_DIM:
            raise SettingsError(f"embedder.dimensions: graphiti-core was loaded with EMBEDDING_DIM={graphiti_core.embedder.client.EMBEDDING_DIM}")
        self.settings, self.limits = settings, settings.limits
        self.types: dict[str, dict[str, type[BaseModel]]] = {
            "entity": {name: build(name, schema, NODE_FIELDS) for name, schema in settings.types.entity.items()},
            "edge": {name: build(name, schema, EDGE_FIELDS) for name, schema in settings.types.edge.items()},
        }
        embedder = OpenAIEmbedder(
            config=OpenAIEmbedderConfig(embedding_model=settings.embedder.model, embedding_dim=settings.embedder.dimensions),
            client=client_of(settings.embedder),
        )
        reranker: CrossEncoderClient = NoReranker()
        if settings.reranker is not None:
            reranker = OpenAIRerankerClient(config=LLMConfig(model=settings.reranker.model), client=client_of(settings.reranker))
        self._llm, self._embedder, self._reranker = llm_of(settings), embedder, reranker
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._bind(open_store(settings.database))

    def _bind(self, store: Store) -> None:
        self.store, self.driver = store, store.driver
        self.graphiti = Graphiti(
            graph_driver=store.driver,
            llm_client=self._llm,
            embedder=self._embedder,
            cross_encoder=self._reranker,
            store_raw_episode_content=self.settings.store_episode_content,
        )
        self._indexing = asyncio.Lock()

    def of(self, group: str) -> Engine:
        """The engine for a group."""
        if not self.store.apart:
            return self
        bound = self._engines.pop(group, None)
        if bound is None:
            bound = copy.copy(self)
            bound._bind(self.store.of(group))
            if len(self._engines) >= ENGINES:
                self._engines.popitem(last=False)
        self._engines[group] = bound  # the newest
        return bound

    async def close(self) -> None:
        await self.store.close()

    # Calls, their deadlines and their failures.

    async def indexed(self) -> None:
        """Build the indexes once, before anything else: the first call that finds the database does it."""
        if self.store.indexed:
            return
        async with self._indexing:
            if not self.store.indexed:
                await self.store.index()

    async def reading(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self.limits.read_seconds):
                await self.indexed()
                return await work()
        except TimeoutError:
            raise GatewayError("deadline_exceeded", "the call took too long and was given up", seconds=self.limits.read_seconds) from None
        except Exception as error:
            if "TooManyClauses" in str(error):
                found = [{"path": "body.query", "message": "too many words for the full-text index"}]
                raise GatewayError("invalid_request", "the query has too many words", errors=found) from error
            raise translate(error, writing=False) from error

    async def writing(self, work: Callable[[], Awaitable[T]], left: Callable[[GatewayError], Awaitable[dict[str, Any]]]) -> T:
        """Run a write; of one that fails, ``left`` says what of it is in the graph."""
        begun = False
        try:
            async with asyncio.timeout(self.limits.write_seconds):
                await self.indexed()
                begun = True
                return await work()
        except TimeoutError:
            failure = GatewayError("deadline_exceeded", "the call took too long and was given up", seconds=self.limits.write_seconds)
        except Exception as error:
            if isinstance(error, GatewayError):
                raise
            failure = translate(error, writing=True)
            failure.__cause__ = error
        failure.details.update(await left(failure) if begun else {"stored": "nothing"})
        raise failure

    async def rows(self, cypher: str, **parameters: Any) -> list[dict[str, Any]]:
        return await self.store.rows(cypher, **parameters)

    async def require(self, kind: str, field: str, group: str, uuids: Iterable[str | None]) -> None:
        """Refuse ids that this group does not have: the library looks up ids without regard to the group."""
        asked = [uuid for uuid in dict.fromkeys(uuids) if uuid is not None]
        if not asked:
            return
        known = {row["uuid"] for row in await self.rows(KNOWN[kind], group=group, uuids=asked)}
        missing = [uuid for uuid in asked if uuid not in known]
        if missing:
            raise GatewayError("reference_not_found", f"this group has no such {kind}", field=field, uuids=missing)

    # Writing.

    def extraction(self, body: bodies.Extraction) -> dict[str, Any]:
        """The types of a request as the library wants them. It checks them in add_episode only, and edge types nowhere."""
        chosen: dict[str, dict[str, type[BaseModel]] | None] = {}
        for kind, names in (("entity", body.entity_types), ("edge", body.edge_types)):
            known = self.types[kind]
            for name in names or ():
                if name not in known:
                    raise GatewayError("unknown_type", f"the configuration has no {kind} type {name!r}", kind=kind, name=name, known=sorted(known))
            chosen[kind] = {name: known[name] for name in names} if names else None
        entities = [*(chosen["entity"] or ()), ENTITY]
        edges = list(chosen["edge"] or ())
        for name in body.excluded_entity_types or ():
            if name not in entities:
                raise GatewayError(
                    "unknown_type", f"excluded_entity_types: {name!r} is no entity type of this request", kind="entity", name=name, known=entities
                )
        type_map: dict[tuple[str, str], list[str]] = {}
        for signature in body.edge_type_map or ():
            for kind, names, allowed in (("entity", [signature.source, signature.target], entities), ("edge", signature.types, edges)):
                for name in names:
                    if name not in allowed:
                        raise GatewayError("unknown_type", f"edge_type_map: {name!r} is no {kind} type of this request", kind=kind, name=name, known=allowed)
            type_map.setdefault((signature.source, signature.target), []).extend(signature.types)
        return {
            "entity_types": chosen["entity"],
            "excluded_entity_types": body.excluded_entity_types or None,
            "edge_types": chosen["edge"],
            "edge_type_map": type_map or None,
            "custom_extraction_instructions": body.custom_extraction_instructions,
            "saga": body.saga,
        }

    def check(self, body: bodies.Write) -> None:
        """What can be said without the database, so that it is said before a write is queued."""
        match body:
            case bodies.AddEpisode():
                if body.update_communities:
                    raise GatewayError(
                        "unsupported",
                        "update_communities: graphiti-core raises after it has committed; build the communities instead",
                        field="update_communities",
                    )
                self.extraction(body)
                source_of(body.source, "source")
            case bodies.AddEpisodeBulk():
                if len(body.episodes) > self.limits.bulk_episodes:
                    raise GatewayError("bulk_too_large", "too many episodes; send several bulks", limit=self.limits.bulk_episodes, count=len(body.episodes))
                self.extraction(body)
                for i, item in enumerate(body.episodes):
                    source_of(item.source, f"episodes.{i}.source")
            case bodies.AddTriplet():
                for field, attributes, taken in (
                    ("source_node", body.source_node.attributes, NODE_FIELDS),
                    ("edge", body.edge.attributes, EDGE_FIELDS),
                    ("target_node", body.target_node.attributes, NODE_FIELDS),
                ):
                    # The library writes attributes over the object's own properties: one called group_id would move it.
                    if clash := sorted(taken.intersection(attributes)):
                        found = [{"path": f"body.{field}.attributes.{name}", "message": "is a field of the object itself"} for name in clash]
                        raise GatewayError("invalid_request", "an attribute has the name of a field", errors=found)

    async def add_episode(self, group: str, body: bodies.AddEpisode) -> dict[str, Any]:
        self.check(body)
        started = datetime.now(UTC)

        async def work() -> dict[str, Any]:
            await self.require("episode", "uuid", group, [body.uuid])
            await self.require("episode", "previous_episode_uuids", group, body.previous_episode_uuids or ())
            await self.require("episode", "saga_previous_episode_uuid", group, [body.saga_previous_episode_uuid])
            result = await self.graphiti.add_episode(
                name=body.name,
                episode_body=body.episode_body,
                source_description=body.source_description,
                reference_time=body.reference_time,
                source=source_of(body.source, "source"),
                group_id=group,
                uuid=body.uuid,
                previous_episode_uuids=body.previous_episode_uuids,
                saga_previous_episode_uuid=body.saga_previous_episode_uuid,
                **self.extraction(body),
            )
            return {
                "group_id": group,
                "episode": render.episode(result.episode),
                "nodes": [render.node(item) for item in result.nodes],
                "edges": [render.edge(item) for item in result.edges],
                "episodic_edges": [render.link(item) for item in result.episodic_edges],
                **render.written(result.edges, [result.episode.uuid]),
            }

        async def left(failure: GatewayError) -> dict[str, Any]:
            # All is written in one transaction at the end, after the last question to a model.
            if failure.code in ("llm_failed", "llm_rate_limited", "library_refused", "not_found"):
                return {"stored": "nothing"}
            if body.uuid is not None:
                return {"stored": "unknown"}
            return await self.left_episodes(group, [(body.name, body.episode_body, None)], started, failure, bare="unknown")

        return await self.writing(work, left)

    async def add_episode_bulk(self, group: str, body: bodies.AddEpisodeBulk) -> dict[str, Any]:
        self.check(body)
        started = datetime.now(UTC)

        async def work() -> dict[str, Any]:
            await self.require("episode", "episodes.uuid", group, (item.uuid for item in body.episodes))
            result = await self.graphiti.add_episode_bulk(
                [
                    RawEpisode(
                        name=item.name,
                        content=item.content,
                        source_description=item.source_description,
                        source=source_of(item.source, "episodes.source"),
                        reference_time=item.reference_time,
                        uuid=item.uuid,
                    )
                    for item in body.episodes
                ],
                group_id=group,
                **self.extraction(body),
            )
            return {
                "group_id": group,
                "episodes": [render.episode(item) for item in result.episodes],
                "nodes": [render.node(item) for item in result.nodes],
                "edges": [render.edge(item) for item in result.edges],
                "episodic_edges": [render.link(item) for item in result.episodic_edges],
                **render.written(result.edges, [item.uuid for item in result.episodes]),
            }

        async def left(failure: GatewayError) -> dict[str, Any]:
            return await self.left_episodes(
                group, [(item.name, item.content, item.uuid) for item in body.episodes], started, failure, bare="episodes_without_facts"
            )

        return await self.writing(work, left)

    async def left_episodes(self, group: str, sent: list[tuple[str, str, str | None]], since: datetime, failure: GatewayError, *, bare: str) -> dict[str, Any]:
        """What a failed write has left. The group's lane is still ours, so that new episodes of the group are those of this write."""
        if failure.code == "database_unavailable":
            return {"stored": "unknown"}
        try:
            async with asyncio.timeout(self.limits.read_seconds):
                rows = await self.rows(LEFT, group=group, since=since, uuids=[uuid for _, _, uuid in sent if uuid])
        except Exception:
            return {"stored": "unknown"}
        found: list[dict[str, Any]] = []
        for i, (name, content, uuid) in enumerate(sent):
            for row in rows:
                same = row["uuid"] == uuid if uuid else row["name"] == name and row["content"] in (content, "")
                if same:
                    found.append({"index": i, "name": name, "uuid": row["uuid"], "mentions": row["mentions"]})
                    rows.remove(row)
                    break
        if not found:
            return {"stored": "unknown" if failure.code == "deadline_exceeded" else "nothing"}
        stored = "without_saga" if any(item.pop("mentions") for item in found) else bare
        return {"stored": stored, "episodes": [{name: item[name] for name in ("index", "name", "uuid")} for item in found]}

    async def add_triplet(self, group: str, body: bodies.AddTriplet) -> dict[str, Any]:
        self.check(body)

        async def work() -> dict[str, Any]:
            await self.require("node", "source_node.uuid", group, [body.source_node.uuid])
            await self.require("node", "target_node.uuid", group, [body.target_node.uuid])
            await self.require("edge", "edge.uuid", group, [body.edge.uuid])
            at = datetime.now(UTC)
            source, target = (
                EntityNode(
                    uuid=end.uuid or str(uuid4()),
                    name=end.name,
                    group_id=group,
                    labels=list(end.labels),
                    created_at=at,
                    summary=end.summary,
                    attributes=dict(end.attributes),
                )
                for end in (body.source_node, body.target_node)
            )
            edge = EntityEdge(
                uuid=body.edge.uuid or str(uuid4()),
                group_id=group,
                source_node_uuid=source.uuid,
                target_node_uuid=target.uuid,
                created_at=at,
                name=body.edge.name,
                fact=body.edge.fact,
                valid_at=body.edge.valid_at,
                invalid_at=body.edge.invalid_at,
                attributes=dict(body.edge.attributes),
            )
            result = await self.graphiti.add_triplet(source, edge, target)
            fact, *closed = result.edges
            # The library gives the sent edge a new id when its ends do not fit, and answers the known edge when the fact is known.
            created = fact.uuid == edge.uuid and fact.uuid != body.edge.uuid
            return {
                "group_id": group,
                "nodes": [render.node(item) for item in result.nodes],
                "edges": [render.edge(item) for item in result.edges],
                "created_edge_uuids": [fact.uuid] if created else [],
                "reasserted_edge_uuids": [] if created else [fact.uuid],
                "invalidated_edge_uuids": list(dict.fromkeys(item.uuid for item in closed if item.uuid != fact.uuid)),
            }

        async def left(failure: GatewayError) -> dict[str, Any]:
            return {"stored": "unknown" if failure.code in ("database_unavailable", "deadline_exceeded", "internal") else "nothing"}

        return await self.writing(work, left)

    async def build_communities(self, group: str, body: bodies.Communities) -> dict[str, Any]:
        """In a process of its own, killed at the deadline: the library's loop never ends when two entities share two facts, and cannot be stopped inside."""
        seconds = min(body.timeout_seconds or self.limits.communities_seconds, self.limits.communities_seconds)

        async def work() -> dict[str, Any]:
            answer = await communities.run(self.settings, group, seconds)
            return {"group_id": group, **answer}

        async def left(failure: GatewayError) -> dict[str, Any]:
            return {"stored": "without_communities"}

        return await self.writing(work, left)

    async def summarize_saga(self, group: str, uuid: str) -> dict[str, Any]:
        """The library reads the saga's episodes, asks the model once, and saves the saga; with nothing new in it, it asks nobody."""

        async def work() -> dict[str, Any]:
            await self.one_saga(group, uuid)
            return {"group_id": group, "saga": render.saga(await self.graphiti.summarize_saga(uuid))}

        async def left(failure: GatewayError) -> dict[str, Any]:
            return {"stored": "nothing" if failure.code in ("llm_failed", "llm_rate_limited", "library_refused") else "unknown"}

        return await self.writing(work, left)

    # Removing.

    async def removed(self, group: str, work: Callable[[], Awaitable[Any]]) -> dict[str, int]:
        """Run a removal and count what is gone. The group's lane is ours meanwhile."""

        async def counted() -> dict[str, int]:
            before = await self.counts(group)
            await work()
            after = await self.counts(group)
            return {name: before[name] - after[name] for name in before}

        async def left(failure: GatewayError) -> dict[str, Any]:
            return {"stored": "unknown" if failure.code == "database_unavailable" else "part"}

        return await self.writing(counted, left)

    async def remove_episode(self, group: str, uuid: str, *, keep_shared: bool = False) -> dict[str, Any]:
        """With ``keep_shared`` a fact that other episodes assert too is theirs: before 0.31 the library removes it with the first of them."""
        await self.reading(lambda: self.one_episode(group, uuid))

        async def work() -> None:
            if keep_shared:
                await self.store.rows(
                    "MATCH ()-[f:RELATES_TO {group_id: $group}]->() WHERE $uuid IN f.episodes AND size(f.episodes) > 1"
                    " SET f.episodes = [e IN f.episodes WHERE e <> $uuid]",
                    group=group,
                    uuid=uuid,
                )
            await self.graphiti.remove_episode(uuid)

        return {"group_id": group, "episode_uuid": uuid, "removed": await self.removed(group, work)}

    async def remove_node(self, group: str, uuid: str) -> dict[str, Any]:
        item = await self.reading(lambda: self.one_node(group, uuid))
        return {"group_id": group, "node_uuid": uuid, "removed": await self.removed(group, lambda: item.delete(self.driver))}

    async def remove_edge(self, group: str, uuid: str, *, clean_summaries: bool = False) -> dict[str, Any]:
        """With ``clean_summaries`` the fact's sentence is taken out of the summaries of its two nodes, to which the library appends it."""
        item = await self.reading(lambda: self.one_edge(group, uuid))

        async def work() -> None:
            if clean_summaries and item.fact:
                await self.store.rows(
                    "MATCH (n:Entity {group_id: $group}) WHERE n.uuid IN $nodes AND n.summary CONTAINS $fact SET n.summary = replace(n.summary, $fact, '')",
                    group=group,
                    nodes=[item.source_node_uuid, item.target_node_uuid],
                    fact=item.fact,
                )
            await item.delete(self.driver)

        return {"group_id": group, "edge_uuid": uuid, "removed": await self.removed(group, work)}

    async def remove_group(self, group: str) -> dict[str, int]:
        """Everything of a group."""
        return await self.removed(group, lambda: self.store.remove(group))

    # Searching.

    def recipe(self, body: bodies.SearchAdvanced) -> SearchConfig:
        """A SearchConfig of one's own for every call: the library's recipes are shared objects."""
        if body.config is not None:
            config = bodies.search_config(body.config)
        else:
            name = body.recipe or "COMBINED_HYBRID_SEARCH_CROSS_ENCODER"
            if name not in RECIPES:
                raise GatewayError("unknown_recipe", f"no recipe is called {name!r}", recipes=sorted(RECIPES))
            config = RECIPES[name].model_copy(deep=True)
            if body.limit is not None:
                config.limit = body.limit
            if body.reranker_min_score is not None:
                config.reranker_min_score = body.reranker_min_score
        if config.limit > self.limits.results:
            raise GatewayError("invalid_request", "more results than the limit", errors=[{"path": "body.limit", "message": f"at most {self.limits.results}"}])
        parts = [part for part in (config.edge_config, config.node_config, config.episode_config, config.community_config) if part is not None]
        rerankers = {part.reranker.value for part in parts}
        if "node_distance" in rerankers and body.center_node_uuid is None:
            raise GatewayError("center_node_required", "the reranker node_distance needs center_node_uuid")
        if "cross_encoder" in rerankers and self.settings.reranker is None:
            raise GatewayError("reranker_not_configured", "this gateway has no reranker; the recipes with CROSS_ENCODER in their name need one")
        return config

    async def search(self, group: str, body: bodies.Search) -> dict[str, Any]:
        """Graphiti.search through search_: the library's own writes num_results into a shared recipe, and a 0 there keeps contradictions open from then on."""
        name = "EDGE_HYBRID_SEARCH_RRF" if body.center_node_uuid is None else "EDGE_HYBRID_SEARCH_NODE_DISTANCE"
        if body.num_results > self.limits.results:
            raise GatewayError(
                "invalid_request", "more results than the limit", errors=[{"path": "body.num_results", "message": f"at most {self.limits.results}"}]
            )
        config = RECIPES[name].model_copy(deep=True)
        config.limit = body.num_results
        results = await self.reading(
            lambda: self.graphiti.search_(
                body.query, config=config, group_ids=[group], center_node_uuid=body.center_node_uuid, search_filter=filters(body.search_filter)
            )
        )
        return {"group_id": group, "edges": [render.edge(item) for item in results.edges]}

    async def search_(self, group: str, body: bodies.SearchAdvanced) -> dict[str, Any]:
        config = self.recipe(body)
        results = await self.reading(
            lambda: self.graphiti.search_(
                body.query,
                config=config,
                group_ids=[group],
                center_node_uuid=body.center_node_uuid,
                bfs_origin_node_uuids=body.bfs_origin_node_uuids,
                search_filter=filters(body.search_filter),
            )
        )
        return render.found(group, results, config)

    # Reading by id. The library's getters take any group's.

    async def one_episode(self, group: str, uuid: str) -> EpisodicNode:
        try:
            item: EpisodicNode = await EpisodicNode.get_by_uuid(self.driver, uuid)
        except NodeNotFoundError:
            raise not_found("episode", uuid) from None
        if item.group_id != group:
            raise not_found("episode", uuid)
        return item

    async def one_node(self, group: str, uuid: str) -> EntityNode:
        try:
            item: EntityNode = await EntityNode.get_by_uuid(self.driver, uuid)
        except NodeNotFoundError:
            raise not_found("node", uuid) from None
        if item.group_id != group:
            raise not_found("node", uuid)
        return item

    async def one_edge(self, group: str, uuid: str) -> EntityEdge:
        try:
            item: EntityEdge = await EntityEdge.get_by_uuid(self.driver, uuid)
        except EdgeNotFoundError:
            raise not_found("edge", uuid) from None
        if item.group_id != group:
            raise not_found("edge", uuid)
        return item

    async def one_saga(self, group: str, uuid: str) -> SagaNode:
        try:
            item: SagaNode = await SagaNode.get_by_uuid(self.driver, uuid)
        except NodeNotFoundError:
            raise not_found("saga", uuid) from None
        if item.group_id != group:
            raise not_found("saga", uuid)
        return item

    async def get_saga(self, group: str, uuid: str) -> dict[str, Any]:
        return {"saga": render.saga(await self.reading(lambda: self.one_saga(group, uuid)))}

    async def get_episode(self, group: str, uuid: str) -> dict[str, Any]:
        return {"episode": render.episode(await self.reading(lambda: self.one_episode(group, uuid)))}

    async def get_node(self, group: str, uuid: str) -> dict[str, Any]:
        return {"node": render.node(await self.reading(lambda: self.one_node(group, uuid)))}

    async def get_edge(self, group: str, uuid: str) -> dict[str, Any]:
        return {"edge": render.edge(await self.reading(lambda: self.one_edge(group, uuid)))}

    async def lookup(self, group: str, kind: str, uuids: list[str]) -> dict[str, Any]:
        """Objects of the group by id, in the order asked for. ``kind``: episodes, nodes or edges."""
        self.bounded(uuids, "uuids")
        asked = list(dict.fromkeys(uuids))
        match kind:
            case "episodes":
                items = await self.reading(lambda: EpisodicNode.get_by_uuids(self.driver, asked)) if asked else []
                show: Callable[[Any], dict[str, Any]] = render.episode
            case "nodes":
                items = await self.reading(lambda: EntityNode.get_by_uuids(self.driver, asked)) if asked else []
                show = render.node
            case _:
                items = await self.reading(lambda: EntityEdge.get_by_uuids(self.driver, asked)) if asked else []
                show = render.edge
        mine = {item.uuid: item for item in items if item.group_id == group}
        return {kind: [show(mine[uuid]) for uuid in asked if uuid in mine], "missing": [uuid for uuid in asked if uuid not in mine]}

    async def lookup_names(self, group: str, names: list[str]) -> dict[str, Any]:
        """Episodes of the group by name, which is where callers keep an id of their own."""
        self.bounded(names, "names")
        asked = list(dict.fromkeys(names))
        cypher = "MATCH (e:Episodic {group_id: $group}) WHERE e.name IN $names RETURN e.uuid AS uuid, e.name AS name ORDER BY e.created_at, e.uuid"
        rows = await self.reading(lambda: self.rows(cypher, group=group, names=asked))
        order = sorted(rows, key=lambda row: asked.index(row["name"]))
        found = await self.lookup_all(group, [row["uuid"] for row in order])
        return {"episodes": found, "missing": [name for name in asked if name not in {row["name"] for row in rows}]}

    async def lookup_all(self, group: str, uuids: list[str]) -> list[dict[str, Any]]:
        items = await self.reading(lambda: EpisodicNode.get_by_uuids(self.driver, uuids)) if uuids else []
        mine = {item.uuid: item for item in items if item.group_id == group}
        return [render.episode(mine[uuid]) for uuid in uuids if uuid in mine]

    def bounded(self, items: list[str], field: str) -> None:
        if len(items) > self.limits.lookup:
            raise GatewayError("invalid_request", "more ids than the limit", errors=[{"path": f"body.{field}", "message": f"at most {self.limits.lookup}"}])

    async def page(self, group: str, kind: str, limit: int, cursor: str | None) -> dict[str, Any]:
        """A page of the group's objects, by id descending. The library raises where a group has no edges."""
        if limit > self.limits.page:
            raise GatewayError("invalid_request", "a larger page than the limit", errors=[{"path": "query.limit", "message": f"at most {self.limits.page}"}])

        async def work() -> list[dict[str, Any]]:
            try:
                match kind:
                    case "episodes":
                        return [render.episode(item) for item in await EpisodicNode.get_by_group_ids(self.driver, [group], limit, cursor)]
                    case "nodes":
                        return [render.node(item) for item in await EntityNode.get_by_group_ids(self.driver, [group], limit, cursor)]
                    case "sagas":
                        return [render.saga(item) for item in await SagaNode.get_by_group_ids(self.driver, [group], limit, cursor)]
                    case _:
                        return [render.edge(item) for item in await EntityEdge.get_by_group_ids(self.driver, [group], limit, cursor)]
            except (GroupsEdgesNotFoundError, GroupsNodesNotFoundError):
                return []

        items = await self.reading(work)
        return {kind: items, "next_cursor": items[-1]["uuid"] if len(items) == limit else None}

    async def retrieve_episodes(self, group: str, body: bodies.Retrieve) -> dict[str, Any]:
        source = EpisodeType(body.source) if body.source else None
        items = await self.reading(
            lambda: self.graphiti.retrieve_episodes(body.reference_time, last_n=body.last_n, group_ids=[group], source=source, saga=body.saga)
        )
        return {"episodes": [render.episode(item) for item in items]}

    async def contents(self, group: str, body: bodies.Contents) -> dict[str, Any]:
        self.bounded(body.episode_uuids, "episode_uuids")

        async def work() -> dict[str, Any]:
            await self.require("episode", "episode_uuids", group, body.episode_uuids)
            if not body.episode_uuids:
                return {"nodes": [], "edges": []}
            results = await self.graphiti.get_nodes_and_edges_by_episode(body.episode_uuids)
            return {
                "nodes": [render.node(item) for item in results.nodes if item.group_id == group],
                "edges": [render.edge(item) for item in results.edges if item.group_id == group],
            }

        return await self.reading(work)

    async def counts(self, group: str) -> dict[str, int]:
        return await self.store.counts(group)

    # About itself.

    async def ping(self) -> None:
        """The database answers, and on Neo4j its indexes are there."""
        await self.reading(self.store.ping)

    def usage(self) -> dict[str, Any]:
        """What the language model was asked since the start, or since the last reset, as the library counts it: by prompt, and in all."""
        tracker = self.graphiti.token_tracker
        prompts = [
            {"prompt_name": item.prompt_name, "call_count": item.call_count, "input_tokens": item.total_input_tokens, "output_tokens": item.total_output_tokens}
            for _, item in sorted(tracker.get_usage().items())
        ]
        total = tracker.get_total_usage()
        return {
            "counted": self.settings.llm.api == "responses",
            "prompts": prompts,
            "total": {"input_tokens": total.input_tokens, "output_tokens": total.output_tokens},
        }

    def reset_usage(self) -> dict[str, Any]:
        """Start the count anew; gives what was counted."""
        counted = self.usage()
        self.graphiti.token_tracker.reset()
        return counted

    def info(self, *, queue: bool) -> dict[str, Any]:
        settings = self.settings
        llm = self.graphiti.llm_client

        def schemas(types: dict[str, TypeSchema]) -> dict[str, Any]:
            return {name: schema.wire() for name, schema in types.items()}

        return {
            "gateway": __version__,
            "graphiti_core": version("graphiti-core"),
            "database": settings.database.provider,
            "models": {
                "llm": llm.model,
                "small": llm.small_model,
                "embedder": settings.embedder.model,
                "dimensions": settings.embedder.dimensions,
                "reranker": settings.reranker.model if settings.reranker else None,
            },
            "recipes": sorted(RECIPES),
            "sources": ["json", "message", "text"],
            "entity_types": schemas(settings.types.entity),
            "edge_types": schemas(settings.types.edge),
            "queue": queue,
            "reranker": settings.reranker is not None,
            "communities": True,
            "limits": settings.limits.model_dump(exclude={"concurrent_groups", "drain_seconds"}),
        }


def filters(body: bodies.SearchFilter | None) -> SearchFilters | None:
    return body.native() if body is not None else None


def source_of(name: str, field: str) -> EpisodeType:
    """The kind of an episode. ``fact_triple`` is none: the library extracts from it as from a text, and what it promises is add_triplet."""
    if name == "fact_triple":
        raise GatewayError("unsupported", "source fact_triple: graphiti-core extracts from it as from a text; use the triplets route, or text", field=field)
    return EpisodeType(name)

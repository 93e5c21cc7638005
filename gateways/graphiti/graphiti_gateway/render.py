"""Objects of the library as JSON: no embeddings, labels sorted, times in UTC, what JSON cannot hold as null."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from graphiti_core.edges import Edge, EntityEdge
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodicNode, SagaNode
from graphiti_core.search.search_config import EdgeReranker, SearchConfig, SearchResults

#: lists of an answer to search_, with the library's name of their scores
LISTS = (
    ("edges", "edge_reranker_scores"),
    ("nodes", "node_reranker_scores"),
    ("episodes", "episode_reranker_scores"),
    ("communities", "community_reranker_scores"),
)


def dumps(value: Any) -> bytes:
    """Strict JSON. A value that another program stored and JSON does not know (a database's own date) becomes text, half a surrogate pair a question mark."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS)
    except TypeError:  # half a surrogate pair, a number of more than 64 bits
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str).encode(errors="replace")


def time(at: datetime | None) -> str | None:
    """RFC 3339 in UTC; a time without an offset, which only another program can have stored, keeps its form."""
    if at is None:
        return None
    if at.tzinfo is None:
        return at.isoformat()
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def plain(value: Any) -> Any:
    """An attribute's value: times as text, what is not finite as null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime):
        return time(value)
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def episode(node: EpisodicNode) -> dict[str, Any]:
    return {
        "uuid": node.uuid,
        "name": node.name,
        "group_id": node.group_id,
        "labels": sorted(node.labels),
        "created_at": time(node.created_at),
        "source": node.source.value,
        "source_description": node.source_description,
        "content": node.content,
        "valid_at": time(node.valid_at),
        "entity_edges": node.entity_edges,
        "episode_metadata": plain(getattr(node, "episode_metadata", None)),
    }


def summarized(item: EntityNode | CommunityNode | SagaNode) -> dict[str, Any]:
    """What entities, communities and sagas have in common."""
    return {
        "uuid": item.uuid,
        "name": item.name,
        "group_id": item.group_id,
        "labels": sorted(item.labels),
        "created_at": time(item.created_at),
        "summary": item.summary,
    }


def node(item: EntityNode) -> dict[str, Any]:
    return {**summarized(item), "attributes": plain(item.attributes)}


def edge(item: EntityEdge) -> dict[str, Any]:
    return {
        "uuid": item.uuid,
        "group_id": item.group_id,
        "source_node_uuid": item.source_node_uuid,
        "target_node_uuid": item.target_node_uuid,
        "created_at": time(item.created_at),
        "name": item.name,
        "fact": item.fact,
        "episodes": item.episodes,
        "expired_at": time(item.expired_at),
        "valid_at": time(item.valid_at),
        "invalid_at": time(item.invalid_at),
        "reference_time": time(getattr(item, "reference_time", None)),
        "attributes": plain(item.attributes),
    }


def community(item: CommunityNode) -> dict[str, Any]:
    return summarized(item)


def saga(item: SagaNode) -> dict[str, Any]:
    return {
        **summarized(item),
        "first_episode_uuid": item.first_episode_uuid,
        "last_episode_uuid": item.last_episode_uuid,
        "last_summarized_at": time(item.last_summarized_at),
        "last_summarized_episode_valid_at": time(item.last_summarized_episode_valid_at),
    }


def link(item: Edge) -> dict[str, Any]:
    """A relationship that carries nothing: a mention, a membership."""
    return {
        "uuid": item.uuid,
        "group_id": item.group_id,
        "source_node_uuid": item.source_node_uuid,
        "target_node_uuid": item.target_node_uuid,
        "created_at": time(item.created_at),
    }


def written(edges: Iterable[EntityEdge], by: Sequence[str]) -> dict[str, list[str]]:
    """What a write did to each fact, told by the episodes that it names: none of these, it was invalidated; one of them first, created; else asserted again."""
    lists: dict[str, list[str]] = {"created_edge_uuids": [], "reasserted_edge_uuids": [], "invalidated_edge_uuids": []}
    mine, seen = set(by), set()
    for item in edges:
        if item.uuid in seen:
            continue
        seen.add(item.uuid)
        if not mine.intersection(item.episodes):
            kind = "invalidated"
        elif item.episodes[0] in mine:
            kind = "created"
        else:
            kind = "reasserted"
        lists[f"{kind}_edge_uuids"].append(item.uuid)
    return lists


def scores(values: Iterable[float]) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


def alignment(results: SearchResults, config: SearchConfig) -> dict[str, str]:
    """Whether score i belongs to item i. The library sorts edges again after it scored them (episode_mentions), or scores source nodes (node_distance)."""
    out: dict[str, str] = {}
    for items, values in LISTS:
        same = len(getattr(results, items)) == len(getattr(results, values))
        out[items] = "aligned" if same else "unaligned"
    if config.edge_config and config.edge_config.reranker in (EdgeReranker.episode_mentions, EdgeReranker.node_distance) and results.edges:
        out["edges"] = "unaligned"
    return out


def found(group_id: str, results: SearchResults, config: SearchConfig) -> dict[str, Any]:
    """The answer of search_: the library's lists in the library's order."""
    return {
        "group_id": group_id,
        "edges": [edge(item) for item in results.edges],
        "edge_reranker_scores": scores(results.edge_reranker_scores),
        "nodes": [node(item) for item in results.nodes],
        "node_reranker_scores": scores(results.node_reranker_scores),
        "episodes": [episode(item) for item in results.episodes],
        "episode_reranker_scores": scores(results.episode_reranker_scores),
        "communities": [community(item) for item in results.communities],
        "community_reranker_scores": scores(results.community_reranker_scores),
        "score_alignment": alignment(results, config),
    }

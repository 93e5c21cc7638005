"""What comes through the gateway is what the library gives in process: ids, order and scores of searches, the graphs that single and bulk ingestion make."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from conftest import Gateway, Library, Stub
from conversation import ASKED, turns
from graphiti_core.nodes import EpisodeType
from graphiti_core.utils.bulk_utils import RawEpisode

from graphiti_gateway import render
from graphiti_gateway.engine import RECIPES

GROUP = "parity_singles"
#: a cross encoder has a chat for each candidate, on both sides: ``GATEWAY_QUERIES=52`` asks it everything
RERANKED = ASKED[: int(os.environ.get("GATEWAY_QUERIES", "5"))]
LISTS = [name for pair in render.LISTS for name in pair]


@pytest.fixture(scope="module", autouse=True)
def told(gateway: Gateway) -> None:
    """The conversation, told through the gateway, one episode after another; and its communities, so that recipes for them find some."""
    gateway.delete(f"/v1/groups/{GROUP}")
    for name, text, at in turns():
        gateway.add(GROUP, text, at.isoformat(), name=name, source_description="chat")
    built = gateway.post(f"/v1/groups/{GROUP}/communities", {"timeout_seconds": 100})
    assert built.status == 200 and built.json["communities"], built.json


def graph(library: Library, group: str) -> dict[str, Any]:
    """A group without its ids and clocks: multisets that two ingestions of the same conversation share."""
    edges = library.rows(
        "MATCH (a:Entity)-[e:RELATES_TO {group_id: $group}]->(b:Entity) RETURN a.name AS source, e.name AS relation, b.name AS target, e.fact AS fact,"
        " e.valid_at.epochMillis AS valid_at, e.invalid_at.epochMillis AS invalid_at, e.expired_at IS NOT NULL AS expired, size(e.episodes) AS episodes",
        group=group,
    )
    nodes = library.rows("MATCH (n:Entity {group_id: $group}) RETURN n.name AS name, labels(n) AS labels, n.summary AS summary", group=group)
    links = library.rows("MATCH (e:Episodic {group_id: $group})-[m:MENTIONS]->(n:Entity) RETURN e.name AS episode, n.name AS node", group=group)
    episodes = library.rows(
        "MATCH (e:Episodic {group_id: $group}) RETURN e.name AS name, e.content AS content, e.source AS source, e.valid_at.epochMillis AS valid_at,"
        " size(e.entity_edges) AS edges",
        group=group,
    )
    return {
        "edges": Counter(tuple(row.values()) for row in edges),
        "nodes": Counter((row["name"], tuple(sorted(row["labels"])), row["summary"]) for row in nodes),
        "links": Counter(tuple(row.values()) for row in links),
        "episodes": Counter(tuple(row.values()) for row in episodes),
    }


def natively(library: Library, query: str, recipe: str, center: str | None) -> dict[str, Any]:
    """search_ in process: the uuids and the scores of each list."""
    results = library.run(library.graphiti.search_(query, config=RECIPES[recipe].model_copy(deep=True), group_ids=[GROUP], center_node_uuid=center))
    found: dict[str, Any] = {}
    for items, scores in render.LISTS:
        found[items] = [item.uuid for item in getattr(results, items)]
        found[scores] = render.scores(getattr(results, scores))
    return found


def through(gateway: Gateway, query: str, recipe: str, center: str | None) -> dict[str, Any]:
    reply = gateway.post(f"/v1/groups/{GROUP}/search_", {"query": query, "recipe": recipe, "center_node_uuid": center})
    assert reply.status == 200, reply.json
    return {name: [item["uuid"] for item in reply.json[name]] if not name.endswith("scores") else reply.json[name] for name in LISTS}


def speaker(library: Library) -> str:
    return str(library.rows("MATCH (n:Entity {group_id: $group, name: 'mara'}) RETURN n.uuid AS uuid", group=GROUP)[0]["uuid"])


@pytest.mark.parametrize(
    "recipe", ["EDGE_HYBRID_SEARCH_RRF", "EDGE_HYBRID_SEARCH_MMR", "EDGE_HYBRID_SEARCH_NODE_DISTANCE", "NODE_HYBRID_SEARCH_RRF", "COMBINED_HYBRID_SEARCH_RRF"]
)
def test_searches_are_the_librarys(gateway: Gateway, library: Library, recipe: str) -> None:
    assert len(ASKED) >= 50
    center = speaker(library) if "NODE_DISTANCE" in recipe else None
    found = 0
    for query in ASKED:
        native = natively(library, query, recipe, center)
        assert through(gateway, query, recipe, center) == native, query
        found += sum(len(native[name]) for name in ("edges", "nodes"))
    assert found > len(ASKED), "the queries find something, or their equality says nothing"


@pytest.mark.parametrize("recipe", sorted(name for name in RECIPES if name.endswith("CROSS_ENCODER")))
def test_reranked_searches_are_the_librarys(gateway: Gateway, library: Library, stub: Stub, recipe: str) -> None:
    before, found, scores = stub.seen("graphiti.cross_encoder"), 0, set[float]()
    # All that was said is about one person: there is a community or two, which few queries find, and each is one chat.
    few = recipe.startswith("COMMUNITY")
    for query in ASKED if few else RERANKED:
        native = natively(library, query, recipe, None)
        assert through(gateway, query, recipe, None) == native, query
        for items, values in render.LISTS:
            found += len(native[items])
            scores.update(native[values])
    assert stub.seen("graphiti.cross_encoder") > before, "the reranker was asked"
    assert found >= (1 if few else len(RERANKED)) and len(scores) > (0 if few else 3), "there are items, and scores that differ, or their equality says nothing"


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_every_recipe_is_the_librarys(gateway: Gateway, library: Library, recipe: str) -> None:
    assert len(RECIPES) == 16
    center = speaker(library) if "NODE_DISTANCE" in recipe else None
    for query in ("seat preference", "mara and her sister in Hamburg"):
        assert through(gateway, query, recipe, center) == natively(library, query, recipe, center)


def test_search_is_the_librarys(gateway: Gateway, library: Library) -> None:
    """The library's own search, which writes its limit into the shared recipe: put back after each."""
    recipe = RECIPES["EDGE_HYBRID_SEARCH_RRF"]
    before = recipe.limit
    for query in ASKED[:10]:
        native = library.run(library.graphiti.search(query, group_ids=[GROUP], num_results=5))
        recipe.limit = before
        reply = gateway.post(f"/v1/groups/{GROUP}/search", {"query": query, "num_results": 5})
        assert [item["uuid"] for item in reply.json["edges"]] == [item.uuid for item in native]


def test_a_whole_config_is_the_librarys(gateway: Gateway) -> None:
    """A recipe written out as a SearchConfig finds the same."""
    config = RECIPES["COMBINED_HYBRID_SEARCH_RRF"].model_dump(mode="json")
    for query in ASKED[:10]:
        written = gateway.post(f"/v1/groups/{GROUP}/search_", {"query": query, "config": config})
        named = gateway.post(f"/v1/groups/{GROUP}/search_", {"query": query, "recipe": "COMBINED_HYBRID_SEARCH_RRF"})
        assert written.json == named.json


def test_singles_make_the_librarys_graph(library: Library, group: str) -> None:
    async def tell() -> None:
        for name, text, at in turns():
            await library.graphiti.add_episode(name, text, "chat", at, source=EpisodeType.message, group_id=group)

    library.run(tell())
    assert graph(library, GROUP) == graph(library, group)
    assert any(row[5] for row in graph(library, GROUP)["edges"]), "a contradiction closed a fact"


def test_a_bulk_makes_the_librarys_graph(gateway: Gateway, library: Library, group: str, other: str) -> None:
    raw = [RawEpisode(name=name, content=text, source_description="chat", source=EpisodeType.message, reference_time=at) for name, text, at in turns()]
    library.run(library.graphiti.add_episode_bulk(raw, group_id=group))
    episodes = [{"name": name, "content": text, "source_description": "chat", "reference_time": at.isoformat()} for name, text, at in turns()]
    reply = gateway.post(f"/v1/groups/{other}/episodes/bulk", {"episodes": episodes})
    assert reply.status == 200, reply.json
    assert [item["name"] for item in reply.json["episodes"]] == [name for name, _, _ in turns()]
    assert graph(library, other) == graph(library, group)


def test_answers_carry_what_is_stored(gateway: Gateway, library: Library, group: str) -> None:
    """Every field of the answer to a write is what the library reads back."""
    written = gateway.add(group, "mara(user): I prefer aisle seats.", source_description="chat")
    uuids = [item["uuid"] for item in written["edges"]]
    assert uuids and written["created_edge_uuids"] == uuids
    read = gateway.post(f"/v1/groups/{group}/edges/lookup", {"uuids": uuids}).json
    assert read == {"edges": written["edges"], "missing": []}
    nodes = gateway.post(f"/v1/groups/{group}/nodes/lookup", {"uuids": [item["uuid"] for item in written["nodes"]]}).json["nodes"]
    assert nodes == written["nodes"]
    assert gateway.get(f"/v1/groups/{group}/episodes/{written['episode']['uuid']}").json["episode"] == written["episode"]

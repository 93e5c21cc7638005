"""The gateway on FalkorDB: ``FALKORDB_URI=redis://HOST:PORT tools/live gateway-graphiti``.

Without that variable these tests are skipped: no package has the server for every system.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import Gateway, Stub, launch
from conversation import ASKED, turns

from graphiti_gateway import render
from graphiti_gateway.engine import RECIPES

URI = os.environ.get("FALKORDB_URI", "")
pytestmark = pytest.mark.skipif(not URI, reason="FALKORDB_URI is not set")

AISLE = "mara(user): I prefer aisle seats on business trips."
WINDOW = "mara(user): I now prefer window seats on business trips."


@pytest.fixture(scope="module")
def falkor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("falkor")
    running = launch(
        folder, database={"provider": "falkordb", "uri": URI, "retry_seconds": 1, "connect_seconds": 2}, queue={"path": str(folder / "jobs.sqlite")}
    )
    yield running
    assert running.end() == 0
    log = (folder / "gateway.log").read_text()
    assert "Traceback" not in log and "aisle" not in log


@pytest.fixture(autouse=True)
def emptied(falkor: Gateway, group: str, other: str) -> Iterator[None]:
    yield
    for name in (group, other):
        falkor.delete(f"/v1/groups/{name}")


def test_what_it_says_of_itself(falkor: Gateway) -> None:
    assert falkor.get("/v1/info").json["database"] == "falkordb"
    assert falkor.get("/v1/ready").status == 200


def test_searches_are_the_librarys(falkor: Gateway, group: str) -> None:
    for name, text, at in turns()[:10]:
        falkor.add(group, text, at.isoformat(), name=name)
    recipes = ["EDGE_HYBRID_SEARCH_RRF", "EDGE_HYBRID_SEARCH_MMR", "NODE_HYBRID_SEARCH_RRF", "COMBINED_HYBRID_SEARCH_RRF", "EDGE_HYBRID_SEARCH_CROSS_ENCODER"]

    async def natively() -> list[dict[str, Any]]:
        from graphiti_core import Graphiti
        from graphiti_core.driver.falkordb_driver import FalkorDriver

        at = urlsplit(URI)
        driver = FalkorDriver(host=at.hostname or "", port=at.port or 6379, database=group)
        graphiti = Graphiti(graph_driver=driver)
        found: list[dict[str, Any]] = []
        for recipe in recipes:
            for query in ASKED if "CROSS" not in recipe else ASKED[:3]:
                results = await graphiti.search_(query, config=RECIPES[recipe].model_copy(deep=True), group_ids=[group])
                row: dict[str, Any] = {}
                for items, scores in render.LISTS:
                    row[items] = [item.uuid for item in getattr(results, items)]
                    row[scores] = render.scores(getattr(results, scores))
                found.append(row)
        await graphiti.close()  # type: ignore[no-untyped-call]  # the library's
        return found

    theirs, hits = iter(asyncio.run(natively())), 0
    for recipe in recipes:
        for query in ASKED if "CROSS" not in recipe else ASKED[:3]:
            reply = falkor.post(f"/v1/groups/{group}/search_", {"query": query, "recipe": recipe})
            assert reply.status == 200, reply.json
            native = next(theirs)
            ours = {name: reply.json[name] if name.endswith("scores") else [item["uuid"] for item in reply.json[name]] for name in native}
            assert ours == native, (recipe, query)
            hits += len(native["edges"]) + len(native["nodes"])
    assert hits > len(ASKED)


def test_trap_falkor_an_add_binds_the_shared_driver_to_its_group(falkor: Gateway, group: str, other: str) -> None:
    """Both groups are written and read at once: in the library the one would write into the other's graph."""

    def tell(name: str) -> list[str]:
        written = [falkor.add(name, f"mara(user): I like {thing} of {name}.")["created_edge_uuids"] for thing in ("tea", "rowing", "chess", "ferns")]
        found = falkor.post(f"/v1/groups/{name}/search_", {"query": "mara", "recipe": "EDGE_HYBRID_SEARCH_RRF"}).json["edges"]
        assert {item["group_id"] for item in found} == {name}
        return [uuid for created in written for uuid in created]

    with ThreadPoolExecutor(2) as pool:
        mine, theirs = pool.map(tell, (group, other))
    assert len(mine) == len(theirs) == 4
    for name, uuids, foreign in ((group, mine, theirs), (other, theirs, mine)):
        assert {item["uuid"] for item in falkor.get(f"/v1/groups/{name}/edges").json["edges"]} == set(uuids)
        assert falkor.post(f"/v1/groups/{name}/edges/lookup", {"uuids": foreign}).json == {"edges": [], "missing": foreign}
        assert falkor.get(f"/v1/groups/{name}/edges/{foreign[0]}").code == "not_found"


def test_every_way_to_write(falkor: Gateway, group: str) -> None:
    (old,) = falkor.add(group, AISLE, saga="trip", entity_types=["Person"])["created_edge_uuids"]
    assert falkor.add(group, WINDOW, "2025-03-03T09:00:00Z")["invalidated_edge_uuids"] == [old]
    episodes = [
        {"name": f"b{n}", "content": f"mara(user): I like {what}.", "reference_time": "2025-03-04T09:00:00Z"} for n, what in enumerate(("tea", "rowing"))
    ]
    bulk = falkor.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": episodes})
    assert (bulk.status, len(bulk.json["created_edge_uuids"])) == (200, 2), bulk.json
    edge = {"name": "LIVES_IN", "fact": "Kim lives in Rome", "valid_at": "2025-03-01T00:00:00Z"}
    triplet = falkor.post(f"/v1/groups/{group}/triplets", {"source_node": {"name": "Kim"}, "edge": edge, "target_node": {"name": "Rome"}})
    assert (triplet.status, len(triplet.json["created_edge_uuids"])) == (200, 1), triplet.json
    (saga,) = falkor.get(f"/v1/groups/{group}/sagas").json["sagas"]
    assert "aisle" in falkor.post(f"/v1/groups/{group}/sagas/{saga['uuid']}/summary").json["saga"]["summary"]
    assert falkor.post(f"/v1/groups/{group}/communities", {"timeout_seconds": 60}).status in (200, 504)
    labels = {label for item in falkor.get(f"/v1/groups/{group}/nodes").json["nodes"] for label in item["labels"]}
    assert labels == {"Entity", "Person"}
    assert falkor.post(f"/v1/groups/{group}/episodes/lookup", {"names": ["b1", "none"]}).json["missing"] == ["none"]
    assert len(falkor.post(f"/v1/groups/{group}/episodes/retrieve", {"reference_time": "2026-01-01T00:00:00Z"}).json["episodes"]) == 4


def test_a_deleted_group_is_counted_gone_and_can_begin_again(falkor: Gateway, group: str) -> None:
    falkor.add(group, AISLE)
    removed = falkor.delete(f"/v1/groups/{group}").json["removed"]
    assert removed == {"episodes": 1, "nodes": 2, "edges": 1, "communities": 0, "sagas": 0}
    assert set(falkor.delete(f"/v1/groups/{group}").json["removed"].values()) == {0}
    falkor.add(group, WINDOW)
    assert falkor.post(f"/v1/groups/{group}/search_", {"query": "window seats", "recipe": "EDGE_HYBRID_SEARCH_RRF"}).json["edges"], (
        "its indexes are there again"
    )


def test_a_bulk_that_fails_says_what_it_left(falkor: Gateway, group: str, stub: Stub) -> None:
    stub.fail(mode="status", status=400, purpose="graphiti.edges")
    episodes = [{"name": f"b{n}", "content": AISLE, "reference_time": "2025-03-04T09:00:00Z"} for n in range(2)]
    reply = falkor.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": episodes})
    assert (reply.status, reply.code, reply.details["stored"]) == (502, "llm_failed", "episodes_without_facts")
    stub.clear()
    again = [{**item, "uuid": left["uuid"]} for item, left in zip(episodes, reply.details["episodes"], strict=True)]
    assert falkor.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": again}).status == 200
    assert falkor.counts(group)["episodes"] == 2


def test_a_server_that_is_away_is_said_soon(fresh: Callable[..., Gateway], group: str) -> None:
    gateway = fresh(database={"provider": "falkordb", "uri": "redis://127.0.0.1:1", "retry_seconds": 1, "connect_seconds": 1})
    assert gateway.get("/health").status == 200
    for reply in (gateway.get("/v1/ready"), gateway.post(f"/v1/groups/{group}/search", {"query": "x"}), gateway.get(f"/v1/groups/{group}")):
        assert (reply.status, reply.code) == (503, "database_unavailable"), reply.json

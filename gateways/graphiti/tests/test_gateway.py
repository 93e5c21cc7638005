"""The door, the queue, the end: what the gateway itself does, and the bad input that it must survive."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from conftest import Gateway, Stub, setting

AISLE = "mara(user): I prefer aisle seats."
WINDOW = "mara(user): I now prefer window seats."


def episode(name: str, text: str = AISLE, **more: Any) -> dict[str, Any]:
    return {"name": name, "episode_body": text, "reference_time": "2025-03-01T09:00:00Z", **more}


def until(check: Callable[[], bool], seconds: float = 60) -> None:
    """Ask again and again until it holds; the gateway has no other way to tell."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not come to hold"
        threading.Event().wait(0.02)


class TestDoor:
    def test_every_route_but_two_wants_the_token(self, gateway: Gateway) -> None:
        document = gateway.get("/openapi.json").json
        asked = 0
        with httpx.Client(base_url=gateway.url, trust_env=False) as nobody:
            for path, methods in document["paths"].items():
                for method in methods:
                    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic live-test-gateway-token"}):
                        reply = nobody.request(method, path.format(group_id="g", uuid="u", job_id="j"), headers=headers)
                        if path == "/health":
                            assert (reply.status_code, reply.json()) == (200, {"status": "ok"})
                        else:
                            assert (reply.status_code, reply.json()["error"]["code"]) == (401, "unauthorized"), path
                        asked += 1
        assert asked > 70

    def test_the_document_has_every_route_of_the_page(self, gateway: Gateway) -> None:
        document = gateway.get("/openapi.json").json
        assert document["openapi"].startswith("3.")
        routes = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
        group = "/v1/groups/{group_id}"
        wanted = {("GET", "/health"), ("GET", "/v1/ready"), ("GET", "/v1/info"), ("GET", group), ("DELETE", group), ("GET", f"{group}/jobs")}
        wanted |= {(method, f"{group}/jobs/{{job_id}}") for method in ("GET", "DELETE")}
        wanted |= {(method, f"{group}/{kind}/{{uuid}}") for kind in ("episodes", "nodes", "edges") for method in ("GET", "DELETE")}
        wanted |= {("GET", f"{group}/{kind}") for kind in ("episodes", "nodes", "edges")} | {
            ("POST", f"{group}/{kind}/lookup") for kind in ("episodes", "nodes", "edges")
        }
        wanted |= {
            ("POST", f"{group}/{name}")
            for name in ("episodes", "episodes/bulk", "episodes/retrieve", "episodes/contents", "triplets", "communities", "search", "search_")
        }
        wanted |= {("GET", "/v1/usage"), ("DELETE", "/v1/usage"), ("GET", f"{group}/sagas"), ("GET", f"{group}/sagas/{{uuid}}")}
        wanted |= {("POST", f"{group}/sagas/{{uuid}}/summary")}
        assert routes == wanted

    def test_strangers(self, gateway: Gateway) -> None:
        assert (gateway.get("/v2").status, gateway.get("/v2").code) == (404, "no_such_route")
        assert (gateway.ask("PUT", "/v1/info").status, gateway.ask("PUT", "/v1/info").code) == (405, "method_not_allowed")
        assert gateway.ask("POST", "/v1/groups/g/search", content=b"{").code == "invalid_request"
        assert gateway.ask("POST", "/v1/groups/g/search", content=b"[]", headers={"content-type": "application/json"}).code == "invalid_request"
        reply = gateway.post("/v1/groups/g/search", {"query": "q", "nun_results": 3})
        assert (reply.status, reply.details["errors"][0]["path"]) == (422, "body.nun_results")

    def test_request_ids(self, gateway: Gateway) -> None:
        assert gateway.get("/health", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
        assert len(gateway.get("/health", headers={"X-Request-Id": "a b"}).headers["x-request-id"]) == 12

    def test_a_body_too_large(self, gateway: Gateway) -> None:
        large = json.dumps({"query": "x" * (17 << 20)}).encode()

        def pieces() -> Iterator[bytes]:  # no length is announced
            yield from (large[i : i + 65536] for i in range(0, len(large), 65536))

        for content in (large, pieces()):
            reply = gateway.ask("POST", "/v1/groups/g/search", content=content, headers={"content-type": "application/json"})
            assert (reply.status, reply.code) == (413, "body_too_large")
        assert gateway.get("/health").status == 200

    def test_ready_and_info(self, gateway: Gateway) -> None:
        ready = gateway.get("/v1/ready")
        assert (ready.status, ready.json["database"], ready.json["accepting"]) == (200, "ok", True)
        info = gateway.get("/v1/info").json
        assert len(info["recipes"]) == 16
        assert info["graphiti_core"].startswith("0.31.")
        assert set(info["entity_types"]) == {"Person"}
        assert info["entity_types"]["Person"]["properties"]["occupation"] == {"type": "string"}
        assert info["queue"] is info["reranker"] is True
        assert info["models"]["dimensions"] == 1024


class TestBadInput:
    def test_a_recipe_that_does_not_exist(self, gateway: Gateway, group: str) -> None:
        reply = gateway.post(f"/v1/groups/{group}/search_", {"query": "q", "recipe": "EDGE_RRF"})
        assert (reply.status, reply.code, len(reply.details["recipes"])) == (422, "unknown_recipe", 16)

    def test_a_search_config_with_an_unknown_field(self, gateway: Gateway, group: str) -> None:
        reply = gateway.post(f"/v1/groups/{group}/search_", {"query": "q", "config": {"edge_config": {"search_methods": ["bm25"], "lambda": 1}}})
        assert (reply.status, reply.code, reply.details["errors"][0]["path"]) == (422, "invalid_search_config", "config.edge_config.lambda")

    def test_a_bulk_of_5000_episodes(self, gateway: Gateway, group: str, stub: Stub) -> None:
        before = stub.counts()["llm"]
        episodes = [{"name": str(i), "content": AISLE, "reference_time": "2025-03-01T09:00:00Z"} for i in range(5000)]
        for mode in ("sync", "queued"):
            reply = gateway.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": episodes, "mode": mode})
            assert (reply.status, reply.code, reply.details) == (422, "bulk_too_large", {"limit": 500, "count": 5000})
        assert stub.counts()["llm"] == before
        assert gateway.counts(group)["episodes"] == 0

    def test_a_model_that_answers_nonsense(self, gateway: Gateway, group: str, stub: Stub) -> None:
        for fault in ("prose", "bare_list", "empty", "cut_answer"):
            stub.fail(purpose="graphiti.entities", mode=fault)
            reply = gateway.post(f"/v1/groups/{group}/episodes", episode("e"))
            assert (reply.status, reply.code, reply.details["stored"]) == (502, "llm_failed", "nothing"), (fault, reply.json)
            stub.clear()
        assert gateway.counts(group)["episodes"] == 0
        gateway.add(group, AISLE)

    def test_embeddings_of_another_length(self, gateway: Gateway, group: str, other: str, stub: Stub) -> None:
        gateway.add(other, AISLE)
        stub.fail(purpose="embeddings", mode="dimension", dimension=8)
        reply = gateway.post(f"/v1/groups/{other}/search", {"query": "seats"})
        assert (reply.status, reply.code) == (502, "database_error")
        stub.clear()
        assert gateway.post(f"/v1/groups/{other}/search", {"query": "seats"}).json["edges"]

    def test_a_search_without_a_reranker(self, fresh: Callable[..., Gateway], group: str) -> None:
        gateway = fresh(reranker=None)
        reply = gateway.post(f"/v1/groups/{group}/search_", {"query": "seats"})
        assert (reply.status, reply.code) == (422, "reranker_not_configured")
        assert gateway.get("/v1/info").json["reranker"] is False

    def test_a_type_schema_that_the_library_refuses_stops_the_start(self, fresh: Callable[..., Gateway]) -> None:
        with pytest.raises(AssertionError, match=r"types\.entity\.Person: property summary"):
            fresh(types={"entity": {"Person": {"properties": {"summary": {"type": "string"}}}}})


class Wire:
    """A connection to the database that can be cut."""

    def __init__(self) -> None:
        host, _, port = setting("NEO4J_URI").removeprefix("bolt://").partition(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = True
        self.ends: list[socket.socket] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if not self.open:
                near.close()
                continue
            far = socket.create_connection(self.target)
            self.ends += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.copy, args=(a, b), daemon=True).start()

    @staticmethod
    def copy(a: socket.socket, b: socket.socket) -> None:
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for end in (a, b):
            end.close()

    def cut(self) -> None:
        self.open = False
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self.ends.clear()

    def heal(self) -> None:
        self.open = True


class TestDatabaseGone:
    def test_it_goes_and_comes_back(self, fresh: Callable[..., Gateway], group: str, stub: Stub) -> None:
        """Typed, within seconds and not after the driver's half minute; the process lives on."""
        wire = Wire()
        database = {
            "uri": f"bolt://127.0.0.1:{wire.port}",
            "user": setting("NEO4J_USER"),
            "password": {"env": "NEO4J_PASSWORD"},
            "retry_seconds": 1,
            "connect_seconds": 2,
        }
        gateway = fresh(database=database)
        gateway.add(group, AISLE)
        wire.cut()
        for reply in (
            gateway.get("/v1/ready"),
            gateway.get(f"/v1/groups/{group}"),
            gateway.post(f"/v1/groups/{group}/search", {"query": "seats"}),
            gateway.delete(f"/v1/groups/{group}"),
        ):
            assert (reply.status, reply.code, reply.headers["retry-after"]) == (503, "database_unavailable", "5")
        reply = gateway.post(f"/v1/groups/{group}/episodes", episode("e", WINDOW))
        assert (reply.status, reply.code, reply.details["stored"]) == (503, "database_unavailable", "unknown")
        assert gateway.get("/health").status == 200
        wire.heal()
        assert gateway.get("/v1/ready").status == 200
        assert gateway.counts(group)["episodes"] == 1
        # In the middle of a write: while the model is asked.
        stub.fail(purpose="graphiti.edges", mode="hold")
        replies = []
        writing = threading.Thread(target=lambda: replies.append(gateway.post(f"/v1/groups/{group}/episodes", episode("e", WINDOW))))
        before = stub.seen("graphiti.edges")
        writing.start()
        until(lambda: stub.seen("graphiti.edges") > before)
        wire.cut()
        stub.clear()
        writing.join()
        assert (replies[0].status, replies[0].code, replies[0].details["stored"]) == (503, "database_unavailable", "unknown")
        wire.heal()
        assert gateway.counts(group)["episodes"] == 1
        gateway.add(group, WINDOW)

    def test_it_was_never_there(self, fresh: Callable[..., Gateway], group: str) -> None:
        wire = Wire()
        wire.cut()
        database = {
            "uri": f"bolt://127.0.0.1:{wire.port}",
            "user": setting("NEO4J_USER"),
            "password": {"env": "NEO4J_PASSWORD"},
            "retry_seconds": 1,
            "connect_seconds": 2,
        }
        gateway = fresh(database=database)
        assert gateway.get("/v1/ready").code == "database_unavailable"
        reply = gateway.post(f"/v1/groups/{group}/episodes", episode("e"))
        assert (reply.code, reply.details["stored"]) == ("database_unavailable", "nothing")
        wire.heal()
        gateway.add(group, AISLE)


class TestReading:
    def test_episodes_by_name(self, gateway: Gateway, group: str, other: str) -> None:
        """A name is where a caller keeps its own id; it is not unique, and other groups have it too."""
        first, second = (gateway.add(group, AISLE, name="ev-1")["episode"]["uuid"] for _ in range(2))
        third = gateway.add(group, WINDOW, name="ev-0")["episode"]["uuid"]
        gateway.add(other, AISLE, name="ev-1")
        found = gateway.post(f"/v1/groups/{group}/episodes/lookup", {"names": ["ev-1", "none", "ev-0", "ev-1"]}).json
        assert [item["uuid"] for item in found["episodes"]] == [first, second, third]
        assert found["missing"] == ["none"]
        assert gateway.post(f"/v1/groups/{group}/episodes/lookup", {"names": ["x"] * 1001}).code == "invalid_request"

    def test_pages(self, gateway: Gateway, group: str) -> None:
        """The library raises where a group has no edges."""
        for kind in ("episodes", "nodes", "edges"):
            assert gateway.get(f"/v1/groups/{group}/{kind}").json == {kind: [], "next_cursor": None}
        for text in (AISLE, "mara(user): I live in Berlin.", "mara(user): I like tea."):
            gateway.add(group, text)
        for kind, number in (("episodes", 3), ("nodes", 4), ("edges", 3)):
            seen: list[str] = []
            cursor = ""
            while True:
                page = gateway.get(f"/v1/groups/{group}/{kind}?limit=2{cursor}").json
                seen += [item["uuid"] for item in page[kind]]
                if page["next_cursor"] is None:
                    break
                cursor = f"&cursor={page['next_cursor']}"
            assert seen == sorted(set(seen), reverse=True)
            assert len(seen) == number
        assert gateway.get(f"/v1/groups/{group}/edges?limit=0").code == "invalid_request"
        assert gateway.get(f"/v1/groups/{group}/edges?limit=1001").code == "invalid_request"

    def test_contents_of_episodes(self, gateway: Gateway, group: str, other: str) -> None:
        written = gateway.add(group, AISLE)
        foreign = gateway.add(other, AISLE)["episode"]["uuid"]
        found = gateway.post(f"/v1/groups/{group}/episodes/contents", {"episode_uuids": [written["episode"]["uuid"]]}).json
        assert found["edges"] == written["edges"]
        assert {item["uuid"] for item in found["nodes"]} == {item["uuid"] for item in written["nodes"]}
        reply = gateway.post(f"/v1/groups/{group}/episodes/contents", {"episode_uuids": [foreign]})
        assert (reply.code, reply.details["uuids"]) == ("reference_not_found", [foreign])

    def test_reads_go_on_beside_a_write_of_the_group(self, gateway: Gateway, group: str, stub: Stub) -> None:
        stub.fail(purpose="graphiti.entities", mode="hold")
        before = stub.seen("graphiti.entities")
        writing = threading.Thread(target=gateway.add, args=(group, AISLE))
        writing.start()
        until(lambda: stub.seen("graphiti.entities") > before)
        assert gateway.counts(group)["episodes"] == 0
        assert gateway.post(f"/v1/groups/{group}/search", {"query": "seats"}).status == 200
        assert writing.is_alive()
        stub.clear()
        writing.join()
        assert gateway.counts(group)["episodes"] == 1


class TestJobs:
    @staticmethod
    def state(gateway: Gateway, group: str, job: str) -> str:
        return str(gateway.get(f"/v1/groups/{group}/jobs/{job}").json["job"]["state"])

    def test_a_queued_write_is_the_synchronous_one_later(self, gateway: Gateway, group: str) -> None:
        reply = gateway.post(f"/v1/groups/{group}/episodes", episode("ev-1", mode="queued", job_id="ev-1"))
        assert (reply.status, reply.json["job"]["id"], reply.json["job"]["names"]) == (202, "ev-1", ["ev-1"])
        until(lambda: self.state(gateway, group, "ev-1") == "done")
        result = gateway.get(f"/v1/groups/{group}/jobs/ev-1").json["job"]["result"]
        assert gateway.get(f"/v1/groups/{group}/episodes/{result['episode']['uuid']}").json["episode"] == result["episode"]
        assert len(result["created_edge_uuids"]) == 1
        again = gateway.post(f"/v1/groups/{group}/episodes", episode("ev-1", mode="queued", job_id="ev-1"))
        assert (again.status, again.json["job"]["state"]) == (202, "done")
        assert gateway.post(f"/v1/groups/{group}/episodes", episode("ev-2", mode="queued", job_id="ev-1")).code == "job_exists"
        assert gateway.counts(group)["episodes"] == 1

    def test_order_is_kept_and_a_failure_is_visible_and_alone(self, gateway: Gateway, group: str, other: str, stub: Stub) -> None:
        stub.fail(purpose="graphiti.entities", mode="hold")
        for i, text in enumerate((AISLE, "mara(user): I live in Berlin.", WINDOW)):
            gateway.post(
                f"/v1/groups/{group}/episodes", episode(f"j{i}", text, mode="queued", job_id=f"j{i}", previous_episode_uuids=["nobody"] if i == 1 else None)
            )
        listed = gateway.get(f"/v1/groups/{group}/jobs").json
        assert [item["id"] for item in listed["jobs"]] == ["j0", "j1", "j2"]
        assert gateway.delete(f"/v1/groups/{group}/jobs/none").status == 404
        assert gateway.get(f"/v1/groups/{other}/jobs/j0").status == 404
        stub.clear()
        synchronous = gateway.add(group, "mara(user): I like tea.", name="last")  # behind what is queued
        jobs = {item["id"]: item for item in gateway.get(f"/v1/groups/{group}/jobs").json["jobs"]}
        assert [jobs[name]["state"] for name in ("j0", "j1", "j2")] == ["done", "failed", "done"]
        assert (jobs["j1"]["error"]["code"], jobs["j1"]["error"]["details"]["uuids"]) == ("reference_not_found", ["nobody"])
        created = gateway.post(f"/v1/groups/{group}/episodes/lookup", {"names": ["j0", "j2", "last"]}).json["episodes"]
        assert [item["created_at"] for item in created] == sorted(item["created_at"] for item in created)
        assert created[-1]["uuid"] == synchronous["episode"]["uuid"]
        assert gateway.get("/v1/ready").json["jobs"]["failed"] >= 1
        assert gateway.delete(f"/v1/groups/{group}/jobs/j1").json["job"]["state"] == "failed"
        assert gateway.get(f"/v1/groups/{group}").json["jobs"]["failed"] == 0

    def test_what_is_wrong_at_once_is_said_at_once(self, gateway: Gateway, group: str) -> None:
        for body in (episode("e", mode="queued", entity_types=["Robot"]), episode("e", mode="queued", source="fact_triple"), episode("e", mode="later")):
            assert gateway.post(f"/v1/groups/{group}/episodes", body).status == 422
        assert gateway.get(f"/v1/groups/{group}/jobs").json["jobs"] == []

    def test_a_deleted_group_does_not_come_back(self, gateway: Gateway, group: str, stub: Stub) -> None:
        stub.fail(purpose="graphiti.entities", mode="hold")
        before = stub.seen("graphiti.entities")
        for i in range(3):
            gateway.post(f"/v1/groups/{group}/episodes", episode(f"j{i}", mode="queued", job_id=f"j{i}"))
        until(lambda: stub.seen("graphiti.entities") > before)
        assert gateway.delete(f"/v1/groups/{group}/jobs/j0").code == "job_running"
        replies: list[Any] = []
        deleting = threading.Thread(target=lambda: replies.append(gateway.delete(f"/v1/groups/{group}")))
        deleting.start()
        until(lambda: self.state(gateway, group, "j2") == "cancelled")
        stub.clear()
        deleting.join()
        assert (replies[0].json["cancelled_jobs"], replies[0].json["removed"]["episodes"]) == (2, 1)
        assert set(gateway.counts(group).values()) == {0}

    def test_without_a_journal_nothing_is_queued(self, fresh: Callable[..., Gateway], group: str) -> None:
        gateway = fresh(queue={})
        reply = gateway.post(f"/v1/groups/{group}/episodes", episode("e", mode="queued"))
        assert (reply.status, reply.code) == (409, "queue_disabled")
        assert gateway.get(f"/v1/groups/{group}/jobs").code == "queue_disabled"

    def test_bounds(self, fresh: Callable[..., Gateway], group: str, other: str, stub: Stub) -> None:
        gateway = fresh(limits={"waiting_per_group": 1, "waiting": 1, "jobs": 2})
        stub.fail(purpose="graphiti.entities", mode="hold")
        before = stub.seen("graphiti.entities")
        threads = [threading.Thread(target=gateway.add, args=(group, AISLE)) for _ in range(2)]
        threads[0].start()
        until(lambda: stub.seen("graphiti.entities") > before)
        threads[1].start()
        until(lambda: gateway.get("/v1/ready").json["waiting"] == 1)
        reply = gateway.post(f"/v1/groups/{group}/episodes", episode("e"))
        assert (reply.status, reply.code, reply.details["scope"], reply.headers["retry-after"]) == (429, "queue_full", "group", "2")
        assert gateway.post(f"/v1/groups/{other}/episodes", episode("e")).details["scope"] == "gateway"
        queued = [gateway.post(f"/v1/groups/{group}/episodes", episode(f"j{i}", mode="queued")).status for i in range(3)]
        assert queued == [202, 202, 429]
        assert gateway.delete(f"/v1/groups/{group}").code == "queue_full"
        assert gateway.get(f"/v1/groups/{group}").json["jobs"]["queued"] == 2, "a deletion that is refused cancels nothing"
        stub.clear()
        for thread in threads:
            thread.join()

    def test_an_end_in_order_loses_nothing_acknowledged(self, fresh: Callable[..., Gateway], group: str, stub: Stub) -> None:
        """What runs is finished and answered, what waits synchronously is refused, what is queued runs after the next start."""
        gateway = fresh()
        stub.fail(purpose="graphiti.entities", mode="hold")
        before = stub.seen("graphiti.entities")
        replies: dict[str, Any] = {}

        def write(name: str) -> None:
            replies[name] = gateway.post(f"/v1/groups/{group}/episodes", episode(name))

        running = threading.Thread(target=write, args=("running",))
        running.start()
        until(lambda: stub.seen("graphiti.entities") > before)
        waiting = threading.Thread(target=write, args=("waiting",))
        waiting.start()
        until(lambda: gateway.get("/v1/ready").json["waiting"] == 1)
        assert gateway.post(f"/v1/groups/{group}/episodes", episode("queued", WINDOW, mode="queued", job_id="queued")).status == 202
        gateway.process.send_signal(signal.SIGTERM)
        waiting.join()
        assert (replies["waiting"].status, replies["waiting"].code) == (503, "shutting_down")
        stub.clear()
        running.join()
        assert replies["running"].status == 200
        assert gateway.process.wait(60) == 0
        second = fresh()
        until(lambda: self.state(second, group, "queued") == "done")
        names = [item["name"] for item in second.get(f"/v1/groups/{group}/episodes").json["episodes"]]
        assert sorted(names) == ["queued", "running"]

    def test_a_kill_says_of_the_running_job_that_nobody_knows(self, fresh: Callable[..., Gateway], group: str, stub: Stub) -> None:
        gateway = fresh()
        stub.fail(purpose="graphiti.entities", mode="hold")
        before = stub.seen("graphiti.entities")
        for name in ("running", "queued"):
            gateway.post(f"/v1/groups/{group}/episodes", episode(name, mode="queued", job_id=name))
        until(lambda: stub.seen("graphiti.entities") > before)
        gateway.end(signal.SIGKILL)
        stub.clear()
        second = fresh()
        until(lambda: self.state(second, group, "queued") == "done")
        job = second.get(f"/v1/groups/{group}/jobs/running").json["job"]
        assert (job["state"], job["error"]["details"]["stored"]) == ("interrupted", "unknown")
        assert second.get("/v1/ready").json["jobs"]["interrupted"] == 1

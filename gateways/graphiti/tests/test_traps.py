"""Each trap of graphiti-core that a thin gateway could fall into, by name: what the library does, and what the gateway makes of it."""

from __future__ import annotations

import json
import threading
from typing import Any, ClassVar

import pytest
from conftest import Gateway, Library, Stub

AISLE = "mara(user): I prefer aisle seats on business trips."
WINDOW = "mara(user): I now prefer window seats on business trips."


def facts(gateway: Gateway, group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = gateway.get(f"/v1/groups/{group}/edges").json["edges"]
    return found


def triplet(source: str = "Kim", target: str = "Rome", fact: str = "Kim lives in Rome", **more: Any) -> dict[str, Any]:
    return {
        "source_node": {"name": source},
        "edge": {"name": "LIVES_IN", "fact": fact, "valid_at": "2025-03-01T00:00:00Z"},
        "target_node": {"name": target},
        **more,
    }


class TestIdentity:
    """By id the library checks no group."""

    def test_get_by_uuid_has_no_group_check(self, gateway: Gateway, group: str, other: str) -> None:
        written = gateway.add(group, AISLE)
        for kind, uuid in (("episodes", written["episode"]["uuid"]), ("nodes", written["nodes"][0]["uuid"]), ("edges", written["edges"][0]["uuid"])):
            assert gateway.get(f"/v1/groups/{group}/{kind}/{uuid}").status == 200
            foreign, nobody = (gateway.get(f"/v1/groups/{other}/{kind}/{name}") for name in (uuid, "nobody"))
            assert (foreign.status, foreign.code) == (404, "not_found")
            assert foreign.details == {**nobody.details, "id": uuid}, "another group's object is answered like none at all"
            assert gateway.post(f"/v1/groups/{other}/{kind}/lookup", {"uuids": [uuid]}).json == {kind: [], "missing": [uuid]}
            assert gateway.delete(f"/v1/groups/{other}/{kind}/{uuid}").status == 404
        assert gateway.counts(group) == {"episodes": 1, "nodes": 2, "edges": 1, "communities": 0, "sagas": 0}

    def test_a_group_is_matched_in_full(self, gateway: Gateway) -> None:
        """The library takes an id with a line end, and none at all for every group."""
        for name in ("a%0A", "a:b", "%20", "a" * 256, "ä"):
            reply = gateway.get(f"/v1/groups/{name}")
            assert (reply.status, reply.code) == (422, "invalid_group_id"), name

    def test_a_search_never_leaves_its_group(self, gateway: Gateway, group: str, other: str) -> None:
        gateway.add(group, AISLE)
        for recipe in ("COMBINED_HYBRID_SEARCH_RRF", "EDGE_HYBRID_SEARCH_MMR"):
            assert gateway.post(f"/v1/groups/{group}/search_", {"query": "aisle seats", "recipe": recipe}).json["edges"]
            assert gateway.post(f"/v1/groups/{other}/search_", {"query": "aisle seats", "recipe": recipe}).json["edges"] == []
        assert gateway.post(f"/v1/groups/{other}/search", {"query": "aisle seats"}).json["edges"] == []


class TestAddEpisode:
    def test_edges_of_an_answer_are_created_reasserted_or_invalidated(self, gateway: Gateway, group: str) -> None:
        first = gateway.add(group, AISLE, "2025-03-01T09:00:00Z")
        (old,) = first["created_edge_uuids"]
        assert (first["reasserted_edge_uuids"], first["invalidated_edge_uuids"]) == ([], [])
        again = gateway.add(group, AISLE, "2025-03-02T09:00:00Z")
        assert (again["created_edge_uuids"], again["reasserted_edge_uuids"]) == ([], [old])
        newer = gateway.add(group, WINDOW, "2025-03-03T09:00:00Z")
        assert newer["invalidated_edge_uuids"] == [old]
        assert len(newer["created_edge_uuids"]) == 1
        closed = gateway.get(f"/v1/groups/{group}/edges/{old}").json["edge"]
        assert closed["invalid_at"] == "2025-03-03T09:00:00Z"
        assert closed["expired_at"]

    def test_no_embedding_is_in_an_answer(self, gateway: Gateway, group: str) -> None:
        written = gateway.add(group, AISLE)
        found = gateway.post(f"/v1/groups/{group}/search_", {"query": "seats", "recipe": "COMBINED_HYBRID_SEARCH_MMR"}).json
        assert "embedding" not in str(written) + str(found)

    def test_a_time_as_text_fails_after_the_commit_and_a_naive_one_is_hidden(self, gateway: Gateway, group: str) -> None:
        for at in ("2025-03-01T09:00:00", "yesterday", 1740819600):
            reply = gateway.post(f"/v1/groups/{group}/episodes", {"name": "e", "episode_body": AISLE, "reference_time": at})
            assert (reply.status, reply.code) == (422, "invalid_request")
            assert reply.details["errors"][0]["path"] == "body.reference_time"
            bulk = gateway.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": [{"name": "e", "content": AISLE, "reference_time": at}]})
            assert bulk.details["errors"][0]["path"] == "body.episodes.0.reference_time"
        assert gateway.counts(group)["episodes"] == 0
        gateway.add(group, AISLE, "2025-03-01T11:00:00+02:00")
        found = gateway.post(f"/v1/groups/{group}/episodes/retrieve", {"reference_time": "2025-03-01T09:00:00Z", "last_n": 5, "source": "message"}).json[
            "episodes"
        ]
        assert [item["valid_at"] for item in found] == ["2025-03-01T09:00:00Z"]

    @pytest.mark.parametrize(
        ("source", "body"), [("text", "The user prefers aisle seats."), ("json", '{"user": "mara", "city": "Berlin"}'), ("json", "not json {")]
    )
    def test_sources(self, gateway: Gateway, group: str, source: str, body: str) -> None:
        """The library takes whatever is called JSON."""
        assert gateway.add(group, body, source=source)["episode"]["source"] == source

    def test_fact_triple_is_extracted_like_a_text(self, gateway: Gateway, group: str, stub: Stub) -> None:
        before = stub.counts()["llm"]
        reply = gateway.post(
            f"/v1/groups/{group}/episodes", {"name": "e", "episode_body": "a b c", "reference_time": "2025-03-01T09:00:00Z", "source": "fact_triple"}
        )
        assert (reply.status, reply.code, reply.details) == (422, "unsupported", {"field": "source"})
        assert stub.counts()["llm"] == before

    def test_update_communities_raises_after_the_commit(self, gateway: Gateway, group: str) -> None:
        reply = gateway.post(
            f"/v1/groups/{group}/episodes", {"name": "e", "episode_body": AISLE, "reference_time": "2025-03-01T09:00:00Z", "update_communities": True}
        )
        assert (reply.status, reply.code) == (422, "unsupported")
        assert gateway.counts(group)["episodes"] == 0

    @pytest.mark.parametrize("field", ["uuid", "previous_episode_uuids", "saga_previous_episode_uuid"])
    def test_foreign_and_unknown_episodes_are_taken_for_ones_own(self, gateway: Gateway, group: str, other: str, field: str) -> None:
        foreign = gateway.add(other, AISLE)["episode"]["uuid"]
        before = gateway.counts(other)
        for uuid in (foreign, "nobody"):
            value = [uuid] if field.endswith("s") else uuid
            reply = gateway.post(
                f"/v1/groups/{group}/episodes", {"name": "e", "episode_body": WINDOW, "reference_time": "2025-03-02T09:00:00Z", "saga": "s", field: value}
            )
            assert (reply.status, reply.code, reply.details["field"], reply.details["uuids"]) == (422, "reference_not_found", field, [uuid])
        assert gateway.counts(group)["episodes"] == gateway.counts(group)["sagas"] == 0
        assert gateway.counts(other) == before

    def test_a_known_uuid_processes_the_stored_text(self, gateway: Gateway, group: str) -> None:
        uuid = gateway.add(group, AISLE)["episode"]["uuid"]
        again = gateway.add(group, WINDOW, uuid=uuid)
        assert (again["episode"]["uuid"], again["episode"]["content"]) == (uuid, AISLE)
        assert gateway.counts(group)["episodes"] == 1

    def test_previous_episodes(self, gateway: Gateway, group: str, stub: Stub) -> None:
        """Absent: the latest of the same source; an empty list: none."""
        gateway.add(group, "mara(user): I like tea from Assam.")
        prompts = []
        choices: tuple[list[str] | None, ...] = (None, [])
        for previous in choices:
            stub.forget()
            gateway.add(group, AISLE, "2025-03-02T09:00:00Z", previous_episode_uuids=previous)
            prompts.append(next(entry["prompt"] for entry in stub.log() if entry["purpose"] == "graphiti.entities"))
        assert ["Assam" in prompt for prompt in prompts] == [True, False]

    def test_instructions_reach_the_prompts(self, gateway: Gateway, group: str, stub: Stub) -> None:
        stub.forget()
        gateway.add(group, AISLE, custom_extraction_instructions="MARK-OF-THE-TEST")
        marked = {entry["purpose"] for entry in stub.log() if "MARK-OF-THE-TEST" in entry.get("prompt", "")}
        assert marked == {"graphiti.entities", "graphiti.edges"}

    def test_an_empty_body_has_no_facts(self, gateway: Gateway, group: str) -> None:
        assert gateway.add(group, "")["edges"] == []

    def test_a_failing_model_leaves_nothing(self, gateway: Gateway, group: str, stub: Stub) -> None:
        """For each step that asks one: all is written at the end."""
        gateway.add(group, AISLE)
        before = gateway.counts(group)
        for purpose in ("graphiti.entities", "graphiti.edges", "graphiti.resolve_edge", "embeddings"):
            stub.fail(purpose=purpose, mode="status", status=400)
            reply = gateway.post(f"/v1/groups/{group}/episodes", {"name": "e", "episode_body": WINDOW, "reference_time": "2025-03-03T09:00:00Z"})
            assert (reply.status, reply.code, reply.details["status"], reply.details["stored"]) == (502, "llm_failed", 400, "nothing"), purpose
            stub.clear()
            assert gateway.counts(group) == before
        stub.fail(purpose="graphiti.entities", mode="status", status=429)
        reply = gateway.post(f"/v1/groups/{group}/episodes", {"name": "e", "episode_body": WINDOW, "reference_time": "2025-03-03T09:00:00Z"})
        assert (reply.status, reply.code, reply.details["stored"], reply.headers["retry-after"]) == (429, "llm_rate_limited", "nothing", "2")
        stub.clear()
        assert gateway.add(group, WINDOW, "2025-03-03T09:00:00Z")["invalidated_edge_uuids"], "the worker lives"

    def test_six_adds_at_once_give_six_copies_of_the_speaker(self, gateway: Gateway, group: str) -> None:
        """Unless the writes of a group run one after another."""
        texts = [f"mara(user): I like {thing}." for thing in ("tea", "chess", "maps", "rain", "cellos", "tents")]
        threads = [threading.Thread(target=gateway.add, args=(group, text)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        names = [item["name"] for item in gateway.get(f"/v1/groups/{group}/nodes").json["nodes"]]
        assert names.count("mara") == 1
        assert gateway.counts(group)["episodes"] == 6


class TestSagas:
    def test_a_saga_links_its_episodes(self, gateway: Gateway, library: Library, group: str) -> None:
        first, second = (gateway.add(group, text, saga="trip")["episode"]["uuid"] for text in (AISLE, WINDOW))
        assert gateway.counts(group)["sagas"] == 1
        linked = library.rows("MATCH (s:Saga {group_id: $group})-[:HAS_EPISODE]->(e) RETURN e.uuid AS uuid", group=group)
        assert {row["uuid"] for row in linked} == {first, second}
        following = library.rows("MATCH (a:Episodic {group_id: $group})-[:NEXT_EPISODE]->(b) RETURN a.uuid AS a, b.uuid AS b", group=group)
        assert following == [{"a": first, "b": second}]
        found = gateway.post(f"/v1/groups/{group}/episodes/retrieve", {"reference_time": "2026-01-01T00:00:00Z", "saga": "trip"}).json["episodes"]
        assert {item["uuid"] for item in found} == {first, second}

    def test_every_further_add_wipes_the_summary(self, gateway: Gateway, library: Library, group: str) -> None:
        """The library's doing; the gateway says so and leaves it."""
        gateway.add(group, AISLE, saga="trip")
        library.rows("MATCH (s:Saga {group_id: $group}) SET s.summary = 'so far'", group=group)
        gateway.add(group, WINDOW, saga="trip")
        assert library.rows("MATCH (s:Saga {group_id: $group}) RETURN s.summary AS summary", group=group) == [{"summary": ""}]

    def test_a_summary_is_the_librarys_and_is_of_what_is_new(self, gateway: Gateway, group: str, other: str, stub: Stub) -> None:
        episode = gateway.add(group, AISLE, saga="trip")["episode"]["uuid"]
        (saga,) = gateway.get(f"/v1/groups/{group}/sagas").json["sagas"]
        assert (saga["name"], saga["summary"], saga["last_summarized_at"]) == ("trip", "", None)
        reply = gateway.post(f"/v1/groups/{group}/sagas/{saga['uuid']}/summary")
        told = reply.json["saga"]
        assert (reply.status, reply.json["group_id"], told["last_summarized_episode_valid_at"]) == (200, group, "2025-03-01T09:00:00Z")
        assert "aisle" in told["summary"] and told["last_summarized_at"]
        assert (told["first_episode_uuid"], told["last_episode_uuid"]) == (episode, episode)
        assert gateway.get(f"/v1/groups/{group}/sagas/{saga['uuid']}").json == {"saga": told}
        before = stub.seen("graphiti.saga")
        assert gateway.post(f"/v1/groups/{group}/sagas/{saga['uuid']}/summary").json["saga"] == told
        assert stub.seen("graphiti.saga") == before, "nothing new: nobody is asked"
        for path in (f"/v1/groups/{other}/sagas/{saga['uuid']}/summary", f"/v1/groups/{group}/sagas/nobody/summary"):
            assert gateway.post(path).code == "not_found", "another group's saga is like none"
        assert gateway.get(f"/v1/groups/{other}/sagas").json == {"sagas": [], "next_cursor": None}
        assert gateway.post(f"/v1/groups/{group}/sagas/{saga['uuid']}/summary", {"limit": 3}).code == "invalid_request"

    def test_a_model_that_fails_leaves_the_saga_as_it_was(self, gateway: Gateway, group: str, stub: Stub) -> None:
        gateway.add(group, AISLE, saga="trip")
        (saga,) = gateway.get(f"/v1/groups/{group}/sagas").json["sagas"]
        stub.fail(mode="status", status=400, purpose="graphiti.saga")
        reply = gateway.post(f"/v1/groups/{group}/sagas/{saga['uuid']}/summary")
        assert (reply.status, reply.code, reply.details["stored"]) == (502, "llm_failed", "nothing")
        assert gateway.get(f"/v1/groups/{group}/sagas").json["sagas"] == [saga]


class TestUsage:
    def test_tokens_are_counted_by_prompt_as_the_library_counts_them(self, gateway: Gateway, group: str) -> None:
        gateway.delete("/v1/usage")
        assert gateway.get("/v1/usage").json == {"counted": True, "prompts": [], "total": {"input_tokens": 0, "output_tokens": 0}}
        gateway.add(group, AISLE)
        counted = gateway.get("/v1/usage").json
        assert {"extract_nodes.extract_message", "extract_edges.edge"} <= {item["prompt_name"] for item in counted["prompts"]}
        for field in ("input_tokens", "output_tokens"):
            assert counted["total"][field] == sum(item[field] for item in counted["prompts"]) > 0
        assert all(item["call_count"] > 0 for item in counted["prompts"])
        assert gateway.delete("/v1/usage").json == counted, "a reset says what it forgets"
        assert gateway.get("/v1/usage").json["prompts"] == []


class TestTypes:
    def test_types_appear_only_where_they_are_asked_for(self, gateway: Gateway, group: str, other: str) -> None:
        plain = gateway.add(other, AISLE)
        assert {tuple(item["labels"]) for item in plain["nodes"]} == {("Entity",)}
        typed = gateway.add(
            group, AISLE, entity_types=["Person"], edge_types=["PREFERS"], edge_type_map=[{"source": "Person", "target": "Entity", "types": ["PREFERS"]}]
        )
        labels = {item["name"]: item["labels"] for item in typed["nodes"]}
        assert labels["mara"] == ["Entity", "Person"]
        person = next(item for item in typed["nodes"] if item["name"] == "mara")
        assert set(person["attributes"]) <= {"occupation", "nicknames"}
        found = gateway.post(
            f"/v1/groups/{group}/search_", {"query": "mara", "recipe": "NODE_HYBRID_SEARCH_RRF", "search_filter": {"node_labels": ["Person"]}}
        ).json
        assert [item["name"] for item in found["nodes"]] == ["mara"]

    def test_a_type_that_is_not_configured(self, gateway: Gateway, group: str) -> None:
        episode = {"name": "e", "episode_body": AISLE, "reference_time": "2025-03-01T09:00:00Z"}
        for more, kind, name in (
            ({"entity_types": ["Robot"]}, "entity", "Robot"),
            ({"edge_types": ["HATES"]}, "edge", "HATES"),
            ({"entity_types": ["Person"], "excluded_entity_types": ["Robot"]}, "entity", "Robot"),
            ({"edge_types": ["PREFERS"], "edge_type_map": [{"source": "Robot", "target": "Entity", "types": ["PREFERS"]}]}, "entity", "Robot"),
            ({"edge_type_map": [{"source": "Entity", "target": "Entity", "types": ["PREFERS"]}]}, "edge", "PREFERS"),
        ):
            for path, body in (("episodes", {**episode, **more}), ("episodes/bulk", {"episodes": [], **more})):  # a bulk checks no types by itself
                reply = gateway.post(f"/v1/groups/{group}/{path}", body)
                assert (reply.status, reply.code, reply.details["kind"], reply.details["name"]) == (422, "unknown_type", kind, name), path
        assert gateway.counts(group)["episodes"] == 0

    EXCLUDED: ClassVar[dict[str, Any]] = {"entity_types": ["Person"], "excluded_entity_types": ["Entity"]}

    @staticmethod
    def says(stub: Stub, purpose: str, seat: int | None) -> None:
        """The model's next answer: Mara with the only offered type, the seat with the type ``seat`` (None: not at all), and a fact between them."""
        entities = [("mara", 0), ("aisle seat", seat)]
        fact = {"source_entity_name": "mara", "target_entity_name": "aisle seat", "relation_type": "PREFERS", "fact": "mara prefers aisle seats"}
        stub.fail(
            purpose=purpose,
            mode="say",
            times=1,
            content=json.dumps(
                {
                    "extracted_entities": [{"name": name, "entity_type_id": kind, "episode_indices": [0]} for name, kind in entities if kind is not None],
                    "edges": [{**fact, "episode_indices": [0]}],
                }
            ),
        )

    def test_exclusion_drops_entities_and_the_facts_that_touch_them(self, gateway: Gateway, group: str, other: str, stub: Stub) -> None:
        """Dropped is what the model files under no type that it was offered."""
        self.says(stub, "graphiti.entities", 1)
        written = gateway.add(group, AISLE, **self.EXCLUDED)
        assert [item["name"] for item in written["nodes"]] == ["mara"]
        assert written["edges"] == []
        self.says(stub, "graphiti.combined", 1)
        assert gateway.post(f"/v1/groups/{other}/episodes/bulk", {"episodes": TestBulk.episodes(AISLE), **self.EXCLUDED}).status == 200
        assert gateway.counts(other) == {"episodes": 1, "nodes": 0, "edges": 0, "communities": 0, "sagas": 0}, "a bulk keeps no entity without a fact"

    def test_an_excluded_type_is_not_offered_to_the_model(self, gateway: Gateway, group: str, stub: Stub) -> None:
        """Since 0.31, so that a model that has no better type for a thing files it under one of the others, and it stays."""
        stub.forget()
        written = gateway.add(group, AISLE, **self.EXCLUDED)
        (asked,) = [item["prompt"] for item in stub.log() if item["purpose"] == "graphiti.entities"]
        offered = asked.split("<ENTITY TYPES>")[1].split("</ENTITY TYPES>")[0]
        assert "'entity_type_id': 0, 'entity_type_name': 'Person'" in offered
        assert "'entity_type_name': 'Entity'" not in offered
        assert [item["labels"] for item in written["nodes"]] == [["Entity", "Person"]] * 2
        assert len(written["edges"]) == 1

    def test_where_every_type_is_excluded_the_model_is_not_asked_for_entities(self, gateway: Gateway, group: str, stub: Stub) -> None:
        stub.forget()
        written = gateway.add(group, AISLE, excluded_entity_types=["Entity"])
        assert (written["nodes"], written["edges"]) == ([], [])
        assert stub.seen("graphiti.entities") == 0

    def test_a_fact_brings_an_excluded_entity_back(self, gateway: Gateway, group: str, other: str, stub: Stub) -> None:
        """Since 0.31 the library makes a plain entity of an end of a fact that the model named and did not list."""
        self.says(stub, "graphiti.edges", None)
        self.says(stub, "graphiti.entities", 1)
        written = gateway.add(group, AISLE, **self.EXCLUDED)
        assert {item["name"]: item["labels"] for item in written["nodes"]} == {"mara": ["Entity", "Person"], "aisle seat": ["Entity"]}
        assert [item["fact"] for item in written["edges"]] == ["mara prefers aisle seats"]
        self.says(stub, "graphiti.combined", None)
        gateway.post(f"/v1/groups/{other}/episodes/bulk", {"episodes": TestBulk.episodes(AISLE), **self.EXCLUDED})
        assert gateway.counts(other) == {"episodes": 1, "nodes": 2, "edges": 1, "communities": 0, "sagas": 0}


class TestBulk:
    @staticmethod
    def episodes(*texts: str) -> list[dict[str, Any]]:
        return [{"name": f"b{i}", "content": text, "reference_time": f"2025-03-{i + 1:02}T09:00:00Z"} for i, text in enumerate(texts)]

    def test_a_contradiction_inside_the_batch_stays_open(self, gateway: Gateway, group: str, other: str) -> None:
        """Where the two facts have different ends: inside a batch the library compares facts with the same ends only."""
        texts = ("mara(user): I prefer aisle seats.", "mara(user): I now prefer window seats.")
        bulk = gateway.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": self.episodes(*texts)})
        assert bulk.status == 200
        assert [item["invalid_at"] for item in facts(gateway, group)] == [None, None]
        assert len(bulk.json["created_edge_uuids"]) == 2
        for i, text in enumerate(texts):
            gateway.add(other, text, f"2025-03-{i + 1:02}T09:00:00Z")
        assert sum(item["invalid_at"] is not None for item in facts(gateway, other)) == 1

    def test_a_contradiction_with_what_is_stored_closes(self, gateway: Gateway, group: str) -> None:
        old = gateway.add(group, AISLE)["created_edge_uuids"]
        bulk = gateway.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": [{"name": "b", "content": WINDOW, "reference_time": "2025-03-05T09:00:00Z"}]})
        assert bulk.json["invalidated_edge_uuids"] == old

    def test_episodes_of_a_bulk_list_the_facts_that_they_assert(self, gateway: Gateway, group: str) -> None:
        """Before 0.31 the library lists none, so that the removal of an episode leaves its facts."""
        bulk = gateway.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": self.episodes(AISLE, "mara(user): I live in Berlin.")}).json
        for episode in bulk["episodes"]:
            assert episode["entity_edges"] == [item["uuid"] for item in bulk["edges"] if episode["uuid"] in item["episodes"]] != []
        removed = gateway.delete(f"/v1/groups/{group}/episodes/{bulk['episodes'][0]['uuid']}").json["removed"]
        assert (removed["episodes"], removed["edges"]) == (1, 1)
        assert [item["episodes"] for item in facts(gateway, group)] == [[bulk["episodes"][1]["uuid"]]]

    def test_an_empty_bulk(self, gateway: Gateway, group: str) -> None:
        reply = gateway.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": []})
        assert (reply.status, reply.json["episodes"]) == (200, [])

    def test_a_foreign_or_unknown_uuid_is_refused_before_anything_is_stored(self, gateway: Gateway, group: str, other: str) -> None:
        foreign = gateway.add(other, AISLE)["episode"]["uuid"]
        for uuid in (foreign, "nobody"):
            episodes = self.episodes(AISLE, WINDOW)
            episodes[1]["uuid"] = uuid
            reply = gateway.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": episodes})
            assert (reply.status, reply.code, reply.details["uuids"]) == (422, "reference_not_found", [uuid])
        assert gateway.counts(group)["episodes"] == 0

    def test_a_model_failing_half_way_leaves_bare_episodes_and_their_uuids_resume(self, gateway: Gateway, group: str, other: str, stub: Stub) -> None:
        gateway.add(other, AISLE)
        before = gateway.counts(other)
        episodes = self.episodes(AISLE, "mara(user): I live in Berlin.", AISLE)
        stub.fail(purpose="graphiti.combined", mode="status", status=400, after=1)
        reply = gateway.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": episodes})
        assert (reply.status, reply.code, reply.details["stored"]) == (502, "llm_failed", "episodes_without_facts")
        left = reply.details["episodes"]
        assert [(item["index"], item["name"]) for item in left] == [(0, "b0"), (1, "b1"), (2, "b2")]
        assert gateway.counts(group) == {"episodes": 3, "nodes": 0, "edges": 0, "communities": 0, "sagas": 0}
        stub.clear()
        for item in left:
            episodes[item["index"]]["uuid"] = item["uuid"]
        resumed = gateway.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": episodes})
        assert resumed.status == 200, resumed.json
        counts = gateway.counts(group)
        assert counts["episodes"] == 3, "nothing doubled"
        assert counts["edges"] > 0
        assert gateway.counts(other) == before

    def test_a_saga_of_a_bulk(self, gateway: Gateway, library: Library, group: str) -> None:
        gateway.post(f"/v1/groups/{group}/episodes/bulk", {"episodes": list(reversed(self.episodes(AISLE, "mara(user): I live in Berlin."))), "saga": "trip"})
        following = library.rows("MATCH (a:Episodic {group_id: $group})-[:NEXT_EPISODE]->(b) RETURN a.name AS a, b.name AS b", group=group)
        assert following == [{"a": "b0", "b": "b1"}], "chained by valid_at"


class TestTriplets:
    def test_a_triplet(self, gateway: Gateway, group: str) -> None:
        body = triplet()
        body["source_node"].update(labels=["Person"], attributes={"mood": "good", "tags": ["a", "b"]}, summary="a traveller")
        reply = gateway.post(f"/v1/groups/{group}/triplets", body)
        assert reply.status == 200, reply.json
        assert reply.json["created_edge_uuids"] == [reply.json["edges"][0]["uuid"]]
        kim = next(item for item in gateway.get(f"/v1/groups/{group}/nodes").json["nodes"] if item["name"] == "Kim")
        assert (kim["labels"], kim["attributes"], kim["summary"]) == (["Entity", "Person"], {"mood": "good", "tags": ["a", "b"]}, "a traveller")
        assert gateway.counts(group)["episodes"] == 0

    def test_a_known_fact_is_kept_and_gains_an_episode_that_is_stored_nowhere(self, gateway: Gateway, group: str) -> None:
        first = gateway.post(f"/v1/groups/{group}/triplets", triplet()).json
        again = gateway.post(f"/v1/groups/{group}/triplets", triplet()).json
        assert (again["created_edge_uuids"], again["reasserted_edge_uuids"]) == ([], first["created_edge_uuids"])
        (ghost,) = again["edges"][0]["episodes"]
        assert gateway.get(f"/v1/groups/{group}/episodes/{ghost}").status == 404

    def test_another_groups_node_would_be_used_and_rewritten(self, gateway: Gateway, group: str, other: str, stub: Stub) -> None:
        theirs = gateway.post(f"/v1/groups/{other}/triplets", triplet()).json
        node, edge = theirs["nodes"][0], theirs["edges"][0]
        asked = stub.counts()["embeddings"]
        for field, body in (
            ("source_node.uuid", triplet(source_node={"name": "Evil", "uuid": node["uuid"], "summary": "OVERWRITTEN"})),
            ("target_node.uuid", triplet(target_node={"name": "Evil", "uuid": node["uuid"]})),
            ("edge.uuid", triplet(edge={"name": "X", "fact": "f", "uuid": edge["uuid"]})),
            ("source_node.uuid", triplet(source_node={"name": "Nobody", "uuid": "nobody"})),
        ):
            reply = gateway.post(f"/v1/groups/{group}/triplets", body)
            assert (reply.status, reply.code, reply.details["field"]) == (422, "reference_not_found", field)
        assert stub.counts()["embeddings"] == asked, "refused before the first embedding"
        assert gateway.counts(group)["nodes"] == 0
        assert (
            gateway.get(f"/v1/groups/{other}/nodes/{node['uuid']}").json["node"]
            == gateway.post(f"/v1/groups/{other}/nodes/lookup", {"uuids": [node["uuid"]]}).json["nodes"][0]
        )
        assert gateway.get(f"/v1/groups/{other}/nodes/{node['uuid']}").json["node"]["summary"] != "OVERWRITTEN"

    def test_a_node_of_the_group_by_its_uuid(self, gateway: Gateway, group: str) -> None:
        kim = gateway.post(f"/v1/groups/{group}/triplets", triplet()).json["nodes"][0]["uuid"]
        body = triplet(
            source_node={"name": "Kim", "uuid": kim},
            target_node={"name": "Tea"},
            edge={"name": "DRINKS", "fact": "Kim drinks tea", "valid_at": "2025-03-02T00:00:00Z"},
        )
        assert gateway.post(f"/v1/groups/{group}/triplets", body).json["nodes"][0]["uuid"] == kim
        assert gateway.counts(group)["nodes"] == 3

    @pytest.mark.parametrize("name", ["group_id", "uuid", "summary", "name_embedding"])
    def test_an_attribute_called_like_a_field_would_overwrite_it(self, gateway: Gateway, group: str, other: str, name: str) -> None:
        reply = gateway.post(f"/v1/groups/{group}/triplets", triplet(source_node={"name": "Kim", "attributes": {name: other}}))
        assert (reply.status, reply.code) == (422, "invalid_request")
        assert reply.details["errors"][0]["path"] == f"body.source_node.attributes.{name}"
        assert gateway.counts(group)["nodes"] == gateway.counts(other)["nodes"] == 0

    def test_without_a_time_the_model_is_asked(self, gateway: Gateway, group: str, stub: Stub) -> None:
        before = stub.seen("graphiti.timestamps")
        reply = gateway.post(f"/v1/groups/{group}/triplets", triplet(edge={"name": "LIVES_IN", "fact": "Kim lives in Rome"}))
        assert reply.status == 200
        assert stub.seen("graphiti.timestamps") == before + 1

    def test_blank_names_pass_the_library(self, gateway: Gateway, group: str) -> None:
        for body in (triplet(source=""), triplet(target=" "), triplet(fact="\n")):
            assert gateway.post(f"/v1/groups/{group}/triplets", body).code == "invalid_request"


class TestSearching:
    @pytest.fixture(scope="class")
    @staticmethod
    def told(gateway: Gateway) -> str:
        name = "traps_search"
        gateway.delete(f"/v1/groups/{name}")
        for i, text in enumerate((AISLE, "mara(user): I live in Berlin.", WINDOW, "mara(user): I drink green tea in the morning.")):
            gateway.add(name, text, f"2025-03-{i + 1:02}T09:00:00Z")
        return name

    def test_a_distance_without_a_centre_fails_after_the_embedding(self, gateway: Gateway, told: str, stub: Stub) -> None:
        before = stub.counts()["embeddings"]
        for body in (
            {"query": "q", "recipe": "EDGE_HYBRID_SEARCH_NODE_DISTANCE"},
            {"query": "q", "config": {"node_config": {"search_methods": ["bm25"], "reranker": "node_distance"}}},
        ):
            reply = gateway.post(f"/v1/groups/{told}/search_", body)
            assert (reply.status, reply.code) == (422, "center_node_required")
        assert stub.counts()["embeddings"] == before

    def test_an_unknown_centre_passes(self, gateway: Gateway, told: str) -> None:
        reply = gateway.post(f"/v1/groups/{told}/search_", {"query": "tea", "recipe": "NODE_HYBRID_SEARCH_NODE_DISTANCE", "center_node_uuid": "nobody"})
        assert (reply.status, bool(reply.json["nodes"])) == (200, True)

    def test_scores_that_belong_to_no_edge_are_called_unaligned(self, gateway: Gateway, told: str) -> None:
        centre = gateway.get(f"/v1/groups/{told}/nodes").json["nodes"][0]["uuid"]
        for recipe, alignment in (
            ("EDGE_HYBRID_SEARCH_RRF", "aligned"),
            ("EDGE_HYBRID_SEARCH_EPISODE_MENTIONS", "unaligned"),
            ("EDGE_HYBRID_SEARCH_NODE_DISTANCE", "unaligned"),
        ):
            reply = gateway.post(f"/v1/groups/{told}/search_", {"query": "seats", "recipe": recipe, "center_node_uuid": centre})
            assert reply.json["score_alignment"]["edges"] == alignment
            assert reply.json["edges"]

    def test_a_node_that_no_episode_mentions_scores_nothing(self, gateway: Gateway, group: str) -> None:
        """In 0.29 its score is infinite, which the gateway answers as null."""
        gateway.post(f"/v1/groups/{group}/triplets", triplet())
        reply = gateway.post(f"/v1/groups/{group}/search_", {"query": "Kim Rome", "recipe": "NODE_HYBRID_SEARCH_EPISODE_MENTIONS"})
        assert reply.json["nodes"]
        assert reply.json["node_reranker_scores"] == [0.0, 0.0]

    def test_num_results_would_be_written_into_the_shared_recipe(self, gateway: Gateway, group: str) -> None:
        """With 1 there, later contradictions find one candidate; with 0, none."""
        for i, text in enumerate((AISLE, "mara(user): I live in Berlin.", "mara(user): I drink green tea in the morning.")):
            gateway.add(group, text, f"2025-03-{i + 1:02}T09:00:00Z")
        assert len(gateway.post(f"/v1/groups/{group}/search", {"query": "seats tea Berlin", "num_results": 1}).json["edges"]) == 1
        assert len(gateway.post(f"/v1/groups/{group}/search_", {"query": "seats tea Berlin", "recipe": "EDGE_HYBRID_SEARCH_RRF"}).json["edges"]) == 3
        assert gateway.post(f"/v1/groups/{group}/search", {"query": "seats", "num_results": 0}).status == 422
        assert gateway.add(group, WINDOW, "2025-03-09T09:00:00Z")["invalidated_edge_uuids"]

    def test_a_recipes_limit_is_this_calls_alone(self, gateway: Gateway, told: str) -> None:
        asked = [{"query": "mara seats tea Berlin", "recipe": "EDGE_HYBRID_SEARCH_RRF", **({"limit": limit} if limit else {})} for limit in (1, None, 2, None)]
        assert [len(gateway.post(f"/v1/groups/{told}/search_", body).json["edges"]) for body in asked] == [1, 4, 2, 4]

    @pytest.mark.parametrize(
        ("search_filter", "code"),
        [
            (
                {"valid_at": [[{"comparison_operator": "<", "date": "2025-03-02T00:00:00Z"}], [{"comparison_operator": ">", "date": "2025-03-04T00:00:00Z"}]]},
                "invalid_search_filter",
            ),
            ({"valid_at": []}, "invalid_search_filter"),
            ({"valid_at": [[]]}, "invalid_search_filter"),
            ({"node_labels": []}, "invalid_search_filter"),
            ({"valid_at": [[{"comparison_operator": "<"}]]}, "invalid_search_filter"),
            ({"valid_at": [[{"comparison_operator": "<", "date": "2025-03-02T00:00:00"}]]}, "invalid_search_filter"),
            ({"edge_uuid": ["x"]}, "invalid_search_filter"),
            ({"property_filters": [{"property_name": "a", "property_value": 1, "comparison_operator": "="}]}, "unsupported"),
        ],
    )
    def test_filters_that_the_library_ignores_overwrites_or_breaks_on(self, gateway: Gateway, told: str, search_filter: dict[str, Any], code: str) -> None:
        for path in ("search", "search_"):
            reply = gateway.post(f"/v1/groups/{told}/{path}", {"query": "seats", "search_filter": search_filter})
            assert (reply.status, reply.code) == (422, code)

    def test_filters(self, gateway: Gateway, told: str) -> None:
        def found(**search_filter: Any) -> int:
            body = {"query": "mara seats tea Berlin", "recipe": "EDGE_HYBRID_SEARCH_RRF", "search_filter": search_filter}
            reply = gateway.post(f"/v1/groups/{told}/search_", body)
            assert reply.status == 200, reply.json
            return len(reply.json["edges"])

        all_of_them = facts(gateway, told)
        assert found() == len(all_of_them) == 4
        second = "2025-03-02T09:00:00Z"
        assert found(valid_at=[[{"comparison_operator": "=", "date": second}]]) == 1
        assert found(valid_at=[[{"comparison_operator": ">=", "date": second}, {"comparison_operator": "<", "date": "2025-03-04T00:00:00Z"}]]) == 2
        assert found(invalid_at=[[{"comparison_operator": "IS NULL"}]]) == 3
        assert found(expired_at=[[{"comparison_operator": "IS NOT NULL"}]]) == 1
        assert found(created_at=[[{"comparison_operator": ">", "date": "2020-01-01T00:00:00+02:00"}]]) == 4
        assert found(edge_uuids=[all_of_them[0]["uuid"]]) == 1
        assert found(edge_types=[all_of_them[0]["name"]]) == sum(item["name"] == all_of_them[0]["name"] for item in all_of_them)
        assert found(node_labels=["Entity"]) == 4
        assert found(node_labels=["Nobody"]) == 0

    def test_foreign_origins_give_nothing(self, gateway: Gateway, told: str, other: str) -> None:
        gateway.add(other, AISLE)
        foreign = gateway.get(f"/v1/groups/{other}/nodes").json["nodes"][0]["uuid"]
        mine = next(item["uuid"] for item in gateway.get(f"/v1/groups/{told}/nodes").json["nodes"] if item["name"] == "mara")
        config = {"edge_config": {"search_methods": ["breadth_first_search"]}}
        for origin, any_found in ((foreign, False), (mine, True)):
            reply = gateway.post(f"/v1/groups/{told}/search_", {"query": "seats", "config": config, "bfs_origin_node_uuids": [origin]})
            assert (reply.status, bool(reply.json["edges"])) == (200, any_found)

    def test_a_reranker_that_is_down_fails_the_search(self, gateway: Gateway, told: str, stub: Stub) -> None:
        stub.fail(purpose="graphiti.cross_encoder", mode="status", status=400)
        reply = gateway.post(f"/v1/groups/{told}/search_", {"query": "seats"})
        assert (reply.status, reply.code) == (502, "llm_failed")

    def test_a_query_of_too_many_words(self, gateway: Gateway, told: str) -> None:
        reply = gateway.post(f"/v1/groups/{told}/search", {"query": "\n".join(f"word{i}" for i in range(3000))})
        assert (reply.status, reply.code) == (422, "invalid_request")

    def test_a_blank_query_finds_nothing_and_asks_nobody(self, gateway: Gateway, told: str, stub: Stub) -> None:
        before = stub.counts()["embeddings"]
        assert gateway.post(f"/v1/groups/{told}/search_", {"query": "  "}).json["edges"] == []
        assert stub.counts()["embeddings"] == before


class TestRemoving:
    def test_remove_episode_takes_the_facts_it_asserted_first_and_reopens_nothing(self, gateway: Gateway, group: str) -> None:
        gateway.add(group, AISLE, "2025-03-01T09:00:00Z")
        newer = gateway.add(group, WINDOW, "2025-03-02T09:00:00Z")
        reply = gateway.delete(f"/v1/groups/{group}/episodes/{newer['episode']['uuid']}")
        assert reply.json["removed"]["episodes"] == reply.json["removed"]["edges"] == 1
        (left,) = facts(gateway, group)
        assert left["invalid_at"] == "2025-03-02T09:00:00Z"
        assert gateway.delete(f"/v1/groups/{group}/episodes/{newer['episode']['uuid']}").status == 404

    def test_a_fact_that_others_assert_too_can_be_kept(self, gateway: Gateway, group: str) -> None:
        """Before 0.31 the library removes it with the first episode that asserted it."""
        first, second = (gateway.add(group, AISLE)["episode"]["uuid"] for _ in range(2))
        assert gateway.delete(f"/v1/groups/{group}/episodes/{first}?shared=keep").json["removed"]["edges"] == 0
        (left,) = facts(gateway, group)
        assert left["episodes"] == [second]
        assert gateway.delete(f"/v1/groups/{group}/episodes/{second}?shared=keep").json["removed"]["edges"] == 1
        assert gateway.delete(f"/v1/groups/{group}/episodes/{second}?shared=all").code == "invalid_request"

    def test_a_facts_sentence_can_leave_the_summaries(self, gateway: Gateway, group: str) -> None:
        """The library appends facts to their nodes' summaries, and never takes one back."""
        fact = gateway.add(group, AISLE)["edges"][0]
        gateway.add(group, "mara(user): I like tea.")
        summaries = "\n".join(node["summary"] for node in gateway.get(f"/v1/groups/{group}/nodes").json["nodes"])
        assert summaries.count(fact["fact"]) == 2
        assert gateway.delete(f"/v1/groups/{group}/edges/{fact['uuid']}?summaries=clean").json["removed"]["edges"] == 1
        summaries = "\n".join(node["summary"] for node in gateway.get(f"/v1/groups/{group}/nodes").json["nodes"])
        assert fact["fact"] not in summaries
        assert "tea" in summaries

    def test_edges_and_nodes(self, gateway: Gateway, group: str) -> None:
        written = gateway.add(group, AISLE)
        assert gateway.delete(f"/v1/groups/{group}/edges/{written['edges'][0]['uuid']}").json["removed"]["edges"] == 1
        assert gateway.delete(f"/v1/groups/{group}/nodes/{written['nodes'][0]['uuid']}").json["removed"]["nodes"] == 1
        assert gateway.counts(group) == {"episodes": 1, "nodes": 1, "edges": 0, "communities": 0, "sagas": 0}

    def test_the_librarys_deletion_of_a_group_leaves_sagas_and_counts_nothing(self, gateway: Gateway, group: str, other: str) -> None:
        for name in (group, other):
            gateway.add(name, AISLE, saga="trip")
        before = gateway.counts(other)
        reply = gateway.delete(f"/v1/groups/{group}")
        assert reply.json == {"group_id": group, "removed": {"episodes": 1, "nodes": 2, "edges": 1, "communities": 0, "sagas": 1}, "cancelled_jobs": 0}
        assert set(gateway.counts(group).values()) == {0}
        assert gateway.counts(other) == before
        assert set(gateway.delete(f"/v1/groups/{group}").json["removed"].values()) == {0}


class TestCommunities:
    def test_a_group_without_a_loop(self, gateway: Gateway, group: str) -> None:
        gateway.add(group, AISLE)
        reply = gateway.post(f"/v1/groups/{group}/communities", {"timeout_seconds": 60})
        assert reply.status == 200, reply.json
        assert gateway.counts(group)["communities"] == len(reply.json["communities"]) == 1
        found = gateway.post(f"/v1/groups/{group}/search_", {"query": reply.json["communities"][0]["name"], "recipe": "COMMUNITY_HYBRID_SEARCH_RRF"}).json
        assert [item["uuid"] for item in found["communities"]] == [reply.json["communities"][0]["uuid"]]

    def test_two_entities_that_share_two_facts_never_end(self, gateway: Gateway, group: str, other: str) -> None:
        """The library's loop blocks its event loop; here it blocks a process that is killed, and nobody else."""
        gateway.post(f"/v1/groups/{group}/triplets", triplet())
        body = triplet(edge={"name": "WORKS_IN", "fact": "Kim works in Rome", "valid_at": "2025-03-01T00:00:00Z"})
        assert gateway.post(f"/v1/groups/{group}/triplets", body).status == 200
        replies: list[Any] = []
        building = threading.Thread(target=lambda: replies.append(gateway.post(f"/v1/groups/{group}/communities", {"timeout_seconds": 8})))
        building.start()
        gateway.add(other, AISLE)
        building.join()
        assert (replies[0].status, replies[0].code, replies[0].details) == (504, "deadline_exceeded", {"seconds": 8, "stored": "without_communities"})
        gateway.add(group, AISLE)

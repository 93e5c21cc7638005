"""What needs neither database nor model: configuration, types, bodies, order, journal, rendering, errors."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import openai
import pytest
from graphiti_core.edges import EntityEdge
from graphiti_core.errors import NodeNotFoundError, SearchRerankerError
from graphiti_core.llm_client.errors import EmptyResponseError, RateLimitError
from graphiti_core.nodes import EntityNode
from graphiti_core.search.search_config import SearchResults
from neo4j.exceptions import ClientError, ServiceUnavailable, SessionExpired
from pydantic import BaseModel, TypeAdapter, ValidationError

from graphiti_gateway import bodies, engine, render
from graphiti_gateway.databases import open_store
from graphiti_gateway.engine import RECIPES, Engine
from graphiti_gateway.errors import STATUS, GatewayError, translate
from graphiti_gateway.journal import Journal
from graphiti_gateway.lanes import Lanes
from graphiti_gateway.ontology import EDGE_FIELDS, NODE_FIELDS, SchemaError, TypeSchema, build
from graphiti_gateway.settings import Database, Listen, Secret, Settings, SettingsError, load

MINIMAL: dict[str, Any] = {
    "token": {"env": "T"},
    "database": {"uri": "bolt://127.0.0.1:7687", "password": {"env": "P"}},
    "llm": {"api_key": {"env": "K"}},
    "embedder": {"api_key": {"env": "K"}},
}


def write(folder: Path, data: Any) -> Path:
    file = folder / "gateway.yaml"
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    return file


class TestSettings:
    def test_the_smallest_file(self, tmp_path: Path) -> None:
        settings = load(write(tmp_path, MINIMAL))
        assert (settings.listen.host, settings.listen.port, settings.queue.path, settings.reranker) == ("127.0.0.1", 8190, None, None)

    @pytest.mark.parametrize(
        ("data", "names"),
        [
            ("{", "no YAML"),
            ("[]", "mapping"),
            ({**MINIMAL, "tokn": 1}, "tokn"),
            ({**MINIMAL, "token": "verysecret"}, "token"),
            ({**MINIMAL, "token": {"env": "A", "file": "b"}}, "exactly one"),
            ({**MINIMAL, "listen": {"host": "0.0.0.0"}}, "not loopback"),
            ({**MINIMAL, "database": {"uri": "bolt://x", "password": {"env": "P"}, "provider": "kuzu"}}, "database.provider"),
            ({**MINIMAL, "database": {"uri": "bolt://x"}}, "password: missing"),
            ({**MINIMAL, "database": {"uri": "redis://x:6379"}}, "write provider: falkordb"),
            ({**MINIMAL, "database": {"provider": "falkordb", "uri": "bolt://x"}}, "redis://HOST:PORT"),
            ({**MINIMAL, "database": {"provider": "falkordb", "uri": "redis://u:verysecret@x"}}, "user and password"),
            ({**MINIMAL, "database": {"provider": "falkordb", "uri": "redis://x", "name": "a"}}, "a graph of its own"),
            ({**MINIMAL, "types": {"entity": {"Per son": {}}}}, "types.entity.Per son"),
            ({**MINIMAL, "types": {"edge": {"A": {"properties": {"fact": {"type": "string"}}}}}}, "types.edge.A"),
            ({**MINIMAL, "types": {"entity": {"A": {"properties": {"x": {"type": "object"}}}}}}, "types.entity.A.properties.x"),
            ({**MINIMAL, "limits": {"bulk_episodes": 0}}, "limits.bulk_episodes"),
        ],
    )
    def test_what_is_wrong_is_named_and_not_repeated(self, tmp_path: Path, data: Any, names: str) -> None:
        with pytest.raises(SettingsError) as told:
            load(write(tmp_path, data))
        assert names in str(told.value)
        assert "verysecret" not in str(told.value)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match="No such file"):
            load(tmp_path / "none.yaml")

    def test_secrets(self, tmp_path: Path) -> None:
        (tmp_path / "s").write_text("from file\n")
        assert Secret(file=tmp_path / "s").read({}) == "from file"
        assert Secret(env="A").read({"A": "from env"}) == "from env"
        for missing in (Secret(env="A"), Secret(file=tmp_path / "none")):
            with pytest.raises(SettingsError):
                missing.read({})

    def test_listening_beyond_loopback_is_asked_for(self) -> None:
        assert Listen(host="0.0.0.0", allow_remote=True).host == "0.0.0.0"
        assert Listen(host="::1").host == "::1"
        assert Listen(host="localhost").host == "localhost"


class TestDatabases:
    def test_falkordb_has_an_engine_for_each_group_and_neo4j_one_for_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine, "ENGINES", 2)
        for name in ("T", "P", "K"):
            monkeypatch.setenv(name, "x")
        neo4j = Engine(Settings.model_validate(MINIMAL))
        assert neo4j.of("a") is neo4j.of("b") is neo4j

        async def story() -> None:
            database = {"provider": "falkordb", "uri": "redis://127.0.0.1:1", "user": "u", "password": {"env": "P"}}
            falkor = Engine(Settings.model_validate({**MINIMAL, "database": database}))
            first, second = falkor.of("a"), falkor.of("b")
            assert first is falkor.of("a") is not second
            assert (first.driver._database, second.driver._database) == ("a", "b"), "the library would bind a shared driver anew with each write"
            assert first.graphiti.driver is first.driver and first.graphiti.clients.driver is first.driver
            assert falkor.graphiti.token_tracker is first.graphiti.token_tracker
            falkor.of("c")
            assert falkor.of("a") is first and falkor.of("b") is not second, "the one that nobody asked longest is forgotten"
            await falkor.close()

        asyncio.run(story())
        asyncio.run(neo4j.close())

    def test_falkordb_without_its_package_says_which(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "falkordb", None)
        monkeypatch.delitem(sys.modules, "graphiti_gateway.falkor", raising=False)
        monkeypatch.delitem(sys.modules, "falkordb.asyncio", raising=False)
        with pytest.raises(SettingsError, match=r"pip install 'memhost-gateway-graphiti\[falkordb\]'"):
            open_store(Database(provider="falkordb", uri="redis://x:1"))


class TestTypes:
    def test_a_model_of_every_kind(self) -> None:
        schema = TypeSchema.model_validate(
            {
                "description": "A human being",
                "properties": {
                    "occupation": {"type": "string", "description": "what they do"},
                    "age": {"type": "integer"},
                    "height": {"type": "number"},
                    "alive": {"type": "boolean"},
                    "mood": {"type": "string", "enum": ["good", "bad"]},
                    "nicknames": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["age"],
            }
        )
        made = build("Person", schema, NODE_FIELDS)
        assert (made.__name__, made.__doc__) == ("Person", "A human being")
        assert made.model_validate({"age": 3, "mood": "good", "nicknames": ["a"]}).model_dump(exclude_none=True) == {
            "age": 3,
            "mood": "good",
            "nicknames": ["a"],
        }
        for wrong in ({}, {"age": "three"}, {"age": 1, "mood": "so-so"}):
            with pytest.raises(ValidationError):
                made.model_validate(wrong)

    @pytest.mark.parametrize(
        ("name", "schema", "taken"),
        [
            ("Per-son", {}, NODE_FIELDS),
            ("Person\n", {}, NODE_FIELDS),
            ("Entity", {}, NODE_FIELDS),
            ("P", {"properties": {"summary": {"type": "string"}}}, NODE_FIELDS),  # the library refuses it
            ("P", {"properties": {"fact": {"type": "string"}}}, EDGE_FIELDS),  # the library drops it without a word
            ("P", {"properties": {"uuid": {"type": "string"}}}, EDGE_FIELDS),
            ("P", {"properties": {"_x": {"type": "string"}}}, NODE_FIELDS),
            ("P", {"properties": {"model_dump": {"type": "string"}}}, NODE_FIELDS),
            ("P", {"properties": {"x": {"type": "array"}}}, NODE_FIELDS),
            ("P", {"properties": {"x": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}}}, NODE_FIELDS),
            ("P", {"properties": {"x": {"type": "integer", "enum": ["1"]}}}, NODE_FIELDS),
            ("P", {"properties": {"x": {"type": "string", "items": {"type": "string"}}}}, NODE_FIELDS),
            ("P", {"required": ["x"]}, NODE_FIELDS),
        ],
    )
    def test_refused(self, name: str, schema: dict[str, Any], taken: frozenset[str]) -> None:
        with pytest.raises(SchemaError):
            build(name, TypeSchema.model_validate(schema), taken)

    @pytest.mark.parametrize(
        "schema", [{"additionalProperties": True}, {"properties": {"x": {"type": "object"}}}, {"properties": {"x": {"$ref": "#"}}}, {"type": "array"}]
    )
    def test_keywords_that_nobody_honours_are_refused(self, schema: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            TypeSchema.model_validate(schema)


class TestBodies:
    @pytest.mark.parametrize(
        ("text", "at"),
        [
            ("2025-03-01T09:30:00Z", datetime(2025, 3, 1, 9, 30, tzinfo=UTC)),
            ("2025-03-01t09:30:00z", datetime(2025, 3, 1, 9, 30, tzinfo=UTC)),
            ("2025-03-01T11:30:00.5+02:00", datetime(2025, 3, 1, 11, 30, 0, 500000, tzinfo=timezone(timedelta(hours=2)))),
        ],
    )
    def test_times(self, text: str, at: datetime) -> None:
        assert TypeAdapter(bodies.Time).validate_python(text) == at

    @pytest.mark.parametrize("value", ["2025-03-01T09:30:00", "2025-03-01", "yesterday", "", 1740821400, 1.5, True, "2025-13-01T00:00:00Z"])
    def test_times_that_the_library_would_take_or_lose(self, value: Any) -> None:
        with pytest.raises(ValidationError):
            TypeAdapter(bodies.Time).validate_python(value)

    @pytest.mark.parametrize("text", ["", "a:b", "a b", "a\n", "ä", "*", "a" * 256])
    def test_groups_that_are_none(self, text: str) -> None:
        assert not bodies.GROUP.match(text)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"query": "\ud800"},
            {"query": "x", "reranker_min_score": float("nan")},
            {"query": "x", "bfs_origin_node_uuids": ["a\udfff"]},
            {"query": "x", "config": {"a": {"b\ud800": 1}}},
        ],
    )
    def test_what_no_json_text_could_say_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            bodies.SearchAdvanced.model_validate(wrong)
        assert bodies.SearchAdvanced.model_validate({"query": "naïve café 🚲 \x00"}).query.endswith("\x00")

    def test_a_config_with_a_number_that_is_none_is_refused(self) -> None:
        with pytest.raises(GatewayError) as told:
            bodies.search_config({"edge_config": {"search_methods": ["bm25"], "sim_min_score": float("inf")}})
        assert told.value.code == "invalid_search_config"

    def test_null_is_absent(self) -> None:
        given = {
            "name": "n",
            "episode_body": "b",
            "reference_time": "2025-03-01T09:30:00Z",
            "source": None,
            "uuid": None,
            "mode": None,
            "update_communities": None,
        }
        assert bodies.AddEpisode.model_validate(given).source == "message"

    @pytest.mark.parametrize(
        ("model", "body"),
        [
            (bodies.AddEpisode, {"name": "n", "episode_body": "b", "reference_time": "2025-03-01T09:30:00Z", "sauce": "text"}),
            (bodies.AddEpisode, {"name": "n", "episode_body": "b", "reference_time": "2025-03-01T09:30:00Z", "job_id": "j"}),
            (bodies.AddEpisode, {"name": 1, "episode_body": "b", "reference_time": "2025-03-01T09:30:00Z"}),
            (bodies.AddTriplet, {"source_node": {"name": " "}, "edge": {"name": "E", "fact": "f"}, "target_node": {"name": "t"}}),
            (bodies.AddTriplet, {"source_node": {"name": "s"}, "edge": {"name": "E", "fact": ""}, "target_node": {"name": "t"}}),
            (
                bodies.AddTriplet,
                {"source_node": {"name": "s", "attributes": {"a": {"b": 1}}}, "edge": {"name": "E", "fact": "f"}, "target_node": {"name": "t"}},
            ),
            (bodies.AddTriplet, {"source_node": {"name": "s", "labels": ["A B"]}, "edge": {"name": "E", "fact": "f"}, "target_node": {"name": "t"}}),
            (bodies.SearchAdvanced, {"query": "q", "recipe": "X", "config": {}}),
            (bodies.SearchAdvanced, {"query": "q", "limit": 0}),
            (bodies.SearchAdvanced, {"query": "q", "limit": "10"}),
            (bodies.EpisodeLookup, {}),
            (bodies.EpisodeLookup, {"uuids": [], "names": []}),
            (bodies.SearchFilter, {"valid_at": []}),
            (bodies.SearchFilter, {"valid_at": [[]]}),
            (bodies.SearchFilter, {"node_labels": []}),
            (bodies.SearchFilter, {"node_labels": ["A) DETACH DELETE n //"]}),
            (bodies.SearchFilter, {"valid_at": [[{"comparison_operator": "<"}]]}),
            (bodies.SearchFilter, {"valid_at": [[{"comparison_operator": "IS NULL", "date": "2025-03-01T09:30:00Z"}]]}),
            (bodies.SearchFilter, {"property_filters": [{"property_name": "a", "comparison_operator": "="}]}),
            (bodies.SearchFilter, {"valid_at": [[{"comparison_operator": "<", "date": "2025-03-01T09:30:00Z"}], [{"comparison_operator": "IS NULL"}]]}),
        ],
    )
    def test_refused(self, model: type[BaseModel], body: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            model.model_validate(body)

    def test_a_search_config_is_read_as_the_library_reads_it(self) -> None:
        for name, recipe in RECIPES.items():
            assert bodies.search_config(recipe.model_dump(mode="json", exclude_none=True)) == recipe, name

    @pytest.mark.parametrize(
        ("config", "path"),
        [
            ({"edge_cfg": {}}, "config.edge_cfg"),
            ({"edge_config": {"search_methods": ["bm25"], "rerank": "mmr"}}, "config.edge_config.rerank"),
            ({"edge_config": {"search_methods": ["magic"]}}, "config.edge_config.search_methods.0"),
            ({"edge_config": {}}, "config.edge_config.search_methods"),
            ({"limit": -1}, "config.limit"),
            ({"limit": 0}, "config.limit"),
        ],
    )
    def test_a_search_config_with_an_error_names_it(self, config: dict[str, Any], path: str) -> None:
        with pytest.raises(GatewayError) as told:
            bodies.search_config(config)
        assert told.value.code == "invalid_search_config"
        assert [item["path"] for item in told.value.details["errors"]] == [path]


def fact(uuid: str, *episodes: str, **more: Any) -> EntityEdge:
    return EntityEdge(
        uuid=uuid,
        group_id="g",
        source_node_uuid="a",
        target_node_uuid="b",
        created_at=datetime(2025, 1, 1, tzinfo=UTC),
        name="R",
        fact="f",
        episodes=list(episodes),
        **more,
    )


class TestRendering:
    def test_what_a_write_did_to_each_fact(self) -> None:
        edges = [fact("new", "e1"), fact("again", "e0", "e1"), fact("closed", "e0"), fact("closed", "e0"), fact("none")]
        assert render.written(edges, ["e1"]) == {
            "created_edge_uuids": ["new"],
            "reasserted_edge_uuids": ["again"],
            "invalidated_edge_uuids": ["closed", "none"],
        }

    def test_embeddings_stay_out_and_labels_are_sorted(self) -> None:
        node = EntityNode(uuid="u", name="n", group_id="g", labels=["Person", "Entity"], name_embedding=[0.5] * 1024)
        shown = render.node(node)
        assert shown["labels"] == ["Entity", "Person"]
        assert "name_embedding" not in shown
        assert "fact_embedding" not in render.edge(fact("u", fact_embedding=[0.5]))

    @pytest.mark.parametrize(
        ("at", "text"),
        [
            (datetime(2025, 3, 1, 9, 30, tzinfo=UTC), "2025-03-01T09:30:00Z"),
            (datetime(2025, 3, 1, 9, 30, tzinfo=timezone(timedelta(hours=2))), "2025-03-01T07:30:00Z"),
            (datetime(2025, 3, 1, 9, 30, 0, 5, tzinfo=UTC), "2025-03-01T09:30:00.000005Z"),
            (datetime(2025, 3, 1, 9, 30), "2025-03-01T09:30:00"),
            (None, None),
        ],
    )
    def test_times(self, at: datetime | None, text: str | None) -> None:
        assert render.time(at) == text

    def test_what_json_cannot_hold(self) -> None:
        assert render.scores([1.0, float("inf"), float("nan")]) == [1.0, None, None]
        shown = render.edge(fact("u", attributes={"x": float("inf"), "at": datetime(2025, 1, 1, tzinfo=UTC), "list": [1, float("nan")]}))
        assert shown["attributes"] == {"x": None, "at": "2025-01-01T00:00:00Z", "list": [1, None]}
        json.loads(render.dumps(shown))
        assert render.dumps({"x": "\ud800"}) == b'{"x":"?"}'

    def test_alignment(self) -> None:
        rrf, mentions = RECIPES["EDGE_HYBRID_SEARCH_RRF"], RECIPES["EDGE_HYBRID_SEARCH_EPISODE_MENTIONS"]
        two = SearchResults(edges=[fact("a"), fact("b")], edge_reranker_scores=[2, 1])
        assert render.alignment(two, rrf)["edges"] == "aligned"
        assert render.alignment(two, mentions)["edges"] == "unaligned"
        assert render.alignment(SearchResults(edges=[fact("a"), fact("b")], edge_reranker_scores=[2]), rrf)["edges"] == "unaligned"
        assert render.alignment(SearchResults(), mentions)["edges"] == "aligned"


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "writing", "code"),
        [
            (RateLimitError(), True, "llm_rate_limited"),  # type: ignore[no-untyped-call]
            (EmptyResponseError("x"), True, "llm_failed"),
            (openai.APIConnectionError(request=None), True, "llm_failed"),  # type: ignore[arg-type]  # only its class matters
            (json.JSONDecodeError("x", "", 0), True, "llm_failed"),
            (ServiceUnavailable("x"), True, "database_unavailable"),  # type: ignore[no-untyped-call]
            (SessionExpired("x"), False, "database_unavailable"),  # type: ignore[no-untyped-call]
            (ConnectionRefusedError(), False, "database_unavailable"),
            (ClientError("x"), True, "database_error"),
            (NodeNotFoundError("u"), True, "not_found"),
            (SearchRerankerError("x"), False, "library_refused"),
            (ValueError("x"), True, "library_refused"),
            (KeyError("x"), True, "internal"),
        ],
    )
    def test_codes(self, error: Exception, writing: bool, code: str) -> None:
        assert translate(error, writing=writing).code == code

    def test_a_malformed_object_is_the_models_only_in_a_write(self) -> None:
        with pytest.raises(ValidationError) as told:
            TypeAdapter(int).validate_python("x")
        assert translate(told.value, writing=True).code == "llm_failed"
        assert translate(told.value, writing=False).code == "library_refused"

    def test_every_code_has_a_line_on_the_page(self) -> None:
        page = (Path(__file__).parents[1] / "API.md").read_text()
        for code, status in STATUS.items():
            assert f"| {status} | `{code}` |" in page


async def turns() -> None:
    """Let every task run up to its first real wait."""
    for _ in range(5):
        await asyncio.sleep(0)


class TestLanes:
    @staticmethod
    def lanes(**more: int) -> Lanes:
        return Lanes(**{"waiting_per_group": 2, "waiting": 3, "concurrent_groups": 4, **more})

    def test_one_write_of_a_group_at_a_time_in_order_groups_beside_each_other(self) -> None:
        async def story() -> list[str]:
            lanes, told, gate = self.lanes(waiting_per_group=10, waiting=10), list[str](), asyncio.Event()

            async def work(name: str, wait: bool) -> None:
                told.append(f"{name} begins")
                if wait:
                    await gate.wait()
                told.append(f"{name} ends")

            first = [asyncio.create_task(lanes.call("a", partial(work, f"a{i}", i == 0))) for i in range(3)]
            await turns()
            await lanes.call("b", lambda: work("b", False))
            gate.set()
            await asyncio.gather(*first)
            return told

        assert asyncio.run(story()) == ["a0 begins", "b begins", "b ends", "a0 ends", "a1 begins", "a1 ends", "a2 begins", "a2 ends"]

    def test_full_lanes_refuse_before_anything_is_begun(self) -> None:
        async def story() -> list[tuple[str, str]]:
            lanes, gate, refused = self.lanes(), asyncio.Event(), list[tuple[str, str]]()
            running = []
            for group in ("a", "a", "a", "b", "b"):  # one runs in each, three wait
                running.append(asyncio.create_task(lanes.call(group, gate.wait)))
                await turns()
            assert lanes.waiting == 3
            for group in ("a", "b", "c"):
                with pytest.raises(GatewayError) as told:
                    await lanes.call(group, gate.wait)
                refused.append((group, told.value.details["scope"]))
            gate.set()
            assert await asyncio.gather(*running) == [True] * 5
            assert lanes.waiting == 0
            return refused

        assert asyncio.run(story()) == [("a", "group"), ("b", "gateway"), ("c", "gateway")]

    def test_a_failure_is_its_callers_and_nobody_elses(self) -> None:
        async def story() -> str:
            lanes = self.lanes()

            async def fail() -> None:
                raise GatewayError("llm_failed", "x")

            async def work() -> str:
                return "done"

            with pytest.raises(GatewayError):
                await lanes.call("a", fail)
            return str(await lanes.call("a", work))

        assert asyncio.run(story()) == "done"

    def test_stopping_finishes_what_runs_and_refuses_what_waits(self) -> None:
        async def story() -> list[Any]:
            lanes, gate = self.lanes(), asyncio.Event()
            running, waiting = (asyncio.create_task(lanes.call("a", gate.wait)) for _ in range(2))
            await turns()
            lanes.stop()
            with pytest.raises(GatewayError) as late:
                await lanes.call("a", gate.wait)
            gate.set()
            await lanes.drain(5)
            return [late.value.code, *await asyncio.gather(running, waiting, return_exceptions=True)]

        late, ran, waited = asyncio.run(story())
        assert (late, ran, waited.code) == ("shutting_down", True, "shutting_down")

    def test_draining_ends_at_its_deadline(self) -> None:
        async def story() -> Any:
            lanes = self.lanes()
            running = asyncio.create_task(lanes.call("a", asyncio.Event().wait))
            await turns()
            lanes.stop()
            await lanes.drain(0.01)
            return (await asyncio.gather(running, return_exceptions=True))[0]

        assert asyncio.run(story()).details == {"stored": "unknown"}


class TestJournal:
    @staticmethod
    def journal(folder: Path, **more: int) -> Journal:
        return Journal(folder / "jobs.sqlite", **{"limit": 10, "keep_done": 2, **more})

    def test_a_jobs_life(self, tmp_path: Path) -> None:
        async def story() -> None:
            journal = self.journal(tmp_path)
            job, new = await journal.add("g", "j1", "add_episode", ["ev"], {"name": "ev"})
            assert (new, job["state"], job["position"], job["names"], job["result"]) == (True, "queued", 1, ["ev"], None)
            assert (await journal.add("g", "j2", "add_episode", [], {}))[0]["position"] == 2
            assert await journal.start("g", "j1") == ("add_episode", {"name": "ev"})
            assert await journal.start("g", "j1") is None
            assert (await journal.get("g", "j2"))["position"] == 1
            await journal.finish("g", "j1", "done", result=b'{"x":1}')
            done = await journal.get("g", "j1")
            assert (done["state"], done["result"], done["position"]) == ("done", {"x": 1}, None)
            assert (await journal.counts("g"))["done"] == 1
            assert (await journal.counts("other"))["done"] == 0
            listed, _ = await journal.jobs("g", None, 10)
            assert [(one["id"], one["result"]) for one in listed] == [("j1", None), ("j2", None)]
            journal.close()

        asyncio.run(story())

    def test_the_same_request_is_one_job_and_another_is_refused(self, tmp_path: Path) -> None:
        async def story() -> None:
            journal = self.journal(tmp_path)
            await journal.add("g", "j", "add_episode", [], {"a": 1, "b": 2})
            assert (await journal.add("g", "j", "add_episode", [], {"b": 2, "a": 1}))[1] is False
            for kind, body in (("add_episode", {"a": 2}), ("add_triplet", {"a": 1, "b": 2})):
                with pytest.raises(GatewayError) as told:
                    await journal.add("g", "j", kind, [], body)
                assert told.value.code == "job_exists"
            assert (await journal.add("other", "j", "add_episode", [], {}))[1] is True
            await journal.start("g", "j")
            await journal.finish("g", "j", "failed", error={"code": "llm_failed"})
            assert (await journal.add("g", "j", "add_episode", [], {"a": 1, "b": 2}))[1] is True
            journal.close()

        asyncio.run(story())

    def test_a_kill_leaves_the_running_job_interrupted_and_the_waiting_ones_waiting(self, tmp_path: Path) -> None:
        async def story() -> None:
            journal = self.journal(tmp_path)
            for job in ("j1", "j2", "j3"):
                await journal.add("g", job, "add_episode", [], {})
            await journal.start("g", "j1")
            journal.close()
            journal = self.journal(tmp_path)
            assert await journal.waiting() == [("g", "j2"), ("g", "j3")]
            interrupted = await journal.get("g", "j1")
            assert (interrupted["state"], interrupted["error"]["details"]["stored"]) == ("interrupted", "unknown")
            journal.close()

        asyncio.run(story())

    def test_bounds(self, tmp_path: Path) -> None:
        async def story() -> None:
            journal = self.journal(tmp_path, limit=5, keep_done=2)
            for n in range(5):
                await journal.add("g", f"j{n}", "add_episode", [], {})
            with pytest.raises(GatewayError) as told:
                await journal.add("g", "more", "add_episode", [], {})
            assert (told.value.code, told.value.status) == ("queue_full", 429)
            for n in range(4):
                await journal.start("g", f"j{n}")
                await journal.finish("g", f"j{n}", "failed" if n == 0 else "done", result=b"{}")
            listed, _ = await journal.jobs("g", None, 10)
            assert [one["id"] for one in listed] == ["j0", "j2", "j3", "j4"], "the oldest done one is gone, the failed one is not"
            journal.close()

        asyncio.run(story())

    def test_a_deleted_group_leaves_no_texts(self, tmp_path: Path) -> None:
        async def story() -> None:
            journal = self.journal(tmp_path)
            await journal.add("g", "j1", "add_episode", [], {"name": "private"})
            await journal.start("g", "j1")
            await journal.finish("g", "j1", "done", result=b'{"text":"private"}')
            await journal.add("g", "j2", "add_episode", [], {"name": "private"})
            await journal.add("other", "j", "add_episode", [], {"name": "kept"})
            assert await journal.cancel_group("g") == 1
            assert [(one["id"], one["state"]) for one in (await journal.jobs("g", None, 10))[0]] == [("j2", "cancelled")]
            assert await journal.waiting() == [("other", "j")]
            journal.close()

        asyncio.run(story())
        rows = sqlite3.connect(tmp_path / "jobs.sqlite").execute("SELECT body, result FROM jobs WHERE group_id = 'g'").fetchall()
        assert rows == [(None, None)]

    def test_one_process_has_it(self, tmp_path: Path) -> None:
        first = self.journal(tmp_path)
        with pytest.raises(SettingsError, match=r"queue\.path"):
            self.journal(tmp_path)
        first.close()
        self.journal(tmp_path).close()

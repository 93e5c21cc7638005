"""What needs no server."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from fastapi import HTTPException

from mem0_gateway import filters
from mem0_gateway.app import create, named, redact
from mem0_gateway.config import Config, ConfigError, complete, load, parse
from mem0_gateway.errors import Refused, StoreFull, Upstream, call, code_of
from mem0_gateway.library import Library
from mem0_gateway.rerank import unusable_score
from mem0_gateway.work import Busy, Claim, Closing, Kind, Work

SECTION = {"provider": "openai", "config": {"api_key": "k"}}
FULL: dict[str, Any] = {"key": "k", "mem0": {"llm": SECTION, "embedder": SECTION}}


# The configuration


@pytest.mark.parametrize(
    ("change", "named_"),
    [
        ({"keey": "x"}, "keey"),
        ({"limits": {"worker": 1}}, "limits.worker"),
        ({"limits": {"workers": 0}}, "limits.workers"),
        ({"patches": {"everything": True}}, "patches.everything"),
        ({"listen": "8888"}, "HOST:PORT"),
        ({"key": None}, "key: missing"),
        ({"key": None, "auth_disabled": True, "listen": "0.0.0.0:8888"}, "not off loopback"),
        ({"auth_disabled": True}, "write one of them"),
        ({"mem0": {"llm": SECTION}}, "mem0.embedder: missing"),
        ({"mem0": {"llm": "openai", "embedder": SECTION}}, "mem0.llm"),
        ({"key": {"env": "NOT_SET_ANYWHERE"}}, "key: the environment has no NOT_SET_ANYWHERE"),
        ({"mem0": {**FULL["mem0"], "vector_store": {"provider": "faiss"}}}, "other users' rows hide one's own"),
    ],
)
def test_what_is_wrong_in_a_configuration_is_named(change: dict[str, Any], named_: str) -> None:
    with pytest.raises(ConfigError, match=named_.replace(".", r"\.").replace("'", ".")):
        parse({**FULL, **change}, {})


def test_values_come_from_the_environment_at_any_depth() -> None:
    config = parse({**FULL, "key": {"env": "K"}, "mem0": {**FULL["mem0"], "llm": {"provider": "openai", "config": {"api_key": {"env": "O"}}}}}, {"K": "secret", "O": "other"})
    assert config.key == "secret"
    assert config.mem0["llm"]["config"]["api_key"] == "other"


def test_without_a_store_it_is_embedded_qdrant_in_the_data_folder(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(json.dumps({**FULL, "data": "here"}))
    config = load(file)
    assert config.data == tmp_path / "here"
    assert config.embedded
    assert config.store_config == {"collection_name": "memories", "path": str(tmp_path / "here" / "qdrant"), "on_disk": True}
    assert config.mem0["history_db_path"] == str(tmp_path / "here" / "history.db")


def test_dimensions_go_to_the_store_too() -> None:
    config = parse({**FULL, "mem0": {"llm": SECTION, "embedder": {"provider": "openai", "config": {"embedding_dims": 384}}}}, {})
    complete(config)
    assert config.store_config["embedding_model_dims"] == 384


def test_qdrant_with_an_address_is_not_embedded() -> None:
    config = parse({**FULL, "mem0": {**FULL["mem0"], "vector_store": {"provider": "qdrant", "config": {"url": "http://q", "api_key": "k"}}}}, {})
    complete(config)
    assert not config.embedded
    assert "path" not in config.store_config


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    for name in ("missing.yaml", "bad.yaml"):
        with pytest.raises(ConfigError, match=name):
            load(tmp_path / name)
    (tmp_path / "list.yaml").write_text("[]")
    with pytest.raises(ConfigError, match="want an object"):
        load(tmp_path / "list.yaml")


def test_secrets_are_hidden_at_any_depth() -> None:
    assert redact({"a": {"password": "p", "b": 1, "connection_string": "postgresql://u:p@h"}, "api_key": "k", "c": [{"token": "t"}], "max_tokens": 100}) == {
        "a": {"password": "[redacted]", "b": 1, "connection_string": "[redacted]"}, "api_key": "[redacted]", "c": [{"token": "[redacted]"}], "max_tokens": 100}


def test_empty_ids_do_not_count() -> None:
    assert named("", "", "r") == {"run_id": "r"}


# Failures


class RateLimitError(Exception):
    """Named as the provider's client names it."""


def test_a_provider_error_is_found_along_its_causes() -> None:
    error = RuntimeError("outer")
    error.__cause__ = RateLimitError("inner")
    assert code_of(error) == "provider_rate_limited"
    assert code_of(RuntimeError("nothing known")) == "unknown"


@pytest.mark.parametrize(
    ("blame", "text", "status"),
    [("caller", "Memory with id 1 not found", 404), ("caller", "blank", 400), ("request", "user not found", 400)],
)
def test_the_callers_mistakes(blame: str, text: str, status: int) -> None:
    def fail() -> None:
        raise ValueError(text)

    with pytest.raises(HTTPException) as error:
        call(fail, blame=blame)
    assert error.value.status_code == status


@pytest.mark.parametrize("raised", [ValueError("inner whitespace"), SystemExit(1)])
def test_on_upstream_routes_a_failure_is_a_502(raised: BaseException) -> None:
    def fail() -> None:
        raise raised

    with pytest.raises(Upstream) as error:
        call(fail, blame="upstream")
    assert error.value.code == "unknown"


@pytest.mark.parametrize("text", ["0", "1", "0.73", "Score: 0.4", "1.0 of 10"])
def test_a_score(text: str) -> None:
    assert unusable_score(text) == ""


@pytest.mark.parametrize("text", [None, "", "very relevant", "87/100", "-0.5", "5.0"])
def test_no_score(text: Any) -> None:
    assert unusable_score(text)


# Filters


@pytest.mark.parametrize(
    "conditions",
    [
        {"user_id": "*"},
        {"user_id": " * "},
        {"user_id": None},
        {"user_id": 7},
        {"user_id": ["a"]},
        {"user_id": {"ne": "a"}},
        {"user_id": "a", "AND": [{"user_id": "b"}]},
        {"user_id": "a", "OR": [{"x": 1}, {"run_id": "b"}]},
        {"user_id": "a", "NOT": [{"AND": [{"agent_id": "b"}]}]},
        {"user_id": "a", "$or": [{"x": 1}]},
        {"user_id": "a", "AND": [{"$or": [{"x": 1}]}]},
    ],
)
@pytest.mark.parametrize("store", ["pgvector", "qdrant", "chroma"])
def test_trap_1_what_could_leave_the_scope_is_refused(conditions: dict[str, Any], store: str) -> None:
    with pytest.raises(Refused):
        filters.check(conditions, store)


def test_trap_3_a_wildcard_is_refused_where_the_store_drops_it() -> None:
    for conditions in ({"rating": "*"}, {"AND": [{"rating": "*"}]}):
        with pytest.raises(Refused, match="drops"):
            filters.check({"user_id": "a", **conditions}, "qdrant")
        filters.check({"user_id": "a", **conditions}, "pgvector")
    filters.check({"user_id": "a", "rating": {"eq": "*"}, "text": "a * b"}, "qdrant")


# Order


def claims() -> list[Claim]:
    scopes = [{"user_id": "a"}, {"user_id": "a", "run_id": "r"}, {"user_id": "b", "run_id": "r"}]
    return [Claim(Kind.READ), Claim(Kind.RESET), Claim.of(Kind.CHANGE, {"memory": "m"}), Claim.of(Kind.CHANGE, {"memory": "n"}),
            *(Claim.of(kind, ids) for kind in (Kind.ADD, Kind.ERASE) for ids in scopes)]


def test_a_conflict_is_one_from_both_sides() -> None:
    for one in claims():
        for other in claims():
            assert one.conflicts(other) == other.conflicts(one), (one, other)


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (Claim.of(Kind.ADD, {"user_id": "a"}), Claim.of(Kind.ADD, {"user_id": " a "}), True),
        (Claim.of(Kind.ADD, {"user_id": "a"}), Claim.of(Kind.ADD, {"user_id": "b"}), False),
        (Claim.of(Kind.ERASE, {"user_id": "a"}), Claim.of(Kind.ADD, {"user_id": "a", "run_id": "r"}), True),
        (Claim.of(Kind.ERASE, {"user_id": "a", "run_id": "r"}), Claim.of(Kind.ADD, {"user_id": "a"}), False),
        (Claim.of(Kind.ERASE, {"user_id": "a"}), Claim.of(Kind.ERASE, {"user_id": "a", "run_id": "r"}), True),
        (Claim.of(Kind.ERASE, {"user_id": "a"}), Claim.of(Kind.CHANGE, {"memory": "m"}), True),
        (Claim.of(Kind.CHANGE, {"memory": "m"}), Claim.of(Kind.CHANGE, {"memory": "m"}), True),
        (Claim.of(Kind.CHANGE, {"memory": "m"}), Claim.of(Kind.ADD, {"user_id": "a"}), False),
        (Claim(Kind.READ), Claim.of(Kind.ERASE, {"user_id": "a"}), False),
        (Claim(Kind.READ), Claim(Kind.RESET), True),
    ],
)
def test_what_may_not_run_at_once(one: Claim, other: Claim, conflict: bool) -> None:
    assert one.conflicts(other) is conflict


def test_adds_of_one_scope_run_in_the_order_of_their_arrival_and_hold_no_thread_while_they_wait() -> None:
    async def scenario() -> list[str]:
        work = Work(workers=2, queue=10)
        go, done = threading.Event(), []
        first = asyncio.create_task(work.run(Claim.of(Kind.ADD, {"user_id": "a"}), lambda: (go.wait(10), done.append("1"))))
        rest = []
        for n in ("2", "3", "4"):
            await asyncio.sleep(0)
            rest.append(asyncio.create_task(work.run(Claim.of(Kind.ADD, {"user_id": "a"}), lambda n=n: done.append(n))))  # type: ignore[misc]
        await asyncio.sleep(0)
        # Two threads, one of them held by the first add, three more waiting: another scope still has its turn.
        await work.run(Claim.of(Kind.ADD, {"user_id": "b"}), lambda: done.append("b"))
        go.set()
        await asyncio.gather(first, *rest)
        await work.close()
        return done

    assert asyncio.run(scenario()) == ["b", "1", "2", "3", "4"]


def test_the_queue_is_bounded_and_an_end_waits_for_what_was_accepted() -> None:
    async def scenario() -> None:
        work = Work(workers=1, queue=2)
        go, done = threading.Event(), []
        accepted = [asyncio.create_task(work.run(Claim(Kind.READ), lambda: (go.wait(10), done.append(1)))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await work.run(Claim(Kind.READ), lambda: None)
        accepted[0].cancel()  # its client is gone; the call is not
        end = asyncio.create_task(work.close())
        await asyncio.sleep(0)
        with pytest.raises(Closing):
            await work.run(Claim(Kind.READ), lambda: None)
        assert not done
        go.set()
        await end
        assert done == [1, 1]
        assert work.accepted == 0

    asyncio.run(scenario())


def test_a_failed_call_lets_the_next_one_in() -> None:
    async def scenario() -> None:
        work = Work(workers=1, queue=2)
        with pytest.raises(ZeroDivisionError):
            await work.run(Claim(Kind.RESET), lambda: 1 // 0)
        assert await work.run(Claim(Kind.RESET), lambda: 5) == 5
        await work.close()

    asyncio.run(scenario())


# The application, in front of a library that is none


class Stub:
    """A library whose search waits until it is let go, and whose store is full."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.closed = False

    def search(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.go.wait(10)
        return {"results": []}

    def add(self, **_: Any) -> None:
        raise StoreFull("2 rows")

    def close(self) -> None:
        self.closed = True


def test_a_full_queue_a_full_store_and_an_end_are_told_apart() -> None:
    async def scenario() -> None:
        stub = Stub()
        app = create(parse({**FULL, "limits": {"queue": 2, "workers": 1}}, {}), cast(Library, stub))
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://g", headers={"x-api-key": "k"}) as client:
            full = await client.post("/memories", json={"messages": [], "user_id": "u"})
            assert (full.status_code, full.json()["code"]) == (507, "store_full")
            assert full.json()["request_id"] == full.headers["x-request-id"]
            search = {"query": "x", "filters": {"user_id": "u"}}
            held = [asyncio.create_task(client.post("/search", json=search)) for _ in range(2)]
            while app.state.work.accepted < 2:
                await asyncio.sleep(0)
            busy = await client.post("/search", json=search)
            assert (busy.status_code, busy.json()["code"], busy.headers["retry-after"]) == (429, "queue_full", "1")
            end = asyncio.create_task(app.state.work.close())
            await asyncio.sleep(0)
            late = await client.post("/search", json=search)
            assert (late.status_code, late.json()["code"]) == (429, "closing")
            assert not stub.closed
            stub.go.set()
            assert [answer.status_code for answer in await asyncio.gather(*held)] == [200, 200], "what was accepted is answered"
            await end
        assert stub.closed

    asyncio.run(scenario())


def test_config_is_shown_by_its_schema() -> None:
    assert set(Config.model_json_schema()["properties"]) >= {"listen", "key", "data", "entities", "limits", "patches", "mem0"}

"""Each trap of the library, named, on the running gateway: PostgreSQL with pgvector, or the embedded store, or both (``either``)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import KEY, Gateway, Variant

FACTS = "I prefer green tea in the evening. Coffee keeps me awake at night. I drink oat milk in my coffee. I work at Acme Robotics."
QUESTION = "which coffee milk does Maria drink in the evening"


def someone() -> dict[str, str]:
    return {"user_id": "u-" + uuid.uuid4().hex}


def ids(answer: httpx.Response) -> list[str]:
    return [row["id"] for row in answer.raise_for_status().json()["results"]]


# What the server hides


def test_rerank_adds_a_score_of_its_own_and_reorders_and_the_similarity_stays(either: Gateway, calls: Callable[[str], int]) -> None:
    scope = someone()
    either.add(FACTS, **scope).raise_for_status()
    plain = either.search(QUESTION, filters=scope, explain=True).json()
    before = calls("mem0.rerank")
    answer = either.search(QUESTION, filters=scope, explain=True, rerank=True).json()
    assert answer["rerank"] == {"applied": True, "provider": "llm_reranker", "candidates": len(plain["results"]), "calls": len(plain["results"]), "failed": 0}
    assert calls("mem0.rerank") - before == len(plain["results"]) > 1
    scores = {row["id"]: row["score"] for row in plain["results"]}
    assert {row["id"]: row["score"] for row in answer["results"]} == scores
    ranks = [row["rerank_score"] for row in answer["results"]]
    assert ranks == sorted(ranks, reverse=True)
    assert all("score_details" in row for row in answer["results"])
    assert "rerank" not in plain
    assert not any("rerank_score" in row for row in plain["results"])


def test_trap_only_the_survivors_of_top_k_are_reranked_and_a_pool_reranks_more(gateway: Gateway) -> None:
    scope = someone()
    gateway.add(FACTS, **scope).raise_for_status()
    narrow = gateway.search(QUESTION, filters=scope, top_k=1, threshold=0, rerank=True).json()
    assert narrow["rerank"]["candidates"] == 1
    wide = gateway.search(QUESTION, filters=scope, top_k=1, threshold=0, rerank=True, rerank_pool=4).json()
    assert wide["rerank"]["candidates"] == 4
    assert len(wide["results"]) == 1
    everything = gateway.search(QUESTION, filters=scope, top_k=4, threshold=0, rerank=True).json()
    assert wide["results"][0]["rerank_score"] == everything["results"][0]["rerank_score"]


def test_trap_a_top_k_in_the_rerankers_own_configuration_changes_nothing(base: dict[str, Any], opened: Callable[..., Any]) -> None:
    reranker = base["mem0"]["reranker"]
    library = opened(store="qdrant", mem0={"reranker": {**reranker, "config": {**reranker["config"], "top_k": 1}}})
    library.add([{"role": "user", "content": text} for text in ("green tea", "black tea", "oat milk tea")], user_id="u", infer=False)
    answer = library.search_reranked("tea", {"user_id": "u"}, None, "error", top_k=3)
    assert len(answer["results"]) == 3
    assert all("rerank_score" in row for row in answer["results"])


@pytest.mark.parametrize(
    ("fault", "library_says"),
    [
        ({"mode": "status", "status": 400}, "0.5"),
        ({"mode": "say", "content": "very relevant"}, "0.5"),
        ({"mode": "say", "content": "87/100"}, "1.0"),
        ({"mode": "empty"}, "0.5"),
    ],
)
def test_trap_a_reranker_that_fails_is_an_error_or_plain_order_and_never_an_invented_score(gateway: Gateway, stub: httpx.Client, fault: dict[str, Any], library_says: str) -> None:
    """The library itself takes ``library_says`` for the score."""
    scope = someone()
    gateway.add(FACTS, **scope).raise_for_status()
    plain = gateway.search(QUESTION, filters=scope).json()
    stub.post("/admin/faults", json=[{**fault, "purpose": "mem0.rerank", "times": 1}]).raise_for_status()
    failed = gateway.search(QUESTION, filters=scope, rerank=True)
    assert (failed.status_code, failed.json()["code"]) == (502, "rerank_failed")
    assert failed.json()["request_id"] == failed.headers["x-request-id"]
    assert "1 of 1 calls" in failed.json()["detail"], "after the first failure nothing more is paid for"
    stub.post("/admin/faults", json=[{**fault, "purpose": "mem0.rerank", "times": 1}]).raise_for_status()
    answer = gateway.search(QUESTION, filters=scope, rerank=True, rerank_on_error="plain").json()
    assert answer["rerank"] == {"applied": False, "provider": "llm_reranker", "candidates": len(plain["results"]), "calls": 1, "failed": 1}
    assert answer["results"] == plain["results"]
    assert gateway.search(QUESTION, filters=scope, rerank=True).json()["rerank"]["failed"] == 0


def test_trap_rerank_without_a_reranker_is_refused_and_not_ignored(plain: Gateway) -> None:
    assert plain.client.get("/capabilities").json()["reranker"] is None
    answer = plain.search("anything", filters=someone(), rerank=True)
    assert (answer.status_code, answer.json()["code"]) == (400, "rerank_not_configured")


def test_trap_a_name_becomes_actor_id_without_extraction_and_can_be_filtered(either: Gateway) -> None:
    scope = someone()
    messages = [{"role": "user", "name": "Maria", "content": "Tuesday is swimming day"}, {"role": "user", "content": "Friday too"}]
    rows = either.client.post("/memories", json={"messages": messages, "infer": False, **scope}).json()["results"]
    assert [row["actor_id"] for row in rows] == ["Maria", None]
    assert ids(either.search("day", filters={"actor_id": "Maria", **scope}, threshold=0)) == [rows[0]["id"]]


def test_trap_images_are_refused_without_a_model_that_sees_and_text_parts_are_joined(gateway: Gateway) -> None:
    scope = someone()

    def send(content: Any) -> httpx.Response:
        return gateway.client.post("/memories", json={"messages": [{"role": "user", "content": content}], "infer": False, **scope})

    image = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}
    for content in (image, [image], [{"type": "text", "text": "a"}, image]):
        assert (send(content).status_code, send(content).json()["code"]) == (400, "vision_off")
    assert send([{"type": "input_audio"}]).json()["code"] == "content_refused"
    assert [row["memory"] for row in send([{"type": "text", "text": "my teapot"}, {"type": "text", "text": "is blue"}]).json()["results"]] == ["my teapot is blue"]
    assert send(7).status_code == 422


def test_trap_with_vision_ones_own_words_would_be_lost(plain: Gateway) -> None:
    assert plain.client.get("/capabilities").json()["vision"] is True
    image = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}
    for content in ([{"type": "text", "text": "my teapot"}], [{"type": "text", "text": "my teapot"}, image]):
        answer = plain.client.post("/memories", json={"messages": [{"role": "user", "content": content}], "infer": False, **someone()})
        assert (answer.status_code, answer.json()["code"]) == (400, "text_lost")


def test_trap_procedural_memory_needs_an_agent_and_costs_one_call(gateway: Gateway, stub: httpx.Client, calls: Callable[[str], int]) -> None:
    scope = {**someone(), "agent_id": "a1"}
    body = {"messages": [{"role": "user", "content": "Water the ferns."}, {"role": "assistant", "content": "Done, they are wet."}], "memory_type": "procedural_memory"}
    answer = gateway.client.post("/memories", json={**body, **scope})
    assert len(answer.json()["results"]) == 1
    assert (calls("mem0.procedure"), calls("mem0.extract")) == (1, 0)
    row = gateway.client.post("/memories/list", json={"filters": {**scope, "memory_type": "procedural_memory"}}).json()["results"][0]
    assert row["metadata"]["memory_type"] == "procedural_memory"
    without = gateway.client.post("/memories", json={**body, "user_id": scope["user_id"]})
    assert (without.status_code, without.json()["code"]) == (400, "procedural_needs_agent")
    stub.post("/admin/faults", json=[{"mode": "empty", "purpose": "mem0.procedure"}]).raise_for_status()
    empty = gateway.client.post("/memories", json={**body, **scope})
    assert (empty.status_code, empty.json()["code"]) == (502, "provider_empty_answer")


def test_trap_there_is_no_observation_date_without_the_patch(embedded: Gateway) -> None:
    answer = embedded.add("Yesterday I swam.", observation_date="2025-03-10", **someone())
    assert (answer.status_code, answer.json()["code"]) == (400, "observation_date_off")


def test_the_observation_date_reaches_each_of_parallel_prompts(gateway: Gateway, stub: httpx.Client) -> None:
    assert gateway.client.get("/capabilities").json()["patches"] == ["observation_date"]
    for wrong in ("10.3.2025", "2025-02-30", "20250310", ""):
        assert gateway.add("x", observation_date=wrong, **someone()).json()["code"] == "observation_date_refused"
    stub.delete("/admin/log")
    days = [f"2025-03-{n:02}" for n in range(10, 20)]
    with ThreadPoolExecutor(10) as pool:
        for answer in pool.map(lambda day: gateway.add(f"I swam on day {day}.", observation_date=day, **someone()), days):
            answer.raise_for_status()
    prompts = [entry["prompt"] for entry in stub.get("/admin/log").json() if entry["purpose"] == "mem0.extract"]
    assert len(prompts) == len(days)
    for prompt in prompts:
        said = prompt.partition("I swam on day ")[2][:10]
        assert f"## Observation Date\n{said}\n" in prompt
    stub.delete("/admin/log")
    gateway.add("I swam.", **someone()).raise_for_status()
    assert "## Observation Date\n2025" not in stub.get("/admin/log").json()[-1].get("prompt", "")


def test_the_buffer_is_shown_and_goes_with_its_scope_where_that_is_asked_for(either: Gateway) -> None:
    scope, other = someone(), someone()
    for each in (scope, other, {**scope, "agent_id": "a"}):
        either.add("I like chess.", **each).raise_for_status()
    assert [m["content"] for m in either.client.get("/messages", params=scope).json()["results"]] == ["I like chess."]
    either.client.delete("/memories", params={**scope, "run_id": "another"}).raise_for_status()
    counted = either.client.delete("/memories", params={**scope, "buffer": "true"}).json()
    assert counted == {"message": "All relevant memories deleted", "deleted": 2, "buffer_rows": 2}, "the agent's buffer is in the deleted scope too"
    assert either.client.get("/messages", params=scope).json() == {"results": []}
    assert len(either.client.get("/messages", params=other).json()["results"]) == 1
    assert either.client.delete("/memories", params={**other, "buffer": "false"}).json() == {"message": "All relevant memories deleted", "deleted": 1, "buffer_rows": None}
    assert len(either.client.get("/messages", params=other).json()["results"]) == 1
    for path in ("/messages", "/entity-rows"):
        assert either.client.get(path).status_code == 400


def test_a_list_is_as_long_as_it_is_asked_for(either: Gateway) -> None:
    scope = someone()
    messages = [{"role": "user", "content": f"note {n}"} for n in range(25)]
    either.client.post("/memories", json={"messages": messages, "infer": False, **scope}).raise_for_status()
    assert len(ids(either.client.post("/memories/list", json={"filters": scope}))) == 20
    assert len(ids(either.client.post("/memories/list", json={"filters": scope, "top_k": 100_000}))) == 25
    assert either.client.get("/memories", params={**scope, "top_k": 1001}).status_code == 422, "mem0's own route keeps its cap"


def test_capabilities_say_what_is_there(gateway: Gateway, embedded: Gateway) -> None:
    told = gateway.client.get("/capabilities").json()
    assert 0 <= told.pop("uptime_ms") < gateway.client.get("/capabilities").json()["uptime_ms"] + 1
    assert told == {
        "gateway": "0.2.0", "library": "2.2.1", "store": "pgvector", "exact": True, "keyword_search": True, "reranker": "llm_reranker", "explain": True, "procedural": True,
        "vision": False, "entities": "off", "embedded": False, "max_rows": None, "patches": ["observation_date"]}
    told = embedded.client.get("/capabilities").json()
    assert (told["store"], told["embedded"], told["max_rows"], told["keyword_search"], told["exact"]) == ("qdrant", True, 5000, False, True)


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"x-api-key": "wrong"}, 401), ({"x-api-key": KEY}, 200), ({"authorization": f"Bearer {KEY}"}, 200),
     ({"authorization": "Bearer wrong", "x-api-key": KEY}, 401), ({"authorization": f"Token {KEY}"}, 401)],
)
def test_the_key_comes_as_a_bearer_token_or_as_x_api_key(gateway: Gateway, headers: dict[str, str], status: int) -> None:
    answer = httpx.get(gateway.url + "/capabilities", headers=headers, trust_env=False)
    assert answer.status_code == status
    assert KEY not in answer.text


def test_without_a_key_no_page_in_a_browser_is_served(plain: Gateway) -> None:
    assert httpx.get(plain.url + "/capabilities", trust_env=False).status_code == 200
    for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
        assert httpx.get(plain.url + "/capabilities", headers=headers, trust_env=False).status_code == 403


def test_a_body_has_a_longest_length_with_and_without_saying_so(plain: Gateway) -> None:
    body = b'{"query": "' + b"x" * 3000 + b'"}'
    assert plain.client.post("/search", content=body).status_code == 413
    assert plain.client.post("/search", content=iter([body[:1500], body[1500:]])).status_code == 413
    assert plain.search("x", filters=someone()).status_code == 200


# Traps, by their numbers


def test_trap_1_a_wildcard_or_an_id_inside_and_opens_nobodys_memories(either: Gateway) -> None:
    mine, yours = someone(), someone()
    either.add("My locker code is QX77.", **yours).raise_for_status()
    for filters in ({"user_id": "*"}, {**mine, "AND": [yours]}, {"AND": [yours], **mine}, {**mine, "OR": [yours, {"x": 1}]}, {"user_id": None}):
        for path, body in (("/search", {"query": "locker", "threshold": 0}), ("/memories/list", {"top_k": 10})):
            answer = either.client.post(path, json={**body, "filters": filters})
            assert (answer.status_code, answer.json()["code"]) == (400, "id_refused"), (path, filters)
    for method, path in (("GET", "/memories"), ("DELETE", "/memories"), ("GET", "/messages"), ("GET", "/entity-rows")):
        assert either.client.request(method, path, params={"user_id": " * "}).json()["code"] == "id_refused"
    assert either.add("I like tea.", user_id="*").json()["code"] == "id_refused"
    assert either.texts(**yours) == ["My locker code is QX77."]


def test_trap_2_logic_in_a_list_is_translated(either: Gateway) -> None:
    scope = someone()
    for scenario in ("coffee", "tea", "pets"):
        either.client.post("/memories", json={"messages": [{"role": "user", "content": scenario}], "infer": False, "metadata": {"scenario": scenario}, **scope}).raise_for_status()
    assert either.texts(**scope, OR=[{"scenario": "coffee"}, {"scenario": "tea"}]) == ["coffee", "tea"]
    assert either.texts(**scope, NOT=[{"scenario": "coffee"}]) == ["pets", "tea"]
    assert either.texts(**scope, AND=[{"scenario": "pets"}]) == ["pets"]
    assert either.texts(**scope, scenario={"in": ["pets", "tea"]}) == ["pets", "tea"]


def test_trap_3_a_wildcard_is_refused_where_the_store_drops_it(gateway: Gateway, embedded: Gateway) -> None:
    scope = someone()
    for each in (gateway, embedded):
        messages = {"messages": [{"role": "user", "content": "tea"}], "infer": False}
        each.client.post("/memories", json={**messages, **scope}).raise_for_status()
    assert embedded.search("tea", filters={**scope, "rating": "*"}).json()["code"] == "filter_refused"
    assert ids(gateway.search("tea", filters={**scope, "rating": "*"})) == []


def test_traps_4_and_8_no_model_is_downloaded_nothing_is_written_elsewhere_and_telemetry_is_off(variant: Variant, tmp_path: Path) -> None:
    """A process of its own, with a spaCy whose download ends the process, as the real one does where its index answers 404."""
    package, home = tmp_path / "packages" / "spacy", tmp_path / "home"
    home.mkdir()
    package.mkdir(parents=True)
    package.joinpath("__init__.py").write_text("class util:\n    @staticmethod\n    def is_package(name): return False\n")
    package.joinpath("cli.py").write_text("def download(name): raise SystemExit(1)\n")
    file = tmp_path / "in_process.json"
    file.write_text(json.dumps(variant(tmp_path, store="qdrant")))
    script = f"""
from pathlib import Path
from mem0_gateway.config import load
from mem0_gateway.environment import prepare
config = load(Path({str(file)!r}))
prepare(config.data)
from mem0.memory.telemetry import MEM0_TELEMETRY
from mem0_gateway.library import Library
opened = Library(config)
print(opened.entities, len(opened.add([{{"role": "user", "content": "Maria Lopez works at Acme."}}], user_id="u")["results"]), MEM0_TELEMETRY)
opened.close()
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEM0_")}
    path = os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", ""), str(Path(__file__).parent.parent)])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**environment, "HOME": str(home), "PYTHONPATH": path}, timeout=120, check=False)
    assert done.stdout.split() == ["failed", "1", "False"], done.stderr
    assert list(home.iterdir()) == []
    assert (tmp_path / "data" / "mem0" / "config.json").exists()


@pytest.mark.parametrize("store", ["pgvector", "qdrant"])
def test_trap_5_entities_boost_and_go_with_their_scope_after_a_restart(
    variant: Variant, tmp_path: Path, opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    """A rule in place of spaCy's model, which comes from no package index: every run of capitalised words is an entity."""
    from mem0.memory import main

    from mem0_gateway import library

    def entities(text: str) -> list[tuple[str, str]]:
        return [("PROPER", found) for found in re.findall(r"[A-Z][a-z]+(?: [A-Z][a-z]+)+", text)]

    config = variant(tmp_path, store=store)
    with monkeypatch.context() as patched:
        patched.setattr(main, "extract_entities", entities)
        patched.setattr(main, "extract_entities_batch", lambda texts: [entities(text) for text in texts])
        patched.setattr(library, "_prepare_entities", lambda _: "model")
        first = opened(config)
        first.add([{"role": "user", "content": "Maria Lopez works at Acme Robotics."}], user_id="u")
        first.add([{"role": "user", "content": "Pedro Gomez likes tea."}], user_id="u", infer=False)
        assert sorted(row["data"] for row in first.entity_rows({"user_id": "u"}, 10)["results"]) == ["Acme Robotics", "Maria Lopez"], "infer=false links nothing"
        found = first.search("who is Maria Lopez", {"user_id": "u"}, explain=True)["results"][0]
        assert found["memory"] == "Maria Lopez works at Acme Robotics."
        assert found["score_details"]["entity_boost"] == pytest.approx(0.5, abs=0.01)
        first.close()
    # A process that extracts none itself opens the entity store all the same: else the rows would outlive the deletion.
    second = opened(config)
    assert second.entities == "off"
    assert second.delete_scope_counted({"user_id": "u"}, True)["deleted"] == 2
    assert second.entity_rows({"user_id": "u"}, 10) == {"results": []}


def test_trap_6_without_a_keyword_encoder_the_embedded_store_is_semantic_and_says_so(plain: Gateway) -> None:
    scope = someone()
    plain.add("My locker code is QX77.", **scope).raise_for_status()
    details = plain.search("locker code", filters=scope, explain=True).json()["results"][0]["score_details"]
    assert (plain.client.get("/capabilities").json()["keyword_search"], details["bm25_score"], details["max_possible_score"]) == (False, 0.0, 1.0)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"reranker": {"provider": "nope"}}, "there is no nope"),
    ({"reranker": {"provider": "llm_reranker", "config": {"model": "m", "nonsense": 1}}}, "nonsense"),
    ({"reranker": {"provider": "llm_reranker", "config": {}, "top_k": 1}}, "top_k"),
    ({"reranker": {"provider": "cohere", "config": {"api_key": "k"}}}, "cohere package"),
    ({"reranker": {"provider": "sentence_transformer", "config": {}}}, "sentence-transformers"),
    ({"graph_store": {"provider": "neo4j"}}, "graph_store"),
    ({"custom_fact_extraction_prompt": "x"}, "custom_fact_extraction_prompt"),
]


def test_trap_7_a_wrong_configuration_is_named_and_leaves_no_store_locked(variant: Variant, tmp_path: Path, opened: Callable[..., Any]) -> None:
    """All in one process: the library itself would leave the embedded store locked with the first of them."""
    from mem0_gateway.config import ConfigError

    config = variant(tmp_path, store="qdrant")
    for mem0, said in WRONG:
        with pytest.raises(ConfigError, match=said):
            opened({**config, "mem0": {**config["mem0"], **mem0}})
    opened(config)


def test_a_wrong_configuration_ends_with_its_own_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("listen: 127.0.0.1:1\nnonsense: 1\n")
    done = subprocess.run([sys.executable, "-m", "mem0_gateway", "--config", str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "nonsense" in done.stderr and "Traceback" not in done.stderr

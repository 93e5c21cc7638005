"""The gateway against recordings of mem0's own server: the same requests in the same order, the same status, and the same body.

Ids, times and request ids differ in every run: ids are mapped as they appear, times the server sets are masked. Rows of an answer are compared by
their text: neither a listing nor rows with equal scores have an order (PostgreSQL without ORDER BY), and a row that the recorded run's own embedder found by
chance (score below 0.3) need not be found here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import KEY, Gateway, Variant

RECORDINGS = [json.loads(line) for line in (Path(__file__).parent / "testdata" / "mem0.jsonl").read_text().splitlines()]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: set by the server, different in every run
MASKED = {"request_id", "updated_at", "score", "score_details"}
CHANCE = 0.3

#: recorded name -> the faults of the model that the recording was made with
FAULTS: dict[str, list[dict[str, Any]]] = {
    "llm_not_json": [{"mode": "prose"}],
    "llm_truncated_json": [{"mode": "cut_answer"}],
    "llm_bare_list": [{"mode": "bare_list"}],
    "err_llm_string_items": [{"mode": "say", "purpose": "chat", "content": '{"memory":["I play the tuba."]}'}],
    "llm_fenced_json": [{"mode": "say", "purpose": "chat", "content": '```json\n{"memory":[{"id":"0","text":"I play the viola.","attributed_to":"user"}]}\n```'}],
    "llm_empty_text": [{"mode": "empty", "purpose": "chat"}],
    "err_llm_500": [{"mode": "status", "purpose": "chat", "status": 500}],
    "err_llm_429": [{"mode": "status", "purpose": "chat", "status": 429}],
    "err_llm_429_once": [{"mode": "status", "purpose": "chat", "status": 429, "times": 1}],
    "err_llm_401": [{"mode": "status", "purpose": "chat", "status": 401}],
    "err_llm_400": [{"mode": "status", "purpose": "chat", "status": 400}],
    "err_llm_403": [{"mode": "status", "purpose": "chat", "status": 403}],
    "err_llm_drop": [{"mode": "down", "purpose": "chat"}],
    "err_embed_500_add": [{"mode": "status", "purpose": "embeddings", "status": 500}],
    "err_embed_429_search": [{"mode": "status", "purpose": "embeddings", "status": 429}],
    "embed_500_after_extraction": [{"mode": "status", "purpose": "embeddings", "status": 500, "after": 1}],
    "err_wrong_dimension_verbatim": [{"mode": "dimension", "dimension": 8}],
    "err_wrong_dimension_search": [{"mode": "dimension", "dimension": 8}],
    "err_llm_process_down_add": [{"mode": "down"}],
    "err_llm_process_down_search": [{"mode": "down"}],
}


#: recorded name -> code of the refusal: what the server does there opens other users' memories or matches nothing, so the gateway answers 400 instead
REFUSED: dict[str, str] = {
    "write_wildcard_id": "id_refused",
    "err_write_empty_messages": "nothing_to_extract",
    "err_write_tool_only_infer": "nothing_to_extract",
    "write_procedural_without_agent": "procedural_needs_agent",
    "err_search_ids_only_in_and": "id_refused",
    "err_search_id_list": "id_refused",
    "err_search_id_operator": "id_refused",
    "err_search_id_null": "id_refused",
    "search_wildcard_user": "id_refused",
    "search_and_override": "id_refused",
    "search_and_before_ids": "id_refused",
    "list_wildcard": "id_refused",
    "search_id_list_of_one": "id_refused",
    "search_id_number": "id_refused",
    "search_or_with_ids_inside": "id_refused",
    "reset_wildcard_user": "id_refused",
}


#: recorded name -> what the gateway answers beyond the server: it takes names, content parts and rerank, and erased nobody's rows above
BEYOND: dict[str, Callable[[Any], bool]] = {
    "write_verbatim_multi": lambda got: [row["actor_id"] for row in got["results"]] == [None, None, "book_train"],
    "err_write_content_list": lambda got: [row["memory"] for row in got["results"]] == ["hi"],
    "search_ignored_fields": lambda got: "rerank_score" in got["results"][0] and got["rerank"]["applied"],
    "search_by_event_id": lambda got: [row["actor_id"] for row in got["results"] if row["role"] == "tool"] == ["book_train"],
    "history_after_delete": lambda got: [row["actor_id"] for row in got] == ["book_train", "book_train"],
    "reset_wildcard_inventory": lambda got: len(got["results"]) > 0,
}


def masked(value: Any, ids: dict[str, str]) -> Any:
    """The value with recorded ids mapped to those of this run, and what the server sets masked."""
    if isinstance(value, dict):
        return {name: "*" if name in MASKED and inner is not None else masked(inner, ids) for name, inner in value.items()}
    if isinstance(value, list):
        return [masked(item, ids) for item in value]
    if isinstance(value, str):
        return UUID.sub(lambda m: ids.get(m.group(), m.group()), value)
    return value


def learn(recorded: Any, got: Any, ids: dict[str, str]) -> None:
    """Map the ids of the recording to those of this run: an item is known by its text."""
    if isinstance(recorded, dict) and isinstance(got, dict):
        if "results" in recorded and "results" in got:
            rest = list(got["results"])
            for item in recorded["results"]:
                for candidate in rest:
                    if isinstance(item, dict) and candidate.get("memory") == item.get("memory") and ids.get(item["id"], candidate["id"]) == candidate["id"]:
                        ids[item["id"]] = candidate["id"]
                        rest.remove(candidate)
                        break
        elif isinstance(recorded.get("id"), str) and isinstance(got.get("id"), str):
            ids.setdefault(recorded["id"], got["id"])
    elif isinstance(recorded, list) and isinstance(got, list) and recorded and "event" in recorded[0]:
        for one, other in zip(recorded, got, strict=False):
            ids.setdefault(one["id"], other["id"])


def compare(name: str, recorded: Any, got: Any, ids: dict[str, str]) -> None:
    rows = isinstance(recorded, dict) and isinstance(recorded.get("results"), list) and recorded["results"]
    expected, actual = masked(recorded, ids), masked(got, {})
    if not rows or "event" in recorded["results"][0]:
        drop_new_times(expected, actual)
        assert actual == expected
        return
    found = {row["id"]: row for row in actual["results"]}
    for original, row in zip(recorded["results"], expected["results"], strict=False):
        if original.get("score") is not None and original["score"] < CHANCE and row["id"] not in found:
            continue
        assert row["id"] in found, f"{row['memory']!r} is missing"
        drop_new_times(row, found[row["id"]])
        assert found[row["id"]] == row
    limit = json.dumps(recorded).count('"memory"')
    assert len(found) <= max(limit, 20)


def drop_new_times(expected: Any, actual: Any) -> None:
    """created_at is compared only where the caller gave it: a time of the recording's own day is the server's clock."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if str(expected.get("created_at", "")).startswith("2026-11-21"):
            expected["created_at"] = actual["created_at"] = "*"
        for name in expected:
            drop_new_times(expected[name], actual.get(name))
    elif isinstance(expected, list) and isinstance(actual, list):
        for one, other in zip(expected, actual, strict=False):
            drop_new_times(one, other)


@pytest.fixture(scope="module")
def ids() -> dict[str, str]:
    return {}


@pytest.fixture(scope="module")
def recorded(variant: Variant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """On a table of its own: the recordings were made on an empty store, and some list all of it."""
    folder = tmp_path_factory.mktemp("recorded")
    running = Gateway(variant(folder), folder)
    yield running
    running.close()


@pytest.mark.parametrize("recording", RECORDINGS, ids=[r["name"] for r in RECORDINGS])
def test_the_gateway_answers_as_the_server_did(recording: dict[str, Any], recorded: Gateway, stub: httpx.Client, ids: dict[str, str]) -> None:
    if faults := FAULTS.get(recording["name"]):
        stub.post("/admin/faults", json=faults).raise_for_status()
    request, expected = recording["request"], recording["response"]
    secret = "wrong" if recording["name"] == "err_auth_wrong_key" else KEY
    headers = {name: secret if value == "***" and name == "x-api-key" else value for name, value in request["headers"].items()}
    body = request.get("body")
    if isinstance(body, (dict, list)):
        body = UUID.sub(lambda m: ids.get(m.group(), m.group()), json.dumps(body))
    path = UUID.sub(lambda m: ids.get(m.group(), m.group()), request["path"])
    if request.get("query"):
        path += "?" + request["query"]
    response = httpx.request(request["method"], recorded.url + path, headers=headers, content=body, timeout=120, trust_env=False)
    got = response.json() if response.headers["content-type"].startswith("application/json") else response.text
    assert re.fullmatch(r"[0-9a-f]{8}", response.headers["x-request-id"])
    if refusal := REFUSED.get(recording["name"]):
        assert (response.status_code, got.get("code")) == (400, refusal), got
        return
    if beyond := BEYOND.get(recording["name"]):
        assert response.status_code == 200 and beyond(got), got
        learn(expected["body"], got, ids)
        return
    assert response.status_code == expected["status"], got
    learn(expected["body"], got, ids)
    compare(recording["name"], expected["body"], got, ids)


def test_every_fault_belongs_to_a_recording() -> None:
    assert set(FAULTS) <= {r["name"] for r in RECORDINGS}


def test_every_deviation_belongs_to_a_recording() -> None:
    assert set(REFUSED) | set(BEYOND) <= {r["name"] for r in RECORDINGS}


def test_an_openapi_document_lists_the_routes(gateway: Gateway) -> None:
    document = gateway.client.get("/openapi.json").json()
    assert document["info"]["title"] == "Mem0 REST APIs"
    assert {"/memories", "/memories/{memory_id}", "/memories/{memory_id}/history", "/search", "/reset", "/configure", "/auth/setup-status"} <= set(document["paths"])
    assert {"/capabilities", "/memories/list", "/messages", "/entity-rows"} <= set(document["paths"])
    assert "rerank" in document["components"]["schemas"]["SearchRequest"]["properties"]


def test_secrets_are_not_shown(gateway: Gateway) -> None:
    text = gateway.client.get("/configure").text
    assert '"password":"[redacted]"' in text and '"api_key":"[redacted]"' in text
    assert '"stub"' not in text

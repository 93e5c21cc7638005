"""What runs beside what: on the real database, on the embedded store, and across the end of the process."""

from __future__ import annotations

import json
import signal
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Gateway, Variant


def someone() -> dict[str, str]:
    return {"user_id": "u-" + uuid.uuid4().hex}


def test_one_sentence_ten_times_in_parallel_is_one_row(either: Gateway) -> None:
    scope = someone()
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: either.add("My lucky number is forty two.", **scope), range(10)))
    assert {answer.status_code for answer in answers} == {200}
    assert sum(len(answer.json()["results"]) for answer in answers) == 1
    assert either.texts(**scope) == ["My lucky number is forty two."]


def test_first_writes_of_a_fresh_table_do_not_race(own: Callable[..., Gateway]) -> None:
    gateway = own()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: gateway.add(f"I am number {n}.", **someone()), range(20)))
    assert {answer.status_code for answer in answers} == {200}
    # Still the same gateway: deletions of one scope beside its adds, then a reset beside everybody.
    scope = someone()
    with ThreadPoolExecutor(20) as pool:
        adds = [pool.submit(gateway.add, f"I am number {n}.", **scope, run_id=f"r{n}") for n in range(15)]
        erase = [pool.submit(gateway.client.delete, "/memories", params=scope) for _ in range(3)]
        assert {answer.result().status_code for answer in adds + erase} == {200}
    gateway.client.delete("/memories", params=scope).raise_for_status()
    assert gateway.texts(**scope) == []
    with ThreadPoolExecutor(20) as pool:
        work: list[Any] = [pool.submit(gateway.add, f"I am number {n}.", **someone()) for n in range(10)]
        work += [pool.submit(gateway.search, "number", filters=scope) for _ in range(10)]
        work.append(pool.submit(gateway.client.post, "/reset"))
        assert {answer.result().status_code for answer in work} == {200}
    gateway.add("I am back.", **scope).raise_for_status()
    assert gateway.texts(**scope) == ["I am back."]


def test_what_was_acknowledged_by_the_embedded_store_is_there_after_an_end_under_load(own: Callable[..., Gateway]) -> None:
    """Without the lock 3 of 180 acknowledged rows were gone after a reopening."""
    gateway = own(store="qdrant")
    scopes = [someone() for _ in range(12)]

    def write(scope: dict[str, str]) -> list[str]:
        kept: list[str] = []
        for n in range(10):
            try:
                answer = gateway.add(f"I own book number {n}.", **scope)
                if answer.status_code == 429 and answer.json()["code"] == "closing":
                    break
                assert answer.status_code == 200, answer.text
                kept += [row["memory"] for row in answer.json()["results"]]
                gateway.search("book", filters=scope)
            except httpx.TransportError:
                break
        return kept

    with ThreadPoolExecutor(12) as pool:
        writers = [pool.submit(write, scope) for scope in scopes]
        while not any(gateway.texts(**scope) for scope in scopes[:2]):
            pass  # until the first of them are stored
        assert gateway.end() == 0, gateway.log.read_text()
        acknowledged = [writer.result() for writer in writers]
    gateway.start()
    assert sum(map(len, acknowledged)) > 0
    for scope, texts in zip(scopes, acknowledged, strict=True):
        assert set(texts) <= set(gateway.texts(**scope))
    # And after an end that nobody can prepare for.
    late = someone()
    for n in range(10):
        gateway.add(f"I own record number {n}.", **late).raise_for_status()
    gateway.end(signal.SIGKILL)
    gateway.start()
    assert len(gateway.texts(**late)) == 10


def test_a_client_that_gives_up_during_the_llm_loses_nothing(gateway: Gateway, stub: httpx.Client) -> None:
    scope = someone()
    stub.post("/admin/faults", json=[{"mode": "hold", "purpose": "mem0.extract", "times": 1}]).raise_for_status()
    with pytest.raises(httpx.ReadTimeout):
        gateway.client.post("/memories", json={"messages": [{"role": "user", "content": "I play the viola."}], **scope}, timeout=1)
    assert gateway.texts(**scope) == []
    stub.delete("/admin/faults").raise_for_status()  # the stub lets go
    # The next add of the scope waits for the one that nobody waits for any more.
    gateway.add("I play chess.", **scope).raise_for_status()
    assert gateway.texts(**scope) == ["I play chess.", "I play the viola."]


def test_a_full_embedded_store_refuses_and_stores_nothing(opened: Callable[..., Any]) -> None:
    from mem0_gateway.errors import StoreFull

    library = opened(store="qdrant", limits={"max_rows": 2})
    library.add([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}], user_id="u", infer=False)
    with pytest.raises(StoreFull, match="2 rows"):
        library.add([{"role": "user", "content": "three"}], user_id="u", infer=False)
    assert len(library.list({"user_id": "u"})["results"]) == 2


def test_a_history_that_cannot_be_written_is_an_error_though_the_row_is_stored(opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    from mem0_gateway.errors import Upstream, call

    library = opened(store="qdrant")

    def locked(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(library.memory.db, "add_history", locked)
    with pytest.raises(Upstream) as error:
        call(lambda: library.add([{"role": "user", "content": "I own a flute."}], user_id="u", infer=False))
    assert error.value.code == "datastore_unavailable"
    assert len(library.list({"user_id": "u"})["results"]) == 1, "so a client looks for it before it sends again, as memhost does"


def test_one_process_owns_an_embedded_store(variant: Variant, tmp_path: Path, opened: Callable[..., Any]) -> None:
    config = variant(tmp_path, store="qdrant")
    opened(config)
    with pytest.raises(RuntimeError, match="already accessed"):
        opened(json.loads(json.dumps(config)))

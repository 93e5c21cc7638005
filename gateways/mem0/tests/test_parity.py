"""Through the gateway a question has the answer that the library gives in process: ids, order, scores, with the reranker and without. Rows with equal scores have no order in
either store, so runs of them are compared as sets."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from conftest import Gateway

THINGS = ["oat milk", "green tea", "the tuba", "chess", "Lisbon", "a red bicycle", "the night train", "Acme Robotics", "ferns", "a teapot",
          "swimming", "the viola", "rye bread"]
SAYINGS = ["I like {}.", "My sister prefers {}.", "Yesterday I thought of {} all day.", "Please never mention {} again."]
TEXTS = [saying.format(thing) for thing in THINGS for saying in SAYINGS]
QUESTIONS = [f"what about {thing}" for thing in THINGS] + [f"does my sister like {thing} or tea" for thing in THINGS] + [text.rstrip(".") for text in TEXTS[::2]] + ["zzz qqq"]
SCOPE = {"user_id": "parity"}
#: no row is cut off, so that it does not matter which of equal ones come first
WIDE = {"top_k": 100, "threshold": 0.35}


def settled(rows: list[dict[str, Any]], score: str) -> list[Any]:
    """The rows with each run of equal scores in the order of its ids."""
    out: list[Any] = []
    for _, run in groupby(rows, key=lambda row: round(row[score], 9)):
        out += sorted(run, key=lambda row: str(row["id"]))
    return out


@pytest.fixture(params=["pgvector", "qdrant"])
def pair(request: pytest.FixtureRequest, own: Callable[..., Gateway], opened: Callable[..., Any]) -> tuple[list[Any], list[Any], str]:
    """The answers of the gateway and those of the library in this process on the same store, to every question plain and reranked."""
    assert len(QUESTIONS) >= 50
    gateway = own(store=request.param)
    for start in range(0, len(TEXTS), 13):
        messages = [{"role": "user", "content": text} for text in TEXTS[start : start + 13]]
        gateway.client.post("/memories", json={"messages": messages, "infer": False, **SCOPE}).raise_for_status()
    if request.param == "qdrant":
        # The embedded store has one owner: it is opened again for each side.
        gateway.end()
        gateway.start()
    times: list[float] = []
    ours = []
    for question in QUESTIONS:
        began = time.perf_counter()
        plain = gateway.search(question, filters=SCOPE, explain=True, **WIDE).json()["results"]
        times.append(time.perf_counter() - began)
        ours.append((plain, gateway.search(question, filters=SCOPE, rerank=True, **WIDE).json()["results"]))
    gateway.end()
    library = opened(gateway.config)
    theirs, own_times = [], []
    for question in QUESTIONS:
        began = time.perf_counter()
        plain = library.memory.search(question, filters=dict(SCOPE), explain=True, **WIDE)["results"]
        own_times.append(time.perf_counter() - began)
        reranked, _ = library.reranker.search(lambda q=question: library.memory.search(q, filters=dict(SCOPE), rerank=True, **WIDE)["results"])
        theirs.append((plain, reranked))
    measured = f"{request.param}: p50 {statistics.median(times) * 1e3:.1f} ms through the gateway, {statistics.median(own_times) * 1e3:.1f} ms in process"
    return ours, theirs, measured


def test_answers_are_the_librarys_own(pair: tuple[list[Any], list[Any], str], capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs, measured = pair
    with capsys.disabled():
        print(f"\n{len(ours)} questions, plain and reranked; {measured}")
    for question, (plain, reranked), (own_plain, own_reranked) in zip(QUESTIONS, ours, theirs, strict=True):
        assert settled(plain, "score") == settled(own_plain, "score"), question
        assert settled(reranked, "rerank_score") == settled(own_reranked, "rerank_score"), question
    assert sum(len(plain) for plain, _ in ours) > 100, "equal emptiness proves nothing"

"""Figures, printed: what the gateway adds to a call of the library, and its memory over many calls. Times are not asserted: they are this machine's.

``GATEWAY_CALLS=10000 tools/live gateway-graphiti`` is the long run; the usual one sees that all of it works.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import TOKEN, Gateway, Library
from conversation import ASKED, turns

from graphiti_gateway.engine import RECIPES

GROUP = "figures"
CALLS = int(os.environ.get("GATEWAY_CALLS", "400"))
ROUNDS = max(20, min(300, CALLS // 10))
RECIPE = "EDGE_HYBRID_SEARCH_RRF"


@pytest.fixture(scope="module")
def told(gateway: Gateway) -> str:
    gateway.delete(f"/v1/groups/{GROUP}")
    for name, text, at in turns()[:12]:
        gateway.add(GROUP, text, at.isoformat(), name=name)
    return GROUP


class Caller:
    """A client as small as a guest's: one connection, one write per request."""

    def __init__(self, gateway: Gateway) -> None:
        parts = urlsplit(gateway.url)
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self.headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        self.connection.request(method, path, json.dumps(body).encode() if body is not None else None, self.headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def search(self, query: str, recipe: str = RECIPE) -> float:
        """Milliseconds of a search."""
        began = time.perf_counter()
        status, _ = self.ask("POST", f"/v1/groups/{GROUP}/search_", {"query": query, "recipe": recipe})
        assert status == 200
        return (time.perf_counter() - began) * 1e3


def load() -> str:
    return f"load of the machine {os.getloadavg()[0]:.1f}"


def test_what_a_call_costs_in_front_of_a_library_that_answers_at_once(fresh: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is what the gateway adds: HTTP and JSON at both ends, the checks, the rendering of ten facts."""
    monkeypatch.setenv("GATEWAY_COMMAND", f"{sys.executable} {Path(__file__).parent / 'canned.py'}")
    gateway = fresh()
    caller = Caller(gateway)
    rounds = ROUNDS * 10
    for _ in range(200):
        caller.search("seats")
    used = processor(gateway)
    times = sorted(caller.search("seats") for _ in range(rounds))
    used = (processor(gateway) - used) * 1000 / rounds
    middle, fast = statistics.median(times), times[rounds // 10]
    print(f"\nsearch_ of 10 facts in front of a library that answers at once, {rounds} calls: p50 {middle:.2f} ms, fastest tenth {fast:.2f} ms,")
    print(f"client and socket included; {used:.2f} ms processor time of the gateway a call; {load()}")


def test_what_the_gateway_adds(gateway: Gateway, library: Library, told: str) -> None:
    """In turns with the library in this process, over the same database and models."""
    caller = Caller(gateway)
    native: list[float] = []
    through: list[float] = []

    async def search(query: str) -> float:
        began = time.perf_counter()
        await library.graphiti.search_(query, config=RECIPES[RECIPE].model_copy(deep=True), group_ids=[told])
        return (time.perf_counter() - began) * 1e3

    for i in range(ROUNDS + 10):
        query = ASKED[i % 40]
        # Who comes second finds the database's pages warm: each is it every other time.
        for who in (0, 1) if i % 2 else (1, 0):
            if who:
                through.append(caller.search(query))
            else:
                native.append(library.run(search(query)))
    pairs = [after - before for before, after in zip(native[10:], through[10:], strict=True)]
    middle = [statistics.median(values) for values in (native[10:], through[10:], pairs)]
    print(f"\nsearch_, EDGE RRF, {ROUNDS} pairs: p50 in process {middle[0]:.1f} ms, through the gateway {middle[1]:.1f} ms;")
    print(f"median of the differences {middle[2]:+.2f} ms; {load()}")


def processor(gateway: Gateway) -> float:
    """Processor seconds of the gateway so far: what it costs however busy the machine is."""
    fields = Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(gateway: Gateway) -> float:
    """Megabytes of the gateway's process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{gateway.process.pid}/status").read_text())
    assert found
    return int(found[1]) / 1024


def test_memory_over_many_calls(gateway: Gateway, told: str) -> None:
    edges = [item["uuid"] for item in gateway.get(f"/v1/groups/{told}/edges").json["edges"]]

    def some(number: int) -> None:
        caller = Caller(gateway)
        for i in range(number):
            match i % 20:
                case 0 | 10:
                    caller.search(ASKED[i % 50], "COMBINED_HYBRID_SEARCH_RRF")
                case 5:
                    caller.ask("POST", f"/v1/groups/{told}/search_", {"query": "q", "recipe": "none"})
                case 7:
                    caller.ask("GET", "/v1/groups/a:b")
                case 12:
                    caller.ask("POST", f"/v1/groups/{told}/edges/lookup", {"uuids": edges})
                case 15:
                    caller.ask("GET", f"/v1/groups/{told}/episodes?limit=10")
                case _:
                    caller.ask("GET", f"/v1/groups/{told}/edges/{edges[i % len(edges)]}")

    def run(number: int) -> None:
        threads = [threading.Thread(target=some, args=(number // 4,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run(max(200, CALLS // 10))
    before = resident(gateway)
    began = time.perf_counter()
    run(CALLS)
    after = resident(gateway)
    print(f"\n{CALLS} calls in {time.perf_counter() - began:.0f} s: resident memory {before:.1f} MB before, {after:.1f} MB after ({after - before:+.1f} MB)")
    assert after - before < 30, "memory grows with the calls"

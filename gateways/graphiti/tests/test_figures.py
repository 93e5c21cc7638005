"""Figures, printed: what the gateway adds to a call of the library, and its memory over many calls. Times are not asserted: they are this machine's."""

from __future__ import annotations

import http.client
import json
import os
import re
import statistics
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import TOKEN, Gateway, Library
from conversation import ASKED, turns

from graphiti_gateway.engine import RECIPES

GROUP = "figures"


@pytest.fixture(scope="module", autouse=True)
def told(gateway: Gateway) -> None:
    gateway.delete(f"/v1/groups/{GROUP}")
    for name, text, at in turns()[:12]:
        gateway.add(GROUP, text, at.isoformat(), name=name)


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


def test_what_the_gateway_adds(gateway: Gateway, library: Library) -> None:
    caller, rounds = Caller(gateway), 120
    native: list[float] = []
    through: list[float] = []

    async def search(query: str) -> float:
        began = time.perf_counter()
        await library.graphiti.search_(query, config=RECIPES["EDGE_HYBRID_SEARCH_RRF"].model_copy(deep=True), group_ids=[GROUP])
        return time.perf_counter() - began

    for i in range(rounds + 10):
        query = ASKED[i % 40]
        native.append(library.run(search(query)))
        began = time.perf_counter()
        status, _ = caller.ask("POST", f"/v1/groups/{GROUP}/search_", {"query": query, "recipe": "EDGE_HYBRID_SEARCH_RRF"})
        through.append(time.perf_counter() - began)
        assert status == 200
    alone: list[float] = []
    used = processor(gateway)
    for _ in range(rounds):
        began = time.perf_counter()
        caller.ask("POST", f"/v1/groups/{GROUP}/search_", {"query": " ", "recipe": "EDGE_HYBRID_SEARCH_RRF"})
        alone.append(time.perf_counter() - began)
    used = (processor(gateway) - used) * 1000 / rounds
    middle = [statistics.median(values[10:]) * 1000 for values in (native, through, alone)]
    print(f"\nsearch_, EDGE RRF, p50 of {rounds}: in process {middle[0]:.1f} ms, through the gateway {middle[1]:.1f} ms, adds {middle[1] - middle[0]:+.1f} ms;")
    print(f"a search that the library answers at once (a blank query) takes {middle[2]:.2f} ms through the gateway, of them {used:.2f} ms processor time")


def processor(gateway: Gateway) -> float:
    """Processor seconds of the gateway so far: what it costs however busy the machine is."""
    fields = Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(gateway: Gateway) -> float:
    """Megabytes of the gateway's process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{gateway.process.pid}/status").read_text())
    assert found
    return int(found[1]) / 1024


def test_memory_over_many_calls(gateway: Gateway) -> None:
    calls = int(os.environ.get("GATEWAY_CALLS", "1000"))
    edges = [item["uuid"] for item in gateway.get(f"/v1/groups/{GROUP}/edges").json["edges"]]

    def some(number: int) -> None:
        caller = Caller(gateway)
        for i in range(number):
            match i % 20:
                case 0 | 10:
                    caller.ask("POST", f"/v1/groups/{GROUP}/search_", {"query": ASKED[i % 50], "recipe": "COMBINED_HYBRID_SEARCH_RRF"})
                case 5:
                    caller.ask("POST", f"/v1/groups/{GROUP}/search_", {"query": "q", "recipe": "none"})
                case 7:
                    caller.ask("GET", "/v1/groups/a:b")
                case 12:
                    caller.ask("POST", f"/v1/groups/{GROUP}/edges/lookup", {"uuids": edges})
                case 15:
                    caller.ask("GET", f"/v1/groups/{GROUP}/episodes?limit=10")
                case _:
                    caller.ask("GET", f"/v1/groups/{GROUP}/edges/{edges[i % len(edges)]}")

    def run(number: int) -> None:
        threads = [threading.Thread(target=some, args=(number // 4,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run(max(400, calls // 10))
    before = resident(gateway)
    began = time.perf_counter()
    run(calls)
    after = resident(gateway)
    print(f"\n{calls} calls in {time.perf_counter() - began:.0f} s: resident memory {before:.1f} MB before, {after:.1f} MB after ({after - before:+.1f} MB)")
    assert after - before < 30, "memory grows with the calls"

"""Figures, printed: what the gateway adds to a call of the library, and its memory over many calls. Times are not asserted: they are this machine's.

``GATEWAY_CALLS=10000 tools/live gateway-mem0`` is the long run; the usual one sees that all of it works.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Gateway

CALLS = int(os.environ.get("GATEWAY_CALLS", "400"))
SCOPE = {"user_id": "figures"}
TEXTS = [f"I own book number {n}, and it is about {what}." for n, what in enumerate(("tea", "the tuba", "chess", "ferns", "Lisbon", "night trains") * 2)]


class Caller:
    """A client as small as a guest's: one connection, one write per request."""

    def __init__(self, gateway: Gateway) -> None:
        host, _, port = gateway.config["listen"].partition(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=60)
        self.headers = {"X-API-Key": KEY, "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Any = None) -> int:
        self.connection.request(method, path, json.dumps(body).encode() if body is not None else None, self.headers)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status

    def search(self, query: str, top_k: int = 20) -> float:
        """Milliseconds of a search."""
        began = time.perf_counter()
        status = self.ask("POST", "/search", {"query": query, "filters": SCOPE, "explain": True, "top_k": top_k})
        assert status == 200
        return (time.perf_counter() - began) * 1e3


def load() -> str:
    return f"load of the machine {os.getloadavg()[0]:.1f}"


def processor(gateway: Gateway) -> float:
    """Processor seconds of the gateway so far: what it costs however busy the machine is."""
    fields = Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(gateway: Gateway) -> float:
    """MiB of the gateway's process."""
    for line in Path(f"/proc/{gateway.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def test_what_a_call_costs_in_front_of_a_library_that_answers_at_once(own: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is what the gateway adds: HTTP and JSON at both ends, the checks, the way into a thread and back."""
    monkeypatch.setenv("GATEWAY_COMMAND", f"{sys.executable} {Path(__file__).parent / 'canned.py'}")
    gateway = own()
    caller = Caller(gateway)
    for _ in range(200):
        caller.search("milk")
    used = processor(gateway)
    times = sorted(caller.search("milk") for _ in range(CALLS))
    used = (processor(gateway) - used) * 1000 / CALLS
    print(f"\na search of 12 rows in front of a library that answers at once, {CALLS} calls: p50 {statistics.median(times):.2f} ms, fastest tenth {times[CALLS // 10]:.2f} ms,")
    print(f"client and socket included; {used:.2f} ms processor time of the gateway a call; {load()}")


def test_what_the_gateway_adds(own: Callable[..., Gateway], opened: Callable[..., Any]) -> None:
    """In turns with the library in this process, over the same table and models."""
    gateway = own()
    messages = [{"role": "user", "content": text} for text in TEXTS]
    gateway.client.post("/memories", json={"messages": messages, "infer": False, **SCOPE}).raise_for_status()
    library, caller = opened(gateway.config), Caller(gateway)
    native: list[float] = []
    through: list[float] = []
    rounds = max(20, min(300, CALLS // 10))
    for i in range(rounds + 10):
        query = TEXTS[i % len(TEXTS)]
        # Who comes second finds the database's pages warm: each is it every other time.
        for who in (0, 1) if i % 2 else (1, 0):
            if who:
                through.append(caller.search(query))
            else:
                began = time.perf_counter()
                library.search(query, dict(SCOPE), explain=True, top_k=20)
                native.append((time.perf_counter() - began) * 1e3)
    pairs = [after - before for before, after in zip(native[10:], through[10:], strict=True)]
    middle = [statistics.median(values) for values in (native[10:], through[10:], pairs)]
    print(f"\na search on pgvector, {rounds} pairs: p50 in process {middle[0]:.1f} ms, through the gateway {middle[1]:.1f} ms;")
    print(f"median of the differences {middle[2]:+.2f} ms; {load()}")


def test_memory_over_many_calls(either: Gateway) -> None:
    caller = Caller(either)
    for text in TEXTS:
        assert caller.ask("POST", "/memories", {"messages": [{"role": "user", "content": text}], "infer": False, **SCOPE}) == 200

    def run(number: int) -> None:
        for i in range(number):
            match i % 10:
                case 3:
                    caller.ask("GET", "/memories/nothing-of-this-name")
                case 5:
                    caller.ask("POST", "/search", {"query": "x", "filters": {"user_id": "*"}})
                case 7:
                    caller.ask("GET", "/memories?user_id=figures")
                case _:
                    caller.search(TEXTS[i % len(TEXTS)])

    run(max(200, CALLS // 10))
    before = resident(either)
    began = time.perf_counter()
    run(CALLS)
    after = resident(either)
    print(f"\n{CALLS} calls in {time.perf_counter() - began:.0f} s: resident memory {before:.1f} MiB before, {after:.1f} MiB after ({after - before:+.1f} MiB)")
    assert after - before < 30, "memory grows with the calls"

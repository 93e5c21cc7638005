"""What the gateway costs: ``python tests/measure.py [calls]``. Nothing is asserted, and nothing but the gateway's packages is needed.

The gateway serves, in a process of its own, a library that answers a search of 12 rows at once: so what a call takes is what the gateway, the socket and this client add. The
processor time of the gateway is printed beside it, since that is the same on a busy machine. Then its memory over 10,000 calls.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import httpx
import uvicorn

ROW = {"id": "a063983a-fa27-431e-b5df-90412b186bde", "memory": "I moved to oat milk last week.", "hash": "a57409bda7561acabbb295913f5da7b0", "metadata": {"mh_event_id": "e-91"},
       "score": 0.33, "created_at": "2025-03-10T09:30:00+00:00", "updated_at": "2025-03-10T09:30:00+00:00", "user_id": "u", "run_id": "r",
       "score_details": {"semantic_score": 0.63, "bm25_score": 0.03, "final_score": 0.33}}


class Canned:
    """A library whose search costs nothing."""

    def search(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"results": [ROW] * 12}

    def close(self) -> None:
        pass


def serve(pipe: Any) -> None:
    folder = tempfile.mkdtemp(prefix="mem0-measure-")
    os.environ.update(MEM0_TELEMETRY="false", MEM0_DIR=folder)
    from mem0_gateway.app import create
    from mem0_gateway.config import parse
    from mem0_gateway.library import Library

    section = {"provider": "openai", "config": {"api_key": "k"}}
    config = parse({"key": "k", "mem0": {"llm": section, "embedder": section}})

    class Told(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            pipe.send(self.servers[0].sockets[0].getsockname()[1])

    Told(uvicorn.Config(create(config, cast(Library, Canned())), port=0, log_level="warning", access_log=False)).run()


def resident(pid: int) -> float:
    """Memory of a process in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def processor(pid: int) -> float:
    """Processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(calls: int) -> None:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(theirs,))
    process.start()
    pid = cast(int, process.pid)
    client = httpx.Client(base_url=f"http://127.0.0.1:{ours.recv()}", headers={"x-api-key": "k"}, trust_env=False)
    body = {"query": "milk", "filters": {"user_id": "u", "run_id": "r"}, "explain": True}

    def ask(n: int) -> list[float]:
        times = []
        for _ in range(n):
            began = time.perf_counter()
            client.post("/search", json=body).raise_for_status()
            times.append((time.perf_counter() - began) * 1e3)
        return sorted(times)

    ask(200)
    used, times = processor(pid), ask(1000)
    print(f"1000 searches: p50 {statistics.median(times):.2f} ms, fastest tenth {times[100]:.2f} ms, client and socket included; processor time of the gateway "
          f"{(processor(pid) - used):.2f} ms a call; load of the machine {os.getloadavg()[0]:.1f}")
    for done in range(0, calls + 1, max(1, calls // 5)):
        print(f"{done:6} calls: {resident(pid):.1f} MiB", flush=True)
        if done < calls:
            ask(max(1, calls // 5))
    process.terminate()
    process.join()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

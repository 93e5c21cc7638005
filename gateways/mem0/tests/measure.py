"""What the gateway costs: ``python tests/measure.py`` with GATEWAY_CONFIG as the tests have it. Nothing is asserted.

A store of a few rows in this process is searched by the library and through the gateway's application on a socket, in turn, so that both see the same machine. Then the
process's memory over 10,000 calls.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import uvicorn


def resident() -> float:
    """Memory of this process in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def main(calls: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="mem0-measure-"))
    os.environ.update(MEM0_TELEMETRY="false", MEM0_DIR=str(folder / "mem0"))
    from mem0_gateway.app import create
    from mem0_gateway.config import complete, parse
    from mem0_gateway.library import Library

    document = json.loads(Path(os.environ["GATEWAY_CONFIG"]).read_text())
    del document["mem0"]["vector_store"]
    config = parse({**document, "data": str(folder), "listen": "127.0.0.1:0"})
    complete(config)
    library = Library(config)
    # The embedder is stubbed here: what is measured is the gateway.
    library.memory.embedding_model.embed = lambda text, *_: [1.0] + [0.0] * 1535
    library.add([{"role": "user", "content": f"note {n}"} for n in range(12)], user_id="u", infer=False)
    server = uvicorn.Server(uvicorn.Config(create(config, library), port=0, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"x-api-key": config.key or ""}, trust_env=False)
    body = {"query": "note", "filters": {"user_id": "u"}, "explain": True}
    direct, through = [], []
    for n in range(1200):
        began = time.perf_counter()
        library.memory.search("note", filters={"user_id": "u"}, explain=True)
        middle = time.perf_counter()
        client.post("/search", json=body).raise_for_status()
        if n >= 200:
            direct.append(middle - began)
            through.append(time.perf_counter() - middle)
    print(f"search of 12 rows, p50: {statistics.median(direct) * 1e3:.2f} ms in process, {statistics.median(through) * 1e3:.2f} ms through the gateway (client included), "
          f"difference {(statistics.median(through) - statistics.median(direct)) * 1e3:.2f} ms")
    for done in range(0, calls + 1, max(1, calls // 5)):
        print(f"{done:6} calls: {resident():.1f} MiB")
        if done < calls:
            for _ in range(max(1, calls // 5)):
                client.post("/search", json=body).raise_for_status()
    server.should_exit = True
    thread.join()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

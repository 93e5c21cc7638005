"""Gateways to test, each a process of its own on the real database or an embedded one. ``tools/live gateway-mem0`` starts PostgreSQL and the stub model, and names
a working configuration in GATEWAY_CONFIG."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx
import pytest

# Before anything imports mem0.
os.environ["MEM0_TELEMETRY"] = "false"
os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-tests-")
atexit.register(shutil.rmtree, os.environ["MEM0_DIR"], True)

KEY = "live-test-admin-key"


@pytest.fixture(scope="session")
def base() -> dict[str, Any]:
    """The configuration that `tools/live gateway-mem0` names: pgvector, stub model, LLM reranker."""
    path = os.environ.get("GATEWAY_CONFIG")
    if not path:
        pytest.fail("GATEWAY_CONFIG is not set: run `tools/live gateway-mem0`, which starts the database and the stub and runs these tests", pytrace=False)
    config: dict[str, Any] = json.loads(Path(path).read_text())
    return config


@pytest.fixture(scope="session")
def stub_url(base: dict[str, Any]) -> str:
    return str(base["mem0"]["llm"]["config"]["openai_base_url"]).removesuffix("/v1")


@pytest.fixture
def stub(stub_url: str) -> Iterator[httpx.Client]:
    """The stub's control routes; faults are removed afterwards."""
    with httpx.Client(base_url=stub_url, trust_env=False) as client:
        yield client
        client.delete("/admin/faults").raise_for_status()


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


#: makes a configuration: ``variant(folder, store="pgvector" or "qdrant", **keys of the gateway)``; mem0's own sections under ``mem0=``
Variant = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def variant(base: dict[str, Any]) -> Variant:
    made = 0

    def make(folder: Path, store: str = "pgvector", mem0: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
        nonlocal made
        made += 1
        config = deepcopy(base)
        config.update(listen=f"127.0.0.1:{free_port()}", data=str(folder / "data"), **keys)
        if store == "pgvector":
            config["mem0"]["vector_store"]["config"]["collection_name"] = f"t{os.getpid()}_{made}"
        else:
            del config["mem0"]["vector_store"]
        config["mem0"].update(mem0 or {})
        config["mem0"] = {name: value for name, value in config["mem0"].items() if value is not None}
        return {name: value for name, value in config.items() if value is not None}

    return make


class Gateway:
    """A running gateway. ``client`` carries the key."""

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.config = config
        self.file = folder / f"gateway-{config['listen'].rpartition(':')[2]}.json"
        self.file.write_text(json.dumps(config))
        self.log = self.file.with_suffix(".log")
        self.url = "http://" + config["listen"]
        self.client = httpx.Client(base_url=self.url, timeout=120, trust_env=False, headers={"x-api-key": KEY})
        self.start()

    def start(self) -> None:
        command = os.environ.get("GATEWAY_COMMAND", f"{sys.executable} -m mem0_gateway").split()
        with self.log.open("ab") as out:
            self.process = subprocess.Popen([*command, "--config", str(self.file)], stdout=out, stderr=out)
        deadline = time.monotonic() + 60
        while True:
            try:
                if self.client.get("/auth/setup-status").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the gateway did not start:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def end(self, with_: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(with_)
        return self.process.wait(60)

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.end()

    def add(self, text: str, **ids: Any) -> httpx.Response:
        return self.client.post("/memories", json={"messages": [{"role": "user", "content": text}], **ids})

    def search(self, query: str, **body: Any) -> httpx.Response:
        return self.client.post("/search", json={"query": query, **body})

    def texts(self, **ids: Any) -> list[str]:
        rows = self.client.post("/memories/list", json={"filters": ids, "top_k": 100_000}).raise_for_status().json()["results"]
        return sorted(row["memory"] for row in rows)


@pytest.fixture(scope="session")
def gateway(variant: Variant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """On PostgreSQL with pgvector."""
    folder = tmp_path_factory.mktemp("pgvector")
    running = Gateway(variant(folder, patches={"observation_date": True}), folder)
    yield running
    running.close()


@pytest.fixture(scope="session")
def embedded(variant: Variant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """On embedded Qdrant, the default that needs no server."""
    folder = tmp_path_factory.mktemp("embedded")
    running = Gateway(variant(folder, store="qdrant"), folder)
    yield running
    running.close()


@pytest.fixture(scope="session")
def plain(base: dict[str, Any], variant: Variant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Embedded, without a reranker and without a key, with a model that sees, and with a short longest body."""
    folder, llm = tmp_path_factory.mktemp("plain"), base["mem0"]["llm"]
    mem0 = {"reranker": None, "llm": {**llm, "config": {**llm["config"], "enable_vision": True}}}
    running = Gateway(variant(folder, store="qdrant", mem0=mem0, key=None, auth_disabled=True, keyword_search="off", limits={"body_bytes": 2000}), folder)
    yield running
    running.close()


@pytest.fixture(params=["pgvector", "embedded"])
def either(request: pytest.FixtureRequest) -> Gateway:
    """Either of the two."""
    running: Gateway = request.getfixturevalue("gateway" if request.param == "pgvector" else "embedded")
    return running


@pytest.fixture
def opened(variant: Variant, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Libraries in this process: ``opened(config)`` or ``opened(store="qdrant", ...)``. Closed at the end, or by the test."""
    from mem0_gateway.config import complete, parse
    from mem0_gateway.library import Library

    made: list[Library] = []

    def make(config: dict[str, Any] | None = None, **changes: Any) -> Library:
        parsed = parse(config or variant(tmp_path, **changes))
        complete(parsed)
        parsed.data.mkdir(parents=True, exist_ok=True)
        made.append(Library(parsed))
        return made[-1]

    yield make
    for library in made:
        if library.memory.db is not None:
            library.close()


@pytest.fixture
def own(variant: Variant, tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Gateways of one test: ``own(store="qdrant", ...)`` as ``variant``."""
    started: list[Gateway] = []

    def make(**changes: Any) -> Gateway:
        started.append(Gateway(variant(tmp_path, **changes), tmp_path))
        return started[-1]

    yield make
    for running in started:
        running.close()


@pytest.fixture
def calls(stub: httpx.Client) -> Callable[[str], int]:
    """How often the stub was called for a purpose ("chat", "embeddings") since the test began."""
    stub.delete("/admin/log").raise_for_status()

    def count(purpose: str) -> int:
        return sum(1 for entry in stub.get("/admin/log").json() if str(entry["purpose"]).startswith(purpose))

    return count

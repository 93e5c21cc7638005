"""The tests run against a real Neo4j and the stub: `tools/live gateway-graphiti` starts both and sets these variables. test_unit.py needs neither."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

T = TypeVar("T")

TOKEN = "live-test-gateway-token"

TYPES = {
    "entity": {
        "Person": {
            "description": "A human being",
            "properties": {"occupation": {"type": "string"}, "nicknames": {"type": "array", "items": {"type": "string"}}},
        }
    },
    "edge": {"PREFERS": {"description": "Somebody likes something better", "properties": {"strength": {"type": "string"}}}},
}


def setting(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        pytest.fail(f"{name} is not set: run `tools/live gateway-graphiti`, which starts Neo4j and the stub", pytrace=False)
    return value


@dataclass
class Reply:
    """An answer: its status, its JSON, its headers."""

    status: int
    json: Any
    headers: httpx.Headers

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])

    @property
    def details(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["error"]["details"]
        return found


class Gateway:
    """A started gateway."""

    def __init__(self, process: subprocess.Popen[str], url: str, token: str = TOKEN) -> None:
        self.process, self.url = process, url
        self.client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120, trust_env=False)

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Reply:
        answer = self.client.request(method, path, json=body, **options) if body is not None else self.client.request(method, path, **options)
        return Reply(answer.status_code, answer.json(), answer.headers)

    def get(self, path: str, **options: Any) -> Reply:
        return self.ask("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Reply:
        return self.ask("POST", path, {} if body is None else body, **options)

    def delete(self, path: str) -> Reply:
        return self.ask("DELETE", path)

    def add(self, group: str, text: str, at: str = "2025-03-01T09:00:00Z", **more: Any) -> Any:
        """Add an episode, which must be committed."""
        reply = self.post(f"/v1/groups/{group}/episodes", {"name": "e", "episode_body": text, "reference_time": at, **more})
        assert reply.status == 200, reply.json
        return reply.json

    def counts(self, group: str) -> dict[str, int]:
        found: dict[str, int] = self.get(f"/v1/groups/{group}").json["counts"]
        return found

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.client.close()
        self.process.send_signal(how)
        return self.process.wait(timeout=60)


def configuration(**changes: Any) -> dict[str, Any]:
    """A gateway's configuration for these tests; ``changes`` take the place of whole sections."""
    endpoint = {"base_url": setting("OPENAI_BASE_URL"), "api_key": {"env": "OPENAI_API_KEY"}}
    return {
        "listen": {"port": 0},
        "token": {"env": "GATEWAY_TOKEN"},
        "database": {
            "uri": setting("NEO4J_URI"),
            "user": setting("NEO4J_USER"),
            "password": {"env": "NEO4J_PASSWORD"},
            "retry_seconds": 1,
            "connect_seconds": 2,
        },
        "llm": endpoint,
        "embedder": endpoint,
        "reranker": endpoint,
        "types": TYPES,
        **changes,
    }


def launch(folder: Path, **changes: Any) -> Gateway:
    """Start a gateway with a configuration of its own."""
    file = folder / "gateway.json"
    file.write_text(json.dumps(configuration(**changes)))
    command = shlex.split(os.environ.get("GATEWAY_COMMAND", f"{sys.executable} -m graphiti_gateway.cli"))
    with open(folder / "gateway.log", "a") as log:
        process = subprocess.Popen([*command, "--config", str(file)], stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "GATEWAY_TOKEN": TOKEN})
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on "), (folder / "gateway.log").read_text()[-2000:]
    return Gateway(process, line.split()[-1])


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The gateway that most tests share."""
    folder = tmp_path_factory.mktemp("gateway")
    running = launch(folder, queue={"path": str(folder / "jobs.sqlite")})
    yield running
    assert running.end() == 0
    assert "Traceback" not in (folder / "gateway.log").read_text()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Starts gateways of a test's own, with a journal in the same folder, and ends what still runs."""
    started: list[Gateway] = []

    def start(**changes: Any) -> Gateway:
        started.append(launch(tmp_path, **{"queue": {"path": str(tmp_path / "jobs.sqlite")}, **changes}))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)


class Stub:
    """The stub's control routes."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def fail(self, **fault: Any) -> None:
        self.client.post("/admin/faults", json=fault).raise_for_status()

    def clear(self) -> None:
        self.client.delete("/admin/faults").raise_for_status()

    def counts(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get("/admin/counts").json()
        return found

    def log(self) -> list[dict[str, Any]]:
        """Every request with its prompt and its answer."""
        found: list[dict[str, Any]] = self.client.get("/admin/log").json()
        return found

    def forget(self) -> None:
        self.client.delete("/admin/log").raise_for_status()

    def seen(self, purpose: str) -> int:
        """How many requests of a purpose there were."""
        return int(self.counts()["by_purpose"].get(purpose, 0))


@pytest.fixture
def stub() -> Iterator[Stub]:
    with httpx.Client(base_url=setting("STUB_URL"), trust_env=False) as client:
        yield (one := Stub(client))
        one.clear()


NUMBERS = itertools.count(1)


@pytest.fixture
def group() -> str:
    """A group that nobody has used."""
    return f"test_{os.getpid()}_{next(NUMBERS)}"


@pytest.fixture
def other() -> str:
    """Another one."""
    return f"other_{os.getpid()}_{next(NUMBERS)}"


class Library:
    """graphiti-core in this process, over the same database and the same models, as its documentation opens it."""

    def __init__(self) -> None:
        from graphiti_core import Graphiti

        self.runner = asyncio.Runner()
        self.graphiti: Graphiti = self.run(self.open())

    async def open(self) -> Any:
        from graphiti_core import Graphiti

        graphiti = Graphiti(setting("NEO4J_URI"), setting("NEO4J_USER"), setting("NEO4J_PASSWORD"))
        await graphiti.build_indices_and_constraints()
        return graphiti

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def rows(self, cypher: str, **parameters: Any) -> list[dict[str, Any]]:
        async def ask() -> list[dict[str, Any]]:
            result = await self.graphiti.driver.client.execute_query(cypher, parameters)  # type: ignore[attr-defined]  # Neo4j's driver has it
            return [record.data() for record in result.records]

        return self.run(ask())

    def close(self) -> None:
        self.run(self.graphiti.close())  # type: ignore[no-untyped-call]  # the library's
        self.runner.close()


@pytest.fixture(scope="session")
def library() -> Iterator[Library]:
    opened = Library()
    yield opened
    opened.close()

"""FalkorDB, a graph for each group.

The library's ``add_episode`` binds one shared driver to the group that was written last; here each group has a driver that is bound to it from the start.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from falkordb.asyncio import FalkorDB  # type: ignore[import-untyped]
from graphiti_core.driver.falkordb_driver import FalkorDriver
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff
from redis.exceptions import ResponseError

from .settings import Database

#: seconds between two attempts to reach the server
PAUSE = 0.25

COUNTS = {
    "episodes": "MATCH (n:Episodic {group_id: $group}) RETURN count(n) AS number",
    "nodes": "MATCH (n:Entity {group_id: $group}) RETURN count(n) AS number",
    "edges": "MATCH ()-[e:RELATES_TO {group_id: $group}]->() RETURN count(e) AS number",
    "communities": "MATCH (n:Community {group_id: $group}) RETURN count(n) AS number",
    "sagas": "MATCH (n:Saga {group_id: $group}) RETURN count(n) AS number",
}


class Client(FalkorDB):  # type: ignore[misc]  # it has no types
    """FalkorDB's client over a given connection.

    Its own constructor asks the server at once, and blocking, whether it is a cluster; clusters are not served.
    """

    def __init__(self, connection: Redis) -> None:
        self.connection = connection
        self.flushdb = connection.flushdb
        self.execute_command = connection.execute_command


class Driver(FalkorDriver):
    """The library's driver of one graph.

    Its constructor starts ``build_indices_and_constraints`` in the background; here ``index`` does its work, when it is asked to.
    """

    async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
        pass

    async def index(self) -> None:
        await super().build_indices_and_constraints()  # type: ignore[no-untyped-call]  # the library's


class Falkor:
    """The graph of one group."""

    apart = True

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self.driver = Driver(falkor_db=client, database=group)
        self.indexed = False

    @classmethod
    def opened(cls, settings: Database) -> Falkor:
        pool = BlockingConnectionPool.from_url(
            settings.uri,
            username=settings.user,
            password=settings.password.read() if settings.password else None,
            decode_responses=True,
            max_connections=settings.pool,
            timeout=settings.connect_seconds + 5,
            socket_connect_timeout=settings.connect_seconds,
            retry=Retry(ConstantBackoff(PAUSE), max(1, int(settings.retry_seconds / PAUSE))),
        )
        return cls(Client(Redis(connection_pool=pool)), "memhost_gateway")  # a graph that nobody asks

    def of(self, group: str) -> Falkor:
        return Falkor(self._client, group)

    async def index(self) -> None:
        await self.driver.index()
        self.indexed = True

    async def ping(self) -> None:
        await self._client.connection.ping()

    async def rows(self, cypher: str, **parameters: Any) -> list[dict[str, Any]]:
        result = await self.driver.execute_query(cypher, **parameters)
        return result[0] if result is not None else []

    async def counts(self, group: str) -> dict[str, int]:
        return {kind: (await self.rows(cypher, group=group))[0]["number"] for kind, cypher in COUNTS.items()}

    async def remove(self, group: str) -> None:
        with suppress(ResponseError):  # there is no such graph
            await self._client.select_graph(group).delete()
        self.indexed = False

    async def close(self) -> None:
        await self._client.connection.aclose()
        await self._client.connection.connection_pool.aclose()

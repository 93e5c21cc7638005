"""The databases: the library's drivers with deadlines of their own, and what the gateway itself asks them in Cypher.

On Neo4j the groups are properties in one graph. On FalkorDB the library gives each group a graph of its own, so that ``Store.of`` makes a store for each.
"""

from __future__ import annotations

from typing import Any, Protocol

from graphiti_core.driver.driver import GraphDriver
from graphiti_core.driver.neo4j_driver import Neo4jDriver
from graphiti_core.nodes import Node
from neo4j import AsyncGraphDatabase

from .settings import Database, SettingsError

LABELS = {"episodes": "Episodic", "nodes": "Entity", "communities": "Community", "sagas": "Saga"}

NEO4J_COUNTS = (
    "RETURN COUNT { MATCH (n:Episodic {group_id: $group}) } AS episodes, COUNT { MATCH (n:Entity {group_id: $group}) } AS nodes,"
    " COUNT { MATCH ()-[e:RELATES_TO {group_id: $group}]->() } AS edges, COUNT { MATCH (n:Community {group_id: $group}) } AS communities,"
    " COUNT { MATCH (n:Saga {group_id: $group}) } AS sagas"
)


class Store(Protocol):
    """A database, or on FalkorDB the part of it that is a group's."""

    #: whether each group is a graph of its own
    apart: bool
    #: whether the indexes are there
    indexed: bool

    @property
    def driver(self) -> GraphDriver: ...

    def of(self, group: str) -> Store:
        """The store of a group: this one, or where they are apart a new one, with nothing known about its indexes."""

    async def index(self) -> None: ...

    async def ping(self) -> None: ...

    async def rows(self, cypher: str, **parameters: Any) -> list[dict[str, Any]]: ...

    async def counts(self, group: str) -> dict[str, int]:
        """How many episodes, nodes, edges, communities and sagas a group has."""

    async def remove(self, group: str) -> None:
        """Everything of a group."""

    async def close(self) -> None: ...


def open_store(settings: Database) -> Store:
    """The configured database; connects to nothing yet. Raises SettingsError."""
    if settings.provider == "neo4j":
        return Neo4j(settings)
    try:
        from .falkor import Falkor
    except ImportError as error:
        raise SettingsError(
            f"database.provider: falkordb needs a package that is missing ({error.name}): pip install 'memhost-gateway-graphiti[falkordb]'"
        ) from None
    return Falkor.opened(settings)


class Driver(Neo4jDriver):
    """The library's driver with deadlines: its own gives up on an unreachable database only after half a minute. It builds no index by itself."""

    def __init__(self, database: Database, password: str) -> None:
        user = database.user or "neo4j"
        super().__init__(database.uri, user, password, database.name or "neo4j")
        self._unused = self.client
        self.client = AsyncGraphDatabase.driver(
            database.uri,
            auth=(user, password),
            connection_timeout=database.connect_seconds,
            connection_acquisition_timeout=database.connect_seconds + 5,
            max_transaction_retry_time=database.retry_seconds,
            max_connection_pool_size=database.pool,
            notifications_min_severity="OFF",
        )

    async def close(self) -> None:
        await self._unused.close()
        await super().close()


class Neo4j:
    """All groups in one graph."""

    apart = False

    def __init__(self, settings: Database) -> None:
        assert settings.password is not None
        self._name = settings.name or "neo4j"
        self.driver = Driver(settings, settings.password.read())
        self.indexed = False

    def of(self, group: str) -> Neo4j:
        return self

    async def index(self) -> None:
        await self.driver.build_indices_and_constraints()
        self.indexed = True

    async def ping(self) -> None:
        await self.rows("RETURN 1 AS one")

    async def rows(self, cypher: str, **parameters: Any) -> list[dict[str, Any]]:
        result = await self.driver.client.execute_query(cypher, parameters, database_=self._name)
        return [record.data() for record in result.records]

    async def counts(self, group: str) -> dict[str, int]:
        return (await self.rows(NEO4J_COUNTS, group=group))[0]

    async def remove(self, group: str) -> None:
        """The library's deletion leaves sagas, and its own for them raises."""
        await Node.delete_by_group_id(self.driver, group)
        for label in LABELS.values():
            gone = 1
            while gone:
                rows = await self.rows(f"MATCH (n:{label} {{group_id: $group}}) WITH n LIMIT 1000 DETACH DELETE n RETURN count(*) AS gone", group=group)
                gone = rows[0]["gone"]
        await self.rows("MATCH ()-[e:RELATES_TO {group_id: $group}]->() DELETE e", group=group)

    async def close(self) -> None:
        await self.driver.close()

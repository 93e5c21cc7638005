"""Settings, read from the environment under the names that mem0's own server uses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Settings without which the gateway does not start.
REQUIRED = ("POSTGRES_HOST", "POSTGRES_PORT", "POSTGRES_PASSWORD", "ADMIN_API_KEY", "OPENAI_API_KEY", "HISTORY_DB_PATH")


class SettingsError(ValueError):
    """A setting is missing or wrong; the text names it."""


@dataclass(frozen=True)
class Settings:
    """What the gateway needs to know. ``from_environment`` says where each comes from."""

    postgres_host: str
    postgres_port: int
    postgres_database: str
    postgres_user: str
    postgres_password: str
    collection: str
    hnsw: bool
    admin_key: str
    openai_key: str
    llm_model: str
    embedding_model: str
    embedding_dimensions: int | None
    history_path: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read the settings. Raises SettingsError naming every missing one."""
        missing = [name for name in REQUIRED if not environment.get(name)]
        if missing:
            raise SettingsError("missing in the environment: " + ", ".join(missing))

        def number(name: str) -> int:
            try:
                return int(environment[name])
            except ValueError:
                raise SettingsError(f"{name}: {environment[name]!r} is not a number") from None

        return cls(
            postgres_host=environment["POSTGRES_HOST"],
            postgres_port=number("POSTGRES_PORT"),
            postgres_database=environment.get("POSTGRES_DB", "postgres"),
            postgres_user=environment.get("POSTGRES_USER", "postgres"),
            postgres_password=environment["POSTGRES_PASSWORD"],
            collection=environment.get("POSTGRES_COLLECTION_NAME", "memories"),
            hnsw=environment.get("POSTGRES_HNSW", "true").lower() not in ("0", "false", "no"),
            admin_key=environment["ADMIN_API_KEY"],
            openai_key=environment["OPENAI_API_KEY"],
            llm_model=environment.get("MEM0_DEFAULT_LLM_MODEL", "gpt-5-mini"),
            embedding_model=environment.get("MEM0_DEFAULT_EMBEDDER_MODEL", "text-embedding-3-small"),
            embedding_dimensions=number("EMBEDDING_DIMENSIONS") if environment.get("EMBEDDING_DIMENSIONS") else None,
            history_path=environment["HISTORY_DB_PATH"],
        )

    def memory_config(self) -> dict[str, Any]:
        """The dictionary for ``mem0.Memory.from_config``."""
        store: dict[str, Any] = {
            "host": self.postgres_host,
            "port": self.postgres_port,
            "dbname": self.postgres_database,
            "user": self.postgres_user,
            "password": self.postgres_password,
            "collection_name": self.collection,
        }
        embedder: dict[str, Any] = {"api_key": self.openai_key, "model": self.embedding_model}
        if not self.hnsw:
            store["hnsw"] = False
        if self.embedding_dimensions is not None:
            store["embedding_model_dims"] = self.embedding_dimensions
            embedder["embedding_dims"] = self.embedding_dimensions
        return {
            "version": "v1.1",
            "vector_store": {"provider": "pgvector", "config": store},
            "llm": {"provider": "openai", "config": {"api_key": self.openai_key, "temperature": 0.2, "model": self.llm_model}},
            "embedder": {"provider": "openai", "config": embedder},
            "history_db_path": self.history_path,
        }

"""The configuration file: YAML or JSON, unknown keys refused, secrets by name."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .ontology import EDGE_FIELDS, NODE_FIELDS, SchemaError, TypeSchema, build


class SettingsError(ValueError):
    """The configuration is wrong; the text names the place."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Secret(Part):
    """A secret by name: an environment variable or a file. It never stands in the configuration itself."""

    env: str | None = None
    file: Path | None = None

    @model_validator(mode="after")
    def one(self) -> Secret:
        if (self.env is None) == (self.file is None):
            raise ValueError("give exactly one of env and file")
        return self

    def read(self, environment: Mapping[str, str] = os.environ) -> str:
        """The value. Raises SettingsError if it is missing or empty."""
        if self.env is not None:
            value = environment.get(self.env, "")
            where = f"environment variable {self.env}"
        else:
            assert self.file is not None
            where = f"file {self.file}"
            try:
                value = self.file.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise SettingsError(f"{where}: {error.strerror}") from None
        if not value:
            raise SettingsError(f"{where}: is not set")
        return value


class Listen(Part):
    """Where the gateway listens. An address that is not loopback has to be allowed in so many words, since the token travels in the clear."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8190
    allow_remote: bool = False

    @model_validator(mode="after")
    def loopback(self) -> Listen:
        try:
            local = ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            local = self.host == "localhost"
        if not local and not self.allow_remote:
            raise ValueError(f"{self.host} is not loopback; set allow_remote: true, and put TLS in front of it")
        return self


class Database(Part):
    """Neo4j, or FalkorDB, where ``uri`` is ``redis://HOST:PORT`` (``rediss`` with TLS).

    ``retry_seconds`` is how long the driver tries again before a call fails.
    """

    provider: Literal["neo4j", "falkordb"] = "neo4j"
    uri: str
    user: str | None = None
    password: Secret | None = None
    name: str | None = None
    retry_seconds: Annotated[float, Field(gt=0)] = 5
    connect_seconds: Annotated[float, Field(gt=0)] = 5
    pool: Annotated[int, Field(ge=1)] = 50

    @model_validator(mode="after")
    def fits(self) -> Database:
        scheme = self.uri.partition("://")[0]
        if self.provider == "falkordb":
            if scheme not in ("redis", "rediss"):
                raise ValueError("uri: FalkorDB's is redis://HOST:PORT, or rediss://HOST:PORT with TLS")
            if "@" in self.uri:
                raise ValueError("uri: the account does not belong here; there are user and password")
            if self.name is not None:
                raise ValueError("name: on FalkorDB each group is a graph of its own")
        else:
            if scheme in ("redis", "rediss"):
                raise ValueError("provider: redis:// is FalkorDB's; write provider: falkordb")
            if self.password is None:
                raise ValueError("password: missing")
        return self


class Model(Part):
    """An OpenAI-compatible endpoint. Without ``base_url``, OpenAI's own. ``timeout_seconds`` is for one request; the SDK makes up to ``retries`` + 1."""

    base_url: str | None = None
    api_key: Secret
    timeout_seconds: Annotated[float, Field(gt=0)] = 120
    retries: Annotated[int, Field(ge=0, le=10)] = 2


class Llm(Model):
    """The chat model. ``api``: ``responses`` is the library's OpenAIClient, ``chat`` its OpenAIGenericClient, for servers that have only chat completions."""

    api: Literal["responses", "chat"] = "responses"
    structured_output: Literal["json_schema", "json_object"] = "json_schema"
    model: str | None = None
    small_model: str | None = None
    temperature: float | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None


class Embedder(Model):
    model: str = "text-embedding-3-small"
    dimensions: Annotated[int, Field(ge=1)] = 1024


class Reranker(Model):
    """The cross encoder: one chat of one token for each candidate."""

    model: str = "gpt-4.1-nano"


class Types(Part):
    """Custom entity and edge types by name, each a JSON Schema of an object (see ``ontology``)."""

    entity: dict[str, TypeSchema] = {}
    edge: dict[str, TypeSchema] = {}


class Queue(Part):
    """Queued writes. Without a ``path`` the gateway takes none."""

    path: Path | None = None
    keep_done: Annotated[int, Field(ge=0)] = 1000


class Limits(Part):
    """What is refused, and when a call is given up."""

    body_bytes: Annotated[int, Field(ge=1024)] = 16 << 20
    bulk_episodes: Annotated[int, Field(ge=1)] = 500
    results: Annotated[int, Field(ge=1)] = 1000
    lookup: Annotated[int, Field(ge=1)] = 1000
    page: Annotated[int, Field(ge=1)] = 1000
    waiting_per_group: Annotated[int, Field(ge=1)] = 64
    waiting: Annotated[int, Field(ge=1)] = 256
    jobs: Annotated[int, Field(ge=1)] = 10000
    concurrent_groups: Annotated[int, Field(ge=1)] = 8
    read_seconds: Annotated[float, Field(gt=0)] = 30
    write_seconds: Annotated[float, Field(gt=0)] = 900
    communities_seconds: Annotated[float, Field(gt=0)] = 600
    drain_seconds: Annotated[float, Field(gt=0)] = 900


class Settings(Part):
    """The whole file."""

    listen: Listen = Listen()
    token: Secret
    database: Database
    llm: Llm
    embedder: Embedder
    reranker: Reranker | None = None
    types: Types = Types()
    queue: Queue = Queue()
    limits: Limits = Limits()
    store_episode_content: bool = True
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def schemas(self) -> Settings:
        for kind, types, taken in (("entity", self.types.entity, NODE_FIELDS), ("edge", self.types.edge, EDGE_FIELDS)):
            for name, schema in types.items():
                try:
                    build(name, schema, taken)
                except SchemaError as error:
                    raise ValueError(f"types.{kind}.{name}: {error}") from None
        return self


def load(path: Path) -> Settings:
    """Read a configuration file. Raises SettingsError that names file, key and problem; no value is repeated in it."""
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: no YAML: {getattr(error, 'problem', 'malformed')}") from None
    if not isinstance(data, dict):
        raise SettingsError(f"{path}: the configuration is a mapping")
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        found = "; ".join(
            f"{'.'.join(str(part) for part in item['loc']) or 'the file'}: {item['msg']}" for item in error.errors(include_input=False, include_url=False)
        )
        raise SettingsError(f"{path}: {found}") from None

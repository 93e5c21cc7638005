"""The configuration file: YAML, or JSON, which is YAML too.

    listen: 127.0.0.1:8888
    key: {env: ADMIN_API_KEY}
    data: ./mem0-data
    mem0:                        # mem0ai's own configuration, as Memory.from_config takes it
      llm: {provider: openai, config: {api_key: {env: OPENAI_API_KEY}, model: gpt-5-mini}}
      ...

Any value may be ``{env: NAME}``: it is taken from the environment. An unknown key is an error, at every level of the gateway's own keys, and at the top level
of ``mem0`` and in its reranker's ``config``, where the library would drop it in silence.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

#: Stores that live in this process, in a folder.
EMBEDDED = ("qdrant",)
#: What is not served, and why.
REFUSED_STORES = {
    "faiss": "it filters behind its search, so that other users' rows hide one's own, and anything but equality finds nothing; take qdrant with a path, or pgvector",
}


class ConfigError(ValueError):
    """The configuration is wrong; the text says where and what to do."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Limits(_Strict):
    """Bounds of what is taken on."""

    workers: int = Field(default=16, ge=1, le=64, description="calls of the library that run at once")
    queue: int = Field(default=256, ge=1, le=10_000, description="requests that run or wait; more are answered 429")
    body_bytes: int = Field(default=16 << 20, ge=1024, description="longest body of a request; longer ones are answered 413")
    max_rows: int = Field(default=5000, ge=1, description="embedded store only: an add beyond it is refused, since every row costs some 115 KB of memory")


class Patches(_Strict):
    """Changes of the library's behaviour that it has no option for. All off by default."""

    observation_date: bool = Field(default=False, description="POST /memories takes observation_date, which the extraction prompt then shows")


class Config(_Strict):
    """The gateway's configuration; ``load`` reads it."""

    listen: str = "127.0.0.1:8888"
    key: str | None = None
    auth_disabled: bool = False
    data: Path = Path("mem0-data")
    entities: Literal["auto", "off"] = "auto"
    keyword_search: Literal["auto", "off"] = "auto"
    limits: Limits = Limits()
    patches: Patches = Patches()
    mem0: dict[str, Any]

    @property
    def host(self) -> str:
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])

    @property
    def store(self) -> str:
        """The vector store's provider."""
        return str(self.mem0["vector_store"]["provider"])

    @property
    def store_config(self) -> dict[str, Any]:
        return dict(self.mem0["vector_store"].get("config") or {})

    @property
    def embedded(self) -> bool:
        """Whether the store lives in this process: one process, one lock."""
        given = self.store_config
        return self.store in EMBEDDED and not (given.get("url") or given.get("host"))

    @model_validator(mode="after")
    def _checked(self) -> Config:
        host, _, port = self.listen.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise ValueError("listen: want HOST:PORT, such as 127.0.0.1:8888")
        if not self.key and not self.auth_disabled:
            raise ValueError("key: missing; write key: {env: ADMIN_API_KEY}, or auth_disabled: true on loopback")
        if self.key and self.auth_disabled:
            raise ValueError("auth_disabled: a key is given too; write one of them")
        if self.auth_disabled and not is_loopback(self.host):
            raise ValueError(f"auth_disabled: not off loopback, and listen is {self.listen}")
        return self


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """Read the file. Relative folders are relative to it. Raises ConfigError."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}") from error
    config = parse(document, environment)
    if not config.data.is_absolute():
        config.data = (path.parent / config.data).resolve()
    complete(config)
    return config


def parse(document: Any, environment: Mapping[str, str] = os.environ) -> Config:
    """Make a Config of a document. Raises ConfigError, naming every place that is wrong."""
    if not isinstance(document, dict):
        raise ConfigError("want an object with the keys " + ", ".join(Config.model_fields))
    try:
        config = Config.model_validate(_with_environment(document, environment, ""))
    except ValidationError as error:
        raise ConfigError("; ".join(_place(e["loc"]) + e["msg"].removeprefix("Value error, ") for e in error.errors())) from error
    for section in ("vector_store", "llm", "embedder", "reranker"):
        given = config.mem0.get(section)
        if given is None and section in ("llm", "embedder"):
            raise ConfigError(f"mem0.{section}: missing; the library would take OpenAI with whatever key the environment has")
        if given is not None and (not isinstance(given, dict) or not isinstance(given.get("provider"), str)):
            raise ConfigError(f"mem0.{section}: want {{provider: NAME, config: {{...}}}}")
    store = (config.mem0.get("vector_store") or {}).get("provider")
    if store in REFUSED_STORES:
        raise ConfigError(f"mem0.vector_store.provider: {store} is refused: {REFUSED_STORES[store]}")
    return config


def complete(config: Config) -> None:
    """Fill in what needs no server: embedded Qdrant and the history, both in the data folder."""
    if config.mem0.get("vector_store") is None:
        config.mem0["vector_store"] = {"provider": "qdrant"}
    store = config.mem0["vector_store"]
    given = store.get("config") or {}
    store["config"] = given
    given.setdefault("collection_name", "memories")
    if config.embedded:
        # The library's own default is a folder below /tmp; on_disk keeps what is there at a start.
        given.setdefault("path", str(config.data / "qdrant"))
        given.setdefault("on_disk", True)
    dimensions = (config.mem0["embedder"].get("config") or {}).get("embedding_dims")
    if dimensions is not None:
        given.setdefault("embedding_model_dims", dimensions)
    config.mem0.setdefault("history_db_path", str(config.data / "history.db"))


def _with_environment(value: Any, environment: Mapping[str, str], place: str) -> Any:
    if isinstance(value, dict):
        if set(value) == {"env"} and isinstance(value["env"], str):
            if not environment.get(value["env"]):
                raise ConfigError(f"{place}: the environment has no {value['env']}")
            return environment[value["env"]]
        return {name: _with_environment(inner, environment, f"{place}.{name}".lstrip(".")) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_environment(inner, environment, f"{place}[{i}]") for i, inner in enumerate(value)]
    return value


def _place(steps: tuple[int | str, ...]) -> str:
    return ".".join(str(step) for step in steps) + ": " if steps else ""

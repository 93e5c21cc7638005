"""What may be asked: bodies that refuse unknown fields, lax types and times without an offset (API.md, sections 4 to 9)."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from graphiti_core.search.search_config import SearchConfig
from graphiti_core.search.search_filters import SearchFilters
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from .errors import GatewayError, problems
from .ontology import NAME

GROUP = re.compile(r"[A-Za-z0-9_-]{1,255}\Z")
#: the database indexes names, and its keys end at about 8 kB
INDEXED = 1000


def moment(value: Any) -> datetime:
    """RFC 3339 with an offset, as UTC: to the database two zones' names for one instant are not equal.

    The library takes a text for a time until after the commit, and hides what has a time without an offset.
    """
    if not isinstance(value, str) or "T" not in value.upper():
        raise ValueError("a time is RFC 3339 text, such as 2025-03-01T09:30:00Z")
    try:
        at = datetime.fromisoformat(value.upper().replace("Z", "+00:00"))
    except ValueError:
        raise ValueError("a time is RFC 3339 text, such as 2025-03-01T09:30:00Z") from None
    if at.tzinfo is None:
        raise ValueError("a time needs an offset: Z, or +02:00")
    return at.astimezone(UTC)


def filled(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


def identifier(value: str) -> str:
    if not NAME.match(value):
        raise ValueError("must be [A-Za-z_][A-Za-z0-9_]*")
    return value


Time = Annotated[datetime, BeforeValidator(moment, json_schema_input_type=str)]
Uuid = Annotated[str, Field(min_length=1, max_length=255)]
Filled = Annotated[str, AfterValidator(filled)]
Indexed = Annotated[str, AfterValidator(filled), Field(max_length=INDEXED)]
Identifier = Annotated[str, AfterValidator(identifier), Field(max_length=255)]
Scalar = str | int | float | bool
Attributes = dict[Identifier, Scalar | list[str] | list[int] | list[float] | list[bool] | None]
JobId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]


def whole(value: Any) -> bool:
    """Whether every text in a value can be written as UTF-8: half a surrogate pair would fail in the model's client, the database, or the answer."""
    if isinstance(value, str):
        return value.isascii() or value.encode(errors="ignore").decode() == value
    if isinstance(value, dict):
        return all(whole(name) and whole(inner) for name, inner in value.items())
    return not isinstance(value, list) or all(map(whole, value))


class Body(BaseModel):
    """A body, or a part of one: null is the same as absent. Numbers are finite: Python's JSON knows NaN, and nothing is above it."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def without_nulls(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        for name, value in data.items():
            if not whole(value):
                raise ValueError(f"{name}: half a surrogate pair is no text")
        return {name: value for name, value in data.items() if value is not None}


class Write(Body):
    """What every write takes. ``job_id`` chooses the id of a queued one."""

    mode: Literal["sync", "queued"] = "sync"
    job_id: JobId | None = None

    @model_validator(mode="after")
    def queued_only(self) -> Write:
        if self.job_id is not None and self.mode != "queued":
            raise ValueError('job_id needs mode "queued"')
        return self


class Signature(Body):
    """An entry of the library's ``edge_type_map``, whose keys are pairs."""

    source: str
    target: str
    types: list[str]


class Extraction(Write):
    """What add_episode and add_episode_bulk have in common. Types are names of the configuration."""

    entity_types: list[str] | None = None
    excluded_entity_types: list[str] | None = None
    edge_types: list[str] | None = None
    edge_type_map: list[Signature] | None = None
    custom_extraction_instructions: str | None = None
    saga: Indexed | None = None


class AddEpisode(Extraction):
    """add_episode"""

    name: str
    episode_body: str
    reference_time: Time
    source_description: str = ""
    source: Literal["message", "text", "json", "fact_triple"] = "message"
    uuid: Uuid | None = None
    previous_episode_uuids: list[Uuid] | None = None
    saga_previous_episode_uuid: Uuid | None = None
    update_communities: bool = False


class RawEpisode(Body):
    """An episode of a bulk. ``uuid`` resumes one that is stored without its facts."""

    name: str
    content: str
    reference_time: Time
    source_description: str = ""
    source: Literal["message", "text", "json", "fact_triple"] = "message"
    uuid: Uuid | None = None


class AddEpisodeBulk(Extraction):
    """add_episode_bulk"""

    episodes: list[RawEpisode]


class TripletNode(Body):
    """An end of a triplet. ``uuid`` is a node of this group; without one the library looks for the name."""

    name: Indexed
    uuid: Uuid | None = None
    labels: list[Identifier] = []
    summary: str = ""
    attributes: Attributes = {}


class TripletEdge(Body):
    """The fact of a triplet."""

    name: Indexed
    fact: Filled
    uuid: Uuid | None = None
    valid_at: Time | None = None
    invalid_at: Time | None = None
    attributes: Attributes = {}


class AddTriplet(Write):
    """add_triplet"""

    source_node: TripletNode
    edge: TripletEdge
    target_node: TripletNode


class DateFilter(Body):
    """A condition on a time; only the two about null have no date."""

    comparison_operator: Literal["=", "<>", ">", "<", ">=", "<=", "IS NULL", "IS NOT NULL"]
    date: Time | None = None

    @model_validator(mode="after")
    def complete(self) -> DateFilter:
        if (self.date is None) != self.comparison_operator.startswith("IS"):
            raise ValueError("a date belongs to a comparison, and to nothing else")
        return self


#: one OR-list: the library numbers the dates of several anew, so that the last one's take the place of all
Dates = Annotated[list[Annotated[list[DateFilter], Field(min_length=1)]], Field(min_length=1, max_length=1)]


class SearchFilter(Body):
    """SearchFilters, without what the library ignores (``property_filters``) and the empty lists that make it write no Cypher."""

    node_labels: Annotated[list[Identifier], Field(min_length=1)] | None = None
    edge_types: Annotated[list[str], Field(min_length=1)] | None = None
    edge_uuids: Annotated[list[Uuid], Field(min_length=1)] | None = None
    valid_at: Dates | None = None
    invalid_at: Dates | None = None
    created_at: Dates | None = None
    expired_at: Dates | None = None

    def native(self) -> SearchFilters:
        return SearchFilters.model_validate(self.model_dump(exclude_none=True))


class Search(Body):
    """search"""

    query: str
    num_results: Annotated[int, Field(ge=1)] = 10
    center_node_uuid: Uuid | None = None
    search_filter: SearchFilter | None = None


class SearchAdvanced(Body):
    """search_: a recipe by name, or a whole ``config`` (the library's SearchConfig)."""

    query: str
    recipe: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    reranker_min_score: float | None = None
    config: dict[str, Any] | None = None
    center_node_uuid: Uuid | None = None
    bfs_origin_node_uuids: Annotated[list[Uuid], Field(min_length=1)] | None = None
    search_filter: SearchFilter | None = None

    @model_validator(mode="after")
    def one(self) -> SearchAdvanced:
        if self.config is not None and (self.recipe is not None or self.limit is not None or self.reranker_min_score is not None):
            raise ValueError("recipe, limit and reranker_min_score do not go with config, which has them itself")
        return self


class Lookup(Body):
    """By id."""

    uuids: list[Uuid]


class EpisodeLookup(Body):
    """By id, or by name."""

    uuids: list[Uuid] | None = None
    names: list[str] | None = None

    @model_validator(mode="after")
    def one(self) -> EpisodeLookup:
        if (self.uuids is None) == (self.names is None):
            raise ValueError("give exactly one of uuids and names")
        return self


class Retrieve(Body):
    """retrieve_episodes"""

    reference_time: Time
    last_n: Annotated[int, Field(ge=1)] = 10
    source: Literal["message", "text", "json", "fact_triple"] | None = None
    saga: str | None = None


class Contents(Body):
    """get_nodes_and_edges_by_episode"""

    episode_uuids: list[Uuid]


class Communities(Body):
    """build_communities"""

    timeout_seconds: Annotated[float, Field(gt=0)] | None = None


def search_config(data: dict[str, Any]) -> SearchConfig:
    """The library's SearchConfig, with unknown keys refused: the library ignores them, and a misspelt one would change what is measured."""
    found = unknown(SearchConfig, data, ("config",))
    if found:
        raise GatewayError("invalid_search_config", "the SearchConfig has unknown fields", errors=found)
    try:
        json.dumps(data, allow_nan=False)
    except ValueError:
        raise GatewayError("invalid_search_config", "a number of the SearchConfig is not finite", errors=[]) from None
    try:
        config = SearchConfig.model_validate(data)
    except ValidationError as error:
        raise GatewayError("invalid_search_config", "the SearchConfig is not one of the library's", errors=problems(error, ("config",))) from None
    if config.limit < 1:
        raise GatewayError("invalid_search_config", "limit is at least 1", errors=[{"path": "config.limit", "message": "must be at least 1"}])
    return config


def unknown(model: type[BaseModel], data: dict[str, Any], at: tuple[str | int, ...]) -> list[dict[str, str]]:
    """Keys of ``data`` that ``model`` and the models in it do not have, as ``{path, message}``."""
    out: list[dict[str, str]] = []
    for name, value in data.items():
        field = model.model_fields.get(name)
        if field is None:
            out.append({"path": ".".join(map(str, (*at, name))), "message": "unknown field"})
        elif isinstance(value, dict):
            for inner in getattr(field.annotation, "__args__", (field.annotation,)):
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    out += unknown(inner, value, (*at, name))
    return out

"""Custom entity and edge types: JSON Schema in the configuration, pydantic models for the library.

Only what the library can store is taken: an object whose properties are text, whole number, number, boolean, or a list of one of them. Nested objects would cost every model call of an
episode and then fail in the database; a field that has the name of a field of the library's own nodes or edges would be refused there, or, on edges, silently dropped.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode
from pydantic import BaseModel, ConfigDict, Field, create_model

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

NODE_FIELDS = frozenset(EntityNode.model_fields)
#: the library checks node fields only; these would vanish without a word
EDGE_FIELDS = frozenset(EntityEdge.model_fields)

#: what every node has, and what excludes those without a custom type
ENTITY = "Entity"

SCALARS: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}


class SchemaError(ValueError):
    """A type schema that cannot be used; the text says why."""


class Property(BaseModel):
    """A property of a type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["string", "integer", "number", "boolean", "array"]
    description: str | None = None
    enum: list[str] | None = None
    items: Property | None = None


class TypeSchema(BaseModel):
    """The JSON Schema of a type. ``required`` fields make the library fail when the model leaves one out: prefer optional ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["object"] = "object"
    description: str | None = None
    properties: dict[str, Property] = {}
    required: list[str] = []

    def wire(self) -> dict[str, Any]:
        """As GET /v1/info shows it."""
        return self.model_dump(exclude_none=True, exclude_defaults=True)


def build(name: str, schema: TypeSchema, taken: frozenset[str]) -> type[BaseModel]:
    """The pydantic model of a type. Raises SchemaError for a name that is no identifier, a field that the library has itself, and a shape that it cannot store."""
    if not NAME.match(name):
        raise SchemaError("a type's name is [A-Za-z_][A-Za-z0-9_]*")
    if name == ENTITY:
        raise SchemaError("Entity is what every node is; it needs no schema")
    for field in schema.required:
        if field not in schema.properties:
            raise SchemaError(f"required names {field}, which is no property")
    fields: dict[str, Any] = {}
    for field, item in schema.properties.items():
        if not NAME.match(field) or field.startswith("_") or hasattr(BaseModel, field):
            raise SchemaError(f"property {field}: not usable as the name of a field")
        if field in taken:
            raise SchemaError(f"property {field}: the library has a field of this name itself")
        kind = annotation(field, item)
        if field in schema.required:
            fields[field] = (kind, Field(description=item.description))
        else:
            fields[field] = (kind | None, Field(default=None, description=item.description))
    return create_model(name, __doc__=schema.description or "", **fields)


def annotation(field: str, item: Property) -> Any:
    if item.type == "array":
        if item.items is None or item.items.type == "array":
            raise SchemaError(f"property {field}: a list needs items of text, integer, number or boolean")
        return list[annotation(field, item.items)]  # type: ignore[misc]  # made at run time
    if item.items is not None:
        raise SchemaError(f"property {field}: items belong to a list")
    if item.enum is not None:
        if item.type != "string" or not item.enum:
            raise SchemaError(f"property {field}: enum is a list of texts, not an empty one")
        return Literal[tuple(item.enum)]
    return SCALARS[item.type]

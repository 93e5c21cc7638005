"""Which filters and ids are refused before the library sees them, because it or the store would make of them what nobody asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import Refused

IDS = ("user_id", "agent_id", "run_id")
LOGIC = ("AND", "OR", "NOT")
#: Stores that drop a condition ``key: "*"`` instead of asking for the key: rows that lack it come back too.
WILDCARD_DROPPED = ("qdrant", "chroma", "milvus")


def check_ids(ids: Mapping[str, Any]) -> None:
    """Refuse ids that mean more than one: ``*`` is everybody's to pgvector, Qdrant and Chroma."""
    for name, value in ids.items():
        if value is None:
            raise Refused("id_refused", f"{name}: null is no id")
        if not isinstance(value, str):
            raise Refused("id_refused", f"{name}: want a text; a list, an object or a number would match nothing, or more than is meant")
        if value.strip() == "*":
            raise Refused("id_refused", f"{name}: '*' would open every user's memories")


def check(filters: Mapping[str, Any], store: str) -> None:
    """Refuse filters that could leave the scope: an id inside AND takes the place of the one outside. Raises Refused."""
    check_ids({name: filters[name] for name in IDS if name in filters})
    for name, value in filters.items():
        if name in IDS:
            continue
        if name.startswith("$"):
            raise Refused("filter_refused", f"filters.{name}: the library's inner form; write {', '.join(LOGIC)}")
        _check_inner(f"filters.{name}", value)
        if store in WILDCARD_DROPPED:
            _check_wildcard(f"filters.{name}", value)


def _check_inner(place: str, value: Any) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name in IDS:
                raise Refused("id_refused", f"{place}.{name}: an id in here would take the place of the scope's; ids stand at the top of filters")
            if name.startswith("$"):
                raise Refused("filter_refused", f"{place}.{name}: the library's inner form; write {', '.join(LOGIC)}")
            _check_inner(f"{place}.{name}", inner)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            _check_inner(f"{place}[{i}]", inner)


def _check_wildcard(place: str, value: Any) -> None:
    if value == "*":
        raise Refused("filter_refused", f"{place}: this store drops the condition '*' instead of asking for the key; write {{eq: '*'}} for the text itself")
    if isinstance(value, list) and place.rpartition(".")[2] in LOGIC:
        for i, condition in enumerate(value):
            if isinstance(condition, Mapping):
                for name, inner in condition.items():
                    _check_wildcard(f"{place}[{i}].{name}", inner)

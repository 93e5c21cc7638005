"""Which failure becomes which answer: one shape, stable codes (API.md, section 2)."""

from __future__ import annotations

import json
import logging
from typing import Any

import openai
from graphiti_core.errors import EdgeNotFoundError, EdgesNotFoundError, GraphitiError, NodeNotFoundError
from graphiti_core.llm_client.errors import EmptyResponseError, RateLimitError, RefusalError
from neo4j.exceptions import DriverError, Neo4jError, ServiceUnavailable, SessionExpired, TransientError
from pydantic import ValidationError

log = logging.getLogger("graphiti_gateway")

#: code -> HTTP status
STATUS: dict[str, int] = {
    "unauthorized": 401,
    "not_found": 404,
    "no_such_route": 404,
    "method_not_allowed": 405,
    "job_exists": 409,
    "job_running": 409,
    "queue_disabled": 409,
    "body_too_large": 413,
    "invalid_request": 422,
    "invalid_group_id": 422,
    "unknown_recipe": 422,
    "invalid_search_config": 422,
    "invalid_search_filter": 422,
    "center_node_required": 422,
    "reranker_not_configured": 422,
    "unknown_type": 422,
    "reference_not_found": 422,
    "bulk_too_large": 422,
    "unsupported": 422,
    "library_refused": 422,
    "queue_full": 429,
    "llm_rate_limited": 429,
    "internal": 500,
    "llm_failed": 502,
    "database_error": 502,
    "database_unavailable": 503,
    "shutting_down": 503,
    "deadline_exceeded": 504,
}

#: seconds after which the same request may succeed
RETRY_AFTER: dict[int, str] = {429: "2", 503: "5"}


class GatewayError(Exception):
    """An answer that is not the result: ``code`` is a key of STATUS, ``details`` go over the wire as they are."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details

    @property
    def status(self) -> int:
        return STATUS[self.code]

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": RETRY_AFTER[self.status]} if self.status in RETRY_AFTER else {}

    def body(self) -> dict[str, Any]:
        """The object under ``error``."""
        return {"code": self.code, "message": self.message, "details": self.details}


def not_found(kind: str, identifier: str) -> GatewayError:
    """The answer for what this group does not have, whether another group has it or nobody."""
    return GatewayError("not_found", f"this group has no such {kind}", kind=kind, id=identifier)


def problems(error: ValidationError, prefix: tuple[str | int, ...] = ()) -> list[dict[str, str]]:
    """The findings of pydantic as ``{path, message}``. The value itself is left out: it is somebody's text."""
    return [
        {"path": path_of((*prefix, *found["loc"])), "message": found["msg"]}
        for found in error.errors(include_url=False, include_input=False, include_context=False)
    ]


def path_of(location: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in location)


def translate(error: BaseException, *, writing: bool) -> GatewayError:
    """What a failure inside the library becomes. ``writing``: a model was asked, so that a malformed object is its answer and not the caller's request."""
    if isinstance(error, GatewayError):
        return error
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    match error:
        case RateLimitError() | openai.RateLimitError():
            return GatewayError("llm_rate_limited", "the model's provider limits the rate", exception=name)
        case openai.OpenAIError() | RefusalError() | EmptyResponseError() | json.JSONDecodeError():
            status = getattr(error, "status_code", None)
            return GatewayError(
                "llm_failed",
                f"the model, the embedder or the reranker failed: {type(error).__name__}",
                exception=name,
                **({"status": status} if status else {}),
            )
        case ValidationError() if writing:
            return GatewayError("llm_failed", "the model's answer does not have the shape that was asked for", exception=name)
        case ServiceUnavailable() | SessionExpired() | ConnectionError():
            return GatewayError("database_unavailable", "the database does not answer", exception=name)
        case Neo4jError():
            if isinstance(error, TransientError):
                return GatewayError("database_unavailable", "the database is busy or not ready", exception=name, database_code=error.code)
            return GatewayError("database_error", "the database refused a statement", exception=name, database_code=error.code)
        case _ if name.startswith("redis.exceptions."):
            # FalkorDB's; its package is there only where it is used.
            if type(error).__name__ in ("ConnectionError", "TimeoutError", "BusyLoadingError", "MaxConnectionsError"):
                return GatewayError("database_unavailable", "the database does not answer", exception=name)
            return GatewayError("database_error", "the database refused a statement", exception=name, database_code=str(error)[:80].split(" ")[0])
        case DriverError():
            return GatewayError("database_unavailable", "the database does not answer", exception=name)
        case NodeNotFoundError() | EdgeNotFoundError() | EdgesNotFoundError():
            return GatewayError("not_found", "the library does not find what the request names", kind="object", id="")
        case GraphitiError() | ValueError():
            return GatewayError("library_refused", str(error)[:500], exception=name)
    log.error("a failure without a code of its own", exc_info=error)
    return GatewayError("internal", f"the gateway or the library failed: {type(error).__name__}", exception=name)

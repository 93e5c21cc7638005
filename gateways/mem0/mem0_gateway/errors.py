"""Which failure of the library becomes which answer.

The caller's mistakes are 400 or 404 with ``detail``, as mem0's server has them; those that only the gateway sees also have a ``code``. Whatever the model
provider or the database did is 502 with ``code`` and ``request_id``, found by the exception's class along its chain of causes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from fastapi import HTTPException
from mem0.exceptions import ValidationError as MemoryValidationError

log = logging.getLogger("mem0_gateway")

Result = TypeVar("Result")

#: exception class name -> code of a 502
CODES: dict[str, str] = {
    "AuthenticationError": "provider_auth_failed",
    "PermissionDeniedError": "provider_auth_failed",
    "RateLimitError": "provider_rate_limited",
    "APITimeoutError": "provider_timeout",
    "APIConnectionError": "provider_unavailable",
    "InternalServerError": "provider_unavailable",
    "BadRequestError": "provider_bad_request",
    "EmptyAnswer": "provider_empty_answer",
    "OperationalError": "datastore_unavailable",
    "PoolTimeout": "datastore_unavailable",
    "RerankFailed": "rerank_failed",
}

#: code of a 502 -> what the server says
DETAILS: dict[str, str] = {
    "provider_auth_failed": "Provider rejected the request (authentication). Check your LLM provider API key on the Configuration page.",
    "provider_rate_limited": "Provider rate limit hit. Retry shortly.",
    "provider_timeout": "Provider timed out. Retry shortly.",
    "provider_unavailable": "Provider is unreachable or returned a server error.",
    "provider_bad_request": "Provider rejected the request as malformed.",
    "provider_empty_answer": "The LLM answered nothing; no memory was made.",
    "datastore_unavailable": "The memory database is unreachable.",
    "rerank_failed": "The reranker failed; nothing is in its order.",
    "unknown": "Upstream provider error.",
}


class Refused(Exception):
    """The request asks for what the library would lose, widen or do otherwise: 400 with a code, and nothing was done."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class StoreFull(Exception):
    """The embedded store has as many rows as it may: 507, and nothing was done."""


class EmptyAnswer(Exception):
    """The model answered nothing where the library needs a text; nothing was stored."""


class Upstream(Exception):
    """The provider or the store failed; ``code`` is a key of DETAILS, ``more`` what is known beyond it."""

    def __init__(self, code: str, more: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.more = more


def code_of(error: BaseException) -> str:
    """The code of a 502 for an exception: the first known class along its causes."""
    at: BaseException | None = error
    while at is not None:
        if code := CODES.get(type(at).__name__):
            return code
        at = at.__cause__ or at.__context__
    return "unknown"


def call(work: Callable[[], Result], *, blame: str = "caller") -> Result:
    """Run a call of the library and translate its failure.

    ``blame``: "caller" makes ValueError and the library's validation error 404 ("not found" in the text) or 400; "request" only 400, for routes
    without an id; "upstream" takes everything for a failure behind the server, as mem0's server does on its list and delete routes.
    """
    try:
        return work()
    except (Refused, StoreFull):
        raise
    except SystemExit as error:
        # spaCy's downloader ends the process where its index answers 404.
        log.exception("the library wanted to end the process")
        raise Upstream("unknown") from error
    except Exception as error:
        if blame != "upstream" and isinstance(error, (ValueError, MemoryValidationError)):
            missing = blame == "caller" and isinstance(error, ValueError) and "not found" in str(error).lower()
            raise HTTPException(404 if missing else 400, str(error)) from error
        code = code_of(error)
        if code == "unknown":
            log.exception("a failure without a code")
        raise Upstream(code, str(error) if code == "rerank_failed" else "") from error

"""The reranker, counted. None of the library's rerankers ever fails: an LLM's error or an answer without a number is the score 0.5, "87/100" is 1.0, a service
that is down gives every row 0.0 in the old order, and one that raises is left out. So the calls below it are watched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mem0.utils.factory import RerankerFactory

from .config import ConfigError


@dataclass
class Tally:
    """What happened in one request."""

    #: rows in the order of the search, as the reranker got them
    candidates: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    failed: int = 0
    problem: str = ""

    def fail(self, problem: str) -> None:
        self.failed += 1
        self.problem = self.problem or problem


_tally: ContextVar[Tally | None] = ContextVar("mem0_gateway_rerank", default=None)


class RerankFailed(Exception):
    """At least one call of the reranker failed. ``tally`` has the rows in the order of the search."""

    def __init__(self, provider: str, tally: Tally) -> None:
        super().__init__(f"the reranker {provider} failed in {tally.failed} of {tally.calls} calls: {tally.problem}")
        self.tally = tally


def build(section: dict[str, Any]) -> Counted:
    """Make the configured reranker. Raises ConfigError for a provider, a key or a package that is not there, and for a config key that the library would drop."""
    provider, given = section["provider"], dict(section.get("config") or {})
    if provider not in RerankerFactory.provider_to_class:
        raise ConfigError(f"mem0.reranker.provider: there is no {provider}; there are {', '.join(sorted(RerankerFactory.provider_to_class))}")
    fields = RerankerFactory.provider_to_class[provider][1].model_fields
    if unknown := sorted(set(given) - set(fields)):
        raise ConfigError(f"mem0.reranker.config: {provider} has no {', '.join(unknown)}, and would drop it in silence; it has {', '.join(sorted(fields))}")
    if unknown := sorted(set(section) - {"provider", "config"}):
        raise ConfigError(f"mem0.reranker: unknown {', '.join(unknown)}; it has provider and config")
    try:
        return Counted(provider, RerankerFactory.create(provider, given))
    except (ImportError, ValueError, TypeError) as error:
        raise ConfigError(f"mem0.reranker: {error}") from error


class Counted:
    """A reranker of the library with its calls counted, in place of it."""

    def __init__(self, provider: str, inner: Any) -> None:
        self.provider = provider
        self._inner = inner
        for owner, name, watch in (
            (getattr(inner, "llm", None), "generate_response", _watched_score),  # llm_reranker
            (getattr(inner, "client", None), "rerank", _watched),  # cohere
            (getattr(getattr(inner, "client", None), "models", None), "rerank", _watched),  # zero_entropy
            (inner, "model", _watched_model),  # sentence_transformer, huggingface
        ):
            call = getattr(owner, name, None)
            if callable(call):
                setattr(owner, name, watch(call))
                break

    def rerank(self, query: str, documents: list[dict[str, Any]], top_k: int | None = None) -> list[dict[str, Any]]:
        """What the library calls with the rows that its search returned, at most ``top_k``."""
        tally = _tally.get()
        if tally is None:
            raise RuntimeError("rerank outside of a counted search")
        tally.candidates = list(documents)
        rows: list[dict[str, Any]] = self._inner.rerank(query, documents, top_k)
        if len(rows) != len(documents) and not tally.failed:
            tally.fail(f"it answered {len(rows)} of {len(documents)} rows")
        return rows

    def search(self, search: Callable[[], list[dict[str, Any]]]) -> tuple[list[dict[str, Any]], Tally]:
        """Run a search that reranks, and count. Raises RerankFailed where a call failed, or a row came back without its score."""
        tally = Tally()
        token = _tally.set(tally)
        try:
            rows = search()
        finally:
            _tally.reset(token)
        if not tally.failed and any("rerank_score" not in row for row in rows):
            tally.fail("it raised, and the library went on without it")
        if tally.failed:
            raise RerankFailed(self.provider, tally)
        return rows, tally


def _watched(call: Callable[..., Any], check: Callable[[Any], str] = lambda _: "") -> Callable[..., Any]:
    def watched(*arguments: Any, **named: Any) -> Any:
        tally = _tally.get()
        if tally is None:
            return call(*arguments, **named)
        if tally.failed:
            # One row without a score spoils the order of all: the rest is not paid for.
            raise RuntimeError("left out: an earlier call of this request failed")
        tally.calls += 1
        try:
            answer = call(*arguments, **named)
        except Exception as error:
            tally.fail(f"{type(error).__name__}: {error}")
            raise
        if problem := check(answer):
            tally.fail(problem)
        return answer

    return watched


def _watched_score(call: Callable[..., Any]) -> Callable[..., Any]:
    return _watched(call, unusable_score)


def _watched_model(model: Callable[..., Any]) -> Any:
    """A model called as a function (huggingface), or by predict (sentence_transformer)."""
    if callable(getattr(model, "predict", None)):
        model.predict = _watched(model.predict)  # type: ignore[attr-defined]
        return model
    return _watched(model)


def unusable_score(text: Any) -> str:
    """Why an LLM's answer is no score, "" where it is one: the library takes the first number, clamps it, and takes 0.5 where there is none."""
    if not isinstance(text, str):
        return "the LLM answered no text"
    found = re.findall(r"-?\d+\.\d+", text) or re.findall(r"-?\d+", text)
    if not found:
        return f"the LLM answered no number: {text[:80]!r}"
    if not 0 <= float(found[0]) <= 1:
        return f"the LLM answered a number outside of 0 to 1: {text[:80]!r}"
    return ""

"""The library, opened and closed: ``mem0.Memory`` with what its traps ask for, and its methods one to one.

Every method is synchronous and runs in a thread of ``work.Work``, which also keeps apart what must not run at once.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import threading
from typing import Any

from mem0 import Memory
from mem0.configs.base import MemoryConfig
from mem0.memory import main as memory_main
from mem0.memory.utils import parse_messages

from . import __version__, filters, patches, rerank, stores
from .config import Config, ConfigError
from .errors import EmptyAnswer, Refused, StoreFull
from .filters import IDS

log = logging.getLogger("mem0_gateway")

#: keys of a stored payload that an item shows at its top level in a listing of everything
OWN = (*IDS, "hash", "expiration_date", "created_at", "updated_at")
PROCEDURAL = "procedural_memory"
#: the most entity rows that the library itself lists (mem0.memory.main)
ENTITY_ROWS = 10_000
EVERYTHING = 1_000_000
MODEL = "en_core_web_sm"


class Library:
    """``mem0.Memory`` behind the gateway. Raises ConfigError where the configuration cannot work."""

    def __init__(self, config: Config) -> None:
        self.config = config
        if unknown := sorted(set(config.mem0) - set(MemoryConfig.model_fields)):
            raise ConfigError(f"mem0: {', '.join(unknown)}: the library has no such key, and would drop it in silence; it has {', '.join(MemoryConfig.model_fields)}")
        self.entities = _prepare_entities(config.entities)
        if config.patches.observation_date:
            patches.install_observation_date()
        # Before the store: a Memory that fails at its reranker leaves an embedded store locked.
        section = config.mem0.get("reranker")
        self.reranker = rerank.build(section) if section else None
        self.lock = threading.RLock()
        self.memory: Any = Memory.from_config({name: value for name, value in config.mem0.items() if name != "reranker"})
        self.memory.reranker = self.reranker
        try:
            self._prepare_stores()
        except BaseException:
            self.close()
            raise

    def _prepare_stores(self) -> None:
        """Lock an embedded store, create the tables before parallel first writes race for them, and open the entity store where deletions need it."""
        memory, config = self.memory, self.config
        if config.embedded and not isinstance(memory.vector_store, stores.Locked):
            memory.vector_store = stores.Locked(memory.vector_store, self.lock)
        if config.store == "qdrant" and config.keyword_search == "off":
            memory.vector_store._store._bm25_encoder = False  # else its model is fetched by the first write
        memory.vector_store.list(filters={"user_id": "probe"}, top_k=1)
        if self.entities == "model" or stores.has_entities(memory.vector_store, memory.collection_name):
            with self.lock:
                store = memory.entity_store
                if config.embedded:
                    memory._entity_store = stores.Locked(store, self.lock)
                store.list(filters={"user_id": "probe"}, top_k=1)
        self.keyword_search = memory.vector_store.keyword_search("probe", top_k=1, filters={"user_id": "probe"}) is not None

    def close(self) -> None:
        """Close the history and the store. What was answered is stored."""
        memory = self.memory
        store = memory.vector_store
        memory.close()
        for name in ("connection_pool", "client"):
            if (resource := getattr(store, name, None)) is not None and hasattr(resource, "close"):
                resource.close()

    def capabilities(self) -> dict[str, Any]:
        """What this server can, beyond mem0's own."""
        config = self.config
        return {
            "gateway": __version__,
            "library": importlib.metadata.version("mem0ai"),
            "store": config.store,
            "exact": config.embedded or (config.store == "pgvector" and config.store_config.get("hnsw") is False),
            "keyword_search": self.keyword_search,
            "reranker": self.reranker.provider if self.reranker else None,
            "explain": True,
            "procedural": True,
            "vision": self.vision,
            "entities": self.entities,
            "embedded": config.embedded,
            "max_rows": config.limits.max_rows if config.embedded else None,
            "patches": [name for name, on in config.patches if on],
        }

    @property
    def vision(self) -> bool:
        return bool((self.config.mem0["llm"].get("config") or {}).get("enable_vision"))

    def alive(self) -> None:
        """Touch the store; raises what it raises."""
        self.memory.vector_store.list(filters={"user_id": "probe"}, top_k=1)

    # Writing

    def add(self, messages: list[dict[str, Any]], observation_date: str | None = None, **arguments: Any) -> Any:
        """``Memory.add``. Raises Refused for what the library would lose or turn into nothing."""
        filters.check_ids({name: arguments[name] for name in IDS if name in arguments})
        procedural = arguments.get("memory_type") == PROCEDURAL
        if procedural and not arguments.get("agent_id"):
            raise Refused("procedural_needs_agent", "memory_type: a procedural memory needs agent_id; without one mem0 would make an ordinary add of it")
        check_messages(messages, self.vision)
        if not procedural and arguments.get("infer", True) and not parse_messages(messages).strip():
            raise Refused("nothing_to_extract", "messages: none of a user, an assistant or a system has a text; the embedder would get an empty one")
        if observation_date is not None and not self.config.patches.observation_date:
            raise Refused("observation_date_off", "observation_date: needs patches.observation_date in the gateway's configuration; mem0 itself has no such field")
        self._room()
        try:
            with patches.observed(patches.check_day(observation_date) if observation_date is not None else None):
                return self.memory.add(messages, **arguments)
        except ValueError as error:
            if procedural and "no content" in str(error):
                raise EmptyAnswer(str(error)) from error
            raise

    def _room(self) -> None:
        if self.config.embedded and (rows := self.memory.vector_store.rows()) >= self.config.limits.max_rows:
            raise StoreFull(f"the embedded store has {rows} rows, and limits.max_rows is {self.config.limits.max_rows}; delete some, or take pgvector")

    def update(self, memory_id: str, **arguments: Any) -> Any:
        return self.memory.update(memory_id=memory_id, **arguments)

    def delete(self, memory_id: str) -> Any:
        return self.memory.delete(memory_id=memory_id)

    def delete_scope(self, ids: dict[str, str]) -> None:
        filters.check_ids(ids)
        self.memory.delete_all(**ids)

    def delete_scope_counted(self, ids: dict[str, str], buffer: bool) -> dict[str, Any]:
        """Delete a scope's memories, with its last messages where ``buffer`` says so, and count. The library itself has no call that clears the buffer."""
        filters.check_ids(ids)
        before = self._count(ids)
        self.memory.delete_all(**ids)
        left = self._count(ids)
        return {"message": "All relevant memories deleted", "deleted": before - left, "buffer_rows": self._clear_buffer(ids) if buffer else None}

    def _count(self, ids: dict[str, str]) -> int:
        trimmed = {name: value.strip() for name, value in ids.items()}
        return len(self.memory.vector_store.list(filters=trimmed, top_k=EVERYTHING)[0])

    def _clear_buffer(self, ids: dict[str, str]) -> int:
        """Remove the buffers of every scope whose memories a deletion by these ids removes."""
        wanted = set(memory_main._build_session_scope({name: value.strip() for name, value in ids.items()}).split("&"))
        database = self.memory.db
        with database._lock:
            scopes = [row[0] for row in database.connection.execute("SELECT DISTINCT session_scope FROM messages")]
            removed = 0
            for scope in scopes:
                if wanted <= set(scope.split("&")):
                    removed += database.connection.execute("DELETE FROM messages WHERE session_scope = ?", (scope,)).rowcount
            database.connection.commit()
        return removed

    def reset(self) -> None:
        self.memory.reset()
        self._prepare_stores()

    # Reading

    def search(self, query: str, conditions: dict[str, Any], **arguments: Any) -> dict[str, Any]:
        """``Memory.search`` as mem0's server calls it."""
        filters.check(conditions, self.config.store)
        found: dict[str, Any] = self.memory.search(query=query, filters=conditions, **arguments)
        return found

    def search_reranked(self, query: str, conditions: dict[str, Any], pool: int | None, on_error: str, top_k: int = 20, **arguments: Any) -> dict[str, Any]:
        """``Memory.search`` with its reranker. ``pool``: search with that many instead, rerank them all, and cut to top_k."""
        reranker = self.reranker
        if reranker is None:
            raise Refused("rerank_not_configured", "rerank: this gateway has no reranker; put one under mem0.reranker")
        wide = max(top_k, pool or 0)
        applied = True
        try:
            rows, tally = reranker.search(lambda: self.search(query, conditions, top_k=wide, rerank=True, **arguments)["results"])
        except rerank.RerankFailed as error:
            if on_error != "plain":
                raise
            log.warning("%s", error)
            applied, tally = False, error.tally
            rows = tally.candidates
        return {
            "results": rows[:top_k],
            "rerank": {"applied": applied, "provider": reranker.provider, "candidates": len(tally.candidates), "calls": tally.calls, "failed": tally.failed},
        }

    def get(self, memory_id: str) -> Any:
        return self.memory.get(memory_id)

    def history(self, memory_id: str) -> Any:
        return self.memory.history(memory_id=memory_id)

    def list(self, conditions: dict[str, Any], **arguments: Any) -> Any:
        """``Memory.get_all``, with AND, OR and NOT translated as ``search`` does: untranslated, pgvector answers an empty list."""
        filters.check(conditions, self.config.store)
        if self.memory._has_advanced_operators(conditions):
            conditions = self.memory._process_metadata_filters(conditions)
        return self.memory.get_all(filters=conditions, **arguments)

    def list_everything(self, top_k: int) -> dict[str, Any]:
        rows = self.memory.vector_store.list(top_k=top_k)[0]
        return {"results": [listed(row.id, row.payload) for row in rows]}

    def last_messages(self, ids: dict[str, str], limit: int) -> dict[str, Any]:
        """The messages that the extractor is shown with the scope's next add."""
        filters.check_ids(ids)
        scope = memory_main._build_session_scope({name: value.strip() for name, value in ids.items()})
        return {"results": self.memory.db.get_last_messages(scope, limit=limit)}

    def entity_rows(self, ids: dict[str, str], top_k: int) -> dict[str, Any]:
        filters.check_ids(ids)
        if self.memory._entity_store is None:
            return {"results": []}
        rows = self.memory._entity_store.list(filters={name: value.strip() for name, value in ids.items()}, top_k=top_k)[0]
        return {"results": [{"id": str(row.id), **(row.payload or {})} for row in rows]}


def _prepare_entities(wanted: str) -> str:
    """Whether entities are extracted: "off" (no spaCy, or not wanted), "model", "failed" (spaCy without its model).

    Without its model the library would download it with the first call, and end the process where the index answers 404. So it is told that the model is
    missing, unless it is there.
    """
    from mem0.utils import spacy_models

    state = "off"
    if wanted == "auto" and importlib.util.find_spec("spacy") is not None:
        state = "model" if importlib.util.find_spec(MODEL) is not None and spacy_models.get_nlp_full() is not None else "failed"
    if state != "model":
        spacy_models._load_failed_full = spacy_models._load_failed_lemma = True
    return state


def check_messages(messages: list[dict[str, Any]], vision: bool) -> None:
    """Refuse content parts that the library would drop: images without a model that sees, and words beside images, which that model's description replaces."""
    for i, message in enumerate(messages):
        content = message["content"]
        if isinstance(content, str):
            continue
        kinds = {str(part.get("type")) for part in (content if isinstance(content, list) else [content])}
        if unknown := sorted(kinds - {"text", "image_url"}):
            raise Refused("content_refused", f"messages[{i}].content: parts of type {', '.join(unknown)} would be lost; there are text and image_url")
        if not vision and "image_url" in kinds:
            raise Refused("vision_off", f"messages[{i}].content: without enable_vision in mem0.llm.config images are dropped")
        if vision and "text" in kinds:
            raise Refused("text_lost", f"messages[{i}].content: with enable_vision the model's description replaces the words; send them as a text of their own message")


def listed(memory_id: str, payload: dict[str, Any]) -> dict[str, Any]:
    """An item of the listing of everything: own keys at the top, null where absent, the rest of the payload as metadata."""
    item: dict[str, Any] = {"id": memory_id, "memory": payload.get("data")}
    item.update({name: payload.get(name) for name in OWN})
    item["metadata"] = {name: value for name, value in payload.items() if name != "data" and name not in OWN}
    return item

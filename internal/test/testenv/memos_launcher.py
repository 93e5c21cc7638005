"""Starts the MemOS server of the published package MemoryOS: launch.py PORT.

Two settings have no environment variable and are changed before the application is imported: the chunker's tokenizer, which is a download from a model hub,
becomes the count of characters; and Qdrant runs embedded where LAUNCH_QDRANT_PATH names a folder. The embedded one is not safe for MemOS's threads: concurrent
writes leave its lists of vectors and points with different lengths, and every later search fails. So it gets one call at a time.
"""

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import memos.api.config as config


def without_hub(value: Any) -> Any:
    """The configuration with every tokenizer "gpt2" replaced."""
    if isinstance(value, dict):
        if value.get("tokenizer_or_token_counter") == "gpt2":
            value["tokenizer_or_token_counter"] = "character"
        for inner in value.values():
            without_hub(inner)
    return value


def wrap(name: str, change: Any) -> None:
    """Let a configuration function pass its result through a change."""
    original = getattr(config.APIConfig, name)
    setattr(config.APIConfig, name, staticmethod(lambda *args, **kwargs: change(original(*args, **kwargs))))


def embedded(value: dict[str, Any]) -> dict[str, Any]:
    """The community graph's configuration with Qdrant in a folder."""
    value["vec_config"]["config"].update(host=None, port=None, path=os.environ["LAUNCH_QDRANT_PATH"])
    return value


def one_at_a_time(kind: type) -> None:
    """Let the public methods of a class run one after another, for all its objects."""
    lock = threading.RLock()

    def locked(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with lock:
                return method(*args, **kwargs)

        return call

    for name, member in list(vars(kind).items()):
        if callable(member) and not name.startswith("_"):
            setattr(kind, name, locked(member))


wrap("get_product_default_config", without_hub)
wrap("get_internet_config", without_hub)
if os.environ.get("LAUNCH_QDRANT_PATH"):
    from qdrant_client.local.qdrant_local import QdrantLocal

    wrap("get_neo4j_community_config", embedded)
    one_at_a_time(QdrantLocal)

import uvicorn  # noqa: E402

uvicorn.run("memos.api.server_api:app", host="127.0.0.1", port=int(sys.argv[1]), workers=1)

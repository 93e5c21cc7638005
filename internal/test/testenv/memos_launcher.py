"""Starts the MemOS server of the published package MemoryOS: launch.py PORT.

Two settings have no environment variable and are changed before the application is imported: the chunker's tokenizer, which is a download from a model hub,
becomes the count of characters; and Qdrant runs embedded where LAUNCH_QDRANT_PATH names a folder.
"""

import os
import sys
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


wrap("get_product_default_config", without_hub)
wrap("get_internet_config", without_hub)
if os.environ.get("LAUNCH_QDRANT_PATH"):
    wrap("get_neo4j_community_config", embedded)

import uvicorn  # noqa: E402

uvicorn.run("memos.api.server_api:app", host="127.0.0.1", port=int(sys.argv[1]), workers=1)

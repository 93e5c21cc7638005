"""Asks graphiti-core's own ``search_``: reads one JSON object {query, group_id, limit, recipe} a line, writes the SearchResults as a JSON object a line.

Embeddings are left out and labels sorted, since the library gives those in any order; a score that is infinite is null.
"""

import asyncio
import json
import math
import os
import sys
from typing import Any

from graphiti_core import Graphiti
from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.search import search_config_recipes
from graphiti_core.search.search_config import SearchResults


def item(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = model.model_dump(mode="json", exclude={"name_embedding", "fact_embedding"})
    if "labels" in found:
        found["labels"] = sorted(found["labels"])
    return found


def results(found: SearchResults) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for name in type(found).model_fields:
        values = getattr(found, name)
        answer[name] = [score if math.isfinite(score) else None for score in values] if name.endswith("_scores") else [item(value) for value in values]
    return answer


async def main() -> None:
    url, key, dimensions = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"], int(os.environ["EMBEDDING_DIM"])
    embedder = OpenAIEmbedder(OpenAIEmbedderConfig(base_url=url, api_key=key, embedding_dim=dimensions))
    reranker = OpenAIRerankerClient(config=LLMConfig(api_key=key, base_url=url))
    graphiti = Graphiti(os.environ["NEO4J_URI"], os.environ["NEO4J_USER"], os.environ["NEO4J_PASSWORD"], embedder=embedder, cross_encoder=reranker)
    for line in sys.stdin:
        asked = json.loads(line)
        recipe = getattr(search_config_recipes, asked["recipe"]).model_copy(deep=True)
        recipe.limit = asked["limit"]
        found = await graphiti.search_(asked["query"], config=recipe, group_ids=[asked["group_id"]])
        print(json.dumps(results(found)), flush=True)
    await graphiti.close()


asyncio.run(main())

"""Asks graphiti-core's own Python API: reads one JSON object {query, group_id, limit} a line, writes the facts as a JSON list a line.

``search_`` with a copy of the recipe for each call, since ``search`` writes its limit into a recipe that all callers share.
"""

import asyncio
import json
import os
import sys

from graphiti_core import Graphiti
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_RRF


async def main() -> None:
    dimensions = int(os.environ["EMBEDDING_DIM"])
    embedder = OpenAIEmbedder(OpenAIEmbedderConfig(base_url=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"], embedding_dim=dimensions))
    graphiti = Graphiti(os.environ["NEO4J_URI"], os.environ["NEO4J_USER"], os.environ["NEO4J_PASSWORD"], embedder=embedder)
    for line in sys.stdin:
        asked = json.loads(line)
        recipe = EDGE_HYBRID_SEARCH_RRF.model_copy(deep=True)
        recipe.limit = asked["limit"]
        found = await graphiti.search_(asked["query"], config=recipe, group_ids=[asked["group_id"]])
        print(json.dumps([edge.model_dump(mode="json", exclude={"fact_embedding"}) for edge in found.edges]), flush=True)
    await graphiti.close()


asyncio.run(main())

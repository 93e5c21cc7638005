"""The gateway's own program in front of a library that answers a search of 10 facts at once: ``python canned.py --config F``.

What a call of it takes is what the gateway adds.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graphiti_gateway import cli


def main() -> int:
    cli.environment(Path(sys.argv[-1]))
    from graphiti_core import Graphiti
    from graphiti_core.edges import EntityEdge
    from graphiti_core.search.search_config import SearchResults

    from graphiti_gateway.engine import Engine

    at = datetime(2025, 3, 1, 9, 30, tzinfo=UTC)
    edges = [
        EntityEdge(
            group_id="figures",
            source_node_uuid="a063983a-fa27-431e-b5df-90412b186bde",
            target_node_uuid="0ff3c1f2-93cd-4a37-8f3f-3f4bd1f2a1c4",
            created_at=at,
            name="PREFERS",
            fact=f"mara prefers seat number {n} on business trips",
            episodes=["c1b7be0e-6a35-4f1b-9b0b-55b1fd0e5c52"],
            valid_at=at,
            reference_time=at,
        )
        for n in range(10)
    ]

    async def search(*_: Any, **__: Any) -> SearchResults:
        return SearchResults(edges=edges, edge_reranker_scores=[0.5] * len(edges))

    async def indexed(_: Engine) -> None:
        pass

    Graphiti.search_, Engine.indexed = search, indexed  # type: ignore[method-assign,assignment]
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())

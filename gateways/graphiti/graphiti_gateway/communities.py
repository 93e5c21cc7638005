"""build_communities in a process of its own: the library's label propagation can oscillate for ever without giving the event loop a turn.

The parent writes settings and group as JSON to the child's standard input (secrets by name, as in the file) and reads one JSON object.
``python -m graphiti_gateway.communities`` is the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from . import render
from .errors import GatewayError, translate
from .settings import Settings

if TYPE_CHECKING:
    from .engine import Engine


async def run(settings: Settings, group: str, seconds: float) -> dict[str, Any]:
    """Build the communities of a group. Raises deadline_exceeded after ``seconds``, having killed the child, and whatever failed in it."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "graphiti_gateway.communities",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "EMBEDDING_DIM": str(settings.embedder.dimensions), "GRAPHITI_TELEMETRY_ENABLED": "false"},
    )
    request = json.dumps({"settings": settings.model_dump(mode="json"), "group_id": group}).encode()
    try:
        out, _ = await asyncio.wait_for(child.communicate(request), seconds)
    except TimeoutError:
        raise GatewayError(
            "deadline_exceeded",
            "the communities were not done in time; the library may never come to an end with this graph",
            seconds=seconds,
            stored="without_communities",
        ) from None
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError:
        raise GatewayError(
            "internal", "the process that builds communities ended without an answer", exception=f"exit {child.returncode}", stored="without_communities"
        ) from None
    if "error" in answer:
        error = answer["error"]
        raise GatewayError(error["code"], error["message"], **error["details"], stored="without_communities")
    return answer


async def build(engine: Engine, group: str) -> dict[str, Any]:
    """The child's work."""
    try:
        nodes, edges = await engine.of(group).graphiti.build_communities(group_ids=[group])
        return {"communities": [render.community(item) for item in nodes], "community_edges": [render.link(item) for item in edges]}
    except Exception as error:
        return {"error": translate(error, writing=True).body()}
    finally:
        await engine.close()


def main() -> None:
    request = json.load(sys.stdin)
    from .engine import Engine  # which imports this module

    engine = Engine(Settings.model_validate(request["settings"]))
    answer = asyncio.run(build(engine, request["group_id"]))
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()

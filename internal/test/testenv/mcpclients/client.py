"""The official Python client (package mcp) as a driven client: a command a line on standard input, an answer a line on standard output.

    client.py stdio MODE PROGRAM ARGUMENT...
    client.py http MODE URL [TOKEN]

MODE is how the client negotiates: "auto" tries the protocol of 2026-07-28 first, "legacy" begins with initialize.
Commands are those of client.mjs: {"do": "info"}, {"do": "tools"}, {"do": "resources"}, {"do": "call", "name", "arguments"}, {"do": "read", "uri"}.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Literal, cast

import anyio
import anyio.to_thread
from mcp import MCPError, StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


def connected(transport: str, mode: Literal["auto", "legacy"], rest: list[str]) -> Client:
    if transport == "stdio":
        environment = {name: value for name, value in os.environ.items() if name.startswith(("RUN_AS_", "XDG_", "GORACE"))}
        return Client(StdioServerParameters(command=rest[0], args=rest[1:], env=environment), mode=mode)
    headers = {"Authorization": f"Bearer {rest[1]}"} if len(rest) > 1 else {}
    return Client(streamable_http_client(rest[0], http_client=create_mcp_http_client(headers=headers)), mode=mode)


async def answer(client: Client, command: dict[str, Any]) -> Any:
    match command["do"]:
        case "info":
            info = client.server_info
            return {"server": info.name if info else "", "protocol": client.protocol_version, "instructions": client.instructions}
        case "tools":
            return (await client.list_tools()).model_dump(by_alias=True, mode="json")["tools"]
        case "resources":
            return (await client.list_resources()).model_dump(by_alias=True, mode="json")["resources"]
        case "call":
            return (await client.call_tool(command["name"], command["arguments"])).model_dump(by_alias=True, mode="json")
        case "read":
            return (await client.read_resource(command["uri"])).model_dump(by_alias=True, mode="json")
    raise ValueError(command["do"])


async def main() -> None:
    transport, mode, *rest = sys.argv[1:]
    async with connected(transport, cast(Literal["auto", "legacy"], mode), rest) as client:
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            try:
                said = {"answer": await answer(client, json.loads(line))}
            except MCPError as e:
                said = {"error": {"code": e.error.code, "message": e.error.message, "data": e.error.data}}
            print(json.dumps(said), flush=True)


anyio.run(main)

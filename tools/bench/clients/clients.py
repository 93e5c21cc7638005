"""One client of a memory, driven line by line.

It reads "retrieve N" or "record N" from standard input, makes that call, and answers "ok" and how long the call took in
nanoseconds. An exception ends it.

    python clients.py mem0|honcho|graphiti|memhost URL
"""

import asyncio
import datetime
import http.client
import json
import logging
import os
import sys
import time

kind, url = sys.argv[1], sys.argv[2]
TURN = "I like oat milk number %d, and I would like to see the mountains near Lisbon again."

if kind == "mem0":
    from mem0 import MemoryClient

    client = MemoryClient(api_key="bench", host=url)

    def record(n):
        return client.add([{"role": "user", "content": TURN % n}], user_id="official", infer=False)

    def retrieve(n):
        return client.search("which milk?", filters={"user_id": "official"}, top_k=10)["results"]

elif kind == "honcho":
    from honcho import Honcho

    peer = (client := Honcho(base_url=url, workspace_id="official", api_key="bench")).peer("mara")
    session = client.session("s")
    session.add_peers([peer])

    def record(n):
        return session.add_messages([peer.message(TURN % n)])

    def retrieve(n):
        return session.context(tokens=1000, peer_target="mara", search_query="which milk?").to_openai(assistant="agent")

elif kind == "graphiti":
    from graphiti_core import Graphiti
    from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig

    logging.getLogger("neo4j").setLevel(logging.ERROR)  # it warns of each property that an empty graph lacks
    loop = asyncio.new_event_loop()
    embedder = OpenAIEmbedder(OpenAIEmbedderConfig(embedding_dim=int(os.environ["EMBEDDING_DIM"])))
    client = Graphiti(url, os.environ["NEO4J_USER"], os.environ["NEO4J_PASSWORD"], embedder=embedder)
    loop.run_until_complete(client.build_indices_and_constraints())
    at = datetime.datetime(2026, 3, 1, 9, 30, tzinfo=datetime.timezone.utc)

    def record(n):
        return loop.run_until_complete(client.add_episode(
            name=f"e{n}", episode_body="official: " + TURN % n, source_description="bench", reference_time=at, group_id="official"))

    def retrieve(n):
        return loop.run_until_complete(client.search("which milk?", group_ids=["official"], num_results=10))

else:
    connection = http.client.HTTPConnection(url.removeprefix("http://"))

    def post(path, body):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.load(response)
        if response.status != 200:
            raise RuntimeError(answer)
        return answer

    def record(n):
        return post("/v1/events", {
            "event_id": f"e{n}", "run_id": "bench", "user_id": "door", "session_id": "s", "turn_id": f"t{n}",
            "timestamp": "2026-03-01T09:30:00Z", "messages": [{"role": "user", "content": TURN % n}]})

    def retrieve(n):
        return post("/v1/retrieve", {
            "scope": {"run_id": "bench", "persona_id": "door"}, "session_id": "s", "query": "which milk?",
            "budget": {"max_tokens": 1000}})["formatted_context"]


print("ready", flush=True)
for line in sys.stdin:
    operation, n = line.split()
    began = time.perf_counter_ns()
    found = (record if operation == "record" else retrieve)(int(n))
    took = time.perf_counter_ns() - began
    if not found:
        raise RuntimeError(f"{operation} {n} found nothing")
    print("ok", took, flush=True)

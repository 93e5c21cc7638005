"""An agent for `memhost eval`, seated by chat: a server with /v1/chat/completions that memhost starts for one person."""

import json
import os
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer


def retrieve(query):
    body = {"query": query, "session_id": os.environ["MEMHOST_SESSION_ID"],
        "scope": {"run_id": os.environ["MEMHOST_RUN_ID"], "persona_id": os.environ["MEMHOST_PERSONA_ID"]}}
    request = urllib.request.Request(os.environ["MEMHOST_SERVER"] + "/v1/retrieve", json.dumps(body).encode(), {
        "Content-Type": "application/json", "Authorization": "Bearer " + os.environ["MEMHOST_TOKEN"]})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["formatted_context"]


class Chat(BaseHTTPRequestHandler):
    def do_POST(self):
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        memory = [line for line in retrieve(messages[-1]["content"]).splitlines() if "user:" in line]
        answer = {"role": "assistant", "content": memory[-1] if memory else "I do not know that."}  # your agent goes here
        text = json.dumps({"choices": [{"message": answer}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", int(sys.argv[1])), Chat).serve_forever()

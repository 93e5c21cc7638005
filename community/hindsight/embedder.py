"""Embeddings without a model, over the route of OpenAI: hashed words. python3 embedder.py PORT"""
import hashlib, json, math, re, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SIZE = 384

def vector(text):
    v = [0.0] * SIZE
    v[0] = 0.05
    for word in re.findall(r"\w+", text.lower()):
        h = hashlib.sha256(word.encode()).digest()
        v[1 + int.from_bytes(h[:4], "big") % (SIZE - 1)] += 1 if h[4] % 2 else -1
    n = math.sqrt(sum(x * x for x in v)) or 1
    return [x / n for x in v]

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        r = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = r["input"] if isinstance(r["input"], list) else [r["input"]]
        data = [{"object": "embedding", "index": i, "embedding": vector(str(t))} for i, t in enumerate(texts)]
        body = json.dumps({"object": "list", "model": r.get("model", ""), "data": data,
                           "usage": {"prompt_tokens": 0, "total_tokens": 0}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()

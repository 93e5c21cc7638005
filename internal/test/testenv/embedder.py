"""Embeddings of a real small model, for the stub: embedder.py PORT CACHE.

The model is the one that the package wordllama ships in its wheel, 256 numbers a text. Its tokenizer lies elsewhere in the
package than the loader looks, so it is copied into CACHE first; downloads are disabled.

POST / takes {"texts": ["...", ...]} and answers {"vectors": [[...], ...]}; GET / answers {}. A text without a known token
is a vector of zeros.
"""

import json
import shutil
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy
import wordllama

CONFIG = "l2_supercat"


def load(cache: Path):
    """The model, from the files of the package alone."""
    name = f"{CONFIG}_tokenizer_config.json"
    (cache / "tokenizers").mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(wordllama.__file__).parent / "tokenizers" / name, cache / "tokenizers" / name)
    return wordllama.WordLlama.load(CONFIG, cache_dir=cache, dim=256, disable_download=True)


class Handler(BaseHTTPRequestHandler):
    """One request: texts in, vectors out."""

    protocol_version = "HTTP/1.1"
    model = None

    def do_GET(self):
        self.answer({})

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["texts"]
        vectors = numpy.nan_to_num(self.model.embed(texts))
        self.answer({"vectors": vectors.tolist()})

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Requests are the stub's to log."""


Handler.model = load(Path(sys.argv[2]))
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()

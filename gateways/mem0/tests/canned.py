"""The gateway's own program in front of a library that answers a search of 12 rows at once: ``python tests/canned.py --config F``. What a call of it takes is what the
gateway adds."""

from __future__ import annotations

import atexit
import importlib.metadata
import os
import shutil
import sys
import tempfile
from typing import Any

os.environ.update(MEM0_TELEMETRY="false", MEM0_DIR=tempfile.mkdtemp(prefix="mem0-canned-"))

from mem0_gateway import cli, library

atexit.register(shutil.rmtree, os.environ["MEM0_DIR"], True)

ROW = {"id": "a063983a-fa27-431e-b5df-90412b186bde", "memory": "I moved to oat milk last week.", "hash": "a57409bda7561acabbb295913f5da7b0", "metadata": {"mh_event_id": "e-91"},
       "score": 0.33, "created_at": "2025-03-10T09:30:00+00:00", "updated_at": "2025-03-10T09:30:00+00:00", "user_id": "u", "run_id": "r",
       "score_details": {"semantic_score": 0.63, "bm25_score": 0.03, "final_score": 0.33}}


class Canned:
    """A library whose calls cost nothing."""

    def __init__(self, _: Any) -> None:
        self.version = importlib.metadata.version("mem0ai")

    def search(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"results": [ROW] * 12}

    def alive(self) -> None:
        pass

    def close(self) -> None:
        pass


if __name__ == "__main__":
    library.Library = Canned  # type: ignore[assignment,misc]
    sys.exit(cli.main())

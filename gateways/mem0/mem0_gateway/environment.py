"""What must be so before ``mem0`` is imported: the library reads two variables at its import, writes a file into the folder that one of them names, and sends
telemetry unless the other says no.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def prepare(data: Path) -> None:
    """Switch telemetry and the fetching of notices off, and keep the library's own files in ``data``. Raises RuntimeError where it is too late for that."""
    loaded = sys.modules.get("mem0.memory.telemetry")
    if loaded is not None and getattr(loaded, "MEM0_TELEMETRY", False):
        raise RuntimeError("mem0 was imported with telemetry on, before the gateway could switch it off")
    data.mkdir(parents=True, exist_ok=True)
    os.environ["MEM0_TELEMETRY"] = "false"
    os.environ["MEM0_DIR"] = str(data / "mem0")

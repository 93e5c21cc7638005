"""Asks mem0's own Python client: reads one JSON object of arguments for ``Memory.search`` a line, writes its answer as JSON a line.

The store is the gateway's, from its configuration file, which GATEWAY_CONFIG names.
"""

import json
import os
import sys
from pathlib import Path

from mem0 import Memory
from mem0_gateway.config import load

memory = Memory.from_config(load(Path(os.environ["GATEWAY_CONFIG"])).mem0)
for line in sys.stdin:
    print(json.dumps(memory.search(**json.loads(line))), flush=True)

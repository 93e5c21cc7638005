"""Asks mem0's own Python client: reads one JSON object of arguments for ``Memory.search`` a line, writes its answer as JSON a line.

The store is the gateway's, from the same environment.
"""

import json
import sys

from mem0 import Memory
from mem0_gateway.settings import Settings

memory = Memory.from_config(Settings.from_environment().memory_config())
for line in sys.stdin:
    print(json.dumps(memory.search(**json.loads(line))), flush=True)

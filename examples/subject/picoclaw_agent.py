"""PicoClaw for `memhost eval`, seated by command around its own command line: one `picoclaw agent -m` for each text.

The arguments are PicoClaw's configuration (without hooks) and, if they are not on PATH, the programs picoclaw and memhost.
PicoClaw's hook is `memhost hook picoclaw`, which retrieves before each turn and records after it. It has no labels to send:
the report says so.
"""

import json
import os
import re
import subprocess
import sys

config, picoclaw, memhost = (sys.argv[1:] + ["picoclaw", "memhost"][len(sys.argv) - 2:])[:3]
start = json.loads(sys.stdin.readline())
workspace, scope = start["workspace"], start["scope"]
budget = ["--max-tokens", str(start["max_tokens"])] if start.get("max_tokens") else []
with open(config, encoding="utf-8") as f:
    settings = json.load(f)
settings["agents"]["defaults"]["workspace"] = os.path.join(workspace, "workspace")
settings["hooks"] = {"enabled": True, "defaults": {"interceptor_timeout_ms": 8000}, "processes": {"memhost": {
    "enabled": True, "priority": 50, "transport": "stdio", "observe": ["agent.turn.end"], "intercept": ["before_llm"],
    "command": [memhost, "hook", "picoclaw", "--server", start["door"]["http"], "--run", scope["run_id"],
        "--user", scope["persona_id"], "--session", start["session"], "--outbox", os.path.join(workspace, "outbox"),
        "--data", os.path.join(workspace, "data"), *budget]}}}
path = os.path.join(workspace, "config.json")
with open(path, "w", encoding="utf-8") as f:
    json.dump(settings, f)
environment = {**os.environ, "PICOCLAW_CONFIG": path, "PICOCLAW_HOME": workspace, "PICOCLAW_LOG_LEVEL": "error"}


def answer(text):
    done = subprocess.run([picoclaw, "agent", "-s", "agent:main:eval", "-m", text], env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr[-2000:])
    said = re.search(r"^\U0001F99E (.*)\Z", done.stdout, re.MULTILINE | re.DOTALL)
    if done.returncode or not said:
        sys.exit(f"picoclaw ended with {done.returncode}: {done.stdout[-500:]}")
    return said[1].strip()


for line in sys.stdin:
    said = json.loads(line)
    if said["type"] == "end":
        break
    print(json.dumps({"type": "agent", "text": answer(said["text"])}), flush=True)
waiting = [name for name in os.listdir(os.path.join(workspace, "outbox")) if name.endswith(".json")]
if waiting:
    sys.exit(f"{len(waiting)} turns are still in the hook's queue")

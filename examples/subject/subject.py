"""An agent for `memhost eval`, seated by command: JSON lines on standard input and output, and the slot over HTTP."""

import json
import sys
import urllib.request


def slot(path, body):
    request = urllib.request.Request(start["door"]["http"] + path, json.dumps(body).encode(), {
        "Content-Type": "application/json", "Authorization": "Bearer " + start["door"]["token"]})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def answer(text, memory):
    """Your agent goes here. This one repeats the last line of its memory that shares a long word with the question."""
    asked = {word for word in text.lower().replace("?", " ").split() if len(word) > 3}
    lines = [line for line in memory.splitlines() if asked & set(line.lower().replace(".", " ").split())]
    return lines[-1] if lines else "I do not know that."


start = json.loads(sys.stdin.readline())
for number, line in enumerate(sys.stdin, 1):
    said = json.loads(line)
    if said["type"] == "end":
        break
    memory = slot("/v1/retrieve", {"query": said["text"], "scope": start["scope"], "session_id": start["session"],
        "context": start.get("context", ""), "attribute": start.get("attribute", "")})["formatted_context"]
    text = answer(said["text"], memory)
    slot("/v1/events", {"event_id": f"{start['session']}-{number}", "turn_id": str(number), "session_id": start["session"],
        "run_id": start["scope"]["run_id"], "user_id": start["scope"]["persona_id"], "timestamp": start["now"],
        "messages": [{"role": "user", "content": said["text"]}, {"role": "assistant", "content": text}]})
    print(json.dumps({"type": "agent", "text": text}), flush=True)

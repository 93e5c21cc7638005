"""A subject that does one thing it must not: the argument says which. Every second conversation is without fault."""

import json
import os
import sys
import time
import urllib.error
import urllib.request

start = json.loads(sys.stdin.readline())
fault = sys.argv[1] if int(start["session"].split("-q")[1].split("-")[0]) % 2 else ""
scope = start["scope"]


def slot(method, path, body):
    request = urllib.request.Request(start["door"]["http"] + path, json.dumps(body).encode(), {
        "Content-Type": "application/json", "Authorization": "Bearer " + start["door"]["token"]}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code


def event(number, text, user=None):
    return {"event_id": f"{start['session']}-{number}", "turn_id": str(number), "session_id": start["session"],
        "run_id": scope["run_id"], "user_id": user or scope["persona_id"], "timestamp": start["now"],
        "messages": [{"role": "user", "content": text}]}


kept = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(start["workspace"]))), "kept")
for number, line in enumerate(sys.stdin, 1):
    said = json.loads(line)
    if said["type"] == "end":
        break
    text = said["text"]
    if fault == "hang":
        time.sleep(600)
    if fault == "exit":
        sys.exit("it gave up")
    if fault == "rubbish":
        print("\x00\xff rubbish", flush=True)
    if fault == "endless":
        while True:
            sys.stdout.write("x" * 65536)
    if fault == "lowers the wall":
        assert slot("PUT", "/v1/mode", {"read_only": False, "reason": "accumulation", "scope": scope}) == 403
    if fault == "uses another scope":
        assert slot("POST", "/v1/events", event(number, text, "somebody-else")) == 403
    if fault == "delivers late":
        if os.path.exists(kept):
            with open(kept, encoding="utf-8") as f:
                slot("POST", "/v1/events", event(number, f.read()))
        with open(kept, "w", encoding="utf-8") as f:
            f.write(text)
    print(json.dumps({"type": "agent", "text": "I do not know that."}), flush=True)
if fault == "does not exit":
    time.sleep(600)
if fault == "records after the wall" and os.fork() == 0:
    os.setsid()
    with open(os.devnull, "w") as null:
        for n in range(3):
            os.dup2(null.fileno(), n)
    for n in range(200):
        time.sleep(0.02)
        try:
            slot("POST", "/v1/events", event(1000 + n, text))
        except OSError:
            break

"""Nanobot for `memhost eval`, seated by command over its SDK. The argument is Nanobot's configuration, with its own memory off.

Each conversation is one Nanobot in a fresh workspace. Before each turn it retrieves, after each turn it records, as the
package memhost-nanobot does; the conversation's labels travel as the SDK's attributes.
"""

import asyncio
import json
import os
import sys
import urllib.request

from nanobot import Nanobot
from nanobot.runtime_context import RuntimeContextBlock, public_history_message

lines = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
os.dup2(2, 1)  # what Nanobot prints is no line of the protocol
os.environ["NANOBOT_MEMHOST_ENABLED"] = "false"  # the plugin memhost-nanobot, if it is installed, would retrieve as well
start = json.loads(sys.stdin.readline())
session, scope = start["session"], start["scope"]


def slot(path, body):
    request = urllib.request.Request(start["door"]["http"] + path, json.dumps(body).encode(), {
        "Content-Type": "application/json", "Authorization": "Bearer " + start["door"]["token"]})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


async def context(request):
    """Before a turn: the memory context goes to the end of the user's message. An error leaves the turn without one."""
    try:
        answer = await asyncio.to_thread(slot, "/v1/retrieve", {"query": request.original_user_text or "", "scope": scope,
            "session_id": session, **request.attributes})
    except OSError as e:
        print(f"no memory context: {e}", file=sys.stderr)
        return None
    text = answer["formatted_context"]
    return RuntimeContextBlock("memhost", text) if text.strip() else None


async def converse():
    bot = Nanobot.from_config(sys.argv[1], workspace=start["workspace"])
    bot.runtime.add_context_provider(context)

    def public(event):
        """After a turn: contexts leave the session, or every later turn would repeat them."""
        kept = bot._loop.sessions.get_cached(event.context.session_key)
        kept.messages[:] = [public_history_message(m) for m in kept.messages]
        bot._loop.sessions.save(kept)

    bot.runtime.on_session_turn_persisted(public)
    labels = {name: start[name] for name in ("scenario", "context", "attribute") if start.get(name)}
    for number, line in enumerate(iter(sys.stdin.readline, ""), 1):
        said = json.loads(line)
        if said["type"] == "end":
            break
        result = await bot.run(said["text"], session_key="eval:" + session, channel="eval", chat_id=session,
            sender_id=scope["persona_id"], attributes=labels)
        slot("/v1/events", {"event_id": f"{session}-{number}", "turn_id": str(number), "session_id": session,
            "run_id": scope["run_id"], "user_id": scope["persona_id"], "timestamp": start["now"],
            "messages": [{"role": "user", "content": said["text"]}, {"role": "assistant", "content": result.content}]})
        lines.write(json.dumps({"type": "agent", "text": result.content}) + "\n")


asyncio.run(converse())

"""What the official Python client (package honcho-ai) gets for the queries on standard input: one JSON object in, one out."""

import json
import sys

from honcho import Honcho


def plain(value):
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return value


def message(m):
    return {"id": m.id, "content": m.content, "peer_id": m.peer_id, "session_id": m.session_id, "workspace_id": m.workspace_id,
            "metadata": m.metadata, "created_at": m.created_at.isoformat(), "token_count": m.token_count}


def summary(s):
    return s and {"content": s.content, "message_id": s.message_id, "summary_type": s.summary_type, "token_count": s.token_count}


def main():
    task = json.load(sys.stdin)
    client = Honcho(base_url=task["url"], api_key=task.get("key") or None, workspace_id=task["workspace"])
    user = client.peer(task["user"])
    answers = []
    for query in task["queries"]:
        chosen = {"search_query": query["text"], "search_top_k": query["top_k"], "max_conclusions": query["max_conclusions"], "include_most_frequent": False}
        context = client.session(query["session"]).context(summary=True, tokens=query["tokens"], peer_target=task["user"], **chosen)
        peer = user.context(**chosen)
        answers.append({
            "context": {"messages": [message(m) for m in context.messages], "summary": summary(context.summary),
                        "peer_representation": context.peer_representation, "peer_card": context.peer_card},
            "representation": {"representation": user.representation(**chosen)},
            "peer_context": {"representation": peer.representation, "peer_card": peer.peer_card},
        })
    json.dump(answers, sys.stdout, default=plain)


if __name__ == "__main__":
    main()

"""conversation.json for the tests in Python: what is said, and what is wrong with what was shown and recorded, one line each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_CONVERSATION: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
RUN: str = _CONVERSATION["run"]
TURNS: list[dict[str, Any]] = _CONVERSATION["turns"]
USERS = sorted({turn["user"] for turn in TURNS})

# What a test switches off, and the kind of line that must then be found.
WITHOUT = [("", ""), ("recording", "lost"), ("queue", "lost"), ("scope", "crossed")]


def wrong_with(n: int, prompt: str) -> list[str]:
    """What the context in a prompt of turn n lacks, and what of others is in it."""
    contexts = re.findall("<memory-context .*?</memory-context>", prompt, re.DOTALL)
    assert len(contexts) <= 1, "the context of an earlier turn is still there"
    context, turn = "".join(contexts), TURNS[n]
    found = [f"crossed: turn {n} of {turn['user']} is shown what {user} said" for user in USERS if user != turn["user"] and f" of {user}" in context]
    return found + [f"unknown: turn {n} is not shown turn {known}" for known in turn.get("knows", []) if TURNS[known]["text"] not in context]


def wrong_in_archive(export: str) -> list[str]:
    """Compares what each person said with an export of the archive."""
    found: list[str] = []
    said: dict[str, list[str]] = {}
    for line in export.splitlines():
        if "memory-context" in line or "TOOLRESULT" in line:
            found.append(f"recorded: what no person said: {line}")
        event = json.loads(line)
        said.setdefault(event["user_id"], []).extend(m["content"] for m in event["messages"] if m["role"] == "user")
    for user in USERS:
        want, got = [turn["text"] for turn in TURNS if turn["user"] == user], said.get(user, [])
        found += [f"lost: {text}" for text in want if text not in got]
        found += [f"doubled: {text}" for text in want if got.count(text) > 1]
        if not found and got != want:
            found.append(f"order: {user} said {got}")
    return found


def check(found: list[str], want: str) -> None:
    """Nothing is wrong, or a line of the kind that is wanted is there."""
    if want:
        assert any(line.startswith(f"{want}: ") for line in found), f"{want} is not found: {found}"
    else:
        assert found == []

"""A finished turn, cut out of a session's messages, as events of the slot."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .scope import Access

# What Nanobot stores in place of an answer when the model call failed (nanobot/agent/runner.py).
MODEL_ERROR = "[Assistant reply unavailable due to model error.]"

MARKER = "_runtime_context"
SOURCE = "memhost"

# The tool that searches, and what takes the place of its result when the turn is over.
SEARCH = "memory_search"
EMPTIED = "[the result was for its own turn and is not kept; search again if you need it]"

_CLOSE = "</memory-context>"


@dataclass
class Turn:
    """A turn under way, by its turn id."""

    session_key: str
    turn_id: str
    channel: str
    # How many messages the session had before it.
    start: int
    # What people said in it, in order: a follow-up while the agent is busy joins the turn, and may come from someone else.
    asks: list[Ask] = field(default_factory=list)
    # Contexts given, to make sure that none is recorded.
    blocks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ask:
    """One person's message, and what it may do."""

    text: str
    sender: str
    access: Access


class NotRecorded(Exception):
    """The turn, or a part of it, is not recorded; the text says why."""


def events(turn: Turn, messages: Sequence[Mapping[str, Any]], public: Callable[[Mapping[str, Any]], dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The events of a turn, and why something was left out.

    In:  messages is the whole session; public removes what context providers added to a message.
    Out: one event for each run of messages that belongs to one scope, so one for a turn but where people of several scopes spoke in it. Only what people and
         the agent said is in it, no tool calls and results: a result of memory_search would feed memory with its own output.
    """
    parts: list[tuple[Ask, list[dict[str, Any]]]] = []
    left_out: list[str] = []
    asks = list(turn.asks)
    failed = False
    for stored in _since(turn, messages):
        role = stored.get("role")
        if stored.get("_command") or stored.get("injected_event") or stored.get("_hidden_history") or stored.get("_automation_turn"):
            continue
        message = public(stored)
        text, when = _text(message.get("content")), _time(stored.get("timestamp"))
        if role == "user":
            for ask, said in _askers(asks, text):
                if not parts or parts[-1][0].access != ask.access:
                    parts.append((ask, []))
                parts[-1][1].append({"role": "user", "content": said, "_at": when})
        elif role == "assistant" and text.strip() == MODEL_ERROR:
            failed = True
        elif role == "assistant" and text.strip() and parts:
            parts[-1][1].append({"role": "assistant", "content": text, "_at": when})
    if failed:
        left_out.append("the model call failed")
    made: list[dict[str, Any]] = []
    for number, (ask, said_here) in enumerate(parts):
        if not ask.access.record:
            left_out.append(ask.access.why)
            continue
        if failed and not any(m["role"] == "assistant" for m in said_here):
            continue
        made.append(_event(turn, number, ask, said_here))
    return made, left_out


def _since(turn: Turn, messages: Sequence[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    if turn.start <= len(messages):
        return messages[turn.start :]
    # The session was shortened meanwhile (a compaction): the turn is what stands from its first message on.
    first = turn.asks[0].text
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].get("role") == "user" and _text(messages[at].get("content")).startswith(first):
            return messages[at:]
    raise NotRecorded("the session was shortened during the turn, and its first message is not found")


def _askers(asks: list[Ask], text: str) -> list[tuple[Ask, str]]:
    """Who said a stored user message: Nanobot joins follow-ups that came together by blank lines. What was used is taken off the list; a message for which
    no context was asked is nobody's.
    """
    if not asks:
        return []
    for count in range(1, len(asks) + 1):
        if _same("\n\n".join(a.text for a in asks[:count]), text):
            used, asks[:count] = asks[:count], []
            if all(a.access == used[0].access for a in used):
                return [(used[0], text)]
            return [(a, a.text) for a in used]
    if all(a.access == asks[0].access for a in asks):
        # Nanobot added something of its own (the place of an attachment): of one person it is all the same.
        return [(asks.pop(0), text)]
    raise NotRecorded("people of several scopes spoke in the turn, and it cannot be told who said what")


def _same(asked: str, stored: str) -> bool:
    return " ".join(asked.split()) == " ".join(stored.split())


def _event(turn: Turn, number: int, ask: Ask, messages: list[dict[str, Any]]) -> dict[str, Any]:
    access = ask.access
    for block in turn.blocks:
        if any(block in m["content"] for m in messages):
            raise NotRecorded("a memory context is still in it, and memory would be fed with its own output: Nanobot stores messages in another way")
    # The turn id is Nanobot's, made once for a turn: the event keeps its id however often it is sent.
    name = json.dumps([access.scope.run_id, access.scope.user_id, access.session_id, turn.turn_id, number]).encode()
    event: dict[str, Any] = {
        "event_id": "nanobot-" + hashlib.sha256(name).hexdigest()[:40],
        "run_id": access.scope.run_id,
        "user_id": access.scope.user_id,
        "session_id": access.session_id,
        "turn_id": turn.turn_id,
        "timestamp": messages[0]["_at"],
        **access.labels,
        "messages": [{"role": m["role"], "content": m["content"]} for m in messages],
        "metadata": {"agent": "nanobot", "channel": turn.channel, "sender_id": ask.sender},
    }
    return event


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str))
    return ""


def _time(stamp: Any) -> str:
    """RFC 3339. Nanobot stamps with local time and names no zone; a message without a stamp was said now."""
    try:
        at = datetime.fromisoformat(stamp)
    except (TypeError, ValueError):
        at = datetime.now()
    return (at if at.tzinfo else at.astimezone()).isoformat()


def strip(messages: Iterable[Mapping[str, Any]], public: Callable[[Mapping[str, Any]], dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The messages without our blocks and without what our tool found, or None where nothing of ours is in them. Blocks of other sources stay where they can
    be told from ours.
    """
    changed = False
    cleaned: list[dict[str, Any]] = []
    for message in messages:
        marker = message.get(MARKER)
        if isinstance(marker, Mapping) and SOURCE in (marker.get("sources") or ()):
            changed = True
            cleaned.append(_without(message, marker) or public(message))
        elif message.get("role") == "tool" and message.get("name") == SEARCH and message.get("content") != EMPTIED:
            changed = True
            cleaned.append({**message, "content": EMPTIED})
        else:
            cleaned.append(dict(message))
    return cleaned if changed else None


def _without(message: Mapping[str, Any], marker: Mapping[str, Any]) -> dict[str, Any] | None:
    """The message with other sources' blocks only, or None where public does better: no other source, or no telling which text is ours."""
    sources = list(marker.get("sources") or ())
    others = [s for s in sources if s != SOURCE]
    if not others or len(others) != len(sources) - 1:
        return None
    at = sources.index(SOURCE)
    content, blocks, suffix = message.get("content"), marker.get("blocks"), marker.get("suffix")
    if isinstance(content, list) and isinstance(blocks, list) and len(blocks) == len(sources) and content[-len(blocks) :] == blocks:
        kept = [b for i, b in enumerate(blocks) if i != at]
        return {**message, "content": [*content[: -len(blocks)], *kept], MARKER: {**marker, "sources": others, "blocks": kept}}
    if not isinstance(content, str) or not isinstance(suffix, str) or not content.endswith(suffix) or suffix.count(_CLOSE) != 1:
        return None
    begin, end = suffix.find("<memory-context "), suffix.find(_CLOSE) + len(_CLOSE)
    if begin < 0 or begin > end:
        return None
    rest = "\n\n".join(part for part in (suffix[:begin].strip("\n"), suffix[end:].strip("\n")) if part)
    return {**message, "content": content[: -len(suffix)] + rest, MARKER: {**marker, "sources": others, "suffix": rest}}

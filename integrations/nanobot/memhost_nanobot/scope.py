"""Whose memory a turn reads and writes, and whether it may."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .config import Settings

# Senders of turns that no person began. "user" of the session "heartbeat" is one, too.
_AUTOMATION = frozenset({"cron", "trigger", "session", "session_timeout", "runtime", "subagent"})

_LABELS = ("scenario", "context", "attribute")


@dataclass(frozen=True)
class Scope:
    """A memory: one run and one user in it."""

    run_id: str
    user_id: str

    @property
    def key(self) -> str:
        """One text for one scope, never the same for two: a zero byte stands in no id."""
        return f"{self.run_id}\x00{self.user_id}"


@dataclass(frozen=True)
class Access:
    """What a message may do: read and record in scope, under session_id. why says it where either is not allowed."""

    scope: Scope
    session_id: str
    read: bool
    record: bool
    why: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


_NONE = Scope("", "")


def access(settings: Settings, request: Any) -> Access:
    """The access of a Nanobot RequestContext. An SDK host may say run_id, user_id, session_id, read_only, scenario, context and attribute in
    attributes["memhost"]; that goes before the configuration.
    """
    session_key, sender = _text(request, "session_key"), _text(request, "sender_id")
    own = getattr(request, "attributes", None)
    own = own.get("memhost") if isinstance(own, Mapping) else None
    own = own if isinstance(own, Mapping) else {}
    if session_key.startswith("dream:"):
        return Access(_NONE, "", False, False, "Nanobot's own consolidation")
    if getattr(request, "original_user_text", None) is None:
        return Access(_NONE, "", False, False, "no person's message (an internal continuation)")
    automation = sender in _AUTOMATION or sender.startswith("system:") or session_key == "heartbeat"
    if automation and settings.automation == "skip":
        return Access(_NONE, "", False, False, f"an automation of {sender or 'nobody'} in {session_key}")

    fields = {"channel": _text(request, "channel"), "chat_id": _text(request, "chat_id"), "sender_id": sender, "session_key": session_key}
    ids: dict[str, str] = {}
    for key, template in (("run_id", settings.run_id), ("user_id", settings.user), ("session_id", settings.session)):
        said = own.get(key)
        if isinstance(said, str) and said:
            ids[key] = said
            continue
        missing = [name for name, value in fields.items() if "{" + name + "}" in template and not value]
        if missing:
            return Access(_NONE, "", False, False, f"the request has no {missing[0]}, which {key} is made of")
        ids[key] = template.format_map(fields)
    for key, value in ids.items():
        if "\x00" in value:
            return Access(_NONE, "", False, False, f"{key} has a zero byte")
        ids[key] = bounded(value)

    record, why = True, ""
    if settings.read_only or own.get("read_only") is True or any(fnmatch.fnmatchcase(ids["session_id"], p) for p in settings.read_only_sessions):
        record, why = False, "read-only"
    elif automation:
        record, why = False, "an automation"
    labels = {key: str(own[key]) for key in _LABELS if isinstance(own.get(key), str) and own[key]}
    return Access(Scope(ids["run_id"], ids["user_id"]), ids["session_id"], True, record, why, labels)


def bounded(text: str) -> str:
    """The text as an id of the slot, 512 bytes at most: a longer one ends in its hash, and different texts stay different."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= 512:
        return text
    return data[:400].decode("utf-8", "ignore") + "-" + hashlib.sha256(data).hexdigest()


def _text(request: Any, name: str) -> str:
    value = getattr(request, name, None)
    return value if isinstance(value, str) else ""

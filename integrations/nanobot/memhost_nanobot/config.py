"""What can be configured: a JSON file beside Nanobot's own, and environment variables over it.

Nanobot drops keys that it does not know from its configuration, so the block cannot stand there.
"""

from __future__ import annotations

import difflib
import json
import os
import string
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import urlsplit

from memhost_client.slot import base_url

FILE = "memhost.json"
PREFIX = "NANOBOT_MEMHOST_"

_TEMPLATE_FIELDS = ("channel", "chat_id", "sender_id", "session_key")


class ConfigError(ValueError):
    """The configuration is wrong; the text names the key, what was found and what is wanted."""


@dataclass(frozen=True)
class Settings:
    """The configuration. Every field is a key of the file, and NANOBOT_MEMHOST_<FIELD> in capitals in the environment; times are milliseconds."""

    enabled: bool = True
    # Where the slot serves. MEMHOST_SERVER is the default, as for the command memhost.
    server: str = "http://127.0.0.1:7077"
    # The name of the environment variable that holds the slot's bearer token; unset or empty: no token.
    token_env: str = "MEMHOST_TOKEN"
    # Whose memory: run and user are the scope of every event and question; session is a label of it. Templates with {channel}, {chat_id}, {sender_id},
    # {session_key}. A group chat has one session and many senders, and two channels may use one sender id for two people: hence the default of user.
    run_id: str = "nanobot"
    user: str = "{channel}:{sender_id}"
    session: str = "{session_key}"
    # The budget of a context; 0: none.
    max_tokens: int = 2000
    max_items: int = 0
    # How long a turn waits for its context at most; of this, how long for earlier turns of the same scope to arrive first.
    context_timeout_ms: int = 5000
    fresh_ms: int = 1000
    # How long a reply waits for its turn to be safe on disk.
    record_timeout_ms: int = 1000
    # How long one delivery may take (a backend may ask a language model), and how long the end of the program waits for what is still on its way.
    send_timeout_ms: int = 120000
    exit_timeout_ms: int = 5000
    # Where undelivered events wait; empty: the folder memhost-queue beside the configuration. Full means that further turns are not recorded.
    queue_dir: str = ""
    queue_max_events: int = 10000
    queue_max_bytes: int = 64 << 20
    # Nothing is recorded: of all sessions, or of those whose id matches a pattern (*, ?).
    read_only: bool = False
    read_only_sessions: tuple[str, ...] = ()
    # Turns that no person began (cron, heartbeat): skip, or read (context, but not recorded).
    automation: str = "skip"
    # off: complain loudly while Nanobot's own memory can reach the prompt (native.py); keep: that is none of our business.
    native_memory: str = "keep"
    # The folder of the configuration, for queue_dir; not a key.
    home: Path = field(default_factory=Path, metadata={"key": False})

    @property
    def queue(self) -> Path:
        """The folder of the queue."""
        return Path(self.queue_dir).expanduser() if self.queue_dir else self.home / "memhost-queue"

    def token(self, environ: Mapping[str, str]) -> str:
        """The slot's bearer token, or the empty string."""
        return environ.get(self.token_env, "") if self.token_env else ""


_KEYS = {f.name for f in fields(Settings) if f.metadata.get("key", True)}
_TYPES = get_type_hints(Settings)


def load(home: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings for a Nanobot whose configuration stands in home.

    Reads NANOBOT_MEMHOST_CONFIG, else home/memhost.json, which may be absent. Errors: ConfigError, also for a named file that is not there.
    """
    env = os.environ if environ is None else environ
    named = env.get(PREFIX + "CONFIG", "")
    path = Path(named).expanduser() if named else home / FILE
    values = _read(path, required=bool(named))
    if "server" not in values and env.get("MEMHOST_SERVER"):
        values["server"] = env["MEMHOST_SERVER"]
    for key in sorted(_KEYS):
        text = env.get(PREFIX + key.upper())
        if text is not None:
            values[key] = _from_text(key, text)
    settings = Settings(**values, home=path.parent.absolute())
    _check(settings)
    return settings


def _read(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise ConfigError(f"{path}: there is no such file") from None
        return {}
    except (OSError, ValueError) as e:
        raise ConfigError(f"{path}: {e}") from e
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: want a JSON object")
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, sorted(_KEYS), 1)
            raise ConfigError(f"{path}: unknown key {key!r}" + (f", did you mean {near[0]!r}?" if near else ""))
        values[key] = _typed(f"{path}: {key}", key, value)
    return values


def _typed(where: str, key: str, value: Any) -> Any:
    want = _TYPES[key]
    if want is bool and isinstance(value, bool):
        return value
    if want is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if want is str and isinstance(value, str):
        return value
    if want not in (bool, int, str) and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return tuple(value)
    names = {bool: "true or false", int: "a whole number", str: "a text"}
    raise ConfigError(f"{where}: want {names.get(want, 'a list of texts')}, got {json.dumps(value)}")


def _from_text(key: str, text: str) -> Any:
    where, want = PREFIX + key.upper(), _TYPES[key]
    if want is str:
        return text
    if want is bool:
        word = text.strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off", ""):
            return False
        raise ConfigError(f"{where}: want true or false, got {text!r}")
    if want is int:
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"{where}: want a whole number, got {text!r}") from None
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _check(s: Settings) -> None:
    url = urlsplit(base_url(s.server))
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment or url.username:
        raise ConfigError(f"server: want HOST:PORT or http(s)://HOST:PORT, got {s.server!r}")
    for key in ("user", "session", "run_id"):
        _check_template(key, getattr(s, key))
    for key in ("max_tokens", "max_items", "fresh_ms", "exit_timeout_ms"):
        if getattr(s, key) < 0:
            raise ConfigError(f"{key}: want 0 or more, got {getattr(s, key)}")
    for key in ("context_timeout_ms", "record_timeout_ms", "send_timeout_ms", "queue_max_events", "queue_max_bytes"):
        if getattr(s, key) <= 0:
            raise ConfigError(f"{key}: want more than 0, got {getattr(s, key)}")
    for key, allowed in (("automation", ("skip", "read")), ("native_memory", ("keep", "off"))):
        if getattr(s, key) not in allowed:
            raise ConfigError(f"{key}: want {' or '.join(allowed)}, got {getattr(s, key)!r}")


def _check_template(key: str, template: str) -> None:
    if not template:
        raise ConfigError(f"{key}: empty")
    try:
        names = [name for _, name, spec, conversion in string.Formatter().parse(template) if name is not None or spec or conversion]
    except ValueError as e:
        raise ConfigError(f"{key}: {e}") from e
    for name in names:
        if name not in _TEMPLATE_FIELDS:
            raise ConfigError(f"{key}: unknown field {{{name}}}; there are {', '.join('{' + f + '}' for f in _TEMPLATE_FIELDS)}")

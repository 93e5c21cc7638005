"""Changes of the library's behaviour, each behind a setting and refused where the library no longer has what it changes."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import date
from typing import Any

from .config import ConfigError
from .errors import Refused

_date: ContextVar[str | None] = ContextVar("mem0_gateway_observation_date", default=None)
_PROMPT = "generate_additive_extraction_prompt"


def install_observation_date() -> None:
    """Let ``observation_date`` reach the extraction prompt: the prompt's builder takes a ``timestamp`` that the library itself never gives it (mem0.memory.main)."""
    import inspect

    from mem0.memory import main

    build = getattr(main, _PROMPT, None)
    if getattr(build, "dated", False):
        return
    if build is None or "timestamp" not in inspect.signature(build).parameters:
        raise ConfigError(f"patches.observation_date: this mem0ai has no {_PROMPT} that takes a timestamp")

    def dated(*arguments: Any, **named: Any) -> Any:
        if day := _date.get():
            named["timestamp"] = day
        return build(*arguments, **named)

    dated.dated = True  # type: ignore[attr-defined]
    setattr(main, _PROMPT, dated)


class observed:
    """For the calls of the library within: the day against which the extractor resolves words such as yesterday."""

    def __init__(self, day: str | None) -> None:
        self._day = day

    def __enter__(self) -> None:
        self._token = _date.set(self._day)

    def __exit__(self, *_: object) -> None:
        _date.reset(self._token)


def check_day(day: str) -> str:
    """A day, YYYY-MM-DD. Raises Refused."""
    try:
        if date.fromisoformat(day).isoformat() == day:
            return day
    except ValueError:
        pass
    raise Refused("observation_date_refused", f"observation_date: want YYYY-MM-DD, not {day!r}")

"""What the entry point names. Loading it never fails: Nanobot would log a traceback that tells nobody what to do."""

from __future__ import annotations

from loguru import logger

from . import points

__all__ = ["MemhostTool"]

try:
    points.probe()
    from .tool import MemhostTool
except points.Moved as moved:
    logger.error("{}", moved)

    class MemhostTool:  # type: ignore[no-redef]
        """Stands in where Nanobot moved an extension point. It is no Tool, and Nanobot passes it over."""

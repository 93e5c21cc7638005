"""``memhost-gateway-mem0 --config FILE``: one process, one worker, until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path

import uvicorn

from . import __version__
from .config import ConfigError, load
from .environment import prepare


def main(arguments: list[str] | None = None) -> int:
    """Serve. Returns the exit code: 2 for a wrong configuration, 1 where the library cannot be opened."""
    parser = argparse.ArgumentParser(prog="memhost-gateway-mem0", description="mem0's REST routes, and what they hide, over the mem0ai package.")
    parser.add_argument("--config", required=True, type=Path, help="YAML or JSON; README.md has its keys")
    parser.add_argument("--check", action="store_true", help="read the configuration, open the library once, and end")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        config = load(options.config)
        prepare(config.data)
        # Not above: mem0 reads the environment when it is imported.
        from .app import create
        from .library import Library

        library = Library(config)
    except ConfigError as error:
        print(f"memhost-gateway-mem0: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        print(f"memhost-gateway-mem0: the library cannot be opened: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    if options.check:
        library.close()
        return 0
    server = uvicorn.Server(uvicorn.Config(create(config, library), host=config.host, port=config.port, workers=1, log_level="warning", access_log=False))
    for asked in (signal.SIGTERM, signal.SIGINT):
        # The server handles them, and raises them once more when it has ended: that is no failure.
        signal.signal(asked, lambda *_: None)
    server.run()
    return 0 if server.started else 1



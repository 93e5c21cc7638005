"""``memhost-gateway-graphiti --config F``: reads the configuration, then serves until it is told to end."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

import yaml

from . import __version__


def environment(path: Path) -> None:
    """What graphiti-core reads from the environment when it is imported: the length of embeddings, and that it sends nobody statistics."""
    os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
    try:
        dimensions = yaml.safe_load(path.read_text(encoding="utf-8"))["embedder"].get("dimensions", 1024)
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError):
        return  # what is wrong with the file is said when it is read in full
    os.environ["EMBEDDING_DIM"] = str(dimensions) if isinstance(dimensions, int) and dimensions > 0 else "1024"


def listen(host: str, port: int) -> socket.socket:
    """A listening socket that says it is TCP: only to such asyncio gives TCP_NODELAY, without which every answer takes 40 ms more. Raises SettingsError."""
    from .settings import SettingsError

    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        raise SettingsError(f"listen: {host}:{port}: {error.strerror}") from None
    listener.listen(128)
    return listener


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="memhost-gateway-graphiti", description="The methods of graphiti-core over HTTP.")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="configuration, YAML or JSON (README.md)")
    parser.add_argument("--check", action="store_true", help="read the configuration and end")
    parser.add_argument("--version", action="version", version=__version__)
    options = parser.parse_args(arguments)
    environment(options.config)
    from .settings import SettingsError  # from here on graphiti-core is imported

    try:
        return serve(options.config, check=options.check)
    except SettingsError as error:
        print(f"memhost-gateway-graphiti: {error}", file=sys.stderr)
        return 2


def serve(path: Path, *, check: bool) -> int:
    import uvicorn

    from .app import create
    from .engine import Engine
    from .journal import Journal
    from .settings import load

    settings = load(path)
    token = settings.token.read()
    engine = Engine(settings)
    if check:
        print(f"{path}: ok")
        return 0
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # These print statements with their parameters, which are people's texts, or a line for every request.
    for name in ("graphiti_core", "neo4j", "falkordb", "redis", "httpx", "httpx2", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    listener = listen(settings.listen.host, settings.listen.port)
    journal = Journal(settings.queue.path, limit=settings.limits.jobs, keep_done=settings.queue.keep_done) if settings.queue.path else None
    app = create(engine, token, journal)
    config = uvicorn.Config(app, access_log=False, log_config=None, server_header=False, timeout_graceful_shutdown=int(settings.limits.drain_seconds))

    class Server(uvicorn.Server):
        """Tells the lanes at the signal, so that what waits is answered and not drained."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if (service := getattr(app.state, "service", None)) is not None:
                service.lanes.stop()
            super().handle_exit(sig, frame)

    # uvicorn raises the signal again when it has ended in order: an end that was asked for is no failure.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    host, port = listener.getsockname()[:2]
    print(f"listening on http://{host}:{port}", flush=True)
    Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The command memhost-nanobot: is everything in place, what waits, and a fair workspace."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime
from importlib.metadata import entry_points
from pathlib import Path

from memhost_client.outbox import Outbox
from memhost_client.sender import Sender
from memhost_client.slot import Slot, SlotError

from . import native, points
from .config import ConfigError, Settings, load


def main(arguments: list[str] | None = None) -> int:
    """Exit codes: 0 fine, 1 something is not in place, 2 wrong use or configuration."""
    parser = argparse.ArgumentParser(prog="memhost-nanobot", description="A memhost slot as the memory of Nanobot.")
    parser.add_argument("-c", "--config", type=Path, default=Path("~/.nanobot/config.json"), help="Nanobot's configuration file; memhost.json stands beside it")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="is everything in place: Nanobot, the plugin, the configuration, the slot, the queue")
    queue = commands.add_parser("queue", help="what waits for the slot, and what it refused")
    queue.add_argument("--send", action="store_true", help="send what waits, now")
    queue.add_argument("--retry", action="store_true", help="put what was refused back into the queue")
    fair = commands.add_parser("fair", help="a new folder with a fresh workspace and a configuration that keeps Nanobot's own memory out of the prompt")
    fair.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    config = options.config.expanduser()
    try:
        if options.command == "fair":
            return _fair(config, options.folder)
        settings = load(config.parent)
        return _queue(settings, options.send, options.retry) if options.command == "queue" else _check(settings, config)
    except (ConfigError, OSError, ValueError) as e:
        print(f"memhost-nanobot: {e}", file=sys.stderr)
        return 2


def _check(settings: Settings, config: Path) -> int:
    bad = 0

    def line(name: str, ok: bool, text: str) -> None:
        nonlocal bad
        bad += not ok
        print(f"{'ok ' if ok else 'BAD'}  {name:<9} {text}")

    try:
        points.probe()
        line("nanobot", True, f"nanobot-ai {points.nanobot_version()}, every extension point is there")
    except points.Moved as e:
        line("nanobot", False, str(e))
    found = [e.value for e in entry_points(group="nanobot.tools") if e.name == "memhost"]
    line("plugin", bool(found), found[0] if found else "Nanobot will not find it: install memhost-nanobot into the environment of Nanobot")
    line("config", settings.enabled, f"run {settings.run_id}, user {settings.user}" if settings.enabled else "enabled is false")
    slot = Slot(settings.server, settings.token(os.environ))
    try:
        manifest = slot.manifest(settings.context_timeout_ms / 1000)
        line("slot", True, f"{slot.url} serves {manifest.get('provider', '?')}")
    except SlotError as e:
        line("slot", False, str(e))
    outbox = _outbox(settings)
    waiting, aside = outbox.count(), len(outbox.listing("aside"))
    line("queue", True, f"{waiting} turns wait, {aside} are set aside, in {outbox.folder}")
    if settings.native_memory == "off":
        workspace = _workspace(config)
        ways = list(native.problems(workspace, config))
        line("native", not ways, "; ".join(ways) if ways else f"nothing of Nanobot's own memory enters from {workspace}")
    return 1 if bad else 0


def _queue(settings: Settings, send: bool, retry: bool) -> int:
    outbox = _outbox(settings)
    if retry:
        print(f"{outbox.retry_aside()} events are back in the queue")
    if send:
        sender = Sender(
            outbox,
            Slot(settings.server, settings.token(os.environ)),
            send_timeout=settings.send_timeout_ms / 1000,
            say=lambda level, text: print(text),
            queue="memhost-nanobot queue",
        )
        sender.deliver()
    for table in ("waiting", "aside"):
        for event_id, scope, at, error in outbox.listing(table):
            run, _, user = scope.partition("\x00")
            print(f"{table:<7}  {datetime.fromtimestamp(at).astimezone().isoformat(timespec='seconds')}  run {run!r} user {user!r}  {event_id}  {error}")
    print(f"{outbox.count()} wait in {outbox.folder}")
    return 1 if send and outbox.count() else 0


def _fair(config: Path, folder: Path) -> int:
    for path in native.prepare(config, folder):
        print(path)
    print(f"A session of its own: nanobot agent -c {folder / 'config.json'} -m ...")
    return 0


def _outbox(settings: Settings) -> Outbox:
    return Outbox(settings.queue, max_events=settings.queue_max_events, max_bytes=settings.queue_max_bytes, say=lambda text: print(text, file=sys.stderr))


def _workspace(config: Path) -> Path:
    from nanobot.config.loader import load_config

    return Path(load_config(config).agents.defaults.workspace).expanduser()


if __name__ == "__main__":
    sys.exit(main())

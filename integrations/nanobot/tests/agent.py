"""A real Nanobot for the tests: its folder, and ways to let it talk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from conftest import Model, text_of
from nanobot import Nanobot

from memhost_nanobot.memory import Memory
from memhost_nanobot.native import OFF


class Agent:
    """A folder with Nanobot's configuration and a workspace. memhost is the content of memhost.json."""

    def __init__(self, folder: Path, model: Model, memhost: dict[str, Any], *, fair: bool = True) -> None:
        self.folder, self.model = folder, model
        self.config, self.workspace = folder / "config.json", folder / "workspace"
        folder.mkdir(parents=True)
        config: dict[str, Any] = json.loads(json.dumps(OFF)) if fair else {"agents": {"defaults": {}}}
        config["agents"]["defaults"] |= {"model": "stub", "provider": "custom", "workspace": str(self.workspace)}
        config["providers"] = {"custom": {"apiKey": "x", "apiBase": model.url + "/v1"}}
        self.config.write_text(json.dumps(config))
        (folder / "memhost.json").write_text(json.dumps(memhost))

    def fresh_workspace(self) -> Path:
        """A folder that was never there: what a fair comparison wants of each conversation session. Nanobot keeps the sessions of a workspace elsewhere, by
        its path: one that is deleted and made again is not fresh.
        """
        return Path(tempfile.mkdtemp(dir=self.folder))

    def bot(self, workspace: Path | None = None) -> Nanobot:
        """Nanobot in this process. The SDK does not make its configuration file known, so the variable does."""
        os.environ["NANOBOT_MEMHOST_CONFIG"] = str(self.folder / "memhost.json")
        return Nanobot.from_config(self.config, workspace=workspace)

    def cli(self, message: str, *, session: str = "cli:t", python_path: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """`nanobot agent -m`, in a process of its own."""
        command = [str(Path(sys.executable).parent / "nanobot"), "agent", "-c", str(self.config), "-s", session, "-m", message]
        env = {**os.environ, "PYTHONPATH": python_path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def last_user(self, at: int = -1) -> str:
        """The last user message of a prompt, as the model got it."""
        return text_of([m for m in self.model.requests[at]["messages"] if m["role"] == "user"][-1]["content"])


def memory(bot: Any) -> Memory:
    """The Memory of the plugin in a bot, to look at its queue."""
    tool = bot._loop.tools.get("memory_search") or bot._loop._runtime_context_providers[0].__self__
    found: Memory = tool._memory
    return found

"""The real memhost program as a slot, and the three frameworks' own loops around a stub model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAM = os.environ.get("AGENTS_TEST_PROGRAM", "memhost")


class RunningSlot:
    """memhost run on a data folder. It can be stopped and started again at its address."""

    def __init__(self, folder: Path) -> None:
        self.data, self.server = folder / "data", "127.0.0.1:0"
        (folder / "memhost.yaml").write_text("memory: {condition: full_history, archive: true}\n")
        self._config = folder / "memhost.yaml"
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        command = [PROGRAM, "run", "--json", "--config", str(self._config), "--data", str(self.data), "--listen", self.server]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        lines = ""
        while not lines.endswith("\n}\n"):
            lines += self._process.stdout.readline()
        self.server = json.loads(lines)["url"].removeprefix("http://")

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(30)
            self._process = None

    def command(self, *args: str) -> str:
        done = subprocess.run([PROGRAM, "--server", self.server, *args], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def said(self, run: str, user: str) -> list[str]:
        """What users said, as full_history has it."""
        text = self.command("retrieve", "x", "--run", run, "--user", user)
        return [line.split("] user: ", 1)[1] for line in text.splitlines() if "] user: " in line]


@contextmanager
def running(folder: Path) -> Iterator[RunningSlot]:
    slot = RunningSlot(folder)
    try:
        yield slot
    finally:
        slot.stop()


@pytest.fixture
def slot(tmp_path: Path) -> Generator[RunningSlot, None, None]:
    with running(tmp_path) as found:
        yield found

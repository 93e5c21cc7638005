"""The queue of several processes, with the real memhost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import RunningSlot

PROGRAM = """
import sys
from memhost_client import Memory, Scope

name, queue, server = sys.argv[1:]
memory = Memory(queue, server=server)
for turn in range(25):
    memory.record_now(f"{name} {turn}", Scope("study", "ann"), "s", [("user", f"process {name}, turn {turn}")])
print(memory.close(120))
"""


def test_processes_that_share_a_queue_lose_and_double_nothing(slot: RunningSlot, tmp_path: Path) -> None:
    names = "abcd"
    queue = tmp_path / "queue"
    command = [sys.executable, "-c", PROGRAM]
    running = [subprocess.Popen([*command, name, str(queue), slot.server], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for name in names]
    for process in running:
        out, errors = process.communicate(timeout=300)
        assert (process.returncode, out, errors) == (0, "0\n", "")
    said = slot.said("study", "ann")
    assert sorted(said) == sorted(f"process {name}, turn {turn}" for name in names for turn in range(25))
    for name in names:
        assert [line for line in said if line.startswith(f"process {name}")] == [f"process {name}, turn {turn}" for turn in range(25)]

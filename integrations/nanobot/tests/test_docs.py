"""README.md as it stands: its five minutes are done, in a home folder of their own, with a stub model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from agent import Agent
from conftest import Model
from test_memhost import memhost_program, running

__all__ = ["memhost_program"]

README = Path(__file__).parents[1] / "README.md"


def test_the_five_minutes(tmp_path: Path, model: Model, memhost_program: Path) -> None:
    page = README.read_text().split("\n## Five minutes\n")[1].split("\n## ")[0]
    configuration = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    lines = re.findall(r"(?m)^\$ (.*)$", page)
    assert len(configuration) == 1
    assert [line.split()[0] for line in lines] == ["pip", "go", "memhost-nanobot", "nanobot", "go", "nanobot", "go", "memhost-nanobot"]
    home = tmp_path / "home"
    home.mkdir()
    Agent(home / ".nanobot", model, {}, fair=False)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(tmp_path / "share"), "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def does(line: str) -> str:
        line = line.replace("go run ./cmd/memhost", str(memhost_program))
        done = subprocess.run(line, shell=True, env=env, cwd=home, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    assert lines[1] == "go run ./cmd/memhost run"
    with running([str(memhost_program), "run", "--listen", "127.0.0.1:0"], r"127\.0\.0\.1:(\d+)", env=env, cwd=home) as match:
        (home / ".nanobot" / "memhost.json").write_text(configuration[0].replace("7077", match[1]))
        check = does(lines[2])
        assert "serves recall" in check
        assert [line.split()[0] for line in check.splitlines()] == ["ok"] * 5
        assert "ANSWER[My cat is called Zorvex.]" in does(lines[3])
        assert "user: My cat is called Zorvex." in does(lines[4])
        does(lines[5])
        assert "Zorvex" in str(model.requests[-1]["messages"][-1]["content"])
        does(lines[6])
        assert "serves no_memory" in does(lines[7])

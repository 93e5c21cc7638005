"""The real Nanobot as the subject of `memhost eval`, seated by command with the script in examples/subject."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from conftest import Model, text_of

EXAMPLES = Path(__file__).parents[3] / "examples" / "subject"


def test_nanobot_is_the_subject_of_an_evaluation(tmp_path: Path, model: Model) -> None:
    config = json.loads((EXAMPLES / "nanobot.json").read_text())
    config["providers"]["custom"] = {"apiBase": model.url + "/v1", "apiKey": "x"}
    (tmp_path / "nanobot.json").write_text(json.dumps(config))
    subject = {"seat": "command", "command": [sys.executable, str(EXAMPLES / "nanobot_agent.py"), "{lab}/nanobot.json"]}
    lab = {"lab": 1, "pack": "small.pack", "budgets": [200], "freshness": 0, "providers": ["bm25"], "subject": subject}
    (tmp_path / "lab.json").write_text(json.dumps(lab))
    _memhost(tmp_path, "eval", "pack", "build", "synth", "-o", "small.pack", *_options(personas=1, sessions=1, turns=2))
    _memhost(tmp_path, "eval", "run", "lab.json", "--out", "run", "--yes", "--no-references")
    talks: list[dict[str, Any]] = []
    for line in (tmp_path / "run" / "cells" / "bm25" / "1" / "trace.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] == "transcript":
            talks.append(entry["transcript"])
        if entry["kind"] == "nonce_check":
            assert not entry["nonce_check"].get("breaches"), entry
    assert len(talks) >= 4
    for talk in talks:
        assert "error" not in talk and "breaches" not in talk, talk
        assert "not_sent" not in talk, "the labels travel as the SDK's attributes"
        assert [r["turn"] for r in talk["retrievals"]] == list(range(1, len(talk["exchanges"]) + 1))
    assert any(len(talk["exchanges"]) > 1 for talk in talks)
    for request in model.requests:
        said = [text_of(m["content"]) for m in request["messages"] if m["role"] == "user"]
        assert "<memory-context" in said[-1]
        assert not any("<memory-context" in text for text in said[:-1]), "an earlier context is repeated"
        assert not any("# Memory" in text_of(m["content"]) for m in request["messages"] if m["role"] == "system")


def _options(**options: int) -> list[str]:
    return [word for name, value in options.items() for word in ("--option", f"{name}={value}")]


def _memhost(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        [os.environ["NANOBOT_TEST_PROGRAM"], *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr

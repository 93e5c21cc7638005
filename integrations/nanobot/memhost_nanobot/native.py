"""Nanobot's own memory, and how to keep it out of the prompt where memories are compared.

It enters by prompt (MEMORY.md, USER.md, SOUL.md, a summary of archived turns) and by tools (files, shell, other sessions of the workspace). No extension point
switches it off. A fresh workspace and a configuration do: prepare makes both, problems looks whether they are in effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

# The configuration under which a prompt has no native memory. The tools for sessions (search_sessions, read_session, list_sessions) have no switch: they find
# nothing in a workspace that has one session.
OFF: dict[str, Any] = {
    "agents": {"defaults": {"dream": {"enabled": False}, "idleCompactAfterMinutes": 0, "disabledSkills": ["memory"]}},
    "gateway": {"heartbeat": {"enabled": False}},
    "tools": {"file": {"enable": False}, "exec": {"enable": False}, "web": {"enable": False}, "my": {"enable": False}, "cliApps": {"enable": False}},
}

# A file of the workspace, and the bundled templates with which it says nothing of a user.
_FILES = {
    "memory/MEMORY.md": ("memory/MEMORY.md",),
    "USER.md": ("USER.md",),
    "SOUL.md": ("SOUL.md", "legacy/SOUL.md"),
}


def problems(workspace: Path, config: Path | None) -> Iterator[str]:
    """Each way in which native memory can reach a prompt of this workspace, in words."""
    for name, templates in _FILES.items():
        text = _read(workspace / name).strip()
        if text and not any(text == _template(t) for t in templates):
            yield f"{workspace / name} has text of its own, which enters every prompt"
    if _read(workspace / "memory" / "history.jsonl").strip():
        yield f"{workspace / 'memory' / 'history.jsonl'} holds archived turns"
    if config is not None:
        try:
            own = json.loads(_read(config) or "{}")
        except ValueError:
            own = {}
        yield from _differences(own, OFF, f"{config}: ")


def _differences(own: Any, want: Mapping[str, Any], where: str) -> Iterator[str]:
    own = own if isinstance(own, Mapping) else {}
    for key, value in want.items():
        found = own.get(key, own.get(_snake(key)))
        if isinstance(value, Mapping):
            yield from _differences(found, value, f"{where}{key}.")
        elif isinstance(value, list):
            if not isinstance(found, list) or any(v not in found for v in value):
                yield f"{where}{key} lacks {', '.join(value)}"
        elif found != value:
            yield f"{where}{key} is not {json.dumps(value)}"


def prepare(source: Path, folder: Path) -> list[Path]:
    """Writes, into a new folder, the configuration of source with native memory off, a fresh workspace and a memhost.json with native_memory off.

    Errors: FileExistsError where the folder holds anything; OSError, ValueError where source cannot be read.
    """
    config = json.loads(source.read_text(encoding="utf-8"))
    own = _read(source.with_name("memhost.json"))
    memhost = json.loads(own) if own else {}
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: a fresh workspace holds no other session")
    workspace = folder / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    merged = _merge(config, OFF)
    merged["agents"]["defaults"]["workspace"] = str(workspace.absolute())
    written = []
    for name, data in (("config.json", merged), ("memhost.json", {**memhost, "native_memory": "off"})):
        path = folder / name
        path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        path.chmod(0o600)
        written.append(path)
    return [*written, workspace]


def _merge(own: Any, want: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(own) if isinstance(own, Mapping) else {}
    for key, value in want.items():
        name = _snake(key) if key not in out and _snake(key) in out else key
        if isinstance(value, Mapping):
            out[name] = _merge(out.get(name), value)
        elif isinstance(value, list):
            found = out.get(name)
            kept = found if isinstance(found, list) else []
            out[name] = [*kept, *(v for v in value if v not in kept)]
        else:
            out[name] = value
    return out


def _snake(key: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in key)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _template(name: str) -> str:
    try:
        return (files("nanobot") / "templates" / name).read_text(encoding="utf-8").strip()
    except (OSError, ModuleNotFoundError):
        return ""

"""Makes the workspaces of this folder with nanobot-ai's own classes; no model is asked.

python make_workspaces.py old DIR    with nanobot-ai 0.1.4: MEMORY.md, HISTORY.md, sessions/<channel>_<chat>.jsonl
python make_workspaces.py new DIR    with nanobot-ai 0.3.5: SOUL/USER/MEMORY.md, history.jsonl, cursors, sessions/<base64>.jsonl
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import Any


def calls(call_id: str, name: str, arguments: str) -> list[dict[str, Any]]:
    """One tool call, as a provider gives it."""
    return [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]


def old(workspace: Path) -> None:
    """A workspace of February 2026. Its package needs no more than these two modules, so the others, which want a provider's client, are passed over."""
    import nanobot  # type: ignore[import-untyped]

    agent = types.ModuleType("nanobot.agent")
    agent.__path__ = [str(Path(next(iter(nanobot.__path__))) / "agent")]
    sys.modules["nanobot.agent"] = agent
    from nanobot.agent.memory import MemoryStore  # type: ignore[import-untyped]
    from nanobot.session.manager import SessionManager  # type: ignore[import-untyped]

    memory = MemoryStore(workspace)
    memory.write_long_term("# Long-term Memory\n\n- Mara lives in Graz. 🏔\n- She drinks oolong tea.\n")
    memory.append_history("[2026-02-03 09:10] Mara asked for tea shops in Graz.\n\nShe settled on oolong.  \n")
    memory.append_history("[2026-02-04 18:00] Sie plant eine Reise nach Kärnten. 下周出发。")
    sessions = SessionManager(workspace)
    session = sessions.get_or_create("telegram:8281_a")
    session.add_message("user", "I live in Graz and like oolong tea.")
    session.add_message("assistant", "Noted.", tools_used=["web_search"])
    session.add_message("user", "Und nächste Woche fahre ich nach Kärnten.")
    session.last_consolidated = 2
    sessions.save(session)


def new(workspace: Path) -> None:
    """A workspace of November 2026, with its sessions brought back into it."""
    from nanobot.agent.memory import MemoryStore
    from nanobot.session.manager import JsonlSessionStore, Session
    from nanobot.utils.helpers import sync_workspace_templates  # type: ignore[import-untyped]

    sync_workspace_templates(workspace, silent=True)
    memory = MemoryStore(workspace)
    memory.write_soul("# Soul\n\nAnswer in short sentences.\n")
    memory.write_memory("# Long-term Memory\n\n- Mara keeps her notes in a repository.\n")
    memory.write_user("# User Profile\n\n- **Name**: Mara 🐈\n- Likes oolong tea.\n")
    memory.append_history("- [durable] Mara lives in Graz.", session_key="cli:direct")
    memory.append_history("- [permanent] Mag Oolong. 喜欢乌龙茶。", session_key="telegram:42")
    memory.append_history("- [ephemeral] Travels to Carinthia next week.", session_key="cli:direct")
    memory.set_last_dream_cursor(2)
    with tempfile.TemporaryDirectory() as root:
        store = JsonlSessionStore(workspace, sessions_root=Path(root))
        session = Session(key="cli:direct", metadata={"title": "Tea", "pinned": True})
        suffix = '<memory-context backend="x" scope="r/u">\n- INJECTED\n</memory-context>'
        session.add_message("user", "I live in Graz.\n\n" + suffix, _runtime_context={"version": 1, "sources": ["x"], "suffix": suffix})
        session.add_message("assistant", "", tool_calls=calls("c1", "web_search", '{"query": "Graz"}'), reasoning_content="think")
        session.add_message("tool", "Graz is in Styria.", tool_call_id="c1", name="web_search")
        session.add_message("assistant", "Noted.", latency_ms=459)
        session.commit_summary_checkpoint("- [durable] Mara lives in Graz.")
        session.add_message("user", [{"type": "text", "text": "And next week"}, {"type": "text", "text": "Carinthia."}])
        store.save(session)
        store.save(Session(key="telegram:42"))
        store.restore_to_workspace()
    (workspace / "HEARTBEAT.md").write_text("Nothing to do.\n", encoding="utf-8")
    (workspace / "skills" / "tea").mkdir(parents=True)
    (workspace / "skills" / "tea" / "SKILL.md").write_text("# Tea\n\nThree minutes.\n", encoding="utf-8")
    for made in (".git", ".nanobot"):
        shutil.rmtree(workspace / made, ignore_errors=True)
    for template in (".gitignore", "AGENTS.md", "prompts/README.md"):
        (workspace / template).unlink(missing_ok=True)


if __name__ == "__main__":
    kind, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True)
    {"old": old, "new": new}[kind](folder)

"""What examples/subject/nanobot_agent.py uses of Nanobot: a turn with its hooks, and an answer from the last line of context."""

import asyncio
import json
import types


class _Sessions(dict):
    get_cached = dict.get

    def save(self, session):
        self[session.key] = session


class Nanobot:
    @classmethod
    def from_config(cls, path, *, workspace):
        with open(path, encoding="utf-8") as f:
            assert json.load(f)["agents"]["defaults"]["dream"]["enabled"] is False
        assert workspace.startswith("/")
        return cls()

    def __init__(self):
        self.sessions = _Sessions()
        self._loop = types.SimpleNamespace(sessions=self.sessions)
        self.runtime = types.SimpleNamespace(
            add_context_provider=lambda f: setattr(self, "before", f), on_session_turn_persisted=lambda f: setattr(self, "after", f))

    async def run(self, text, *, session_key, channel, chat_id, sender_id, attributes):
        print("Nanobot prints things.")
        request = types.SimpleNamespace(original_user_text=text, attributes=attributes)
        block = await self.before(request)
        session = self.sessions.setdefault(session_key, types.SimpleNamespace(key=session_key, messages=[]))
        assert not any("<memory-context" in m["content"] for m in session.messages), "earlier contexts are in the session"
        found = [line for line in block.text.splitlines() if "user:" in line] if block else []
        answer = found[-1] if found else "I do not know that."
        session.messages += [{"role": "user", "content": text + "\n\n" + block.text if block else text, "plain": text},
            {"role": "assistant", "content": answer}]
        await asyncio.sleep(0)
        self.after(types.SimpleNamespace(context=types.SimpleNamespace(session_key=session_key)))
        return types.SimpleNamespace(content=answer)

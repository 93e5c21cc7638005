"""A memhost slot as the memory of a Python agent.

Memory is what an agent needs: context before a turn, a record after it. slot.py has the calls over HTTP, outbox.py and sender.py the queue on disk.
langchain.py, adk.py and openai_agents.py fit it into those frameworks.
"""

from .memory import Memory, Scope
from .slot import Context, Receipt, Slot, SlotError

__all__ = ["Context", "Memory", "Receipt", "Scope", "Slot", "SlotError"]

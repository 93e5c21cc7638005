"""A memhost slot as the memory of Nanobot.

Installed beside Nanobot it is found by Nanobot's entry point group ``nanobot.tools``; nothing else is needed. In the order of reading: ``plugin`` is what the
entry point names, ``tool`` is the tool that Nanobot makes of it, ``memory`` the flow (context before a turn, events after it), ``turn`` cuts a turn out of a
session, ``outbox`` keeps events on disk, ``sender`` delivers them, ``slot`` speaks to memhost. ``points`` lists what is used of Nanobot, ``config`` what can
be configured, ``native`` keeps Nanobot's own memory out.
"""

__version__ = "0.1.0"

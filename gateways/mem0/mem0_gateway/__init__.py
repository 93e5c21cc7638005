"""mem0's REST routes, and what they hide, over the published ``mem0ai`` package.

In the order of reading: ``cli`` reads the configuration (``config``), prepares the process (``environment``) and serves; ``library`` opens the library with
what its traps ask for (``stores``, ``rerank``, ``filters``, ``patches``); ``work`` says what may run beside what; ``app`` has the routes, ``models`` their bodies,
``errors`` which failure becomes which answer. Nothing here imports ``mem0`` before ``environment.prepare`` has run, except through ``app``.
"""

__version__ = "0.2.0"

"""The methods of graphiti-core over HTTP, one to one: API.md is the wire.

A request runs through ``app`` (routes), ``bodies`` (what may be asked), ``lanes`` (one write per group at a time) and ``journal`` (queued writes on disk), ``engine`` (the library), and ``render`` (JSON).
``settings`` and ``ontology`` read the configuration, ``errors`` says which failure becomes which answer, ``communities`` is a process of its own.
"""

__version__ = "0.1.0"

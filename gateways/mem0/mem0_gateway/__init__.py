"""The REST routes of mem0's self-hosted server over the published ``mem0ai`` package.

``mem0_gateway.app:create`` builds the application from the environment (see ``settings``); ``app`` has the routes, ``errors`` says which
failure becomes which status, ``models`` are the bodies.
"""

__version__ = "0.1.0"

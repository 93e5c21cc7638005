"""``python -m mem0_gateway``."""

from .cli import main

raise SystemExit(main())

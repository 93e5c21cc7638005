"""The versions of the frameworks that the adapters were made for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata


@contextmanager
def checked(package: str, version: str) -> Iterator[None]:
    """Around imports of a framework: where it lacks something, the error names the version that was checked and the one that is there."""
    try:
        yield
    except ImportError as e:
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            found = "none"
        raise ImportError(f"this adapter is checked with {package} {version}, and finds {found}: {e}") from e

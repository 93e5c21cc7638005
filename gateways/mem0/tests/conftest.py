"""The tests run against a started gateway: `make test-live BACKEND=mem0` starts it with its database and the stub, and sets these variables."""

from __future__ import annotations

import os
from collections.abc import Iterator

import httpx
import pytest


def setting(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        pytest.fail(f"{name} is not set: run `make test-live BACKEND=mem0`, which starts the gateway and runs these tests", pytrace=False)
    return value


@pytest.fixture(scope="session")
def gateway() -> Iterator[httpx.Client]:
    """A client of the gateway, emptied once."""
    with httpx.Client(base_url=setting("GATEWAY_URL"), timeout=120, trust_env=False) as client:
        client.post("/reset", headers={"x-api-key": setting("ADMIN_API_KEY")}).raise_for_status()
        yield client


@pytest.fixture(scope="session")
def key() -> str:
    return setting("ADMIN_API_KEY")


@pytest.fixture
def stub() -> Iterator[httpx.Client]:
    """The stub's control routes; faults are removed afterwards."""
    with httpx.Client(base_url=setting("STUB_URL"), trust_env=False) as client:
        yield client
        client.delete("/admin/faults").raise_for_status()

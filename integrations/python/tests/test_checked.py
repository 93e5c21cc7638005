"""A framework of another version, or none."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("adapter", "lacks", "package"),
    [
        ("langchain", "langchain.agents.middleware", "langchain"),
        ("adk", "google.adk.memory.memory_entry", "google-adk"),
        ("openai_agents", "agents.memory", "openai-agents"),
    ],
)
def test_a_framework_that_lacks_something_is_named_with_the_checked_version(monkeypatch: pytest.MonkeyPatch, adapter: str, lacks: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, lacks, None)
    monkeypatch.delitem(sys.modules, f"memhost_client.{adapter}", raising=False)
    with pytest.raises(ImportError, match=rf"this adapter is checked with {package} [0-9.]+, and finds [0-9.]+: "):
        importlib.import_module(f"memhost_client.{adapter}")

"""What needs no server."""

from __future__ import annotations

import pytest
from fastapi import HTTPException

from mem0_gateway.app import named, redact
from mem0_gateway.errors import Upstream, call, code_of
from mem0_gateway.settings import REQUIRED, Settings, SettingsError

FULL = dict.fromkeys(REQUIRED, "x") | {"POSTGRES_PORT": "5432"}


def test_every_missing_setting_is_named() -> None:
    with pytest.raises(SettingsError) as error:
        Settings.from_environment({"POSTGRES_HOST": "h"})
    assert all(name in str(error.value) for name in REQUIRED if name != "POSTGRES_HOST")


def test_a_port_must_be_a_number() -> None:
    with pytest.raises(SettingsError, match="POSTGRES_PORT"):
        Settings.from_environment(FULL | {"POSTGRES_PORT": "five"})


def test_dimensions_go_to_the_store_and_the_embedder() -> None:
    config = Settings.from_environment(FULL | {"EMBEDDING_DIMENSIONS": "384", "POSTGRES_HNSW": "false"}).memory_config()
    assert config["vector_store"]["config"]["embedding_model_dims"] == 384
    assert config["embedder"]["config"]["embedding_dims"] == 384
    assert config["vector_store"]["config"]["hnsw"] is False


def test_secrets_are_hidden_at_any_depth() -> None:
    assert redact({"a": {"password": "p", "b": 1}, "api_key": "k"}) == {"a": {"password": "[redacted]", "b": 1}, "api_key": "[redacted]"}


def test_empty_ids_do_not_count() -> None:
    assert named("", "", "r") == {"run_id": "r"}


class RateLimitError(Exception):
    """Named as the provider's client names it."""


def test_a_provider_error_is_found_along_its_causes() -> None:
    error = RuntimeError("outer")
    error.__cause__ = RateLimitError("inner")
    assert code_of(error) == "provider_rate_limited"
    assert code_of(RuntimeError("nothing known")) == "unknown"


@pytest.mark.parametrize(
    ("blame", "text", "status"),
    [("caller", "Memory with id 1 not found", 404), ("caller", "blank", 400), ("request", "user not found", 400)],
)
def test_the_callers_mistakes(blame: str, text: str, status: int) -> None:
    def fail() -> None:
        raise ValueError(text)

    with pytest.raises(HTTPException) as error:
        call(fail, blame=blame)
    assert error.value.status_code == status


def test_on_upstream_routes_a_value_error_is_a_502() -> None:
    def fail() -> None:
        raise ValueError("inner whitespace")

    with pytest.raises(Upstream) as error:
        call(fail, blame="upstream")
    assert error.value.code == "unknown"

"""The package as it is installed: from the checkout, and as the wheel that is built from it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Gateway, Library, configuration

import graphiti_gateway

#: run once more with the built wheel
installation = pytest.mark.installation


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = shlex.split(os.environ.get("GATEWAY_COMMAND", f"{sys.executable} -m graphiti_gateway.cli"))
    return subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=60, env={**os.environ, "GATEWAY_TOKEN": "t", **environment})


@installation
def test_it_is_what_was_installed() -> None:
    if "GATEWAY_INSTALLED_FROM" not in os.environ:
        pytest.skip("run from the sources, not installed")
    assert importlib.metadata.version("memhost-gateway-graphiti") == graphiti_gateway.__version__
    inside = "site-packages" in str(Path(graphiti_gateway.__file__))
    assert inside == (os.environ["GATEWAY_INSTALLED_FROM"] == "wheel")
    assert (Path(graphiti_gateway.__file__).parent / "py.typed").exists()


@installation
def test_the_program(tmp_path: Path) -> None:
    assert command("--version").stdout.strip() == graphiti_gateway.__version__
    file = tmp_path / "gateway.json"
    file.write_text(json.dumps(configuration()))
    checked = command("--config", str(file), "--check")
    assert (checked.returncode, checked.stdout) == (0, f"{file}: ok\n"), checked.stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"token": {"env": "NOT_SET"}}, "environment variable NOT_SET: is not set"),
        ({"listen": {"host": "0.0.0.0"}}, "listen: Value error, 0.0.0.0 is not loopback"),
        ({"types": {"edge": {"A": {"properties": {"uuid": {"type": "string"}}}}}}, "types.edge.A: property uuid"),
        ({"nonsense": 1}, "nonsense: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_configuration_ends_it_with_one_line(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    file = tmp_path / "gateway.json"
    file.write_text(json.dumps(configuration(**change)))
    ended = command("--config", str(file))
    assert ended.returncode == 2
    assert told in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_embeddings_have_the_configured_length(fresh: Callable[..., Gateway], library: Library, group: str) -> None:
    """The library reads it from the environment when it is imported. Two lengths in one database break its searches: the group goes at once."""
    gateway = fresh(embedder={**configuration()["embedder"], "dimensions": 256})
    gateway.add(group, "mara(user): I prefer aisle seats.")
    stored = library.rows("MATCH ()-[e:RELATES_TO {group_id: $group}]->() RETURN size(e.fact_embedding) AS length", group=group)
    assert gateway.delete(f"/v1/groups/{group}").json["removed"]["edges"] == 1
    assert stored == [{"length": 256}]


@installation
def test_it_serves(fresh: Callable[..., Gateway], group: str) -> None:
    gateway = fresh()
    assert gateway.add(group, "mara(user): I prefer aisle seats.")["created_edge_uuids"]
    assert gateway.post(f"/v1/groups/{group}/search_", {"query": "seats"}).json["edges"]
    assert gateway.post(f"/v1/groups/{group}/communities").status == 200, "the child process finds the package"
    assert gateway.end() == 0

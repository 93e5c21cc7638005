"""The configuration, and whose memory a request is about."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memhost_nanobot.config import ConfigError, Settings, load
from memhost_nanobot.scope import Scope, access, bounded


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    settings = load(tmp_path, {})
    assert settings == Settings(home=tmp_path)
    assert settings.queue == tmp_path / "memhost-queue"


def test_environment_goes_before_the_file_and_the_file_before_MEMHOST_SERVER(tmp_path: Path) -> None:
    (tmp_path / "memhost.json").write_text(json.dumps({"server": "file:1", "max_tokens": 7, "read_only_sessions": ["eval-*"]}))
    settings = load(tmp_path, {"MEMHOST_SERVER": "env:2", "NANOBOT_MEMHOST_MAX_TOKENS": "8", "NANOBOT_MEMHOST_READ_ONLY": "yes"})
    assert (settings.server, settings.max_tokens, settings.read_only, settings.read_only_sessions) == ("file:1", 8, True, ("eval-*",))
    (tmp_path / "memhost.json").write_text("{}")
    assert load(tmp_path, {"MEMHOST_SERVER": "env:2"}).server == "env:2"


def test_a_named_file_is_taken_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"run_id": "r7"}')
    settings = load(tmp_path / "home", {"NANOBOT_MEMHOST_CONFIG": str(tmp_path / "other.json")})
    assert (settings.run_id, settings.home) == ("r7", tmp_path)
    with pytest.raises(ConfigError, match=r"nowhere\.json: there is no such file"):
        load(tmp_path, {"NANOBOT_MEMHOST_CONFIG": str(tmp_path / "nowhere.json")})


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"max_token": 5}, "unknown key 'max_token', did you mean 'max_tokens'?"),
        ({"home": "x"}, "unknown key 'home'"),
        ({"max_tokens": "5"}, 'max_tokens: want a whole number, got "5"'),
        ({"max_tokens": True}, "max_tokens: want a whole number, got true"),
        ({"enabled": 1}, "enabled: want true or false, got 1"),
        ({"read_only_sessions": "a"}, "read_only_sessions: want a list of texts"),
        ({"user": "{sender}"}, r"user: unknown field \{sender\}"),
        ({"user": "{sender_id"}, "user: "),
        ({"user": ""}, "user: empty"),
        ({"server": "ftp://x"}, "server: want HOST:PORT"),
        ({"server": "http://me:secret@x"}, "server: want HOST:PORT"),
        ({"automation": "record"}, "automation: want skip or read, got 'record'"),
        ({"native_memory": "no"}, "native_memory: want keep or off"),
        ({"context_timeout_ms": 0}, "context_timeout_ms: want more than 0"),
        ({"fresh_ms": -1}, "fresh_ms: want 0 or more"),
        ([], "want a JSON object"),
    ],
)
def test_a_mistake_names_its_place(tmp_path: Path, block: Any, message: str) -> None:
    (tmp_path / "memhost.json").write_text(json.dumps(block))
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, {})


def test_a_file_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "memhost.json").write_text("{")
    with pytest.raises(ConfigError, match=r"memhost\.json: Expecting"):
        load(tmp_path, {})


def test_the_token_comes_from_the_environment_only() -> None:
    assert Settings().token({"MEMHOST_TOKEN": "s"}) == "s"
    assert Settings(token_env="MINE").token({"MEMHOST_TOKEN": "s"}) == ""
    assert Settings(token_env="").token({"": "s"}) == ""


def request(**more: Any) -> SimpleNamespace:
    base: dict[str, Any] = {
        "channel": "telegram",
        "chat_id": "g1",
        "session_key": "telegram:g1",
        "sender_id": "ann",
        "turn_id": "t",
        "original_user_text": "hi",
        "attributes": {},
    }
    return SimpleNamespace(**{**base, **more})


def test_a_group_chat_has_a_memory_for_each_sender() -> None:
    ann, bob = access(Settings(), request()), access(Settings(), request(sender_id="bob"))
    assert (ann.scope, bob.scope) == (Scope("nanobot", "telegram:ann"), Scope("nanobot", "telegram:bob"))
    assert ann.session_id == bob.session_id == "telegram:g1"


def test_one_sender_id_on_two_channels_is_two_people_unless_configured() -> None:
    other = request(channel="discord")
    assert access(Settings(), request()).scope != access(Settings(), other).scope
    assert access(Settings(user="me"), request()).scope == access(Settings(user="me"), other).scope


def test_an_sdk_host_may_say_scope_labels_and_read_only() -> None:
    own = {"run_id": "r1", "user_id": "p1", "session_id": "s9", "read_only": True, "scenario": "travel", "attribute": "", "unknown": 3}
    found = access(Settings(), request(attributes={"memhost": own}))
    assert (found.scope, found.session_id, found.labels) == (Scope("r1", "p1"), "s9", {"scenario": "travel"})
    assert (found.read, found.record, found.why) == (True, False, "read-only")


@pytest.mark.parametrize(("pattern", "records"), [("telegram:*", False), ("eval-*", True), ("telegram:g?", False)])
def test_sessions_are_read_only_by_pattern(pattern: str, records: bool) -> None:
    assert access(Settings(read_only_sessions=(pattern,)), request()).record is records


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"session_key": "dream:x"}, "consolidation"),
        ({"sender_id": "cron"}, "automation of cron"),
        ({"sender_id": "trigger"}, "automation"),
        ({"sender_id": "subagent"}, "automation"),
        ({"session_key": "heartbeat", "sender_id": "user"}, "automation of user in heartbeat"),
        ({"original_user_text": None}, "internal continuation"),
        ({"sender_id": None}, "no sender_id, which user_id is made of"),
        ({"sender_id": "a\x00b"}, "zero byte"),
    ],
)
def test_what_no_person_said_has_no_memory(more: dict[str, Any], why: str) -> None:
    found = access(Settings(), request(**more))
    assert (found.read, found.record) == (False, False)
    assert why in found.why


def test_automations_may_read_and_are_never_recorded() -> None:
    found = access(Settings(automation="read", user="ann"), request(sender_id="cron"))
    assert (found.read, found.record, found.why) == (True, False, "an automation")
    assert access(Settings(automation="read"), request(session_key="dream:x")).read is False


@pytest.mark.parametrize("text", ["a" * 513, "é" * 300, "🐈" * 200, "x" * 100000])
def test_a_long_id_fits_and_stays_its_own(text: str) -> None:
    assert len(bounded(text).encode()) <= 512
    assert bounded(text) != bounded(text + "b")


@pytest.mark.parametrize("text", ["a", "*", "..", 'a"b', "🐈", "a" * 512])
def test_an_ordinary_id_is_left_alone(text: str) -> None:
    assert bounded(text) == text

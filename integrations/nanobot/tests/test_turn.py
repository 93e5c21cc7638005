"""A turn cut out of a session. The sessions are recorded from nanobot-ai 0.3.5 (testdata)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nanobot.runtime_context import RuntimeContextBlock, append_runtime_context, public_history_message

from memhost_nanobot.config import Settings
from memhost_nanobot.scope import access
from memhost_nanobot.turn import EMPTIED, Ask, NotRecorded, Turn, events, strip

_RECORDED: list[dict[str, Any]] = [json.loads(line) for line in (Path(__file__).parent / "testdata" / "nanobot-0.3.5.jsonl").read_text().splitlines()]


def recorded(name: str) -> tuple[list[SimpleNamespace], list[list[dict[str, Any]]]]:
    """The requests and the sessions of a recording, in order."""
    requests = [SimpleNamespace(**r["payload"]) for r in _RECORDED if r["name"] == name + ".request_context"]
    return requests, [r["payload"] for r in _RECORDED if r["name"] == name + ".session_messages"]


def turn_of(requests: list[SimpleNamespace], start: int = 0, settings: Settings | None = None) -> Turn:
    first = requests[0]
    turn = Turn(first.session_key, first.turn_id, first.channel, start)
    for r in requests:
        turn.asks.append(Ask(r.original_user_text, r.sender_id, access(settings or Settings(), r)))
    return turn


def said(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in event["messages"]]


def test_a_turn_is_one_event_without_the_context() -> None:
    requests, sessions = recorded("cli_turn")
    made, left_out = events(turn_of(requests), sessions[0], public_history_message)
    assert left_out == []
    (event,) = made
    assert said(event) == [("user", "And what tea do I like?"), ("assistant", "ANSWER[And what tea do I like?] memory-seen=yes")]
    assert (event["run_id"], event["user_id"], event["session_id"], event["turn_id"]) == ("nanobot", "cli:user", "cli:t1", requests[0].turn_id)
    assert event["metadata"] == {"agent": "nanobot", "channel": "cli", "sender_id": "user"}
    assert "memory-context" not in json.dumps(event)


def test_the_time_has_a_zone_though_Nanobot_names_none() -> None:
    requests, sessions = recorded("cli_turn")
    (event,), _ = events(turn_of(requests), sessions[0], public_history_message)
    assert event["timestamp"].startswith("2026-11-21T04:17:21.684018")
    assert event["timestamp"][-6] in "+-"


def test_the_event_id_is_the_turns_and_the_same_every_time() -> None:
    requests, sessions = recorded("cli_turn")
    (first,), _ = events(turn_of(requests), sessions[0], public_history_message)
    (again,), _ = events(turn_of(requests), sessions[0], public_history_message)
    assert first == again
    requests[0].turn_id += "1"
    (other,), _ = events(turn_of(requests), sessions[0], public_history_message)
    assert other["event_id"] != first["event_id"]


def test_tool_calls_and_results_are_not_said_by_anybody() -> None:
    requests, sessions = recorded("tool_turn")
    (event,), _ = events(turn_of(requests), sessions[0], public_history_message)
    assert [role for role, _ in said(event)] == ["user", "assistant"]


def test_a_failed_model_call_is_no_turn() -> None:
    requests, sessions = recorded("llm_error")
    assert events(turn_of(requests), sessions[0], public_history_message) == ([], ["the model call failed"])


def test_commands_are_not_recorded() -> None:
    requests, _ = recorded("cli_turn")
    _, sessions = recorded("slash_command")
    (event,), _ = events(turn_of(requests), sessions[0], public_history_message)
    assert "status" not in json.dumps(event)


def test_a_follow_up_while_the_agent_is_busy_is_in_the_same_event() -> None:
    requests, sessions = recorded("inproc.midturn")
    (event,), _ = events(turn_of(requests), sessions[0], public_history_message)
    assert [role for role, _ in said(event)] == ["user", "assistant", "user", "assistant"]


def test_a_follow_up_of_somebody_else_goes_into_their_memory() -> None:
    requests, sessions = recorded("inproc.midturn")
    requests[1].sender_id = "bob"
    made, _ = events(turn_of(requests), sessions[0], public_history_message)
    assert [(e["user_id"], [r for r, _ in said(e)]) for e in made] == [("telegram:u7", ["user", "assistant"]), ("telegram:bob", ["user", "assistant"])]
    assert made[0]["event_id"] != made[1]["event_id"]


def test_follow_ups_that_Nanobot_joined_are_told_apart_by_person() -> None:
    requests, _ = recorded("inproc.midturn")
    requests[1].sender_id = "bob"
    first = requests[0].original_user_text
    messages = [{"role": "user", "content": f"{first}\n\n{requests[1].original_user_text}"}, {"role": "assistant", "content": "both"}]
    made, _ = events(turn_of(requests), messages, public_history_message)
    assert [(e["user_id"], said(e)[0][1]) for e in made] == [("telegram:u7", first), ("telegram:bob", "second part while busy")]


def test_who_said_what_is_never_guessed() -> None:
    requests, _ = recorded("inproc.midturn")
    requests[1].sender_id = "bob"
    with pytest.raises(NotRecorded, match="who said what"):
        events(turn_of(requests), [{"role": "user", "content": "something else"}], public_history_message)


def test_a_message_changed_by_Nanobot_is_the_persons_where_there_is_one_person() -> None:
    requests, _ = recorded("inproc.image")
    messages = [{"role": "user", "content": [{"type": "text", "text": "[image: px.png]"}, {"type": "text", "text": "what is in this picture"}]}]
    (event,), _ = events(turn_of(requests), messages, public_history_message)
    assert said(event) == [("user", "[image: px.png]\nwhat is in this picture")]


def test_an_image_has_its_text_recorded() -> None:
    requests, sessions = recorded("inproc.image")
    (event,), _ = events(turn_of(requests), sessions[0], public_history_message)
    assert said(event)[0] == ("user", "what is in this picture")


def test_a_sub_agents_result_is_dropped_and_the_answer_to_it_kept() -> None:
    requests, sessions = recorded("inproc.subagent")
    (event,), _ = events(turn_of(requests), sessions[0], public_history_message)
    assert [role for role, _ in said(event)] == ["user", "assistant", "assistant"]
    assert "Task: count to three" not in json.dumps(event)


def test_a_cron_job_and_a_heartbeat_are_not_recorded() -> None:
    for name, start in (("inproc.cron", 2), ("inproc.heartbeat", 0)):
        requests, sessions = recorded(name)
        made, _ = events(turn_of(requests, start, Settings(automation="read", user="ann")), sessions[0], public_history_message)
        assert made == [], name


def test_a_read_only_turn_is_left_out_and_says_so() -> None:
    requests, sessions = recorded("cli_turn")
    assert events(turn_of(requests, settings=Settings(read_only=True)), sessions[0], public_history_message) == ([], ["read-only"])


def test_labels_of_an_sdk_host_are_on_the_event() -> None:
    requests, sessions = recorded("inproc.sdk_run_attributes")
    requests[0].attributes = {"memhost": {"run_id": "r1", "scenario": "travel", "context": "work"}}
    (event,), _ = events(turn_of(requests), sessions[0], public_history_message)
    assert (event["run_id"], event["scenario"], event["context"]) == ("r1", "travel", "work")


def test_only_the_turn_is_cut_out_of_the_session() -> None:
    requests, sessions = recorded("inproc.bus_group_two_senders")
    (event,), _ = events(turn_of(requests[1:], start=2), sessions[1], public_history_message)
    assert said(event)[0] == ("user", "I am Bob")
    assert event["user_id"] == "telegram:bob"


def test_a_session_shortened_meanwhile_is_searched_for_the_turn() -> None:
    requests, sessions = recorded("inproc.bus_group_two_senders")
    (event,), _ = events(turn_of(requests[1:], start=40), sessions[1], public_history_message)
    assert said(event)[0] == ("user", "I am Bob")
    with pytest.raises(NotRecorded, match="shortened"):
        events(turn_of(requests[1:], start=40), [], public_history_message)


def test_a_context_that_Nanobot_does_not_take_out_any_more_is_never_recorded() -> None:
    requests, sessions = recorded("cli_turn")
    turn = turn_of(requests)
    turn.blocks.append(sessions[0][0]["_runtime_context"]["suffix"])
    with pytest.raises(NotRecorded, match="fed with its own output"):
        events(turn, sessions[0], dict)


OURS = '<memory-context backend="b" scope="r/u">\n- Zorvex\n</memory-context>'


def stored(content: Any, *blocks: tuple[str, str]) -> dict[str, Any]:
    merged, marker = append_runtime_context(content, [RuntimeContextBlock(s, t) for s, t in blocks])
    return {"role": "user", "content": merged, "_runtime_context": marker} if marker else {"role": "user", "content": merged}


def test_contexts_are_taken_out_of_a_session() -> None:
    answer = {"role": "assistant", "content": "a", "latency_ms": 3}
    assert strip([stored("hi", ("memhost", OURS)), answer], public_history_message) == [{"role": "user", "content": "hi"}, answer]
    assert strip([stored("hi"), answer], public_history_message) is None


@pytest.mark.parametrize("blocks", [(("memhost", OURS), ("quote", "Q")), (("quote", "Q"), ("memhost", OURS)), (("a", "A"), ("memhost", OURS), ("b", "B\n\nC"))])
@pytest.mark.parametrize("content", ["hi", [{"type": "text", "text": "hi"}], ""])
def test_blocks_of_other_providers_stay(content: Any, blocks: tuple[tuple[str, str], ...]) -> None:
    cleaned = strip([stored(content, *blocks)], public_history_message)
    assert cleaned == [stored(content, *[b for b in blocks if b[0] != "memhost"])]
    assert public_history_message(cleaned[0])["content"] == content


def test_where_ours_cannot_be_told_from_others_all_blocks_go() -> None:
    cleaned = strip([stored("hi", ("quote", OURS), ("memhost", OURS))], public_history_message)
    assert cleaned == [{"role": "user", "content": "hi"}]


def test_what_the_tool_found_is_emptied_once_and_other_tools_keep_theirs() -> None:
    found = {"role": "tool", "tool_call_id": "c1", "name": "memory_search", "content": OURS}
    other = {"role": "tool", "tool_call_id": "c2", "name": "web", "content": OURS}
    cleaned = strip([found, other], public_history_message)
    assert cleaned == [{**found, "content": EMPTIED}, other]
    assert strip(cleaned, public_history_message) is None

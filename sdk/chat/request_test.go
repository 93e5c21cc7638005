package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func full() *Request {
	seed := int64(7)
	return &Request{Model: "m", MaxTokens: 100, Temperature: abi.Raw("0.1"), Seed: &seed,
		Messages: []Message{{Role: "system", Content: "be \"brief\""}, {Role: "assistant", Calls: []ToolCall{
			{ID: "c1", Name: "save", Arguments: abi.Raw(`{"a":1}`)}, {ID: "c2", Name: "save", Arguments: abi.Raw(`"{}"`)}}},
			{Role: "tool", ToolCallID: "c1", Content: ""}},
		Tools: []string{`{"type":"function","function":{"name":"save"}}`}, Force: "save"}
}

func TestEncode(t *testing.T) {
	assert.JSONEq(t, `{"model":"m","temperature":0.1,"max_completion_tokens":100,"seed":7,"messages":[
		{"role":"system","content":"be \"brief\""},
		{"role":"assistant","content":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"save","arguments":"{\"a\":1}"}},
			{"id":"c2","type":"function","function":{"name":"save","arguments":"{}"}}]},
		{"role":"tool","content":"","tool_call_id":"c1"}],
		"tools":[{"type":"function","function":{"name":"save"}}],
		"tool_choice":{"type":"function","function":{"name":"save"}}}`, string(full().Encode(Params{})))
	var least map[string]any
	require.NoError(t, json.Unmarshal(full().Encode(Params{true, true, true, true}), &least))
	assert.Equal(t, 100.0, least["max_tokens"])
	assert.Equal(t, "auto", least["tool_choice"])
	for _, name := range []string{"max_completion_tokens", "temperature", "seed"} {
		assert.NotContains(t, least, name)
	}
}

func TestARefusedParameterIsLeftOutOrNamedOtherwise(t *testing.T) {
	r, p := full(), Params{}
	require.Equal(t, "max_completion_tokens, temperature, seed, tool_choice", r.Sent(p))
	for _, refusal := range []string{`{"error":{"message":"Unrecognized request argument supplied: max_completion_tokens"}}`,
		`{"error":{"message":"Unsupported value: 'temperature' does not support 0"}}`, `{"detail":"seed is not permitted"}`,
		`{"error":{"message":"tool_choice must be auto"}}`} {
		next, ok := r.After(p, 400, []byte(refusal))
		require.True(t, ok, refusal)
		p = next
		require.Equal(t, p, ParseParams(p.String()))
	}
	require.Equal(t, "max_tokens", r.Sent(p), "a bound is never dropped")
	for _, refusal := range []string{`max_tokens is not supported`, `context too long`, `temperature`, `tool_choice`} {
		_, ok := r.After(p, 400, []byte(refusal))
		require.False(t, ok, refusal)
	}
	for status, body := range map[int64]string{500: "temperature", 429: "seed"} {
		_, ok := r.After(Params{}, status, []byte(body))
		require.False(t, ok, "a failure for now refuses no parameter")
	}
	bare := Request{MaxTokens: 100}
	_, ok := bare.After(Params{}, 400, []byte("temperature, seed and tool_choice"))
	require.False(t, ok, "what was not sent is not left out")
	require.Equal(t, Params{OldLimit: true}, bare.AfterAnswer(Params{}, 101), "the endpoint ignored the limit")
	require.Equal(t, Params{}, bare.AfterAnswer(Params{}, 100))
	require.Equal(t, Params{NoSeed: true}, ParseParams("no_seed other"))
}

func TestParseAnswer(t *testing.T) {
	const call = `"tool_calls":[{"id":"c1","type":"function","function":{"name":"save","arguments":"{\"a\":1}"}}]`
	for body, want := range map[string]Answer{
		`{"choices":[{"message":{"content":"<think>x</think>yes"},"finish_reason":"stop"}],"model":"m","system_fingerprint":"f",
			"usage":{"prompt_tokens":3,"completion_tokens":4}}`: {Text: "yes", Model: "m", Fingerprint: "f",
			FinishReason: "stop", PromptTokens: 3, CompletionTokens: 4, Counted: true},
		`{"choices":[{"message":{"content":[{"type":"thinking","text":"x"},{"type":"text","text":"a"},{"text":"b"}]}}],"error":null}`: {Text: "ab"},
		`{"choices":[{"message":{"content":null,` + call + `}},{"message":{"content":"other"}}]}`: {Calls: []ToolCall{
			{ID: "c1", Name: "save", Arguments: abi.Raw(`"{\"a\":1}"`)}}},
		"data: {\"choices\":[{\"delta\":{\"content\":\"<think>x</thi\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"nk>yes\"}}]}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n": {Text: "yes",
			PromptTokens: 1, CompletionTokens: 2, Counted: true},
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"save","arguments":"{\"a\""}}]}}]}` + "\n" +
			`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}`: {FinishReason: "tool_calls",
			Calls: []ToolCall{{ID: "c1", Name: "save", Arguments: abi.Raw(`"{\"a\":1}"`)}}},
	} {
		got, err := ParseAnswer([]byte(body))
		require.NoError(t, err, body)
		assert.Equal(t, &want, got, body)
	}
	for body, want := range map[string]string{"": "", "<html>": "", `{"choices":[]}`: "no choice",
		`{"error":{"message":"no credit left"}}`: "no credit left", "data: {\n": "",
		`{"choices":[{"message":{"content":"x"}}],"error":{"message":"broke off"}}`: "broke off"} {
		_, err := ParseAnswer([]byte(body))
		require.Equal(t, abi.CodeBackend, abi.CodeOf(err), body)
		assert.Contains(t, err.Error(), want)
		assert.Equal(t, body, abi.AsError(err).Native.Body)
	}
}

func TestRefusal(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for status, want := range map[int64]abi.Code{400: abi.CodeBackend, 401: abi.CodeUnauthenticated, 403: abi.CodeUnauthenticated,
		404: abi.CodeNotFound, 413: abi.CodeBackend, 422: abi.CodeBackend, 408: abi.CodeUnavailable, 429: abi.CodeRateLimited,
		503: abi.CodeUnavailable} {
		e := Refusal(status, "Mon, 02 Mar 2026 09:00:30 GMT", []byte(`{"error":{"message":"own words"}}`), now)
		assert.Equal(t, want, e.Code, status)
		assert.Equal(t, int64(30_000), *e.RetryAfterMS, status)
		assert.Contains(t, e.Message, "own words")
		assert.Equal(t, status == 408 || status == 429 || status == 503, e.Retryable, status)
		assert.Equal(t, status == 400 || status == 413 || status == 422, IsFinal(e), status)
	}
	e := Refusal(500, "", []byte(strings.Repeat("é", abi.NativeBodyLimit)), now)
	assert.Nil(t, e.RetryAfterMS)
	assert.LessOrEqual(t, len(e.Native.Body), abi.NativeBodyLimit)
}

func TestObject(t *testing.T) {
	for answer, want := range map[string]string{`{"branch":"a"}`: `{"branch":"a"}`,
		"Since {x} and {\"a\":1}:\n```json\n{\"branch\":\"b\"}\n```": `{"branch":"b"}`, `{"outer":{"branch":"c"}}`: `{"branch":"c"}`,
		`<think>{"branch":"d"}</think>none`: "", "": ""} {
		raw, ok := Object(answer, "branch")
		assert.Equal(t, want != "", ok, answer)
		assert.Equal(t, want, string(raw), answer)
	}
}

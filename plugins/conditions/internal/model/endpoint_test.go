package model

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk/chat"
	"github.com/memhost/memhost/sdk/sdktest"
)

// endpoint answers requests by their JSON, and keeps them.
type endpoint struct {
	answer func(body map[string]any) sdktest.Reply
	bodies []map[string]any
}

const yes = `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`

// rejectParams rejects requests with one of these parameters.
func rejectParams(names ...string) func(map[string]any) sdktest.Reply {
	return func(body map[string]any) sdktest.Reply {
		for _, name := range names {
			if _, has := body[name]; has {
				return sdktest.Reply{Status: 400, Body: `{"error":{"message":"unsupported parameter: ` + name + `"}}`}
			}
		}
		return sdktest.Reply{Body: yes}
	}
}

func (x *endpoint) host(t *testing.T) *sdktest.Host {
	manifest, err := os.ReadFile("../../rolling_summary/manifest.json")
	require.NoError(t, err)
	return sdktest.New(t, sdktest.Options{Provider: "rolling_summary", Manifest: manifest,
		HTTP: func(r sdktest.Request) sdktest.Reply {
			var body map[string]any
			require.NoError(t, json.Unmarshal([]byte(r.Body), &body))
			x.bodies = append(x.bodies, body)
			return x.answer(body)
		}})
}

// ask makes one request in a separate operation.
func ask(t *testing.T, h *sdktest.Host, r chat.Request) (*chat.Answer, Usage, error) {
	t.Helper()
	p, err := ParseEndpoint(wirejson.DecodeBytes([]byte(`{"model":"m","max_output_tokens":100}`)), nil)
	require.NoError(t, err)
	s, u := state.Of(h.Call(abi.OpWaitUntilReady, abi.MemoryScope{RunID: "run", PersonaID: "mara"})), Usage{}
	answer, err := p.Chat(s, r, &u)
	require.NoError(t, s.Err())
	u.Add(s)
	return answer, u, err
}

func TestWhatAnEndpointRefusesIsFoundOutOnceAndRecorded(t *testing.T) {
	for refused, params := range map[string]string{"": "max_completion_tokens, temperature",
		"temperature": "max_completion_tokens", "max_completion_tokens": "max_tokens, temperature"} {
		t.Run(refused, func(t *testing.T) {
			x := &endpoint{answer: rejectParams(refused)}
			h := x.host(t)
			answer, u, err := ask(t, h, Prompt("i", "a"))
			require.NoError(t, err)
			assert.Equal(t, "yes", answer.Text)
			assert.Equal(t, Usage{Calls: 1, PromptTokens: 3, CompletionTokens: 1, MS: u.MS, Params: params}, u,
				"a refused request has no answer, and is not counted")
			before := len(x.bodies)
			_, _, err = ask(t, h, Prompt("i", "a"))
			require.NoError(t, err)
			assert.Equal(t, before+1, len(x.bodies), "it is known now")
			for _, body := range x.bodies {
				assert.True(t, body["max_tokens"] == 100.0 || body["max_completion_tokens"] == 100.0, "a cap is always sent")
			}
			total, _ := ReadUsage(state.Of(h.Call(abi.OpRetrieve, abi.MemoryScope{RunID: "run", PersonaID: "mara"})))
			assert.Equal(t, params, total.Params)
		})
	}
	t.Run("a forced tool", func(t *testing.T) {
		x := &endpoint{answer: func(body map[string]any) sdktest.Reply {
			if body["tool_choice"] != "auto" {
				return sdktest.Reply{Status: 400, Body: `{"error":"tool_choice is unsupported: only auto"}`}
			}
			return sdktest.Reply{Body: yes}
		}}
		r := Prompt("i", "a")
		r.Tools, r.Force = []string{`{"type":"function","function":{"name":"save"}}`}, "save"
		h := x.host(t)
		for range 2 {
			_, _, err := ask(t, h, r)
			require.NoError(t, err)
		}
		assert.Len(t, x.bodies, 3)
	})
	t.Run("another endpoint under the same name", func(t *testing.T) {
		x := &endpoint{answer: rejectParams("max_completion_tokens")}
		h := x.host(t)
		_, _, err := ask(t, h, Prompt("i", "a"))
		require.NoError(t, err)
		x.answer = rejectParams("max_tokens")
		_, u, err := ask(t, h, Prompt("i", "a"))
		require.NoError(t, err)
		assert.Equal(t, "max_completion_tokens, temperature", u.Params)
	})
	t.Run("an endpoint that ignores the limit's new name", func(t *testing.T) {
		x := &endpoint{answer: func(map[string]any) sdktest.Reply {
			return sdktest.Reply{Body: `{"choices":[{"message":{"content":"yes"}}],"usage":{"completion_tokens":101}}`}
		}}
		h := x.host(t)
		for range 2 {
			_, _, err := ask(t, h, Prompt("i", "a"))
			require.NoError(t, err)
		}
		assert.Equal(t, 100.0, x.bodies[1]["max_tokens"])
	})
}

func TestARefusalIsToldInTheEndpointsWords(t *testing.T) {
	for _, c := range []struct {
		reply  sdktest.Reply
		reason string
		again  int64 // in ms
	}{
		{sdktest.Reply{Status: 400, Body: `{"error":{"message":"prompt is too long: 9000 > 4096"}}`}, ReasonRefused, 0},
		{sdktest.Reply{Status: 401, Body: `{"detail":"no such key"}`}, ReasonUnavailable, 0},
		{sdktest.Reply{Status: 503, Headers: map[string]string{"retry-after": "Wed, 01 Jul 2026 12:00:30 GMT"}, Body: "busy"},
			ReasonUnavailable, 30_000},
		{sdktest.Reply{Status: 429, Headers: map[string]string{"retry-after": "7"}, Body: "slow down"}, ReasonUnavailable, 7000},
		{sdktest.Reply{Body: `{"error":{"message":"no credit left"}}`}, ReasonBadOutput, 0},
	} {
		x := &endpoint{answer: func(map[string]any) sdktest.Reply { return c.reply }}
		_, u, err := ask(t, x.host(t), Prompt("i", "a"))
		e := abi.AsError(err)
		require.NotNil(t, e)
		assert.Equal(t, c.reason, e.Reason, c.reply.Body)
		assert.Contains(t, e.Message, chat.ErrorText([]byte(c.reply.Body)))
		assert.Equal(t, int64(1), u.Failures)
		assert.Len(t, x.bodies, 1)
		if c.again > 0 {
			assert.Equal(t, c.again, *e.RetryAfterMS)
		}
	}
}

func TestAnAnswerThatWasCutOffNamesTheLimitToRaise(t *testing.T) {
	x := &endpoint{answer: func(map[string]any) sdktest.Reply {
		return sdktest.Reply{Body: `{"choices":[{"message":{"content":"[{\"subj"},"finish_reason":"length"}]}`}
	}}
	_, u, err := ask(t, x.host(t), Prompt("i", "a"))
	e := abi.AsError(err)
	require.NotNil(t, e)
	assert.Equal(t, ReasonBadOutput, e.Reason)
	assert.Contains(t, e.Message, "raise llm.max_output_tokens, which is 100")
	assert.False(t, e.Retryable, "the same request would be cut off again")
	assert.Equal(t, int64(1), u.Failures)
}

func TestARequestThatIsAlwaysRefusedIsGivenUp(t *testing.T) {
	h := (&endpoint{}).host(t)
	s := state.Of(h.Call(abi.OpWaitUntilReady, abi.MemoryScope{RunID: "run", PersonaID: "mara"}))
	refusal := abi.NewError(abi.CodeBackend, "the endpoint answered 400: too long").WithReason(ReasonRefused)
	down := abi.NewError(abi.CodeUnavailable, "down").WithReason(ReasonUnavailable)
	const later = 1 << 60
	var f Failure
	for range 100 {
		f.Note(s, down, 0, 3)
	}
	assert.False(t, f.Waits(later, 3), "an endpoint that is down is tried again")
	for n := range maxRefused + 1 {
		assert.False(t, f.Waits(later, 3), "after %d", n)
		f.Note(s, refusal, 0, 3)
	}
	assert.True(t, f.Waits(later, 3))
	assert.False(t, f.Waits(later, 4), "with more to do the request is another")
	assert.Contains(t, f.Story(3), "too long; not tried again")
	f.Note(s, down, 0, 4)
	assert.False(t, f.Waits(later, 4))
}

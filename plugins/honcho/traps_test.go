package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"

	fake "github.com/memhost/memhost/internal/test/fakes/honcho"
)

// TestTraps is the checklist of what an adapter for Honcho must do, point by point. Traps 1 and 12 are covered by the
// tests of ids and parsers, too.
func TestTraps(t *testing.T) {
	t.Run("trap 1: no wildcard reaches a path or a filter", func(t *testing.T) {
		b := newBench(t, quick, `,"read":"search"`)
		b.setup(t)
		for _, id := range []string{"*", "..", "a/b", "a.b:c d"} {
			e := turn(id, id, "I live in Oslo.")
			e.Scenario, e.Context = id, id
			b.mustRecord(t, e)
			assert.Equal(t, "present", b.find(t, id).Found)
		}
		assert.Equal(t, "absent", b.find(t, "never").Found)
		b.Sent = nil
		result := b.mustAsk(t, "Oslo", func(r *abi.RetrieveRequest) { r.SessionID, r.Scenario = "*", "*" })
		assert.Len(t, result.Evidence, 1, `the label "*" filters, it does not match all`)
		for _, r := range b.Sent {
			for _, value := range r.Params {
				assert.NotContains(t, value, "*")
			}
			assert.NotContains(t, r.Body, `"*"`)
		}
	})

	t.Run("trap 2: user, assistant, tool and system are distinct peers, the role is in the metadata", func(t *testing.T) {
		b := newBench(t, quick, "")
		b.setup(t)
		e := turn("e1", "s1", "hi", "hello")
		e.Messages = append(e.Messages, abi.Message{Role: abi.RoleTool, Name: "weather", ToolCallID: "c1", Content: new(`{"temp":-4}`)}, abi.Message{Role: abi.RoleSystem, Content: new("be kind")},
			abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c2", Name: "search", Arguments: `{"q":"tea"}`}}})
		b.mustRecord(t, e)
		var speakers []string
		for _, m := range b.messages(t, "s1") {
			meta, _ := m["metadata"].(map[string]any)
			speakers = append(speakers, fmt.Sprint(m["peer_id"], " ", meta["mh_role"]))
		}
		assert.Equal(t, []string{"user-alice user", "agent-default assistant", "tool-default tool", "system-default system",
			"agent-default assistant"}, speakers)
		last, _ := b.messages(t, "s1")[4]["metadata"].(map[string]any)
		assert.Equal(t, `[{"id":"c2","name":"search","arguments":"{\"q\":\"tea\"}"}]`, last["mh_tool_calls"])
		assert.Len(t, b.mustAsk(t, "x").Evidence, 1, "of one sentence of the user; nothing is derived about tools, system "+
			"and assistant")
	})

	t.Run("trap 3: a write whose outcome is open is looked up, never sent again", func(t *testing.T) {
		for _, tt := range []struct {
			name   string
			reply  sdktest.Reply
			stored bool
			code   abi.Code
			reason string
		}{
			{"the answer was lost, and it is there", sdktest.Reply{Err: abi.NewError(abi.CodeUnavailable, "connection reset")},
				true, "", ""},
			{"500, and it is there", sdktest.Reply{Status: 500, Body: `{"detail":"An unexpected error occurred"}`}, true, "", ""},
			{"the 201 is truncated", sdktest.Reply{Status: 201, Body: `[{"id":"a`}, true, "", ""},
			{"500, and it is not there", sdktest.Reply{Status: 500, Body: `{"detail":"An unexpected error occurred"}`}, false, abi.CodeBackend, "not_stored"},
			{"the answer was lost, and it is not there yet", sdktest.Reply{Err: abi.NewError(
				abi.CodeUnavailable, "connection reset")}, false, abi.CodeUnavailable, "uncertain"},
			{"a proxy's 504, and it is not there yet", sdktest.Reply{Status: 504, Body: "<html>"}, false, abi.CodeTimeout,
				"uncertain"},
			{"422 stores nothing", sdktest.Reply{Status: 422, Body: `{"detail":"no"}`}, false, abi.CodeInvalidArgument, "not_stored"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				b := newBench(t, quick, "")
				b.setup(t)
				posts := 0
				b.answer = func(r sdktest.Request) (sdktest.Reply, bool) {
					if r.Route != "messages" {
						return sdktest.Reply{}, false
					}
					if posts++; tt.stored {
						inner := b.answer
						b.answer = nil
						b.serve(r)
						b.answer = inner
					}
					return tt.reply, true
				}
				receipt, err := b.record(turn("e1", "s1", "I keep bees.", "How nice."))
				assert.Equal(t, 1, posts)
				require.Equal(t, tt.code, abi.CodeOf(err), "%v", err)
				if err != nil {
					assert.Equal(t, tt.reason, abi.AsError(err).Reason)
					assert.Equal(t, tt.reply.Status, statusOf(err), "the raw diagnostics are kept")
					return
				}
				assert.Equal(t, abi.StatusQueued, receipt.Status)
				assert.Len(t, receipt.NativeIDs, 2)
				assert.Len(t, b.messages(t, "s1"), 2)
			})
		}
	})

	t.Run("trap 4: a session's messages keep the order in which they were recorded", func(t *testing.T) {
		b := newBench(t, quick, "")
		b.setup(t)
		batch := &abi.EventBatch{}
		for i := range 30 {
			e := turn(fmt.Sprint("e", i), fmt.Sprint("s", i/20), fmt.Sprint("say ", i), "ok")
			e.Timestamp = fmt.Sprintf("2026-03-01T10:%02d:00Z", 59-i) // back-dated ones do not move
			batch.Events = append(batch.Events, *e)
		}
		b.Sent = nil
		answer, err := sdktest.Do(b.Host, abi.OpRecordEvents, scope, withBackend(recordEvents), batch)
		require.NoError(t, err)
		assert.Equal(t, []string{"messages", "messages"}, b.routes(), "one call for each session")
		require.Len(t, answer.Receipts, 30)
		for i, r := range answer.Receipts {
			require.NotNil(t, r.Receipt)
			assert.Len(t, r.Receipt.NativeIDs, 2)
			assert.Equal(t, "present", b.find(t, fmt.Sprint("e", i), r.Receipt.Markers...).Found)
		}
		for i, m := range b.messages(t, "s0") {
			if i%2 == 0 {
				assert.Equal(t, fmt.Sprint("say ", i/2), m["content"])
			}
		}
	})

	t.Run("trap 5: long, many and special", func(t *testing.T) {
		b := newBench(t, quick, "")
		b.setup(t)
		long := strings.Repeat("I like tea 🍵. ", 2500)[:30_000]
		long = strings.ToValidUTF8(long, "")
		b.Sent = nil
		receipt := b.mustRecord(t, turn("long", "s1", long+strings.Repeat("é", 30_000-utf8.RuneCountInString(long))))
		assert.Equal(t, []string{"messages"}, b.routes())
		assert.Len(t, receipt.NativeIDs, 2)
		assert.Contains(t, strings.Join(receipt.Warnings, " "), "content_split: ")
		joined := ""
		for _, m := range b.messages(t, "s1") {
			joined += m["content"].(string)
		}
		assert.Equal(t, 30_000, utf8.RuneCountInString(joined))

		receipt = b.mustRecord(t, turn("special", "s2",
			"Please explain <|endoftext|>, <|fim_prefix|> and \x00 <|im_start|>."))
		assert.Contains(t, strings.Join(receipt.Warnings, " "), "content_sanitized: ")
		assert.Equal(t, "Please explain <\u200b|endoftext|>, <\u200b|fim_prefix|> and  <|im_start|>.",
			b.messages(t, "s2")[0]["content"])

		many := turn("many", "s3")
		for i := range 250 {
			many.Messages = append(many.Messages, abi.Message{Role: abi.RoleUser, Content: new(fmt.Sprint("line ", i))})
		}
		b.Sent = nil
		receipt = b.mustRecord(t, many)
		assert.Equal(t, []string{"messages", "messages", "messages"}, b.routes())
		assert.Len(t, receipt.NativeIDs, 250)
		hundred := turn("hundred", "s4")
		hundred.Messages = many.Messages[:100]
		b.mustRecord(t, hundred)
		assert.Equal(t, []string{"messages"}, b.routes(), "one native call for up to 100 messages")
	})

	t.Run("trap 6: tokens is advisory, the formatter enforces the budget", func(t *testing.T) {
		b := newBench(t, quick, "")
		b.setup(t)
		for i := range 40 {
			b.mustRecord(t, turn(fmt.Sprint("e", i), "s1", fmt.Sprintf(
				"My colleague number %d is called Zorvex%d and plays instrument %d.", i, i, i)))
		}
		for _, limit := range []int64{0, 20, 60, 200, 1000} {
			result := b.mustAsk(t, "colleague", func(r *abi.RetrieveRequest) { r.Budget.MaxTokens = &limit })
			assert.LessOrEqual(t, *result.Trace.TokenCount, limit)
			assert.Equal(t, abi.BudgetUse{How: "advisory", Sent: &limit}, result.Trace.BudgetApplied["max_tokens"])
		}
		result := b.mustAsk(t, "colleague", func(r *abi.RetrieveRequest) { r.Budget.MaxItems = new(int64(3)) })
		assert.Len(t, result.Evidence, 3)
		assert.Equal(t, abi.BudgetUse{How: "native", Sent: new(int64(3)), Received: new(int64(3))},
			result.Trace.BudgetApplied["max_items"])
	})

	t.Run("trap 7: no more is asked than the server gives", func(t *testing.T) {
		b := newBench(t, quick, `,"context_tokens":100000,"max_conclusions":100`)
		b.setup(t)
		b.Sent = nil
		b.mustAsk(t, "x", func(r *abi.RetrieveRequest) {
			r.Budget.MaxTokens, r.Budget.MaxItems = new(int64(5_000_000)), new(int64(5000))
		})
		assert.Equal(t, "100000", queryOf(b.Sent[0], "tokens"))
		assert.Equal(t, "100", queryOf(b.Sent[0], "max_conclusions"))
		b.answer = func(sdktest.Request) (sdktest.Reply, bool) {
			return sdktest.Reply{Status: 422, Body: `{"detail":[{"type":"less_than_equal","loc":["query","tokens"],"msg":"Input should be less than or equal to 4000","input":"8000","ctx":{"le":4000}}]}`}, true
		}
		_, err := b.ask("x")
		assert.Equal(t, "the server takes at most 4000 tokens: set context_tokens to that", abi.AsError(err).Hint)
	})

	t.Run("trap 9: a peer that is missing is no memory, and a stale card is never reached after a reset",
		func(t *testing.T) {
			b := newBench(t, fake.Mood{Flush: true, CacheTTL: time.Hour}, "")
			result := b.mustAsk(t, "anything")
			assert.Equal(t, abi.ResultEmpty, result.Trace.ResultState)
			assert.Empty(t, result.FormattedContext)
			b.setup(t)
			_, err := sdktest.Do(b.Host, abi.OpNativeMutation, scope, withBackend(nativeMutation), &abi.NativeMutation{Scope: scope, Name: "card_set", Params: map[string]abi.Raw{"lines": abi.Raw(`["IDENTITY: Alice"]`)}, Reason: "test"})
			require.NoError(t, err)
			assert.Contains(t, b.mustAsk(t, "who").FormattedContext, "- IDENTITY: Alice")
			b.reset(t)
			assert.Empty(t, b.mustAsk(t, "who").FormattedContext)
		})

	t.Run("trap 10: read-only makes no call that changes anything", func(t *testing.T) {
		b := newBench(t, quick, "")
		b.ReadOnly = true
		receipt := b.setup(t)
		assert.False(t, *receipt.Existed)
		b.mustAsk(t, "x")
		b.find(t, "e1")
		_, err := sdktest.Do(b.Host, abi.OpNativeQuery, scope, withBackend(nativeQuery), &abi.NativeQuery{Scope: scope, Name: "chat", Params: map[string]abi.Raw{"query": abi.Raw(`"hi"`)}})
		assert.Equal(t, abi.CodeReadOnly, abi.CodeOf(err), "chat makes the peer")
		assert.Empty(t, b.server.Workspaces())
	})

	t.Run("trap 13: an outage of embeddings can be asked for, and is not seen otherwise", func(t *testing.T) {
		b := newBench(t, fake.Mood{Flush: true, EmbedDown: true}, "")
		assert.Equal(t, abi.HealthOK, b.health(t).Status)
		b = newBench(t, fake.Mood{Flush: true, EmbedDown: true}, `,"probe_embeddings":true`)
		h := b.health(t)
		assert.Equal(t, abi.HealthDegraded, h.Status)
		assert.True(t, slices.ContainsFunc(h.Warnings, func(w string) bool {
			return strings.HasPrefix(
				w, "embeddings_down: ")
		}))
	})

	t.Run("trap 14: deadlines are long where Honcho is slow", func(t *testing.T) {
		m := newBench(t, quick, "").manifest
		for op, least := range map[string]int64{abi.OpRetrieve: 60_000, abi.OpNativeQuery: 120_000,
			abi.OpResetScope: 120_000} {
			assert.GreaterOrEqual(t, m.DeadlinesMS[op], least, op)
		}
	})

	t.Run("trap 15: the version is read, and the assistant is observed only on wish", func(t *testing.T) {
		b := newBench(t, quick, "")
		assert.Equal(t, "3.0.12", b.health(t).BackendVersion)
		b.Sent = nil
		b.health(t)
		assert.Equal(t, []string{"health", "queue_status"}, b.routes(), "the version is asked once")
		for block, want := range map[string]int{"": 1, `,"observe_assistant":true`: 2} {
			b := newBench(t, quick, block)
			b.setup(t)
			b.mustRecord(t, turn("e1", "s1", "I sing.", "You sing."))
			s := b.query(t, "queue_status", "{}")
			assert.Contains(t, s, fmt.Sprintf(`"total_work_units":%d`, want))
		}
	})
}

func statusOf(err error) int64 {
	if n := abi.AsError(err).Native; n != nil && n.Status != nil {
		return *n.Status
	}
	return 0
}

func queryOf(r sdktest.Request, name string) string {
	for _, q := range r.Query {
		if q.Key == name {
			return q.Value
		}
	}
	return ""
}

// TestWhatCanBeSeenOfChangesFollowsWhatARetrievalShows: session context is prose without times of derivation.
func TestWhatCanBeSeenOfChangesFollowsWhatARetrievalShows(t *testing.T) {
	for block, want := range map[string]string{``: "weak", `,"read":"search"`: "weak",
		`,"supplements":["representation"]`: "weak", `,"supplements":["conclusions"]`: "partial"} {
		assert.Equal(t, want, newBench(t, quick, block).health(t).PetObservability, block)
	}
}

// TestATemplateSharesAWorkspace: one for each run, in which peers and sessions keep the scopes apart.
func TestATemplateSharesAWorkspace(t *testing.T) {
	b := newBench(t, quick, `,"workspace_template":"{run_id}"`)
	assert.Equal(t, "filtered", b.health(t).Isolation)
	setup, err := sdktest.Do(b.Host, abi.OpSetupScope, abi.MemoryScope{RunID: "user_a_c1", PersonaID: "user_a"},
		withBackend(setupScope), &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, "userz5faz5fc1", setup.NativeScope["workspace"])
	other, err := sdktest.Do(b.Host, abi.OpSetupScope, abi.MemoryScope{RunID: "user_a_c1", PersonaID: "user_b"},
		withBackend(setupScope), &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, setup.NativeScope["workspace"], other.NativeScope["workspace"])
	assert.NotEqual(t, setup.NativeScope["user_peer"], other.NativeScope["user_peer"])
}

func (b *bench) health(t testing.TB) *abi.BackendHealth {
	t.Helper()
	h, err := sdktest.Do(b.Host, abi.OpHealth, abi.MemoryScope{}, withBackend(health), &abi.Empty{})
	require.NoError(t, err)
	return h
}

func (b *bench) query(t testing.TB, name, params string) string {
	t.Helper()
	q := &abi.NativeQuery{}
	require.NoError(t, abi.Unmarshal([]byte(`{"scope":{"run_id":"run1","persona_id":"alice"},"name":"`+name+`","params":`+params+`}`), q))
	answer, err := sdktest.Do(b.Host, abi.OpNativeQuery, scope, withBackend(nativeQuery), q)
	require.NoError(t, err)
	return string(answer.Result)
}

// reset calls as the host does, until the answer is not in_progress.
func (b *bench) reset(t testing.TB) *abi.ResetReceipt {
	t.Helper()
	for range 20 {
		receipt, err := sdktest.Do(b.Host, abi.OpResetScope, scope, withBackend(resetScope), &abi.Empty{})
		require.NoError(t, err)
		if receipt.Status != abi.ResetInProgress {
			return receipt
		}
		b.pass(time.Second)
	}
	require.Fail(t, "the reset does not come to its end")
	return nil
}

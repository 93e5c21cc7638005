package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

// sentBody is the body of the last request by a route.
func sentBody(t *testing.T, b *bench, route string) string {
	t.Helper()
	for i := len(b.Sent) - 1; i >= 0; i-- {
		if b.Sent[i].Route == route {
			return b.Sent[i].Body
		}
	}
	require.Fail(t, "not sent", route)
	return ""
}

// TestTraps covers what a careless adapter of MemOS gets wrong, in the order in which README.md numbers the
// traps.
func TestTraps(t *testing.T) {
	t.Run("trap 1: 200 is no success", func(t *testing.T) {
		b := newBench(t, syncFast, memos.Options{})
		_, err := sdktest.Do(b.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
		require.NoError(t, err)
		b.server.Break(memos.Faults{DatabaseDown: true})
		_, err = b.record(turnEvent("e-1", "I like jazz."))
		e := abi.AsError(err)
		assert.Equal(t, abi.CodeUnavailable, e.Code, "the add was answered 200 with ids")
		assert.Contains(t, e.Native.Body, "Connection refused")
		_, err = b.retrieve(retrieveRequest("jazz"))
		assert.Equal(t, abi.CodeUnavailable, abi.CodeOf(err),
			"the search was answered 200 and nothing: an outage is no empty result")
		h, err := sdktest.Do(b.Host, abi.OpHealth, abi.MemoryScope{}, withBackend(health), &abi.Empty{})
		require.NoError(t, err)
		assert.Equal(t, abi.HealthUnavailable, h.Status, "GET /health said healthy")
	})
	t.Run("trap 2: custom_tags carry no label and are not sent", func(t *testing.T) {
		b := newBench(t, syncFine, memos.Options{})
		b.must(withLabels(turnEvent("e-1", "I like jazz."), "music", "home", "genre"))
		assert.NotContains(t, sentBody(t, b, "add_fine"), "custom_tags")
	})
	t.Run("trap 3: a filter is never bare", func(t *testing.T) {
		b := newBench(t, syncFine, memos.Options{})
		b.must(withLabels(turnEvent("e-1", "I like jazz."), "music", "", ""))
		r := retrieveRequest("jazz")
		r.Scenario = "travel"
		result := b.find(r)
		assert.Contains(t, sentBody(t, b, "search_fast"), `"filter":{"and":[{"mh_scenario":"travel"}]}`)
		assert.Equal(t, abi.ResultEmpty, result.Trace.ResultState)
	})
	t.Run("trap 3: a store that drops filters in silence is found out", func(t *testing.T) {
		b := newBench(t, syncFine, memos.Options{})
		b.must(withLabels(turnEvent("e-1", "I like jazz."), "music", "", ""))
		b.server.Break(memos.Faults{FiltersDropped: true})
		r := retrieveRequest("jazz")
		r.Scenario = "travel"
		result := b.find(r)
		assert.Len(t, result.Evidence, 1, "no item is left out here")
		assert.Equal(t, abi.FilterNone, result.Trace.FilterMode)
		assert.Equal(t, map[string]string{"scenario": "unverified"}, result.Trace.FiltersApplied)
		assert.False(t, *result.Trace.LabelsVerified)
		assert.Contains(t, codes(result.Trace.Warnings), "labels_unverified")
	})
	t.Run("trap 4: relativity is 0, and an unreachable reranker is told", func(t *testing.T) {
		b := newBench(t, syncFine, memos.Options{})
		b.must(turnEvent("e-1", "I like jazz. I moved to Lyon."))
		b.server.Break(memos.Faults{RerankerDown: true})
		result := b.find(retrieveRequest("jazz"))
		assert.Len(t, result.Evidence, 2, "with MemOS's own 0.45 nothing would have come")
		assert.Contains(t, codes(result.Trace.Warnings), "reranker_silent")
		assert.Nil(t, result.Evidence[0].Score, "0 is no score then")
		assert.Nil(t, result.Trace.TopScore)
	})
	t.Run("trap 5: mixture is a write, refused while read-only", func(t *testing.T) {
		for _, mode := range []string{searchMixture, searchFine} {
			b := newBench(t, `{"add_mode":"sync/fast","graph_store":"neo4j","search_mode":"`+mode+`"}`, memos.Options{})
			b.must(turnEvent("e-1", "I like jazz."))
			result := b.find(retrieveRequest("jazz"))
			assert.Contains(t, codes(result.Trace.Warnings), "search_ablation")
			assert.Equal(t, mode == searchMixture, len(result.Trace.ReadSideEffects) > 0)
			b.ReadOnly = true
			_, err := b.retrieve(retrieveRequest("jazz"))
			assert.Equal(t, abi.CodeReadOnly, abi.CodeOf(err))
		}
	})
	t.Run("trap 6: ids of an async receipt are transient, and say so", func(t *testing.T) {
		b := newBench(t, `{"add_mode":"async","graph_store":"neo4j","feedback_enabled":true}`, memos.Options{})
		r := b.must(turnEvent("e-1", "I like jazz."))
		assert.Equal(t, abi.NativeIDsTransient, r.NativeIDsKind)
		b.wait(10 * time.Second)
		_, err := sdktest.Do(b.Host, abi.OpApplyFeedback, scope, withBackend(applyFeedback),
			&abi.MemoryFeedback{FeedbackID: "f", Scope: scope, SessionID: "s1",
				Timestamp: "2026-05-03T09:00:00Z", Text: "No, blues.", NativeIDs: r.NativeIDs})
		assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err),
			"feedback by a dead id would be an empty record: no-op and success")
		_, err = sdktest.Do(b.Host, abi.OpNativeMutation, scope, withBackend(nativeMutation),
			&abi.NativeMutation{Scope: scope, Name: "delete_memories",
				Params: map[string]abi.Raw{"ids": abi.Raw(`["` + r.NativeIDs[0] + `"]`)}})
		assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err))
	})
	t.Run("trap 7: without Redis readiness goes by the store, never by scheduler/wait", func(t *testing.T) {
		b := newBench(t, async, memos.Options{NoRedis: true})
		r := b.must(turnEvent("e-1", "I like jazz."))
		b.wait(4 * time.Second)
		assert.Equal(t, abi.ReadinessPending, b.ready(r.Markers...).Status)
		b.wait(4 * time.Second)
		ready := b.ready(r.Markers...)
		assert.Equal(t, abi.ReadinessReady, ready.Status)
		assert.Equal(t, "store probe", ready.Method)
		assert.Contains(t, codes(ready.Warnings), "no_tracker")
		assert.NotContains(t, b.routesUsed(), "wait")
	})
	t.Run("trap 8: a write is sent once, and found by its event id", func(t *testing.T) {
		for _, block := range []string{syncFast, syncFine, async, `{"add_mode":"async","graph_store":"postgres"}`} {
			b := newBench(t, block, memos.Options{})
			look := func(id string) string {
				r, err := sdktest.Do(b.Host, abi.OpFindEvent, scope, withBackend(findEvent),
					&abi.FindEventRequest{EventID: id, SentAt: "2026-07-01T12:00:00Z"})
				require.NoError(t, err)
				return r.Found
			}
			assert.Equal(t, "absent", look("e-1"))
			b.must(turnEvent("e-1", "I like jazz."))
			assert.Equal(t, "present", look("e-1"), "while it is raw")
			assert.Equal(t, "absent", look("e-"))
			b.wait(10 * time.Second)
			assert.Equal(t, "present", look("e-1"), "and when it is done")
			assert.Equal(t, "absent", look("e-1#0"))
		}
	})
	t.Run("trap 8: without a tracker the sources tell", func(t *testing.T) {
		b := newBench(t, async, memos.Options{NoRedis: true})
		b.must(turnEvent("e-1", "I like jazz."))
		b.wait(10 * time.Second)
		r, err := sdktest.Do(b.Host, abi.OpFindEvent, scope, withBackend(findEvent),
			&abi.FindEventRequest{EventID: "e-1", SentAt: "2026-07-01T12:00:00Z"})
		require.NoError(t, err)
		assert.Equal(t, "present", r.Found)
		assert.NotEmpty(t, r.NativeIDs)
	})
	t.Run("trap 9: a database that is not shared is caught at the start, and in every answer", func(t *testing.T) {
		b := newBench(t, syncFast, memos.Options{Unshared: true})
		_, err := sdktest.Do(b.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
		assert.Equal(t, abi.CodeIsolationBreach, abi.CodeOf(err))
		assert.Contains(t, abi.AsError(err).Hint, "MOS_NEO4J_SHARED_DB=true")
		h, err := sdktest.Do(b.Host, abi.OpHealth, abi.MemoryScope{}, withBackend(health), &abi.Empty{})
		require.NoError(t, err)
		assert.Equal(t, abi.HealthUnavailable, h.Status)
		assert.Equal(t, "unverified", h.Isolation)
		b.must(turnEvent("e-1", "I like jazz."))
		r := retrieveRequest("jazz")
		r.Scope = otherScope
		_, err = b.retrieve(r)
		assert.Equal(t, abi.CodeIsolationBreach, abi.CodeOf(err), "another cube's item is never passed on")
		_, err = sdktest.Do(b.Host, abi.OpInventory, otherScope, withBackend(inventory), &abi.Empty{})
		assert.Equal(t, abi.CodeIsolationBreach, abi.CodeOf(err))
	})
	t.Run("trap 10: sources are decoded in every shape", func(t *testing.T) {
		// TestSourcesInAllTheirShapes has the shapes; here: through the whole way, in the async shape of neo4j.
		b := newBench(t, async, memos.Options{})
		b.must(turnEvent("e-1", "I like jazz."))
		b.wait(10 * time.Second)
		assert.Equal(t, []string{"e-1"}, events(b.find(retrieveRequest("jazz"))))
	})
	t.Run("trap 11: nested metadata travels as one text", func(t *testing.T) {
		b := newBench(t, syncFast, memos.Options{})
		e := turnEvent("e-1", "I like jazz.")
		e.Metadata = map[string]abi.Raw{"n": abi.Raw(`1.5`), "deep": abi.Raw(`{"k":[1,2]}`),
			"list": abi.Raw(`[{"a":1}]`), "merged_from": abi.Raw(`"x"`), "none": abi.Raw(`null`),
			"a b": abi.Raw(`true`)}
		assert.Equal(t, abi.StatusCommitted, b.must(e).Status, "on neo4j a nested value would have lost the write")
		body := sentBody(t, b, "add_fast")
		assert.Contains(t, body, `"mh_m_n":1.5`)
		assert.Contains(t, body, `"mh_meta":"{\"a b\":true,\"deep\":{\"k\":[1,2]},\"list\":[{\"a\":1}]}"`)
		assert.Contains(t, body, `"mh_m_merged_from":"x"`, "a name that acts is never sent as it is")
		assert.NotContains(t, body, `"merged_from"`)
	})
	t.Run("trap 12: labels are read at the top and below info", func(t *testing.T) {
		for _, meta := range []string{`{"mh_scenario":"x"}`, `{"info":{"mh_scenario":"x"}}`,
			`{"info":null,"mh_scenario":"x"}`} {
			m := readItem([]byte(`{"id":"1","memory":"m","metadata":` + meta + `}`))
			assert.Equal(t, `"x"`, string(m.label("mh_scenario")), meta)
		}
	})
	t.Run("trap 13: max_items counts text memories, or all groups where the configuration says so", func(t *testing.T) {
		b := newBench(t, strings.Replace(syncFine, "{", `{"share":"groups",`, 1), memos.Options{})
		for _, id := range strings.Fields("a b c d e f g h") {
			b.must(turnEvent(id, "I always prefer seat "+id+"."))
		}
		r := retrieveRequest("which seat does the user prefer?")
		for most := int64(0); most < 12; most++ {
			r.Budget.MaxItems = &most
			result := b.find(r) // checks the number
			assert.Equal(t, most > 0, len(result.Evidence) > 0)
			assert.LessOrEqual(t, int64(len(result.Evidence)), most)
		}
		assert.Contains(t, sentBody(t, b, "search_fast"),
			`"top_k":11,"pref_top_k":11,"tool_mem_top_k":11,"skill_mem_top_k":11`)

		b = newBench(t, syncFine, memos.Options{})
		for _, id := range strings.Fields("a b c d e f g h") {
			b.must(turnEvent(id, "I always prefer seat "+id+"."))
		}
		five := int64(5)
		r.Budget = abi.ContextBudget{MaxItems: &five}
		result := b.find(r)
		assert.Contains(t, sentBody(t, b, "search_fast"),
			`"top_k":5,"pref_top_k":6,"tool_mem_top_k":6,"skill_mem_top_k":3`)
		use := result.Trace.BudgetApplied["max_items"]
		assert.Equal(t, abi.BudgetUse{How: "native", Sent: &five, Received: &five}, use)
		assert.Contains(t, result.FormattedContext, "## pref_mem", "other groups come beside it")

		b.AskItems, r.Budget = 66, abi.ContextBudget{MaxTokens: sdk.Ptr(int64(4000))}
		b.find(r)
		assert.Contains(t, sentBody(t, b, "search_fast"), `"top_k":66,"pref_top_k":6,`, "places are shared among what came")
	})
	t.Run("a name stands before the text once two users have names", func(t *testing.T) {
		name := func(id, who string) *abi.MemoryEvent {
			e := turnEvent(id, "I like tea.")
			e.Messages[0].Name = who
			return e
		}
		b := newBench(t, strings.Replace(syncFast, "{", `{"name_prefix":"auto",`, 1), memos.Options{})
		first := b.must(name("e-1", "Maria"))
		assert.Contains(t, sentBody(t, b, "add_fast"), `"content":"I like tea."`)
		assert.Contains(t, strings.Join(first.Warnings, "\n"), "speaker_lost:")
		r := b.must(name("e-2", "Ken"))
		assert.Contains(t, sentBody(t, b, "add_fast"), `"content":"Ken: I like tea."`)
		assert.Contains(t, string(abi.Marshal(r.Trace)), `"name_prefix":"auto"`)
		b.must(name("e-3", "Maria"))
		assert.Contains(t, sentBody(t, b, "add_fast"), `"content":"Maria: I like tea."`)

		b = newBench(t, syncFast, memos.Options{})
		b.must(name("e-1", "Maria"))
		assert.Contains(t, sentBody(t, b, "add_fast"), `"content":"Maria: I like tea."`)
		b = newBench(t, strings.Replace(syncFast, "{", `{"name_prefix":"never",`, 1), memos.Options{})
		b.must(name("e-1", "Maria"))
		b.must(name("e-2", "Ken"))
		assert.Contains(t, sentBody(t, b, "add_fast"), `"content":"I like tea."`)
	})
	t.Run("trap 14: text is sent as text, whatever it looks like", func(t *testing.T) {
		b := newBench(t, syncFast, memos.Options{})
		b.must(turnEvent("e-1", `[{"type":"file","file":{"path":"/etc/passwd"}}]`))
		assert.Contains(t, sentBody(t, b, "add_fast"), `"content":"[{\"type\":\"file\",`)
		var e abi.MemoryEvent
		err := abi.UnmarshalStrict([]byte(`{"event_id":"e","run_id":"r","user_id":"u","session_id":"s","turn_id":"t","timestamp":"2026-05-01T10:00:00Z",
			"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}]}`), &e)
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), "parts are refused before they reach the module")
	})
	t.Run("trap 15: empty and system messages are not sent", func(t *testing.T) {
		b := newBench(t, syncFast, memos.Options{})
		e := turnEvent("e-1", " \n")
		e.Messages = append(e.Messages[:1], abi.Message{Role: abi.RoleSystem, Content: sdk.Ptr("Be brief.")})
		r := b.must(e)
		assert.Equal(t, abi.StatusNotRetained, r.Status)
		assert.Equal(t, []string{"nothing_to_store"}, codes(r.Warnings))
		assert.Empty(t, b.routesUsed())
		e = turnEvent("e-2", "")
		e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Content: sdk.Ptr("I like jazz.")})
		b.must(e)
		assert.NotContains(t, sentBody(t, b, "add_fast"), `e-2#0"`)
		assert.Contains(t, sentBody(t, b, "add_fast"), `e-2#2"`, "a message keeps its number")
	})
	t.Run("trap 16: a long event is several memories, all of it", func(t *testing.T) {
		b := newBench(t, syncFast, memos.Options{})
		r := b.must(turnEvent("e-1", strings.Repeat("I like jazz, and blues too. ", 1000)))
		assert.Greater(t, *r.StoredCount, int64(5))
		assert.Len(t, r.NativeIDs, int(*r.StoredCount))
	})
	t.Run("trap 17: a full queue drops the oldest in silence, and readiness says that it stalls", func(t *testing.T) {
		b := newBench(t, `{"add_mode":"async","graph_store":"neo4j","stall_after_ms":60000}`,
			memos.Options{QueueCap: 2})
		var markers []string
		for _, id := range []string{"e-1", "e-2", "e-3"} {
			markers = append(markers, b.must(turnEvent(id, "I like "+id+".")).Markers...)
		}
		b.wait(30 * time.Second)
		ready := b.ready(markers...)
		assert.Equal(t, abi.ReadinessPending, ready.Status)
		assert.Equal(t, []string{"e-1"}, ready.EventIDs.Pending)
		assert.Empty(t, ready.StalledSince)
		b.wait(time.Minute)
		ready = b.ready(markers...)
		assert.NotEmpty(t, ready.StalledSince)
		assert.Contains(t, codes(ready.Warnings), "stalled")
	})
	t.Run("trap 18: times with nanoseconds are times, one without a zone is none", func(t *testing.T) {
		m := item{createdAt: "2026-11-21T04:24:51.046631000+00:00", updatedAt: "2026-11-21T04:25:52.790761"}
		e := m.evidence(1, true)
		assert.Equal(t, m.createdAt, e.CreatedAt)
		assert.Empty(t, e.UpdatedAt)
	})
	t.Run("trap 19: ids with colons and quotes become plain ones", func(t *testing.T) {
		b := newBench(t, syncFast, memos.Options{})
		hostile := abi.MemoryScope{RunID: `run:1'"\`, PersonaID: "*"}
		e := turnEvent("e:'1'", "I like jazz.")
		e.RunID, e.UserID, e.SessionID = hostile.RunID, hostile.PersonaID, `s":'\`
		_, err := sdktest.Do(b.Host, abi.OpRecordEvent, hostile, withBackend(recordEvent), e)
		require.NoError(t, err)
		for _, cube := range b.server.Cubes() {
			assert.Regexp(t, `^mh1-[a-z2-7]{52}$`, cube)
		}
		assert.Regexp(t, `"session_id":"mh1s-[a-z2-7]{52}"`, sentBody(t, b, "add_fast"))
		r := retrieveRequest("jazz")
		r.Scope = hostile
		assert.Equal(t, []string{"e:'1'"}, events(b.find(r)))
		found, err := sdktest.Do(b.Host, abi.OpFindEvent, hostile, withBackend(findEvent),
			&abi.FindEventRequest{EventID: "e:'1'", SentAt: b.Now})
		require.NoError(t, err)
		assert.Equal(t, "present", found.Found)
	})
	t.Run("trap 20: source is never sent", func(t *testing.T) {
		b := newBench(t, syncFast, memos.Options{})
		b.must(turnEvent("e-1", "I like jazz."))
		b.find(retrieveRequest("jazz"))
		for _, r := range b.Sent {
			assert.NotContains(t, r.Body, `"source"`)
		}
	})
	t.Run("trap 21: a receipt with ids of nothing is found out", func(t *testing.T) {
		b := newBench(t, syncFine, memos.Options{})
		e := turnEvent("e-1", "Book me a seat.")
		e.Messages = append(e.Messages, abi.Message{Role: abi.RoleAssistant,
			ToolCalls: []abi.ToolCall{{ID: "call_1", Name: "book", Arguments: "{}"}}},
			abi.Message{Role: abi.RoleTool, Content: sdk.Ptr("14C"), ToolCallID: "call_1"})
		_, err := b.record(e)
		failure := abi.AsError(err)
		assert.Equal(t, abi.CodeBackend, failure.Code)
		assert.Equal(t, "not_stored", failure.Reason)
		assert.True(t, failure.NothingStored, "it may be sent again at once")
		assert.Contains(t, failure.Native.Body, `"memory_id"`, "what the server said stays")
	})
	t.Run("trap 22: tools need the community store or sync/fast", func(t *testing.T) {
		for _, block := range []string{syncFine, async} {
			s, err := parseSettings(&abi.GuestConfig{Provider: "memos", Config: abi.Raw(block)})
			require.NoError(t, err)
			assert.Contains(t, s.profile(), "loses its whole batch")
		}
		b := newBench(t, `{"add_mode":"sync/fine"}`, memos.Options{Flavour: memos.Community})
		e := turnEvent("e-1", "I prefer the aisle. Plan my trip.")
		for range 5 {
			e.Messages = append(e.Messages, abi.Message{Role: abi.RoleTool, Content: sdk.Ptr("step ok"),
				ToolCallID: "c"})
		}
		b.must(e)
		text := b.find(retrieveRequest("plan a trip by calling tools, several steps of a procedure the user " +
			"prefers")).FormattedContext
		for _, name := range groupNames {
			assert.Contains(t, text, "## "+name+"\n", "all four groups under their own names")
		}
	})
	t.Run("trap 23: an empty id is never sent", func(t *testing.T) {
		for _, block := range []string{syncFast, syncFine, async} {
			b := newBench(t, block, memos.Options{})
			_, err := sdktest.Do(b.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
			require.NoError(t, err)
			b.must(turnEvent("e-1", "I like jazz."))
			b.find(retrieveRequest("jazz"))
			for _, r := range b.Sent {
				assert.NotContains(t, r.Body, `_id":""`)
				assert.NotContains(t, r.Body, `cube_ids":[""]`)
			}
			assert.NotContains(t, b.server.Cubes(), "memosdefault")
		}
	})
	t.Run("trap 24: twins of feedback count once", func(t *testing.T) {
		b := newBench(t, `{"add_mode":"sync/fine","graph_store":"neo4j","feedback_enabled":true}`, memos.Options{})
		_, err := sdktest.Do(b.Host, abi.OpApplyFeedback, scope, withBackend(applyFeedback),
			&abi.MemoryFeedback{FeedbackID: "f", Scope: scope, SessionID: "s1",
				Timestamp: "2026-05-03T09:00:00Z", Text: "I like the blues."})
		require.NoError(t, err)
		i, err := sdktest.Do(b.Host, abi.OpInventory, scope, withBackend(inventory), &abi.Empty{})
		require.NoError(t, err)
		require.Len(t, i.Kinds, 1)
		assert.Equal(t, abi.InventoryKind{Kind: "UserMemory", Count: 1, Digest: i.Kinds[0].Digest}, i.Kinds[0])
	})
	t.Run("trap 25: no secret is in a body, where the server's log would keep it", func(t *testing.T) {
		b := newBench(t, syncFast, memos.Options{})
		b.Secrets = []string{"api_key"}
		b.must(turnEvent("e-1", "My note: {{secret:api_key}}"))
		for _, r := range b.Sent {
			assert.Equal(t, "Bearer {{secret:api_key}}", r.Headers["authorization"],
				"the host puts it in, there and nowhere else")
		}
	})
}

func TestWithoutTheIsolationProbeTheStoreIsStillLookedAt(t *testing.T) {
	b := newBench(t, `{"add_mode":"sync/fast","graph_store":"neo4j","isolation_probe":false}`, memos.Options{})
	look := func() *abi.BackendHealth {
		h, err := sdktest.Do(b.Host, abi.OpHealth, abi.MemoryScope{}, withBackend(health), &abi.Empty{})
		require.NoError(t, err)
		return h
	}
	assert.Equal(t, abi.HealthOK, look().Status)
	assert.Contains(t, codes(look().Warnings), "isolation_unverified")
	assert.Empty(t, b.server.Cubes(), "no canary is written")
	b.server.Break(memos.Faults{DatabaseDown: true})
	assert.Equal(t, abi.HealthUnavailable, look().Status)
}

func TestEmbedderDown(t *testing.T) {
	for store, flavour := range flavours {
		t.Run(store, func(t *testing.T) {
			b := newBench(t, `{"add_mode":"sync/fast","graph_store":"`+store+`"}`, memos.Options{Flavour: flavour})
			b.must(turnEvent("e-1", "I like jazz."))
			b.server.Break(memos.Faults{EmbedderDown: true})
			result := b.find(retrieveRequest("jazz"))
			assert.Equal(t, abi.ResultDegraded, result.Trace.ResultState, "the store has it, and the search is blind")
			assert.Equal(t, []string{"search_blind"}, codes(result.Trace.Warnings))
			assert.Equal(t, flavour == memos.Community,
				contains(b.must(turnEvent("e-2", "I like tea.")).Warnings, "no_vector"))
			b.server.Break(memos.Faults{})
			h, err := sdktest.Do(b.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
			require.NoError(t, err)
			assert.Empty(t, h.Warnings)
		})
	}
	t.Run("health says so by its canary, and set-up heals a canary without a vector", func(t *testing.T) {
		b := newBench(t, syncFast, memos.Options{})
		b.server.Break(memos.Faults{EmbedderDown: true})
		setup, err := sdktest.Do(b.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
		require.NoError(t, err)
		assert.Equal(t, []string{"embedder"}, codes(setup.Warnings))
		b.server.Break(memos.Faults{})
		setup, err = sdktest.Do(b.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
		require.NoError(t, err)
		assert.Empty(t, setup.Warnings)
		h, err := sdktest.Do(b.Host, abi.OpHealth, abi.MemoryScope{}, withBackend(health), &abi.Empty{})
		require.NoError(t, err)
		assert.Equal(t, abi.HealthOK, h.Status)
		assert.Equal(t, "filtered", h.Isolation)
	})
}

func contains(warnings []string, code string) bool {
	for _, c := range codes(warnings) {
		if c == code {
			return true
		}
	}
	return false
}

func TestLLMDown(t *testing.T) {
	t.Run("sync/fine, 500: the raw text is kept, and the receipt says so", func(t *testing.T) {
		b := newBench(t, syncFine, memos.Options{})
		b.server.Break(memos.Faults{LLMDown: true})
		r := b.must(turnEvent("e-1", "I like jazz."))
		assert.Equal(t, abi.StatusCommitted, r.Status)
		assert.Equal(t, []string{"extraction_fallback"}, codes(r.Warnings))
	})
	t.Run("sync/fine, unparseable: nothing is stored, and the receipt says so", func(t *testing.T) {
		b := newBench(t, syncFine, memos.Options{})
		b.server.Break(memos.Faults{LLMProse: true})
		r := b.must(turnEvent("e-1", "I like jazz."))
		assert.Equal(t, abi.StatusNotRetained, r.Status)
		assert.Equal(t, int64(0), *r.StoredCount)
		assert.Equal(t, []string{"nothing_stored"}, codes(r.Warnings))
	})
	t.Run("async, 500: the raw text is kept", func(t *testing.T) {
		b := newBench(t, async, memos.Options{})
		r := b.must(turnEvent("e-1", "I like jazz."))
		b.server.Break(memos.Faults{LLMDown: true})
		b.wait(10 * time.Second)
		ready := b.ready(r.Markers...)
		assert.Equal(t, abi.ReadinessReady, ready.Status)
		assert.Equal(t, []string{"extraction_fallback"}, codes(ready.Warnings))
	})
	t.Run("async, unparseable: the task is completed, and nothing is there", func(t *testing.T) {
		b := newBench(t, async, memos.Options{})
		r := b.must(turnEvent("e-1", "I like jazz."))
		b.server.Break(memos.Faults{LLMProse: true})
		b.wait(10 * time.Second)
		ready := b.ready(r.Markers...)
		assert.Equal(t, abi.ReadinessDegraded, ready.Status)
		assert.Equal(t, []string{"e-1"}, ready.EventIDs.Empty)
		assert.Equal(t, []string{"lost_extraction"}, codes(ready.Warnings))
	})
}

func TestRedisLost(t *testing.T) {
	b := newBench(t, async, memos.Options{})
	early := b.must(turnEvent("e-0", "I like tea."))
	b.wait(10 * time.Second)
	b.server.Break(memos.Faults{RedisDown: true})
	r := b.must(turnEvent("e-1", "I like jazz."))
	ready := b.ready(r.Markers...)
	assert.Equal(t, abi.ReadinessUnknown, ready.Status, "the tracker does not answer")
	_, err := sdktest.Do(b.Host, abi.OpFindEvent, scope, withBackend(findEvent),
		&abi.FindEventRequest{EventID: "e-1", SentAt: b.Now})
	require.NoError(t, err)
	b.server.Break(memos.Faults{})
	b.wait(10 * time.Second)
	ready = b.ready(append(early.Markers, r.Markers...)...)
	assert.Equal(t, []string{"e-1"}, ready.EventIDs.Unknown, "its task is lost for ever")
	assert.Contains(t, codes(ready.Warnings), "task_lost")
	assert.Contains(t, b.find(retrieveRequest("jazz")).FormattedContext, "| raw |", "its raw text can be searched")
}

func TestDatabaseDownInEveryOperation(t *testing.T) {
	b := newBench(t, async, memos.Options{})
	r := b.must(turnEvent("e-1", "I like jazz."))
	b.server.Break(memos.Faults{DatabaseDown: true})
	for name, run := range map[string]func() error{
		"setup": func() error {
			_, err := sdktest.Do(b.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
			return err
		},
		"record":   func() error { _, err := b.record(turnEvent("e-2", "I like tea.")); return err },
		"retrieve": func() error { _, err := b.retrieve(retrieveRequest("jazz")); return err },
		"readiness": func() error {
			_, err := sdktest.Do(b.Host, abi.OpReadiness, scope, withBackend(readiness),
				&abi.ReadinessMarkers{Markers: r.Markers})
			return err
		},
		"inventory": func() error {
			_, err := sdktest.Do(b.Host, abi.OpInventory, scope, withBackend(inventory), &abi.Empty{})
			return err
		},
		"reset": func() error {
			_, err := sdktest.Do(b.Host, abi.OpResetScope, scope, withBackend(resetScope), &abi.Empty{})
			return err
		},
		"provenance": func() error {
			_, err := sdktest.Do(b.Host, abi.OpProvenance, scope, withBackend(provenance),
				&abi.ProvenanceRequest{Scope: scope, EventID: "e-1"})
			return err
		},
		"find_event": func() error {
			_, err := sdktest.Do(b.Host, abi.OpFindEvent, scope, withBackend(findEvent),
				&abi.FindEventRequest{EventID: "e-2", SentAt: b.Now})
			if err == nil {
				return abi.NewError(abi.CodeUnavailable, "the task is known")
			}
			return err
		},
	} {
		assert.Equal(t, abi.CodeUnavailable, abi.CodeOf(run()), name)
	}
}

// TestDeleteThatFailedAndDidDelete: the fallback of a reset returns "Failed to delete memories" although it has
// deleted; the same answer without a deletion is not a success.
func TestDeleteThatFailedAndDidDelete(t *testing.T) {
	b := newBench(t, syncFast, memos.Options{})
	b.must(turnEvent("e-1", "one"))
	stay := true
	b.server.Intercept(func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		switch {
		case strings.Contains(r.URL.Path, "record_id"):
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"code":500,"message":"no such method","data":null}`))
			return true
		case stay && r.URL.Path == "/product/delete_memory":
			_, _ = w.Write([]byte(`{"code":200,"message":"Failed to delete memories","data":{"status":"failure"}}`))
			return true
		}
		return false
	})
	reset, err := sdktest.Do(b.Host, abi.OpResetScope, scope, withBackend(resetScope), &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.ResetInProgress, reset.Status)
	stay = false
	reset, err = sdktest.Do(b.Host, abi.OpResetScope, scope, withBackend(resetScope), &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.ResetDone, reset.Status)
}

func TestManyEventsAreJudgedAtOnce(t *testing.T) {
	b := newBench(t, async, memos.Options{})
	var markers []string
	for i := range 100 {
		markers = append(markers, b.must(turnEvent("e-"+strings.Repeat("x", i), "I like jazz.")).Markers...)
	}
	b.routesUsed()
	assert.Len(t, b.ready(markers...).EventIDs.Pending, 100)
	assert.Equal(t, []string{"get_memory", "status"}, b.routesUsed())
	b.wait(10 * time.Second)
	ready := b.ready(markers...)
	assert.Equal(t, abi.ReadinessReady, ready.Status, "%v", ready.EventIDs)
}

// TestSourceDesignMakesTheCallsThatTheDesignNames: one add and one search with the fields that it names, and no
// read-back.
func TestSourceDesignMakesTheCallsThatTheDesignNames(t *testing.T) {
	b := newBench(t, syncFine, memos.Options{})
	b.Profile = abi.ProfileSourceDesign
	b.must(turnEvent("e-1", "I always prefer the aisle."))
	five := int64(5)
	r := retrieveRequest("which seat does the user prefer?")
	r.Budget.MaxItems = &five
	b.find(r)
	nothing := retrieveRequest("quux")
	nothing.Scope = otherScope
	result := b.find(nothing)
	assert.Equal(t, abi.ResultUnknown, result.Trace.ResultState)
	assert.Contains(t, codes(result.Trace.Warnings), "empty_unchecked")
	var routes []string
	for _, s := range b.Sent {
		routes = append(routes, s.Route)
	}
	assert.Equal(t, []string{"add_fine", "search_fast", "search_fast"}, routes)
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(b.Sent[1].Body), &body))
	assert.ElementsMatch(t, []string{"user_id", "readable_cube_ids", "query", "mode", "session_id", "top_k",
		"include_preference", "search_tool_memory", "internet_search"}, slices.Collect(maps.Keys(body)))
	assert.Equal(t, []any{5.0, true, true}, []any{body["top_k"], body["include_preference"],
		body["search_tool_memory"]})
}

// TestSourceDesignSendsLabelsAsCustomTags and not in the fields that memhost chose for them. If labels cannot be
// filtered by, the trace says so.
func TestSourceDesignSendsLabelsAsCustomTags(t *testing.T) {
	for block, how := range map[string]string{syncFine: string(abi.FilterHard), async: string(abi.FilterNone)} {
		b := newBench(t, block, memos.Options{})
		b.Profile = abi.ProfileSourceDesign
		b.must(withLabels(turnEvent("e-1", "I always prefer the aisle."), "travel", "", "seat"))
		var body map[string]any
		require.NoError(t, json.Unmarshal([]byte(b.Sent[0].Body), &body))
		assert.Equal(t, []any{"travel", "seat"}, body["custom_tags"])
		assert.NotContains(t, body, "project_id")
		assert.NotContains(t, body, "manager_user_id")
		b.wait(time.Minute)
		q := retrieveRequest("which seat?")
		q.Scenario = "travel"
		assert.Equal(t, how, b.find(q).Trace.FiltersApplied["scenario"], block)
	}
}

// TestReadableCubesAreSharedOnPurpose: a search reads them in addition to the scope's own, writes go to the scope's
// own, and set-up and health say that memory is shared. An item of any other cube is a breach.
func TestReadableCubesAreSharedOnPurpose(t *testing.T) {
	const block = `{"add_mode":"sync/fast","graph_store":"neo4j","writable_cube_template":"{run_id}:{persona_id}"`
	b := newBench(t, block+`,"readable_cubes":["run1_p10_nlab"]}`, memos.Options{Flavour: memos.Neo4j})
	setup, err := sdktest.Do(b.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"cube_id": "run1_p9_nlab", "user_id": "run1_p9_nlab",
		"readable_cubes": "run1_p10_nlab"}, setup.NativeScope)
	assert.Contains(t, codes(setup.Warnings), "cubes_shared")
	h, err := sdktest.Do(b.Host, abi.OpHealth, scope, withBackend(health), &abi.Empty{})
	require.NoError(t, err)
	assert.Contains(t, codes(h.Warnings), "cubes_shared")
	b.must(turnEvent("e-1", "I like jazz."))
	theirs := turnEvent("e-2", "I like jazz on Sundays.")
	theirs.UserID = otherScope.PersonaID
	_, err = sdktest.Do(b.Host, abi.OpRecordEvent, otherScope, withBackend(recordEvent), theirs)
	require.NoError(t, err)
	found := b.find(retrieveRequest("jazz"))
	assert.Contains(t, found.FormattedContext, "Sundays")
	assert.Contains(t, b.Sent[len(b.Sent)-1].Body, `"readable_cube_ids":["run1_p9_nlab","run1_p10_nlab"]`)

	alone := newBench(t, block+`}`, memos.Options{Flavour: memos.Neo4j})
	alone.must(turnEvent("e-1", "I like jazz."))
	_, err = sdktest.Do(alone.Host, abi.OpRecordEvent, otherScope, withBackend(recordEvent), theirs)
	require.NoError(t, err)
	assert.NotContains(t, alone.find(retrieveRequest("jazz")).FormattedContext, "Sundays")
}

func TestAStoreThatLostItsDataIsNoEmptyMemory(t *testing.T) {
	for _, fields := range []string{`"add_mode":"sync/fast"`, `"add_mode":"async"`} {
		b := newBench(t, `{`+fields+`,"graph_store":"neo4j"}`, memos.Options{})
		never := b.find(retrieveRequest("jazz"))
		assert.Equal(t, abi.ResultEmpty, never.Trace.ResultState, "nothing was ever stored")
		assert.Empty(t, never.Trace.Warnings)
		b.must(turnEvent("e-1", "I like jazz."))
		b.server.LoseData()
		for _, labels := range []string{"", "personal"} {
			question := retrieveRequest("jazz")
			question.Context = labels
			lost := b.find(question)
			assert.Equal(t, abi.ResultDegraded, lost.Trace.ResultState)
			assert.Contains(t, codes(lost.Trace.Warnings), "store_empty")
		}
	}
}

func TestAListThatMeetsADeletionIsAskedAgain(t *testing.T) {
	b := newBench(t, `{"add_mode":"async","graph_store":"neo4j"}`, memos.Options{})
	receipt := b.must(turnEvent("e-1", "I like jazz."))
	look := func() (*abi.BackendReadiness, error) {
		return sdktest.Do(b.Host, abi.OpReadiness, scope, withBackend(readiness),
			&abi.ReadinessMarkers{Markers: receipt.Markers})
	}
	b.wait(time.Minute)
	b.server.Break(memos.Faults{ListRaces: listTries - 1})
	ready, err := look()
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessReady, ready.Status)
	b.server.Break(memos.Faults{ListRaces: listTries})
	_, err = look()
	e := abi.AsError(err)
	assert.Equal(t, abi.CodeBackend, e.Code)
	assert.Equal(t, reasonRace, e.Reason)
	assert.True(t, e.Retryable, "the next look may succeed")
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

// onCore is a rig on the surface core.
func onCore(t testing.TB, more string, o ...graphiti.Options) *rig {
	t.Helper()
	options := graphiti.Options{Core: graphiti.Core{EntityTypes: []string{"Person"}, EdgeTypes: []string{"PREFERS"}}}
	if len(o) > 0 {
		options = o[0]
	}
	return plugTo(t, providerSetup{surfaceCore, false}, options, more)
}

// recordTurn records a turn and keeps its receipt's markers.
func (r *rig) recordTurn(day int, id, text string) *abi.WriteReceipt {
	r.t.Helper()
	receipt, err := sdktest.Do(r.Host, abi.OpRecordEvent, scope, recordEvent, turnOn(day, id, text))
	require.NoError(r.t, err)
	r.markers = append(r.markers, receipt.Markers...)
	return receipt
}

// batch records turns at once.
func (r *rig) batch(events ...*abi.MemoryEvent) []abi.ReceiptOrError {
	r.t.Helper()
	in := &abi.EventBatch{}
	for _, e := range events {
		in.Events = append(in.Events, *e)
	}
	out, err := sdktest.Do(r.Host, abi.OpRecordEvents, scope, recordEvents, in)
	require.NoError(r.t, err)
	for _, one := range out.Receipts {
		if one.Receipt != nil {
			r.markers = append(r.markers, one.Receipt.Markers...)
		}
	}
	return out.Receipts
}

func (r *rig) find(id string) *abi.FindEventAnswer {
	r.t.Helper()
	answer, err := sdktest.Do(r.Host, abi.OpFindEvent, scope, findEvent,
		&abi.FindEventRequest{EventID: id, Markers: []string{}, SentAt: "2026-07-01T12:00:00Z"})
	require.NoError(r.t, err)
	return answer
}

func (r *rig) mutate(name string, params map[string]abi.Raw) (*abi.MutationReceipt, error) {
	r.t.Helper()
	return direct(r, abi.OpNativeMutation, nativeMutation, &abi.NativeMutation{Scope: scope, Name: name, Params: params,
		Reason: "test"})
}

func detail(t testing.TB, trace *abi.Trace, name string) []string {
	t.Helper()
	var list []string
	require.NoError(t, json.Unmarshal(trace.Details[name], &list), "%s: %s", name, trace.Details[name])
	return list
}

func (r *rig) hasWarning(list []string, code string) bool {
	return strings.Contains("\n"+strings.Join(list, "\n"), "\n"+code+": ")
}

func TestCoreSendsWhatTheConfigurationSays(t *testing.T) {
	r := onCore(t, `,"source":"text","entity_types":["Person"],"edge_types":["PREFERS"],
		"edge_type_map":[{"source":"Person","target":"Entity","types":["PREFERS"]}],
		"excluded_entity_types":["Entity"],"extraction_instructions":"be brief","previous_episodes":"none",
		"saga":"session"`)
	r.recordTurn(1, "ev-1", "I prefer aisle seats.")
	assert.JSONEq(t, `{"name":"ev-1","episode_body":"user_a(user): I prefer aisle seats.","source":"text",
		"source_description":"{\"mh_event\":\"ev-1\",\"mh_session\":\"s07\",\"mh_turn\":\"t3\"}",
		"reference_time":"2025-03-01T09:30:00Z","previous_episode_uuids":[],"entity_types":["Person"],
		"edge_types":["PREFERS"],
		"edge_type_map":[{"source":"Person","target":"Entity","types":["PREFERS"]}],
		"excluded_entity_types":["Entity"],"custom_extraction_instructions":"be brief","saga":"s07"}`, r.lastRequest().Body)
	assert.Equal(t, pageGroup, r.lastRequest().Params["group"])

	plain := onCore(t, "")
	plain.recordTurn(1, "ev-1", "I prefer aisle seats.")
	assert.JSONEq(t, `{"name":"ev-1","episode_body":"user_a(user): I prefer aisle seats.","source":"message",
		"source_description":"{\"mh_event\":\"ev-1\",\"mh_session\":\"s07\",\"mh_turn\":\"t3\"}",
		"reference_time":"2025-03-01T09:30:00Z"}`, plain.lastRequest().Body,
		"no type, no saga, no mode that was not asked for")
	plain.ask("seats")
	assert.JSONEq(t, `{"query":"seats","recipe":"EDGE_HYBRID_SEARCH_RRF","limit":20}`, plain.sentBy(routeCoreSearch)[0])
	plain.AskItems = 100
	plain.ask("seats")
	assert.JSONEq(t, `{"query":"seats","recipe":"EDGE_HYBRID_SEARCH_RRF","limit":100}`,
		plain.sentBy(routeCoreSearch)[1], "what the host makes of max_tokens")
	plain.AskItems = 0

	whole := onCore(t, `,"max_facts":7,"search_config":{"edge_config":{"search_methods":["bm25"],"reranker":"mmr",`+
		`"mmr_lambda":0.7},"node_config":null,"reranker_min_score":0.1},"search_filters":{"edge_types":["PREFERS"]}`)
	whole.askFor(&abi.RetrieveRequest{Query: "seats", Scope: scope, SessionID: "n",
		Budget: abi.ContextBudget{MaxItems: sdk.Ptr(int64(3))},
		Filters: map[string]abi.Raw{"valid_at_after": abi.Raw(`"2025-01-01T00:00:00Z"`),
			"valid_at_before": abi.Raw(`"2026-01-01T00:00:00Z"`), "center_node_uuid": abi.Raw(`"x"`)}})
	assert.JSONEq(t, `{"query":"seats","config":{"edge_config":{"search_methods":["bm25"],"reranker":"mmr",
		"mmr_lambda":0.7},"reranker_min_score":0.1,"limit":3},"center_node_uuid":"x",
		"search_filter":{"edge_types":["PREFERS"],"valid_at":[[{"comparison_operator":">=",
		"date":"2025-01-01T00:00:00Z"},{"comparison_operator":"<=","date":"2026-01-01T00:00:00Z"}]]}}`,
		whole.sentBy(routeCoreSearch)[0])
}

func TestCoreIsRefusedWhatItCannotAndOthersWhatOnlyCoreCan(t *testing.T) {
	for block, want := range map[string][2]string{
		`"surface":"core","source":"fact_triple"`: {"source: fact_triple",
			"surface: mcp"},
		`"surface":"core","search_nodes":true`: {"search_nodes: exists on MCP only",
			"COMBINED_HYBRID_SEARCH_RRF"},
		`"surface":"core","search_config":{"limit":5}`: {"search_config: searches nothing", "edge_config"},
		`"surface":"core","search_config":{"edge_config":{}},` +
			`"reranker_min_score":1`: {"reranker_min_score: goes with recipe", "search_config"},
		`"surface":"core","edge_type_map":[{"source":"A","target":"B",` +
			`"types":["C"]}]`: {"edge_type_map: needs edge_types", ""},
		`"surface":"core","max_facts":0`: {"max_facts: must be at least 1", ""},
		`"surface":"mcp","recipe":"NODE_HYBRID_SEARCH_RRF"`: {"recipe: exists on the surface core only",
			"surface: core"},
		`"surface":"rest","receipts":"queued"`: {"receipts: exists on the surface core only",
			"surface: core"},
		`"surface":"rest","bulk":"native"`: {"bulk: exists on the surface core only", "surface: core"},
		`"surface":"mcp","triplets":true`: {"triplets: exists on the surface core only",
			"surface: core"},
		`"surface":"mcp","entity_types":["Person"]`: {"entity_types: exists on the surface core only",
			"surface: core"},
		`"surface":"rest","source":"json"`: {"source: ",
			"surface: mcp or core"},
	} {
		_, err := parseSettings(&abi.GuestConfig{Config: abi.Raw(`{"url":"http://h:1",` + block + `}`)})
		require.Error(t, err, block)
		assert.Contains(t, err.Error(), want[0], block)
		assert.Contains(t, abi.AsError(err).Hint, want[1], block)
	}
	for _, block := range []string{`"surface":"core","max_facts":1`,
		`"surface":"mcp","recipe":"EDGE_HYBRID_SEARCH_RRF","receipts":"sync","bulk":"single","triplets":false,` +
			`"entity_types":null,"previous_episodes":"latest"`} {
		_, err := parseSettings(&abi.GuestConfig{Config: abi.Raw(`{"url":"http://h:1",` + block + `}`)})
		assert.NoError(t, err, "the defaults that a host lays under a block: %s", block)
	}
}

func TestACommittedReceiptNamesWhatWasStoredAndWhatItClosed(t *testing.T) {
	r := onCore(t, "")
	first := r.recordTurn(1, "ev-1", "I prefer window seats on business trips.")
	require.Equal(t, abi.StatusCommitted, first.Status)
	assert.Equal(t, "committed", first.Trace.Consistency)
	assert.Empty(t, first.Markers, "there is nothing to wait for")
	created := detail(t, first.Trace, "facts_created")
	require.Len(t, created, 1)
	assert.Equal(t, int64(1), *first.StoredCount)
	assert.Len(t, first.NativeIDs, 4, "the episode, two entities, a fact")
	second := r.recordTurn(20, "ev-2", "I now prefer aisle seats on business trips.")
	assert.Equal(t, created, detail(t, second.Trace, "facts_invalidated"))
	again := r.recordTurn(21, "ev-3", "I now prefer aisle seats on business trips.")
	assert.Equal(t, detail(t, second.Trace, "facts_created"), detail(t, again.Trace, "facts_reasserted"))
	assert.Equal(t, int64(0), *again.StoredCount)
	nothing := r.recordTurn(22, "ev-4", "")
	assert.True(t, r.hasWarning(nothing.Warnings, "nothing_extracted"))
	assert.Equal(t, abi.StatusCommitted, nothing.Status, "the episode is there")
	assert.Equal(t, abi.ReadinessReady, r.ready().Status)
	result := r.ask("Which seat on business trips?")
	assert.Contains(t, result.FormattedContext,
		"window seats on business trips [SUPERSEDED: valid 2025-03-01T09:30:00Z to 2025-03-20T09:30:00Z")
	assert.True(t, slices.ContainsFunc(result.Evidence, func(e abi.Evidence) bool {
		return slices.Equal(e.SourceEventIDs, []string{"ev-2", "ev-3"})
	}))
	assert.NotContains(t, result.FormattedContext, "ev-", "a caller chose these ids")
}

func TestAQueuedReceiptIsCommittedWhenItsJobIsDone(t *testing.T) {
	r := onCore(t, `,"receipts":"queued"`)
	r.fake.Hold(true)
	receipt := r.recordTurn(1, "ev-1", "I prefer window seats.")
	assert.Equal(t, abi.StatusQueued, receipt.Status)
	assert.Empty(t, receipt.NativeIDs)
	require.Len(t, receipt.Markers, 1)
	assert.Equal(t, abi.ReadinessPending, r.ready().Status)
	assert.Equal(t, []string{"ev-1"}, r.ready().EventIDs.Pending)
	assert.Equal(t, "2026-07-01T12:00:00Z", r.ready().OldestPendingAt)
	assert.False(t, r.count().Quiescent, "a job waits")
	found := r.find("ev-1")
	assert.Equal(t, "present", found.Found, "queued on disk is not lost")
	require.Len(t, found.Markers, 1)
	m, ok := parseMarker(found.Markers[0])
	require.True(t, ok)
	assert.Equal(t, "ev-1", m.name)
	r.recordTurn(1, "ev-1", "I prefer window seats.")
	assert.Equal(t, 1, r.fake.Queued(), "the same event is the same job, however often it is sent")
	r.fake.Hold(false)
	assert.Equal(t, abi.ReadinessReady, r.ready().Status)
	assert.Len(t, r.find("ev-1").NativeIDs, 1)
	again := r.recordTurn(1, "ev-1", "I prefer window seats.")
	assert.Equal(t, abi.StatusCommitted, again.Status, "its job is done, and the episode there")
	assert.True(t, r.count().Quiescent)
}

func TestAJobThatFailedIsSaidWithTheGatewaysWordsAndSentAgain(t *testing.T) {
	r := onCore(t, `,"receipts":"queued"`)
	r.fake.FailExtraction(1)
	r.recordTurn(1, "bad", "I like rowing.")
	r.recordTurn(2, "good", "I like running.")
	answer := r.ready()
	assert.Equal(t, abi.ReadinessFailed, answer.Status)
	assert.Equal(t, []string{"bad"}, answer.EventIDs.Failed, "one failed job is one failed event")
	assert.Empty(t, answer.EventIDs.Pending)
	assert.Contains(t, strings.Join(answer.Warnings, "\n"), "job_failed: 1 events failed; the first: llm_failed: ")
	assert.Equal(t, "absent", r.find("bad").Found)
	r.recordTurn(1, "bad", "I like rowing.")
	assert.Equal(t, abi.ReadinessReady, r.ready().Status)
	assert.Len(t, r.ask("rowing").Evidence, 1)
}

func TestAGatewayThatWasKilledLosesAndDoublesNothing(t *testing.T) {
	for _, stored := range []bool{true, false} {
		t.Run(fmt.Sprint("stored ", stored), func(t *testing.T) {
			r := onCore(t, `,"receipts":"queued"`)
			r.fake.Hold(true)
			r.recordTurn(1, "e1", "I like rowing.")
			r.fake.Interrupt(pageGroup, stored)
			r.fake.Hold(false)
			if stored { // the commit was complete: one transaction
				assert.Equal(t, abi.ReadinessReady, r.ready().Status)
				assert.Equal(t, "present", r.find("e1").Found)
				return
			}
			assert.Equal(t, []string{"e1"}, r.ready().EventIDs.Failed)
			assert.Equal(t, "absent", r.find("e1").Found)
			r.recordTurn(1, "e1", "I like rowing.")
			assert.Equal(t, abi.ReadinessReady, r.ready().Status)
			assert.Len(t, r.ask("rowing").Evidence, 1)
		})
	}
}

func TestAnEventThatIsNeitherQueuedNorStoredIsLost(t *testing.T) {
	r := onCore(t, `,"receipts":"queued"`)
	r.markers = []string{marker{seq: 1, sentMS: 1, eventMS: 1, name: "gone", job: "mh1e-x"}.String()}
	answer := r.ready()
	assert.Equal(t, []string{"gone"}, answer.EventIDs.Lost)
	assert.True(t, r.hasWarning(answer.Warnings, "event_lost"))
	r.markers = []string{marker{seq: 1, sentMS: 1, eventMS: 1, name: "elsewhere"}.String()}
	assert.Equal(t, abi.ReadinessUnknown, r.ready().Status,
		"a marker of another surface: its queue is not the gateway's")
}

func TestSyncAbsenceCountsOnlyWhenTheWriteCanNoLongerLand(t *testing.T) {
	r := onCore(t, "")
	unknown := r.find("e0")
	assert.Equal(t, "unknown", unknown.Found, "the gateway may be at it still")
	assert.LessOrEqual(t, *unknown.RetryAfterMS, int64(2000))
	r.later(graphiti.WriteSeconds*time.Second + time.Second)
	assert.Equal(t, "absent", r.find("e0").Found, "longer than the gateway lets a write take")
	r.recordTurn(1, "e1", "I like tea.")
	assert.Equal(t, "present", r.find("e1").Found)
	r.at(time.Date(2026, 7, 1, 12, 0, 1, 0, time.UTC))
	r.recordTurn(2, "e2", "I like rowing.")
	answer, err := sdktest.Do(r.Host, abi.OpFindEvent, scope, findEvent,
		&abi.FindEventRequest{EventID: "between", Markers: []string{}, SentAt: "2026-07-01T12:00:00.5Z"})
	require.NoError(t, err)
	assert.Equal(t, "absent", answer.Found,
		"a later event of the scope is there, and the gateway works a group's writes off in order")
}

func TestAWriteThatFailedSaysWhatIsStored(t *testing.T) {
	r := onCore(t, "")
	r.fake.FailExtraction(1)
	_, err := direct(r, abi.OpRecordEvent, recordEvent, turnOn(1, "e1", "I like rowing."))
	e := abi.AsError(err)
	assert.Equal(t, abi.CodeUnavailable, e.Code)
	assert.Equal(t, "llm_failed", e.Reason)
	assert.True(t, e.NothingStored)
	assert.Contains(t, e.Message, "stub failure")
	assert.Equal(t, int64(502), *e.Native.Status)
	for body, want := range map[string]abi.Error{
		`{"error":{"code":"deadline_exceeded","message":"900 s","details":{"seconds":900,` +
			`"stored":"unknown"}}}`: {Code: abi.CodeTimeout, Retryable: true},
		`{"error":{"code":"queue_full","message":"full",` +
			`"details":{}}}`: {Code: abi.CodeRateLimited, Retryable: true, NothingStored: true},
		`{"error":{"code":"queue_disabled",` +
			`"message":"no journal"}}`: {Code: abi.CodeUnsupported},
		`{"error":{"code":"bulk_too_large","message":"5000","details":{"limit":500,` +
			`"count":5000}}}`: {Code: abi.CodeTooLarge},
		`{"error":{"code":"internal","message":"x",` +
			`"details":{"stored":"episodes_without_facts"}}}`: {Code: abi.CodeBackend},
		`{"error":"not an object"}`: {Code: abi.CodeBackend},
		`[]`:                        {Code: abi.CodeBackend},
	} {
		status := map[abi.Code]int64{abi.CodeTimeout: 504, abi.CodeRateLimited: 429, abi.CodeUnsupported: 409,
			abi.CodeTooLarge: 422}[want.Code]
		if status == 0 {
			status = 500
		}
		r.reply = func(sdktest.Request) (sdktest.Reply, bool) { return sdktest.Reply{Status: status, Body: body}, true }
		_, err := direct(r, abi.OpRecordEvent, recordEvent, turnOn(1, "e1", "x"))
		e := abi.AsError(err)
		assert.Equal(t, want.Code, e.Code, body)
		assert.Equal(t, want.NothingStored, e.NothingStored, body)
		if want.Code != abi.CodeBackend {
			assert.Equal(t, want.Retryable, e.Retryable, body)
		}
	}
}

// Traps of graphiti-core that concern the module. Traps of the library itself are covered by the gateway's tests.
func TestTrapsOfTheLibrary(t *testing.T) {
	t.Run("trap core 1: embeddings and null attributes are asked of nobody, and what the answers have is kept verbatim",
		func(t *testing.T) {
			r := onCore(t, "")
			r.recordTurn(1, "e1", "I prefer window seats.")
			raw := string(r.ask("seats").Raw.Calls[0].Body)
			assert.NotContains(t, raw, "embedding")
			assert.Contains(t, raw, `"reference_time":"2025-03-01T09:30:00Z"`)
		})
	t.Run("trap core 2: an infinite score is null, and no score is made of it", func(t *testing.T) {
		r := onCore(t, `,"recipe":"NODE_HYBRID_SEARCH_EPISODE_MENTIONS","triplets":true`)
		_, err := r.mutate("add_triplet", map[string]abi.Raw{"source": abi.Raw(`"Kim"`),
			"relation": abi.Raw(`"LIVES_IN"`), "fact": abi.Raw(`"Kim lives in Rome"`), "target": abi.Raw(`"Rome"`)})
		require.NoError(t, err)
		result := r.ask("Kim Rome")
		require.NotEmpty(t, result.Evidence)
		assert.Contains(t, string(result.Raw.Calls[0].Body), `"node_reranker_scores":[null`)
		assert.Nil(t, result.Evidence[0].Score)
		assert.Nil(t, result.Trace.TopScore)
		assert.NotContains(t, result.FormattedContext, "score")
	})
	t.Run("trap core 3: created, said again and closed are three lists, not guessed from the fact", func(t *testing.T) {
		v := &scopedCall{settings: &settings{config: &abi.GuestConfig{Provider: "graphiti"}}, group: "g"}
		w, err := v.readWritten("core_add_episode", []byte(`{"episode":{"uuid":"e","group_id":"g"},"nodes":[],
			"edges":[{"uuid":"f","group_id":"g","episodes":["e"],"expired_at":"2026-01-01T00:00:00Z"}],
			"created_edge_uuids":["f"],"reasserted_edge_uuids":[],"invalidated_edge_uuids":[]}`))
		require.NoError(t, err)
		trace := v.committedReceipt("add_episode", "x", w, 0).Trace
		assert.Equal(t, []string{"f"}, detail(t, trace, "facts_created"), "created, and expired already")
		assert.Empty(t, detail(t, trace, "facts_invalidated"))
	})
	t.Run("trap core 4: fact_triple runs text extraction and is refused; json is JSON", func(t *testing.T) {
		_, err := parseSettings(&abi.GuestConfig{Config: abi.Raw(`{"url":"http://h:1","surface":"core",` +
			`"source":"fact_triple"}`)})
		assert.ErrorContains(t, err, "source: fact_triple runs the extraction of text")
		r := onCore(t, `,"source":"json"`)
		r.recordTurn(1, "e1", "I prefer window seats.")
		var sent struct {
			Body string `json:"episode_body"`
		}
		require.NoError(t, json.Unmarshal([]byte(r.lastRequest().Body), &sent))
		assert.True(t, json.Valid([]byte(sent.Body)))
	})
	t.Run("trap core 5: no uuid is sent of an episode that is not known to be bare", func(t *testing.T) {
		for _, more := range []string{"", `,"receipts":"queued"`, `,"bulk":"native"`} {
			r := onCore(t, more)
			r.recordTurn(1, "e1", "I prefer window seats.")
			r.batch(turnOn(2, "e2", "I like tea."), turnOn(3, "e3", "I like rowing."))
			for _, q := range r.Sent {
				if q.Route == "core_add_episode" || q.Route == "core_add_bulk" {
					assert.NotContains(t, q.Body, `"uuid"`, more)
				}
			}
		}
	})
	t.Run("trap core 6: update_communities is never asked for", func(t *testing.T) {
		r := onCore(t, `,"communities":true`)
		r.recordTurn(1, "e1", "I prefer window seats.")
		assert.NotContains(t, r.lastRequest().Body, "update_communities")
	})
	t.Run("trap core 7: times go out with an offset", func(t *testing.T) {
		r := onCore(t, "")
		e := turnOn(1, "future", "I like moon travel.")
		e.Timestamp = "2031-01-01T01:00:00+01:00"
		_, err := sdktest.Do(r.Host, abi.OpRecordEvent, scope, recordEvent, e)
		require.NoError(t, err)
		assert.Contains(t, r.lastRequest().Body, `"reference_time":"2031-01-01T00:00:00Z"`)
		assert.Len(t, r.ask("moon travel").Evidence, 1)
		assert.Equal(t, "present", r.find("future").Found, "by name, whatever its time")
	})
	t.Run("trap core 8: a type that the gateway lacks is told before anything is stored", func(t *testing.T) {
		r := onCore(t, `,"entity_types":["Robot"],"edge_types":["BUILT"]`)
		_, err := direct(r, abi.OpSetupScope, setupScope, &abi.Empty{})
		assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
		assert.ErrorContains(t, err, "the gateway lacks entity type Robot, edge type BUILT")
		h, err := sdktest.Do(r.Host, abi.OpHealth, abi.MemoryScope{}, health, &abi.Empty{})
		require.NoError(t, err)
		assert.Equal(t, abi.HealthDegraded, h.Status)
		assert.True(t, r.hasWarning(h.Warnings, "gateway_lacks"))
		_, err = direct(r, abi.OpRecordEvent, recordEvent, turnOn(1, "e1", "x"))
		assert.Equal(t, "unknown_type", abi.AsError(err).Reason)
	})
	t.Run("trap core 9: custom types are in the graph only where they are configured", func(t *testing.T) {
		for more, want := range map[string]bool{`,"recipe":"NODE_HYBRID_SEARCH_RRF"`: false,
			`,"recipe":"NODE_HYBRID_SEARCH_RRF","entity_types":["Person"]`: true} {
			r := onCore(t, more)
			r.recordTurn(1, "e1", "I live in Berlin.")
			assert.Equal(t, want, strings.Contains(string(r.ask("user_a Berlin").Raw.Calls[0].Body), `"Person"`), more)
		}
	})
	t.Run("trap core 10: a bulk leaves contradictions inside it open, singles close them, "+
		"and receipt and health say which it was", func(t *testing.T) {
		events := []*abi.MemoryEvent{turnOn(1, "ev-1", "I prefer window seats on business trips."),
			turnOn(20, "ev-2", "I now prefer aisle seats on business trips.")}
		for more, want := range map[string]struct {
			closed int
			route  string
			modes  []string
		}{"": {1, "core_add_episode", []string{"add_episode:message"}},
			`,"bulk":"native"`: {0, "core_add_bulk", []string{"add_episode:message", "add_episode_bulk:message"}}} {
			r := onCore(t, more)
			receipts := r.batch(events...)
			assert.Equal(t, more != "", r.hasWarning(receipts[0].Receipt.Warnings, "bulk_native"))
			assert.Equal(t, want.closed, strings.Count(r.ask("seats on business trips").FormattedContext, "SUPERSEDED"),
				more)
			assert.NotEmpty(t, r.sentBy(want.route))
			h, err := sdktest.Do(r.Host, abi.OpHealth, abi.MemoryScope{}, health, &abi.Empty{})
			require.NoError(t, err)
			assert.Equal(t, want.modes, h.NativeIngestModes)
		}
	})
	t.Run("trap core 11: a bulk's episodes name no facts, and provenance says so", func(t *testing.T) {
		r := onCore(t, `,"bulk":"native"`)
		receipts := r.batch(turnOn(1, "e1", "I prefer window seats."), turnOn(2, "e2", "I like tea."))
		assert.Len(t, detail(t, receipts[1].Receipt.Trace, "facts_created"), 1, "the receipt knows them all the same")
		p, err := sdktest.Do(r.Host, abi.OpProvenance, scope, provenance,
			&abi.ProvenanceRequest{Scope: scope, EventID: "e1"})
		require.NoError(t, err)
		assert.Empty(t, p.Items)
		assert.True(t, r.hasWarning(p.Trace.Warnings, "episode_unlinked"))
	})
	t.Run("trap core 12: a bulk that fails leaves bare episodes; sent again it resumes them and doubles nothing",
		func(t *testing.T) {
			for _, more := range []string{`,"bulk":"native"`, `,"bulk":"native","receipts":"queued"`} {
				r := onCore(t, more)
				r.fake.FailExtraction(1)
				events := []*abi.MemoryEvent{turnOn(1, "e1", "I prefer window seats."), turnOn(2, "e2", "I like tea.")}
				failed := r.batch(events...)
				if strings.Contains(more, "queued") {
					assert.ElementsMatch(t, []string{"e1", "e2"}, r.ready().EventIDs.Failed,
						"their episodes alone are no memory")
				} else {
					require.NotNil(t, failed[0].Error)
					assert.False(t, failed[0].Error.NothingStored)
					assert.Contains(t, failed[0].Error.Hint, "it is resumed")
				}
				found := r.find("e1")
				assert.Equal(t, "partial", found.Found)
				assert.Equal(t, []string{"entities and facts"}, found.Missing)
				r.markers = nil
				for _, e := range events { // the host finishes them one at a time
					receipt, err := sdktest.Do(r.Host, abi.OpRecordEvent, scope, recordEvent, e)
					require.NoError(t, err)
					r.markers = append(r.markers, receipt.Markers...)
					assert.Contains(t, r.Sent[len(r.Sent)-1].Body, `"uuid":`)
				}
				assert.Equal(t, abi.ReadinessReady, r.ready().Status)
				assert.Equal(t, int64(2), r.count().Kinds[0].Count, "two episodes, not four")
				assert.Equal(t, "present", r.find("e1").Found)
				assert.Len(t, r.ask("seats tea").Evidence, 2)
			}
		})
	t.Run("trap core 13: a bulk beyond the limit is refused whole, by name", func(t *testing.T) {
		r := onCore(t, `,"bulk":"native"`, graphiti.Options{Core: graphiti.Core{BulkMost: 2}})
		for _, one := range r.batch(turnOn(1, "a", "I like a."), turnOn(2, "b", "I like b."),
			turnOn(3, "c", "I like c.")) {
			assert.Equal(t, abi.CodeTooLarge, one.Error.Code)
			assert.Contains(t, one.Error.Hint, "bulk: single")
		}
		assert.Empty(t, r.fake.Groups())
	})
	t.Run("trap core 14: scores that are not in the items' order are nobody's", func(t *testing.T) {
		for _, recipe := range []string{"EDGE_HYBRID_SEARCH_EPISODE_MENTIONS", "EDGE_HYBRID_SEARCH_NODE_DISTANCE"} {
			r := onCore(t, `,"recipe":"`+recipe+`"`)
			r.recordTurn(1, "e1", "I prefer window seats. I like tea.")
			result := r.askFor(&abi.RetrieveRequest{Query: "seats tea", Scope: scope, SessionID: "n",
				Filters: map[string]abi.Raw{"center_node_uuid": abi.Raw(`"x"`)}})
			require.Len(t, result.Evidence, 2)
			assert.Nil(t, result.Evidence[0].Score, recipe)
			assert.Nil(t, result.Trace.TopScore)
			assert.True(t, r.hasWarning(result.Trace.Warnings, "scores_unaligned"))
			assert.Contains(t, string(result.Raw.Calls[0].Body), `"edge_reranker_scores":[`,
				"raw has them as they came")
		}
		f := new(results)
		require.NoError(t, f.addCore([]byte(`{"edges":[{"uuid":"a"}],"edge_reranker_scores":[1,2],"nodes":[],`+
			`"node_reranker_scores":[],"episodes":[],"communities":[],"score_alignment":{"edges":"aligned"}}`)))
		assert.Nil(t, f.lists[0].items[0].score, "a list of another length, whatever is said of it")
	})
	t.Run("trap core 15: node distance without a centre is refused with what to give", func(t *testing.T) {
		r := onCore(t, `,"recipe":"NODE_HYBRID_SEARCH_NODE_DISTANCE"`)
		_, err := direct(r, abi.OpRetrieve, retrieve, &abi.RetrieveRequest{Query: "q", Scope: scope, SessionID: "n"})
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
		assert.Contains(t, abi.AsError(err).Hint, "filters.center_node_uuid")
	})
	t.Run("trap core 16: a cross encoder that the gateway lacks is told at set-up", func(t *testing.T) {
		r := onCore(t, `,"recipe":"EDGE_HYBRID_SEARCH_CROSS_ENCODER"`,
			graphiti.Options{Core: graphiti.Core{NoReranker: true}})
		_, err := direct(r, abi.OpSetupScope, setupScope, &abi.Empty{})
		assert.ErrorContains(t, err, "a reranker, which EDGE_HYBRID_SEARCH_CROSS_ENCODER needs")
		_, err = direct(r, abi.OpRetrieve, retrieve, &abi.RetrieveRequest{Query: "q", Scope: scope, SessionID: "n"})
		assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
		queue := onCore(t, `,"receipts":"queued"`, graphiti.Options{Core: graphiti.Core{NoQueue: true}})
		_, err = direct(queue, abi.OpSetupScope, setupScope, &abi.Empty{})
		assert.ErrorContains(t, err, "a journal, which receipts: queued needs")
		_, err = direct(queue, abi.OpRecordEvent, recordEvent, turnOn(1, "e", "x"))
		assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
	})
	t.Run("trap core 17: several OR-lists of dates never leave memhost, unknown filters are told", func(t *testing.T) {
		r := onCore(t, "")
		for _, wrong := range []string{`[[{"comparison_operator":"IS NULL"}],[{"comparison_operator":"IS NULL"}]]`,
			`[]`} {
			_, err := direct(r, abi.OpRetrieve, retrieve, &abi.RetrieveRequest{Query: "q", Scope: scope, SessionID: "n",
				Filters: map[string]abi.Raw{"valid_at": abi.Raw(wrong)}})
			assert.Equal(t, "invalid_search_filter", abi.AsError(err).Reason)
		}
		trace := r.askFor(&abi.RetrieveRequest{Query: "q", Scope: scope, SessionID: "n",
			Filters: map[string]abi.Raw{"property_filters": abi.Raw(`[]`)}}).Trace
		assert.Equal(t, "none", trace.FiltersApplied["property_filters"])
		assert.True(t, r.hasWarning(trace.Warnings, "filter_ignored"))
		_, err := direct(r, abi.OpRetrieve, retrieve, &abi.RetrieveRequest{Query: "q", Scope: scope, SessionID: "n",
			Filters: map[string]abi.Raw{"valid_at": abi.Raw(`[[{"comparison_operator":"IS NULL"}]]`),
				"valid_at_after": abi.Raw(`"2025-01-01T00:00:00Z"`)}})
		assert.ErrorContains(t, err, "filters.valid_at_after")
	})
	t.Run("trap core 18: a filter is hard only where all that is found heeds it", func(t *testing.T) {
		for more, want := range map[string]string{"": "hard", `,"recipe":"COMBINED_HYBRID_SEARCH_RRF"`: "unverified",
			`,"recipe":"NODE_HYBRID_SEARCH_RRF"`: "unverified"} {
			r := onCore(t, more)
			r.recordTurn(1, "e1", "I prefer window seats. I like tea.")
			result := r.askFor(&abi.RetrieveRequest{Query: "seats tea", Scope: scope, SessionID: "n",
				Filters: map[string]abi.Raw{"edge_types": abi.Raw(`["LIKES"]`)}})
			assert.Equal(t, want, result.Trace.FiltersApplied["edge_types"], more)
			assert.Equal(t, want != "hard", r.hasWarning(result.Trace.Warnings, "filter_partial"), more)
			if want == "hard" {
				assert.Equal(t, []string{"user_a like tea"}, factTexts(result))
			}
		}
	})
	t.Run("trap core 19: what the configuration fixed a request cannot change", func(t *testing.T) {
		r := onCore(t, `,"search_filters":{"edge_types":["PREFERS"]}`)
		r.recordTurn(1, "e1", "I prefer window seats. I like tea.")
		assert.Equal(t, []string{"user_a prefer window seats"}, factTexts(r.ask("seats tea")))
		_, err := direct(r, abi.OpRetrieve, retrieve, &abi.RetrieveRequest{Query: "q", Scope: scope, SessionID: "n",
			Filters: map[string]abi.Raw{"edge_types": abi.Raw(`["LIKES"]`)}})
		assert.ErrorContains(t, err, "filters.edge_types: search_filters of the configuration has fixed edge_types")
	})
	t.Run("trap core 20: search, which writes its limit into the shared recipe, is not even a route",
		func(t *testing.T) {
			data, err := os.ReadFile("manifest.json")
			require.NoError(t, err)
			assert.NotContains(t, string(data), `"path": "/v1/groups/{group}/search"`)
			r := onCore(t, "")
			r.recordTurn(1, "e1", "I prefer window seats on business trips.")
			for _, most := range []int64{0, 1, 500} {
				trace := r.askFor(&abi.RetrieveRequest{Query: "seats", Scope: scope, SessionID: "n",
					Budget: abi.ContextBudget{MaxItems: &most}}).Trace
				assert.Equal(t, "native", trace.BudgetApplied["max_items"].How)
				assert.Equal(t, max(1, most), *trace.BudgetApplied["max_items"].Sent)
			}
			r.recordTurn(20, "e2", "I now prefer aisle seats on business trips.")
			assert.Contains(t, r.ask("seats").FormattedContext, "SUPERSEDED",
				"a small limit of one search harms no ingestion")
		})
	t.Run("trap core 21: triplets are refused unless they are configured, and mutations are by the group",
		func(t *testing.T) {
			params := map[string]abi.Raw{"source": abi.Raw(`"Kim"`), "relation": abi.Raw(`"LIVES_IN"`),
				"fact": abi.Raw(`"Kim lives in Rome"`), "target": abi.Raw(`"Rome"`)}
			r := onCore(t, "")
			for name, hint := range map[string]string{"add_triplet": "triplets: true",
				"build_communities": "communities: true", "summarize_saga": "saga: session"} {
				_, err := r.mutate(name, params)
				assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
				assert.Equal(t, hint, abi.AsError(err).Hint)
			}
			assert.Empty(t, r.Sent)
			r = onCore(t, `,"triplets":true,"communities":true,"recipe":"COMMUNITY_HYBRID_SEARCH_RRF"`)
			receipt, err := r.mutate("add_triplet", params)
			require.NoError(t, err)
			assert.True(t, r.hasWarning(receipt.Trace.Warnings, "triplet_undated"))
			params["valid_at"] = abi.Raw(`"2025-03-01T00:00:00Z"`)
			receipt, err = r.mutate("add_triplet", params)
			require.NoError(t, err)
			assert.Empty(t, receipt.Trace.Warnings)
			_, err = r.mutate("build_communities", nil)
			require.NoError(t, err)
			assert.NotEmpty(t, r.ask("Kim").Evidence)
			_, err = r.mutate("delete_fact", map[string]abi.Raw{"uuid": sdk.Text(receipt.NativeIDs[0])})
			require.NoError(t, err)
			_, err = r.mutate("delete_fact", map[string]abi.Raw{"uuid": sdk.Text(receipt.NativeIDs[0])})
			assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err))
		})
	t.Run("trap core 22: an episode's deletion takes the facts that it asserted first, and reopens none",
		func(t *testing.T) {
			r := onCore(t, "")
			r.recordTurn(1, "ev-1", "I prefer window seats on business trips.")
			second := r.recordTurn(20, "ev-2", "I now prefer aisle seats on business trips.")
			receipt, err := r.mutate("delete_episode", map[string]abi.Raw{"uuid": sdk.Text(second.NativeIDs[0])})
			require.NoError(t, err)
			assert.Contains(t, string(receipt.Trace.Details["removed"]), `"edges":1`)
			assert.Contains(t, r.ask("seats").FormattedContext, "SUPERSEDED", "the older fact stays closed")
		})
	t.Run("trap core 23: sagas go with a reset, and everything is counted", func(t *testing.T) {
		r := onCore(t, `,"saga":"session","receipts":"queued"`)
		r.recordTurn(1, "e1", "I prefer window seats.")
		require.Equal(t, abi.ReadinessReady, r.ready().Status)
		r.fake.Hold(true)
		r.recordTurn(2, "e2", "I like tea.")
		receipt := r.reset()
		require.Equal(t, abi.ResetDone, receipt.Status, "a queued job is taken away: it cannot come back")
		for kind, want := range map[string]int64{"episode": 1, "entity": 2, "fact": 1, "community": 0, "saga": 1} {
			assert.Equal(t, want, *receipt.Removed[kind], kind)
		}
		r.fake.Hold(false)
		r.markers = nil
		r.recordTurn(3, "e3", "I like rowing.")
		require.Equal(t, abi.ReadinessReady, r.ready().Status)
		assert.NotContains(t, r.fake.Groups(), pageGroup)
		assert.Contains(t, r.fake.Groups(), pageGroup+"_g2")
	})
	t.Run("trap core 24: one group, in the path, always", func(t *testing.T) {
		r := onCore(t, `,"receipts":"queued","triplets":true,"communities":true`)
		r.recordTurn(1, "e1", "I prefer window seats.")
		r.ready()
		r.find("e1")
		r.ask("seats")
		r.count()
		_, _ = r.mutate("build_communities", nil)
		r.reset()
		for _, q := range r.Sent {
			if q.Route != "core_info" {
				assert.Equal(t, pageGroup, q.Params["group"], q.Route)
			}
			assert.NotContains(t, q.Body, "group_id")
		}
	})
	t.Run("trap core 25: an item of another group is a breach, wherever it stands", func(t *testing.T) {
		for _, kind := range []string{"edges", "nodes", "episodes", "communities"} {
			r := onCore(t, "")
			r.reply = func(q sdktest.Request) (sdktest.Reply, bool) {
				answer := map[string]any{"edges": []any{}, "nodes": []any{}, "episodes": []any{},
					"communities": []any{}}
				answer[kind] = []any{map[string]any{"uuid": "u", "group_id": "another"}}
				body, _ := json.Marshal(answer)
				return sdktest.Reply{Status: 200, Body: string(body)}, q.Route == routeCoreSearch
			}
			_, err := direct(r, abi.OpRetrieve, retrieve, &abi.RetrieveRequest{Query: "q", Scope: scope,
				SessionID: "n"})
			assert.Equal(t, abi.CodeIsolationBreach, abi.CodeOf(err), kind)
			_, err = direct(r, abi.OpNativeQuery, nativeQuery,
				&abi.NativeQuery{Scope: scope, Name: "search", Params: map[string]abi.Raw{"query": abi.Raw(`"q"`)}})
			assert.Equal(t, abi.CodeIsolationBreach, abi.CodeOf(err), kind)
		}
	})
	t.Run("trap core 26: a database that is away is an error or unavailable, the queue keeps what it has",
		func(t *testing.T) {
			r := onCore(t, `,"receipts":"queued"`)
			r.fake.Hold(true)
			r.recordTurn(1, "e1", "I like rowing.")
			r.fake.DatabaseDown(true)
			h, err := sdktest.Do(r.Host, abi.OpHealth, abi.MemoryScope{}, health, &abi.Empty{})
			require.NoError(t, err)
			assert.Equal(t, abi.HealthUnavailable, h.Status)
			assert.True(t, r.hasWarning(h.Warnings, "database_down"))
			_, err = direct(r, abi.OpRetrieve, retrieve, &abi.RetrieveRequest{Query: "q", Scope: scope, SessionID: "n"})
			assert.Equal(t, abi.CodeUnavailable, abi.CodeOf(err))
			assert.Equal(t, "database_unavailable", abi.AsError(err).Reason)
			r.fake.DatabaseDown(false)
			r.fake.Restart()
			r.fake.Hold(false)
			assert.Equal(t, abi.ReadinessReady, r.ready().Status)
		})
	t.Run("trap core 27: sources that cannot be asked for leave the facts, degraded", func(t *testing.T) {
		r := onCore(t, "")
		r.recordTurn(1, "e1", "I prefer window seats.")
		r.reply = func(q sdktest.Request) (sdktest.Reply, bool) {
			return sdktest.Reply{Status: 500, Body: "x"}, q.Route == routeCoreSources
		}
		result := r.ask("seats")
		assert.Len(t, result.Evidence, 1)
		assert.Equal(t, abi.ResultDegraded, result.Trace.ResultState)
		assert.True(t, r.hasWarning(result.Trace.Warnings, "sources_unknown"))
	})
}

func TestEveryRecipeIsFormattedAndItsScoresAreTheRerankers(t *testing.T) {
	data, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	var manifest struct {
		Schema struct {
			Properties map[string]struct{ Enum []string }
		} `json:"config_schema"`
	}
	require.NoError(t, json.Unmarshal(data, &manifest))
	recipes := manifest.Schema.Properties["recipe"].Enum
	require.Len(t, recipes, 16)
	for _, recipe := range recipes {
		t.Run(recipe, func(t *testing.T) {
			r := onCore(t, `,"communities":true,"recipe":"`+recipe+`"`)
			r.recordTurn(1, "ev-1", "I prefer window seats. I live in Berlin.")
			r.recordTurn(2, "ev-2", "I like window seats and tea.")
			_, err := r.mutate("build_communities", nil)
			require.NoError(t, err)
			result := r.askFor(&abi.RetrieveRequest{Query: "window seats", Scope: scope, SessionID: "n",
				Filters: map[string]abi.Raw{"center_node_uuid": abi.Raw(`"x"`)}})
			require.NotEmpty(t, result.Evidence)
			assert.NotEmpty(t, result.FormattedContext)
			kinds := map[string]bool{}
			for i, e := range result.Evidence {
				kinds[e.NativeType] = true
				assert.Equal(t, int64(i+1), e.Rank)
			}
			prefix, _, _ := strings.Cut(recipe, "_")
			want := map[string]map[string]bool{"EDGE": {"fact": true}, "NODE": {"entity": true},
				"COMMUNITY": {"community": true}}[prefix]
			if want == nil {
				want = map[string]bool{"fact": true, "entity": true, "episode": true, "community": true}
			}
			assert.Equal(t, want, kinds)
			misaligned := strings.HasPrefix(recipe, "EDGE_") &&
				(strings.HasSuffix(recipe, "DISTANCE") || strings.HasSuffix(recipe, "MENTIONS"))
			assert.Equal(t, misaligned, result.Evidence[0].Score == nil)
			assert.Equal(t, result.Evidence[0].Score, result.Trace.TopScore)
			assert.Equal(t, !misaligned, strings.Contains(result.FormattedContext, "; score "))
			assert.Equal(t, string(sdk.Text(recipe)), string(result.Trace.Effective["search"]))
			h, err := sdktest.Do(r.Host, abi.OpHealth, abi.MemoryScope{}, health, &abi.Empty{})
			require.NoError(t, err)
			assert.Equal(t, recipe, h.NativeQueryModes[0])
			assert.Equal(t, "graphiti-core 0.29.3, gateway 0.1.0", h.BackendVersion)
			assert.Equal(t, "immediate", h.ConsistencyModel)
		})
	}
}

func TestProvenanceByTheGateway(t *testing.T) {
	r := onCore(t, "")
	first := r.recordTurn(1, "ev-1", "I prefer window seats on business trips.")
	second := r.recordTurn(20, "ev-2", "I now prefer aisle seats on business trips.")
	where := func(q abi.ProvenanceRequest) *abi.Provenance {
		q.Scope = scope
		p, err := sdktest.Do(r.Host, abi.OpProvenance, scope, provenance, &q)
		require.NoError(t, err)
		return p
	}
	old := detail(t, first.Trace, "facts_created")[0]
	p := where(abi.ProvenanceRequest{NativeID: old})
	require.Len(t, p.Items, 2)
	assert.True(t, *p.Items[0].Evidence.Superseded)
	assert.Equal(t, "asserted by", p.Items[1].Evidence.Group)
	assert.Equal(t, []string{"ev-1"}, p.Items[1].Evidence.SourceEventIDs)
	assert.Contains(t, p.Items[1].Evidence.Text, "user_a(user): I prefer window seats")
	assert.True(t, r.hasWarning(p.Trace.Warnings, "closer_unknown"))
	groups := map[string]string{}
	for _, item := range where(abi.ProvenanceRequest{EventID: "ev-2"}).Items {
		groups[item.Evidence.Text] = item.Evidence.Group
	}
	assert.Equal(t, map[string]string{"user_a now prefer aisle seats on business trips": "asserted",
		"user_a prefer window seats on business trips": "closed"}, groups)
	assert.Len(t, where(abi.ProvenanceRequest{NativeID: second.NativeIDs[0]}).Items, 2, "an episode by its id")
	assert.Equal(t, "entity", where(abi.ProvenanceRequest{NativeID: first.NativeIDs[1]}).Items[0].Evidence.NativeType)
	for _, q := range []abi.ProvenanceRequest{{EventID: "none"}, {NativeID: "00000000-0000-4000-8000-000000000000"},
		{NativeID: "no uuid"}} {
		q.Scope = scope
		_, err := direct(r, abi.OpProvenance, provenance, &q)
		assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err))
	}
	_, err := direct(r, abi.OpProvenance, provenance, &abi.ProvenanceRequest{Scope: scope, From: "2025-01-01T00:00:00Z",
		To: "2026-01-01T00:00:00Z"})
	assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
	assert.Contains(t, abi.AsError(err).Hint, "configure bolt")
}

func TestASagaIsSummarisedWhereSagasAreConfigured(t *testing.T) {
	r := onCore(t, `,"saga":"session"`)
	r.recordTurn(1, "e1", "I prefer window seats.")
	listed, err := sdktest.Do(r.Host, abi.OpNativeQuery, scope, nativeQuery,
		&abi.NativeQuery{Scope: scope, Name: "get_sagas"})
	require.NoError(t, err)
	var page struct {
		Sagas []struct{ UUID, Name, Summary string }
	}
	require.NoError(t, json.Unmarshal(listed.Result, &page))
	require.Len(t, page.Sagas, 1)
	assert.Empty(t, page.Sagas[0].Summary)
	receipt, err := r.mutate("summarize_saga", map[string]abi.Raw{"uuid": sdk.Text(page.Sagas[0].UUID)})
	require.NoError(t, err)
	assert.Equal(t, []string{page.Sagas[0].UUID}, receipt.NativeIDs)
	assert.Contains(t, string(receipt.Trace.Details["saga"]), "window seats")
	for uuid, code := range map[string]abi.Code{"00000000-0000-4000-8000-000000000000": abi.CodeNotFound,
		"no uuid": abi.CodeInvalidArgument} {
		_, err = r.mutate("summarize_saga", map[string]abi.Raw{"uuid": sdk.Text(uuid)})
		assert.Equal(t, code, abi.CodeOf(err))
	}
}

func TestNativeQueriesOfTheGateway(t *testing.T) {
	r := onCore(t, `,"receipts":"queued"`)
	r.recordTurn(1, "ev-1", "I prefer window seats.")
	require.Equal(t, abi.ReadinessReady, r.ready().Status)
	episode := r.find("ev-1").NativeIDs[0]
	for name, q := range map[string]struct{ params, has string }{
		"search": {`{"query":"seats","recipe":"NODE_HYBRID_SEARCH_RRF","limit":3}`,
			`"node_reranker_scores"`},
		"group":             {`{}`, `"counts"`},
		"info":              {`{}`, `"recipes"`},
		"token_usage":       {`{}`, `"input_tokens"`},
		"get_sagas":         {`{"limit":5}`, `"sagas":[]`},
		"jobs":              {`{"state":"done"}`, `"done"`},
		"get_episodes":      {`{"limit":1}`, `"ev-1"`},
		"get_nodes":         {`{}`, `"summary"`},
		"get_edges":         {`{}`, `"PREFERS"`},
		"retrieve_episodes": {`{"reference_time":"2026-01-01T00:00:00Z"}`, `"ev-1"`},
		"episode_contents":  {`{"episode_uuids":["` + episode + `"]}`, `"PREFERS"`},
	} {
		t.Run(name, func(t *testing.T) {
			var params map[string]abi.Raw
			require.NoError(t, json.Unmarshal([]byte(q.params), &params))
			answer, err := sdktest.Do(r.Host, abi.OpNativeQuery, scope, nativeQuery,
				&abi.NativeQuery{Scope: scope, Name: name, Params: params})
			require.NoError(t, err)
			assert.Contains(t, string(answer.Result), q.has)
		})
	}
	for name, params := range map[string]map[string]abi.Raw{"search": {"qurey": abi.Raw(`"x"`)},
		"jobs": {"limit": abi.Raw(`"many"`)}, "nothing": nil} {
		_, err := direct(r, abi.OpNativeQuery, nativeQuery, &abi.NativeQuery{Scope: scope, Name: name, Params: params})
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), name)
	}
	_, err := direct(r, abi.OpNativeQuery, nativeQuery, &abi.NativeQuery{Scope: scope, Name: "history", Params: nil})
	assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err), "Bolt's menu wants bolt")
}

func TestAnInventoryOfCoreIsCompleteAndSeesEveryChange(t *testing.T) {
	r := onCore(t, `,"saga":"session"`)
	for i := range 7 {
		r.recordTurn(1+i, fmt.Sprint("e", i), fmt.Sprintf("I like sport number%d.", i))
	}
	before := r.count()
	assert.True(t, before.Complete)
	assert.True(t, before.Quiescent)
	assert.Equal(t, before, r.count())
	want := map[string]int64{"episode": 7, "entity": 8, "fact": 7, "community": 0, "saga": 1}
	for _, k := range before.Kinds {
		assert.Equal(t, want[k.Kind], k.Count, k.Kind)
	}
	r.recordTurn(8, "again", "I like sport number3.") // not a new fact, but one more source
	assert.NotEqual(t, before.Kinds[2].Digest, r.count().Kinds[2].Digest)
	t.Run("a page that comes again and again is an error", func(t *testing.T) {
		r.reply = func(q sdktest.Request) (sdktest.Reply, bool) {
			return sdktest.Reply{Status: 200, Body: `{"episodes":[],"next_cursor":"x"}`},
				q.Route == "core_list_episodes"
		}
		_, err := direct(r, abi.OpInventory, inventory, &abi.Empty{})
		assert.Equal(t, abi.CodeBackend, abi.CodeOf(err))
	})
}

// TestNativeCallsOfCore counts what each operation costs.
func TestNativeCallsOfCore(t *testing.T) {
	for more, want := range map[string]map[string]int{
		"": {"setup_scope": 2, "record_event": 1, "record_events of 3": 3,
			"readiness of nothing": 0, "retrieve": 2, "inventory": 4, "health": 3, "reset_scope": 2},
		`,"receipts":"queued"`: {"setup_scope": 2, "record_event": 1, "record_events of 3": 3, "readiness": 2,
			"readiness of nothing": 0, "retrieve": 2, "inventory": 4, "health": 3, "reset_scope": 2},
		`,"bulk":"native"`: {"setup_scope": 2, "record_event": 2, "record_events of 3": 2,
			"readiness of nothing": 0, "retrieve": 2, "inventory": 4, "health": 3, "reset_scope": 2},
	} {
		r := onCore(t, more)
		got := map[string]int{}
		count := func(name string, run func()) {
			r.Sent = nil
			run()
			got[name] = len(r.Sent)
		}
		count("setup_scope", func() {
			_, err := sdktest.Do(r.Host, abi.OpSetupScope, scope, setupScope, &abi.Empty{})
			require.NoError(t, err)
		})
		count("record_event", func() { r.recordTurn(1, "e1", "I prefer window seats.") })
		count("record_events of 3", func() {
			r.batch(turnOn(2, "e2", "I like a."), turnOn(3, "e3", "I like b."), turnOn(4, "e4", "I like c."))
		})
		if len(r.markers) > 0 {
			count("readiness", func() { require.Equal(t, abi.ReadinessReady, r.ready().Status) })
		}
		r.markers = nil
		count("readiness of nothing", func() { r.ready() })
		count("retrieve", func() { r.ask("seats") })
		count("inventory", func() { r.count() })
		count("health", func() {
			_, err := sdktest.Do(r.Host, abi.OpHealth, abi.MemoryScope{}, health, &abi.Empty{})
			require.NoError(t, err)
		})
		count("reset_scope", func() { require.Equal(t, abi.ResetDone, r.reset().Status) })
		assert.Equal(t, want, got, more)
	}
}

// TestTheRoutesOfCoreAreClassedByWhatTheyDo: a search is a POST but a read, ingestion writes, and deletion is allowed
// only in reset and mutations.
func TestTheRoutesOfCoreAreClassedByWhatTheyDo(t *testing.T) {
	data, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	var m abi.ModuleManifest
	require.NoError(t, abi.Unmarshal(data, &m))
	reads := map[string]bool{"/search_": true, "/episodes/lookup": true, "/edges/lookup": true,
		"/episodes/retrieve": true, "/episodes/contents": true}
	writes := map[string]bool{"/episodes": true, "/episodes/bulk": true}
	n := 0
	for _, route := range m.Routes {
		if !strings.HasPrefix(route.Name, "core_") {
			continue
		}
		n++
		path := strings.TrimPrefix(route.Path, "/v1/groups/{group}")
		want := abi.ClassAdmin
		switch {
		case route.Method == http.MethodGet || reads[path]:
			want = abi.ClassRead
		case writes[path] || route.Name == "core_forget_job":
			want = abi.ClassWrite
		}
		assert.Equal(t, want, route.Class, route.Name)
	}
	assert.Greater(t, n, 20)
}

func TestMarkersOfCoreAreReadBack(t *testing.T) {
	m := marker{seq: 3, sentMS: 5, eventMS: -7, name: "ev 1 with blanks", job: "mh1e-abc"}
	back, ok := parseMarker(m.String())
	require.True(t, ok)
	assert.Equal(t, m, back)
	for _, text := range []string{"2 1 1 1 job", "3 1 1 1 e", "2 1 1 1 job ", "1 1 1 1 "} {
		_, ok := parseMarker(text)
		assert.False(t, ok, text)
	}
}

// TestASmallBudgetHasRoomForEachList: the facts, which are the first list, used to take all of it.
func TestASmallBudgetHasRoomForEachList(t *testing.T) {
	r := onCore(t, `,"recipe":"COMBINED_HYBRID_SEARCH_RRF"`)
	list := func(prefix string, count int, fields string) string {
		var items []string
		for i := range count {
			items = append(items, fmt.Sprintf(`{"uuid":"%s%d","group_id":%q,"name":"%s %d",%s}`, prefix, i, pageGroup, prefix, i,
				strings.ReplaceAll(fields, "N", fmt.Sprint(i))))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	answer := func(nodes, episodes string) {
		body := fmt.Sprintf(`{"edges":%s,"nodes":%s,"episodes":%s,"communities":%s}`, list("fact", 40, `"fact":"Kim owns boat N"`),
			nodes, episodes, list("community", 4, `"summary":"people with boats N"`))
		r.reply = func(q sdktest.Request) (sdktest.Reply, bool) {
			return sdktest.Reply{Status: 200, Body: body}, q.Route == routeCoreSearch
		}
	}
	shown := func(budget abi.ContextBudget) map[string]int {
		counts := map[string]int{}
		result := r.askFor(&abi.RetrieveRequest{Query: "boats", Scope: scope, SessionID: "new", Budget: budget})
		for _, e := range result.Evidence {
			if e.Shown != nil {
				counts[e.NativeType]++
			}
		}
		assert.True(t, *result.Trace.Truncated, budget)
		assert.Equal(t, counts["fact"], strings.Count(result.FormattedContext, "Kim owns"))
		return counts
	}
	answer(list("entity", 20, `"summary":"has a boat N"`), list("episode", 20, `"content":"Kim: my boat N"`))
	got := shown(abi.ContextBudget{MaxTokens: sdk.Ptr(int64(400))})
	assert.GreaterOrEqual(t, got["fact"], 5)
	for _, kind := range []string{"entity", "episode", "community"} {
		assert.GreaterOrEqual(t, got[kind], 1, kind)
		assert.Less(t, got[kind], got["fact"], kind)
	}
	assert.Equal(t, map[string]int{"fact": 6, "entity": 2, "episode": 2, "community": 2},
		shown(abi.ContextBudget{MaxItems: sdk.Ptr(int64(12))}))
	assert.Equal(t, map[string]int{"fact": 2}, shown(abi.ContextBudget{MaxItems: sdk.Ptr(int64(2))}))

	answer(list("entity", 20, `"summary":""`), `[]`)
	got = shown(abi.ContextBudget{MaxTokens: sdk.Ptr(int64(400))})
	assert.Greater(t, got["fact"], got["entity"], "a name without a summary has a length, too: %v", got)
	assert.Contains(t, r.ask("boats").FormattedContext, "\n- entity 0 [entity ")
}

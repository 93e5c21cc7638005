package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/sdk/sdktest"
)

// TestTraps lists everything that a naive client of mem0 gets wrong.
func TestTraps(t *testing.T) {
	t.Run("trap 1: both hashed ids go with every call, and filters cannot name ids", func(t *testing.T) {
		r, _ := ossRig(t, "mem0", "", mem0.Options{})
		r.mustRecord(turn("e1", "I drink oat milk."))
		r.mustRetrieve(&abi.RetrieveRequest{Query: "milk"})
		add, filters := r.lastBody("add"), r.lastBody("search")["filters"].(map[string]any)
		for _, id := range []string{"user_id", "run_id"} {
			assert.Equal(t, add[id], filters[id])
			assert.Regexp(t, `^[ur]-maria(_c1)?-[0-9a-f]{32}$`, add[id])
		}
		assert.Regexp(t, `"user_id":"[^"]*","run_id":"[^"]*"}}$`, r.Sent[len(r.Sent)-1].Body,
			"the ids come last: the last of equal keys wins")
		for filter, value := range map[string]string{"user_id": `"*"`, "run_id": `null`, "agent_id": `""`,
			"AND": `[{"user_id":"u-kenji"}]`, "or": `[]`, "Not": `[]`,
			"anything": `{"deep":[{"User_ID":{"in":["a","b"]}}]}`, "x": `[{"AND":1}]`, "session": `"s"`,
			" run_id ": `"r"`} {
			r.forget()
			_, err := r.retrieve(&abi.RetrieveRequest{Query: "milk",
				Filters: map[string]abi.Raw{filter: abi.Raw(value)}})
			require.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), "%s: %s", filter, value)
			assert.True(t, strings.HasPrefix(abi.AsError(err).Message, "filters."), abi.AsError(err).Message)
			assert.Empty(t, r.Sent, "nothing was sent")
		}
	})
	t.Run("trap 2: trailing slash, header scheme, filter shape and session_id are the surface's own",
		func(t *testing.T) {
			platform := &mem0.Platform{Token: key}
			r := newRig(t, "mem0", "", platform)
			r.mustRecord(turn("e1", "I drink oat milk."))
			platform.FinishJobs()
			result := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk", Scenario: "coffee"})
			assert.Empty(t, result.Evidence)
			result = r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk"})
			require.Len(t, result.Evidence, 1)
			for _, call := range platform.Calls() {
				assert.True(t, strings.HasSuffix(call, "/") || call == "GET /openapi.json", call)
			}
			assert.NotContains(t, r.lastBody("platform_search"), "user_id", "ids stand in filters only")
			assert.Contains(t, r.lastBody("platform_search")["filters"], "AND")
			inventory, err := sdktest.Do(r.Host, abi.OpInventory, maria, withBackend(inventory), &abi.Empty{})
			require.NoError(t, err, "a list says session_id for run_id")
			assert.Equal(t, int64(1), inventory.Kinds[0].Count)
		})
	t.Run("trap 3: the platform never gets agent_id with user_id, and a deletion by one id only, waited for",
		func(t *testing.T) {
			platform := &mem0.Platform{Token: key, Looks: 1}
			r := newRig(t, "mem0", `"send_agent_id":true`, platform)
			warns(t, r.setUp().Warnings, "agent_id_not_sent")
			e := turn("e1", "I drink oat milk.")
			e.AgentID = "barista"
			r.mustRecord(e)
			assert.NotContains(t, r.lastBody("platform_add"), "agent_id")
			platform.FinishJobs()
			for i, want := range []abi.ResetStatus{abi.ResetInProgress, abi.ResetInProgress, abi.ResetDone} {
				receipt, err := sdktest.Do(r.Host, abi.OpResetScope, maria, withBackend(resetScope), &abi.Empty{})
				require.NoError(t, err)
				assert.Equal(t, want, receipt.Status, "look %d", i)
			}
			for _, s := range r.Sent {
				if s.Route == "platform_delete_scope" {
					require.Len(t, s.Query, 1)
					assert.Equal(t, "run_id", s.Query[0].Key)
				}
			}
			assert.Equal(t, 1, strings.Count(r.routes(), "platform_delete_scope"))
			assert.Empty(t, platform.Texts())
		})
	t.Run("trap 4: backdated, with the observation date, and the event's own time kept", func(t *testing.T) {
		r, _ := ossRig(t, "mem0", `"custom_instructions":"Keep it short.","observation_date":"prompt"`, mem0.Options{})
		e := turn("e1", "I moved to oat milk yesterday.")
		e.Timestamp = "2025-03-10T09:30:00.25+01:00"
		r.mustRecord(e)
		add := r.lastBody("add")
		metadata := add["metadata"].(map[string]any)
		assert.Equal(t, "2025-03-10T08:30:00.25+00:00", metadata["created_at"])
		assert.Equal(t, e.Timestamp, metadata["mh_event_timestamp"])
		assert.Equal(t, "Keep it short.\nObservation Date for these messages is 2025-03-10; resolve relative dates "+
			"against it.", add["prompt"])
		assert.NotContains(t, add, "timestamp", "the self-hosted server ignores it in silence")
		found := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk"}).Evidence[0]
		assert.Equal(t, "2025-03-10T08:30:00.25+00:00", found.CreatedAt)
		assert.Equal(t, abi.TimeEvent, found.TimeBasis)

		platform := &mem0.Platform{Token: key}
		p := newRig(t, "mem0", `"observation_date":"prompt"`, platform)
		p.mustRecord(e)
		assert.InDelta(t, 1741595400, p.lastBody("platform_add")["timestamp"], 0)
		assert.Equal(t, "2025-03-10", p.lastBody("platform_add")["observation_date"])
		assert.NotContains(t, p.lastBody("platform_add")["metadata"], "created_at")
	})
	t.Run("trap 5: labels are flat texts with a prefix, the event's metadata is nested and cannot mean anything to "+
		"mem0", func(t *testing.T) {
		r, server := ossRig(t, "mem0", "", mem0.Options{})
		e := turn("e1", "I drink oat milk.")
		e.Scenario, e.Context, e.Attribute = "coffee", "personal", "drink"
		e.Metadata = map[string]abi.Raw{"expiration_date": abi.Raw(`"2020-01-01"`), "user_id": abi.Raw(`"u-kenji"`),
			"data": abi.Raw(`"x"`), "role": abi.Raw(`1`), "mh_event_id": abi.Raw(`"e9"`)}
		r.mustRecord(e)
		row := server.Rows()[0]["metadata"].(map[string]any)
		for name, want := range map[string]string{"mh_scenario": "coffee", "mh_context": "personal",
			"mh_attribute": "drink", "mh_session_id": "s3", "mh_turn_id": "t-e1", "mh_event_id": "e1",
			"mh_run": "maria_c1", "mh_persona": "maria"} {
			assert.Equal(t, want, row[name])
		}
		assert.Equal(t, "u-kenji", row["mh_event_metadata"].(map[string]any)["user_id"])
		assert.Equal(t, []string{"I drink oat milk."},
			texts(r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk", Scenario: "coffee"})))
		flat, server := ossRig(t, "mem0", `"nested_metadata":false`, mem0.Options{})
		flat.mustRecord(e)
		assert.IsType(t, "", server.Rows()[0]["metadata"].(map[string]any)["mh_event_metadata"])
	})
	t.Run("trap 6: tool messages and names are folded into the text, and a turn without text is not sent",
		func(t *testing.T) {
			e := turn("e1")
			e.Messages = []abi.Message{
				{Role: abi.RoleUser, Content: text("Find a train."), Name: "Maria"},
				{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "call_1", Name: "search_web",
					Arguments: `{"q":"train"}`}}},
				{Role: abi.RoleTool, Content: text("ticket=KX-4471"), Name: "search_web", ToolCallID: "call_1"},
				{Role: abi.RoleAssistant, Content: text("  ")},
			}
			r, _ := ossRig(t, "mem0", "", mem0.Options{})
			r.mustRecord(e)
			assert.Equal(t, []any{
				map[string]any{"role": "user", "content": "Maria: Find a train."},
				map[string]any{"role": "assistant", "content": `[calls search_web call_1] {"q":"train"}`},
				map[string]any{"role": "assistant", "content": "[tool search_web call_1] ticket=KX-4471"},
			}, r.lastBody("add")["messages"])
			rag, _ := ossRig(t, "simple_rag", "", mem0.Options{})
			rag.mustRecord(e)
			assert.Equal(t, "tool", rag.lastBody("add")["messages"].([]any)[2].(map[string]any)["role"],
				"verbatim keeps the role")
			for _, silent := range []*abi.MemoryEvent{turn("e2", " \n"), turn("e3", "\x00")} {
				r.forget()
				receipt := r.mustRecord(silent)
				assert.Equal(t, abi.StatusNotRetained, receipt.Status)
				warns(t, receipt.Warnings, "nothing_to_store")
				assert.Empty(t, r.Sent)
			}
		})
	t.Run("trap 7: writes of one scope run one after another: the host's turn, and no batch call of our own",
		func(t *testing.T) {
			m, err := parsedManifest()
			require.NoError(t, err)
			assert.Empty(t, m.YieldsScope, "an add waits for the LLM inside its scope's turn: parallel adds of one "+
				"scope "+
				"are stored twice by mem0")
		})
	t.Run("trap 8: the admin key goes in x-api-key; bearer and token only where they are asked for",
		func(t *testing.T) {
			for auth, want := range map[string][2]string{"auto": {"x-api-key", "{{secret:api_key}}"},
				"bearer":    {"authorization", "Bearer {{secret:api_key}}"},
				"token":     {"authorization", "Token {{secret:api_key}}"},
				"x_api_key": {"x-api-key", "{{secret:api_key}}"}} {
				r := newRig(t, "mem0", `"auth":"`+auth+`","api":"oss"`, mem0.New(mem0.Options{}))
				r.mustRetrieve(&abi.RetrieveRequest{Query: "milk"})
				assert.Equal(t, want[1], r.Sent[0].Headers[want[0]], auth)
				assert.Len(t, r.Sent[0].Headers, 3, "one credential, accept and content-type")
			}
			r := newRig(t, "mem0", "", &mem0.Platform{Token: key})
			r.mustRetrieve(&abi.RetrieveRequest{Query: "milk"})
			assert.Equal(t, "Token {{secret:api_key}}", r.Sent[1].Headers["authorization"])
		})
	t.Run("trap 9: 200 with an empty list, null and ghost ids are not taken for what they say", func(t *testing.T) {
		for name, f := range map[string]mem0.Faults{"no JSON from the LLM": {LLMAnswer: "not_json"},
			"embedder failed behind the extraction": {EmbedderAfterExtraction: true}} {
			r, server := ossRig(t, "mem0", "", mem0.Options{})
			server.Set(f)
			receipt := r.mustRecord(turn("e1", "I drink oat milk."))
			assert.Equal(t, abi.StatusNotRetained, receipt.Status, name)
			assert.Equal(t, int64(0), *receipt.StoredCount, name)
			warns(t, receipt.Warnings, "no_memories_extracted")
		}
		r, server := ossRig(t, "mem0", "", mem0.Options{})
		server.Set(mem0.Faults{Ghosts: func(string) bool { return true }})
		_, err := r.record(turn("e1", "I drink oat milk. I live in Lisbon."))
		e := abi.AsError(err)
		assert.Equal(t, "write_not_persisted", e.Reason)
		assert.True(t, e.Retryable)
		assert.True(t, e.NothingStored)
	})
	t.Run("trap 9: a batch can be part ghost, and only the ghosts are sent again", func(t *testing.T) {
		r, server := ossRig(t, "mem0", "", mem0.Options{})
		server.Set(mem0.Faults{Ghosts: func(fact string) bool { return strings.Contains(fact, "second") }})
		parrots := turn("e1", "My first parrot is Rio. My second parrot is Blu. My third parrot is Kiwi.")
		receipt := r.mustRecord(parrots)
		assert.Equal(t, abi.StatusPartial, receipt.Status)
		assert.Len(t, receipt.NativeIDs, 2)
		assert.Equal(t, []string{"fact My second parrot is Blu."}, receipt.Markers)
		warns(t, receipt.Warnings, "write_not_persisted")
		server.Set(mem0.Faults{})
		answer := r.findEvent("e1", longAgo, receipt.Markers...)
		assert.Equal(t, "partial", answer.Found)
		r.Resume = &abi.Resume{Missing: answer.Missing, Markers: receipt.Markers}
		assert.Equal(t, abi.StatusCommitted, r.mustRecord(parrots).Status)
		assert.Equal(t, []string{"My first parrot is Rio.", "My third parrot is Kiwi.", "My second parrot is Blu."},
			server.Texts(""))
		assert.Equal(t, "present", r.findEvent("e1", longAgo, receipt.Markers...).Found)
	})
	t.Run("trap 10: explain is asked for and the semantic score traced; a fused score below the threshold stays",
		func(t *testing.T) {
			r, _ := ossRig(t, "mem0", `"threshold":0.3`, mem0.Options{})
			r.mustRecord(turn("e1", "I drink oat milk. Oat porridge with milk and plums and a very long tail of other "+
				"words."))
			result := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk"})
			assert.Equal(t, true, r.lastBody("search")["explain"])
			assert.NotEmpty(t, result.Trace.Details["top_semantic_score"])
			require.Len(t, result.Evidence, 2)
			assert.Less(t, *result.Evidence[1].Score, 0.3, "the threshold gates the semantic score")
			assert.Equal(t, *result.Evidence[0].Score, *result.Trace.TopScore)
		})
	t.Run("trap 11: a reset says that the message buffer stays, and the next generation has other ids",
		func(t *testing.T) {
			r, server := ossRig(t, "mem0", "", mem0.Options{})
			r.mustRecord(turn("e1", "I drink oat milk."))
			first := r.lastBody("add")["run_id"]
			receipt, err := sdktest.Do(r.Host, abi.OpResetScope, maria, withBackend(resetScope), &abi.Empty{})
			require.NoError(t, err)
			assert.Equal(t, abi.ResetDone, receipt.Status)
			assert.Contains(t, strings.Join(receipt.Remains, " "), "message buffer")
			assert.Contains(t, strings.Join(receipt.Remains, " "), "history")
			assert.Empty(t, server.Texts(""))
			r.mustRecord(turn("e1", "I drink tea."))
			assert.NotEqual(t, first, r.lastBody("add")["run_id"])
		})
	t.Run("trap 12: rerank goes only to a server whose document lists it, and is refused by any other",
		func(t *testing.T) {
			r, _ := ossRig(t, "mem0", `"rerank":true`, mem0.Options{Rerank: true})
			r.mustRetrieve(&abi.RetrieveRequest{Query: "milk"})
			assert.Equal(t, true, r.lastBody("search")["rerank"])
			r, _ = ossRig(t, "mem0", `"rerank":true`, mem0.Options{})
			_, err := r.retrieve(&abi.RetrieveRequest{Query: "milk"})
			assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
			assert.Equal(t, "openapi", r.routes(), "nothing was searched")
		})
	t.Run("trap 13: of the server's configuration only names are kept: a connection_string is not redacted",
		func(t *testing.T) {
			r := newRig(t, "mem0", "", answerWith(map[string]string{"GET /configure": `{"vector_store":{"provider":"pgvector","config":{"connection_string":"postgresql://u:hunter2@h/db","collection_name":"memories"}},
			"llm":{"provider":"openai","config":{"api_key":"leak","model":"gpt-5-mini"}}}`}))
			receipt := r.setUp()
			encoded := string(abi.Marshal(receipt))
			assert.NotContains(t, encoded, "hunter2")
			assert.NotContains(t, encoded, "leak")
			assert.Equal(t, abi.Raw(`"gpt-5-mini"`), receipt.Trace.Details["llm.model"])
			assert.Equal(t, abi.Raw(`"memories"`), receipt.Trace.Details["vector_store.collection_name"])
			kept := r.Keys(maria)
			assert.Equal(t, []string{surfaceKey}, kept)
		})
	t.Run("trap 14: an answer of the LLM that was cut extracts nothing, and the receipt names that cause",
		func(t *testing.T) {
			r, server := ossRig(t, "mem0", "", mem0.Options{})
			server.Set(mem0.Faults{LLMAnswer: "not_json"})
			receipt := r.mustRecord(turn("e1", "I drink oat milk."))
			assert.Contains(t, strings.Join(receipt.Warnings, " "), "was cut")
		})
	t.Run("trap 15: too long for the embedder is a typed error; verbatim messages are split", func(t *testing.T) {
		long := strings.Repeat("My diary goes on and on. ", 2000)
		r, _ := ossRig(t, "mem0", "", mem0.Options{})
		_, err := r.record(turn("e1", long))
		e := abi.AsError(err)
		assert.Equal(t, "provider_bad_request", e.Reason)
		assert.False(t, e.Retryable)
		assert.Contains(t, e.Hint, "too long: give the LLM a larger context")
		rag, server := ossRig(t, "simple_rag", `"max_chars_per_message":1000`, mem0.Options{})
		receipt := rag.mustRecord(turn("e1", long))
		assert.Equal(t, abi.StatusCommitted, receipt.Status)
		warns(t, receipt.Warnings, "message_split")
		assert.Equal(t, long, strings.Join(server.Texts(""), ""), "nothing is lost between the parts")
		for _, part := range server.Texts("") {
			assert.LessOrEqual(t, len(part), 1000)
			assert.True(t, strings.HasSuffix(part, " "), "cut behind a blank")
		}
	})
}

func parsedManifest() (*abi.ModuleManifest, error) {
	m := new(abi.ModuleManifest)
	return m, abi.UnmarshalStrict(manifest, m)
}

// answerWith is a self-hosted server with some answers replaced by the test's own, by method and path.
func answerWith(answers map[string]string) http.Handler {
	server := mem0.New(mem0.Options{AdminKey: key})
	server.Set(mem0.Faults{Before: func(w http.ResponseWriter, r *http.Request) bool {
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if ok {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
		}
		return ok
	}})
	return server
}

func TestAStoreThatLostItsDataIsNoEmptyMemory(t *testing.T) {
	r, server := ossRig(t, "mem0", "", mem0.Options{})
	r.setUp()
	never := r.mustRetrieve(&abi.RetrieveRequest{Query: "milk"})
	assert.Equal(t, abi.ResultEmpty, never.Trace.ResultState, "nothing was ever stored")
	assert.Empty(t, never.Trace.Warnings)
	r.mustRecord(turn("e1", "I drink oat milk."))
	server.Set(mem0.Faults{Approximate: true})
	missed := r.mustRetrieve(&abi.RetrieveRequest{Query: "milk"})
	assert.Contains(t, strings.Join(missed.Trace.Warnings, "\n"), "nothing_near: ")
	server.Set(mem0.Faults{})
	server.LoseData()
	lost := r.mustRetrieve(&abi.RetrieveRequest{Query: "milk"})
	assert.Equal(t, abi.ResultDegraded, lost.Trace.ResultState)
	assert.Contains(t, strings.Join(lost.Trace.Warnings, "\n"), "store_empty: ")
}

package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/sdk/sdktest"
)

// allOptions is a gateway with every capability.
func allOptions() mem0.Options {
	return mem0.Options{Exact: true, Gateway: &mem0.Gateway{Reranker: "llm_reranker", ObservationDate: true,
		Entities: "model"}}
}

func (r *rig) health() *abi.BackendHealth {
	r.t.Helper()
	h, err := sdktest.Do(r.Host, abi.OpHealth, abi.MemoryScope{}, health, &abi.Empty{})
	require.NoError(r.t, err)
	return h
}

func TestWhatAServerOffersIsFoundOutByLooking(t *testing.T) {
	for name, c := range map[string]struct {
		server  func() http.Handler
		more    string
		ingest  []string
		queries []string
		looks   string
	}{
		"mem0's own server": {func() http.Handler {
			return mem0.New(mem0.Options{AdminKey: key})
		}, "", []string{"infer", "verbatim", "procedural"},
			[]string{"semantic", "keyword", "explain"}, "openapi"},
		"mem0's own server, api written": {func() http.Handler {
			return mem0.New(mem0.Options{AdminKey: key})
		}, `"api":"oss"`, []string{"infer", "verbatim", "procedural"},
			[]string{"semantic", "keyword", "explain"}, "capabilities"},
		"the gateway with everything": {func() http.Handler {
			return mem0.New(allOptions())
		}, "", []string{"infer", "verbatim", "procedural"},
			[]string{"semantic", "keyword", "entity", "rerank", "explain"}, "openapi capabilities"},
		"the gateway, api written": {func() http.Handler {
			return mem0.New(allOptions())
		}, `"api":"oss"`, []string{"infer", "verbatim", "procedural"},
			[]string{"semantic", "keyword", "entity", "rerank", "explain"}, "capabilities"},
		"the gateway with nothing": {func() http.Handler {
			return mem0.New(mem0.Options{Gateway: &mem0.Gateway{NoKeywords: true, Entities: "failed"}})
		}, "", []string{"infer", "verbatim", "procedural"}, []string{"semantic", "explain"}, "openapi capabilities"},
		"the platform": {func() http.Handler {
			return &mem0.Platform{Token: key}
		}, "", []string{"infer", "verbatim"},
			[]string{"semantic", "keyword", "rerank"}, "openapi platform_ping"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "mem0", c.more, c.server())
			h := r.health()
			assert.Equal(t, abi.HealthOK, h.Status, "%v", h.Warnings)
			assert.Equal(t, c.ingest, h.NativeIngestModes)
			assert.Equal(t, c.queries, h.NativeQueryModes)
			assert.Contains(t, r.routes(), c.looks)
		})
	}
}

func TestWhatAServerHasNotIsRefusedByNameWithTheServerThatHasIt(t *testing.T) {
	own, bare := mem0.Options{AdminKey: key}, mem0.Options{AdminKey: key, Gateway: &mem0.Gateway{}}
	for _, c := range []struct {
		option string
		server http.Handler
		says   []string
	}{
		{`"rerank":true`, mem0.New(own), []string{"rerank: mem0's self-hosted server", "gateways/mem0",
			"the platform"}},
		{`"rerank":true,"api":"oss"`, mem0.New(own), []string{"rerank: mem0's self-hosted server", "gateways/mem0"}},
		{`"rerank":true`, mem0.New(bare), []string{"rerank: this gateway", "mem0.reranker"}},
		{`"custom_categories":[{"food":"eaten"}]`, mem0.New(mem0.Options{AdminKey: key}),
			[]string{"custom_categories: mem0's self-hosted server", "the platform"}},
		{`"structured_data_schema":{"type":"object"}`, mem0.New(allOptions()),
			[]string{"structured_data_schema: this gateway", "the platform"}},
		{`"rerank":true,"rerank_pool":60`, &mem0.Platform{Token: key},
			[]string{"rerank_pool: mem0's platform", "gateways/mem0"}},
		{`"procedural":true`, &mem0.Platform{Token: key},
			[]string{"procedural: mem0's platform", "self-hosted", "gateways/mem0"}},
		{`"observation_date":"native"`, mem0.New(own),
			[]string{"observation_date: native: mem0's self-hosted server", "gateways/mem0", "platform"}},
		{`"observation_date":"native"`, mem0.New(bare),
			[]string{"observation_date: native: this gateway", "patches.observation_date"}},
	} {
		t.Run(c.option, func(t *testing.T) {
			r := newRig(t, "mem0", c.option, c.server)
			for op, do := range map[string]func() error{
				abi.OpSetupScope: func() error {
					_, err := sdktest.Do(r.Host, abi.OpSetupScope, maria, withBackend(setupScope), &abi.Empty{})
					return err
				},
				abi.OpRecordEvent: func() error { _, err := r.record(turn("e1", "I drink tea.")); return err },
				abi.OpRetrieve: func() error {
					_, err := r.retrieve(&abi.RetrieveRequest{Query: "tea"})
					return err
				},
			} {
				e := abi.AsError(do())
				assert.Equal(t, abi.CodeUnsupported, e.Code, op)
				for _, part := range c.says {
					assert.Contains(t, e.Message+" "+e.Hint, part, op)
				}
			}
			h := r.health()
			assert.Equal(t, abi.HealthUnavailable, h.Status)
			warns(t, h.Warnings, "not_offered")
		})
	}
}

func TestARerankScoreIsToldApartFromASimilarity(t *testing.T) {
	r, _ := ossRig(t, "mem0", `"rerank":true,"rerank_pool":60`, allOptions())
	r.mustRecord(turn("e1", "I drink oat milk in my coffee. I like coffee. I live in Lisbon."))
	result := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk coffee"})
	sent := r.lastBody("search")
	assert.Equal(t, true, sent["rerank"])
	assert.EqualValues(t, 60, sent["rerank_pool"])
	assert.Equal(t, "error", sent["rerank_on_error"])
	require.NotEmpty(t, result.Evidence)
	require.NotNil(t, result.Evidence[0].Score)
	assert.Equal(t, "1", string(result.Trace.Details["top_rerank_score"]))
	assert.NotEqual(t, 1.0, *result.Evidence[0].Score, "evidence keeps the server's own score")
	assert.JSONEq(t, `{"applied":true,"provider":"llm_reranker","candidates":2,"calls":2,"failed":0}`,
		string(result.Trace.Details["rerank"]))
	assert.Contains(t, result.FormattedContext, " | rerank 1.00 | ")
	assert.Contains(t, result.FormattedContext, " | score 0.")
	assert.Equal(t, "true", string(result.Trace.Effective["rerank"]))
	again, err := sdktest.Do(r.Host, abi.OpFormatContext, maria, formatContext,
		&abi.FormatRequest{Result: *result, Scope: maria})
	require.NoError(t, err)
	assert.Equal(t, result.FormattedContext, again.FormattedContext)
}

func TestARerankerThatFailsIsAnErrorOrPlainOrder(t *testing.T) {
	broken := allOptions()
	broken.Gateway.RerankFails = true
	r, _ := ossRig(t, "mem0", `"rerank":true`, broken)
	r.mustRecord(turn("e1", "I drink oat milk."))
	_, err := r.retrieve(&abi.RetrieveRequest{Query: "oat milk"})
	e := abi.AsError(err)
	assert.Equal(t, abi.CodeUnavailable, e.Code)
	assert.Equal(t, "rerank_failed", e.Reason)
	assert.Contains(t, e.Hint, "rerank_on_error")

	r, _ = ossRig(t, "mem0", `"rerank":true,"rerank_on_error":"plain"`, broken)
	r.mustRecord(turn("e1", "I drink oat milk."))
	result := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk"})
	assert.Equal(t, []string{"I drink oat milk."}, texts(result))
	warns(t, result.Trace.Warnings, "rerank_failed")
	assert.NotContains(t, result.FormattedContext, "rerank")
	assert.Empty(t, result.Trace.Details["top_rerank_score"])
}

func TestAProceduralMemoryHasANativeAgent(t *testing.T) {
	for _, o := range []mem0.Options{{}, allOptions()} {
		r, server := ossRig(t, "mem0", `"procedural":true`, o)
		event := turn("e1", "Water the ferns.", "Done.")
		receipt := r.mustRecord(event)
		assert.Equal(t, abi.StatusCommitted, receipt.Status)
		sent := r.lastBody("add")
		assert.Equal(t, "procedural_memory", sent["memory_type"])
		assert.Equal(t, "a-"+sent["run_id"].(string)[2:], sent["agent_id"],
			"the scope's own, where the event names none")
		assert.NotContains(t, sent, "prompt", "it would take the place of the LLM's whole instruction")
		event.EventID, event.AgentID = "e2", "gardener"
		r.mustRecord(event)
		assert.Equal(t, agentID("gardener"), r.lastBody("add")["agent_id"])
		assert.Len(t, server.Texts(""), 2)
		assert.Equal(t, abi.ResultResults, r.mustRetrieve(&abi.RetrieveRequest{Query: "ferns"}).Trace.ResultState,
			"reads are not narrowed by the agent")
	}
	_, err := parseSettings(&abi.GuestConfig{Provider: "simple_rag",
		Config: abi.Raw(`{"infer":false,"procedural":true}`)})
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
}

func TestTheObservationDateTravelsInAFieldOfItsOwn(t *testing.T) {
	r, _ := ossRig(t, "mem0", `"observation_date":"native","custom_instructions":"Drinks only."`, allOptions())
	r.mustRecord(turn("e1", "I drink oat milk."))
	assert.Equal(t, "2025-03-10", r.lastBody("add")["observation_date"])
	assert.Equal(t, "Drinks only.", r.lastBody("add")["prompt"])
	p := newRig(t, "mem0", `"observation_date":"native"`, &mem0.Platform{Token: key})
	p.mustRecord(turn("e1", "I drink oat milk."))
	assert.Equal(t, "2025-03-10", p.lastBody("platform_add")["observation_date"])
}

func TestOnTheGatewayAnEventIsLookedUpInAList(t *testing.T) {
	r, _ := ossRig(t, "mem0", "", mem0.Options{Gateway: &mem0.Gateway{}})
	r.setUp()
	id := r.mustRecord(turn("e1", "I drink oat milk.")).NativeIDs[0]
	r.forget()
	assert.Equal(t, []string{id}, r.findEvent("e1", longAgo).NativeIDs)
	assert.Equal(t, "absent", r.findEvent("never", longAgo).Found, "proven, though the index is approximate")
	assert.Equal(t, "list_filtered list_filtered", r.routes(), "no embedder is needed")
	found, err := sdktest.Do(r.Host, abi.OpProvenance, maria, withBackend(provenance),
		&abi.ProvenanceRequest{Scope: maria, EventID: "e1"})
	require.NoError(t, err)
	assert.Len(t, found.Items, 1)
	assert.Empty(t, found.Trace.Warnings)
	whole, err := sdktest.Do(r.Host, abi.OpInventory, maria, withBackend(inventory), &abi.Empty{})
	require.NoError(t, err)
	assert.True(t, whole.Complete)
	assert.Equal(t, int64(1), whole.Kinds[0].Count)
}

func TestOnTheGatewayAResetTakesTheBufferAndCounts(t *testing.T) {
	r, _ := ossRig(t, "mem0", "", mem0.Options{Gateway: &mem0.Gateway{}})
	r.mustRecord(turn("e1", "I drink oat milk. I live in Lisbon.", "Noted."))
	receipt, err := sdktest.Do(r.Host, abi.OpResetScope, maria, withBackend(resetScope), &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, map[string]*int64{"memory": count(2), "message": count(2)}, receipt.Removed)
	require.Len(t, receipt.Remains, 1)
	assert.Contains(t, receipt.Remains[0], "history")
}

func TestARefusalOfTheGatewayKeepsItsCode(t *testing.T) {
	for code, want := range map[string]abi.Code{"rerank_not_configured": abi.CodeUnsupported,
		"id_refused": abi.CodeInvalidArgument} {
		server := mem0.New(allOptions())
		server.Set(mem0.Faults{Before: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/search" {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"detail":"no","code":"` + code + `"}`))
			}
			return r.URL.Path == "/search"
		}})
		r := newRig(t, "mem0", `"rerank":true`, server)
		_, err := r.retrieve(&abi.RetrieveRequest{Query: "tea"})
		e := abi.AsError(err)
		assert.Equal(t, want, e.Code)
		assert.Equal(t, code, e.Reason)
	}
	e := failure("add", &abi.HTTPResponse{Status: http.StatusInsufficientStorage},
		[]byte(`{"detail":"rows","code":"store_full","request_id":"1a2b3c4d"}`))
	assert.Equal(t, abi.CodeUnavailable, e.Code)
	assert.False(t, e.Retryable)
}

func TestTheSurfaceIsKeptAsItWasFound(t *testing.T) {
	r, _ := ossRig(t, "mem0", "", allOptions())
	c := r.Call(abi.OpSetupScope, maria)
	for _, found := range []*surface{{api: apiOSS},
		{api: apiOSS, store: "pgvector", exact: true, gateway: true, rerank: true, dated: true, semanticOnly: true,
			entities: true}} {
		require.NoError(t, found.save(c))
		kept, _, err := c.Get(surfaceKey)
		require.NoError(t, err)
		assert.Equal(t, found, readSurface(kept))
	}
}

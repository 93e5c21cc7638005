package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memhost/memhost/abi/wirejson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

var nativeID = regexp.MustCompile(`^[ur]-[A-Za-z0-9_]{0,32}-[0-9a-f]{32}$`)

func TestIDsAreInjectiveAndHarmless(t *testing.T) {
	anID := rapid.OneOf(rapid.SampledFrom([]string{"*", "..", " ", "\t", "a b", " a", "a", "A", "ä", "团队/ü%20", "u-1",
		`"`, "é", "e\u0301", "a/b", strings.Repeat("x", 500), "\U0001F600"}),
		rapid.StringN(1, 40, 512))
	scopes := rapid.Custom(func(t *rapid.T) [5]string {
		return [5]string{rapid.SampledFrom([]string{"mem0", "simple_rag"}).Draw(t, "provider"),
			rapid.SampledFrom([]string{"", "lab", "a"}).Draw(t, "namespace"),
			anID.Draw(t, "run"), anID.Draw(t, "persona"), rapid.OneOf(rapid.Just(""), anID).Draw(t, "agent")}
	})
	of := func(s [5]string, generation int64) scopeIDs {
		return idsOf(&abi.GuestConfig{Provider: s[0], Namespace: s[1]},
			abi.MemoryScope{RunID: s[2], PersonaID: s[3], AgentID: s[4]}, generation)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := scopes.Draw(t, "a"), scopes.Draw(t, "b")
		g, h := rapid.Int64Range(1, 3).Draw(t, "g"), rapid.Int64Range(1, 3).Draw(t, "h")
		x, y := of(a, g), of(b, h)
		for _, id := range []string{x.user, x.run} {
			if !nativeID.MatchString(id) || len(id) > 80 {
				t.Fatalf("%q", id)
			}
		}
		if same := a == b && g == h; same != (x.user == y.user) || same != (x.run == y.run) {
			t.Fatalf("%v/%d and %v/%d: %v, %v", a, g, b, h, x, y)
		}
	})
}

// masked replaces the hashes in a request's native ids by a constant.
func masked(body string) string {
	return regexp.MustCompile(`-[0-9a-f]{32}"`).ReplaceAllString(body, `-H"`)
}

// TestRequestsAreAsMem0Documents pins the two bodies of an ordinary turn.
func TestRequestsAreAsMem0Documents(t *testing.T) {
	e := turn("e-91", "I moved to oat milk last week", "Noted, oat milk from now on.")
	e.Scenario, e.Context, e.Attribute, e.Metadata = "coffee", "personal", "drink",
		map[string]abi.Raw{"seed": abi.Raw("4")}
	last := func(r *rig, route string) string {
		for i := len(r.Sent) - 1; i >= 0; i-- {
			if r.Sent[i].Route == route {
				return masked(r.Sent[i].Body)
			}
		}
		return ""
	}
	ask := &abi.RetrieveRequest{Query: "which milk does the user want?", Scenario: "coffee", Context: "personal",
		Budget: abi.ContextBudget{MaxItems: count(12)}, AsOf: "2025-03-12T00:00:00Z"}

	r, _ := ossRig(t, "mem0", `"observation_date":"prompt"`, mem0.Options{})
	r.mustRecord(e)
	assert.Equal(t, `{"messages":[{"role":"user","content":"I moved to oat milk last week"},{"role":"assistant","content":"Noted, oat milk from now on."}],`+
		`"user_id":"u-maria-H","run_id":"r-maria_c1-H","infer":true,"prompt":"Observation Date for these messages is 2025-03-10; resolve relative dates against it.",`+
		`"metadata":{"mh_scenario":"coffee","mh_context":"personal","mh_attribute":"drink","mh_session_id":"s3","mh_turn_id":"t-e-91","mh_event_id":"e-91",`+
		`"mh_event_timestamp":"2025-03-10T09:30:00Z","created_at":"2025-03-10T09:30:00+00:00","mh_run":"maria_c1","mh_persona":"maria","mh_event_metadata":{"seed":4}}}`, last(r, "add"))
	r.mustRetrieve(ask)
	assert.Equal(t, `{"query":"which milk does the user want?","top_k":12,"threshold":0.1,"explain":true,`+
		`"filters":{"mh_scenario":"coffee","mh_context":"personal","user_id":"u-maria-H","run_id":"r-maria_c1-H"}}`,
		last(r, "search"))

	p := newRig(t, "mem0", `"rerank":true,"latest_only":true,"observation_date":"prompt"`, &mem0.Platform{Token: key})
	p.mustRecord(e)
	assert.Contains(t, last(p, "platform_add"), `"infer":true,"timestamp":1741599000,"observation_date":"2025-03-10","metadata":{"mh_scenario":"coffee"`)
	p.mustRetrieve(ask)
	assert.Equal(t, `{"query":"which milk does the user want?","top_k":12,"threshold":0.1,"rerank":true,"latest_only":true,"reference_date":"2025-03-12T00:00:00+00:00",`+
		`"filters":{"AND":[{"metadata":{"mh_scenario":"coffee"}},{"metadata":{"mh_context":"personal"}},{"created_at":{"lte":"2025-03-12T00:00:00+00:00"}},`+
		`{"user_id":"u-maria-H"},{"run_id":"r-maria_c1-H"}]}}`, last(p, "platform_search"))
}

func TestRetrieveReportsWhatMem0Did(t *testing.T) {
	r, server := ossRig(t, "mem0", "", mem0.Options{})
	r.setUp()
	e := turn("e1", "I drink oat milk. I live in Lisbon.")
	e.Context = "personal"
	r.mustRecord(e)
	t.Run("labels are hard filters on pgvector, and checked", func(t *testing.T) {
		trace := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk", Context: "personal"}).Trace
		assert.Equal(t, abi.FilterHard, trace.FilterMode)
		assert.Equal(t, map[string]string{"context": "hard"}, trace.FiltersApplied)
		assert.True(t, *trace.LabelsVerified)
		assert.Empty(t, r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk", Context: "work"}).Evidence)
		cross := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk", Context: "work",
			Filters: map[string]abi.Raw{"cross_context": abi.Raw("true")}})
		assert.Len(t, cross.Evidence, 1)
		assert.Equal(t, abi.FilterNone, cross.Trace.FilterMode)
	})
	t.Run("a store that drops them is found out", func(t *testing.T) {
		server.Set(mem0.Faults{IgnoreLabels: true})
		defer server.Set(mem0.Faults{})
		trace := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk", Context: "work"}).Trace
		assert.False(t, *trace.LabelsVerified)
		assert.Equal(t, map[string]string{"context": "none"}, trace.FiltersApplied)
		warns(t, trace.Warnings, "labels_ignored")
	})
	t.Run("another store is unverified", func(t *testing.T) {
		other, _ := ossRig(t, "mem0", "", mem0.Options{Store: "redis"})
		assert.Equal(t, map[string]string{"context": "unverified"},
			other.mustRetrieve(&abi.RetrieveRequest{Query: "milk", Context: "work"}).Trace.FiltersApplied)
	})
	t.Run("a session and an event can be asked for, an event's own metadata cannot", func(t *testing.T) {
		result := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk",
			Filters: map[string]abi.Raw{"session_id": abi.Raw(`"s3"`), "seed": abi.Raw(`4`)}})
		assert.Len(t, result.Evidence, 1)
		assert.Equal(t, map[string]string{"seed": "none", "session_id": "hard"}, result.Trace.FiltersApplied)
		warns(t, result.Trace.Warnings, "filter_ignored")
		assert.Empty(t, r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk",
			Filters: map[string]abi.Raw{"session_id": abi.Raw(`"*"`)}}).Evidence, "a literal star")
	})
	t.Run("max_items is native, max_tokens the formatter's", func(t *testing.T) {
		result := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk in Lisbon",
			Budget: abi.ContextBudget{MaxItems: count(1), MaxTokens: count(60)}})
		assert.Equal(t, map[string]abi.BudgetUse{"max_tokens": {How: "formatter",
			Shown: count(*result.Trace.TokenCount - *result.Trace.FrameTokens)},
			"max_items": {How: "native", Sent: count(1), Received: count(1), Shown: count(1)}},
			result.Trace.BudgetApplied)
		assert.Len(t, result.Evidence, 1)
		nothing := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk", Budget: abi.ContextBudget{MaxItems: count(0)}})
		assert.Empty(t, nothing.Raw.Calls, "nothing is asked for, so nothing is sent")
	})
	t.Run("the text has label, score, time and id, and format_context gives it again", func(t *testing.T) {
		result := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk", Context: "personal"})
		assert.Regexp(t, `^<memory-context backend="mem0" scope="maria_c1/maria">\n- I drink oat milk. \[2025-03-10T09:30:00Z \| score 0\.\d\d \| [0-9a-f]{8}\]\n</memory-context>$`, result.FormattedContext)
		again, err := sdktest.Do(r.Host, abi.OpFormatContext, maria, formatContext,
			&abi.FormatRequest{Result: *result, Scope: maria})
		require.NoError(t, err)
		assert.Equal(t, result.FormattedContext, again.FormattedContext)
		assert.Equal(t, []string{"e1"}, result.Evidence[0].SourceEventIDs)
	})
	t.Run("as_of is said to be ignored", func(t *testing.T) {
		trace := r.mustRetrieve(&abi.RetrieveRequest{Query: "milk", AsOf: "2020-01-01T00:00:00Z"}).Trace
		assert.Equal(t, "ignored", trace.AsOfMode)
		warns(t, trace.Warnings, "as_of_ignored")
	})
	t.Run("another scope's row is a breach, never dropped", func(t *testing.T) {
		for _, platform := range []bool{false, true} {
			rows := `{"results":[{"id":"x","memory":"m","user_id":"u-kenji","run_id":"r-kenji","metadata":null}]}`
			g := newRig(t, "mem0", `"api":"oss"`, answerWith(map[string]string{"POST /search": rows,
				"GET /memories": rows}))
			if platform {
				g = newRig(t, "mem0", `"api":"platform"`,
					answerWith(map[string]string{"POST /v3/memories/search/": rows, "POST /v3/memories/": rows}))
			}
			_, err := g.retrieve(&abi.RetrieveRequest{Query: "milk"})
			assert.Equal(t, abi.CodeIsolationBreach, abi.CodeOf(err))
			_, err = sdktest.Do(g.Host, abi.OpInventory, maria, withBackend(inventory), &abi.Empty{})
			assert.Equal(t, abi.CodeIsolationBreach, abi.CodeOf(err))
		}
	})
	t.Run("records without a user id are the scope's by their run", func(t *testing.T) {
		platform := &mem0.Platform{Token: key, DropUser: true}
		g := newRig(t, "simple_rag", "", platform)
		assert.Equal(t, abi.StatusCommitted, g.mustRecord(turn("e1", "I drink oat milk.")).Status)
		assert.Len(t, g.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk"}).Evidence, 1)
	})
	t.Run("what mem0 does not say is absent", func(t *testing.T) {
		ids := idsOf(&abi.GuestConfig{Provider: "mem0"}, maria, 1)
		g := newRig(t, "mem0", `"api":"oss"`, answerWith(map[string]string{"POST /search": `{"results":[{"id":"x","memory":"m","score":null,"created_at":"long ago","metadata":null,` +
			`"user_id":"` + ids.user + `","run_id":"` + ids.run + `"}]}`}))
		result := g.mustRetrieve(&abi.RetrieveRequest{Query: "milk"})
		assert.Equal(t, abi.Evidence{Pointer: "/calls/0/body/results/0", Rank: 1, NativeID: "x", NativeType: "memory",
			Text: "m", Shown: result.Evidence[0].Shown}, result.Evidence[0])
		assert.NotNil(t, result.Evidence[0].Shown)
		assert.Nil(t, result.Trace.TopScore)
	})
	t.Run("a blank query is refused before mem0 does", func(t *testing.T) {
		for _, q := range []string{"", "  \n", "\x00"} {
			_, err := r.retrieve(&abi.RetrieveRequest{Query: q})
			assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
		}
	})
}

func TestAnswersThatAreNoneAreErrors(t *testing.T) {
	for name, body := range map[string]string{"empty": "", "HTML": "<html>", "truncated": `{"results":[{"id":"x"`,
		"null": "null", "a list": "[]", "no results": `{"error":"quota"}`,
		"results of another kind": `{"results":{}}`, "two values": `{"results":[]} {}`,
		"not UTF-8": "{\"results\":[],\"x\":\"\xff\"}"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "mem0", `"api":"oss"`, answerWith(map[string]string{"POST /search": body,
				"POST /memories": body, "GET /memories": body}))
			_, err := r.retrieve(&abi.RetrieveRequest{Query: "milk"})
			e := abi.AsError(err)
			require.Error(t, err)
			assert.Equal(t, abi.CodeBackend, e.Code)
			assert.Equal(t, "search", e.Route)
			assert.NotNil(t, e.Native)
			_, err = r.record(turn("e1", "I drink oat milk."))
			assert.Equal(t, abi.CodeBackend, abi.CodeOf(err))
			_, err = sdktest.Do(r.Host, abi.OpInventory, maria, withBackend(inventory), &abi.Empty{})
			assert.Equal(t, abi.CodeBackend, abi.CodeOf(err))
		})
	}
}

func TestErrorsOfBothSurfaces(t *testing.T) {
	for _, c := range []struct {
		status    int64
		body      string
		headers   map[string]string
		code      abi.Code
		reason    string
		says      string
		retryable bool
	}{
		{400, `{"detail":"At least one identifier is required."}`, nil, abi.CodeInvalidArgument, "",
			"At least one identifier", false},
		{400, `{"error":"400 Bad Request","details":{"message":"top_k: want 1 to 1000"}}`, nil, abi.CodeInvalidArgument,
			"", "400 Bad Request: top_k", false},
		{400, `{"message":"m"}`, nil, abi.CodeInvalidArgument, "", ": m", false},
		{401, `{"detail":"Invalid API key."}`, nil, abi.CodeUnauthenticated, "", "Invalid API key", false},
		{403, `{"detail":"Admin role required."}`, nil, abi.CodeDenied, "", "Admin role", false},
		{404, `{"error":"Memory not found!"}`, nil, abi.CodeNotFound, "", "Memory not found", false},
		{405, `{"detail":"Method Not Allowed"}`, nil, abi.CodeBackend, "", "Method Not Allowed", false},
		{413, `quota`, nil, abi.CodeTooLarge, "", "quota", false},
		{422, `{"detail":[{"type":"missing","loc":["body","messages",0,"content"],"msg":"Field required","input":{}}]}`,
			nil, abi.CodeInvalidArgument, "", "body.messages.content. Field required", false},
		{429, `{"error":"Rate limit exceeded: 5 per 1 minute"}`, nil, abi.CodeRateLimited, "", "5 per 1 minute", true},
		{429, `{}`, map[string]string{"retry-after": "12"}, abi.CodeRateLimited, "", "429", true},
		{500, `Internal Server Error`, nil, abi.CodeBackend, "", "Internal Server Error", true},
		{502, `{"detail":"d","code":"provider_auth_failed"}`, nil, abi.CodeUnavailable, "provider_auth_failed", "d",
			false},
		{502, `{"detail":"d","code":"provider_rate_limited"}`, nil, abi.CodeRateLimited, "provider_rate_limited", "d",
			true},
		{502, `{"detail":"d","code":"provider_timeout"}`, nil, abi.CodeUnavailable, "provider_timeout", "d", true},
		{502, `{"detail":"d","code":"provider_unavailable"}`, nil, abi.CodeUnavailable, "provider_unavailable", "d",
			true},
		{502, `{"detail":"d","code":"provider_bad_request"}`, nil, abi.CodeBackend, "provider_bad_request", "d", false},
		{502, `{"detail":"d","code":"datastore_unavailable"}`, nil, abi.CodeUnavailable, "datastore_unavailable", "d",
			true},
		{502, `{"detail":"d","code":"vector_store_unavailable"}`, nil, abi.CodeUnavailable, "vector_store_unavailable",
			"d", true},
		{502, `{"detail":"d","code":"unknown"}`, map[string]string{"x-request-id": "1a2b"}, abi.CodeBackend, "unknown",
			"(request 1a2b)", true},
		{502, `<html>Bad Gateway</html>`, nil, abi.CodeBackend, "", "<html>", true},
		{503, ``, nil, abi.CodeUnavailable, "", "503", true},
		{302, ``, map[string]string{"location": "/login"}, abi.CodeBackend, "", "302", false},
	} {
		e := failure("search", &abi.HTTPResponse{Status: c.status, Headers: c.headers}, []byte(c.body))
		assert.Equal(t, c.code, e.Code, "%d %s", c.status, c.body)
		assert.Equal(t, c.reason, e.Reason, "%d %s", c.status, c.body)
		assert.Contains(t, e.Message, c.says)
		assert.Equal(t, c.retryable, e.Retryable, "%d %s", c.status, c.body)
		assert.Equal(t, c.body, e.Native.Body)
		if c.headers["retry-after"] != "" {
			assert.Equal(t, int64(12000), *e.RetryAfterMS)
		}
	}
}

func TestSurfaceIsFoundByLooking(t *testing.T) {
	find := func(server *rig) (string, error) {
		receipt, err := sdktest.Do(server.Host, abi.OpSetupScope, maria, withBackend(setupScope), &abi.Empty{})
		if err != nil {
			return "", err
		}
		var api string
		require.NoError(t, json.Unmarshal(receipt.Trace.Details["api"], &api))
		return api, nil
	}
	for want, r := range map[string]*rig{
		"oss":      newRig(t, "mem0", "", mem0.New(mem0.Options{AdminKey: key})),
		"platform": newRig(t, "mem0", "", &mem0.Platform{Token: key, HideDocument: true}),
	} {
		api, err := find(r)
		require.NoError(t, err)
		assert.Equal(t, want, api)
		r.forget()
		again := *r // another instance: it starts without a cache, but with the scope's state
		again.Host = r.Host
		r.mustRetrieve(&abi.RetrieveRequest{Query: "milk"})
		assert.NotContains(t, r.routes(), "openapi")
	}
	_, err := find(newRig(t, "mem0", "", answerWith(map[string]string{"GET /openapi.json": `{"paths":{"/v1/chat/completions":{}}}`})))
	assert.Equal(t, "not_mem0", abi.AsError(err).Reason)
	_, err = find(newRig(t, "mem0", "", &mem0.Platform{Token: "another", HideDocument: true}))
	assert.Equal(t, abi.CodeUnauthenticated, abi.CodeOf(err))
}

func TestHealthSaysWhy(t *testing.T) {
	look := func(r *rig) *abi.BackendHealth {
		h, err := sdktest.Do(r.Host, abi.OpHealth, abi.MemoryScope{}, health, &abi.Empty{})
		require.NoError(t, err)
		return h
	}
	r, server := ossRig(t, "mem0", `"deep_health":true`, mem0.Options{})
	assert.Equal(t, abi.HealthOK, look(r).Status)
	assert.Empty(t, look(r).BackendVersion, "mem0 does not tell it")
	server.Set(mem0.Faults{Embedder: "provider_unavailable"})
	h := look(r)
	assert.Equal(t, abi.HealthDegraded, h.Status)
	warns(t, h.Warnings, "search_failed")
	server.Set(mem0.Faults{Database: "dead"})
	assert.Equal(t, abi.HealthUnavailable, look(r).Status)
	h = look(newRig(t, "mem0", "", mem0.New(mem0.Options{AdminKey: "another"})))
	assert.Equal(t, abi.HealthUnavailable, h.Status)
	warns(t, h.Warnings, "credentials")
	assert.Equal(t, "async_derived", look(newRig(t, "mem0", "", &mem0.Platform{Token: key})).ConsistencyModel)
}

func TestMutationsStayInTheirScope(t *testing.T) {
	for _, surface := range []string{"oss", "platform"} {
		t.Run(surface, func(t *testing.T) {
			platform := &mem0.Platform{Token: key}
			r, _ := ossRig(t, "simple_rag", `"feedback":"negative"`, mem0.Options{})
			if surface == "platform" {
				r = newRig(t, "simple_rag", `"feedback":"negative"`, platform)
			}
			own := r.mustRecord(turn("e1", "I drink oat milk.")).NativeIDs[0]
			other := abi.MemoryScope{RunID: "kenji", PersonaID: "kenji"}
			e := turn("e1", "I drink it black.")
			e.RunID, e.UserID = other.RunID, other.PersonaID
			foreign, err := sdktest.Do(r.Host, abi.OpRecordEvent, other, withBackend(recordEvent), e)
			require.NoError(t, err)
			mutate := func(name, params string) (*abi.MutationReceipt, error) {
				m := &abi.NativeMutation{Scope: maria, Name: name, Reason: "test"}
				require.NoError(t, json.Unmarshal([]byte(params), &m.Params))
				return sdktest.Do(r.Host, abi.OpNativeMutation, maria, withBackend(nativeMutation), m)
			}
			for _, id := range []string{foreign.NativeIDs[0], "00000000-0000-4000-8000-000000000000", "nope", "*"} {
				for _, name := range []string{"update", "delete"} {
					text := map[string]string{"update": `,"text":"x"`}[name]
					_, err := mutate(name, `{"memory_id":"`+id+`"`+text+`}`)
					assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err), "%s %s", name, id)
				}
			}
			for _, bad := range []string{`{}`, `{"memory_id":"` + own + `"}`, `{"memory_id":"` + own + `","text":" "}`,
				`{"memory_id":"` + own + `","metadata":{"user_id":"x"}}`,
				`{"memory_id":"` + own + `","metadata":{"mh_event_id":"x"}}`, `{"memory_id":"` + own +
					`","metadata":3}`, `{"memory_id":"` + own + `","color":"x"}`} {
				_, err := mutate("update", bad)
				assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), bad)
			}
			_, err = mutate("drop_everything", `{}`)
			assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
			receipt, err := mutate("update", `{"memory_id":"`+own+`","text":"I drink tea.","metadata":{"checked":true}}`)
			require.NoError(t, err)
			assert.Equal(t, "applied", receipt.Status)
			assert.Equal(t, []string{"I drink tea."}, texts(r.mustRetrieve(&abi.RetrieveRequest{Query: "tea"})))
			history, err := sdktest.Do(r.Host, abi.OpProvenance, maria, withBackend(provenance),
				&abi.ProvenanceRequest{Scope: maria, NativeID: own})
			require.NoError(t, err)
			require.Len(t, history.Items, 3)
			assert.Equal(t, "UPDATE", history.Items[2].Evidence.Group)
			byEvent, err := sdktest.Do(r.Host, abi.OpProvenance, maria, withBackend(provenance),
				&abi.ProvenanceRequest{Scope: maria, EventID: "e1"})
			require.NoError(t, err)
			require.Len(t, byEvent.Items, 1)
			_, err = sdktest.Do(r.Host, abi.OpProvenance, maria, withBackend(provenance),
				&abi.ProvenanceRequest{Scope: maria, NativeID: foreign.NativeIDs[0]})
			assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err))

			correction := &abi.MemoryFeedback{FeedbackID: "f1", Scope: maria, SessionID: "s", Timestamp: e.Timestamp,
				Text: "It is rooibos.", NativeIDs: []string{own}}
			feedback, err := sdktest.Do(r.Host, abi.OpApplyFeedback, maria, withBackend(applyFeedback), correction)
			batch, wrong := mutate("delete_batch", `{"memory_ids":["`+own+`"]}`)
			if surface == "oss" {
				assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
				assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(wrong))
				_, err = mutate("delete", `{"memory_id":"`+own+`"}`)
				require.NoError(t, err)
			} else {
				require.NoError(t, err)
				assert.Equal(t, "applied", feedback.Status)
				assert.Equal(t, "NEGATIVE: It is rooibos.", platform.Feedback(own))
				require.NoError(t, wrong)
				assert.Equal(t, "applied", batch.Status)
			}
			assert.Empty(t, r.mustRetrieve(&abi.RetrieveRequest{Query: "tea"}).Evidence)
		})
	}
}

func FuzzWithoutNUL(f *testing.F) {
	for _, seed := range []string{`{"a":"x\u0000y"}`, `"\\u0000"`, `"\\\u0000"`, `"\u00000"`, `"\ud83d\ude00\u0000"`,
		`{"\u0000k":1}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || !wirejson.Valid([]byte(text)) {
			return
		}
		var want, got any
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		clean := withoutNUL([]byte(text))
		require.NoError(t, json.Unmarshal(clean, &got), "%s", clean)
		whole, _ := json.Marshal(want)
		kept, _ := json.Marshal(got)
		if !strings.Contains(string(whole), `\u0000`) && string(whole) != string(kept) {
			t.Fatalf("%s became %s", whole, kept)
		}
		if strings.Contains(strings.ReplaceAll(string(kept), `\\`, ``), `\u0000`) {
			t.Fatalf("%s holds U+0000", kept)
		}
	})
}

func FuzzAnswersNeverPanic(f *testing.F) {
	f.Add([]byte(`{"results":[{"id":"x","memory":"m","metadata":{"mh_event_id":"e"},"score_details":{"semantic_score":1}}]}`))
	f.Add([]byte(`{"event_id":"e","status":"PENDING","results":[{"id":"x","data":{"memory":"m"}}]}`))
	f.Add([]byte(`{"detail":[{"loc":["body",1],"msg":"m"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _, _ = readRows("search", body)
		_, _, _ = readAdded("add", body)
		_ = readFailure(body)
		_ = readSurface(body)
		if wire.Check(body) == nil {
			_, _ = readOpenAPI(body)
			_ = readCapabilities(body)
			_ = readJob(body)
		}
	})
}

// noFailTB is for code that cannot fail.
type noFailTB struct{ sdktest.TB }

func (noFailTB) Helper() {}

func TestFormatKeepsTheElement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &memory{id: rapid.String().Draw(t, "id"),
			text: rapid.OneOf(rapid.String(), rapid.Just("</memory-context><memory-context x>")).Draw(t, "text")}
		line := sdktest.FormattedContent(noFailTB{}, abi.FrameFull, m.block(clean(m.id)))
		if !strings.HasSuffix(line, "]\n") || strings.Contains(strings.ToLower(line), "</memory-context") ||
			strings.Contains(strings.ToLower(line), "<memory-context") {
			t.Fatalf("%q", line)
		}
	})
}

func TestALineIsItsFacts(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("ab \n<>/\x00"))),
		rapid.Just("</memory-context>"), rapid.Just("an end <"))
	rapid.Check(t, func(t *rapid.T) {
		score := func(name string) *float64 {
			if !rapid.Bool().Draw(t, name+" told") {
				return nil
			}
			return sdk.Ptr(rapid.Float64Range(0, 200).Draw(t, name))
		}
		m := &memory{id: text.Draw(t, "id"), text: text.Draw(t, "text"), score: score("score"),
			reranked: score("reranked"),
			replaced: rapid.Bool().Draw(t, "replaced")}
		m.created = rapid.SampledFrom([]string{"", "2025-03-10T09:30:00+00:00"}).Draw(t, "created")
		var facts []string
		if m.created != "" {
			facts = append(facts, sdk.UTC(m.created))
		}
		if m.score != nil {
			facts = append(facts, "score "+strconv.FormatFloat(*m.score, 'f', 2, 64))
		}
		if m.reranked != nil {
			facts = append(facts, "rerank "+strconv.FormatFloat(*m.reranked, 'f', 2, 64))
		}
		facts = append(facts, clean(m.id))
		if m.replaced {
			facts = append(facts, "superseded")
		}
		want := sdk.EscapeText("- " + sdk.Indent(m.text) + " [" + strings.Join(facts, " | ") + "]\n")
		if got := sdktest.FormattedContent(noFailTB{}, abi.FrameFull, m.block(clean(m.id))); got != want {
			t.Fatalf("%q, not %q", got, want)
		}
	})
}

// TestSourceDesignMakesTheCallsThatTheDesignNames: Memory.add(messages, user_id, run_id, metadata, infer) and
// Memory.search(query, filters, top_k = max_items, threshold), and no others except the two queries, once per instance,
// that determine the server and its vector store.
func TestSourceDesignMakesTheCallsThatTheDesignNames(t *testing.T) {
	e := turn("e1", "I drink oat milk.")
	e.Scenario, e.Context = "coffee", "personal"
	r, _ := ossRig(t, "mem0", "", mem0.Options{})
	r.Profile = abi.ProfileSourceDesign
	r.mustRecord(e)
	r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk", Context: "personal",
		Budget: abi.ContextBudget{MaxItems: count(12)}})
	var sent []string
	for _, s := range r.Sent {
		if s.Route != "openapi" && s.Route != "configuration" {
			sent = append(sent, s.Route+" "+masked(s.Body))
		}
	}
	assert.Equal(t, []string{
		`add {"messages":[{"role":"user","content":"I drink oat milk."}],"user_id":"u-maria-H","run_id":"r-maria_c1-H",` +
			`"infer":true,"metadata":{"mh_scenario":"coffee","mh_context":"personal","mh_session_id":"s3",` +
			`"mh_turn_id":"t-e1","mh_event_id":"e1","mh_event_timestamp":"` + e.Timestamp + `","created_at":"` +
			strings.Replace(e.Timestamp, "Z", "+00:00", 1) + `","mh_run":"maria_c1","mh_persona":"maria"}}`,
		`search {"query":"oat milk","top_k":12,"threshold":0.1,` +
			`"filters":{"mh_context":"personal","user_id":"u-maria-H","run_id":"r-maria_c1-H"}}`}, sent)
}

// TestSourceDesignSendsTheScopesAgent, as the design does, with adds and searches; best keeps it in the hashed ids.
func TestSourceDesignSendsTheScopesAgent(t *testing.T) {
	scope := abi.MemoryScope{RunID: maria.RunID, PersonaID: maria.PersonaID, AgentID: "bot"}
	for profile, want := range map[abi.Profile]bool{abi.ProfileSourceDesign: true, abi.ProfileBest: false} {
		r, _ := ossRig(t, "mem0", "", mem0.Options{})
		r.Profile = profile
		e := turn("e1", "I drink oat milk.")
		e.AgentID = "bot"
		_, err := sdktest.Do(r.Host, abi.OpRecordEvent, scope, withBackend(recordEvent), e)
		require.NoError(t, err)
		found, err := sdktest.Do(r.Host, abi.OpRetrieve, scope, withBackend(retrieve), &abi.RetrieveRequest{Query: "oat milk",
			Scope: scope, SessionID: "s9"})
		require.NoError(t, err)
		assert.Len(t, found.Evidence, 1, profile)
		for _, s := range r.Sent {
			if s.Route == "add" || s.Route == "search" {
				assert.Equal(t, want, strings.Contains(s.Body, `"agent_id":"`+agentID("bot")+`"`), "%s %s", profile, s.Body)
			}
		}
	}
}

// TestNativeQueriesAreTheDiagnosticsOfTheDesign: memory count and history, one call each.
func TestNativeQueriesAreTheDiagnosticsOfTheDesign(t *testing.T) {
	for name, r := range map[string]*rig{
		"self-hosted": newRig(t, "mem0", `"infer":false`, mem0.New(mem0.Options{AdminKey: key})),
		"gateway":     newRig(t, "mem0", `"infer":false`, mem0.New(allOptions())),
		"platform":    newRig(t, "mem0", `"infer":false`, &mem0.Platform{Token: key}),
	} {
		ask := func(q, params string) (*abi.NativeQueryResult, error) {
			request := &abi.NativeQuery{}
			require.NoError(t, abi.Unmarshal([]byte(`{"scope":{"run_id":"maria_c1","persona_id":"maria"},"name":"`+q+
				`","params":`+params+`}`), request))
			return sdktest.Do(r.Host, abi.OpNativeQuery, maria, withBackend(nativeQuery), request)
		}
		none, err := ask("count", `{}`)
		require.NoError(t, err, name)
		assert.JSONEq(t, `{"count":0,"complete":true}`, string(none.Result), name)
		stored := r.mustRecord(turn("e1", "I drink oat milk."))
		one, err := ask("count", `{}`)
		require.NoError(t, err)
		assert.JSONEq(t, `{"count":1,"complete":true}`, string(one.Result), name)
		id := stored.NativeIDs[0]
		history, err := ask("history", `{"memory_id":"`+id+`"}`)
		require.NoError(t, err, name)
		assert.Contains(t, string(history.Result), "oat milk", name)
		for params, code := range map[string]abi.Code{`{}`: abi.CodeInvalidArgument, `{"memory_id":7}`: abi.CodeInvalidArgument,
			`{"memory_id":"11111111-2222-3333-4444-555555555555"}`: abi.CodeNotFound} {
			_, err = ask("history", params)
			assert.Equal(t, code, abi.CodeOf(err), "%s %s", name, params)
		}
		_, err = ask("all", `{}`)
		assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
	}
}

// TestNativeQueriesThatReadMemories: mem0's own search, list and profile are restricted to the scope.
func TestNativeQueriesThatReadMemories(t *testing.T) {
	for name, r := range map[string]*rig{
		"self-hosted": newRig(t, "mem0", `"infer":false,"expiration_from":"until"`, mem0.New(mem0.Options{AdminKey: key})),
		"gateway":     newRig(t, "mem0", `"infer":false,"expiration_from":"until"`, mem0.New(allOptions())),
		"platform":    newRig(t, "mem0", `"infer":false,"expiration_from":"until"`, &mem0.Platform{Token: key}),
	} {
		t.Run(name, func(t *testing.T) {
			ask := func(q, params string) (string, error) {
				request := &abi.NativeQuery{}
				require.NoError(t, abi.Unmarshal([]byte(`{"scope":{"run_id":"maria_c1","persona_id":"maria"},"name":"`+q+
					`","params":`+params+`}`), request))
				result, err := sdktest.Do(r.Host, abi.OpNativeQuery, maria, withBackend(nativeQuery), request)
				if err != nil {
					return "", err
				}
				return string(result.Result), nil
			}
			r.mustRecord(turn("e1", "I drink oat milk."))
			old := turn("e2", "I drink oat milk with honey.")
			old.Metadata = map[string]abi.Raw{"until": abi.Raw(`"2020-01-01"`)}
			r.mustRecord(old)
			wrong := turn("e3", "I drink oat milk at noon.")
			wrong.Metadata = map[string]abi.Raw{"until": abi.Raw(`"soon"`)}
			assert.Contains(t, strings.Join(r.mustRecord(wrong).Warnings, " "), "expiration_ignored")
			for _, q := range []struct{ name, params string }{
				{"search", `{"query":"oat milk","threshold":0%s}`}, {"get_all", `{"top_k":50%s}`}} {
				answer, err := ask(q.name, fmt.Sprintf(q.params, ""))
				require.NoError(t, err, q.name)
				assert.Contains(t, answer, "oat milk.", q.name)
				assert.NotContains(t, answer, "honey", "%s hides what has expired", q.name)
				answer, err = ask(q.name, fmt.Sprintf(q.params, `,"show_expired":true`))
				require.NoError(t, err, q.name)
				assert.Contains(t, answer, "honey", q.name)
			}
			condition := `{"mh_event_id":{"eq":"e1"}}`
			if name == "platform" {
				condition = `{"metadata":` + condition + `}`
			}
			answer, err := ask("search", `{"query":"oat milk","threshold":0,"filters":`+condition+`}`)
			require.NoError(t, err)
			assert.Contains(t, answer, "oat milk.")
			assert.NotContains(t, answer, "noon", "filters are mem0's own")
			for _, params := range []string{`{}`, `{"query":" "}`, `{"query":"x","filters":[]}`, `{"query":"x","bogus":1}`,
				`{"query":"x","filters":{"run_id":"r"}}`, `{"query":"x","filters":{"OR":[{"user_id":"u"}]}}`} {
				_, err := ask("search", params)
				assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), params)
			}
			for _, params := range []string{`{"top_k":5000}`, `{"top_k":-1}`, `{"top_k":"many"}`, `{"size":1}`} {
				_, err := ask("get_all", params)
				assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), params)
			}
			answer, err = ask("profile", `{}`)
			if name != "platform" {
				assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
				return
			}
			require.NoError(t, err)
			assert.Contains(t, answer, `"status":"succeeded"`)
		})
	}
}

// TestThePlatformGetsCategoriesAndSchema: as configured, with each extracting add.
func TestThePlatformGetsCategoriesAndSchema(t *testing.T) {
	r := newRig(t, "mem0", `"custom_categories":[{"food":"what is eaten"}],"structured_data_schema":{"type":"object"}`,
		&mem0.Platform{Token: key})
	r.mustRecord(turn("e1", "I drink oat milk."))
	add := r.Sent[len(r.Sent)-1]
	for _, s := range r.Sent {
		if s.Route == "platform_add" {
			add = s
		}
	}
	assert.Contains(t, add.Body, `"custom_categories":[{"food":"what is eaten"}],"structured_data_schema":{"type":"object"}`)
}

// TestARetrievalShowsWhatHasExpiredWhereItIsAsked: expiration_from sets the day, and show_expired shows expired
// memories too.
func TestARetrievalShowsWhatHasExpiredWhereItIsAsked(t *testing.T) {
	for _, show := range []bool{false, true} {
		r, _ := ossRig(t, "mem0", fmt.Sprintf(`"expiration_from":"until","show_expired":%t`, show), mem0.Options{})
		e := turn("e1", "I drink oat milk.")
		e.Metadata = map[string]abi.Raw{"until": abi.Raw(`"2020-01-01"`)}
		r.mustRecord(e)
		found := r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk"})
		assert.Equal(t, show, strings.Contains(found.FormattedContext, "oat milk"))
	}
}

func TestTheNumberAskedForFollowsTheBudget(t *testing.T) {
	r, _ := ossRig(t, "mem0", "", mem0.Options{})
	r.mustRecord(turn("e1", "I drink oat milk.")) // so that no search is empty, which would cause a look-up
	asked := func(budget abi.ContextBudget, want string) {
		t.Helper()
		r.mustRetrieve(&abi.RetrieveRequest{Query: "oat milk", Budget: budget})
		assert.Contains(t, r.Sent[len(r.Sent)-1].Body, want)
	}
	asked(abi.ContextBudget{}, `"top_k":20`)
	r.AskItems = 200
	asked(abi.ContextBudget{MaxTokens: count(8000)}, `"top_k":200`)
	asked(abi.ContextBudget{MaxTokens: count(8000), MaxItems: count(5)}, `"top_k":5`)
}

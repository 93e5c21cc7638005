package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/sdk/sdktest"
)

var flavours = map[string]memos.Flavour{"neo4j": memos.Neo4j, "neo4j-community": memos.Community}

// TestATurnComesBack runs each write profile on each flavour, from the write to a retrieval in a new session.
func TestATurnComesBack(t *testing.T) {
	for store, flavour := range flavours {
		for _, profile := range []string{profileAsync, profileFast, profileFine} {
			t.Run(store+" "+profile, func(t *testing.T) {
				b := newBench(t, `{"add_mode":"`+profile+`","graph_store":"`+store+`"}`,
					memos.Options{Flavour: flavour})
				r := b.must(turnEvent("e-1", "My cat is called Zorvex. I always prefer an aisle seat."))
				if profile == profileAsync {
					assert.Equal(t, abi.StatusQueued, r.Status)
					assert.Equal(t, abi.NativeIDsTransient, r.NativeIDsKind)
					assert.Equal(t, abi.ReadinessPending, b.ready(r.Markers...).Status)
					b.wait(10 * time.Second)
					ready := b.ready(r.Markers...)
					assert.Equal(t, abi.ReadinessReady, ready.Status, "%v", ready)
					assert.Equal(t, "task status and store probe", ready.Method)
				} else {
					assert.Equal(t, abi.StatusCommitted, r.Status)
					assert.Equal(t, abi.NativeIDsFinal, r.NativeIDsKind)
					assert.Empty(t, r.Markers)
				}
				result := b.find(retrieveRequest("What is my cat called?"))
				assert.Equal(t, abi.ResultResults, result.Trace.ResultState)
				assert.Contains(t, result.FormattedContext, "Zorvex")
				assert.Contains(t, result.FormattedContext, "## text_mem\n")
				assert.Contains(t, result.FormattedContext, "said 2026-05-01T10:00:00Z")
				assert.Equal(t, []string{"e-1"}, result.Evidence[0].SourceEventIDs,
					"the event survives in the sources, however often they are coded")
				assert.NotNil(t, result.Evidence[0].Score)
				if profile != profileFast {
					assert.Contains(t, result.FormattedContext, "## pref_mem\n- [PreferenceMemory | ")
				}
			})
		}
	}
}

func TestRawIsTheAnswerAndPointersLeadIntoIt(t *testing.T) {
	b := newBench(t, syncFine, memos.Options{})
	b.must(turnEvent("e-1", "I prefer tea. I moved to Lyon."))
	result := b.find(retrieveRequest("tea"))
	require.Len(t, result.Raw.Calls, 1)
	var raw struct{ Data map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(result.Raw.Calls[0].Body, &raw))
	for _, e := range result.Evidence {
		parts := strings.Split(strings.TrimPrefix(e.Pointer, "/calls/0/body/data/"), "/")
		require.Len(t, parts, 4, e.Pointer)
		at, err := strconv.Atoi(parts[3])
		require.NoError(t, err)
		var group []struct {
			Memories []struct{ ID, Memory string }
		}
		require.NoError(t, json.Unmarshal(raw.Data[parts[0]], &group))
		assert.Equal(t, group[0].Memories[at].ID, e.NativeID)
		assert.Equal(t, group[0].Memories[at].Memory, e.Text)
		assert.Equal(t, parts[0], e.Group)
	}
}

func TestTheTraceTellsTheOldestAndTheNewestTime(t *testing.T) {
	const first, second, third = "2026-03-01T09:00:00Z", "2026-03-01T10:00:01+01:00", "2026-03-01T09:00:02Z"
	for name, tt := range map[string]struct {
		times          []string
		oldest, newest string
	}{
		"rising":                  {[]string{first, second, third}, first, third},
		"falling":                 {[]string{third, second, first}, first, third},
		"mixed":                   {[]string{second, third, first, second}, first, third},
		"one that cannot be read": {[]string{second, "soon", third}, second, third},
		"one":                     {[]string{second}, second, second},
		"none that can be read":   {[]string{"soon", ""}, "", ""},
	} {
		q := &query{backend: &backend{settings: &settings{}}, result: &abi.RetrieveResult{}}
		for _, at := range tt.times {
			q.items = append(q.items, &item{createdAt: at})
		}
		var trace abi.Trace
		q.evidence(&trace)
		assert.Equal(t, tt.oldest, trace.OldestRetrievedAt, name)
		assert.Equal(t, tt.newest, trace.NewestRetrievedAt, name)
	}
}

func TestLabels(t *testing.T) {
	for _, tt := range []struct {
		name, block               string
		scenario, context, attrib string
		cross                     bool
		mode                      abi.FilterMode
		applied                   map[string]string
		want                      []string
		warned                    bool
	}{
		{"sync, all three", syncFine, "travel", "booking", "seat", false, abi.FilterHard,
			map[string]string{"scenario": "hard", "context": "hard", "attribute": "hard"}, []string{"e-1"}, false},
		{"sync, the scenario", syncFine, "travel", "", "", false, abi.FilterHard, map[string]string{"scenario": "hard"},
			[]string{"e-1", "e-2"}, false},
		{"sync, across contexts", syncFine, "travel", "home", "", true, abi.FilterHard,
			map[string]string{"scenario": "hard"}, []string{"e-1", "e-2"}, false},
		{"sync, nothing fits", syncFine, "work", "", "", false, abi.FilterHard, map[string]string{"scenario": "hard"},
			nil, false},
		{"async, the exact triple", async, "travel", "booking", "seat", false, abi.FilterHard,
			map[string]string{"scenario": "hard", "context": "hard", "attribute": "hard"}, []string{"e-1"}, false},
		{"async, the scenario", async, "travel", "", "", false, abi.FilterHard, map[string]string{"scenario": "hard"},
			[]string{"e-1", "e-2"}, false},
		{"async, two of three", async, "travel", "booking", "", false, abi.FilterNone,
			map[string]string{"scenario": "hard", "context": "none"}, []string{"e-1", "e-2"}, true},
		{"async, the context alone", async, "", "booking", "", false, abi.FilterNone,
			map[string]string{"context": "none"}, []string{"e-1", "e-2", "e-3"}, true},
		{"fine search is semantic", `{"add_mode":"sync/fine","search_mode":"fine","graph_store":"neo4j"}`, "work", "",
			"", false, abi.FilterSemantic, map[string]string{"scenario": "semantic"}, nil, false},
		{"postgres ignores filters", `{"add_mode":"sync/fine","graph_store":"postgres"}`, "work", "", "", false,
			abi.FilterNone, map[string]string{"scenario": "none"}, []string{"e-1", "e-2", "e-3"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.block, memos.Options{})
			b.must(withLabels(turnEvent("e-1", "The aisle seat is mine."), "travel", "booking", "seat"),
				withLabels(turnEvent("e-2", "The suitcase seat is red."), "travel", "packing", "suitcase"),
				withLabels(turnEvent("e-3", "The seat at home is soft."), "home", "sofa", "seat"))
			b.wait(10 * time.Second)
			r := retrieveRequest("seat")
			r.Scenario, r.Context, r.Attribute = tt.scenario, tt.context, tt.attrib
			if tt.cross {
				r.Filters = map[string]abi.Raw{"cross_context": abi.Raw("true")}
			}
			result := b.find(r)
			assert.Equal(t, tt.mode, result.Trace.FilterMode)
			assert.Equal(t, tt.applied, result.Trace.FiltersApplied)
			assert.ElementsMatch(t, tt.want, events(result))
			if len(tt.want) > 0 && tt.mode == abi.FilterHard {
				assert.True(t, *result.Trace.LabelsVerified)
			}
			assert.Equal(t, tt.warned, strings.Contains(strings.Join(result.Trace.Warnings, " "), "label_not_filtered"))
		})
	}
}

// events returns the source events of a result, each once.
func events(result *abi.RetrieveResult) []string {
	var ids []string
	seen := map[string]bool{}
	for _, e := range result.Evidence {
		for _, id := range e.SourceEventIDs {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func TestFiltersOfACaller(t *testing.T) {
	b := newBench(t, syncFast, memos.Options{})
	one, two := turnEvent("e-1", "Tea at nine."), turnEvent("e-2", "Tea at ten.")
	one.SessionID, one.Metadata = "s: 'x'", map[string]abi.Raw{"seed": abi.Raw(`7`), "deep": abi.Raw(`{"a":[1]}`),
		"bad key": abi.Raw(`"v"`)}
	two.AgentID = "a1"
	b.must(one, two)
	for name, tt := range map[string]struct {
		filters map[string]abi.Raw
		want    []string
		how     string
	}{
		"a session, hashed where its id is not plain": {map[string]abi.Raw{"session_id": abi.Raw(`"s: 'x'"`)},
			[]string{"e-1"}, "hard_session"},
		"metadata": {map[string]abi.Raw{"seed": abi.Raw(`7`)}, []string{"e-1"}, "hard"},
		"an agent": {map[string]abi.Raw{"agent_id": abi.Raw(`"a1"`)}, []string{"e-2"}, "hard"},
	} {
		t.Run(name, func(t *testing.T) {
			r := retrieveRequest("tea")
			r.Filters = tt.filters
			result := b.find(r)
			assert.Equal(t, tt.want, events(result))
			for key := range tt.filters {
				assert.Equal(t, tt.how, result.Trace.FiltersApplied[key])
			}
		})
	}
	for name, filters := range map[string]map[string]abi.Raw{
		"an object":           {"seed": abi.Raw(`{"gte":1}`)},
		"a list":              {"seed": abi.Raw(`[1]`)},
		"null":                {"seed": abi.Raw(`null`)},
		"a quote in the key":  {"se'ed": abi.Raw(`1`)},
		"info. before it":     {"info.seed": abi.Raw(`1`)},
		"a session as number": {"session_id": abi.Raw(`1`)},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			r := retrieveRequest("tea")
			r.Filters = filters
			_, err := b.retrieve(r)
			assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), "%v", err)
		})
	}
}

func TestNativeErrorsBecomeTyped(t *testing.T) {
	for _, tt := range []struct {
		status     int
		body       string
		code       abi.Code
		retryAfter string
	}{
		{400, `{"code":400,"message":"user_id and session_id must be strings","data":null}`, abi.CodeInvalidArgument,
			""},
		{401, `{"code":401,"message":"no","data":null}`, abi.CodeUnauthenticated, ""},
		{403, `{"code":403,"message":"no","data":null}`, abi.CodeDenied, ""},
		{404, `{"detail":"Not Found"}`, abi.CodeBackend, ""},
		{409, `{"code":409,"message":"no","data":null}`, abi.CodeConflict, ""},
		{413, ``, abi.CodeTooLarge, ""},
		{422, `{"code":422,"message":"Parameter validation error","detail":[],"data":null}`, abi.CodeInvalidArgument,
			""},
		{429, `{"detail":"slow down","retry_after":12}`, abi.CodeRateLimited, "12"},
		{500, `{"code":500,"message":"Couldn't connect to 127.0.0.1:7687","data":null}`, abi.CodeUnavailable, ""},
		{500, `{"code":500,"message":"'PostgresGraphDB' object has no attribute","data":null}`, abi.CodeBackend, ""},
		{502, `<html>bad gateway</html>`, abi.CodeUnavailable, ""},
		{503, `{"code":503,"message":"no","data":null}`, abi.CodeUnavailable, ""},
		{307, ``, abi.CodeBackend, ""},
		{200, `{"code":500,"message":"inside","data":null}`, abi.CodeBackend, ""},
		{200, `{"code":200,"message":"cut","data":{"text_mem":[{"cu`, abi.CodeBackend, ""},
		{200, `{"code":200,"message":"ok","data":[]}`, abi.CodeBackend, ""},
		{200, ``, abi.CodeBackend, ""},
	} {
		t.Run(strconv.Itoa(tt.status)+" "+string(tt.code), func(t *testing.T) {
			h := newHost(t, syncFast, nil)
			h.HTTP = func(sdktest.Request) sdktest.Reply {
				return sdktest.Reply{Status: int64(tt.status), Body: tt.body,
					Headers: map[string]string{"retry-after": tt.retryAfter}}
			}
			_, err := sdktest.Do(h, abi.OpRetrieve, scope, withBackend(retrieve), retrieveRequest("q"))
			e := abi.AsError(err)
			require.Equal(t, tt.code, e.Code, "%v", e)
			assert.Equal(t, "search_fast", e.Route)
			require.NotNil(t, e.Native, "the raw diagnostics stay")
			assert.Equal(t, int64(tt.status), *e.Native.Status)
			assert.Equal(t, tt.body, e.Native.Body)
			if tt.retryAfter != "" {
				assert.Equal(t, int64(12_000), *e.RetryAfterMS)
			}
			assert.Equal(t, e.Code == abi.CodeUnavailable || e.Code == abi.CodeRateLimited || e.Code == abi.CodeTimeout,
				e.Retryable)
		})
	}
}

func TestResetRemovesOneScopeOnly(t *testing.T) {
	for store, flavour := range flavours {
		for _, profile := range []string{profileAsync, profileFine} {
			t.Run(store+" "+profile, func(t *testing.T) {
				b := newBench(t, `{"add_mode":"`+profile+`","graph_store":"`+store+`"}`,
					memos.Options{Flavour: flavour})
				b.must(turnEvent("e-1", "My cat is called Zorvex."))
				theirs := turnEvent("e-1", "My dog is called Biscuit.")
				theirs.UserID = otherScope.PersonaID
				_, err := sdktest.Do(b.Host, abi.OpRecordEvent, otherScope, withBackend(recordEvent), theirs)
				require.NoError(t, err)
				old := b.cube()
				reset, err := sdktest.Do(b.Host, abi.OpResetScope, scope, withBackend(resetScope), &abi.Empty{})
				require.NoError(t, err)
				assert.Equal(t, abi.ResetDone, reset.Status)
				assert.Equal(t, int64(1), *reset.Removed["text_mem"])
				assert.Empty(t, b.server.Texts(old))
				b.wait(10 * time.Second)
				if profile == profileAsync {
					assert.NotEmpty(t, b.server.Texts(old), "the task that was under way wrote into the old cube")
					assert.Contains(t, strings.Join(reset.Remains, " "), "background tasks")
				}
				assert.Equal(t, abi.ResultEmpty, b.find(retrieveRequest("cat")).Trace.ResultState, "and nobody ever sees it")
				r := retrieveRequest("dog")
				r.Scope = otherScope
				assert.Contains(t, b.find(r).FormattedContext, "Biscuit")
			})
		}
	}
}

func TestAnInterruptedResetIsFinishedByRepeatingIt(t *testing.T) {
	b := newBench(t, syncFast, memos.Options{})
	b.must(turnEvent("e-1", "one"), turnEvent("e-2", "two"))
	b.server.Intercept(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if !strings.Contains(string(body), `"hard_delete":true`) {
			return false
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	_, err := sdktest.Do(b.Host, abi.OpResetScope, scope, withBackend(resetScope), &abi.Empty{})
	require.Equal(t, abi.CodeUnavailable, abi.CodeOf(err), "the nodes are marked, not removed")
	b.server.Intercept(nil)
	b.must(turnEvent("e-3", "three, between the two"))
	reset, err := sdktest.Do(b.Host, abi.OpResetScope, scope, withBackend(resetScope), &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.ResetDone, reset.Status)
	assert.Empty(t, b.server.Cubes(), "a new record id for the second attempt would have left the first two for ever")
}

func TestResetOnAStoreWithoutRecordIDs(t *testing.T) {
	b := newBench(t, `{"add_mode":"sync/fast","graph_store":"postgres"}`, memos.Options{})
	b.server.Intercept(func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if !strings.Contains(r.URL.Path, "record_id") && !strings.Contains(r.URL.Path, "exist_") {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"code":500,"message":"'PostgresGraphDB' object has no attribute","data":null}`))
		return true
	})
	b.must(turnEvent("e-1", "one"))
	reset, err := sdktest.Do(b.Host, abi.OpResetScope, scope, withBackend(resetScope), &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.ResetDone, reset.Status, "the server said Failed to delete memories, and had deleted")
	assert.Empty(t, b.server.Cubes())
}

func TestInventoryCountsByNativeType(t *testing.T) {
	b := newBench(t, `{"add_mode":"sync/fine"}`, memos.Options{Flavour: memos.Community})
	look := func() *abi.Inventory {
		i, err := sdktest.Do(b.Host, abi.OpInventory, scope, withBackend(inventory), &abi.Empty{})
		require.NoError(t, err)
		return i
	}
	assert.Empty(t, look().Kinds)
	b.must(turnEvent("e-1", "I prefer tea. I moved to Lyon."))
	first := look()
	require.Len(t, first.Kinds, 2)
	assert.Equal(t, "PreferenceMemory", first.Kinds[0].Kind)
	assert.Equal(t, int64(2), first.Kinds[1].Count)
	assert.True(t, first.Complete && first.Quiescent)
	assert.Equal(t, first.Kinds, look().Kinds, "looking changes nothing")
	b.find(retrieveRequest("tea"))
	assert.Equal(t, first.Kinds, look().Kinds, "nor does a fast search")
	b.must(turnEvent("e-2", "I like jazz."))
	assert.NotEqual(t, first.Kinds[1].Digest, look().Kinds[1].Digest)
}

func TestFeedbackHasThreeOutcomes(t *testing.T) {
	block := `{"add_mode":"sync/fine","graph_store":"neo4j","feedback_enabled":true}`
	correction := func(text string, ids ...string) *abi.MemoryFeedback {
		return &abi.MemoryFeedback{FeedbackID: "f-1", Scope: scope, SessionID: "s1", Timestamp: "2026-05-03T09:00:00Z",
			Text: text, NativeIDs: ids}
	}
	apply := func(b *bench, f *abi.MemoryFeedback) (*abi.FeedbackReceipt, error) {
		return sdktest.Do(b.Host, abi.OpApplyFeedback, scope, withBackend(applyFeedback), f)
	}
	t.Run("applied, and provenance shows the archived and the new memory", func(t *testing.T) {
		b := newBench(t, block, memos.Options{})
		old := b.must(turnEvent("e-1", "The favourite seat is the window seat.")).NativeIDs[0]
		r, err := apply(b, correction("The favourite seat is the aisle seat.", old))
		require.NoError(t, err)
		assert.Equal(t, "applied", r.Status)
		require.Len(t, r.NativeIDs, 1)
		for _, start := range []string{r.NativeIDs[0], old} {
			p, err := sdktest.Do(b.Host, abi.OpProvenance, scope, withBackend(provenance),
				&abi.ProvenanceRequest{Scope: scope, NativeID: start})
			require.NoError(t, err)
			require.Len(t, p.Items, 2, "from %s", start)
			for _, i := range p.Items {
				assert.Equal(t, i.Evidence.NativeID == old, i.Evidence.Superseded != nil, "the old one is superseded")
			}
		}
		result := b.find(retrieveRequest("favourite seat"))
		assert.Len(t, result.Evidence, 1, "the twins under one id count once")
		assert.Contains(t, result.FormattedContext, "aisle")
	})
	t.Run("an empty record is no_change, and says that it may be a failure", func(t *testing.T) {
		b := newBench(t, block, memos.Options{})
		b.must(turnEvent("e-1", "The favourite seat is the window seat."))
		b.server.Break(memos.Faults{LLMDown: true})
		r, err := apply(b, correction("No, the aisle."))
		require.NoError(t, err)
		assert.Equal(t, "no_change", r.Status)
		assert.Equal(t, []string{"no_change_or_failed"}, codes(r.Warnings))
	})
	t.Run("queued", func(t *testing.T) {
		b := newBench(t, `{"feedback_enabled":true,"feedback_mode":"async"}`, memos.Options{})
		r, err := apply(b, correction("No, the aisle."))
		require.NoError(t, err)
		assert.Equal(t, "queued", r.Status)
	})
	t.Run("an outage behind an empty record is an error", func(t *testing.T) {
		b := newBench(t, block, memos.Options{})
		b.server.Break(memos.Faults{DatabaseDown: true})
		_, err := apply(b, correction("No, the aisle."))
		assert.Equal(t, abi.CodeUnavailable, abi.CodeOf(err))
	})
	t.Run("off unless it is configured", func(t *testing.T) {
		b := newBench(t, syncFine, memos.Options{})
		_, err := apply(b, correction("No, the aisle."))
		assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
		assert.Empty(t, b.routesUsed())
	})
}

func TestProvenanceByEventAndTime(t *testing.T) {
	for _, block := range []string{syncFine, async} {
		t.Run(block, func(t *testing.T) {
			b := newBench(t, block, memos.Options{})
			b.must(turnEvent("e-1", "I moved to Lyon."), turnEvent("e-2", "I like jazz."))
			b.wait(10 * time.Second)
			p, err := sdktest.Do(b.Host, abi.OpProvenance, scope, withBackend(provenance),
				&abi.ProvenanceRequest{Scope: scope, EventID: "e-1"})
			require.NoError(t, err)
			require.Len(t, p.Items, 1)
			assert.Contains(t, p.Items[0].Evidence.Text, "Lyon")
			assert.Equal(t, block == async, len(p.Trace.Warnings) > 0)
			p, err = sdktest.Do(b.Host, abi.OpProvenance, scope, withBackend(provenance),
				&abi.ProvenanceRequest{Scope: scope, From: "2026-07-01T00:00:00Z", To: "2026-07-02T02:00:00+02:00",
					Limit: 1})
			require.NoError(t, err)
			assert.Len(t, p.Items, 1)
			assert.Equal(t, "2", p.NextCursor)
			_, err = sdktest.Do(b.Host, abi.OpProvenance, scope, withBackend(provenance),
				&abi.ProvenanceRequest{Scope: scope, EventID: "e-1", Cursor: "x"})
			assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
		})
	}
}

func TestNativeQueriesAndMutations(t *testing.T) {
	b := newBench(t, syncFine, memos.Options{})
	id := b.must(turnEvent("e-1", "I moved to Lyon.")).NativeIDs[0]
	query := func(name string, params map[string]abi.Raw) (*abi.NativeQueryResult, error) {
		return sdktest.Do(b.Host, abi.OpNativeQuery, scope, withBackend(nativeQuery),
			&abi.NativeQuery{Scope: scope, Name: name, Params: params})
	}
	for _, name := range queryNames {
		params := map[string]abi.Raw{}
		if name == "search" {
			params["query"] = abi.Raw(`"Lyon"`)
		}
		r, err := query(name, params)
		require.NoError(t, err, name)
		assert.NotEmpty(t, r.Result)
	}
	_, err := query("chat", nil)
	assert.Equal(t, abi.CodeUnsupported, abi.CodeOf(err))
	for params, found := range map[string]bool{`{}`: true, `{"search_memory_type":"UserMemory","top_k":3,"relativity":0}`: true,
		`{"search_memory_type":"PreferenceMemory"}`: false, `{"filter":{"and":[{"mh_event_id":"e-1"}]},"session_id":"s"}`: true,
		`{"filter":{"and":[{"mh_event_id":"e-2"}]}}`: false} {
		given := map[string]abi.Raw{}
		require.NoError(t, json.Unmarshal([]byte(params), &given))
		given["query"] = abi.Raw(`"I moved to Lyon."`)
		r, err := query("search", given)
		require.NoError(t, err, params)
		assert.Equal(t, found, strings.Contains(string(r.Result), "Lyon"), params)
	}
	for _, wrong := range []map[string]abi.Raw{nil, {"query": abi.Raw(`""`)},
		{"query": abi.Raw(`"x"`), "mode": abi.Raw(`"mixture"`)}, {"query": abi.Raw(`"x"`), "readable_cube_ids": abi.Raw(`["c"]`)},
		{"query": abi.Raw(`"x"`), "filter": abi.Raw(`{"mh_scenario":"x"}`)}} {
		_, err := query("search", wrong)
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), "%v", wrong)
	}
	for _, shape := range []string{`{"mh_scenario":"x"}`, `{"and":[],"x":1}`, `{"and":[{"or":[{"a":1}]}]}`,
		`{"and":[{"a":null}]}`, `{"and":[{"a":{"near":1}}]}`, `{"and":[{"info.a":1}]}`,
		`{"and":[{"a'b":1}]}`, `[]`, `{"and":{}}`, `{}`, `{"and":[1]}`, `{"and":[{"a":[1]}]}`} {
		_, err := query("get_memory", map[string]abi.Raw{"filter": abi.Raw(shape)})
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), "trap 3: %s", shape)
	}
	r, err := query("get_memory", map[string]abi.Raw{"filter": abi.Raw(`{"and":[{"mh_event_id":{"in":["e-1"]}}]}`),
		"page": abi.Raw("1"), "page_size": abi.Raw("5")})
	require.NoError(t, err)
	assert.Contains(t, string(r.Result), "Lyon")

	mutate := func(s abi.MemoryScope, name, params string) (*abi.MutationReceipt, error) {
		m := &abi.NativeMutation{Scope: s, Name: name}
		if params != "" {
			m.Params = map[string]abi.Raw{"ids": abi.Raw(params)}
		}
		return sdktest.Do(b.Host, abi.OpNativeMutation, s, withBackend(nativeMutation), m)
	}
	_, err = mutate(otherScope, "delete_memories", `["`+id+`"]`)
	assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err),
		"another scope's memory is nobody's business: the server would delete it")
	assert.NotEmpty(t, b.server.Texts(b.cube()))
	_, err = mutate(scope, "delete_memories", `[]`)
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
	done, err := mutate(scope, "delete_memories", `["`+id+`"]`)
	require.NoError(t, err)
	assert.Equal(t, "applied", done.Status)
	assert.Empty(t, b.server.Texts(b.cube()))
	done, err = mutate(scope, "recover", "")
	require.NoError(t, err)
	assert.Equal(t, "no_change", done.Status)
}

// TestNativeCallsOfEachOperation counts an operation's calls of the backend.
func TestNativeCallsOfEachOperation(t *testing.T) {
	for _, tt := range []struct {
		block  string
		record []string
	}{{syncFast, []string{"add_fast", "get_memory"}}, {syncFine, []string{"add_fine", "get_memory"}},
		{async, []string{"add_async", "get_memory"}},
		{`{"add_mode":"sync/fast","graph_store":"neo4j","read_back":false}`, []string{"add_fast"}}} {
		t.Run(tt.block, func(t *testing.T) {
			b := newBench(t, tt.block, memos.Options{})
			do := func(want []string, run func() error) {
				t.Helper()
				require.NoError(t, run())
				assert.Equal(t, want, b.routesUsed())
			}
			setup := func() error {
				_, err := sdktest.Do(b.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
				return err
			}
			do([]string{"exist", "get_memory", "search_fast", "exist", "add_fast", "search_fast", "search_fast"}, setup)
			do([]string{"exist"}, setup)
			var receipt *abi.WriteReceipt
			do(tt.record, func() error { receipt = b.must(turnEvent("e-1", "I moved to Lyon.")); return nil })
			do([]string{"search_fast"}, func() error { _, err := b.retrieve(retrieveRequest("Lyon")); return err })
			nobody := retrieveRequest("Lyon")
			nobody.Scope = otherScope
			do([]string{"search_fast", "get_memory"}, func() error { _, err := b.retrieve(nobody); return err })
			do([]string{"liveness", "get_memory", "search_fast", "search_fast"}, func() error {
				_, err := sdktest.Do(b.Host, abi.OpHealth, abi.MemoryScope{}, withBackend(health), &abi.Empty{})
				return err
			})
			b.wait(10 * time.Second)
			look := []string(nil)
			if tt.block == async {
				look = []string{"get_memory", "status", "get_memory"}
			}
			do(look, func() error { b.ready(receipt.Markers...); return nil })
			found := []string{"get_memory"}
			if tt.block == async {
				found = []string{"status"}
			}
			do(found, func() error {
				_, err := sdktest.Do(b.Host, abi.OpFindEvent, scope, withBackend(findEvent),
					&abi.FindEventRequest{EventID: "e-1", SentAt: b.Now})
				return err
			})
			do([]string{"get_memory"}, func() error {
				_, err := sdktest.Do(b.Host, abi.OpInventory, scope, withBackend(inventory), &abi.Empty{})
				return err
			})
			cleared := []string{"get_memory", "exist", "reset_soft", "reset_hard", "exist"}
			if tt.block == async {
				cleared = []string{"get_memory", "status", "exist", "reset_soft", "reset_hard", "exist"}
			}
			do(cleared, func() error {
				_, err := sdktest.Do(b.Host, abi.OpResetScope, scope, withBackend(resetScope), &abi.Empty{})
				return err
			})
		})
	}
}

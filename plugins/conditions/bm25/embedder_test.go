package main

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk/sdktest"
)

const endpoint = `"embedder":{"base_url":"http://127.0.0.1:1/v1","model":"stub","api_key":{"secret":"K"}}`

// embedding is a provider with an embedder. The stub's vectors depend on a text's meaning: see means.
type embedding struct {
	*sdktest.Host
	stub *llm.Server
}

// meanings are groups of words with the same meaning: they get the same vector and share no letters.
var meanings = map[string]string{"boat": "ship", "vessel": "ship", "physician": "doctor"}

func means(text string) string {
	for word, meaning := range meanings {
		text = strings.ReplaceAll(text, word, meaning)
	}
	return text
}

func newEmbedding(t test, provider, config string) *embedding {
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	e := &embedding{stub: llm.New(llm.Options{Dimensions: 1024})}
	e.Host = sdktest.New(t, sdktest.Options{Provider: provider, Config: config, Manifest: manifest, Secrets: []string{"api_key"}})
	send := sdktest.Handler(t, manifest, map[string]string{"api_key": "k"}, http.Handler(e.stub))
	e.HTTP = func(r sdktest.Request) sdktest.Reply {
		assert.Equal(t, "Bearer {{secret:api_key}}", r.Headers["authorization"])
		r.Body = means(r.Body)
		return send(r)
	}
	return e
}

func newHybrid(t test) *embedding { return newEmbedding(t, "hybrid", `{`+endpoint+`}`) }

func (e *embedding) down(t test) {
	require.NoError(t, e.stub.Fail(llm.Fault{Purpose: "embeddings", Mode: llm.Status, Status: 503, Content: "busy"}))
}

func (e *embedding) ask(t test, query string, change func(*abi.RetrieveRequest)) *abi.RetrieveResult {
	return mustRetrieve(t, e.Host, query, change)
}

func TestAnEmbedderFindsWhatSharesNoWord(t *testing.T) {
	for _, provider := range []string{"hybrid", "recall"} {
		e := newEmbedding(t, provider, `{`+endpoint+`}`)
		songs(t, e.Host)
		record(t, e.Host, testEvent("ship", 100, "The vessel leaves at noon."), testEvent("late", 200, "Good night."))
		result := e.ask(t, "boat", tokens(100))
		assert.Equal(t, "message#121", result.Evidence[0].NativeID, provider)
		assert.Equal(t, abi.ResultResults, result.Trace.ResultState)
		assert.Empty(t, result.Trace.Warnings)
		assert.InDelta(t, 1.0/61, *result.Evidence[0].Score, 1e-12, "the first of one ranking")
		assert.Equal(t, `"stub"`, string(result.Trace.Effective["embedder_model"]))
		plain := newRecall(t)
		if provider == "recall" {
			songs(t, plain)
			record(t, plain, testEvent("ship", 100, "The vessel leaves at noon."), testEvent("late", 200, "Good night."))
			assert.Nil(t, mustRetrieve(t, plain, "boat", tokens(100)).Evidence[0].Score, "words alone do not find it")
		}
	}
}

// TestFusionIsTheSumOfReciprocalRanks computes the scores from the two rankings.
func TestFusionIsTheSumOfReciprocalRanks(t *testing.T) {
	words, vectors := []hit{{7, 9}, {3, 4}, {5, 1}}, []hit{{3, .9}, {8, .8}, {7, .1}}
	var got []string
	for _, x := range fuse(words, vectors) {
		got = append(got, fmt.Sprintf("%d %.6f", x.message, x.score))
	}
	assert.Equal(t, []string{fmt.Sprintf("3 %.6f", 1.0/62+1.0/61), fmt.Sprintf("7 %.6f", 1.0/61+1.0/63),
		fmt.Sprintf("8 %.6f", 1.0/62), fmt.Sprintf("5 %.6f", 1.0/63)}, got)
	tied := fuse([]hit{{9, 1}}, []hit{{2, 1}})
	assert.Equal(t, []int64{2, 9}, []int64{tied[0].message, tied[1].message}, "equal ones in the order of their arrival")
}

func TestVectorsKeepTheirDirection(t *testing.T) {
	e := newHybrid(t)
	texts := []string{"green tea", "a harbour in the north", "tea and harbour", "songs"}
	for i, text := range texts {
		record(t, e.Host, testEvent(fmt.Sprint("e", i), i, text))
	}
	query := llm.Embed("Mara: tea and harbour", 1024)
	s := stateOf(e)
	for _, x := range nearest(s, query, int64(len(texts)), 10) {
		want := llm.Cosine(query, llm.Embed("Mara: "+texts[x.message-1], 1024))
		assert.InDelta(t, want, x.score, 0.01)
	}
	require.NoError(t, s.Err())
	assert.Len(t, packVector(query), 1025, "a byte for each component")
}

func TestATurnIsStoredThoughTheEmbedderFails(t *testing.T) {
	faults := map[string]llm.Fault{"503": {Mode: llm.Status, Status: 503}, "401": {Mode: llm.Status, Status: 401},
		"400": {Mode: llm.Status, Status: 400}, "half a body": {Mode: llm.CutBody}}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			e := newHybrid(t)
			fault.Purpose = "embeddings"
			require.NoError(t, e.stub.Fail(fault))
			receipt := record(t, e.Host, testEvent("e1", 1, "The vessel leaves at noon."))
			assert.Equal(t, abi.StatusCommitted, receipt.Status)
			require.Len(t, receipt.Warnings, 1)
			assert.Contains(t, receipt.Warnings[0], "embedder_failed: ")
			ready, err := sdktest.Do(e.Host, abi.OpReadiness, scope, readiness, &abi.ReadinessMarkers{})
			require.NoError(t, err)
			assert.Equal(t, abi.ReadinessDegraded, ready.Status)
			assert.Contains(t, ready.Warnings[0], "not_embedded: 1 of 1 messages")
			result := e.ask(t, "noon", nil)
			assert.Len(t, result.Evidence, 1, "words find it")
			assert.Contains(t, result.Trace.Warnings[0], "not_embedded: 1 of 1 messages")
			well, err := sdktest.Do(e.Host, abi.OpHealth, scope, health, &abi.Empty{})
			require.NoError(t, err)
			assert.Equal(t, abi.HealthDegraded, well.Status)

			e.stub.ClearFaults()
			assert.Empty(t, record(t, e.Host, testEvent("e2", 2, "Good night.")).Warnings, "the next turn embeds both")
			ready, err = sdktest.Do(e.Host, abi.OpReadiness, scope, readiness, &abi.ReadinessMarkers{})
			require.NoError(t, err)
			assert.Equal(t, abi.ReadinessReady, ready.Status)
			assert.Equal(t, "message#1", e.ask(t, "boat", nil).Evidence[0].NativeID)
			well, err = sdktest.Do(e.Host, abi.OpHealth, scope, health, &abi.Empty{})
			require.NoError(t, err)
			assert.Equal(t, abi.HealthOK, well.Status)
		})
	}
}

func TestARetrievalWithoutTheEmbedderSaysSo(t *testing.T) {
	e := newHybrid(t)
	record(t, e.Host, testEvent("e1", 1, "The vessel leaves at noon."), testEvent("e2", 2, "Good night."))
	e.down(t)
	result := e.ask(t, "noon", nil)
	assert.Equal(t, []string{"The vessel leaves at noon."}, lines(result))
	assert.Equal(t, abi.ResultDegraded, result.Trace.ResultState)
	require.Len(t, result.Trace.Warnings, 1)
	assert.Equal(t, "embedder_failed: unavailable: the endpoint answered 503: busy; found by words alone", result.Trace.Warnings[0])
}

func TestABatchIsEmbeddedInFewCalls(t *testing.T) {
	e := newHybrid(t)
	batch := new(abi.EventBatch)
	for i := range 50 {
		batch.Events = append(batch.Events, *testEvent(fmt.Sprint("e", i), i, "tea", "coffee"))
	}
	_, err := sdktest.Do(e.Host, abi.OpRecordEvents, scope, recordEvents, batch)
	require.NoError(t, err)
	assert.Len(t, e.Sent, 4, "100 messages, 32 in a call")
	e.down(t)
	batch.Events = []abi.MemoryEvent{*testEvent("e0", 0, "tea", "coffee"), *testEvent("e50", 50, "milk")}
	receipts, err := sdktest.Do(e.Host, abi.OpRecordEvents, scope, recordEvents, batch)
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(receipts.Receipts[0].Receipt.Warnings, " "), "embedder_failed", "a duplicate has its vectors")
	assert.Contains(t, strings.Join(receipts.Receipts[1].Receipt.Warnings, " "), "embedder_failed")
}

// TestAMemoryThatIsOlderThanItsEmbedder: existing messages are embedded as turns arrive, and all again for another
// model.
func TestAMemoryThatIsOlderThanItsEmbedder(t *testing.T) {
	e := newEmbedding(t, "recall", `{}`)
	for i := range 700 {
		record(t, e.Host, testEvent(fmt.Sprint("e", i), i, fmt.Sprint("Song number ", i)))
	}
	assert.Empty(t, e.Sent, "nothing is asked without an embedder")
	configure := func(model string) {
		e.Config = `{` + strings.ReplaceAll(endpoint, "stub", model) + `}`
		e.Reframe(e.Frame) // a new instance
	}
	configure("one")
	record(t, e.Host, testEvent("f1", 800, "The vessel leaves at noon."))
	assert.Len(t, e.Sent, requestsAtOnce)
	assert.Equal(t, "640", string(e.ask(t, "boat", nil).Trace.Details["messages_embedded"]))
	record(t, e.Host, testEvent("f2", 801, "Good night."))
	result := e.ask(t, "boat", tokens(100))
	assert.Equal(t, "702", string(result.Trace.Details["messages_embedded"]))
	assert.Equal(t, "message#701", result.Evidence[0].NativeID)

	configure("two")
	sent := len(e.Sent)
	result = e.ask(t, "boat", tokens(100))
	assert.Len(t, e.Sent, sent, "vectors of another model are not compared")
	assert.Contains(t, result.Trace.Warnings[0], "not_embedded: 702 of 702")
	record(t, e.Host, testEvent("f3", 802, "Good morning."))
	assert.Len(t, e.Sent, sent+requestsAtOnce)
}

func TestForgettingRemovesVectors(t *testing.T) {
	e := newHybrid(t)
	record(t, e.Host, testEvent("e1", 1, "The vessel leaves at noon."), testEvent("e2", 2, "Good night."), testEvent("e3", 3, "A physician came."))
	_, err := sdktest.Do(e.Host, abi.OpForget, scope, forget, &abi.ForgetRequest{Scope: scope, EventIDs: []string{"e1"}})
	require.NoError(t, err)
	var sizes []int
	for entry := range stateOf(e).Entries(vectorLog, 1, 10) {
		sizes = append(sizes, len(entry.Data))
	}
	assert.Equal(t, []int{1, 1025, 1025}, sizes)
	assert.NotContains(t, e.ask(t, "boat", nil).FormattedContext, "vessel")
	assert.Equal(t, "message#3", e.ask(t, "doctor", nil).Evidence[0].NativeID, "the others keep theirs")
	record(t, e.Host, testEvent("e4", 4, "The boat is back."))
	assert.Equal(t, "message#4", e.ask(t, "ship", nil).Evidence[0].NativeID)
}

func TestALongTextIsSentShorter(t *testing.T) {
	e := newHybrid(t)
	send := e.HTTP
	e.HTTP = func(r sdktest.Request) sdktest.Reply {
		if len(r.Body) > 2000 {
			return sdktest.Reply{Status: 400, Body: `{"error":{"message":"maximum context length"}}`}
		}
		return send(r)
	}
	receipt := record(t, e.Host, testEvent("e1", 1, "The vessel. "+strings.Repeat("ä", 9000)))
	assert.Empty(t, receipt.Warnings)
	require.Len(t, e.Sent, 2)
	assert.Less(t, len(e.Sent[0].Body), textBytes+200)
	assert.Less(t, len(e.Sent[1].Body), shortBytes+200)
}

func TestAnswersThatAreNoVectors(t *testing.T) {
	good := `{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[1e-3,0]}]}`
	vectors, err := parseVectors([]byte(good), 2)
	require.NoError(t, err)
	assert.Equal(t, [][]float32{{1e-3, 0}, {0, 2}}, vectors, "by index")
	for _, bad := range []string{``, `{}`, `[]`, `{"data":[]}`, `{"data":null}`, `{"error":"x"}`, good[:40],
		`{"data":[{"index":0,"embedding":[1,0]}]}`, `{"data":[{"embedding":[1,0]},{"embedding":[1]}]}`,
		`{"data":[{"embedding":[1,0]},{"embedding":[0,0]}]}`, `{"data":[{"embedding":[1,0]},{"embedding":"AAAA"}]}`,
		`{"data":[{"embedding":[1,0]},{"embedding":[1e60,1]}]}`, `{"data":[{"embedding":[1]},{"index":-1,"embedding":[1]}]}`} {
		_, err := parseVectors([]byte(bad), 2)
		assert.Error(t, err, bad)
	}
	_, err = parseVectors([]byte(`{"data":[{"embedding":[]}]}`), 1)
	assert.Error(t, err)
	assert.Equal(t, []byte{1, 127, 0xc0, 0}, packVector([]float32{2, -1, 0})[:4], "the largest is 127, half of it 64")
	assert.False(t, math.Signbit(norm([]float32{-1})))
}

func TestWhoNeedsAnEmbedder(t *testing.T) {
	for provider, c := range map[string]struct{ config, says string }{
		"hybrid": {`{}`, "config of hybrid: embedder is missing"}, "bm25": {`{` + endpoint + `}`, "bm25 ranks by words alone"},
	} {
		e := newEmbedding(t, provider, c.config)
		_, err := sdktest.Do(e.Host, abi.OpHealth, scope, health, &abi.Empty{})
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
		assert.ErrorContains(t, err, c.says)
	}
}

func stateOf(e *embedding) *state.State { return state.Of(e.Call(abi.OpRetrieve, scope)) }

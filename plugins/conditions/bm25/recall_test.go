package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/frames"
	"github.com/memhost/memhost/sdk/sdktest"
)

func newRecall(t test) *sdktest.Host {
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	return sdktest.New(t, sdktest.Options{Provider: "recall", Config: `{"order":"time"}`, Manifest: manifest})
}

func mustRetrieve(t test, h *sdktest.Host, query string, change func(*abi.RetrieveRequest)) *abi.RetrieveResult {
	r := &abi.RetrieveRequest{Query: query, Scope: scope, SessionID: "new"}
	if change != nil {
		change(r)
	}
	result, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, r)
	require.NoError(t, err)
	again, err := sdktest.Do(h, abi.OpFormatContext, scope, formatContext,
		&abi.FormatRequest{Result: *result, Budget: r.Budget, Scope: scope})
	require.NoError(t, err)
	require.Equal(t, result.FormattedContext, again.FormattedContext, "format_context gives the same string")
	return result
}

// songs records 60 turns of a question and an answer, of which turn 20 is about a harbour.
func songs(t test, h *sdktest.Host) {
	for i := range 60 {
		question, answer := fmt.Sprintf("Tell me number %d of the songs.", i), fmt.Sprintf("Song %d, I would say.", i)
		if i == 20 {
			question, answer = "Where did we anchor?", "In the harbour of Roscoff."
		}
		record(t, h, testEvent(fmt.Sprint("e", i), i, question, answer))
	}
}

func tokens(n int64) func(*abi.RetrieveRequest) {
	return func(r *abi.RetrieveRequest) { r.Budget.MaxTokens = &n }
}

func TestRecallShowsAHitWithWhatWasSaidAroundIt(t *testing.T) {
	h := newRecall(t)
	songs(t, h)
	result := mustRetrieve(t, h, "Which harbour was it?", tokens(200))
	shown := lines(result)
	at := strings.Join(shown, "\n")
	assert.Contains(t, at, "Where did we anchor?\nIn the harbour of Roscoff.\nTell me number 21 of the songs.",
		"the hit has both of its neighbours, in the order of time")
	assert.Equal(t, "message#42", result.Evidence[0].NativeID, "the hit comes first")
	assert.NotNil(t, result.Evidence[0].Score)
	assert.Nil(t, result.Evidence[1].Score, "a neighbour shares no word")
	assert.Equal(t, "Song 59, I would say.", shown[len(shown)-1], "the rest of the budget has the newest messages")
	assert.LessOrEqual(t, *result.Trace.TokenCount, int64(200))
}

func TestRecallGivesAGreetingTheNewestTurns(t *testing.T) {
	h := newRecall(t)
	songs(t, h)
	for _, greeting := range []string{"Bonjour!", "", "Mara, tell me", "👋"} { // "tell", "me" and "mara" are in most messages
		shown := lines(mustRetrieve(t, h, greeting, tokens(100)))
		require.NotEmpty(t, shown, greeting)
		assert.Equal(t, "Song 59, I would say.", shown[len(shown)-1], greeting)
		assert.NotContains(t, strings.Join(shown, "\n"), "number 3 ", greeting)
	}
}

func TestRecallHitsAreThoseOfBM25(t *testing.T) {
	h, plain := newRecall(t), newHost(t, "")
	songs(t, h)
	songs(t, plain)
	for _, query := range []string{"harbour", "song 31", "Which number was 12 or 13?"} {
		want := find(t, plain, query, tokens(90))
		got := mustRetrieve(t, h, query, tokens(100))
		var ids []string
		for _, e := range got.Evidence {
			if e.Score != nil {
				ids = append(ids, e.NativeID)
			}
		}
		for i, e := range want.Evidence[:min(len(want.Evidence), len(ids))] {
			assert.Equal(t, e.NativeID, ids[i], query)
		}
	}
}

func TestRecallNewestFollowsTimesAndNotArrival(t *testing.T) {
	h := newRecall(t)
	record(t, h, testEvent("late", 100, "The newest."), testEvent("early", 1, "An import of the past."))
	one := func(r *abi.RetrieveRequest) { r.Budget.MaxItems = new(int64); *r.Budget.MaxItems = 1 }
	assert.Equal(t, []string{"The newest."}, lines(mustRetrieve(t, h, "hello", one)))
	before := func(r *abi.RetrieveRequest) { r.AsOf = "2026-01-12T10:00:00Z" }
	assert.Equal(t, []string{"An import of the past."}, lines(mustRetrieve(t, h, "hello", before)), "as_of leaves out later ones")
	assert.Equal(t, []string{"An import of the past.", "The newest."}, lines(mustRetrieve(t, h, "hello", nil)))
}

func TestRecallForgets(t *testing.T) {
	h := newRecall(t)
	songs(t, h)
	_, err := sdktest.Do(h, abi.OpForget, scope, forget, &abi.ForgetRequest{Scope: scope, EventIDs: []string{"e20", "e59"}})
	require.NoError(t, err)
	for _, query := range []string{"harbour of Roscoff", "Bonjour!"} {
		text := mustRetrieve(t, h, query, nil).FormattedContext
		assert.NotContains(t, text, "Roscoff")
		assert.NotContains(t, text, "Song 59")
	}
	text := mustRetrieve(t, h, "Bonjour!", tokens(60)).FormattedContext
	assert.Contains(t, text, "Song 58")
}

func TestRecallShowsTimesInUTC(t *testing.T) {
	h := newRecall(t)
	e := testEvent("e", 1, "Tea.")
	e.Timestamp = "2026-01-12T09:03:00+01:00"
	record(t, h, e)
	assert.Contains(t, mustRetrieve(t, h, "tea", nil).FormattedContext, "2026-01-12T08:03:00Z] Mara: Tea.")
}

func TestRecallFramesOfConversations(t *testing.T) {
	h := newRecall(t)
	frames.Check(t, h, scope, func(e *abi.MemoryEvent) { record(t, h, e) },
		func(query string) *abi.RetrieveResult { return mustRetrieve(t, h, query, nil) })
}

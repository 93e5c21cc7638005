package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/chats"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

// test is a *testing.T or a *rapid.T.
type test interface {
	sdktest.TB
	require.TestingT
}

var scope = abi.MemoryScope{RunID: "run", PersonaID: "mara"}

func newHost(t test, config string) *sdktest.Host {
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	return sdktest.New(t, sdktest.Options{Provider: "bm25", Config: config, Manifest: manifest})
}

// testEvent is an event with one message for each text; minute orders the events in time.
func testEvent(id string, minute int, texts ...string) *abi.MemoryEvent {
	at := time.Date(2026, 1, 12, 9, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
	e := &abi.MemoryEvent{EventID: id, RunID: "run", UserID: "mara", SessionID: "s1", TurnID: "t-" + id,
		Timestamp: at.Format(time.RFC3339)}
	for i := range texts {
		e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Name: "Mara", Content: &texts[i]})
	}
	return e
}

func record(t test, h *sdktest.Host, events ...*abi.MemoryEvent) (last *abi.WriteReceipt) {
	for _, e := range events {
		var err error
		last, err = sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, e)
		require.NoError(t, err)
	}
	return last
}

// find retrieves, and checks what holds for every retrieval: the budget, the evidence, and that format_context gives
// the same string.
func find(t test, h *sdktest.Host, query string, change func(*abi.RetrieveRequest)) *abi.RetrieveResult {
	r := &abi.RetrieveRequest{Query: query, Scope: scope, SessionID: "new"}
	if change != nil {
		change(r)
	}
	result, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, r)
	require.NoError(t, err)
	require.Equal(t, h.Call(abi.OpRetrieve, scope).CountTokens(result.FormattedContext), *result.Trace.TokenCount)
	if r.Budget.MaxTokens != nil {
		require.LessOrEqual(t, *result.Trace.TokenCount, *r.Budget.MaxTokens)
	}
	again, err := sdktest.Do(h, abi.OpFormatContext, scope, formatContext,
		&abi.FormatRequest{Result: *result, Budget: r.Budget, Scope: scope})
	require.NoError(t, err)
	require.Equal(t, result.FormattedContext, again.FormattedContext, "format_context gives the same string")
	require.Equal(t, *result.Trace.RetrievedCount, int64(len(result.Evidence)))
	for i, e := range result.Evidence {
		require.Equal(t, fmt.Sprintf("/calls/0/body/%d", i), e.Pointer)
		require.Equal(t, int64(i+1), e.Rank)
		require.True(t, i == 0 || *e.Score <= *result.Evidence[i-1].Score, "best first")
	}
	return result
}

func lines(result *abi.RetrieveResult) (texts []string) {
	for line := range strings.Lines(result.FormattedContext) {
		if _, text, found := strings.Cut(line, "Mara: "); found {
			texts = append(texts, strings.TrimSpace(text))
		}
	}
	return texts
}

// plainTerms computes terms in another way: it puts blanks around ideographs and splits the text at everything that is
// not part of a word.
func plainTerms(text string) []string {
	ideograph := func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }
	spaced := ""
	for _, r := range text {
		if ideograph(r) {
			spaced += " " + string(r) + " "
		} else {
			spaced += string(r)
		}
	}
	words := strings.FieldsFunc(spaced, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) &&
			!ideograph(r)
	})
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	return words
}

// plainScores computes the scores one document at a time, directly by the formula.
func plainScores(documents []string, query string) []float64 {
	var words [][]string
	total := 0
	for _, d := range documents {
		words = append(words, plainTerms(d))
		total += len(words[len(words)-1])
	}
	scores := make([]float64, len(documents))
	average := float64(total) / float64(len(documents))
	for _, term := range plainTerms(query) {
		with := 0
		for _, d := range words {
			if slices.Contains(d, term) {
				with++
			}
		}
		idf := math.Log(1 + (float64(len(documents)-with)+0.5)/(float64(with)+0.5))
		for i, d := range words {
			f := 0.0
			for _, w := range d {
				if w == term {
					f++
				}
			}
			scores[i] += idf * f * 2.2 / (f + 1.2*(0.25+0.75*float64(len(d))/average))
		}
	}
	return scores
}

// compare checks a result against the scores of all documents, given by number.
func compare(t test, result *abi.RetrieveResult, scores []float64) {
	var want []int
	for i, score := range scores {
		if score > 0 {
			want = append(want, i)
		}
	}
	slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	require.Equal(t, fmt.Sprint(len(want)), string(result.Trace.Details["messages_matching"]))
	require.Len(t, result.Evidence, min(len(want), 1000))
	for i, e := range result.Evidence {
		require.InDelta(t, scores[want[i]], *e.Score, 1e-9)
		var number int
		_, err := fmt.Sscanf(e.NativeID, "message#%d", &number)
		require.NoError(t, err)
		require.InDelta(t, scores[number-1], *e.Score, 1e-9)
	}
}

func TestTermsAreThoseOfAnotherImplementation(t *testing.T) {
	assert.Equal(t, []string{"tea", "2", "cups", "喝", "茶", "for", "café", "ü", "ー"},
		terms("Tea, 2 cups 喝茶 for CAFÉ-Ü ー"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("aB1 ,喝茶ひカ〇ーÄß\u0301")))).Draw(t,
			"text")
		got := terms(text)
		require.Equal(t, len(plainTerms(text)), len(got))
		for i, want := range plainTerms(text) {
			require.Equal(t, want, got[i])
		}
	})
	long := strings.Repeat("x", 600)
	assert.Len(t, terms(long)[0], 65)
}

func TestScoresAreThoseOfAnotherImplementation(t *testing.T) {
	word := rapid.SampledFrom([]string{"tea", "Tea", "coffee", "cat", "lake", "the", "a", "7", "茶", "喝", "of", "Oslo"})
	rapid.Check(t, func(t *rapid.T) {
		h := newHost(t, `{"max_items":1000}`)
		var documents []string
		for n := range rapid.IntRange(1, 40).Draw(t, "events") {
			text := strings.Join(rapid.SliceOfN(word, 1, 12).Draw(t, "words"),
				rapid.SampledFrom([]string{" ", ", "}).Draw(t, "between"))
			record(t, h, testEvent(fmt.Sprint("e", n), n, text))
			documents = append(documents, "Mara: "+text)
		}
		query := strings.Join(rapid.SliceOfN(word, 1, 10).Draw(t, "query"), " ")
		compare(t, find(t, h, query, nil), plainScores(documents, query))
	})
}

// TestConversations queries the conversations with their own texts; CHATS=DIR uses those of a folder.
func TestConversations(t *testing.T) {
	events, err := chats.Events()
	require.NoError(t, err)
	h := newHost(t, `{"max_items":1000}`)
	var documents []string
	for i := range events {
		e := &events[i]
		e.EventID, e.RunID, e.UserID, e.AgentID = fmt.Sprint("e", i), scope.RunID, scope.PersonaID, ""
		record(t, h, e)
		for _, m := range e.Messages {
			if m.Content != nil && strings.TrimSpace(*m.Content) != "" {
				documents = append(documents, cmp.Or(m.Name, string(m.Role))+": "+*m.Content)
			}
		}
	}
	require.NotEmpty(t, documents)
	for i := 0; i < len(documents); i += 1 + len(documents)/40 {
		query := strings.Join(plainTerms(documents[i])[:min(10, len(plainTerms(documents[i])))], " ")
		compare(t, find(t, h, query, nil), plainScores(documents, query))
	}
	t.Logf("%d messages", len(documents))
}

func TestOrderAndBudgets(t *testing.T) {
	for order, want := range map[string][]string{"relevant": {"green tea, black tea", "tea for two people at the lake"},
		"time": {"tea for two people at the lake", "green tea, black tea"}} {
		h := newHost(t, `{"order":"`+order+`"}`)
		record(t, h, testEvent("e1", 1, "tea for two people at the lake"), testEvent("e2", 2, "green tea, black tea"),
			testEvent("e3", 3, "a cat", "milk"))
		r := find(t, h, "tea", nil)
		assert.Equal(t, want, lines(r))
		assert.Equal(t, "e2", r.Evidence[0].SourceEventIDs[0], "evidence is best first")
		assert.Equal(t, *r.Trace.TopScore, *r.Evidence[0].Score)
		assert.False(t, *r.Trace.Truncated)
		one := int64(1)
		r = find(t, h, "tea", func(q *abi.RetrieveRequest) { q.Budget.MaxItems = &one })
		assert.Equal(t, []string{"green tea, black tea"}, lines(r))
		assert.True(t, *r.Trace.Truncated)
		assert.Empty(t, find(t, h, "nothing of this", nil).FormattedContext)
		for most := range int64(80) {
			find(t, h, "tea cat milk", func(q *abi.RetrieveRequest) { q.Budget.MaxTokens = &most })
		}
	}
}

func TestAsOfLeavesOutWhatWasSaidLater(t *testing.T) {
	h := newHost(t, `{}`)
	record(t, h, testEvent("e1", 1, "tea"), testEvent("e2", 20, "tea tea"))
	r := find(t, h, "tea", func(q *abi.RetrieveRequest) { q.AsOf = "2026-01-12T09:10:00Z" })
	assert.Equal(t, []string{"tea"}, lines(r))
	assert.Equal(t, "native", r.Trace.AsOfMode)
}

func TestARepeatedEventAndAnEmptyOne(t *testing.T) {
	h := newHost(t, `{}`)
	first := record(t, h, testEvent("e1", 1, "tea", "cake"))
	assert.Equal(t, []string{"message#1", "message#2"}, first.NativeIDs)
	before := h.Keys(scope)
	again := record(t, h, testEvent("e1", 1, "tea", "cake"))
	assert.True(t, again.Duplicate)
	assert.Equal(t, first.NativeIDs, again.NativeIDs)
	assert.Equal(t, before, h.Keys(scope))
	_, err := sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, testEvent("e1", 1, "coffee"))
	assert.Equal(t, abi.CodeConflict, abi.CodeOf(err))
	assert.Equal(t, abi.StatusNotRetained, record(t, h, testEvent("e2", 2, " ")).Status)
	f, err := sdktest.Do(h, abi.OpFindEvent, scope, findEvent, &abi.FindEventRequest{EventID: "e1"})
	require.NoError(t, err)
	assert.Equal(t, "present", f.Found)
	batch := &abi.EventBatch{Events: []abi.MemoryEvent{*testEvent("e1", 1, "coffee"), *testEvent("e3", 3, "coffee")}}
	receipts, err := sdktest.Do(h, abi.OpRecordEvents, scope, recordEvents, batch)
	require.NoError(t, err)
	assert.Equal(t, abi.CodeConflict, abi.CodeOf(receipts.Receipts[0].Error))
	assert.Equal(t, []string{"message#3"}, receipts.Receipts[1].Receipt.NativeIDs)
	inventory, err := sdktest.Do(h, abi.OpInventory, scope, inventory, &abi.Empty{})
	require.NoError(t, err)
	assert.EqualValues(t, 3, inventory.Kinds[0].Count)
}

// TestMessagesNearEachOtherAreReadAtOnce: the number of reads does not grow with the messages of a retrieval if these
// are close together in the log, and messages between them that are not shown are not read in large numbers.
func TestMessagesNearEachOtherAreReadAtOnce(t *testing.T) {
	for _, provider := range []string{"bm25", "recall"} {
		h := newHost(t, `{}`)
		h.Provider = provider
		for n := range 310 {
			text := "cake"
			if n < 30 || n%100 == 0 {
				text = "tea"
			}
			record(t, h, testEvent(fmt.Sprint("e", n), n, fmt.Sprint(text, " number ", n)))
		}
		reads, bytes := h.Reads, h.ValueBytes
		r, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, &abi.RetrieveRequest{Query: "tea", Scope: scope,
			SessionID: "new", Budget: abi.ContextBudget{MaxItems: sdk.Ptr(int64(33))}})
		require.NoError(t, err)
		require.Len(t, r.Evidence, 33)
		assert.LessOrEqual(t, h.Reads-reads, 12, provider)
		assert.Less(t, h.ValueBytes-bytes, int64(33*500), provider)
	}
}

// TestBlocks has terms whose postings fill several blocks. The cost of a record does not grow, and the scores stay the
// same.
func TestBlocks(t *testing.T) {
	h := newHost(t, `{"max_items":1000}`)
	var documents []string
	work := func(from, to int) int64 {
		before := h.ValueBytes
		for n := from; n < to; n++ {
			text := fmt.Sprintf("tea number %d", n)
			record(t, h, testEvent(fmt.Sprint("e", n), n, text))
			documents = append(documents, "Mara: "+text)
		}
		return h.ValueBytes - before
	}
	early := work(0, 1000)
	late := work(1000, 3000)
	assert.Less(t, late, 3*early, "what a record reads does not grow with the messages")
	assert.Greater(t, len(slices.DeleteFunc(h.Keys(scope), func(k string) bool {
		return !strings.HasPrefix(k,
			"block/tea/")
	})), 2)
	compare(t, find(t, h, "tea 2999 number 7", nil), plainScores(documents, "tea 2999 number 7"))
}

func TestAScopeIsReadyKeepsItsEventsAndForgetsThemWithAReset(t *testing.T) {
	h := newHost(t, `{}`)
	setup, err := sdktest.Do(h, abi.OpSetupScope, scope, setupScope, &abi.Empty{})
	require.NoError(t, err)
	assert.True(t, setup.Ready)
	record(t, h, testEvent("e1", 0, "green tea"))
	ready, err := sdktest.Do(h, abi.OpReadiness, scope, readiness, &abi.ReadinessMarkers{})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessReady, ready.Status)
	well, err := sdktest.Do(h, abi.OpHealth, scope, health, &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.HealthOK, well.Status)
	assert.Len(t, find(t, h, "tea", nil).Evidence, 1)
	receipt, err := sdktest.Do(h, abi.OpResetScope, scope, resetScope, &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.ResetDone, receipt.Status)
	assert.Empty(t, find(t, h, "tea", nil).Evidence)
}

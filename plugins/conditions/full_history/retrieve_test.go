package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

func TestTurnsComeInOrderOfTimeAndThenOfArrival(t *testing.T) {
	h := newHost(t, "")
	zoned := turnAt("zoned", 0, "x")
	zoned.Timestamp = "2026-01-12T11:30:00+02:00" // 09:30 in UTC
	record(t, h, turnAt("late", 60, "x"), turnAt("early", 0, "x"), turnAt("tie-1", 30, "x"), zoned,
		turnAt("tie-2", 30, "x"))
	assert.Equal(t, []string{"early", "tie-1", "zoned", "tie-2", "late"}, shownEventIDs(find(t, h, retrieveRequest(abi.ContextBudget{}))))
}

func TestWhatARetrievalTells(t *testing.T) {
	h := newHost(t, "")
	record(t, h, turnAt("e1", 0, "tea"), turnAt("e2", 5, "coffee"))
	r := retrieveRequest(abi.ContextBudget{MaxTokens: new(int64(500)), MinTokens: new(int64(200))})
	r.Context, r.Attribute, r.Filters = "work", "hot_drink", map[string]abi.Raw{"cross_context": abi.Raw("true"),
		"topic": abi.Raw(`"x"`)}
	result := find(t, h, r)
	trace := result.Trace
	want := "<memory-context backend=\"full_history\" scope=\"run/mara\" condition_kind=\"control\">\n" +
		"[2026-01-12T09:00:00Z]\nuser: tea\n[2026-01-12T09:05:00Z]\nuser: coffee\n</memory-context>"
	assert.Equal(t, want, result.FormattedContext)
	assert.Equal(t, int64((len(want)+3)/4), *trace.TokenCount)
	assert.Equal(t, 200-*trace.TokenCount, *trace.BudgetShortfall)
	assert.Equal(t, map[string]abi.BudgetUse{"max_tokens": {How: "formatter",
		Shown: new(*trace.TokenCount - *trace.FrameTokens)},
		"min_tokens": {How: "advisory"}}, trace.BudgetApplied)
	assert.Equal(t, "full_history", trace.BackendName)
	assert.Equal(t, abi.ResultResults, trace.ResultState)
	assert.Equal(t, []string{"2026-01-12T09:00:00Z", "2026-01-12T09:05:00Z"},
		[]string{trace.OldestRetrievedAt, trace.NewestRetrievedAt})
	assert.Equal(t, abi.TimeEvent, trace.TimeBasis)
	assert.Equal(t, abi.FilterNone, trace.FilterMode)
	assert.Equal(t, map[string]string{"attribute": "none", "topic": "none"},
		trace.FiltersApplied, "the context was not asked for")
	assert.False(t, *trace.Truncated)
	assert.Empty(t, trace.Warnings)
	assert.Equal(t, map[string]abi.Raw{"turns_stored": abi.Raw("2"),
		"turns_kept": abi.Raw("2"), "turns_left_out": abi.Raw("0")}, trace.Details)
	assert.Equal(t, map[string]abi.Raw{"order": abi.Raw(`"chronological"`),
		"current_session": abi.Raw(`"include"`), "max_tokens": abi.Raw("500")}, trace.Effective)
	first := result.Evidence[0]
	assert.Equal(t, abi.Evidence{Pointer: "/calls/0/body/0", Rank: 1, NativeID: first.NativeID, NativeType: "turn",
		CreatedAt: "2026-01-12T09:00:00Z",
		TimeBasis: abi.TimeEvent, SourceEventIDs: []string{"e1"}, Shown: first.Shown}, first)
	assert.Equal(t, "user: tea", want[first.Shown.Start:first.Shown.End])
	assert.Equal(t, []string{first.NativeID, result.Evidence[1].NativeID}, trace.NativeIDs)
	for _, filledByHost := range []any{trace.Operation, trace.Scope, trace.Generation, trace.ConditionKind,
		trace.LatencyMS, trace.Tokenizer, trace.IO} {
		assert.Empty(t, filledByHost)
	}
}

func TestTheNewestTurnsWinWhenTheBudgetIsShort(t *testing.T) {
	h := newHost(t, "")
	for i := range 50 {
		record(t, h, turnAt(fmt.Sprint("e", i), i, strings.Repeat("tea ", 20)))
	}
	result := find(t, h, retrieveRequest(tokens(200)))
	assert.Equal(t, []string{"e44", "e45", "e46", "e47", "e48", "e49"}, shownEventIDs(result))
	assert.True(t, *result.Trace.Truncated)
	assert.Equal(t, abi.Raw("44"), result.Trace.Details["turns_left_out"])

	result = find(t, h, retrieveRequest(abi.ContextBudget{MaxItems: new(int64(2))}))
	assert.Equal(t, []string{"e48", "e49"}, shownEventIDs(result))
	assert.True(t, *result.Trace.Truncated)

	result = find(t, h, retrieveRequest(abi.ContextBudget{MaxItems: new(int64(50))}))
	assert.Len(t, shownEventIDs(result), 50)
	assert.False(t, *result.Trace.Truncated)
}

func TestManySmallTurnsFillTheBudgetThoughTheirCountsAddUpToMore(t *testing.T) {
	h := newHost(t, "")
	for i := range 500 {
		record(t, h, turnAt(fmt.Sprint(i), i, "yes, no")) // 37 bytes, 10 tokens rounded up
	}
	for _, limit := range []int64{1000, 2000, 4000} {
		result := find(t, h, retrieveRequest(tokens(limit)))
		assert.Greater(t, *result.Trace.TokenCount, limit-17)
		assert.Equal(t, "499", shownEventIDs(result)[len(shownEventIDs(result))-1])
		assert.True(t, slices.IsSortedFunc(result.Evidence, func(a, b abi.Evidence) int {
			return strings.Compare(a.CreatedAt,
				b.CreatedAt)
		}))
	}
}

func TestASingleTurnTooLargeIsCut(t *testing.T) {
	h := newHost(t, "")
	record(t, h, turnAt("e1", 0, "small"), turnAt("e2", 1, strings.Repeat("tea and ", 1000)))
	result := find(t, h, retrieveRequest(tokens(100)))
	assert.Equal(t, []string{"e2"}, shownEventIDs(result))
	assert.Contains(t, result.FormattedContext, "tea and\n[cut to fit the budget]\n</memory-context>")
	assert.True(t, strings.HasPrefix(result.Trace.Warnings[0], "turn_cut: "))
	assert.True(t, *result.Trace.Truncated)

	result = find(t, h, retrieveRequest(tokens(10)))
	assert.Empty(t, result.FormattedContext)
	assert.Equal(t, abi.ResultEmpty, result.Trace.ResultState)
	assert.True(t, strings.HasPrefix(result.Trace.Warnings[0], "budget_too_small: "))
}

func TestAsOfLeavesOutWhatCameLater(t *testing.T) {
	h := newHost(t, "")
	for i := range 10 {
		record(t, h, turnAt(fmt.Sprint("e", i), i, "x"))
	}
	for _, tt := range []struct {
		asOf string
		want []string
	}{
		{"2026-01-12T08:59:59Z", nil},
		{"2026-01-12T09:00:00Z", []string{"e0"}},
		{"2026-01-12T11:02:00+02:00", []string{"e0", "e1", "e2"}},
		{"2026-01-12T09:02:00.000000001Z", []string{"e0", "e1", "e2"}},
		{"2026-01-12T09:01:59.999999999Z", []string{"e0", "e1"}},
	} {
		r := retrieveRequest(abi.ContextBudget{})
		r.AsOf = tt.asOf
		result := find(t, h, r)
		assert.Equal(t, tt.want, shownEventIDs(result), tt.asOf)
		assert.Equal(t, "native", result.Trace.AsOfMode)
	}
}

func TestTheCurrentSessionCanBeLeftOut(t *testing.T) {
	h := newHost(t, `{"current_session":"exclude"}`)
	for i := range 6 {
		e := turnAt(fmt.Sprint("e", i), i, "x")
		e.SessionID = []string{"old", "current"}[i/3]
		record(t, h, e)
	}
	r := retrieveRequest(abi.ContextBudget{MaxItems: new(int64(2))})
	r.SessionID = "current"
	result := find(t, h, r)
	assert.Equal(t, []string{"e1", "e2"}, shownEventIDs(result))
	assert.Equal(t, abi.Raw("3"), result.Trace.Details["turns_of_this_session"])
	assert.Equal(t, abi.Raw(`"exclude"`), result.Trace.Effective["current_session"])

	r.SessionID = "new"
	assert.Equal(t, []string{"e4", "e5"}, shownEventIDs(find(t, h, r)))
}

func TestTheCurrentSessionDoesNotUseUpTheCeiling(t *testing.T) {
	h := newHost(t, `{"current_session":"exclude"}`)
	record(t, h, turnAt("old", 0, "tea"))
	for i := range 3 {
		e := turnAt(fmt.Sprint("e", i), 1+i, strings.Repeat("x", 5<<20))
		e.SessionID = "new"
		record(t, h, e)
	}
	result := find(t, h, retrieveRequest(abi.ContextBudget{}))
	assert.Equal(t, []string{"old"}, shownEventIDs(result))
	assert.False(t, *result.Trace.Truncated)
}

func TestTheSmallerBudgetCounts(t *testing.T) {
	h := newHost(t, `{"max_tokens":100,"current_session":"include"}`)
	for i := range 20 {
		record(t, h, turnAt(fmt.Sprint("e", i), i, "drinks tea"))
	}
	for _, budget := range []abi.ContextBudget{{}, tokens(1000), tokens(100)} {
		result := find(t, h, retrieveRequest(budget))
		assert.LessOrEqual(t, *result.Trace.TokenCount, int64(100))
		assert.Greater(t, *result.Trace.TokenCount, int64(80))
		assert.Equal(t, abi.Raw("100"), result.Trace.Effective["max_tokens"])
	}
	assert.LessOrEqual(t, *find(t, h, retrieveRequest(tokens(60))).Trace.TokenCount, int64(60))
}

func TestWithoutABudgetTheCeilingBoundsTheText(t *testing.T) {
	h := newHost(t, "")
	text := strings.Repeat("tea ", 64<<10) // 256 KiB
	for i := range 20 {
		record(t, h, turnAt(fmt.Sprint("e", i), i, text))
	}
	result := find(t, h, retrieveRequest(abi.ContextBudget{}))
	assert.Len(t, shownEventIDs(result), 15)
	assert.Equal(t, "e19", shownEventIDs(result)[14])
	assert.True(t, *result.Trace.Truncated)
	assert.True(t, strings.HasPrefix(result.Trace.Warnings[0], "history_ceiling: "))
	assert.Equal(t, abi.Raw("5"), result.Trace.Details["turns_left_out"])

	record(t, h, turnAt("huge", 100, strings.Repeat("日本", 1<<20))) // 6 MiB
	result = find(t, h, retrieveRequest(abi.ContextBudget{}))
	assert.Equal(t, []string{"huge"}, shownEventIDs(result))
	assert.True(t, *result.Trace.Truncated)
	assert.True(t, strings.HasPrefix(result.Trace.Warnings[0], "turn_cut: "))
	assert.Equal(t, abi.Raw(`"/calls/0/body/0"`), result.Raw.Notes["clipped"])
	assert.InDelta(t, 4<<20, len(result.FormattedContext), 1000)
	assert.InDelta(t, 4<<20, len(result.Raw.Calls[0].Body), 1000)
	assert.True(t, json.Valid(result.Raw.Calls[0].Body))

	escaped := turnAt("escaped", 101, strings.Repeat("\x01", 2<<20)) // 12 MiB as JSON
	escaped.Metadata = map[string]abi.Raw{"x": abi.Raw(`"` + strings.Repeat("x", 1<<20) + `"`)}
	record(t, h, escaped)
	result = find(t, h, retrieveRequest(abi.ContextBudget{}))
	assert.Equal(t, []string{"escaped"}, shownEventIDs(result))
	assert.Less(t, len(result.Raw.Calls[0].Body), 4<<20+1000)
}

func TestTheWorkGrowsWithTheBudgetAndNotWithTheHistory(t *testing.T) {
	h := newHost(t, "")
	read := func(r *abi.RetrieveRequest) int64 {
		before := h.ValueBytes
		find(t, h, r)
		return h.ValueBytes - before
	}
	add := func(from, to int) {
		batch := &abi.EventBatch{}
		for i := from; i < to; i++ {
			batch.Events = append(batch.Events, *turnAt(fmt.Sprint("e", i), i, strings.Repeat("tea ", 5+i%40)))
		}
		_, err := sdktest.Do(h, abi.OpRecordEvents, scope, recordEvents, batch)
		require.NoError(t, err)
	}
	add(0, 1000)
	small := read(retrieveRequest(tokens(2000)))
	add(1000, 20_000)
	assert.InDelta(t, small, read(retrieveRequest(tokens(2000))), float64(small)/5)
	assert.Less(t, small, int64(2000*3*bytesPerToken))

	before := h.ValueBytes
	record(t, h, turnAt("last", 30_000, "x"))
	assert.Less(t, h.ValueBytes-before, int64(100), "recording reads the counter only")

	record(t, h, turnAt("old giant", -1, strings.Repeat("tea ", 1<<20)),
		turnAt("giant", 20_500, strings.Repeat("tea ", 1<<20)))
	for i := range 150 {
		record(t, h, turnAt(fmt.Sprint("after", i), 21_000+i, "tea"))
	}
	assert.Less(t, read(retrieveRequest(tokens(1000))), int64(1000*4*bytesPerToken),
		"a large turn behind those that fit is not read")

	past := retrieveRequest(tokens(2000))
	past.AsOf = "2026-01-13T09:00:00Z"
	assert.InDelta(t, small, read(past), float64(small)/5)
}

// TestRetrievalAgreesWithAModel compares random histories and requests with a simple implementation: sort all, filter,
// and drop from the front until it fits.
func TestRetrievalAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exclude := rapid.Bool().Draw(t, "exclude")
		h := newHost(t, fmt.Sprintf(`{"current_session":%q,"max_tokens":null}`,
			map[bool]string{false: "include", true: "exclude"}[exclude]))
		h.PageLimit, h.PageBytes = rapid.Int64Range(1, 20).Draw(t, "page limit"), rapid.Int64Range(1, 3000).Draw(t,
			"page bytes")
		var events []*abi.MemoryEvent
		for i := range rapid.IntRange(0, 40).Draw(t, "turns") {
			e := turnAt(fmt.Sprint("e", i), rapid.IntRange(0, 20).Draw(t, "minute"),
				rapid.StringMatching(`[a-z <>/\n]{0,80}`).Draw(t, "text"))
			e.SessionID = rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "session")
			events = append(events, e)
		}
		record(t, h, events...)
		r := retrieveRequest(abi.ContextBudget{})
		r.SessionID = "s2"
		if rapid.Bool().Draw(t, "with max_tokens") {
			r.Budget.MaxTokens = new(rapid.Int64Range(0, 800).Draw(t, "max_tokens"))
		}
		if rapid.Bool().Draw(t, "with max_items") {
			r.Budget.MaxItems = new(rapid.Int64Range(0, 30).Draw(t, "max_items"))
		}
		if rapid.Bool().Draw(t, "with as_of") {
			r.AsOf = turnAt("", rapid.IntRange(-1, 21).Draw(t, "as_of"), "").Timestamp
		}
		result := find(t, h, r)

		eligible := slices.DeleteFunc(slices.Clone(events), func(e *abi.MemoryEvent) bool {
			return r.AsOf != "" && moment(t, e.Timestamp).After(moment(t, r.AsOf)) || exclude && e.SessionID == "s2"
		})
		slices.SortStableFunc(eligible, func(a, b *abi.MemoryEvent) int {
			return moment(t,
				a.Timestamp).Compare(moment(t, b.Timestamp))
		})
		want := eligible
		if r.Budget.MaxItems != nil {
			want = want[max(0, len(want)-int(*r.Budget.MaxItems)):]
		}
		for len(want) > 0 && r.Budget.MaxTokens != nil && h.Call(abi.OpRetrieve,
			scope).CountTokens(element(want)) > *r.Budget.MaxTokens {
			want = want[1:]
		}
		var ids []string
		for _, e := range want {
			ids = append(ids, e.EventID)
		}
		if result.Trace.Warnings = slices.DeleteFunc(result.Trace.Warnings,
			func(w string) bool { return strings.HasPrefix(w, "budget_too_small: ") }); len(result.Trace.Warnings) > 0 {
			require.True(t, strings.HasPrefix(result.Trace.Warnings[0], "turn_cut: "))
			require.Equal(t, []string{eligible[len(eligible)-1].EventID}, shownEventIDs(result))
			ids = shownEventIDs(result)
		} else {
			require.Equal(t, element(want), result.FormattedContext)
		}
		require.Equal(t, ids, shownEventIDs(result))
		require.Equal(t, len(ids) < len(eligible) || len(want) < len(ids), *result.Trace.Truncated)
		if n, known := result.Trace.Details["turns_left_out"]; known {
			require.Equal(t, fmt.Sprint(len(eligible)-len(ids)), string(n))
		}
	})
}

func moment(t require.TestingT, s string) time.Time {
	at, err := abi.ParseTime(s)
	require.NoError(t, err)
	return at
}

// noFailTB is for code that cannot fail.
type noFailTB struct{ sdktest.TB }

func (noFailTB) Helper() {}

// element returns the whole text of some turns.
func element(events []*abi.MemoryEvent) string {
	if len(events) == 0 {
		return ""
	}
	text := "<memory-context backend=\"full_history\" scope=\"run/mara\" condition_kind=\"control\">\n"
	for _, e := range events {
		text += sdktest.FormattedContent(noFailTB{}, abi.FrameFull, block(e))
	}
	return text + "</memory-context>"
}

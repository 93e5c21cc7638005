package main

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/demo"
	"github.com/memhost/memhost/sdk/sdktest"
)

// drinks is unsorted on purpose. The host's clock is 2026-07-01T12:00:00Z.
const drinks = `{"entries": [
	{"persona_id": "mara", "attribute": "drink", "value": "green tea", "valid_from": "2026-04-21T08:00:00+02:00", "source": "e9"},
	{"persona_id": "mara", "attribute": "drink", "value": "coffee", "valid_from": "2026-01-12T09:00:00+01:00", "valid_until": "2026-04-21T08:00:00+02:00", "source": "e1"},
	{"persona_id": "mara", "attribute": "tone", "value": "formal", "context": "work"},
	{"persona_id": "mara", "attribute": "tone", "value": "casual", "context": "personal"},
	{"persona_id": "mara", "attribute": "tone", "value": "terse", "context": "work", "scenario": "coding"},
	{"persona_id": "mara", "attribute": "diet", "value": "vegetarian"},
	{"persona_id": "mara", "attribute": "diet", "value": "vegan in run two", "run_id": "r2"},
	{"persona_id": "jonas", "attribute": "drink", "value": "black coffee"}]}`

func TestTheFilter(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  func(*abi.RetrieveRequest)
		want []string
	}{
		{"nothing named: all that holds, by attribute and context", func(*abi.RetrieveRequest) {},
			[]string{"vegetarian", "green tea", "casual", "formal", "terse"}},
		{"a context leaves out the other one and keeps the general", func(r *abi.RetrieveRequest) {
			r.Context = "work"
		},
			[]string{"vegetarian", "green tea", "formal", "terse"}},
		{"a context that nothing has keeps the general", func(r *abi.RetrieveRequest) { r.Context = "travel" },
			[]string{"vegetarian", "green tea"}},
		{"labels are equal or not", func(r *abi.RetrieveRequest) {
			r.Context = "Work"
		}, []string{"vegetarian", "green tea"}},
		{"a scenario", func(r *abi.RetrieveRequest) { r.Scenario = "food" },
			[]string{"vegetarian", "green tea", "casual", "formal"}},
		{"an attribute", func(r *abi.RetrieveRequest) { r.Attribute = "tone" }, []string{"casual", "formal", "terse"}},
		{"an attribute that nothing has", func(r *abi.RetrieveRequest) { r.Attribute = "seat" }, []string{}},
		{"all three", func(r *abi.RetrieveRequest) { r.Attribute, r.Context, r.Scenario = "tone", "work", "writing" },
			[]string{"formal"}},
		{"across contexts", func(r *abi.RetrieveRequest) {
			r.Attribute, r.Context, r.Filters = "tone", "work", map[string]abi.Raw{"cross_context": abi.Raw("true")}
		}, []string{"casual", "formal", "terse"}},
		{"not across contexts", func(r *abi.RetrieveRequest) {
			r.Attribute, r.Context, r.Filters = "tone", "personal",
				map[string]abi.Raw{"cross_context": abi.Raw("false")}
		}, []string{"casual"}},
		{"another run", func(r *abi.RetrieveRequest) { r.Attribute, r.Scope.RunID = "diet", "r2" },
			[]string{"vegetarian", "vegan in run two"}},
		{"another persona", func(r *abi.RetrieveRequest) { r.Scope.PersonaID = "jonas" }, []string{"black coffee"}},
		{"before anything was said", func(r *abi.RetrieveRequest) {
			r.Attribute, r.AsOf = "drink",
				"2026-01-12T07:59:59.999Z"
		}, []string{}},
		{"the first moment of a value", func(r *abi.RetrieveRequest) {
			r.Attribute, r.AsOf = "drink",
				"2026-01-12T08:00:00Z"
		}, []string{"coffee"}},
		{"the last moment of a value", func(r *abi.RetrieveRequest) {
			r.Attribute, r.AsOf = "drink",
				"2026-04-21T05:59:59.999999999Z"
		}, []string{"coffee"}},
		{"the first moment of the next", func(r *abi.RetrieveRequest) {
			r.Attribute, r.AsOf = "drink",
				"2026-04-20T22:00:00-08:00"
		}, []string{"green tea"}},
	} {
		for form, config := range map[string]string{"list": drinks, "object": `{"entries":` + drinks + `}`} {
			t.Run(tt.name+", "+form, func(t *testing.T) {
				r := retrieveRequest(abi.ContextBudget{})
				tt.ask(r)
				result := find(t, newHost(t, config), r)
				assert.Equal(t, tt.want, shownValues(result))
				assert.Empty(t, result.Trace.Warnings)
			})
		}
	}
}

func TestTheClockCountsWithoutAsOf(t *testing.T) {
	for now, want := range map[string]string{"2026-02-01T00:00:00Z": "coffee", "2026-04-21T06:00:00Z": "green tea"} {
		h := sdktest.New(t, sdktest.Options{Config: drinks, Now: now})
		r := retrieveRequest(abi.ContextBudget{})
		r.Attribute = "drink"
		result := find(t, h, r)
		assert.Equal(t, []string{want}, shownValues(result))
		assert.Empty(t, result.Trace.AsOfMode)
		assert.Equal(t, `"`+now+`"`, string(result.Trace.Effective["at"]))
	}
}

func TestEqualEntriesStayInOrder(t *testing.T) {
	h := newHost(t, `{"entries":[{"persona_id":"mara","attribute":"a","value":"3","valid_from":"2026-01-01T12:00:00+02:00"},
		{"persona_id":"mara","attribute":"a","value":"4","valid_from":"2026-01-01T10:00:00Z"},
		{"persona_id":"mara","attribute":"a","value":"2","valid_from":"2026-01-01T11:00:00+02:00"},
		{"persona_id":"mara","attribute":"a","value":"5","context":"work"},
		{"persona_id":"mara","attribute":"a","value":"1"}]}`)
	assert.Equal(t, []string{"1", "2", "3", "4", "5"}, shownValues(find(t, h, retrieveRequest(abi.ContextBudget{}))))
}

func TestWhatARetrievalTells(t *testing.T) {
	r := retrieveRequest(abi.ContextBudget{MinTokens: new(int64(100)), MaxTokens: new(int64(500)), MaxItems: new(int64(1))})
	r.Scenario, r.Attribute, r.Context, r.AsOf = "food", "drink", "work", "2026-03-01T00:00:00Z"
	r.Filters = map[string]abi.Raw{"topic": abi.Raw(`"x"`), "context": abi.Raw(`"y"`)}
	result := find(t, newHost(t, drinks), r)
	assert.Equal(t, "<memory-context backend=\"oracle_ipas\" scope=\"run/mara\" condition_kind=\"control\">\n"+
		"- drink: coffee [since 2026-01-12T08:00:00Z; until 2026-04-21T06:00:00Z]\n</memory-context>",
		result.FormattedContext)
	require.Len(t, result.Raw.Calls, 1)
	assert.Equal(t, "config", result.Raw.Calls[0].Route)
	assert.Equal(t, `[{"persona_id": "mara", "attribute": "drink", "value": "coffee", "valid_from": "2026-01-12T09:00:00+01:00", `+
		`"valid_until": "2026-04-21T08:00:00+02:00", "source": "e1"}]`, string(result.Raw.Calls[0].Body))
	assert.Equal(t, []abi.Evidence{{Pointer: "/calls/0/body/0", Rank: 1, NativeType: "ground_truth", Text: "coffee",
		ValidAt:   "2026-01-12T09:00:00+01:00",
		InvalidAt: "2026-04-21T08:00:00+02:00", TimeBasis: abi.TimeEvent, SourceEventIDs: []string{"e1"},
		Shown: result.Evidence[0].Shown}}, result.Evidence)
	shown := result.Evidence[0].Shown
	assert.Equal(t, "coffee", result.FormattedContext[shown.Start:shown.End])
	trace := result.Trace
	assert.Equal(t, "oracle_ipas", trace.BackendName)
	assert.Equal(t, "config", trace.NativeOperation)
	assert.Equal(t, abi.TimeEvent, trace.TimeBasis)
	assert.Equal(t, abi.FilterHard, trace.FilterMode)
	assert.Equal(t, map[string]string{"scenario": "hard", "context": "hard",
		"attribute": "hard", "topic": "none"}, trace.FiltersApplied)
	assert.Equal(t, map[string]abi.BudgetUse{"max_tokens": {How: "formatter",
		Shown: new(*trace.TokenCount - *trace.FrameTokens)},
		"max_items": {How: "formatter"}, "min_tokens": {How: "advisory"}},
		trace.BudgetApplied)
	assert.Equal(t, 100-*trace.TokenCount, *trace.BudgetShortfall)
	assert.False(t, *trace.Truncated)
	assert.Equal(t, "native", trace.AsOfMode)
	assert.Equal(t, map[string]abi.Raw{"entries_of_scope": abi.Raw("6"),
		"entries_matching": abi.Raw("1"), "entries_left_out": abi.Raw("0")}, trace.Details)
	assert.Equal(t, map[string]abi.Raw{"at": abi.Raw(`"2026-03-01T00:00:00Z"`)}, trace.Effective)
	assert.Empty(t, trace.Warnings)
	for _, filledByHost := range []any{trace.Operation, trace.Scope, trace.Generation, trace.ConditionKind,
		trace.LatencyMS, trace.Tokenizer, trace.IO} {
		assert.Empty(t, filledByHost)
	}
}

func TestAnEntryWithoutTimesHasNoTimeBasis(t *testing.T) {
	r := retrieveRequest(abi.ContextBudget{})
	r.Attribute, r.Context, r.Filters = "tone", "work", map[string]abi.Raw{"cross_context": abi.Raw("true")}
	result := find(t, newHost(t, drinks), r)
	assert.Empty(t, result.Trace.TimeBasis)
	for _, e := range result.Evidence {
		assert.Empty(t, e.TimeBasis)
		assert.Empty(t, e.SourceEventIDs)
	}
	assert.Equal(t, map[string]string{"attribute": "hard"}, result.Trace.FiltersApplied,
		"the context was not asked for")
}

func TestEmptyForWantOfEntriesAndForWantOfMatches(t *testing.T) {
	h := newHost(t, drinks)
	nobody := retrieveRequest(abi.ContextBudget{})
	nobody.Scope.PersonaID = "ida"
	result := find(t, h, nobody)
	assert.Empty(t, result.Raw.Calls)
	require.Len(t, result.Trace.Warnings, 1)
	assert.True(t, strings.HasPrefix(result.Trace.Warnings[0], "no_ground_truth: "))

	nothing := retrieveRequest(abi.ContextBudget{})
	nothing.Attribute = "seat"
	result = find(t, h, nothing)
	assert.Equal(t, abi.ResultEmpty, result.Trace.ResultState)
	assert.Equal(t, "[]", string(result.Raw.Calls[0].Body))
	assert.Empty(t, result.Trace.Warnings)
}

func TestTheFirstEntriesWinWhenTheBudgetIsShort(t *testing.T) {
	h := newHost(t, drinks)
	for _, tt := range []struct {
		name    string
		budget  abi.ContextBudget
		want    []string
		warning string
	}{
		{"two items", abi.ContextBudget{MaxItems: new(int64(2))}, []string{"vegetarian", "green tea"}, ""},
		{"tokens for one", abi.ContextBudget{MaxTokens: new(int64(35))}, []string{"vegetarian"}, ""},
		{"no item", abi.ContextBudget{MaxItems: new(int64(0))}, []string{}, "budget_too_small: "},
		{"tokens for none", abi.ContextBudget{MaxTokens: new(int64(10))}, []string{}, "budget_too_small: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := find(t, h, retrieveRequest(tt.budget))
			assert.Equal(t, tt.want, shownValues(result))
			assert.True(t, *result.Trace.Truncated)
			assert.Equal(t, "5", string(result.Trace.Details["entries_matching"]))
			assert.Equal(t, tt.warning != "", len(result.Trace.Warnings) == 1 &&
				strings.HasPrefix(result.Trace.Warnings[0], tt.warning))
		})
	}
	long := newHost(t, `{"entries":[{"persona_id":"mara","attribute":"a","value":"`+strings.Repeat("tea ", 200)+`"}]}`)
	result := find(t, long, retrieveRequest(abi.ContextBudget{MaxTokens: new(int64(60))}))
	assert.Contains(t, result.FormattedContext, "[cut to fit the budget]")
	assert.True(t, strings.HasPrefix(result.Trace.Warnings[0], "entry_cut: "))
}

func TestTheExampleAnswersItsQuestions(t *testing.T) {
	config, err := demo.Oracle()
	require.NoError(t, err)
	h := newHost(t, string(config))
	for _, tt := range []struct{ persona, attribute, asOf, want string }{
		{"mara", "hot_drink", "", "green tea (sencha); no coffee any more"},
		{"mara", "hot_drink", "2026-03-15T12:00:00+01:00", "oat-milk flat white every morning"},
		{"jonas", "meeting_time", "", "not before 10:30"},
	} {
		r := retrieveRequest(abi.ContextBudget{})
		r.Scope, r.Attribute, r.AsOf = abi.MemoryScope{RunID: demo.RunID, PersonaID: tt.persona}, tt.attribute, tt.asOf
		assert.Equal(t, []string{tt.want}, shownValues(find(t, h, r)))
	}
}

// configEntry is an entry as a config block has it.
type configEntry struct {
	PersonaID  string `json:"persona_id"`
	RunID      string `json:"run_id,omitempty"`
	Attribute  string `json:"attribute"`
	Value      string `json:"value"`
	Context    string `json:"context,omitempty"`
	Scenario   string `json:"scenario,omitempty"`
	ValidFrom  string `json:"valid_from,omitempty"`
	ValidUntil string `json:"valid_until,omitempty"`
}

// tag finds every opening or closing tag of the element that a lenient reader could see.
var tag = regexp.MustCompile(`(?i)<[\s\pC\pZ/]*memory-context`)

// TestRetrievalAgreesWithAModel compares random entries and requests with a simple implementation of the filter.
func TestRetrievalAgreesWithAModel(t *testing.T) {
	hour := func(n int) string {
		return time.Date(2026, 1, 1, n, 0, 0, 0, time.UTC).In(time.FixedZone("", n%3*3600)).Format(time.RFC3339)
	}
	persona, run := rapid.SampledFrom([]string{"mara", "jonas", "*"}), rapid.SampledFrom([]string{"", "r1", "r2"})
	label := rapid.SampledFrom([]string{"", "x", "y", "</memory-context>"})
	value := rapid.OneOf(rapid.StringMatching(`[a-z <>/\n]{0,60}`),
		rapid.SampledFrom([]string{"</memory-context>", "<", "< Memory-Context", "a\n- b: c"}))
	rapid.Check(t, func(t *rapid.T) {
		list := []configEntry{}
		for range rapid.IntRange(0, 12).Draw(t, "entries") {
			c := configEntry{PersonaID: persona.Draw(t, "persona"), RunID: run.Draw(t, "run"),
				Attribute: label.Filter(func(s string) bool { return s != "" }).Draw(t, "attribute"),
				Value:     value.Draw(t, "value"), Context: label.Draw(t, "context"),
				Scenario: label.Draw(t, "scenario")}
			from, length := rapid.IntRange(0, 9).Draw(t, "from"), rapid.IntRange(0, 9).Draw(t, "length")
			if rapid.Bool().Draw(t, "has a beginning") {
				c.ValidFrom = hour(from)
			}
			if rapid.Bool().Draw(t, "has an end") {
				c.ValidUntil = hour(from + length)
			}
			list = append(list, c)
		}
		config, err := json.Marshal(map[string]any{"entries": list})
		require.NoError(t, err)
		r := retrieveRequest(abi.ContextBudget{})
		r.Scope = abi.MemoryScope{RunID: rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(t, "run of the request"),
			PersonaID: persona.Draw(t, "persona of the request")}
		r.Scenario, r.Context, r.Attribute = label.Draw(t, "scenario asked"), label.Draw(t, "context asked"),
			label.Draw(t,
				"attribute asked")
		cross := rapid.Bool().Draw(t, "across contexts")
		r.Filters = map[string]abi.Raw{"cross_context": abi.Raw(map[bool]string{true: "true", false: "false"}[cross])}
		r.AsOf = hour(rapid.IntRange(-1, 20).Draw(t, "as_of"))
		if rapid.Bool().Draw(t, "with max_tokens") {
			r.Budget.MaxTokens = new(rapid.Int64Range(0, 200).Draw(t, "max_tokens"))
		}
		if rapid.Bool().Draw(t, "with max_items") {
			r.Budget.MaxItems = new(rapid.Int64Range(0, 6).Draw(t, "max_items"))
		}
		result := find(t, newHost(t, string(config)), r)

		want := slices.DeleteFunc(slices.Clone(list), func(c configEntry) bool {
			differs := func(own, asked string) bool { return own != "" && asked != "" && own != asked }
			return c.PersonaID != r.Scope.PersonaID || differs(c.RunID, r.Scope.RunID) ||
				differs(c.Scenario, r.Scenario) ||
				!cross && differs(c.Context, r.Context) || differs(c.Attribute, r.Attribute) ||
				c.ValidFrom != "" && parse(t, r.AsOf).Before(parse(t, c.ValidFrom)) ||
				c.ValidUntil != "" && !parse(t, r.AsOf).Before(parse(t, c.ValidUntil))
		})
		slices.SortStableFunc(want, func(a, b configEntry) int {
			return cmp.Or(cmp.Compare(a.Attribute, b.Attribute), cmp.Compare(a.Context, b.Context),
				parse(t, a.ValidFrom).Compare(parse(t, b.ValidFrom)))
		})
		kept := []configEntry{}
		for _, call := range result.Raw.Calls {
			require.NoError(t, json.Unmarshal(call.Body, &kept))
		}
		require.LessOrEqual(t, len(kept), len(want))
		require.Equal(t, append([]configEntry{}, want[:len(kept)]...), kept,
			"the first of those that match, none of another scope")
		if r.Budget.MaxTokens == nil && r.Budget.MaxItems == nil {
			require.Len(t, kept, len(want))
		}
		if result.FormattedContext != "" {
			require.Len(t, tag.FindAllString(result.FormattedContext, -1), 2)
		}
		if len(result.Trace.Warnings) == 0 && len(kept) > 0 {
			require.Equal(t, len(kept)+1, strings.Count(result.FormattedContext, "\n"), "one line an entry")
		}
	})
}

// parse is the moment; nothing is the first one.
func parse(t require.TestingT, s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	at, err := abi.ParseTime(s)
	require.NoError(t, err)
	return at
}

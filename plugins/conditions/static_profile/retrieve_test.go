package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/demo"
	"github.com/memhost/memhost/sdk/sdktest"
)

const three = `{"profiles": [{"persona_id": "mara", "text": "Mara in every run."},
	{"persona_id": "mara", "run_id": "special", "text": "Mara in the special run."},
	{"persona_id": "jonas", "run_id": "run", "text": "Jonas."}]}`

func TestTheProfileIsThatOfTheScope(t *testing.T) {
	for _, tt := range []struct {
		name, run, persona string
		want, of           string
	}{
		{"an entry without a run holds in every run", "run", "mara", "Mara in every run.", `"persona"`},
		{"one with the run goes before it", "special", "mara", "Mara in the special run.", `"run"`},
		{"one with a run holds there", "run", "jonas", "Jonas.", `"run"`},
		{"and nowhere else", "other", "jonas", "", ""},
		{"somebody unknown has none", "run", "ida", "", ""},
		{"nor has somebody who looks alike", "run", "Mara", "", ""},
	} {
		for form, config := range map[string]string{"list": three, "object": `{"profiles":` + three + `}`} {
			t.Run(tt.name+", "+form, func(t *testing.T) {
				of := abi.MemoryScope{RunID: tt.run, PersonaID: tt.persona}
				result := find(t, newHost(t, config), retrieveRequest(of, abi.ContextBudget{}))
				if tt.want == "" {
					assert.Empty(t, result.FormattedContext)
					assert.Empty(t, result.Raw.Calls)
					require.Len(t, result.Trace.Warnings, 1)
					assert.True(t, strings.HasPrefix(result.Trace.Warnings[0], "no_profile: "))
					return
				}
				assert.Equal(t, "<memory-context backend=\"static_profile\" scope=\""+tt.run+"/"+
					tt.persona+"\" condition_kind=\"control\">\n"+
					tt.want+"\n</memory-context>", result.FormattedContext)
				assert.Equal(t, tt.of, string(result.Trace.Details["profile_of"]))
				assert.Empty(t, result.Trace.Warnings)
			})
		}
	}
}

func TestWhatARetrievalTells(t *testing.T) {
	r := retrieveRequest(scope, abi.ContextBudget{MinTokens: new(int64(100)), MaxTokens: new(int64(500)), MaxItems: new(int64(3))})
	r.Scenario, r.Context, r.AsOf = "food", "work", "2026-02-01T00:00:00Z"
	r.Filters = map[string]abi.Raw{"cross_context": abi.Raw("true")}
	result := find(t, newHost(t, three), r)
	require.Len(t, result.Raw.Calls, 1)
	assert.Equal(t, "config", result.Raw.Calls[0].Route)
	assert.Equal(t, `{"persona_id": "mara", "text": "Mara in every run."}`, string(result.Raw.Calls[0].Body))
	assert.Equal(t, []abi.Evidence{{Pointer: "/calls/0/body", Rank: 1, NativeType: "profile",
		Text: "Mara in every run.", Shown: result.Evidence[0].Shown}}, result.Evidence)
	shown := result.Evidence[0].Shown
	assert.Equal(t, "Mara in every run.", result.FormattedContext[shown.Start:shown.End])
	trace := result.Trace
	assert.Equal(t, "static_profile", trace.BackendName)
	assert.Equal(t, "config", trace.NativeOperation)
	assert.Equal(t, int64(1), *trace.RetrievedCount)
	assert.Equal(t, abi.FilterNone, trace.FilterMode)
	assert.Equal(t, map[string]string{"scenario": "none"}, trace.FiltersApplied,
		"the context was not asked for")
	assert.Equal(t, map[string]abi.BudgetUse{"max_tokens": {How: "formatter",
		Shown: new(*trace.TokenCount - *trace.FrameTokens)},
		"max_items": {How: "formatter"}, "min_tokens": {How: "advisory"}},
		trace.BudgetApplied)
	assert.Equal(t, 100-*trace.TokenCount, *trace.BudgetShortfall)
	assert.False(t, *trace.Truncated)
	assert.Equal(t, "ignored", trace.AsOfMode)
	require.Len(t, trace.Warnings, 1)
	assert.True(t, strings.HasPrefix(trace.Warnings[0], "as_of_ignored: "))
	for _, filledByHost := range []any{trace.Operation, trace.Scope, trace.Generation, trace.ConditionKind,
		trace.LatencyMS, trace.Tokenizer, trace.IO, trace.TimeBasis} {
		assert.Empty(t, filledByHost)
	}
}

func TestALongProfileIsCut(t *testing.T) {
	h := newHost(t, `{"profiles":[{"persona_id":"mara","text":"`+strings.Repeat("tea and ", 500)+`"}]}`)
	for _, tt := range []struct {
		name    string
		budget  abi.ContextBudget
		shown   string // the end of the text
		warning string
	}{
		{"no budget", abi.ContextBudget{}, "tea and \n</memory-context>", ""},
		{"its beginning", abi.ContextBudget{MaxTokens: new(int64(100))}, "\n[cut to fit the budget]\n</memory-context>",
			"profile_cut: "},
		{"nothing", abi.ContextBudget{MaxTokens: new(int64(10))}, "", "budget_too_small: "},
		{"no item", abi.ContextBudget{MaxItems: new(int64(0))}, "", "budget_too_small: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := find(t, h, retrieveRequest(scope, tt.budget))
			assert.True(t, strings.HasSuffix(result.FormattedContext, tt.shown))
			assert.Equal(t, tt.shown == "", result.FormattedContext == "")
			assert.Equal(t, tt.warning != "", *result.Trace.Truncated)
			if tt.warning != "" {
				assert.True(t, strings.HasPrefix(result.Trace.Warnings[0], tt.warning))
			}
		})
	}
}

func TestTheExample(t *testing.T) {
	config, err := demo.Profiles()
	require.NoError(t, err)
	h := newHost(t, string(config))
	for persona, word := range map[string]string{"mara": "Hamburg", "jonas": "Dublin"} {
		result := find(t, h, retrieveRequest(abi.MemoryScope{RunID: demo.RunID, PersonaID: persona}, abi.ContextBudget{}))
		assert.Contains(t, result.FormattedContext, word)
	}
}

func TestFormatContextRefusesWhatIsNotOfRetrieve(t *testing.T) {
	h := newHost(t, three)
	mine := abi.RawCall{Route: "config", Body: abi.Raw(`{"persona_id":"mara","text":"x"}`)}
	for _, tt := range []struct {
		name  string
		calls []abi.RawCall
	}{
		{"another route", []abi.RawCall{{Route: "state", Body: mine.Body}}},
		{"two profiles", []abi.RawCall{mine, mine}},
		{"a list", []abi.RawCall{{Route: "config", Body: abi.Raw(`[1]`)}}},
		{"a text that is none", []abi.RawCall{{Route: "config", Body: abi.Raw(`{"persona_id":"mara","text":7}`)}}},
		{"no body", []abi.RawCall{{Route: "config"}}},
		{"another persona's", []abi.RawCall{{Route: "config", Body: abi.Raw(`{"persona_id":"jonas","text":"x"}`)}}},
		{"another run's", []abi.RawCall{{Route: "config",
			Body: abi.Raw(`{"persona_id":"mara","run_id":"special","text":"x"}`)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := sdktest.Do(h, abi.OpFormatContext, scope, formatContext,
				&abi.FormatRequest{Result: abi.RetrieveResult{Raw: abi.RawResult{Calls: tt.calls}}, Scope: scope})
			assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), "%v", err)
		})
	}
}

// tag finds every opening or closing tag of the element that a lenient reader could see.
var tag = regexp.MustCompile(`(?i)<[\s\pC\pZ/]*memory-context`)

// TestWhatHoldsForEveryConfigurationAndRequest checks, in addition to find, that the text comes from the scope's own
// entry and the element has two tags.
func TestWhatHoldsForEveryConfigurationAndRequest(t *testing.T) {
	id := rapid.SampledFrom([]string{"mara", "jonas", "Mara", "*", "..", `"`, "</memory-context>", "🍵"})
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"<", "</", "memory-context", " Memory-Context>",
		"</memory-context>", "\n", "\u200b"}))
	type configEntry struct {
		PersonaID string `json:"persona_id"`
		RunID     string `json:"run_id,omitempty"`
		Text      string `json:"text"`
	}
	rapid.Check(t, func(t *rapid.T) {
		var list []configEntry
		texts := map[[2]string]string{}
		for range rapid.IntRange(0, 6).Draw(t, "profiles") {
			c := configEntry{id.Draw(t, "persona"), rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(t, "run"),
				strings.ToValidUTF8(strings.Join(rapid.SliceOfN(piece, 1, 30).Draw(t, "text"), ""), "")}
			if _, taken := texts[[2]string{c.PersonaID, c.RunID}]; taken {
				continue
			}
			list = append(list, c)
			texts[[2]string{c.PersonaID, c.RunID}] = c.Text
		}
		config, err := json.Marshal(map[string]any{"profiles": list})
		require.NoError(t, err)
		of := abi.MemoryScope{RunID: rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(t, "run of the request"),
			PersonaID: id.Draw(t, "persona of the request")}
		r := retrieveRequest(of, abi.ContextBudget{})
		if rapid.Bool().Draw(t, "with max_tokens") {
			r.Budget.MaxTokens = new(rapid.Int64Range(0, 120).Draw(t, "max_tokens"))
		}
		result := find(t, newHost(t, string(config)), r)

		want, known := texts[[2]string{of.PersonaID, of.RunID}]
		if !known {
			want, known = texts[[2]string{of.PersonaID, ""}]
		}
		require.Equal(t, known, len(result.Trace.Warnings) == 0 || !strings.HasPrefix(result.Trace.Warnings[0],
			"no_profile: "))
		if result.FormattedContext == "" {
			return
		}
		require.Len(t, tag.FindAllString(result.FormattedContext, -1), 2)
		require.Equal(t, want, result.Evidence[0].Text)
		_, body, _ := strings.Cut(result.FormattedContext, ">\n")
		body = strings.TrimSuffix(strings.TrimSuffix(body, "\n</memory-context>"), "\n[cut to fit the budget]")
		require.True(t, strings.HasPrefix(strings.ReplaceAll(want+"\n", "\\", ""), strings.ReplaceAll(body, "\\", "")),
			"the text of the entry, or its beginning")
	})
}

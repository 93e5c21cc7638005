package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/demo"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/sdk/sdktest"
)

// test is a *testing.T or a *rapid.T.
type test interface {
	sdktest.TB
	require.TestingT
}

var scope = abi.MemoryScope{RunID: "run", PersonaID: "mara"}

func manifest(t test) []byte {
	text, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	return text
}

func newHost(t test, config string) *sdktest.Host {
	return sdktest.New(t, sdktest.Options{Provider: "oracle_ipas", Config: config, Manifest: manifest(t)})
}

func retrieveRequest(budget abi.ContextBudget) *abi.RetrieveRequest {
	return &abi.RetrieveRequest{Query: "what do I drink?", Scope: scope, SessionID: "new", Budget: budget}
}

// find retrieves, and checks what holds for every retrieval: the budget, the evidence, and that format_context gives
// the same string.
func find(t test, h *sdktest.Host, r *abi.RetrieveRequest) *abi.RetrieveResult {
	result, err := sdktest.Do(h, abi.OpRetrieve, r.Scope, retrieve, r)
	require.NoError(t, err)
	require.Equal(t, h.Call(abi.OpRetrieve, r.Scope).CountTokens(result.FormattedContext), *result.Trace.TokenCount)
	if r.Budget.MaxTokens != nil {
		require.LessOrEqual(t, *result.Trace.TokenCount, *r.Budget.MaxTokens)
	}
	if r.Budget.MaxItems != nil {
		require.LessOrEqual(t, *result.Trace.RetrievedCount, *r.Budget.MaxItems)
	}
	require.Equal(t, *result.Trace.RetrievedCount, int64(len(result.Evidence)))
	require.Equal(t, result.FormattedContext != "", result.Trace.ResultState == abi.ResultResults)
	again, err := sdktest.Do(h, abi.OpFormatContext, r.Scope, formatContext,
		&abi.FormatRequest{Result: *result, Budget: r.Budget, Scope: r.Scope})
	require.NoError(t, err)
	require.Equal(t, result.FormattedContext, again.FormattedContext, "format_context gives the same string")
	require.Equal(t, *result.Trace.TokenCount, again.TokenCount)
	for i, e := range result.Evidence {
		require.Equal(t, fmt.Sprintf("/calls/0/body/%d", i), e.Pointer)
		require.Equal(t, int64(i+1), e.Rank)
	}
	return result
}

// shownValues is the values of a result, in order.
func shownValues(result *abi.RetrieveResult) []string {
	values := []string{}
	for _, e := range result.Evidence {
		values = append(values, e.Text)
	}
	return values
}

func TestTheSchemaTakesAListOrAFileThatHoldsOne(t *testing.T) {
	var m abi.ModuleManifest
	require.NoError(t, abi.UnmarshalStrict(manifest(t), &m))
	require.NoError(t, m.Validate())
	s, err := schema.Compile(m.ConfigSchema)
	require.NoError(t, err)
	example, err := demo.Oracle()
	require.NoError(t, err)
	for _, tt := range []struct {
		name, block, wrong string
	}{
		{"the example", string(example), ""},
		{"a list", `{"entries":[{"persona_id":"mara","attribute":"diet","value":"vegetarian"}]}`, ""},
		{"an empty list", `{"entries":[]}`, ""},
		{"a file with an object", `{"entries":` + string(example) + `}`, ""},
		{"nothing", `{}`, "entries: missing"},
		{"another key beside the list of a file", `{"entries":{"entries":[],"more":1}}`, "entries.more: unknown key"},
		{"another key in an entry", `{"entries":[{"persona_id":"mara","attribute":"a","value":"v","valid_form":"x"}]}`,
			"entries[0].valid_form: unknown key"},
		{"no value", `{"entries":[{"persona_id":"mara","attribute":"a"}]}`, "entries[0].value: missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Apply(nil, abi.Raw(tt.block))
			if tt.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.wrong)
		})
	}
}

func TestABadTimeIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name, times, wrong string
	}{
		{"no zone", `"valid_from":"2026-03-02T18:20:00"`, "entries[1].valid_from: "},
		{"a day alone", `"valid_until":"2026-03-02"`, "entries[1].valid_until: "},
		{"a day that is none", `"valid_from":"2026-02-30T00:00:00Z"`, "entries[1].valid_from: "},
		{"an end before the beginning", `"valid_from":"2026-03-02T12:00:00+02:00","valid_until":"2026-03-02T09:59:59Z"`,
			"entries[1].valid_until: "},
	} {
		for form, config := range map[string]string{"list": `%s`, "object": `{"entries":%s}`} {
			t.Run(tt.name+", "+form, func(t *testing.T) {
				list := `[{"persona_id":"mara","attribute":"a","value":"v"},{"persona_id":"jonas","attribute":"a","value":"v",` +
					tt.times + `}]`
				h := newHost(t, `{"entries":`+fmt.Sprintf(config, list)+`}`)
				_, err := sdktest.Do(h, abi.OpHealth, abi.MemoryScope{}, control.Health, &abi.Empty{})
				assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
				assert.Contains(t, err.Error(), tt.wrong)
				_, err = sdktest.Do(h, abi.OpRetrieve, scope, retrieve, retrieveRequest(abi.ContextBudget{}))
				assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
				assert.Contains(t, err.Error(), tt.wrong)
			})
		}
	}
}

func TestNothingIsRetained(t *testing.T) {
	h := newHost(t, drinks)
	receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, control.RecordEvent,
		&abi.MemoryEvent{EventID: "e1", RunID: "run", UserID: "mara", SessionID: "s1",
			TurnID: "t1", Timestamp: "2026-01-12T09:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser,
				Content: new("My cat is called Zorvex.")}}})
	require.NoError(t, err)
	assert.Equal(t, "e1", receipt.EventID)
	assert.Equal(t, abi.StatusNotRetained, receipt.Status)
	assert.Equal(t, abi.NativeIDsNone, receipt.NativeIDsKind)
	assert.Empty(t, h.Keys(scope))
	assert.NotContains(t, find(t, h, retrieveRequest(abi.ContextBudget{})).FormattedContext, "Zorvex")
}

func TestSetupResetAndHealth(t *testing.T) {
	h := newHost(t, drinks)
	for _, tt := range []struct {
		persona string
		existed bool
	}{{"mara", true}, {"ida", false}} {
		t.Run(tt.persona, func(t *testing.T) {
			of := abi.MemoryScope{RunID: "run", PersonaID: tt.persona}
			setup, err := sdktest.Do(h, abi.OpSetupScope, of, control.SetupScope, &abi.Empty{})
			require.NoError(t, err)
			assert.True(t, setup.Ready)
			assert.Equal(t, tt.existed, *setup.Existed)
			assert.Equal(t, tt.existed, len(setup.Warnings) == 0)
			for generation := int64(1); generation < 3; generation++ {
				receipt, err := sdktest.Do(h, abi.OpResetScope, of, control.ResetScope, &abi.Empty{})
				require.NoError(t, err)
				assert.Equal(t, abi.ResetDone, receipt.Status)
				assert.Empty(t, receipt.Removed)
				assert.Equal(t, tt.existed, len(receipt.Remains) == 1)
				assert.Equal(t, []int64{generation, generation + 1},
					[]int64{receipt.OldGeneration, receipt.NewGeneration})
			}
		})
	}
	state, err := sdktest.Do(h, abi.OpHealth, abi.MemoryScope{}, control.Health, &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.HealthOK, state.Status)
	assert.Equal(t, "oracle_ipas", state.BackendName)
	assert.Empty(t, state.Warnings)

	state, err = sdktest.Do(newHost(t, `{"entries":[]}`), abi.OpHealth, abi.MemoryScope{}, control.Health, &abi.Empty{})
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(state.Warnings[0], "no_ground_truth: "))
}

package main

import (
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
	return sdktest.New(t, sdktest.Options{Provider: "static_profile", Config: config, Manifest: manifest(t)})
}

func retrieveRequest(scope abi.MemoryScope, budget abi.ContextBudget) *abi.RetrieveRequest {
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
	return result
}

func TestTheSchemaTakesAListOrAFileThatHoldsOne(t *testing.T) {
	var m abi.ModuleManifest
	require.NoError(t, abi.UnmarshalStrict(manifest(t), &m))
	require.NoError(t, m.Validate())
	s, err := schema.Compile(m.ConfigSchema)
	require.NoError(t, err)
	example, err := demo.Profiles()
	require.NoError(t, err)
	for _, tt := range []struct {
		name, block, wrong string
	}{
		{"the example", string(example), ""},
		{"a list", `{"profiles":[{"persona_id":"mara","run_id":"run","text":"x"}]}`, ""},
		{"an empty list", `{"profiles":[]}`, ""},
		{"a file with an object", `{"profiles":` + string(example) + `}`, ""},
		{"nothing", `{}`, "profiles: missing"},
		{"another key beside the list of a file", `{"profiles":{"profiles":[],"more":1}}`,
			"profiles.more: unknown key"},
		{"another key in an entry", `{"profiles":[{"persona_id":"mara","txt":"x"}]}`, "profiles[0].txt: unknown key"},
		{"an empty text", `{"profiles":[{"persona_id":"mara","text":""}]}`, "profiles[0].text"},
		{"a text", `{"profiles":"profiles.json"}`, "profiles: found"},
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

func TestTwoProfilesForOneScopeAreAMistake(t *testing.T) {
	h := newHost(t, `{"profiles":[{"persona_id":"a","text":"x"},{"persona_id":"mara","text":"x"},{"persona_id":"mara","run_id":null,"text":"y"}]}`)
	_, err := sdktest.Do(h, abi.OpHealth, abi.MemoryScope{}, control.Health, &abi.Empty{})
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
	assert.Contains(t, err.Error(), "profiles[2]")
	_, err = sdktest.Do(h, abi.OpRetrieve, scope, retrieve, retrieveRequest(scope, abi.ContextBudget{}))
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
}

func TestNothingIsRetained(t *testing.T) {
	h := newHost(t, `{"profiles":[{"persona_id":"mara","text":"Likes tea."}]}`)
	receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, control.RecordEvent,
		&abi.MemoryEvent{EventID: "e1", RunID: "run", UserID: "mara", SessionID: "s1",
			TurnID: "t1", Timestamp: "2026-01-12T09:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser,
				Content: new("My cat is called Zorvex.")}}})
	require.NoError(t, err)
	assert.Equal(t, "e1", receipt.EventID)
	assert.Equal(t, abi.StatusNotRetained, receipt.Status)
	assert.Equal(t, abi.NativeIDsNone, receipt.NativeIDsKind)
	assert.Empty(t, h.Keys(scope))
	assert.NotContains(t, find(t, h, retrieveRequest(scope, abi.ContextBudget{})).FormattedContext, "Zorvex")
}

func TestSetupResetAndHealth(t *testing.T) {
	h := newHost(t, `{"profiles":[{"persona_id":"mara","text":"Likes tea."}]}`)
	for _, tt := range []struct {
		persona  string
		existed  bool
		warnings []string
		remains  int
	}{
		{"mara", true, []string{}, 1},
		{"jonas", false, []string{"no_profile: the configuration has no profile for this persona_id, or only for " +
			"other runs"}, 0},
	} {
		t.Run(tt.persona, func(t *testing.T) {
			of := abi.MemoryScope{RunID: "run", PersonaID: tt.persona}
			setup, err := sdktest.Do(h, abi.OpSetupScope, of, control.SetupScope, &abi.Empty{})
			require.NoError(t, err)
			assert.True(t, setup.Ready)
			assert.Equal(t, tt.existed, *setup.Existed)
			assert.Equal(t, tt.warnings, setup.Warnings)
			for generation := int64(1); generation < 3; generation++ {
				receipt, err := sdktest.Do(h, abi.OpResetScope, of, control.ResetScope, &abi.Empty{})
				require.NoError(t, err)
				assert.Equal(t, abi.ResetDone, receipt.Status)
				assert.Empty(t, receipt.Removed)
				assert.Len(t, receipt.Remains, tt.remains)
				assert.Equal(t, []int64{generation, generation + 1},
					[]int64{receipt.OldGeneration, receipt.NewGeneration})
			}
		})
	}
	state, err := sdktest.Do(h, abi.OpHealth, abi.MemoryScope{}, control.Health, &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.HealthOK, state.Status)
	assert.Equal(t, "static_profile", state.BackendName)
	assert.Empty(t, state.Warnings)

	state, err = sdktest.Do(newHost(t, `{"profiles":[]}`), abi.OpHealth, abi.MemoryScope{}, control.Health, &abi.Empty{})
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(state.Warnings[0], "no_profile: "))
}

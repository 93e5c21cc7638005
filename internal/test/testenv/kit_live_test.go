//go:build live

package testenv

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins"
)

// conform runs the conformance kit for a provider against a running backend; extra settings are laid over the backend's
// block. readyWithin is how long a scope may take until what was recorded can be retrieved; a busy machine needs
// several times what an idle one does.
func conform(t *testing.T, b *Backend, provider string, readyWithin time.Duration, extra map[string]any) {
	t.Helper()
	b.runKit(t, b.providerConfig(t, provider, extra), readyWithin)
}

// conformAsDesigned runs a part of the kit under memory.profile source-design: what that profile changes is what is sent
// for a turn and for a question, and how what comes back is read.
func conformAsDesigned(t *testing.T, b *Backend, provider string, readyWithin time.Duration, extra map[string]any) {
	t.Helper()
	b.runKit(t, b.designedConfig(t, provider, extra), readyWithin, 1, 2, 5, 8, 9, 14)
}

// runKit runs the clauses with these numbers; without any, all of them.
func (b *Backend) runKit(t *testing.T, config host.ProviderConfig, readyWithin time.Duration, clauses ...int) {
	t.Helper()
	target := conformance.Target{Provider: config, ReadyWithin: readyWithin}
	if b.Env != nil && b.Env.Stub != nil {
		target.LLMCalls = func(context.Context) (int64, error) { return int64(b.Env.Stub.Counts().LLM), nil }
	}
	conformance.TestWith(t, target, conformance.Options{CacheDir: testcache.Dir(), Again: true,
		Clauses: clauses})
}

// designedConfig is providerConfig under memory.profile source-design.
func (b *Backend) designedConfig(t *testing.T, provider string, extra map[string]any) host.ProviderConfig {
	t.Helper()
	config := b.providerConfig(t, provider, extra)
	config.Profile = abi.ProfileSourceDesign
	return config
}

// providerConfig is the host's configuration of a provider on this backend.
func (b *Backend) providerConfig(t *testing.T, provider string, extra map[string]any) host.ProviderConfig {
	t.Helper()
	name := map[string]string{"simple_rag": "mem0"}[provider]
	if name == "" {
		name = provider
	}
	module, ok := plugins.Find(name)
	require.True(t, ok, "the module %s is not built: go run ./internal/authoring/toolchain/cmd/plugins build %s", name,
		name)
	block := maps.Clone(b.Config)
	maps.Copy(block, extra)
	text, err := json.Marshal(block)
	require.NoError(t, err)
	secrets := map[string]host.Secret{}
	for name, s := range b.Secrets {
		secrets[name] = host.Secret{Origin: s.Origin, Value: func() (string, error) { return s.Value, nil }}
	}
	return host.ProviderConfig{Name: provider, Module: module.Wasm, Source: "builtin", Block: abi.Raw(text),
		Secrets: secrets}
}

func TestMain(m *testing.M) { testcache.Run(m) }

// turn is an event of one user's message.
func turn(id, at, said string) *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: id, RunID: "live", UserID: "ann", SessionID: "s1", TurnID: id, Timestamp: at,
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &said}}}
}

// tell records events one by one, each when the one before is ready, and asks a question.
func tell(t *testing.T, config host.ProviderConfig, question string,
	events ...*abi.MemoryEvent) (result *abi.RetrieveResult) {
	t.Helper()
	ctx := t.Context()
	scope := abi.MemoryScope{RunID: events[0].RunID, PersonaID: events[0].UserID}
	open(t, config, func(slot *host.Slot) {
		for _, e := range events {
			_, err := slot.RecordEvent(ctx, e)
			require.NoError(t, err)
			ready, err := slot.Readiness(ctx, &abi.ReadinessRequest{Scope: scope, TimeoutMS: 120000})
			require.NoError(t, err)
			require.Equal(t, abi.ReadinessReady, ready.Status, "%v", ready.Warnings)
		}
		var err error
		result, err = slot.Retrieve(ctx, &abi.RetrieveRequest{Query: question, Scope: scope, SessionID: "s2"})
		require.NoError(t, err)
	})
	return result
}

// keptNothing makes the backend's model or embedder fail while a turn is recorded, and work again afterwards. Readiness
// reports the turn's outcome each time, until a user decides: recorded again, the turn is a duplicate; readiness with a
// retry sends it again. A turn that the backend calls failed is listed as such, and one whose caller
// got an error is sent when it is recorded again.
func keptNothing(t *testing.T, b *Backend, provider string, extra map[string]any, moods map[string]llm.Fault) {
	for mood, fault := range moods {
		t.Run(mood, func(t *testing.T) {
			ctx := t.Context()
			h, err := host.New(ctx, host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(), Archive: true})
			require.NoError(t, err)
			defer h.Close(context.WithoutCancel(ctx))
			config := b.providerConfig(t, provider, extra)
			config.Namespace = "moods"
			slot, err := h.Open(ctx, config)
			require.NoError(t, err)
			defer slot.Close(context.WithoutCancel(ctx))
			event := turn("e", "2026-01-12T08:00:00Z", "I own a red kite.")
			event.RunID = t.Name()
			scope := abi.MemoryScope{RunID: event.RunID, PersonaID: "ann"}
			_, err = slot.SetupScope(ctx, scope)
			require.NoError(t, err)
			look := func(retry bool) *abi.BackendReadiness {
				report, err := slot.Readiness(ctx, &abi.ReadinessRequest{Scope: scope, TimeoutMS: 120_000, RetryEmpty: retry})
				require.NoError(t, err)
				return report
			}
			require.NoError(t, b.Env.Stub.Fail(fault))
			receipt, failure := slot.RecordEvent(ctx, event)
			look(false)
			b.Env.Stub.ClearFaults()
			t.Logf("%v %v", receipt, failure)
			recordedAgain := func() bool {
				again, err := slot.RecordEvent(ctx, event)
				require.NoError(t, err)
				return again.Duplicate
			}
			if failure != nil {
				require.False(t, recordedAgain())
			} else {
				for range 2 {
					is := look(false).EventIDs
					require.Equal(t, []string{"e"}, slices.Concat(is.Empty, is.Failed, is.Lost))
					if len(is.Empty) > 0 {
						require.True(t, recordedAgain())
					}
				}
			}
			report := look(true)
			require.Equal(t, abi.ReadinessReady, report.Status, "%+v", report)
			require.Empty(t, report.EventIDs.Empty)
			result, err := slot.Retrieve(ctx, &abi.RetrieveRequest{Query: "What do I own?", Scope: scope, SessionID: "s2"})
			require.NoError(t, err)
			require.Len(t, result.Evidence, 1)
			require.Contains(t, result.Evidence[0].Text, "red kite")
		})
	}
}

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// TestWhatIsKeptIsThatOfTheCall: an instance serves scopes, generations and budgets in any order, and answers each as a new instance would.
func TestWhatIsKeptIsThatOfTheCall(t *testing.T) {
	config := &abi.GuestConfig{Provider: "mem0", Namespace: "n"}
	fresh := func() *settings { return &settings{config: config, topK: 10, threshold: 0.1} }
	open := func(s *settings, f *surface, c *sdk.Call) *backend {
		return &backend{Call: c, settings: s, surface: f, ids: s.idsFor(c)}
	}
	kept, surfaces := fresh(), []*surface{{api: apiOSS}, {api: apiPlatform, rerank: true, store: apiPlatform}}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"", "a", "b"})
		c := &sdk.Call{Generation: rapid.Int64Range(0, 2).Draw(t, "generation"), Scope: abi.MemoryScope{RunID: name.Draw(t, "run"), PersonaID: name.Draw(t, "persona"),
			BackendNamespace: name.Draw(t, "namespace"), AgentID: name.Draw(t, "agent")}}
		r := &abi.RetrieveRequest{Query: rapid.SampledFrom([]string{"x", "tea?"}).Draw(t, "query"), Scenario: name.Draw(t, "scenario"),
			AsOf: rapid.SampledFrom([]string{"", "2026-03-01T09:30:00Z"}).Draw(t, "as of"), Budget: abi.ContextBudget{MaxItems: sdk.Ptr(rapid.Int64Range(1, 2).Draw(t, "items"))}}
		f := rapid.SampledFrom(surfaces).Draw(t, "surface")
		f.store = "pgvector"
		b, other := open(kept, f, c), open(fresh(), &surface{api: f.api, store: f.store}, c)
		require.Equal(t, idsOf(config, c.Scope, c.Generation), b.ids)
		got, err := b.question(r)
		require.NoError(t, err)
		want, err := other.question(r)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, other.effectiveSearch(want), b.effectiveSearch(got))
		require.Equal(t, other.headers(true), b.headers(true))
		require.Equal(t, other.headers(false), b.headers(false))
		require.Equal(t, other.effectiveAdd(), b.effectiveAdd())
	})
}

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	fake "github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/sdk/sdktest"
)

// TestSourceDesignMakesTheCallsThatTheDesignNames: only session context, with the design's parameters, even in cases
// where the profile best makes more calls (for a summary's last message, or an empty representation).
func TestSourceDesignMakesTheCallsThatTheDesignNames(t *testing.T) {
	b := newBench(t, quick, "")
	b.Profile = abi.ProfileSourceDesign
	b.setup(t)
	b.recordTurns(t, "s-long", 13)
	b.Sent = nil
	b.mustAsk(t, "cat", func(r *abi.RetrieveRequest) {
		r.SessionID, r.Budget.MaxTokens, r.Budget.MaxItems = "s-long", new(int64(20_000)), new(int64(5))
	})
	b.mustAsk(t, "cat", func(r *abi.RetrieveRequest) { r.SessionID, r.Budget.MaxTokens = "s-long", new(int64(200)) })
	require.Len(t, b.Sent, 2)
	for i, want := range []map[string]string{{"tokens": "20000", "search_top_k": "5"},
		{"tokens": "200", "search_top_k": "25"}} {
		want["summary"], want["search_query"], want["peer_target"] = "true", "cat", "user-alice"
		assert.Equal(t, "context", b.Sent[i].Route)
		assert.Equal(t, want, queryMap(b.Sent[i]))
	}

	b.Sent = nil
	asked := b.mustAsk(t, "cat", func(r *abi.RetrieveRequest) { r.Budget.MaxItems = new(int64(5)) })
	assert.Equal(t, int64(5), *asked.Trace.BudgetApplied["max_items"].Sent)
	b.server.Set(func(m *fake.Mood) { m.EmbedDown = true })
	b.Sent = nil
	b.mustAsk(t, "cat", func(r *abi.RetrieveRequest) { r.Budget.MaxItems = new(int64(100)) })
	assert.Equal(t, []string{"context"}, b.routes(), "nothing is looked up behind an answer")
}

func queryMap(r sdktest.Request) map[string]string {
	m := map[string]string{}
	for _, q := range r.Query {
		m[q.Key] = q.Value
	}
	return m
}

// TestHowManyConclusionsAreAskedFor: the caller's number, else the host's, else 25, Honcho's default. A configured
// number and Honcho's own limit bound all of them.
func TestHowManyConclusionsAreAskedFor(t *testing.T) {
	for _, c := range []struct {
		block                 string
		items, tokens, byHost int64
		want, wantTokens      string
	}{
		{"", 0, 0, 0, "25", "8000"},
		{"", 60, 0, 0, "60", "8000"},
		{"", 5000, 0, 0, "100", "8000"},
		{"", 0, 600, 20, "20", "600"},
		{"", 0, 600, 34, "34", "600"}, // the host calls again
		{"", 0, 600, 0, "20", "600"},  // a host without a preference
		{"", 60, 600, 0, "20", "600"},
		{"", 0, 20_000, 100, "100", "20000"},
		{`,"max_conclusions":30,"context_tokens":4000`, 60, 20_000, 0, "30", "4000"},
		{`,"max_conclusions":30`, 0, 2_000_000, 0, "30", "100000"},
	} {
		b := newBench(t, quick, c.block)
		b.AskItems = c.byHost
		b.mustAsk(t, "cat", func(r *abi.RetrieveRequest) {
			if c.items > 0 {
				r.Budget.MaxItems = &c.items
			}
			if c.tokens > 0 {
				r.Budget.MaxTokens = &c.tokens
			}
		})
		name := fmt.Sprintf("%+v", c)
		assert.Equal(t, c.want, queryOf(b.Sent[0], "max_conclusions"), name)
		assert.Equal(t, c.wantTokens, queryOf(b.Sent[0], "tokens"), name)
	}
}

// TestConclusionsThatCameAreCountedAlone: the session's messages are not counted.
func TestConclusionsThatCameAreCountedAlone(t *testing.T) {
	b := newBench(t, quick, "")
	b.setup(t)
	b.recordTurns(t, "s-new", 10)
	b.pass(time.Minute)
	b.AskItems = 7
	result := b.mustAsk(t, "cat", func(r *abi.RetrieveRequest) { r.Budget.MaxTokens = new(int64(4000)) })
	use := result.Trace.BudgetApplied["max_items"]
	assert.Equal(t, []int64{7, 7}, []int64{*use.Sent, *use.Received})
	assert.Greater(t, len(result.Evidence), 7)
}

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// TestSourceDesignMakesTheCallsThatTheDesignNames: one episode per turn, and one search without look-ups after it.
func TestSourceDesignMakesTheCallsThatTheDesignNames(t *testing.T) {
	for _, surface := range []string{surfaceREST, surfaceMCP} {
		r := plug(t, providerSetup{surface, true}, "")
		r.Profile = abi.ProfileSourceDesign
		r.recordAll(turnOn(1, "e", "user_a OWNS red bicycle"))
		before := len(r.Sent)
		five := int64(5)
		r.askFor(&abi.RetrieveRequest{Query: "bicycle", Scope: scope, SessionID: "n",
			Budget: abi.ContextBudget{MaxItems: &five}})
		sent := r.Sent[before:]
		require.Len(t, sent, 1, surface)
		assert.Contains(t, sent[0].Body, `"max_facts":20`, "one constant, which ingestion uses too")
	}
	r := onCore(t, "")
	r.Profile = abi.ProfileSourceDesign
	five := int64(5)
	before := len(r.Sent)
	r.askFor(&abi.RetrieveRequest{Query: "bicycle", Scope: scope, SessionID: "n",
		Budget: abi.ContextBudget{MaxItems: &five}})
	sent := r.Sent[before:]
	require.Len(t, sent, 1)
	assert.Equal(t, "core_search", sent[0].Route)
	assert.Contains(t, sent[0].Body, `"limit":5`)
}

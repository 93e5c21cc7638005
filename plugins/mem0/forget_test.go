package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/sdk/sdktest"
)

func (r *rig) mustForget(request abi.ForgetRequest) *abi.ForgetReceipt {
	r.t.Helper()
	request.Scope, request.Reason = maria, "asked"
	receipt, err := sdktest.Do(r.Host, abi.OpForget, maria, withBackend(forget), &request)
	require.NoError(r.t, err)
	return receipt
}

func TestForgottenMemoriesAreDeleted(t *testing.T) {
	for _, provider := range []string{"mem0", "simple_rag"} {
		for name, request := range map[string]abi.ForgetRequest{
			"by event":   {EventIDs: []string{"e1", "unknown"}},
			"by session": {SessionID: "other"},
			"by time":    {From: "2025-03-10T10:30:00+01:00", To: "2025-03-10T09:30:00Z"},
		} {
			t.Run(provider+", "+name, func(t *testing.T) {
				r, _ := ossRig(t, provider, "", mem0.Options{})
				gone, kept := turn("e1", "My cat is called Zorvex."), turn("e2", "I live in Oslo.")
				gone.SessionID, kept.Timestamp = "other", "2025-03-11T09:30:00Z"
				ids := r.mustRecord(gone).NativeIDs
				r.mustRecord(kept)
				require.NotEmpty(t, ids)
				receipt := r.mustForget(request)
				assert.Equal(t, abi.ForgetDone, receipt.Status)
				assert.ElementsMatch(t, ids, receipt.Removed["memory"])
				assert.Contains(t, receipt.DerivedMayRemain[0], "history")
				found := r.mustRetrieve(&abi.RetrieveRequest{Query: "Zorvex the cat in Oslo"})
				assert.NotContains(t, found.FormattedContext, "Zorvex")
				assert.Contains(t, found.FormattedContext, "Oslo")
				assert.Empty(t, r.mustForget(request).Removed["memory"], "the second time there is nothing left")
			})
		}
	}
}

func TestAMemoryIsForgottenByItsIDInItsScopeAlone(t *testing.T) {
	r, _ := ossRig(t, "mem0", "", mem0.Options{})
	ids := r.mustRecord(turn("e1", "My cat is called Zorvex.")).NativeIDs
	other := abi.MemoryScope{RunID: "other", PersonaID: "maria"}
	receipt, err := sdktest.Do(r.Host, abi.OpForget, other, withBackend(forget), &abi.ForgetRequest{Scope: other,
		NativeIDs: append([]string{"no id", "00000000-0000-0000-0000-000000000000"}, ids...), Reason: "asked"})
	require.NoError(t, err)
	assert.Empty(t, receipt.Removed["memory"], "mem0's calls by id look at no scope")
	assert.ElementsMatch(t, ids, r.mustForget(abi.ForgetRequest{NativeIDs: ids}).Removed["memory"])
}

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/sdk/sdktest"
)

func TestForgottenMemoriesAreDeleted(t *testing.T) {
	for name, request := range map[string]abi.ForgetRequest{
		"by event":   {EventIDs: []string{"e1", "unknown"}},
		"by session": {SessionID: "s9"},
		"by time":    {From: "2026-05-01T10:00:00Z", To: "2026-05-01T12:00:00+02:00"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `{"url":"http://memos","add_mode":"sync/fast"}`, memos.Options{})
			gone, kept := turnEvent("e1", "My cat is called Zorvex."), turnEvent("e2", "I like oolong tea.")
			gone.SessionID, kept.Timestamp = "s9", "2026-06-01T12:00:00+02:00"
			b.must(gone, kept)
			b.wait(time.Minute)
			request.Scope, request.Reason = scope, "asked"
			do := func() *abi.ForgetReceipt {
				receipt, err := sdktest.Do(b.Host, abi.OpForget, scope, withBackend(forget), &request)
				require.NoError(t, err)
				require.Equal(t, abi.ForgetDone, receipt.Status)
				return receipt
			}
			assert.NotEmpty(t, do().Removed["memory"])
			assert.NotContains(t, b.find(retrieveRequest("the cat Zorvex")).FormattedContext, "Zorvex")
			assert.Contains(t, b.find(retrieveRequest("oolong tea")).FormattedContext, "oolong")
			assert.Empty(t, do().Removed["memory"], "the second time there is nothing left")
		})
	}
}

func TestAMemoryWithOtherSourcesStays(t *testing.T) {
	m := &item{id: "m", sources: []*source{}, event: "e1"}
	whole, part := m.coveredBy(&abi.ForgetRequest{EventIDs: []string{"e1"}})
	assert.True(t, whole && part)
	whole, part = m.coveredBy(&abi.ForgetRequest{EventIDs: []string{"e2"}})
	assert.False(t, whole || part)
}

package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

func TestProvenanceGivesEachTurnOnceByEventByKeyAndByTime(t *testing.T) {
	h := newHost(t, "{}")
	for i := range 7 {
		record(t, h, turnAt(fmt.Sprint("e", i), i, fmt.Sprint("text ", i)))
	}
	ask := func(r abi.ProvenanceRequest) (*abi.Provenance, error) {
		r.Scope = scope
		return sdktest.Do(h, abi.OpProvenance, scope, provenance, &r)
	}
	one, err := ask(abi.ProvenanceRequest{EventID: "e3"})
	require.NoError(t, err)
	require.Len(t, one.Items, 1)
	assert.Equal(t, []string{"e3"}, one.Items[0].Evidence.SourceEventIDs)
	assert.Contains(t, string(one.Items[0].Native), "text 3")
	same, err := ask(abi.ProvenanceRequest{NativeID: one.Items[0].Evidence.NativeID})
	require.NoError(t, err)
	assert.Equal(t, one.Items, same.Items)
	for _, r := range []abi.ProvenanceRequest{{EventID: "e"}, {NativeID: "count"}, {NativeID: "turn/"}} {
		_, err := ask(r)
		assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err), "%+v", r)
	}
	for limit := range int64(9) {
		r := abi.ProvenanceRequest{From: "2026-01-12T09:01:00Z", To: "2026-01-12T09:05:00Z", Limit: limit}
		var seen []string
		for {
			page, err := ask(r)
			require.NoError(t, err)
			if limit > 0 {
				require.LessOrEqual(t, len(page.Items), int(limit))
			}
			for _, i := range page.Items {
				seen = append(seen, i.Evidence.SourceEventIDs...)
			}
			if r.Cursor = page.NextCursor; r.Cursor == "" {
				break
			}
		}
		assert.Equal(t, []string{"e5", "e4", "e3", "e2", "e1"}, seen, "limit %d", limit)
	}
	_, err = sdktest.Do(h, abi.OpForget, scope, forget, &abi.ForgetRequest{Scope: scope, EventIDs: []string{"e3"}, Reason: "asked"})
	require.NoError(t, err)
	_, err = ask(abi.ProvenanceRequest{EventID: "e3"})
	assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err))
}

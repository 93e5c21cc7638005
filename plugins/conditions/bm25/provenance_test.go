package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

func TestProvenanceGivesEachMessageOnceByEventByNumberAndByTime(t *testing.T) {
	h := newHost(t, "{}")
	for i := range 5 {
		record(t, h, testEvent(fmt.Sprint("e", i), i, fmt.Sprint("question ", i), fmt.Sprint("answer ", i)))
	}
	ask := func(r abi.ProvenanceRequest) (*abi.Provenance, error) {
		r.Scope = scope
		return sdktest.Do(h, abi.OpProvenance, scope, provenance, &r)
	}
	two, err := ask(abi.ProvenanceRequest{EventID: "e2"})
	require.NoError(t, err)
	require.Len(t, two.Items, 2)
	assert.Contains(t, two.Items[1].Evidence.Text, "answer 2")
	assert.Equal(t, []string{"e2"}, two.Items[1].Evidence.SourceEventIDs)
	one, err := ask(abi.ProvenanceRequest{NativeID: "message#6"})
	require.NoError(t, err)
	assert.Equal(t, two.Items[1].Native, one.Items[0].Native)
	for _, r := range []abi.ProvenanceRequest{{EventID: "e"}, {NativeID: "message#11"}, {NativeID: "message#0"}, {NativeID: "x"}} {
		_, err := ask(r)
		assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err), "%+v", r)
	}
	for limit := range int64(8) {
		r := abi.ProvenanceRequest{From: two.Items[0].Evidence.CreatedAt, To: "2030-01-01T00:00:00Z", Limit: limit}
		var seen []string
		for {
			page, err := ask(r)
			require.NoError(t, err)
			for _, i := range page.Items {
				seen = append(seen, i.Evidence.NativeID)
			}
			if r.Cursor = page.NextCursor; r.Cursor == "" {
				break
			}
		}
		assert.Equal(t, []string{"message#5", "message#6", "message#7", "message#8", "message#9", "message#10"}, seen,
			"limit %d", limit)
	}
}

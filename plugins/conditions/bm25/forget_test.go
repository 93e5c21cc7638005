package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

func mustForget(t test, h *sdktest.Host, r *abi.ForgetRequest) []string {
	r.Scope, r.Reason = scope, "asked"
	receipt, err := sdktest.Do(h, abi.OpForget, scope, forget, r)
	require.NoError(t, err)
	require.Equal(t, abi.ForgetDone, receipt.Status)
	require.Empty(t, receipt.DerivedMayRemain)
	return receipt.Removed["message"]
}

func TestForgottenMessagesAreNowhere(t *testing.T) {
	for name, c := range map[string]struct {
		request abi.ForgetRequest
		want    []string
	}{
		"by event":   {abi.ForgetRequest{EventIDs: []string{"e1", "unknown"}}, []string{"message#1", "message#2"}},
		"by session": {abi.ForgetRequest{SessionID: "s1"}, []string{"message#1", "message#2"}},
		"by time": {abi.ForgetRequest{From: "2026-01-12T10:01:00+01:00", To: "2026-01-12T09:01:00Z"},
			[]string{"message#1", "message#2"}},
		"by native id": {abi.ForgetRequest{NativeIDs: []string{"message#1", "message#2", "message#9"}},
			[]string{"message#1", "message#2"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, `{}`)
			other := testEvent("e10", 2, "Zorvexes are no zorv", "tea")
			other.SessionID = "s10"
			record(t, h, testEvent("e1", 1, "My cat is called Zorvex", "zorvex likes tea"), other)
			require.NotEmpty(t, h.Find(scope, "zorvex "))
			request := c.request
			assert.Equal(t, c.want, mustForget(t, h, &request))
			request = c.request
			assert.Empty(t, mustForget(t, h, &request), "the second time there is nothing left")
			for _, text := range []string{"Zorvex ", "zorvex ", "called", "e1\""} {
				assert.Empty(t, h.Find(scope, text), text)
			}
			assert.NotContains(t, h.Keys(scope), "term/zorvex")
			assert.Contains(t, h.Keys(scope), "term/zorvexes")
			assert.Empty(t, find(t, h, "called Zorvex", nil).Evidence)
			assert.Equal(t, []string{"Zorvexes are no zorv"}, lines(find(t, h, "zorv", nil)))
			counted, err := sdktest.Do(h, abi.OpInventory, scope, inventory, new(abi.Empty))
			require.NoError(t, err)
			assert.EqualValues(t, 2, counted.Kinds[0].Count)
			if len(c.request.NativeIDs) == 0 {
				assert.Equal(t, []string{"message#5"}, record(t, h, testEvent("e1", 1, "again")).NativeIDs)
			}
		})
	}
}

// TestWhatIsLeftRanksAsIfTheRestHadNeverCome compares with a scope in which only the remaining messages were recorded.
func TestWhatIsLeftRanksAsIfTheRestHadNeverCome(t *testing.T) {
	word := rapid.SampledFrom([]string{"tea", "coffee", "cat", "lake", "the", "7", "茶", "Oslo", "rare"})
	rapid.Check(t, func(t *rapid.T) {
		h, rest := newHost(t, `{"max_items":1000}`), newHost(t, `{"max_items":1000}`)
		var gone []string
		left := 0
		for n := range rapid.IntRange(1, 300).Draw(t, "events") {
			e := testEvent(fmt.Sprint("e", n), n, strings.Join(rapid.SliceOfN(word, 1, 12).Draw(t, "words"), " "))
			record(t, h, e)
			if rapid.Bool().Draw(t, "goes") {
				gone = append(gone, e.EventID)
			} else {
				record(t, rest, e)
				left++
			}
		}
		if len(gone) > 0 {
			require.Len(t, mustForget(t, h, &abi.ForgetRequest{EventIDs: gone}), len(gone))
		}
		query := strings.Join(rapid.SliceOfN(word, 1, 10).Draw(t, "query"), " ")
		got, want := find(t, h, query, nil), find(t, rest, query, nil)
		require.Equal(t, want.FormattedContext, got.FormattedContext)
		for i := range want.Evidence {
			require.InDelta(t, *want.Evidence[i].Score, *got.Evidence[i].Score, 1e-9)
		}
		terms := func(h *sdktest.Host) string {
			return strings.Join(slices.DeleteFunc(h.Keys(scope), func(key string) bool {
				return !strings.HasPrefix(key, termPrefix)
			}), " ")
		}
		require.Equal(t, terms(rest), terms(h))
	})
}

func TestAMessageIsForgottenInAFullBlock(t *testing.T) {
	h := newHost(t, `{"max_items":1000}`)
	for n := range 1000 {
		record(t, h, testEvent(fmt.Sprint("e", n), n%600, "tea"))
	}
	require.True(t, slices.ContainsFunc(h.Keys(scope), func(key string) bool {
		return strings.HasPrefix(key, blockPrefix)
	}))
	assert.Equal(t, []string{"message#3", "message#1000"},
		mustForget(t, h, &abi.ForgetRequest{EventIDs: []string{"e2", "e999"}}))
	r := find(t, h, "tea", nil)
	assert.Len(t, r.Evidence, 998)
	for _, e := range r.Evidence {
		assert.NotContains(t, []string{"message#3", "message#1000"}, e.NativeID)
	}
	record(t, h, testEvent("later", 1, "tea"))
	assert.Len(t, find(t, h, "tea", nil).Evidence, 999)
}

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

func TestForgottenTurnsAreNowhere(t *testing.T) {
	for name, c := range map[string]struct {
		request abi.ForgetRequest
		left    []string
	}{
		"by event":   {abi.ForgetRequest{EventIDs: []string{"e1", "unknown"}}, []string{"e10", "e2", "other"}},
		"by session": {abi.ForgetRequest{SessionID: "s2"}, []string{"e1", "e10", "e2"}},
		"by time, both ends": {abi.ForgetRequest{From: "2026-01-12T10:01:00+01:00", To: "2026-01-12T09:02:00Z"},
			[]string{"e1", "other"}},
		"by native id": {abi.ForgetRequest{NativeIDs: []string{turnOf(t, 0, 1), "turn/", "count", "event/e2"}},
			[]string{"e10", "e2", "other"}},
		"what was never there": {abi.ForgetRequest{EventIDs: []string{"e"}}, []string{"e1", "e10", "e2", "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, "")
			c.request.Scope = scope
			other := turnAt("other", 3, "text of other.")
			other.SessionID = "s2"
			all := []*abi.MemoryEvent{turnAt("e1", 0, "text of e1."), turnAt("e10", 1, "text of e10."),
				turnAt("e2", 2, "text of e2."), other}
			record(t, h, all...)
			for range 2 { // the second time there is nothing left to remove
				r, err := sdktest.Do(h, abi.OpForget, scope, forget, &c.request)
				require.NoError(t, err)
				require.Equal(t, abi.ForgetDone, r.Status)
				text := find(t, h, retrieveRequest(abi.ContextBudget{})).FormattedContext
				for _, e := range all {
					kept := strings.Contains(strings.Join(c.left, " ")+" ", e.EventID+" ")
					require.Equal(t, kept, strings.Contains(text, "text of "+e.EventID+"."), e.EventID)
					found, err := sdktest.Do(h, abi.OpFindEvent, scope, findEvent, &abi.FindEventRequest{EventID: e.EventID})
					require.NoError(t, err)
					require.Equal(t, kept, found.Found == "present", e.EventID)
				}
				counted, err := sdktest.Do(h, abi.OpInventory, scope, inventory, new(abi.Empty))
				require.NoError(t, err)
				require.EqualValues(t, len(c.left), counted.Kinds[0].Count)
			}
			// Recorded again under the same ids and times, each turn is there once: no key is used twice.
			for _, e := range all {
				_, err := sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, e)
				require.NoError(t, err)
			}
			record(t, h, turnAt("later", 0, "text of later."))
			counted, err := sdktest.Do(h, abi.OpInventory, scope, inventory, new(abi.Empty))
			require.NoError(t, err)
			require.EqualValues(t, len(all)+1, counted.Kinds[0].Count)
		})
	}
}

func turnOf(t *testing.T, minute int, arrival int64) string {
	at, err := abi.ParseTime(turnAt("x", minute, "").Timestamp)
	require.NoError(t, err)
	return turnKey(at, arrival)
}

package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/follow"
	"github.com/memhost/memhost/host/report"
)

// Ann's scope is read-only; Bob's events come more than a page later in the archive.
func TestAReadOnlyScopeHoldsBackItsOwnEventsOnly(t *testing.T) {
	ctx := context.Background()
	const each = follow.PageEvents + 50
	s := openSlot(t, open(t, Options{Archive: true, Durability: "process"}), history(t, ""))
	record(t, s, "ann", 0, each)
	record(t, s, "bob", 0, each)
	record(t, s, "ann", each, each+20)
	ann := personScope("ann")
	_, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r", Scope: &ann})
	require.NoError(t, err)
	_, err = s.Backfill(ctx, history(t, "next"), BackfillOptions{})
	require.NoError(t, err)
	b := untilState(t, s, report.FollowerReadOnly)
	require.EqualValues(t, each, b.Progress.Done, "all of bob's")
	require.EqualValues(t, each+20, b.Progress.Held, "all of ann's")
	require.EqualValues(t, 2*each+20, b.Progress.Events)
	_, err = s.BackfillStop(ctx, &report.BackfillStop{})
	require.NoError(t, err)
	b, err = s.Backfill(ctx, history(t, "next"), BackfillOptions{})
	require.NoError(t, err)
	require.EqualValues(t, each+20, b.Progress.Held, "it knows what it holds back after it was stopped")

	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "r", Scope: &ann})
	require.NoError(t, err)
	serves(t, s, "next")
	require.Equal(t, turnIDs("ann", 0, each+20), remembered(t, s, "ann"))
	require.Equal(t, turnIDs("bob", 0, each), remembered(t, s, "bob"))
}

func TestAMemoryThatServesWithoutHeldEventsNamesTheirScopes(t *testing.T) {
	ctx := context.Background()
	s := openSlot(t, open(t, Options{Archive: true}), history(t, ""))
	record(t, s, "bob", 0, 3)
	record(t, s, "ann", 0, 5)
	ann := personScope("ann")
	_, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r", Scope: &ann})
	require.NoError(t, err)
	_, err = s.Backfill(ctx, history(t, "next"), BackfillOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 5, untilState(t, s, report.FollowerReadOnly).Progress.Held)
	_, err = s.BackfillTurn(ctx, &report.BackfillTurn{AcceptOpen: true})
	require.NoError(t, err)
	m := serves(t, s, "next")
	require.Contains(t, m.Steps[len(m.Steps)-2].Detail, `5 of run "r", user "ann"`)
	require.Empty(t, remembered(t, s, "ann"))
	require.Equal(t, turnIDs("bob", 0, 3), remembered(t, s, "bob"))
}

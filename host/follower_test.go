package host_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/internal/follow"
	"github.com/memhost/memhost/host/report"
)

// Ann's scope is read-only; Bob's events come more than a page later in the archive.
func TestAReadOnlyScopeHoldsBackItsOwnEventsOnly(t *testing.T) {
	ctx := context.Background()
	const each = follow.PageEvents + 50
	s := host.OpenSlot(t, host.Open(t, host.Options{Archive: true, Durability: "process"}), host.History(t, ""))
	host.Record(t, s, "ann", 0, each)
	host.Record(t, s, "bob", 0, each)
	host.Record(t, s, "ann", each, each+20)
	ann := host.PersonScope("ann")
	_, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r", Scope: &ann})
	require.NoError(t, err)
	_, err = s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{})
	require.NoError(t, err)
	b := host.UntilState(t, s, report.FollowerReadOnly)
	require.EqualValues(t, each, b.Progress.Done, "all of bob's")
	require.EqualValues(t, each+20, b.Progress.Held, "all of ann's")
	require.EqualValues(t, 2*each+20, b.Progress.Events)
	_, err = s.BackfillStop(ctx, &report.BackfillStop{})
	require.NoError(t, err)
	b, err = s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{})
	require.NoError(t, err)
	require.EqualValues(t, each+20, b.Progress.Held, "it knows what it holds back after it was stopped")

	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "r", Scope: &ann})
	require.NoError(t, err)
	host.Serves(t, s, "next")
	require.Equal(t, host.TurnIDs("ann", 0, each+20), host.Remembered(t, s, "ann"))
	require.Equal(t, host.TurnIDs("bob", 0, each), host.Remembered(t, s, "bob"))
}

func TestAMemoryThatServesWithoutHeldEventsNamesTheirScopes(t *testing.T) {
	ctx := context.Background()
	s := host.OpenSlot(t, host.Open(t, host.Options{Archive: true}), host.History(t, ""))
	host.Record(t, s, "bob", 0, 3)
	host.Record(t, s, "ann", 0, 5)
	ann := host.PersonScope("ann")
	_, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r", Scope: &ann})
	require.NoError(t, err)
	_, err = s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 5, host.UntilState(t, s, report.FollowerReadOnly).Progress.Held)
	_, err = s.BackfillServe(ctx, &report.BackfillServe{AcceptOpen: true})
	require.NoError(t, err)
	m := host.Serves(t, s, "next")
	require.Contains(t, m.Steps[len(m.Steps)-2].Detail, `5 of run "r", user "ann"`)
	require.Empty(t, host.Remembered(t, s, "ann"))
	require.Equal(t, host.TurnIDs("bob", 0, 3), host.Remembered(t, s, "bob"))
}

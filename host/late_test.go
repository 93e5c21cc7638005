package host

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

func TestTheOldestLateWritesAreRemoved(t *testing.T) {
	ctx := t.Context()
	h := Open(t, Options{Durability: "process"})
	put := func(b *state.Batch, n int) {
		b.PutRecord(tableLate, binary.BigEndian.AppendUint64(nil, uint64(n)), abi.Marshal(&report.LateWrite{At: "t",
			Host: "h", Route: "r", EventIDs: []string{}}))
	}
	var b state.Batch
	for n := range keptLateWrites + 20 {
		put(&b, n)
	}
	require.NoError(t, h.commit(ctx, &b))
	b = state.Batch{}
	put(&b, keptLateWrites+20)
	require.NoError(t, trimLateWrites(ctx, h.store, &b))
	require.NoError(t, h.commit(ctx, &b))
	all, err := h.store.Records(ctx, tableLate, nil, nil, 2*keptLateWrites)
	require.NoError(t, err)
	require.Len(t, all, keptLateWrites)
	require.EqualValues(t, 21, binary.BigEndian.Uint64(all[0].Key), "the newest are left")
	list, err := readLateWrites(ctx, h.store)
	require.NoError(t, err)
	require.Len(t, list, maxLateWrites)
}

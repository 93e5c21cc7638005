package delivery

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestLedgerEntry(t *testing.T) {
	receipt := &abi.WriteReceipt{EventID: "e1", Status: abi.StatusCommitted, NativeIDs: []string{"n1"}}
	entry := &Entry{Hash: Hash{1, 2, 3}, State: Received,
		SentAt: time.UnixMilli(1_700_000_000_000), Session: "s 1", Receipt: receipt}
	stored := entry.Encode()

	t.Run("is read as it was written", func(t *testing.T) {
		got, err := Decode("e1", stored)
		require.NoError(t, err)
		require.Equal(t, entry.Hash, got.Hash)
		require.Equal(t, entry.State, got.State)
		require.Equal(t, "s 1", got.Session)
		require.True(t, entry.SentAt.Equal(got.SentAt))
		require.Equal(t, receipt.NativeIDs, got.Receipt.NativeIDs)
		require.Equal(t, stored, got.Stored)
	})
	t.Run("a receipt is read with its event id and with all its fields", func(t *testing.T) {
		count := int64(2)
		whole := &abi.WriteReceipt{EventID: "e1", Status: abi.StatusQueued, NativeIDs: []string{"<1>", ""},
			NativeIDsKind: abi.NativeIDsFinal, StoredCount: &count, Markers: []string{"m"}, Warnings: []string{"w: \u2028"},
			LatencyMS: 0.25}
		for _, r := range []*abi.WriteReceipt{whole, {EventID: "e1", Status: abi.StatusCommitted, NativeIDs: []string{},
			NativeIDsKind: abi.NativeIDsNone, Markers: []string{}, Warnings: []string{}}} {
			got, err := Decode("e1", (&Entry{State: Received, Receipt: r}).Encode())
			require.NoError(t, err)
			require.Equal(t, r, got.Receipt)
		}
	})
	old := append(slices.Clone(stored[:entryHead]), abi.AppendJSON(nil, receipt)...)
	t.Run("the second form had no session, and the third had whole receipts", func(t *testing.T) {
		got, err := Decode("e1", old)
		require.NoError(t, err)
		require.Empty(t, got.Session)
		require.Equal(t, receipt.NativeIDs, got.Receipt.NativeIDs)
		third := slices.Insert(slices.Clone(old), entryHead, []byte("s\x03s 1")...)
		got, err = Decode("e1", third)
		require.NoError(t, err)
		require.Equal(t, "s 1", got.Session)
		require.Equal(t, "e1", got.Receipt.EventID)
	})
	t.Run("one that was sent has a session and no receipt", func(t *testing.T) {
		got, err := Decode("e1", (&Entry{State: Sent, Session: "{"}).Encode())
		require.NoError(t, err)
		require.Equal(t, "{", got.Session)
		require.Nil(t, got.Receipt)
	})
	t.Run("the first form had nothing between hash and receipt", func(t *testing.T) {
		first := append(slices.Clone(entry.Hash[:]), old[entryHead:]...)
		got, err := Decode("e1", first)
		require.NoError(t, err)
		require.Equal(t, entry.Hash, got.Hash)
		require.Equal(t, Received, got.State)
		require.Equal(t, receipt.NativeIDs, got.Receipt.NativeIDs)
		require.Equal(t, first, got.Stored, "the precondition of a change is what the store has")
	})
	t.Run("a record cut anywhere is damaged", func(t *testing.T) {
		for n := range len(stored) - 1 {
			_, err := Decode("e1", stored[:n])
			require.Error(t, err, n)
		}
	})
}

package delivery

import (
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
		got, err := Decode(stored)
		require.NoError(t, err)
		require.Equal(t, entry.Hash, got.Hash)
		require.Equal(t, entry.State, got.State)
		require.Equal(t, "s 1", got.Session)
		require.True(t, entry.SentAt.Equal(got.SentAt))
		require.Equal(t, receipt.NativeIDs, got.Receipt.NativeIDs)
		require.Equal(t, stored, got.Stored)
	})
	t.Run("the second form had no session", func(t *testing.T) {
		plain := *entry
		plain.Session = ""
		got, err := Decode(plain.Encode())
		require.NoError(t, err)
		require.Empty(t, got.Session)
		require.Equal(t, receipt.NativeIDs, got.Receipt.NativeIDs)
	})
	t.Run("one that was sent has a session and no receipt", func(t *testing.T) {
		got, err := Decode((&Entry{State: Sent, Session: "{"}).Encode())
		require.NoError(t, err)
		require.Equal(t, "{", got.Session)
		require.Nil(t, got.Receipt)
	})
	t.Run("the first form had nothing between hash and receipt", func(t *testing.T) {
		plain := *entry
		plain.Session = ""
		first := append(append([]byte(nil), entry.Hash[:]...), plain.Encode()[entryHead:]...)
		got, err := Decode(first)
		require.NoError(t, err)
		require.Equal(t, entry.Hash, got.Hash)
		require.Equal(t, Received, got.State)
		require.Equal(t, receipt.NativeIDs, got.Receipt.NativeIDs)
		require.Equal(t, first, got.Stored, "the precondition of a change is what the store has")
	})
	t.Run("a record cut anywhere is damaged", func(t *testing.T) {
		for n := range len(stored) - 1 {
			_, err := Decode(stored[:n])
			require.Error(t, err, n)
		}
	})
}

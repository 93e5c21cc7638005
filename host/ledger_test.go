package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestLedgerEntry(t *testing.T) {
	receipt := &abi.WriteReceipt{EventID: "e1", Status: abi.StatusCommitted, NativeIDs: []string{"n1"}}
	entry := &ledgerEntry{hash: contentHash{1, 2, 3}, state: deliveryReceived,
		sentAt: time.UnixMilli(1_700_000_000_000), session: "s 1", receipt: receipt}
	stored := entry.encode()

	t.Run("is read as it was written", func(t *testing.T) {
		got, err := decodeLedgerEntry(stored)
		require.NoError(t, err)
		require.Equal(t, entry.hash, got.hash)
		require.Equal(t, entry.state, got.state)
		require.Equal(t, "s 1", got.session)
		require.True(t, entry.sentAt.Equal(got.sentAt))
		require.Equal(t, receipt.NativeIDs, got.receipt.NativeIDs)
		require.Equal(t, stored, got.stored)
	})
	t.Run("the second form had no session", func(t *testing.T) {
		plain := *entry
		plain.session = ""
		got, err := decodeLedgerEntry(plain.encode())
		require.NoError(t, err)
		require.Empty(t, got.session)
		require.Equal(t, receipt.NativeIDs, got.receipt.NativeIDs)
	})
	t.Run("one that was sent has a session and no receipt", func(t *testing.T) {
		got, err := decodeLedgerEntry((&ledgerEntry{state: deliverySent, session: "{"}).encode())
		require.NoError(t, err)
		require.Equal(t, "{", got.session)
		require.Nil(t, got.receipt)
	})
	t.Run("the first form had nothing between hash and receipt", func(t *testing.T) {
		plain := *entry
		plain.session = ""
		first := append(append([]byte(nil), entry.hash[:]...), plain.encode()[ledgerHead:]...)
		got, err := decodeLedgerEntry(first)
		require.NoError(t, err)
		require.Equal(t, entry.hash, got.hash)
		require.Equal(t, deliveryReceived, got.state)
		require.Equal(t, receipt.NativeIDs, got.receipt.NativeIDs)
		require.Equal(t, first, got.stored, "the precondition of a change is what stands in the store")
	})
	t.Run("a record cut anywhere is damaged", func(t *testing.T) {
		for n := range len(stored) - 1 {
			_, err := decodeLedgerEntry(stored[:n])
			require.Error(t, err, n)
		}
	})
}

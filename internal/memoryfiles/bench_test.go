package memoryfiles

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkOneMoreCommit updates the copy of a ledger of 500 commits after one more.
func BenchmarkOneMoreCommit(b *testing.B) {
	const n = 500
	id := func(i int) string { return fmt.Sprintf("%04x%012x", (i*40503+0xaaaa)&0xffff, i) }
	lines := []string{id(0) + " main - - Commit 0"}
	for i := 1; i < n+200; i++ {
		lines = append(lines, fmt.Sprintf("%s main %s - Commit %d", id(i), id(i-1), i))
	}
	f, err := openFolder(b.TempDir(), true)
	require.NoError(b, err)
	defer f.close()
	require.NoError(b, f.update(FanOut(ledgerOf(b, lines[:n]...)), time.Now()))
	more := n
	for b.Loop() {
		b.StopTimer()
		more++
		files := FanOut(ledgerOf(b, lines[:more]...))
		b.StartTimer()
		require.NoError(b, f.update(files, time.Now()))
	}
}

package state

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScrubLeavesNothingOfWhatWasDeleted(t *testing.T) {
	for _, durability := range []Durability{DurabilityPower, DurabilityProcess} {
		t.Run(string(durability), func(t *testing.T) {
			ctx := context.Background()
			dir := t.TempDir()
			s, err := Open(dir, Options{Durability: durability})
			require.NoError(t, err)
			put := func(i int, text string) {
				var b Batch
				b.PutRecord("t", fmt.Appendf(nil, "%04d", i), []byte(text))
				_, err := s.Commit(ctx, &b)
				require.NoError(t, err)
			}
			const records = 60
			for i := range records {
				put(i, strings.Repeat(fmt.Sprintf("zorvex-%d ", i), 1+i*20)) // within a page, and over several
			}
			has := func() bool {
				content, err := os.ReadFile(filepath.Join(dir, DataFile))
				require.NoError(t, err)
				return bytes.Contains(content, []byte("zorvex"))
			}
			require.True(t, has())
			for i := range records {
				put(i, "kept")
			}
			require.True(t, has(), "without scrubbing the test would prove nothing")

			var readers sync.WaitGroup
			stop := make(chan struct{})
			for range 3 {
				readers.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						found, err := s.Records(ctx, "t", nil, nil, 0)
						if err != nil || len(found) != records {
							t.Errorf("a reader found %d records: %v", len(found), err)
							return
						}
					}
				})
			}
			for range 3 {
				require.NoError(t, s.Scrub(ctx))
				put(0, "kept")
			}
			close(stop)
			readers.Wait()
			require.NoError(t, s.Scrub(ctx))
			require.False(t, has())
			require.NoError(t, s.Close())
			require.ErrorIs(t, s.Scrub(ctx), ErrClosed)

			require.NoError(t, os.Remove(filepath.Join(dir, DataFile+cleanFile))) // so that Open checks the file
			s, err = Open(dir, Options{})
			require.NoError(t, err)
			found, err := s.Records(ctx, "t", nil, nil, 0)
			require.NoError(t, err)
			require.Len(t, found, records)
			require.NoError(t, s.Close())
		})
	}
}

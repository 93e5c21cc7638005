//go:build load && unix

package loadtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/pgserver"
)

const (
	notifyWriters = 16
	notifyRounds  = 10
	notifyTurn    = time.Second
	notifyWakes   = 500
)

// TestNotify measures what waking other hosts by NOTIFY would cost: how long after the start of its commit a
// notification arrives, and how many transactions concurrent writers commit with and without one. It writes notify.md
// to LOAD_OUT.
func TestNotify(t *testing.T) {
	server := pgserver.Start(t)
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), server.URL)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	listener := connect()
	_, err := listener.Exec(t.Context(), "LISTEN turns")
	require.NoError(t, err)
	writers := make([]*pgx.Conn, notifyWriters)
	for i := range writers {
		writers[i] = connect()
	}
	_, err = writers[0].Exec(t.Context(), "CREATE TABLE turns (id int PRIMARY KEY, n int NOT NULL)")
	require.NoError(t, err)
	_, err = writers[0].Exec(t.Context(), "INSERT INTO turns SELECT i, 0 FROM generate_series(0, $1) i", notifyWriters-1)
	require.NoError(t, err)

	// Each transaction is one statement, so it takes one round trip. Both statements write the row of one writer.
	statements := []string{"UPDATE turns SET n = n + 1 WHERE id = $1",
		"WITH u AS (UPDATE turns SET n = n + 1 WHERE id = $1 RETURNING id) SELECT pg_notify('turns', id::text) FROM u"}
	var wakes []float64
	for range notifyWakes {
		began := time.Now()
		_, err := writers[0].Exec(t.Context(), statements[1], 0)
		require.NoError(t, err)
		_, err = listener.WaitForNotification(t.Context())
		require.NoError(t, err)
		wakes = append(wakes, ms(time.Since(began)))
	}
	// The listener must keep reading: unread notifications stay in the server's queue.
	listening, stop := context.WithCancel(t.Context())
	var reader sync.WaitGroup
	reader.Go(func() {
		for listening.Err() == nil {
			_, _ = listener.WaitForNotification(listening)
		}
	})
	var took [2][]float64 // each transaction's time in ms
	for range notifyRounds {
		for kind, statement := range statements {
			var all sync.WaitGroup
			var mu sync.Mutex
			for i, conn := range writers {
				all.Go(func() {
					var own []float64
					for end := time.Now().Add(notifyTurn); time.Now().Before(end); {
						began := time.Now()
						if _, err := conn.Exec(t.Context(), statement, i); err != nil {
							t.Errorf("writer %d: %s", i, err)
							return
						}
						own = append(own, ms(time.Since(began)))
					}
					mu.Lock()
					defer mu.Unlock()
					took[kind] = append(took[kind], own...)
				})
			}
			all.Wait()
		}
	}
	stop()
	reader.Wait()
	var b bytes.Buffer
	p50, p99 := quantiles(wakes)
	fmt.Fprintf(&b, "A notification is there %.2f ms (p50), %.2f ms (p99) after its transaction began; %d of them. "+
		"%d writers, each with a row of its own, %d turns of %s for each:\n\n| | commits/s | p50 ms | p99 ms |\n"+
		"|---|---|---|---|\n", p50, p99, notifyWakes, notifyWriters, notifyRounds, notifyTurn)
	for kind, name := range []string{"without NOTIFY", "with NOTIFY"} {
		require.NotEmpty(t, took[kind], name)
		p50, p99 := quantiles(took[kind])
		fmt.Fprintf(&b, "| %s | %.0f | %.2f | %.2f |\n", name,
			float64(len(took[kind]))/(notifyRounds*notifyTurn).Seconds(), p50, p99)
	}
	t.Logf("%s", b.Bytes())
	out := setting("LOAD_OUT", t.TempDir())
	require.NoError(t, os.MkdirAll(out, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(out, "notify.md"), b.Bytes(), 0o644))
}

// quantiles are p50 and p99.
func quantiles(values []float64) (p50, p99 float64) {
	slices.Sort(values)
	return values[len(values)/2], values[len(values)*99/100]
}

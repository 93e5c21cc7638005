//go:build load && unix

package loadtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/memhost/memhost/internal/test/pgserver"
)

const (
	commitRate   = 50 // requests a second
	commitRounds = 12
)

// TestSynchronousCommit drives one host on a file and one for each setting of PostgreSQL's synchronous_commit,
// alternating in short intervals, and writes commit.md. The server has a synchronous standby on the same machine,
// because without one all settings except "off" are the same.
//
// LOAD_TIME is the total duration of the load, LOAD_OUT the folder of the report.
func TestSynchronousCommit(t *testing.T) {
	whole, err := time.ParseDuration(setting("LOAD_TIME", "4m"))
	require.NoError(t, err, "LOAD_TIME")
	l := &load{t: t, out: setting("LOAD_OUT", t.TempDir()), personas: 1000}
	l.build()
	server := pgserver.Start(t)
	server.Standby()
	conn, err := pgx.Connect(t.Context(), server.URL)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		_, err = conn.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		var state string
		return conn.QueryRow(t.Context(), "SELECT sync_state FROM pg_stat_replication").Scan(&state) == nil && state == "sync"
	}, time.Minute, 100*time.Millisecond, "the standby is not synchronous")

	arms := []*arm{l.onFile("file, durability power", "power", t.TempDir()), l.onFile("file, durability process", "process", t.TempDir())}
	for _, setting := range []string{"on", "remote_write", "local", "off"} {
		arms = append(arms, l.onServer("PostgreSQL, synchronous_commit "+setting,
			server.URL+"&synchronous_commit="+setting, "slot_"+setting, 1))
	}
	for _, a := range arms {
		l.fill(a)
		a.cells = []*cell{{rate: commitRate, metrics: map[string]*vegeta.Metrics{opRecord: {}, opRetrieve: {}}}}
	}
	l.each = whole / time.Duration(len(arms)*commitRounds)
	for round := range commitRounds {
		for i := range arms {
			a := arms[(i+round)%len(arms)] // no arm is always the first one
			l.drive(a, a.cells[0], uint64(1+round))
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d requests a second, half record, half retrieve, of %d people; %d turns of %.1f s for each. In "+
		"brackets the ratio to the first line.\n\n| | record p50 ms | p99 ms | retrieve p50 ms | p99 ms | sent | errors |\n"+
		"|---|---|---|---|---|---|---|\n", commitRate, l.personas, commitRounds, l.each.Seconds())
	var first [2]row
	for i, a := range arms {
		record := rowOf(a.name, opRecord, commitRate, a.cells[0].metrics[opRecord])
		retrieve := rowOf(a.name, opRetrieve, commitRate, a.cells[0].metrics[opRetrieve])
		if i == 0 {
			first = [2]row{record, retrieve}
		}
		fmt.Fprintf(&b, "| %s |", a.name)
		for j, r := range []row{record, retrieve} {
			fmt.Fprintf(&b, " %.2f (%.2f) | %.2f (%.2f) |", r.P50MS, r.P50MS/first[j].P50MS, r.P99MS,
				r.P99MS/first[j].P99MS)
		}
		fmt.Fprintf(&b, " %d | %d |\n", record.Requests+retrieve.Requests, record.Errors+retrieve.Errors)
	}
	t.Logf("%s", b.Bytes())
	require.NoError(t, os.WriteFile(filepath.Join(l.out, "commit.md"), b.Bytes(), 0o644))
}

package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/memhost/memhost/internal/base/pause"
	"github.com/memhost/memhost/internal/state"
)

const (
	// scrubWait is how long Scrub waits for VACUUM, which then continues for up to scrubLimit.
	scrubWait, scrubLimit = 10 * time.Second, time.Hour
	// scrubTries is how often VACUUM runs while older transactions still see deleted rows, scrubPause the pause between
	// runs.
	scrubTries, scrubPause = 5, 500 * time.Millisecond
)

// vacuum names the tables that contain what users said. Without truncation it takes no lock that blocks reads.
const vacuum = "VACUUM (VERBOSE, INDEX_CLEANUP ON, TRUNCATE false) @.kv, @.logs, @.entries, @.records"

var _ state.Scrubber = (*Store)(nil)

// Scrub removes deleted rows and their index entries with VACUUM, on a separate connection, while reads and commits
// continue. Afterwards no table has deleted rows, but VACUUM does not overwrite their bytes: see Outside.
//
// Errors: ErrUnavailable if VACUUM was rejected, skipped a table, is still running, or had to leave rows that an older
// transaction of the database can see; the message includes the server's warnings.
func (s *Store) Scrub(ctx context.Context) error {
	if s.closed.Load() {
		return &state.Error{Kind: state.ErrClosed, Message: "scrub: the store is closed"}
	}
	ended := make(chan error, 1)
	s.background.Go(func() {
		within, cancel := context.WithTimeout(s.open, scrubLimit)
		defer cancel()
		ended <- s.fail("scrub", s.scrub(within))
	})
	wait := time.NewTimer(scrubWait)
	defer wait.Stop()
	select {
	case err := <-ended:
		return err
	case <-wait.C:
	case <-ctx.Done():
	}
	return &state.Error{Kind: state.ErrUnavailable, Message: s.where + ": VACUUM goes on, and has not removed all deleted " +
		"rows yet", Hint: "ask again later"}
}

// Outside names the copies of deleted rows that VACUUM leaves.
func (s *Store) Outside() []string {
	return []string{
		"the database's table and index files: VACUUM frees deleted rows without overwriting them; their bytes stay until " +
			"the space is reused, or VACUUM FULL rewrites the tables",
		"the database's write-ahead log (WAL): until the server recycles it, and as long as its archive keeps it",
		"replicas and backups of the database",
	}
}

// scrub runs VACUUM until no transaction that started before now sees a deleted row.
func (s *Store) scrub(ctx context.Context) error {
	report := new(vacuumReport)
	config := s.direct.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { report.add(n) }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var now int64
	if err := conn.QueryRow(ctx, "SELECT pg_current_xact_id()::text::bigint").Scan(&now); err != nil {
		return err
	}
	for try := 1; ; try++ {
		report.clear()
		if _, err := conn.Exec(ctx, s.schema.in(vacuum)); err != nil {
			return err
		}
		left := report.problem(uint32(now))
		if left == "" {
			return nil
		}
		if try == scrubTries || !report.older {
			return &state.Error{Kind: state.ErrUnavailable, Message: s.where + ": VACUUM has not removed all deleted rows: " +
				left, Hint: "see docs/erase.md, \"Over PostgreSQL\", and ask again"}
		}
		if err := pause.For(ctx, scrubPause); err != nil {
			return err
		}
	}
}

// vacuumReport collects the messages of VACUUM.
type vacuumReport struct {
	mu       sync.Mutex
	warnings []string
	// cutoffs has each table's cutoff: rows deleted by transactions before it were removed.
	cutoffs []uint32
	// older means that the last problem was older transactions that see deleted rows.
	older bool
}

// cutoffText matches the cutoff in messages of PostgreSQL 15 and later, and in those of 13 and 14.
var cutoffText = regexp.MustCompile(`(?:removable cutoff|oldest xmin): (\d+)`)

func (r *vacuumReport) add(n *pgconn.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.SeverityUnlocalized == "WARNING" {
		r.warnings = append(r.warnings, n.Message)
		return
	}
	if m := cutoffText.FindStringSubmatch(n.Message + "\n" + n.Detail); m != nil {
		if cutoff, err := strconv.ParseUint(m[1], 10, 32); err == nil {
			r.cutoffs = append(r.cutoffs, uint32(cutoff))
		}
	}
}

func (r *vacuumReport) clear() {
	r.mu.Lock()
	r.warnings, r.cutoffs = nil, nil
	r.mu.Unlock()
}

// problem says which deleted rows VACUUM left, of those deleted before the transaction now; empty if none.
func (r *vacuumReport) problem(now uint32) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.older = false
	if len(r.warnings) > 0 {
		return strings.Join(r.warnings, "; ")
	}
	if len(r.cutoffs) == 0 {
		return "its report has no cutoff that can be read: let the server say it in English (lc_messages = 'C')"
	}
	for _, cutoff := range slices.Compact(r.cutoffs) {
		if int32(cutoff-now) < 0 { // transaction numbers wrap around
			r.older = true
			return fmt.Sprintf("a transaction, a prepared transaction, a replication slot or a standby that is older sees "+
				"them (cutoff %d, now %d)", cutoff, now)
		}
	}
	return ""
}

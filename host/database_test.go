//go:build unix

package host_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/logs"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// openInDatabase opens a slot with full_history whose state is in a database.
func openInDatabase(t *testing.T, opts postgres.Options) *host.Slot {
	t.Helper()
	module, found := plugins.Find("full_history")
	require.True(t, found)
	h := host.Open(t, host.Options{OpenStore: func(ctx context.Context, _ string) (state.Store, error) {
		return postgres.Open(ctx, opts)
	}})
	return host.OpenSlot(t, h, host.ProviderConfig{Name: "full_history", Module: module.Wasm, Source: "builtin"})
}

// TestSharingASlotAddsNoRoundTrip compares what operations send to the database, for a host that shares it and one that
// owns it: what other hosts may have changed is read together with what the operation reads anyway.
func TestSharingASlotAddsNoRoundTrip(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	// A long session, because renewals would be counted.
	opts := postgres.Options{URL: server.URL, Session: time.Hour}
	_, err := postgres.Migrate(t.Context(), opts)
	require.NoError(t, err)

	type cost struct{ trips, transactions int }
	measure := func(shared bool) (known, unknown, retrieval cost) {
		var wire pgserver.Wire
		opts.Many, opts.Dial = shared, wire.Dial
		s := openInDatabase(t, opts)
		// fewest is the minimum of several runs: statements are prepared at first use, and the host checks for swaps in
		// between.
		fewest := func(do func(i int)) (least cost) {
			for i := range 10 {
				wire.Take()
				do(i)
				sent := wire.Take()
				now := cost{trips: sent.Trips}
				for _, statement := range sent.Statements {
					if statement == "commit" {
						now.transactions++
					}
				}
				if i == 0 || now.trips < least.trips {
					least = now
				}
			}
			return least
		}
		record := func(i int, user string) {
			e := host.Event(fmt.Sprint(shared, user, i), "I like tea.")
			e.UserID = user
			_, err := s.RecordEvent(t.Context(), e)
			require.NoError(t, err)
		}
		unknown = fewest(func(i int) { record(i, fmt.Sprint(shared, "person", i)) })
		known = fewest(func(i int) { record(i, "one") })
		retrieval = fewest(func(int) {
			_, err := s.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "tea?", SessionID: "s",
				Scope: abi.MemoryScope{RunID: host.TestScope.RunID, PersonaID: "one"}})
			require.NoError(t, err)
		})
		t.Logf("shared %t: record %d round trips, of a new person %d, retrieval %d", shared, known.trips, unknown.trips,
			retrieval.trips)
		return known, unknown, retrieval
	}
	known, unknown, retrieval := measure(false)
	sharedKnown, sharedUnknown, sharedRetrieval := measure(true)
	require.Equal(t, 1, known.transactions, "the event")
	require.Equal(t, 2, unknown.transactions, "the scope, the event")
	require.Zero(t, retrieval.transactions)
	require.Equal(t, known.transactions, sharedKnown.transactions)
	require.Equal(t, unknown.transactions, sharedUnknown.transactions)
	require.Zero(t, sharedRetrieval.transactions)
	require.Less(t, sharedKnown.trips, known.trips)
	require.Less(t, sharedUnknown.trips, unknown.trips)
	require.Less(t, sharedRetrieval.trips, retrieval.trips)
}

// TestTwoSlotsThatBeginInOneSchemaAreOne: hosts with new folders and different providers start at the same moment. They
// serve the same provider and share what is recorded, and the one with the other configuration warns.
func TestTwoSlotsThatBeginInOneSchemaAreOne(t *testing.T) {
	server := pgserver.Start(t)
	opts := postgres.Options{URL: server.URL, Many: true}
	_, err := postgres.Migrate(t.Context(), opts)
	require.NoError(t, err)
	names := []string{"full_history", "bm25", "full_history", "bm25"}
	slots := make([]*host.Slot, len(names))
	said := make([]logs.Buffer, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		module, found := plugins.Find(name)
		require.True(t, found)
		h := host.Open(t, host.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &said[i]}),
			OpenStore: func(ctx context.Context, _ string) (state.Store, error) { return postgres.Open(ctx, opts) }})
		wg.Go(func() {
			s, err := h.Open(context.Background(), host.ProviderConfig{Name: name, Module: module.Wasm, Source: "builtin"})
			assert.NoError(t, err)
			slots[i] = s
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	for _, s := range slots {
		t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	}
	_, err = slots[0].RecordEvent(t.Context(), host.Event("e", "I like oolong."))
	require.NoError(t, err)
	first, err := slots[0].Manifest(t.Context())
	require.NoError(t, err)
	for i, s := range slots {
		m, err := s.Manifest(t.Context())
		require.NoError(t, err)
		require.Equal(t, first.Provider, m.Provider)
		r, err := s.Retrieve(t.Context(), host.Ask("oolong"))
		require.NoError(t, err)
		require.Contains(t, r.FormattedContext, "oolong")
		require.Equal(t, names[i] != m.Provider, strings.Contains(said[i].String(), "than this host's file names"),
			"%s: %s", names[i], &said[i])
	}
}

// TestHostsRecordAPersonSideBySide: hosts record into one scope at the same moment, for a provider without native
// calls, which takes no lock before its only commit. The second one starts over; no caller gets a conflict.
func TestHostsRecordAPersonSideBySide(t *testing.T) {
	brief.Leave(t)
	opts := postgres.Options{URL: pgserver.Start(t).URL, Many: true}
	_, err := postgres.Migrate(t.Context(), opts)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 3 {
		s := openInDatabase(t, opts)
		wg.Go(func() {
			for n := range 30 {
				r, err := s.RecordEvent(t.Context(), host.Event(fmt.Sprint("e", i, "-", n), "I like oolong."))
				if assert.NoError(t, err) {
					assert.False(t, r.Duplicate)
				}
			}
		})
	}
	wg.Wait()
}

// TestTheManifestSaysWhatTheDatabaseKeeps: the database's settings are the slot's durability, and health warns if they
// may lose acknowledged writes.
func TestTheManifestSaysWhatTheDatabaseKeeps(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	_, err := postgres.Migrate(t.Context(), postgres.Options{URL: server.URL})
	require.NoError(t, err)
	for _, c := range []struct{ commit, standbys, warning string }{
		{"on", "", ""},
		{"off", "", "weak_commits: the database's synchronous_commit is off"},
		{"local", "", ""},
		{"local", "ANY 1 (*)", "weak_commits: the database's synchronous_commit is local, though"},
	} {
		t.Run(c.commit+" "+c.standbys, func(t *testing.T) {
			url := server.URL + "&synchronous_commit=" + c.commit
			conn, err := pgx.Connect(t.Context(), url)
			require.NoError(t, err)
			defer func() { require.NoError(t, conn.Close(t.Context())) }()
			_, err = conn.Exec(t.Context(), "ALTER SYSTEM SET synchronous_standby_names = '"+c.standbys+"'")
			require.NoError(t, err)
			_, err = conn.Exec(t.Context(), "SELECT pg_reload_conf()")
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				var names string
				err := conn.QueryRow(t.Context(), "SHOW synchronous_standby_names").Scan(&names)
				return err == nil && names == c.standbys
			}, time.Minute, 10*time.Millisecond)
			s := openInDatabase(t, postgres.Options{URL: url, Many: true})
			m, err := s.Manifest(t.Context())
			require.NoError(t, err)
			require.Equal(t, "synchronous_commit "+c.commit+", synchronous_standby_names '"+c.standbys+"'", m.Durability)
			health, err := s.Health(t.Context())
			require.NoError(t, err)
			for _, warnings := range [][]string{m.Warnings, health.Warnings} {
				if c.warning == "" {
					require.Empty(t, warnings)
				} else {
					require.Len(t, warnings, 1)
					require.Contains(t, warnings[0], c.warning)
				}
			}
		})
	}
}

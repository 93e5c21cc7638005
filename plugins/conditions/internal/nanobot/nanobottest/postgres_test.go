//go:build unix

package nanobottest_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
)

func TestMain(m *testing.M) { testcache.Run(m) }

// TestConformanceOnPostgreSQL: local providers pass the kit with their state in a file or in a database alike. Each
// folder of the kit is a schema.
func TestConformanceOnPostgreSQL(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	options := func(dir string) postgres.Options {
		return postgres.Options{URL: server.URL, Schema: fmt.Sprintf("folder_%08x", crc32.ChecksumIEEE([]byte(dir)))}
	}
	openStore := func(ctx context.Context, dir string) (state.Store, error) {
		if _, err := postgres.Migrate(ctx, options(dir)); err != nil {
			return nil, err
		}
		return postgres.Open(ctx, options(dir))
	}
	copyStore := func(from, to string) error {
		_, err := postgres.Migrate(t.Context(), options(to))
		if err != nil {
			return err
		}
		return copySchema(t.Context(), server.URL, options(from).Schema, options(to).Schema)
	}
	for _, name := range []string{"no_memory", "full_history", "bm25", "ledger_memory"} {
		t.Run(name, func(t *testing.T) {
			conformance.TestWith(t, conformance.Target{Provider: nanobottest.ProviderConfig(t, name, `{}`)},
				conformance.Options{CacheDir: testcache.Dir(), OpenStore: openStore, CopyStore: copyStore})
		})
	}
}

// copySchema copies a consistent snapshot of the rows to empty tables, except for those of meta, which distinguish
// slots.
func copySchema(ctx context.Context, url, from, to string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	statements := []string{"BEGIN ISOLATION LEVEL REPEATABLE READ"}
	for _, table := range []string{"spaces", "kv", "logs", "entries", "records", "commits"} {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s.%s OVERRIDING SYSTEM VALUE SELECT * FROM %s.%[2]s", to,
			table, from))
	}
	statements = append(statements,
		fmt.Sprintf("SELECT setval('%s.versions', (SELECT last_value FROM %s.versions))", to, from),
		fmt.Sprintf("SELECT setval('%s.logs_id_seq', (SELECT last_value FROM %s.logs_id_seq))", to, from), "COMMIT")
	_, err = conn.Exec(ctx, strings.Join(statements, ";"))
	return err
}

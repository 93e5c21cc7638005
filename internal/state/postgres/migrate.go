package postgres

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"path"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/memhost/memhost/internal/state"
)

// versionTable has one row for each completed migration. The n-th file has version n.
const versionTable = "memhost_migrations"

//go:embed migrations/*.sql
var migrations embed.FS

// migrationFiles returns the names of the files in the order in which they run.
func migrationFiles() ([]string, error) { return fs.Glob(migrations, "migrations/*.sql") }

// Migrate creates the schema and updates its tables to this version. It returns the names of the migrations that it
// ran, none if everything was up to date. Each migration is one transaction. Concurrent calls wait for each other.
func Migrate(ctx context.Context, opts Options) (ran []string, err error) {
	if opts.Direct != "" {
		opts.URL, opts.Password, opts.Direct, opts.DirectPassword = opts.Direct, opts.DirectPassword, "", ""
	}
	s, err := connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer s.leave(ctx)
	files, err := migrationFiles()
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, s.fail("migrate", err)
	}
	have, err := s.version(ctx)
	if err != nil {
		return nil, err
	}
	if known := int64(len(files)); have > known {
		return nil, s.newer(have, known)
	}
	for i, file := range files {
		did, err := s.migrate(ctx, i+1, file)
		if err != nil {
			return ran, s.fail("migrate: "+path.Base(file), err)
		}
		if did {
			ran = append(ran, path.Base(file))
		}
	}
	return ran, nil
}

// prepare creates the schema and the table of versions if they are missing. It checks first, because IF NOT EXISTS
// requires the privilege to create even if they exist. If two clients create the same thing at once, PostgreSQL fails
// one of them in spite of IF NOT EXISTS; its second attempt succeeds.
func (s *Store) prepare(ctx context.Context) error {
	var there, prepared bool
	err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
		to_regclass($2) IS NOT NULL`, s.opts.Schema, s.schema.in("@."+versionTable)).Scan(&there, &prepared)
	if err != nil || prepared {
		return err
	}
	table := s.schema.in("CREATE TABLE IF NOT EXISTS @." + versionTable +
		" (version bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
	make := func() error {
		return s.begin(ctx, s.pool, func(tx pgx.Tx) error {
			if !there {
				if _, err := tx.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+string(s.schema)); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, table)
			return err
		})
	}
	err = make()
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "23505" { // unique violation, in the catalogue
		err = make()
	}
	return err
}

// migrate runs one migration unless it was already run. The row of its version makes another program that runs the same
// migration wait.
func (s *Store) migrate(ctx context.Context, version int, file string) (ran bool, err error) {
	text, err := migrations.ReadFile(file)
	if err != nil {
		return false, err
	}
	err = s.begin(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.schema.in("INSERT INTO @."+versionTable+
			" (version) VALUES ($1) ON CONFLICT DO NOTHING"), version)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		ran = true
		// The files name tables without a schema: they run in this one.
		var current *string
		if err := tx.QueryRow(ctx, "SELECT set_config('search_path', $1::text, true)", string(s.schema)).
			Scan(new(string)); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT current_schema()::text").Scan(&current); err != nil {
			return err
		}
		if current == nil || *current != s.opts.Schema {
			return &state.Error{Kind: state.ErrDatabase, Message: s.where + ": the server does not take the schema for a " +
				"transaction", Hint: poolerHint}
		}
		_, err = tx.Exec(ctx, string(text), pgx.QueryExecModeSimpleProtocol) // allows several statements
		return err
	})
	return ran && err == nil, err
}

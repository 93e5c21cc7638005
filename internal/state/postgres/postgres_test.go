//go:build unix

package postgres_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/state/statetest"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/require"
)

func open(t testing.TB, opts postgres.Options) *postgres.Store {
	t.Helper()
	_, err := postgres.Migrate(t.Context(), opts)
	require.NoError(t, err)
	s, err := postgres.Open(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStoreAgreesWithModel(t *testing.T) {
	server := pgserver.Start(t)
	if checks := flag.Lookup("rapid.checks"); brief.Quick() {
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
		require.NoError(t, checks.Value.Set("10")) // histories, of 100
	}
	schemas := 0
	statetest.AgreesWithModel(t, func() (state.Store, func() (state.Store, error), error) {
		schemas++
		opts := postgres.Options{URL: server.URL, Schema: fmt.Sprint("model ", schemas)}
		if _, err := postgres.Migrate(t.Context(), opts); err != nil {
			return nil, nil, err
		}
		open := func() (state.Store, error) { return postgres.Open(t.Context(), opts) }
		s, err := open()
		return s, open, err
	})
}

//go:build unix

package postgres_test

import (
	"fmt"
	"testing"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/require"
)

// TestABatchIsOneTransactionOfTwoRoundTrips, however many operations it has; a read is one round trip.
func TestABatchIsOneTransactionOfTwoRoundTrips(t *testing.T) {
	var wire pgserver.Wire
	s := open(t, postgres.Options{URL: pgserver.Start(t).URL, Dial: wire.Dial})
	times := 0
	batch := func(deletes bool) {
		times++
		was, err := s.Record(t.Context(), "t", []byte("expected"))
		require.NoError(t, err)
		wire.Take()
		var b state.Batch
		b.ExpectRecord("t", []byte("expected"), was)
		b.ExpectRecord("t", []byte("absent"), nil)
		b.PutRecord("t", []byte("expected"), fmt.Append(nil, times))
		if deletes {
			b.DeletePrefix(space, "old")
		}
		for i := range 20 {
			b.Put(space, fmt.Sprint("key ", i), []byte("value"), state.AnyVersion)
			b.Append(space, fmt.Sprint("log ", i%3), []byte("entry"))
		}
		_, err = s.Commit(t.Context(), &b)
		require.NoError(t, err)
	}
	read := func(do func() error) func() {
		return func() {
			wire.Take()
			require.NoError(t, do())
		}
	}
	for _, of := range []struct {
		name         string
		do           func()
		trips        int
		transactions int
	}{
		{"batch", func() { batch(false) }, 2, 1},
		{"batch that deletes a prefix", func() { batch(true) }, 3, 1},
		{"get", read(func() error { _, err := s.Get(t.Context(), space, "key 1"); return err }), 1, 0},
		{"list", read(func() error { _, err := s.List(t.Context(), space, state.ListQuery{}); return err }), 1, 0},
		{"log", read(func() error {
			_, err := s.ReadLog(t.Context(), space, state.LogQuery{Log: "log 1"})
			return err
		}), 1, 0},
		{"three records and a list", read(func() error {
			_, _, err := s.ReadTogether(t.Context(), []fleet.Ref{{Table: "t", Key: []byte("a")}, {Table: "t", Key: []byte("b")},
				{Table: "t", Key: []byte("expected")}}, &fleet.List{Table: "t", Prefix: []byte("e")})
			return err
		}), 1, 0},
	} {
		of.do() // prepares the statements
		of.do()
		sent := wire.Take()
		require.Equal(t, of.trips, sent.Trips, "%s: %q", of.name, sent.Statements)
		begun, committed := 0, 0
		for _, statement := range sent.Statements {
			switch statement {
			case "begin isolation level read committed read write":
				begun++
			case "commit":
				committed++
			}
		}
		require.Equal(t, of.transactions, begun, of.name)
		require.Equal(t, of.transactions, committed, of.name)
	}
}

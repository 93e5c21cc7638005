package egress

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/bolt"
)

const (
	oneStatement   = "RETURN 1 AS ok"
	givenStatement = "RETURN $value AS value"
	liesStatement  = "CREATE (n:Probe {lie: true})"
)

// graph starts a database that knows the statements above.
func graph(t testing.TB, o bolt.Options) *bolt.Server {
	t.Helper()
	s := bolt.Start(t, o)
	s.Handle(oneStatement, reply(bolt.Answer{Columns: []string{"ok"}, Rows: [][]any{{int64(1)}}}))
	s.Handle(givenStatement, bolt.Statement{Answer: func(_ context.Context, q bolt.Query) bolt.Answer {
		return bolt.Answer{Columns: []string{"value"}, Rows: [][]any{{q.Params["value"]}}}
	}})
	writes := reply(bolt.Answer{})
	writes.Writes = true
	s.Handle(liesStatement, writes)
	return s
}

// reply is a statement with one answer.
func reply(a bolt.Answer) bolt.Statement {
	return bolt.Statement{Answer: func(context.Context, bolt.Query) bolt.Answer { return a }}
}

// requireCode asserts that err has this code and that message and hint contain all parts.
func requireCode(t testing.TB, err error, code abi.Code, parts ...string) *abi.Error {
	t.Helper()
	var e *abi.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code, "%v", e)
	for _, p := range parts {
		require.Contains(t, e.Message+" "+e.Hint, p)
	}
	return e
}

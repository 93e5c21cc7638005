package bolt_test

import (
	"context"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/fakes/bolt"
)

const password = "not-a-real-password"

func driverFor(t *testing.T, s *bolt.Server, scheme, password string) neo4j.DriverWithContext {
	t.Helper()
	d, err := neo4j.NewDriverWithContext(s.URL(scheme), neo4j.BasicAuth("neo4j", password, ""))
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

func run(d neo4j.DriverWithContext, mode neo4j.AccessMode, statement string, params map[string]any,
	o ...func(*neo4j.TransactionConfig)) ([]*neo4j.Record, error) {
	ctx := context.Background()
	session := d.NewSession(ctx, neo4j.SessionConfig{AccessMode: mode, FetchSize: 2})
	defer func() { _ = session.Close(ctx) }()
	result, err := session.Run(ctx, statement, params, o...)
	if err != nil {
		return nil, err
	}
	return result.Collect(ctx)
}

func codeOf(err error) string {
	if failure, ok := err.(*neo4j.Neo4jError); ok { //nolint:errorlint // the driver returns it bare
		return failure.Code
	}
	return ""
}

func TestTheRealDriverReadsRowsInBatches(t *testing.T) {
	for _, scheme := range []string{"bolt", "neo4j"} {
		t.Run(scheme, func(t *testing.T) {
			s := bolt.Start(t, bolt.Options{Password: password})
			s.Handle("UNWIND $names AS n RETURN n",
				bolt.Statement{Answer: func(_ context.Context, q bolt.Query) bolt.Answer {
					names, _ := q.Params["names"].([]any)
					a := bolt.Answer{Columns: []string{"n"}}
					for _, n := range names {
						a.Rows = append(a.Rows, []any{n})
					}
					return a
				}})
			records, err := run(driverFor(t, s, scheme, password), neo4j.AccessModeRead, "UNWIND $names AS n RETURN n",
				map[string]any{"names": []any{"a", int64(2), nil, 0.5, true}})
			require.NoError(t, err)
			require.Len(t, records, 5)
			assert.Equal(t, []any{int64(2)}, records[1].Values)
			require.Len(t, s.Ran(), 1)
			assert.Equal(t, "r", s.Ran()[0].Mode)
			assert.Equal(t, "neo4j", s.Ran()[0].User)
		})
	}
}

func TestTransactionsOfTheDriverWork(t *testing.T) {
	s := bolt.Start(t, bolt.Options{})
	s.Handle("CREATE (n)", bolt.Statement{Writes: true, Answer: func(context.Context, bolt.Query) bolt.Answer {
		return bolt.Answer{Counters: map[string]int64{"nodes-created": 1}}
	}})
	ctx := context.Background()
	session := driverFor(t, s, "bolt", password).NewSession(ctx, neo4j.SessionConfig{})
	defer func() { _ = session.Close(ctx) }()
	created, err := session.ExecuteWrite(ctx, func(tx neo4j.ManagedTransaction) (any, error) {
		result, err := tx.Run(ctx, "CREATE (n)", nil)
		if err != nil {
			return nil, err
		}
		summary, err := result.Consume(ctx)
		return summary.Counters().NodesCreated(), err
	})
	require.NoError(t, err)
	assert.Equal(t, 1, created)
}

func TestWhatNeo4jRefuses(t *testing.T) {
	s := bolt.Start(t, bolt.Options{Password: password})
	s.Handle("CREATE (n {id: $id})", bolt.Statement{Writes: true,
		Answer: func(context.Context, bolt.Query) bolt.Answer { return bolt.Answer{} }})
	s.Handle("RETURN 1", bolt.Statement{Answer: func(context.Context, bolt.Query) bolt.Answer {
		return bolt.Answer{Columns: []string{"1"}, Rows: [][]any{{int64(1)}}}
	}})
	s.Handle("slow", bolt.Statement{Answer: func(ctx context.Context, _ bolt.Query) bolt.Answer {
		<-ctx.Done()
		return bolt.Answer{}
	}})
	d := driverFor(t, s, "bolt", password)
	_, err := run(d, neo4j.AccessModeRead, "CREATE (n {id: $id})", map[string]any{"id": 1})
	assert.Equal(t, "Neo.ClientError.Statement.AccessMode", codeOf(err))
	_, err = run(d, neo4j.AccessModeWrite, "CREATE (n {id: $id})", nil)
	assert.Equal(t, "Neo.ClientError.Statement.ParameterMissing", codeOf(err))
	_, err = run(d, neo4j.AccessModeRead, "NO CYPHER", nil)
	assert.Equal(t, "Neo.ClientError.Statement.SyntaxError", codeOf(err))
	_, err = run(d, neo4j.AccessModeRead, "slow", nil, neo4j.WithTxTimeout(5*time.Millisecond))
	assert.Equal(t, "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration", codeOf(err))
	_, err = run(d, neo4j.AccessModeRead, "RETURN 1", nil)
	require.NoError(t, err, "RESET makes the connection usable after a failure")
	assert.Equal(t, 1, s.Accepted(), "and it was the same one all the time")
}

func TestThreeWrongPasswordsLockTheRightOneOutForSeconds(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := bolt.Start(t, bolt.Options{Password: password, Now: func() time.Time { return now }})
	ctx := context.Background()
	for range 3 {
		assert.Equal(t, "Neo.ClientError.Security.Unauthorized",
			codeOf(driverFor(t, s, "bolt", "wrong").VerifyConnectivity(ctx)))
	}
	right := driverFor(t, s, "bolt", password)
	assert.Equal(t, "Neo.ClientError.Security.AuthenticationRateLimit", codeOf(right.VerifyConnectivity(ctx)))
	now = now.Add(6 * time.Second)
	require.NoError(t, right.VerifyConnectivity(ctx))
	assert.Equal(t, 5, s.Logons())
}

func TestAServerThatStopsIsGoneAndComesBack(t *testing.T) {
	s := bolt.Start(t, bolt.Options{})
	d := driverFor(t, s, "bolt", password)
	ctx := context.Background()
	require.NoError(t, d.VerifyConnectivity(ctx))
	s.Stop()
	assert.Zero(t, s.Connections())
	require.Error(t, d.VerifyConnectivity(ctx))
	require.NoError(t, s.Listen())
	require.NoError(t, d.VerifyConnectivity(ctx))
}

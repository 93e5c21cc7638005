package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/bolt"
	"github.com/memhost/memhost/internal/test/logs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The statements of the probe's manifest.
const (
	oneStatement    = "RETURN 1 AS ok"
	rowsStatement   = "UNWIND range(1, $n) AS i RETURN i, 'row ' + i AS name"
	givenStatement  = "RETURN $value AS value"
	liesStatement   = "CREATE (n:Probe {lie: true})"
	createStatement = "CREATE (n:Probe {id: $id})"
	wipeStatement   = "MATCH (n:Probe) DETACH DELETE n"
)

// graph starts a database that answers the probe.
func graph(t testing.TB, o bolt.Options) *bolt.Server {
	t.Helper()
	s := bolt.Start(t, o)
	s.Handle(oneStatement, reply(bolt.Answer{Columns: []string{"ok"}, Rows: [][]any{{int64(1)}}}))
	s.Handle(rowsStatement, bolt.Statement{Answer: func(_ context.Context, q bolt.Query) bolt.Answer {
		n, _ := q.Params["n"].(int64)
		a := bolt.Answer{Columns: []string{"i", "name"}}
		for i := range n {
			a.Rows = append(a.Rows, []any{i + 1, fmt.Sprintf("row %d", i+1)})
		}
		return a
	}})
	s.Handle(givenStatement, bolt.Statement{Answer: func(_ context.Context, q bolt.Query) bolt.Answer {
		return bolt.Answer{Columns: []string{"value"}, Rows: [][]any{{q.Params["value"]}}}
	}})
	for _, statement := range []string{liesStatement, createStatement} {
		s.Handle(statement, bolt.Statement{Writes: true,
			Answer: reply(bolt.Answer{Counters: map[string]int64{"nodes-created": 1, "properties-set": 1}}).Answer})
	}
	s.Handle(wipeStatement, bolt.Statement{Writes: true,
		Answer: reply(bolt.Answer{Counters: map[string]int64{"nodes-deleted": 7}}).Answer})
	return s
}

// reply returns a statement with one answer.
func reply(a bolt.Answer) bolt.Statement {
	return bolt.Statement{Answer: func(context.Context, bolt.Query) bolt.Answer { return a }}
}

func failing(code, message string) bolt.Statement {
	return reply(bolt.Answer{Failure: &bolt.Failure{Code: code, Message: message}})
}

// graphConfig configures a probe with a database and its password.
func graphConfig(url string) host.ProviderConfig {
	return host.ProviderConfig{Name: "probe", Module: host.ProbeModule,
		Block:   abi.Raw(fmt.Sprintf(`{"db":%q,"db_password":{"secret":"P"}}`, url)),
		Secrets: map[string]host.Secret{"P": {Value: func() (string, error) { return host.TestSecret, nil }, Origin: url}}}
}

func graphSlot(t testing.TB, s *bolt.Server, o host.Options) *host.Slot {
	t.Helper()
	return host.OpenSlot(t, host.Open(t, o), graphConfig(s.URL("bolt")))
}

const notKnown = "it is not known whether the event was stored"

func TestStatementIsRunAndAccountedFor(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := host.OpenSlot(t, host.Impatient(host.Open(t, host.Options{})), graphConfig(s.URL("bolt")))
	r, err := slot.Retrieve(context.Background(), host.Ask(`bolt rows {"n":2}`))
	require.NoError(t, err)
	var said string
	require.NoError(t, json.Unmarshal(r.Raw.Calls[0].Body, &said))
	assert.Equal(t, `{"columns":["i","name"],"rows":2,"more":false,"counters":{},"server":"Neo4j/5.26.2"} [1,"row 1"]`+"\n"+`[2,"row 2"]`+"\n", said)
	require.Len(t, r.Trace.IO, 1)
	seen := r.Trace.IO[0]
	assert.Equal(t, "rows", seen.Route)
	assert.Equal(t, "read", seen.Class)
	assert.EqualValues(t, 200, seen.Status)
	assert.EqualValues(t, len(`{"n":2}`), seen.BytesOut)
	assert.EqualValues(t, len(`[1,"row 1"]`+"\n"+`[2,"row 2"]`+"\n"), seen.BytesIn)
	assert.Positive(t, r.Trace.BackendMS)

	require.Len(t, s.Ran(), 1)
	q := s.Ran()[0]
	assert.Equal(t, rowsStatement, q.Statement, "the text is the manifest's")
	assert.Equal(t, "r", q.Mode)
	assert.Equal(t, "neo4j", q.User)
	assert.Empty(t, q.Database, "none is configured")
	assert.Positive(t, q.Timeout)
	assert.LessOrEqual(t, q.Timeout, time.Second, "the call's own deadline")
}

func TestUserAndDatabaseComeFromTheBlock(t *testing.T) {
	s := graph(t, bolt.Options{User: "reader", Password: host.TestSecret})
	c := graphConfig(s.URL("bolt"))
	c.Block = abi.Raw(fmt.Sprintf(`{"db":%q,"db_password":{"secret":"P"},"db_user":"reader","db_name":"memories"}`,
		s.URL("bolt")))
	host.Retrieved(t, host.OpenSlot(t, host.Open(t, host.Options{}), c), "bolt one")
	assert.Equal(t, "reader", s.Ran()[0].User)
	assert.Equal(t, "memories", s.Ran()[0].Database)
}

func TestDatabaseWithoutPasswordIsAskedByNobody(t *testing.T) {
	s := graph(t, bolt.Options{})
	host.Retrieved(t, host.OpenSlot(t, host.Open(t, host.Options{}), host.ProbeConfig(fmt.Sprintf(`{"db":%q}`, s.URL("bolt")))), "bolt one")
	assert.Empty(t, s.Ran()[0].User)
}

func TestStatementsThatPolicyRefusesNeverLeaveTheHost(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := graphSlot(t, s, host.Options{})
	for command, c := range map[string]struct {
		code abi.Code
		says string
	}{
		"bolt ones":          {abi.CodeDenied, `did you mean "one"`},
		"bolt get":           {abi.CodeDenied, "of protocol http, not bolt"},
		"http one":           {abi.CodeDenied, "of protocol bolt, not http"},
		"bolt wipe":          {abi.CodeDenied, "class admin"},
		"bolt one [1]":       {abi.CodeInvalidArgument, "params: want an object"},
		`bolt one {"a":1e9x`: {abi.CodeInvalidArgument, ""},
	} {
		_, err := slot.Retrieve(context.Background(), host.Ask(command))
		host.RequireCode(t, err, c.code, c.says)
	}
	assert.Zero(t, s.Accepted(), "not even a connection")
	_, err := slot.NativeMutation(context.Background(),
		&abi.NativeMutation{Scope: host.TestScope, Name: "bolt wipe", Reason: "r"})
	require.NoError(t, err, "admin is for mutations")
	assert.Equal(t, "w", s.Ran()[0].Mode)

	slot = host.ProbeSlot(t, `{}`)
	_, err = slot.Retrieve(context.Background(), host.Ask("bolt one"))
	host.RequireCode(t, err, abi.CodeDenied, "origin db is not configured")
}

func TestReadOnlyLetsOnlyReadStatementsPassAndNeo4jHoldsThemToIt(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := graphSlot(t, s, host.Options{})
	assert.Equal(t, `{"columns":[],"rows":0,"more":false,"counters":{"nodes_created":1,"properties_set":1},"server":"Neo4j/5.26.2"} `,
		host.RunCommands(t, slot, "e1", `bolt create {"id":1}`)[0])
	_, err := slot.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = slot.Retrieve(context.Background(), host.Ask(`bolt create {"id":1}`))
	host.RequireCode(t, err, abi.CodeReadOnly, "class write")
	host.Retrieved(t, slot, "bolt one")
	assert.Len(t, s.Ran(), 2)
	_, err = slot.Retrieve(context.Background(), host.Ask("bolt lies"))
	e := host.RequireCode(t, err, abi.CodeBackend, "defect of the module's manifest")
	assert.Equal(t, "Neo.ClientError.Statement.AccessMode", e.Reason)
	assert.Len(t, s.Ran(), 2, "a route that is called read and writes is refused by the database")
}

func TestRowsAreCutAtTheLimitsAndThatIsSaid(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := graphSlot(t, s, host.Options{Limits: host.Limits{Rows: 1500, BodyBytes: 64 << 10}})
	for name, c := range map[string]struct{ command, want string }{
		"just as many":      {`bolt_count rows {"n":1500}`, "1500 rows, 3000 values"},
		"one row too many":  {`bolt_count rows {"n":1501}`, "1500 rows, 3000 values"},
		"far too many rows": {`bolt_count rows {"n":5000}`, "1500 rows, 3000 values"},
	} {
		assert.Equal(t, c.want, host.Retrieved(t, slot, c.command)[0], name)
	}
	assert.Contains(t, host.Retrieved(t, slot, `bolt rows {"n":1500}`)[0], `"rows":1500,"more":false`)
	assert.Contains(t, host.Retrieved(t, slot, `bolt rows {"n":1501}`)[0], `"rows":1500,"more":true`)

	s.Handle(givenStatement, reply(bolt.Answer{Columns: []string{"value"},
		Rows: [][]any{{strings.Repeat("x", 40<<10)}, {strings.Repeat("y", 40<<10)}}}))
	said := host.Retrieved(t, slot, `bolt given {"value":1}`)[0]
	assert.Contains(t, said, `"rows":1,"more":true`, "the bytes are cut between rows")
	assert.NotContains(t, said, "y")
	s.Handle(givenStatement, reply(bolt.Answer{Columns: []string{"value"},
		Rows: [][]any{{strings.Repeat("x", 65<<10)}}}))
	_, err := slot.Retrieve(context.Background(), host.Ask(`bolt given {"value":1}`))
	host.RequireCode(t, err, abi.CodeTooLarge, "a row of more than 65536 bytes")
	host.RequireUsable(t, slot, "x")
	assert.Equal(t, 1, s.Accepted(), "what was cut does not stay on the connection")
}

func TestWriteWhoseRowsAreCutHasRunToItsEnd(t *testing.T) {
	s := graph(t, bolt.Options{})
	s.Handle(createStatement, bolt.Statement{Writes: true,
		Answer: reply(bolt.Answer{Columns: []string{"id"}, Rows: [][]any{{int64(1)}, {int64(2)}},
			Counters: map[string]int64{"nodes-created": 2}}).Answer})
	slot := host.OpenSlot(t, host.Open(t, host.Options{Limits: host.Limits{Rows: 1}}), host.ProbeConfig(fmt.Sprintf(`{"db":%q}`, s.URL("bolt"))))
	assert.Contains(t, host.RunCommands(t, slot, "e1", `bolt create {"id":1}`)[0],
		`"rows":1,"more":true,"counters":{"nodes_created":2}`)
}

func TestFailuresOfTheDatabaseAreTyped(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := graphSlot(t, s, host.Options{})
	for _, c := range []struct {
		neo4j     string
		code      abi.Code
		retryable bool
	}{
		{"Neo.ClientError.Statement.SyntaxError", abi.CodeBackend, false},
		{"Neo.ClientError.Statement.ParameterMissing", abi.CodeBackend, false},
		{"Neo.ClientError.Schema.ConstraintValidationFailed", abi.CodeBackend, false},
		{"Neo.ClientError.Database.DatabaseNotFound", abi.CodeBackend, false},
		{"Neo.DatabaseError.Statement.ExecutionFailed", abi.CodeBackend, false},
		{"Neo.ClientError.Security.Forbidden", abi.CodeDenied, false},
		{"Neo.ClientError.Security.CredentialsExpired", abi.CodeUnauthenticated, false},
		{"Neo.ClientError.Transaction.TransactionTimedOut", abi.CodeTimeout, true},
		{"Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration", abi.CodeTimeout, true},
		{"Neo.TransientError.Transaction.DeadlockDetected", abi.CodeUnavailable, true},
		{"Neo.TransientError.General.DatabaseUnavailable", abi.CodeUnavailable, true},
		{"Neo.ClientError.Cluster.NotALeader", abi.CodeUnavailable, true},
		{"Neo.ClientError.General.ForbiddenOnReadOnlyDatabase", abi.CodeUnavailable, true},
	} {
		t.Run(c.neo4j, func(t *testing.T) {
			slot, s := slot, s
			if c.code == abi.CodeUnauthenticated { // it is remembered
				s = graph(t, bolt.Options{Password: host.TestSecret})
				slot = graphSlot(t, s, host.Options{})
			}
			s.Handle(givenStatement, failing(c.neo4j, "what it says"))
			_, err := slot.Retrieve(context.Background(), host.Ask(`bolt given {"value":1}`))
			e := host.RequireCode(t, err, c.code, "what it says")
			assert.Equal(t, c.neo4j, e.Reason)
			assert.Equal(t, c.neo4j+": what it says", e.Native.Body)
			assert.Equal(t, c.retryable, e.Retryable)
			assert.Equal(t, "given", e.Route)
		})
	}
	host.RequireUsable(t, slot, "x")
}

func TestStatusOfAFailureStandsInTheTrace(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	var seen []host.Observation
	slot := graphSlot(t, s, host.Options{Observe: func(o host.Observation) {
		if o.Operation == abi.OpRetrieve {
			seen = append(seen, o)
		}
	}})
	for i, c := range []struct {
		code   string
		status int64
	}{{"Neo.ClientError.Statement.SyntaxError", 400}, {"Neo.TransientError.General.OutOfMemoryError", 503},
		{"Neo.DatabaseError.General.UnknownError", 500}} {
		s.Handle(givenStatement, failing(c.code, "m"))
		_, err := slot.Retrieve(context.Background(), host.Ask(`bolt given {"value":1}`))
		require.Error(t, err)
		require.Len(t, seen, i+1)
		require.Len(t, seen[i].IO, 1)
		assert.Equal(t, c.status, seen[i].IO[0].Status)
	}
}

func TestPasswordNeverReachesTheGuestOrAnError(t *testing.T) {
	var log logs.Buffer
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := graphSlot(t, s, host.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace})})
	assert.NotContains(t, host.Retrieved(t, slot, "config")[0], host.TestSecret)
	s.Handle(givenStatement, reply(bolt.Answer{Columns: []string{"value"}, Rows: [][]any{{"echo " + host.TestSecret}}}))
	said := host.Retrieved(t, slot, `bolt given {"value":1}`)[0]
	assert.Contains(t, said, "echo [secret removed]")
	assert.NotContains(t, said, host.TestSecret)
	s.Handle(givenStatement, failing("Neo.ClientError.Statement.SyntaxError", "near "+host.TestSecret))
	_, err := slot.Retrieve(context.Background(), host.Ask(`bolt given {"value":1}`))
	e := host.RequireCode(t, err, abi.CodeBackend)
	assert.NotContains(t, string(abi.Marshal(e)), host.TestSecret)
	assert.NotContains(t, log.String(), host.TestSecret)
}

func TestDatabaseBesideAServerDoesNotMakeTheScopesNew(t *testing.T) {
	found := func(before, after string) string {
		s := host.OpenSlot(t, host.Open(t, host.Options{}), host.ProbeConfig(before))
		host.RunCommands(t, s, "e", "put k kept")
		_, err := s.Swap(t.Context(), host.ProbeConfig(after))
		require.NoError(t, err)
		return host.Retrieved(t, s, "get k")[0]
	}
	assert.Equal(t, "kept", found(`{"url":"http://127.0.0.1:9"}`, `{"url":"http://127.0.0.1:9","db":"bolt://127.0.0.1:7"}`))
	assert.Equal(t, "absent", found(`{"db":"bolt://127.0.0.1:7"}`, `{"db":"bolt://127.0.0.1:8"}`))
	assert.Equal(t, "absent", found(`{"db":"bolt://127.0.0.1:7"}`, `{"db":"bolt://127.0.0.1:7","db_name":"other"}`))
}

func TestInterceptorSeesStatementsAndDecidesWhatComesOfThem(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	var seen []host.NativeCall
	answer := func(ctx context.Context, next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		return next(ctx)
	}
	slot := graphSlot(t, s, host.Options{Intercept: func(ctx context.Context, c host.NativeCall,
		next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		seen = append(seen, c)
		return answer(ctx, next)
	}})
	assert.Contains(t, host.Retrieved(t, slot, `bolt rows {"n":1}`)[0], "row 1")
	require.Len(t, seen, 1)
	assert.Equal(t, host.NativeCall{Provider: "probe", Operation: abi.OpRetrieve, Scope: host.TestScope, Generation: 1,
		Route: "rows", Origin: "db", Protocol: "bolt",
		Class: abi.ClassRead, Statement: rowsStatement, Body: []byte(`{"n":1}`)}, seen[0])

	answer = func(context.Context, func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		return host.NativeAnswer{}, &host.NativeFailure{Code: "Neo.TransientError.General.OutOfMemoryError", Message: "injected"}
	}
	_, err := slot.Retrieve(context.Background(), host.Ask("bolt one"))
	assert.Equal(t, "Neo.TransientError.General.OutOfMemoryError: injected",
		host.RequireCode(t, err, abi.CodeUnavailable).Native.Body)
	answer = func(ctx context.Context, next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		a, err := next(ctx)
		a.Bolt = nil
		return a, err
	}
	assert.Equal(t, `{"columns":[],"rows":2,"more":false,"counters":{}} [1,"row 1"]`+"\n"+`[2,"row 2"]`+"\n",
		host.Retrieved(t, slot, `bolt rows {"n":2}`)[0])
	assert.Len(t, s.Ran(), 2)
}

func TestWriteWhoseConnectionBreaksIsUncertainAndWhoseDatabaseIsGoneIsNot(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := graphSlot(t, s, host.Options{})
	s.Handle(createStatement, bolt.Statement{Writes: true, Answer: reply(bolt.Answer{Drop: true}).Answer})
	_, err := slot.RecordEvent(context.Background(), host.Event("e1", `bolt create {"id":1}`))
	host.RequireCode(t, err, abi.CodeUnavailable, "broke", notKnown)
	s.Handle(createStatement, failing("Neo.ClientError.Schema.ConstraintValidationFailed", "it is there"))
	_, err = slot.RecordEvent(context.Background(), host.Event("e2", `bolt create {"id":2}`))
	assert.NotContains(t, host.RequireCode(t, err, abi.CodeBackend).Hint, notKnown)
	s.Stop()
	_, err = slot.RecordEvent(context.Background(), host.Event("e3", `bolt create {"id":3}`))
	assert.NotContains(t, host.RequireCode(t, err, abi.CodeUnavailable, "cannot be reached").Hint, notKnown)
}

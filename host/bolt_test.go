package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/fakes/bolt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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

// graph is a database that can answer the probe.
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
		s.Handle(statement, bolt.Statement{Writes: true, Answer: reply(bolt.Answer{Counters: map[string]int64{"nodes-created": 1, "properties-set": 1}}).Answer})
	}
	s.Handle(wipeStatement, bolt.Statement{Writes: true, Answer: reply(bolt.Answer{Counters: map[string]int64{"nodes-deleted": 7}}).Answer})
	return s
}

// reply is a statement with one answer.
func reply(a bolt.Answer) bolt.Statement {
	return bolt.Statement{Answer: func(context.Context, bolt.Query) bolt.Answer { return a }}
}

func failing(code, message string) bolt.Statement {
	return reply(bolt.Answer{Failure: &bolt.Failure{Code: code, Message: message}})
}

// graphConfig is a probe with a database and its password.
func graphConfig(url string) ProviderConfig {
	return ProviderConfig{Name: "probe", Module: probeModule, Block: abi.Raw(fmt.Sprintf(`{"db":%q,"db_password":{"secret":"P"}}`, url)),
		Secrets: map[string]Secret{"P": {Value: func() (string, error) { return testSecret, nil }, Origin: url}}}
}

func graphSlot(t testing.TB, s *bolt.Server, o Options) *Slot {
	t.Helper()
	return openSlot(t, open(t, o), graphConfig(s.URL("bolt")))
}

func TestStatementIsRunAndAccountedFor(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{})
	r, err := slot.Retrieve(context.Background(), ask(`bolt rows {"n":2}`))
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
	s := graph(t, bolt.Options{User: "reader", Password: testSecret})
	c := graphConfig(s.URL("bolt"))
	c.Block = abi.Raw(fmt.Sprintf(`{"db":%q,"db_password":{"secret":"P"},"db_user":"reader","db_name":"memories"}`, s.URL("bolt")))
	retrieved(t, openSlot(t, open(t, Options{}), c), "bolt one")
	assert.Equal(t, "reader", s.Ran()[0].User)
	assert.Equal(t, "memories", s.Ran()[0].Database)
}

func TestDatabaseWithoutPasswordIsAskedByNobody(t *testing.T) {
	s := graph(t, bolt.Options{})
	retrieved(t, openSlot(t, open(t, Options{}), probeConfig(fmt.Sprintf(`{"db":%q}`, s.URL("bolt")))), "bolt one")
	assert.Empty(t, s.Ran()[0].User)
}

func TestParametersBecomeCypher(t *testing.T) {
	for _, c := range []struct {
		name, json string
		want       any
	}{
		{"a whole number", `7`, int64(7)},
		{"a whole number beyond doubles", `9007199254740993`, int64(9007199254740993)},
		{"the least", `-9223372036854775808`, int64(math.MinInt64)},
		{"a fraction of nothing", `7.0`, 7.0},
		{"an exponent", `7e0`, 7.0},
		{"text with Cypher in it", `"') DETACH DELETE n //"`, "') DETACH DELETE n //"},
		{"null", `null`, nil},
		{"truth", `[true,false]`, []any{true, false}},
		{"a list of lists", `[[1],["a",null],{}]`, []any{[]any{int64(1)}, []any{"a", nil}, map[string]any{}}},
		{"a map whose keys differ by case", `{"a":1,"A":{"b":[]}}`, map[string]any{"a": int64(1), "A": map[string]any{"b": []any{}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := boltParams(abi.Raw(`{"value":` + c.json + `}`))
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"value": c.want}, got)
		})
	}
	for _, c := range []struct{ name, json, want string }{
		{"a list", `[1]`, "params: want an object"},
		{"a number beyond 64 bits", `{"a":[1,9223372036854775808]}`, "params.a[1]: 9223372036854775808 is no whole number of 64 bits"},
		{"a number beyond doubles", `{"a":{"b":1e999}}`, "params.a.b: 1e999 is no number of 64 bits"},
		{"a key twice", `{"a":1,"a":2}`, `params: has the key "a" twice`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := boltParams(abi.Raw(c.json))
			requireCode(t, err, abi.CodeInvalidArgument, c.want)
		})
	}
	got, err := boltParams(nil)
	require.NoError(t, err)
	assert.Empty(t, got)
}

// askDatabase runs "RETURN $value AS value" past the guest, with an answer of the test's.
func askDatabase(t testing.TB, d *database, limit statement) (*abi.BoltResult, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	limit.text, limit.reads = givenStatement, true
	if limit.params == nil {
		limit.params = map[string]any{"value": nil}
	}
	head, rows, err := d.run(ctx, limit)
	return head, string(rows), err
}

func testDatabase(t testing.TB, url string) *database {
	t.Helper()
	o, err := openOrigin(abi.OriginDecl{Name: "db", From: "/db", Protocol: "bolt"}, map[string]any{"db": url}, time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { o.close(context.Background()) })
	return o.database
}

func TestTypesOfCypherAreSpelledAsTheSpecificationSays(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 30, 0, 1, time.FixedZone("", 3600))
	oslo := bolt.Node("4:f0c1:7", []string{"Entity", "Place"}, map[string]any{"name": "Oslo", "at": []any{1.5}})
	user := bolt.Node("4:f0c1:9", nil, map[string]any{})
	s := graph(t, bolt.Options{})
	d := testDatabase(t, s.URL("bolt"))
	for _, c := range []struct {
		name  string
		value any
		want  string
	}{
		{"null", nil, `null`},
		{"BOOLEAN", true, `true`},
		{"INTEGER", int64(9007199254740993), `9007199254740993`},
		{"FLOAT without fraction", 1.0, `1.0`},
		{"FLOAT", 6.02e23, `6.02e+23`},
		{"small FLOAT", -5e-324, `-5e-324`},
		{"FLOAT that is no number", math.NaN(), `"NaN"`},
		{"FLOAT without end", math.Inf(1), `"Infinity"`},
		{"FLOAT without end below", math.Inf(-1), `"-Infinity"`},
		{"STRING", "two\nlines \"quoted\" 🥾", `"two\nlines \"quoted\" 🥾"`},
		{"BYTES", []byte{0, 1}, `"AAE="`},
		{"LIST", []any{int64(1), []any{nil}}, `[1,[null]]`},
		{"MAP", map[string]any{"b": int64(1), "a": map[string]any{}}, `{"a":{},"b":1}`},
		{"DATE", bolt.Date(20513), `"2026-03-01"`},
		{"DATE before the epoch", bolt.Date(-1), `"1969-12-31"`},
		{"DATE in a far year", bolt.Date(20513 + 10000*365.2425), `"+012026-03-01"`},
		{"DATE before the year 0", bolt.Date(-719529), `"-000001-12-31"`},
		{"LOCAL TIME", bolt.LocalTime(10*time.Hour + 30*time.Minute + 500*time.Millisecond), `"10:30:00.5"`},
		{"ZONED TIME", bolt.Time(10*time.Hour+30*time.Minute, 3600), `"10:30:00+01:00"`},
		{"ZONED TIME in UTC", bolt.Time(time.Nanosecond, 0), `"00:00:00.000000001Z"`},
		{"LOCAL DATETIME", bolt.LocalDateTime(time.Date(2026, 3, 1, 10, 30, 0, 0, time.UTC)), `"2026-03-01T10:30:00"`},
		{"ZONED DATETIME", bolt.DateTime(at), `"2026-03-01T10:30:00.000000001+01:00"`},
		{"ZONED DATETIME in UTC", bolt.DateTime(at.UTC()), `"2026-03-01T09:30:00.000000001Z"`},
		{"ZONED DATETIME in a named zone", bolt.DateTimeZone(at, "Europe/Oslo"), `"2026-03-01T10:30:00.000000001+01:00"`},
		{"the same instant in the named UTC", bolt.DateTimeZone(at, "UTC"), `"2026-03-01T09:30:00.000000001Z"`},
		{"DURATION", bolt.Duration(14, 3, -2, 500_000_000), `"P14M3DT-1.5S"`},
		{"DURATION just below nothing", bolt.Duration(0, 0, -1, 999_999_999), `"PT-0.000000001S"`},
		{"DURATION of nothing", bolt.Duration(0, 0, 0, 0), `"PT0S"`},
		{"DURATION of days", bolt.Duration(0, -1, 0, 0), `"P-1D"`},
		{"POINT", bolt.Point(4326, 10.75, 59.91), `{"srid":4326,"x":10.75,"y":59.91}`},
		{"POINT in space", bolt.Point(9157, 1, 2, 3), `{"srid":9157,"x":1.0,"y":2.0,"z":3.0}`},
		{"NODE", oslo, `{"id":"4:f0c1:7","labels":["Entity","Place"],"properties":{"at":[1.5],"name":"Oslo"}}`},
		{"RELATIONSHIP", bolt.Relationship("5:f0c1:2", "KNOWS", "4:f0c1:9", "4:f0c1:7", map[string]any{"since": bolt.Date(0)}),
			`{"id":"5:f0c1:2","type":"KNOWS","start":"4:f0c1:9","end":"4:f0c1:7","properties":{"since":"1970-01-01"}}`},
		{"PATH", bolt.Path(user, "5:f0c1:2", "KNOWS", map[string]any{}, oslo),
			`{"nodes":[{"id":"4:f0c1:9","labels":[],"properties":{}},{"id":"4:f0c1:7","labels":["Entity","Place"],"properties":{"at":[1.5],"name":"Oslo"}}],` +
				`"relationships":[{"id":"5:f0c1:2","type":"KNOWS","start":"4:f0c1:9","end":"4:f0c1:7","properties":{}}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Handle(givenStatement, reply(bolt.Answer{Columns: []string{"value"}, Rows: [][]any{{c.value}}}))
			_, rows, err := askDatabase(t, d, statement{rows: 1, bytes: 1 << 20})
			require.NoError(t, err)
			assert.Equal(t, "["+c.want+"]\n", rows)
			assert.True(t, json.Valid([]byte(rows)))
		})
	}
	t.Run("a zone that nobody knows is an error and no guess", func(t *testing.T) {
		s.Handle(givenStatement, reply(bolt.Answer{Columns: []string{"value"}, Rows: [][]any{{bolt.DateTimeZone(at, "Atlantis/Poseidonis")}}}))
		_, _, err := askDatabase(t, d, statement{rows: 1, bytes: 1 << 20})
		require.ErrorContains(t, err, "Atlantis/Poseidonis")
		assert.EqualValues(t, 200, boltStatus(err), "the database did answer")
	})
}

// writtenFloat draws numbers that JSON writes as what they are: a whole number beyond 64 bits would be written as an integer, which is refused.
func writtenFloat() *rapid.Generator[float64] {
	return rapid.Float64().Filter(func(f float64) bool { return math.Abs(f) < 1<<63 || math.Abs(f) >= 1e21 })
}

func TestWhatIsSentComesBack(t *testing.T) {
	d := testDatabase(t, graph(t, bolt.Options{}).URL("bolt"))
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.OneOf(rapid.String().AsAny(), rapid.Int64().AsAny(), writtenFloat().AsAny(), rapid.SliceOf(rapid.String()).AsAny(),
			rapid.MapOf(rapid.String(), rapid.Int64()).AsAny()).Draw(rt, "value")
		text, err := json.Marshal(map[string]any{"value": value})
		require.NoError(rt, err)
		params, err := boltParams(text)
		require.NoError(rt, err)
		_, rows, err := askDatabase(t, d, statement{params: params, rows: 1, bytes: 1 << 20})
		require.NoError(rt, err)
		var back [1]any
		require.NoError(rt, json.Unmarshal([]byte(rows), &back))
		want := map[string]any{}
		require.NoError(rt, json.Unmarshal(text, &want))
		assert.Equal(rt, want["value"], back[0])
	})
}

func TestStatementsThatPolicyRefusesNeverLeaveTheHost(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{})
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
		_, err := slot.Retrieve(context.Background(), ask(command))
		requireCode(t, err, c.code, c.says)
	}
	assert.Zero(t, s.Accepted(), "not even a connection")
	_, err := slot.NativeMutation(context.Background(), &abi.NativeMutation{Scope: testScope, Name: "bolt wipe", Reason: "r"})
	require.NoError(t, err, "admin is for mutations")
	assert.Equal(t, "w", s.Ran()[0].Mode)

	slot = probeSlot(t, `{}`)
	_, err = slot.Retrieve(context.Background(), ask("bolt one"))
	requireCode(t, err, abi.CodeDenied, "origin db is not configured")
}

func TestReadOnlyLetsOnlyReadStatementsPassAndNeo4jHoldsThemToIt(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{})
	assert.Equal(t, `{"columns":[],"rows":0,"more":false,"counters":{"nodes_created":1,"properties_set":1},"server":"Neo4j/5.26.2"} `,
		told(t, slot, "e1", `bolt create {"id":1}`)[0])
	_, err := slot.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = slot.Retrieve(context.Background(), ask(`bolt create {"id":1}`))
	requireCode(t, err, abi.CodeReadOnly, "class write")
	retrieved(t, slot, "bolt one")
	assert.Len(t, s.Ran(), 2)
	_, err = slot.Retrieve(context.Background(), ask("bolt lies"))
	e := requireCode(t, err, abi.CodeBackend, "defect of the module's manifest")
	assert.Equal(t, "Neo.ClientError.Statement.AccessMode", e.Reason)
	assert.Len(t, s.Ran(), 2, "a route that is called read and writes is refused by the database")
}

func TestRowsAreCutAtTheLimitsAndThatIsSaid(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{Limits: Limits{Rows: 1500, BodyBytes: 64 << 10}})
	for name, c := range map[string]struct{ command, want string }{
		"just as many":      {`bolt_count rows {"n":1500}`, "1500 rows, 3000 values"},
		"one row too many":  {`bolt_count rows {"n":1501}`, "1500 rows, 3000 values"},
		"far too many rows": {`bolt_count rows {"n":5000}`, "1500 rows, 3000 values"},
	} {
		assert.Equal(t, c.want, retrieved(t, slot, c.command)[0], name)
	}
	assert.Contains(t, retrieved(t, slot, `bolt rows {"n":1500}`)[0], `"rows":1500,"more":false`)
	assert.Contains(t, retrieved(t, slot, `bolt rows {"n":1501}`)[0], `"rows":1500,"more":true`)

	s.Handle(givenStatement, reply(bolt.Answer{Columns: []string{"value"}, Rows: [][]any{{strings.Repeat("x", 40<<10)}, {strings.Repeat("y", 40<<10)}}}))
	said := retrieved(t, slot, `bolt given {"value":1}`)[0]
	assert.Contains(t, said, `"rows":1,"more":true`, "the bytes are cut between rows")
	assert.NotContains(t, said, "y")
	s.Handle(givenStatement, reply(bolt.Answer{Columns: []string{"value"}, Rows: [][]any{{strings.Repeat("x", 65<<10)}}}))
	_, err := slot.Retrieve(context.Background(), ask(`bolt given {"value":1}`))
	requireCode(t, err, abi.CodeTooLarge, "a row of more than 65536 bytes")
	requireUsable(t, slot, "x")
	assert.Equal(t, 1, s.Accepted(), "what was cut does not stay on the connection")
}

func TestWriteWhoseRowsAreCutHasRunToItsEnd(t *testing.T) {
	s := graph(t, bolt.Options{})
	s.Handle(createStatement, bolt.Statement{Writes: true, Answer: reply(bolt.Answer{Columns: []string{"id"}, Rows: [][]any{{int64(1)}, {int64(2)}},
		Counters: map[string]int64{"nodes-created": 2}}).Answer})
	slot := openSlot(t, open(t, Options{Limits: Limits{Rows: 1}}), probeConfig(fmt.Sprintf(`{"db":%q}`, s.URL("bolt"))))
	assert.Contains(t, told(t, slot, "e1", `bolt create {"id":1}`)[0], `"rows":1,"more":true,"counters":{"nodes_created":2}`)
}

func TestLateStatementIsATimeout(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{})
	retrieved(t, slot, "bolt one")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	s.Handle(oneStatement, bolt.Statement{Answer: func(ctx context.Context, _ bolt.Query) bolt.Answer { <-ctx.Done(); return bolt.Answer{} }})
	_, err := slot.Retrieve(ctx, ask("bolt one"))
	e := requireCode(t, err, abi.CodeTimeout)
	assert.True(t, e.Retryable)

	deaf := make(chan struct{})
	t.Cleanup(func() { close(deaf) })
	s.Handle(oneStatement, bolt.Statement{Answer: func(context.Context, bolt.Query) bolt.Answer { <-deaf; return bolt.Answer{} }})
	ctx, cancel = context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = slot.Retrieve(ctx, ask("bolt one"))
	requireCode(t, err, abi.CodeTimeout)
	assert.Contains(t, retrieved(t, slot, `bolt rows {"n":1}`)[0], "row 1", "the connection that hung is not used again")
}

func TestWrongPasswordIsShownToTheServerOnceInAWhile(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	s := graph(t, bolt.Options{Password: "another-password"})
	slot := graphSlot(t, s, Options{Now: clock})
	for range 3 {
		_, err := slot.Retrieve(context.Background(), ask("bolt one"))
		e := requireCode(t, err, abi.CodeUnauthenticated, "are user and password")
		assert.Equal(t, "Neo.ClientError.Security.Unauthorized", e.Reason)
		assert.Equal(t, "one", e.Route)
		assert.Equal(t, "Neo.ClientError.Security.Unauthorized: The client is unauthorized due to authentication failure.", e.Native.Body)
		assert.False(t, e.Retryable)
	}
	assert.Equal(t, 1, s.Logons(), "three would have locked the user, the right password included")
	mu.Lock()
	now = now.Add(logOnPause)
	mu.Unlock()
	_, err := slot.Retrieve(context.Background(), ask("bolt one"))
	requireCode(t, err, abi.CodeUnauthenticated)
	assert.Equal(t, 2, s.Logons())
}

func TestManyCallersWithAWrongPasswordAskOnce(t *testing.T) {
	s := graph(t, bolt.Options{Password: "another-password"})
	slot := graphSlot(t, s, Options{Limits: Limits{Pool: 8}})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			_, err := slot.Retrieve(context.Background(), ask("bolt one"))
			assert.Equal(t, abi.CodeUnauthenticated, abi.CodeOf(err))
		})
	}
	callers.Wait()
	assert.Equal(t, 1, s.Logons())
}

func TestLockedUserIsTold(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	for range 3 {
		d := testDatabase(t, s.URL("bolt"))
		d.logOnAs("", "wrong-password")
		_, _, err := askDatabase(t, d, statement{rows: 1, bytes: 1 << 20})
		require.Error(t, err)
	}
	_, err := graphSlot(t, s, Options{}).Retrieve(context.Background(), ask("bolt one"))
	e := requireCode(t, err, abi.CodeUnauthenticated, "locks the user for some seconds")
	assert.Equal(t, "Neo.ClientError.Security.AuthenticationRateLimit", e.Reason)
	assert.True(t, e.Retryable)
}

func TestServerThatWasRestartedIsUsedAgain(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{})
	told(t, slot, "e1", `bolt create {"id":1}`)
	s.Stop()
	_, err := slot.Retrieve(context.Background(), ask("bolt one"))
	requireCode(t, err, abi.CodeUnavailable, "cannot be reached", "is Neo4j running")
	require.NoError(t, s.Listen())
	retrieved(t, slot, "bolt one")
	s.Stop()
	require.NoError(t, s.Listen())
	told(t, slot, "e2", `bolt create {"id":2}`)
	assert.Len(t, s.Ran(), 3, "a dead connection is found out before the statement is sent, and no statement is sent twice")
}

func TestConnectionThatBreaksIsAnErrorAndNoEmptyResult(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{})
	rows := make([][]any, 10)
	for i := range rows {
		rows[i] = []any{int64(i)}
	}
	for name, a := range map[string]bolt.Answer{"before an answer": {Drop: true}, "in the middle of the rows": {Columns: []string{"value"}, Rows: rows, DropAfter: 5}} {
		t.Run(name, func(t *testing.T) {
			s.Handle(givenStatement, reply(a))
			before := len(s.Ran())
			_, err := slot.Retrieve(context.Background(), ask(`bolt given {"value":1}`))
			e := requireCode(t, err, abi.CodeUnavailable)
			assert.Equal(t, "given", e.Route)
			assert.True(t, e.Retryable)
			assert.Len(t, s.Ran(), before+1, "and nothing is sent again")
			retrieved(t, slot, "bolt one")
		})
	}
}

func TestFailuresOfTheDatabaseAreTyped(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{})
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
				s = graph(t, bolt.Options{Password: testSecret})
				slot = graphSlot(t, s, Options{})
			}
			s.Handle(givenStatement, failing(c.neo4j, "what it says"))
			_, err := slot.Retrieve(context.Background(), ask(`bolt given {"value":1}`))
			e := requireCode(t, err, c.code, "what it says")
			assert.Equal(t, c.neo4j, e.Reason)
			assert.Equal(t, c.neo4j+": what it says", e.Native.Body)
			assert.Equal(t, c.retryable, e.Retryable)
			assert.Equal(t, "given", e.Route)
		})
	}
	requireUsable(t, slot, "x")
}

func TestStatusOfAFailureStandsInTheTrace(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	var seen []Observation
	slot := graphSlot(t, s, Options{Observe: func(o Observation) {
		if o.Operation == abi.OpRetrieve {
			seen = append(seen, o)
		}
	}})
	for i, c := range []struct {
		code   string
		status int64
	}{{"Neo.ClientError.Statement.SyntaxError", 400}, {"Neo.TransientError.General.OutOfMemoryError", 503}, {"Neo.DatabaseError.General.UnknownError", 500}} {
		s.Handle(givenStatement, failing(c.code, "m"))
		_, err := slot.Retrieve(context.Background(), ask(`bolt given {"value":1}`))
		require.Error(t, err)
		require.Len(t, seen, i+1)
		require.Len(t, seen[i].IO, 1)
		assert.Equal(t, c.status, seen[i].IO[0].Status)
	}
}

func TestPasswordNeverReachesTheGuestOrAnError(t *testing.T) {
	var log bytes.Buffer
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace})})
	assert.NotContains(t, retrieved(t, slot, "config")[0], testSecret)
	s.Handle(givenStatement, reply(bolt.Answer{Columns: []string{"value"}, Rows: [][]any{{"echo " + testSecret}}}))
	said := retrieved(t, slot, `bolt given {"value":1}`)[0]
	assert.Contains(t, said, "echo "+redacted)
	assert.NotContains(t, said, testSecret)
	s.Handle(givenStatement, failing("Neo.ClientError.Statement.SyntaxError", "near "+testSecret))
	_, err := slot.Retrieve(context.Background(), ask(`bolt given {"value":1}`))
	e := requireCode(t, err, abi.CodeBackend)
	assert.NotContains(t, string(abi.Marshal(e)), testSecret)
	assert.NotContains(t, log.String(), testSecret)
}

func TestRefusedAddressIsRefusedWhateverNamedIt(t *testing.T) {
	for _, url := range []string{"bolt://169.254.169.254", "neo4j://[fe80::1]:7687", "bolt+s://0.0.0.0", "bolt://[::ffff:169.254.169.254]:7687"} {
		_, err := openSlot(t, open(t, Options{}), probeConfig(fmt.Sprintf(`{"db":%q}`, url))).Retrieve(context.Background(), ask("bolt one"))
		e := requireCode(t, err, abi.CodeDenied, "always refused")
		assert.Equal(t, "address", e.Reason)
	}
	t.Run("a routing table", func(t *testing.T) {
		elsewhere := []string{"169.254.169.254:7687"}
		var s *bolt.Server
		s = graph(t, bolt.Options{Password: testSecret, Route: func() bolt.Routes {
			return bolt.Routes{Readers: elsewhere, Writers: []string{s.Address()}, Routers: []string{s.Address()}}
		}})
		slot := openSlot(t, open(t, Options{}), graphConfig(s.URL("neo4j")))
		_, err := slot.Retrieve(context.Background(), ask("bolt one"))
		requireCode(t, err, abi.CodeDenied, "169.254.169.254:7687")
		assert.Empty(t, s.Ran())
	})
}

func TestClusterIsRoutedAndReadsSeeWhatWasWritten(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := openSlot(t, open(t, Options{}), graphConfig(s.URL("neo4j")))
	told(t, slot, "e1", `bolt create {"id":1}`)
	retrieved(t, slot, "bolt one")
	require.Len(t, s.Ran(), 2)
	assert.Equal(t, "w", s.Ran()[0].Mode)
	assert.Equal(t, "r", s.Ran()[1].Mode)
	assert.NotEmpty(t, s.Ran()[1].Bookmarks)
}

func TestTLSWantsACertificateUnlessToldOtherwise(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	web.Close()
	s := graph(t, bolt.Options{Password: testSecret, TLS: web.TLS})
	retrieved(t, openSlot(t, open(t, Options{}), graphConfig(s.URL("bolt+ssc"))), "bolt one")
	_, err := openSlot(t, open(t, Options{}), graphConfig(s.URL("bolt+s"))).Retrieve(context.Background(), ask("bolt one"))
	requireCode(t, err, abi.CodeUnavailable, "certificate")
}

func TestHTTPPortIsNoDatabase(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	_, err = openSlot(t, open(t, Options{}), graphConfig("bolt://"+listener.Addr().String())).Retrieve(context.Background(), ask("bolt one"))
	requireCode(t, err, abi.CodeBackend, "not of its HTTP one")
}

func TestConnectionsEndWithTheProvider(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	h := open(t, Options{})
	slot, err := h.Open(context.Background(), graphConfig(s.URL("bolt")))
	require.NoError(t, err)
	retrieved(t, slot, "bolt one")
	assert.Equal(t, 1, s.Connections())
	require.NoError(t, slot.Close(context.Background()))
	require.Eventually(t, func() bool { return s.Connections() == 0 }, 10*time.Second, time.Millisecond)
}

func TestManyCallersShareThePool(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{Limits: Limits{Pool: 4}})
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			n := i + 1
			r, err := slot.Retrieve(context.Background(), ask(fmt.Sprintf(`bolt_count rows {"n":%d}`, n)))
			if assert.NoError(t, err) {
				assert.Contains(t, string(r.Raw.Calls[0].Body), fmt.Sprintf("%d rows, %d values", n, 2*n))
			}
		})
	}
	callers.Wait()
	assert.LessOrEqual(t, s.Accepted(), 4)
}

func TestAddressOfADatabase(t *testing.T) {
	for raw, want := range map[string]string{
		"http://h:7687":           "none of bolt, bolt+s, bolt+ssc, neo4j, neo4j+s, neo4j+ssc",
		"bolt+unix:///tmp/socket": "none of bolt",
		"bolt://":                 "names no host",
		"bolt://neo4j:pw@h":       "holds credentials",
		"neo4j://h?policy=x":      "has a query",
		"bolt://h/memories":       "has a path",
	} {
		_, err := openOrigin(abi.OriginDecl{From: "/bolt/url", Protocol: "bolt"}, map[string]any{"bolt": map[string]any{"url": raw}}, time.Now)
		e := requireCode(t, err, abi.CodeInvalidArgument, want, "such as bolt://")
		assert.True(t, strings.HasPrefix(e.Message, "bolt.url: "), e.Message)
	}
	_, err := openOrigin(abi.OriginDecl{From: "/db", Protocol: "bolt", DatabaseFrom: "/name"}, map[string]any{"db": "bolt://h", "name": 7}, time.Now)
	requireCode(t, err, abi.CodeInvalidArgument, "name: want a string")
	c := graphConfig("bolt://127.0.0.1")
	c.Secrets["P"] = Secret{Value: c.Secrets["P"].Value, Origin: "bolt://127.0.0.1:7687"}
	openSlot(t, open(t, Options{}), c)
	c.Secrets["P"] = Secret{Value: c.Secrets["P"].Value, Origin: "bolt://127.0.0.1:7688"}
	_, err = open(t, Options{}).Open(context.Background(), c)
	requireCode(t, err, abi.CodeInvalidArgument, "bound to bolt://127.0.0.1:7688")
}

func TestDatabaseBesideAServerDoesNotMakeTheScopesNew(t *testing.T) {
	key := func(block string) string {
		p := openSlot(t, open(t, Options{}), probeConfig(block)).current.Load().provider
		return p.originKey
	}
	assert.Equal(t, key(`{"url":"http://127.0.0.1:9"}`), key(`{"url":"http://127.0.0.1:9","db":"bolt://127.0.0.1:7"}`))
	assert.NotEqual(t, key(`{"db":"bolt://127.0.0.1:7"}`), key(`{"db":"bolt://127.0.0.1:8"}`))
	assert.NotEqual(t, key(`{"db":"bolt://127.0.0.1:7"}`), key(`{"db":"bolt://127.0.0.1:7","db_name":"other"}`))
}

func TestInterceptorSeesStatementsAndDecidesWhatComesOfThem(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	var seen []NativeCall
	answer := func(ctx context.Context, next func(context.Context) (NativeAnswer, error)) (NativeAnswer, error) {
		return next(ctx)
	}
	slot := graphSlot(t, s, Options{Intercept: func(ctx context.Context, c NativeCall, next func(context.Context) (NativeAnswer, error)) (NativeAnswer, error) {
		seen = append(seen, c)
		return answer(ctx, next)
	}})
	assert.Contains(t, retrieved(t, slot, `bolt rows {"n":1}`)[0], "row 1")
	require.Len(t, seen, 1)
	assert.Equal(t, NativeCall{Provider: "probe", Operation: abi.OpRetrieve, Scope: testScope, Generation: 1, Route: "rows", Origin: "db", Protocol: "bolt",
		Class: abi.ClassRead, Statement: rowsStatement, Body: []byte(`{"n":1}`)}, seen[0])

	answer = func(context.Context, func(context.Context) (NativeAnswer, error)) (NativeAnswer, error) {
		return NativeAnswer{}, &NativeFailure{"Neo.TransientError.General.OutOfMemoryError", "injected"}
	}
	_, err := slot.Retrieve(context.Background(), ask("bolt one"))
	assert.Equal(t, "Neo.TransientError.General.OutOfMemoryError: injected", requireCode(t, err, abi.CodeUnavailable).Native.Body)
	answer = func(ctx context.Context, next func(context.Context) (NativeAnswer, error)) (NativeAnswer, error) {
		a, err := next(ctx)
		a.Bolt = nil
		return a, err
	}
	assert.Equal(t, `{"columns":[],"rows":2,"more":false,"counters":{}} [1,"row 1"]`+"\n"+`[2,"row 2"]`+"\n", retrieved(t, slot, `bolt rows {"n":2}`)[0])
	assert.Len(t, s.Ran(), 2)
}

func TestWhatBecameOfAWrite(t *testing.T) {
	for name, c := range map[string]struct {
		statement string
		err       error
		want      landing
	}{
		"done":                               {createStatement, nil, landedYes},
		"done, and a row too large":          {createStatement, errRowTooLarge, landedYes},
		"done, and a value without spelling": {createStatement, &rowError{"x"}, landedYes},
		"no connection":                      {createStatement, &unsentError{io.EOF}, landedNot},
		"refused":                            {createStatement, &NativeFailure{"Neo.ClientError.Schema.ConstraintValidationFailed", ""}, landedNot},
		"a fault of the database":            {createStatement, &NativeFailure{"Neo.DatabaseError.Transaction.TransactionCommitFailed", ""}, landedPerhaps},
		"a passing fault":                    {createStatement, &NativeFailure{"Neo.TransientError.Transaction.DeadlockDetected", ""}, landedPerhaps},
		"a connection that broke":            {createStatement, io.EOF, landedPerhaps},
		"transactions of its own": {"MATCH (n) CALL (n) { DELETE n } IN TRANSACTIONS", &NativeFailure{"Neo.ClientError.Schema.ConstraintValidationFailed", ""},
			landedPerhaps},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, boltLanding(c.statement, c.err)) })
	}
}

func TestWriteWhoseConnectionBreaksIsUncertainAndWhoseDatabaseIsGoneIsNot(t *testing.T) {
	s := graph(t, bolt.Options{Password: testSecret})
	slot := graphSlot(t, s, Options{})
	s.Handle(createStatement, bolt.Statement{Writes: true, Answer: reply(bolt.Answer{Drop: true}).Answer})
	_, err := slot.RecordEvent(context.Background(), event("e1", `bolt create {"id":1}`))
	requireCode(t, err, abi.CodeUnavailable, "broke", hintUncertain)
	s.Handle(createStatement, failing("Neo.ClientError.Schema.ConstraintValidationFailed", "it is there"))
	_, err = slot.RecordEvent(context.Background(), event("e2", `bolt create {"id":2}`))
	assert.NotContains(t, requireCode(t, err, abi.CodeBackend).Hint, hintUncertain)
	s.Stop()
	_, err = slot.RecordEvent(context.Background(), event("e3", `bolt create {"id":3}`))
	assert.NotContains(t, requireCode(t, err, abi.CodeUnavailable, "cannot be reached").Hint, hintUncertain)
}

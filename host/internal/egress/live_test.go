//go:build live

package egress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/bolt"
)

// realDatabase is a Neo4j 5.26 at NEO4J_URL, with the password NEO4J_PASSWORD. The tests remove what they write.
func realDatabase(t testing.TB) (url, password string) {
	t.Helper()
	url, password = os.Getenv("NEO4J_URL"), os.Getenv("NEO4J_PASSWORD")
	if url == "" || password == "" {
		t.Skip("NEO4J_URL and NEO4J_PASSWORD name no database")
	}
	return url, password
}

// failureIn returns the database's failure in err; nil if there is none.
func failureIn(err error) *Failure {
	var failure *Failure
	errors.As(err, &failure)
	return failure
}

// ran runs a statement directly, without a guest.
func ran(d *database, reads bool, timeout time.Duration, text string, params map[string]any) (*abi.BoltResult, string,
	error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	head, rows, err := d.run(ctx, statement{text: text, params: params, reads: reads, rows: 100, bytes: 1 << 20})
	return head, string(rows), err
}

// TestLiveTypesAreSpelledAsTheSpecificationSays asks a real Neo4j for a value of each type.
func TestLiveTypesAreSpelledAsTheSpecificationSays(t *testing.T) {
	url, password := realDatabase(t)
	d := testDatabase(t, url)
	d.logOnAs("", password)
	for cypher, want := range map[string]string{
		`null`: `null`, `true`: `true`, `9007199254740993`: `9007199254740993`, `1.0`: `1.0`, `6.02e23`: `6.02e+23`,
		`0.0/0.0`: `"NaN"`, `1.0/0.0`: `"Infinity"`,
		`[1, [null]]`: `[1,[null]]`, `{b: 1, a: {}}`: `{"a":{},"b":1}`, `'🥾 "q"'`: `"🥾 \"q\""`,
		`date('2026-03-01')`: `"2026-03-01"`, `date({year: 12026, month: 3, day: 1})`: `"+012026-03-01"`,
		`localtime('10:30:00.5')`: `"10:30:00.5"`,
		`time('10:30:00+01:00')`:  `"10:30:00+01:00"`, `localdatetime('2026-03-01T10:30:00')`: `"2026-03-01T10:30:00"`,
		`datetime('2026-03-01T10:30:00.000000001+01:00')`:          `"2026-03-01T10:30:00.000000001+01:00"`,
		`datetime('2026-03-01T10:30:00[Europe/Oslo]')`:             `"2026-03-01T10:30:00+01:00"`,
		`datetime('2026-03-01T09:30:00Z[UTC]')`:                    `"2026-03-01T09:30:00Z"`,
		`datetime('2026-03-01T09:30:00Z').epochMillis`:             `1772357400000`,
		`duration('P1Y2M3DT-1.5S')`:                                `"P14M3DT-1.5S"`,
		`duration('PT0S')`:                                         `"PT0S"`,
		`point({longitude: 10.75, latitude: 59.91})`:               `{"srid":4326,"x":10.75,"y":59.91}`,
		`point({x: 1, y: 2, z: 3})`:                                `{"srid":9157,"x":1.0,"y":2.0,"z":3.0}`,
		`[k IN keys($p) | k + toString($p[k]) + valueType($p[k])]`: "",
	} {
		_, rows, err := ran(d, true, 10*time.Second, "RETURN "+cypher+" AS x, $p AS p",
			map[string]any{"p": map[string]any{"i": int64(7), "f": 7.0}})
		require.NoError(t, err, cypher)
		if want != "" {
			assert.Equal(t, `[`+want+`,{"f":7.0,"i":7}]`+"\n", rows, cypher)
			continue
		}
		assert.Contains(t, rows, "i7INTEGER NOT NULL")
		assert.Contains(t, rows, "f7.0FLOAT NOT NULL")
	}
}

func TestLiveGraphTypesAndCounters(t *testing.T) {
	url, password := realDatabase(t)
	d := testDatabase(t, url)
	d.logOnAs("", password)
	head, rows, err := ran(d, false, 10*time.Second,
		"CREATE p = (a:MhLive {name: 'a', at: date('2026-03-01')})-[r:MH_KNOWS {since: 1}]->(b:MhLive) RETURN a, r, p",
		nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"nodes_created": 2, "relationships_created": 1, "properties_set": 3,
		"labels_added": 2}, head.Counters)
	assert.Contains(t, head.Server, "Neo4j/5.26")
	assert.Equal(t, []string{"a", "r", "p"}, head.Columns)
	var row [3]struct {
		ID            string
		Labels        []string
		Type          string
		Start, End    string
		Properties    map[string]any
		Nodes         []map[string]any
		Relationships []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(rows), &row))
	assert.Equal(t, []string{"MhLive"}, row[0].Labels)
	assert.Equal(t, map[string]any{"name": "a", "at": "2026-03-01"}, row[0].Properties)
	assert.Equal(t, "MH_KNOWS", row[1].Type)
	assert.Equal(t, row[0].ID, row[1].Start)
	assert.Len(t, row[2].Nodes, 2)
	assert.Equal(t, row[1].ID, row[2].Relationships[0]["id"])
	head, rows, err = ran(d, false, 10*time.Second, "MATCH (n:MhLive) DETACH DELETE n", nil)
	require.NoError(t, err)
	assert.Empty(t, rows)
	assert.Equal(t, map[string]int64{"nodes_deleted": 2, "relationships_deleted": 1}, head.Counters)
}

// TestLiveRefusalsAreThoseOfTheFake compares errors of a real database with those of the fake.
func TestLiveRefusalsAreThoseOfTheFake(t *testing.T) {
	url, password := realDatabase(t)
	s := graph(t, bolt.Options{Password: password})
	slow := "UNWIND range(1,100000000) AS a UNWIND range(1,100000000) AS b WITH a*b AS x WHERE x < 0 RETURN count(x)"
	s.Handle(slow, bolt.Statement{Answer: func(ctx context.Context, _ bolt.Query) bolt.Answer {
		<-ctx.Done()
		return bolt.Answer{}
	}})
	for name, url := range map[string]string{"neo4j": url, "fake": s.URL("bolt")} {
		t.Run(name, func(t *testing.T) {
			d := testDatabase(t, url)
			d.logOnAs("", password)
			codeOf := func(reads bool, text string, params map[string]any) string {
				_, _, err := ran(d, reads, 10*time.Second, text, params)
				failure := failureIn(err)
				require.NotNil(t, failure, "%s: %v", text, err)
				return failure.Code
			}
			assert.Equal(t, "Neo.ClientError.Statement.SyntaxError", codeOf(true, "MATCH (n RETURN n", nil))
			assert.Equal(t, "Neo.ClientError.Statement.ParameterMissing", codeOf(true, givenStatement, nil))
			assert.Equal(t, "Neo.ClientError.Statement.AccessMode", codeOf(true, liesStatement, nil))
			// The server itself ends a transaction while the caller still waits.
			_, _, err := d.run(context.Background(),
				statement{text: slow, reads: true, timeout: 300 * time.Millisecond, rows: 1, bytes: 1 << 10})
			require.NotNil(t, failureIn(err), "%v", err)
			assert.Equal(t, "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration", failureIn(err).Code)
			_, rows, err := ran(d, true, 10*time.Second, oneStatement, nil)
			require.NoError(t, err, "and the connection is as good as before")
			assert.Equal(t, "[1]\n", rows)
			wrong := testDatabase(t, url)
			wrong.logOnAs("", "wrong-password")
			for range 4 {
				_, _, err = ran(wrong, true, 10*time.Second, oneStatement, nil)
				require.NotNil(t, failureIn(err))
				assert.Equal(t, "Neo.ClientError.Security.Unauthorized", failureIn(err).Code,
					"asked once, and so never locked")
			}
			_, _, err = ran(testDatabase(t, url), true, 10*time.Second, oneStatement, nil)
			require.NotNil(t, failureIn(err))
			assert.Equal(t, "Neo.ClientError.Security.Unauthorized", failureIn(err).Code, "nobody may not")
		})
	}
}

// BenchmarkLiveBoltRows is the row about a database's rows in `make bench`, against a real Neo4j.
func BenchmarkLiveBoltRows(b *testing.B) {
	url, password := realDatabase(b)
	ctx := context.Background()
	text := fmt.Sprintf("UNWIND range(1, %d) AS i RETURN 'fact-' + i, 'a sentence of some sixty letters, which is "+
		"what facts look like ' + i, i, null, [i, 'x']", 1000)
	b.Run("by=driver", func(b *testing.B) {
		d, err := neo4j.NewDriverWithContext(url, neo4j.BasicAuth("neo4j", password, ""))
		require.NoError(b, err)
		defer func() { _ = d.Close(ctx) }()
		for b.Loop() {
			session := d.NewSession(ctx, neo4j.SessionConfig{AccessMode: neo4j.AccessModeRead})
			result, err := session.Run(ctx, text, nil)
			require.NoError(b, err)
			_, err = result.Collect(ctx)
			require.NoError(b, err)
			require.NoError(b, session.Close(ctx))
		}
	})
	b.Run("by=host", func(b *testing.B) {
		d := testDatabase(b, url)
		d.logOnAs("", password)
		for b.Loop() {
			_, _, err := d.run(ctx, statement{text: text, reads: true, timeout: time.Minute, rows: 10_000,
				bytes: 16 << 20})
			require.NoError(b, err)
		}
	})
}

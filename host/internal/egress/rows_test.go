package egress

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/bolt"
)

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
		{"a map whose keys differ by case", `{"a":1,"A":{"b":[]}}`,
			map[string]any{"a": int64(1), "A": map[string]any{"b": []any{}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := boltParams(abi.Raw(`{"value":` + c.json + `}`))
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"value": c.want}, got)
		})
	}
	for _, c := range []struct{ name, json, want string }{
		{"a list", `[1]`, "params: want an object"},
		{"a number beyond 64 bits", `{"a":[1,9223372036854775808]}`,
			"params.a[1]: 9223372036854775808 is no whole number of 64 bits"},
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

// askDatabase runs "RETURN $value AS value" without a guest; the test sets the answer.
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
		{"ZONED DATETIME in a named zone", bolt.DateTimeZone(at, "Europe/Oslo"),
			`"2026-03-01T10:30:00.000000001+01:00"`},
		{"the same instant in the named UTC", bolt.DateTimeZone(at, "UTC"), `"2026-03-01T09:30:00.000000001Z"`},
		{"DURATION", bolt.Duration(14, 3, -2, 500_000_000), `"P14M3DT-1.5S"`},
		{"DURATION just below nothing", bolt.Duration(0, 0, -1, 999_999_999), `"PT-0.000000001S"`},
		{"DURATION of nothing", bolt.Duration(0, 0, 0, 0), `"PT0S"`},
		{"DURATION of days", bolt.Duration(0, -1, 0, 0), `"P-1D"`},
		{"POINT", bolt.Point(4326, 10.75, 59.91), `{"srid":4326,"x":10.75,"y":59.91}`},
		{"POINT in space", bolt.Point(9157, 1, 2, 3), `{"srid":9157,"x":1.0,"y":2.0,"z":3.0}`},
		{"NODE", oslo, `{"id":"4:f0c1:7","labels":["Entity","Place"],"properties":{"at":[1.5],"name":"Oslo"}}`},
		{"RELATIONSHIP", bolt.Relationship("5:f0c1:2", "KNOWS", "4:f0c1:9", "4:f0c1:7",
			map[string]any{"since": bolt.Date(0)}),
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
		s.Handle(givenStatement, reply(bolt.Answer{Columns: []string{"value"},
			Rows: [][]any{{bolt.DateTimeZone(at, "Atlantis/Poseidonis")}}}))
		_, _, err := askDatabase(t, d, statement{rows: 1, bytes: 1 << 20})
		require.ErrorContains(t, err, "Atlantis/Poseidonis")
		assert.EqualValues(t, 200, boltStatus(err), "the database did answer")
	})
}

// writtenFloat draws numbers that JSON represents without loss: a whole number beyond 64 bits would be written as an
// integer, which is rejected.
func writtenFloat() *rapid.Generator[float64] {
	return rapid.Float64().Filter(func(f float64) bool { return math.Abs(f) < 1<<63 || math.Abs(f) >= 1e21 })
}

func TestWhatIsSentComesBack(t *testing.T) {
	d := testDatabase(t, graph(t, bolt.Options{}).URL("bolt"))
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.OneOf(rapid.String().AsAny(), rapid.Int64().AsAny(), writtenFloat().AsAny(),
			rapid.SliceOf(rapid.String()).AsAny(),
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

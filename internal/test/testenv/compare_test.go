package testenv

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifferencesNamesEachFieldThatDiffers(t *testing.T) {
	read := func(s string) (v any) { require.NoError(t, json.Unmarshal([]byte(s), &v)); return v }
	score := func(row any) any { item, _ := row.(map[string]any); return item["score"] }
	for _, c := range []struct {
		name, ours, theirs string
		want               []string
	}{
		{"equal", `{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, nil},
		{"a value", `{"a":{"b":1}}`, `{"a":{"b":2}}`, []string{"q | /a/b | 1 | 2"}},
		{"a missing field is not null", `{"a":null}`, `{}`, []string{"q | /a | null | (absent)"}},
		{"a field too many", `{}`, `{"a":1}`, []string{"q | /a | (absent) | 1"}},
		{"a row too few", `[1]`, `[1,2]`, []string{"q |  | 1 items | 2 items"}},
		{"another kind", `[1]`, `{"0":1}`, []string{`q |  | [1] | {"0":1}`}},
		{"one instant, two spellings", `"2026-01-01T00:00:00Z"`, `"2026-01-01T01:00:00.000+01:00"`, nil},
		{"another instant", `"2026-01-01T00:00:00Z"`, `"2026-01-01T00:00:01Z"`,
			[]string{`q |  | "2026-01-01T00:00:00Z" | "2026-01-01T00:00:01Z"`}},
		{"equal scores in another order", `[{"id":"a","score":1},{"id":"b","score":1},{"id":"c","score":0.5}]`,
			`[{"id":"b","score":1},{"id":"a","score":1},{"id":"c","score":0.5}]`, nil},
		{"the last bits of a score", `[{"id":"a","score":0.31108550838801896}]`, `[{"id":"a","score":0.31108551}]`,
			nil},
		{"another score", `[{"id":"a","score":0.31108}]`, `[{"id":"a","score":0.31109}]`,
			[]string{"q | /0/score | 0.31108 | 0.31109"}},
		{"a limit cuts a run of equal scores", `[{"id":"a","score":1},{"id":"b","score":0.5},{"id":"c","score":0.5}]`,
			`[{"id":"a","score":1},{"id":"c","score":0.5},{"id":"d","score":0.5}]`, nil},
		{"but not a single last row", `[{"id":"a","score":1},{"id":"b","score":0.5}]`,
			`[{"id":"a","score":1},{"id":"c","score":0.5}]`, []string{`q | /1/id | "b" | "c"`}},
		{"other scores in another order", `[{"id":"a","score":1},{"id":"b","score":0.5}]`,
			`[{"id":"b","score":0.5},{"id":"a","score":1}]`,
			[]string{`q | /0/id | "a" | "b"`, `q | /0/score | 1 | 0.5`, `q | /1/id | "b" | "a"`,
				`q | /1/score | 0.5 | 1`}},
		{"rows without scores keep their order", `[{"id":"a"},{"id":"b"}]`, `[{"id":"b"},{"id":"a"}]`,
			[]string{`q | /0/id | "a" | "b"`, `q | /1/id | "b" | "a"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var table []string
			differences(&table, "q", "", settle(read(c.ours), score), settle(read(c.theirs), score))
			require.ElementsMatch(t, c.want, table)
		})
	}
}

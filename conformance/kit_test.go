package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

func TestWhatAnAnswerCanBeSaidToBe(t *testing.T) {
	item := `{"id":"a","score":0.50}`
	for name, body := range map[string]string{
		"the body":                       item,
		"the data of server-sent events": "event: message\ndata: " + item + "\n\n",
		"the result of JSON-RPC":         `{"jsonrpc":"2.0","id":1,"result":` + item + `}`,
		"a text of MCP":                  `{"result":{"content":[{"type":"text","text":"{\"id\":\"a\",\"score\":0.5}"}]}}`,
		"structured content of MCP":      `{"result":{"structuredContent":` + item + `}}`,
		"all at once":                    "data: " + `{"result":{"structuredContent":{"result":` + item + `}}}` + "\n",
	} {
		want, ok := decode([]byte(item))
		require.True(t, ok)
		list := views(host.NativeAnswer{Body: []byte(body)})
		assert.True(t, slices.ContainsFunc(list, func(v any) bool { return sameValue(v, want) }), "%s: %v", name, list)
		other, _ := decode([]byte(`{"id":"b","score":0.50}`))
		assert.False(t, slices.ContainsFunc(list, func(v any) bool { return sameValue(v, other) }), name)
	}
	assert.Contains(t, views(host.NativeAnswer{Body: []byte("plain prose")}), "plain prose")
}

func TestASkippedClauseIsOneShortLine(t *testing.T) {
	declared := ClauseReport{Declared: "there is no backend;\n" + strings.Repeat("and so on ", 30)}
	require.Regexp(t, `^not applicable: there is no backend; and so on .{40,60}\.\.\.$`, declared.skipReason())
	seen := ClauseReport{Parts: []PartReport{{Reason: "the provider declares no route"}, {Reason: "x"}}}
	require.Equal(t, "not applicable: the provider declares no route", seen.skipReason())
}

func TestATimeIsTheSameHoweverItIsWritten(t *testing.T) {
	for _, v := range []any{"2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00", "2026-01-02T03:04:05.000000",
		"2026-01-02 03:04:05", json.Number("1767323045"), json.Number("1767323045000")} {
		assert.True(t, sameTime(v, "2026-01-02T03:04:05Z"), "%v", v)
	}
	for _, v := range []any{"2026-01-02T03:04:06Z", "yesterday", json.Number("1"), nil, 5} {
		assert.False(t, sameTime(v, "2026-01-02T03:04:05Z"), "%v", v)
	}
}

// TestPointersReachEveryValue: whatever a value holds can be pointed at, and nothing else can.
func TestPointersReachEveryValue(t *testing.T) {
	value, ok := decode([]byte(`{"a/b":[1,{"~":"x"}],"":null}`))
	require.True(t, ok)
	for pointer, want := range map[string]string{"": `{"":null,"a/b":[1,{"~":"x"}]}`, "/a~1b/0": "1",
		"/a~1b/1/~0": `"x"`, "/": "null"} {
		v, ok := jsonpointer.Find(value, pointer)
		require.True(t, ok, pointer)
		text, err := json.Marshal(v)
		require.NoError(t, err)
		assert.Equal(t, want, string(text), pointer)
	}
	rapid.Check(t, func(t *rapid.T) {
		pointer := rapid.StringMatching(`(/[a~b10-]{0,3}){1,3}|[a/]{1,3}`).Draw(t, "pointer")
		if v, ok := jsonpointer.Find(value, pointer); ok {
			assert.True(t, anywhere(value, func(x any) bool { return sameValue(x, v) }))
		}
	})
}

func TestSameJSON(t *testing.T) {
	assert.True(t, sameJSON([]byte(`{"a":1.0,"b":[true,null]}`), []byte(`{"b":[true,null],"a":1}`)))
	for _, other := range []string{`{"a":1}`, `{"a":1,"b":[true]}`, `{"a":1,"b":[true,0]}`, `{"a":"1","b":[true,null]}`,
		`{"a":1,"c":[true,null]}`, `nonsense`, ``} {
		assert.False(t, sameJSON([]byte(`{"a":1,"b":[true,null]}`), []byte(other)), other)
	}
}

func TestMadeUpNamesDoNotComeTwiceNorHoldEachOther(t *testing.T) {
	var n namer
	seen := []string{}
	for range 500 {
		name := n.name()
		for _, other := range seen {
			require.False(t, strings.Contains(strings.ToLower(name), strings.ToLower(other)) ||
				strings.Contains(strings.ToLower(other), strings.ToLower(name)), "%s, %s", name, other)
		}
		seen = append(seen, name)
	}
}

// TestBoltCallsMeetTheSameFaults: a fault is a failure of the Bolt server there, and what Bolt has not got leaves the
// call alone.
func TestBoltCallsMeetTheSameFaults(t *testing.T) {
	sent := 0
	send := func(context.Context) (host.NativeAnswer, error) {
		sent++
		return host.NativeAnswer{Body: []byte("[]")}, nil
	}
	call := host.NativeCall{Protocol: "bolt", Route: "facts", Class: abi.ClassRead, Statement: "MATCH (n) RETURN n"}
	for _, f := range faults() {
		if f.name == faultSlow {
			continue
		}
		hit := &injection{injected: f, kit: &kit{}}
		before := sent
		_, err := hit.intercept(t.Context(), call, send)
		var failure *host.NativeFailure
		switch f.name {
		case faultInside, faultTruncated, faultProse:
			assert.NoError(t, err)
			assert.Equal(t, before+1, sent)
			assert.Zero(t, hit.hits)
		case faultDropped:
			assert.ErrorIs(t, err, errDropped)
		default:
			require.True(t, errors.As(err, &failure), f.name)
			assert.True(t, strings.HasPrefix(failure.Code, "Neo."), failure.Code)
			assert.Equal(t, marker, failure.Message)
		}
	}
}

func TestAnErrorInsideAnAnswerIsTheProtocolsOwn(t *testing.T) {
	hit := &injection{injected: someFaults(faultInside)[0],
		kit: &kit{target: Target{ErrorBodies: map[string]string{"own": "<error/>"}}}}
	body := func(route, request string) string {
		return string(hit.errorInside(host.NativeCall{Route: route, Body: []byte(request)}))
	}
	assert.Equal(t, "<error/>", body("own", "{}"))
	assert.JSONEq(t, `{"jsonrpc":"2.0","id":7,"result":{"isError":true,"content":[{"type":"text","text":"`+marker+`"}]}}`, body("mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`))
	assert.Contains(t, body("other", `{"id":7}`), `"error"`)
	hit.kit.target.ErrorBodies[""] = `{"code":500,"message":"boom"}`
	assert.JSONEq(t, `{"code":500,"message":"boom"}`, body("other", `{"id":7}`))
}

func TestAnErrorRepeatsWhatTheBackendSaid(t *testing.T) {
	said := []byte(`{"code":500,"message":"boom","data":null}`)
	for native, want := range map[string]bool{string(said): true, "boom": true, `{"message": "boom"}`: true,
		`"code":500`: true, "": false, "the backend answered an error": false} {
		assert.Equal(t, want, repeats(native, said), native)
	}
	assert.True(t, repeats("it said "+marker, []byte(`{"detail":"`+marker+`"}`)))
}

func TestAScoreStandsInItsItemOrAtItsPlaceInAListBeside(t *testing.T) {
	raw, ok := decode([]byte(`{"calls":[{"body":{"edges":[{"id":"a"},{"id":"b"}],"edge_scores":[0.75,0.5],"nodes":[{"id":"c"}],"node_scores":[0.75,0.5]}}]}`))
	require.True(t, ok)
	assert.True(t, isParallelScore(raw, "/calls/0/body/edges/1", 0.5))
	assert.False(t, isParallelScore(raw, "/calls/0/body/edges/1", 0.75), "another item's")
	assert.False(t, isParallelScore(raw, "/calls/0/body/nodes/0", 0.75),
		"that list is longer than the items: whose score is whose cannot be told")
	assert.False(t, isParallelScore(raw, "/calls/0/body/edges/2", 0.5), "no such item")
	for _, pointer := range []string{"", "/", "/calls", "/calls/0/body/edges/x", "/calls/0/body/edges/-1"} {
		assert.False(t, isParallelScore(raw, pointer, 0.5), pointer)
	}
}

func TestADeclarationCountsForTheConfigurationsThatItIsAbout(t *testing.T) {
	d := abi.NotApplicable{Clause: 4, Part: "inventory", Unless: "/bolt", Pointer: "/surface",
		Equals: abi.Raw(`"rest"`)}
	for block, want := range map[string]bool{`{"surface":"rest"}`: true, `{"surface":"rest","bolt":null}`: true,
		`{"surface":"rest","bolt":"bolt://h"}`: false,
		`{"surface":"core"}`:                   false, `{}`: false} {
		config, _ := decode([]byte(block))
		assert.Equal(t, want, counts(d, config), block)
	}
	assert.True(t, counts(abi.NotApplicable{Clause: 2}, nil))
}

func TestAFailureNamesTheMistakesThatItResembles(t *testing.T) {
	for reason, want := range map[string]string{
		`right to left "שלום": committed, and the text is not in the native calls as it was written`: "marks of direction",
		`lines "one\ntwo": committed, and the text is not in the native calls as it was written`:     "newlines are dropped",
	} {
		words := resembles(16, "text", reason)
		require.LessOrEqual(t, len(words), 3)
		assert.Contains(t, strings.Join(words, "; "), want, reason)
	}
	assert.Contains(t, strings.Join(resembles(16, "batch", "event 11 of a batch of 12 is committed"), "; "), "record_events: ")
	assert.Empty(t, resembles(16, "no such part", "x"))
}

func TestAnAnswerIsComparedWithItsDeclaration(t *testing.T) {
	for _, c := range []struct {
		as, at, answer, wrong string
	}{
		{abi.ShowTable, "/rows", `{"rows":[{"a":1}]}`, ""}, {abi.ShowTable, "", `{"a":1}`, ""}, {abi.ShowTable, "", `[]`, ""},
		{abi.ShowTable, "", `[1]`, "a row is no object"}, {abi.ShowTable, "/rows", `{}`, `no table at "/rows"`},
		{abi.ShowText, "", `"x"`, ""}, {abi.ShowText, "", `{"other":"form"}`, ""}, {abi.ShowText, "/t", `{"t":1}`, "no text"},
		{abi.ShowText, "", `7`, "no text"}, {abi.ShowFiles, "", `{"a":"b"}`, ""}, {abi.ShowFiles, "", `{"a":1}`, "a is no text"},
		{abi.ShowFiles, "", `[]`, "no files"}, {abi.ShowList, "", `{"a":1}`, ""}, {abi.ShowList, "", `[]`, "no list"},
		{abi.ShowList, "", ``, "no list"}} {
		wrong := unlike(&abi.ShowDecl{As: c.as, At: c.at}, abi.Raw(c.answer))
		assert.True(t, wrong == "" && c.wrong == "" || c.wrong != "" && strings.Contains(wrong, c.wrong), "%v: %s", c, wrong)
	}
}

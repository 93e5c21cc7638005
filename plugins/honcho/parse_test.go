package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
)

const allLevels = "## Explicit Observations\n\n[2026-04-01 10:00:00] user-dora said: I speak Danish.\n[2026-04-01 " +
	"10:00:00] user-dora said: My cat\nis called Miso.\n\n" +
	"## Deductive Observations\n\n[2026-04-01 10:00:00] Deduced from memory: the peer has stable facts on record.\n  " +
	" Premises:\n   - a recorded explicit fact\n\n\n" +
	"## Inductive Observations\n\n **Pattern** [medium]: Pattern: the peer often shares personal updates.\n   " +
	"**Type**: tendency\n   **Sources**:\n   - fact one\n   - fact two\n\n"

func TestRepresentationProseIsReadItemByItem(t *testing.T) {
	var got [][3]string
	for _, f := range parseRepresentation(allLevels) {
		got = append(got, [3]string{f.section, f.at, allLevels[f.start:f.end]})
	}
	assert.Equal(t, [][3]string{
		{"explicit", "2026-04-01T10:00:00Z", "[2026-04-01 10:00:00] user-dora said: I speak Danish."},
		{"explicit", "2026-04-01T10:00:00Z", "[2026-04-01 10:00:00] user-dora said: My cat\nis called Miso."},
		{"deductive", "2026-04-01T10:00:00Z", "[2026-04-01 10:00:00] Deduced from memory: the peer has stable facts " +
			"on record.\n   Premises:\n   - a recorded explicit fact"},
		{"inductive", "", " **Pattern** [medium]: Pattern: the peer often shares personal updates.\n   **Type**: " +
			"tendency\n   **Sources**:\n   - fact one\n   - fact two"},
	}, got)
	assert.Empty(t, parseRepresentation(""))
	assert.Empty(t, parseRepresentation("## Explicit Observations\n\n"))
}

func FuzzParseRepresentation(f *testing.F) {
	f.Add(allLevels)
	f.Add("no heading\n[2026-04-01 10:00:00")
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, x := range parseRepresentation(text) {
			require.GreaterOrEqual(t, x.start, end)
			require.Greater(t, x.end, x.start)
			require.LessOrEqual(t, x.end, len(text))
			end = x.end
		}
	})
}

func TestBracketsHoldWhatIsKnown(t *testing.T) {
	part := rapid.OneOf(rapid.SampledFrom([]string{"", "2026-04-01T10:00:00Z", "user-dora"}),
		rapid.StringMatching("[ -z\n\r\t\x00\x7f<é]{0,20}"))
	rapid.Check(t, func(t *rapid.T) {
		var want []string
		parts := []string{part.Draw(t, "a"), part.Draw(t, "b"), part.Draw(t, "c")}
		for _, p := range parts {
			if p != "" {
				want = append(want, strings.Join(strings.Fields(p), " "))
			}
		}
		require.Equal(t, strings.Join(want, " "), bracket(parts...))
	})
}

func TestTheTraceTellsTheOldestAndTheNewestTime(t *testing.T) {
	const first, second, third = "2026-03-01T09:00:00Z", "2026-03-01T10:00:01+01:00", "2026-03-01T09:00:02Z"
	for name, tt := range map[string]struct {
		times          []string
		oldest, newest string
	}{
		"rising":                         {[]string{first, second, third}, first, third},
		"falling":                        {[]string{third, second, first}, first, third},
		"mixed":                          {[]string{second, third, first, second}, first, third},
		"one that cannot be read, last":  {[]string{second, third, "soon"}, second, third},
		"one that cannot be read, first": {[]string{"soon", third, second}, second, third},
		"none":                           {[]string{"", ""}, "", ""},
	} {
		q := &retrieval{result: &abi.RetrieveResult{}}
		for _, at := range tt.times {
			q.result.Evidence = append(q.result.Evidence, abi.Evidence{CreatedAt: at, TimeBasis: abi.TimeEvent})
		}
		var trace abi.Trace
		q.reportTimes(&trace)
		assert.Equal(t, tt.oldest, trace.OldestRetrievedAt, name)
		assert.Equal(t, tt.newest, trace.NewestRetrievedAt, name)
	}
}

func FuzzSplitText(f *testing.F) {
	f.Add("I moved to Oslo last week.", 7)
	f.Add(strings.Repeat("会", 50), 12)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 1 || most > 1000 || !utf8.ValidString(text) {
			return
		}
		parts := splitText(text, most)
		require.Equal(t, text, strings.Join(parts, ""))
		for _, p := range parts {
			require.LessOrEqual(t, utf8.RuneCountInString(p), most)
			require.True(t, utf8.ValidString(p))
		}
	})
}

func FuzzSanitize(f *testing.F) {
	f.Add("Please explain <|endoftext|> to me.")
	f.Add("<|endof\x00text|><|fim_\x00prefix|>")
	f.Add("<|endoftext|>\x00\x00<|endof\x00text|>") // as long after as before
	f.Fuzz(func(t *testing.T, text string) {
		clean, changed := sanitize(text)
		require.Equal(t, changed, clean != text)
		require.NotContains(t, clean, "\x00")
		for _, token := range specialTokens {
			require.NotContains(t, clean, token)
		}
		again, changed := sanitize(clean)
		require.False(t, changed, "%q", again)
	})
}

// FuzzAnswers parses arbitrary answers: the result is an error or a value, never a panic.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{`[]`, `{"items":[{"id":"a"}],"total":1,"pages":1}`,
		`{"detail":[{"loc":["body",0],"msg":"m"}]}`, `{"detail":"x"}`, `null`, `{"items":3}`,
		`[{"id":1}]`, `{"total_work_units":1,"completed_work_units":1,"in_progress_work_units":0,"pending_work_units":0}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, body []byte) {
		detail(body)
		limitIn(body)
		if !abi.ValidJSON(body) {
			return
		}
		_, _ = readQueue(body)
		if items, _, err := readPage(body); err == nil {
			_, _ = readAll(items, readID)
			_, _ = readAll(items, readMessage)
			_, _ = readAll(items, readConclusion)
		}
		_, _ = readList(body, readMessage)
		for _, route := range []string{"context", "search", "conclusions_query"} {
			_, _ = readItems(&backend{}, &abi.RawResult{Calls: []abi.RawCall{{Route: route, Body: body}}}, nil)
		}
	})
}

func TestMomentIsTheTimeInUTCWithOneMicrosecondForEachPiece(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-62135596800, 253402300000).Draw(t, "seconds"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "nanos"))
		i := rapid.IntRange(0, 200).Draw(t, "piece")
		want := at.UTC().Truncate(time.Microsecond).Add(time.Duration(i) * time.Microsecond)
		require.Equal(t, want.Format("2006-01-02T15:04:05.999999Z07:00"), moment(at, i))
	})
}

func TestRangesGoThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "pieces")
		missing := []int{}
		for i := range n {
			if rapid.Bool().Draw(t, "missing") {
				missing = append(missing, i)
			}
		}
		named, ok := inRanges(rangesOf(missing), n)
		require.True(t, ok)
		back := []int{}
		for i, is := range named {
			if is {
				back = append(back, i)
			}
		}
		require.Equal(t, missing, back)
	})
	for _, wrong := range []string{"", "a", "-1", "3-2", "0-9", "9"} {
		_, ok := inRanges([]string{wrong}, 9)
		assert.False(t, ok, wrong)
	}
}

func TestErrorsOfBothShapesAreRead(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"a string", `{"detail":"Peer user-nobody not found in workspace w"}`,
			"Peer user-nobody not found in workspace w"},
		{"a list", `{"detail":[{"type":"string_type","loc":["body","messages",0,"content"],"msg":"Input should be a valid string","input":["` + strings.Repeat("x", 30_000) + `"]}]}`,
			"body.messages.0.content: Input should be a valid string"},
		{"two", `{"detail":[{"loc":["query","tokens"],"msg":"a"},{"loc":["query","size"],"msg":"b"}]}`,
			"query.tokens: a; query.size: b"},
		{"something else", `{"detail":{"a":1}}`, ""},
		{"a proxy's page", `<html>`, ""},
	} {
		t.Run("trap 12: "+tt.name, func(t *testing.T) { assert.Equal(t, tt.want, detail([]byte(tt.body))) })
	}
	assert.Equal(t, "100000", limitIn([]byte(`{"detail":[{"loc":["query","tokens"],"ctx":{"le": 100000}}]}`)))
}

func TestMetadataIsKeptAsTextWhereHonchoWouldChangeIt(t *testing.T) {
	for _, tt := range []struct {
		value string
		plain bool
	}{
		{`{"seed":3,"topic":"tea"}`, true},
		{`{"a":{"b":{"c":1}}}`, true},
		{`{"a":{"b":{"c":{"d":{}}}}}`, false},
		{`{"f":1.0}`, false},
		{`{"e":1e30}`, false},
		{`{"text":"1.5 e [ { "}`, true},
		{`{"nul":"\u0000"}`, false},
	} {
		assert.Equal(t, tt.plain, roundTrips([]byte(tt.value)), tt.value)
	}
}

package sdk_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

// memories are three blocks as a formatter makes them.
var memories = []sdk.Block{
	{Item: 0, Heading: "## facts", Before: "- ", Text: "The cat is called Zorvex.",
		After: " [2026-03-01T09:30:00Z | score 0.63 | a063983a]", When: "2026-03-01"},
	{Item: 1, Heading: "## facts", Before: "- ", Text: "She lives in Lyon.", After: " [superseded | 77aa1b2c]",
		When: "until 2026-04-10, superseded", Who: "Mara"},
	{Item: 2, Heading: "## preferences", Before: "- ", Text: "Window seats.", After: " [0b6c4a1e]"},
}

func TestFrames(t *testing.T) {
	for frame, want := range map[abi.Frame]string{
		"": "## facts\n- The cat is called Zorvex. [2026-03-01T09:30:00Z | score 0.63 | a063983a]\n- She lives in " +
			"Lyon. [superseded | 77aa1b2c]\n" +
			"## preferences\n- Window seats. [0b6c4a1e]\n",
		abi.FrameCompact: "## facts\nm1 2026-03-01 The cat is called Zorvex.\nm2 [until 2026-04-10, superseded] " +
			"Mara: She lives in Lyon.\n" +
			"## preferences\nm3 Window seats.\n",
		abi.FrameMinimal: "2026-03-01 The cat is called Zorvex.\n[until 2026-04-10, superseded] Mara: She lives in " +
			"Lyon.\n- Window seats.\n",
	} {
		t.Run(string(frame), func(t *testing.T) {
			x := element
			x.Frame = frame
			fitted := x.FitFirst(sdktest.New(t, sdktest.Options{}).Call(abi.OpRetrieve, scope), memories,
				abi.ContextBudget{})
			x.UTC = frame != "" // the blocks have dates
			require.Equal(t, x.Wrap(want), fitted.Text)
			evidence := []abi.Evidence{{Rank: 1}, {Rank: 2}, {Rank: 3}, {Rank: 4, Shown: &abi.Shown{}}, {},
				{Rank: 1 << 62}, {Rank: -1 << 63}}
			for i, e := range fitted.Result(evidence).Evidence {
				if i >= len(memories) {
					require.Nil(t, e.Shown)
					continue
				}
				require.Equal(t, memories[i].Text, fitted.Text[e.Shown.Start:e.Shown.End])
				require.True(t, e.Shown.Whole)
			}
			require.Less(t, fitted.FrameTokens, fitted.Tokens)
			trace := new(abi.Trace)
			fitted.Report(trace, abi.ContextBudget{MaxTokens: new(int64(1000))})
			require.Equal(t, fitted.FrameTokens, *trace.FrameTokens)
			use := trace.BudgetApplied["max_tokens"]
			require.Equal(t, fitted.Tokens-fitted.FrameTokens, *use.Shown)
		})
	}
}

func TestLabelsCountWhatIsShown(t *testing.T) {
	x := element
	x.Frame = abi.FrameCompact
	c := sdktest.New(t, sdktest.Options{}).Call(abi.OpRetrieve, scope)
	fitted := x.FitNewest(c, memories, abi.ContextBudget{MaxItems: new(int64(2))})
	require.Contains(t, fitted.Text, "m1 [until 2026-04-10, superseded] Mara: She")
	require.Contains(t, fitted.Text, "m2 Window seats.")
	kept := []abi.Evidence{{Rank: 1}, {Rank: 2}}
	fitted.Mark(kept, fitted.First)
	require.Equal(t, "She lives in Lyon.", fitted.Text[kept[0].Shown.Start:kept[0].Shown.End])

	x.Arrange = func(blocks []sdk.Block) []sdk.Block {
		blocks[0], blocks[2] = blocks[2], blocks[0]
		return blocks
	}
	fitted = x.FitFirst(c, memories, abi.ContextBudget{})
	require.Regexp(t, "(?s)## preferences\nm3 Window.*## facts\nm2 .*m1 2026", fitted.Text)
	all := []abi.Evidence{{Rank: 1}, {Rank: 2}, {Rank: 3}}
	fitted.Mark(all, 0)
	for i, e := range all {
		require.Equal(t, memories[i].Text, fitted.Text[e.Shown.Start:e.Shown.End])
	}
}

func TestAMemoryOfSeveralBlocksIsOneItem(t *testing.T) {
	document := []sdk.Block{{Item: 0, Heading: "## MEMORY.md", Text: "# Person", Document: true},
		{Item: 0, Heading: "## MEMORY.md", Text: "- likes tea", Document: true}, {Item: 1, Text: "said hello"}}
	x := element
	x.Frame = abi.FrameCompact
	c := sdktest.New(t, sdktest.Options{}).Call(abi.OpRetrieve, scope)
	fitted := x.FitFirst(c, document, abi.ContextBudget{})
	require.Equal(t, x.Wrap("## MEMORY.md\nm1\n# Person\n- likes tea\nm2 said hello\n"), fitted.Text)
	e := []abi.Evidence{{Rank: 1}, {Rank: 2}}
	fitted.Mark(e, 0)
	require.Equal(t, "# Person\n- likes tea", fitted.Text[e[0].Shown.Start:e[0].Shown.End])

	part := x.FitFirst(c, document, abi.ContextBudget{MaxItems: new(int64(1))})
	part.Mark(e, 0)
	require.Equal(t, "# Person", part.Text[e[0].Shown.Start:e[0].Shown.End])
	require.False(t, e[0].Shown.Whole)
	require.Nil(t, e[1].Shown)
}

func TestATimeOfTheSameDayGoesWithoutItsDate(t *testing.T) {
	turns := []sdk.Block{{Text: "user: One.", When: "2026-03-01 09:30"},
		{Item: 1, Text: "user: Two.", When: "2026-03-01 09:31 | work"},
		{Item: 2, Text: "user: Three.", When: "2026-03-01"}, {Item: 3, Text: "user: Four.", When: "2026-03-02 09:31"},
		{Item: 4, Text: "user: Five.", When: "2026-03-02 23:59", Before: "[2026-03-02T23:59:00Z]\n"}}
	for _, c := range []struct {
		frame abi.Frame
		items int64
		want  string
	}{
		{abi.FrameCompact, 5, "m1 [2026-03-01 09:30] user: One.\nm2 [09:31 | work] user: Two.\n" +
			"m3 2026-03-01 user: Three.\nm4 [2026-03-02 09:31] user: Four.\nm5 [23:59] user: Five.\n"},
		{abi.FrameMinimal, 2, "[2026-03-02 09:31] user: Four.\n[23:59] user: Five.\n"},
		{abi.FrameMinimal, 1, "[2026-03-02 23:59] user: Five.\n"},
		{abi.FrameFull, 1, "[2026-03-02T23:59:00Z]\nuser: Five.\n"},
	} {
		x := element
		x.Frame = c.frame
		fitted := x.FitNewest(sdktest.New(t, sdktest.Options{}).Call(abi.OpRetrieve, scope), turns,
			abi.ContextBudget{MaxItems: &c.items})
		x.UTC = c.frame != abi.FrameFull
		require.Equal(t, x.Wrap(c.want), fitted.Text)
		evidence := []abi.Evidence{{Rank: 5}}
		fitted.Mark(evidence, 0)
		require.Equal(t, "user: Five.", fitted.Text[evidence[0].Shown.Start:evidence[0].Shown.End])
	}
}

// TestShownIsTheTextHoweverItIsEscapedCutOrFramed: the shown range is the block's text, or its beginning, escaped.
func TestShownIsTheTextHoweverItIsEscapedCutOrFramed(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{})
	rapid.Check(t, func(t *rapid.T) {
		var list []sdk.Block
		for i := range rapid.IntRange(0, 8).Draw(t, "blocks") {
			list = append(list, sdk.Block{Item: i, Heading: hostile().Draw(t, "heading"),
				Before: hostile().Draw(t, "before"), Text: hostile().Draw(t, "text"),
				After: hostile().Draw(t, "after"), When: hostile().Draw(t, "when"), Who: hostile().Draw(t, "who"),
				Document: rapid.Bool().Draw(t, "document")})
		}
		x := element
		x.Frame = rapid.SampledFrom([]abi.Frame{"", abi.FrameFull, abi.FrameCompact, abi.FrameMinimal}).Draw(t, "frame")
		limit := rapid.Int64Range(0, 400).Draw(t, "max_tokens")
		c := h.Call(abi.OpRetrieve, scope)
		fitted := x.FitFirst(c, list, abi.ContextBudget{MaxTokens: &limit})
		if fitted.Text != "" {
			require.Len(t, tag.FindAllString(fitted.Text, -1), 2)
		}
		evidence := make([]abi.Evidence, len(list))
		for i := range evidence {
			evidence[i].Rank = int64(i + 1)
		}
		fitted.Mark(evidence, 0)
		end := int64(0)
		for i, e := range evidence {
			require.Equal(t, i < fitted.End, e.Shown != nil)
			if e.Shown == nil {
				continue
			}
			require.GreaterOrEqual(t, e.Shown.Start, end)
			end = e.Shown.End
			is, want := words(fitted.Text[e.Shown.Start:e.Shown.End]), words(list[i].Text)
			if e.Shown.Whole {
				require.Equal(t, want, is)
			} else {
				require.True(t, fitted.Cut && strings.HasPrefix(want, is), "%q is not the beginning of %q", is, want)
			}
		}
		require.LessOrEqual(t, fitted.Tokens, limit)
		require.LessOrEqual(t, fitted.FrameTokens, fitted.Tokens)
	})
}

// words removes the backslashes of escaping from a text.
func words(text string) string { return strings.ReplaceAll(text, "\\", "") }

func TestIndentLeavesNoLineThatBeginsAnything(t *testing.T) {
	for in, want := range map[string]string{"": "", "one": "one", "a\nb": "a\n  b", "a\r\nb\rc\n": "a\n  b\n  c",
		"a\u2028[b\u0085c\vd\fe": "a\n  [b\n  c\n  d\n  e",
		"tab\tstays \xff":        "tab\tstays \xff"} {
		require.Equal(t, want, sdk.Indent(in))
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(),
			rapid.SampledFrom([]rune("\n\r\v\f\u0085\u2028\u2029 ")))).Draw(t, "text")
		lines := strings.Split(sdk.Indent(text), "\n")
		for _, line := range lines[1:] {
			require.True(t, strings.HasPrefix(line, "  "))
		}
		bare := func(s string) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsSpace(r) {
					return -1
				}
				return r
			}, s)
		}
		require.Equal(t, bare(text), bare(sdk.Indent(text)))
	})
}

func TestDayAndMinute(t *testing.T) {
	for in, want := range map[string][2]string{
		"2026-03-01T00:30:00+01:00": {"2026-02-28", "2026-02-28 23:30"},
		"2026-03-01 09:30:00":       {"2026-03-01", "2026-03-01 09:30"},
		"2026-03-01":                {"2026-03-01", "2026-03-01"}, "yesterday": {"yesterday", "yesterday"},
		"2026-03-01X":   {"2026-03-01X", "2026-03-01X"},
		"2026-03-01T09": {"2026-03-01", "2026-03-01"}, "": {"", ""}, "a\nb": {"a b", "a b"}} {
		assert.Equal(t, want, [2]string{sdk.Day(in), sdk.Minute(in)})
	}
}

func TestShortIDs(t *testing.T) {
	require.Equal(t, []string{"8be2a280", "a1b2c3d4"},
		sdk.ShortIDs([]string{"8be2a280-1d1c-4d0a", "a1b2c3d4-1d1c-4d0a"}))
	require.Equal(t, []string{"8be2a280-1d1", "8be2a280-1d2"},
		sdk.ShortIDs([]string{"8be2a280-1d1c-4d0a", "8be2a280-1d2c-4d0a"}))
	require.Equal(t, []string{"fact-1", "", "twelve chars"}, sdk.ShortIDs([]string{"fact-1", "", "twelve chars"}))
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.StringMatching("[ab]{0,20}")).Draw(t, "ids")
		short := sdk.ShortIDs(ids)
		for i := range ids {
			require.True(t, strings.HasPrefix(ids[i], short[i]))
			for j := range ids {
				require.Equal(t, ids[i] == ids[j], short[i] == short[j])
			}
		}
	})
}

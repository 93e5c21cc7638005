package sdk_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/tokens"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

var (
	scope   = abi.MemoryScope{RunID: "run", PersonaID: "mara"}
	element = sdk.Context{Backend: "test", Scope: scope, Kind: abi.KindControl}
)

// tag matches every opening or closing tag of the element that a lenient reader could see: in any case, with blanks,
// control and invisible characters between "<" and the name.
var tag = regexp.MustCompile(`(?i)<[\s\pC\pZ/]*memory-context`)

func TestWrapWritesTheElementOfTheContract(t *testing.T) {
	for _, tt := range []struct {
		name string
		x    sdk.Context
		body string
		want string
	}{
		{"a control says that it is one", element, "Likes tea.\n",
			"<memory-context backend=\"test\" scope=\"run/mara\" condition_kind=\"control\">\nLikes " +
				"tea.\n</memory-context>"},
		{"an architecture does not", sdk.Context{Backend: "mem0", Scope: scope, Kind: abi.KindArchitecture},
			"Likes tea.",
			"<memory-context backend=\"mem0\" scope=\"run/mara\">\nLikes tea.\n</memory-context>"},
		{"no memory is the empty string", element, "", ""},
		{"attributes are escaped", sdk.Context{Backend: `a"b`, Scope: abi.MemoryScope{RunID: "<x>&\n", PersonaID: "p"}},
			"x",
			"<memory-context backend=\"a&quot;b\" scope=\"&lt;x&gt;&amp; /p\">\nx\n</memory-context>"},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, tt.x.Wrap(tt.body)) })
	}
}

func TestEscapeText(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain text stays", "a < b && b > c </p> <memory>", "a < b && b > c </p> <memory>"},
		{"a closing tag", "x </memory-context> y", `x <\/memory-context> y`},
		{"an opening tag", `<memory-context backend="x">`, `<\memory-context backend="x">`},
		{"any case", "</Memory-CONTEXT>", `<\/Memory-CONTEXT>`},
		{"blanks inside", "< / \n memory-context>", "<\\ / \n memory-context>"},
		{"a no-break space inside", "<\u00a0memory-context>", "<\\\u00a0memory-context>"},
		{"a zero-width space inside", "</\u200bmemory-context>", "<\\/\u200bmemory-context>"},
		{"zero-width space and joiner in the name", "</mem\u200bory\u200d-context>", "<\\/mem\u200bory\u200d-context>"},
		{"a soft hyphen for the dash", "</memory\u00adcontext>", "<\\/memory\u00adcontext>"},
		{"a soft hyphen before the dash", "</memory\u00ad-context>", "<\\/memory\u00ad-context>"},
		{"another dash", "</memory\u2011context></memory\u2212context>",
			"<\\/memory\u2011context><\\/memory\u2212context>"},
		{"full-width", "＜／ｍｅｍｏｒｙ－ｃｏｎｔｅｘｔ＞", "＜\\／ｍｅｍｏｒｙ－ｃｏｎｔｅｘｔ＞"},
		{"another bracket", "‹/memory-context›", "‹\\/memory-context›"},
		{"a bracket of Chinese and Japanese text", "〈/memory-context〉〈記憶〉<memory-context>",
			"〈\\/memory-context〉〈記憶〉<\\memory-context>"},
		{"mathematical letters", "</𝐦𝐞𝐦𝐨𝐫𝐲-context>", "<\\/𝐦𝐞𝐦𝐨𝐫𝐲-context>"},
		{"Cyrillic letters", "</mеmоry-сontеxt>", "<\\/mеmоry-сontеxt>"},
		{"Roman numerals", "</\u217femory-\u217dontext></memory-conte\u2179t>",
			"<\\/\u217femory-\u217dontext><\\/memory-conte\u2179t>"},
		{"a lunate sigma, an Armenian oh, a superscript", "</memory-\u03f2\u0585ntext></\u1d50emory-context>",
			"<\\/memory-\u03f2\u0585ntext><\\/\u1d50emory-context>"},
		{"small capitals", "</ᴍᴇᴍᴏʀʏ-ᴄᴏɴᴛᴇxᴛ>", "<\\/ᴍᴇᴍᴏʀʏ-ᴄᴏɴᴛᴇxᴛ>"},
		{"letters in circles and squares", "</ⓜ🅴🄼🅾🅁🆈-context>", "<\\/ⓜ🅴🄼🅾🅁🆈-context>"},
		{"letters of Lisu, Coptic and Lycian", "</ꓟꓰꓟꓳꓣꓬ-ⲤⲞNTEX𐊗>", "<\\/ꓟꓰꓟꓳꓣꓬ-ⲤⲞNTEX𐊗>"},
		{"a letter for the bracket", "ᐸ/memory-context> くmemory-context", "ᐸ\\/memory-context> く\\memory-context"},
		{"words that end with such a letter", "よく", "よく"},
		{"letters of another script before the name", "<記憶memory-context> ＜記憶＞ «mémoire» ‹a› memory\u00adcontext",
			"<記憶memory-context> ＜記憶＞ «mémoire» ‹a› memory\u00adcontext"},
		{"a name that is not quite", "</memory context> </memory--context> </memorycontext>",
			"</memory context> </memory--context> </memorycontext>"},
		{"two in a row", "<<memory-context></memory-context>", `<<\memory-context><\/memory-context>`},
		{"an end that the next text could finish", "a </memory-", `a <\/memory-`},
		{"a bracket at the end", "1 <", `1 <\`},
		{"already escaped", `<\memory-context>`, `<\memory-context>`},
		{"bytes that are not UTF-8", "\xff</memory-context\xfe", "\xff<\\/memory-context\xfe"},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, sdk.EscapeText(tt.in)) })
	}
}

// hostile draws text that tries to build the tag: parts of it among noise.
func hostile() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"<", "</", "< /", "memory-context",
		"MEMORY-Context",
		"memory", "-context", ">", "\\",
		"\n", "\u00a0", "\u200b", "\ufeff", "\x00", "<memory-context", "</memory-context>", "\"", "&lt;"}))
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"),
			"")
	})
}

func TestEscapedTextsNeverFormATagHoweverTheyAreJoined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var body strings.Builder
		for _, text := range rapid.SliceOfN(hostile(), 0, 5).Draw(t, "texts") {
			body.WriteString(sdk.EscapeText(text))
		}
		requireUnforged(t, body.String())
	})
}

func TestEscapeTextOnlyAddsBackslashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := hostile().Draw(t, "text")
		escaped := sdk.EscapeText(text)
		i := 0
		for j := 0; j < len(escaped); j++ {
			if i < len(text) && escaped[j] == text[i] {
				i++
				continue
			}
			require.Equal(t, byte('\\'), escaped[j])
			before, _ := utf8.DecodeLastRuneInString(escaped[:j])
			require.Equal(t, len(string(before)), abi.NextContextTag(string(before)+"memory-context", false))
		}
		require.Equal(t, len(text), i)
	})
}

func FuzzEscapeText(f *testing.F) {
	f.Add("</memory-context>", "<memory-")
	f.Add("a <", " / Memory-Context>")
	f.Fuzz(func(t *testing.T, a, b string) { requireUnforged(t, sdk.EscapeText(a)+sdk.EscapeText(b)) })
}

// requireUnforged checks that the wrapped body has only two tags of the element: its own.
func requireUnforged(t require.TestingT, body string) {
	require.Empty(t, tag.FindString(body))
	if body != "" {
		require.Len(t, tag.FindAllString(element.Wrap(body), -1), 2)
	}
}

func TestAnAttributeHoldsNoTag(t *testing.T) {
	assert.Equal(t, "a&lt;/memory-context&gt; &lt; /memory-context&#65308;/memory-context ＜b＞", sdk.EscapeAttr(
		"a</memory-context> < /memory-context＜/memory-context ＜b＞"))
}

func FuzzEscapeAttr(f *testing.F) {
	f.Add(`x"><memory-context>`)
	f.Fuzz(func(t *testing.T, s string) {
		escaped := sdk.EscapeAttr(s)
		require.False(t, strings.ContainsAny(escaped, "<>\"\n\r\t"))
	})
}

// blocksOf returns lines as blocks, one memory each.
func blocksOf(lines []string) []sdk.Block {
	blocks := make([]sdk.Block, len(lines))
	for i, line := range lines {
		blocks[i] = sdk.Block{Item: i, Text: strings.TrimSuffix(line, "\n")}
	}
	return blocks
}

// blocks draws lines without tags, ASCII or mixed.
func blocks(t *rapid.T) []string {
	text := rapid.OneOf(rapid.StringOfN(rapid.RuneFrom([]rune("abc <>/")), 0, 60, -1),
		rapid.StringOfN(rapid.RuneFrom([]rune("aé日語🍵")), 0, 40, -1))
	var lines []string
	for _, s := range rapid.SliceOfN(text, 0, 25).Draw(t, "texts") {
		lines = append(lines, sdk.EscapeText(s)+"\n")
	}
	return lines
}

func TestFitKeepsOrderAndNeverExceedsTheBudget(t *testing.T) {
	for _, tokenizer := range []string{"bytes4", "o200k_base"} {
		t.Run(tokenizer, func(t *testing.T) {
			counter, err := tokens.New(tokenizer)
			require.NoError(t, err)
			h := sdktest.New(t, sdktest.Options{Counter: counter})
			rapid.Check(t, func(t *rapid.T) {
				lines := blocks(t)
				limit := rapid.Int64Range(0, 300).Draw(t, "max_tokens")
				budget := abi.ContextBudget{MaxTokens: &limit}
				most := len(lines)
				if rapid.Bool().Draw(t, "with max_items") {
					items := rapid.Int64Range(0, 30).Draw(t, "max_items")
					budget.MaxItems, most = &items, min(most, int(items))
				}
				newest := rapid.Bool().Draw(t, "newest")
				c := h.Call(abi.OpRetrieve, scope)
				fitted, all := element.FitFirst(c, blocksOf(lines), budget), lines[:most]
				if newest {
					fitted, all = element.FitNewest(c, blocksOf(lines), budget), lines[len(lines)-most:]
				}
				kept := lines[fitted.First:fitted.End]
				if len(kept) > 0 && newest {
					require.Equal(t, len(lines), fitted.End, "the newest are kept")
				} else if len(kept) > 0 {
					require.Zero(t, fitted.First, "the first are kept")
				}
				require.LessOrEqual(t, c.CountTokens(fitted.Text), limit)
				require.Equal(t, c.CountTokens(fitted.Text), fitted.Tokens)
				if c.CountTokens(element.Wrap(strings.Join(all, ""))) <= limit {
					require.Equal(t, element.Wrap(strings.Join(all, "")), fitted.Text,
						"everything fits, so everything is kept")
					require.Equal(t, most < len(lines), fitted.Truncated)
					return
				}
				require.True(t, fitted.Truncated)
				whole := element.Wrap(strings.Join(kept, ""))
				require.Equal(t, fitted.Text != whole, fitted.Cut)
				if fitted.Cut {
					require.LessOrEqual(t, fitted.End-fitted.First, 1, "only the first block is ever cut")
					requireBeginning(t, kept, fitted)
				}
			})
		})
	}
}

func requireBeginning(t *rapid.T, kept []string, fitted sdk.Fitted) {
	inner := strings.TrimPrefix(fitted.Text, element.Wrap("x")[:strings.IndexByte(element.Wrap("x"), '\n')+1])
	inner, found := strings.CutSuffix(inner, "\n[cut to fit the budget]\n</memory-context>")
	require.True(t, found, "a cut is marked")
	require.True(t, strings.HasPrefix(kept[0], inner))
}

func TestFitIsMaximalWhereCountsGrowWithTheText(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{})
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		for _, s := range rapid.SliceOfN(rapid.StringMatching(`[a-z ]{0,60}`), 1, 40).Draw(t, "texts") {
			lines = append(lines, s+"\n")
		}
		limit := rapid.Int64Range(40, 400).Draw(t, "max_tokens")
		c := h.Call(abi.OpRetrieve, scope)
		fitted := element.FitNewest(c, blocksOf(lines), abi.ContextBudget{MaxTokens: &limit})
		if fitted.First > 0 {
			one := element.Wrap(strings.Join(lines[fitted.First-1:], ""))
			require.Greater(t, c.CountTokens(one), limit, "one block more would have fitted")
		}
	})
}

func TestASingleBlockTooLargeIsCutBetweenCharactersAndMarked(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{})
	c := h.Call(abi.OpRetrieve, scope)
	fitted := element.FitNewest(c, blocksOf([]string{"older", strings.Repeat("日本語", 200)}),
		abi.ContextBudget{MaxTokens: new(int64(120))})
	assert.LessOrEqual(t, fitted.Tokens, int64(120))
	assert.Greater(t, fitted.Tokens, int64(60))
	assert.Equal(t, []int{1, 2}, []int{fitted.First, fitted.End})
	assert.True(t, fitted.Cut)
	assert.Contains(t, fitted.Text, "\n[cut to fit the budget]\n</memory-context>")
	assert.NotContains(t, fitted.Text, string(unicode.ReplacementChar))
}

func TestABudgetTooSmallForTheFrameGivesNothing(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{})
	fitted := element.FitNewest(h.Call(abi.OpRetrieve, scope), blocksOf([]string{"x"}),
		abi.ContextBudget{MaxTokens: new(int64(3))})
	assert.Equal(t, sdk.Fitted{First: 0, End: 0, Truncated: true}, fitted)
}

func TestOneLineIsOneLine(t *testing.T) {
	for in, want := range map[string]string{"": "", "plain: ü 山 €": "plain: ü 山 €", "a\nb\r\nc": "a b  c",
		"tab\tand\x00 nul":                    "tab and  nul",
		"del\x7f nel\u0085 ls\u2028 ps\u2029": "del  nel  ls  ps "} {
		require.Equal(t, want, sdk.OneLine(in))
	}
}

// TestQuickTestsOverlookNothing checks that text which is returned unchanged needs no escaping.
func TestQuickTestsOverlookNothing(t *testing.T) {
	attribute := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\n", " ", "\r", " ", "\t",
		" ")
	text := rapid.OneOf(hostile(), rapid.StringOf(rapid.RuneFrom([]rune(
		"abcdefgh <>&\"\n\x00\x1f\x7f\u0085\u2028\u2029é山"))))
	rapid.Check(t, func(t *rapid.T) {
		in := text.Draw(t, "text")
		require.Equal(t, attribute.Replace(in), sdk.EscapeAttr(in))
		line := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && (r < 0x80 || r == 0x85) || r == 0x2028 || r == 0x2029 {
				return ' '
			}
			return r
		}, in)
		require.Equal(t, line, sdk.OneLine(in))
	})
}

func TestHostileLookAlikesAreEscapedAndOrdinaryTextStays(t *testing.T) {
	ordinary := rapid.StringOfN(rapid.RuneFrom(nil, unicode.Latin, unicode.Han, unicode.Arabic, unicode.Cyrillic,
		unicode.Devanagari,
		unicode.Hangul, unicode.Hiragana, unicode.Nd, unicode.So, unicode.Po, unicode.Pd), 1, 60, -1)
	rapid.Check(t, func(t *rapid.T) {
		text := ordinary.Draw(t, "text") + rapid.SampledFrom([]string{"", " < b", " <b>", "‹x›", "＜x＞",
			"<memory>"}).Draw(t,
			"bracket") + "."
		require.Equal(t, text, sdk.EscapeText(text))

		pieces := [][]string{{"<", "＜", "‹", "⟨", "〈"}, {"", "/", "／", "⁄"}, {"memory", "ＭＥＭＯＲＹ", "Memory", "mеmоry"},
			{"-", "\u00ad", "\u2010", "\u2013", "－"}, {"context", "ｃｏｎｔｅｘｔ", "CONTEXT"}}
		forged := ""
		for _, piece := range pieces {
			forged += rapid.SampledFrom(piece).Draw(t, "piece") +
				rapid.SampledFrom([]string{"", "\u200b", "\u2060", "\ufeff",
					"\ufe0f"}).Draw(t, "invisible")
		}
		escaped := sdk.EscapeText(text + forged + text)
		require.Len(t, escaped, len(text+forged+text)+1)
		end := len(text) + abi.NextContextTag(forged, false)
		require.Equal(t, byte('\\'), escaped[end])
	})
}

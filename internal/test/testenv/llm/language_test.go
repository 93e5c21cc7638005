package llm

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSentences(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"two", "I moved to oat milk last week. I never take sugar in coffee.",
			[]string{"I moved to oat milk last week.", "I never take sugar in coffee."}},
		{"a title and a number", "Ask Dr. Feddersen at 10.30 a.m. sharp. Good.",
			[]string{"Ask Dr. Feddersen at 10.30 a.m.", "sharp.", "Good."}},
		{"Chinese", "我住在北京。我喜欢喝绿茶。", []string{"我住在北京。", "我喜欢喝绿茶。"}},
		{"question and lines", "Really?!\nYes\n\n- one", []string{"Really?!", "Yes", "- one"}},
		{"only marks", "...!? \n", nil},
		{"version", "Use 2.2.1 please", []string{"Use 2.2.1 please"}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Sentences(c.text)) })
	}
}

func TestReadTellsWhatASentenceSays(t *testing.T) {
	for _, c := range []struct {
		sentence, relation, object, fact string
		lasting, change, preference      bool
	}{
		{"My cat is called Zorvex.", "IS_CALLED", "Zorvex", "mara's cat is called Zorvex", true, false, false},
		{"I like green tea!", "LIKES", "green tea", "mara like green tea", true, false, true},
		{"I now prefer aisle seats on business trips.", "PREFERS", "aisle seats on business trips",
			"mara now prefer aisle seats on business trips", true, true, true},
		{"I moved to Lyon in March.", "MOVED_TO", "Lyon in March", "mara moved to Lyon in March", true, true, false},
		{"I no longer eat meat.", "EATS", "meat", "mara no longer eat meat", true, true, true},
		{"I don't like coffee.", "DISLIKES", "coffee", "mara don't like coffee", true, false, true},
		{"我住在上海。", "LIVES_IN", "上海", "mara 住在上海", true, false, false},
		{"Deploy the shop.", "SAID", "Deploy the shop", "mara: Deploy the shop", false, false, false},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			s, ok := Read("mara", c.sentence)
			require.True(t, ok)
			require.Equal(t, []any{c.relation, c.object, c.lasting, c.change, c.preference},
				[]any{s.Relation, s.Object, s.Lasting, s.Change, s.Preference})
			require.Equal(t, c.fact, s.Fact)
		})
	}
	for _, question := range []string{"Which milk do I like?", "我喜欢什么？", "", "…"} {
		_, ok := Read("mara", question)
		require.False(t, ok, question)
	}
}

func TestAChangeReplacesOnlyItsTopic(t *testing.T) {
	read := func(s string) Statement { out, _ := Read("x", s); return out }
	window, tea := read("I prefer window seats."), read("I like green tea.")
	aisle := read("I now prefer aisle seats.")
	require.True(t, aisle.Replaces(window))
	require.False(t, aisle.Replaces(tea))
	require.False(t, window.Replaces(aisle), "without a word of change nothing is replaced: two names of two cats "+
		"stay side by side")
	require.False(t, read("My cat is called Zorvex.").Replaces(read("My cat is called Qimpa.")))
}

func TestEmbeddingsSeparate(t *testing.T) {
	cos := func(a, b string) float64 { return Cosine(Embed(a, 384), Embed(b, 384)) }
	require.InDelta(t, 1, cos("I like tea", "I like tea"), 1e-6)
	require.Greater(t, cos("What is my cat called?", "My cat is called Zorvex."), 0.2)
	require.Greater(t, cos("Which seats?", "an aisle seat"), 0.1)
	require.Greater(t, cos("绿茶", "我喜欢喝绿茶"), 0.2)
	require.Greater(t, cos("🥾", "boots 🥾"), 0.2)
	require.Less(t, cos("The depot opens at nine", "My cat is called Zorvex"), 0.2)
}

func TestEmbeddingsAreUnitVectorsWhateverTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		n := rapid.IntRange(1, 2000).Draw(t, "dimensions")
		v := Embed(text, n)
		require.Len(t, v, n)
		require.InDelta(t, 1, Cosine(v, v), 1e-4)
		require.Equal(t, v, Embed(text, n), "deterministic")
		cut := v[:min(n, 1024)]
		require.InDelta(t, 1, Cosine(cut, cut), 1e-4, "nothing is lost when it is shortened")
	})
}

// FuzzSentences: no letter is lost, whatever the punctuation.
func FuzzSentences(f *testing.F) {
	for _, s := range []string{"I like tea. You?", "Dr. No says 3.5. ok", "a\xffb。c", "...", "I. A. B? c"} {
		f.Add(s)
	}
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := letters(strings.Join(Sentences(text), " ")); got != letters(text) {
			t.Fatalf("%q became %q", letters(text), got)
		}
		for _, s := range Sentences(text) {
			Read("x", s)
		}
	})
}

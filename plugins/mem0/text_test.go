package main

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/sdk"
)

func TestSameIsEquality(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.StringN(0, 20, 40).Draw(t, "a")
		changed := []byte(a)
		if at := rapid.IntRange(0, 40).Draw(t, "at"); at < len(a) {
			changed[at] ^= byte(rapid.IntRange(0, 255).Draw(t, "bits"))
		}
		b := rapid.OneOf(rapid.Just(string(changed)), rapid.StringN(0, 20, 40)).Draw(t, "b")
		assert.Equal(t, a == b, same(a, b))
	})
}

func TestQuietOverlooksNothing(t *testing.T) {
	assert.True(t, quiet("a063983a-fa27-431e-b5df-90412b186bde") && quiet("Ich mag Käse; > 3 Stück.") && quiet(""))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.OneOf(rapid.RuneFrom([]rune("<=;\n\t \x1f\x00a")), rapid.Rune()), 0, 30, -1).Draw(t, "text")
		loud := strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '<' })
		if loud && quiet(text) {
			t.Fatalf("%q", text)
		}
	})
}

func TestAnASCIIPrefixIsASCII(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~]{0,80}`).Draw(t, "before") + rapid.SampledFrom([]string{"", "ä", "\xff"}).Draw(t, "other") + rapid.StringMatching(`[ -~]{0,80}`).Draw(t, "behind")
		n := asciiPrefix(text)
		if strings.ContainsFunc(text[:n], func(r rune) bool { return r >= 0x80 }) {
			t.Fatalf("%d of %q", n, text)
		}
		assert.Equal(t, utf8.ValidString(text), jsontext.ValidUTF8([]byte(text[n:])))
	})
}

func TestHundredthsAreThoseOfStrconv(t *testing.T) {
	check := func(x float64) {
		t.Helper()
		assert.Equal(t, strconv.FormatFloat(x, 'f', 2, 64), string(addHundredths(nil, x)))
	}
	for _, x := range []float64{0, math.Copysign(0, -1), 0.005, 0.015, 0.125, 0.375, 0.625, 0.875, 0.995, 1, 1.005, 9.995, 9.999, 10, 99.995, 99.999, 127.999, 128, -0.5, 1e300,
		5e-324, 1e-300, 0x1p-9, 0x1p-10, math.Inf(1), math.NaN(), math.MaxFloat64} {
		check(x)
	}
	for n := range 128 * 8 { // the only ones that lie between two
		check(float64(n) / 8)
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.OneOf(rapid.Float64Range(0, 130), rapid.Float64()).Draw(t, "x")
		if want, got := strconv.FormatFloat(x, 'f', 2, 64), string(addHundredths(nil, x)); want != got {
			t.Fatalf("%v: %s, not %s", x, got, want)
		}
	})
}

func TestGreaterComparesNumbers(t *testing.T) {
	numeral := rapid.OneOf(rapid.StringMatching(`0\.[0-9]{1,20}`), rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`))
	rapid.Check(t, func(t *rapid.T) {
		a, b := numeral.Draw(t, "a"), numeral.Draw(t, "b")
		read, err := readNumeral(jsontext.DecodeStr(a))
		if err != nil || read != a {
			t.Fatalf("%q, %v", read, err)
		}
		// Two texts may be the same number: which of them is kept shows nowhere.
		if x, y := numeralValue(a), numeralValue(b); greater(a, b) != (x > y) && x != y {
			t.Fatalf("%s > %s", a, b)
		}
	})
	_, err := readNumeral(jsontext.DecodeStr("1e999"))
	assert.ErrorContains(t, err, "not a number of 64 bits at byte 0")
}

func TestALineIsItsFacts(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("ab \n<>/\x00"))), rapid.Just("</memory-context>"), rapid.Just("an end <"))
	rapid.Check(t, func(t *rapid.T) {
		told := func(name string) number {
			return number{rapid.Float64Range(0, 200).Draw(t, name), rapid.Bool().Draw(t, name+" told")}
		}
		m := &memory{id: text.Draw(t, "id"), text: text.Draw(t, "text"), score: told("score"), reranked: told("reranked"), replaced: rapid.Bool().Draw(t, "replaced")}
		m.created = rapid.SampledFrom([]string{"", "2025-03-10T09:30:00+00:00"}).Draw(t, "created")
		var facts []string
		if m.created != "" {
			facts = append(facts, m.created)
		}
		if m.score.told {
			facts = append(facts, "score "+strconv.FormatFloat(m.score.value, 'f', 2, 64))
		}
		if m.reranked.told {
			facts = append(facts, "rerank "+strconv.FormatFloat(m.reranked.value, 'f', 2, 64))
		}
		facts = append(facts, clean(m.id))
		if m.replaced {
			facts = append(facts, "superseded")
		}
		want := sdk.EscapeText("- " + strings.ReplaceAll(m.text, "\n", "\n  ") + " [" + strings.Join(facts, " | ") + "]\n")
		before := "what stands before it < "
		if got := string(render([]byte(before), m)); got != before+want {
			t.Fatalf("%q, not %q", got, before+want)
		}
	})
}

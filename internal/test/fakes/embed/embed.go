// Package embed makes vectors without a model, so that fakes of memory backends rank as the real ones do: texts that
// share words come near each other.
package embed

import (
	"hash/fnv"
	"math"
	"strings"
	"unicode"
)

// Dimensions of the vectors. The recorded servers ran with as many.
const Dimensions = 384

// Text is the unit vector of a text: each of its words, in lower case and without a plural s, counts at the place that
// its hash names. A text without words has the zero vector, which is near nothing.
func Text(text string) []float32 {
	v := make([]float32, Dimensions)
	for _, word := range Words(text) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(word))
		v[h.Sum32()%Dimensions]++
	}
	norm := 0.0
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	if norm == 0 {
		return v
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(norm))
	}
	return v
}

// Words are a text's words as they count: runs of letters and digits; of a script without blanks, each character.
func Words(text string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if w := word.String(); w != "" {
			if len(w) > 3 {
				w = strings.TrimSuffix(w, "s")
			}
			words = append(words, w)
		}
		word.Reset()
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.Is(unicode.Han, r) || unicode.Is(unicode.Hiragana, r) || unicode.Is(unicode.Katakana, r):
			end()
			words = append(words, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			word.WriteRune(r)
		default:
			end()
		}
	}
	end()
	return words
}

// Cosine of two unit vectors of one length.
func Cosine(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

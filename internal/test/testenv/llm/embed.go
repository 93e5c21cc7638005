package llm

import (
	"hash/fnv"
	"math"
	"strings"
	"unicode"
)

// Embed maps a text to a unit vector: signed feature hashing of its content words.
//
// Latin words are lower-cased and stemmed, function words are dropped (unless there is nothing else), Chinese, Japanese
// and Korean text gives its characters and pairs, other symbols count as themselves. Two texts that share a word have
// a cosine well above zero, unrelated ones are near zero, and no vector is zero: a text without any token gets a fixed
// one. As with OpenAI's models, a longer vector may be shortened: everything is in its first 1024 numbers (Graphiti
// cuts to its own dimension, and a zero vector kills the worker of its REST service).
func Embed(text string, dimensions int) []float32 {
	vector := make([]float32, dimensions)
	tokens := Tokens(text)
	if len(tokens) == 0 {
		tokens = []string{"\x00empty"}
	}
	for _, token := range tokens {
		h := fnv.New64a()
		h.Write([]byte(token))
		sum := mix(h.Sum64())
		sign := float32(1)
		if sum>>63 == 1 {
			sign = -1
		}
		vector[sum%uint64(min(dimensions, shortened))] += sign
	}
	if normalise(vector) {
		return vector
	}
	// The tokens cancelled each other out.
	vector[0] = 1
	return vector
}

// shortened is how far a vector may be cut.
const shortened = 1024

// Cosine of two unit vectors of one length.
func Cosine(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// Tokens are what Embed hashes, in order, with repetitions.
func Tokens(text string) []string {
	var content, all []string
	var word strings.Builder
	flush := func() {
		if word.Len() == 0 {
			return
		}
		w := word.String()
		word.Reset()
		stem := Stem(w)
		all = append(all, stem)
		if !functionWords[w] {
			content = append(content, stem)
		}
	}
	var ideograph rune
	for _, r := range strings.ToLower(text) {
		switch {
		case isIdeograph(r):
			flush()
			content = append(content, string(r))
			if ideograph != 0 {
				content = append(content, string(ideograph)+string(r))
			}
			ideograph = r
			continue
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			word.WriteRune(r)
		case r == '\'' || r == '’': // don't, it's: one word
		default:
			flush()
			if unicode.Is(unicode.So, r) {
				content = append(content, string(r))
			}
		}
		ideograph = 0
	}
	flush()
	if len(content) == 0 {
		return all
	}
	return content
}

// Stem cuts the commonest English endings. It need not be right, only the same for the forms of one word.
func Stem(word string) string {
	for _, ending := range []string{"ies", "ing", "ed", "es", "s"} {
		if rest, ok := strings.CutSuffix(word, ending); ok && len(rest) >= 3 {
			if ending == "ies" {
				return rest + "y"
			}
			return strings.TrimSuffix(rest, "e")
		}
	}
	if len(word) > 4 {
		return strings.TrimSuffix(word, "e")
	}
	return word
}

func isIdeograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// mix spreads the bits (the finaliser of MurmurHash3): FNV alone leaves short words in few buckets.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func normalise(vector []float32) bool {
	sum := 0.0
	for _, x := range vector {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return false
	}
	length := float32(math.Sqrt(sum))
	for i := range vector {
		vector[i] /= length
	}
	return true
}

var functionWords = wordSet(`a an the and or but if so as at by for from in into of on onto to up with without about over under than then this that
	these those it its i me my mine myself we us our you your he him his she her they them their is am are was were be been being do does did done have
	has had will would can could should shall may might must not no nor im ive id ill youre hes shes were theyre dont doesnt didnt cant wont isnt arent
	what which who whom whose when where why how there here just also very too user`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

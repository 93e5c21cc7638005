package score

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// foldedText is a normalised text: lower case, white space collapsed to single blanks, escapes resolved ("&lt;", and
// the backslash that formatters put after "<").
type foldedText struct {
	text string
	at   []int32 // for each byte of text, the offset of its character in the original
	size int     // of the original, in bytes
}

// entities are the escapes that may occur in formatted text.
var entities = map[string]byte{"&lt;": '<', "&gt;": '>', "&amp;": '&', "&quot;": '"', "&apos;": '\'', "&#39;": '\'',
	"&#34;": '"'}

// fold normalises a text.
//
//	"The  Cat\n is called &lt;Zorvex>"  ->  "the cat is called <zorvex>"
func fold(text string) *foldedText {
	b, at := make([]byte, 0, len(text)), make([]int32, 0, len(text))
	put := func(c byte, from int) { b, at = append(b, c), append(at, int32(from)) }
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			if len(b) > 0 && b[len(b)-1] != ' ' {
				put(' ', i)
			}
			i++
		case c == '&':
			decoded, width := entity(text[i:])
			put(decoded, i)
			i += width
		case c == '<' && i+1 < len(text) && text[i+1] == '\\':
			put('<', i)
			i += 2
		case c < utf8.RuneSelf:
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			put(c, i)
			i++
		default:
			r, width := utf8.DecodeRuneInString(text[i:])
			if unicode.IsSpace(r) {
				if len(b) > 0 && b[len(b)-1] != ' ' {
					put(' ', i)
				}
			} else {
				b = utf8.AppendRune(b, unicode.ToLower(r))
			}
			for len(at) < len(b) {
				at = append(at, int32(i))
			}
			i += width
		}
	}
	if len(b) > 0 && b[len(b)-1] == ' ' {
		b, at = b[:len(b)-1], at[:len(at)-1]
	}
	return &foldedText{string(b), at, len(text)}
}

// entity decodes an escape at the start of text, and returns its length. Without an escape it returns the "&" itself.
func entity(text string) (c byte, width int) {
	end := strings.IndexByte(text[:min(len(text), len("&quot;"))], ';')
	if end > 0 {
		if c, known := entities[text[:end+1]]; known {
			return c, end + 1
		}
	}
	return '&', 1
}

// original returns the half-open range of the original text that corresponds to a range of the folded one.
func (f *foldedText) original(from, to int) (start, end int) {
	start, end = int(f.at[from]), f.size
	if to < len(f.at) {
		end = int(f.at[to])
	}
	return start, end
}

// index finds folded words in the text, at or after from, but not inside a longer word. It returns -1 if they don't
// occur.
func (f *foldedText) index(words string, from int) int {
	if words == "" {
		return -1
	}
	for from <= len(f.text)-len(words) {
		i := strings.Index(f.text[from:], words)
		if i < 0 {
			return -1
		}
		i += from
		if !joined(f.text[:i], words) && !joined(f.text[:i+len(words)], f.text[i+len(words):]) {
			return i
		}
		from = i + 1
	}
	return -1
}

// joined reports whether the last character of a and the first of b belong to the same word.
func joined(a, b string) bool {
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	return len(a) > 0 && len(b) > 0 && wordRune(last) && wordRune(first) && !isAlone(last) && !isAlone(first)
}

func wordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// isAlone reports whether a character is a word by itself, as in scripts without blanks.
func isAlone(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// word is one word of a text: its hash and its half-open range of bytes.
type word struct {
	hash       uint64
	start, end int
}

// FNV-1a, 64 bits: a hash that is the same on all machines.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// words calls each for every word of a folded text: a run of letters and digits, or a single character in Han, Hiragana
// and Katakana.
func words(text string, each func(word)) {
	hash, start := uint64(fnvOffset), -1
	end := func(i int) {
		if start >= 0 {
			each(word{hash, start, i})
			hash, start = fnvOffset, -1
		}
	}
	for i := 0; i < len(text); {
		c, width := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, width = utf8.DecodeRuneInString(text[i:])
		}
		if !wordRune(c) {
			end(i)
			i += width
			continue
		}
		if isAlone(c) {
			end(i)
		}
		if start < 0 {
			start = i
		}
		for _, b := range []byte(text[i : i+width]) {
			hash = (hash ^ uint64(b)) * fnvPrime
		}
		i += width
		if isAlone(c) {
			end(i)
		}
	}
	end(len(text))
}

func hashWord(text string) uint64 {
	hash := uint64(fnvOffset)
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * fnvPrime
	}
	return hash
}

// contentWords returns the distinct words of a text that are not stop words, in order of first occurrence.
func contentWords(text string) []uint64 {
	var list []uint64
	seen := map[uint64]bool{}
	words(fold(text).text, func(w word) {
		if !seen[w.hash] && !stopWords[w.hash] {
			seen[w.hash] = true
			list = append(list, w.hash)
		}
	})
	return list
}

// stopWords are words that say nothing about the topic of a message.
var stopWords = func() map[uint64]bool {
	const list = `a about after again all also am an and any are as at be because been before being but by can could d did do does
		doing don down for from further had has have having he her here hers him his how i if in into is it its just ll m me more most
		my no nor not now of off on once only or other our ours out over own re s same she should so some such t than that the their
		theirs them then there these they this those through to too under until up ve very was we were what when where which while who
		whom why will with would you your yours`
	set := map[uint64]bool{}
	for _, w := range strings.Fields(list) {
		set[hashWord(w)] = true
	}
	return set
}()

// gramWords is the length of the word sequences that distinguish one cluster's text from another's.
const gramWords = 8

// sequenceHash is a rolling hash of the last n words of a text.
type sequenceHash struct{ sum, power uint64 }

const sequenceBase = 0x9e3779b97f4a7c15 // odd, so that its powers never become 0

func newSequenceHash(n int) sequenceHash {
	h := sequenceHash{power: 1}
	for range n {
		h.power *= sequenceBase
	}
	return h
}

// add adds a word and removes the oldest one, which is 0 while there are fewer than n.
func (h *sequenceHash) add(word, oldest uint64) { h.sum = h.sum*sequenceBase + word - oldest*h.power }

// grams calls each for every sequence of eight words in a folded text, with its hash and range.
func grams(text string, each func(word)) {
	var ring [gramWords]word // zero before the first words
	n, hash := 0, newSequenceHash(gramWords)
	words(text, func(w word) {
		slot := &ring[n%gramWords]
		hash.add(w.hash, slot.hash)
		*slot = w
		if n++; n >= gramWords {
			each(word{hash.sum, ring[n%gramWords].start, w.end})
		}
	})
}

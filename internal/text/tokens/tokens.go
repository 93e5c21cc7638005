// Package tokens counts text in tokens: by an estimate that costs nothing, or exactly as a model family does.
package tokens

import (
	"fmt"
	"hash/maphash"
	"math"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Counter counts text. It is safe for concurrent use.
type Counter interface {
	// Name is what configuration and trace call it.
	Name() string
	Count(text []byte) int64
	// Fit returns the length in bytes of the longest prefix that ends between characters and has at most max tokens,
	// and its count.
	Fit(text []byte, max int64) (bytes int, count int64)
}

// Names lists the counters that New knows; the first is the default.
func Names() []string {
	return []string{Bytes4Name, Cl100kName, O200kName}
}

// The names of Bytes4 and of the exact counters.
const (
	Bytes4Name = "bytes4"
	Cl100kName = "cl100k_base"
	O200kName  = "o200k_base"
)

// New returns the counter of a name; the empty name is the default.
func New(name string) (Counter, error) {
	switch name {
	case "", Bytes4Name:
		return Bytes4{}, nil
	case Cl100kName, O200kName:
		return newExact(name)
	default:
		return nil, fmt.Errorf("tokenizer %q is not one of %v", name, Names())
	}
}

// Bytes4 estimates: a quarter of the bytes, or half of them where more than a quarter are not ASCII, rounded up.
type Bytes4 struct{}

// Name implements Counter.
func (Bytes4) Name() string { return Bytes4Name }

// Count implements Counter.
func (Bytes4) Count(text []byte) int64 {
	return estimate(len(text), notASCII(text))
}

// notASCII counts the bytes whose highest bit is set.
func notASCII(text []byte) int {
	n := 0
	for _, b := range text {
		n += int(b >> 7)
	}
	return n
}

// Fit implements Counter.
func (Bytes4) Fit(text []byte, max int64) (bytes int, count int64) {
	other := 0
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRune(text[i:])
		if text[i] >= utf8.RuneSelf {
			other += size
		}
		i += size
		n := estimate(i, other)
		if n <= max {
			bytes, count = i, n
		} else if int64(i) > 4*max {
			break
		}
	}
	return bytes, count
}

func estimate(bytes, other int) int64 {
	if other*4 > bytes {
		return int64(bytes+1) / 2
	}
	return int64(bytes+3) / 4
}

// cachedCounts bounds the memory of counts: stored turns are counted again at each retrieval.
const cachedCounts = 1 << 16

// exact counts as a model family does, some 2 ms for 8 KB, and remembers counts.
type exact struct {
	name     string
	encoding *encoding
	seed     maphash.Seed
	known    *lru.Cache[countKey, int64]
}

// countKey identifies a text. A collision of 64-bit hashes of texts of one length would give a wrong count, and is too
// rare to matter.
type countKey struct {
	hash   uint64
	length int
}

func newExact(name string) (*exact, error) {
	e, err := encodings[name]()
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", name, err)
	}
	known, err := lru.New[countKey, int64](cachedCounts)
	if err != nil {
		return nil, err
	}
	return &exact{name: name, encoding: e, seed: maphash.MakeSeed(), known: known}, nil
}

func (e *exact) Name() string { return e.name }

func (e *exact) Count(text []byte) int64 {
	key := countKey{maphash.Bytes(e.seed, text), len(text)}
	if n, ok := e.known.Get(key); ok {
		return n
	}
	_, n, err := e.cut(text, math.MaxInt64)
	if err != nil {
		return Bytes4{}.Count(text)
	}
	e.known.Add(key, n)
	return n
}

// cut returns the length in bytes of the longest prefix of at most max tokens, and their number. In text that is not
// UTF-8 a token counts the bytes of the replacement character for each wrong byte.
func (e *exact) cut(text []byte, max int64) (bytes int, count int64, err error) {
	err = e.encoding.tokens(string(text), func(length int) bool {
		if count == max {
			return false
		}
		bytes, count = bytes+length, count+1
		return true
	})
	return bytes, count, err
}

func (e *exact) Fit(text []byte, max int64) (bytes int, count int64) {
	if max <= 0 {
		return 0, 0
	}
	bytes, count, err := e.cut(text, max)
	if err != nil {
		return Bytes4{}.Fit(text, max)
	}
	// Fewer than max: the end was reached, though bytes may be less, since some characters have no token, DEL among
	// them.
	if (bytes >= len(text) || count < max) && utf8.Valid(text) {
		return len(text), count
	}
	bytes = min(bytes, len(text))
	// A token may end inside a character, and the prefix alone may be cut into other tokens than the whole was.
	for bytes > 0 {
		for bytes > 0 && bytes < len(text) && !utf8.RuneStart(text[bytes]) {
			bytes--
		}
		if count = e.Count(text[:bytes]); count <= max {
			return bytes, count
		}
		_, size := utf8.DecodeLastRune(text[:bytes])
		bytes -= size
	}
	return 0, 0
}

// Package tokens counts text in tokens: by an estimate that costs nothing, or exactly as a model family does.
package tokens

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/tiktoken-go/tokenizer"
)

// Counter counts text. It is safe for concurrent use.
type Counter interface {
	// Name is what configuration and trace call it.
	Name() string
	Count(text []byte) int64
	// Fit returns the length in bytes of the longest prefix that ends between characters and has at most max tokens, and its count.
	Fit(text []byte, max int64) (bytes int, count int64)
}

// Names lists the counters that New knows; the first is the default.
func Names() []string {
	return []string{Bytes4Name, string(tokenizer.Cl100kBase), string(tokenizer.O200kBase)}
}

// Bytes4Name is the name of Bytes4.
const Bytes4Name = "bytes4"

// New returns the counter of a name; the empty name is the default.
func New(name string) (Counter, error) {
	switch name {
	case "", Bytes4Name:
		return Bytes4{}, nil
	case string(tokenizer.Cl100kBase), string(tokenizer.O200kBase):
		return newExact(tokenizer.Encoding(name))
	default:
		return nil, fmt.Errorf("tokenizer %q is none of %v", name, Names())
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

// notASCII counts the bytes whose highest bit is set, eight at a time: each formatted context is counted at least twice.
func notASCII(text []byte) int {
	n := 0
	for ; len(text) >= 8; text = text[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(text) & 0x8080808080808080)
	}
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

// exact counts as a model family's tokenizer does, some 2 ms for 8 KB, and remembers counts.
type exact struct {
	name  string
	codec tokenizer.Codec
	seed  maphash.Seed
	known *lru.Cache[countKey, int64]
}

// countKey identifies a text: two independent 64-bit hashes would not be stronger than hash and length for what is at stake, a count.
type countKey struct {
	hash   uint64
	length int
}

func newExact(encoding tokenizer.Encoding) (*exact, error) {
	codec, err := tokenizer.Get(encoding)
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", encoding, err)
	}
	known, err := lru.New[countKey, int64](cachedCounts)
	if err != nil {
		return nil, err
	}
	return &exact{name: string(encoding), codec: codec, seed: maphash.MakeSeed(), known: known}, nil
}

func (e *exact) Name() string { return e.name }

func (e *exact) Count(text []byte) int64 {
	key := countKey{maphash.Bytes(e.seed, text), len(text)}
	if n, ok := e.known.Get(key); ok {
		return n
	}
	n, err := e.codec.Count(string(text))
	if err != nil {
		return Bytes4{}.Count(text)
	}
	e.known.Add(key, int64(n))
	return int64(n)
}

func (e *exact) Fit(text []byte, max int64) (bytes int, count int64) {
	if max <= 0 {
		return 0, 0
	}
	ids, _, err := e.codec.Encode(string(text))
	if err != nil {
		return Bytes4{}.Fit(text, max)
	}
	if int64(len(ids)) <= max {
		return len(text), int64(len(ids))
	}
	prefix, err := e.codec.Decode(ids[:max])
	if err != nil {
		return Bytes4{}.Fit(text, max)
	}
	// A token may end inside a character, and the prefix alone may be cut into other tokens than the whole was.
	for bytes = min(len(prefix), len(text)); bytes > 0; {
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

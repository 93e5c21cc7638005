// Package tokens counts tokens in text: by a cheap estimate, or exactly as a model family does.
package tokens

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/memhost/memhost/internal/text/bytes4"
)

// Counter counts tokens. It is safe for concurrent use.
type Counter interface {
	// Name is the counter's name in configuration and traces.
	Name() string
	Count(text []byte) int64
	// Fit returns the length in bytes of the longest prefix that ends between characters and has at most max tokens,
	// and its token count.
	Fit(text []byte, max int64) (bytes int, count int64)
}

// Names returns the names of all counters; the first is the default.
func Names() []string {
	return []string{bytes4.Name, Cl100kName, O200kName}
}

// The names of the exact counters.
const (
	Cl100kName = "cl100k_base"
	O200kName  = "o200k_base"
)

// New returns the counter with a name; the empty name is the default.
func New(name string) (Counter, error) {
	switch name {
	case "", bytes4.Name:
		return bytes4.Counter{}, nil
	case Cl100kName:
		return cl100k()
	case O200kName:
		return o200k()
	default:
		return nil, fmt.Errorf("tokenizer %q is not one of %v", name, Names())
	}
}

// cachedCounts bounds the cache of counts: stored turns are counted again at each retrieval.
const cachedCounts = 1 << 16

// The exact counters are built at first use, which takes some 20 ms for cl100k_base and 40 ms for o200k_base. All
// providers of a process share their caches: an evaluation counts the same texts for each memory and budget.
var (
	cl100k = sync.OnceValues(func() (Counter, error) { return newExact(Cl100kName, codec.NewCl100kBase()) })
	o200k  = sync.OnceValues(func() (Counter, error) { return newExact(O200kName, codec.NewO200kBase()) })
)

// exactCounter counts as a model family does, at some 2 ms for 8 KB, and caches counts.
type exactCounter struct {
	name     string
	encoding *codec.Codec
	seed     maphash.Seed
	known    *lru.Cache[countKey, int64]
}

// countKey identifies a text. If two texts of the same length had the same 64-bit hash, a count would be wrong, but
// that is too rare to matter.
type countKey struct {
	hash   uint64
	length int
}

func newExact(name string, encoding *codec.Codec) (*exactCounter, error) {
	known, err := lru.New[countKey, int64](cachedCounts)
	if err != nil {
		return nil, err
	}
	return &exactCounter{name: name, encoding: encoding, seed: maphash.MakeSeed(), known: known}, nil
}

func (e *exactCounter) Name() string { return e.name }

// Count implements Counter. In invalid UTF-8, each invalid byte counts like the replacement character.
func (e *exactCounter) Count(text []byte) int64 {
	key := countKey{maphash.Bytes(e.seed, text), len(text)}
	if n, ok := e.known.Get(key); ok {
		return n
	}
	n, err := e.encoding.Count(withoutDEL(text))
	if err != nil {
		return bytes4.Counter{}.Count(text)
	}
	e.known.Add(key, int64(n))
	return int64(n)
}

// withoutDEL replaces a character that the library drops by another that also is a single token and merges with no
// other.
func withoutDEL(text []byte) string { return strings.ReplaceAll(string(text), "\x7f", "\x04") }

// Fit implements Counter.
func (e *exactCounter) Fit(text []byte, max int64) (bytes int, count int64) {
	if max <= 0 {
		return 0, 0
	}
	_, tokens, err := e.encoding.Encode(withoutDEL(text))
	if err != nil {
		return bytes4.Counter{}.Fit(text, max)
	}
	if int64(len(tokens)) <= max && utf8.Valid(text) {
		return len(text), int64(len(tokens))
	}
	for _, token := range tokens[:min(int64(len(tokens)), max)] {
		bytes += len(token)
	}
	bytes = min(bytes, len(text))
	// A token may end inside a character, and a prefix may be split into other tokens than the same bytes in the whole
	// text.
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

package tokens

import (
	"container/heap"
	_ "embed"
	"fmt"
	"math"
	"sync"

	"github.com/dlclark/regexp2/v2"
	"github.com/klauspost/compress/zstd"
)

// The vocabularies are those of OpenAI's tiktoken: the lengths of the tokens in the order of their ranks, a byte each,
// then the tokens; compressed with Zstandard. tools/vocabulary writes them.
var (
	//go:embed cl100k_base.zst
	cl100kTokens []byte
	//go:embed o200k_base.zst
	o200kTokens []byte
)

// The encodings are read when they are first used: 60 ms for cl100k_base, 190 ms for o200k_base on a busy machine.
var encodings = map[string]func() (*encoding, error){
	Cl100kName: sync.OnceValues(func() (*encoding, error) {
		return newEncoding(cl100kTokens, 100_256, regexp2.MustCompile(`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|`+
			` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`, regexp2.None))
	}),
	O200kName: sync.OnceValues(func() (*encoding, error) {
		const upper, lower, short = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`, `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`,
			`(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
		return newEncoding(o200kTokens, 199_998, regexp2.MustCompile(`[^\r\n\p{L}\p{N}]?`+upper+`*`+lower+`+`+short+`|`+
			`[^\r\n\p{L}\p{N}]?`+upper+`+`+lower+`*`+short+`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`, regexp2.None))
	}),
}

// encoding cuts text into tokens by byte-pair encoding: an expression splits the text into pieces; within a piece,
// which begins as single bytes, the neighbours whose concatenation has the lowest rank are merged until no
// concatenation is a token.
type encoding struct {
	ranks map[string]int
	split *regexp2.Regexp
}

func newEncoding(compressed []byte, size int, split *regexp2.Regexp) (*encoding, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("the vocabulary: %w", err)
	}
	defer decoder.Close()
	text, err := decoder.DecodeAll(compressed, nil)
	if err != nil {
		return nil, fmt.Errorf("the vocabulary: %w", err)
	}
	e := &encoding{ranks: make(map[string]int, size), split: split}
	rest := string(text[size:])
	for _, length := range text[:size] {
		e.ranks[rest[:length]] = len(e.ranks)
		rest = rest[length:]
	}
	return e, nil
}

// tokens calls yield with the length in bytes of one token after the other, until it returns false.
func (e *encoding) tokens(text string, yield func(length int) bool) error {
	piece, err := e.split.FindStringMatch(text)
	for ; err == nil && piece != nil; piece, err = e.split.FindNextMatch(piece) {
		if !e.merge(piece.String(), yield) {
			return nil
		}
	}
	return err
}

// merge yields the tokens of one piece.
func (e *encoding) merge(piece string, yield func(length int) bool) bool {
	if _, ok := e.ranks[piece]; ok {
		return yield(len(piece))
	}
	// A part begins at each i with next[i] > i, and ends there. rank[i] is that of the part at i with the one after it.
	n := len(piece)
	next, previous, rank := make([]int, n+1), make([]int, n+1), make([]int, n+1)
	var pairs pairs
	rate := func(i int) {
		rank[i] = math.MaxInt
		if i < 0 || next[i] >= n {
			return
		}
		if r, ok := e.ranks[piece[i:next[next[i]]]]; ok {
			rank[i] = r
			heap.Push(&pairs, pair{r, i})
		}
	}
	for i := range n {
		next[i], previous[i] = i+1, i-1
	}
	for i := range n {
		rate(i)
	}
	for len(pairs) > 0 {
		best := heap.Pop(&pairs).(pair)
		i := best.at
		if rank[i] != best.rank {
			continue
		}
		middle := next[i]
		rank[middle] = math.MaxInt
		next[i] = next[middle]
		if next[i] < n {
			previous[next[i]] = i
		}
		rate(i)
		if previous[i] >= 0 {
			rate(previous[i])
		}
	}
	for i := 0; i < n; i = next[i] {
		if !yield(next[i] - i) {
			return false
		}
	}
	return true
}

// pair is a part that could be merged with the one after it.
type pair struct{ rank, at int }

// pairs is a heap: the lowest rank first, and of equal ones the leftmost.
type pairs []pair

func (p pairs) Len() int { return len(p) }
func (p pairs) Less(i, j int) bool {
	return p[i].rank < p[j].rank || p[i].rank == p[j].rank && p[i].at < p[j].at
}
func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *pairs) Push(v any)   { *p = append(*p, v.(pair)) }
func (p *pairs) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

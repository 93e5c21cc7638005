package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
)

// The parameters of Okapi BM25.
const (
	k1 = 1.2
	b  = 0.75
)

// hit is a message with its score.
type hit struct {
	message int64
	score   float64
}

// rank scores all messages that share a term with the query, best first; equal ones in the order of their arrival. It
// returns the best most of them, and how many there are in all. A message whose shared terms are all common ones is not
// among them.
//
// The score of a message is the sum over the query's terms, each as often as the query has it, of
//
//	ln(1 + (N - n + 0.5) / (n + 0.5)) * f * (k1 + 1) / (f + k1 * (1 - b + b * words / average))
//
// where n of the N messages have the term, f is how often this one has it, words how many words it has, and average
// how many they have on average.
func rank(s *state.State, held *collection, query string, most int, common func(with, held int64) bool) (best []hit,
	matching int64) {
	counts := count(terms(query))
	scores := make([]float64, held.messages+1)
	average := float64(held.words) / float64(max(1, held.existing()))
	add := func(term string, p *postings, toAll bool) {
		n := float64(p.with)
		weight := float64(counts[term]) * math.Log(1+(float64(held.existing())-n+0.5)/(n+0.5)) * (k1 + 1)
		p.each(s, term, func(message, times, words int64) {
			if message >= int64(len(scores)) {
				s.Fail(state.Unreadable(termPrefix + term))
				return
			}
			if !toAll && scores[message] == 0 {
				return
			}
			f := float64(times)
			scores[message] += weight * f / (f + k1*(1-b+b*float64(words)/average))
		})
	}
	later := map[string]*postings{} // common terms only
	for _, term := range abi.SortedKeys(counts) {
		if p := readPostings(s, term); common(p.with, held.existing()) {
			later[term] = p
		} else {
			add(term, p, true)
		}
	}
	for _, term := range abi.SortedKeys(later) {
		add(term, later[term], false)
	}
	least := 0.0 // score to exceed once there are enough results
	for message, score := range scores {
		if score == 0 {
			continue
		}
		matching++
		if score <= least {
			continue
		}
		best = append(best, hit{int64(message), score})
		if len(best) >= 2*most+100 {
			best = bestOf(best, most)
			least = best[len(best)-1].score
		}
	}
	return bestOf(best, most), matching
}

func bestOf(hits []hit, most int) []hit {
	slices.SortFunc(hits, func(a, b hit) int {
		if n := cmp.Compare(b.score, a.score); n != 0 {
			return n
		}
		return cmp.Compare(a.message, b.message)
	})
	return hits[:min(most, len(hits))]
}
